//! The conversation on the screen, and which of its turns and runs are under way.

use std::collections::BTreeSet;

use base::{Refusal, RunId};
use cognition::{ChatEvent, ChatEventBody, Speaker};

use crate::cli::CliError;
use crate::cli::terminal::Terminal;
use crate::output::{Output, text};

/// Columns of a task.
const TASK: usize = 100;
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
    /// The last event that was shown.
    last: u64,
    /// Messages of this command.
    own: BTreeSet<u64>,
}

impl<'a> ChatView<'a> {
    pub(super) fn new(output: &'a Output, terminal: Option<Terminal>) -> Self {
        let (open, running, own) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        Self { output, terminal, open, running, last: 0, own }
    }

    /// Whether every message has its answer, and no run is under way.
    pub(super) fn is_quiet(&self) -> bool {
        self.open.is_empty() && self.running.is_empty()
    }

    /// Asks for a line, if a person may type one.
    pub(super) fn prompt(&self) {
        if let Some(terminal) = self.terminal.as_ref().filter(|_| self.open.is_empty() && !self.output.is_json()) {
            terminal.write("> ").ok();
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
    pub(super) fn refused(&self, refusal: &Refusal) -> Result<(), CliError> {
        Ok(self.output.refuse(refusal)?)
    }

    /// A line about a run.
    pub(super) fn run_line(&self, line: &str) {
        if !self.output.is_json() {
            self.output.say(line);
        }
    }

    /// Shows an event from before this command.
    pub(super) fn earlier(&mut self, event: &ChatEvent) -> Result<(), CliError> {
        if let ChatEventBody::Message { text, .. } = &event.body
            && !self.output.is_json()
        {
            self.track(event);
            return Ok(self.output.print(&format!("you: {}", text::quoted(text)))?);
        }
        self.show(event)
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
            ChatEventBody::Said { text, by: Speaker::Agent } => self.output.print_answer(text)?,
            ChatEventBody::Said { text, by: Speaker::Host } => self.output.print(text)?,
            ChatEventBody::Delegated { run, task } => self.output.say(&format!("{run}  {}", text::brief(task, TASK))),
            ChatEventBody::Run { run, status } => self.output.say(&format!("{run}  {}", text::brief(status, TASK))),
            ChatEventBody::Ended { .. } => self.prompt(),
        }
        Ok(())
    }

    fn track(&mut self, event: &ChatEvent) {
        self.last = self.last.max(event.id);
        match &event.body {
            ChatEventBody::Message { .. } => {
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
