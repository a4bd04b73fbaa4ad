//! The tool `bash`: a shell that starts no process (SPEC TOOL-2).
//!
//! An interpreter with its commands built in, on `/workspace` and nothing else. The boundary is the host's: it opens
//! that one directory, passes or refuses every request of `curl`, and ends scripts that run too long. Decided here are
//! the commands there are ([`commands`]) and the place of each limit ([`limits`]). It must not know about runs,
//! policies or credentials. It survives scripts: fork bombs, endless loops and output, expansions without end; each
//! ends with a message, and text printed before it comes back.

mod arithmetic;
mod bc;
mod binaries;
mod commands;
mod curl;
mod date;
mod git;
mod layout;
mod limits;
mod list;
mod options;
mod python;
mod report;
mod seq;
mod shell;
mod status;
mod workspace;

use motor_sdk::{Context, Effects, Tool, ToolError};

/// Where the host opens the workspace.
const ROOT: &str = "/workspace";

/// The host's list of the commands that this call may use. It is not part of the script's environment.
const ALLOWED: &str = "MOTOR_COMMANDS";

/// A script may do anything that its commands can.
const EFFECTS: Effects = Effects { read_only: false, destructive: true, idempotent: false, open_world: true };

const DESCRIPTION: &str = "Runs a bash script in `/workspace` with built-in commands: the usual ones, curl, jq, awk, tar, diff, \
base64, sha256sum, git (no clone, fetch or pull; `git push` in a call of its own). No other program runs. `/tmp` and the shell's \
state last for one call.";

motor_sdk::arguments! {
    struct Run {
        script: Option<String>,
        /// The same as `script`.
        command: Option<String>,
        timeout_ms: Option<u64>,
    }
}

fn tools() -> Vec<Tool> {
    // A list that is not text is a list of nothing: only its absence allows everything.
    let allowed = std::env::var_os(ALLOWED).map(|list| list.into_string().unwrap_or_default());
    tools_over(ROOT, allowed, Host { send: curl::through_the_host, python: python::of_the_host() })
}

/// The ways to the host.
#[derive(Debug, Clone)]
struct Host {
    send: curl::Sender,
    python: Result<python::Runner, String>,
}

fn tools_over(root: &str, allowed: Option<String>, host: Host) -> Vec<Tool> {
    let root = root.to_owned();
    let run = move |arguments: Run, context: &Context| -> Result<String, ToolError> {
        let script = match (arguments.script, arguments.command) {
            (Some(script), None) | (None, Some(script)) => script,
            (Some(_), Some(_)) => return Err(ToolError::bad_input("give `script` or `command`, not both")),
            (None, None) => {
                return Err(ToolError::bad_input("the argument `script` is missing: give the script to run"));
            }
        };
        let shell = shell::Shell {
            root: root.clone().into(),
            allowed: commands::Allowed::parse(allowed.as_deref()),
            send: host.send,
            python: host.python.clone(),
            timeout_ms: limits::timeout_ms(arguments.timeout_ms, context.deadline_ms),
        };
        Ok(shell.run(&script)?.render())
    };
    vec![Tool::new("bash", DESCRIPTION, run).effects(EFFECTS)]
}

motor_sdk::export!(tools);

#[cfg(test)]
mod tests;
