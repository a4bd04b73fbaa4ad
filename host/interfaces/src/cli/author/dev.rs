//! `motor dev`: rebuilds a project whenever a file is saved, calls it with the same arguments, and shows the result, its
//! cost, and the imports that were gained or lost.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use agent::components::{CallRequest, ComponentReport, Workbench};
use authoring::{Project, cases, fingerprint};
use base::{Refusal, RefusalCode};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::super::Done;
use super::super::call::{notes, show};
use super::super::context::{Context, usage};
use super::super::inspect::{at, workbench};
use super::{blocking, built};
use crate::exit::CommandExit;
use crate::output::text;

/// How often the sources are looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Arguments of `motor dev`.
#[derive(Debug, Args)]
pub(in super::super) struct DevArgs {
    /// Directory of the project
    #[arg(default_value = ".")]
    project: PathBuf,
    /// The tool to call [default: the last call of this project, otherwise the first case]
    tool: Option<String>,
    /// Its arguments as JSON [default: `{}` if a tool is named]
    arguments: Option<String>,
    /// Build and call once, and do not wait for changes
    #[arg(long)]
    once: bool,
}

pub(in super::super) async fn dev(arguments: DevArgs, context: &Context) -> Done {
    let project = Project::open(&arguments.project)?;
    let (tool, json) = call_of(&project, &arguments)?;
    let bench = workbench(context)?;
    let mut imports: Option<BTreeSet<String>> = None;
    loop {
        let seen = sources(&project).await?;
        let round = round(&project, &bench, context, (&tool, &json), &mut imports);
        let done = tokio::select! {
            done = round => done,
            _ = context.wishes.next() => return Ok(CommandExit::Interrupted),
        };
        if arguments.once {
            return done;
        }
        // The loop goes on after a mistake in the source.
        if let Err(super::super::CliError::Refused(refusal)) = done {
            context.output.fail(&refusal.reason, refusal.remedy.as_deref());
        }
        context.output.say("waiting for a change; Ctrl-C ends");
        while sources(&project).await? == seen {
            tokio::select! {
                () = tokio::time::sleep(LOOK) => {}
                _ = context.wishes.next() => return Ok(CommandExit::Ok),
            }
        }
    }
}

async fn sources(project: &Project) -> Result<u64, Refusal> {
    let project = project.clone();
    blocking(move || Ok(fingerprint(&project))).await
}

/// A call to repeat, in `build/last-call.json`.
#[derive(Debug, Serialize, Deserialize)]
struct LastCall {
    tool: String,
    arguments: String,
}

impl LastCall {
    fn path(project: &Project) -> PathBuf {
        project.build_directory().join("last-call.json")
    }

    /// The recorded call. An unreadable file counts as none, like the rest of `build`, which may be deleted.
    fn read(project: &Project) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(Self::path(project)).ok()?).ok()
    }

    fn write(&self, project: &Project) -> std::io::Result<()> {
        std::fs::create_dir_all(project.build_directory())?;
        std::fs::write(Self::path(project), serde_json::to_vec(self)?)
    }
}

/// The named call, which is recorded, otherwise the recorded one, otherwise that of the first case.
fn call_of(project: &Project, arguments: &DevArgs) -> Result<(String, String), Refusal> {
    if let Some(tool) = &arguments.tool {
        let json = arguments.arguments.clone().unwrap_or_else(|| "{}".to_owned());
        serde_json::from_str::<Value>(&json).map_err(|error| {
            usage(format!("the arguments are not JSON: {error}"), "quote them: '{\"name\": \"Ada\"}'")
        })?;
        let call = LastCall { tool: tool.clone(), arguments: json };
        call.write(project).map_err(|error| {
            Refusal::new(
                RefusalCode::StorageFailed,
                format!("cannot write `{}`: {error}", LastCall::path(project).display()),
            )
        })?;
        return Ok((call.tool, call.arguments));
    }
    if let Some(LastCall { tool, arguments }) = LastCall::read(project) {
        return Ok((tool, arguments));
    }
    let first = cases(project, None)?.into_iter().next();
    let first = first.ok_or_else(|| usage("there is nothing to call", "name a tool: `motor dev DIR TOOL '{…}'`"))?;
    Ok((first.tool, first.arguments.to_string()))
}

async fn round(
    project: &Project,
    bench: &Workbench,
    context: &Context,
    (tool, json): (&str, &str),
    imports: &mut Option<BTreeSet<String>>,
) -> Done {
    let began = tokio::time::Instant::now();
    let report = built(project, context, bench).await?;
    let now = names(&report);
    if let Some(before) = imports.replace(now.clone()) {
        changes(&before, &now).iter().for_each(|line| context.output.say(line));
    }
    let cancel = CancellationToken::new();
    let _ended_with_this_call = cancel.clone().drop_guard();
    let request = CallRequest {
        path: project.component(),
        tool: tool.to_owned(),
        arguments: json.to_owned(),
        workspace: None,
        domains: Vec::new(),
        recorded: None,
        notes: notes(context.output.clone()),
        cancel,
    };
    let reply = at(bench, context, bench.call(request)).await?;
    context.output.say(&format!("{tool} {}", text::brief(json, 200)));
    let done = show(&reply, &context.output);
    let took = text::millis(began.elapsed().as_secs_f64() * 1_000.0);
    context.output.say(&format!("built and called in {took}"));
    done
}

fn names(report: &ComponentReport) -> BTreeSet<String> {
    report.imports.iter().map(|import| import.name.clone()).collect()
}

/// A line for each import that was gained or lost.
fn changes(before: &BTreeSet<String>, now: &BTreeSet<String>) -> Vec<String> {
    let gained = now.difference(before).map(|name| format!("+ imports {}", text::brief(name, 200)));
    let lost = before.difference(now).map(|name| format!("- no longer imports {}", text::brief(name, 200)));
    gained.chain(lost).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gained_and_lost_imports_are_told() {
        let set = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<BTreeSet<_>>();
        let (before, now) = (set(&["a", "b"]), set(&["b", "wasi:http/outgoing-handler"]));
        assert_eq!(changes(&before, &now), ["+ imports wasi:http/outgoing-handler", "- no longer imports a"]);
        assert!(changes(&now, &now).is_empty());
    }
}
