//! A run's possible access, in words and numbers, from the plan that the run itself would start from (SPEC RUN-13).

use base::{AgentName, ContentHash, CredentialName, Refusal};
use grants::DirectoryGrant;
use llm::MicroUsd;
use motor::ToolDefinition;
use network::{Asks, Pattern, Shape, TaintedWrite};
use runtime::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skills::{SkillName, SkillPlace, SkillStatus};
use toolbox::{CodeGrants, asks_before, catalogue, define, effects_in_words};
use vault::{CredentialInfo, CredentialSource};

use crate::Runs;
use crate::api::{ActRequest, Caller};
use crate::plan::{Plan, plan};
use crate::skill::{Purpose, limits};
use crate::workspace;

/// When a run asks its owner about something that it was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AskWhen {
    /// Before each call of the tool.
    EachCall,
    /// Before each request that `writes` does not list.
    EachRequest,
    /// Once the run has read from the web: about requests that write, carry a credential or carry much.
    AfterWeb,
}

impl From<Asks> for AskWhen {
    fn from(asks: Asks) -> Self {
        match asks {
            Asks::EachRequest => Self::EachRequest,
            Asks::AfterReading => Self::AfterWeb,
        }
    }
}

/// Everything a run could touch. JSON in camel case.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The agent of the run.
    pub agent: AgentName,
    /// The model it would use; `None` if no model is configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The tools, in the order they are described to the model.
    pub tools: Vec<ExplainedTool>,
    /// The skill it would work by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<ExplainedSkill>,
    /// The only commands that `bash` could run; `None`: all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// The granted commands of `bash` that it would ask about.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asking_commands: Vec<AskingCommand>,
    /// The network access it would have.
    pub network: ExplainedNetwork,
    /// The credentials it could use.
    pub credentials: Vec<ExplainedCredential>,
    /// The files it could see.
    pub files: ExplainedFiles,
    /// The limits of each tool call.
    pub limits: Limits,
    /// Maximum number of model calls.
    pub max_iterations: u32,
    /// Time limit of the run in milliseconds.
    pub timeout_ms: u64,
    /// Its cost in energy.
    pub energy: ExplainedEnergy,
    /// The most that it may spend on models in US dollars; absent without a cap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usd_cap: Option<MicroUsd>,
    /// Reasons it could not start now, with remedies.
    pub problems: Vec<Refusal>,
    /// Warnings for the owner, if any.
    pub warnings: Vec<String>,
}

/// The skill that a run would work by.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedSkill {
    /// Name of the skill.
    pub name: SkillName,
    /// Its skills directory and entry.
    pub place: SkillPlace,
    /// The hash of the bytes that the run would be given.
    pub hash: ContentHash,
    /// The status of these bytes.
    pub status: SkillStatus,
    /// Reason for this status.
    pub reason: String,
    /// The tools it adds to the run.
    pub tools: Vec<String>,
}

/// A command of `bash` that the run would ask about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AskingCommand {
    /// Name of the command.
    pub name: String,
    /// When it would be asked about.
    pub asks: AskWhen,
}

/// A tool that would be granted.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedTool {
    /// Name of the tool.
    pub name: String,
    /// Its declared effects on the world: `changes nothing`, `writes files`, `reaches out`, …
    pub effects: String,
    /// Time limit of one call in milliseconds.
    pub timeout_ms: u64,
    /// When the owner is asked about it; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<AskWhen>,
    /// Hash of the component behind it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub component: Option<ContentHash>,
}

/// The network access of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedNetwork {
    /// The hosts granted: ports 80 and 443 unless a pattern names one.
    pub domains: Vec<Pattern>,
    /// The hosts that the owner refused.
    pub refused: Vec<Pattern>,
    /// Whether the owner is asked about every request that `writes` does not list: `approvalRequired`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// Write requests that may be sent after the run has read web content. A host without a path allows every request
    /// to it.
    pub writes: Vec<Shape>,
    /// The rule for a write request that `writes` does not list, after the run has read web content.
    pub tainted_write: TaintedWrite,
    /// Whether the run is held to a plan: a write request that `writes` does not list is refused without a question.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub only_planned: bool,
    /// Whether write requests are held until the owner sends them (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
    /// Private addresses that a host may resolve to, if it was granted by its exact name.
    pub private: Vec<String>,
}

/// A credential that a run could use. Its value is not part of it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedCredential {
    /// Name of the credential.
    pub name: CredentialName,
    /// Its source; `None` if it is not set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<CredentialSource>,
    /// The domains it may be sent to.
    pub domains: Vec<String>,
    /// When the owner is asked about requests with it; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<AskWhen>,
    /// Whether a component may be given the value itself.
    pub raw: bool,
}

/// The files a run could see.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedFiles {
    /// How the run may access its workspace.
    pub access: FileAccess,
    /// The directories it works on (SPEC LAND-1): changes are kept aside until the owner lands them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<ExplainedDirectory>,
    /// The files that are copied into the workspace.
    pub inputs: Vec<String>,
    /// Maximum total size of the workspace in bytes.
    pub most_bytes: u64,
    /// Maximum number of files and directories.
    pub most_files: u64,
}

/// A directory that a run would work on.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedDirectory {
    /// Absolute path on this machine.
    pub path: String,
    /// The path under which the run sees it.
    pub seen_as: String,
    /// Whether it can only be read.
    pub read_only: bool,
}

/// A run's access to its workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileAccess {
    /// No granted tool sees files.
    None,
    /// Its tools only read files.
    Read,
    /// Its tools read and write.
    ReadWrite,
}

/// The energy cost of a run.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExplainedEnergy {
    /// The agent's level now, from 0.05 to 1.
    pub level: f64,
    /// Cost of starting the run.
    pub base: f64,
    /// Cost of each model call beyond the free ones.
    pub per_iteration: f64,
    /// Number of free model calls.
    pub free_iterations: u32,
    /// Maximum cost of the whole run.
    pub most: f64,
    /// Whether the energy model is switched on.
    pub enabled: bool,
}

impl Runs {
    /// Explains a run's possible access, from the plan it would start from (SPEC RUN-13). Starts nothing.
    ///
    /// # Errors
    /// If the request is invalid, or a component cannot be used.
    pub async fn explain(&self, request: &ActRequest, by: Caller) -> Result<Explanation, Refusal> {
        let environment = &*self.environment;
        let Plan { tools, skill: taken, own, grant, money, policy, problems, warnings } =
            plan(request, Purpose::Task, by, environment, &self.energy).await?;
        let reaches = !policy.domains.is_empty();
        let limits = limits(&environment.config().limits, &grant)?;
        let definitions = define(
            &environment.sandboxes,
            &environment.config().tools,
            &limits,
            CodeGrants::planned(&tools, reaches),
            &tools,
            &own,
        )
        .await?;
        let set = environment.access.credentials().await?;
        let of_skill = grant.skill.as_ref().map(|skill| skill.name.as_str());
        let about_requests = policy.asks().filter(|_| !policy.domains.is_empty()).map(AskWhen::from);
        let before_calls = request.approval_required && policy.may_ask;
        let asks = |tool: &ToolDefinition| match tool.effects.open_world {
            true => about_requests,
            false => (before_calls && own.contains_key(&tool.spec.name) && asks_before(tool.effects))
                .then_some(AskWhen::EachCall),
        };
        let explained = |name: &CredentialName| {
            // The precedence of the vault: a skill's credential before a shared one. `set` lists stored credentials
            // before those of environment variables.
            let own = set
                .iter()
                .find(|info| info.skill.is_some() && info.skill.as_deref() == of_skill && is_same(name, info));
            let found = own.or_else(|| set.iter().find(|info| info.skill.is_none() && is_same(name, info)));
            ExplainedCredential {
                name: name.clone(),
                source: found.map(|info| info.source),
                domains: found.map(|info| info.domains.clone()).unwrap_or_default(),
                asks: found.and(about_requests),
                raw: found.is_some_and(|info| info.raw),
            }
        };
        let energy = &environment.config().energy;
        let saves = catalogue::saves_files(&tools).is_some();
        let max_iterations = environment.config().motor.iterations(request.max_iterations)?;
        let timeout = environment.config().motor.timeout(request.timeout_ms.map(std::time::Duration::from_millis))?;
        let beyond = f64::from(max_iterations.saturating_sub(energy.free_iterations));
        Ok(Explanation {
            agent: request.agent.clone(),
            model: environment.model_name(&grant),
            tools: definitions
                .iter()
                .map(|tool| ExplainedTool {
                    name: tool.spec.name.clone(),
                    effects: effects_in_words(tool.effects),
                    timeout_ms: u64::try_from(tool.timeout.as_millis()).unwrap_or(u64::MAX),
                    asks: asks(tool),
                    component: tool.component,
                })
                .collect(),
            skill: taken.map(|taken| ExplainedSkill {
                name: taken.manifest.name,
                place: taken.place,
                hash: taken.snapshot.hash,
                status: taken.standing.status,
                reason: taken.standing.reason,
                tools: own.keys().cloned().collect(),
            }),
            asking_commands: asking_commands(&tools, grant.commands.as_deref(), about_requests),
            commands: grant.commands,
            network: ExplainedNetwork {
                domains: policy.domains,
                refused: policy.refused,
                writes: policy.writes,
                asks: policy.asks_always && !request.unattended,
                tainted_write: policy.tainted_write,
                only_planned: policy.only_planned,
                staged: grant.staged,
                private: environment.config().network.private.clone(),
            },
            credentials: grant.credentials.iter().map(explained).collect(),
            files: ExplainedFiles {
                // A tool whose pages are saved to the workspace sees the workspace too.
                access: match (catalogue::sees_files(&tools) || saves, catalogue::writes_files(&tools) || saves) {
                    (false, _) => FileAccess::None,
                    (true, false) => FileAccess::Read,
                    (true, true) => FileAccess::ReadWrite,
                },
                directories: grant.directories.iter().map(explained_directory).collect(),
                inputs: request.files.iter().map(workspace::name_of).collect(),
                most_bytes: limits.workspace_bytes,
                most_files: limits.workspace_files,
            },
            limits,
            max_iterations,
            timeout_ms: u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX),
            energy: ExplainedEnergy {
                level: self.energy.level(&request.agent)?,
                base: energy.agentic_base,
                per_iteration: energy.agentic_per_iteration,
                free_iterations: energy.free_iterations,
                most: energy.agentic_base + beyond * energy.agentic_per_iteration,
                enabled: energy.enabled,
            },
            usd_cap: money.cap,
            problems,
            warnings,
        })
    }
}

/// The granted commands of `bash` that send requests, if the run asks about those.
fn asking_commands(tools: &[String], commands: Option<&[String]>, asks: Option<AskWhen>) -> Vec<AskingCommand> {
    let Some(asks) = asks.filter(|_| tools.iter().any(|tool| tool == catalogue::BASH)) else { return Vec::new() };
    let is_granted = |name: &str| commands.is_none_or(|granted| granted.iter().any(|granted| granted == name));
    let sending = catalogue::SENDING_COMMANDS.into_iter().filter(|name| is_granted(name));
    sending.map(|name| AskingCommand { name: name.to_owned(), asks }).collect()
}

fn explained_directory(directory: &DirectoryGrant) -> ExplainedDirectory {
    let seen_as = match directory.prefix.as_str() {
        "" => "/workspace".to_owned(),
        prefix => format!("/workspace/{prefix}"),
    };
    let path = directory.path.to_string_lossy().into_owned();
    ExplainedDirectory { path, seen_as, read_only: directory.read_only }
}

/// Whether this is the named credential: names of the vault are exact, those of variables are case-insensitive.
fn is_same(name: &CredentialName, info: &CredentialInfo) -> bool {
    let folded = |name: &CredentialName| name.as_str().to_ascii_lowercase().replace('-', "_");
    info.name == *name || (info.source == CredentialSource::Environment && folded(&info.name) == folded(name))
}
