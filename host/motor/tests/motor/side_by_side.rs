//! One run at a time for an agent, many agents side by side; calls of one reply that only read side by side.

use std::time::Duration;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use base::{AgentName, ErrorCode, RefusalCode};
use motor::{ListFilter, RunRequest, RunStatus};
use serde_json::json;

use crate::crash::Dead;
use crate::home::{Home, MEETING, Turn, call, request, world};

fn of(agent: &str) -> RunRequest {
    RunRequest { agent: AgentName::parse(agent).unwrap(), ..request() }
}

#[tokio::test]
async fn an_agent_has_one_run_at_a_time() {
    let home = Home::new(vec![Turn::Hang]);
    let id = home.start(request()).await;
    let refusal = home.motor.start(home.motor.new_run_id(), request()).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Busy);
    let words = format!("Motor Cortex is busy (run_id: {id}). Wait for it to complete or cancel it via core.task.");
    assert_eq!(refusal.reason, words);
    // The refused command cost nothing.
    let other = home.start(of("other")).await;
    home.motor.cancel(&id).await.unwrap();
    assert!((home.motor.record(&id).unwrap().energy - 0.10).abs() < 1e-9);
    home.start(request()).await;
    home.motor.cancel(&other).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_is_given_once() {
    let home = Home::new(vec![Turn::Hang]);
    let racing = (0..16).map(|_| {
        let motor = home.motor.clone();
        tokio::spawn(async move { motor.start(motor.new_run_id(), request()).await.is_ok() })
    });
    let racing: Vec<_> = racing.collect();
    let mut won = 0;
    for one in racing {
        won += u32::from(one.await.unwrap());
    }
    assert_eq!(won, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_agents_side_by_side() {
    let home = Home::new(vec![
        call("look", json!({})),
        Turn::Call(vec![("append", json!({"text": "a"})), ("set", json!({}))]),
        Turn::Say("done"),
    ]);
    let mut ids = Vec::new();
    for n in 0..40 {
        ids.push(home.start(of(&format!("agent{n}"))).await);
    }
    let mut follower = home.signals.subscribe();
    for id in &ids {
        let record = tokio::time::timeout(Duration::from_secs(30), home.motor.wait(id)).await.unwrap().unwrap();
        assert_eq!(record.status, RunStatus::Completed);
        assert_eq!(home.signals_of(id), 1);
    }
    follower.borrow_and_update();
    assert_eq!(home.signals.since(0, 1000).unwrap().len(), 40);
    assert_eq!(home.world.tools.appended.lock().unwrap().len(), 40);
    assert_eq!(home.world.finished.lock().unwrap().len(), 40);
}

#[tokio::test]
async fn listing_is_newest_first_and_filtered() {
    let home = Home::new(vec![Turn::Say("done")]);
    let mut ids = Vec::new();
    for n in 0..5 {
        let agent = if n % 2 == 0 { "even" } else { "odd" };
        ids.push(home.run(of(agent)).await.id);
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    ids.reverse();
    let list =
        |filter: ListFilter| home.motor.list(filter).unwrap().into_iter().map(|record| record.id).collect::<Vec<_>>();
    let all = ListFilter { limit: 10, ..ListFilter::default() };
    assert_eq!(list(all.clone()), ids);
    assert_eq!(list(ListFilter { limit: 2, ..all.clone() }), ids[..2]);
    let odd = AgentName::parse("odd").unwrap();
    assert_eq!(list(ListFilter { agent: Some(odd), ..all.clone() }), [ids[1].clone(), ids[3].clone()]);
    let before = |run: &base::RunId| ListFilter { before: Some(run.clone()), ..all.clone() };
    assert_eq!(list(before(&ids[1])), ids[2..]);
    assert_eq!(list(ListFilter { status: Some(RunStatus::Completed), limit: 1, ..before(&ids[1]) }), ids[2..3]);
    assert!(list(before(&ids[ids.len() - 1])).is_empty());
    assert!(list(ListFilter { status: Some(RunStatus::Failed), ..all.clone() }).is_empty());
    assert!(list(ListFilter { status: Some(RunStatus::Running), ..all.clone() }).is_empty());
    assert_eq!(list(ListFilter { status: Some(RunStatus::Completed), limit: 1, ..all }), ids[..1]);
}

fn results(home: &Home, run: &base::RunId) -> Vec<String> {
    let trace = home.motor.status(run).unwrap();
    let results = trace.steps[0].tool_calls.iter().map(|call| call.result.as_ref().unwrap());
    results.map(|result| result.error_code.map_or_else(|| result.output.clone(), |code| code.to_string())).collect()
}

#[tokio::test]
async fn calls_that_only_read_are_made_at_once_and_answered_in_their_order() {
    let meet = |n: usize| ("meet", json!({ "text": n.to_string() }));
    let mut calls: Vec<_> = (0..MEETING).map(meet).collect();
    // Behind a call that writes nothing is made before it.
    calls.extend([("append", json!({"text": "a"})), ("look", json!({})), ("look", json!({"text": "b"}))]);
    let home = Home::new(vec![Turn::Call(calls), Turn::Say("done")]);
    let record = home.run(request()).await;
    assert_eq!(record.status, RunStatus::Completed);
    let mut expected: Vec<_> = (0..MEETING).map(|n| format!("met {n}")).collect();
    expected.extend(["appended", "look 0", "look 1"].map(str::to_owned));
    assert_eq!(results(&home, &record.id), expected);
    let made: Vec<_> = home.world.tools.made.lock().unwrap().iter().map(|(tool, _)| tool.clone()).collect();
    assert_eq!(made[MEETING..], ["append", "look", "look"]);
}

#[tokio::test]
async fn the_same_call_twice_is_made_one_after_the_other() {
    let home = Home::new(vec![Turn::Call(vec![("look", json!({})); 3]), Turn::Say("done")]);
    let id = home.run(request()).await.id;
    assert_eq!(results(&home, &id), ["look 0", "look 1", "look 2"]);
    let keys: std::collections::BTreeSet<_> = home.world.tools.made.lock().unwrap().iter().cloned().collect();
    assert_eq!(keys.len(), 3);
}

#[tokio::test]
async fn calls_in_flight_side_by_side_are_each_repeated_or_unknown() {
    // Created, started, reply with intents; the results are not stored.
    let faults = Arc::new(Dead::after(3));
    let text = |text: &str| json!({ "text": text });
    let calls =
        vec![("look", text("a")), ("get", text("b")), ("look", text("c")), ("get", text("d")), ("append", text("e"))];
    let turns = vec![Turn::Call(calls), Turn::Say("done")];
    let home = Home::open(Arc::new(tempfile::tempdir().unwrap()), world(turns), faults);
    let id = home.start(request()).await;
    assert_eq!(home.motor.wait(&id).await.unwrap_err().code, RefusalCode::OutcomeUnknown);
    let home = home.reopen().await;
    home.motor.resume_all().await.unwrap();
    let record = home.motor.wait(&id).await.unwrap();
    assert_eq!((record.status, record.unknown_outcomes.len()), (RunStatus::Completed, 2), "{record:?}");
    let unknown = ErrorCode::OutcomeUnknown.to_string();
    assert_eq!(results(&home, &id), ["look 2", &unknown, "look 3", &unknown, "appended"]);
    assert_eq!(home.world.tools.looked.load(Ordering::SeqCst), 4);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["e"]);
}
