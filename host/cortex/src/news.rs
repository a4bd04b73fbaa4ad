//! News of a cortex for the main loop (SPEC CX-10): new directives, and commitments that have become overdue.
//!
//! They are the signals of the cortex that still hold: directives, then commitments, each in the order of their numbers. The reader keeps the number that it has read up to,
//! in the same commit as its reaction: after a crash it reads the same news again, and never those before.

use std::collections::BTreeSet;

use store::StoreError;

use crate::commitment::{Commitment, CommitmentStatus, Promiser};
use crate::cortex::Cortex;
use crate::directive::Directive;
use crate::notice::{self, CortexNotice};

/// Lines of one piece of news, the latest.
const MAX_LINES: usize = 10;

/// News for the main loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CortexNews {
    /// The number of the last signal that is covered.
    pub last: u64,
    /// One line for each; text of a model about peers. Empty if no signal still holds.
    pub text: String,
    /// Sources of the text: `peer:ID` for each peer that it is about, `cortex` for the rest.
    pub sources: Vec<String>,
    /// Whether it tells of an overdue commitment.
    pub is_overdue: bool,
}

impl Cortex {
    /// The news after the signal with the number `after`; `None` if there are no later signals.
    ///
    /// # Errors
    /// If the store cannot be read.
    pub fn news(&self, after: u64) -> Result<Option<CortexNews>, StoreError> {
        if self.inner.state.read().signals <= after {
            return Ok(None);
        }
        let (now, config) = (self.inner.clock.now(), self.config());
        let state = self.inner.state.read().clone();
        let active = state.directives.active(now, config.directive_ttl(), config.max_directives);
        let (mut lines, mut overdue, mut told) = (Vec::new(), Vec::new(), BTreeSet::new());
        for signal in notice::since(&self.inner.store, &self.inner.agent, after)? {
            // A later one may be stored and not be in this state yet.
            if signal.id > state.signals {
                break;
            }
            match signal.event {
                CortexNotice::Directive { key, .. } => {
                    // In its present words. One that ended and was given again has two signals.
                    if let Some(Directive { key, text, peer, .. }) = active.iter().find(|known| known.key == key)
                        && told.insert(key)
                    {
                        let about = peer.as_ref().map(|peer| format!(" ({peer})")).unwrap_or_default();
                        lines.push((format!("- directive {key}{about}: {text}"), peer.clone()));
                    }
                }
                CortexNotice::CommitmentOverdue { key, .. } => {
                    let is_it = |commitment: &&Commitment| {
                        commitment.key == key && commitment.status == CommitmentStatus::Overdue
                    };
                    if let Some(Commitment { text, by, peer, due_at, .. }) = state.commitments.open().find(is_it) {
                        let side = match by {
                            Promiser::Agent => "to",
                            Promiser::Peer => "by",
                        };
                        let line = format!("- promise {key}, overdue since {due_at}, made {side} {peer}: {text}");
                        overdue.push((line, Some(peer.clone())));
                    }
                }
                CortexNotice::SoulDrift { .. } => {}
            }
        }
        let is_overdue = !overdue.is_empty();
        // The latest stay: no directive takes the place of a commitment.
        lines.extend(overdue);
        let latest = lines.split_off(lines.len().saturating_sub(MAX_LINES));
        let source = |peer: &Option<ledger::PeerId>| {
            peer.as_ref().map_or_else(|| "cortex".to_owned(), |peer| format!("peer:{peer}"))
        };
        let sources: BTreeSet<String> = latest.iter().map(|(_, peer)| source(peer)).collect();
        let text: Vec<String> = latest.into_iter().map(|(line, _)| line).collect();
        let (text, sources) = (text.join("\n"), sources.into_iter().collect());
        Ok(Some(CortexNews { last: state.signals, text, sources, is_overdue }))
    }
}
