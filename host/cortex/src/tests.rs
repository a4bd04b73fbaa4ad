//! The cortex with scripted models, on a clock that only the tests move.

mod crash;
mod days;
mod forgotten;
mod guidance;
mod hostile;
mod life;
mod news;
mod plan;
mod simulation;
mod speed;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Random, Refusal, RefusalCode, TestClock, Timestamp};
use ledger::{ChannelName, Direction, Ledger, LedgerParts, NewInteraction, PeerId};
use parking_lot::Mutex;
use serde_json::{Value, json};
use store::{SimulatedDisk, Store};

use crate::{
    Cortex, CortexConfig, CortexParts, CycleOutcome, CycleSummaries, ModelReply, Observation, Promiser, Prompt,
    Proposals, ProposedAssessment, ProposedBelief, ProposedCommitment, ProposedDirective, ProposedGuidance,
    ReflectOutcome, ReflectionModel, ReflectionRecord, Reflector, ReflectorError, SkipCode, Trigger, UsedReflector,
};

const MINUTE: Duration = Duration::from_secs(60);

struct World {
    disk: Arc<SimulatedDisk>,
    clock: Arc<TestClock>,
}

/// A home with ledger and cortex opened.
struct Home {
    ledger: Ledger,
    cortex: Cortex,
    clock: Arc<TestClock>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
        Self { disk: SimulatedDisk::new(1), clock }
    }

    fn open(&self) -> Home {
        self.open_with(CortexConfig::default())
    }

    fn open_with(&self, config: CortexConfig) -> Home {
        let (store, clock) = (Store::simulated(self.disk.clone()).unwrap(), self.clock.clone());
        let random = Arc::new(Random::seeded(self.disk.writes()));
        let ledger = Ledger::open(LedgerParts { store: store.clone(), clock: clock.clone(), random });
        let parts = CortexParts { store, clock: clock.clone(), ledger: ledger.clone(), agent: agent(), config };
        Home { ledger, cortex: Cortex::open(parts).unwrap(), clock }
    }
}

impl Home {
    /// A message of a peer, as the main loop records and observes it.
    async fn hears(&self, id: &str, summary: &str) {
        self.try_hear(id, summary).await.unwrap();
    }

    async fn try_hear(&self, id: &str, summary: &str) -> Result<(), Refusal> {
        let direction = Direction::Incoming;
        let channel = ChannelName::parse("http").unwrap();
        let interaction = NewInteraction { direction, channel, summary: summary.to_owned() };
        let recorded = self.ledger.record(&agent(), &peer(id), vec![interaction]).await?;
        self.cortex.observe(Observation::Message { peer: peer(id), direction, is_new: recorded.is_new });
        Ok(())
    }

    async fn reflect(&self, model: &Arc<Scripted>) -> ReflectOutcome {
        self.cortex.reflect(vec![Trigger::Owner], Arc::new(PlainReflector), model.clone()).await.unwrap()
    }

    /// Hears from a peer, and reflects with this reply.
    async fn cycle(&self, id: &str, reply: Value) -> ReflectionRecord {
        self.hears(id, "a request").await;
        record(self.reflect(&Scripted::replying([reply.to_string()])).await)
    }

    fn trust(&self, id: &str) -> Option<i8> {
        self.ledger.report(&agent(), &peer(id)).unwrap().summary.trust
    }

    /// A system prompt with the beliefs, without the fence around them.
    fn injected(&self) -> String {
        let text = self.cortex.inject(None, 20_000).text;
        let is_fence = |line: &&str| line.starts_with("<untrusted-") || line.starts_with("</untrusted-");
        let lines: String = text.split_inclusive('\n').filter(|line| !is_fence(line)).collect();
        format!("You are an agent.{lines}")
    }
}

/// The logic of the bundled reflector, without the component around it.
struct PlainReflector;

#[async_trait]
impl Reflector for PlainReflector {
    fn used(&self) -> UsedReflector {
        UsedReflector::default()
    }

    async fn prompt(&self, summaries: &CycleSummaries) -> Result<Prompt, ReflectorError> {
        let reflection::Prompt { system, user } = reflection::compose(&serde_json::to_string(summaries).unwrap());
        Ok(Prompt { system, user })
    }

    async fn proposals(&self, reply: &str) -> Result<Proposals, ReflectorError> {
        let unreadable = |reason| ReflectorError::new(SkipCode::ReplyUnreadable, reason);
        let reflection::Proposals { assessments, beliefs, summary } =
            reflection::interpret(reply).map_err(unreadable)?;
        let assessment =
            |reflection::Assessment { peer, trust, rationale }| ProposedAssessment { peer, trust, rationale };
        let belief =
            |reflection::Belief { key, value, rationale, peer }| ProposedBelief { key, value, rationale, peer };
        Ok(Proposals {
            assessments: assessments.into_iter().map(assessment).collect(),
            beliefs: beliefs.into_iter().map(belief).collect(),
            summary,
            guidance: guidance(reflection::guide(reply).map_err(unreadable)?),
        })
    }
}

fn guidance(read: reflection::Guidance) -> ProposedGuidance {
    let reflection::Guidance { commitments, closings, directives, drift } = read;
    let commitment = |reflection::Commitment { key, text, by_peer, peer, due_in_minutes }| {
        let by = if by_peer { Promiser::Peer } else { Promiser::Agent };
        ProposedCommitment { key, text, by, peer, due_in_minutes }
    };
    let directive = |reflection::Directive { key, text, peer }| ProposedDirective { key, text, peer };
    ProposedGuidance {
        commitments: commitments.into_iter().map(commitment).collect(),
        closings: closings.into_iter().map(|reflection::Closing { key, kept }| (key, kept)).collect(),
        directives: directives.into_iter().map(directive).collect(),
        drift,
    }
}

/// A model that replies as scripted, and then refuses.
#[derive(Default)]
struct Scripted {
    replies: Mutex<VecDeque<String>>,
    prompts: Mutex<Vec<Prompt>>,
}

impl Scripted {
    fn replying(replies: impl IntoIterator<Item = impl Into<String>>) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().map(Into::into).collect());
        Arc::new(Self { replies, prompts: Mutex::default() })
    }

    fn asked(&self) -> usize {
        self.prompts.lock().len()
    }
}

#[async_trait]
impl ReflectionModel for Scripted {
    async fn ask(&self, prompt: Prompt) -> Result<ModelReply, Refusal> {
        let tokens = u64::try_from(prompt.user.len() / 4).unwrap();
        self.prompts.lock().push(prompt);
        let reply = self.replies.lock().pop_front();
        let text = reply.ok_or_else(|| Refusal::new(RefusalCode::ModelUnavailable, "the model is gone"))?;
        Ok(ModelReply { output_tokens: Some(50), input_tokens: Some(tokens), text })
    }
}

fn agent() -> AgentName {
    AgentName::default()
}

fn peer(id: &str) -> PeerId {
    PeerId::parse(id).unwrap()
}

fn trusting(id: &str, trust: impl Into<Value>) -> Value {
    let assessment = json!({ "peer_id": id, "trust": trust.into(), "rationale": "observed behaviour" });
    json!({ "assessments": [assessment], "beliefs": [], "summary": "s" })
}

fn believing(key: &str, value: &str, rationale: &str) -> Value {
    let belief = json!({ "key": key, "value": value, "rationale": rationale });
    json!({ "assessments": [], "beliefs": [belief], "summary": "s" })
}

#[track_caller]
fn record(outcome: ReflectOutcome) -> ReflectionRecord {
    match outcome {
        ReflectOutcome::Done { record, .. } => record,
        other => panic!("{other:?}"),
    }
}

/// The reason of a skipped cycle.
#[track_caller]
fn skipped(record: &ReflectionRecord) -> &str {
    match &record.outcome {
        CycleOutcome::Skipped { reason, .. } => reason,
        CycleOutcome::Applied { .. } => panic!("it was applied: {record:?}"),
    }
}

/// The code of a skipped cycle.
#[track_caller]
fn skip_code(record: &ReflectionRecord) -> SkipCode {
    match &record.outcome {
        CycleOutcome::Skipped { code, .. } => *code,
        CycleOutcome::Applied { .. } => panic!("it was applied: {record:?}"),
    }
}

/// The proposals that an applied cycle left out.
#[track_caller]
fn refused(record: &ReflectionRecord) -> &[String] {
    match &record.outcome {
        CycleOutcome::Applied { refused, .. } => refused,
        CycleOutcome::Skipped { reason, .. } => panic!("it was skipped: {reason}"),
    }
}
