//! Several runs of one agent, and runs that are left alone (SPEC RUN-2, RUN-16).

use std::time::Duration;

use base::{AgentName, RefusalCode, RunId};
use motor::{MotorConfig, PlacesConfig, QuestionAnswer, RunRequest, RunStatus, UNLIMITED, Waiting};
use serde_json::json;
use store::{Batch, Table};

use crate::consent::consent;
use crate::home::{Home, Turn, call, request};

fn asking() -> RunRequest {
    RunRequest { may_ask: true, ..request() }
}

fn question() -> Turn {
    call("ask_user", json!({ "question": "Which?" }))
}

async fn waits(home: &Home, id: &RunId) -> Waiting {
    loop {
        if let Some(waiting) = home.motor.record(id).unwrap().waiting {
            return waiting;
        }
        tokio::task::yield_now().await;
    }
}

fn with_places(home: &Home, max_runs: u32, waiting_holds_place: bool) {
    let places = PlacesConfig { max_runs, waiting_holds_place };
    home.motor.configure(MotorConfig { places, ..MotorConfig::default() });
}

async fn refused(home: &Home) -> String {
    let refusal = home.motor.start(home.motor.new_run_id(), asking()).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::Busy);
    refusal.reason
}

#[tokio::test]
async fn an_agent_has_as_many_runs_as_its_places() {
    let home = Home::new(vec![Turn::Hang]);
    with_places(&home, 2, true);
    let mut runs = [home.start(request()).await, home.start(request()).await];
    let reason = refused(&home).await;
    // Runs of one millisecond are in the order of their ids, which is not the order of their starts.
    runs.sort();
    let [oldest, newest] = runs;
    assert!(reason.contains(&format!("{oldest}, {newest}")), "{reason}");
    // Both end at the same time, and both places are free.
    let (one, other) = tokio::join!(home.motor.cancel(&oldest), home.motor.cancel(&newest));
    assert!(one.is_ok() && other.is_ok());
    assert!(home.motor.unfinished(&AgentName::default()).unwrap().is_empty());
    home.start(request()).await;
}

#[tokio::test]
async fn a_run_that_waits_gives_up_its_place_only_where_it_may() {
    let home = Home::new(vec![question(), Turn::Say("done")]);
    let first = home.start(asking()).await;
    waits(&home, &first).await;
    refused(&home).await;
    with_places(&home, 1, false);
    let second = home.start(asking()).await;
    waits(&home, &second).await;
    assert_eq!(home.motor.unfinished(&AgentName::default()).unwrap().len(), 2);
    // Both go on, in the other order, and a restart changes nothing.
    let home = home.reopen().await;
    for run in [&second, &first] {
        let answer = QuestionAnswer { text: "a".into(), question: None, consent: consent().into(), key: None };
        home.motor.respond(run, answer).await.unwrap();
        assert_eq!(home.motor.wait(run).await.unwrap().status, RunStatus::Completed);
    }
    assert!(home.motor.unfinished(&AgentName::default()).unwrap().is_empty());
}

#[tokio::test]
async fn a_run_that_is_left_alone_waits_without_a_limit() {
    let home = Home::new(vec![question(), Turn::Say("done")]);
    let length = |waiting: Waiting| match waiting {
        Waiting::Input(question) => question.expires_at.since(question.asked_at),
        Waiting::Approval(approval) => panic!("{approval:?}"),
    };
    let attached = home.start(asking()).await;
    assert_eq!(length(waits(&home, &attached).await), Duration::from_secs(1_800));
    home.motor.cancel(&attached).await.unwrap();
    let detached = home.start(RunRequest { detached: true, ..asking() }).await;
    assert_eq!(length(waits(&home, &detached).await), UNLIMITED);
    home.motor.cancel(&detached).await.unwrap();
    home.motor.configure(MotorConfig { detached_timeout_seconds: 60, ..MotorConfig::default() });
    let bounded = home.start(RunRequest { detached: true, ..asking() }).await;
    assert_eq!(length(waits(&home, &bounded).await), Duration::from_secs(60));
}

/// Earlier versions kept the only place of an agent under its name.
#[tokio::test]
async fn the_place_of_an_earlier_version_is_held_and_given_back() {
    let home = Home::new(vec![Turn::Hang]);
    let run = home.start(request()).await;
    let mut batch = Batch::new();
    batch.delete(Table::Places, format!("agent/main/{run}"));
    batch.put(Table::Places, "agent/main", &run).unwrap();
    home.store.commit(batch).await.unwrap();
    refused(&home).await;
    home.motor.cancel(&run).await.unwrap();
    home.start(request()).await;
}
