//! `motor call`: one tool of one component, under the real limits (SPEC HOST-9).

use std::path::PathBuf;
use std::sync::Arc;

use agent::components::{CallReply, CallRequest};
use base::{Refusal, RefusalCode};
use clap::Args;
use runtime::Note;
use tokio_util::sync::CancellationToken;

use super::context::{Context, usage};
use super::inspect::{at, tools, workbench};
use super::{Done, input};
use crate::exit::CommandExit;
use crate::output::{Output, Palette, text};

/// Arguments of `motor call`.
#[derive(Debug, Args)]
#[command(
    after_help = "A command component (`wasi:cli/run`) gives its own exit status, 1 to 255; any other failure gives 1."
)]
pub(super) struct CallArgs {
    /// The component's file
    component: PathBuf,
    /// The tool; without one, the tools are listed
    tool: Option<String>,
    /// Its arguments as JSON, or `-` to read them from standard input
    #[arg(default_value = "{}")]
    arguments: String,
    /// The directory that it sees as `/workspace` [default: a fresh one, removed afterwards]
    #[arg(long, value_name = "DIR")]
    workspace: Option<PathBuf>,
}

pub(super) async fn run(arguments: CallArgs, context: &Context) -> Done {
    let bench = workbench(context)?;
    let Some(tool) = arguments.tool else {
        let report = at(&bench, context, bench.inspect_file(&arguments.component)).await?;
        if let Some(error) = report.tools_error {
            let reason = format!("the tools of this component cannot be listed: {error}");
            return Err(Refusal::new(RefusalCode::InvalidComponent, reason)
                .with_remedy("mend the component, and build it again")
                .into());
        }
        if report.tools.is_empty() {
            let why = match report.unmapped.first() {
                Some(function) => format!("`{}` {}", text::brief(&function.export, 100), function.why),
                None if matches!(report.world, "code" | "reflector" | "neuron") => {
                    format!("it is of the world `{}`", report.world)
                }
                None => "it exports none".to_owned(),
            };
            return Err(usage(
                format!("this component offers no tools: {why}"),
                "build it for the world `tool`; `motor inspect FILE` shows what it is",
            )
            .into());
        }
        context.answer(&report.tools, || tools(&report.tools, context.output.columns))?;
        return Ok(CommandExit::Ok);
    };
    let json = input::text_or_stdin(&arguments.arguments).await?;
    if let Err(error) = serde_json::from_str::<serde_json::Value>(&json) {
        return Err(usage(format!("the arguments are not JSON: {error}"), "quote them: '{\"path\": \"a.txt\"}'").into());
    }
    if let Some(directory) = arguments.workspace.as_ref().filter(|directory| !directory.is_dir()) {
        return Err(usage(format!("`{}` is not a directory", directory.display()), "create it first").into());
    }
    let cancel = CancellationToken::new();
    let request = CallRequest {
        path: arguments.component,
        tool,
        arguments: json,
        workspace: arguments.workspace,
        domains: Vec::new(),
        recorded: None,
        notes: notes(context.output.clone()),
        cancel: cancel.clone(),
    };
    let calling = at(&bench, context, bench.call(request));
    tokio::pin!(calling);
    let reply = tokio::select! {
        reply = &mut calling => reply?,
        _ = context.wishes.next() => {
            cancel.cancel();
            calling.await?;
            return Ok(CommandExit::Interrupted);
        }
    };
    show(&reply, &context.output)
}

/// Prints the guest's log lines and progress while it works.
pub(super) fn notes(output: Output) -> runtime::NoteSink {
    Arc::new(move |note| {
        let line = match note {
            Note::Log { level, message } => format!("{level}: {}", text::brief(&message, 500)),
            Note::Progress { message, fraction } => {
                let percent = fraction.map(|fraction| format!(" {:.0} %", fraction * 100.0)).unwrap_or_default();
                format!("…{percent} {}", text::brief(&message, 500))
            }
        };
        output.say_trusted(&output.err.dim(&line));
    })
}

pub(super) fn show(reply: &CallReply, output: &Output) -> Done {
    if output.is_json() {
        output.print_json(reply)?;
    } else {
        if !reply.stdio.is_empty() {
            output.say(reply.stdio.trim_end_matches('\n'));
        }
        if reply.ok {
            output.print(&reply.output)?;
        }
    }
    if !reply.ok {
        let code = reply.error.unwrap_or("failed");
        output.say_labelled(&format!("{code}:"), Palette::red, &reply.output);
    }
    output.say_trusted(&output.err.dim(&format!(
        "{}, fuel {}, peak memory {}, {}",
        text::millis(reply.duration_ms),
        text::count(reply.fuel),
        text::bytes(reply.peak_memory_bytes),
        text::plural(reply.host_calls, "host call"),
    )));
    Ok(match reply.exit_status {
        Some(status) => CommandExit::of_component(status),
        None if reply.ok => CommandExit::Ok,
        None => CommandExit::Failed,
    })
}
