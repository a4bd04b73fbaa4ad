//! Tools of the home that a run is granted by name (SPEC HOST-8): components in `tools/`, each trusted like a skill, by
//! its bytes.
//!
//! A bundled tool has precedence over a file of its name, so nothing that is dropped in can take its place.

use std::collections::BTreeMap;

use base::{Refusal, RefusalCode};
use skills::{SkillError, SkillName, SkillPlace, SkillStatus};
use toolbox::{SkillTool, catalogue};

use super::plan::{SkillPlan, granted, untrusted};
use crate::environment::HostEnvironment;

/// Maximum number of tools of the home in one run: each is compiled and asked for its tools.
const MAX_TOOLS: usize = 16;

/// The tools that a request names.
pub(crate) struct NamedTools {
    /// Exact names of the bundled tools.
    pub bundled: Vec<String>,
    /// The contributions of the home's own tools, in the order of the request.
    pub dropped: Vec<SkillPlan>,
}

/// Resolves names to bundled tools and to tools of the home.
///
/// # Errors
/// If a name is unknown; the error names the nearest one. A tool that is not approved is a problem of its plan.
pub(crate) async fn named_tools(names: &[String], environment: &HostEnvironment) -> Result<NamedTools, Refusal> {
    let (bundled, others): (Vec<String>, Vec<String>) =
        names.iter().map(|name| name.trim().to_owned()).partition(|name| catalogue::grants_any(name));
    let mut dropped: Vec<SkillPlan> = Vec::new();
    for name in others {
        if dropped.iter().any(|known| known.grant.name.as_str() == name) {
            continue;
        }
        if dropped.len() == MAX_TOOLS {
            let reason = format!("a run is granted at most {MAX_TOOLS} tools of `tools/`");
            return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
        }
        dropped.push(tool(&name, environment).await?);
    }
    Ok(NamedTools { bundled: catalogue::resolve(&bundled)?, dropped })
}

async fn tool(name: &str, environment: &HostEnvironment) -> Result<SkillPlan, Refusal> {
    let Ok(parsed) = SkillName::parse(name) else { return Err(unknown(name, environment).await) };
    let taken = match environment.skills.take_at(&SkillPlace::of_tool(&parsed)).await {
        Ok(taken) => taken,
        Err(SkillError::Missing { .. }) => return Err(unknown(name, environment).await),
        Err(error) => return Err(error.into()),
    };
    let approved = taken.standing.status == SkillStatus::Approved;
    // An approval without a policy does not count.
    let policy = taken.standing.record.as_ref().and_then(|record| record.policy.clone()).filter(|_| approved);
    let plan = SkillPlan::nothing(taken);
    match policy {
        Some(policy) => granted(environment, plan, policy).await,
        None => Ok(untrusted(plan)),
    }
}

async fn unknown(name: &str, environment: &HostEnvironment) -> Refusal {
    let all = environment.skills.list().await.unwrap_or_default();
    let tools: Vec<_> = all.into_iter().filter(|known| known.place.is_tool()).filter_map(|known| known.name).collect();
    catalogue::unknown(name, &tools)
}

/// Adds the tools of one component to those of a run.
///
/// # Errors
/// If the run has a tool of that name already: a call would not say which of them it means.
pub(crate) fn combine(
    own: &mut BTreeMap<String, SkillTool>,
    more: BTreeMap<String, SkillTool>,
    from: &SkillName,
) -> Result<(), Refusal> {
    if let Some(name) = more.keys().find(|name| own.contains_key(*name)) {
        let reason = format!("`{from}` offers a tool `{name}`, and the run has another of that name");
        return Err(Refusal::new(RefusalCode::InvalidComponent, reason).with_remedy("grant one of them"));
    }
    own.extend(more);
    Ok(())
}
