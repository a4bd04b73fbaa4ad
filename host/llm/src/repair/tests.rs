//! Tool calls written as text: what is recovered, what stays text, what is ambiguous.

use serde_json::json;

use super::*;

fn tools() -> Vec<ToolSpec> {
    ["read", "list", "write_file"]
        .map(|name| ToolSpec { name: name.into(), description: String::new(), parameters: json!({"type": "object"}) })
        .to_vec()
}

fn call(text: &str, name: &str, arguments: Value) {
    match recover_text_calls(text, &tools()) {
        Recovery::Call { name: found, arguments: with, .. } => {
            assert_eq!((found.as_str(), with), (name, arguments), "{text}");
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
    let Recovery::Call { text, .. } = recover_text_calls(text, &tools()) else { panic!() };
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
    ambiguous(
        "<tool_call>{\"name\":\"read\",\"arguments\":{}}</tool_call><tool_call>{\"name\":\"list\",\"arguments\":{}}</tool_call>",
        "more than one",
    );
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

#[test]
fn hostile_text_costs_little() {
    let start = std::time::Instant::now();
    for piece in
        ["<tool_call>", "<function=", "<invoke name=\"a\">", "```\n", "\n{", "`", "[", "{\"name\":", "<function=a>{"]
    {
        drop(recover_text_calls(&piece.repeat(MAX_BYTES / piece.len()), &tools()));
    }
    assert_eq!(recover_text_calls(&"x".repeat(MAX_BYTES * 4), &tools()), Recovery::None);
    assert!(start.elapsed() < std::time::Duration::from_secs(10), "{:?}", start.elapsed());
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic_or_name_a_tool_that_was_not_granted(
        text in "([a-z `\\n]|```|json|<tool_call>|</tool_call>|<invoke name=\"|<function=read>|\\{\"name\":\"rm\",\"arguments\":\\{\\}\\}|é){0,24}",
    ) {
        if let Recovery::Call { name, .. } = recover_text_calls(&text, &tools()) {
            assert!(granted(&name, &tools()));
        }
    }
}
