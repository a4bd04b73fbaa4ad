//! The commitments of an agent (SPEC CX-10), within their limits.
//!
//! A promise is text that a model wrote about strangers. So it needs an interaction of the side that promised, its time is fixed when
//! it is found (to propose it again moves nothing), no peer can take more than a quarter of the room, and one that is closed
//! does not come back while it is remembered.

use std::time::Duration;

use base::Timestamp;
use ledger::{Direction, PeerId};
use serde::{Deserialize, Serialize};

use crate::belief::{bounded, checked_key, folded, names};
use crate::commitment::{Commitment, CommitmentStatus, Promiser};
use crate::reflector::ProposedCommitment;
use crate::summary::{CommitmentBrief, PeerBrief};

/// Characters of a promise.
const MAX_TEXT: usize = 200;
/// Closed commitments that are remembered.
const MAX_CLOSED: usize = 50;
/// How long one stays overdue: without an end, those of hostile peers would take all places for good.
const MAX_OVERDUE: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// The commitments of an agent, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct CommitmentSet(Vec<Commitment>);

/// The limits of commitments.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommitmentLimits {
    /// Open ones at a time.
    pub most: usize,
    /// How far in the future they may be due.
    pub horizon: Duration,
}

impl CommitmentSet {
    pub fn all(&self) -> &[Commitment] {
        &self.0
    }

    pub fn open(&self) -> impl Iterator<Item = &Commitment> {
        self.0.iter().filter(|commitment| commitment.status.is_open())
    }

    /// Takes up a promise that a cycle proposes; `false` if it is known.
    ///
    /// # Errors
    /// With the reason to leave it out.
    pub fn add(
        &mut self,
        proposed: ProposedCommitment,
        shown: &[PeerBrief],
        (now, cycle): (Timestamp, u64),
        limits: CommitmentLimits,
    ) -> Result<bool, String> {
        let ProposedCommitment { key, text, by, peer, due_in_minutes } = proposed;
        checked_key(&key)?;
        let text = bounded(&text, MAX_TEXT).ok_or("its text is empty or has more than 200 characters")?;
        let brief = shown.iter().find(|brief| brief.peer.as_str() == peer);
        let brief = brief.ok_or("the peer was not shown in this cycle")?;
        let is_same = |known: &Commitment| {
            known.key == key || (known.peer == brief.peer && known.by == by && folded(&known.text) == folded(&text))
        };
        if self.0.iter().any(is_same) {
            return Ok(false);
        }
        let minutes = Duration::from_secs(due_in_minutes.unsigned_abs().saturating_mul(60));
        let due_at = match due_in_minutes < 0 {
            true => Timestamp::from_millis(
                now.as_millis().saturating_sub(u64::try_from(minutes.as_millis()).unwrap_or(u64::MAX)),
            ),
            false if minutes > limits.horizon => return Err("it is due too far in the future".to_owned()),
            false => now.after(minutes),
        };
        let direction = match by {
            Promiser::Agent => Direction::Outgoing,
            Promiser::Peer => Direction::Incoming,
        };
        // The latest that could have made it: a promise is not due before it was made.
        let is_source = |said: &&crate::InteractionBrief| said.direction == direction && said.at <= due_at;
        let source = brief.interactions.iter().rev().find(is_source);
        let source = source.ok_or("no interaction that was shown could have made it")?;
        let (open, of_peer) =
            self.open().fold((0, 0), |(all, of), known| (all + 1, of + usize::from(known.peer == brief.peer)));
        if open >= limits.most || of_peer >= limits.most.div_ceil(4) {
            return Err("there is no room for another one".to_owned());
        }
        self.0.push(Commitment {
            key,
            text,
            by,
            peer: brief.peer.clone(),
            channel: source.channel.clone(),
            said_at: source.at,
            due_at,
            cycle,
            status: CommitmentStatus::Open,
            closed_at: None,
        });
        Ok(true)
    }

    /// Closes an open commitment.
    ///
    /// # Errors
    /// If there is no open one with this key.
    pub fn close(&mut self, key: &str, kept: bool, now: Timestamp) -> Result<(), String> {
        let found = self.0.iter_mut().find(|commitment| commitment.key == key && commitment.status.is_open());
        let found = found.ok_or("no commitment with this key is open")?;
        found.status = if kept { CommitmentStatus::Done } else { CommitmentStatus::Dropped };
        found.closed_at = Some(now);
        self.trim_closed();
        Ok(())
    }

    fn trim_closed(&mut self) {
        let closed = self.0.iter().filter(|commitment| !commitment.status.is_open()).count();
        let mut surplus = closed.saturating_sub(MAX_CLOSED);
        self.0.retain(|commitment| {
            let goes = surplus > 0 && !commitment.status.is_open();
            surplus -= usize::from(goes);
            !goes
        });
    }

    /// Closes a commitment because a reflection says so: only with a peer that was shown, and after a newer interaction.
    ///
    /// # Errors
    /// With the reason to leave it out.
    pub fn close_shown(&mut self, key: &str, kept: bool, shown: &[PeerBrief], now: Timestamp) -> Result<(), String> {
        let is_newer = |commitment: &Commitment| {
            let brief = shown.iter().find(|brief| brief.peer == commitment.peer);
            brief.is_some_and(|brief| brief.interactions.iter().any(|said| said.at > commitment.said_at))
        };
        if self.open().find(|commitment| commitment.key == key).is_some_and(|commitment| !is_newer(commitment)) {
            return Err("no newer interaction with its peer was shown".to_owned());
        }
        self.close(key, kept, now)
    }

    /// Marks those whose time is over, and returns them. Drops those that have been overdue for a week.
    pub fn expire(&mut self, now: Timestamp) -> Vec<Commitment> {
        for commitment in self.0.iter_mut().filter(|commitment| is_stale(commitment, now)) {
            commitment.status = CommitmentStatus::Dropped;
            commitment.closed_at = Some(now);
        }
        self.trim_closed();
        let due = |commitment: &&mut Commitment| is_newly_overdue(commitment, now);
        let mark = |commitment: &mut Commitment| {
            commitment.status = CommitmentStatus::Overdue;
            commitment.clone()
        };
        self.0.iter_mut().filter(due).map(mark).collect()
    }

    /// Whether [`CommitmentSet::expire`] has something to mark or to drop.
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.0.iter().any(|commitment| is_newly_overdue(commitment, now) || is_stale(commitment, now))
    }

    /// Removes those with a peer, and those that name it; returns how many there were.
    pub fn forget(&mut self, peer: &PeerId) -> usize {
        let before = self.0.len();
        self.0.retain(|known| known.peer != *peer && !names(&known.key, peer) && !names(&known.text, peer));
        before.saturating_sub(self.0.len())
    }

    /// Open ones for a reflector.
    pub fn briefs(&self) -> Vec<CommitmentBrief> {
        let brief = |commitment: &Commitment| CommitmentBrief {
            key: commitment.key.clone(),
            text: commitment.text.clone(),
            by: commitment.by,
            peer: commitment.peer.clone(),
            due_at: commitment.due_at,
            status: commitment.status,
        };
        self.open().map(brief).collect()
    }
}

fn is_newly_overdue(commitment: &Commitment, now: Timestamp) -> bool {
    commitment.status == CommitmentStatus::Open && commitment.due_at <= now
}

fn is_stale(commitment: &Commitment, now: Timestamp) -> bool {
    commitment.status == CommitmentStatus::Overdue && now.since(commitment.due_at) > MAX_OVERDUE
}
