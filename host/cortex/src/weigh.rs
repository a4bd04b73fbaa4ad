//! Weighing proposals (SPEC CX-5, CX-6): which of them apply, and how far. Pure.
//!
//! A cycle whose proposals break the form is skipped as a whole: too many, or a trust that is not a number. A proposal that is only
//! wrong by itself is left out and noted.

use std::collections::BTreeSet;

use base::text::{Foreign, cut};
use ledger::{AssessmentSource, NewAssessment, PeerId, TrustChange};

use crate::belief::{BeliefClaim, BeliefSet};
use crate::{Proposals, ProposedAssessment, ProposedBelief, ProposedGuidance};

/// Assessments that a cycle may propose.
const MAX_ASSESSMENTS: usize = 50;
/// Beliefs that a cycle may propose.
const MAX_PROPOSED_BELIEFS: usize = 50;
/// Commitments, ends of commitments, directives and findings that a cycle may propose, of each.
const MAX_GUIDANCE: usize = 50;
/// Characters of a rationale that are kept.
const MAX_ASSESSMENT_RATIONALE: usize = 900;
/// Characters of a cycle's summary that are kept.
pub(crate) const MAX_CYCLE_SUMMARY: usize = 1_000;
/// Characters of a name in a note.
const MAX_NAMED: usize = 60;

/// The proposals that may apply.
#[derive(Debug, Default)]
pub(crate) struct Weighed {
    pub assessments: Vec<NewAssessment>,
    pub claims: Vec<BeliefClaim>,
    pub summary: String,
    /// Not weighed yet: few enough, that is all.
    pub guidance: ProposedGuidance,
    /// Proposals that were left out, each with the reason.
    pub refused: Vec<String>,
}

/// Weighs the proposals of a cycle in which these peers were shown.
///
/// # Errors
/// With the reason to skip the cycle.
pub(crate) fn weigh(
    proposals: Proposals,
    shown: &BTreeSet<PeerId>,
    beliefs: &BeliefSet,
    max_delta: u8,
) -> Result<Weighed, String> {
    let Proposals { assessments, beliefs: claims, summary, guidance } = proposals;
    for (kind, found, most) in [
        ("assessments", assessments.len(), MAX_ASSESSMENTS),
        ("beliefs", claims.len(), MAX_PROPOSED_BELIEFS),
        ("commitments", guidance.commitments.len(), MAX_GUIDANCE),
        ("ends of commitments", guidance.closings.len(), MAX_GUIDANCE),
        ("directives", guidance.directives.len(), MAX_GUIDANCE),
        ("findings of drift", guidance.drift.len(), MAX_GUIDANCE),
    ] {
        if found > most {
            return Err(format!("it proposes {found} {kind}, at most {most}"));
        }
    }
    if assessments.iter().any(|assessment| !assessment.trust.is_finite()) {
        return Err("a trust is not a number".to_owned());
    }
    let mut weighed = Weighed { summary: Foreign(&summary).line(MAX_CYCLE_SUMMARY), guidance, ..Weighed::default() };
    let mut judged = BTreeSet::new();
    for assessment in assessments {
        let named = Foreign(&assessment.peer).visible(MAX_NAMED);
        match assess(assessment, shown, max_delta) {
            Ok(assessment) if judged.insert(assessment.peer.clone()) => weighed.assessments.push(assessment),
            Ok(_) => weighed.refused.push(format!("assessment of `{named}`: it is the second in this cycle")),
            Err(reason) => weighed.refused.push(format!("assessment of `{named}`: {reason}")),
        }
    }
    let mut keys = BTreeSet::new();
    for belief in claims {
        let named = Foreign(&belief.key).visible(MAX_NAMED);
        match claim(belief, shown, beliefs) {
            Ok(claim) if keys.insert(claim.key.clone()) => weighed.claims.push(claim),
            Ok(_) => weighed.refused.push(format!("belief `{named}`: it is the second with this key")),
            Err(reason) => weighed.refused.push(format!("belief `{named}`: {reason}")),
        }
    }
    Ok(weighed)
}

fn assess(proposed: ProposedAssessment, shown: &BTreeSet<PeerId>, max_delta: u8) -> Result<NewAssessment, String> {
    let ProposedAssessment { peer, trust, rationale } = proposed;
    let peer = shown_peer(&peer, shown)?;
    let rationale = Foreign(rationale.trim()).line(MAX_ASSESSMENT_RATIONALE);
    if rationale.trim().is_empty() {
        return Err("it has no rationale".to_owned());
    }
    // Toward zero; beyond the range of an `i8` it saturates, which is beyond that of trust.
    let trust = TrustChange::Toward { trust: trust as i8, max_delta };
    Ok(NewAssessment { peer, trust, rationale, source: AssessmentSource::Cortex })
}

fn claim(proposed: ProposedBelief, shown: &BTreeSet<PeerId>, beliefs: &BeliefSet) -> Result<BeliefClaim, String> {
    let ProposedBelief { key, value, rationale, peer } = proposed;
    let known = beliefs.peer_of(&key);
    let peer = match peer.as_deref().filter(|peer| !peer.is_empty()) {
        // A belief about a peer that is not in this cycle may be kept.
        Some(peer) if known.is_some_and(|known| known.as_str() == peer) => known.cloned(),
        Some(peer) => Some(shown_peer(peer, shown)?),
        None => None,
    };
    BeliefClaim::new(&key, &value, &cut(&rationale, MAX_ASSESSMENT_RATIONALE), peer)
}

fn shown_peer(peer: &str, shown: &BTreeSet<PeerId>) -> Result<PeerId, String> {
    let found = PeerId::parse(peer).ok().filter(|peer| shown.contains(peer));
    found.ok_or_else(|| "the peer was not shown in this cycle".to_owned())
}
