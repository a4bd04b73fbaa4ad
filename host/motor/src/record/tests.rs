//! Tests of the record of a run.

use super::*;
use crate::request::OutgoingRequest;
use crate::toolbox::{ToolEffects, ToolResult};

fn check_sources(events: Vec<RunEvent>, expected: &[&str]) {
    let stored = |event| StoredEvent { at: Timestamp::from_millis(0), worked_ms: None, event };
    let created = created(vec![]);
    let mut record = RunRecord::created(RunId::parse("run_1").unwrap(), &stored(created)).unwrap();
    for event in [RunEvent::Started].into_iter().chain(events) {
        record.apply(&stored(event)).unwrap();
    }
    assert_eq!(record.web_sources, expected);
    // It was written before the run read anything.
    assert!(!record.task_is_tainted);
}

fn created(web_sources: Vec<String>) -> RunEvent {
    RunEvent::Created {
        agent: AgentName::default(),
        task: "t".into(),
        tools: vec![],
        max_iterations: 20,
        timeout_ms: 1,
        grant: Box::default(),
        key: None,
        energy: 0.0,
        approval_required: false,
        may_ask: false,
        detached: false,
        settled: false,
        credits: None,
        skill: None,
        web_sources,
        by_model: false,
        rules: RunRules::default(),
        money: RunMoney::default(),
    }
}

fn replied(cost_usd: Option<f64>) -> RunEvent {
    let usage = Usage { input_tokens: 10, output_tokens: 2, cost_usd, ..Usage::default() };
    let reply = llm::ChatReply { usage, ..llm::ChatReply::default() };
    RunEvent::ModelReplied { step: 1, reply, duration_ms: 1, recovered_call: false, dropped_calls: vec![], credits: 0 }
}

#[test]
fn costs_are_summed_in_whole_millionths_and_unknown_ones_counted() {
    let stored = |event| StoredEvent { at: Timestamp::from_millis(86_400_000), worked_ms: None, event };
    let mut record = RunRecord::created(RunId::parse("run_1").unwrap(), &stored(created(vec![]))).unwrap();
    record.apply(&stored(RunEvent::Started)).unwrap();
    for cost in [Some(0.1), Some(0.2), None, Some(0.000_001)] {
        record.apply(&stored(replied(cost))).unwrap();
    }
    assert_eq!((record.cost_usd, record.unpriced_replies), (Some(0.300_001), 1));
    assert_eq!((record.spent_of_day.day, record.spent_of_day.spend.replies), (1, 4));
    assert_eq!(record.spent_of_day.spend.usd, record.spent());
}

#[test]
fn a_replay_costs_nothing() {
    let stored = |event| StoredEvent { at: Timestamp::from_millis(1), worked_ms: None, event };
    let mut record = RunRecord::created(RunId::parse("run_1").unwrap(), &stored(created(vec![]))).unwrap();
    record.money.prices.insert("replay/a.jsonl", llm::ModelPrice::FREE);
    record.apply(&stored(RunEvent::Started)).unwrap();
    record.apply(&stored(replied(None))).unwrap();
    assert_eq!((record.cost_usd, record.unpriced_replies, record.spent_of_day.spend.unpriced), (None, 0, 0));
}

#[test]
fn a_run_stored_before_there_were_rules_and_money_is_still_read() {
    let first = r#"{"at":1,"event":{"type":"created","agent":"main","task":"t","tools":[],"max_iterations":20,"timeout_ms":600000,"settings":{},"energy":0.1}}"#;
    let reply = r#"{"at":2,"event":{"type":"model_replied","step":1,"reply":{"text":"a","reasoning":null,"tool_calls":[],"usage":{"input_tokens":10,"output_tokens":2,"cost_usd":0.25},"finish":"stop","model":"openai/x","retries":0},"duration_ms":5}}"#;
    let retried = r#"{"at":3,"event":{"type":"retried","attempt":1,"max_iterations":15}}"#;
    let read = |text: &str| serde_json::from_str::<StoredEvent>(text).unwrap();
    let mut record = RunRecord::created(RunId::parse("run_1").unwrap(), &read(first)).unwrap();
    assert_eq!((record.rules, &record.money), (RunRules::default(), &RunMoney::default()));
    let started = StoredEvent { at: Timestamp::from_millis(1), worked_ms: None, event: RunEvent::Started };
    record.apply(&started).unwrap();
    record.apply(&read(reply)).unwrap();
    assert_eq!((record.cost_usd, record.attempts_left()), (Some(0.25), 2));
    assert!(matches!(read(retried).event, RunEvent::Retried { usd: None, .. }));
    // The head of that version has none of the fields either.
    let mut head = serde_json::to_value(&record).unwrap();
    for field in ["rules", "money", "unpricedReplies", "spentOfDay"] {
        head.as_object_mut().unwrap().remove(field);
    }
    let head: RunRecord = serde_json::from_value(head).unwrap();
    assert_eq!((head.rules, head.cost_usd), (RunRules::default(), Some(0.25)));
}

#[test]
fn a_task_that_was_delegated_in_the_sight_of_web_content_is_tainted() {
    for (web_sources, expected) in [(vec![], false), (vec!["a.example".to_owned()], true)] {
        let event = created(web_sources);
        let stored = StoredEvent { at: Timestamp::from_millis(0), worked_ms: None, event };
        let record = RunRecord::created(RunId::parse("run_1").unwrap(), &stored).unwrap();
        assert_eq!(record.task_is_tainted, expected);
    }
}

fn intended(tool: &str, open_world: bool) -> RunEvent {
    RunEvent::ToolIntended {
        step: 1,
        call_id: "c".into(),
        tool: tool.into(),
        arguments: serde_json::Value::Null,
        idempotency_key: "k".into(),
        effects: ToolEffects { open_world, ..ToolEffects::default() },
        component: None,
        approval: None,
        grant: None,
        reserved: 0,
        began: None,
    }
}

fn returned(requests: Vec<OutgoingRequest>) -> RunEvent {
    RunEvent::ToolReturned {
        step: 1,
        call_id: "c".into(),
        tool: "fetch".into(),
        result: ToolResult::success("x"),
        usage: None,
        requests,
        notes: vec![],
        retried: false,
        recovered: false,
        credits: None,
        refused: vec![],
        held: false,
    }
}

fn asked(host: &str, status: Option<u16>) -> OutgoingRequest {
    let text = serde_json::json!({
        "method": "GET", "url": "u", "host": host, "status": status, "sentBytes": 0, "receivedBytes": 0, "durationMs": 1.0,
    });
    serde_json::from_value(text).unwrap()
}

#[test]
fn what_was_read_from_the_web_is_known_after_a_restart() {
    let read =
        || returned(vec![asked("a.example", Some(200)), asked("b.example", None), asked("a.example", Some(404))]);
    check_sources(vec![intended("fetch", true), read()], &["a.example"]);
    check_sources(vec![intended("fetch", true), read(), RunEvent::Resumed], &["a.example"]);
    // A call that died with the host may have read anything.
    check_sources(vec![intended("bash", true), RunEvent::Resumed], &["an interrupted call of `bash`"]);
    check_sources(vec![intended("read", false), RunEvent::Resumed], &[]);
    check_sources(vec![intended("bash", true), returned(vec![]), RunEvent::Resumed], &[]);
}
