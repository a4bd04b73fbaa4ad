//! Calls that a client repeats with the answer to a question (2026-07-28): the state that goes to the client and back.
//!
//! The server remembers nothing. The state names the run, the call and the question; a question's part is its ticket, which
//! the host made and checks, so that a state which was made up leads to no answer. A run that it names is one that the
//! client may see anyway, or is not found.

use base::{Refusal, RefusalCode, RunId};
use rmcp::model::{CallToolRequestParams, InputResponses};
use serde_json::{Value, json};

/// Hex digits that identify a call.
const CALL_DIGITS: usize = 16;

/// The state of a call that waits for its repetition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RequestState {
    /// The run that the call is about.
    pub(super) run: RunId,
    /// The ticket of the question, or the id of the request for approval.
    pub(super) mark: String,
}

/// A call that was repeated.
#[derive(Debug)]
pub(super) struct Repeated {
    pub(super) state: RequestState,
    responses: InputResponses,
}

/// Identifies a call by its tool and arguments.
pub(super) fn identify(params: &CallToolRequestParams) -> String {
    let hash = base::canonical::hash(&json!([params.name, params.arguments]));
    hash.hex().chars().take(CALL_DIGITS).collect()
}

impl RequestState {
    /// The text for the client of the call.
    pub(super) fn text(&self, call: &str) -> String {
        format!("{}:{call}:{}", self.run, self.mark)
    }

    fn parse(text: &str, call: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let run = RunId::parse(parts.next()?).ok()?;
        parts.next().filter(|of| *of == call)?;
        Some(Self { run, mark: parts.next()?.to_owned() })
    }

    /// Whether it is about a question, and not about an approval.
    pub(super) fn is_question(&self) -> bool {
        self.mark.contains('.')
    }

    /// The id of the question or approval that the run waited for.
    pub(super) fn waiting(&self) -> &str {
        self.mark.split('.').next().unwrap_or_default()
    }
}

impl Repeated {
    /// The repetition in a call, if it is one.
    ///
    /// # Errors
    /// If the state is not one of this call.
    pub(super) fn of(params: &mut CallToolRequestParams, call: &str) -> Result<Option<Self>, Refusal> {
        let Some(text) = params.request_state.take() else { return Ok(None) };
        let state = RequestState::parse(&text, call).ok_or_else(|| {
            Refusal::new(RefusalCode::InvalidRequest, "`requestState` is not the one that this call was answered with")
                .with_remedy("repeat the call as it was, or find its run with `core_task` and `action: list`")
        })?;
        Ok(Some(Self { state, responses: params.input_responses.take().unwrap_or_default() }))
    }

    /// The client's response to the question of the state.
    pub(super) fn response(&self) -> Option<&Value> {
        self.responses.get(self.state.waiting())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_belongs_to_its_call() {
        let state = RequestState { run: RunId::parse("run_1").unwrap(), mark: "ask_1.00ff".to_owned() };
        let text = state.text("call");
        assert_eq!(RequestState::parse(&text, "call").as_ref(), Some(&state));
        assert_eq!(state.waiting(), "ask_1");
        assert_eq!(RequestState::parse(&text, "other"), None);
        for text in ["", "run_1", "run_1:call", "../x:call:ask_1", ":call:ask_1"] {
            assert_eq!(RequestState::parse(text, "call"), None, "{text}");
        }
    }
}
