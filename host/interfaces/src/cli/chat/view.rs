//! The conversation on the screen, and which of its turns and runs are under way.

use std::collections::BTreeSet;

use base::{Refusal, RunId};
use cognition::{ChatEvent, ChatEventBody, Speaker};

use crate::cli::CliError;
use crate::cli::terminal::Terminal;
use crate::output::{Output, text};

/// Columns of a task.
const TASK: usize = 100;
/// Columns of news of the cortex; `motor cortex signals` has all of it.
const NEWS: usize = 300;
/// The states of a run that waits for a person.
const WAITING: [&str; 2] = ["awaiting_input", "awaiting_approval"];

/// Shows the events of a conversation as lines.
pub(super) struct ChatView<'a> {
    output: &'a Output,
    terminal: Option<Terminal>,
    /// Messages and signals whose turn has not ended.
    open: BTreeSet<u64>,
    /// Runs that are under way.
    running: BTreeSet<RunId>,
    /// Whether the prompt is on the last line of the terminal.
    is_prompted: bool,
    /// The last event that was shown.
    last: u64,
    /// Messages of this command.
    own: BTreeSet<u64>,
}

impl<'a> ChatView<'a> {
    pub(super) fn new(output: &'a Output, terminal: Option<Terminal>) -> Self {
        let (open, running, own) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { output, terminal, open, running, is_prompted: false, last: 0, own }
    }

    /// Whether every message has its answer, and no run is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.open.is_empty() && self.running.is_empty()
    }

    /// The runs that are under way.
    pub(super) fn running(&self) -> impl Iterator<Item = &RunId> {
        self.running.iter()
    }

    /// Asks for a line if a person may type one, and says how many runs are under way.
    pub(super) fn prompt(&mut self) {
        let is_free = self.open.is_empty() && !self.output.is_json() && !self.is_prompted;
        let Some(terminal) = self.terminal.as_ref().filter(|_| is_free) else { return };
        let prompt = match self.running.len() {
            0 => "> ".to_owned(),
            1 => "(1 run under way) > ".to_owned(),
            runs => format!("({runs} runs under way) > "),
        };
        self.is_prompted = terminal.write(&prompt).is_ok();
    }

    /// The person ended a line.
    pub(super) fn typed(&mut self) {
        self.is_prompted = false;
    }

    /// Begins a new line if the prompt is on the last one, behind which a person may have typed.
    fn leave_prompt(&mut self) {
        if std::mem::take(&mut self.is_prompted)
            && let Some(terminal) = &self.terminal
        {
            terminal.write("\n").ok();
        }
    }

    /// A message of this command was accepted.
    pub(super) fn sent(&mut self, event: u64) {
        self.own.insert(event);
        // Its turn may have ended before its acceptance was heard of.
        if event > self.last {
            self.open.insert(event);
        }
    }

    /// A message was refused: the conversation goes on.
    pub(super) fn refused(&mut self, refusal: &Refusal) -> Result<(), CliError> {
        self.output.refuse(refusal)?;
        self.prompt();
        Ok(())
    }

    /// A line about a run.
    pub(super) fn run_line(&mut self, line: &str) {
        if !self.output.is_json() {
            self.leave_prompt();
            self.output.say(line);
            self.prompt();
        }
    }

    /// Shows an event from before this command.
    pub(super) fn earlier(&mut self, event: &ChatEvent) -> Result<(), CliError> {
        match &event.body {
            ChatEventBody::Message { text, .. } if !self.output.is_json() => {
                self.track(event);
                Ok(self.output.print(&format!("you: {}", text::quoted(text)))?)
            }
            // The prompt comes after all of them.
            ChatEventBody::Ended { .. } if !self.output.is_json() => {
                self.track(event);
                Ok(())
            }
            _ => self.show(event),
        }
    }

    /// Shows an event that just became durable.
    pub(super) fn show(&mut self, event: &ChatEvent) -> Result<(), CliError> {
        self.track(event);
        if self.output.is_json() {
            return Ok(self.output.print_json_line(event)?);
        }
        match &event.body {
            ChatEventBody::Message { text, .. } if !self.own.contains(&event.id) && self.terminal.is_none() => {
                self.output.say(&format!("you: {}", text::quoted(text)));
            }
            ChatEventBody::Message { .. } => {}
            ChatEventBody::Said { text, by } => {
                self.leave_prompt();
                match by {
                    Speaker::Agent => self.output.print_answer(text)?,
                    Speaker::Host => self.output.print(text)?,
                }
            }
            ChatEventBody::Delegated { run, task: words } | ChatEventBody::Run { run, status: words } => {
                self.leave_prompt();
                self.output.say(&format!("{run}  {}", text::brief(words, TASK)));
            }
            ChatEventBody::Noted { text } => {
                self.leave_prompt();
                self.output.say(&format!("cortex  {}", text::brief(text, NEWS)));
            }
            ChatEventBody::Ended { .. } => self.prompt(),
        }
        Ok(())
    }

    /// Follows which turns and runs are under way.
    pub(super) fn track(&mut self, event: &ChatEvent) {
        self.last = self.last.max(event.id);
        match &event.body {
            ChatEventBody::Message { .. } | ChatEventBody::Noted { .. } => {
                self.open.insert(event.id);
            }
            ChatEventBody::Run { run, status } => {
                self.open.insert(event.id);
                // A run that waits for a person does not go on by itself.
                if WAITING.contains(&status.as_str()) || is_over(status) {
                    self.running.remove(run);
                }
            }
            ChatEventBody::Delegated { run, .. } => {
                self.running.insert(run.clone());
            }
            ChatEventBody::Ended { trigger, .. } => {
                self.open.remove(trigger);
                self.own.remove(trigger);
            }
            ChatEventBody::Said { .. } => {}
        }
    }
}

fn is_over(status: &str) -> bool {
    ["completed", "failed", "cancelled"].contains(&status)
}
