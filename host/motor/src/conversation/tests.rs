//! Tests of the conversation of a run.

use base::{AgentName, ErrorCode};
use llm::FinishReason;
use serde_json::json;

use super::*;

fn created() -> RunEvent {
    RunEvent::Created {
        agent: AgentName::default(),
        task: "add".into(),
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
        web_sources: vec![],
        by_model: false,
        rules: RunRules::default(),
        money: crate::RunMoney::default(),
    }
}

fn replied(step: u32, text: &str, calls: &[&str]) -> RunEvent {
    let tool_calls = calls
        .iter()
        .map(|id| RequestedCall { id: (*id).into(), name: "read".into(), arguments: Arguments::Json(json!({})) })
        .collect();
    let finish = FinishReason::Stop;
    let reply = ChatReply { text: text.into(), tool_calls, finish, model: "m".into(), ..ChatReply::default() };
    RunEvent::ModelReplied { step, reply, duration_ms: 0, recovered_call: false, dropped_calls: vec![], credits: 0 }
}

fn intended(call_id: &str) -> RunEvent {
    RunEvent::ToolIntended {
        step: 1,
        call_id: call_id.into(),
        tool: "read".into(),
        arguments: json!({}),
        idempotency_key: format!("key-{call_id}"),
        effects: ToolEffects::default(),
        component: None,
        approval: None,
        grant: None,
        reserved: 0,
        began: None,
    }
}

fn returned(call_id: &str, result: ToolResult) -> RunEvent {
    RunEvent::ToolReturned {
        step: 1,
        call_id: call_id.into(),
        tool: "read".into(),
        result,
        usage: None,
        requests: vec![],
        notes: vec![],
        retried: false,
        recovered: false,
        credits: None,
        refused: vec![],
        held: false,
    }
}

fn told(reason: TellReason) -> RunEvent {
    RunEvent::Told { step: 1, reason, text: "hm".into() }
}

fn said(while_asked: bool) -> RunEvent {
    let consent = serde_json::from_value(json!({ "givenBy": "owner", "at": 1, "door": "token" })).unwrap();
    RunEvent::OwnerSaid { step: 1, text: "in metres".into(), while_asked, consent }
}

/// The last message of the next request, which is one of the user.
fn last(conversation: &Conversation) -> String {
    match conversation.messages(usize::MAX, RunRules::default()).pop() {
        Some(Message::User { text }) => text,
        other => panic!("{other:?}"),
    }
}

fn fold(events: &[RunEvent]) -> Conversation {
    let mut conversation = Conversation::default();
    for event in events {
        conversation.apply(event);
    }
    conversation
}

fn roles(conversation: &Conversation) -> String {
    conversation
        .messages(usize::MAX, RunRules::default())
        .iter()
        .map(|message| match message {
            Message::User { .. } => 'u',
            Message::Assistant { .. } => 'a',
            Message::Tool { .. } => 't',
        })
        .collect()
}

#[test]
fn what_comes_next() {
    let ok = || ToolResult::success("x");
    let next = |events: &[RunEvent]| match fold(events).next() {
        NextStep::AskModel { step } => format!("ask {step}"),
        NextStep::Call(open) => format!("call {}", open.call.id),
        NextStep::InFlight => {
            let calls = fold(events).in_flight();
            format!("in flight {}", calls.iter().map(|call| call.call.id.as_str()).collect::<Vec<_>>().join(" "))
        }
        NextStep::Judge(reply) => format!("judge {}", reply.text),
    };
    let mut events = vec![created()];
    assert_eq!(next(&events), "ask 1");
    events.push(replied(1, "", &["a", "b"]));
    assert_eq!(next(&events), "call a");
    events.push(intended("a"));
    assert_eq!(next(&events), "in flight a");
    events.push(returned("a", ok()));
    assert_eq!(next(&events), "call b");
    events.push(returned("b", ok()));
    assert_eq!(next(&events), "ask 2");
    events.push(replied(2, "42", &[]));
    assert_eq!(next(&events), "judge 42");
    events.push(told(TellReason::AmbiguousCall));
    assert_eq!(next(&events), "ask 3");
}

#[test]
fn results_stand_in_the_order_of_the_calls() {
    let result = |id: &str, held| {
        let RunEvent::ToolReturned { step, call_id, tool, result, .. } = returned(id, ToolResult::success(id)) else {
            panic!("not a result")
        };
        let (usage, credits) = (None, None);
        let (requests, notes, refused) = (vec![], vec![], vec![]);
        let (retried, recovered) = (false, false);
        RunEvent::ToolReturned {
            step,
            call_id,
            tool,
            result,
            usage,
            requests,
            notes,
            retried,
            recovered,
            credits,
            refused,
            held,
        }
    };
    let mut conversation = fold(&[created(), replied(1, "", &["a", "b", "c", "d"])]);
    for event in ["a", "b", "c"].map(intended) {
        conversation.apply(&event);
    }
    assert_eq!(conversation.next(), NextStep::InFlight);
    // `a` is held, so the results behind it are there first.
    for (id, held) in [("a", true), ("b", false), ("c", false)] {
        conversation.apply(&result(id, held));
    }
    assert!(matches!(conversation.next(), NextStep::Call(open) if open.call.id == "a" && open.held.is_some()));
    for id in ["a", "d"] {
        conversation.apply(&intended(id));
        conversation.apply(&result(id, false));
    }
    let messages = conversation.messages(usize::MAX, RunRules::default());
    let results = messages.iter().filter_map(|message| match message {
        Message::Tool { content, .. } => Some(content.as_str()),
        _ => None,
    });
    assert_eq!(results.collect::<Vec<_>>(), ["a", "b", "c", "d"]);
    assert_eq!(conversation.next(), NextStep::AskModel { step: 2 });
}

#[test]
fn the_host_does_not_speak_between_a_call_and_its_result() {
    let ok = || ToolResult::success("x");
    let open = [created(), replied(1, "", &["a", "b"]), returned("a", ok()), told(TellReason::Repetition)];
    assert_eq!(roles(&fold(&open)), "uat");
    let closed = [open.as_slice(), &[returned("b", ok())]].concat();
    assert_eq!(roles(&fold(&closed)), "uattu");
}

#[test]
fn an_empty_reply_keeps_its_turn() {
    let conversation = fold(&[created(), replied(1, " ", &[]), told(TellReason::EmptyReply)]);
    assert_eq!(roles(&conversation), "uau");
    assert_eq!(conversation.corrections(), 1);
}

#[test]
fn after_reading_from_the_web_everything_is_fenced() {
    let fetched = ToolResult { provenance: Provenance::Web, ..ToolResult::success("page") };
    let before = fold(&[created(), replied(1, "", &["a"]), returned("a", ToolResult::success("plain"))]);
    assert!(
        matches!(&before.messages(usize::MAX, RunRules::default())[2], Message::Tool { content, .. } if content == "plain")
    );
    let after = fold(&[
        created(),
        replied(1, "", &["a", "b"]),
        returned("a", fetched),
        returned("b", ToolResult::failure(ErrorCode::NotFound, "no file")),
    ]);
    let Message::Tool { content, .. } = &after.messages(usize::MAX, RunRules::default())[3] else {
        panic!("not a result")
    };
    assert!(
        content.starts_with("error not_found: <untrusted-") && content.contains("may hold web content"),
        "{content}"
    );
    // A call in flight when the host died may have read anything.
    let resumed = fold(&[
        created(),
        replied(1, "", &["a"]),
        intended("a"),
        RunEvent::Resumed,
        returned("a", ToolResult::success("plain")),
    ]);
    assert!(
        matches!(&resumed.messages(usize::MAX, RunRules::default())[2], Message::Tool { content, .. } if content.contains("may hold web content"))
    );
}

#[test]
fn words_of_the_owner_stand_behind_the_results_of_all_calls() {
    let events = [created(), replied(1, "", &["a", "b"]), intended("a"), said(false)];
    let conversation = fold(&events);
    assert_eq!((roles(&conversation).as_str(), conversation.has_unheard()), ("ua", true));
    let rest = [returned("a", ToolResult::success("1")), returned("b", ToolResult::success("2"))];
    let conversation = fold(&[events.as_slice(), rest.as_slice()].concat());
    assert_eq!((roles(&conversation).as_str(), conversation.has_unheard()), ("uattu", false));
    assert_eq!(last(&conversation), "[owner] in metres");
}

#[test]
fn words_during_a_request_wait_for_the_next_one() {
    // The reply was made without them, so they stand behind it.
    let answered = [created(), said(true), replied(1, "in feet", &[])];
    let conversation = fold(&answered);
    assert_eq!((roles(&conversation).as_str(), conversation.has_unheard()), ("ua", true));
    let heard = fold(&[answered.as_slice(), [told(TellReason::Heard)].as_slice()].concat());
    assert_eq!(roles(&heard), "uauu");
    assert_eq!(last(&heard), "[owner] in metres");
    assert_eq!((heard.next(), heard.has_unheard()), (NextStep::AskModel { step: 2 }, false));
    // The request that was under way when the host stopped is made again, with them.
    let resumed = fold(&[created(), said(true), RunEvent::Resumed]);
    assert_eq!((roles(&resumed).as_str(), resumed.has_unheard()), ("uu", false));
    let resumed = fold(&[created(), said(true), RunEvent::Resumed, replied(1, "done", &[])]);
    assert!(!resumed.has_unheard() && matches!(resumed.next(), NextStep::Judge(_)));
}

#[test]
fn words_of_the_owner_stand_in_later_attempts_and_nothing_else_does() {
    let retried =
        RunEvent::Retried { attempt: 1, guidance: None, grant: None, max_iterations: 15, consent: None, usd: None };
    let first = [created(), said(false), replied(1, "x", &[]), told(TellReason::EmptyReply), said(true)];
    let conversation = fold(&[first.as_slice(), [retried].as_slice()].concat());
    assert_eq!((roles(&conversation).as_str(), conversation.has_unheard()), ("uuu", false));
}
