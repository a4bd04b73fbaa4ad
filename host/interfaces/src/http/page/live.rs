//! Live changes: an event each time that a page should be looked at again. The page alone shows the change.

use std::convert::Infallible;
use std::time::Duration;

use axum::extract::{RawQuery, State};
use axum::response::Sse;
use axum::response::sse::Event;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt as _};
use motor::LiveEvent;

use super::super::ApiState;
use super::super::events::sse;
use super::super::reply::{ErrorReply, run_id};
use super::form::Form;
use super::layout::PageError;
use super::session::Visitor;

/// How often the state of all runs is compared.
const INTERVAL: Duration = Duration::from_secs(1);

/// Changes of one run (`?run=ID`), or of all. After the last event of a run the stream says `end`.
pub(super) async fn events(
    _: Visitor,
    State(api): State<ApiState>,
    RawQuery(query): RawQuery,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, PageError> {
    let query = Form::of_query(&query.unwrap_or_default());
    let closing = api.closing.clone();
    let changes = match query.given("run") {
        Some(run) => of_run(&api, &run)?,
        None => of_all(api),
    };
    Ok(sse(changes.map(Ok).take_until(closing.cancelled_owned())))
}

fn change() -> Event {
    Event::default().data("changed")
}

fn of_run(api: &ApiState, run: &str) -> Result<BoxStream<'static, Event>, ErrorReply> {
    let watch = api.host.runs.watch(&run_id(run)?)?;
    let changes = stream::unfold(watch, async |mut watch| {
        loop {
            let event = watch.next().await?;
            if !event.is_hint() || matches!(event, LiveEvent::StepStarted { .. } | LiveEvent::Preparing { .. }) {
                return Some((change(), watch));
            }
        }
    });
    Ok(changes.chain(stream::once(async { Event::default().event("end").data("end") })).boxed())
}

fn of_all(api: ApiState) -> BoxStream<'static, Event> {
    let state = move || {
        let running = api.host.status().running;
        let runs: Vec<_> = running.iter().filter_map(|run| api.host.runs.summary(run).ok()).collect();
        let runs: Vec<_> =
            runs.into_iter().map(|run| (run.run_id, run.status, run.model_calls, run.tool_calls)).collect();
        (api.host.signals.latest(), runs)
    };
    let first = (state(), state);
    stream::unfold(first, async |(mut last, state)| {
        loop {
            tokio::time::sleep(INTERVAL).await;
            let now = state();
            if now != last {
                return Some((change(), (now, state)));
            }
            last = now;
        }
    })
    .boxed()
}
