//! Makes a model's reply fit for the history, and judges one that calls no tools (SPEC RUN-4, LLM-2): unique call ids, calls
//! written as text turned into calls, reasoning taken out of the text, calls of half a reply dropped.
//!
//! The history holds the result, so a resumed run does not depend on reading the same text the same way again. It survives
//! replies that were cut off anywhere: half a call is never executed, and half a sentence is never the answer.

use std::collections::HashSet;

use base::text::cut;
use llm::{
    Arguments, ChatReply, FinishReason, Recovery, RequestedCall, ToolSpec, granted_name, recover_text_calls,
    take_reasoning,
};

use crate::conversation::{Conversation, PendingVerdict};
use crate::event::TellReason;
use crate::failure::{FailureCategory, RunError};

/// Characters kept of the name of a tool, as the model wrote it.
const NAME: usize = 80;
/// Characters kept of the words of a provider.
const DETAIL: usize = ChatReply::MAX_DETAIL;

/// Changes to a reply.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct NormalReply {
    /// Whether its calls were read out of its text.
    pub(crate) recovered_call: bool,
    /// Tools of the calls that were dropped.
    pub(crate) dropped_calls: Vec<String>,
}

/// Puts the reply in order.
pub(crate) fn normalise(
    reply: &mut ChatReply,
    step: u32,
    tools: &[ToolSpec],
    conversation: &Conversation,
) -> NormalReply {
    let mut done = NormalReply::default();
    take_reasoning(reply);
    if !reply.finish.is_complete() && reply.finish != FinishReason::Paused {
        let dropped = std::mem::take(&mut reply.tool_calls);
        if !dropped.is_empty() {
            // It belongs to the calls.
            reply.state = None;
        }
        done.dropped_calls = dropped.iter().map(|call| cut(&call.name, NAME)).collect();
        return done;
    }
    if reply.tool_calls.is_empty()
        // A text that is cut at either end may lack the marks that make its call a quotation.
        && matches!(reply.finish, FinishReason::Stop | FinishReason::ToolCalls)
        && !conversation.is_continued()
        && let Recovery::Calls { calls, text } = recover_text_calls(&reply.text, tools)
    {
        reply.text = text;
        reply.finish = FinishReason::ToolCalls;
        reply.tool_calls = calls
            .into_iter()
            .map(|call| RequestedCall {
                id: String::new(),
                name: call.name,
                arguments: Arguments::Json(call.arguments),
            })
            .collect();
        done.recovered_call = true;
    }
    // Some models give no ids, some count from zero in each reply; a result must name one call of the conversation.
    let mut seen = HashSet::new();
    for (index, call) in reply.tool_calls.iter_mut().enumerate() {
        if call.id.is_empty() || conversation.has_used(&call.id) || seen.contains(&call.id) {
            call.id = format!("call_{step}_{index}");
        }
        seen.insert(call.id.clone());
        if let Some(name) = granted_name(&call.name, tools) {
            name.clone_into(&mut call.name);
        }
    }
    done
}

/// The fate of a reply that calls no tools.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Judgement {
    /// It is the answer.
    Answer(String),
    /// It is not, and the model is to be told why.
    Tell(TellReason, String),
    /// It is not, and the attempt cannot go on.
    Fail(RunError),
}

/// Judges a reply that calls no tools, and those that it continues.
pub(crate) fn judge(reply: &PendingVerdict, tools: &[ToolSpec], conversation: &Conversation) -> Judgement {
    match reply.finish {
        FinishReason::Length if conversation.cut_offs() == 0 => {
            let (reason, advice) = continued(reply, tools);
            Judgement::Tell(reason, format!("your reply was cut off at the limit of output tokens{advice}"))
        }
        finish if !finish.is_complete() => Judgement::Fail(unusable(reply)),
        _ => match (useless(reply, tools), conversation.corrections()) {
            (None, _) => Judgement::Answer(reply.text.trim().to_owned()),
            (Some((reason, why)), 0) => Judgement::Tell(reason, why),
            (Some((_, why)), _) => Judgement::Fail(RunError {
                remedy: Some("use another model, or set `models.constrained = true`".to_owned()),
                ..RunError::new(
                    FailureCategory::ModelFailure,
                    format!("the model's reply could not be used, twice in a row: {why}"),
                )
            }),
        },
    }
}

/// How the model can go on after a reply that was cut off.
fn continued(reply: &PendingVerdict, tools: &[ToolSpec]) -> (TellReason, String) {
    let names: Vec<_> = reply.dropped_calls.iter().map(|name| format!("`{name}`")).collect();
    let advice = "no call of it was executed; call again, with shorter arguments or in several replies";
    if !names.is_empty() {
        return (TellReason::CutOffCall, format!(" within its tool calls ({}): {advice}", names.join(", ")));
    }
    if recover_text_calls(&reply.text, tools) != Recovery::None {
        return (TellReason::CutOffCall, format!(" within a tool call: {advice}"));
    }
    let advice = if reply.text.trim().is_empty() {
        " before it said anything: think less, then call a tool or give your answer in plain text"
    } else {
        ": go on exactly where it stopped, and repeat nothing"
    };
    (TellReason::CutOff, advice.to_owned())
}

/// Why a reply that is complete cannot be the answer.
fn useless(reply: &PendingVerdict, tools: &[ToolSpec]) -> Option<(TellReason, String)> {
    if reply.is_silent {
        let why = "your reply was empty; call a tool, or give your answer in plain text";
        return Some((TellReason::EmptyReply, why.to_owned()));
    }
    let reason = match recover_text_calls(&reply.text, tools) {
        Recovery::None => return None,
        Recovery::Ambiguous(reason) => reason,
        // The calls of a whole reply were taken out of it before it was stored.
        Recovery::Calls { .. } => "a tool call is written as text, in a reply that may not be whole".to_owned(),
    };
    let why = format!(
        "{reason}; if you meant to call a tool, call it as a tool and not in text; if this was your answer, give it again \
         without anything that looks like a call"
    );
    Some((TellReason::AmbiguousCall, why))
}

/// Why a reply that the model did not end itself fails the attempt, in the provider's words.
fn unusable(reply: &PendingVerdict) -> RunError {
    let (what, remedy) = match reply.finish {
        FinishReason::Length => (
            "the model's reply was cut off at its limit of output tokens, again after it was told to go on",
            "ask for a shorter answer or one in a file, or use a model with a larger limit of output tokens",
        ),
        FinishReason::Filtered => {
            ("a filter of the provider cut the model's reply", "rephrase the task, or use another model")
        }
        FinishReason::Refused => ("the model refused to go on", "rephrase the task, or use another model"),
        FinishReason::ContextFull => (
            "the conversation fills the model's context window",
            "lower `context_bytes` under `[motor]`, or use a model with a larger context window",
        ),
        _ => ("the provider ended the model's reply for a reason unknown here", "retry, or use another model"),
    };
    // A refusal without a reason is its own reason.
    let said = || Some(reply.text.trim()).filter(|text| reply.finish == FinishReason::Refused && !text.is_empty());
    let detail = reply.detail.as_deref().or_else(said).map(|detail| format!(": {}", cut(detail, DETAIL)));
    let message = format!("{what}{}", detail.unwrap_or_default());
    RunError { remedy: Some(remedy.to_owned()), ..RunError::new(FailureCategory::ModelFailure, message) }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::event::RunEvent;

    fn tools() -> Vec<ToolSpec> {
        let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]});
        vec![ToolSpec { name: "read".into(), description: "Reads a file.".into(), parameters }]
    }

    fn reply(text: &str, ids: &[&str]) -> ChatReply {
        let call = |id: &&str| RequestedCall {
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
    fn a_reply_that_may_be_half_calls_nothing_in_text() {
        let written = |finish| ChatReply { finish, ..reply("<function=read><parameter=path>a</parameter>", &[]) };
        let recovered = |finish| {
            let mut reply = written(finish);
            normalise(&mut reply, 1, &tools(), &Conversation::default());
            reply.tool_calls.len()
        };
        assert_eq!([FinishReason::Stop, FinishReason::Missing, FinishReason::Length].map(recovered), [1, 0, 0]);
    }

    #[test]
    fn call_ids_become_unique() {
        assert_eq!(ids(reply("", &["a", "b"])), ["a", "b"]);
        assert_eq!(ids(reply("", &["", ""])), ["call_3_0", "call_3_1"]);
        assert_eq!(ids(reply("", &["a", "a"])), ["a", "call_3_1"]);
    }

    fn normalised(reply: &mut ChatReply) -> NormalReply {
        normalise(reply, 1, &tools(), &Conversation::default())
    }

    /// The judgement of a reply, after `earlier` cut-offs and corrections, as one line.
    fn judged(reply: &PendingVerdict, earlier: &[TellReason]) -> String {
        let mut conversation = Conversation::default();
        for reason in earlier {
            conversation.apply(&RunEvent::Told { step: 1, reason: *reason, text: String::new() });
        }
        match judge(reply, &tools(), &conversation) {
            Judgement::Answer(text) => format!("answer {text}"),
            Judgement::Tell(reason, why) => format!("tell {reason:?}: {why}"),
            Judgement::Fail(error) => format!("fail {:?}: {} ({:?})", error.category, error.message, error.remedy),
        }
    }

    fn ended(text: &str, finish: FinishReason) -> PendingVerdict {
        let is_silent = text.trim().is_empty();
        PendingVerdict { text: text.into(), is_silent, finish, detail: None, dropped_calls: vec![] }
    }

    #[test]
    fn calls_written_as_text_become_calls() {
        let mut written = reply("<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>", &[]);
        assert!(normalised(&mut written).recovered_call);
        assert_eq!(written.tool_calls.len(), 1);

        let mut prose = reply("I would use the tool read for that.", &[]);
        assert_eq!(normalised(&mut prose), NormalReply::default());
        assert_eq!(judged(&ended(&prose.text, FinishReason::Stop), &[]), format!("answer {}", prose.text));
    }

    #[test]
    fn reasoning_is_no_part_of_the_answer() {
        let mut thinking = reply("<think>6 times 7</think>\n\n42", &[]);
        thinking.reasoning = Some("hm".into());
        assert_eq!(normalised(&mut thinking), NormalReply::default());
        assert_eq!((thinking.text.as_str(), thinking.reasoning.as_deref()), ("42", Some("hm\n6 times 7")));
    }

    #[test]
    fn a_namespace_before_a_tool_is_taken_off() {
        let mut calling = reply("", &["a"]);
        calling.tool_calls[0].name = "functions.read".into();
        normalised(&mut calling);
        assert_eq!(calling.tool_calls[0].name, "read");
    }

    #[test]
    fn calls_of_half_a_reply_are_dropped_whether_they_can_be_read_or_not() {
        use FinishReason::{ContextFull, Filtered, Length, Missing, Other, Paused, Refused, Stop, ToolCalls};
        let text = "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>";
        for finish in [Length, Filtered, Refused, ContextFull, Other] {
            let mut half = ChatReply { finish, ..reply("", &["a", "b"]) };
            assert_eq!(normalised(&mut half).dropped_calls, ["read", "read"], "{finish:?}");
            assert_eq!(half.tool_calls, [], "{finish:?}");
            let mut written = ChatReply { finish, ..reply(text, &[]) };
            assert_eq!(normalised(&mut written), NormalReply::default(), "{finish:?}");
            assert_eq!(written.tool_calls, [], "{finish:?}");
        }
        // Benign twins.
        for finish in [Stop, ToolCalls, Missing, Paused] {
            let mut whole = ChatReply { finish, ..reply("", &["a", "b"]) };
            assert_eq!(normalised(&mut whole), NormalReply::default(), "{finish:?}");
            assert_eq!(whole.tool_calls.len(), 2, "{finish:?}");
        }
    }

    #[test]
    fn silence_is_no_answer() {
        assert!(judged(&ended(" \n", FinishReason::Stop), &[]).starts_with("tell EmptyReply"));
        assert!(judged(&ended(" ", FinishReason::Stop), &[TellReason::AmbiguousCall]).starts_with("fail ModelFailure"));
    }

    #[test]
    fn a_reply_that_was_cut_off_is_continued_once() {
        let half = ended("It is fo", FinishReason::Length);
        let cut = "your reply was cut off at the limit of output tokens";
        assert_eq!(
            judged(&half, &[]),
            format!("tell CutOff: {cut}: go on exactly where it stopped, and repeat nothing")
        );
        for earlier in [TellReason::CutOff, TellReason::CutOffCall] {
            let failed = judged(&half, &[earlier]);
            assert!(failed.starts_with("fail ModelFailure") && failed.contains("output tokens"), "{failed}");
        }
        let silent = judged(&ended("", FinishReason::Length), &[]);
        assert!(silent.starts_with(&format!("tell CutOff: {cut} before it said anything")), "{silent}");
        let called = PendingVerdict { dropped_calls: vec!["read".into()], ..half };
        let told = judged(&called, &[]);
        assert!(told.starts_with(&format!("tell CutOffCall: {cut} within its tool calls (`read`): no call")), "{told}");
        for text in [
            "<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}",
            "<tool_call>{\"name\": \"read\", \"argum",
            "[TOOL_CALLS]read[ARGS]{\"pa",
            "{\"name\": \"read\", \"arguments\": {\"path\": \"a",
        ] {
            let told = judged(&ended(text, FinishReason::Length), &[]);
            assert!(told.starts_with("tell CutOffCall"), "{text}\n{told}");
        }
        // A call in two parts is not put together.
        let two = judged(&ended("<tool_call>\n{\"name\": \"read\", \"arguments\": {}}", FinishReason::Stop), &[]);
        assert!(two.starts_with("tell AmbiguousCall"), "{two}");
    }

    #[test]
    fn a_reply_that_was_filtered_or_refused_fails_in_the_providers_words() {
        let check = |finish, detail: Option<&str>, expected: expect_test::Expect| {
            let reply = PendingVerdict { detail: detail.map(str::to_owned), ..ended("I cannot", finish) };
            expected.assert_eq(&judged(&reply, &[]));
        };
        check(
            FinishReason::Filtered,
            Some("SAFETY"),
            expect![[
                r#"fail ModelFailure: a filter of the provider cut the model's reply: SAFETY (Some("rephrase the task, or use another model"))"#
            ]],
        );
        check(
            FinishReason::Refused,
            Some("against the rules"),
            expect![[
                r#"fail ModelFailure: the model refused to go on: against the rules (Some("rephrase the task, or use another model"))"#
            ]],
        );
        check(
            FinishReason::Refused,
            None,
            expect![[
                r#"fail ModelFailure: the model refused to go on: I cannot (Some("rephrase the task, or use another model"))"#
            ]],
        );
        check(
            FinishReason::ContextFull,
            Some("model_context_window_exceeded"),
            expect![[
                r#"fail ModelFailure: the conversation fills the model's context window: model_context_window_exceeded (Some("lower `context_bytes` under `[motor]`, or use a model with a larger context window"))"#
            ]],
        );
        check(
            FinishReason::Other,
            Some("eos_of_a_kind"),
            expect![[
                r#"fail ModelFailure: the provider ended the model's reply for a reason unknown here: eos_of_a_kind (Some("retry, or use another model"))"#
            ]],
        );
    }
}
