//! Cancelling in every live state, in time.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base::{ErrorCode, RefusalCode, RunId};
use motor::RunStatus;
use serde_json::json;

use crate::home::{Home, Turn, call, request};

/// The promise is 100 ms (SPEC RUN-7); a busy machine gets some slack here.
const IN_TIME: Duration = Duration::from_millis(250);

async fn cancel(home: &Home, id: &RunId, previous: RunStatus) {
    let began = Instant::now();
    let cancelled = home.motor.cancel(id).await.unwrap();
    assert!(began.elapsed() < IN_TIME, "{:?}", began.elapsed());
    assert_eq!((cancelled.previous_status, cancelled.new_status), (previous, RunStatus::Cancelled));
    // Durable when it returns, and the place is free.
    assert_eq!(home.motor.record(id).unwrap().status, RunStatus::Cancelled);
    assert_eq!(home.signals_of(id), 1);
    let second = home.motor.cancel(id).await.unwrap_err();
    assert_eq!(second.code, RefusalCode::IllegalState);
}

#[tokio::test]
async fn during_a_model_call() {
    let home = Home::new(vec![Turn::Hang]);
    let id = home.start(request()).await;
    while home.world.model.requests.lock().unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    cancel(&home, &id, RunStatus::Running).await;
}

#[tokio::test]
async fn during_a_tool_call() {
    for (tool, output) in
        [("hang", "the run was cancelled while this call was in flight"), ("polite", "stopped when asked")]
    {
        let home = Home::new(vec![call(tool, json!({}))]);
        let id = home.start(request()).await;
        home.world.tools.entered.notified().await;
        cancel(&home, &id, RunStatus::Running).await;
        let trace = home.motor.status(&id).unwrap();
        let result = trace.steps[0].tool_calls[0].result.as_ref().unwrap();
        assert_eq!((result.error_code, result.output.as_str()), (Some(ErrorCode::Cancelled), output));
    }
}

#[tokio::test]
async fn while_the_environment_hears_of_a_step() {
    let home = Home::new(vec![call("look", json!({})), Turn::Say("done")]);
    home.world.is_slow.store(true, Ordering::SeqCst);
    let id = home.start(request()).await;
    while home.world.stepped.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    cancel(&home, &id, RunStatus::Running).await;
}

#[tokio::test]
async fn before_it_started_and_without_a_driver() {
    let home = Home::new(vec![Turn::Say("done")]);
    home.motor.shutdown().await;
    let id = home.start(request()).await;
    assert_eq!(home.motor.cancel(&id).await.unwrap_err().code, RefusalCode::TryLater);
    let home = home.reopen().await;
    cancel(&home, &id, RunStatus::Created).await;
    assert!(home.world.model.requests.lock().unwrap().is_empty());
}

#[tokio::test]
async fn after_a_stop_of_the_host() {
    let home = Home::new(vec![call("append", json!({"text": "a"})), Turn::Hang]);
    let id = home.start(request()).await;
    while home.world.model.requests.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let home = home.reopen().await;
    assert_eq!(home.motor.record(&id).unwrap().status, RunStatus::Running);
    cancel(&home, &id, RunStatus::Running).await;
}

#[tokio::test]
async fn a_run_that_is_over_stays_what_it_is() {
    let home = Home::new(vec![Turn::Say("done")]);
    let record = home.run(request()).await;
    assert_eq!(home.motor.cancel(&record.id).await.unwrap_err().code, RefusalCode::IllegalState);
    assert_eq!(home.motor.record(&record.id).unwrap(), record);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_at_any_moment_ends_the_run_once() {
    for micros in (0..6_000).step_by(250) {
        let home = Home::new(vec![
            call("append", json!({"text": "a"})),
            call("look", json!({})),
            call("append", json!({"text": "b"})),
            Turn::Say("done"),
        ]);
        let id = home.start(request()).await;
        tokio::time::sleep(Duration::from_micros(micros)).await;
        let both = tokio::join!(home.motor.cancel(&id), home.motor.cancel(&id));
        let record = home.motor.wait(&id).await.unwrap();
        assert!(record.status.is_terminal());
        for outcome in [both.0, both.1] {
            match outcome {
                Ok(cancelled) => assert_eq!(cancelled.new_status, record.status),
                Err(refusal) => assert_eq!(refusal.code, RefusalCode::IllegalState),
            }
        }
        assert_eq!(home.signals_of(&id), 1);
    }
}
