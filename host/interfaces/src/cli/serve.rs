//! `motor serve`: a host that stays.

use std::net::SocketAddr;

use clap::Args;
use serde_json::json;

use super::Done;
use super::context::Context;
use crate::exit::CommandExit;
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
}

pub(super) async fn run(arguments: &ServeArgs, context: &Context) -> Done {
    let place = context.place()?;
    let mut server = place.serve_staying(|refusal| context.output.say(&format!("waiting: {}", refusal.reason))).await?;
    let socket = place.home.socket();
    let port = arguments.listen.map(|address| TcpPort { address, allow_remote: arguments.allow_remote });
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
        context
            .output
            .print_json_line(&json!({ "listening": socket, "address": address, "pid": std::process::id() }))?;
    } else {
        let address = address.map(|address| format!(" and {address}")).unwrap_or_default();
        context.output.say(&format!("listening on {}{address}", socket.display()));
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
