//! The ledger over time: counts, judgements, prompts, forgetting, and the end of the process at every write.

mod crash;
mod forget;
mod hostile;
mod life;
mod speed;

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, Random, TestClock, Timestamp};
use store::{SimulatedDisk, Store};

use crate::{
    AssessmentSource, ChannelName, Direction, Ledger, LedgerParts, NewAssessment, NewInteraction, PeerId, TrustChange,
};

const DAY: Duration = Duration::from_secs(24 * 3_600);

struct World {
    disk: Arc<SimulatedDisk>,
    clock: Arc<TestClock>,
}

impl World {
    fn new() -> Self {
        let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_800_000_000_000)));
        Self { disk: SimulatedDisk::new(1), clock }
    }

    fn open(&self) -> Ledger {
        Ledger::open(LedgerParts {
            store: Store::simulated(self.disk.clone()).unwrap(),
            clock: self.clock.clone(),
            random: Arc::new(Random::seeded(self.disk.writes())),
        })
    }
}

fn main() -> AgentName {
    AgentName::default()
}

fn peer(id: &str) -> PeerId {
    PeerId::parse(id).unwrap()
}

fn said(direction: Direction, summary: &str) -> NewInteraction {
    NewInteraction { direction, channel: ChannelName::parse("http").unwrap(), summary: summary.to_owned() }
}

/// A request and its reply.
fn exchange(summary: &str) -> Vec<NewInteraction> {
    vec![said(Direction::Incoming, summary), said(Direction::Outgoing, "done")]
}

fn judgement(id: &str, trust: i64, rationale: &str) -> NewAssessment {
    NewAssessment {
        peer: peer(id),
        trust: TrustChange::Set(trust),
        rationale: rationale.to_owned(),
        source: AssessmentSource::Owner,
    }
}
