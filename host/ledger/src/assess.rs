//! Assessments (SPEC LED-2): a number and its reasons, checked and appended with the new head in one batch.

use std::collections::{BTreeMap, BTreeSet};

use base::{AgentName, Refusal, RefusalCode};
use store::{Batch, Table};

use crate::ledger::Ledger;
use crate::locks::KeyGuards;
use crate::record::{Assessment, PeerIncarnation};
use crate::score::{MAX_TRUST, info_score};
use crate::{AssessmentSource, PeerId, keys};

/// Characters of a rationale.
const MAX_RATIONALE: usize = 1_000;

/// The greatest first step, from 0.
const MAX_FIRST_DELTA: u8 = 3;

/// The trust of an assessment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrustChange {
    /// Exactly this value, which must be between -10 and 10.
    Set(i64),
    /// As far toward `trust` as `max_delta` allows, counted from the last value; at first from 0, and then by at most 3 (SPEC
    /// CX-5).
    Toward {
        /// The proposed value; beyond -10 or 10 it counts as that bound.
        trust: i8,
        /// The greatest step from the last value.
        max_delta: u8,
    },
}

impl TrustChange {
    /// The value to record after `last`.
    fn after(self, last: Option<i8>) -> Result<i8, Refusal> {
        match self {
            Self::Set(trust) => match i8::try_from(trust) {
                Ok(trust) if (-MAX_TRUST..=MAX_TRUST).contains(&trust) => Ok(trust),
                _ => Err(Refusal::new(RefusalCode::InvalidRequest, format!("the trust {trust} is out of range"))
                    .with_remedy("use a whole number from -10 to 10")),
            },
            Self::Toward { trust, max_delta } => {
                let delta = i16::from(if last.is_none() { max_delta.min(MAX_FIRST_DELTA) } else { max_delta });
                let last = i16::from(last.unwrap_or_default());
                let moved = i16::from(trust).clamp(last.saturating_sub(delta), last.saturating_add(delta));
                let bounded = moved.clamp((-MAX_TRUST).into(), MAX_TRUST.into());
                Ok(i8::try_from(bounded).unwrap_or_default())
            }
        }
    }
}

/// An assessment to record. The information score is computed.
#[derive(Debug, Clone)]
pub struct NewAssessment {
    /// The peer, which must be known.
    pub peer: PeerId,
    /// The value, or the direction in which it moves.
    pub trust: TrustChange,
    /// The reasons, at most 1,000 characters.
    pub rationale: String,
    /// The author of the judgement.
    pub source: AssessmentSource,
}

/// Assessments in a batch that is not committed yet. Their peers stay locked until this is dropped: keep it until the batch is committed,
/// in the task that commits, as [`Ledger::commit`] does.
#[must_use = "keep it until the batch is committed"]
#[derive(Debug)]
pub struct StagedAssessments {
    assessments: Vec<(PeerId, Assessment)>,
    guards: KeyGuards,
}

impl StagedAssessments {
    /// The assessments as they will be recorded, in the order given.
    #[must_use]
    pub fn assessments(&self) -> &[(PeerId, Assessment)] {
        &self.assessments
    }
}

impl Ledger {
    /// Records one assessment, whole or not at all.
    ///
    /// # Errors
    /// `not_found` if the peer is unknown; `invalid_request` if the trust is out of range, or the rationale is empty or over 1,000
    /// characters; or if the store fails.
    pub async fn record_assessment(&self, agent: &AgentName, assessment: NewAssessment) -> Result<Assessment, Refusal> {
        let mut batch = Batch::new();
        let staged = self.stage_assessments(&mut batch, agent, vec![assessment]).await?;
        let recorded = self.commit(batch, staged).await?;
        let recorded = recorded.into_iter().next().map(|(_, assessment)| assessment);
        recorded.ok_or_else(|| Refusal::new(RefusalCode::Failed, "the assessment was not recorded"))
    }

    /// Puts assessments into `batch`, to be committed together with other changes by [`Ledger::commit`]. On an error the batch may
    /// hold a part of them: drop it.
    ///
    /// # Errors
    /// As [`Ledger::record_assessment`] for any of them; `invalid_request` if a peer is named twice.
    pub async fn stage_assessments(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        assessments: Vec<NewAssessment>,
    ) -> Result<StagedAssessments, Refusal> {
        self.stage_assessments_if(batch, agent, assessments, &BTreeMap::new()).await
    }

    /// As [`Ledger::stage_assessments`], as long as the peers in `expected` are the same as when their incarnations were read. None of them
    /// can be forgotten before the commit, also one without an assessment.
    ///
    /// # Errors
    /// As [`Ledger::stage_assessments`]; `not_found` if one of `expected` was forgotten, without its name.
    pub async fn stage_assessments_if(
        &self,
        batch: &mut Batch,
        agent: &AgentName,
        assessments: Vec<NewAssessment>,
        expected: &BTreeMap<PeerId, Option<PeerIncarnation>>,
    ) -> Result<StagedAssessments, Refusal> {
        let mut named = BTreeSet::new();
        if let Some(twice) = assessments.iter().find(|assessment| !named.insert(&assessment.peer)) {
            let reason = format!("the peer `{}` is assessed twice at a time", twice.peer);
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        let peers = assessments.iter().map(|assessment| &assessment.peer).chain(expected.keys());
        let locked: Vec<Vec<u8>> = peers.map(|peer| keys::head(agent, peer)).collect();
        let guards = self.lock(locked).await;
        for (peer, incarnation) in expected {
            if self.incarnation(agent, peer)? != *incarnation {
                let reason = "a peer was forgotten in the meantime";
                return Err(Refusal::new(RefusalCode::NotFound, reason));
            }
        }
        let now = self.clock().now();
        let mut staged = Vec::with_capacity(assessments.len());
        for NewAssessment { peer, trust, rationale, source } in assessments {
            let mut head = self.known(agent, &peer)?;
            let assessment = Assessment {
                number: head.assessments.saturating_add(1),
                info_score: info_score(head.evidence()),
                trust: trust.after(head.latest.as_ref().map(|latest| latest.trust))?,
                rationale: checked_rationale(&rationale)?,
                created_at: now,
                source,
            };
            batch.put(Table::Assessments, keys::entry(head.number, assessment.number), &assessment)?;
            head.assess(assessment.clone());
            batch.put(Table::Peers, keys::head(agent, &peer), &head)?;
            staged.push((peer, assessment));
        }
        Ok(StagedAssessments { assessments: staged, guards })
    }

    /// Commits a batch with staged assessments, whole or not at all.
    ///
    /// # Errors
    /// If the store fails: nothing is recorded then, or after a failed sync the state is read again at the next start.
    pub async fn commit(&self, batch: Batch, staged: StagedAssessments) -> Result<Vec<(PeerId, Assessment)>, Refusal> {
        self.commit_holding(batch, staged.guards).await?;
        Ok(staged.assessments)
    }
}

fn checked_rationale(rationale: &str) -> Result<String, Refusal> {
    let rationale = rationale.trim();
    if rationale.is_empty() {
        let reason = "the rationale is empty";
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("give the reasons in a sentence"));
    }
    if rationale.chars().nth(MAX_RATIONALE).is_some() {
        let reason = format!("the rationale has more than {MAX_RATIONALE} characters");
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("shorten it"));
    }
    Ok(rationale.to_owned())
}
