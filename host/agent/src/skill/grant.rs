//! The grants of a run by a skill, worked out before it exists (SPEC SKILL-6, SKILL-8).

use std::collections::BTreeMap;

use base::{CredentialName, Refusal, RefusalCode};
use skills::policy::check_inputs;
use skills::{Policy, SkillStatus, Taken};

use super::used::{SkillUse, UsedAs, lowered};
use super::{OwnTool, tools_of};
use crate::api::ActRequest;
use crate::environment::HostEnvironment;
use crate::workspace;

/// The tools of a run that reviews a skill: they only read and list (SPEC SKILL-9).
const REVIEW_TOOLS: [&str; 4] = ["read", "list", "glob", "grep"];
/// Maximum number of model calls of a review.
const REVIEW_ITERATIONS: u32 = 10;

/// A skill's contribution to a plan.
pub(crate) struct SkillGrant {
    /// The bytes for the workspace.
    pub taken: Taken,
    /// The record kept with the run.
    pub used: SkillUse,
    /// The policy's grants: tools, domains, domains to write to, credentials.
    pub policy: Policy,
    /// The tools of its components.
    pub own: BTreeMap<String, OwnTool>,
    /// Why it cannot be used now.
    pub problems: Vec<Refusal>,
    /// Warnings for the owner.
    pub warnings: Vec<String>,
}

/// Works out the grants of the skill that a request names; `None` if it names no skill.
///
/// # Errors
/// If the skill does not exist, or the request is invalid.
pub(crate) async fn grant(request: &ActRequest, environment: &HostEnvironment) -> Result<Option<SkillGrant>, Refusal> {
    let invalid = |reason: &str| Refusal::new(RefusalCode::InvalidRequest, reason);
    let Some(selector) = &request.skill else {
        if request.inputs.is_some() {
            return Err(invalid("inputs are for a skill, and none is named").with_remedy("add `--skill NAME`"));
        }
        if request.skill_review {
            return Err(invalid("a review needs the skill that it is of"));
        }
        return Ok(None);
    };
    let taken = environment.skills.take(selector).await?;
    let used = SkillUse {
        name: taken.manifest.name.clone(),
        place: taken.place.clone(),
        hash: taken.snapshot.hash,
        modes: taken.snapshot.modes,
        standing: UsedAs::Review,
        inputs: None,
        policy: None,
        limits: BTreeMap::new(),
    };
    let nothing = SkillGrant {
        taken,
        used,
        policy: Policy::default(),
        own: BTreeMap::new(),
        problems: Vec::new(),
        warnings: Vec::new(),
    };
    if request.skill_review {
        return review(request, nothing).map(Some);
    }
    match nothing.taken.standing.status {
        SkillStatus::Approved => approved(request, environment, nothing).await.map(Some),
        // It was made here, and the caller names the run's tools: the run gets those, and nothing from the skill.
        SkillStatus::PendingReview | SkillStatus::Reviewed
            if !request.tools.is_empty() && was_made_here(&nothing.taken) =>
        {
            Ok(Some(explicit(request, nothing)))
        }
        _ => Ok(Some(untrusted(nothing))),
    }
}

fn review(request: &ActRequest, mut grant: SkillGrant) -> Result<SkillGrant, Refusal> {
    let wide = !request.tools.is_empty() || !request.domains.is_empty() || !request.writes.is_empty();
    let wide = wide || !request.credentials.is_empty() || !request.files.is_empty() || request.inputs.is_some();
    if wide || !CredentialName::mentioned_in(&request.task).is_empty() {
        let reason =
            "a review reads the skill and nothing else: it has no tools, domains, credentials, files or inputs";
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
    }
    grant.policy.tools = REVIEW_TOOLS.map(str::to_owned).to_vec();
    Ok(grant)
}

/// Number of model calls: fixed for a review, otherwise as requested.
pub(crate) fn iterations(request: &ActRequest) -> Option<u32> {
    if request.skill_review { Some(REVIEW_ITERATIONS) } else { request.max_iterations }
}

async fn approved(
    request: &ActRequest,
    environment: &HostEnvironment,
    mut grant: SkillGrant,
) -> Result<SkillGrant, Refusal> {
    // An approval without a policy does not count.
    let Some(policy) = grant.taken.standing.record.as_ref().and_then(|record| record.policy.clone()) else {
        return Ok(untrusted(grant));
    };
    check_inputs(policy.inputs.as_ref(), request.inputs.as_ref())?;
    check_files(request)?;
    lowered(&environment.config.limits, &policy.limits)?;
    if !policy.dependencies.is_empty() {
        let names: Vec<_> = policy.dependencies.keys().map(String::as_str).collect();
        let reason = format!("the skill needs packages, which this host cannot fetch: {}", names.join(", "));
        grant.problems.push(Refusal::new(RefusalCode::InvalidRequest, reason));
    }
    grant.used.standing = UsedAs::Approved;
    grant.used.inputs.clone_from(&request.inputs);
    grant.used.limits.clone_from(&policy.limits);
    grant.used.policy = Some(policy.clone());
    // Its components are compiled here, at the first use.
    match tools_of(&environment.sandboxes, &grant.taken.snapshot).await {
        Ok(own) => grant.own = own,
        Err(refusal) => grant.problems.push(refusal),
    }
    grant.policy = policy;
    Ok(grant)
}

fn explicit(request: &ActRequest, mut grant: SkillGrant) -> SkillGrant {
    grant.used.standing = UsedAs::Explicit;
    grant.used.inputs.clone_from(&request.inputs);
    grant.warnings.push(format!(
        "the skill `{}` is not approved: it is given as information, without its own tools and powers",
        grant.used.name
    ));
    grant
}

/// Whether a run in this home made it.
fn was_made_here(taken: &Taken) -> bool {
    taken.standing.record.as_ref().is_some_and(|record| record.extracted_from.is_some())
}

/// An input file in a skill's own directory would become part of the skill after the run.
fn check_files(request: &ActRequest) -> Result<(), Refusal> {
    let within = |name: &str| {
        let parts = ["references/", "scripts/", "assets/", "skills/"];
        parts.iter().any(|part| name.starts_with(part))
            || name.eq_ignore_ascii_case("SKILL.md")
            || (!name.contains('/') && skills::snapshot::is_component(name))
    };
    let names = request.files.iter().map(workspace::name_of);
    match names.map(|name| name.trim_start_matches("./").to_owned()).find(|name| within(name)) {
        None => Ok(()),
        Some(name) => {
            let reason = format!("the file `{name}` would lie among the skill's own files");
            Err(Refusal::new(RefusalCode::InvalidRequest, reason)
                .with_remedy("give it another name: `--file data/NAME=PATH`"))
        }
    }
}

fn untrusted(mut grant: SkillGrant) -> SkillGrant {
    let standing = &grant.taken.standing;
    let reason = format!("the skill `{}` is {}: {}", grant.used.name, standing.status, standing.reason);
    let name = &grant.used.name;
    let remedy = format!("`motor skill review {name}`, then `motor skill approve {name}`");
    grant.problems.push(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy));
    grant
}
