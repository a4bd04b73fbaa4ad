//! The tools: their declarations, and their calls as requests to the HTTP API.

use std::sync::Arc;
use std::time::Duration;

use agent::{ActReply, ActRequest, ExecuteReply, ExecuteRequest, RetryTask, TaskSummary, Tier};
use base::{AgentName, Provenance, Random, Refusal, RefusalCode, RunId};
use futures_util::future::BoxFuture;
use motor::{CancelReply, RetryReply, RunStatus, RunTrace};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use rmcp::model::{CallToolResult, ContentBlock, InputRequiredResult, JsonObject, Task, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use skills::SkillSummary;
use vault::CredentialInfo;

use super::api::Api;
use super::arguments::{ActArguments, ExecuteArguments, MAX_WAIT_SECONDS, NoArguments, TaskAction, TaskArguments};
use super::asking::{Asked, Asker, decided, elicitation, is_accepted, respond};
use super::repeat::Repeated;
use super::replies::{
    ArtifactContent, CredentialEntry, CredentialsReply, ProgramReply, RunReply, SkillEntry, SkillsReply, TaskReply,
};
use super::tasks;
use super::wait::{Progress, outcome};
use crate::client::Call;
use crate::http::PageAddress;

/// Seconds that `core_task` waits by default.
const WAIT_SECONDS: u64 = 25;
/// Characters of an answer in the summary of a run; a longer one is read from the trace.
const SUMMARY_CHARS: usize = 2_000;
/// Bytes of a file in a reply, at most: more would crowd the client's context.
const MAX_ARTIFACT_BYTES: usize = 256 << 10;
/// Runs in one list, at most.
const MAX_RUNS: u32 = 100;

/// The sender of a call, and its way to the host.
pub struct Caller<'a> {
    /// The API as this caller may use it.
    pub api: Api,
    /// Agent of a call that names none.
    pub agent: &'a AgentName,
    /// Where the steps of a run are reported, if the client asked for that.
    pub(super) progress: Option<Progress>,
    /// The way to the person at the client.
    pub(super) asker: Asker,
    /// The call that this one repeats.
    pub(super) repeated: Option<Repeated>,
}

/// The reply of a tool.
pub enum ToolReply {
    /// The structured result of the tool.
    Complete(Value),
    /// A question, after which the client repeats the call.
    InputRequired(InputRequiredResult),
    /// A task that the client follows.
    Task(Task),
}

/// The state of a run that was waited for, or a question before that.
enum Followed {
    Run(RunReply),
    Later(InputRequiredResult),
}

/// Every tool, in a fixed order.
#[must_use]
pub fn all() -> Vec<Tool> {
    let act = ToolAnnotations::new().read_only(false).destructive(true).idempotent(false).open_world(true);
    let steer = ToolAnnotations::new().read_only(false).destructive(false).idempotent(true).open_world(false);
    let compute = ToolAnnotations::new().read_only(false).destructive(false).idempotent(false).open_world(true);
    let look = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    vec![
        tool::<ActArguments, RunReply>(
            "core_act",
            "Delegate a task",
            "Start a sandboxed run for a task, with exactly the grants named. Answers at once with the run's id; the \
             run goes on by itself.",
            act,
        )
        .with_raw_output_schema(schema_of_act()),
        tool::<TaskArguments, TaskReply>(
            "core_task",
            "Follow and steer runs",
            "List runs, look at one, wait for it, read its files and its log, stop it, or try it again after a failure.",
            steer,
        ),
        tool::<ExecuteArguments, ProgramReply>(
            "core_execute",
            "Run a program",
            "Run a short JavaScript or Python program in a fresh sandbox and return its value. No files; no network unless \
             `network` is set.",
            compute,
        ),
        tool::<NoArguments, SkillsReply>(
            "core_skill",
            "List skills",
            "List the skills that `core_act` can work by, with their status.",
            look.clone(),
        ),
        tool::<NoArguments, CredentialsReply>(
            "core_credential",
            "List credentials",
            "List the names and domains of the credentials that a run can be granted. Values are never shown.",
            look,
        ),
    ]
}

fn tool<A: JsonSchema, R: JsonSchema>(
    name: &'static str,
    title: &'static str,
    description: &'static str,
    annotations: ToolAnnotations,
) -> Tool {
    Tool::new(name, description, schema::<A>(Contract::Deserialize))
        .with_title(title)
        .with_raw_output_schema(schema::<R>(Contract::Serialize))
        .with_annotations(annotations.clone())
}

/// The schema of a run's state, or with `explain` of its powers. Clients ask for one object, so it has the fields of both.
fn schema_of_act() -> Arc<JsonObject> {
    let mut object = Arc::unwrap_or_clone(schema::<RunReply>(Contract::Serialize));
    let explanation = json!({
        "type": "object",
        "description": "With `explain`: tools, domains, credentials, files and limits that the run would have. `asks` beside one \
                        says when its owner is asked: `each_call`, `each_request` or `after_web`.",
    });
    if let Some(fields) = object.get_mut("properties").and_then(Value::as_object_mut) {
        fields.insert("explanation".to_owned(), explanation);
    }
    let of_run = object.remove("required").unwrap_or_default();
    object.insert("anyOf".to_owned(), json!([{ "required": of_run }, { "required": ["explanation"] }]));
    Arc::new(object)
}

/// The JSON Schema of a type, with the definitions of its parts in place: some clients resolve no references.
fn schema<T: JsonSchema>(contract: Contract) -> Arc<JsonObject> {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.contract = contract;
    });
    let mut object = settings.into_generator().into_root_schema_for::<T>();
    object.remove("title");
    object.remove("description");
    let mut object = Value::from(object);
    remove_widths(&mut object);
    Arc::new(object.as_object().cloned().unwrap_or_default())
}

/// Removes the formats of integers (`uint64`), which are not formats of JSON Schema: strict clients refuse them.
fn remove_widths(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let is_width = |format: &Value| format.as_str().is_some_and(|format| format.contains("int"));
            if fields.get("format").is_some_and(is_width) {
                fields.remove("format");
            }
            fields.values_mut().for_each(remove_widths);
        }
        Value::Array(items) => items.iter_mut().for_each(remove_widths),
        _ => {}
    }
}

/// The call of a tool; `None` if there is no tool of this name.
#[must_use]
pub fn call<'a>(
    caller: &'a Caller<'_>,
    tool: &str,
    arguments: Value,
) -> Option<BoxFuture<'a, Result<ToolReply, Refusal>>> {
    Some(match tool {
        "core_act" => Box::pin(async move { act(caller, read(arguments)?).await }),
        "core_task" => Box::pin(async move { task(caller, read(arguments)?).await }),
        "core_execute" => Box::pin(async move { reply(&execute(caller, read(arguments)?).await?) }),
        "core_skill" => Box::pin(async move {
            let NoArguments {} = read(arguments)?;
            reply(&skills(caller).await?)
        }),
        "core_credential" => Box::pin(async move {
            let NoArguments {} = read(arguments)?;
            reply(&credentials(caller).await?)
        }),
        _ => return None,
    })
}

/// The result of a tool that did its work.
#[must_use]
pub fn completed(reply: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(reply.to_string())]);
    result.structured_content = Some(reply);
    result
}

/// The result of a tool that was refused, for the client's model.
#[must_use]
pub fn failed(refusal: &Refusal) -> CallToolResult {
    let text = serde_json::to_string(refusal).unwrap_or_else(|_| refusal.reason.clone());
    CallToolResult::error(vec![ContentBlock::text(text)])
}

fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, Refusal> {
    serde_json::from_value(arguments).map_err(|error| {
        Refusal::new(RefusalCode::InvalidRequest, format!("the arguments are refused: {error}"))
            .with_remedy("call the tool again with arguments that match its input schema")
    })
}

fn reply(reply: &impl Serialize) -> Result<ToolReply, Refusal> {
    let reply = serde_json::to_value(reply).map_err(|error| Refusal::new(RefusalCode::Failed, error.to_string()))?;
    Ok(ToolReply::Complete(reply))
}

/// A request whose answer was lost is sent again; without a key it would be carried out twice.
fn new_key() -> String {
    format!("mcp-{:016x}", Random::from_system().next_u64())
}

fn seconds(requested: Option<u64>, default: u64) -> Duration {
    Duration::from_secs(requested.unwrap_or(default).min(MAX_WAIT_SECONDS))
}

async fn act(caller: &Caller<'_>, arguments: ActArguments) -> Result<ToolReply, Refusal> {
    let wait = seconds(arguments.wait_seconds, 0);
    if let Some(repeated) = &caller.repeated {
        // The run was started by the call that this one repeats.
        return match follow(caller, &repeated.state.run, wait).await? {
            Followed::Run(run) => reply(&run),
            Followed::Later(required) => Ok(ToolReply::InputRequired(required)),
        };
    }
    let request = ActRequest {
        task: arguments.task,
        tools: arguments.tools,
        agent: arguments.agent.unwrap_or_else(|| caller.agent.clone()),
        domains: arguments.domains,
        writes: arguments.writes,
        credentials: arguments.credentials,
        approval_required: arguments.approval_required,
        unattended: arguments.unattended,
        skill: arguments.skill,
        inputs: arguments.inputs,
        max_iterations: arguments.max_iterations,
        timeout_ms: arguments.timeout_ms,
        key: Some(arguments.key.unwrap_or_else(new_key)),
        ..ActRequest::default()
    };
    if arguments.explain {
        let explanation: Value = caller.api.ask(&Call::post("/v1/explanations", &request)?).await?;
        return reply(&json!({ "explanation": explanation }));
    }
    let started: ActReply = caller.api.ask(&Call::post("/v1/tasks", &request)?).await?;
    if caller.asker.abilities.tasks {
        let summary = outcome(&caller.api, &started.run_id, Duration::ZERO, None).await?;
        return Ok(ToolReply::Task(tasks::task(&summary)));
    }
    match follow(caller, &started.run_id, wait).await? {
        Followed::Run(run) => reply(&RunReply { warnings: started.warnings, ..run }),
        Followed::Later(required) => Ok(ToolReply::InputRequired(required)),
    }
}

async fn task(caller: &Caller<'_>, arguments: TaskArguments) -> Result<ToolReply, Refusal> {
    let id = || {
        arguments.run_id.as_ref().ok_or_else(|| {
            Refusal::new(RefusalCode::InvalidRequest, "the action needs `runId`")
                .with_remedy("find the run with `action: list`")
        })
    };
    let mut wait = Duration::ZERO;
    match arguments.action {
        TaskAction::List => {
            let limit = arguments.limit.unwrap_or(20).clamp(1, MAX_RUNS);
            let runs: Vec<TaskSummary> = caller.api.ask(&Call::get(format!("/v1/tasks?limit={limit}"))).await?;
            let runs = runs.into_iter().map(RunReply::new).collect();
            return reply(&TaskReply { runs: Some(runs), ..TaskReply::default() });
        }
        TaskAction::Log => {
            let log: Value = caller.api.ask(&Call::get(format!("/v1/tasks/{}/log", id()?))).await?;
            let log = log.get("log").and_then(Value::as_str).unwrap_or_default().to_owned();
            return reply(&TaskReply { log: Some(log), ..TaskReply::default() });
        }
        TaskAction::Artifact => {
            let artifact = artifact(caller, id()?, arguments.path.as_deref()).await?;
            return reply(&TaskReply { artifact: Some(artifact), ..TaskReply::default() });
        }
        TaskAction::Get => {}
        TaskAction::Wait => wait = seconds(arguments.wait_seconds, WAIT_SECONDS),
        TaskAction::Cancel => {
            let cancel = Call::post(format!("/v1/tasks/{}/cancellation", id()?), &json!({}))?;
            caller.api.ask::<CancelReply>(&cancel).await?;
        }
        TaskAction::Retry => {
            let request =
                RetryTask { guidance: arguments.guidance.clone(), key: Some(new_key()), ..RetryTask::default() };
            let retry = Call::post(format!("/v1/tasks/{}/retries", id()?), &request)?;
            caller.api.ask::<RetryReply>(&retry).await?;
        }
    }
    match follow(caller, id()?, wait).await? {
        Followed::Run(run) => reply(&TaskReply { run: Some(run), ..TaskReply::default() }),
        Followed::Later(required) => Ok(ToolReply::InputRequired(required)),
    }
}

/// A run once it is over or asks its owner, `wait` after the last answer at the latest. Its question is put to the person
/// at the client once in this call, if the client can do that.
async fn follow(caller: &Caller<'_>, id: &RunId, wait: Duration) -> Result<Followed, Refusal> {
    let mut asked = None;
    if let Some(repeated) = caller.repeated.as_ref().filter(|repeated| repeated.state.run == *id) {
        asked = Some(repeated.state.waiting().to_owned());
        take(caller, repeated, wait).await;
    }
    loop {
        let summary = outcome(&caller.api, id, wait, caller.progress.as_ref()).await?;
        let waiting = summary.waiting.as_ref().map(|waiting| waiting.id().to_owned());
        if waiting.is_none() || waiting == asked || wait.is_zero() {
            return Ok(Followed::Run(described(caller, summary).await?));
        }
        let page = page(caller).await?;
        let (page, progress) = (page.as_deref(), caller.progress.as_ref());
        if let Asked::Later(required) = caller.asker.ask(&caller.api, &summary, page, progress, wait).await {
            return Ok(Followed::Later(required));
        }
        asked = waiting;
    }
}

/// Takes the response in a repeated call. If the run waits with something else by now, the response means nothing.
async fn take(caller: &Caller<'_>, repeated: &Repeated, wait: Duration) {
    let (Some(response), state) = (repeated.response(), &repeated.state) else { return };
    if !state.is_question() {
        if is_accepted(response) {
            decided(&caller.api, &state.run, state.waiting(), wait).await;
        }
        return;
    }
    if let Ok(asked) = elicitation(&caller.api, &state.run).await
        && asked.ticket == state.mark
        && let Err(refusal) = respond(&caller.api, &state.run, &asked, response).await
    {
        tracing::debug!(code = ?refusal.code, "the answer of an MCP client was refused");
    }
}

/// The state of a run as it is now.
pub(super) async fn state(caller: &Caller<'_>, id: &RunId) -> Result<(TaskSummary, RunReply), Refusal> {
    let summary = outcome(&caller.api, id, Duration::ZERO, None).await?;
    Ok((summary.clone(), described(caller, summary).await?))
}

/// A run with its whole answer, and the page on which its owner answers.
async fn described(caller: &Caller<'_>, summary: TaskSummary) -> Result<RunReply, Refusal> {
    let id = summary.run_id.clone();
    let is_cut = summary.summary.as_ref().is_some_and(|text| text.chars().count() >= SUMMARY_CHARS);
    let is_completed = summary.status == RunStatus::Completed;
    let mut reply = RunReply::new(summary);
    if is_completed && is_cut {
        let trace: RunTrace = caller.api.ask(&Call::get(format!("/v1/tasks/{id}"))).await?;
        reply.answer = trace.summary;
    }
    if reply.waits_for.is_some()
        && let Some(address) = page(caller).await?
    {
        reply.with_page(&address);
    }
    Ok(reply)
}

/// A file that a run produced, if it is text.
async fn artifact(caller: &Caller<'_>, id: &RunId, path: Option<&str>) -> Result<ArtifactContent, Refusal> {
    let path = path.ok_or_else(|| {
        Refusal::new(RefusalCode::InvalidRequest, "the action needs `path`")
            .with_remedy("the paths are in `artifacts` of the run")
    })?;
    let parts: Vec<_> = path.split('/').map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string()).collect();
    let bytes = caller.api.read(&Call::get(format!("/v1/tasks/{id}/artifacts/{}", parts.join("/")))).await?;
    if bytes.len() > MAX_ARTIFACT_BYTES {
        let reason = format!("the file has {} bytes, and a reply at most {MAX_ARTIFACT_BYTES}", bytes.len());
        return Err(
            Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy("the owner finds it in the run's artifacts")
        );
    }
    let text = String::from_utf8(bytes.into()).map_err(|_| {
        Refusal::new(RefusalCode::InvalidRequest, "the file is not text")
            .with_remedy("the owner finds it in the run's artifacts")
    })?;
    Ok(ArtifactContent { path: path.to_owned(), text })
}

async fn execute(caller: &Caller<'_>, arguments: ExecuteArguments) -> Result<ProgramReply, Refusal> {
    let request = ExecuteRequest {
        code: arguments.code,
        language: arguments.language,
        purpose: None,
        tier: if arguments.network { Tier::Network } else { Tier::Isolated },
        timeout_ms: arguments.timeout_ms,
        guard: None,
        agent: arguments.agent.unwrap_or_else(|| caller.agent.clone()),
        seed: None,
    };
    let call = Call::post("/v1/executions", &request)?;
    // A program with network access may have written somewhere.
    let reply: ExecuteReply =
        if arguments.network { caller.api.ask_once(&call).await? } else { caller.api.ask(&call).await? };
    Ok(ProgramReply {
        ok: reply.ok,
        output: reply.output,
        console: reply.console,
        line: reply.line,
        truncated: reply.truncated,
        read_web: reply.provenance == Provenance::Web,
    })
}

/// The address of the owner's page, if the host serves one.
pub(super) async fn page(caller: &Caller<'_>) -> Result<Option<String>, Refusal> {
    let page: PageAddress = caller.api.ask(&Call::get("/v1/page")).await?;
    Ok(page.address)
}

async fn skills(caller: &Caller<'_>) -> Result<SkillsReply, Refusal> {
    let skills: Vec<SkillSummary> = caller.api.ask(&Call::get("/v1/skills")).await?;
    let entries = skills.into_iter().filter_map(|skill| {
        let status = skill.status.to_string();
        Some(SkillEntry { name: skill.name?, description: skill.description, status })
    });
    Ok(SkillsReply { skills: entries.collect() })
}

async fn credentials(caller: &Caller<'_>) -> Result<CredentialsReply, Refusal> {
    let credentials: Vec<CredentialInfo> = caller.api.ask(&Call::get("/v1/credentials")).await?;
    // One that waits for the owner can be granted to no run.
    let entries = credentials
        .into_iter()
        .filter(|credential| credential.pending.is_none())
        .map(|credential| CredentialEntry { name: credential.name.to_string(), domains: credential.domains });
    let at_page =
        page(caller).await?.map(|address| format!(", or sets it at {address}/credentials")).unwrap_or_default();
    let to_add = format!(
        "the owner runs `motor credential set NAME --domain DOMAIN`{at_page}; never ask for a secret in the conversation"
    );
    Ok(CredentialsReply { credentials: entries.collect(), to_add })
}
