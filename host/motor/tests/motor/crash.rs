//! A stop of the host, a failing disk, a panic: nothing acknowledged is lost, nothing is done twice. Deaths at every write are
//! in `every_write`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base::{AgentName, ErrorCode, RefusalCode};
use motor::{FailureCategory, LiveEvent, RunRequest, RunStatus};
use serde_json::json;
use store::Faults;

use crate::home::{Home, SECRET, Turn, call, request, world};

/// Every write fails from the n-th on, like those of a process that is no more.
#[derive(Debug)]
pub struct Dead {
    left: AtomicU32,
}

impl Dead {
    /// Dies after so many writes.
    pub fn after(writes: u32) -> Self {
        Self { left: AtomicU32::new(writes) }
    }
}

impl Faults for Dead {
    fn before_write(&self) -> io::Result<()> {
        let alive = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if alive { Ok(()) } else { Err(io::Error::other("gone")) }
    }
}

fn six_steps() -> Vec<Turn> {
    vec![
        call("look", json!({})),
        call("append", json!({"text": "a"})),
        Turn::Call(vec![("set", json!({})), ("append", json!({"text": "b"})), ("nothing", json!({}))]),
        call("flaky", json!({})),
        call("append", json!({"text": "c"})),
        Turn::Say("done"),
    ]
}

#[tokio::test]
async fn a_call_in_flight_is_repeated_only_if_that_is_harmless() {
    for (tool, repeated) in [("look", true), ("append", false)] {
        // Created, started, reply with intent; the result is not stored.
        let faults = Arc::new(Dead::after(3));
        let turns = vec![call(tool, json!({"text": "a"})), Turn::Say("done")];
        let home = Home::open(Arc::new(tempfile::tempdir().unwrap()), world(turns), faults);
        let id = home.start(request()).await;
        assert_eq!(home.motor.wait(&id).await.unwrap_err().code, RefusalCode::OutcomeUnknown);
        let home = home.reopen().await;
        home.motor.resume_all().await.unwrap();
        assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
        let trace = home.motor.status(&id).unwrap();
        let call = &trace.steps[0].tool_calls[0];
        assert!(call.recovered);
        let result = call.result.as_ref().unwrap();
        if repeated {
            assert_eq!((result.ok, home.world.tools.looked.load(Ordering::SeqCst)), (true, 2));
        } else {
            assert_eq!(result.error_code, Some(ErrorCode::OutcomeUnknown));
            assert_eq!(home.world.tools.appended.lock().unwrap().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_secret_that_a_run_learns_leaves_its_history_whenever_the_host_dies() {
    for writes in 2..=12 {
        let text = format!("the key is {SECRET}");
        let turns = vec![
            call("append", json!({"text": text})),
            call("fail", json!({"text": text})),
            call(motor::SAVE_CREDENTIAL, json!({})),
            Turn::Say("done"),
        ];
        let home = Home::open(Arc::new(tempfile::tempdir().unwrap()), world(turns), Arc::new(Dead::after(writes)));
        let id = home.start(request()).await;
        home.motor.wait(&id).await.ok();
        let home = home.reopen().await;
        home.motor.resume_all().await.unwrap();
        assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed, "{writes}");
        let trace = home.motor.status(&id).unwrap();
        let shown = serde_json::to_string(&trace).unwrap() + &home.motor.log(&id).unwrap();
        assert!(!shown.contains(SECRET) && shown.contains("<credential:key>"), "{writes}: {shown}");
        assert_eq!((trace.steps.len(), home.world.tools.appended.lock().unwrap().len()), (4, 1), "{writes}");
        // The model is told the content of the history.
        let last = format!("{:?}", home.world.model.requests.lock().unwrap().last().unwrap());
        assert!(!last.contains(SECRET), "{writes}: {last}");
    }
}

#[tokio::test]
async fn a_failing_disk_stops_the_run_and_not_the_host() {
    let faults = Arc::new(Dead::after(4));
    let home = Home::open(Arc::new(tempfile::tempdir().unwrap()), world(six_steps()), faults);
    let id = home.start(request()).await;
    let mut watch = home.motor.watch(&id).unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap_err().code, RefusalCode::OutcomeUnknown);
    let mut last = None;
    while let Some(event) = watch.next().await {
        last = Some(event);
    }
    assert!(matches!(last, Some(LiveEvent::Suspended { .. })), "{last:?}");
    // Stored records can still be read, and a record that cannot be stored is refused.
    assert_eq!(home.motor.status(&id).unwrap().status, RunStatus::Running);
    assert!(home.motor.log(&id).unwrap().contains("look ok"));
    assert_eq!(home.motor.cancel(&id).await.unwrap_err().code, RefusalCode::StorageFailed);
    let other = RunRequest { agent: AgentName::parse("other").unwrap(), ..request() };
    let refusal = home.motor.start(home.motor.new_run_id(), other).await.unwrap_err();
    assert_eq!(refusal.code, RefusalCode::StorageFailed);
    let home = home.reopen().await;
    assert_eq!(home.motor.cancel(&id).await.unwrap().new_status, RunStatus::Cancelled);
}

#[tokio::test]
async fn a_reply_that_cannot_be_stored_fails_the_run_and_not_the_host() {
    let huge = "x".repeat(17 << 20).leak();
    let home = Home::new(vec![call("append", json!({"text": "a"})), Turn::Say(huge)]);
    let record = home.run(request()).await;
    let error = record.error.unwrap();
    assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::InfraFailure), "{error:?}");
    assert_eq!(error.last_step.as_deref(), Some("step 1: append"));
    assert_eq!(home.signals_of(&record.id), 1);
    // The place is free.
    let refused = home.run(RunRequest { max_iterations: Some(1), ..request() }).await;
    assert_eq!(refused.error.unwrap().category, FailureCategory::BudgetExhausted);
}

#[tokio::test]
async fn a_panic_in_a_tool_fails_the_run_and_not_the_host() {
    let home = Home::new(vec![call("panic", json!({}))]);
    for _ in 0..2 {
        let record = home.run(request()).await;
        let error = record.error.unwrap();
        assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::InfraFailure));
        assert!(error.message.contains("panicked"), "{}", error.message);
        assert_eq!(home.signals_of(&record.id), 1);
    }
}

#[tokio::test]
async fn a_caller_that_goes_away_leaves_no_run_without_a_driver() {
    for polls in 0..6 {
        let home = Home::new(vec![Turn::Say("done")]);
        let id = home.motor.new_run_id();
        let mut starting = Box::pin(home.motor.start(id.clone(), request()));
        for _ in 0..polls {
            let polled = tokio::time::timeout(Duration::from_micros(100), &mut starting).await;
            if polled.is_ok() {
                break;
            }
        }
        drop(starting);
        if polls > 0 {
            while !home.motor.record(&id).is_ok_and(|record| record.status.is_terminal()) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        }
    }
}

#[tokio::test]
async fn a_shutdown_is_not_a_cancel() {
    let home = Home::new(vec![call("append", json!({"text": "a"})), Turn::Hang]);
    let id = home.start(request()).await;
    while home.world.model.requests.lock().unwrap().len() < 2 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let waiting = tokio::spawn({
        let (motor, id) = (home.motor.clone(), id.clone());
        async move { motor.wait(&id).await }
    });
    tokio::task::yield_now().await;
    let home = home.reopen().await;
    assert_eq!(waiting.await.unwrap().unwrap_err().code, RefusalCode::TryLater);
    let record = home.motor.record(&id).unwrap();
    assert_eq!((record.status, record.tool_calls), (RunStatus::Running, 1));
    assert_eq!(home.motor.resume_all().await.unwrap(), std::slice::from_ref(&id));
    assert_eq!(home.motor.cancel(&id).await.unwrap().new_status, RunStatus::Cancelled);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["a"]);
}

/// The call's outcome on the next host: its error code, and whether it was known before.
async fn stopped_during(tool: &'static str) -> (Option<ErrorCode>, bool) {
    let home = Home::new(vec![call(tool, json!({})), Turn::Say("done")]);
    let id = home.start(request()).await;
    home.world.tools.entered.notified().await;
    let world = home.world.clone();
    let (home, ()) = tokio::join!(home.reopen(), async {
        tokio::time::sleep(Duration::from_millis(20)).await;
        world.tools.taken.notify_one();
    });
    let record = home.motor.record(&id).unwrap();
    assert_eq!(record.status, RunStatus::Running);
    let is_known = record.tool_calls == 1;
    assert_eq!(home.motor.resume_all().await.unwrap(), std::slice::from_ref(&id));
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
    let trace = home.motor.status(&id).unwrap();
    let call = &trace.steps[0].tool_calls[0];
    assert_eq!(call.recovered, !is_known);
    (call.result.as_ref().unwrap().error_code, is_known)
}

#[tokio::test]
async fn that_a_call_was_stopped_by_a_shutdown_is_not_its_outcome() {
    let (write, look, ended, taken) = tokio::join!(
        stopped_during("polite"),
        stopped_during("polite_look"),
        stopped_during("ends_well"),
        stopped_during("taken")
    );
    assert_eq!(write, (Some(ErrorCode::OutcomeUnknown), false));
    assert_eq!(look, (None, false), "made again");
    assert_eq!(taken, (Some(ErrorCode::OutcomeUnknown), false), "stopped by others while the host goes away");
    assert_eq!(ended, (None, true), "what it did is known");
}
