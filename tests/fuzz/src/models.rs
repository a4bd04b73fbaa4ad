//! The replies of models: streams of events, calls written as text, reasoning, arguments of tools.

use base::sse::Decoder;
use llm::{Delta, ReasoningFilter, Recovery, ToolSpec, check_arguments, recover_text_calls};
use serde_json::{Value, json};

use crate::{parts, text};

/// A stream of server-sent events: the same in one piece, byte by byte, and cut at any one place.
pub(crate) fn events(bytes: &[u8]) {
    let (first, stream) = bytes.split_first().unwrap_or((&0, &[]));
    let decode = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut decoder = Decoder::default();
        let mut events: Vec<_> = pieces.flat_map(|piece| decoder.push(piece)).collect();
        // A byte that is not UTF-8 becomes a character of three.
        assert!(decoder.pending_bytes() <= 3 * stream.len());
        events.extend(decoder.end());
        events
    };
    let whole = decode(&mut std::iter::once(stream));
    assert_eq!(decode(&mut stream.chunks(1)), whole);
    let (before, after) = stream.split_at(usize::from(*first).min(stream.len()));
    assert_eq!(decode(&mut [before, after].into_iter()), whole);
}

fn tools() -> Vec<ToolSpec> {
    let tool =
        |name: &str, parameters: Value| ToolSpec { name: name.to_owned(), description: String::new(), parameters };
    vec![
        tool("read", json!({"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]})),
        tool("code", json!({"type": "object", "properties": {"code": {"type": "string"}}})),
    ]
}

/// Calls written as text: those that are recovered name granted tools and have objects as arguments.
pub(crate) fn text_calls(bytes: &[u8]) {
    let Some(text) = text(bytes) else { return };
    let tools = tools();
    match recover_text_calls(text, &tools) {
        Recovery::None => {}
        Recovery::Calls { calls, .. } => {
            assert!(!calls.is_empty());
            for call in calls {
                assert!(tools.iter().any(|tool| tool.name == call.name), "{}", call.name);
                assert!(call.arguments.is_object(), "{}", call.arguments);
            }
        }
        Recovery::Ambiguous(reason) => assert!(!reason.is_empty()),
    }
    assert_eq!(recover_text_calls(text, &[]), Recovery::None);
}

/// Reasoning in a streamed reply: any cut gives the same text and the same reasoning.
pub(crate) fn reasoning(bytes: &[u8]) {
    let Some(reply) = text(bytes) else { return };
    let split = |pieces: &mut dyn Iterator<Item = &str>| {
        let mut filter = ReasoningFilter::default();
        let mut deltas: Vec<Delta> = pieces.flat_map(|piece| filter.pass(Delta::Text(piece.to_owned()))).collect();
        deltas.extend(filter.finish());
        deltas.into_iter().fold((String::new(), String::new()), |(mut text, mut thoughts), delta| {
            match delta {
                Delta::Text(piece) => text.push_str(&piece),
                Delta::Reasoning(piece) => thoughts.push_str(&piece),
                Delta::Restart { .. } => unreachable!("a filter does not restart a reply"),
            }
            (text, thoughts)
        })
    };
    let whole = split(&mut std::iter::once(reply));
    let characters: Vec<&str> = reply.split_inclusive(|_| true).collect();
    assert_eq!(split(&mut characters.into_iter()), whole);
    assert!(whole.0.len() + whole.1.len() <= reply.len());
}

/// Arguments against a schema, separated by NUL: accepted ones are accepted again, unchanged.
pub(crate) fn arguments(bytes: &[u8]) {
    let Some((schema, value)) = parts(bytes) else { return };
    let (Ok(schema), Ok(value)) = (serde_json::from_str(schema), serde_json::from_str(value)) else { return };
    match check_arguments(&schema, value) {
        Ok(mended) => assert_eq!(check_arguments(&schema, mended.clone()).as_ref(), Ok(&mended)),
        Err(message) => assert!(!message.is_empty()),
    }
}

/// The schema of a tool, as a component declares it: shortening it for a model leaves a schema that is no longer, and that
/// shortening does not change again.
pub(crate) fn shown(bytes: &[u8]) {
    let Ok(parameters) = serde_json::from_slice::<Value>(bytes) else { return };
    let tool = ToolSpec { name: "t".to_owned(), description: String::new(), parameters };
    let shown = tool.shown();
    assert_eq!(shown.shown(), shown);
    assert!(shown.parameters.to_string().len() <= tool.parameters.to_string().len());
    assert_eq!(shown.signature(), tool.signature());
}
