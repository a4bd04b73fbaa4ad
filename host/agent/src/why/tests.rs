//! Origins found in traces: the right call, its sources and permissions, and an honest end of the record.

use base::Door;
use serde_json::json;

use super::*;

fn result(output: &str, provenance: &str) -> Value {
    json!({ "ok": true, "output": output, "retryable": false, "provenance": provenance, "durationMs": 1 })
}

fn call(id: &str, tool: &str, args: Value, result: Value) -> Value {
    json!({ "callId": id, "tool": tool, "args": args, "durationMs": 1, "component": ContentHash::of(b"x"), "result": result })
}

fn step(number: u32, text: &str, calls: &[Value]) -> Value {
    json!({
        "iteration": number, "timestamp": 5, "llmModel": "a/m", "text": text, "durationMs": 1, "retries": 0,
        "usage": { "input_tokens": 1, "output_tokens": 1 }, "recoveredCall": false, "toolCalls": calls,
    })
}

fn trace() -> RunTrace {
    let mut page = call("c1", "fetch", json!({ "url": "https://a.example/" }), result("hello", "web"));
    page["requests"] = json!([{
        "method": "GET", "url": "https://a.example/", "host": "a.example", "status": 200, "sentBytes": 0,
        "receivedBytes": 5, "durationMs": 1.0,
    }, {
        "method": "POST", "url": "https://b.example/", "host": "b.example", "sentBytes": 0, "receivedBytes": 0,
        "durationMs": 1.0, "rule": "not_granted", "error": "no",
    }]);
    let done = || result("done", "internal");
    let steps = [
        step(1, "I look.", &[page]),
        step(
            2,
            "I write.",
            &[
                call("c2", "write", json!({ "path": "report.md", "content": "# Title\nhello\n" }), done()),
                call(
                    "c3",
                    "write",
                    json!({ "path": "/workspace/other.md", "content": "see report.md\nhello\n" }),
                    done(),
                ),
            ],
        ),
        step(3, "", &[call("c4", "read", json!({ "path": "report.md" }), result("# Title", "internal"))]),
        step(
            4,
            "",
            &[call("c5", "patch", json!({ "path": "./report.md", "find": "hello", "replace": "bye" }), done())],
        ),
        step(5, "", &[call("c6", "bash", json!({ "command": "date >> report.md" }), done())]),
    ];
    let approval = json!({
        "id": "apr_1", "step": 4, "items": [{
            "callId": "c5", "tool": "patch", "summary": "patch it", "arguments": {}, "actionHash": ContentHash::of(b"a"),
        }],
        "reason": "r", "askedAt": 1, "expiresAt": 2, "choices": ["once"], "granted": true, "scope": "once",
        "consent": { "givenBy": "owner", "at": 3, "door": Door::Terminal },
    });
    serde_json::from_value(json!({
        "runId": "run_1", "agent": "main", "task": "t", "tools": ["fetch", "write", "patch", "bash"], "status": "completed",
        "createdAt": 1, "summary": "done", "steps": steps, "transitions": [], "totalIterations": 5, "totalDurationMs": 7,
        "totalEnergyCost": 0.1, "llmCalls": 5, "toolCalls": 6, "errors": 0, "approvals": [approval],
        "totalUsage": { "input_tokens": 10, "output_tokens": 5 },
        "artifacts": [{ "path": "report.md", "bytes": 30, "hash": ContentHash::of(b"r") }],
    }))
    .unwrap()
}

fn grant() -> Grant {
    Grant { domains: vec!["a.example".parse().unwrap()], ..Grant::default() }
}

fn of_line(number: usize) -> WhyReply {
    let content = Some(b"# Title\nbye all\nThu Nov 26\n\n".to_vec());
    of_file(&trace(), &grant(), "report.md", Some(number), &KnownFile { content, steps: None }).unwrap()
}

fn ids(reply: &WhyReply) -> Vec<&str> {
    reply.calls.iter().map(|call| call.call_id.as_str()).collect()
}

#[test]
fn a_line_came_from_the_last_call_that_holds_it() {
    let title = of_line(1);
    assert_eq!((ids(&title), title.line.as_deref()), (vec!["c2"], Some("# Title")));
    let call = &title.calls[0];
    assert_eq!((call.step, call.model.as_str(), call.reply.as_str()), (2, "a/m", "I write."));
    assert_eq!(call.allowed[0].what, "the run was granted the tool `write`");
    assert_eq!(title.read_before.len(), 1, "{title:?}");
    assert_eq!(title.read_before[0].what, "GET https://a.example/ (200)");
    assert!(title.read_before[0].is_untrusted);

    let patched = of_line(2);
    assert_eq!((ids(&patched), patched.calls[0].because.as_str()), (vec!["c5"], "it put a part of the line in"));
    // A request that the owner allowed is named with the owner's word.
    let consent = patched.calls[0].allowed.iter().find_map(|allowed| allowed.consent.as_ref()).unwrap();
    assert_eq!(consent.given_by, "owner");
    assert_eq!(patched.read_before.len(), 2, "a file that it read itself is a source too: {patched:?}");
    assert!(!patched.read_before[1].is_untrusted);
}

#[test]
fn a_line_that_no_call_holds_is_not_attributed_for_certain() {
    for number in [3, 4] {
        let reply = of_line(number);
        assert_eq!(ids(&reply), ["c6"], "the last call that may have written the file");
        assert!(reply.not_recorded.iter().any(|missing| missing.contains("which call wrote this line")), "{reply:?}");
    }
    assert!(!of_line(1).not_recorded.iter().any(|missing| missing.contains("which call wrote this line")));
}

#[test]
fn a_file_came_from_the_calls_that_write_it_and_not_from_those_that_read_or_name_it() {
    let reply = of_file(&trace(), &grant(), "report.md", None, &KnownFile::default()).unwrap();
    assert_eq!(ids(&reply), ["c6", "c5", "c2"]);
    let other = of_file(&trace(), &grant(), "other.md", None, &KnownFile::default()).unwrap();
    assert_eq!(ids(&other), ["c3"]);
    let touched = KnownFile { content: None, steps: Some(vec![5]) };
    let reply = of_file(&trace(), &grant(), "report.md", None, &touched).unwrap();
    assert_eq!(ids(&reply), ["c6"]);
    let unknown = of_file(&trace(), &grant(), "port.md", None, &KnownFile::default()).unwrap_err();
    assert_eq!(unknown.code, RefusalCode::NotFound);
    let beyond = KnownFile { content: Some(b"one\n".to_vec()), steps: None };
    let refusal = of_file(&trace(), &grant(), "report.md", Some(2), &beyond).unwrap_err();
    assert_eq!((refusal.code, refusal.reason.as_str()), (RefusalCode::NotFound, "`report.md` has 1 line"));
}

#[test]
fn a_request_names_its_call_and_the_rule() {
    let reply = of_request(&trace(), &grant(), 1).unwrap();
    assert_eq!((ids(&reply), reply.subject.as_str()), (vec!["c1"], "request 1: GET https://a.example/"));
    assert!(reply.calls[0].allowed.iter().any(|allowed| allowed.what.contains("`a.example`")), "{reply:?}");
    assert_eq!(reply.read_before, []);
    let refused = of_request(&trace(), &grant(), 2).unwrap();
    assert_eq!(refused.calls[0].allowed.len(), 1);
    assert!(refused.calls[0].allowed[0].what.contains("refused it (not_granted)"), "{refused:?}");
    // Reached by a rule that is no grant of the run: that is said, not guessed.
    let elsewhere = of_request(&trace(), &Grant::default(), 1).unwrap();
    assert!(elsewhere.not_recorded.iter().any(|missing| missing.contains("which rule")), "{elsewhere:?}");
    for number in [0, 3] {
        assert_eq!(of_request(&trace(), &grant(), number).unwrap_err().code, RefusalCode::NotFound);
    }
}

#[test]
fn an_answer_draws_on_the_results_of_its_attempt() {
    let reply = of_answer(&trace(), &grant()).unwrap();
    assert_eq!(ids(&reply), ["c6", "c5", "c4", "c3", "c2", "c1"]);
    let first = |index: u32, step: u32| json!({ "index": index, "startedAt": 1, "firstStep": step });
    let mut retried = serde_json::to_value(trace()).unwrap();
    retried["attempts"] = json!([first(0, 1), first(1, 4)]);
    let retried: RunTrace = serde_json::from_value(retried).unwrap();
    assert_eq!(ids(&of_answer(&retried, &grant()).unwrap()), ["c6", "c5"]);
    let unfinished = RunTrace { summary: None, ..trace() };
    assert_eq!(of_answer(&unfinished, &grant()).unwrap_err().code, RefusalCode::NotFound);
}

#[test]
fn a_path_of_the_owner_is_one_of_the_workspace() {
    let directory = json!({ "path": "/home/o/p", "prefix": "p" });
    let of = |file: &str| {
        let mut grant = serde_json::to_value(Grant::default()).unwrap();
        grant["directories"] = json!([directory]);
        workspace_path(file, &serde_json::from_value(grant).unwrap())
    };
    for (file, expected) in
        [("a.md", "a.md"), ("./a.md", "a.md"), ("/workspace/b/a.md", "b/a.md"), ("/home/o/p/src/a.rs", "p/src/a.rs")]
    {
        assert_eq!(of(file).unwrap(), expected, "{file}");
    }
    assert_eq!(of("/etc/passwd").unwrap_err().code, RefusalCode::NotFound);
}

#[test]
fn a_path_is_named_as_a_whole() {
    for (text, expected) in
        [("cat a.md", true), ("'/workspace/a.md'", true), ("aa.md", false), ("a.mdx", false), ("aa.md a.md", true)]
    {
        assert_eq!(names_path(text, "a.md"), expected, "{text}");
    }
}
