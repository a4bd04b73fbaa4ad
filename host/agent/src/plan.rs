//! A run's grants, worked out before it exists: `act` starts from the same plan that `explain` shows (SPEC RUN-13).

use std::collections::BTreeMap;

use base::{Refusal, RefusalCode};
use energy::Activity;
use grants::{Admission, Grant, SkillGrant, commands, credentials, extend, patterns, shapes};
use motor::RunMoney;
use network::{Pattern, Policy, Shape};
use skills::{Policy as SkillPolicy, Taken};

use crate::access::RunConsents;
use crate::api::{ActRequest, Caller};
use crate::config::ModelsConfig;
use crate::directories;
use crate::environment::HostEnvironment;
use crate::skill::{NamedTools, Purpose, SkillPlan, combine, named_tools, skill_plan};
use crate::spending::{models_of, money_of};
use toolbox::{SAVE_CREDENTIAL, SkillTool, catalogue, unknown_commands};

/// A run that could be started, or the reasons against it.
pub(crate) struct Plan {
    /// The tools, by exact name.
    pub tools: Vec<String>,
    /// The bytes of its skill, for the workspace.
    pub skill: Option<Taken>,
    /// The tools of its skill and of the home, by name.
    pub own: BTreeMap<String, SkillTool>,
    /// The powers that are stored with the run.
    pub grant: Grant,
    /// Its cap in US dollars, and the prices of its models.
    pub money: RunMoney,
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
    purpose: Purpose,
    by: Caller,
    environment: &HostEnvironment,
    energy: &energy::EnergyBook,
) -> Result<Plan, Refusal> {
    let mut grant = Grant {
        model: request.model.clone(),
        record: request.record.clone(),
        guard: request.guard,
        seed: request.seed,
        domains: patterns(&request.domains)?,
        writes: shapes(&request.writes)?,
        credentials: credentials(&request.task, &request.credentials)?,
        commands: request.commands.as_deref().map(commands).transpose()?,
        directories: directories::resolve(request, &environment.home, by)?,
        staged: request.stage,
        ..Grant::default()
    };
    let (mut warnings, mut problems) = (Vec::new(), Vec::new());
    let (mut skill, mut own) = (None, BTreeMap::new());
    let NamedTools { bundled, dropped } = named_tools(&request.tools, environment).await?;
    let mut tools = match request.tools.as_slice() {
        [] if !grant.directories.is_empty() => catalogue::resolve(&directories::default_tools())?,
        _ => bundled,
    };
    tools = offered(tools, request, &environment.config().models);
    if let Some(of_skill) = skill_plan(request, purpose, environment).await? {
        let SkillPlan { taken, grant: granted, policy, own: brought, problems: wrong, warnings: said } = of_skill;
        // If the caller names tools, the run has only those and the skill's own; the policy's tools are the default.
        if request.tools.is_empty() {
            tools = catalogue::resolve(&policy.tools)?;
        }
        tools.extend(brought.keys().cloned());
        grant.extend(patterns(&policy.domains)?, shapes(&policy.writes)?);
        problems.extend(cannot_save(&tools, Some((&granted, &policy))));
        let required = match tools.iter().any(|tool| tool == SAVE_CREDENTIAL) {
            true => environment.access.available(policy.required_credentials, granted.name.as_str()).await?,
            false => policy.required_credentials,
        };
        extend(&mut grant.credentials, required);
        grant.skill = Some(granted);
        (skill, own) = (Some(taken), brought);
        problems.extend(wrong);
        warnings.extend(said);
    }
    if grant.skill.is_none() {
        problems.extend(cannot_save(&tools, None));
    }
    for SkillPlan { grant: granted, policy, own: brought, problems: wrong, .. } in dropped {
        tools.extend(brought.keys().cloned());
        problems.extend(combine(&mut own, brought, &granted.name).err());
        grant.extend(patterns(&policy.domains)?, shapes(&policy.writes)?);
        extend(&mut grant.credentials, policy.required_credentials);
        grant.tools.push(granted);
        problems.extend(wrong);
    }
    let reaches = |tool: &String| match own.get(tool) {
        Some(own) => own.tool.effects.open_world,
        None => catalogue::reaches_out(tool),
    };
    if !grant.domains.is_empty() && !tools.iter().any(reaches) {
        warnings.push(format!(
            "none of the granted tools reaches the network, so `{}` is of no use: grant `fetch`, `bash` or `code`",
            grant.domains.iter().map(Pattern::to_string).collect::<Vec<_>>().join(", ")
        ));
    }
    if grant.commands.is_some() && !tools.iter().any(|tool| tool == catalogue::BASH) {
        warnings.push("`bash` is not granted, so a list of its commands is of no use".to_owned());
    }
    warnings.extend(grant.commands.iter().flat_map(|names| unknown_commands(names)));
    if !grant.directories.is_empty() && !catalogue::sees_files(&tools) {
        warnings.push(
            "none of the granted tools sees files, so `--on` is of no use: grant `filesystem` or `bash`".to_owned(),
        );
    }
    if let Some(tool) = catalogue::saves_files(&tools).filter(|_| !catalogue::sees_files(&tools)) {
        warnings.push(format!(
            "`{tool}` saves pages as files, and no tool that reads files is granted: add `read` or `bash`"
        ));
    }
    let consents = RunConsents::new(request.approval_required, !request.unattended).settled(request.plan.is_some());
    let policy = environment.access.policy(&request.agent, None, &grant.domains, &grant.writes, &consents)?;
    warnings.extend(policy.writes.iter().filter(|shape| shape.is_whole_host()).map(whole_host));
    match energy.check(&request.agent, Activity::Agentic { browser: false }) {
        Ok(()) => {}
        Err(refusal) if by == Caller::Owner && refusal.code == RefusalCode::EnergyTooLow => {
            warnings.push(format!("{}; going on because the owner asks", refusal.reason));
        }
        Err(refusal) => problems.push(refusal),
    }
    let money = money_of(&environment.config(), request, by);
    let models = models_of(&environment.config(), request.model.as_deref());
    if let Err(refusal) = environment.check_money(&request.agent, &money, &models) {
        problems.push(refusal);
    }
    match environment.access.secrets(&grant.credentials, grant.credentials_of()).await {
        Ok(secrets) => {
            warnings.extend(secrets.granted().iter().filter(|granted| granted.domains.is_empty()).map(bound_nowhere));
        }
        // Names of credentials are the owner's to see.
        Err(refusal) if by == Caller::Owner && refusal.code == RefusalCode::CredentialsNeeded => {
            problems.push(environment.access.with_nearest(refusal, &grant.credentials).await);
        }
        Err(refusal) => problems.push(refusal),
    }
    if !grant.credentials.is_empty() {
        warnings.extend(environment.access.vault.warnings());
    }
    if let Err(refusal) = environment.check(&grant).await {
        problems.push(refusal);
    }
    Ok(Plan { tools, skill, own, grant, money, policy, problems, warnings })
}

/// The bundled tools that a new run is offered with these settings: a small model has fewer to read and to choose from.
///
/// They are stored with the run, so another setting does not change the tools of a run that has begun.
fn offered(tools: Vec<String>, request: &ActRequest, models: &ModelsConfig) -> Vec<String> {
    // A narrowed shell may lack the commands that replace tools.
    if !models.constrained || request.commands.is_some() {
        return tools;
    }
    catalogue::beside_shell(tools, &request.tools)
}

/// Why a run may not be granted the tool that saves credentials, if it is to be.
fn cannot_save(tools: &[String], skill: Option<(&SkillGrant, &SkillPolicy)>) -> Option<Refusal> {
    if !tools.iter().any(|tool| tool == SAVE_CREDENTIAL) {
        return None;
    }
    let refused = |code, reason: String, remedy: String| Some(Refusal::new(code, reason).with_remedy(remedy));
    let Some((skill, policy)) = skill.filter(|(skill, _)| skill.admission == Admission::Approved) else {
        let reason = format!("`{SAVE_CREDENTIAL}` is for runs by an approved skill");
        let remedy = format!("add `--skill NAME`, of a skill whose policy grants `{SAVE_CREDENTIAL}`");
        return refused(RefusalCode::InvalidRequest, reason, remedy);
    };
    let name = &skill.name;
    if !policy.tools.iter().any(|tool| tool == SAVE_CREDENTIAL) {
        let reason = format!("the policy of the skill `{name}` does not grant `{SAVE_CREDENTIAL}`");
        let tools = policy.tools.iter().map(String::as_str).chain([SAVE_CREDENTIAL]).collect::<Vec<_>>().join(",");
        return refused(RefusalCode::Forbidden, reason, format!("`motor skill update {name} --tools {tools}`"));
    }
    if policy.domains.is_empty() || policy.required_credentials.is_empty() {
        let reason = format!(
            "the skill `{name}` may save credentials, and its policy names none, or no domain that they could be sent to"
        );
        let remedy = format!("`motor skill update {name} --credentials NAME --domains DOMAIN`");
        return refused(RefusalCode::InvalidRequest, reason, remedy);
    }
    None
}

/// Everything sent to such a host, even text made up by a page, passes without a question.
fn whole_host(shape: &Shape) -> String {
    format!(
        "everything may be sent to `{shape}`, whatever the run has read: name the request instead, as in \
         `--writes 'POST {shape}/PATH'`"
    )
}

/// A credential of the environment has no domains of its own.
fn bound_nowhere(granted: &vault::GrantedCredential) -> String {
    let name = granted.name.as_str().to_lowercase();
    format!(
        "credential `{}` is bound to no domain, so it is sent nowhere; one of the environment is bound in the \
         configuration: `credentials.domains = {{ {name} = [\"DOMAIN\"] }}`",
        granted.name
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &str) -> Vec<String> {
        names.split_whitespace().map(str::to_owned).collect()
    }

    #[track_caller]
    fn check(constrained: bool, named: &str, commands: Option<&str>, expected: &str) {
        let models = ModelsConfig { constrained, ..ModelsConfig::default() };
        let request = ActRequest { tools: list(named), commands: commands.map(list), ..ActRequest::default() };
        let tools = catalogue::resolve(&list("bash filesystem")).unwrap();
        assert_eq!(offered(tools, &request, &models).join(" "), expected);
    }

    #[test]
    fn a_small_model_is_offered_fewer_file_tools_beside_the_whole_shell() {
        let all = "bash read write append patch list glob grep";
        let fewer = "bash read write patch grep";
        check(true, "bash filesystem", None, fewer);
        // As by default on a directory.
        check(true, "", None, fewer);
        check(true, "bash filesystem list", None, "bash read write patch list grep");
        check(true, "bash filesystem", Some("cat ls"), all);
        // The twin: another model has all of them.
        check(false, "bash filesystem", None, all);
        check(false, "", None, all);
    }
}
