//! A reply of the model before it is stored: calls that can be made, each with an id of its own, and no longer than is kept.

use std::collections::BTreeSet;

use llm::{
    Arguments, ChatReply, FinishReason, Recovery, RequestedCall, ToolSpec, granted_name, recover_text_calls,
    take_reasoning,
};

use crate::record::{Entry, EntryBody};
use crate::tools::MAX_CALLS;
use crate::window::arguments_size;

/// Characters of the arguments of all calls of a reply. A call beyond it is not made.
pub(crate) const MAX_ARGUMENTS: usize = 32_000;
/// Bytes of the provider's state of a reply; a longer one is not kept.
pub(crate) const MAX_STATE: usize = 64_000;
/// Characters of the id of a call, and of the name of its tool.
pub(crate) const MAX_CALL_ID: usize = 200;

/// The reply with calls that can be executed: those written as text are recovered (SPEC LLM-2), those of half a reply dropped,
/// because any of them may be truncated.
pub(crate) fn normal(mut reply: ChatReply, tools: &[ToolSpec], entries: &[(u64, Entry)]) -> ChatReply {
    take_reasoning(&mut reply);
    let before = reply.tool_calls.len();
    if !reply.finish.is_complete() {
        reply.tool_calls.clear();
    }
    reply.tool_calls.truncate(MAX_CALLS);
    let is_long = reply.state.as_ref().is_some_and(|state| state.bytes() > MAX_STATE);
    if reply.tool_calls.len() < before || is_long {
        // It belongs to all calls.
        reply.state = None;
    }
    if reply.tool_calls.is_empty()
        && matches!(reply.finish, FinishReason::Stop | FinishReason::ToolCalls)
        && let Recovery::Calls { calls, text } = recover_text_calls(&reply.text, tools)
    {
        let call = |call: llm::TextCall| RequestedCall {
            id: String::new(),
            name: call.name,
            arguments: Arguments::Json(call.arguments),
        };
        reply.tool_calls = calls.into_iter().take(MAX_CALLS).map(call).collect();
        reply.text = text;
    }
    if shorten(&mut reply.tool_calls) {
        reply.state = None;
    }
    let used = entries.iter().flat_map(|(_, entry)| match &entry.body {
        EntryBody::Replied { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
        _ => Vec::new(),
    });
    let mut seen: BTreeSet<String> = used.collect();
    let last = entries.last().map_or(0, |(number, _)| *number);
    // A result names one call of the conversation.
    for (index, call) in reply.tool_calls.iter_mut().enumerate() {
        if call.id.is_empty() || call.id.len() > MAX_CALL_ID || !seen.insert(call.id.clone()) {
            call.id = format!("call_{last}_{index}");
            seen.insert(call.id.clone());
        }
        if let Some(name) = granted_name(&call.name, tools) {
            name.clone_into(&mut call.name);
        }
        call.name = base::text::cut(&call.name, MAX_CALL_ID);
    }
    reply
}

/// Takes the arguments from calls that are too long to be kept, so that they are refused. Whether there was one.
fn shorten(calls: &mut [RequestedCall]) -> bool {
    let (mut spent, mut is_cut) = (0_usize, false);
    for call in calls {
        let long = arguments_size(&call.arguments);
        spent = spent.saturating_add(long);
        if spent > MAX_ARGUMENTS {
            spent = spent.saturating_sub(long);
            call.arguments = Arguments::Malformed(format!("left out: {long} characters"));
            is_cut = true;
        }
    }
    is_cut
}
