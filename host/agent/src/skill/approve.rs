//! The owner's decisions about a skill: exact powers for exact bytes (SPEC SKILL-4, SKILL-6, CONSENT-1).

use base::{Refusal, RefusalCode};
use consent::Consent;
use grants::{patterns, shapes};
use skills::policy::{PolicyChange, Proposal, read_proposal, render, write_file};
use skills::review::{Risk, SkillReview};
use skills::{Policy, SkillError, SkillForm, SkillPlace, SkillStatus, SkillSummary, Taken, TrustRecord};

use super::Skills;
use super::mentions;
use super::subject;
use super::used::limit_names;
use crate::api::PendingDecision;
use crate::api::skills::{ApprovalQuestion, ApproveRequest, PolicyBasis, RejectRequest, UpdateRequest};
use store::blocking;
use toolbox::catalogue;

/// Lines of its text that an approval warns of, the worst first.
const MAX_RISKS: usize = 5;
/// Tools of a skill without a proposal: they see only its workspace.
const DEFAULT_TOOLS: [&str; 3] = [catalogue::CODE, catalogue::BASH, catalogue::FILESYSTEM];

impl Skills {
    /// The effect of an approval. A bare component's self-description is noted, so that the owner approves exactly the
    /// shown text; nothing else changes.
    ///
    /// # Errors
    /// If the skill does not exist, it cannot be read, or the powers are invalid.
    pub async fn question(&self, request: ApproveRequest) -> Result<ApprovalQuestion, Refusal> {
        let taken = self.environment.skills.take(&request.skill).await?;
        check_tool_name(&taken)?;
        let (facts, described) = self.facts(&taken).await?;
        if described.is_some() && taken.standing.status == SkillStatus::NeedsReapproval {
            self.environment.skills.trust().reviewed(&subject(&taken), described).await?;
        }
        let (policy, basis) = self.policy_for(&taken, request.policy, request.proposed, true)?;
        let warnings = self.warnings(&taken, &facts, &policy).await?;
        let saved = self.environment.saved_for(&taken, &policy).await?;
        let mentions = mentions::of(&facts, &policy)?;
        Ok(ApprovalQuestion {
            name: facts.name,
            place: facts.place,
            hash: facts.hash,
            status: facts.status,
            policy,
            basis,
            changes: facts.changes,
            components: facts.components,
            instructions: facts.instructions,
            provenance: facts.provenance,
            advisory: facts.advisory,
            saved,
            mentions,
            warnings,
        })
    }

    /// Approves exactly the bytes of the request's hash, with exactly these powers. Durable when this returns.
    ///
    /// # Errors
    /// `skill_untrusted` if the bytes have changed; `illegal_state` if the skill has to be reviewed first.
    pub async fn approve(&self, request: ApproveRequest, consent: Consent) -> Result<SkillSummary, Refusal> {
        let library = &self.environment.skills;
        let Some(shown) = request.hash else {
            return Err(Refusal::new(RefusalCode::InvalidRequest, "an approval names the bytes that it is about")
                .with_remedy("ask what would be approved, and pass its `hash`"));
        };
        let taken = library.take(&request.skill).await?;
        check_tool_name(&taken)?;
        let Taken { place, snapshot, standing, .. } = &taken;
        if snapshot.hash != shown {
            return Err(SkillError::Changed.into());
        }
        // The author's proposal is in no hash: it is granted as it was shown, or not at all.
        if request.proposed && request.shown.is_none() {
            return Err(Refusal::new(RefusalCode::InvalidRequest, "an approval of what is proposed names the powers")
                .with_remedy("ask what would be approved, and pass its `policy` as `shown`"));
        }
        let (policy, _) = self.policy_for(&taken, request.policy, request.proposed, request.shown.is_some())?;
        if request.shown.is_some_and(|shown| shown != policy) {
            return Err(SkillError::Changed.into());
        }
        let waiting = self.environment.saved_for(&taken, &policy).await?;
        let is_shown =
            |one: &&PendingDecision| waiting.iter().any(|info| info.name == one.name && info.set_at == one.saved_at);
        if request.saved.iter().filter(is_shown).count() < request.saved.len() {
            return Err(SkillError::Changed.into());
        }
        let trust = library.trust();
        if snapshot.form == SkillForm::Component
            && standing.record.as_ref().is_none_or(|record| record.described.is_none())
        {
            // The component's self-description is part of the approval, so it has to have been shown.
            if self.facts(&taken).await?.1.is_some() {
                let reason = "the component describes itself, and nobody has looked at that yet".to_owned();
                let remedy = "`motor skill review` it first".to_owned();
                return Err(SkillError::IllegalTransition { reason, remedy }.into());
            }
        }
        let (versions, bytes) = (library.versions().clone(), snapshot.clone());
        // Kept before the approval: a rollback to an approved version is always possible.
        blocking(move || Ok(versions.keep(&bytes)?)).await?;
        let record = trust.approve(&subject(&taken), policy, consent).await?;
        for PendingDecision { name, saved_at, .. } in &request.saved {
            // The approval stands: a credential that fails here still waits, and is accepted by itself.
            let accepted = self.environment.access.vault.accept(name, record.name.as_str(), *saved_at).await;
            if let Err(refusal) = accepted {
                tracing::warn!(credential = %name, reason = %refusal, "a saved credential is not accepted");
            }
        }
        self.write_policy(&record).await;
        self.summary(place).await
    }

    /// Rejects a skill: it waits for another version, or another review.
    ///
    /// # Errors
    /// `illegal_state` if it is approved.
    pub async fn reject(&self, request: RejectRequest, consent: Consent) -> Result<SkillSummary, Refusal> {
        let library = &self.environment.skills;
        let taken = library.take(&request.skill).await?;
        library.trust().reject(&subject(&taken), consent, request.reason).await?;
        self.environment.drop_undeclared(&taken).await?;
        self.summary(&taken.place).await
    }

    /// Changes the powers of an approved skill, and nothing else: it stays approved (seed scenario 8).
    ///
    /// # Errors
    /// `illegal_state` if these bytes are not approved.
    pub async fn update(&self, request: UpdateRequest, consent: Consent) -> Result<SkillSummary, Refusal> {
        let library = &self.environment.skills;
        let taken = library.approved(&request.skill).await?;
        let (policy, _) = self.policy_for(&taken, request.policy, false, false)?;
        let record = library.trust().update(&subject(&taken), policy, consent).await?;
        self.write_policy(&record).await;
        self.summary(&taken.place).await
    }

    /// The powers that an approval would grant: those approved earlier, otherwise the author's proposal, otherwise
    /// tools that see only the workspace (a tool of the home brings no others); with the owner's changes. An unreadable proposal grants nothing: its author
    /// asked for unknown powers, so the owner names them.
    fn policy_for(
        &self,
        taken: &Taken,
        change: PolicyChange,
        proposed: bool,
        with_proposal: bool,
    ) -> Result<(Policy, PolicyBasis), Refusal> {
        let is_tool = taken.place.is_tool();
        if is_tool && change.tools.as_ref().is_some_and(|tools| !tools.is_empty()) {
            let reason = "a tool brings no other tools: a run is granted each by name";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("leave `--tools` out"));
        }
        let default_policy = || if is_tool { Policy::default() } else { default_policy() };
        let (base, basis) = match (proposed, self.kept_policy(taken)?, taken.snapshot.proposal.as_deref()) {
            (false, Some(kept), _) => (kept, PolicyBasis::Approved),
            (true, _, Some(bytes)) | (false, None, Some(bytes)) => match read_proposal(bytes) {
                Proposal { policy: Some(proposal), .. } if with_proposal => (proposal, PolicyBasis::Proposal),
                Proposal { policy: None, .. } if !proposed => (Policy::default(), PolicyBasis::Unreadable),
                Proposal { policy: None, .. } => return Err(no_proposal()),
                Proposal { policy: Some(_), .. } => (default_policy(), PolicyBasis::Default),
            },
            (true, _, None) => return Err(no_proposal()),
            (false, None, None) => (default_policy(), PolicyBasis::Default),
        };
        let mut policy = change.apply(base);
        // In the one form in which they are granted, shown and compared.
        policy.domains = patterns(&policy.domains)?.iter().map(ToString::to_string).collect();
        policy.writes = shapes(&policy.writes)?.iter().map(ToString::to_string).collect();
        policy.tools = if is_tool { Vec::new() } else { catalogue::resolve(&policy.tools)? };
        let names = limit_names();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        policy.validate(&names)?;
        Ok((policy, basis))
    }

    /// The policy in force, otherwise the one kept for the next approval, otherwise that of the version approved last.
    fn kept_policy(&self, taken: &Taken) -> Result<Option<Policy>, Refusal> {
        if let Some(policy) = taken.standing.record.as_ref().and_then(|record| record.policy.clone()) {
            return Ok(Some(policy));
        }
        // A record of these bytes with other permissions gives no trust, but its policy is the starting point.
        let trust = self.environment.skills.trust();
        let known = trust.get(&taken.manifest.name, &taken.place, taken.snapshot.hash)?;
        if let Some(policy) = known.and_then(|record| record.policy) {
            return Ok(Some(policy));
        }
        Ok(self.last_approved(&taken.place)?.and_then(|record| record.policy))
    }

    /// Warnings for the owner before an approval.
    async fn warnings(&self, taken: &Taken, facts: &SkillReview, policy: &Policy) -> Result<Vec<String>, Refusal> {
        let mut warnings = facts.claims.clone();
        for risk in facts.risks.iter().take(MAX_RISKS) {
            let Risk { kind, path, line, .. } = risk;
            warnings.push(format!("its text {} ({path}:{line}): see the review", kind.phrase()));
        }
        let more = facts.risks.len().saturating_sub(MAX_RISKS);
        if more > 0 {
            warnings.push(format!("{more} more lines of its text should be read first: see the review"));
        }
        let hidden: u64 = facts.hidden.iter().map(|hidden| hidden.count).sum();
        if hidden > 0 {
            warnings.push(format!("its text has {hidden} characters that are not what they look like: see the review"));
        }
        for component in &facts.components {
            if let Some(problem) = &component.problem {
                warnings.push(format!("`{}` cannot be used: {problem}", component.path));
            }
        }
        let set = self.environment.access.credentials().await?;
        let name = taken.manifest.name.as_str();
        // A tool of the home uses shared credentials: it may have the name of a skill.
        let noun = taken.place.noun();
        let (of_skill, scope) = match taken.place.is_tool() {
            true => (None, String::new()),
            false => (Some(name), format!(" --skill {name}")),
        };
        for credential in &policy.required_credentials {
            let found = set.iter().find(|info| {
                info.name.as_str().eq_ignore_ascii_case(credential.as_str())
                    && info.skill.as_deref().is_none_or(|skill| Some(skill) == of_skill)
            });
            match found {
                None => warnings.push(format!(
                    "credential `{credential}` is not set: `motor credential set {credential}{scope} --domain DOMAIN`"
                )),
                Some(info) if info.raw => warnings.push(format!(
                    "credential `{credential}` may be given to the {noun}'s components as it is, not only as a placeholder"
                )),
                Some(_) => {}
            }
        }
        if let Some(proposal) = &facts.proposal {
            let missing = |asked: &[String], granted: &[String], what: &str, warnings: &mut Vec<String>| {
                let not: Vec<_> =
                    asked.iter().filter(|one| !granted.contains(one)).map(|one| format!("`{one}`")).collect();
                if !not.is_empty() {
                    warnings.push(format!("its author also asks for {what} {}: not granted", not.join(", ")));
                }
            };
            let tools = catalogue::resolve(&proposal.tools).unwrap_or_else(|_| proposal.tools.clone());
            missing(&proposal.domains, &policy.domains, "domain", &mut warnings);
            missing(&tools, &policy.tools, "tool", &mut warnings);
            let names =
                |policy: &Policy| policy.required_credentials.iter().map(ToString::to_string).collect::<Vec<_>>();
            missing(&names(proposal), &names(policy), "credential", &mut warnings);
        }
        if facts.advisory.as_ref().is_some_and(|advisory| !advisory.passed) {
            warnings.push("the advisory review did not pass: see the review".to_owned());
        }
        Ok(warnings)
    }

    /// Writes `policy.json` into the skill, for people: it is never read back as trust. A failed write is logged.
    pub(super) async fn write_policy(&self, record: &TrustRecord) {
        if SkillForm::of_file(&record.place.entry).is_some() {
            return;
        }
        let written = async {
            let set = self.environment.access.credentials().await?;
            let name = record.name.as_str();
            let set = set.into_iter().filter(|info| info.skill.as_deref().is_none_or(|skill| skill == name));
            let set: Vec<_> = set.map(|info| info.name).collect();
            let text = render(record, &set);
            let directory = self.environment.skills.path(&record.place)?;
            blocking(move || Ok(write_file(&directory, &text)?)).await
        };
        if let Err(refusal) = written.await {
            tracing::warn!(skill = %record.name, reason = %refusal, "`policy.json` could not be written beside the skill");
        }
    }

    /// A skill as lists show it, after a refresh.
    pub(super) async fn summary(&self, place: &SkillPlace) -> Result<SkillSummary, Refusal> {
        self.environment.skills.refresh().await?;
        let found = self.list().await?.into_iter().find(|summary| summary.place == *place);
        found.ok_or_else(|| SkillError::Missing { selector: place.to_string(), nearest: None }.into())
    }
}

/// Refuses a tool that a run could not be granted: its name is that of a bundled tool or of one of the host's.
fn check_tool_name(taken: &Taken) -> Result<(), Refusal> {
    tool_name_problem(taken).map_or(Ok(()), |reason| {
        let remedy = format!("rename `{}` in the directory `tools` of the home", taken.place.entry);
        Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy))
    })
}

pub(super) fn tool_name_problem(taken: &Taken) -> Option<String> {
    let name = taken.manifest.name.as_str();
    let is_taken = taken.place.is_tool() && catalogue::is_reserved(name);
    is_taken.then(|| format!("`{name}` is the name of a tool that comes with the host"))
}

fn default_policy() -> Policy {
    Policy { tools: DEFAULT_TOOLS.map(str::to_owned).to_vec(), ..Policy::default() }
}

fn no_proposal() -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, "the skill proposes no policy that can be read")
        .with_remedy("name the powers: `--tools`, `--domains`, `--writes`, `--credentials`")
}
