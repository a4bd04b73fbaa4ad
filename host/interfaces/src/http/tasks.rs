//! Runs: `/v1/tasks`.

use std::convert::Infallible;
use std::time::Duration;

use agent::{Host, TaskFilter, TaskSummary};
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::sse::Event;
use axum::response::{IntoResponse, Sse};
use base::{Refusal, RefusalCode, RunId};
use futures_util::{Stream, stream};
use motor::{Artifact, CancelReply, LiveEvent, RunTrace};
use serde::{Deserialize, Serialize};

use super::attached::Attachment;
use super::events::{event, last_event_id, sse};
use super::reply::{ApiResult, ErrorReply, run_id};
use super::scope::{Actor, Local, Reader};
use super::{ApiState, Path, Query};

pub(super) async fn list(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Query(mut filter): Query<TaskFilter>,
) -> ApiResult<Vec<TaskSummary>> {
    if let Some(agent) = filter.agent.as_ref() {
        access.check_agent(agent)?;
    }
    filter.agent = filter.agent.or_else(|| access.agent().cloned());
    Ok(Json(api.host.runs.list(filter)?))
}

pub(super) async fn show(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<String>,
) -> ApiResult<RunTrace> {
    Ok(Json(api.host.runs.trace(&access.run(&api, &id)?)?))
}

/// The end of a run's log.
#[derive(Debug, Serialize)]
pub(super) struct LogReply {
    log: String,
}

pub(super) async fn log(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<String>,
) -> ApiResult<LogReply> {
    Ok(Json(LogReply { log: api.host.runs.log(&access.run(&api, &id)?)? }))
}

/// The receipt's file, byte for byte: it can be verified as it is saved.
pub(super) async fn receipt(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<String>,
) -> Result<impl IntoResponse, ErrorReply> {
    let receipt = api.host.runs.receipt(&access.run(&api, &id)?).await?;
    let text = receipt.text().map_err(|error| Refusal::new(RefusalCode::Failed, error.to_string()))?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text))
}

pub(super) async fn artifacts(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<String>,
) -> ApiResult<Vec<Artifact>> {
    Ok(Json(api.host.runs.summary(&access.run(&api, &id)?)?.artifacts))
}

/// A file that a run produced, as bytes: a browser saves it and runs nothing of it.
pub(super) async fn artifact(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path((id, path)): Path<(String, String)>,
) -> Result<impl IntoResponse, ErrorReply> {
    let _attachment = api.attached.attach();
    let bytes = api.host.runs.artifact(&access.run(&api, &id)?, &path).await?;
    Ok(saved(bytes))
}

/// Bytes that a browser saves.
pub(super) fn saved(bytes: Vec<u8>) -> impl IntoResponse {
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CONTENT_DISPOSITION, "attachment"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
    ];
    (headers, bytes)
}

pub(super) async fn cancel(
    actor: Actor,
    State(api): State<ApiState>,
    Path(id): Path<String>,
) -> ApiResult<CancelReply> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.cancel(&actor.access.run(&api, &id)?).await?))
}

/// A run that was deleted.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteReply {
    /// Id of the deleted run.
    pub run_id: RunId,
}

pub(super) async fn delete(_: Local, State(api): State<ApiState>, Path(id): Path<String>) -> ApiResult<DeleteReply> {
    let _attachment = api.attached.attach();
    let run_id = run_id(&id)?;
    api.host.runs.delete(&run_id).await?;
    Ok(Json(DeleteReply { run_id }))
}

/// How long an outcome is waited for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Patience {
    /// Milliseconds after which the answer is the state at that time. Such a caller is also answered as soon as the run waits
    /// for people. Default: until the run is over.
    #[serde(default)]
    wait_ms: Option<u64>,
}

/// Answers once the run is over, or the caller's patience ends.
pub(super) async fn wait(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    Query(patience): Query<Patience>,
) -> ApiResult<TaskSummary> {
    let _attachment = api.attached.attach();
    let id = access.run(&api, &id)?;
    let reached = async {
        let Some(millis) = patience.wait_ms else { return api.host.runs.wait(&id).await };
        match tokio::time::timeout(Duration::from_millis(millis), api.host.runs.wait_for_people(&id)).await {
            Ok(summary) => summary,
            Err(_) => api.host.runs.summary(&id),
        }
    };
    tokio::select! {
        biased;
        summary = reached => Ok(Json(summary?)),
        () = api.closing.cancelled() => {
            let refusal = Refusal::new(RefusalCode::TryLater, format!("the host stops while run `{id}` goes on"));
            Err(ErrorReply::from(refusal.with_remedy(format!("wait for it again: `motor act --resume {id}`"))))
        }
    }
}

/// How events are followed.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Follow {
    /// Takes the run up first, if it is neither over nor driven: who follows it needs it to go on. Default: no.
    #[serde(default)]
    resume: bool,
}

/// The events of a run from its beginning, or after `Last-Event-ID`. Ids count the durable events; hints have none, so
/// a client that comes back gets every durable event once.
pub(super) async fn events(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<String>,
    Query(follow): Query<Follow>,
    headers: HeaderMap,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, ErrorReply> {
    let seen = last_event_id(&headers)?.unwrap_or(0);
    // First, so that a host that lasts as long as its command does not end between taking up and watching.
    let attachment = api.attached.attach();
    let run = access.run(&api, &id)?;
    if follow.resume {
        access.check_acts()?;
        api.host.take_up(&run)?;
    }
    let (host, watch) = (api.host.clone(), api.host.runs.watch(&run)?);
    let watching = Watching { host, watch, durable: 0, is_told: false, _attachment: attachment };
    let stream = stream::unfold(watching, move |mut watching| async move {
        loop {
            let Some(live) = watching.watch.next().await else {
                // Also who follows a run that waits, and has no driver to say so, hears why the host ends.
                let told = std::mem::replace(&mut watching.is_told, true);
                let suspension = watching.host.suspension().filter(|_| !told)?;
                return Some((Ok(event(None, &suspension)), watching));
            };
            watching.is_told = matches!(live, LiveEvent::Suspended { .. });
            let id = watching.number(&live);
            if id.is_none_or(|id| id > seen) {
                return Some((Ok(event(id, &live)), watching));
            }
        }
    });
    Ok(sse(stream))
}

struct Watching {
    host: Host,
    watch: motor::Watch,
    durable: u64,
    /// The last event said why the run does not go on.
    is_told: bool,
    _attachment: Attachment,
}

impl Watching {
    /// The number of a durable event.
    fn number(&mut self, live: &LiveEvent) -> Option<u64> {
        if live.is_hint() {
            return None;
        }
        self.durable += 1;
        Some(self.durable)
    }
}
