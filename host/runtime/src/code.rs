//! The sandbox for model-written code (SPEC CODE-1 to CODE-5).
//!
//! JavaScript and Python run in engines that are components themselves: pre-initialised, a fresh instance for each program.
//! There are two kinds of each. The isolated one has an empty import list and an empty linker, so there is nothing to reach. The
//! connected one, for runs that were granted domains or files, is linked like a tool and reaches only its
//! [`CodeAccess`] (SPEC CODE-6, CODE-7). Failures are returned as codes, never thrown.

mod connected;
pub(crate) mod script;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base::CredentialName;
use bindings::code::{CodePre, exports::motor::host::interpreter as wit};
use network::{BlockReason, RequestTrace};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime::component::Linker;

use crate::call;
use crate::engine::Runtime;
use crate::guard;
use crate::limits::Limits;
use crate::load::Component;
use crate::load_error::{LoadError, told};
use crate::meter::Meter;
use crate::outcome::{CallUsage, Outcome};
use crate::scrub::Scrub;
use crate::state::CallState;
use crate::{Limit, LimitExceeded};

pub use connected::CodeAccess;
pub use script::{ScriptEngine, ScriptSandbox};

/// Maximum size of a result, in bytes of JSON (SPEC CODE-2).
pub const MAX_RESULT_BYTES: u32 = 32 * 1024;
/// Bytes of console output that are kept (SPEC CODE-1).
pub const MAX_CONSOLE_BYTES: u32 = 8 * 1024;
/// Bytes of an error's message that are kept.
const MAX_MESSAGE_BYTES: usize = 4 * 1024;
/// Start of the marker that replaces the rest of a result, such as `…[truncated: 36 bytes]`, and its maximum length.
pub(crate) const MARKER: &str = "…[truncated: ";
const MARKER_BYTES: usize = 64;
/// Maximum size of the source, in bytes.
pub const MAX_SOURCE_BYTES: usize = 1 << 20;

/// The engine, linked and ready. Cheap to clone.
#[derive(Clone)]
pub struct CodeSandbox {
    runtime: Runtime,
    component: Component,
    engine: Engine,
    language: Language,
}

/// An engine with its linker. An isolated engine has no surroundings.
#[derive(Clone)]
enum Engine {
    Isolated(CodePre<Meter>),
    Connected(Arc<CodePre<CallState>>),
}

/// The language of a program.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Language {
    /// JavaScript (ES2023), the default.
    #[default]
    JavaScript,
    /// Python 3.14 with its standard library.
    Python,
}

impl Language {
    /// All of them, by the names that callers write.
    pub const NAMES: [(&str, Self); 2] = [("javascript", Self::JavaScript), ("python", Self::Python)];

    /// The language with this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMES.iter().find(|(known, _)| *known == name).map(|(_, language)| *language)
    }
}

/// One program to run.
#[derive(Debug, Clone)]
pub struct Program {
    /// The source text, at most [`MAX_SOURCE_BYTES`].
    pub source: String,
    /// Wall-clock timeout; clamped by the caller.
    pub timeout: Duration,
    /// Refuse plain attempts to leave the sandbox before running.
    pub guard: bool,
    /// Seed of the program's random numbers.
    pub seed: u64,
    /// The program's clock, in milliseconds since the epoch.
    pub now_ms: u64,
}

/// The result of running a program.
#[derive(Debug, Clone, PartialEq)]
pub struct CodeReport {
    /// The returned value, or the error.
    pub outcome: Result<CodeValue, CodeError>,
    /// Console output, at most 8 KiB.
    pub console: String,
    /// Whether the console output was longer than that.
    pub console_truncated: bool,
    /// Fuel, memory, host calls and time used.
    pub usage: CallUsage,
    /// Network requests of the program, in order.
    pub requests: Vec<RequestTrace>,
    /// The last request that a rule refused.
    pub last_refusal: Option<BlockReason>,
    /// The credentials whose values were replaced in the program's output.
    pub withheld: Vec<CredentialName>,
}

/// A value a program returned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeValue {
    /// JSON text; if truncated, cut and ending in a marker.
    pub json: String,
    /// Whether the value was longer than 32 KiB.
    pub truncated: bool,
}

/// Why a program has no value (SPEC CODE-3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum CodeErrorCode {
    /// The program exceeded its timeout.
    #[serde(rename = "EXECUTION_TIMEOUT")]
    Timeout,
    /// The program or the host failed.
    #[serde(rename = "EXECUTION_ERROR")]
    Error,
    /// The static guard refused the program.
    #[serde(rename = "EXECUTION_BLOCKED")]
    Blocked,
    /// The program exceeded a limit other than time.
    #[serde(rename = "EXECUTION_LIMIT")]
    Limit,
    /// The caller cancelled the program.
    #[serde(rename = "EXECUTION_CANCELLED")]
    Cancelled,
}

/// An error: a stable code, a message and a source position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CodeError {
    /// The stable code that callers compare.
    pub code: CodeErrorCode,
    /// One sentence for the reader.
    pub message: String,
    /// Line in the source, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in that line, counted from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl fmt::Display for CodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let code = match self.code {
            CodeErrorCode::Timeout => "EXECUTION_TIMEOUT",
            CodeErrorCode::Error => "EXECUTION_ERROR",
            CodeErrorCode::Blocked => "EXECUTION_BLOCKED",
            CodeErrorCode::Limit => "EXECUTION_LIMIT",
            CodeErrorCode::Cancelled => "EXECUTION_CANCELLED",
        };
        write!(f, "{code}: {}", self.message)?;
        match (self.line, self.column) {
            (Some(line), Some(column)) => write!(f, " (line {line}, column {column})"),
            (Some(line), None) => write!(f, " (line {line})"),
            _ => Ok(()),
        }
    }
}

impl CodeError {
    fn new(code: CodeErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), line: None, column: None }
    }
}

impl CodeSandbox {
    /// Links an engine of the world `code`. The linker is empty, so an engine that imports anything is refused.
    ///
    /// # Errors
    /// If the component is not such an engine.
    pub fn link(runtime: &Runtime, component: &Component) -> Result<Self, LoadError> {
        let pre = linked(component, &Linker::new(component.compiled.engine()))?;
        Ok(Self {
            runtime: runtime.clone(),
            component: component.clone(),
            engine: Engine::Isolated(pre),
            language: Language::default(),
        })
    }

    /// The same, as an engine for programs in this language. Default: JavaScript.
    #[must_use]
    pub fn speaking(self, language: Language) -> Self {
        Self { language, ..self }
    }

    /// The component of the engine.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// Runs a program to its end, without surroundings. `limits` sets every limit except the time, which the program
    /// sets.
    pub async fn execute(&self, program: &Program, limits: &Limits, cancel: &CancellationToken) -> CodeReport {
        self.execute_in(program, CodeAccess::default(), limits, cancel).await
    }

    /// Runs a program to its end. Only a connected engine can use the surroundings.
    pub async fn execute_in(
        &self,
        program: &Program,
        surroundings: CodeAccess,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> CodeReport {
        if let Some(error) = refuse(self.language, program) {
            return report(Err(error), CallUsage::default());
        }
        let limits = limits.with_deadline(program.timeout);
        let request = wit::Program {
            source: program.source.clone(),
            seed: program.seed,
            now_ms: program.now_ms,
            max_result_bytes: MAX_RESULT_BYTES,
            max_console_bytes: MAX_CONSOLE_BYTES,
            grants: surroundings.grants(),
        };
        let scrub = Scrub::new(surroundings.scrubbed_by.clone().or_else(|| surroundings.network.clone()));
        // Cut after scrubbing: half a secret would not be found.
        within_bounds(scrub.report(match &self.engine {
            Engine::Isolated(pre) => self.isolated(pre, &request, &limits, cancel).await,
            // Boxed, so that the isolated path does not carry this future's state.
            Engine::Connected(pre) => {
                Box::pin(self.connected(pre.clone(), request, surroundings, &limits, cancel)).await
            }
        }))
    }

    async fn isolated(
        &self,
        pre: &CodePre<Meter>,
        request: &wit::Program,
        limits: &Limits,
        cancel: &CancellationToken,
    ) -> CodeReport {
        let mut store = Store::new(self.component.compiled.engine(), Meter::new(limits));
        store.limiter(|meter| meter);
        store.set_hostcall_fuel(usize::try_from(limits.hostcall_bytes).unwrap_or(usize::MAX));
        let (outcome, usage) = call::run(&self.runtime, &mut store, limits, cancel, async |store| {
            let instance = pre.instantiate_async(&mut *store).await?;
            instance.motor_host_interpreter().call_execute(&mut *store, request).await
        })
        .await;
        settle(outcome, CallUsage { peak_memory_bytes: store.data().memory_peak(), ..usage })
    }
}

fn linked<S: Send + 'static>(component: &Component, linker: &Linker<S>) -> Result<CodePre<S>, LoadError> {
    if !component.inspection().exports_host_interface("interpreter") {
        return Err(LoadError::MissingExport { wanted: "motor:host/interpreter".into() });
    }
    let pre = linker.instantiate_pre(&component.compiled).and_then(CodePre::new);
    pre.map_err(|error| LoadError::NotLinked { message: told(&error.root_cause().to_string()) })
}

fn settle(outcome: Outcome<wit::Report, std::convert::Infallible>, usage: CallUsage) -> CodeReport {
    match outcome {
        Outcome::Returned(answer) => accept(answer, usage),
        other => report(Err(explain(other)), usage),
    }
}

fn refuse(language: Language, program: &Program) -> Option<CodeError> {
    if program.source.len() > MAX_SOURCE_BYTES {
        let message = format!("the code has {} bytes; at most {MAX_SOURCE_BYTES} are accepted", program.source.len());
        return Some(CodeError::new(CodeErrorCode::Limit, message));
    }
    let pattern = program.guard.then(|| guard::blocked(language, &program.source)).flatten()?;
    let message = format!("code contains the disallowed pattern `{pattern}`; nothing outside the sandbox is reachable");
    Some(CodeError::new(CodeErrorCode::Blocked, message))
}

fn report(outcome: Result<CodeValue, CodeError>, usage: CallUsage) -> CodeReport {
    let (console, requests) = (String::new(), Vec::new());
    CodeReport { outcome, console, console_truncated: false, usage, requests, last_refusal: None, withheld: Vec::new() }
}

/// Converts the guest's answer without checking its length.
fn accept(answer: wit::Report, usage: CallUsage) -> CodeReport {
    let outcome = match answer.outcome {
        Ok(value) => Ok(CodeValue { json: value.json, truncated: value.truncated }),
        Err(fault) => {
            let message =
                if fault.name.is_empty() { fault.message } else { format!("{}: {}", fault.name, fault.message) };
            Err(CodeError { code: CodeErrorCode::Error, message, line: fault.line, column: fault.column })
        }
    };
    CodeReport { console: answer.console, console_truncated: answer.console_truncated, ..report(outcome, usage) }
}

/// Enforces the bounds of an answer again, because the guest runs hostile code in its own memory.
fn within_bounds(mut report: CodeReport) -> CodeReport {
    report.console_truncated |= cut(&mut report.console, MAX_CONSOLE_BYTES as usize);
    match &mut report.outcome {
        // The guest's truncation marker is part of the text and needs extra room.
        Ok(value) => value.truncated |= cut(&mut value.json, MAX_RESULT_BYTES as usize + MARKER_BYTES),
        Err(error) => {
            cut(&mut error.message, MAX_MESSAGE_BYTES);
        }
    }
    report
}

/// Cuts `text` to at most `most` bytes at a character boundary; returns whether it did.
fn cut(text: &mut String, most: usize) -> bool {
    if text.len() <= most {
        return false;
    }
    text.truncate(text.floor_char_boundary(most));
    true
}

fn explain(outcome: Outcome<wit::Report, std::convert::Infallible>) -> CodeError {
    match outcome {
        Outcome::Exceeded(LimitExceeded { limit: Limit::DeadlineMs, value }) => {
            CodeError::new(CodeErrorCode::Timeout, format!("code exceeded its limit of {value} ms"))
        }
        Outcome::Exceeded(exceeded) => CodeError::new(CodeErrorCode::Limit, exceeded.to_string()),
        Outcome::Trapped(trap) => CodeError::new(CodeErrorCode::Error, format!("the engine stopped: {}", trap.message)),
        Outcome::Cancelled => CodeError::new(CodeErrorCode::Cancelled, "the caller gave up"),
        Outcome::HostFault(message) => CodeError::new(CodeErrorCode::Error, message),
        Outcome::Returned(_) => CodeError::new(CodeErrorCode::Error, "no answer"),
        Outcome::Refused(never) => match never {},
    }
}
