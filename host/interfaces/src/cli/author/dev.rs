//! `motor dev`: rebuilds a project whenever a file is saved, calls it with the same arguments, and shows the result, its
//! cost, and the imports that were gained or lost.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use agent::components::{ComponentReport, Workbench};
use authoring::{Case, Project, case, cases, fingerprint};
use base::{Refusal, RefusalCode};
use clap::Args;
use runtime::inspect::Capability;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::super::Done;
use super::super::call::{notes, show};
use super::super::context::{Context, usage};
use super::super::inspect::{at, workbench};
use super::test::run;
use super::{blocking, built, next};
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
    /// The tool to call, without network [default: the last call of this project, otherwise the first case]
    tool: Option<String>,
    /// Its arguments as JSON [default: `{}` if a tool is named]
    arguments: Option<String>,
    /// Call as this case of the project does, with its files, domains and recorded site
    #[arg(long, value_name = "NAME", conflicts_with = "tool")]
    case: Option<String>,
    /// Build and call once, and do not wait for changes
    #[arg(long)]
    once: bool,
}

pub(in super::super) async fn dev(arguments: DevArgs, context: &Context) -> Done {
    let project = Project::open(&arguments.project)?;
    let call = Call::of(&project, &arguments)?;
    let bench = workbench(context)?;
    let mut imports: Option<BTreeSet<String>> = None;
    loop {
        let seen = sources(&project).await?;
        let round = round(&project, &bench, context, &call, &mut imports);
        let done = tokio::select! {
            biased;
            _ = context.wishes.next() => return Ok(CommandExit::Interrupted),
            done = round => done,
        };
        if arguments.once {
            if matches!(done, Ok(CommandExit::Ok)) {
                next(context, &format!("motor test {}", arguments.project.display()));
            }
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

/// A call to repeat, as it stands in `build/last-call.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Call {
    /// The case of this name, as its file is at the time.
    Case(String),
    /// A tool by its name.
    Tool { tool: String, arguments: Value },
}

impl Call {
    /// The named call, which is recorded, otherwise the recorded one, otherwise that of the first case.
    fn of(project: &Project, arguments: &DevArgs) -> Result<Self, Refusal> {
        let named = match (&arguments.case, &arguments.tool) {
            (Some(name), _) => Self::Case(name.clone()),
            (None, Some(tool)) => {
                let json = arguments.arguments.as_deref().unwrap_or("{}");
                let arguments = serde_json::from_str(json).map_err(|error| {
                    usage(format!("the arguments are not JSON: {error}"), "quote them: '{\"name\": \"Ada\"}'")
                })?;
                Self::Tool { tool: tool.clone(), arguments }
            }
            (None, None) => match Self::read(project) {
                Some(last) => return Ok(last),
                None => return Ok(Self::Case(cases(project, None)?.swap_remove(0).name)),
            },
        };
        // A name that is wrong is refused before it is recorded.
        named.case(project)?;
        named.write(project).map_err(|error| {
            let reason = format!("cannot write `{}`: {error}", Self::path(project).display());
            Refusal::new(RefusalCode::StorageFailed, reason)
        })?;
        Ok(named)
    }

    fn case(&self, project: &Project) -> Result<Case, Refusal> {
        match self {
            Self::Case(name) => case(project, name),
            Self::Tool { tool, arguments } => Ok(Case::of_call(tool.clone(), arguments.clone())),
        }
    }

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

async fn round(
    project: &Project,
    bench: &Workbench,
    context: &Context,
    call: &Call,
    imports: &mut Option<BTreeSet<String>>,
) -> Done {
    let began = tokio::time::Instant::now();
    let report = built(project, context, bench).await?;
    let now = names(&report);
    if let Some(before) = imports.replace(now.clone()) {
        changes(&before, &now).iter().for_each(|line| context.output.say(line));
    }
    let case = call.case(project)?;
    let calling = run(project, bench, &case, notes(context.output.clone()), false);
    let (reply, _) = at(bench, context, calling).await?;
    context.output.say(&format!("{} {}", case.tool, text::brief(&case.arguments.to_string(), 200)));
    let done = show(&reply, &context.output);
    let took = text::millis(began.elapsed().as_secs_f64() * 1_000.0);
    context.output.say(&format!("built and called in {took}"));
    done
}

/// The imports that it is granted.
fn names(report: &ComponentReport) -> BTreeSet<String> {
    let granted = report.imports.iter().filter(|import| import.capability != Capability::Unused);
    granted.map(|import| import.name.clone()).collect()
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
