//! The triage before a reflection (SPEC CX-10): whether a cycle of the timer needs a model at all.
//!
//! A pure rule over facts of the host. Asking a model instead would cost tokens, and would let a peer write its own misconduct out of
//! the reflections: no text has a say in this rule. Activity that it skips stays, adds up, and reaches a reflection later.

use base::Timestamp;

use crate::Trigger;
use crate::belief::BeliefSet;
use crate::config::CortexConfig;
use crate::summary::CycleSummaries;

/// The reason to skip the cycle, or `None` if it needs a reflection. `interactions` counts those of shown and omitted peers since
/// their last reflection.
pub(crate) fn skip_reason(
    summaries: &CycleSummaries,
    interactions: u64,
    beliefs: &BeliefSet,
    (config, now): (&CortexConfig, Timestamp),
) -> Option<String> {
    let needs_it = !config.triage
        || summaries.triggers.iter().any(|trigger| *trigger != Trigger::Timer)
        || interactions >= config.triage_interactions
        || summaries.peers.iter().any(|brief| brief.trust.is_none())
        || summaries.activity.tool_failures > 0
        || summaries.activity.overdue > 0
        // Until the next cycle of the timer it could not be reaffirmed.
        || beliefs.active(now, config.belief_ttl()).any(|belief| {
            belief.is_expired(now.after(config.schedule()), config.belief_ttl())
        });
    (!needs_it).then(|| {
        format!(
            "{interactions} interactions with known peers since their last reflection, fewer than {}",
            config.triage_interactions
        )
    })
}
