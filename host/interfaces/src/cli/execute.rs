//! `motor execute`: one program in the sandbox (SPEC CODE-5).

use std::path::PathBuf;
use std::time::Duration;

use agent::{ExecuteReply, ExecuteRequest, Language, Tier};
use clap::Args;

use super::context::Context;
use super::{Done, consent, input};
use crate::client::Call;
use crate::duration;
use crate::exit::CommandExit;
use crate::output::text;
use crate::session::HostTarget;

/// Arguments of `motor execute`.
#[derive(Debug, Args)]
pub(super) struct ExecuteArgs {
    /// The program, or `-` to read it from standard input
    #[arg(required_unless_present = "file", conflicts_with = "file", allow_negative_numbers = true)]
    code: Option<String>,
    /// A file with the program
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Language of the program. Default: Python for a file that ends in `.py`, else JavaScript
    #[arg(long, value_name = "LANGUAGE")]
    language: Option<LanguageName>,
    /// Network access: nothing, or with `fetch` the domains of `network.code_domains`
    #[arg(long, value_name = "TIER", default_value = "isolated")]
    tier: TierName,
    /// Time it may take, such as `2s`; a bare number is milliseconds. Between 100 ms and 5 s (`network`: 30 s)
    #[arg(long, value_name = "TIME", value_parser = duration::parse)]
    timeout: Option<Duration>,
    /// Turn off the static guard. The sandbox is the boundary, with it or without
    #[arg(long)]
    no_guard: bool,
    /// Seed its random numbers
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Purpose of the program, for the log
    #[arg(long, value_name = "TEXT")]
    purpose: Option<String>,
}

/// The network access of a program.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum TierName {
    Isolated,
    Network,
}

/// The language of a program.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum LanguageName {
    #[value(name = "javascript", alias = "js")]
    JavaScript,
    #[value(alias = "py")]
    Python,
}

fn language(arguments: &ExecuteArgs) -> Language {
    let is_python = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "py");
    match arguments.language {
        Some(LanguageName::JavaScript) => Language::JavaScript,
        Some(LanguageName::Python) => Language::Python,
        None if arguments.file.as_ref().is_some_and(is_python) => Language::Python,
        None => Language::JavaScript,
    }
}

pub(super) async fn run(arguments: ExecuteArgs, context: &Context) -> Done {
    let code = match (&arguments.file, &arguments.code) {
        (Some(path), _) => input::text_file(path)?,
        (None, code) => input::text_or_stdin(code.as_deref().unwrap_or_default()).await?,
    };
    let request = ExecuteRequest {
        language: language(&arguments),
        code,
        purpose: arguments.purpose,
        tier: match arguments.tier {
            TierName::Isolated => Tier::Isolated,
            TierName::Network => Tier::Network,
        },
        timeout_ms: arguments.timeout.map(duration::millis),
        guard: arguments.no_guard.then_some(false),
        agent: context.agent(),
        seed: arguments.seed,
    };
    // Another engine runs the programs that reach the network.
    let program = matches!(request.tier, Tier::Isolated).then_some(request.language);
    let place = HostTarget { program, ..context.place()? };
    context
        .with_host_at(place, async |session| {
            let call = consent::signed(Call::post("/v1/executions", &request)?, context);
            // A program that reaches the network may have written there.
            let reply: ExecuteReply = match request.tier {
                Tier::Isolated => session.ask(&call).await?,
                Tier::Network => session.ask_once(&call).await?,
            };
            show(&reply, context)
        })
        .await
}

fn show(reply: &ExecuteReply, context: &Context) -> Done {
    let output = &context.output;
    for warning in &reply.warnings {
        output.warn(warning);
    }
    if output.is_json() {
        output.print_json(reply)?;
    } else {
        if !reply.console.is_empty() {
            output.say(reply.console.trim_end_matches('\n'));
        }
        if reply.console_truncated {
            output.say_trusted(&output.err.dim("(the console had more)"));
        }
        if reply.ok {
            output.print(&reply.output)?;
        }
    }
    if !reply.ok {
        output.say_trusted(&output.err.red(&text::printable(&reply.output)));
    }
    Ok(exit(reply))
}

fn exit(reply: &ExecuteReply) -> CommandExit {
    match (reply.ok, reply.error_code.as_deref()) {
        (true, _) => CommandExit::Ok,
        (false, Some("EXECUTION_DENIED")) => CommandExit::Energy,
        (false, _) => CommandExit::Failed,
    }
}
