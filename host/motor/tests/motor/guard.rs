//! The loop guard, from outside.

use llm::Message;
use motor::{FailureCategory, RunStatus};
use serde_json::json;

use crate::home::{Home, Turn, call, request};

#[tokio::test]
async fn the_same_failure_three_times_ends_the_run() {
    let fail = |n: u32| call("fail", json!({"text": "a", "n": n}));
    let home = Home::new(vec![fail(1), fail(2), fail(3), Turn::Say("never said")]);
    let record = home.run(request()).await;
    let error = record.error.unwrap();
    assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::ToolFailure));
    assert_eq!(error.message, "`fail` failed in 3 replies in a row with `not_found`: no `a`");
    assert_eq!(record.iterations, 3);
}

#[tokio::test]
async fn other_failures_are_counted_to_six() {
    let fail = |text: &'static str| call("fail", json!({"text": text}));
    let tries: Vec<_> = ["a", "b", "c", "d", "e"].map(fail).into();
    let solved = [tries.as_slice(), &[call("look", json!({})), Turn::Say("done")]].concat();
    assert_eq!(Home::new(solved).run(request()).await.status, RunStatus::Completed);

    let record = Home::new([tries.as_slice(), &[fail("f"), Turn::Say("never said")]].concat()).run(request()).await;
    let error = record.error.unwrap();
    assert_eq!(
        (record.status, record.iterations, error.category),
        (RunStatus::Failed, 6, FailureCategory::ToolFailure)
    );
    assert_eq!(error.message, "`fail` failed in 6 replies in a row with `not_found`, the last time: no `f`");
}

#[tokio::test]
async fn the_model_sees_the_failures_of_parallel_calls_before_it_is_judged() {
    let fail = |text: &'static str| ("fail", json!({"text": text}));
    let home =
        Home::new(vec![Turn::Call(vec![fail("a"), fail("a"), fail("b"), fail("c")]), Turn::Say("they are not there")]);
    let record = home.run(request()).await;
    assert_eq!((record.status, record.tool_calls, record.errors), (RunStatus::Completed, 4, 4));
    // A nudge about parallel calls waits for the last of them.
    let look = || Turn::Call(vec![("set", json!({"text": "a"})), ("set", json!({"text": "b"}))]);
    let record = Home::new(vec![look()]).run(request()).await;
    assert_eq!(record.iterations, 5);
    let message = "the model made the same calls of `set` and `set` 5 times with the same result";
    assert_eq!(record.error.unwrap().message, message);
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
