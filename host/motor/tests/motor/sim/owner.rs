//! The people: they start runs, answer, decide, retry and cancel, in time or late, twice, or about something else.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Clock, ContentHash, Refusal, RunId, Timestamp};
use consent::Consent;
use grants::Grant;
use motor::{
    ApprovalDecision, ListFilter, Motor, QuestionAnswer, RetryRequest, RunRecord, RunRequest, RunStatus, Scope, Waiting,
};
use store::SimulatedDisk;

use super::chance::Chance;
use super::clock::VirtualClock;
use super::orders::{is_compared, mark_of};
use super::outside::{Issued, Order, Outside, Told};
use super::tools::NAMES;
use crate::consent::consent_at;
use crate::home::request;

const AGENTS: [&str; 3] = ["main", "second", "third"];

/// The people's view of one life of the host.
#[derive(Clone)]
pub struct People {
    pub motor: Motor,
    pub clock: Arc<VirtualClock>,
    pub disk: Arc<SimulatedDisk>,
    pub outside: Arc<Outside>,
    pub chance: Arc<Chance>,
    /// The disk may run out of room in this life.
    pub short_of_room: bool,
}

impl People {
    /// Gives a command or reads something, at random. Does not wait for the outcome.
    pub fn act(&self) {
        let runs = self.motor.list(ListFilter { limit: 12, ..ListFilter::default() }).unwrap_or_default();
        if runs.is_empty() || self.chance.percent(25) {
            return self.start();
        }
        // Mostly those that something can be done about.
        let open: Vec<_> = runs.iter().filter(|run| run.status.is_waiting()).cloned().collect();
        let run =
            if open.is_empty() || self.chance.percent(30) { self.chance.pick(&runs) } else { self.chance.pick(&open) };
        match (self.chance.below(100), &run.waiting, run.status) {
            (0..70, Some(Waiting::Input(_)), _) => self.respond(run),
            (0..70, Some(Waiting::Approval(_)), _) => self.approve(run),
            (0..60, None, RunStatus::Failed) => self.retry(run),
            (70..74, ..) => self.respond(run),
            (74..78, ..) => self.approve(run),
            (78..82, ..) => self.retry(run),
            (82..88, ..) => self.cancel(&run.id),
            (88..92, ..) => self.watch(&run.id),
            _ => self.look(&run.id),
        }
    }

    fn start(&self) {
        let agent = AgentName::parse(self.chance.pick::<&str>(&AGENTS)).unwrap();
        let issued = self.outside.known().orders.len();
        // Keys are sometimes used again, for the same command or for another.
        let key =
            format!("k{}", if self.chance.percent(85) { issued as u64 } else { self.chance.below(issued as u64 + 1) });
        let approval_required = self.chance.percent(40);
        let run = self.motor.new_run_id();
        let asked = RunRequest {
            agent: agent.clone(),
            task: format!("task {issued}"),
            tools: NAMES.map(str::to_owned).into(),
            max_iterations: Some(3 + self.chance.below(12) as u32),
            key: Some(key.clone()),
            approval_required,
            may_ask: self.chance.percent(85),
            ..request()
        };
        let (people, id) = (self.clone(), run.clone());
        self.issue(run, String::new(), Order::Start { agent, key }, async move {
            let record = people.motor.start(id, asked).await?;
            if people.chance.percent(30) {
                people.watch(&record.id);
            }
            Ok(Told::Run(record.id))
        });
    }

    fn respond(&self, run: &RunRecord) {
        let (mark, consent) = self.mark();
        let question = self.named(run.waiting.as_ref().map(Waiting::id));
        let answer = QuestionAnswer {
            text: mark.clone(),
            question: question.clone(),
            consent: consent.into(),
            key: self.chance.percent(50).then(|| mark.clone()),
        };
        for _ in 0..self.times() {
            let (motor, id, answer) = (self.motor.clone(), run.id.clone(), answer.clone());
            self.issue(run.id.clone(), mark.clone(), Order::Respond { question: question.clone() }, async move {
                motor.respond(&id, answer).await.map(|_| Told::Done)
            });
        }
    }

    fn approve(&self, run: &RunRecord) {
        let (mark, consent) = self.mark();
        let approval = self.named(run.waiting.as_ref().map(Waiting::id));
        let mut actions: Vec<ContentHash> = match &run.waiting {
            Some(Waiting::Approval(approval)) => approval.items.iter().map(|item| item.action_hash).collect(),
            _ => Vec::new(),
        };
        let is_astray = self.chance.percent(10);
        if is_astray {
            actions.push(ContentHash::of(b"another action"));
        } else if self.chance.percent(30) {
            actions.clear();
        }
        let scopes = match &run.waiting {
            Some(Waiting::Approval(approval)) => approval.choices.clone(),
            _ => vec![Scope::Once, Scope::Always],
        };
        let only = if self.chance.percent(20) { actions.first().copied() } else { None };
        let decided = ApprovalDecision {
            approval: approval.clone(),
            actions,
            only: only.into_iter().collect(),
            grant: self.chance.percent(70),
            scope: if self.chance.percent(90) { *self.chance.pick(&scopes) } else { Scope::Session },
            reason: self.chance.percent(30).then(|| "because".into()),
            consent,
            key: self.chance.percent(50).then(|| mark.clone()),
        };
        let order = Order::Approve { approval, grant: decided.grant, is_astray };
        for _ in 0..self.times() {
            let (motor, id, decided) = (self.motor.clone(), run.id.clone(), decided.clone());
            self.issue(run.id.clone(), mark.clone(), order.clone(), async move {
                motor.approve(&id, decided).await.map(|_| Told::Done)
            });
        }
    }

    fn retry(&self, run: &RunRecord) {
        let (mark, consent) = self.mark();
        let asked = RetryRequest {
            guidance: self.chance.percent(50).then(|| "better".into()),
            grant: self
                .chance
                .percent(10)
                .then(|| Grant { model: Some("test/other".into()), ..Grant::default() }.into()),
            max_iterations: None,
            consent: Some(consent),
            key: self.chance.percent(50).then(|| mark.clone()),
            usd: None,
        };
        for _ in 0..self.times() {
            let (motor, id, asked) = (self.motor.clone(), run.id.clone(), asked.clone());
            self.issue(run.id.clone(), mark.clone(), Order::Retry, async move {
                motor.retry(&id, asked).await.map(|retried| Told::Attempt(retried.attempt_index))
            });
        }
    }

    fn cancel(&self, run: &RunId) {
        for _ in 0..self.times() {
            let (motor, id) = (self.motor.clone(), run.clone());
            self.issue(run.clone(), String::new(), Order::Cancel, async move {
                motor.cancel(&id).await.map(|_| Told::Done)
            });
        }
    }

    /// Gives a command and records the reply; a dead host does not reply.
    fn issue(
        &self,
        run: RunId,
        mark: String,
        order: Order,
        work: impl Future<Output = Result<Told, Refusal>> + Send + 'static,
    ) {
        let mut known = self.outside.known();
        let number = known.orders.len();
        known.diary.push(format!("{} order {number}: {order:?} of {run} {mark}", self.clock.now()));
        let took = Duration::ZERO;
        known.orders.push(Issued { mark, run, order, told: None, took, short_of_room: self.short_of_room });
        drop(known);
        let people = self.clone();
        tokio::spawn(async move {
            let began = people.clock.monotonic();
            let told = work.await;
            if !people.disk.is_crashed() {
                people.outside.told(number, told, people.clock.monotonic() - began, false);
            }
        });
    }

    /// Follows a run and records the events it is shown.
    fn watch(&self, run: &RunId) {
        let Ok(mut watch) = self.motor.watch(run) else { return };
        let (people, run) = (self.clone(), run.clone());
        tokio::spawn(async move {
            while let Some(event) = watch.next().await {
                if people.disk.is_crashed() {
                    return;
                }
                if is_compared(&event) {
                    people.outside.known().shown.push((run.clone(), event));
                }
            }
        });
    }

    /// Checks that reads work at any time and agree with one another.
    fn look(&self, run: &RunId) {
        let read = self.motor.record(run).and_then(|record| {
            self.motor.log(run)?;
            Ok((record, self.motor.status(run)?))
        });
        match read {
            Ok((record, trace)) if record.status != trace.status || record.iterations != trace.total_iterations => {
                self.outside.broken(format!("run {run} is {}, and its trace says {}", record.status, trace.status));
            }
            Ok(_) => {}
            Err(refusal) => self.outside.broken(format!("run {run} cannot be read: {refusal}")),
        }
    }

    /// The id that is meant, or none, or a wrong one.
    fn named(&self, id: Option<&str>) -> Option<String> {
        match self.chance.below(10) {
            0 => Some("apr_000000000000".into()),
            1..3 => None,
            _ => id.map(str::to_owned),
        }
    }

    /// How often the same order is given.
    fn times(&self) -> usize {
        if self.chance.percent(15) { 2 } else { 1 }
    }

    /// The mark of the next order, and the consent that has it: the time it was given is the order's number.
    fn mark(&self) -> (String, Consent) {
        let number = Timestamp::from_millis(self.outside.known().orders.len() as u64);
        (mark_of(number), consent_at(number))
    }
}
