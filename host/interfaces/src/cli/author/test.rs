//! `motor test`: the cases of a project, each in a fresh sandbox under the limits in force.

use std::path::PathBuf;

use agent::components::{CallReply, CallRequest, RecordedCall, Workbench};
use authoring::{Case, Kind, Observed, Project, Verdict, cases};
use base::{Refusal, RefusalCode};
use clap::Args;
use network::Recorder;
use runtime::NoteSink;
use schemars::JsonSchema;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::super::Done;
use super::super::call::notes;
use super::super::context::Context;
use super::super::inspect::{at, workbench};
use super::{blocking, built, drop_in, next};
use crate::exit::CommandExit;
use crate::output::{Palette, text};

/// Arguments of `motor test`.
#[derive(Debug, Args)]
pub(in super::super) struct TestArgs {
    /// Directory of the project
    #[arg(default_value = ".")]
    project: PathBuf,
    /// Run only the cases whose names contain this
    #[arg(long, value_name = "TEXT")]
    only: Option<String>,
    /// Record the results as the expected ones
    #[arg(long)]
    bless: bool,
    /// Ask the real servers for requests that a recorded site lacks, and add their responses to its file
    #[arg(long)]
    record: bool,
    /// Test the component as it was built before
    #[arg(long)]
    no_build: bool,
}

/// One case, as JSON.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(in super::super) struct CaseReport {
    case: String,
    #[serde(flatten)]
    verdict: Verdict,
    blessed: bool,
    duration_ms: f64,
    fuel: u64,
    peak_memory_bytes: u64,
}

pub(in super::super) async fn test(arguments: TestArgs, context: &Context) -> Done {
    let project = Project::open(&arguments.project)?;
    let cases = cases(&project, arguments.only.as_deref())?;
    let bench = workbench(context)?;
    if !arguments.no_build {
        tokio::select! {
            biased;
            _ = context.wishes.next() => return Ok(CommandExit::Interrupted),
            built = built(&project, context, &bench) => drop(built?),
        }
    } else if !project.component().is_file() {
        let reason = format!("there is no built component `{}`", project.component().display());
        let remedy = format!("`motor build {}` first", arguments.project.display());
        return Err(Refusal::new(RefusalCode::NotFound, reason).with_remedy(remedy).into());
    }
    let mut reports = Vec::with_capacity(cases.len());
    for case in cases {
        let calling = run(&project, &bench, &case, notes(context.output.clone()), arguments.record);
        let (reply, recorded) = tokio::select! {
            reply = at(&bench, context, calling) => reply?,
            _ = context.wishes.next() => return Ok(CommandExit::Interrupted),
        };
        if recorded > 0 {
            let site = case.site.as_deref().unwrap_or_default();
            context.output.say(&format!("{}: recorded {recorded} new in `sites/{site}.json`", case.name));
        }
        let observed = Observed { error: reply.error.map(str::to_owned), text: reply.output.clone() };
        let mut verdict = case.judge(&observed);
        let blessed = arguments.bless && verdict != Verdict::Passed;
        let name = case.name.clone();
        if blessed {
            blocking(move || case.bless(observed)).await?;
            verdict = Verdict::Passed;
        }
        let CallReply { duration_ms, fuel, peak_memory_bytes, .. } = reply;
        let report = CaseReport { case: name, verdict, blessed, duration_ms, fuel, peak_memory_bytes };
        if !context.output.is_json() {
            context.output.print_trusted(&line(&report, context.output.out))?;
        }
        reports.push(report);
    }
    let failed = reports.iter().filter(|report| report.verdict != Verdict::Passed).count();
    if context.output.is_json() {
        context.output.print_json(&reports)?;
    } else {
        context.output.print(&format!("{} passed, {failed} failed", reports.len() - failed))?;
    }
    if failed > 0 {
        return Ok(CommandExit::Failed);
    }
    match project.manifest.kind {
        Kind::Tool | Kind::Skill => next(context, &format!("motor pack {}", arguments.project.display())),
        Kind::Reflector | Kind::Neuron => drop_in(&project, context)?,
    }
    Ok(CommandExit::Ok)
}

/// Calls a case's tool in a workspace with its files. Returns the number of recorded responses, too.
pub(super) async fn run(
    project: &Project,
    bench: &Workbench,
    case: &Case,
    notes: NoteSink,
    is_recording: bool,
) -> Result<(CallReply, usize), Refusal> {
    let workspace = tempfile::tempdir()
        .map_err(|error| Refusal::new(RefusalCode::StorageFailed, format!("no temporary directory: {error}")))?;
    case.write_files(workspace.path())?;
    let recorded = case.site.as_ref().map(|site| RecordedCall {
        site: project.site(site),
        credentials: case.credentials.clone(),
        recorder: is_recording.then(Recorder::default),
    });
    let cancel = CancellationToken::new();
    let _ended_with_this_call = cancel.clone().drop_guard();
    let request = CallRequest {
        path: project.component(),
        tool: case.tool.clone(),
        arguments: case.arguments.to_string(),
        workspace: Some(workspace.path().to_owned()),
        domains: case.domains.clone(),
        recorded: recorded.clone(),
        notes,
        cancel,
    };
    let reply = bench.call(request).await?;
    Ok((reply, recorded.as_ref().map_or(Ok(0), RecordedCall::save)?))
}

fn line(report: &CaseReport, palette: Palette) -> String {
    let cost = format!("{}, fuel {}", text::millis(report.duration_ms), text::count(report.fuel));
    let name = text::brief(&report.case, 60);
    match &report.verdict {
        Verdict::Passed if report.blessed => format!("{} {name}  {}", palette.bold("recorded"), palette.dim(&cost)),
        Verdict::Passed => format!("{} {name}  {}", palette.bold("passed"), palette.dim(&cost)),
        Verdict::Failed(reason) => format!("{} {name}: {}", palette.red("FAILED"), text::brief(reason, 2_000)),
    }
}
