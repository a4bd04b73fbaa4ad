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

const DESCRIPTION: &str = "Runs a bash script on the files of `/workspace`, which is also where it starts. Pipelines, \
loops, functions, arrays, here-documents and redirection work as ever; the commands are built in: curl, jq, grep, sed, \
awk, sort, uniq, wc, head, tail, cut, tr, find, xargs, diff, tar, base64, sha256sum, git (no clone, fetch or pull; `git push` in a call of its own) and other usual ones. No process can be \
started and there is no interpreter: for JavaScript use `code`. `/tmp` and the shell's state last for one call. \
Standard output comes back, then standard error and the exit code where there is one to tell.";

motor_sdk::arguments! {
    struct Run {
        /// The script; needed unless it is given as `command`.
        script: Option<String>,
        /// The same as `script`.
        command: Option<String>,
        /// Milliseconds that it may take; without it, all the time that the call has.
        timeout_ms: Option<u64>,
    }
}

fn tools() -> Vec<Tool> {
    // A list that is not text is a list of nothing: only its absence allows everything.
    let allowed = std::env::var_os(ALLOWED).map(|list| list.into_string().unwrap_or_default());
    tools_over(ROOT, allowed, curl::through_the_host)
}

fn tools_over(root: &str, allowed: Option<String>, send: curl::Sender) -> Vec<Tool> {
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
            send,
            timeout_ms: limits::timeout_ms(arguments.timeout_ms, context.deadline_ms),
        };
        Ok(shell.run(&script)?.render())
    };
    vec![Tool::new("bash", DESCRIPTION, run).effects(EFFECTS)]
}

motor_sdk::export!(tools);

#[cfg(test)]
mod tests;
