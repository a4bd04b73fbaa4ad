//! Skills, for the surfaces: listing them, their possible powers, and the owner's decisions (SPEC SKILL-4 to SKILL-12).
//!
//! Every change to a skill's powers takes a [`Consent`], which only the gate gives. The shown and the approved bytes
//! are the same: they are read once here, and their hash goes to the owner and comes back.

mod add;
mod advise;
mod approve;
mod call;
mod describe;
mod download;
mod fetch;
mod granted;
mod harmless;
mod inspect;
mod mentions;
mod names;
mod offers;
mod plan;
mod replace;
mod show;
mod take_over;
mod tools;
mod used;
mod versions;

use std::sync::Arc;

use base::{AgentName, Random, Refusal, RefusalCode};
use consent::Consent;
use skills::library::VerifiedPlace;
use skills::policy::wrote;
use skills::review::{ComponentFact, SkillReview, needs_python, review};
use skills::trust::Subject;
use skills::{
    Library, Policy, SkillError, SkillName, SkillPlace, SkillStatus, SkillSummary, Snapshot, Taken, TrustBook,
    TrustRecord,
};
use tokio_util::sync::CancellationToken;

use crate::Runs;
use crate::api::skills::{ReviewRequest, SkillReviewReply, SkillVerification, VerifySkills, WhichSkill};
use crate::api::{ActRequest, Caller};
use crate::environment::HostEnvironment;
use store::blocking;

pub(crate) use advise::advise;
pub(crate) use granted::{NamedTools, combine, named_tools};
pub(crate) use offers::Offers;
pub use offers::SkillFollower;
pub(crate) use plan::{Purpose, SkillPlan, skill_plan};
pub(crate) use tools::of as tools_of;
pub(crate) use used::{briefing, label, limits};

/// The skills of a home. Cheap to clone.
#[derive(Clone)]
pub struct Skills {
    pub(crate) environment: Arc<HostEnvironment>,
    pub(crate) runs: Arc<Runs>,
    pub(crate) random: Arc<Random>,
    pub(crate) offers: Arc<Offers>,
}

/// Reads every byte of the skill that a selector means, or of all, and reports their status.
///
/// # Errors
/// If the skill does not exist, or a skills directory cannot be read.
pub(crate) async fn verify(library: &Library, selector: Option<&str>) -> Result<Vec<SkillVerification>, Refusal> {
    let told = |VerifiedPlace { place, name, result, took }: VerifiedPlace| {
        let (status, reason, hash) = match result {
            Ok((hash, standing)) => (standing.status, standing.reason, Some(hash)),
            Err(error) => (SkillStatus::NeedsReapproval, error.to_string(), None),
        };
        let was_approved = was_approved(library.trust(), &place);
        SkillVerification { name, place, status, reason, hash, was_approved, millis: took.as_secs_f64() * 1_000.0 }
    };
    Ok(library.verify(selector).await?.into_iter().map(told).collect())
}

/// Whether the owner approved a version in this place that is in force. An unreadable record counts as approved: then
/// the bytes have to match.
pub(crate) fn was_approved(trust: &TrustBook, place: &SkillPlace) -> bool {
    trust.of_place(place).map_or(true, |records| {
        records.iter().any(|record| record.status == SkillStatus::Approved && !record.superseded)
    })
}

impl Skills {
    /// Every skill with its state, and the reason if it may not run.
    ///
    /// # Errors
    /// If the store fails.
    pub async fn list(&self) -> Result<Vec<SkillSummary>, Refusal> {
        let mut skills = self.environment.skills.list().await?;
        if self.has_python() {
            skills.iter_mut().for_each(|skill| skill.unavailable.retain(|name| !needs_python(name)));
        }
        Ok(skills)
    }

    /// Whether runs find `python3` in their shell.
    fn has_python(&self) -> bool {
        self.environment.sandboxes.python(true).is_some()
    }

    /// The facts of a skill, read from its bytes and its components' imports. This completes its security review; with
    /// `advisory` the review is complete once a read-only run of the motor has found nothing against it (SPEC SKILL-9).
    ///
    /// # Errors
    /// If the skill does not exist, it cannot be read, or the run cannot be started.
    pub async fn review(
        &self,
        request: ReviewRequest,
        agent: &AgentName,
        by: Caller,
    ) -> Result<SkillReviewReply, Refusal> {
        let library = &self.environment.skills;
        let taken = library.take(&request.skill).await?;
        let (facts, described) = self.facts(&taken).await?;
        let trust = library.trust();
        if !request.advisory {
            trust.reviewed(&subject(&taken), described).await?;
            let review = self.renewed(facts, &taken);
            return Ok(SkillReviewReply { review, run_id: None });
        }
        let task = ActRequest {
            task: format!("Review the skill `{}`: read all of its files and judge it.", taken.manifest.name),
            agent: agent.clone(),
            skill: Some(taken.place.full()),
            unattended: true,
            ..ActRequest::default()
        };
        let started = self.runs.start(task, Purpose::Review, by).await?;
        Ok(SkillReviewReply { run_id: Some(started.run_id), review: facts })
    }

    /// Reads every byte of one skill, or of all, and reports their status.
    ///
    /// # Errors
    /// If the skill does not exist.
    pub async fn verify(&self, which: VerifySkills) -> Result<Vec<SkillVerification>, Refusal> {
        let one = match &which.skill {
            Some(selector) => Some(self.place(selector).await?.full()),
            None => None,
        };
        verify(&self.environment.skills, one.as_deref()).await
    }

    /// Removes a skill, and the decisions about it. Its versions and credentials are kept.
    ///
    /// # Errors
    /// If the skill does not exist, or cannot be removed.
    pub async fn delete(&self, which: WhichSkill, consent: Consent) -> Result<SkillPlace, Refusal> {
        let library = &self.environment.skills;
        let place = library.find(&which.skill).await?;
        // Trust is removed before the files: a crash in between leaves an unapproved skill.
        library.trust().forget(&place, consent).await?;
        let (root, entry) = (library.root_path(&place)?, place.entry.clone());
        blocking(move || Ok(skills::install::remove(&root, &entry)?)).await?;
        library.refresh().await?;
        Ok(place)
    }

    /// The facts of a skill compared with the version approved last, and its self-description if it was asked.
    async fn facts(&self, taken: &Taken) -> Result<(SkillReview, Option<skills::trust::Described>), Refusal> {
        let library = &self.environment.skills;
        let approved = self.last_approved(&taken.place)?;
        let approved: Option<(Snapshot, Policy)> = match approved {
            // Without a kept version there is no comparison; everything is new then.
            Some(record) if library.versions().has(record.hash) => {
                let (versions, hash) = (library.versions().clone(), record.hash);
                let snapshot = blocking(move || Ok(versions.load(hash)?)).await;
                snapshot.ok().map(|snapshot| (snapshot, record.policy.unwrap_or_default()))
            }
            _ => None,
        };
        let taken_again = taken.clone();
        let mut facts = self
            .inspecting(move |inspect| {
                let against = approved.as_ref().map(|(snapshot, policy)| (snapshot, policy));
                review(&taken_again, against, inspect)
            })
            .await??;
        if self.has_python() {
            facts.unavailable.retain(|one| !needs_python(&one.name));
        }
        let records = library.trust().of_place(&taken.place)?;
        if taken.snapshot.proposal.as_deref().is_some_and(|bytes| records.iter().any(|record| wrote(bytes, record))) {
            // The host's own note of the owner's decision: it asks for nothing.
            facts.proposal = None;
            facts.claims.clear();
        }
        let described = self.describe(taken, &mut facts).await;
        if let Some(reason) = approve::tool_name_problem(taken) {
            facts.components.iter_mut().for_each(|component| component.problem = Some(reason.clone()));
        }
        Ok((facts, described))
    }

    /// Runs work that inspects components on a thread that may block. It ends if its caller goes away, and fails if the
    /// host could not inspect a component: a review without its powers would be worse than no review.
    async fn inspecting<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Fn(&str, &[u8]) -> ComponentFact) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let cancel = CancellationToken::new();
        let failure = inspect::InspectFailure::default();
        let inspect = inspect::inspector(self.environment.sandboxes.runtime().clone(), cancel.clone(), failure.clone());
        let _cancelled_with_its_caller = cancel.drop_guard();
        let done = blocking(move || Ok(work(&inspect))).await?;
        match failure.get() {
            Some(reason) => Err(Refusal::new(RefusalCode::TryLater, reason)
                .with_remedy("try again; if it stays so, remove that file from the skill")),
            None => Ok(done),
        }
    }

    /// The place that a selector means. A skill that cannot be read is also found by the name that it was decided about
    /// under.
    async fn place(&self, selector: &str) -> Result<SkillPlace, Refusal> {
        let library = &self.environment.skills;
        let missing = match library.find(selector).await {
            Err(error @ SkillError::Missing { .. }) => error,
            found => return Ok(found?),
        };
        let Ok(name) = SkillName::parse(selector) else { return Err(missing.into()) };
        let records = library.trust().of_name(&name)?;
        let is_known = |place: &SkillPlace| records.iter().any(|record| record.place == *place);
        let unreadable = library.list().await?.into_iter().filter(|skill| !skill.readable && is_known(&skill.place));
        let mut places = unreadable.map(|skill| skill.place);
        match (places.next(), places.next()) {
            (Some(place), None) => Ok(place),
            _ => Err(missing.into()),
        }
    }

    /// The version that the owner approved last for a place, in force or not.
    fn last_approved(&self, place: &SkillPlace) -> Result<Option<TrustRecord>, Refusal> {
        Ok(self.once_approved(place)?.into_iter().next())
    }

    /// The versions that the owner approved for a place, the last approval first. A later review or rejection changes the
    /// status of a version, and not that it was approved.
    fn once_approved(&self, place: &SkillPlace) -> Result<Vec<TrustRecord>, Refusal> {
        let mut records = self.environment.skills.trust().of_place(place)?;
        records.retain(|record| record.consent.is_some());
        records.sort_by_key(|record| std::cmp::Reverse(record.consent.as_ref().map(|consent| consent.at)));
        Ok(records)
    }

    /// The facts with the skill's current status.
    fn renewed(&self, mut facts: SkillReview, taken: &Taken) -> SkillReview {
        let Taken { place, manifest, snapshot, .. } = taken;
        let trust = self.environment.skills.trust();
        let standing = trust.standing(&manifest.name, place, snapshot.hash, snapshot.modes);
        (facts.status, facts.reason) = (standing.status, standing.reason);
        facts
    }
}

/// The subject of a decision: these bytes in this place.
fn subject(taken: &Taken) -> Subject {
    Subject::of(taken.manifest.name.clone(), taken.place.clone(), &taken.snapshot)
}
