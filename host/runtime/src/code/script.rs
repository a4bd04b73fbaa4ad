//! Scripts that the shell hands to the host (SPEC CODE-9): `python x.py` in `bash`.
//!
//! Such a script belongs to the call that asks for it. It shares that call's requests, secrets and files, spends the rest of
//! its fuel and of its time, and ends with it. It runs in the connected engine behind [`SCRIPT`], which makes argument list,
//! streams and exit status of the contract of programs. A component that is given no engine only learns that there is none.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use base::ContentHash;
use bindings::HOST_VERSION;
use bindings::code::exports::motor::host::interpreter as wit;
use bindings::scripts;
use capabilities::stdio::BoundedOutput;
use capabilities::workspace::{Access, Quota, Workspace};
use capabilities::{Egress, Note, NoteSink};
use tokio_util::sync::CancellationToken;
use wasmtime::StoreContextMut;
use wasmtime::component::Linker;

use super::{CodeError, CodeErrorCode, CodeSandbox, Engine, MAX_SOURCE_BYTES};
use crate::Limit;
use crate::limits::Limits;
use crate::outcome::CallUsage;
use crate::state::{self, CallInputs, CallState, CommandLine};

/// The program that runs a script.
const SCRIPT: &str = include_str!("script.py");

/// The answer to a call that has no engine.
const MISSING: &str = "there is no Python here: it is part of runs with files, on a host that was built with it (`cargo xtask python`, \
                       then build the host again)";

/// Exit statuses of a script that was stopped, as `timeout` and a shell report them.
const TIMED_OUT: u8 = 124;
const STOPPED: u8 = 137;

/// Bytes of the answer of a program that runs a script: its exit status.
const STATUS_BYTES: u32 = 64;

type Loading = Pin<Box<dyn Future<Output = Result<ScriptSandbox, String>> + Send>>;

/// An engine that was loaded for scripts.
pub struct ScriptSandbox {
    /// The engine with files and requests.
    pub sandbox: CodeSandbox,
    /// The hash of its component, for the record of the call.
    pub component: ContentHash,
}

/// The engine for the scripts of one call, loaded when the first one runs. Cheap to clone.
#[derive(Clone)]
pub struct ScriptEngine {
    load: Arc<dyn Fn() -> Loading + Send + Sync>,
    seed: u64,
    now_ms: u64,
}

impl ScriptEngine {
    /// An engine that `load` loads. `seed` seeds the random numbers of scripts; their clocks begin at `now_ms`, in milliseconds
    /// since the epoch.
    pub fn new<F>(seed: u64, now_ms: u64, load: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<ScriptSandbox, String>> + Send + 'static,
    {
        Self { load: Arc::new(move || Box::pin(load())), seed, now_ms }
    }
}

impl fmt::Debug for ScriptEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScriptEngine").finish_non_exhaustive()
    }
}

/// The scripts of one call: their engine, their share of the call, and their usage of it.
pub(crate) struct Scripts {
    engine: ScriptEngine,
    workspace: Workspace,
    has_domains: bool,
    limits: Limits,
    notes: NoteSink,
    cancel: CancellationToken,
    used: CallUsage,
    begun: u64,
}

impl Scripts {
    /// Scripts with these files, which they may write.
    pub fn new(
        engine: ScriptEngine,
        workspace: Workspace,
        has_domains: bool,
        limits: Limits,
        notes: NoteSink,
        cancel: CancellationToken,
    ) -> Self {
        Self { engine, workspace, has_domains, limits, notes, cancel, used: CallUsage::default(), begun: 0 }
    }

    /// The resources that scripts used so far.
    pub fn used(&self) -> CallUsage {
        self.used
    }

    /// The limits of the next script, of a call that has this much fuel left.
    fn rest(&self, fuel: u64, timeout_ms: u64) -> Limits {
        Limits {
            fuel,
            deadline_ms: self.limits.deadline_ms.min(timeout_ms.max(1)),
            host_calls: self.limits.host_calls.saturating_sub(self.used.host_calls),
            ..self.limits
        }
    }

    fn spend(&mut self, usage: CallUsage) {
        self.used.fuel = self.used.fuel.saturating_add(usage.fuel);
        self.used.host_calls = self.used.host_calls.saturating_add(usage.host_calls);
        self.used.peak_memory_bytes = self.used.peak_memory_bytes.max(usage.peak_memory_bytes);
    }
}

/// Everything of a call that one of its scripts needs.
struct Turn {
    engine: ScriptEngine,
    number: u64,
    workspace: Workspace,
    quota: Quota,
    grants: wit::Grants,
    egress: Egress,
    limits: Limits,
    notes: NoteSink,
    cancel: CancellationToken,
}

/// Defines the interface `motor:host/scripts`.
pub(crate) fn add_to_linker(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    let mut instance = linker.instance(&format!("motor:host/scripts@{HOST_VERSION}"))?;
    instance.func_wrap("python-missing", |store: StoreContextMut<'_, CallState>, (): ()| {
        Ok((store.data().scripts.is_none().then(|| MISSING.to_owned()),))
    })?;
    instance.func_wrap_async("run-python", |store: StoreContextMut<'_, CallState>, (script,): (scripts::Script,)| {
        Box::new(run_python(store, script))
    })
}

async fn run_python(
    mut store: StoreContextMut<'_, CallState>,
    script: scripts::Script,
) -> wasmtime::Result<(Result<scripts::Ended, String>,)> {
    let fuel = store.get_fuel()?;
    let state = store.data_mut();
    let (egress, quota) = (state.egress().clone(), state.quota());
    let Some(scripts) = &mut state.scripts else { return Ok((Err(MISSING.to_owned()),)) };
    let mut grants = wit::Grants::FILES;
    if scripts.has_domains {
        grants |= wit::Grants::NETWORK;
    }
    let turn = Turn {
        engine: scripts.engine.clone(),
        number: scripts.begun,
        workspace: scripts.workspace.clone(),
        quota,
        grants,
        egress,
        limits: scripts.rest(fuel, script.timeout_ms),
        notes: scripts.notes.clone(),
        cancel: scripts.cancel.clone(),
    };
    scripts.begun = scripts.begun.saturating_add(1);
    let ended = match (turn.engine.load)().await {
        Ok(engine) => turn.run(&engine, script).await,
        Err(reason) => Err(reason),
    };
    let (ended, usage) = match ended {
        Ok((ended, usage)) => (Ok(ended), usage),
        Err(reason) => (Err(reason), CallUsage::default()),
    };
    if let Some(scripts) = &mut store.data_mut().scripts {
        scripts.spend(usage);
    }
    // The script's work is work of the call: a loop of scripts ends at the same limit as one script.
    store.set_fuel(fuel.saturating_sub(usage.fuel))?;
    Ok((ended,))
}

impl Turn {
    async fn run(self, engine: &ScriptSandbox, script: scripts::Script) -> Result<(scripts::Ended, CallUsage), String> {
        let Self { engine: settings, number, workspace, quota, grants, egress, limits, notes, cancel } = self;
        let Engine::Connected(pre) = &engine.sandbox.engine else {
            return Err("the engine for Python is not one for scripts".to_owned());
        };
        if script.text.len() > MAX_SOURCE_BYTES {
            return Err(format!("the script has {} bytes; at most {MAX_SOURCE_BYTES} are accepted", script.text.len()));
        }
        if number == 0 {
            let message = format!("the scripts of this call run in {}", engine.component);
            notes(Note::Log { level: "info", message });
        }
        let stdout = BoundedOutput::of(Limit::OutputBytes, limits.output_bytes);
        let stderr = BoundedOutput::new(limits.stdio_bytes);
        let request = wit::Program {
            source: source(&script)?,
            // Each script of a call has numbers of its own, and the same ones if the call is repeated.
            seed: settings.seed.wrapping_add(number),
            now_ms: settings.now_ms,
            max_result_bytes: STATUS_BYTES,
            max_console_bytes: 0,
            grants,
        };
        let given = CallInputs {
            // The error may name a host path, and a model reads it.
            workspace: state::open_workspace(Some(&workspace), Access::ReadWrite, &limits)
                .map_err(|_| "the workspace cannot be opened".to_owned())?
                .within(quota),
            egress: Some(egress),
            stdio: stderr.clone(),
            command: Some(CommandLine { arguments: Vec::new(), stdin: script.stdin.into(), stdout: stdout.clone() }),
            ..CallInputs::nothing(&limits)
        };
        let sandbox = &engine.sandbox;
        let report = sandbox.attached(pre, request, given, sandbox.runtime.scripts(), &limits, &cancel).await;
        let (status, why) = status(report.outcome.map(|value| value.json));
        let mut stderr = stderr.bytes();
        if let Some(why) = why {
            stderr.extend_from_slice(format!("python3: {why}\n").as_bytes());
        }
        Ok((scripts::Ended { stdout: stdout.bytes(), stderr, status }, report.usage))
    }
}

/// The exit status, and the words about a script that did not end by itself.
fn status(outcome: Result<String, CodeError>) -> (u8, Option<String>) {
    match outcome {
        Ok(json) => match json.parse() {
            Ok(status) => (status, None),
            Err(_) => (1, Some("the script ended without an exit status".to_owned())),
        },
        Err(error) => {
            let status = match error.code {
                CodeErrorCode::Timeout => TIMED_OUT,
                CodeErrorCode::Limit | CodeErrorCode::Cancelled => STOPPED,
                CodeErrorCode::Error | CodeErrorCode::Blocked => 1,
            };
            (status, Some(format!("stopped: {}", error.message)))
        }
    }
}

/// The program for a script: its last expression is the exit status.
fn source(script: &scripts::Script) -> Result<String, String> {
    let origin = match script.origin {
        scripts::Origin::Command => "command",
        scripts::Origin::Input => "input",
        scripts::Origin::File => "file",
        scripts::Origin::Module => "module",
    };
    let environment: serde_json::Map<_, _> =
        script.environment.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let given = serde_json::json!({
        "origin": origin,
        "name": script.name,
        "text": script.text,
        "arguments": script.arguments,
        "search": script.search,
        "directory": script.directory,
        "environment": environment,
    });
    // A JSON string is a string literal of Python as well: the escapes that are written are the same.
    let literal = serde_json::to_string(&given.to_string()).map_err(|error| error.to_string())?;
    let source = format!("{SCRIPT}\nimport json\n_run(json.loads({literal}))\n");
    Ok(source)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn script(text: &str) -> scripts::Script {
        scripts::Script {
            origin: scripts::Origin::Command,
            name: "<string>".into(),
            text: text.into(),
            arguments: vec!["-c".into(), "a \"b\"".into()],
            search: String::new(),
            directory: "/workspace".into(),
            environment: vec![("A".into(), "1".into())],
            stdin: Vec::new(),
            timeout_ms: 5,
        }
    }

    #[test]
    fn a_script_cannot_leave_its_literal() {
        let hostile = "'''\n\"\"\"\\\"); import os #\r\u{2028}\u{0}";
        let source = source(&script(hostile)).unwrap();
        let last = source.strip_prefix(SCRIPT).unwrap().trim_end().lines().next_back().unwrap();
        let literal = last.strip_prefix("_run(json.loads(").and_then(|rest| rest.strip_suffix("))")).unwrap();
        let text: String = serde_json::from_str(literal).unwrap();
        let given: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((given["text"].as_str(), &given["arguments"][1]), (Some(hostile), &"a \"b\"".into()));
    }

    #[test]
    fn a_status_is_that_of_the_script_or_of_its_end() {
        assert_eq!(status(Ok("3".into())), (3, None));
        assert_eq!(status(Ok("256".into())).0, 1);
        for (code, expected) in [(CodeErrorCode::Timeout, 124), (CodeErrorCode::Limit, 137), (CodeErrorCode::Error, 1)]
        {
            let (status, why) = status(Err(CodeError::new(code, "too long")));
            assert_eq!((status, why.as_deref()), (expected, Some("stopped: too long")));
        }
    }

    #[test]
    fn scripts_spend_the_rest_of_their_call() {
        let engine = ScriptEngine::new(0, 0, || async { Err("none".to_owned()) });
        let limits = Limits { host_calls: 100, deadline_ms: 1_000, ..Limits::default() };
        let notes = capabilities::note::ignore();
        let directory = std::path::PathBuf::from("/nowhere");
        let mut scripts = Scripts::new(engine, directory.into(), false, limits, notes, CancellationToken::new());
        scripts.spend(CallUsage { fuel: 7, host_calls: 40, peak_memory_bytes: 9, duration: Duration::ZERO });
        scripts.spend(CallUsage { fuel: 1, host_calls: 70, peak_memory_bytes: 3, duration: Duration::ZERO });
        let used = scripts.used();
        assert_eq!((used.fuel, used.host_calls, used.peak_memory_bytes), (8, 110, 9));
        let rest = scripts.rest(5, 5_000);
        assert_eq!((rest.fuel, rest.host_calls, rest.deadline_ms), (5, 0, 1_000));
        assert_eq!(scripts.rest(5, 0).deadline_ms, 1);
    }
}
