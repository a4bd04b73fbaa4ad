//! Tool calls written as text: recovered, left as text, or ambiguous.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};

use super::reasoning::separate_reasoning;
use super::*;
use crate::Delta;

fn tools() -> Vec<ToolSpec> {
    ["read", "list", "write_file"]
        .map(|name| ToolSpec { name: name.into(), description: String::new(), parameters: json!({"type": "object"}) })
        .to_vec()
}

fn call(text: &str, name: &str, arguments: Value) {
    match recover_text_calls(text, &tools()) {
        Recovery::Calls { calls, .. } => {
            assert_eq!(calls, [TextCall { name: name.into(), arguments }], "{text}");
        }
        other => panic!("{text}\n{other:?}"),
    }
}

fn prose(text: &str) {
    assert_eq!(recover_text_calls(text, &tools()), Recovery::None, "{text}");
}

fn ambiguous(text: &str, part: &str) {
    match recover_text_calls(text, &tools()) {
        Recovery::Ambiguous(reason) => assert!(reason.contains(part), "{text}\n{reason}"),
        other => panic!("{text}\n{other:?}"),
    }
}

#[test]
fn each_form_of_a_call_is_recovered() {
    let a = || json!({"path": "a"});
    call(r#"{"name":"read","arguments":{"path":"a"}}"#, "read", a());
    call(r#" {"tool":"read","input":{"path":"a"}} "#, "read", a());
    call(r#"[{"name":"read","parameters":{"path":"a"}}]"#, "read", a());
    call(r#"{"type":"function","function":{"name":"read","arguments":"{\"path\":\"a\"}"}}"#, "read", a());
    call("```json\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n```", "read", a());
    call("```json {\"tool\":\"read\",\"parameters\":{\"path\":\"a\"}}```", "read", a());
    call("I read it first.\n\n```\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n```\n", "read", a());
    call("I read it first.\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}", "read", a());
    call("<tool_call>\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n</tool_call>", "read", a());
    call("ok <tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}", "read", a());
    call("<function=read>{\"path\":\"a\"}</function>", "read", a());
    call("<tool_call>\n<function=read>\n<parameter=path>\na\n</parameter>\n</function>\n</tool_call>", "read", a());
    call(
        "Reading.\n<function_calls>\n<invoke name=\"read\">\n<parameter name=\"path\">a</parameter>\n</invoke>\n</function_calls>",
        "read",
        a(),
    );
    call("```xml\n<invoke name=\"read\"><parameter name=\"path\">a</parameter></invoke>\n```", "read", a());
    call(r#"{"name":"list","arguments":null}"#, "list", json!({}));
}

#[test]
fn the_prose_before_a_call_is_kept() {
    let text = "Looking.\n<tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>";
    let Recovery::Calls { text, .. } = recover_text_calls(text, &tools()) else { panic!() };
    assert_eq!(text, "Looking.");
}

#[test]
fn an_argument_may_hold_what_looks_like_a_tag_or_a_fence() {
    let content = "</tool_call> ``` <invoke name=\"read\">";
    let json = json!({"name": "write_file", "arguments": {"content": content}});
    call(&format!("<tool_call>{json}</tool_call>"), "write_file", json!({"content": content}));
}

#[test]
fn prose_and_examples_are_not_calls() {
    prose("");
    prose("I used read and list, and the answer is 42.");
    prose("The `<tool_call>` tag is what a model writes.");
    prose("Models write <tool_call> tags.");
    prose("Call it like this:\n```json\n{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}\n```");
    prose("```json\n{\"name\":\"read\",\"arguments\":{}}\n```\nThis would read a file.");
    prose("The file holds `{\"name\":\"read\",\"arguments\":{}}`.");
    prose("```json\n{\"name\":\"Ada\",\"input\":{\"born\":1815}}\n```");
    prose(r#"{"name":"Ada","arguments":{}}"#);
    prose(r#"{"name":"read"}"#);
    prose(r#"{"name":"read","arguments":{},"price":3}"#);
    prose(r#"{"total": 12}"#);
    prose("```python\nprint('<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>')\n```");
    prose("Use `<invoke name=\"read\">` for that.");
    prose("x < y and y > z");
}

#[test]
fn doubt_is_reported_not_resolved() {
    ambiguous("<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>\nThe file says 42.", "text goes on");
    ambiguous("<tool_call>{\"name\":\"rm\",\"arguments\":{}}</tool_call>", "`rm`");
    ambiguous(r#"{"name":"raed","arguments":{}}"#, "did you mean `read`?");
    ambiguous("<tool_call>{\"name\":\"read\",\"arguments\":{</tool_call>", "not valid JSON");
    ambiguous("{\"name\":\"read\",\"arguments\":{\"path\":\"a}", "not valid JSON");
    ambiguous("{\"name\":\"read\",\"arguments\":{}}\n{\"name\":\"list\",\"arguments\":{}}", "more than one");
    ambiguous(
        "```json\n{\"name\":\"read\",\"arguments\":{}}\n```\n```json\n{\"name\":\"list\",\"arguments\":{}}\n```",
        "more than one",
    );
    ambiguous("<invoke name=\"read\"><parameter name=\"path\">a</invoke>", "does not end");
    ambiguous(
        &format!("{}\n```json\n{{\"name\":\"read\",\"arguments\":{{}}}}\n```", "It was so. ".repeat(200)),
        "long text",
    );
}

#[test]
fn without_tools_nothing_is_a_call() {
    assert_eq!(recover_text_calls(r#"{"name":"read","arguments":{}}"#, &[]), Recovery::None);
}

/// The expected outcome of a text in `tests/fixtures/replies`. Without any of these the text itself is the answer.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    #[serde(default)]
    calls: Vec<(String, Value)>,
    /// The text without the calls.
    #[serde(default)]
    text: String,
    #[serde(default)]
    reasoning: String,
    answer: Option<String>,
    /// Part of the message to the model.
    doubt: Option<String>,
}

/// The texts of replies, each with its header.
fn fixtures() -> Vec<(String, Expected, String)> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/replies");
    let read = |entry: std::io::Result<std::fs::DirEntry>| {
        let path = entry.unwrap().path();
        let content = std::fs::read_to_string(&path).unwrap();
        let (header, text) = content.split_once("\n----\n").unwrap_or_else(|| panic!("{path:?} has no header"));
        let expected = serde_json::from_str(header).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), expected, text.to_owned())
    };
    std::fs::read_dir(directory).unwrap().map(read).collect()
}

#[test]
fn each_format_is_read_and_no_lookalike_is() {
    let tools = ["read", "list", "write"].map(|name| ToolSpec {
        name: name.into(),
        description: String::new(),
        parameters: json!({"type": "object"}),
    });
    let mut wrong = Vec::new();
    let fixtures = fixtures();
    for (name, expected, raw) in &fixtures {
        let (text, reasoning) = separate_reasoning(raw).unwrap_or_else(|| (raw.clone(), String::new()));
        let found = recover_text_calls(&text, &tools);
        let is_right = match (&found, &expected.doubt) {
            (Recovery::Calls { calls, text }, None) => {
                let calls: Vec<_> = calls.iter().map(|call| (call.name.clone(), call.arguments.clone())).collect();
                (&calls, text, &reasoning) == (&expected.calls, &expected.text, &expected.reasoning)
            }
            (Recovery::None, None) => {
                let answer = expected.answer.as_deref().unwrap_or(raw);
                expected.calls.is_empty() && (text.as_str(), &reasoning) == (answer, &expected.reasoning)
            }
            (Recovery::Ambiguous(reason), Some(part)) => reason.contains(part),
            (Recovery::None, Some(part)) => text.is_empty() && part == "was empty",
            _ => false,
        };
        if !is_right {
            wrong.push(format!("{name}: {found:?}, text {text:?}, reasoning {reasoning:?}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), fixtures.len(), wrong.join("\n"));
    assert!(fixtures.len() > 90, "{}", fixtures.len());
}

#[test]
fn so_many_calls_are_read_and_no_more() {
    let one = "<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call>\n";
    let found = recover_text_calls(&one.repeat(MAX_CALLS), &tools());
    assert!(matches!(found, Recovery::Calls { calls, .. } if calls.len() == MAX_CALLS));
    for more in [1, 2, 200] {
        ambiguous(&one.repeat(MAX_CALLS + more), "more than 64 tool calls");
    }
}

#[test]
fn names_with_a_namespace_or_a_number_are_those_of_tools() {
    for name in ["read", "functions.read", "tools.read", "default_api.read", "functions.read:0", "read:12"] {
        assert_eq!(granted_name(name, &tools()), Some("read"), "{name}");
    }
    for name in ["reads", "other.read", "functions.", "functions.rm:0", "read:x", "", ":0", "."] {
        assert_eq!(granted_name(name, &tools()), None, "{name}");
    }
    let own = [ToolSpec { name: "functions.read".into(), description: String::new(), parameters: json!({}) }];
    assert_eq!(granted_name("functions.read", &own), Some("functions.read"));
}

/// Passes a reply in pieces; returns the displayed text and reasoning.
fn streamed(text: &str, size: usize) -> (String, String) {
    let mut filter = ReasoningFilter::default();
    let characters: Vec<char> = text.chars().collect();
    let pieces = characters.chunks(size).map(|piece| Delta::Text(piece.iter().collect()));
    let deltas: Vec<_> = pieces.flat_map(|piece| filter.pass(piece)).collect();
    let mut seen = (String::new(), String::new());
    for delta in deltas.into_iter().chain(filter.finish()) {
        match delta {
            Delta::Text(text) => seen.0 += &text,
            Delta::Reasoning(text) => seen.1 += &text,
            Delta::Restart { .. } => {}
        }
    }
    seen
}

#[test]
fn reasoning_is_not_streamed_as_text() {
    for size in 1..9 {
        let check = |text, said: &str, thought: &str| {
            assert_eq!(streamed(text, size), (said.to_owned(), thought.to_owned()), "{text} in pieces of {size}");
        };
        check("<think>hm</think>\n\n42", "42", "hm");
        check("\n<think>hm</think><think>!</think> 42 < 43", "42 < 43", "hm!");
        check("[THINK]hm[/THINK]42", "42", "hm");
        check("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>42", "42", "hm");
        check("<think>hm", "", "hm");
        check("<thin air", "<thin air", "");
        check("<th", "<th", "");
        check("42 is <think>not</think>", "42 is <think>not</think>", "");
    }
    // Text streamed before is void.
    let mut filter = ReasoningFilter::default();
    filter.pass(Delta::Text("<think>hm".into()));
    filter.pass(Delta::Restart { reason: "again".into(), wait: Duration::ZERO });
    assert_eq!(filter.pass(Delta::Text("42".into())), [Delta::Text("42".into())]);
}

/// All beginnings, ends and nestings of calls and reasoning.
const PIECES: [&str; 42] = [
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "<function=a>{",
    "<function=read>",
    "<parameter=a>",
    "</parameter>",
    "</function>",
    "<invoke name=\"a\">",
    "[TOOL_CALLS]",
    "[TOOL_CALLS][",
    "read[ARGS]{",
    "<|python_tag|>",
    "<|python_tag|>{",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<|tool_call_begin|>",
    "<|channel|>",
    "<|channel|>final<|message|>",
    "<|channel|>commentary to=functions.read<|message|>{",
    "<|start|>assistant",
    "<|end|>",
    "<|call|>",
    "<think>",
    "</think>",
    "\n<think>\n",
    "[THINK]",
    "<arg_key>",
    "<tool_call>a<arg_key>b</arg_key><arg_value>",
    "<tool_call>{\"a",
    "<tool_call>{\"name\":\"read\",\"arguments\":{}}",
    "{\"name\":\"read\",\"arguments\":{}}",
    "{\"name\":",
    "```\n",
    "\n```",
    "\n{",
    "`",
    "[",
    "{",
    " ",
    "\n",
    "x",
];

/// The tools are those that the pieces name.
fn read(text: &str) -> Recovery {
    let said = separate_reasoning(text).map_or_else(|| text.to_owned(), |(said, _)| said);
    recover_text_calls(&said, &tools())
}

#[test]
fn hostile_text_costs_little() {
    const BYTES: usize = 2 << 20;
    for piece in PIECES {
        let text = piece.repeat(BYTES / piece.len());
        let start = Instant::now();
        drop(read(&text));
        drop(streamed(&text, BYTES));
        let took = start.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?} for {piece:?}");
    }
    for (first, second) in PIECES.iter().flat_map(|first| PIECES.iter().map(move |second| (first, second))) {
        let pair = format!("{first}{second}");
        let text = pair.repeat((64 << 10) / pair.len());
        let start = Instant::now();
        drop(read(&text));
        let took = start.elapsed();
        assert!(took < Duration::from_secs(1), "{took:?} for {pair:?}");
    }
    // A long call still counts.
    let content = "line\n".repeat(BYTES / 5);
    let long = json!({"name": "write_file", "arguments": {"content": content}});
    call(&format!("<tool_call>{long}</tool_call>"), "write_file", json!({"content": content}));
}

proptest! {
    #[test]
    fn no_text_makes_it_panic_or_name_a_tool_that_was_not_granted(
        text in "([a-z `\\n]|```|json|<tool_call>|</tool_call>|<invoke name=\"|<function=read>|\\{\"name\":\"rm\",\"arguments\":\\{\\}\\}|é){0,24}",
    ) {
        if let Recovery::Calls { calls, .. } = read(&text) {
            prop_assert!(calls.iter().all(|call| tools().iter().any(|tool| tool.name == call.name)));
        }
    }

    /// Any bytes, and any order of markers.
    #[test]
    fn no_order_of_markers_breaks_it(
        pieces in proptest::collection::vec(prop_oneof![
            proptest::sample::select(PIECES.to_vec()).prop_map(str::to_owned),
            any::<String>(),
            proptest::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
        ], 0..24),
        size in 1_usize..9,
    ) {
        let text = pieces.concat();
        if let Recovery::Calls { calls, text: said } = read(&text) {
            prop_assert!((1..=MAX_CALLS).contains(&calls.len()));
            prop_assert!(calls.iter().all(|call| tools().iter().any(|tool| tool.name == call.name)));
            prop_assert!(calls.iter().all(|call| call.arguments.is_object()));
            prop_assert!(said.len() < text.len());
        }
        // Streaming loses and adds nothing, except for tags and the white space around them.
        let (said, thought) = streamed(&text, size);
        prop_assert!(said.len() + thought.len() <= text.len());
        prop_assert_eq!(streamed(&text, size), streamed(&text, 1_000));
    }

    /// Text before a call does not change it, and half of a call is never a call.
    #[test]
    fn half_a_call_is_never_one(words in "[a-z ]{0,40}", value in "[a-z<>`{}\\[\\]]{1,20}", cut in 1_usize..200) {
        let arguments = json!({"path": value});
        let whole = [
            format!("{words}\n<tool_call>{}</tool_call>", json!({"name": "read", "arguments": arguments})),
            format!("{words}\n[TOOL_CALLS]read[ARGS]{arguments}"),
            format!("{words}\n<｜tool▁call▁begin｜>read<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>"),
            format!("{words}\n<|channel|>commentary to=functions.read<|message|>{arguments}<|call|>"),
        ];
        for text in whole {
            let expected = [TextCall { name: "read".into(), arguments: arguments.clone() }];
            prop_assert!(matches!(read(&text), Recovery::Calls { calls, .. } if calls == expected), "{}", text);
            let half = text.get(..text.floor_char_boundary(cut.min(text.len() - 1))).unwrap_or_default();
            if let Recovery::Calls { calls, .. } = read(half) {
                // All of its arguments were there: only the closing part is missing.
                prop_assert_eq!(calls, expected.clone());
            }
        }
    }
}
