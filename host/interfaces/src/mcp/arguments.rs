//! Arguments of the tools. The client's model reads the comments here: they are the descriptions in the JSON Schemas.

use agent::Language;
use base::{AgentName, RunId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Seconds that a call waits at most: many clients give up after a minute.
pub const MAX_WAIT_SECONDS: u64 = 50;

/// Arguments of `core_act`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ActArguments {
    /// The task in plain language. The run sees nothing else of the conversation.
    pub task: String,
    /// Names of the tools granted, and no others are: `code`, `fetch`, `bash`, `read`, `write`, `list`, `glob`, `grep`.
    /// Without any, the run can only answer and ask its owner.
    #[serde(default)]
    pub tools: Vec<String>,
    /// Domains that the run may reach: `example.com`, `*.example.com`.
    #[serde(default)]
    pub domains: Vec<String>,
    /// Domains that the run may still write to after it has read web content.
    #[serde(default)]
    pub writes: Vec<String>,
    /// Names of the credentials granted. Their values are seen by no model.
    #[serde(default)]
    pub credentials: Vec<String>,
    /// Name of an approved skill to work by.
    #[serde(default)]
    pub skill: Option<String>,
    /// Inputs of the skill, as its schema asks for.
    #[serde(default)]
    pub inputs: Option<Value>,
    /// Whether irreversible and outward actions wait for the owner's consent. Default: no.
    #[serde(default)]
    pub approval_required: bool,
    /// Whether the run may ask nothing and is refused all that needs consent. Default: no.
    #[serde(default)]
    pub unattended: bool,
    /// Show the powers that the run would have and the questions it would ask, and start nothing. Default: no.
    #[serde(default)]
    pub explain: bool,
    /// Model calls it may take. Default 20, at most 50.
    #[serde(default)]
    pub max_iterations: Option<u32>,
    /// Milliseconds it may take. Default 600,000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Agent that the run belongs to and whose energy it costs. Default: the one of this connection.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub agent: Option<AgentName>,
    /// Idempotency key: a call with the same key names the same run and starts no second one.
    #[serde(default)]
    pub key: Option<String>,
    /// Seconds to wait for the run to end. Default 0, at most 50.
    #[serde(default)]
    #[schemars(range(max = 50))]
    pub wait_seconds: Option<u64>,
}

/// Arguments of `core_task`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TaskArguments {
    /// The action; all but `list` concern one run.
    pub action: TaskAction,
    /// The run, as `core_act` named it. Needed by all actions but `list`.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub run_id: Option<RunId>,
    /// For `wait`: seconds until the call answers although the run goes on. Default 25, at most 50.
    #[serde(default)]
    #[schemars(range(max = 50))]
    pub wait_seconds: Option<u64>,
    /// For `artifact`: the path of the file, as `artifacts` of the run has it.
    #[serde(default)]
    pub path: Option<String>,
    /// For `retry`: advice for the next attempt.
    #[serde(default)]
    pub guidance: Option<String>,
    /// For `list`: the number of runs. Default 20, at most 100.
    #[serde(default)]
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<u32>,
}

/// Actions of `core_task`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TaskAction {
    /// Show the newest runs.
    List,
    /// Show the run as it is now.
    Get,
    /// Wait until the run is over or asks its owner, for `waitSeconds` at most.
    Wait,
    /// Read a file that the run produced, if it is text of at most 256 KiB.
    Artifact,
    /// Show the end of the run's log.
    Log,
    /// Stop the run for good.
    Cancel,
    /// Begin another attempt at a failed run.
    Retry,
}

/// Arguments of `core_execute`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExecuteArguments {
    /// The program. Its value is that of the last expression, or of `return`.
    pub code: String,
    /// Its language. Default: JavaScript.
    #[serde(default)]
    pub language: Language,
    /// Whether it may `fetch` from the domains that the owner configured for programs. Default: no.
    #[serde(default)]
    pub network: bool,
    /// Milliseconds it may take: 100 to 5000, with network to 30000.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Agent whose energy it costs. Default: the one of this connection.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    pub agent: Option<AgentName>,
}

/// Arguments of a tool that takes none.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NoArguments {}
