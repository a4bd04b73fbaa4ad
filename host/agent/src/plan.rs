//! A run's grants, worked out before it exists: `act` starts from the same plan that `explain` shows (SPEC RUN-13).

use std::collections::BTreeMap;

use base::{CredentialName, Refusal, RefusalCode};
use energy::Activity;
use network::{Pattern, Policy, Shape};
use skills::Taken;

use crate::access::{RunConsents, patterns, shapes};
use crate::api::{ActRequest, Caller};
use crate::catalogue;
use crate::environment::{HostEnvironment, RunSettings};
use crate::skill::{OwnTool, SkillGrant, SkillUse, grant};

/// A run that could be started, or the reasons against it.
pub(crate) struct Plan {
    /// The tools, by exact name.
    pub tools: Vec<String>,
    /// The bytes of its skill, for the workspace.
    pub skill: Option<Taken>,
    /// The tools of its skill, by name.
    pub own: BTreeMap<String, OwnTool>,
    /// The settings from which the run's environment is rebuilt.
    pub settings: RunSettings,
    /// The run's network policy.
    pub policy: Policy,
    /// Why it cannot be started now. In the order in which the problems should be mended.
    pub problems: Vec<Refusal>,
    /// Warnings for the owner.
    pub warnings: Vec<String>,
}

impl Plan {
    /// The plan, if it has no problems.
    ///
    /// # Errors
    /// The first problem.
    pub fn ready(mut self) -> Result<Self, Refusal> {
        if self.problems.is_empty() { Ok(self) } else { Err(self.problems.swap_remove(0)) }
    }
}

/// Works out the grants of a request.
///
/// # Errors
/// If the request itself is invalid: an unknown tool, an invalid domain.
pub(crate) async fn plan(
    request: &ActRequest,
    environment: &HostEnvironment,
    energy: &energy::EnergyBook,
) -> Result<Plan, Refusal> {
    let mut credentials = credentials(request)?;
    let mut domains = patterns(&request.domains)?;
    let mut writes = shapes(&request.writes)?;
    let commands = request.commands.as_deref().map(commands).transpose()?;
    let (mut warnings, mut problems) = (Vec::new(), Vec::new());
    let (mut skill, mut own, mut used) = (None, BTreeMap::new(), None);
    let mut tools = catalogue::resolve(&request.tools)?;
    if let Some(granted) = grant(request, environment).await? {
        let SkillGrant { taken, used: uses, policy, own: brought, problems: wrong, warnings: said } = granted;
        // If the caller names tools, the run has only those and the skill's own; the policy's tools are the default.
        if request.tools.is_empty() {
            tools = catalogue::resolve(&policy.tools)?;
        }
        tools.extend(brought.keys().cloned());
        add(&mut domains, patterns(&policy.domains)?);
        let of_policy = shapes(&policy.writes)?;
        add(&mut domains, of_policy.iter().map(|shape| shape.host().clone()).collect());
        add(&mut writes, of_policy);
        add(&mut credentials, policy.required_credentials);
        (skill, own, used) = (Some(taken), brought, Some(uses));
        problems.extend(wrong);
        warnings.extend(said);
    }
    let reaches = |tool: &String| match own.get(tool) {
        Some(own) => own.tool.effects.open_world,
        None => catalogue::reaches_out(tool),
    };
    if !domains.is_empty() && !tools.iter().any(reaches) {
        warnings.push(format!(
            "none of the granted tools reaches the network, so `{}` is of no use: grant `fetch`, `bash` or `code`",
            domains.iter().map(Pattern::to_string).collect::<Vec<_>>().join(", ")
        ));
    }
    if commands.is_some() && !tools.iter().any(|tool| tool == catalogue::BASH) {
        warnings.push("`bash` is not granted, so a list of its commands is of no use".to_owned());
    }
    if tools.iter().any(|tool| tool == catalogue::FETCH) && !catalogue::sees_files(&tools) {
        warnings.push(
            "`fetch` saves pages as files, and no tool that reads files is granted: add `read` or `bash`".to_owned(),
        );
    }
    let consents = RunConsents::new(request.approval_required, !request.unattended);
    let policy = environment.access.policy(&request.agent, None, &domains, &writes, &consents)?;
    warnings.extend(policy.writes.iter().filter(|shape| shape.is_whole_host()).map(whole_host));
    match energy.check(&request.agent, Activity::Agentic { browser: false }) {
        Ok(()) => {}
        Err(refusal) if request.by == Caller::Owner && refusal.code == RefusalCode::EnergyTooLow => {
            warnings.push(format!("{}; going on because the owner asks", refusal.reason));
        }
        Err(refusal) => problems.push(refusal),
    }
    match environment.access.secrets(&credentials, used.as_ref().and_then(SkillUse::credentials_of)).await {
        Ok(secrets) => {
            warnings.extend(secrets.granted().iter().filter(|granted| granted.domains.is_empty()).map(bound_nowhere));
        }
        Err(refusal) => problems.push(refusal),
    }
    if !credentials.is_empty() {
        warnings.extend(environment.access.vault.warnings());
    }
    let settings = RunSettings {
        model: request.model.clone(),
        record: request.record.clone(),
        guard: request.guard,
        domains,
        writes,
        credentials,
        commands,
        skill: used,
    };
    if let Err(refusal) = environment.check(&settings) {
        problems.push(refusal);
    }
    Ok(Plan { tools, skill, own, settings, policy, problems, warnings })
}

/// Everything sent to such a host, even text made up by a page, passes without a question.
fn whole_host(shape: &Shape) -> String {
    format!(
        "everything may be sent to `{shape}`, whatever the run has read: name the request instead, as in \
         `--writes 'POST {shape}/PATH'`"
    )
}

/// A credential of the environment has no domains of its own.
fn bound_nowhere(granted: &vault::Granted) -> String {
    let name = granted.name.as_str().to_lowercase();
    format!(
        "credential `{}` is bound to no domain, so it is sent nowhere; one of the environment is bound in the \
         configuration: `credentials.domains = {{ {name} = [\"DOMAIN\"] }}`",
        granted.name
    )
}

/// The credentials a run is granted: named ones, and those with placeholders in its task.
fn credentials(request: &ActRequest) -> Result<Vec<CredentialName>, Refusal> {
    let mut names = CredentialName::mentioned_in(&request.task);
    for text in &request.credentials {
        let name = CredentialName::parse(text.trim())
            .map_err(|error| Refusal::new(RefusalCode::InvalidRequest, error.to_string()))?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    Ok(names)
}

/// Adds the missing elements.
pub(crate) fn add<T: PartialEq>(all: &mut Vec<T>, more: Vec<T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

/// Names of commands for the shell: an empty allow-list allows nothing.
fn commands(names: &[String]) -> Result<Vec<String>, Refusal> {
    let plain = |name: &str| {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '[');
        !name.is_empty() && name.len() <= 64 && name.chars().all(fits)
    };
    let mut checked = Vec::new();
    for name in names.iter().map(|name| name.trim()).filter(|name| !name.is_empty()) {
        if !plain(name) {
            let shown: String = name.chars().take(40).collect();
            let reason = format!("`{}` is not the name of a command", shown.escape_debug());
            return Err(
                Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("write `--commands curl,grep,sort`")
            );
        }
        checked.push(name.to_owned());
    }
    Ok(checked)
}
