//! Keys of the ledger's tables; the crate's documentation has the layout.

use base::{AgentName, Timestamp};

use crate::PeerId;

/// Begins the notes about forgotten peers. No agent's name begins so.
const FORGOTTEN: u8 = 1;
/// Begins the numbers whose entries are still to be deleted.
const PURGE: u8 = 2;

/// The heads of an agent.
pub(crate) fn agent_prefix(agent: &AgentName) -> Vec<u8> {
    let mut key = agent.as_str().as_bytes().to_vec();
    key.push(0);
    key
}

/// The head of a peer. Neither name has a zero byte.
pub(crate) fn head(agent: &AgentName, peer: &PeerId) -> Vec<u8> {
    let mut key = agent_prefix(agent);
    key.extend(peer.as_str().as_bytes());
    key
}

/// The peer of a head's key.
pub(crate) fn peer_of(agent: &AgentName, key: &[u8]) -> Option<PeerId> {
    let id = key.strip_prefix(agent_prefix(agent).as_slice())?;
    PeerId::parse(std::str::from_utf8(id).ok()?).ok()
}

/// One entry of a peer.
pub(crate) fn entry(number: u64, sequence: u64) -> Vec<u8> {
    let mut key = number.to_be_bytes().to_vec();
    key.extend(sequence.to_be_bytes());
    key
}

/// The notes about forgotten peers of an agent.
pub(crate) fn forgotten_prefix(agent: &AgentName) -> Vec<u8> {
    let mut key = vec![FORGOTTEN];
    key.extend(agent_prefix(agent));
    key
}

/// The note about one forgotten peer.
pub(crate) fn forgotten(agent: &AgentName, at: Timestamp, number: u64) -> Vec<u8> {
    let mut key = forgotten_prefix(agent);
    key.extend(at.as_millis().to_be_bytes());
    key.extend(number.to_be_bytes());
    key
}

/// The numbers whose entries are still to be deleted.
pub(crate) fn purge_prefix() -> Vec<u8> {
    vec![PURGE]
}

/// Says that the entries under this number are to be deleted.
pub(crate) fn purge(number: u64) -> Vec<u8> {
    let mut key = purge_prefix();
    key.extend(number.to_be_bytes());
    key
}

/// The number in such a key.
pub(crate) fn purged(key: &[u8]) -> Option<u64> {
    key.strip_prefix(purge_prefix().as_slice())?.try_into().ok().map(u64::from_be_bytes)
}
