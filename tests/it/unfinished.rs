//! Replies that are not answers, in the whole program: cut off, filtered, refused, or a call written as text
//! (SPEC RUN-4, LLM-2). Nothing of them reaches stdout.

use serde_json::{Value, json};
use tests::binary::{Ended, Motor};
use tests::block_on;
use tests::model_server::ModelServer;

/// Runs a script with file tools; how it ended, its trace, and the server.
fn run(turns: Value) -> (Ended, Value, ModelServer) {
    let server = block_on(ModelServer::scripted(json!({ "turns": turns })));
    let motor = Motor::with_model(&server);
    let data = motor.file("data.csv", "item,quantity\n");
    let ended = motor.run(&["act", "x", "--tools", "filesystem", "--file", data.to_str().unwrap()]);
    let trace = motor.json(&["task", "status"]);
    (ended, trace, server)
}

/// The last message to the model.
fn told(server: &ModelServer) -> String {
    let requests = server.requests();
    let messages = requests.last().unwrap().body["messages"].as_array().unwrap();
    messages.last().unwrap()["content"].as_str().unwrap_or_default().to_owned()
}

#[track_caller]
fn fails(turns: Value, words: &[&str]) -> (Value, ModelServer) {
    let (ended, trace, server) = run(turns);
    ended.failed(1, words);
    assert!(ended.stderr.contains("help:"), "{ended:?}");
    assert_eq!((&trace["status"], &trace["error"]["category"]), (&json!("failed"), &json!("model_failure")));
    (trace, server)
}

#[test]
fn half_an_answer_is_continued_and_printed_as_one() {
    let (ended, trace, server) =
        run(json!([{ "text": "The order comes to 6", "finish": "length" }, { "text": "1.5, in all." }]));
    assert_eq!(ended.succeeded().stdout, "The order comes to 61.5, in all.\n");
    assert_eq!((&trace["summary"], &trace["llmCalls"]), (&json!("The order comes to 61.5, in all."), &json!(2)));
    assert!(told(&server).contains("go on exactly where it stopped"), "{}", told(&server));
    assert!(trace["steps"][0]["hostMessages"][0].as_str().unwrap().contains("limit of output tokens"), "{trace:#}");
}

#[test]
fn an_answer_that_is_cut_off_twice_fails_the_attempt() {
    let half = json!({ "text": "The order comes to", "finish": "length" });
    let (_, server) = fails(json!([half, half, { "text": "never" }]), &["limit of output tokens", "shorter answer"]);
    assert_eq!(server.calls(), 2);
}

#[test]
fn half_a_call_is_not_made() {
    let write = |text: &str, finish: &str| json!({ "tool_calls": [{ "name": "write", "arguments_text": text }], "finish": finish });
    let half = r#"{"path": "out.txt", "content": "one"#;
    // Also a call that could be read: the part that the limit cut off is not known.
    for half in [half.to_owned(), format!("{half}\"}}")] {
        let whole = write(r#"{"path": "out.txt", "content": "two"}"#, "tool_calls");
        let (ended, trace, server) = run(json!([write(&half, "length"), whole, { "text": "done" }]));
        assert_eq!(ended.succeeded().stdout, "done\n");
        assert_eq!(trace["toolCalls"], 1);
        assert_eq!(trace["steps"][1]["toolCalls"][0]["args"]["content"], "two");
        let second = server.requests()[1].body["messages"].to_string();
        assert!(second.contains("within its tool calls (`write`)") && !second.contains("\"tool_calls\""), "{second}");
    }
    let (trace, _) = fails(json!([write(half, "length"), write(half, "length")]), &["limit of output tokens"]);
    assert_eq!(trace["toolCalls"], 0);
}

#[test]
fn a_reply_that_the_provider_ended_is_no_answer() {
    let call = json!([{ "name": "write", "arguments": { "path": "out.txt", "content": "x" } }]);
    for finish in ["content_filter", "refusal", "model_context_window_exceeded", "a_reason_of_tomorrow"] {
        let (trace, server) = fails(json!([{ "text": "The order comes to", "finish": finish }]), &[]);
        assert_eq!((server.calls(), &trace["toolCalls"]), (1, &json!(0)), "{finish}");
        let (trace, _) = fails(json!([{ "tool_calls": call, "finish": finish }]), &[]);
        assert_eq!(trace["toolCalls"], 0, "{finish}");
    }
}

#[test]
fn calls_in_the_formats_of_models_are_made() {
    let read = r#"{"name": "read", "arguments": {"path": "data.csv"}}"#;
    let channel = "<|channel|>analysis<|message|>I need it.<|end|><|start|>assistant<|channel|>commentary";
    for text in [
        format!("<tool_call>{read}</tool_call>\n<tool_call>{read}</tool_call>"),
        format!("[TOOL_CALLS][{read}, {read}]"),
        "[TOOL_CALLS]read[ARGS]{\"path\": \"data.csv\"}[TOOL_CALLS]read[ARGS]{\"path\": \"data.csv\"}".to_owned(),
        format!("<|python_tag|>{read}; {read}<|eom_id|>"),
        format!("{channel} to=functions.read<|message|>{{\"path\": \"data.csv\"}}<|call|>"),
        "<think>hm</think><｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{\"path\": \"data.csv\"}\
         <｜tool▁call▁end｜><｜tool▁calls▁end｜>"
            .to_owned(),
    ] {
        let (ended, trace, _server) = run(json!([{ "text": text }, { "text": "done" }]));
        assert_eq!(ended.succeeded().stdout, "done\n", "{text}");
        let step = &trace["steps"][0];
        assert_eq!((&step["recoveredCall"], &step["text"]), (&json!(true), &json!("")), "{text}");
        for call in step["toolCalls"].as_array().unwrap() {
            assert_eq!((&call["tool"], &call["result"]["ok"]), (&json!("read"), &json!(true)), "{text}");
        }
        let expected = 1 + u64::from(text.matches("read").count() > 1);
        assert_eq!(trace["toolCalls"], expected, "{text}");
    }
}

#[test]
fn a_call_that_cannot_be_read_is_never_printed() {
    for text in [
        "[TOOL_CALLS]read[ARGS]{\"path\": data.csv}",
        "<|python_tag|>read.call(path=\"data.csv\")",
        "<|channel|>commentary to=browser.search<|message|>{\"query\": \"rows\"}<|call|>",
        "I look.\n\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"data.csv\"}}\n```\n\nThen I add it up.",
    ] {
        let (_, server) = fails(json!([{ "text": text }, { "text": text }]), &["twice in a row"]);
        assert_eq!(server.calls(), 2, "{text}");
        assert!(told(&server).contains("call it as a tool and not in text"), "{text}\n{}", told(&server));
    }
}

#[test]
fn an_answer_about_such_a_format_is_an_answer() {
    for text in [
        "Mistral writes [TOOL_CALLS] before its calls, Llama <|python_tag|>.",
        "Qwen's form, for example:\n\n```\n<tool_call>\n{\"name\": \"read\", \"arguments\": {}}\n</tool_call>\n```",
        "The model puts its reasoning in `<think>` tags.",
    ] {
        let (ended, trace, _server) = run(json!([{ "text": text }]));
        assert_eq!(ended.succeeded().stdout, format!("{text}\n"));
        assert_eq!(trace["llmCalls"], 1);
    }
}

#[test]
fn reasoning_is_not_printed() {
    let text = "<think>Six times seven.\nThat is 42.</think>\n\nIt is 42.";
    let (ended, trace, _server) = run(json!([{ "text": text }]));
    let ended = ended.succeeded();
    assert_eq!(ended.stdout, "It is 42.\n");
    assert_eq!(trace["steps"][0]["reasoning"], "Six times seven.\nThat is 42.");
}

#[test]
fn parallel_calls_that_fail_are_seen_by_the_model() {
    let read = |path: &str| json!({ "name": "read", "arguments": { "path": path } });
    let calls = json!([read("a.csv"), read("b.csv"), read("c.csv")]);
    let (ended, trace, server) = run(json!([{ "tool_calls": calls }, { "text": "There are none." }]));
    assert_eq!(ended.succeeded().stdout, "There are none.\n");
    assert_eq!((&trace["errors"], server.calls()), (&json!(3), 2));
    let calls = json!({ "tool_calls": [read("a.csv"), read("b.csv")] });
    let (ended, trace, _server) = run(json!([calls, calls, calls, { "text": "never" }]));
    ended.failed(1, &["`read` failed in 3 replies in a row with `not_found`"]);
    assert_eq!(trace["error"]["category"], "tool_failure");
}
