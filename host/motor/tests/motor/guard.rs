//! The loop guard, from outside.

use llm::Message;
use motor::{FailureCategory, RunStatus};
use serde_json::json;

use crate::home::{Home, Turn, call, request};

#[tokio::test]
async fn the_same_failure_three_times_ends_the_run() {
    let home = Home::new(vec![
        call("fail", json!({"text": "a"})),
        call("fail", json!({"text": "b"})),
        call("fail", json!({"text": "c"})),
        Turn::Say("never said"),
    ]);
    let record = home.run(request()).await;
    let error = record.error.unwrap();
    assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::ToolFailure));
    assert_eq!(error.message, "`fail` failed 3 times in a row with `not_found`: no `c`");
    assert_eq!(record.iterations, 3);
}

#[tokio::test]
async fn circles_earn_a_nudge_and_then_the_end() {
    let home = Home::new(vec![call("set", json!({"text": "a"}))]);
    let record = home.run(request()).await;
    let error = record.error.unwrap();
    assert_eq!(error.category, FailureCategory::ModelFailure);
    assert_eq!(error.message, "the model made the same call of `set` 5 times with the same result");
    assert_eq!(record.iterations, 5);
    let nudges = home
        .last_request()
        .messages
        .iter()
        .filter(|message| matches!(message, Message::User { text } if text.starts_with("[host]")))
        .count();
    assert_eq!(nudges, 1);
    let trace = home.motor.status(&record.id).unwrap();
    assert_eq!(trace.steps[2].host_messages.len(), 1);
}

#[tokio::test]
async fn progress_is_not_a_circle() {
    // `look` sees something new each time.
    let mut turns = vec![call("look", json!({})); 8];
    turns.push(Turn::Say("done"));
    assert_eq!(Home::new(turns).run(request()).await.status, RunStatus::Completed);
}
