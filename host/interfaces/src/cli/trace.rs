//! `motor trace`: a run's trace in the forms of other programs (SPEC OBS-1).

use std::path::PathBuf;

use base::{Refusal, RefusalCode, RunId};
use clap::{Subcommand, ValueEnum};
use motor::RunTrace;
use serde_json::{Value, json};

use super::Done;
use super::context::Context;
use super::task::or_newest;
use crate::client::Call;
use crate::exit::CommandExit;
use crate::http::standalone_page;

/// Subcommands of `motor trace`.
#[derive(Debug, Subcommand)]
pub(super) enum TraceCommand {
    /// Write a run's trace to stdout or a file
    Export {
        /// The run [default: the newest]
        run: Option<RunId>,
        /// `jsonl`: a line for the run and one for each step; `otlp`: OTLP JSON with the GenAI conventions, without
        /// texts; `html`: one page that needs nothing else
        #[arg(long, value_name = "FORM", default_value = "jsonl", hide_possible_values = true)]
        format: TraceFormat,
        /// Write it to a file
        #[arg(long, value_name = "FILE")]
        out: Option<PathBuf>,
    },
}

/// The form of an exported trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum TraceFormat {
    /// JSON Lines: the run, then each step.
    Jsonl,
    /// OTLP in its JSON encoding.
    Otlp,
    /// A page without scripts.
    Html,
}

pub(super) async fn run(command: TraceCommand, context: &Context) -> Done {
    let TraceCommand::Export { run, format, out } = command;
    context
        .with_host(async |session| {
            let run = or_newest(run, session, context).await?;
            let trace: RunTrace = session.ask(&Call::get(format!("/v1/tasks/{run}"))).await?;
            let text = match format {
                TraceFormat::Jsonl => lines(&trace),
                TraceFormat::Otlp => format!("{}\n", agent::otlp::request(&trace)),
                TraceFormat::Html => standalone_page(&trace),
            };
            match out {
                Some(path) => {
                    std::fs::write(&path, text).map_err(|error| {
                        let reason = format!("cannot write `{}`: {error}", path.display());
                        Refusal::new(RefusalCode::Failed, reason)
                    })?;
                    context.output.say(&format!("the trace of {run} is in {}", path.display()));
                }
                None => context.output.print(&text)?,
            }
            Ok(CommandExit::Ok)
        })
        .await
}

/// The run without its steps on the first line, each step on one of the next. The field `type` tells them apart.
fn lines(trace: &RunTrace) -> String {
    let line = |kind: &str, value: Value| {
        let mut object = json!({ "type": kind });
        if let (Value::Object(all), Value::Object(fields)) = (&mut object, value) {
            all.extend(fields);
        }
        format!("{object}\n")
    };
    let mut head = serde_json::to_value(trace.without_steps()).unwrap_or_default();
    if let Value::Object(fields) = &mut head {
        fields.remove("steps");
    }
    let steps = trace.steps.iter().map(|step| line("step", serde_json::to_value(step).unwrap_or_default()));
    std::iter::once(line("run", head)).chain(steps).collect()
}
