//! A run with everything in it: tools of every effect, questions, approvals, replies that were cut off, an attempt that fails
//! and one that does not, and an owner who answers every question and repeats unacknowledged commands.

mod end;

use std::collections::{BTreeMap, BTreeSet};

use base::{Refusal, RunId};
use llm::{Arguments, FinishReason};
use motor::{
    Approval, ApprovalDecision, LiveEvent, QuestionAnswer, RetryRequest, RunRecord, RunRequest, RunStatus, Scope,
    Waiting,
};
use serde_json::json;

pub use end::{End, check};

use crate::consent::consent;
use crate::home::{Home, Turn, call, request};

/// Model calls of the first attempt.
const FIRST: u32 = 13;

/// An attempt that fails in the end, and one that does not.
pub fn both_attempts() -> Vec<Turn> {
    let fail = |n: u32| call("fail", json!({"text": "x", "n": n}));
    let get = |host: &'static str, n: u32| ("get", json!({"text": host, "n": n}));
    let post = || call("post", json!({"text": "entry"}));
    vec![
        call("flaky", json!({})),
        call("append", json!({"text": "a"})),
        Turn::Call(vec![("set", json!({})), ("append", json!({"text": "b"})), ("nothing", json!({}))]),
        call("look", json!({})),
        call("web", json!({})),
        call("ask_user", json!({"question": "Which one?", "choices": ["red", "blue"]})),
        call("send", json!({"text": "order"})),
        Turn::Call(vec![get("a", 1), get("a", 2), get("b", 3)]),
        post(),
        call("send", json!({"text": "not wanted"})),
        fail(1),
        fail(2),
        fail(3),
        call("look", json!({})),
        // Done before, so it is not done again.
        post(),
        call("append", json!({"text": "c"})),
        call("request_approval", json!({"action": "go on"})),
        call("send", json!({"text": "another order"})),
        call("set", json!({"text": "2"})),
        call("ask_user", json!({"question": "Is that all?"})),
        // Half a call, made again in full.
        Turn::Ends(FinishReason::Length, "", vec![Arguments::Malformed("{\"text\": \"d".into())]),
        call("append", json!({"text": "d"})),
        // An answer in three parts.
        Turn::Ends(FinishReason::Paused, "d", vec![]),
        Turn::Ends(FinishReason::Length, "on", vec![]),
        Turn::Say("e"),
    ]
}

/// The request for the run.
pub fn asked() -> RunRequest {
    RunRequest {
        may_ask: true,
        detached: false,
        skill: None,
        web_sources: vec![],
        by_model: false,
        money: motor::RunMoney::default(),
        approval_required: true,
        max_iterations: Some(FIRST),
        key: Some("start".into()),
        ..request()
    }
}

/// The owner: answers questions, retries failed runs, and remembers acknowledgements.
#[derive(Default)]
pub struct Owner {
    /// The waits that were seen, by id.
    asked: BTreeMap<String, Waiting>,
    /// The acknowledged answers, which must not be asked for again.
    acknowledged: BTreeSet<String>,
    /// The tool results that were shown by hosts that died.
    pub shown: Vec<String>,
    pub deaths: u32,
}

/// The run when it waits or is over; none when the host died.
pub async fn still(home: &Home, id: &RunId) -> Option<RunRecord> {
    let mut watch = home.motor.watch(id).unwrap();
    loop {
        let record = home.motor.record(id).unwrap();
        if record.status.is_terminal() || record.status.is_waiting() {
            return Some(record);
        }
        if matches!(watch.next().await, None | Some(LiveEvent::Suspended { .. })) {
            return None;
        }
    }
}

/// The tool results that a watcher is shown at once.
pub async fn seen(home: &Home, id: &RunId) -> Vec<String> {
    let mut watch = home.motor.watch(id).unwrap();
    let mut seen = Vec::new();
    loop {
        let event = tokio::select! {
            biased;
            event = watch.next() => event,
            () = std::future::ready(()) => None,
        };
        match event {
            Some(LiveEvent::ToolFinished { call_id, result, .. }) => seen.push(format!("{call_id} {}", result.output)),
            Some(_) => {}
            None => return seen,
        }
    }
}

/// Whether there is nothing more to be done about the run.
pub fn is_over(record: &RunRecord) -> bool {
    record.status == RunStatus::Completed || (record.status == RunStatus::Failed && record.attempt == 2)
}

impl Owner {
    /// The next host on the home of one that died.
    pub async fn goes_on(&mut self, home: Home, id: &RunId) -> Home {
        self.deaths += 1;
        self.shown = seen(&home, id).await;
        let home = home.reopen().await;
        home.motor.resume_all().await.unwrap();
        home
    }

    /// Gives a run that waits or has failed the command it needs. A command that died with its host is repeated unchanged.
    pub async fn serves(&mut self, home: &Home, record: &RunRecord) -> Result<(), Refusal> {
        let id = &record.id;
        let Some(waiting) = &record.waiting else {
            let key = format!("retry {}", record.attempt);
            assert!(!self.acknowledged.contains(&key), "the retry is lost: {record:?}");
            let request = RetryRequest {
                guidance: Some("try the other way".into()),
                key: Some(key.clone()),
                ..RetryRequest::default()
            };
            assert_eq!(home.motor.retry(id, request).await?.attempt_index, record.attempt + 1);
            self.acknowledged.insert(key);
            return Ok(());
        };
        let asked = waiting.id().to_owned();
        assert!(!self.acknowledged.contains(&asked), "`{asked}` is asked again");
        let before = self.asked.entry(asked.clone()).or_insert_with(|| waiting.clone());
        assert_eq!(before, waiting, "it is another question now");
        match waiting {
            Waiting::Input(question) => {
                // A call whose outcome is unknown takes a step of the attempt, which is to fail all the same.
                let text = match question.ceiling {
                    Some(_) => "no".into(),
                    None => question.choices.first().cloned().unwrap_or_else(|| "yes".into()),
                };
                let answer = QuestionAnswer {
                    text,
                    question: Some(asked.clone()),
                    consent: consent().into(),
                    key: Some(asked.clone()),
                };
                home.motor.respond(id, answer).await?;
            }
            Waiting::Approval(approval) => {
                home.motor.approve(id, decision(approval)).await?;
            }
        }
        self.acknowledged.insert(asked);
        Ok(())
    }
}

fn decision(approval: &Approval) -> ApprovalDecision {
    ApprovalDecision {
        approval: Some(approval.id.clone()),
        actions: approval.items.iter().map(|item| item.action_hash).collect(),
        grant: approval.items.iter().all(|item| item.arguments["text"] != "not wanted"),
        only: vec![],
        scope: Scope::Once,
        reason: None,
        consent: consent(),
        key: Some(approval.id.clone()),
    }
}
