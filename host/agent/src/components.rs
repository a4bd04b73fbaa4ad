//! Inspecting a component and calling it by hand, without a home (SPEC HOST-7, HOST-9).

mod function;
mod neuron;
mod reflector;

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use base::{ContentHash, CredentialName, Refusal, RefusalCode, Secret, excerpt};
use motor::Preparing;
use network::{Gate, NetworkConfig, Policy, RecordedSite, Recorder, RunNetwork, Taint};
use neurons::MAX_COMPONENT_BYTES;
use runtime::inspect::{Export, Import};
use runtime::{
    CallUsage, Component, ComponentOrigin, EngineConfig, Inspection, Kind, Limits, LoadError, NeuronComponent,
    NoteSink, Outcome, ReflectorComponent, Runtime, SkillAbout, ToolCall, ToolComponent, ToolDescription, ToolError,
    UnmappedFunction,
};
use schemars::JsonSchema;
use serde::Serialize;
use store::Links;
use tokio_util::sync::CancellationToken;
use toolbox::{Preparations, bundled_component, catalogue, load};
use vault::{GrantedCredential, RunSecrets};

use crate::config::Config;

/// The longest file of a recorded site, in bytes.
const MAX_SITE_BYTES: u64 = 16 << 20;

/// The kind, imports and exports of a component.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ComponentReport {
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// Number of its bytes.
    pub size_bytes: u64,
    /// Its world: `tool`, `skill`, `code`, `reflector` or `neuron` of this project, a `command`, or `functions` of another WIT.
    pub world: &'static str,
    /// The capabilities its imports give it. It has no others.
    pub capabilities: Vec<&'static str>,
    /// The capabilities it lacks: `network`, `files`, `credentials`, `clock`, `random numbers`.
    pub cannot: Vec<&'static str>,
    /// The interfaces it imports.
    pub imports: Vec<Import>,
    /// The interfaces it exports.
    pub exports: Vec<Export>,
    /// Its self-description, in the world `skill`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub about: Option<SkillAbout>,
    /// The tools it offers.
    pub tools: Vec<ToolDescription>,
    /// Its functions that are not tools, with the reasons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unmapped: Vec<UnmappedFunction>,
    /// Why its tools could not be listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools_error: Option<String>,
}

/// A tool call by hand.
pub struct CallRequest {
    /// Path of the component's file.
    pub path: PathBuf,
    /// Name of the tool.
    pub tool: String,
    /// Arguments of the tool as JSON.
    pub arguments: String,
    /// The directory mounted as `/workspace`. Default: a new temporary one.
    pub workspace: Option<PathBuf>,
    /// Domains that it may reach, as a run's `--domains`. No credentials are granted.
    pub domains: Vec<String>,
    /// The responses to its requests in place of those of real servers, if it is a test.
    pub recorded: Option<RecordedCall>,
    /// Receiver of log lines and progress.
    pub notes: NoteSink,
    /// Cancels the call when triggered.
    pub cancel: CancellationToken,
}

/// The web of a test: nothing leaves this machine, unless it is recorded.
#[derive(Debug, Clone)]
pub struct RecordedCall {
    /// File of the recorded site.
    pub site: PathBuf,
    /// Credentials that are granted for the call's domains, by name, with values for the test.
    pub credentials: BTreeMap<String, String>,
    /// Collects the responses of real servers to requests that the site lacks. Default none: those are refused.
    pub recorder: Option<Recorder>,
}

impl RecordedCall {
    fn site(&self) -> Result<RecordedSite, Refusal> {
        let site = RecordedSite::parse(&self.text()?).map_err(|error| {
            self.invalid(&error).with_remedy(
                "a site is `[{\"request\": {\"url\": …}, \"response\": {\"status\": 200, \"headers\": {…}, \"body\": …}}]`",
            )
        })?;
        Ok(match &self.recorder {
            None => site,
            Some(recorder) => site.recording(recorder.clone()),
        })
    }

    /// The text of the file. One that is about to be recorded may be missing.
    fn text(&self) -> Result<String, Refusal> {
        match read(&self.site, MAX_SITE_BYTES) {
            Err(missing) if missing.code == RefusalCode::NotFound && self.recorder.is_some() => Ok("[]".to_owned()),
            read => String::from_utf8(read?).map_err(|error| self.invalid(&error.to_string())),
        }
    }

    /// Adds the responses that were recorded to the file of the site. Returns their number.
    ///
    /// # Errors
    /// If a response cannot be recorded, or the file cannot be written.
    pub fn save(&self) -> Result<usize, Refusal> {
        let Some(recorder) = &self.recorder else { return Ok(0) };
        let Some((count, text)) = recorder.added_to(&self.text()?).map_err(|error| self.invalid(&error))? else {
            return Ok(0);
        };
        let parent = self.site.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&self.site, text)).map_err(|error| {
            Refusal::new(RefusalCode::StorageFailed, format!("cannot write `{}`: {error}", self.site.display()))
        })?;
        Ok(count)
    }

    fn invalid(&self, error: &str) -> Refusal {
        Refusal::new(RefusalCode::InvalidRequest, format!("`{}`: {error}", self.site.display()))
    }

    fn secrets(&self, domains: &[String]) -> Result<RunSecrets, Refusal> {
        let granted = self.credentials.iter().map(|(name, value)| {
            let name = CredentialName::parse(name).map_err(|error| {
                Refusal::new(RefusalCode::InvalidRequest, format!("the credential `{name}` of a test: {error}"))
            })?;
            let (value, domains) = (Secret::new(value.clone()), domains.to_vec());
            Ok(GrantedCredential { name, value, domains, raw: false })
        });
        Ok(RunSecrets::new(granted.collect::<Result<_, Refusal>>()?, Arc::default()))
    }
}

/// The result of a call by hand.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CallReply {
    /// Whether the tool succeeded.
    pub ok: bool,
    /// Its output, or the reason for the failure.
    pub output: String,
    /// `denied`, `missing`, `bad_input`, `limit`, `failed`, `trap`, `cancelled` or `host_fault`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'static str>,
    /// The exit status of a command component that ended by itself. Absent for other components, and if the host ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// Wall-clock time in milliseconds.
    pub duration_ms: f64,
    /// Units of work it used.
    pub fuel: u64,
    /// Peak memory use in bytes.
    pub peak_memory_bytes: u64,
    /// Number of calls into the host.
    pub host_calls: u64,
    /// Its standard output and standard error.
    pub stdio: String,
}

impl CallReply {
    fn new(outcome: Outcome<String, ToolError>, usage: CallUsage, exit_status: Option<i32>, stdio: String) -> Self {
        let (error, output) = say(outcome);
        Self {
            ok: error.is_none(),
            output,
            error,
            exit_status,
            duration_ms: millis(usage.duration),
            fuel: usage.fuel,
            peak_memory_bytes: usage.peak_memory_bytes,
            host_calls: usage.host_calls,
            stdio,
        }
    }
}

/// Whether a bundled component has this name.
#[must_use]
pub fn is_bundled(name: &str) -> bool {
    catalogue::components().any(|known| known == name)
}

/// Runs components outside any home.
pub struct Workbench {
    runtime: Runtime,
    limits: Limits,
    network: NetworkConfig,
    preparations: Preparations,
    keeps_code: bool,
}

impl Workbench {
    /// Makes an engine with the configured limits. `cache` keeps compiled code; `compile_worker` is as in
    /// [`runtime::EngineConfig`].
    ///
    /// # Errors
    /// If the engine does not start.
    pub fn new(config: &Config, cache: Option<PathBuf>, compile_worker: Option<PathBuf>) -> Result<Self, Refusal> {
        let keeps_code = cache.is_some();
        let runtime = engine(config, cache, compile_worker)?;
        let (limits, network) = (config.limits, config.network.clone());
        Ok(Self { runtime, limits, network, preparations: Preparations::default(), keeps_code })
    }

    /// Whether compiled components are kept, so that each is compiled only once.
    #[must_use]
    pub fn keeps_code(&self) -> bool {
        self.keeps_code
    }

    /// The component being compiled, if that takes long.
    #[must_use]
    pub fn preparations(&self) -> &Preparations {
        &self.preparations
    }

    /// Inspects a file; if it offers tools, it lists them itself, in the sandbox.
    ///
    /// # Errors
    /// If the file cannot be read or is not a usable component.
    pub async fn inspect_file(&self, path: &Path) -> Result<ComponentReport, Refusal> {
        let bytes = read(path, self.most_bytes())?;
        let inspection = self.inspect(path, &bytes, ComponentOrigin::Untrusted).await?;
        let loading = self.load(path, Component::load(&self.runtime, &bytes, ComponentOrigin::Untrusted));
        Ok(self.report(&inspection, loading).await)
    }

    /// Inspects a bundled component by the name in [`bundled::components`].
    ///
    /// # Errors
    /// If the program was built without a component of that name.
    pub async fn inspect_bundled(&self, name: &str) -> Result<ComponentReport, Refusal> {
        let component = bundled_component(name).await?;
        let inspection = self.inspect(Path::new(name), &component.bytes, ComponentOrigin::Bundled).await?;
        let loading = self.load(Path::new(name), load(&self.runtime, component));
        Ok(self.report(&inspection, loading).await)
    }

    /// Calls one tool, or one function of a reflector or a neuron, under the real limits.
    ///
    /// # Errors
    /// If the component cannot be used. Failures of the tool are part of the reply.
    pub async fn call(&self, request: CallRequest) -> Result<CallReply, Refusal> {
        let bytes = read(&request.path, self.most_bytes())?;
        let refuse = |error: LoadError| invalid(&request.path, &error);
        let loading = Component::load(&self.runtime, &bytes, ComponentOrigin::Untrusted);
        let component = self.load(&request.path, loading).await.map_err(refuse)?;
        let kind = component.inspection().kind;
        if matches!(kind, Kind::Reflector | Kind::Neuron) {
            let CallRequest { tool, arguments, notes, cancel, .. } = request;
            let function = (tool.as_str(), arguments.as_str());
            let called = match kind {
                Kind::Neuron => neuron::call(&self.runtime, &component, function, cancel).await,
                _ => reflector::call(&self.runtime, &component, function, notes, cancel).await,
            };
            let (outcome, usage) = called.map_err(|error| invalid(&request.path, &error))?;
            return Ok(CallReply::new(outcome, usage, None, String::new()));
        }
        let component = ToolComponent::link(&self.runtime, &component).map_err(refuse)?;
        let fresh;
        let workspace = match request.workspace {
            Some(directory) => directory,
            None => {
                fresh = tempfile::tempdir().map_err(|error| {
                    Refusal::new(RefusalCode::StorageFailed, format!("no temporary directory: {error}"))
                })?;
                fresh.path().to_owned()
            }
        };
        let network = self.access(&request.domains, request.recorded.as_ref())?;
        let finished = component
            .call(ToolCall {
                name: &request.tool,
                arguments: &request.arguments,
                run_id: "",
                step: 0,
                idempotency_key: "",
                workspace: Some(workspace.into()),
                network,
                scripts: None,
                environment: Vec::new(),
                seeded: None,
                limits: self.limits,
                notes: request.notes,
                cancel: request.cancel,
            })
            .await;
        Ok(CallReply::new(finished.outcome, finished.usage, finished.exit_status, finished.stdio))
    }

    /// Checks that a file is a reflector that a cycle can use: its imports, its exports, and their types.
    ///
    /// # Errors
    /// If it is not; the reason names the fault.
    pub async fn check_reflector(&self, path: &Path) -> Result<(), Refusal> {
        let bytes = read(path, self.most_bytes())?;
        let link = |component: &Component| ReflectorComponent::link(&self.runtime, component).map(drop);
        self.check(path, &bytes, ReflectorComponent::check, link).await
    }

    /// Checks that a file is a neuron that a home takes: its size, its imports, its exports, and their types.
    ///
    /// # Errors
    /// If it is not; the reason names the fault.
    pub async fn check_neuron(&self, path: &Path) -> Result<(), Refusal> {
        let bytes = read(path, MAX_COMPONENT_BYTES)?;
        if u64::try_from(bytes.len()).unwrap_or(u64::MAX) > MAX_COMPONENT_BYTES {
            let reason =
                format!("`{}`: the component of a neuron has at most {MAX_COMPONENT_BYTES} bytes", path.display());
            return Err(Refusal::new(RefusalCode::InvalidComponent, reason));
        }
        let link = |component: &Component| NeuronComponent::link(&self.runtime, component).map(drop);
        self.check(path, &bytes, NeuronComponent::check, link).await
    }

    async fn check(
        &self,
        path: &Path,
        bytes: &[u8],
        check: impl FnOnce(&Inspection) -> Result<(), LoadError>,
        link: impl FnOnce(&Component) -> Result<(), LoadError>,
    ) -> Result<(), Refusal> {
        let inspection = self.inspect(path, bytes, ComponentOrigin::Untrusted).await?;
        let refuse = |error: LoadError| invalid(path, &error);
        // Before it is compiled, which takes longer.
        check(&inspection).map_err(refuse)?;
        let loading = Component::load(&self.runtime, bytes, ComponentOrigin::Untrusted);
        let component = self.load(path, loading).await.map_err(refuse)?;
        link(&component).map_err(refuse)
    }

    /// The network access of a call: these domains through the gate, and nothing without domains. A write after reading
    /// needs an owner who is asked, so it is refused.
    fn access(&self, domains: &[String], recorded: Option<&RecordedCall>) -> Result<Option<RunNetwork>, Refusal> {
        if domains.is_empty() {
            return Ok(None);
        }
        let policy = Policy {
            domains: grants::patterns(domains)?,
            writes: self.network.write_shapes()?,
            tainted_write: self.network.tainted_write,
            ..Policy::default()
        };
        let (gate, secrets) = match recorded {
            None => (Gate::new(&self.network)?, RunSecrets::default()),
            Some(recorded) => (Gate::recorded(&self.network, recorded.site()?)?, recorded.secrets(domains)?),
        };
        Ok(Some(gate.run(policy, Arc::new(secrets), Taint::default())))
    }

    fn most_bytes(&self) -> u64 {
        self.runtime.most_component_bytes()
    }

    async fn inspect(&self, path: &Path, bytes: &[u8], origin: ComponentOrigin) -> Result<Arc<Inspection>, Refusal> {
        self.runtime.inspect(bytes, origin).await.map_err(|error| invalid(path, &error))
    }

    /// Loads the component under that path. The first load compiles it.
    async fn load<T>(&self, path: &Path, loading: impl Future<Output = T>) -> T {
        let component = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned();
        self.preparations.of(Preparing { component, number: 1, of: 1 }, loading).await
    }

    /// Awaits `loading` only if the component itself has to list its tools.
    async fn report(
        &self,
        inspection: &Inspection,
        loading: impl Future<Output = Result<Component, LoadError>>,
    ) -> ComponentReport {
        let (mut tools, mut about, mut tools_error) = (Vec::new(), None, None);
        match inspection.kind {
            // Information in the types does not require running the component.
            Kind::Command | Kind::Functions if !inspection.exports_host_interface("about") => {
                tools = inspection.functions.iter().map(|function| function.tool.clone()).collect();
            }
            Kind::Code | Kind::Reflector | Kind::Neuron => (),
            _ => match self.ask(loading).await {
                Ok(said) => (tools, about) = said,
                Err(error) => tools_error = Some(excerpt(error)),
            },
        }
        ComponentReport {
            hash: inspection.hash,
            size_bytes: inspection.size_bytes,
            world: inspection.kind.as_str(),
            capabilities: inspection.abilities().map(runtime::inspect::Capability::describe).collect(),
            cannot: inspection.cannot(),
            imports: inspection.imports.clone(),
            exports: inspection.exports.clone(),
            about,
            tools,
            unmapped: inspection.unmapped.clone(),
            tools_error,
        }
    }

    /// Asks a component for its tools and its self-description.
    async fn ask(
        &self,
        loading: impl Future<Output = Result<Component, LoadError>>,
    ) -> Result<(Vec<ToolDescription>, Option<SkillAbout>), String> {
        let component = loading.await.map_err(|error| error.to_string())?;
        let component = ToolComponent::link(&self.runtime, &component).map_err(|error| error.to_string())?;
        let about = match component.about(self.limits).await.outcome {
            Outcome::Returned(about) => about,
            other => return Err(say(other.map(|_| String::new())).1),
        };
        match component.describe(self.limits).await.outcome {
            Outcome::Returned(tools) => Ok((tools, about)),
            other => Err(say(other.map(|_| String::new())).1),
        }
    }
}

fn say(outcome: Outcome<String, ToolError>) -> (Option<&'static str>, String) {
    match outcome {
        Outcome::Returned(output) => (None, output),
        Outcome::Refused(ToolError::Denied(message)) => (Some("denied"), message),
        Outcome::Refused(ToolError::Missing(message)) => (Some("missing"), message),
        Outcome::Refused(ToolError::BadInput(message)) => (Some("bad_input"), message),
        Outcome::Refused(ToolError::Limit(message)) => (Some("limit"), message),
        Outcome::Refused(ToolError::Failed { message, .. }) => (Some("failed"), message),
        Outcome::Exceeded(exceeded) => (Some("limit"), exceeded.to_string()),
        Outcome::Trapped(trap) => {
            let remedy = if trap.is_panic { "; return an error of the tool in place of a panic" } else { "" };
            (Some("trap"), format!("the guest trapped: {}{remedy}", trap.message))
        }
        Outcome::Cancelled => (Some("cancelled"), "the call was cancelled".to_owned()),
        Outcome::HostFault(message) => (Some("host_fault"), message),
    }
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1_000.0
}

/// Makes an engine with the configured limits.
///
/// # Errors
/// If the engine does not start.
pub(crate) fn engine(
    config: &Config,
    cache: Option<PathBuf>,
    compile_worker: Option<PathBuf>,
) -> Result<Runtime, Refusal> {
    let memory_bytes = config.limits.memory_bytes;
    Runtime::new(EngineConfig { memory_bytes, cache, compile_worker, ..config.engine.clone() }).map_err(|error| {
        Refusal::new(RefusalCode::Failed, format!("the component engine does not start: {}", error.root_cause()))
    })
}

/// Reads at most one byte more than is allowed: enough to detect an excess.
fn read(path: &Path, most_bytes: u64) -> Result<Vec<u8>, Refusal> {
    let fail = |error: std::io::Error| {
        let code =
            if error.kind() == std::io::ErrorKind::NotFound { RefusalCode::NotFound } else { RefusalCode::Failed };
        Refusal::new(code, format!("cannot read `{}`: {error}", path.display()))
    };
    let mut bytes = Vec::new();
    let file = store::open_regular(path, Links::Followed).map_err(fail)?;
    file.take(most_bytes.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    Ok(bytes)
}

fn invalid(path: &Path, error: &LoadError) -> Refusal {
    Refusal::new(RefusalCode::InvalidComponent, format!("`{}`: {error}", path.display()))
}
