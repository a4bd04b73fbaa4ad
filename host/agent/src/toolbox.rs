//! The tools of one run: the `Toolbox` port of `motor` over sandboxed components and one workspace.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base::{Clock, ErrorCode, Provenance, Random, Refusal, RefusalCode};
use llm::ToolSpec;
use motor::{Effects, SandboxUsage, ToolDefinition, ToolInvocation, ToolNote, ToolReply, ToolResult, Toolbox};
use runtime::code::MOST_TIMEOUT_IN_RUN;
use runtime::{
    CodeErrorCode, CodeReport, Finished, Limit, Limits, Note, NoteSink, Outcome, Program, ToolCall, ToolError, Usage,
};
use serde_json::{Value, json};

use crate::catalogue::{CODE, FILE_TOOLS};
use crate::config::CodeConfig;
use crate::output;
use crate::sandboxes::Sandboxes;

/// How long a file tool may take (SPEC TOOL-3).
const FILE_TOOL_TIMEOUT: Duration = Duration::from_secs(10);
/// Characters of a crashed guest's own last words that the model is shown.
const LAST_WORDS: usize = 500;

/// What a toolbox is made of.
pub(crate) struct Parts {
    pub sandboxes: Arc<Sandboxes>,
    pub limits: Limits,
    pub code: CodeConfig,
    pub guard: bool,
    pub clock: Arc<dyn Clock>,
    pub random: Arc<Random>,
    pub workspace: PathBuf,
}

/// The tools granted to one run.
pub(crate) struct RunToolbox {
    parts: Parts,
    tools: Vec<ToolDefinition>,
}

impl RunToolbox {
    /// Offers exactly the tools in `granted`.
    ///
    /// # Errors
    /// When a tool is not there, or its component cannot be used.
    pub async fn new(parts: Parts, granted: &[String]) -> Result<Self, Refusal> {
        let mut tools = Vec::with_capacity(granted.len());
        for name in granted {
            tools.push(define(&parts, name).await?);
        }
        Ok(Self { parts, tools })
    }

    async fn run_code(&self, call: &ToolInvocation<'_>) -> ToolReply {
        let sandbox = match self.parts.sandboxes.code().await {
            Ok(sandbox) => sandbox,
            Err(refusal) => return failed(ErrorCode::Unknown, refusal.reason, false, Duration::ZERO, None),
        };
        let source = call.arguments.get("code").and_then(Value::as_str).unwrap_or_default();
        let asked = call.arguments.get("timeout_ms").and_then(Value::as_u64);
        let program = Program {
            source: source.to_owned(),
            timeout: self.parts.code.timeout_in_run(asked),
            guard: self.parts.guard,
            seed: self.parts.random.next_u64(),
            now_ms: self.parts.clock.now().as_millis(),
        };
        code_reply(sandbox.execute(&program, &self.parts.limits, call.cancel).await)
    }

    async fn run_file_tool(&self, call: &ToolInvocation<'_>) -> ToolReply {
        let toolset = match self.parts.sandboxes.files().await {
            Ok(toolset) => toolset,
            Err(refusal) => return failed(ErrorCode::Unknown, refusal.reason, false, Duration::ZERO, None),
        };
        // Notes cross from the guest's task to the loop's borrowed sink through a channel: a sink may not be borrowed.
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let notes: NoteSink = Arc::new(move |note| {
            sender.send(note).ok();
        });
        let arguments = call.arguments.to_string();
        let working = toolset.component.call(ToolCall {
            name: call.name,
            arguments: &arguments,
            run_id: call.run.as_str(),
            step: call.step,
            idempotency_key: call.idempotency_key,
            workspace: Some(self.parts.workspace.clone()),
            limits: self.parts.limits.with_deadline(self.parts.limits.deadline().min(FILE_TOOL_TIMEOUT)),
            notes,
            cancel: call.cancel.clone(),
        });
        let passing = async {
            while let Some(note) = receiver.recv().await {
                (call.notes)(convert(note));
            }
        };
        // The sink is dropped with the call, which ends the passing on.
        let (finished, ()) = tokio::join!(working, passing);
        tool_reply(finished)
    }
}

#[async_trait::async_trait]
impl Toolbox for RunToolbox {
    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply {
        let mut reply = match call.name {
            CODE => self.run_code(&call).await,
            _ => self.run_file_tool(&call).await,
        };
        let output = std::mem::take(&mut reply.result.output);
        let most = self.parts.limits.workspace_bytes;
        reply.result.output = match output::fit(&self.parts.workspace, call.idempotency_key, output, most) {
            Ok(output) => output,
            Err(error) => {
                tracing::warn!(%error, "cannot save a long output");
                // What the call did is done: only its words are lost, so it stays what it was, a success or not.
                "the call ended, but its output is too long to show and could not be saved; ask for less".to_owned()
            }
        };
        reply
    }
}

async fn define(parts: &Parts, name: &str) -> Result<ToolDefinition, Refusal> {
    if name == CODE {
        return Ok(code_definition(parts.sandboxes.code().await?.component().hash()));
    }
    let gone = || Refusal::new(RefusalCode::UnknownTool, format!("the tool `{name}` is not part of this host"));
    if !FILE_TOOLS.contains(&name) {
        return Err(gone());
    }
    let toolset = parts.sandboxes.files().await?;
    let tool = toolset.tools.iter().find(|tool| tool.name == name).ok_or_else(gone)?;
    Ok(ToolDefinition {
        spec: ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        },
        effects: Effects {
            read_only: tool.effects.read_only,
            destructive: tool.effects.destructive,
            idempotent: tool.effects.idempotent,
            open_world: tool.effects.open_world,
        },
        timeout: FILE_TOOL_TIMEOUT,
        component: Some(toolset.component.component().hash()),
    })
}

fn code_definition(component: base::ContentHash) -> ToolDefinition {
    ToolDefinition {
        spec: ToolSpec {
            name: CODE.to_owned(),
            description: "Runs JavaScript (ES2023) in a fresh sandbox and returns the value of the last expression, or of \
                          `return`, as JSON. For computing, parsing and transforming: put the data into the code. There \
                          are no files, no network and no modules; `await` and `console.log` work."
                .to_owned(),
            parameters: json!({
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "The program." },
                    "timeout_ms": { "type": "integer", "description": "Milliseconds it may take, 100 to 30000. Default 5000." }
                },
                "required": ["code"],
                "additionalProperties": false
            }),
        },
        // A program reaches nothing, so running it again after a crash changes nothing.
        effects: Effects { read_only: true, destructive: false, idempotent: true, open_world: false },
        timeout: MOST_TIMEOUT_IN_RUN,
        component: Some(component),
    }
}

fn convert(note: Note) -> ToolNote {
    match note {
        Note::Log { level, message } => ToolNote::Log { level: level.to_owned(), message },
        Note::Progress { message, fraction } => ToolNote::Progress { message, fraction },
    }
}

fn sandbox_usage(usage: &Usage) -> SandboxUsage {
    SandboxUsage { fuel: usage.fuel, peak_memory_bytes: usage.peak_memory_bytes, host_calls: usage.host_calls }
}

fn failed(
    code: ErrorCode,
    output: String,
    retryable: bool,
    duration: Duration,
    usage: Option<SandboxUsage>,
) -> ToolReply {
    let result = ToolResult {
        ok: false,
        output,
        error_code: Some(code),
        retryable,
        provenance: Provenance::Internal,
        duration_ms: millis(duration),
        cost: None,
    };
    ToolReply { result, usage }
}

fn succeeded(output: String, duration: Duration, usage: SandboxUsage) -> ToolReply {
    let result = ToolResult {
        ok: true,
        output,
        error_code: None,
        retryable: false,
        provenance: Provenance::Internal,
        duration_ms: millis(duration),
        cost: None,
    };
    ToolReply { result, usage: Some(usage) }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn code_reply(report: CodeReport) -> ToolReply {
    let usage = sandbox_usage(&report.usage);
    let duration = report.usage.duration;
    let console = if report.console.is_empty() { String::new() } else { format!("\nconsole:\n{}", report.console) };
    match report.outcome {
        Ok(value) => succeeded(format!("{}{console}", value.json), duration, usage),
        Err(error) => {
            let code = match error.code {
                CodeErrorCode::Timeout => ErrorCode::Timeout,
                CodeErrorCode::Blocked => ErrorCode::PermissionDenied,
                CodeErrorCode::Limit => ErrorCode::LimitExceeded,
                CodeErrorCode::Cancelled => ErrorCode::Cancelled,
                CodeErrorCode::Error => ErrorCode::ExecutionError,
            };
            failed(code, format!("{error}{console}"), false, duration, Some(usage))
        }
    }
}

fn tool_reply(finished: Finished<String, ToolError>) -> ToolReply {
    let usage = sandbox_usage(&finished.usage);
    let duration = finished.usage.duration;
    let fail = |code, message, retryable| failed(code, message, retryable, duration, Some(usage));
    match finished.outcome {
        Outcome::Returned(output) => succeeded(output, duration, usage),
        Outcome::Refused(ToolError::Denied(message)) => fail(ErrorCode::PermissionDenied, message, false),
        Outcome::Refused(ToolError::Missing(message)) => fail(ErrorCode::NotFound, message, false),
        Outcome::Refused(ToolError::BadInput(message)) => fail(ErrorCode::InvalidArgs, message, false),
        Outcome::Refused(ToolError::Limit(message)) => fail(ErrorCode::LimitExceeded, message, false),
        Outcome::Refused(ToolError::Failed { message, retryable }) => {
            fail(ErrorCode::ExecutionError, message, retryable)
        }
        Outcome::Exceeded(exceeded) if exceeded.limit == Limit::DeadlineMs => {
            fail(ErrorCode::Timeout, format!("the tool took longer than its {} ms", exceeded.value), false)
        }
        Outcome::Exceeded(exceeded) => fail(ErrorCode::LimitExceeded, exceeded.to_string(), false),
        Outcome::Trapped(trap) => {
            let words: String = finished.stdio.chars().take(LAST_WORDS).collect();
            let words = if words.is_empty() { words } else { format!("; it said: {words}") };
            fail(ErrorCode::ExecutionError, format!("the tool crashed: {}{words}", trap.message), false)
        }
        Outcome::Cancelled => fail(ErrorCode::Cancelled, "the call was cancelled".to_owned(), false),
        Outcome::HostFault(message) => {
            // The message may name host paths: it is for the log, not for a model.
            tracing::error!(%message, "a tool call failed in the host");
            fail(ErrorCode::Unknown, "the host could not run the tool".to_owned(), true)
        }
    }
}
