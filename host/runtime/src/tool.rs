//! Components as toolboxes: describing their tools and calling them (SPEC HOST-2, HOST-3).
//!
//! Four kinds share one interface: our worlds `tool` and `skill`, `wasi:cli/run` commands, and functions of any other
//! WIT. Each call of any kind runs in a fresh instance under the same limits, scrubbed of the same secrets.

pub(crate) mod command;
mod effects;
mod functions;
mod work;
mod world;

use std::sync::Arc;

use bindings::skill::exports::motor::host::about;
use bindings::tool::ToolPre;
use bindings::types;
use capabilities::NoteSink;
use capabilities::stdio::BoundedOutput;
use capabilities::workspace::{Access, Workspace};
use network::RunNetwork;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use wasmtime::Store;
use wasmtime::component::{InstancePre, Val};
use wasmtime_wasi::I32Exit;

pub use effects::Effects;

use crate::call;
use crate::code::script::{ScriptEngine, Scripts};
use crate::engine::Runtime;
use crate::inspect::{Capability, FunctionTool, Kind, Shape, Signature};
use crate::limits::Limits;
use crate::link;
use crate::load::Component;
use crate::load_error::{LoadError, told};
use crate::outcome::{CallReport, CallUsage, Outcome, ToolError};
use crate::scrub::Scrub;
use crate::state::{self, CallInputs, CallState, CommandLine, Seeded};
use crate::wit_json::read;
use crate::{Limit, LimitExceeded};

/// A component that offers tools, linked and ready. Cheap to clone.
#[derive(Clone)]
pub struct ToolComponent {
    runtime: Runtime,
    component: Component,
    pre: InstancePre<CallState>,
    /// The exports of our worlds; if `None`, the functions of the component are the tools.
    world: Option<Arc<ToolPre<CallState>>>,
}

/// A tool as its component describes it: untrusted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolDescription {
    /// Name of the tool, as a model calls it.
    pub name: String,
    /// Purpose of the tool, for a model.
    pub description: String,
    /// JSON Schema of the arguments.
    pub parameters: serde_json::Value,
    /// JSON Schema of the output, if the output is JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<serde_json::Value>,
    /// Effects that a call may have.
    pub effects: Effects,
}

/// One call of a tool.
pub struct ToolCall<'a> {
    /// Name of the tool to call.
    pub name: &'a str,
    /// The arguments, as JSON text.
    pub arguments: &'a str,
    /// Id of the run, or empty.
    pub run_id: &'a str,
    /// Number of the run's step, or 0.
    pub step: u32,
    /// The same for every repetition of this call.
    pub idempotency_key: &'a str,
    /// The files behind `/workspace`; if `None`, the component has no files.
    pub workspace: Option<Workspace>,
    /// The run's network access; if `None`, every request is refused, and no credential is granted.
    pub network: Option<RunNetwork>,
    /// The engine of scripts that the tool hands to the host; if `None`, there is none.
    pub scripts: Option<ScriptEngine>,
    /// Variables of `wasi:cli/environment`.
    pub environment: Vec<(String, String)>,
    /// The random numbers and the clock of the call; `None`: the system's.
    pub seeded: Option<Seeded>,
    /// The limits of this call.
    pub limits: Limits,
    /// Sink for log lines and progress.
    pub notes: NoteSink,
    /// Ends the call early when cancelled.
    pub cancel: CancellationToken,
}

/// Maximum number of tools of one component.
pub(crate) const MAX_TOOLS: usize = 64;
/// The longest schema that is read, in bytes.
pub(crate) const MAX_SCHEMA_BYTES: usize = 32 * 1024;

/// A component's description of itself (world `skill`): untrusted text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SkillAbout {
    /// The name it asks for; not checked to be a valid name.
    pub name: String,
    /// Its purpose and when to use it.
    pub description: String,
    /// Instructions for its use, in Markdown.
    pub instructions: String,
}

impl ToolComponent {
    /// Links a loaded component of any kind that offers tools: our worlds `tool` and `skill`, a `wasi:cli/run` command,
    /// or functions of any other WIT.
    ///
    /// # Errors
    /// If it offers no tool, or imports an interface that tools are not granted.
    pub fn link(runtime: &Runtime, component: &Component) -> Result<Self, LoadError> {
        let inspection = component.inspection();
        match inspection.kind {
            Kind::Code | Kind::Reflector | Kind::Neuron => {
                return Err(LoadError::MissingExport { wanted: "motor:host/tools".into() });
            }
            Kind::Command | Kind::Functions if inspection.functions.is_empty() => {
                let first = inspection.unmapped.first();
                let why = first.map_or("it exports no function".to_owned(), |function| {
                    format!("`{}` {}", function.export.chars().take(100).collect::<String>(), function.why)
                });
                return Err(LoadError::NoTools { why });
            }
            _ => (),
        }
        let not_linked = |error: wasmtime::Error| inspection.not_linked(&error);
        let mut capabilities = inspection.capabilities();
        // Interfaces of `wasi:cli`, `wasi:clocks` and `wasi:filesystem` hand out streams without importing them by
        // name.
        capabilities.insert(Capability::Streams);
        let mut linker = link::linker(component.compiled.engine(), &capabilities).map_err(not_linked)?;
        link::refuse_unused(&mut linker, component).map_err(not_linked)?;
        let pre = linker.instantiate_pre(&component.compiled).map_err(not_linked)?;
        let world = match inspection.kind {
            Kind::Tool | Kind::Skill => {
                let made = ToolPre::new(pre.clone())
                    .map_err(|error| LoadError::NotExported { message: told(&error.root_cause().to_string()) });
                Some(Arc::new(made?))
            }
            _ => None,
        };
        Ok(Self { runtime: runtime.clone(), component: component.clone(), pre, world })
    }

    /// The component that offers the tools.
    #[must_use]
    pub fn component(&self) -> &Component {
        &self.component
    }

    /// The tools of the component. A component of our worlds is run, and its answer checked because a model reads it.
    /// For others the inspection has the tools, and nothing runs.
    pub async fn describe(&self, limits: Limits) -> CallReport<Vec<ToolDescription>, ToolError> {
        let inspection = self.component.inspection();
        let Some(world) = &self.world else {
            let tools = inspection.functions.iter().map(|function| function.tool.clone()).collect();
            return CallReport::of(Outcome::Returned(tools), CallUsage::default());
        };
        let asked = self.ask(&limits, async |store| {
            let guest = world.instantiate_async(&mut *store).await?;
            guest.motor_host_tools().call_list(store).await
        });
        let capabilities = inspection.capabilities();
        checked(asked.await, |tools| world::descriptions(tools, &capabilities))
    }

    /// The component's description of itself; `None` if it does not export `motor:host/about`.
    pub async fn about(&self, limits: Limits) -> CallReport<Option<SkillAbout>, ToolError> {
        let Some(export) = self.component.inspection().host_export("about") else {
            return CallReport::of(Outcome::Returned(None), CallUsage::default());
        };
        let asked = self.ask(&limits, async |store| {
            let instance = self.pre.instantiate_async(&mut *store).await?;
            let interface = instance.get_export_index(&mut *store, None, export);
            let function = interface
                .and_then(|interface| instance.get_export_index(&mut *store, Some(&interface), "describe"))
                .ok_or_else(|| wasmtime::Error::msg(format!("`{export}` has no `describe`")))?;
            let describe = instance.get_typed_func::<(), (about::Description,)>(&mut *store, function)?;
            Ok(describe.call_async(&mut *store, ()).await?.0)
        });
        checked(asked.await, |description| world::about(description).map(Some))
    }

    /// Calls a tool in a fresh instance. The output holds no secret of the run, even if the guest knew one.
    pub async fn call(&self, call: ToolCall<'_>) -> CallReport<String, ToolError> {
        let scrub = Scrub::new(call.network.clone());
        scrub.finished(match &self.world {
            Some(world) => self.call_world(world.clone(), call, &scrub).await,
            None => self.call_function(call, &scrub).await,
        })
    }

    async fn call_world(
        &self,
        world: Arc<ToolPre<CallState>>,
        call: ToolCall<'_>,
        scrub: &Scrub,
    ) -> CallReport<String, ToolError> {
        let limits = call.limits;
        let context = types::CallContext {
            run_id: call.run_id.to_owned(),
            step: call.step,
            deadline_ms: limits.deadline_ms,
            idempotency_key: call.idempotency_key.to_owned(),
        };
        let (name, arguments, cancel) = (call.name.to_owned(), call.arguments.to_owned(), call.cancel.clone());
        let given = match given(call, None, scrub) {
            Ok(given) => given,
            Err(message) => return CallReport::host_fault(message),
        };
        let finished = self.run(given, &limits, &cancel, async move |store| {
            let guest = world.instantiate_async(&mut *store).await?;
            guest.motor_host_tools().call_call(store, &name, &arguments, &context).await
        });
        finished.await.map(|outcome| match outcome {
            Outcome::Returned(Ok(result)) if result.output.len() as u64 > limits.output_bytes => {
                Outcome::Exceeded(LimitExceeded { limit: Limit::OutputBytes, value: limits.output_bytes })
            }
            Outcome::Returned(Ok(result)) => Outcome::Returned(result.output),
            Outcome::Returned(Err(error)) => Outcome::Refused(error.into()),
            other => other.map(|_| String::new()),
        })
    }

    async fn call_function(&self, call: ToolCall<'_>, scrub: &Scrub) -> CallReport<String, ToolError> {
        let functions = &self.component.inspection().functions;
        let Some(tool) = functions.iter().find(|function| function.tool.name == call.name) else {
            let names: Vec<_> = functions.iter().map(|function| format!("`{}`", function.tool.name)).collect();
            let message = format!("this component has no such tool; it has {}", names.join(", "));
            return CallReport::of(Outcome::Refused(ToolError::Missing(message)), CallUsage::default());
        };
        let bad = |message| CallReport::of(Outcome::Refused(ToolError::BadInput(message)), CallUsage::default());
        match &tool.shape {
            Shape::Function(signature) => match read::from_text(&signature.parameters, call.arguments) {
                Ok(arguments) => self.run_function(call, tool, signature, &arguments, scrub).await,
                Err(message) => bad(message),
            },
            Shape::Command => match command::command_line(call.name, call.arguments, &call.limits) {
                Ok(line) => self.run_command(call, tool, line, scrub).await,
                Err(message) => bad(message),
            },
        }
    }

    async fn run_function(
        &self,
        call: ToolCall<'_>,
        tool: &FunctionTool,
        signature: &Signature,
        arguments: &[Val],
        scrub: &Scrub,
    ) -> CallReport<String, ToolError> {
        let (limits, cancel) = (call.limits, call.cancel.clone());
        let given = match given(call, None, scrub) {
            Ok(given) => given,
            Err(message) => return CallReport::host_fault(message),
        };
        let results = usize::from(signature.result.is_some());
        let (pre, tool, arguments) = (self.pre.clone(), tool.clone(), arguments.to_vec());
        let finished = self.run(given, &limits, &cancel, async move |store| {
            functions::call(&pre, &tool, &arguments, results, store).await
        });
        finished.await.map(|outcome| match outcome {
            Outcome::Returned(value) => functions::settle(signature, value, limits.output_bytes),
            other => other.map(|_| String::new()),
        })
    }

    async fn run_command(
        &self,
        call: ToolCall<'_>,
        tool: &FunctionTool,
        line: CommandLine,
        scrub: &Scrub,
    ) -> CallReport<String, ToolError> {
        let (limits, cancel, stdout) = (call.limits, call.cancel.clone(), line.stdout.clone());
        let given = match given(call, Some(line), scrub) {
            Ok(given) => given,
            Err(message) => return CallReport::host_fault(message),
        };
        let (pre, tool) = (self.pre.clone(), tool.clone());
        let finished = self.run(given, &limits, &cancel, async move |store| {
            match functions::call(&pre, &tool, &[], 1, store).await {
                Ok(Some(Val::Result(Err(_)))) => Ok(1),
                Ok(_) => Ok(0),
                Err(error) => error.downcast_ref::<I32Exit>().map(|exit| exit.0).ok_or(error),
            }
        });
        let finished = finished.await;
        let stderr = finished.stdio.clone();
        let exit_status = match &finished.outcome {
            Outcome::Returned(status) => Some(*status),
            _ => None,
        };
        let report = finished.map(|outcome| match outcome {
            Outcome::Returned(status) => command::settle(status, &stdout.text(), &stderr),
            other => other.map(|_| String::new()),
        });
        CallReport { exit_status, ..report }
    }

    /// Queries the component about itself, without granting it anything.
    async fn ask<T>(
        &self,
        limits: &Limits,
        ask: impl AsyncFnOnce(&mut Store<CallState>) -> wasmtime::Result<T>,
    ) -> CallReport<T, ToolError> {
        let given = CallInputs::nothing(limits);
        let stdio = given.stdio.clone();
        match self.store(given, limits) {
            Ok(mut store) => {
                let never = CancellationToken::new();
                let (outcome, usage) = call::run(&self.runtime, &mut store, limits, &never, ask).await;
                settled(store, outcome, usage, &stdio).await
            }
            Err(error) => CallReport::host_fault(error.to_string()),
        }
    }

    async fn run<T: Send + 'static>(
        &self,
        given: CallInputs,
        limits: &Limits,
        cancel: &CancellationToken,
        work: impl AsyncFnOnce(&mut Store<CallState>) -> wasmtime::Result<T> + Send + 'static,
    ) -> CallReport<T, ToolError> {
        let (stdio, has_files) = (given.stdio.clone(), given.workspace.is_open());
        let mut store = match self.store(given, limits) {
            Ok(store) => store,
            Err(error) => return CallReport::host_fault(error.to_string()),
        };
        if has_files {
            let settle = async move |store, outcome, usage| settled(store, outcome, usage, &stdio).await;
            let ended =
                call::run_apart(&self.runtime, self.runtime.places(), store, limits, cancel, work, settle).await;
            return ended.unwrap_or_else(|outcome| CallReport::of(outcome, CallUsage::default()));
        }
        let (outcome, usage) = call::run(&self.runtime, &mut store, limits, cancel, work).await;
        settled(store, outcome, usage, &stdio).await
    }

    fn store(&self, given: CallInputs, limits: &Limits) -> wasmtime::Result<Store<CallState>> {
        state::store(self.component.compiled.engine(), CallState::new(limits, given), limits)
    }
}

async fn settled<T>(
    store: Store<CallState>,
    outcome: Outcome<T, ToolError>,
    usage: CallUsage,
    stdio: &BoundedOutput,
) -> CallReport<T, ToolError> {
    let ended = state::end(store, usage).await;
    CallReport {
        outcome,
        usage: ended.usage,
        exit_status: None,
        stdio: stdio.text(),
        requests: ended.requests,
        last_refusal: ended.last_refusal,
        withheld: Vec::new(),
    }
}

/// The inputs and resources of a call.
fn given(call: ToolCall<'_>, command: Option<CommandLine>, scrub: &Scrub) -> Result<CallInputs, String> {
    let workspace = state::open_workspace(call.workspace.as_ref(), Access::ReadWrite, &call.limits)?;
    let notes = scrub.notes(call.notes);
    let scripts = call.scripts.zip(call.workspace).map(|(engine, workspace)| {
        let has_domains = call.network.as_ref().is_some_and(|network| !network.policy().domains.is_empty());
        Scripts::new(engine, workspace, has_domains, call.limits, notes.clone(), call.cancel)
    });
    Ok(CallInputs {
        workspace,
        network: call.network,
        egress: None,
        scripts,
        idempotency_key: Some(call.idempotency_key.to_owned()),
        environment: call.environment,
        seeded: call.seeded,
        notes,
        stdio: BoundedOutput::new(call.limits.stdio_bytes),
        command,
    })
}

/// Accepts a component's description of itself if it passes a check.
fn checked<T, U>(
    finished: CallReport<T, ToolError>,
    check: impl FnOnce(T) -> Result<U, String>,
) -> CallReport<U, ToolError> {
    let outcome = match finished.outcome {
        Outcome::Returned(said) => match check(said) {
            Ok(checked) => Outcome::Returned(checked),
            Err(message) => Outcome::Refused(ToolError::Failed { message, retryable: false }),
        },
        Outcome::Refused(error) => Outcome::Refused(error),
        Outcome::Exceeded(exceeded) => Outcome::Exceeded(exceeded),
        Outcome::Trapped(trap) => Outcome::Trapped(trap),
        Outcome::Cancelled => Outcome::Cancelled,
        Outcome::HostFault(message) => Outcome::HostFault(message),
    };
    CallReport::of(outcome, finished.usage)
}
