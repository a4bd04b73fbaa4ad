//! The skill of a run, and whether its bytes are still trusted (SPEC SKILL-6, SKILL-8).
//!
//! A run is bound to bytes, not to a directory: its inputs are kept by content, so a restarted host serves the run from
//! the same bytes even if the directory has changed, and checks again whether they are still trusted.

use std::collections::BTreeMap;

use base::{ContentHash, Refusal, RefusalCode, RunId};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use skills::{Policy, SkillName, SkillPlace, SkillStatus, TrustBook};

/// How a run uses a skill, or a tool of the home. Stored with the run: a field may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SkillGrant {
    /// Name of the skill.
    pub name: SkillName,
    /// Its place when the run began.
    pub place: SkillPlace,
    /// The bytes that the run was given.
    pub hash: ContentHash,
    /// Their permission bits, as in the trust record.
    pub modes: ContentHash,
    /// Why it was admitted.
    #[serde(rename = "standing")]
    pub admission: Admission,
    /// The inputs of the skill.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<Value>,
    /// The policy that was granted when the run began. The run is not resumed once the skill's policy covers less.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Policy>,
    /// Limits lowered by its policy, by the names of `[limits]`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, u64>,
}

/// Why a skill was admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Admission {
    /// The owner approved it: its policy and its own tools apply.
    Approved,
    /// The owner has not approved it yet. The caller named the tools, and the skill adds no tools or powers (SPEC
    /// SKILL-6).
    Explicit,
    /// It is reviewed, not used (SPEC SKILL-9).
    Review,
}

impl SkillGrant {
    /// Checks that an approved skill's bytes are still approved, and that its policy still covers the run's grant. Other skills always pass. Called whenever a host resumes the run.
    ///
    /// # Errors
    /// `skill_untrusted` otherwise.
    pub fn check_trust(&self, run: &RunId, trust: &TrustBook) -> Result<(), Refusal> {
        if self.admission != Admission::Approved {
            return Ok(());
        }
        let noun = self.place.noun();
        let standing = trust.standing(&self.name, &self.place, self.hash, self.modes);
        if self.was_replaced_by(run, trust) {
            return Ok(());
        }
        if standing.status == SkillStatus::Approved {
            let now = standing.record.and_then(|record| record.policy).unwrap_or_default();
            if self.policy.as_ref().is_none_or(|given| covers(&now, given)) {
                return Ok(());
            }
            let reason = format!("the policy of the {noun} `{}` no longer covers what this run was granted", self.name);
            return Err(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy("start the task again"));
        }
        let reason = format!("the {noun} `{}` may no longer be used: {}", self.name, standing.reason);
        let remedy = format!("review the {noun}: `motor skill review {}`", self.place);
        Err(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy))
    }

    /// Whether the run itself produced the current version of the skill. The version it works by is then outdated, which
    /// must not keep the run from resuming.
    fn was_replaced_by(&self, run: &RunId, trust: &TrustBook) -> bool {
        let records = trust.of_name(&self.name).unwrap_or_default();
        records.iter().any(|record| {
            let by_run = record.extracted_from.as_ref().is_some_and(|from| from.run_id == *run);
            by_run && record.place.root == self.place.root && !record.superseded
        })
    }
}

/// Whether a policy still includes everything that an earlier one granted.
fn covers(now: &Policy, given: &Policy) -> bool {
    fn all<T: PartialEq>(given: &[T], now: &[T]) -> bool {
        given.iter().all(|one| now.contains(one))
    }
    let as_high = |(name, limit): (&String, &u64)| given.limits.get(name).is_some_and(|given| given <= limit);
    all(&given.domains, &now.domains)
        && all(&given.writes, &now.writes)
        && all(&given.tools, &now.tools)
        && all(&given.required_credentials, &now.required_credentials)
        && now.limits.iter().all(as_high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_goes_on_when_its_skill_was_given_more_and_not_when_it_was_given_less() {
        let policy = |domains: &[&str], limit: Option<u64>| Policy {
            domains: domains.iter().map(|domain| (*domain).to_owned()).collect(),
            limits: limit.map(|limit| ("fuel".to_owned(), limit)).into_iter().collect(),
            ..Policy::default()
        };
        for (now, given, goes_on) in [
            (policy(&["a.example"], None), policy(&["a.example"], None), true),
            (policy(&["a.example", "b.example"], None), policy(&["a.example"], None), true),
            (policy(&[], None), policy(&["a.example"], None), false),
            (policy(&[], Some(5)), policy(&[], None), false),
            (policy(&[], Some(5)), policy(&[], Some(6)), false),
            (policy(&[], Some(6)), policy(&[], Some(5)), true),
            (policy(&[], None), policy(&[], Some(5)), true),
        ] {
            assert_eq!(covers(&now, &given), goes_on, "{now:?} {given:?}");
        }
    }
}
