//! Makes a model's reply fit for the history: unique call ids, and calls written as text turned into calls (SPEC LLM-2).
//!
//! The history holds the result, so a resumed run does not depend on reading the same text the same way again.

use std::collections::HashSet;

use llm::{Arguments, ChatReply, FinishReason, Recovery, ToolCall, ToolSpec, recover_text_calls};

use crate::conversation::Conversation;
use crate::event::TellReason;

/// Puts the reply in order; says whether a call was read out of its text.
pub(crate) fn normalise(reply: &mut ChatReply, step: u32, tools: &[ToolSpec], conversation: &Conversation) -> bool {
    let mut recovered = false;
    if reply.tool_calls.is_empty()
        && let Recovery::Call { name, arguments, text } = recover_text_calls(&reply.text, tools)
    {
        reply.text = text;
        reply.finish = FinishReason::ToolCalls;
        let arguments = Arguments::Json(arguments);
        reply.tool_calls.push(ToolCall { id: String::new(), name, arguments });
        recovered = true;
    }
    // Some models give no ids, some count from zero in each reply; a result must name one call of the conversation.
    let mut seen = HashSet::new();
    for (index, call) in reply.tool_calls.iter_mut().enumerate() {
        if call.id.is_empty() || conversation.has_used(&call.id) || seen.contains(&call.id) {
            call.id = format!("call_{step}_{index}");
        }
        seen.insert(call.id.clone());
    }
    recovered
}

/// What is to become of a reply that calls no tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Judgement {
    /// It is the answer.
    Answer,
    /// It is of no use; the model is to be told why.
    Useless(TellReason, String),
}

/// Judges the text of a reply that calls no tools.
pub(crate) fn judge(text: &str, tools: &[ToolSpec]) -> Judgement {
    if text.trim().is_empty() {
        return Judgement::Useless(
            TellReason::EmptyReply,
            "your reply was empty; call a tool, or give your answer in plain text".to_owned(),
        );
    }
    match recover_text_calls(text, tools) {
        Recovery::Ambiguous(reason) => Judgement::Useless(
            TellReason::AmbiguousCall,
            format!(
                "{reason}; if you meant to call a tool, call it as a tool and not in text; if this was your answer, \
                 give it again without anything that looks like a call"
            ),
        ),
        // A call that can be read was turned into one before the reply was stored.
        Recovery::None | Recovery::Call { .. } => Judgement::Answer,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tools() -> Vec<ToolSpec> {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        vec![ToolSpec { name: "read".into(), description: "Reads a file.".into(), parameters }]
    }

    fn reply(text: &str, ids: &[&str]) -> ChatReply {
        let call = |id: &&str| ToolCall {
            id: (*id).into(),
            name: "read".into(),
            arguments: Arguments::Json(json!({"path": "a"})),
        };
        ChatReply {
            text: text.into(),
            tool_calls: ids.iter().map(call).collect(),
            model: "m".into(),
            ..ChatReply::default()
        }
    }

    fn ids(mut reply: ChatReply) -> Vec<String> {
        normalise(&mut reply, 3, &tools(), &Conversation::default());
        reply.tool_calls.into_iter().map(|call| call.id).collect()
    }

    #[test]
    fn call_ids_become_unique() {
        assert_eq!(ids(reply("", &["a", "b"])), ["a", "b"]);
        assert_eq!(ids(reply("", &["", ""])), ["call_3_0", "call_3_1"]);
        assert_eq!(ids(reply("", &["a", "a"])), ["a", "call_3_1"]);
    }

    #[test]
    fn a_call_written_as_text_becomes_a_call() {
        let mut written = reply("<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>", &[]);
        assert!(normalise(&mut written, 1, &tools(), &Conversation::default()));
        assert_eq!(written.tool_calls.len(), 1);

        let mut prose = reply("I would use the tool read for that.", &[]);
        assert!(!normalise(&mut prose, 1, &tools(), &Conversation::default()));
        assert_eq!(judge(&prose.text, &tools()), Judgement::Answer);
    }

    #[test]
    fn silence_is_no_answer() {
        assert!(matches!(judge(" \n", &tools()), Judgement::Useless(TellReason::EmptyReply, _)));
    }
}
