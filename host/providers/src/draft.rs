//! A reply while it comes in, the same for every API: text, reasoning, calls, usage, the reason it ended.
//!
//! The number of calls is bounded here, the bytes where they are received.

use llm::{Arguments, ChatReply, Delta, FinishReason, ModelErrorKind, ProviderState, RequestedCall, Usage};
use serde_json::Value;

use crate::failure::ProviderFailure;
use crate::finish;
use crate::receive::ReplyEnd;

/// More calls than this in one reply are a fault of the endpoint or an attack.
const MAX_CALLS: usize = 128;

/// The receiver of a streamed reply.
pub(crate) type OnDelta<'a> = &'a mut (dyn FnMut(Delta) + Send);

/// A reply as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub text: String,
    pub reasoning: String,
    pub calls: Vec<DraftCall>,
    pub usage: Usage,
    finish: Option<(FinishReason, String)>,
    /// The provider's explanation of the reason: a refusal, a filter's category.
    pub words: String,
}

/// A call as far as it has come.
#[derive(Debug, Default)]
pub(crate) struct DraftCall {
    /// Which call of the reply the endpoint says it is. Not trusted to be unique.
    pub index: Option<u64>,
    pub id: String,
    pub name: String,
    pub arguments: String,
}

impl Draft {
    pub(crate) fn text(&mut self, text: &str, on_delta: OnDelta<'_>) {
        if !text.is_empty() {
            self.text.push_str(text);
            on_delta(Delta::Text(text.to_owned()));
        }
    }

    pub(crate) fn reasoning(&mut self, text: &str, on_delta: OnDelta<'_>) {
        if !text.is_empty() {
            self.reasoning.push_str(text);
            on_delta(Delta::Reasoning(text.to_owned()));
        }
    }

    /// Begins a call and gives its position.
    pub(crate) fn call(&mut self, call: DraftCall) -> Result<usize, ProviderFailure> {
        if self.calls.len() >= MAX_CALLS {
            let message = format!("the reply has more than {MAX_CALLS} tool calls");
            return Err(ProviderFailure::new(ModelErrorKind::Malformed, message));
        }
        self.calls.push(call);
        Ok(self.calls.len() - 1)
    }

    /// The provider named the reason: `name`, and perhaps a more exact one.
    pub(crate) fn finished(&mut self, name: &str, native: Option<&str>) -> Result<(), ProviderFailure> {
        let (reason, name) = finish::reason_of_two(name, native)?;
        // A gateway that adds an end of its own does not make a reply whole.
        if !reason.is_complete() || self.finish.as_ref().is_none_or(|(earlier, _)| earlier.is_complete()) {
            self.finish = Some((reason, name));
        }
        Ok(())
    }

    /// Overrides the reason by one that is known otherwise.
    pub(crate) fn ended_by(&mut self, reason: FinishReason, name: &str) {
        self.finish = Some((reason, name.to_owned()));
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.finish.is_some()
    }

    /// Whether it holds something that can stand as it is although no reason was given for its end. Without a mark of the
    /// end, a call that has no arguments yet may have lost them.
    pub(crate) fn has_whole_content(&self, end: ReplyEnd) -> bool {
        let whole = |call: &DraftCall| {
            end == ReplyEnd::Marked
                || !call.arguments.is_empty() && matches!(arguments(&call.arguments), Arguments::Json(_))
        };
        (!self.text.is_empty() || !self.calls.is_empty()) && self.calls.iter().all(whole)
    }

    /// The whole reply. Without a reason of the provider's it ended by `unnamed`.
    pub(crate) fn into_reply(self, unnamed: FinishReason, state: Option<ProviderState>) -> ChatReply {
        let (finish, name) = self.finish.unwrap_or((unnamed, String::new()));
        let call =
            |call: DraftCall| RequestedCall { id: call.id, name: call.name, arguments: arguments(&call.arguments) };
        let mut tool_calls: Vec<_> = self.calls.into_iter().map(call).collect();
        if !finish.is_complete()
            && let Some(last) = tool_calls.last_mut()
            && last.arguments == Arguments::Json(Value::Object(serde_json::Map::new()))
        {
            // Cut off before its first argument: not a call without arguments.
            last.arguments = Arguments::Malformed(String::new());
        }
        ChatReply {
            finish_detail: finish::detail(finish, &name, &self.words),
            text: self.text,
            tool_calls,
            reasoning: (!self.reasoning.is_empty()).then_some(self.reasoning),
            usage: self.usage,
            finish,
            state,
            ..ChatReply::default()
        }
    }
}

/// The arguments of a call as an endpoint wrote them. None at all means no arguments.
pub(crate) fn arguments(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments::Json(Value::Object(serde_json::Map::new()));
    }
    match serde_json::from_str(text) {
        // Some servers encode the JSON once more.
        Ok(Value::String(inner)) => match serde_json::from_str(&inner) {
            Ok(value @ Value::Object(_)) => Arguments::Json(value),
            _ => Arguments::Json(Value::String(inner)),
        },
        Ok(Value::Null) => Arguments::Json(Value::Object(serde_json::Map::new())),
        Ok(value) => Arguments::Json(value),
        Err(_) => Arguments::Malformed(text.to_owned()),
    }
}

/// Arguments as an endpoint gets them back in the history: an object in every case, since several refuse the whole
/// conversation when one call in it is not.
pub(crate) fn arguments_object(arguments: &Arguments) -> Value {
    match arguments {
        Arguments::Json(value) if value.is_object() => value.clone(),
        Arguments::Json(value) => serde_json::json!({ "value": value }),
        Arguments::Malformed(text) => serde_json::json!({ "not_json": text }),
    }
}

/// More tokens than any reply has. Counts of a run are added up.
const MAX_COUNT: u64 = 1 << 40;

/// A number of tokens in `usage`, under the first of `names` it has.
pub(crate) fn count(usage: &Value, names: &[&str]) -> u64 {
    let number = |name: &&str| {
        let value = usage.get(name)?;
        // Some servers count in floating point.
        value.as_u64().or_else(|| value.as_f64().filter(|count| (0.0..1e15).contains(count)).map(|count| count as u64))
    };
    names.iter().find_map(number).unwrap_or_default().min(MAX_COUNT)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_json_is_kept() {
        for (text, expected) in [
            (" ", Arguments::Json(json!({}))),
            ("null", Arguments::Json(json!({}))),
            ("{\"a\":1}", Arguments::Json(json!({"a": 1}))),
            (r#""{\"a\":1}""#, Arguments::Json(json!({"a": 1}))),
            ("\"a\"", Arguments::Json(json!("a"))),
            ("{\"a\":", Arguments::Malformed("{\"a\":".to_owned())),
        ] {
            assert_eq!(arguments(text), expected, "{text}");
        }
    }

    #[test]
    fn too_many_calls_are_refused() {
        let mut draft = Draft::default();
        assert!((0..1_000).any(|_| draft.call(DraftCall::default()).is_err()));
    }

    #[test]
    fn a_later_end_does_not_make_a_reply_whole() {
        let ends = |names: [&str; 2]| {
            let mut draft = Draft::default();
            names.iter().for_each(|name| draft.finished(name, None).unwrap());
            draft.into_reply(FinishReason::Stop, None).finish
        };
        assert_eq!(ends(["content_filter", "stop"]), FinishReason::Filtered);
        assert_eq!(ends(["stop", "length"]), FinishReason::Length);
        assert_eq!(ends(["stop", "tool_calls"]), FinishReason::ToolCalls);
    }

    #[test]
    fn a_call_that_is_cut_off_before_its_arguments_is_not_whole() {
        let mut draft = Draft::default();
        draft.call(DraftCall::default()).unwrap();
        draft.finished("length", None).unwrap();
        let reply = draft.into_reply(FinishReason::Stop, None);
        assert_eq!(reply.tool_calls[0].arguments, Arguments::Malformed(String::new()));
        assert_eq!(reply.finish_detail.as_deref(), Some("length"));
    }
}
