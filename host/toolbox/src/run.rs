//! The tools of one run: the `Toolbox` port of `motor` over sandboxed components, one workspace, and one network
//! access.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::text::Foreign;
use base::{ContentHash, CredentialName, Refusal};
use layer::Layer;
use motor::{CallReview, PlannedCall, RunRules, ToolDefinition, ToolInvocation, ToolNote, ToolReply, Toolbox};
use network::{Pattern, RunNetwork};
use runtime::{Language, Limits, Note, NoteSink, ScriptEngine, ScriptSandbox, Seeded, ToolCall, Workspace};
use serde_json::Value;

use crate::catalogue::{self, BundledTool, CODE, FileUse};
use crate::output::{self, FittedOutput, Room, Save};
use crate::save::{SAVE_CREDENTIAL, SavedCredentials};
use crate::{
    CodeConfig, CodeGrants, CompileTurn, SandboxPool, SkillTool, ToolsConfig, Toolset, briefing, code, define, reply,
};

/// The variable that narrows the shell of a call to some of its commands (SPEC TOOL-2).
const COMMANDS: &str = "MOTOR_COMMANDS";

/// The clock of a run with a seed before its first step, in milliseconds since the epoch: the beginning of 2026.
const SEEDED_EPOCH_MS: u64 = 1_767_225_600_000;
/// Milliseconds that this clock moves on with each step.
const SEEDED_STEP_MS: u64 = 1_000;

/// The dependencies of a toolbox.
pub struct ToolboxParts {
    /// The components of the bundled tools, loaded.
    pub sandboxes: Arc<SandboxPool>,
    /// The limits of each call.
    pub limits: Limits,
    /// Configuration of the `code` tool.
    pub code: CodeConfig,
    /// The rules of the run, for long outputs and for the time of programs.
    pub rules: RunRules,
    /// Timeout of each tool that has one of its own.
    pub tools: ToolsConfig,
    /// Whether programs are checked before they run (SPEC CODE-4).
    pub guard: bool,
    /// The seed of the run, if its calls are to give the same each time (SPEC SIM-1).
    pub seed: Option<u32>,
    /// The run's workspace on the host.
    pub workspace: PathBuf,
    /// The layer over the directories of the owner that the run works on; its changes are in the workspace.
    pub layer: Option<Arc<Layer>>,
    /// The user's landings of the changes so far, a clause each.
    pub landed: Vec<String>,
    /// The run's network access: for tools that reach the network, and for scrubbing secrets out of any tool's output.
    pub network: RunNetwork,
    /// Hosts that the owner allowed for longer than this run: reading from them needs no further consent.
    pub allowed: Vec<Pattern>,
    /// The commands that the shell is narrowed to; `None`: all.
    pub commands: Option<Vec<String>>,
    /// The tools of its skill, by the names that the model calls them by.
    pub own: BTreeMap<String, SkillTool>,
    /// The section of the prompt about its skill.
    pub skill: Option<String>,
    /// The credentials that it may hand over.
    pub saved: Option<SavedCredentials>,
}

impl ToolboxParts {
    /// The random numbers and the clock of a call in a run with a seed. They depend on the run's own words alone: ids and keys
    /// of runs differ, so that a server tells the writes of two runs with one seed apart.
    pub(crate) fn seeded(&self, call: &ToolInvocation<'_>) -> Option<Seeded> {
        let words = format!("{}/{}/{}/{}", self.seed?, call.step, call.name, call.arguments);
        Some(Seeded { seed: code::seed_of(&words), now_ms: SEEDED_EPOCH_MS + u64::from(call.step) * SEEDED_STEP_MS })
    }

    /// The files that a call sees.
    pub(crate) fn files(&self, call: &ToolInvocation<'_>) -> Workspace {
        match &self.layer {
            Some(layer) => Workspace::Layered {
                call: layer.call(call.idempotency_key, call.step),
                layer: layer.clone(),
                directory: self.workspace.clone(),
            },
            None => self.workspace.clone().into(),
        }
    }
}

/// The tools granted to one run.
pub struct RunToolbox {
    pub(crate) parts: ToolboxParts,
    tools: Vec<ToolDefinition>,
    /// The access of programs of the `code` tool.
    pub(crate) around: CodeGrants,
}

impl RunToolbox {
    /// Offers exactly the tools in `granted`.
    ///
    /// # Errors
    /// If a tool is missing, or its component cannot be used.
    pub async fn new(parts: ToolboxParts, granted: &[String]) -> Result<Self, Refusal> {
        let around = CodeGrants::of(granted, &parts.network);
        let mut tools =
            define::define(&parts.sandboxes, &parts.tools, &parts.limits, around, granted, &parts.own).await?;
        // No tool of a skill has the name of a bundled one.
        tools.iter_mut().filter(|tool| tool.spec.name == CODE).for_each(|tool| define::bound_code(tool, &parts.rules));
        Ok(Self { parts, tools, around })
    }

    async fn run_bundled(&self, tool: &BundledTool, call: &ToolInvocation<'_>) -> ToolReply {
        let narrowed = self.parts.commands.as_ref().filter(|_| tool.commands);
        let environment = narrowed.map(|commands| (COMMANDS.to_owned(), commands.join(",")));
        match self.parts.sandboxes.tools(tool.component, CompileTurn::ONLY).await {
            Ok(toolset) => {
                let scripts = tool.commands.then(|| self.scripts(call)).flatten();
                self.run_tool(toolset, call.name, environment.into_iter().collect(), scripts, call).await
            }
            Err(refusal) => reply::host_failed(refusal.reason),
        }
    }

    /// The engine for the scripts of a call of the shell, if this host has it (SPEC CODE-9).
    fn scripts(&self, call: &ToolInvocation<'_>) -> Option<ScriptEngine> {
        self.parts.sandboxes.python(true)?;
        let pool = self.parts.sandboxes.clone();
        let (seed, now_ms) = match self.parts.seeded(call) {
            Some(Seeded { seed, now_ms }) => (seed, now_ms),
            None => (code::seed_of(call.idempotency_key), call.began.as_millis()),
        };
        Some(ScriptEngine::new(seed, now_ms, move || {
            let pool = pool.clone();
            async move {
                let loaded = pool.code(Language::Python, true, CompileTurn::ONLY).await;
                let sandbox = loaded.map_err(|refusal| match refusal.remedy {
                    Some(remedy) => format!("{}: {remedy}", refusal.reason),
                    None => refusal.reason,
                })?;
                let sandbox = sandbox.clone();
                let component = sandbox.component().hash();
                Ok(ScriptSandbox { sandbox, component })
            }
        }))
    }

    /// Makes the changes of a call in the layer durable before its result counts, and names the files that it could not
    /// read because the owner changed them (SPEC LAND-1).
    async fn settle(&self, reply: &mut ToolReply) {
        let Some(layer) = self.parts.layer.clone() else { return };
        let noticed = layer.newly_noticed();
        let synced = tokio::task::spawn_blocking(move || layer.sync()).await;
        if !matches!(synced, Ok(Ok(()))) {
            tracing::warn!(?synced, "cannot make the files of a run durable");
            *reply = reply::host_failed("the files of the run could not be made durable".to_owned());
        }
        if !noticed.is_empty() {
            let names: Vec<_> = noticed.iter().map(|path| format!("`{}`", Foreign(path).escaped(200))).collect();
            let are = if names.len() == 1 { "it" } else { "them" };
            let text = format!(
                "\nbusy: the user changed {} after this run began; this run cannot read or write {are}",
                names.join(", ")
            );
            reply.result.output.push_str(&text);
        }
    }

    /// Calls the tool that its component knows as `name`.
    async fn run_tool(
        &self,
        toolset: &Toolset,
        name: &str,
        environment: Vec<(String, String)>,
        scripts: Option<ScriptEngine>,
        call: &ToolInvocation<'_>,
    ) -> ToolReply {
        // Notes cross from the guest's task to the loop's borrowed sink through a channel: a sink may not be borrowed.
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let notes: NoteSink = Arc::new(move |note| {
            sender.send(note).ok();
        });
        let arguments = call.arguments.to_string();
        let deadline = catalogue::timeout(call.name, &self.parts.tools, &self.parts.limits);
        let way = self.way_out(call);
        let working = toolset.component.call(ToolCall {
            name,
            arguments: &arguments,
            run_id: call.run.as_str(),
            step: call.step,
            idempotency_key: call.idempotency_key,
            workspace: Some(self.parts.files(call)),
            network: Some(way.clone()),
            scripts,
            environment,
            seeded: self.parts.seeded(call),
            limits: self.parts.limits.with_deadline(deadline),
            notes,
            cancel: call.cancel.clone(),
        });
        let passing = async {
            while let Some(note) = receiver.recv().await {
                (call.notes)(convert(note));
            }
        };
        // The sink is dropped with the call, which ends the forwarding.
        let (mut finished, ()) = tokio::join!(working, passing);
        tell_withheld(call, std::mem::take(&mut finished.withheld));
        reply::of_tool(finished, way.asked(), Some(call.run))
    }
}

#[async_trait::async_trait]
impl Toolbox for RunToolbox {
    fn tools(&self) -> &[ToolDefinition] {
        &self.tools
    }

    fn briefing(&self) -> Option<String> {
        let reaches = |tool: &ToolDefinition| match self.parts.own.get(&tool.spec.name) {
            Some(_) => tool.effects.open_world,
            None => catalogue::reaches_out(&tool.spec.name),
        };
        let network = self.tools.iter().any(reaches);
        let network = network.then(|| briefing::of(&self.parts.network, self.parts.commands.as_deref()));
        let files = self.parts.layer.as_deref().map(|layer| briefing::of_directories(layer, &self.parts.landed));
        let saved = self.parts.saved.as_ref().map(SavedCredentials::briefing);
        let sections: Vec<_> = self.parts.skill.iter().cloned().chain(files).chain(network).chain(saved).collect();
        (!sections.is_empty()).then(|| sections.join("\n\n"))
    }

    fn domains(&self, named: &[String]) -> Result<Vec<String>, String> {
        let read = |domain: &String| domain.trim().parse::<Pattern>().map(|pattern| pattern.to_string());
        named.iter().map(|domain| read(domain).map_err(|error| error.to_string())).collect()
    }

    async fn review(&self, call: PlannedCall<'_>) -> CallReview {
        self.review_of(&call)
    }

    fn component(&self, tool: &ToolDefinition, arguments: &Value) -> Option<ContentHash> {
        let is_own = self.parts.own.contains_key(&tool.spec.name);
        match code::language(arguments) {
            Language::Python if !is_own && tool.spec.name == CODE => {
                self.parts.sandboxes.python(self.around.is_connected())
            }
            _ => tool.component,
        }
    }

    fn only_reads(&self, tool: &str, arguments: &Value) -> bool {
        !self.parts.own.contains_key(tool) && catalogue::find(tool).is_some_and(|tool| (tool.only_reads)(arguments))
    }

    fn clean(&self, value: Value) -> Value {
        self.parts.network.secrets().scrubber().json(value)
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply {
        if call.name == SAVE_CREDENTIAL {
            return match &self.parts.saved {
                Some(saved) => saved.confirm(&call, &self.parts.network, &self.parts.workspace).await,
                None => reply::host_failed(define::gone(call.name).reason),
            };
        }
        let bundled = catalogue::find(call.name);
        let mut reply = match (self.parts.own.get(call.name), bundled) {
            (Some(own), _) => self.run_tool(&own.toolset, &own.tool.name, Vec::new(), None, &call).await,
            (None, Some(tool)) if tool.name == CODE => self.run_code(&call).await,
            (None, Some(tool)) => self.run_bundled(tool, &call).await,
            (None, None) => reply::host_failed(define::gone(call.name).reason),
        };
        self.settle(&mut reply).await;
        let is_saved = reply.result.ok && bundled.is_some_and(|tool| tool.files == FileUse::Saved);
        let save = if is_saved { Save::Always } else { Save::Long };
        let output = std::mem::take(&mut reply.result.output);
        let RunRules { output_bytes, output_lines, .. } = self.parts.rules;
        let room = Room {
            bytes: output_bytes as usize,
            lines: output_lines as usize,
            saved_bytes: self.parts.limits.workspace_bytes,
        };
        reply.result.output = match output::fit(&self.parts.workspace, call.idempotency_key, output, save, room) {
            Ok(FittedOutput { output, saved }) => {
                reply.result.saved = saved;
                output
            }
            Err(error) => {
                tracing::warn!(%error, "cannot save a long output");
                // The call's effects remain: only its output is lost, so its success or failure is unchanged.
                "the call ended, but its output is too long to show and could not be saved; ask for less".to_owned()
            }
        };
        reply
    }
}

/// Tells the owner which credentials' values a call returned: the gate removes them from responses, so the guest got
/// them another way.
pub(crate) fn tell_withheld(call: &ToolInvocation<'_>, credentials: Vec<CredentialName>) {
    for name in credentials {
        let tool = call.name;
        let message =
            format!("`{tool}` gave back the value of the credential `{name}`, which was replaced by its placeholder");
        (call.notes)(ToolNote::Notice { message });
    }
}

fn convert(note: Note) -> ToolNote {
    match note {
        Note::Log { level, message } => ToolNote::Log { level: level.to_owned(), message },
        Note::Progress { message, fraction } => ToolNote::Progress { message, fraction },
    }
}
