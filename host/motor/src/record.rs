//! The head of a run: small, and all that a listing needs. A fold of the run's events.

use std::time::Duration;

use base::{AgentName, Provenance, RunId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::event::{RunEvent, StoredEvent};
use crate::failure::RunError;
use crate::status::{IllegalTransition, RunStatus, StatusEvent};

/// Characters of the task that the head keeps; the whole task is in the first event.
const TASK_CHARACTERS: usize = 200;
/// Characters of the summary that the head keeps; the whole summary is in the last event.
const SUMMARY_CHARACTERS: usize = 2_000;
/// Sources of untrusted content that are kept by name. That there is one is what counts.
const WEB_SOURCES: usize = 32;

/// The head of a run.
///
/// JSON: `{ id, agent, status, task, tools, settings, maxIterations, timeoutMs, createdAt, startedAt?, completedAt?,
/// iterations, modelCalls, toolCalls, errors, inputTokens, outputTokens, costUsd?, energy, resumes, nextSequence,
/// webSources?, summary?, error? }`, times in milliseconds since the epoch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunRecord {
    /// The run.
    pub id: RunId,
    /// Whose run it is.
    pub agent: AgentName,
    /// Where it is in its life.
    pub status: RunStatus,
    /// The beginning of the task.
    pub task: String,
    /// The tools granted, by exact name.
    pub tools: Vec<String>,
    /// What the host needs to rebuild the run's environment. The loop does not look inside.
    pub settings: Value,
    /// How many model calls it may take.
    pub max_iterations: u32,
    /// Milliseconds of wall clock it may take from `started_at`, across restarts of the host.
    pub timeout_ms: u64,
    /// When it was accepted.
    pub created_at: Timestamp,
    /// When a driver first took it up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
    /// Steps begun.
    pub iterations: u32,
    /// Requests to the model, its retries included.
    pub model_calls: u32,
    /// Tool calls that have a result.
    pub tool_calls: u32,
    /// Tool calls that failed.
    pub errors: u32,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Tokens of all replies.
    pub output_tokens: u64,
    /// US dollars, when prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Energy drained so far.
    pub energy: f64,
    /// How often it was taken up again.
    pub resumes: u32,
    /// Where the run has read untrusted content from, each once (SPEC TAINT-1).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web_sources: Vec<String>,
    /// The tool of a call that can reach the network and has no result yet: what it has read is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reaching: Option<String>,
    /// The number the next event gets: also how many there are.
    pub next_sequence: u64,
    /// The beginning of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Why there is no answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
}

impl RunRecord {
    /// The head after the first event, when that is the creation of a run.
    pub(crate) fn created(id: RunId, first: &StoredEvent) -> Option<Self> {
        let RunEvent::Created { agent, task, tools, max_iterations, timeout_ms, settings, key: _, energy } =
            &first.event
        else {
            return None;
        };
        Some(Self {
            id,
            agent: agent.clone(),
            status: RunStatus::Created,
            task: beginning(task, TASK_CHARACTERS),
            tools: tools.clone(),
            settings: settings.clone(),
            max_iterations: *max_iterations,
            timeout_ms: *timeout_ms,
            created_at: first.at,
            started_at: None,
            completed_at: None,
            iterations: 0,
            model_calls: 0,
            tool_calls: 0,
            errors: 0,
            input_tokens: 0,
            output_tokens: 0,
            cost_usd: None,
            energy: *energy,
            resumes: 0,
            web_sources: Vec::new(),
            reaching: None,
            next_sequence: 1,
            summary: None,
            error: None,
        })
    }

    /// Takes in an event after the first.
    ///
    /// # Errors
    /// When the event may not happen in the run's status; the record is unchanged then.
    pub(crate) fn apply(&mut self, stored: &StoredEvent) -> Result<(), IllegalTransition> {
        match &stored.event {
            // A second creation is as illegal as a second start.
            RunEvent::Created { .. } | RunEvent::Started => {
                self.status = self.status.transition(StatusEvent::Start)?;
                self.started_at = Some(stored.at);
            }
            RunEvent::Finished { status, summary, error, energy } => {
                self.end(stored.at, *status, error.clone())?;
                self.summary = summary.as_deref().map(|text| beginning(text, SUMMARY_CHARACTERS));
                self.energy += energy;
            }
            other => {
                self.status = self.status.transition(StatusEvent::GoOn)?;
                self.count(other);
            }
        }
        self.next_sequence += 1;
        Ok(())
    }

    /// The run is over, with or without an event that says so.
    ///
    /// # Errors
    /// When it may not end like this; the record is unchanged then.
    pub(crate) fn end(
        &mut self,
        at: Timestamp,
        status: RunStatus,
        error: Option<RunError>,
    ) -> Result<(), IllegalTransition> {
        let event = match status {
            RunStatus::Completed => StatusEvent::Complete,
            RunStatus::Cancelled => StatusEvent::Cancel,
            _ => StatusEvent::Fail,
        };
        self.status = self.status.transition(event)?;
        self.completed_at = Some(at);
        self.error = error;
        Ok(())
    }

    fn count(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Resumed => {
                self.resumes += 1;
                if let Some(tool) = self.reaching.take() {
                    self.read_from(format!("an interrupted call of `{tool}`"));
                }
            }
            RunEvent::ToolIntended { tool, effects, .. } => {
                self.reaching = effects.open_world.then(|| tool.clone());
            }
            RunEvent::ModelReplied { step, reply, .. } => {
                self.iterations = *step;
                self.model_calls += 1 + reply.retries;
                self.input_tokens += reply.usage.input_tokens;
                self.output_tokens += reply.usage.output_tokens;
                if let Some(cost) = reply.usage.cost_usd {
                    self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
                }
            }
            RunEvent::ToolReturned { tool, result, requests, .. } => {
                self.reaching = None;
                for request in requests.iter().filter(|request| request.status.is_some()) {
                    self.read_from(request.host.clone());
                }
                if result.provenance == Provenance::Web && self.web_sources.is_empty() {
                    self.read_from(format!("`{tool}`"));
                }
                self.tool_calls += 1;
                self.errors += u32::from(!result.ok);
            }
            _ => {}
        }
    }

    fn read_from(&mut self, source: String) {
        if self.web_sources.len() < WEB_SOURCES && !self.web_sources.contains(&source) {
            self.web_sources.push(source);
        }
    }

    /// When the run must be over: its time counts from its start, not from the start of the host.
    pub(crate) fn time_left(&self, now: Timestamp) -> Duration {
        let used = self.started_at.map_or(Duration::ZERO, |started| now.since(started));
        self.timeout().saturating_sub(used)
    }

    /// The wall clock it may take.
    #[must_use]
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// How long it has taken, from its start to its end or to `now`.
    #[must_use]
    pub fn elapsed(&self, now: Timestamp) -> Duration {
        self.started_at.map_or(Duration::ZERO, |started| self.completed_at.unwrap_or(now).since(started))
    }
}

/// The first `characters` characters, with a mark when there are more.
pub(crate) fn beginning(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((cut, _)) => format!("{}…", text.get(..cut).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toolbox::{Effects, OutgoingRequest, ToolResult};

    fn check_sources(events: Vec<RunEvent>, expected: &[&str]) {
        let stored = |event| StoredEvent { at: Timestamp::from_millis(0), event };
        let created = RunEvent::Created {
            agent: AgentName::default(),
            task: "t".into(),
            tools: vec![],
            max_iterations: 20,
            timeout_ms: 1,
            settings: Value::Null,
            key: None,
            energy: 0.0,
        };
        let mut record = RunRecord::created(RunId::parse("run_1").unwrap(), &stored(created)).unwrap();
        for event in [RunEvent::Started].into_iter().chain(events) {
            record.apply(&stored(event)).unwrap();
        }
        assert_eq!(record.web_sources, expected);
    }

    fn intended(tool: &str, open_world: bool) -> RunEvent {
        RunEvent::ToolIntended {
            step: 1,
            call_id: "c".into(),
            tool: tool.into(),
            arguments: Value::Null,
            idempotency_key: "k".into(),
            effects: Effects { open_world, ..Effects::default() },
            component: None,
        }
    }

    fn returned(requests: Vec<OutgoingRequest>) -> RunEvent {
        RunEvent::ToolReturned {
            step: 1,
            call_id: "c".into(),
            tool: "fetch".into(),
            result: ToolResult::success("x"),
            usage: None,
            requests,
            notes: vec![],
            retried: false,
            recovered: false,
        }
    }

    fn asked(host: &str, status: Option<u16>) -> OutgoingRequest {
        let text = serde_json::json!({
            "method": "GET", "url": "u", "host": host, "status": status, "sentBytes": 0, "receivedBytes": 0, "durationMs": 1.0,
        });
        serde_json::from_value(text).unwrap()
    }

    #[test]
    fn what_was_read_from_the_web_is_known_after_a_restart() {
        let read =
            || returned(vec![asked("a.example", Some(200)), asked("b.example", None), asked("a.example", Some(404))]);
        check_sources(vec![intended("fetch", true), read()], &["a.example"]);
        check_sources(vec![intended("fetch", true), read(), RunEvent::Resumed], &["a.example"]);
        // Nobody knows what a call has read that the host took down with it.
        check_sources(vec![intended("bash", true), RunEvent::Resumed], &["an interrupted call of `bash`"]);
        check_sources(vec![intended("read", false), RunEvent::Resumed], &[]);
        check_sources(vec![intended("bash", true), returned(vec![]), RunEvent::Resumed], &[]);
    }

    #[test]
    fn beginnings_are_cut_between_characters() {
        assert_eq!(beginning("short", 200), "short");
        assert_eq!(beginning("äöü", 2), "äö…");
        assert_eq!(beginning("", 0), "");
    }
}
