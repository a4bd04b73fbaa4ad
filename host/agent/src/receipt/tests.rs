//! Receipts made from histories: their content, and that it only depends on the history.

use base::{ContentHash, Door};
use receipts::SigningKey;
use serde_json::{Value, json};

use super::*;

fn hash(text: &str) -> ContentHash {
    ContentHash::of(text.as_bytes())
}

fn call(tool: &str, component: Option<ContentHash>, requests: Value) -> Value {
    json!({
        "callId": tool, "tool": tool, "args": {}, "durationMs": 1, "component": component, "requests": requests,
    })
}

fn request(method: &str, host: &str, status: Option<u16>, more: Value) -> Value {
    let mut request = json!({
        "method": method, "url": format!("https://{host}/"), "host": host, "status": status, "sentBytes": 1,
        "receivedBytes": 2, "durationMs": 1.5,
    });
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    request
}

fn step(number: u32, model: &str, calls: &[Value]) -> Value {
    json!({
        "iteration": number, "timestamp": 5, "llmModel": model, "text": "", "durationMs": 1, "retries": 0,
        "usage": { "input_tokens": 1, "output_tokens": 1 }, "recoveredCall": false, "toolCalls": calls,
    })
}

fn trace(more: Value) -> RunTrace {
    let mut trace = json!({
        "runId": "run_1", "agent": "main", "task": "t".repeat(300), "tools": ["fetch"], "status": "completed",
        "createdAt": 1, "startedAt": 2, "completedAt": 9, "summary": "done", "steps": [], "transitions": [],
        "totalIterations": 2, "totalDurationMs": 7, "totalEnergyCost": 0.1 + 0.2, "llmCalls": 2, "toolCalls": 3,
        "totalUsage": { "input_tokens": 10, "output_tokens": 5, "cost_usd": 0.0123 }, "errors": 0,
    });
    trace.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    serde_json::from_value(trace).unwrap()
}

fn of(trace: &RunTrace) -> Receipt {
    receipt(trace, outcome(trace).unwrap(), &SigningKey::generate().unwrap().public())
}

#[test]
fn a_receipt_says_what_the_trace_says() {
    let (files, fetch) = (hash("files"), hash("fetch"));
    let requests = json!([
        request("GET", "a.example", Some(200), json!({ "credentials": ["key_b", "key_a"] })),
        request("POST", "a.example", Some(200), json!({ "credentials": ["key_a"] })),
        request("GET", "a.example", Some(404), json!({})),
        request("GET", "b.example:8443", None, json!({ "rule": "not_granted", "error": "no" })),
        request("GET", "", None, json!({ "rule": "invalid_url" })),
    ]);
    let steps = [
        step(1, "openai/a", &[call("read", Some(files), json!([])), call("nothing", None, json!([]))]),
        step(2, "openai/b", &[call("write", Some(files), json!([])), call("fetch", Some(fetch), requests)]),
        step(3, "openai/a", &[]),
    ];
    let artifact = json!({ "path": "out/a.txt", "bytes": 3, "hash": hash("abc") });
    let receipt =
        of(&trace(json!({ "steps": steps, "artifacts": [artifact], "unknownOutcomes": ["step 2: `fetch`"] })));
    assert_eq!(
        (receipt.status, receipt.attempts, receipt.result.as_deref()),
        (ReceiptOutcome::Completed, 1, Some("done"))
    );
    assert_eq!((receipt.task.hash, receipt.task.beginning.chars().count()), (hash(&"t".repeat(300)), 201));
    assert_eq!(receipt.models, ["openai/a", "openai/b"]);
    let mut components = [(files, vec!["read", "write"]), (fetch, vec!["fetch"])];
    components.sort();
    let found: Vec<_> = receipt.components.iter().map(|found| (found.hash, found.tools.clone())).collect();
    assert_eq!(found, components.map(|(hash, tools)| (hash, tools.into_iter().map(str::to_owned).collect())));
    let [a, b] = receipt.hosts.as_slice() else { panic!("{:?}", receipt.hosts) };
    assert_eq!((a.host.as_str(), a.requests, a.refused), ("a.example", 3, 0));
    assert_eq!(a.methods, ["GET", "POST"]);
    assert_eq!(a.statuses, [StatusCount { status: 200, count: 2 }, StatusCount { status: 404, count: 1 }]);
    assert_eq!((b.host.as_str(), b.requests, b.refused, b.statuses.len()), ("b.example:8443", 1, 1, 0));
    assert_eq!(receipt.credentials, ["key_a", "key_b"]);
    assert_eq!(receipt.unknown_outcomes, ["step 2: `fetch`"]);
    assert_eq!((receipt.energy.millionths, receipt.cost_micro_usd), (300_000, Some(12_300)));
    assert_eq!((receipt.tokens.input, receipt.tokens.output), (10, 5));
    assert_eq!((receipt.artifacts.len(), receipt.artifacts[0].hash), (1, hash("abc")));
    assert_eq!((receipt.created_at.as_millis(), receipt.completed_at.unwrap().as_millis()), (1, 9));
}

#[test]
fn people_are_named_with_what_they_said() {
    let consent = json!({ "givenBy": "owner", "door": "terminal", "at": 4 });
    let item = json!({ "callId": "c", "tool": "fetch", "summary": "POST", "arguments": {}, "actionHash": hash("x") });
    let approval = |id: &str, more: Value| {
        let mut approval = json!({
            "id": id, "step": 1, "items": [item], "reason": "it writes", "choices": ["once"], "askedAt": 1,
            "expiresAt": 2,
        });
        approval.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        approval
    };
    let question = json!({
        "id": "ask_1", "step": 1, "callId": "c", "question": "which one?", "askedAt": 1, "expiresAt": 2,
    });
    let mut answered = question.clone();
    answered
        .as_object_mut()
        .unwrap()
        .extend(json!({ "answer": "that", "consent": consent }).as_object().unwrap().clone());
    let receipt = of(&trace(json!({
        "questions": [question, answered],
        "approvals": [
            approval("apr_1", json!({ "granted": true, "scope": "run", "consent": consent })),
            approval("apr_2", json!({ "granted": false, "scope": "once", "consent": consent })),
            approval("apr_3", json!({})),
        ],
    })));
    let said: Vec<_> = receipt.approvals.iter().map(|approval| (approval.granted, approval.scope.as_deref())).collect();
    assert_eq!(said, [(true, Some("run")), (false, Some("once")), (false, None)]);
    assert_eq!(receipt.approvals[0].actions, [ReceiptAction { summary: "POST".into(), hash: hash("x") }]);
    assert_eq!(receipt.approvals[0].consent.as_ref().unwrap().door, Door::Terminal);
    assert_eq!(receipt.approvals[2].consent, None);
    // A question without an answer adds no entry.
    let [answer] = receipt.answers.as_slice() else { panic!("{:?}", receipt.answers) };
    assert_eq!((answer.question.as_str(), answer.consent.given_by.as_str()), ("which one?", "owner"));
}

#[test]
fn only_a_run_that_is_over_has_a_receipt() {
    for (status, over) in [
        ("completed", true),
        ("failed", true),
        ("cancelled", true),
        ("created", false),
        ("running", false),
        ("awaiting_input", false),
        ("awaiting_approval", false),
    ] {
        let trace = trace(json!({ "status": status }));
        match outcome(&trace) {
            Ok(outcome) => assert!(over && outcome.as_str() == status),
            Err(refusal) => assert!(!over && refusal.code == RefusalCode::IllegalState, "{status}"),
        }
    }
    let error = json!({ "category": "tool_failure", "message": "it broke" });
    let receipt = of(&trace(json!({ "status": "failed", "error": error, "summary": "I was about to" })));
    assert_eq!((receipt.result, receipt.error.as_deref()), (None, Some("it broke")));
}

#[test]
fn amounts_are_whole() {
    for (amount, expected) in
        [(0.0, 0), (0.1 + 0.2, 300_000), (1e-7, 0), (-1.0, 0), (f64::NAN, 0), (f64::INFINITY, u64::MAX)]
    {
        assert_eq!(millionths(amount), expected, "{amount}");
    }
}
