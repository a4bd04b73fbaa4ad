//! Questions of runs, put to the person at the client (SPEC ASK-1, MCP-1).
//!
//! A question is put as a form, if the host lets this client answer it; a request for approval only as the address of the
//! owner's page, where the owner's token decides. The response is the word of a program: an answer that does not fit
//! the form, a refusal, an error or silence leaves the question open for the page and the command line.

use std::time::Duration;

use agent::{Elicitation, ElicitedAnswer, TaskSummary};
use base::{Refusal, RunId};
use motor::{CommandReply, Waiting};
use rmcp::model::{
    CancelledNotificationParam, ClientResult, ElicitRequest, ElicitRequestParams, ElicitationSchema, EnumSchema,
    InputRequest, InputRequests, InputRequiredResult, RequestId, ServerRequest,
};
use rmcp::service::{Peer, PeerRequestOptions, RoleServer};
use serde_json::Value;

use super::abilities::Abilities;
use super::api::Api;
use super::repeat::RequestState;
use super::wait::{Progress, settled};
use crate::client::Call;
use crate::output::text::revealed;

/// How long a person may take to answer in the client, at most: the call of the client waits for as long.
const MAX_ASKING: Duration = Duration::from_secs(10 * 60);
/// How often a client that asked for progress is told that its call still waits: many give up on silent calls.
const REMINDER: Duration = Duration::from_secs(15);
/// The field of a form.
const FIELD: &str = "answer";
/// Untrusted sources that a form names, at most.
const MAX_SOURCES: usize = 5;

/// The way to the person at the client of one call.
pub(super) struct Asker {
    pub(super) abilities: Abilities,
    pub(super) peer: Peer<RoleServer>,
    /// Identifies the call when it is repeated.
    pub(super) call: String,
}

/// The outcome of an attempt to ask.
pub(super) enum Asked {
    /// The run no longer waits for this: it was answered here or elsewhere, or it is over.
    Settled,
    /// It is open, and was not asked here, or not answered.
    Open,
    /// The client asks, and repeats its call with the answer.
    Later(InputRequiredResult),
}

impl Asker {
    /// Puts the run's question to the person. `page` is the address of the owner's page.
    pub(super) async fn ask(
        &self,
        api: &Api,
        summary: &TaskSummary,
        page: Option<&str>,
        progress: Option<&Progress>,
        wait: Duration,
    ) -> Asked {
        let Some(waiting) = &summary.waiting else { return Asked::Settled };
        let elicited = match waiting {
            Waiting::Input(_) if self.abilities.form => elicitation(api, &summary.run_id).await.ok(),
            _ => None,
        };
        let params = match (&elicited, waiting) {
            (Some(elicited), _) => form(&summary.run_id, elicited),
            (None, Waiting::Approval(_)) if self.abilities.url => {
                page.map(|page| address(&summary.run_id, waiting, page))
            }
            _ => None,
        };
        let Some(params) = params else { return Asked::Open };
        let mark = elicited.as_ref().map_or(waiting.id(), |elicited| &elicited.ticket);
        if self.abilities.repeats {
            let requests = requests(waiting.id(), params);
            let state = RequestState { run: summary.run_id.clone(), mark: mark.to_owned() }.text(&self.call);
            return Asked::Later(InputRequiredResult::new(Some(requests), Some(state)));
        }
        let reminding = async {
            loop {
                tokio::time::sleep(REMINDER).await;
                if let Some(progress) = progress {
                    progress.tell("waiting for an answer".to_owned()).await;
                }
            }
        };
        let response = tokio::select! {
            response = tokio::time::timeout(MAX_ASKING, self.elicit(params)) => response.ok().flatten(),
            () = settled(api, &summary.run_id, waiting.id()) => return Asked::Settled,
            () = reminding => None,
        };
        let Some(response) = response else { return Asked::Open };
        match elicited {
            Some(elicited) => match respond(api, &summary.run_id, &elicited, &response).await {
                Ok(is_answered) if !is_answered => Asked::Open,
                // A refused answer came too late: the run has moved on.
                _ => Asked::Settled,
            },
            None if is_accepted(&response) => decided(api, &summary.run_id, waiting.id(), wait).await,
            None => Asked::Open,
        }
    }

    /// Sends the request to a client of a session. If this is dropped, the client is told that it is void.
    async fn elicit(&self, params: ElicitRequestParams) -> Option<Value> {
        let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
        let handle = self.peer.send_cancellable_request(request, PeerRequestOptions::no_options()).await.ok()?;
        let mut open = OpenRequest { peer: self.peer.clone(), id: Some(handle.id.clone()) };
        let response = handle.await_response().await;
        open.id = None;
        match response.ok()? {
            ClientResult::ElicitResult(result) => serde_json::to_value(result).ok(),
            _ => None,
        }
    }
}

/// A request to the client that is void once this is dropped.
struct OpenRequest {
    peer: Peer<RoleServer>,
    id: Option<RequestId>,
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        let Some(id) = self.id.take() else { return };
        let (peer, void) = (self.peer.clone(), "the question is no longer open".to_owned());
        tokio::spawn(async move {
            peer.notify_cancelled(CancelledNotificationParam::new(Some(id), Some(void))).await.ok();
        });
    }
}

/// Waits for the owner's decision on the page, for `wait` at most.
pub(super) async fn decided(api: &Api, run: &RunId, waiting: &str, wait: Duration) -> Asked {
    match tokio::time::timeout(wait, settled(api, run, waiting)).await {
        Ok(()) => Asked::Settled,
        Err(_) => Asked::Open,
    }
}

/// The question that this client may answer.
///
/// # Errors
/// If there is none, or only the owner answers it.
pub(super) async fn elicitation(api: &Api, run: &RunId) -> Result<Elicitation, Refusal> {
    api.ask(&Call::get(format!("/v1/tasks/{run}/elicitation"))).await
}

/// Gives the run the answer in a client's response. Returns whether there was one.
///
/// # Errors
/// If the answer is refused, because the question is no longer the one that was asked.
pub(super) async fn respond(api: &Api, run: &RunId, asked: &Elicitation, response: &Value) -> Result<bool, Refusal> {
    let Some(answer) = answer(&asked.question.choices, response) else { return Ok(false) };
    let answer = ElicitedAnswer { ticket: asked.ticket.clone(), answer: answer.to_owned() };
    api.ask::<CommandReply>(&Call::post(format!("/v1/tasks/{run}/elicitation"), &answer)?).await?;
    Ok(true)
}

/// The answer in the result of an elicitation; `None` if it is refused or does not fit the form.
fn answer<'a>(choices: &[String], response: &'a Value) -> Option<&'a str> {
    let content = response.get("content")?.as_object().filter(|_| is_accepted(response))?;
    let answer = content.get(FIELD)?.as_str().filter(|_| content.len() == 1)?;
    let is_known = choices.is_empty() || choices.iter().any(|choice| choice == answer);
    (is_known && !answer.trim().is_empty()).then_some(answer)
}

/// Whether the person agreed.
pub(super) fn is_accepted(response: &Value) -> bool {
    response.get("action").and_then(Value::as_str) == Some("accept")
}

/// A map of one request, under the key that its response comes back with.
pub(super) fn requests(id: &str, params: ElicitRequestParams) -> InputRequests {
    InputRequests::from([(id.to_owned(), InputRequest::Elicitation(ElicitRequest::new(params)))])
}

/// A form for the answer to a question. The words of the run are marked as such: a model wrote them.
pub(super) fn form(run: &RunId, asked: &Elicitation) -> Option<ElicitRequestParams> {
    let question = &asked.question;
    let mut message = format!("Run `{run}` asks, in its own words:\n\n{}", revealed(&question.question));
    message.push_str(&format!("\n\nIts task: {}", revealed(&asked.task)));
    if !question.sources.is_empty() {
        let sources: Vec<_> = question.sources.iter().take(MAX_SOURCES).map(|source| revealed(source)).collect();
        let sources = sources.join(", ");
        message.push_str(&format!("\n\nThe run has read {sources}, which may have dictated the question."));
    }
    let schema = ElicitationSchema::builder();
    let schema = if question.choices.is_empty() {
        schema.required_string_with(FIELD, |field| field.title("Answer"))
    } else {
        let choices = EnumSchema::builder(question.choices.clone()).title("Answer").build();
        schema.required_enum_schema(FIELD, choices)
    };
    let requested_schema = schema.build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}

/// The address at which the owner decides.
pub(super) fn address(run: &RunId, waiting: &Waiting, page: &str) -> ElicitRequestParams {
    ElicitRequestParams::UrlElicitationParams {
        meta: None,
        message: format!("Run `{run}` waits for its owner's approval. The owner decides on this page."),
        url: format!("{page}/runs/{run}"),
        elicitation_id: waiting.id().to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(choices: &[&str], response: Value, expected: Option<&str>) {
        let choices: Vec<String> = choices.iter().map(|choice| (*choice).to_owned()).collect();
        assert_eq!(answer(&choices, &response), expected, "{response}");
    }

    #[test]
    fn only_a_response_that_fits_the_form_is_an_answer() {
        let accept = |content: Value| json!({ "action": "accept", "content": content });
        check(&[], accept(json!({ "answer": "red" })), Some("red"));
        check(&["red", "blue"], accept(json!({ "answer": "red" })), Some("red"));
        check(&["red", "blue"], accept(json!({ "answer": "green" })), None);
        for content in [
            json!(null),
            json!("red"),
            json!(["red"]),
            json!({}),
            json!({ "answer": "" }),
            json!({ "answer": " \n" }),
            json!({ "answer": 7 }),
            json!({ "answer": ["red"] }),
            json!({ "answer": null }),
            json!({ "Answer": "red" }),
            json!({ "answer": "red", "approve": true }),
        ] {
            check(&[], accept(content), None);
        }
        for response in [
            json!({ "action": "decline", "content": { "answer": "red" } }),
            json!({ "action": "cancel", "content": { "answer": "red" } }),
            json!({ "action": "Accept", "content": { "answer": "red" } }),
            json!({ "action": ["accept"], "content": { "answer": "red" } }),
            json!({ "content": { "answer": "red" } }),
            json!({ "action": "accept" }),
            json!("accept"),
            json!(null),
        ] {
            check(&[], response, None);
        }
    }
}
