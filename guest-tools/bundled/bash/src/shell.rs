//! One call: an interpreter made for one script, and its result.
//!
//! It must not know the host's policy beyond the list of commands. It survives scripts that run into a limit of the
//! interpreter: their output is kept as it is printed, so it comes back also if there is no result.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use bashkit::time::SystemTime;
use bashkit::{
    Bash, Builtin, Error, ExecOptions, ExecResult, ExecutionBudgetExceeded, LimitExceeded, SessionLimits, StreamData,
};
use motor_sdk::ToolError;

use crate::bc::Bc;
use crate::binaries::Binaries;
use crate::commands::{Allowed, Hints};
use crate::curl::{Curl, Sender};
use crate::git::Git;
use crate::list::List;
use crate::python::{Python, Runner};
use crate::report::{Report, Stream};
use crate::seq::Seq;
use crate::status::Stat;
use crate::workspace::{Modes, Workspace};
use crate::{arithmetic, commands, layout, limits, options};

/// The exit code of `timeout` too.
const TIMED_OUT: i32 = 124;

/// The exit code that a shell reports for a program that was ended from outside.
const STOPPED: i32 = 137;

/// A shell, before it runs.
#[derive(Debug)]
pub(crate) struct Shell {
    pub root: PathBuf,
    pub allowed: Allowed,
    pub send: Sender,
    /// The runner of scripts in Python, or the reason that there is none.
    pub python: Result<Runner, String>,
    pub timeout_ms: u64,
}

/// The output printed so far.
#[derive(Debug, Default)]
struct Printed {
    stdout: Stream,
    stderr: Stream,
}

impl Shell {
    /// Runs a script to its end or to a limit.
    pub(crate) fn run(&self, script: &str) -> Result<Report, ToolError> {
        let cannot_start =
            |error: &dyn std::fmt::Display| ToolError::failed(format!("the shell cannot start: {error}"));
        let executor = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(|error| cannot_start(&error))?;
        let mut bash = self.build().map_err(|error| cannot_start(&error))?;
        let printed = Arc::new(Mutex::new(Printed::default()));
        let sink = printed.clone();
        let options = ExecOptions::new().streaming(Box::new(move |stdout: &StreamData, stderr: &StreamData| {
            let mut printed = sink.lock().unwrap_or_else(PoisonError::into_inner);
            printed.stdout.push(stdout.as_bytes(), limits::STDOUT_BYTES);
            printed.stderr.push(stderr.as_bytes(), limits::STDERR_BYTES);
        }));
        let result = executor.block_on(bash.exec_with_options(&arithmetic::rewrite(script), options));
        Ok(match result {
            Ok(result) => complete(result),
            Err(error) => {
                let mut printed = printed.lock().unwrap_or_else(PoisonError::into_inner);
                self.stopped(std::mem::take(&mut *printed), &error)
            }
        })
    }

    fn build(&self) -> bashkit::Result<Bash> {
        let is_here = |name: &&str| self.python.is_ok() || !commands::PYTHON.contains(name);
        let names = commands::commands().filter(is_here).chain(["bash", "sh", "test", "["]);
        let binaries = Binaries::new(names, SystemTime::now());
        let allowed = self.allowed.clone();
        let modes = Modes::default();
        let mut builder = Bash::builder()
            .fs(layout::file_system(Workspace::at(&self.root, modes.clone()), &binaries)?)
            .rootfs(false)
            .cwd(crate::ROOT)
            .env("HOME", crate::ROOT)
            .env("PATH", "/usr/bin:/bin")
            .username("agent")
            .hostname("sandbox")
            .limits(limits::execution(self.timeout_ms))
            // A session is one call here, and a call has limits of its own.
            .session_limits(SessionLimits::unlimited())
            .memory_limits(limits::memory())
            .builtin_filter(move |name| allowed.keeps(name))
            .command_resolver(Arc::new(Hints { no_python: self.python.clone().err() }))
            .before_tool(Box::new(options::rewrite));
        for name in self.allowed.forbidden() {
            builder = builder.builtin(name, Box::new(self.allowed.refusal(name)));
        }
        let deadline = Instant::now().checked_add(Duration::from_millis(self.timeout_ms));
        let git = Git { root: self.root.clone(), modes, deadline, send: self.send };
        let own: [(&str, Box<dyn Builtin>); 5] = [
            ("ls", Box::new(List)),
            ("bc", Box::new(Bc)),
            ("seq", Box::new(Seq)),
            ("stat", Box::new(Stat)),
            ("git", Box::new(git)),
        ];
        for (name, command) in own.into_iter().filter(|(name, _)| self.allowed.keeps(name)) {
            builder = builder.builtin(name, command);
        }
        if self.allowed.keeps("curl") {
            builder = builder.builtin("curl", Box::new(Curl { send: self.send }));
        }
        if let Ok(run) = self.python {
            for name in commands::PYTHON.into_iter().filter(|name| self.allowed.keeps(name)) {
                builder = builder.builtin(name, Box::new(Python { run, deadline }));
            }
        }
        Ok(builder.build())
    }

    /// The report on a script that has no result.
    fn stopped(&self, printed: Printed, error: &Error) -> Report {
        let (message, exit_code) = match error {
            Error::Parse { .. } => (format!("{error}"), 2),
            Error::Cancelled
            | Error::ResourceLimit(
                LimitExceeded::Timeout(_)
                | LimitExceeded::ParserTimeout(_)
                | LimitExceeded::ExecutionBudget(ExecutionBudgetExceeded::Deadline { .. }),
            ) => (format!("timed out after {} ms", self.timeout_ms), TIMED_OUT),
            Error::ResourceLimit(limit) => (format!("stopped: {limit}"), STOPPED),
            other => (other.to_string(), 1),
        };
        let Printed { stdout, mut stderr } = printed;
        // Beyond the limit for the script's own messages: this is the line that explains the rest.
        stderr.push(format!("bash: {message}\n").as_bytes(), usize::MAX);
        Report { stdout, stderr, exit_code }
    }
}

fn complete(result: ExecResult) -> Report {
    let ExecResult { stdout, stderr, exit_code, stdout_truncated, stderr_truncated, .. } = result;
    Report {
        stdout: Stream::new(stdout.into_bytes(), limits::STDOUT_BYTES, stdout_truncated),
        stderr: Stream::new(stderr.into_bytes(), limits::STDERR_BYTES, stderr_truncated),
        exit_code,
    }
}
