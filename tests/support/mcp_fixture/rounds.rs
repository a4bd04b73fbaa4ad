//! Input that a client gives by repeating its request with answers, in one round or several (SEP-2322).

use rmcp::ErrorData;
use rmcp::model::{
    ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses, RequestStateCodec,
    SealOptions,
};
use serde::Deserialize;
use serde_json::Value;

/// The rounds of a tool or prompt.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rounds {
    rounds: Vec<InputRequests>,
    /// Answers of earlier rounds come back in a sealed state; without it they are repeated by the client.
    #[serde(default)]
    sealed: bool,
}

/// The next step of a request.
pub(super) enum Step {
    /// The client has to give this first.
    Ask(InputRequiredResult),
    /// All answers of the client are there.
    Done(InputResponses),
}

impl Rounds {
    /// The next step of the request `name`, after the client's answers.
    ///
    /// # Errors
    /// If the state was changed, or the client declares nothing that it could be asked.
    pub(super) fn advance(
        &self,
        codec: &RequestStateCodec,
        name: &str,
        responses: Option<InputResponses>,
        state: Option<String>,
        client: &ClientCapabilities,
    ) -> Result<Step, ErrorData> {
        let mut answers = InputResponses::new();
        if let Some(state) = &state {
            let opened = codec.open_with(state, name.as_bytes()).ok();
            let known = opened.and_then(|bytes| serde_json::from_slice::<InputResponses>(&bytes).ok());
            answers.extend(known.ok_or_else(|| ErrorData::invalid_params("the request state was changed", None))?);
        }
        let may_answer = state.is_some() || !self.sealed;
        for round in &self.rounds {
            let wanted = round.iter().filter(|(_, request)| is_supported(request, client));
            let wanted: InputRequests = wanted.map(|(key, request)| (key.clone(), request.clone())).collect();
            if wanted.is_empty() {
                return Err(ErrorData::missing_required_client_capability(needed(round)));
            }
            for (key, request) in wanted.iter().filter(|_| may_answer) {
                let response = responses.as_ref().and_then(|responses| responses.get(key));
                if let Some(response) = response.filter(|response| answers_request(request, response)) {
                    answers.insert(key.clone(), response.clone());
                }
            }
            if wanted.keys().any(|key| !answers.contains_key(key)) {
                let sealed = self.sealed.then(|| self.seal(codec, name, &answers)).transpose()?;
                return Ok(Step::Ask(InputRequiredResult::new(Some(wanted), sealed)));
            }
        }
        Ok(Step::Done(answers))
    }

    fn seal(&self, codec: &RequestStateCodec, name: &str, answers: &InputResponses) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(name.as_bytes());
        codec.seal_json_with(answers, &options).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }
}

fn is_supported(request: &InputRequest, client: &ClientCapabilities) -> bool {
    match request {
        InputRequest::CreateMessage(_) => client.sampling.is_some(),
        InputRequest::Elicitation(_) => client.elicitation.is_some(),
        InputRequest::ListRoots(_) => client.roots.is_some(),
        _ => false,
    }
}

fn needed(round: &InputRequests) -> ClientCapabilities {
    let mut needed = ClientCapabilities::default();
    for request in round.values() {
        match request {
            InputRequest::CreateMessage(_) => needed.sampling = Some(Default::default()),
            InputRequest::Elicitation(_) => needed.elicitation = Some(Default::default()),
            InputRequest::ListRoots(_) => needed.roots = Some(Default::default()),
            _ => {}
        }
    }
    needed
}

/// Whether a value is an answer to the request: of its kind, and with all required fields.
pub(super) fn answers_request(request: &InputRequest, response: &Value) -> bool {
    match request {
        InputRequest::CreateMessage(_) => response["content"].is_object(),
        InputRequest::ListRoots(_) => response["roots"].is_array(),
        InputRequest::Elicitation(request) => {
            let schema = serde_json::to_value(&request.params).unwrap_or_default();
            let required = schema["requestedSchema"]["required"].as_array().cloned().unwrap_or_default();
            let has = |name: &Value| name.as_str().is_some_and(|name| !response["content"][name].is_null());
            response["action"] == "accept" && response["content"].is_object() && required.iter().all(has)
        }
        _ => false,
    }
}
