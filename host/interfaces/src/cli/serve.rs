//! `motor serve`: a host that stays.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::process::{Command, Stdio};

use base::{Refusal, Secret};
use clap::Args;
use consent::Claim;

use super::Done;
use super::answers::Listening;
use super::consent::unasked;
use super::context::Context;
use crate::client::OwnerProof;
use crate::exit::CommandExit;
use crate::http::listen::Server;
use crate::http::port::TcpPort;

/// Arguments of `motor serve`.
#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// Serve the HTTP API on this address too, such as `127.0.0.1:7777`; its clients need a token
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Option<SocketAddr>,
    /// Let other machines reach the address. Tokens cross the network in plain text unless a proxy encrypts them
    #[arg(long, requires = "listen")]
    allow_remote: bool,
    /// Open the page in a browser and sign in there by a link that works once. Without `--listen` it is served on
    /// `127.0.0.1:7777`
    #[arg(long)]
    open: bool,
}

/// Where the page is served if no address is given.
const PAGE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 7777);

pub(super) async fn run(arguments: &ServeArgs, context: &Context) -> Done {
    let place = context.place()?;
    let mut server = place.serve_staying(|refusal| context.output.say(&format!("waiting: {}", refusal.reason))).await?;
    let socket = place.home.socket();
    let listen = arguments.listen.or_else(|| arguments.open.then_some(PAGE));
    let port = listen.map(|address| TcpPort { address, allow_remote: arguments.allow_remote });
    let address = match port {
        Some(port) => match server.listen(port).await {
            Ok(address) => Some(format!("http://{address}")),
            Err(refusal) => {
                server.stop().await;
                return Err(refusal.into());
            }
        },
        None => None,
    };
    context.wishes.listen().await;
    // Printed once connections are accepted: the process that started this one may wait for the line.
    if context.output.is_json() {
        let pid = std::process::id();
        context.output.print_json_line(&Listening { listening: socket, address: address.clone(), pid })?;
    } else {
        let also = address.as_ref().map(|address| format!(" and {address}")).unwrap_or_default();
        context.output.say(&format!("listening on {}{also}", socket.display()));
    }
    if let Some(address) = address.filter(|_| arguments.open)
        && let Err(refusal) = open(&server, &address, context).await
    {
        context.output.fail(&refusal.reason, refusal.remedy.as_deref());
    }
    let lost = tokio::select! {
        biased;
        refusal = server.storage_lost() => Some(refusal),
        () = server.asked_to_end() => None,
        _ = context.wishes.next() => None,
    };
    let exit = match &lost {
        // Not an error of this command: clients were told theirs, and the exit code is for a supervisor.
        Some(refusal) => {
            context.output.fail(&refusal.reason, refusal.remedy.as_deref());
            CommandExit::Storage
        }
        None => CommandExit::Ok,
    };
    context.output.say("stopping; runs that are not over go on with the next host");
    server.stop().await;
    Ok(exit)
}

/// Opens the page in the browser of the desktop, if there is one, signed in.
async fn open(server: &Server, address: &str, context: &Context) -> Result<(), Refusal> {
    let OwnerProof { door, token } = unasked(context).await?;
    let claim = Claim { door, token: Some(Secret::new(token.expose().to_owned())) };
    let link = server.sign_in_link(address, claim).await?;
    context.output.say(&format!("the page, signed in (good once, for two minutes): {link}"));
    let opener = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started =
        Command::new(opener).arg(link).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    match started {
        // Waited for, so that nothing of it is left over.
        Ok(mut child) => drop(std::thread::spawn(move || child.wait())),
        Err(error) => tracing::debug!(%error, "no browser was opened"),
    }
    Ok(())
}
