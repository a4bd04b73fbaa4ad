//! Components of the world `tool`: what they offer, and calling it (SPEC HOST-2).

use std::path::PathBuf;
use std::sync::Arc;

use bindings::tool::{ToolPre, exports::motor::host::tools as wit};
use bindings::types;
use capabilities::NoteSink;
use capabilities::stdio::BoundedOutput;
use capabilities::workspace::Access;
use network::RunNetwork;
use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::call;
use crate::engine::Runtime;
use crate::inspect::Capability;
use crate::limits::Limits;
use crate::link;
use crate::load::{Component, LoadError};
use crate::outcome::{Finished, Outcome};
use crate::scrub::Scrub;
use crate::state::{self, CallState, Given};
use crate::{Limit, LimitExceeded};

/// A component that offers tools, linked and ready. Cheap to clone.
#[derive(Clone)]
pub struct ToolComponent {
    runtime: Runtime,
    component: Component,
    pre: Arc<ToolPre<CallState>>,
}

/// What a tool does to the world. The default is the worst case: a guest that says nothing is not trusted with more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Effects {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy something.
    pub destructive: bool,
    /// May be repeated.
    pub idempotent: bool,
    /// Reaches beyond the workspace.
    pub open_world: bool,
}

impl Default for Effects {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

/// A tool as its component describes it: untrusted text.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ToolDescription {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: serde_json::Value,
    /// JSON Schema of the output, when it is JSON.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// What it does to the world.
    pub effects: Effects,
}

/// One call of a tool.
pub struct ToolCall<'a> {
    /// The tool.
    pub name: &'a str,
    /// Its arguments, as JSON text.
    pub arguments: &'a str,
    /// The run, or empty.
    pub run_id: &'a str,
    /// The step, or 0.
    pub step: u32,
    /// The same for every repetition of this call.
    pub idempotency_key: &'a str,
    /// The directory that is `/workspace`; none: the component has no files.
    pub workspace: Option<PathBuf>,
    /// The run's way out; none: every request is refused, and no credential is granted.
    pub network: Option<RunNetwork>,
    /// Variables of `wasi:cli/environment`.
    pub environment: Vec<(String, String)>,
    /// The limits.
    pub limits: Limits,
    /// Where log lines and progress go.
    pub notes: NoteSink,
    /// Ends the call early.
    pub cancel: CancellationToken,
}

/// A tool's own error (SPEC HOST-2): each case means one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// Policy forbids it.
    Denied(String),
    /// The thing named does not exist.
    Missing(String),
    /// The arguments are wrong.
    BadInput(String),
    /// The tool met a limit of its own.
    Limit(String),
    /// It was tried and failed.
    Failed {
        /// How.
        message: String,
        /// Trying again may work.
        retryable: bool,
    },
}

/// The most tools one component may offer.
const MOST_TOOLS: usize = 64;
/// The longest description of a tool that is read, in bytes.
const MOST_DESCRIPTION_BYTES: usize = 4 * 1024;
/// The longest parameter schema that is read, in bytes.
const MOST_SCHEMA_BYTES: usize = 32 * 1024;

impl ToolComponent {
    /// Links a loaded component.
    ///
    /// # Errors
    /// When it does not export `tools`, or imports what tools are not given.
    pub fn link(runtime: &Runtime, component: &Component) -> Result<Self, LoadError> {
        let inspection = component.inspection();
        if !inspection.exports_host_interface("tools") {
            return Err(LoadError::MissingExport { wanted: "motor:host/tools" });
        }
        let not_linked = |error: wasmtime::Error| LoadError::NotLinked { message: error.root_cause().to_string() };
        let mut capabilities = inspection.capabilities();
        // Interfaces of `wasi:cli`, `wasi:clocks` and `wasi:filesystem` hand out streams without importing them by name.
        capabilities.insert(Capability::Streams);
        let linker = link::linker(component.compiled.engine(), &capabilities).map_err(not_linked)?;
        let pre = linker.instantiate_pre(&component.compiled).and_then(ToolPre::new).map_err(not_linked)?;
        Ok(Self { runtime: runtime.clone(), component: component.clone(), pre: Arc::new(pre) })
    }

    /// The component behind it.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// Asks the component what it offers, and checks the answer: a model reads it.
    pub async fn describe(&self, limits: Limits) -> Finished<Vec<ToolDescription>, ToolError> {
        let given = Given::nothing(&limits);
        let cancel = CancellationToken::new();
        let finished = self.run(given, &limits, &cancel, async |guest, store| guest.call_list(store).await).await;
        let outcome = match finished.outcome {
            Outcome::Returned(tools) => match descriptions(tools) {
                Ok(tools) => Outcome::Returned(tools),
                Err(message) => Outcome::Refused(ToolError::Failed { message, retryable: false }),
            },
            other => other.map(|_| Vec::new()),
        };
        Finished::of(outcome, finished.usage)
    }

    /// Calls a tool in a fresh instance. What comes back holds no secret of the run, whatever the guest knew.
    pub async fn call(&self, call: ToolCall<'_>) -> Finished<String, ToolError> {
        let limits = call.limits;
        let scrub = Scrub::new(call.network.clone());
        let workspace = match state::open_workspace(call.workspace.as_deref(), Access::ReadWrite, &limits) {
            Ok(workspace) => workspace,
            Err(message) => return Finished::host_fault(message),
        };
        let given = Given {
            workspace,
            network: call.network,
            idempotency_key: Some(call.idempotency_key.to_owned()),
            environment: call.environment,
            notes: scrub.notes(call.notes),
            stdio: BoundedOutput::new(limits.stdio_bytes),
        };
        let context = types::CallContext {
            run_id: call.run_id.to_owned(),
            step: call.step,
            deadline_ms: limits.deadline_ms,
            idempotency_key: call.idempotency_key.to_owned(),
        };
        let (name, arguments) = (call.name.to_owned(), call.arguments.to_owned());
        let finished = self
            .run(given, &limits, &call.cancel, async |guest, store| {
                guest.call_call(store, &name, &arguments, &context).await
            })
            .await;
        scrub.finished(finished.map(|outcome| match outcome {
            Outcome::Returned(Ok(result)) if result.output.len() as u64 > limits.output_bytes => {
                Outcome::Exceeded(LimitExceeded { limit: Limit::OutputBytes, value: limits.output_bytes })
            }
            Outcome::Returned(Ok(result)) => Outcome::Returned(result.output),
            Outcome::Returned(Err(error)) => Outcome::Refused(error.into()),
            other => other.map(|_| String::new()),
        }))
    }

    async fn run<T>(
        &self,
        given: Given,
        limits: &Limits,
        cancel: &CancellationToken,
        ask: impl AsyncFnOnce(&wit::Guest, &mut wasmtime::Store<CallState>) -> wasmtime::Result<T>,
    ) -> Finished<T, ToolError> {
        let stdio = given.stdio.clone();
        let state = CallState::new(limits, given);
        let mut store = match state::store(self.component.compiled.engine(), state, limits) {
            Ok(store) => store,
            Err(error) => return Finished::host_fault(error.to_string()),
        };
        let (outcome, usage) = call::run(&self.runtime, &mut store, limits, cancel, async |store| {
            let instance = self.pre.instantiate_async(&mut *store).await?;
            ask(instance.motor_host_tools(), store).await
        })
        .await;
        let ended = state::end(store, usage).await;
        Finished {
            outcome,
            usage: ended.usage,
            stdio: stdio.text(),
            requests: ended.requests,
            last_refusal: ended.last_refusal,
        }
    }
}

impl From<types::ToolError> for ToolError {
    fn from(error: types::ToolError) -> Self {
        match error {
            types::ToolError::Denied(message) => Self::Denied(message),
            types::ToolError::Missing(message) => Self::Missing(message),
            types::ToolError::BadInput(message) => Self::BadInput(message),
            types::ToolError::Limit(message) => Self::Limit(message),
            types::ToolError::Failed(failure) => {
                Self::Failed { message: failure.message, retryable: failure.retryable }
            }
        }
    }
}

/// Checks what a component says of its tools. One bad description refuses the component: guessing which of its tools
/// to believe would be worse than none.
fn descriptions(tools: Vec<types::ToolDescription>) -> Result<Vec<ToolDescription>, String> {
    if tools.is_empty() || tools.len() > MOST_TOOLS {
        return Err(format!("the component offers {} tools; it may offer 1 to {MOST_TOOLS}", tools.len()));
    }
    let mut checked: Vec<ToolDescription> = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = tool.name;
        if !is_tool_name(&name) {
            let shown: String = name.chars().take(40).collect();
            return Err(format!("`{}` is not a tool name: use `[a-z][a-z0-9_-]*`, at most 64", shown.escape_debug()));
        }
        if checked.iter().any(|other| other.name == name) {
            return Err(format!("the component offers `{name}` twice"));
        }
        if tool.description.len() > MOST_DESCRIPTION_BYTES {
            return Err(format!("the description of `{name}` is longer than {MOST_DESCRIPTION_BYTES} bytes"));
        }
        let parameters = schema(&name, "parameters", &tool.parameters)?;
        let output = tool.output.map(|output| schema(&name, "output", &output)).transpose()?;
        let effects = tool.effects.map_or_else(Effects::default, |effects| Effects {
            read_only: effects.read_only,
            destructive: effects.destructive,
            idempotent: effects.idempotent,
            open_world: effects.open_world,
        });
        checked.push(ToolDescription { name, description: tool.description, parameters, output, effects });
    }
    Ok(checked)
}

fn schema(tool: &str, what: &str, text: &str) -> Result<serde_json::Value, String> {
    if text.len() > MOST_SCHEMA_BYTES {
        return Err(format!("the {what} schema of `{tool}` is longer than {MOST_SCHEMA_BYTES} bytes"));
    }
    match serde_json::from_str(text) {
        Ok(schema @ serde_json::Value::Object(_)) => Ok(schema),
        Ok(_) => Err(format!("the {what} schema of `{tool}` is not a JSON object")),
        Err(error) => Err(format!("the {what} schema of `{tool}` is not JSON: {error}")),
    }
}

fn is_tool_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    name.len() <= 64
        && bytes.next().is_some_and(|first| first.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: &str) -> types::ToolDescription {
        types::ToolDescription {
            name: name.into(),
            description: String::new(),
            parameters: parameters.into(),
            output: None,
            effects: None,
        }
    }

    #[test]
    fn a_tool_that_says_nothing_of_its_effects_is_not_trusted() {
        let tools = descriptions(vec![tool("x", "{}")]).unwrap();
        let effects = tools[0].effects;
        assert!(!effects.read_only && effects.destructive && !effects.idempotent && effects.open_world);
    }

    #[test]
    fn bad_descriptions_are_refused_with_the_reason() {
        for (tools, says) in [
            (vec![], "0 tools"),
            (vec![tool("x", "{}"), tool("x", "{}")], "twice"),
            (vec![tool("X", "{}")], "not a tool name"),
            (vec![tool("a\u{202e}b", "{}")], "\\u{202e}"),
            (vec![tool("x", "{")], "not JSON"),
            (vec![tool("x", "[]")], "not a JSON object"),
            (vec![tool("x", &format!("{{\"a\":\"{}\"}}", "b".repeat(MOST_SCHEMA_BYTES)))], "longer"),
        ] {
            let error = descriptions(tools).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
