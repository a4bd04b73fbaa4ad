//! The hook: the owner's program that is run for signals, for example to show a notification.
//!
//! The text of a run comes from a model, and from the web behind it: it is never part of a command line, passes no
//! shell, and reaches the program on its standard input, and as a title without control characters. The program gets a
//! small environment without the host's secrets, no terminal, and is killed with all its processes on a timeout.

#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use base::text::cut;
use base::{Refusal, RefusalCode};
use rustix::process::{Pid, Signal as KillSignal, kill_process_group};
use signals::{Signal, SignalStatus};
use tokio::io::AsyncWriteExt as _;
use tokio::process::{Child, Command};

use crate::DeliverParts;
use crate::config::HookConfig;
use crate::line::{Consumer, RetrySchedule};

/// The name of the hook's position.
pub(crate) const NAME: &str = "hook";
/// The variables of the host that the program gets: to find programs and the desktop.
const PASSED: [&str; 6] = ["PATH", "HOME", "DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "WAYLAND_DISPLAY"];
/// Characters of a title. The full text is on the standard input.
const TITLE_CHARACTERS: usize = 120;
/// Two attempts after the first: a notification that comes much later is useless.
const RETRIES: RetrySchedule =
    RetrySchedule { first: Duration::from_secs(1), longest: Duration::from_secs(5), most: Some(2) };

/// Runs a program for each signal.
pub(crate) struct Hook {
    program: OsString,
    arguments: Vec<OsString>,
    timeout: Duration,
    statuses: Vec<SignalStatus>,
    variables: Vec<(&'static str, String)>,
}

/// The program of the settings, and its arguments.
pub(crate) fn words(config: &HookConfig) -> Result<(OsString, Vec<OsString>), Refusal> {
    let wrong = |why: &str| {
        let reason = format!("the setting `signals.hook.command` is wrong: {why}");
        Refusal::new(RefusalCode::InvalidRequest, reason)
            .with_remedy("list the program and its arguments: `command = [\"notify-send\", \"a run reports\"]`")
    };
    if config.command.iter().any(|word| word.contains('\0')) {
        return Err(wrong("a word holds a NUL character"));
    }
    let mut words = config.command.iter().map(OsString::from);
    let program = words.next().filter(|program| !program.is_empty()).ok_or_else(|| wrong("no program is named"))?;
    Ok((program, words.collect()))
}

impl Hook {
    pub fn new(config: &HookConfig, parts: &DeliverParts) -> Result<Self, Refusal> {
        let (program, arguments) = words(config)?;
        let variables = PASSED.iter().filter_map(|name| Some((*name, (parts.env)(name)?))).collect();
        Ok(Self {
            program,
            arguments,
            timeout: Duration::from_secs(config.timeout_seconds.clamp(1, 300)),
            statuses: config.statuses.clone(),
            variables,
        })
    }

    fn command(&self, signal: &Signal) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .env_clear()
            .envs(self.variables.iter().map(|(name, value)| (name, value)))
            .env("MOTOR_SIGNAL_ID", signal.id.to_string())
            .env("MOTOR_RUN_ID", signal.body.run_id.as_str())
            .env("MOTOR_AGENT", signal.agent.as_str())
            .env("MOTOR_STATUS", signal.body.status.as_str())
            .env("MOTOR_TITLE", title(signal))
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .kill_on_drop(true);
        command
    }
}

#[async_trait::async_trait]
impl Consumer for Hook {
    fn name(&self) -> &'static str {
        NAME
    }

    fn retries(&self) -> RetrySchedule {
        RETRIES
    }

    fn wants(&self, signal: &Signal, timely: bool) -> bool {
        timely && self.statuses.contains(&signal.body.status)
    }

    async fn deliver(&self, signal: &Signal) -> Result<(), String> {
        let input = serde_json::to_vec(signal).map_err(|error| error.to_string())?;
        let child = self.command(signal).spawn().map_err(|error| format!("the program does not start: {error}"))?;
        let mut group = Group(child);
        match tokio::time::timeout(self.timeout, group.run(&input)).await {
            Ok(Ok(status)) if status.success() => Ok(()),
            Ok(Ok(status)) => Err(format!("the program ended with {status}")),
            Ok(Err(error)) => Err(format!("the program cannot be waited for: {error}")),
            Err(_) => Err(format!("the program took longer than {} s and was killed", self.timeout.as_secs())),
        }
    }
}

/// A process and its descendants. If dropped before its end, the whole group is killed.
struct Group(Child);

impl Group {
    /// Writes its input and waits for its end.
    async fn run(&mut self, input: &[u8]) -> std::io::Result<ExitStatus> {
        let stdin = self.0.stdin.take();
        let feed = async {
            if let Some(mut stdin) = stdin {
                // The program is free to ignore its input.
                stdin.write_all(input).await.ok();
            }
            // Closed by now. Only the program's end counts, however much of its input it has read.
            std::future::pending().await
        };
        tokio::select! {
            status = self.0.wait() => status,
            never = feed => never,
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Without an id the process was reaped, and its number may already belong to another.
        let id = self.0.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        if let Some(Err(error)) = id.map(|id| kill_process_group(id, KillSignal::KILL)) {
            tracing::debug!(%error, "the hook's processes were gone already");
        }
    }
}

/// A signal's text in one line of harmless characters.
fn title(signal: &Signal) -> String {
    let body = &signal.body;
    let said = [
        body.question.as_deref(),
        body.approval.as_ref().and_then(|approval| approval.summaries.first()).map(String::as_str),
        body.approval.as_ref().map(|approval| approval.reason.as_str()),
        body.error.as_ref().map(|error| error.message.as_str()),
        body.result.as_ref().map(|result| result.summary.as_str()),
    ];
    let said = said.into_iter().flatten().find(|text| !text.trim().is_empty()).unwrap_or_default();
    let mut title = String::new();
    for word in said.split(|character: char| character.is_whitespace() || is_control(character)) {
        if !title.is_empty() && !word.is_empty() {
            title.push(' ');
        }
        title.push_str(word);
        if title.len() > 4 * TITLE_CHARACTERS {
            break;
        }
    }
    cut(&title, TITLE_CHARACTERS)
}

/// Includes characters that change the writing direction or hide the following text.
fn is_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
