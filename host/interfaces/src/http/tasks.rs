//! Runs: `/v1/tasks`.

use std::convert::Infallible;
use std::time::Duration;

use agent::{Host, TaskFilter, TaskSummary};
use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::sse::Event;
use axum::response::{IntoResponse, Response};
use base::{Refusal, RefusalCode, RunId};
use futures_util::{Stream, stream};
use motor::{Artifact, CancelReply, LiveEvent, RunTrace};
use receipts::SignedReceipt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::attached::Attachment;
use super::events::{EventStream, LastEventId, event};
use super::openapi::{Answer, Operation};
use super::reply::{ApiResult, ErrorReply};
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
    Path(id): Path<RunId>,
) -> ApiResult<RunTrace> {
    Ok(Json(api.host.runs.trace(&access.run(&api, id)?)?))
}

/// The end of a run's log.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct LogReply {
    log: String,
}

pub(super) async fn log(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
) -> ApiResult<LogReply> {
    Ok(Json(LogReply { log: api.host.runs.log(&access.run(&api, id)?)? }))
}

/// The receipt's file, byte for byte: it can be verified as it is saved.
pub(super) async fn receipt(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
) -> Result<ReceiptFile, ErrorReply> {
    let receipt = api.host.runs.receipt(&access.run(&api, id)?).await?;
    let text = receipt.text().map_err(|error| Refusal::new(RefusalCode::Failed, error.to_string()))?;
    Ok(ReceiptFile(text))
}

/// The text of a signed receipt.
pub(super) struct ReceiptFile(String);

impl IntoResponse for ReceiptFile {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

impl Answer for ReceiptFile {
    fn describe(operation: &mut Operation<'_>) {
        operation.succeeds_with::<SignedReceipt>("application/json");
    }
}

pub(super) async fn artifacts(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
) -> ApiResult<Vec<Artifact>> {
    Ok(Json(api.host.runs.summary(&access.run(&api, id)?)?.artifacts))
}

/// A file that a run produced, as bytes: a browser saves it and runs nothing of it.
pub(super) async fn artifact(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path((id, path)): Path<(RunId, String)>,
) -> Result<SavedFile, ErrorReply> {
    let _attachment = api.attached.attach();
    let bytes = api.host.runs.artifact(&access.run(&api, id)?, &path).await?;
    Ok(SavedFile(bytes))
}

/// Bytes that a browser saves.
pub(super) struct SavedFile(pub(super) Vec<u8>);

impl IntoResponse for SavedFile {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, "application/octet-stream"),
            (header::CONTENT_DISPOSITION, "attachment"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (header::CONTENT_SECURITY_POLICY, "sandbox; default-src 'none'"),
        ];
        (headers, self.0).into_response()
    }
}

impl Answer for SavedFile {
    fn describe(operation: &mut Operation<'_>) {
        operation.succeeds("application/octet-stream", &json!({}));
    }
}

pub(super) async fn cancel(actor: Actor, State(api): State<ApiState>, Path(id): Path<RunId>) -> ApiResult<CancelReply> {
    let _attachment = api.attached.attach();
    Ok(Json(api.host.runs.cancel(&actor.access.run(&api, id)?).await?))
}

/// A run that was deleted.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DeleteReply {
    /// Id of the deleted run.
    pub run_id: RunId,
}

pub(super) async fn delete(_: Local, State(api): State<ApiState>, Path(id): Path<RunId>) -> ApiResult<DeleteReply> {
    let _attachment = api.attached.attach();
    api.host.runs.delete(&id).await?;
    Ok(Json(DeleteReply { run_id: id }))
}

/// How long an outcome is waited for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Patience {
    /// Milliseconds after which the answer is the state at that time. Default: without end.
    #[serde(default)]
    wait_ms: Option<u64>,
}

/// Answers once the run is over, or waits for a person, or the caller's patience ends.
pub(super) async fn wait(
    Reader(access): Reader,
    State(api): State<ApiState>,
    Path(id): Path<RunId>,
    Query(patience): Query<Patience>,
) -> ApiResult<TaskSummary> {
    let _attachment = api.attached.attach();
    let id = access.run(&api, id)?;
    let impatient = async {
        match patience.wait_ms {
            Some(millis) => tokio::time::sleep(Duration::from_millis(millis)).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        biased;
        record = api.host.runs.wait(&id) => Ok(Json(record?)),
        () = impatient => Ok(Json(api.host.runs.summary(&id)?)),
        () = api.closing.cancelled() => {
            let refusal = Refusal::new(RefusalCode::TryLater, format!("the host stops while run `{id}` goes on"));
            Err(ErrorReply::from(refusal.with_remedy(format!("wait for it again: `motor act --resume {id}`"))))
        }
    }
}

/// How events are followed.
#[derive(Debug, Deserialize, JsonSchema)]
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
    Path(id): Path<RunId>,
    Query(follow): Query<Follow>,
    LastEventId(seen): LastEventId,
) -> Result<EventStream<LiveEvent, impl Stream<Item = Result<Event, Infallible>> + Send>, ErrorReply> {
    let seen = seen.unwrap_or(0);
    // First, so that a host that lasts as long as its command does not end between taking up and watching.
    let attachment = api.attached.attach();
    let run = access.run(&api, id)?;
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
    Ok(EventStream::new(stream))
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
