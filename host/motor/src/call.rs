//! One tool call: whether it may be made, making it, and everything that can end it.

use std::time::Duration;

use base::{Clock, ErrorCode, Provenance, RunId};
use llm::{Arguments, check_arguments};
use parking_lot::Mutex;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::config::{
    MAX_CALLS_PER_REPLY, MAX_NOTE_BYTES, MAX_NOTES, MAX_OUTPUT_BYTES, OVERSTAY, SHUTDOWN_GRACE, STOP_GRACE, span,
};
use crate::conversation::{Intent, OpenCall};
use crate::host_tools::SAVE_CREDENTIAL;
use crate::live::{LiveEvent, LiveLog};
use crate::prompt::granted;
use crate::request::CallLeases;
use crate::toolbox::{ToolDefinition, ToolInvocation, ToolNote, ToolReply, ToolResult, Toolbox};

/// Why a driver stops during an activity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interrupt {
    /// A person cancelled the run.
    Cancelled,
    /// The run's time is up.
    Deadline,
    /// The host is going away; the run goes on with the next one.
    Closing,
}

/// Checks a call against the granted tools and its tool's schema (SPEC RUN-6, LLM-2). Nothing is executed.
///
/// # Errors
/// The result that the model gets in place of an execution.
pub(crate) fn admit<'a>(
    tools: &[&'a ToolDefinition],
    call: &OpenCall,
) -> Result<(&'a ToolDefinition, Value), ToolResult> {
    if call.index >= MAX_CALLS_PER_REPLY {
        return Err(ToolResult::failure(
            ErrorCode::LimitExceeded,
            format!(
                "this call was not executed: a reply may make at most {MAX_CALLS_PER_REPLY} calls; make it again in \
                 your next reply if it is still needed"
            ),
        ));
    }
    let name = &call.call.name;
    let Some(definition) = tools.iter().find(|tool| tool.spec.name == *name) else {
        let names: Vec<_> = tools.iter().map(|tool| tool.spec.name.as_str()).collect();
        let granted = match names.as_slice() {
            [] => "no tools are granted to this run".to_owned(),
            names => format!("granted are {}", granted(names)),
        };
        let remedy = match name.as_str() {
            SAVE_CREDENTIAL => {
                "; it is for runs by an approved skill whose policy grants it and declares the credential"
            }
            _ => "",
        };
        let name = base::text::cut(name, 80);
        return Err(ToolResult::failure(
            ErrorCode::ToolNotAvailable,
            format!("there is no tool `{name}` here: {granted}{remedy}"),
        ));
    };
    let arguments = match &call.call.arguments {
        Arguments::Json(value) => value.clone(),
        Arguments::Malformed(text) => {
            let shown = base::text::cut(text, 200);
            return Err(ToolResult::failure(
                ErrorCode::InvalidArgs,
                format!("the arguments are not valid JSON; send one JSON object; you sent `{shown}`"),
            ));
        }
    };
    let arguments = check_arguments(&definition.spec.parameters, arguments)
        .map_err(|reason| ToolResult::failure(ErrorCode::InvalidArgs, reason))?;
    Ok((definition, arguments))
}

/// The outcome of a call.
pub(crate) struct CallOutcome {
    /// None when the call was left in flight: only on the way out of the host.
    pub(crate) reply: Option<ToolReply>,
    pub(crate) notes: Vec<ToolNote>,
    pub(crate) retried: bool,
    pub(crate) interrupt: Option<Interrupt>,
}

impl CallOutcome {
    /// The outcome of a call that was not executed.
    pub(crate) fn of(result: ToolResult) -> Self {
        Self { reply: Some(ToolReply::of(result)), notes: Vec::new(), retried: false, interrupt: None }
    }
}

/// Everything a call needs.
pub(crate) struct Execution<'a> {
    pub(crate) run: &'a RunId,
    pub(crate) call: &'a OpenCall,
    pub(crate) intent: &'a Intent,
    pub(crate) consents: &'a CallLeases,
    pub(crate) toolbox: &'a dyn Toolbox,
    pub(crate) timeout: Duration,
    pub(crate) time_left: Duration,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) live: &'a LiveLog,
    pub(crate) cancel: &'a CancellationToken,
    pub(crate) closing: &'a CancellationToken,
}

impl Execution<'_> {
    /// Executes the call, and ends it when the run is cancelled, its time is up, or the host goes away.
    pub(crate) async fn run(self) -> CallOutcome {
        let began = self.clock.monotonic();
        let kept = Mutex::new(Vec::new());
        let notes = |note: ToolNote| self.note(&kept, note);
        let stop = self.cancel.child_token();
        // The guest must not outlive this future, however it ends.
        let _stopper = stop.clone().drop_guard();
        let invocation = ToolInvocation {
            run: self.run,
            step: self.call.step,
            call_id: &self.call.call.id,
            name: &self.call.call.name,
            arguments: &self.intent.arguments,
            idempotency_key: &self.intent.idempotency_key,
            grant: self.intent.grant.as_ref(),
            consents: self.consents,
            began: self.intent.began.unwrap_or_else(|| self.clock.now()),
            notes: &notes,
            cancel: &stop,
        };
        let mut work = std::pin::pin!(self.attempt(invocation));
        let ended = tokio::select! {
            biased;
            () = self.cancel.cancelled() => Err((Some(Interrupt::Cancelled), ErrorCode::Cancelled)),
            done = &mut work => Ok(done),
            () = tokio::time::sleep(self.time_left) => Err((Some(Interrupt::Deadline), ErrorCode::Timeout)),
            () = self.overstay() => Err((None, ErrorCode::Timeout)),
            () = self.closed() => Err((Some(Interrupt::Closing), ErrorCode::OutcomeUnknown)),
        };
        let (reply, retried, interrupt) = match ended {
            // The host is going away and took the call with it.
            Ok((reply, retried)) if self.closing.is_cancelled() && was_stopped(&reply) => {
                (None, retried, Some(Interrupt::Closing))
            }
            Ok((reply, retried)) => (Some(reply), retried, None),
            Err((interrupt, code)) => {
                stop.cancel();
                // Its own last reply is better than any message from here, unless it only says that it was
                // stopped: it cannot know why.
                let (said, retried) = match tokio::time::timeout(STOP_GRACE, &mut work).await {
                    Ok((reply, retried)) => (Some(reply), retried),
                    Err(_) => (None, false),
                };
                let usage = said.as_ref().and_then(|reply| reply.usage);
                let requests = said.as_ref().map(|reply| reply.requests.clone()).unwrap_or_default();
                // A call without a reply may have read anything.
                let unheard = said.is_none() && self.intent.effects.open_world;
                let reply = match said {
                    Some(reply) if interrupt == Some(Interrupt::Cancelled) || !was_stopped(&reply) => Some(reply),
                    // Left in flight: the next host repeats it, or says that its outcome is unknown (SPEC DUR-2).
                    _ if interrupt == Some(Interrupt::Closing) => None,
                    _ => {
                        let took = self.clock.monotonic().saturating_sub(began);
                        let mut result = self.stopped(code).took(took);
                        if unheard {
                            result.provenance = Provenance::Web;
                        }
                        Some(ToolReply { result, usage, requests, asks: Vec::new() })
                    }
                };
                (reply, retried, interrupt)
            }
        };
        let reply = reply.map(bounded);
        let notes = std::mem::take(&mut *kept.lock());
        CallOutcome { reply, notes, retried, interrupt }
    }

    /// The call, tried once more when it failed in a way that may pass and a repetition is harmless (SPEC RUN-6). A call that
    /// the owner consented to is made once, also if its tool declares itself repeatable.
    async fn attempt(&self, invocation: ToolInvocation<'_>) -> (ToolReply, bool) {
        let reply = self.toolbox.call(invocation).await;
        let again = !reply.result.ok
            && reply.result.retryable
            && self.intent.effects.repeatable()
            && !reply.requests.iter().any(|request| request.consented || request.is_done_write())
            && !invocation.cancel.is_cancelled();
        if !again {
            return (reply, false);
        }
        let mut second = self.toolbox.call(invocation).await;
        second.requests.splice(0..0, reply.requests);
        second.usage = match (reply.usage, second.usage) {
            (Some(first), Some(second)) => Some(first.and(second)),
            (first, second) => second.or(first),
        };
        (second, true)
    }

    /// A call may be tried twice, and each try has the tool's own timeout.
    async fn overstay(&self) {
        let tries = if self.intent.effects.repeatable() { 2 } else { 1 };
        tokio::time::sleep(self.timeout * tries + OVERSTAY).await;
    }

    async fn closed(&self) {
        self.closing.cancelled().await;
        tokio::time::sleep(SHUTDOWN_GRACE).await;
    }

    fn note(&self, kept: &Mutex<Vec<ToolNote>>, note: ToolNote) {
        let note = match note {
            ToolNote::Log { level, message } => {
                ToolNote::Log { level: cut(level, 16), message: cut(message, MAX_NOTE_BYTES) }
            }
            ToolNote::Notice { message } => ToolNote::Notice { message: cut(message, MAX_NOTE_BYTES) },
            ToolNote::Progress { message, fraction } => {
                ToolNote::Progress { message: cut(message, MAX_NOTE_BYTES), fraction }
            }
        };
        if !matches!(note, ToolNote::Progress { .. }) {
            let mut kept = kept.lock();
            // The host's own notices are few, and no guest can crowd them out.
            if kept.len() < MAX_NOTES || matches!(note, ToolNote::Notice { .. }) {
                kept.push(note.clone());
            }
        }
        self.live.publish_hint(LiveEvent::ToolNote {
            at: self.clock.now(),
            step: self.call.step,
            call_id: self.call.call.id.clone(),
            tool: self.call.call.name.clone(),
            note,
        });
    }

    fn stopped(&self, code: ErrorCode) -> ToolResult {
        let message = match code {
            ErrorCode::Cancelled => "the run was cancelled while this call was in flight".to_owned(),
            _ => format!("the call was ended after {}", span(self.timeout.min(self.time_left))),
        };
        ToolResult::failure(code, message)
    }
}

/// Whether the call says that it was stopped from outside: that is no outcome of its own.
fn was_stopped(reply: &ToolReply) -> bool {
    reply.result.error_code == Some(ErrorCode::Cancelled)
}

/// The result for the model of a call that was in flight when the host stopped, and that may not be repeated (SPEC DUR-2).
pub(crate) fn outcome_unknown() -> ToolResult {
    ToolResult::failure(
        ErrorCode::OutcomeUnknown,
        "the host stopped while this call was in flight: it may or may not have taken effect; check before repeating it",
    )
}

/// Keeps an output that should have been a pointer to a file from filling the conversation.
fn bounded(mut reply: ToolReply) -> ToolReply {
    let bytes = reply.result.output.len();
    if bytes > MAX_OUTPUT_BYTES {
        let kept = cut(std::mem::take(&mut reply.result.output), MAX_OUTPUT_BYTES);
        reply.result.output =
            format!("{kept}\n[cut: the output has {bytes} bytes, of which {MAX_OUTPUT_BYTES} are shown]");
    }
    reply
}

/// The text, cut to at most `bytes` between two characters.
fn cut(mut text: String, bytes: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes));
    text
}

#[cfg(test)]
mod tests {
    use llm::{RequestedCall, ToolSpec};
    use serde_json::json;

    use super::*;
    use crate::toolbox::ToolEffects;

    fn read() -> ToolDefinition {
        let parameters = json!({
            "type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}},
            "required": ["path"], "additionalProperties": false,
        });
        ToolDefinition {
            spec: ToolSpec { name: "read".into(), description: String::new(), parameters },
            effects: ToolEffects::default(),
            timeout: Duration::from_secs(1),
            component: None,
            most: None,
        }
    }

    fn check(name: &str, arguments: Arguments) -> Result<Value, (ErrorCode, String)> {
        check_at(0, name, arguments)
    }

    fn check_at(index: usize, name: &str, arguments: Arguments) -> Result<Value, (ErrorCode, String)> {
        let call = RequestedCall { id: "c".into(), name: name.into(), arguments };
        let tool = read();
        admit(&[&tool], &OpenCall::of(1, index, call))
            .map(|(_, arguments)| arguments)
            .map_err(|result| (result.error_code.unwrap(), result.output))
    }

    #[test]
    fn a_call_that_fits_is_admitted_with_its_slips_mended() {
        assert_eq!(
            check("read", Arguments::Json(json!({"path": "a", "limit": "5"}))),
            Ok(json!({"path": "a", "limit": 5}))
        );
    }

    #[test]
    fn a_call_that_does_not_fit_is_refused_with_advice() {
        let (code, message) = check("delete", Arguments::Json(json!({}))).unwrap_err();
        assert_eq!(
            (code, message.as_str()),
            (ErrorCode::ToolNotAvailable, "there is no tool `delete` here: granted are `read`")
        );
        let (code, message) = check("read", Arguments::Json(json!({"file_path": "a"}))).unwrap_err();
        assert_eq!(code, ErrorCode::InvalidArgs);
        assert!(message.contains("`path`"), "{message}");
        let (code, message) = check("read", Arguments::Malformed("{\"path\": ".into())).unwrap_err();
        assert_eq!(code, ErrorCode::InvalidArgs);
        assert!(message.contains("not valid JSON"), "{message}");
        // A name from a model is not a place to hide a novel.
        let (_, message) = check(&"x".repeat(10_000), Arguments::Json(json!({}))).unwrap_err();
        assert!(message.len() < 200);
    }

    #[test]
    fn a_reply_makes_so_many_calls_and_no_more() {
        let arguments = || Arguments::Json(json!({"path": "a"}));
        assert!(check_at(MAX_CALLS_PER_REPLY - 1, "read", arguments()).is_ok());
        let (code, message) = check_at(MAX_CALLS_PER_REPLY, "read", arguments()).unwrap_err();
        assert_eq!(code, ErrorCode::LimitExceeded);
        assert!(message.contains("not executed") && message.contains("at most 32 calls"), "{message}");
    }

    #[test]
    fn an_output_that_is_too_long_is_cut_and_says_so() {
        let long = bounded(ToolReply::of(ToolResult::success("ä".repeat(40_000))));
        assert!(long.result.output.len() < MAX_OUTPUT_BYTES + 100);
        assert!(long.result.output.ends_with("[cut: the output has 80000 bytes, of which 65536 are shown]"));
        let short = bounded(ToolReply::of(ToolResult::success("x")));
        assert_eq!(short.result.output, "x");
    }
}
