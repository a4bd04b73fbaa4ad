//! The grants of a run by a skill, worked out before it exists (SPEC SKILL-6, SKILL-8).

use std::collections::BTreeMap;

use base::{Refusal, RefusalCode};
use grants::{Admission, SkillGrant};
use skills::policy::check_inputs;
use skills::{Policy, SkillStatus, Taken};
use toolbox::SkillTool;

use super::tools_of;
use super::used::lowered;
use crate::api::ActRequest;
use crate::environment::HostEnvironment;
use crate::workspace;

/// The tools of a run that reviews a skill: they only read and list (SPEC SKILL-9).
const REVIEW_TOOLS: [&str; 4] = ["read", "list", "glob", "grep"];
/// Maximum number of model calls of a review.
const REVIEW_ITERATIONS: u32 = 10;

/// Whether a run works by its skill or reviews it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// It does the task of its caller.
    Task,
    /// It only reads the skill and gives its opinion of it (SPEC SKILL-9).
    Review,
}

impl Purpose {
    /// Number of model calls: fixed for a review, otherwise as requested.
    pub fn iterations(self, request: &ActRequest) -> Option<u32> {
        match self {
            Self::Task => request.max_iterations,
            Self::Review => Some(REVIEW_ITERATIONS),
        }
    }
}

/// A skill's contribution to a plan.
pub(crate) struct SkillPlan {
    /// The bytes for the workspace.
    pub taken: Taken,
    /// The record kept with the run.
    pub grant: SkillGrant,
    /// The policy's grants: tools, domains, domains to write to, credentials.
    pub policy: Policy,
    /// The tools of its components.
    pub own: BTreeMap<String, SkillTool>,
    /// Why it cannot be used now.
    pub problems: Vec<Refusal>,
    /// Warnings for the owner.
    pub warnings: Vec<String>,
}

impl SkillPlan {
    /// A plan that grants nothing yet.
    pub(super) fn nothing(taken: Taken) -> Self {
        let grant = SkillGrant {
            name: taken.manifest.name.clone(),
            place: taken.place.clone(),
            hash: taken.snapshot.hash,
            modes: taken.snapshot.modes,
            admission: Admission::Review,
            inputs: None,
            policy: None,
            limits: BTreeMap::new(),
        };
        Self {
            taken,
            grant,
            policy: Policy::default(),
            own: BTreeMap::new(),
            problems: Vec::new(),
            warnings: Vec::new(),
        }
    }
}

/// Works out the grants of the skill that a request names; `None` if it names no skill.
///
/// # Errors
/// If the skill does not exist, or the request is invalid.
pub(crate) async fn skill_plan(
    request: &ActRequest,
    purpose: Purpose,
    environment: &HostEnvironment,
) -> Result<Option<SkillPlan>, Refusal> {
    let Some(selector) = &request.skill else {
        if request.inputs.is_some() {
            let reason = "inputs are for a skill, and none is named";
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("add `--skill NAME`"));
        }
        return Ok(None);
    };
    let taken = environment.skills.take(selector).await?;
    let mut nothing = SkillPlan::nothing(taken);
    if purpose == Purpose::Review {
        nothing.policy.tools = REVIEW_TOOLS.map(str::to_owned).to_vec();
        return Ok(Some(nothing));
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

async fn approved(
    request: &ActRequest,
    environment: &HostEnvironment,
    mut plan: SkillPlan,
) -> Result<SkillPlan, Refusal> {
    // An approval without a policy does not count.
    let Some(policy) = plan.taken.standing.record.as_ref().and_then(|record| record.policy.clone()) else {
        return Ok(untrusted(plan));
    };
    check_inputs(policy.inputs.as_ref(), request.inputs.as_ref())?;
    check_files(request)?;
    plan.grant.inputs.clone_from(&request.inputs);
    granted(environment, plan, policy).await
}

/// The plan of an approved skill or tool, with the powers of its policy.
pub(super) async fn granted(
    environment: &HostEnvironment,
    mut plan: SkillPlan,
    policy: Policy,
) -> Result<SkillPlan, Refusal> {
    let noun = plan.grant.place.noun();
    lowered(&environment.config().limits, &policy.limits)?;
    if !policy.dependencies.is_empty() {
        let names: Vec<_> = policy.dependencies.keys().map(String::as_str).collect();
        let reason = format!("the {noun} needs packages, which this host cannot fetch: {}", names.join(", "));
        plan.problems.push(Refusal::new(RefusalCode::InvalidRequest, reason));
    }
    plan.grant.admission = Admission::Approved;
    plan.grant.limits.clone_from(&policy.limits);
    plan.grant.policy = Some(policy.clone());
    // Its components are compiled here, at the first use.
    match tools_of(&environment.sandboxes, &plan.taken.snapshot).await {
        Ok(own) => plan.own = own,
        Err(refusal) => plan.problems.push(refusal),
    }
    plan.policy = policy;
    Ok(plan)
}

fn explicit(request: &ActRequest, mut plan: SkillPlan) -> SkillPlan {
    plan.grant.admission = Admission::Explicit;
    plan.grant.inputs.clone_from(&request.inputs);
    plan.warnings.push(format!(
        "the skill `{}` is not approved: it is given as information, without its own tools and powers",
        plan.grant.name
    ));
    plan
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

pub(super) fn untrusted(mut plan: SkillPlan) -> SkillPlan {
    let standing = &plan.taken.standing;
    let place = &plan.grant.place;
    let reason = format!("the {} `{}` is {}: {}", place.noun(), plan.grant.name, standing.status, standing.reason);
    // A skill may have the name of a tool.
    let name = if place.is_tool() { place.to_string() } else { plan.grant.name.to_string() };
    let remedy = format!("`motor skill review {name}`, then `motor skill approve {name}`");
    plan.problems.push(Refusal::new(RefusalCode::SkillUntrusted, reason).with_remedy(remedy));
    plan
}
