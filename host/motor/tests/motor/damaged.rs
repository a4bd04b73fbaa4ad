//! Histories that cannot be read: damaged, incomplete, or written by a newer version. They cost their run and nothing else.

use base::{RefusalCode, RunId};
use motor::{FailureCategory, ListFilter, LiveEvent, RunStatus};
use serde_json::{Value, json};
use signals::SignalStatus;
use store::{Batch, Table};

use crate::home::{Home, Turn, call, request};

/// A home whose host was stopped during a run, after which the run's event got another record, or none.
async fn damaged(sequence: u64, event: Option<Value>) -> (Home, RunId) {
    let home = Home::new(vec![call("look", json!({})), Turn::Hang]);
    let id = home.start(request()).await;
    while home.world.model.requests.lock().unwrap().len() < 2 {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    let home = home.reopen().await;
    damage(&home, &id, sequence, event).await;
    (home, id)
}

async fn damage(home: &Home, id: &RunId, sequence: u64, event: Option<Value>) {
    let key = format!("{id}/{sequence:08}");
    let mut batch = Batch::new();
    match event {
        Some(event) => batch.put(Table::Events, key, &event).unwrap(),
        None => batch.delete(Table::Events, key),
    }
    home.store.commit(batch).await.unwrap();
}

fn damages() -> Vec<(u64, Option<Value>)> {
    vec![
        (2, Some(json!("not an event"))),
        (2, Some(json!({"at": 1, "event": {"type": "from_a_newer_version"}}))),
        (0, Some(json!({"at": 1, "event": {"type": "started"}}))),
        (1, Some(json!({"at": 1, "event": {"type": "finished", "status": "completed", "energy": 0.0}}))),
        (2, None),
    ]
}

/// The run is over, that was announced once, and nothing of it is in the way of the next.
async fn is_out_of_the_way(home: Home, id: &RunId, status: RunStatus, announced: SignalStatus) {
    let record = home.motor.record(id).unwrap();
    let error = record.error.clone().unwrap();
    assert_eq!((record.status, error.category), (status, FailureCategory::InfraFailure));
    assert_eq!(error.code, Some(RefusalCode::StateUnusable));
    assert!(error.message.starts_with("the run's history cannot be read: "), "{}", error.message);
    assert!(record.completed_at.is_some());
    let signals = home.signals.since(0, 10).unwrap();
    assert_eq!(signals.len(), 1);
    assert_eq!((signals[0].body.run_id.clone(), signals[0].body.status), (id.clone(), announced));
    assert_eq!(signals[0].body.error.as_ref().unwrap().message, error.message);

    assert_eq!(home.motor.cancel(id).await.unwrap_err().code, RefusalCode::IllegalState);
    assert_eq!(home.motor.wait(id).await.unwrap(), record);
    let home = home.reopen().await;
    assert_eq!(home.motor.resume_all().await.unwrap(), []);
    let live = ListFilter { status: Some(RunStatus::Running), limit: 10, ..ListFilter::default() };
    assert_eq!(home.motor.list(live).unwrap(), []);
    let next = home.start(request()).await;
    assert_eq!(home.motor.cancel(&next).await.unwrap().new_status, RunStatus::Cancelled);
    assert_eq!(home.motor.record(id).unwrap(), record);
}

#[tokio::test]
async fn a_run_whose_history_cannot_be_read_fails_and_frees_its_agent() {
    for (sequence, event) in damages() {
        let (home, id) = damaged(sequence, event).await;
        assert_eq!(home.motor.resume_all().await.unwrap(), std::slice::from_ref(&id));
        let mut watch = home.motor.watch(&id).unwrap();
        let mut last = None;
        while let Some(event) = watch.next().await {
            last = Some(event);
        }
        assert!(matches!(last, Some(LiveEvent::Finished { status: RunStatus::Failed, .. })), "{last:?}");
        assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Failed);
        assert!(home.world.finished.lock().unwrap().is_empty());
        is_out_of_the_way(home, &id, RunStatus::Failed, SignalStatus::Failed).await;
    }
}

#[tokio::test]
async fn a_run_whose_history_cannot_be_read_can_be_cancelled() {
    for (sequence, event) in damages() {
        let (home, id) = damaged(sequence, event).await;
        let cancelled = home.motor.cancel(&id).await.unwrap();
        assert_eq!((cancelled.previous_status, cancelled.new_status), (RunStatus::Running, RunStatus::Cancelled));
        is_out_of_the_way(home, &id, RunStatus::Cancelled, SignalStatus::Cancelled).await;
    }
}

#[tokio::test]
async fn a_run_that_cannot_even_be_started_fails() {
    let home = Home::new(vec![Turn::Hang]);
    home.motor.shutdown().await;
    let id = home.start(request()).await;
    let home = home.reopen().await;
    assert_eq!(home.motor.record(&id).unwrap().status, RunStatus::Created);
    damage(&home, &id, 0, Some(json!({}))).await;
    home.motor.resume_all().await.unwrap();
    // The driver may be done already: then the head tells.
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Failed);
    is_out_of_the_way(home, &id, RunStatus::Failed, SignalStatus::Failed).await;
}

#[tokio::test]
async fn a_history_that_is_whole_goes_on() {
    let (home, id) = damaged(99, None).await;
    home.motor.resume_all().await.unwrap();
    assert_eq!(home.motor.record(&id).unwrap().status, RunStatus::Running);
    let requests = home.world.model.requests.lock().unwrap().len();
    while home.world.model.requests.lock().unwrap().len() == requests {
        tokio::time::sleep(std::time::Duration::from_millis(1)).await;
    }
    assert_eq!(home.motor.cancel(&id).await.unwrap().new_status, RunStatus::Cancelled);
    assert_eq!(home.motor.record(&id).unwrap().error, None);
}
