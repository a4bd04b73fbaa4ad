//! What a run would be given, worked out before it exists: what `act` starts from and what `explain` shows are the same
//! (SPEC RUN-13).

use base::{CredentialName, Refusal, RefusalCode};
use energy::Activity;
use network::{Pattern, Policy};

use crate::access::patterns;
use crate::api::{ActRequest, Caller};
use crate::catalogue;
use crate::environment::{HostEnvironment, RunSettings};

/// A run that could be started, or the reasons why not.
pub(crate) struct Plan {
    /// The tools, by exact name.
    pub tools: Vec<String>,
    /// What the run keeps to rebuild its surroundings.
    pub settings: RunSettings,
    /// What it may reach.
    pub policy: Policy,
    /// Why it cannot be started now: what is missing. In the order in which it should be mended.
    pub problems: Vec<Refusal>,
    /// What the owner should know.
    pub warnings: Vec<String>,
}

impl Plan {
    /// The plan, when nothing stands in its way.
    ///
    /// # Errors
    /// The first problem.
    pub fn ready(mut self) -> Result<Self, Refusal> {
        if self.problems.is_empty() { Ok(self) } else { Err(self.problems.swap_remove(0)) }
    }
}

/// Works out what a request would be given.
///
/// # Errors
/// When the request itself makes no sense: an unknown tool, a domain that is none.
pub(crate) async fn plan(
    request: &ActRequest,
    environment: &HostEnvironment,
    energy: &energy::EnergyBook,
) -> Result<Plan, Refusal> {
    let tools = catalogue::resolve(&request.tools)?;
    let domains = patterns(&request.domains)?;
    let writes = patterns(&request.writes)?;
    let credentials = credentials(request)?;
    let commands = request.commands.as_deref().map(commands).transpose()?;
    let mut warnings = Vec::new();
    let mut problems = Vec::new();
    if !domains.is_empty() && !tools.iter().any(|tool| catalogue::reaches_out(tool)) {
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
    let policy = environment.access.policy(&request.agent, None, &domains, &writes)?;
    match energy.check(&request.agent, Activity::Agentic { browser: false }) {
        Ok(()) => {}
        Err(refusal) if request.by == Caller::Owner && refusal.code == RefusalCode::EnergyTooLow => {
            warnings.push(format!("{}; going on because the owner asks", refusal.reason));
        }
        Err(refusal) => problems.push(refusal),
    }
    match environment.access.secrets(&credentials).await {
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
    };
    if let Err(refusal) = environment.check(&settings) {
        problems.push(refusal);
    }
    Ok(Plan { tools, settings, policy, problems, warnings })
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

/// The credentials a run is granted: those that are named, and those that its task has placeholders of.
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

/// Names of commands for the shell: an allow-list that is empty allows none.
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
