//! `python` and `python3`: their command line. The host runs the script in an engine of its own, with the files and the
//! domains of this call (SPEC CODE-9).
//!
//! It must not know the engine. Files in memory (`/tmp`) are not in the engine's reach: a script there is read here, and a
//! current directory there is refused. It survives scripts without end: the host stops them at the deadline of the shell.

mod options;

use std::path::Path;
use std::time::{Duration, Instant};

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, normalize_path, vfs_join};

use bindings::motor::host::scripts;
use options::{Start, parse};

pub(crate) use scripts::{Ended, Origin, Script};

#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    wit_bindgen::generate!({
        inline: "package motor:shell; world scripts { import motor:host/scripts@0.1.2; }",
        path: "../../../wit",
        world: "motor:shell/scripts",
        generate_all,
    });
}

/// Bytes of standard input. 4 MiB: half of the bytes that a call can hand to the host at once.
const INPUT_BYTES: usize = 4 << 20;

/// Exit statuses of a script that did not run.
const FAILED: i32 = 1;
const USAGE: i32 = 2;

/// Runs a script; an error is the reason why none is run.
pub(crate) type Runner = fn(&Script) -> Result<Ended, String>;

/// The host's engine, or why this call has none.
pub(crate) fn of_the_host() -> Result<Runner, String> {
    match scripts::python_missing() {
        None => Ok(scripts::run_python),
        Some(reason) => Err(reason),
    }
}

/// The command `python3` of the shell.
pub(crate) struct Python {
    pub run: Runner,
    pub deadline: Option<Instant>,
}

#[async_trait]
impl Builtin for Python {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let script = match parse(context.args) {
            Ok(start) => self.script(start, &context).await,
            Err(message) => Err((message, USAGE)),
        };
        let ended = match script {
            Ok(script) => (self.run)(&script).map_err(|reason| (format!("python3: {reason}"), FAILED)),
            Err(refused) => Err(refused),
        };
        Ok(match ended {
            Ok(Ended { stdout, stderr, status }) => {
                let mut result = ExecResult::ok_bytes(stdout);
                result.stderr = String::from_utf8_lossy(&stderr).into_owned().into();
                result.exit_code = status.into();
                result
            }
            Err((message, code)) => ExecResult::err(format!("{message}\n"), code),
        })
    }
}

impl Python {
    async fn script(&self, start: Start, context: &BuiltinContext<'_>) -> Result<Script, (String, i32)> {
        let directory = text_of(context.cwd);
        if !context.cwd.starts_with(crate::ROOT) {
            let message = format!(
                "python3: the current directory {directory} is in memory, where Python has no files: `cd {}` first",
                crate::ROOT
            );
            return Err((message, FAILED));
        }
        let mut stdin = context.stdin.map(|input| input.as_bytes().to_vec()).unwrap_or_default();
        if stdin.len() > INPUT_BYTES {
            let message = format!("python3: standard input has more than {INPUT_BYTES} bytes: write it to a file");
            return Err((message, FAILED));
        }
        let Start { origin, source, arguments } = start;
        let mut search = directory.clone();
        let (name, text) = match origin {
            Origin::Command => ("<string>".to_owned(), source),
            Origin::Module => (source, String::new()),
            Origin::Input => ("<stdin>".to_owned(), utf8("<stdin>", std::mem::take(&mut stdin))?),
            Origin::File => {
                let path = normalize_path(&vfs_join(context.cwd, source.as_str()));
                let name = text_of(&path);
                let bytes = context
                    .fs
                    .read_file(&path)
                    .await
                    .map_err(|error| (format!("python3: can't open file '{name}': {error}"), USAGE))?;
                search = path.parent().map(text_of).unwrap_or_default();
                let text = utf8(&name, bytes)?;
                (name, text)
            }
        };
        Ok(Script {
            origin,
            name,
            text,
            arguments,
            search,
            directory,
            environment: context.env.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            stdin,
            timeout_ms: self.deadline.map_or(u64::MAX, |deadline| {
                let rest = deadline.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
                u64::try_from(rest.as_millis()).unwrap_or(u64::MAX)
            }),
        })
    }
}

fn text_of(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

/// The text of a source, which may begin with a byte order mark.
fn utf8(name: &str, bytes: Vec<u8>) -> Result<String, (String, i32)> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text)),
        Err(_) => Err((format!("SyntaxError: Non-UTF-8 code in file {name}: save it as UTF-8"), FAILED)),
    }
}
