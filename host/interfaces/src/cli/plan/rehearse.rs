//! A rehearsal: the task runs once, with its reads sent and its writes staged, and the plan is the least access that this run used
//! (SPEC LAND-6). The staged writes are discarded.

use std::collections::BTreeSet;

use agent::{ActRequest, LeastGrant, StagedWrite, TaskPlan, least};
use base::{Random, Refusal, RefusalCode, RunId};
use motor::{RunStatus, RunTrace};
use network::Target;

use super::super::context::Context;
use super::super::follow::FollowOutcome;
use super::super::{CliError, act, consent, staged};
use super::check;
use crate::client::Call;
use crate::output::text;
use crate::session::Session;

/// Runs the task as a rehearsal, and returns the plan of the access that it used.
///
/// # Errors
/// If the run does not start or does not complete: then nothing was measured.
pub(super) async fn rehearse(
    request: &ActRequest,
    session: &mut Session,
    context: &Context,
) -> Result<TaskPlan, CliError> {
    let key = Some(format!("cli-{:016x}", Random::from_system().next_u64()));
    let rehearsal = ActRequest { stage: true, key, ..request.clone() };
    let (run, followed) = act::followed(&rehearsal, None, session, context).await?;
    let is_complete = matches!(&followed, FollowOutcome::Ended(ended) if ended.status == RunStatus::Completed);
    let trace: RunTrace = session.ask(&Call::get(format!("/v1/tasks/{run}"))).await?;
    // Asked for in any case: a call that was cut off may have staged a write that the trace does not count.
    let held = staged::fetch(&run, session).await?.writes;
    let told = discarded(&run, held.len(), session, context).await;
    if !is_complete {
        let refusal = Refusal::new(RefusalCode::IllegalState, format!("the rehearsal {run} did not complete"));
        return Err(refusal.with_remedy(format!("`motor task status {run}` shows why")).into());
    }
    let LeastGrant { tools, domains, writes, credentials, commands, max_iterations, timeout_ms } = least(&trace);
    // Without tools, directories would grant the default ones.
    let directories = if tools.is_empty() { Vec::new() } else { request.directories.clone() };
    let measured = ActRequest {
        directories,
        tools,
        domains,
        writes,
        credentials,
        commands,
        max_iterations: Some(max_iterations),
        timeout_ms: Some(timeout_ms),
        ..request.clone()
    };
    let mut plan = check(&measured, session, context).await?;
    plan.notes.push(format!("measured by the rehearsal {run}: another run may need more, which is refused then"));
    plan.notes.extend(tainted(&held));
    plan.notes.extend(told);
    Ok(plan)
}

/// The writes that a page may have asked for.
fn tainted(held: &[StagedWrite]) -> BTreeSet<String> {
    let note = |write: &StagedWrite| {
        let target = Target::parse(&write.url).ok()?;
        let (method, path) = (&write.method, target.path_and_query().path());
        let sources = write.sources.join(", ");
        Some(format!("`{method} {}{path}` came after it had read from {sources}", target.authority()))
    };
    held.iter().filter(|write| !write.sources.is_empty()).filter_map(note).collect()
}

/// Discards the writes of a rehearsal, which must not be sent by mistake. Their fate in words, if there were any.
async fn discarded(run: &RunId, count: usize, session: &mut Session, context: &Context) -> Option<String> {
    if count == 0 {
        return None;
    }
    let writes = text::plural(count as u64, "write");
    let done = match consent::unasked(context).await {
        Ok(proof) => staged::drop_writes(run, Vec::new(), proof, session).await.map(drop),
        Err(refusal) => Err(refusal),
    };
    Some(match done {
        Ok(()) => format!("its {writes} were not sent, and are discarded"),
        Err(refusal) => {
            format!("its {writes} were not sent, and are still held ({refusal}): `motor task discard {run}`")
        }
    })
}
