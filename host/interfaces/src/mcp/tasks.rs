//! Runs as tasks of the protocol (SEP-2663): `tasks/get`, `tasks/update`, `tasks/cancel`.
//!
//! A task is a run, and its id is the run's. Nothing is kept here, so tasks survive the host as runs do.

use agent::TaskSummary;
use base::{Refusal, RefusalCode, RunId, Timestamp};
use motor::{CancelReply, RunStatus, Waiting};
use rmcp::ErrorData;
use rmcp::model::{
    DetailedTask, GetTaskResult, InputRequests, InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};

use super::asking::{address, elicitation, form, requests, respond};
use super::replies::RunReply;
use super::tools::{self, Caller};
use crate::client::Call;

/// Milliseconds between two looks at a task, as suggested to clients.
const POLL_MS: u64 = 1_000;

/// The state of a run as the head of a task. Runs have no time to live of their own: they are kept until the owner or
/// `[retention]` deletes them.
pub(super) fn task(summary: &TaskSummary) -> Task {
    let status = match summary.status {
        RunStatus::Completed | RunStatus::Failed => TaskStatus::Completed,
        RunStatus::Cancelled => TaskStatus::Cancelled,
        _ => TaskStatus::Working,
    };
    let asked_at = summary.waiting.as_ref().map(Waiting::asked_at);
    let updated: Option<Timestamp> = summary.completed_at.or(asked_at).or(summary.started_at);
    let updated = updated.unwrap_or(summary.created_at);
    Task::new(summary.run_id.to_string(), status, summary.created_at.to_string(), updated.to_string())
        .with_poll_interval_ms(POLL_MS)
}

/// The state of a task, with its result once it is over and its question while it waits.
///
/// # Errors
/// If there is no such run for this caller.
pub(super) async fn get(caller: &Caller<'_>, id: &str) -> Result<GetTaskResult, ErrorData> {
    let run = parse(id)?;
    let (summary, reply) = tools::state(caller, &run).await.map_err(error)?;
    let message = match summary.status {
        RunStatus::Completed => None,
        RunStatus::Failed | RunStatus::Cancelled => reply.error.clone(),
        _ if summary.waiting.is_some() => Some(waiting_words(&reply)),
        status => Some(format!("the run is {status}, at step {}", summary.iterations)),
    };
    let payload = match summary.status {
        RunStatus::Completed | RunStatus::Failed => {
            let is_error = summary.status == RunStatus::Failed;
            TaskPayload::Completed { result: result(reply, is_error)? }
        }
        RunStatus::Cancelled => TaskPayload::Cancelled,
        _ => match input(caller, &summary).await {
            Some(input_requests) => TaskPayload::InputRequired { input_requests },
            None => TaskPayload::Working,
        },
    };
    let mut task = task(&summary);
    task.status_message = message;
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// Takes the client's response to the task's question. Responses to anything else are ignored.
///
/// # Errors
/// If there is no such run for this caller, or it may not answer.
pub(super) async fn update(caller: &Caller<'_>, id: &str, responses: &InputResponses) -> Result<(), ErrorData> {
    let run = parse(id)?;
    let asked = match elicitation(&caller.api, &run).await {
        Ok(asked) => asked,
        // Nothing is open, or the owner answers elsewhere.
        Err(refusal) if matches!(refusal.code, RefusalCode::IllegalState | RefusalCode::ConsentNeeded) => return Ok(()),
        Err(refusal) => return Err(error(refusal)),
    };
    let Some(response) = responses.get(&asked.ticket) else { return Ok(()) };
    match respond(&caller.api, &run, &asked, response).await {
        Ok(_) => Ok(()),
        // It was answered in between.
        Err(refusal) if matches!(refusal.code, RefusalCode::IllegalState | RefusalCode::ConsentNeeded) => Ok(()),
        Err(refusal) => Err(error(refusal)),
    }
}

/// Stops the run. A run that is over stays as it is.
///
/// # Errors
/// If there is no such run for this caller, or it may not stop it.
pub(super) async fn cancel(caller: &Caller<'_>, id: &str) -> Result<(), ErrorData> {
    let run = parse(id)?;
    let cancel = Call::post(format!("/v1/tasks/{run}/cancellation"), &json!({})).map_err(error)?;
    match caller.api.ask::<CancelReply>(&cancel).await {
        Ok(_) => Ok(()),
        Err(refusal) if refusal.code == RefusalCode::IllegalState => Ok(()),
        Err(refusal) => Err(error(refusal)),
    }
}

/// The requests to the client, if it can be asked. The key of a question is its ticket, which no other question has.
async fn input(caller: &Caller<'_>, summary: &TaskSummary) -> Option<InputRequests> {
    let abilities = caller.asker.abilities;
    match summary.waiting.as_ref()? {
        Waiting::Input(_) if abilities.form => {
            let asked = elicitation(&caller.api, &summary.run_id).await.ok()?;
            Some(requests(&asked.ticket, form(&summary.run_id, &asked)?))
        }
        waiting @ Waiting::Approval(_) if abilities.url => {
            let page = tools::page(caller).await.ok()??;
            Some(requests(waiting.id(), address(&summary.run_id, waiting, &page)))
        }
        _ => None,
    }
}

fn waiting_words(reply: &RunReply) -> String {
    let question = reply.waits_for.as_ref().map(|asked| asked.question.as_str()).unwrap_or_default();
    format!("the run asks its owner: {question}; {}", reply.next)
}

/// The result of the tool, as a call that waited for it would have had it.
fn result(reply: RunReply, is_error: bool) -> Result<JsonObject, ErrorData> {
    let reply = serde_json::to_value(reply).map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
    let mut result = tools::completed(reply);
    result.is_error = Some(is_error);
    match serde_json::to_value(result) {
        Ok(Value::Object(result)) => Ok(result),
        _ => Err(ErrorData::internal_error("the result is not an object", None)),
    }
}

fn parse(id: &str) -> Result<RunId, ErrorData> {
    RunId::parse(id).map_err(|error| ErrorData::invalid_params(error.to_string(), None))
}

/// A refusal as an error of the protocol, whole in its data.
fn error(refusal: Refusal) -> ErrorData {
    let data = serde_json::to_value(&refusal).ok();
    let reason = refusal.reason;
    match refusal.code {
        RefusalCode::NotFound | RefusalCode::InvalidRequest => ErrorData::invalid_params(reason, data),
        RefusalCode::Forbidden | RefusalCode::Unauthorized => ErrorData::invalid_request(reason, data),
        _ => ErrorData::internal_error(reason, data),
    }
}
