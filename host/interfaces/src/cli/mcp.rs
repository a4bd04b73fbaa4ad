//! `motor mcp`: an MCP server on standard input and output.

use std::path::PathBuf;

use agent::api::offers::OfferedTool;
use clap::{Args, Subcommand, ValueEnum};

use super::answers::{ClientInstall, ClientSnippet};
use super::context::{Context, usage};
use super::{CliError, Done};
use crate::client::Call;
use crate::exit::CommandExit;
use crate::mcp::api::HomeApi;
use crate::mcp::install::{Client, Entry, Installed};
use crate::mcp::{McpServer, skills, tools};
use crate::output::text;
use crate::session::Session;

/// Arguments of `motor mcp`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct McpArgs {
    #[command(subcommand)]
    command: Option<McpCommand>,
}

#[derive(Debug, Subcommand)]
enum McpCommand {
    /// Show the tools that a client sees
    Tools,
    /// Write the configuration of an MCP client, or print it
    Install(InstallArgs),
}

/// Arguments of `motor mcp install`.
#[derive(Debug, Args)]
struct InstallArgs {
    /// The client to configure
    #[arg(long, value_name = "CLIENT")]
    client: ClientName,
    /// Print the configuration instead of writing it
    #[arg(long)]
    print: bool,
    /// Configure the project in this directory instead of the user
    #[arg(long)]
    project: bool,
}

/// A client that `motor mcp install` knows.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum ClientName {
    Claude,
    Cursor,
    Vscode,
    Codex,
    Goose,
}

impl From<ClientName> for Client {
    fn from(name: ClientName) -> Self {
        match name {
            ClientName::Claude => Self::Claude,
            ClientName::Cursor => Self::Cursor,
            ClientName::Vscode => Self::VsCode,
            ClientName::Codex => Self::Codex,
            ClientName::Goose => Self::Goose,
        }
    }
}

pub(super) async fn run(arguments: &McpArgs, context: &Context) -> Done {
    match &arguments.command {
        None => serve(context).await,
        Some(McpCommand::Tools) => show(context).await,
        Some(McpCommand::Install(install)) => write(install, context),
    }
}

async fn serve(context: &Context) -> Done {
    let mut session = Session::open(context.place()?).await?;
    session.take_up_runs().await?;
    let server = McpServer::at_home(HomeApi::new(session), context.agent());
    context.wishes.listen().await;
    let done = tokio::select! {
        served = crate::mcp::serve_stdio(&server) => served.map(|()| CommandExit::Ok).map_err(CliError::from),
        _ = context.wishes.next() => Ok(CommandExit::Ok),
    };
    match server.into_session() {
        Some(session) => context.leave(session, done).await,
        // A call that is being cancelled still holds it; the process ends with it.
        None => done,
    }
}

async fn show(context: &Context) -> Done {
    context
        .with_host(async |session| {
            let offered: Vec<OfferedTool> = session.ask(&Call::get("/v1/skills/tools")).await?;
            let tools: Vec<_> = tools::all().into_iter().chain(offered.into_iter().map(skills::tool)).collect();
            context.answer(&tools, || {
                let lines = tools.iter().map(|tool| {
                    let title = tool.title.as_deref().unwrap_or_default();
                    let description = tool.description.as_deref().unwrap_or_default();
                    format!("{}  {title}\n    {}\n", tool.name, text::one_line(description))
                });
                lines.collect()
            })?;
            Ok(CommandExit::Ok)
        })
        .await
}

fn write(install: &InstallArgs, context: &Context) -> Done {
    let client = Client::from(install.client);
    let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
    let program =
        program.ok_or_else(|| usage("the path of this program is not UTF-8", "move it to another directory"))?;
    let entry = Entry { program, arguments: arguments(context)? };
    let place = if install.project {
        client.project_file(&PathBuf::from("."))
    } else {
        client.user_file(&|name| (context.env)(name))
    };
    if install.print {
        let answer = ClientSnippet { file: place, configuration: client.snippet(&entry) };
        context.answer(&answer, || answer.configuration.clone())?;
        return Ok(CommandExit::Ok);
    }
    let place = place.ok_or_else(|| {
        usage("the client has no such file on this machine", "print the configuration and paste it: add `--print`")
    })?;
    let installed = client.install(&place, &entry)?;
    let shown = text::quoted(&place.display().to_string());
    let said = match installed {
        Installed::Written => format!("wrote the server `motor` to {shown}; restart the client"),
        Installed::Unchanged => format!("{shown} already has the server `motor`"),
    };
    context.answer(&ClientInstall { file: place, written: installed == Installed::Written }, || said)?;
    Ok(CommandExit::Ok)
}

/// Arguments with which a client starts the server: it knows neither this directory nor this environment.
fn arguments(context: &Context) -> Result<Vec<String>, CliError> {
    let mut arguments = Vec::new();
    if context.globals.home.is_some() || (context.env)("MOTOR_HOME").is_some() {
        let home = context.place()?.home;
        let path = std::path::absolute(home.path()).unwrap_or_else(|_| home.path().to_owned());
        let path = path.into_os_string().into_string();
        let path = path.map_err(|_| usage("the path of the home is not UTF-8", "rename the directory"))?;
        arguments.extend(["--home".to_owned(), path]);
    }
    if let Some(agent) = &context.globals.agent {
        arguments.extend(["--agent".to_owned(), agent.to_string()]);
    }
    arguments.push("mcp".to_owned());
    Ok(arguments)
}
