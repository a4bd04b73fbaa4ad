//! Observation (SPEC CX-1): counters that the hooks of the main loop add to.
//!
//! Only counts and ids of peers are kept, so the memory is bounded however long no cycle comes. Observing cannot fail, and takes a
//! lock that is held for the length of an addition.

use std::collections::BTreeMap;

use base::AgentName;
use ledger::{Direction, PeerId};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Peers that are kept between two cycles. Activity of further ones only counts.
const MAX_ACTIVE_PEERS: usize = 1_000;

/// Something that the main loop did. Metadata alone: no text of a message, a model or a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Observation {
    /// A message of or to a peer was recorded in the ledger.
    Message {
        /// The peer in the ledger.
        peer: PeerId,
        /// The direction, seen from the agent.
        direction: Direction,
        /// Whether the ledger did not know the peer before.
        is_new: bool,
    },
    /// A model replied to the main loop.
    ModelReplied {
        /// Tokens of the prompt and the reply.
        tokens: u64,
    },
    /// A call of a tool returned.
    ToolReturned {
        /// Whether the call succeeded.
        ok: bool,
    },
    /// A promise of or to this peer was not kept in time.
    Overdue {
        /// The peer in the ledger.
        peer: PeerId,
    },
    /// A run of the agent is over.
    RunEnded {
        /// Replies of its model.
        model_replies: u64,
        /// Tokens of all its prompts and replies.
        tokens: u64,
        /// Calls of tools that returned.
        tool_calls: u64,
        /// Failed calls of tools.
        tool_failures: u64,
    },
}

/// The activity since the last cycle, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Activity {
    /// Messages in both directions.
    pub interactions: u64,
    /// Messages from peers to the agent.
    pub incoming: u64,
    /// Peers that were new.
    pub new_peers: u64,
    /// Promises that were not kept in time.
    pub overdue: u64,
    /// Runs that are over.
    #[serde(default)]
    pub runs: u64,
    /// Replies of models to the agent.
    pub model_replies: u64,
    /// Tokens of those replies and their prompts.
    pub tokens: u64,
    /// Calls of tools that returned.
    pub tool_calls: u64,
    /// Failed calls of tools.
    pub tool_failures: u64,
}

/// The activity that a cycle takes over.
#[derive(Debug, Clone, Default)]
pub(crate) struct Observed {
    pub activity: Activity,
    /// Interactions of each peer since it was last in a cycle.
    pub peers: BTreeMap<PeerId, u64>,
}

/// Collects observations. Each addition is a few steps.
#[derive(Debug, Default)]
pub(crate) struct ActivityBuffer(Mutex<Observed>);

impl ActivityBuffer {
    pub fn observe(&self, observation: Observation) {
        let mut observed = self.0.lock();
        let Observed { activity, peers } = &mut *observed;
        match observation {
            Observation::Message { peer, direction, is_new } => {
                add(&mut activity.interactions, 1);
                add(&mut activity.incoming, u64::from(direction == Direction::Incoming));
                add(&mut activity.new_peers, u64::from(is_new));
                note(peers, peer, 1);
            }
            Observation::ModelReplied { tokens } => {
                add(&mut activity.model_replies, 1);
                add(&mut activity.tokens, tokens);
            }
            Observation::ToolReturned { ok } => {
                add(&mut activity.tool_calls, 1);
                add(&mut activity.tool_failures, u64::from(!ok));
            }
            Observation::Overdue { peer } => {
                add(&mut activity.overdue, 1);
                note(peers, peer, 1);
            }
            Observation::RunEnded { model_replies, tokens, tool_calls, tool_failures } => {
                add(&mut activity.runs, 1);
                add(&mut activity.model_replies, model_replies);
                add(&mut activity.tokens, tokens);
                add(&mut activity.tool_calls, tool_calls);
                add(&mut activity.tool_failures, tool_failures);
            }
        }
    }

    /// The counts so far.
    pub fn activity(&self) -> Activity {
        self.0.lock().activity
    }

    /// Takes everything over; the counts begin at zero.
    pub fn take(&self) -> Observed {
        std::mem::take(&mut *self.0.lock())
    }

    /// Gives peers back that a cycle did not get to. They start no cycle by themselves: the counts stay.
    pub fn give_back(&self, peers: impl IntoIterator<Item = (PeerId, u64)>) {
        let mut observed = self.0.lock();
        for (peer, count) in peers {
            note(&mut observed.peers, peer, count);
        }
    }

    /// Removes a peer; the counts stay.
    pub fn forget(&self, peer: &PeerId) {
        self.0.lock().peers.remove(peer);
    }
}

fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

fn note(peers: &mut BTreeMap<PeerId, u64>, peer: PeerId, more: u64) {
    let has_room = peers.len() < MAX_ACTIVE_PEERS;
    match peers.get_mut(&peer) {
        Some(count) => add(count, more),
        None if has_room => {
            peers.insert(peer, more);
        }
        None => {}
    }
}

/// The key of an agent's records.
pub(crate) fn agent_key(agent: &AgentName, rest: &[u8]) -> Vec<u8> {
    let mut key = agent.as_str().as_bytes().to_vec();
    key.push(0);
    key.extend(rest);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_peers_is_bounded() {
        let buffer = ActivityBuffer::default();
        for number in 0..5_000 {
            let peer = PeerId::parse(&format!("p{number}")).unwrap();
            buffer.observe(Observation::Message { peer, direction: Direction::Incoming, is_new: true });
        }
        assert_eq!((buffer.activity().interactions, buffer.activity().new_peers), (5_000, 5_000));
        let taken = buffer.take();
        assert_eq!(taken.peers.len(), MAX_ACTIVE_PEERS);
        assert_eq!(buffer.activity(), Activity::default());
        buffer.give_back(taken.peers);
        assert_eq!((buffer.activity(), buffer.take().peers.len()), (Activity::default(), MAX_ACTIVE_PEERS));
    }
}
