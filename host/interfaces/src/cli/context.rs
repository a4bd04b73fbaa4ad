//! The inputs that every command shares.

use std::path::PathBuf;
use std::time::Duration;

use agent::{Env, Home};
use base::{AgentName, Clock as _, Refusal, RefusalCode, SystemClock, Timestamp};

use super::interrupt::UserInterrupts;
use super::{CliError, Done, Globals};
use crate::exit::CommandExit;
use crate::output::Output;
use crate::session::{HostTarget, Session};

/// How long a connection that was dropped may take to be noticed at its other end.
const SETTLE: Duration = Duration::from_millis(200);

/// Options of every command, and the outside world.
pub(super) struct Context {
    pub(super) globals: Globals,
    pub(super) env: Env,
    pub(super) output: Output,
    pub(super) wishes: UserInterrupts,
}

impl Context {
    /// The agent of the command.
    pub(super) fn agent(&self) -> AgentName {
        self.globals.agent.clone().unwrap_or_default()
    }

    /// The home, and how to open it.
    pub(super) fn place(&self) -> Result<HostTarget, Refusal> {
        let mut overrides = self.globals.settings.clone();
        if let Some(directory) = &self.globals.skills_dir {
            // As `--home`, it is relative to the directory of this command; a setting would be relative to the home.
            let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.clone());
            let path = absolute.into_os_string().into_string();
            let path = path.map_err(|_| usage("the path of `--skills-dir` is not UTF-8", "rename the directory"))?;
            overrides.push(("skills.directory".to_owned(), path));
        }
        Ok(HostTarget {
            home: Home::locate(self.globals.home.clone(), &*self.env)?,
            config: self.globals.config.clone(),
            overrides,
            env: self.env.clone(),
            vault_variables: agent::env::vault_variables_of_process(),
            compile_worker: compile_worker(),
            output: self.output.clone(),
            program: None,
        })
    }

    /// Runs work on a host, and closes the host afterwards if it is this process's own. Ctrl-C ends the work.
    pub(super) async fn with_host(&self, work: impl AsyncFnOnce(&mut Session) -> Done) -> Done {
        self.with_host_at(self.place()?, work).await
    }

    /// As [`Self::with_host`], with this target.
    pub(super) async fn with_host_at(&self, place: HostTarget, work: impl AsyncFnOnce(&mut Session) -> Done) -> Done {
        let mut session = Session::open(place).await?;
        let done = tokio::select! {
            done = work(&mut session) => done,
            _ = self.wishes.next() => Ok(CommandExit::Interrupted),
        };
        self.leave(session, done).await
    }

    /// Ends a session after its work. Another command may have come to depend on this process being the host; it
    /// is not let down, unless storage failed: then it is the next host.
    pub(super) async fn leave(&self, session: Session, done: Done) -> Done {
        let mut done = done;
        // A stream that this command has just dropped is noticed a moment later.
        tokio::time::timeout(SETTLE, session.nobody_attached()).await.ok();
        if session.attached() > 0 {
            self.output
                .say("staying for another command that works through this one; Ctrl-C leaves it to that command");
            tokio::select! {
                biased;
                refusal = session.storage_lost() => {
                    self.output.fail(&refusal.reason, refusal.remedy.as_deref());
                    done = done.map(|_| CommandExit::Storage);
                }
                () = session.nobody_attached() => {}
                _ = self.wishes.next() => {}
            }
        }
        session.close().await;
        done
    }

    /// Prints an answer: as JSON if that is asked for, otherwise as text.
    pub(super) fn answer(&self, value: &impl serde::Serialize, text: impl FnOnce() -> String) -> Result<(), CliError> {
        if self.output.is_json() {
            self.output.print_json(value)?
        } else {
            self.output.print_page(&text())?
        }
        Ok(())
    }
}

/// This very program compiles untrusted components, in a process of its own.
pub(super) fn compile_worker() -> Option<PathBuf> {
    // By this name it is the very program that runs, also after another was installed in its place.
    let running = PathBuf::from("/proc/self/exe");
    if running.exists() {
        return Some(running);
    }
    std::env::current_exe()
        .inspect_err(|error| tracing::warn!(%error, "cannot find this program: untrusted components are refused"))
        .ok()
}

/// A usage error with its remedy.
pub(super) fn usage(reason: impl Into<String>, remedy: impl Into<String>) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy)
}

/// The wall clock, for ages only.
pub(super) fn now() -> Timestamp {
    SystemClock::default().now()
}
