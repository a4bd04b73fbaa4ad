//! The parts of the cortex that stand in the way of a turn: observing a message, and the beliefs for its prompt (SPEC CX-1, CX-7).

use std::time::Instant;

use agent::ReflectRequest;
use anyhow::{Result, ensure};
use base::AgentName;
use cortex::Observation;
use ledger::{ChannelName, Direction, NewInteraction};
use serde_json::json;
use tests::binary::Motor;

use super::{Model, open, peer};
use crate::stats::{Aim, Times, line};

/// Calls of each part.
const CALLS: usize = 100_000;
/// Beliefs in the prompt: as many as an agent has at most.
const BELIEFS: usize = 20;
/// Peers whose messages are observed.
const PEERS: usize = 500;
/// The characters that a prompt has for them.
const ROOM: usize = 20_000;
const CONFIG: &str = "[cortex.triggers]\ntimer = false\ninteraction_count = false\nnew_peer = false\n";

fn reply(_: &str) -> Option<String> {
    let belief = |number| json!({ "key": format!("belief-{number}"), "value": "v".repeat(100), "rationale": "r", "peer_id": "p0" });
    let beliefs: Vec<_> = (0..BELIEFS).map(belief).collect();
    Some(json!({ "assessments": [], "beliefs": beliefs, "summary": "s" }).to_string())
}

pub async fn measure() -> Result<()> {
    let model = Model::start(reply).await;
    let motor = Motor::bare().env("MOTOR_KEYRING", "off").unattended();
    motor.configure(CONFIG);
    let host = open(&motor, &model).await?;
    let (reflections, agent) = (&host.reflections, AgentName::default());
    let peers: Vec<_> = (0..PEERS).map(|number| peer(&format!("p{number}"))).collect::<Result<_>>()?;
    let channel = ChannelName::parse("bench")?;
    let hello = NewInteraction { direction: Direction::Incoming, channel, summary: "hello".to_owned() };
    reflections.record(&agent, &peers[0], vec![hello]).await?;
    reflections.reflect(ReflectRequest::default()).await?;
    let (mut observed, mut injected) = (Times::default(), Times::default());
    for number in 0..CALLS {
        let peer = peers[number % PEERS].clone();
        let observation = Observation::Message { peer, direction: Direction::Incoming, is_new: number < PEERS };
        let started = Instant::now();
        reflections.observe(&agent, observation);
        observed.add(started.elapsed());
        let started = Instant::now();
        let block = reflections.inject(&agent, None, ROOM);
        injected.add(started.elapsed());
        ensure!(block.text.matches("- belief-").count() == BELIEFS, "{block:?}");
    }
    line("observing a message, p99", observed.p99() * 1_000.0, "us", Some(Aim::AtMost(10.0)));
    line("20 beliefs for a prompt, p99", injected.p99() * 1_000.0, "us", Some(Aim::AtMost(50.0)));
    host.shutdown().await;
    Ok(())
}
