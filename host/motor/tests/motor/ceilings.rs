//! Ceilings that ask the owner (SPEC RUN-16), also on a host that dies at any write.

use std::sync::Arc;
use std::time::Duration;

use base::{Refusal, RefusalCode, RunId};
use motor::{CeilingKind, Question, QuestionAnswer, RunRecord, RunRequest, RunStatus, Waiting};
use serde_json::json;
use store::{Faults, NoFaults};

use crate::consent::consent;
use crate::every_write::{Death, DiesAt, FOR_STORAGE};
use crate::home::{Home, Turn, call, request, world};
use crate::long_run::still;
use crate::prune::Disk;

fn turns() -> Vec<Turn> {
    let append = |text: &str| call("append", json!({ "text": text }));
    vec![append("a"), append("b"), append("c"), Turn::Say("done")]
}

fn limited() -> RunRequest {
    RunRequest { may_ask: true, max_iterations: Some(2), key: Some("start".into()), ..request() }
}

fn answer(question: &Question, text: &str) -> QuestionAnswer {
    let id = question.id.clone();
    QuestionAnswer { text: text.into(), question: Some(id.clone()), consent: consent().into(), key: Some(id) }
}

async fn asked(home: &Home, id: &RunId) -> Question {
    let record = still(home, id).await.unwrap();
    let Some(Waiting::Input(question)) = record.waiting else { panic!("{:?} {:?}", record.status, record.error) };
    question
}

#[tokio::test]
async fn a_yes_raises_the_calls_and_a_no_ends_the_run_as_without_an_owner() {
    let home = Home::new(turns());
    let id = home.start(limited()).await;
    let question = asked(&home, &id).await;
    let raise = question.ceiling.unwrap();
    assert_eq!((raise.kind, raise.by, question.call_id.as_str()), (CeilingKind::Calls, 2, ""));
    let unclear = home.motor.respond(&id, answer(&question, "why?")).await.unwrap_err();
    assert_eq!(unclear.code, RefusalCode::InvalidRequest);
    home.motor.respond(&id, answer(&question, "Yes.")).await.unwrap();
    let ended = home.motor.wait(&id).await.unwrap();
    assert_eq!((ended.status, ended.max_iterations, ended.iterations), (RunStatus::Completed, 4, 4));
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["a", "b", "c"]);

    let home = Home::new(turns());
    let id = home.start(RunRequest { max_iterations: Some(1), ..limited() }).await;
    let asks = asked(&home, &id).await.question;
    assert!(asks.starts_with("1 model call made; 1 more?"), "{asks}");
    assert!(asks.contains("Done so far: 1 step, 1 tool call (0 failed)."), "{asks}");

    let home = Home::new(turns());
    let alone = home.run(RunRequest { may_ask: false, key: None, ..limited() }).await;
    let id = home.start(limited()).await;
    let question = asked(&home, &id).await;
    home.motor.respond(&id, answer(&question, "no")).await.unwrap();
    let declined = home.motor.wait(&id).await.unwrap();
    assert_eq!((declined.status, declined.max_iterations), (RunStatus::Failed, 2));
    assert_eq!(declined.error, alone.error);
    assert_eq!(declined.error.unwrap().message, "the run reached the iteration cap of 2");
}

#[tokio::test]
async fn no_run_makes_more_calls_than_the_bound_of_all_runs() {
    let looks = (0..60).map(|part| call("look", json!({ "text": format!("part {part}") })));
    let home = Home::new(looks.collect());
    let id = home.start(RunRequest { max_iterations: Some(30), ..limited() }).await;
    loop {
        let record = still(&home, &id).await.unwrap();
        let Some(Waiting::Input(question)) = record.waiting else { break };
        assert_eq!(question.ceiling.unwrap().by, 20);
        home.motor.respond(&id, answer(&question, "yes")).await.unwrap();
    }
    let ended = home.motor.wait(&id).await.unwrap();
    let most = motor::ITERATION_CEILING;
    assert_eq!((ended.status, ended.max_iterations, ended.iterations), (RunStatus::Failed, most, most));
}

#[tokio::test(start_paused = true)]
async fn time_is_raised_by_as_much_again_and_an_unanswered_question_ends_the_run() {
    let limited = || RunRequest { timeout: Some(Duration::from_secs(3)), may_ask: true, ..request() };
    let disk = Disk::new(vec![call("hang", json!({})), Turn::Say("done")]);
    let home = disk.open();
    let id = home.start(limited()).await;
    let question = asked(&home, &id).await;
    assert_eq!((question.ceiling.unwrap().kind, question.ceiling.unwrap().by), (CeilingKind::Time, 3_000));
    home.motor.respond(&id, answer(&question, "yes")).await.unwrap();
    let ended = home.motor.wait(&id).await.unwrap();
    assert_eq!((ended.status, ended.timeout_ms), (RunStatus::Completed, 6_000));

    let disk = Disk::new(vec![call("hang", json!({})), Turn::Say("done")]);
    let home = disk.open();
    let id = home.start(limited()).await;
    asked(&home, &id).await;
    let ended = home.motor.wait(&id).await.unwrap();
    assert_eq!((ended.status, ended.timeout_ms), (RunStatus::Failed, 3_000));
    assert_eq!(ended.error.unwrap().message, "the run reached its time limit of 3 s");
}

/// The run to its end, on hosts of which the first has these faults; every ceiling is raised. Also whether a host died.
async fn lives(faults: Arc<dyn Faults>, when: &str) -> (Home, RunRecord, bool) {
    let mut home = Home::open(Arc::new(tempfile::tempdir().unwrap()), world(turns()), faults);
    let mut has_died = false;
    loop {
        let served = async {
            let id = home.motor.start(home.motor.new_run_id(), limited()).await?.id;
            let Some(record) = still(&home, &id).await else {
                return Err(Refusal::new(RefusalCode::StorageFailed, "the host died"));
            };
            let Some(Waiting::Input(question)) = &record.waiting else { return Ok(Some(record)) };
            home.motor.respond(&id, answer(question, "yes")).await?;
            Ok::<_, Refusal>(None)
        };
        match served.await {
            Ok(Some(record)) => return (home, record, has_died),
            Ok(None) => {}
            Err(refusal) => {
                assert!(FOR_STORAGE.contains(&refusal.code), "{when}: {refusal}");
                has_died = true;
                home = home.reopen().await;
                home.motor.resume_all().await.unwrap();
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_that_dies_at_any_write_asks_and_raises_once() {
    let (_, undisturbed, _) = lives(Arc::new(NoFaults), "undisturbed").await;
    assert_eq!((undisturbed.status, undisturbed.max_iterations), (RunStatus::Completed, 4));
    let mut deaths = 0;
    for n in 0.. {
        let mut alive = 0;
        for death in [Death::Unwritten, Death::Untold] {
            let when = format!("write {n}, {death:?}");
            let (home, ended, has_died) = lives(Arc::new(DiesAt::at(n, death)), &when).await;
            assert_eq!(ended.max_iterations, 4, "{when}");
            let questions = home.motor.status(&ended.id).unwrap().questions;
            assert_eq!(questions.len(), 1, "{when}: {questions:?}");
            assert_eq!(home.signals_of(&ended.id), 2, "{when}");
            deaths += u32::from(has_died);
            alive += u32::from(!has_died);
        }
        if alive == 2 {
            break;
        }
    }
    assert!(deaths >= 12, "{deaths}");
}
