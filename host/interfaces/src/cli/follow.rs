//! Follows a run to its end, from one host to the next if need be.
//!
//! The run is durable and the stream numbers its durable events, so a host that ends in between costs nothing: the next
//! one goes on where the last was, and nothing is shown twice.

use std::time::Duration;

use base::{ErrorCode, Refusal, RunId, Timestamp};
use motor::{CancelReply, InstalledSkill, LiveEvent, OutgoingRequest, RunError, RunStatus};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use super::CliError;
use super::answer::{APPROVE, RESPOND, trace};
use super::context::Context;
use super::files::{self, ProducedFile};
use super::interrupt::UserInterrupt;
use super::live::LiveView;
use super::parked::{ParkedOutcome, settle};
use crate::client::Call;
use crate::output::text;
use crate::session::Session;

/// Between two pictures of the spinner.
const TICK: Duration = Duration::from_millis(100);

/// How following ended.
pub(super) enum FollowOutcome {
    /// The run is over.
    Ended(Box<RunEnd>),
    /// Ctrl-C or SIGTERM.
    Interrupted {
        /// Whether the run was cancelled.
        cancelled: bool,
        /// The command that answers the run's question or approval request.
        waiting: Option<&'static str>,
    },
    /// The host stopped before the run was over.
    HostGone {
        /// The host's last message, if any.
        reason: Option<String>,
        /// The command that answers the run's question or approval request.
        waiting: Option<&'static str>,
    },
}

/// A run that is over, as the command line tells of it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct RunEnd {
    /// Id of the run.
    pub(super) run_id: RunId,
    /// Its status at the end: `completed`, `failed` or `cancelled`.
    pub(super) status: RunStatus,
    /// The whole answer; for a run without one, the last thing the model said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<String>,
    /// Why it failed or was cancelled; absent for a completed run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<RunError>,
    /// Number of steps begun, over all attempts.
    pub(super) steps: u32,
    /// Number of tool calls that returned, failed ones included.
    pub(super) tool_calls: u32,
    /// Number of tool calls that failed.
    pub(super) tool_errors: u32,
    /// Tokens of all prompts.
    pub(super) input_tokens: u64,
    /// Tokens of all replies.
    pub(super) output_tokens: u64,
    /// Cost in US dollars; absent if no price is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cost_usd: Option<f64>,
    /// Time from the start to the end in milliseconds.
    pub(super) duration_ms: u64,
    /// Writes that it staged.
    #[serde(skip_serializing_if = "is_none")]
    pub(super) staged: u32,
    /// The skills that it left, or failed to leave.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) installed_skills: Vec<InstalledSkill>,
    /// The files that it produced.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) files: Vec<ProducedFile>,
    #[serde(skip)]
    pub(super) started: Option<Timestamp>,
    /// The whole answer was streamed to the terminal that stdout is.
    #[serde(skip)]
    pub(super) is_shown: bool,
    /// The command that answers the question or approval it waits for.
    #[serde(skip)]
    pub(super) waiting: Option<&'static str>,
    /// Its last approval request was refused or expired undecided, or it was refused a request that needs consent.
    #[serde(skip)]
    pub(super) denied: bool,
    /// It is over, as far as the events so far say.
    #[serde(skip)]
    pub(super) over: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the form that serde calls")]
fn is_none(count: &u32) -> bool {
    *count == 0
}

impl RunEnd {
    /// A run of which nothing is known yet.
    pub(super) fn of(run_id: RunId) -> Self {
        Self {
            run_id,
            status: RunStatus::Created,
            result: None,
            error: None,
            steps: 0,
            tool_calls: 0,
            tool_errors: 0,
            input_tokens: 0,
            output_tokens: 0,
            cost_usd: None,
            duration_ms: 0,
            staged: 0,
            installed_skills: Vec::new(),
            files: Vec::new(),
            started: None,
            is_shown: false,
            waiting: None,
            denied: false,
            over: false,
        }
    }

    /// Takes in an event.
    fn take(&mut self, event: &LiveEvent) {
        match event {
            LiveEvent::RunStarted { at, .. } => self.started = Some(*at),
            LiveEvent::Asked { .. } => self.waiting = Some(RESPOND),
            LiveEvent::Answered { .. } => self.waiting = None,
            LiveEvent::ApprovalAsked { .. } => (self.denied, self.waiting) = (true, Some(APPROVE)),
            LiveEvent::ApprovalDecided { granted, .. } => (self.denied, self.waiting) = (!granted, None),
            // A failed run that is tried again is not over.
            LiveEvent::Retried { .. } => (self.over, self.denied) = (false, false),
            LiveEvent::ModelReplied { step, usage, .. } => {
                self.steps = *step;
                self.input_tokens += usage.input_tokens;
                self.output_tokens += usage.output_tokens;
                if let Some(cost) = usage.cost_usd {
                    self.cost_usd = Some(self.cost_usd.unwrap_or_default() + cost);
                }
            }
            LiveEvent::ToolFinished { result, requests, .. } => {
                self.tool_calls += 1;
                self.denied |= requests.iter().any(|request| lacks_consent(request, requests));
                self.tool_errors += u32::from(!result.ok && result.error_code != Some(ErrorCode::Staged));
                self.staged = requests.iter().filter_map(|request| request.staged).fold(self.staged, u32::max);
            }
            LiveEvent::Finished { at, status, summary, error, installed_skills } => {
                self.waiting = None;
                self.installed_skills.clone_from(installed_skills);
                self.status = *status;
                self.result.clone_from(summary);
                self.error.clone_from(error);
                let took = self.started.map_or(Duration::ZERO, |started| at.since(started));
                self.duration_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
                self.over = true;
            }
            _ => {}
        }
    }

    /// One line for people.
    pub(super) fn line(&self) -> String {
        let mut line = format!(
            "{} in {}: {}, {}",
            self.status,
            text::whole_millis(self.duration_ms),
            text::plural(self.steps.into(), "step"),
            text::plural(self.tool_calls.into(), "tool call"),
        );
        if self.tool_errors > 0 {
            line.push_str(&format!(" ({} failed)", self.tool_errors));
        }
        if self.input_tokens + self.output_tokens > 0 {
            let (input, output) = (text::thousands(self.input_tokens), text::thousands(self.output_tokens));
            line.push_str(&format!(", {input} tokens in, {output} out"));
        }
        if let Some(cost) = self.cost_usd {
            line.push_str(&format!(", ${cost:.4}"));
        }
        line
    }
}

/// Whether a request of a call was refused for want of consent, and not sent later in the call with one.
fn lacks_consent(request: &OutgoingRequest, all: &[OutgoingRequest]) -> bool {
    request.wants_consent() && !all.iter().any(|other| other.consented && other.hash == request.hash)
}

/// Follows `run` and shows its events.
///
/// # Errors
/// If the run does not exist, or no host can be reached.
pub(super) async fn follow(session: &mut Session, run: &RunId, context: &Context) -> Result<FollowOutcome, CliError> {
    let mut live = LiveView::new(&context.output, context.globals.verbose > 0);
    let mut followed = watch(session, run, &mut live, context).await;
    live.end();
    if let Ok(FollowOutcome::Ended(ended)) = &mut followed {
        ended.is_shown = ended.result.as_deref().is_some_and(|answer| live.has_shown(answer));
        // The run is over and its answer is here: a host that went away costs the list of files only.
        match trace(run, session).await.and_then(|trace| files::produced(&trace, context)) {
            Ok(files) => ended.files = files,
            Err(refusal) => context.output.warn(&format!("its files are not listed: {}", refusal.reason)),
        }
    }
    Ok(followed?)
}

async fn watch(
    session: &mut Session,
    run: &RunId,
    live: &mut LiveView<'_>,
    context: &Context,
) -> Result<FollowOutcome, Refusal> {
    let path = format!("/v1/tasks/{run}/events?resume=true");
    let mut ended = RunEnd::of(run.clone());
    let (mut last, mut reason) = (None, None);
    let mut tick = tokio::time::interval(TICK);
    loop {
        let mut events = session.events(&path, last).await?;
        session.take_up_runs().await?;
        let mut asked: Option<String> = None;
        loop {
            let went = match asked.take() {
                Some(id) => settle(session, run, &id, &mut events, context).await?,
                None => tokio::select! {
                    event = events.next() => ParkedOutcome::On(event),
                    _ = tick.tick() => {
                        live.tick();
                        continue;
                    }
                    wish = context.wishes.next() => ParkedOutcome::Wished(wish),
                },
            };
            let event = match went {
                ParkedOutcome::On(event) => event,
                ParkedOutcome::Put => continue,
                ParkedOutcome::Wished(wish) => {
                    live.end();
                    // Only a person cancels a run; if a process has to stop, the run stays resumable.
                    let cancelled = wish == UserInterrupt::Interrupt && cancel(session, run, context).await;
                    return Ok(FollowOutcome::Interrupted { cancelled, waiting: ended.waiting });
                }
            };
            let Some(event) = event else { break };
            last = event.id.or(last);
            // An event of a newer host that this client does not know: nothing it could show.
            let Ok(event) = serde_json::from_str::<LiveEvent>(&event.data) else { continue };
            if let LiveEvent::Suspended { reason: said, .. } = &event {
                reason = Some(said.clone());
            }
            live.show(&event);
            ended.take(&event);
            match event {
                LiveEvent::Asked { question, .. } => asked = Some(question.id),
                LiveEvent::ApprovalAsked { approval, .. } => asked = Some(approval.id),
                _ => {}
            }
        }
        if ended.over {
            return Ok(FollowOutcome::Ended(Box::new(ended)));
        }
        if !session.succeed().await? {
            return Ok(FollowOutcome::HostGone { reason, waiting: ended.waiting });
        }
        reason = None;
    }
}

/// Cancels the run; a second Ctrl-C does not wait for that.
async fn cancel(session: &mut Session, run: &RunId, context: &Context) -> bool {
    let Ok(call) = Call::post(format!("/v1/tasks/{run}/cancellation"), &json!({})) else { return false };
    tokio::select! {
        cancelled = session.ask::<CancelReply>(&call) => cancelled
            .inspect_err(|error| tracing::warn!(%error, "the run was not cancelled"))
            .is_ok(),
        _ = context.wishes.next() => false,
    }
}

#[cfg(test)]
mod tests {
    use llm::Usage;
    use motor::ToolResult;

    use super::*;

    #[test]
    fn the_end_sums_up_the_run() {
        let at = Timestamp::from_millis;
        let usage = Usage { input_tokens: 1_000, output_tokens: 20, cost_usd: Some(0.001), ..Usage::default() };
        let replied = |step| LiveEvent::ModelReplied {
            at: at(0),
            step,
            model: "m".into(),
            usage,
            duration_ms: 1,
            text: String::new(),
        };
        let finished = |ok| LiveEvent::ToolFinished {
            at: at(0),
            step: 1,
            call_id: "c".into(),
            tool: "read".into(),
            result: ToolResult { ok, ..ToolResult::success("x") },
            usage: None,
            requests: Vec::new(),
        };
        let mut ended = RunEnd::of(RunId::parse("run_1").unwrap());
        let run = ended.run_id.clone();
        for event in
            [LiveEvent::RunStarted { at: at(1_000), run }, replied(1), finished(true), finished(false), replied(2)]
        {
            ended.take(&event);
            assert!(!ended.over);
        }
        let last = LiveEvent::Finished {
            at: at(3_500),
            status: RunStatus::Completed,
            summary: Some("done".into()),
            error: None,
            installed_skills: Vec::new(),
        };
        ended.take(&last);
        assert!(ended.over);
        assert_eq!(
            ended.line(),
            "completed in 2.5 s: 2 steps, 2 tool calls (1 failed), 2,000 tokens in, 40 out, $0.0020"
        );
        assert_eq!(ended.result.as_deref(), Some("done"));
        ended.take(&LiveEvent::Retried { at: at(4_000), attempt: 1, guidance: None });
        assert!(!ended.over);
    }
}
