//! The view of a run for people: nothing hidden, nothing wider than the terminal, the source of each answer named.

use expect_test::expect;
use serde_json::json;

use super::*;

fn trace() -> RunTrace {
    let result = |ok: bool, output: &str| {
        let code = (!ok).then_some("not_found");
        json!({ "ok": ok, "output": output, "errorCode": code, "retryable": false, "provenance": "internal", "durationMs": 12 })
    };
    let usage = json!({ "input_tokens": 1_234, "output_tokens": 56 });
    let steps = json!([{
        "iteration": 1, "timestamp": 2_000, "llmModel": "openai/x", "text": "let me look", "usage": usage,
        "durationMs": 1_200, "retries": 0, "recoveredCall": false,
        "toolCalls": [
            { "callId": "a", "tool": "read", "args": { "path": "orders.csv" }, "durationMs": 12, "fuel": 1_234_567,
              "peakMemoryBytes": 1_179_648, "result": result(true, &"id,region\n".repeat(40)) },
            { "callId": "b", "tool": "read", "args": { "path": "no.csv" }, "durationMs": 3, "fuel": 9_000,
              "result": result(false, "`no.csv` does not exist") },
            { "callId": "c", "tool": "code", "args": { "code": "return 1" }, "durationMs": 0 },
        ],
    }]);
    let error = json!({ "category": "tool_failure", "message": "`read` failed 3 times", "lastStep": "step 1: read" });
    serde_json::from_value(json!({
        "runId": "run_01khzabcdefghijk", "agent": "main", "task": "Work out the totals\nof every region",
        "tools": ["code", "read"], "status": "failed", "createdAt": 1_000, "startedAt": 1_000, "completedAt": 4_500,
        "summary": "I could not\u{1b}[2J", "error": error, "transitions": [], "totalIterations": 1,
        "totalDurationMs": 3_500, "totalEnergyCost": 0.1, "totalUsage": usage, "llmCalls": 1, "toolCalls": 2,
        "errors": 1, "steps": steps,
    }))
    .unwrap()
}

#[test]
fn a_run_fits_80_columns_and_shows_each_call() {
    let text = render(&trace(), Timestamp::from_millis(65_000), 80, Palette::new(false));
    expect![[r#"
        run_01khzabcdefghijk  failed in 3.5 s
        task      Work out the totals of every region
        agent     main
        tools     code, read
        created   1970-01-01 00:00:01, 1 min ago
        model     1 call, 1,234 tokens in, 56 out
        calls     2 tool calls, 1 failed
        energy    0.10

        step 1  openai/x  1.2 s  1,234 tokens in, 56 out
          said      let me look
          ✓ read  ok  12 ms  fuel 1.2 M  1.1 MiB  internal
            arguments {"path":"orders.csv"}
            result    id,region id,region id,region id,region id,region id,region id,re…
          ✗ read  not_found  3 ms  fuel 9.0 k  internal
            arguments {"path":"no.csv"}
            result    `no.csv` does not exist
          · code  no result
            arguments {"code":"return 1"}

        error     `read` failed 3 times (at step 1: read)

        said last
        I could not�[2J
    "#]]
    .assert_eq(&text);
    assert!(text.lines().all(|line| text::width(line) <= 80));
}

#[test]
fn what_was_asked_by_whom_it_was_answered_and_each_attempt_are_there() {
    let consent = json!({ "givenBy": "owner", "door": "token", "at": 3_000 });
    let mut approval = crate::words::card::tests::approval(json!({}));
    approval.as_object_mut().unwrap().extend([
        ("step".to_owned(), json!(1)),
        ("granted".to_owned(), json!(true)),
        ("scope".to_owned(), json!("run")),
        ("consent".to_owned(), consent.clone()),
    ]);
    let mut trace = trace();
    trace.approvals = serde_json::from_value(json!([approval])).unwrap();
    let question = json!({ "id": "ask_1", "step": 1, "callId": "a", "question": "Which\u{202e}?", "askedAt": 1, "expiresAt": 2,
        "answer": "red", "consent": { "givenBy": "owner", "door": "terminal", "at": 3_000 } });
    trace.questions = serde_json::from_value(json!([question])).unwrap();
    trace.attempts = serde_json::from_value(json!([
        { "index": 0, "startedAt": 1_000, "firstStep": 1, "error": { "category": "unknown", "message": "no" } },
        { "index": 1, "startedAt": 1_000, "firstStep": 1 },
        { "index": 2, "startedAt": 1_000, "firstStep": 2, "guidance": "slower" },
    ]))
    .unwrap();
    trace.waiting = serde_json::from_value(crate::words::card::tests::approval(json!({ "n": 1 }))).unwrap();
    let text = render(&trace, Timestamp::from_millis(65_000), 80, Palette::new(false));
    for words in [
        "attempt 1\n  failed    no\n\nattempt 2\n\nstep 1",
        "  asked     Which<U+202E>?\n  answer    red (by owner at the terminal)\n",
        "  asked     may it: POST https://rooms.example.com/book\n  decision  allowed (run) by owner with the token\n",
        "attempt 3\n  guidance  slower\n",
        "asks for consent (apr_0123456789ab)",
        "help      `motor task approve run_01khzabcdefghijk` answers",
    ] {
        assert!(text.contains(words), "{words:?} is missing:\n{text}");
    }
    assert!(text.lines().all(|line| text::width(line) <= 80));
}

#[test]
fn on_request_nothing_is_cut() {
    let text = render(&trace(), Timestamp::from_millis(65_000), usize::MAX, Palette::new(false));
    assert_eq!(text.matches("id,region").count(), 40);
    assert!(!text.contains('…') && !text.contains('\u{1b}'));
}
