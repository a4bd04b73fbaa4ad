//! Wall clocks that are set while runs work and wait.

use std::time::Duration;

use base::Timestamp;
use motor::{RunRequest, RunStatus};
use serde_json::json;

use crate::home::{Turn, call, request};
use crate::prune::Disk;

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_ends_no_run_and_gives_it_no_time() {
    for jump in [36_000_000, -36_000_000] {
        let disk = Disk::new(vec![call("look", json!({})), call("hang", json!({})), Turn::Say("done")]);
        let home = disk.open();
        let id = home.start(RunRequest { timeout: Some(Duration::from_secs(3)), ..request() }).await;
        tokio::time::sleep(Duration::from_secs(1)).await;
        disk.clock.jump(jump);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(home.motor.record(&id).unwrap().status, RunStatus::Running, "{jump}");
        let began = tokio::time::Instant::now();
        let ended = home.motor.wait(&id).await.unwrap();
        let error = ended.error.unwrap().message;
        assert!(error.contains("time limit of 3 s"), "{jump}: {error}");
        assert!(began.elapsed() <= Duration::from_secs(2), "{jump}: {:?}", began.elapsed());
        assert!((3_000..3_100).contains(&ended.worked_ms.unwrap()), "{jump}: {:?}", ended.worked_ms);
    }
}

#[tokio::test(start_paused = true)]
async fn waiting_for_people_is_no_work_whatever_the_clock_does_meanwhile() {
    let ask = call("ask_user", json!({"question": "Which?"}));
    let disk = Disk::new(vec![ask, call("look", json!({})), Turn::Say("done")]);
    let home = disk.open();
    let limited = RunRequest { timeout: Some(Duration::from_secs(3)), may_ask: true, ..request() };
    let id = home.start(limited).await;
    while home.motor.record(&id).unwrap().status != RunStatus::AwaitingInput {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    disk.clock.jump(600_000);
    home.motor.respond(&id, answer()).await.unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_set_ends_no_wait_and_prolongs_none() {
    for jump in [36_000_000, -36_000_000] {
        let ask = call("ask_user", json!({"question": "Which?"}));
        let disk = Disk::new(vec![ask, Turn::Say("done")]);
        let home = disk.open();
        let mut waiting = Vec::new();
        for agent in ["a", "b"] {
            let agent = base::AgentName::parse(agent).unwrap();
            waiting.push(home.start(RunRequest { agent, may_ask: true, ..request() }).await);
        }
        let status = |index: usize| home.motor.record(&waiting[index]).unwrap().status;
        while [0, 1].map(status) != [RunStatus::AwaitingInput; 2] {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        disk.clock.jump(jump);
        // Every timer has had the time to look.
        tokio::time::sleep(Duration::from_secs(29 * 60)).await;
        assert_eq!([0, 1].map(status), [RunStatus::AwaitingInput; 2], "{jump}");
        home.motor.respond(&waiting[0], answer()).await.unwrap();
        tokio::time::sleep(Duration::from_secs(61)).await;
        let expired = home.motor.wait(&waiting[1]).await.unwrap();
        assert_eq!(expired.error.unwrap().message, "User response timeout", "{jump}");
        assert_ne!(status(0), RunStatus::Failed, "{jump}");
    }
}

/// Between two hosts there is only the wall clock.
#[tokio::test(start_paused = true)]
async fn the_next_host_ends_a_wait_by_the_wall_clock() {
    for (jump, expected) in [(36_000_000, RunStatus::Failed), (0, RunStatus::AwaitingInput)] {
        let disk = Disk::new(vec![call("ask_user", json!({"question": "Which?"})), Turn::Say("done")]);
        let home = disk.open();
        let id = home.start(RunRequest { may_ask: true, ..request() }).await;
        while home.motor.record(&id).unwrap().status != RunStatus::AwaitingInput {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        home.motor.shutdown().await;
        drop(home);
        disk.clock.jump(jump);
        let home = disk.open();
        home.motor.resume_all().await.unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(home.motor.record(&id).unwrap().status, expected, "{jump}");
    }
}

fn answer() -> motor::QuestionAnswer {
    motor::QuestionAnswer {
        text: "this".into(),
        question: None,
        consent: crate::consent::consent_at(Timestamp::from_millis(0)).into(),
        key: None,
    }
}
