//! Applying guidance (SPEC CX-10) within the limits: commitments, their ends, directives, drift from the soul. Pure.

use base::Timestamp;
use base::text::Foreign;

use crate::belief::bounded;
use crate::commitments::CommitmentLimits;
use crate::config::CortexConfig;
use crate::record::{GuidanceRecord, SoulDrift};
use crate::reflector::ProposedGuidance;
use crate::state::CortexState;
use crate::summary::CycleSummaries;

/// Characters of a finding.
const MAX_FINDING: usize = 300;
/// Characters of a key in a note.
const MAX_NAMED: usize = 60;

/// Applies the guidance of a cycle to the state, and returns its record.
pub(crate) fn apply(
    state: &mut CortexState,
    proposed: ProposedGuidance,
    summaries: &CycleSummaries,
    (config, now): (&CortexConfig, Timestamp),
    refused: &mut Vec<String>,
) -> GuidanceRecord {
    let ProposedGuidance { commitments, closings, directives, drift } = proposed;
    let (shown, cycle) = (summaries.peers.as_slice(), summaries.cycle);
    let mut record = GuidanceRecord::default();
    let mut refuse = |kind: &str, key: &str, reason: String| {
        refused.push(format!("{kind} `{}`: {reason}", Foreign(key).visible(MAX_NAMED)));
    };
    // Those that ended make room.
    for (key, kept) in closings {
        match state.commitments.close_shown(&key, kept, shown, now) {
            Ok(()) => record.commitments_closed.push(key),
            Err(reason) => refuse("end of commitment", &key, reason),
        }
    }
    let limits = CommitmentLimits { most: config.max_commitments, horizon: config.commitment_horizon() };
    for commitment in commitments {
        let key = commitment.key.clone();
        match state.commitments.add(commitment, shown, (summaries.now, cycle), limits) {
            Ok(true) => record.commitments_made.push(key),
            Ok(false) => {}
            Err(reason) => refuse("commitment", &key, reason),
        }
    }
    for directive in directives {
        let key = directive.key.clone();
        match state.directives.add(directive, shown, (now, cycle)) {
            Ok(()) => record.directives.push(key),
            Err(reason) => refuse("directive", &key, reason),
        }
    }
    state.directives.trim(now, config.directive_ttl(), config.max_directives);
    let is_kept = |key: &String| {
        state.directives.active(now, config.directive_ttl(), config.max_directives).iter().any(|kept| kept.key == *key)
    };
    let (kept, surplus): (Vec<_>, Vec<_>) = record.directives.drain(..).partition(is_kept);
    for key in surplus {
        refuse("directive", &key, "there is no room for another one".to_owned());
    }
    record.directives = kept;
    record.directives.dedup();
    match (&summaries.soul, drift.first()) {
        (None, found) => {
            // Without the file there is nothing left to drift from.
            state.drift = None;
            if found.is_some() {
                refuse("drift", "", "no `SOUL.md` was shown in this cycle".to_owned());
            }
        }
        (Some(_), None) => state.drift = None,
        (Some(_), Some(finding)) => match bounded(finding, MAX_FINDING) {
            None => refuse("drift", "", "it is empty or has more than 300 characters".to_owned()),
            // A model words the same drift anew in each cycle; a signal for each would push out the others.
            Some(finding) => match &mut state.drift {
                Some(known) => known.finding = finding,
                None => {
                    record.drift = Some(finding.clone());
                    state.drift = Some(SoulDrift { finding, at: now, cycle });
                }
            },
        },
    }
    record
}
