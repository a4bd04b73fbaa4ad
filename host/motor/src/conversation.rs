//! The conversation with the model: a fold of the run's events, and the next step.
//!
//! A tool call and its result are never separated: a message of the host waits until every call of a reply has its
//! result, because endpoints refuse a history with a message in between.

use std::collections::{HashSet, VecDeque};

use base::text::cut;
use base::{Provenance, Timestamp};
use grants::RunConsent;
use llm::{Arguments, ChatReply, FinishReason, Message, RequestedCall};
use serde_json::Value;

use crate::compact::{Entry, OWNER, compacted};
use crate::config::{SUMMARY_OUTPUT, SUMMARY_RESULTS};
use crate::event::{RunEvent, TellReason};
use crate::failure::LastToolResult;
use crate::request::OutgoingRequest;
use crate::rules::RunRules;
use crate::toolbox::{ToolEffects, ToolResult};

/// Stands in the conversation for a reply that said nothing.
const EMPTY_REPLY: &str = "[empty reply]";

/// A call that the model asked for and that has no result yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct OpenCall {
    pub(crate) step: u32,
    /// Its place in the reply, from 0.
    pub(crate) index: usize,
    pub(crate) call: RequestedCall,
    /// Set when an intent is in the history: the call may have been executed.
    pub(crate) intent: Option<Intent>,
    /// Set while the owner is asked about requests that the call was refused.
    pub(crate) held: Option<HeldCall>,
    /// How often it was held.
    pub(crate) holds: u32,
    /// When it was first made.
    pub(crate) began: Option<Timestamp>,
}

/// A call that is made again when the owner consents.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct HeldCall {
    /// Its result without the requests that it was refused.
    pub(crate) result: ToolResult,
    /// The power that came with the owner's consent to the call.
    pub(crate) grant: Option<RunConsent>,
}

/// A call that was about to be executed.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Intent {
    pub(crate) arguments: Value,
    /// The power that came with the owner's consent.
    pub(crate) grant: Option<RunConsent>,
    /// Credits reserved for the call.
    pub(crate) reserved: u64,
    pub(crate) idempotency_key: String,
    pub(crate) effects: ToolEffects,
    /// When the call was first made; none: an earlier version did not say.
    pub(crate) began: Option<Timestamp>,
}

impl OpenCall {
    /// A call that nothing was done about yet.
    pub(crate) fn of(step: u32, index: usize, call: RequestedCall) -> Self {
        Self { step, index, call, intent: None, held: None, holds: 0, began: None }
    }

    /// The arguments as they were executed, or else as the model wrote them.
    pub(crate) fn arguments(&self) -> Value {
        match (&self.intent, &self.call.arguments) {
            (Some(intent), _) => intent.arguments.clone(),
            (None, Arguments::Json(value)) => value.clone(),
            (None, Arguments::Malformed(text)) => Value::String(text.clone()),
        }
    }
}

/// The next step of the run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum NextStep {
    /// Ask the model for this step.
    AskModel { step: u32 },
    /// Deal with a call of the last reply.
    Call(Box<OpenCall>),
    /// Calls were in flight when the host stopped, or are about to be made.
    InFlight,
    /// The last reply called no tools: judge it.
    Judge(PendingVerdict),
}

/// A reply that called no tools and has not been judged.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PendingVerdict {
    /// Its text, behind that of the replies which it continues.
    pub(crate) text: String,
    /// Whether it says nothing, or adds nothing to a text that was cut off.
    pub(crate) is_silent: bool,
    pub(crate) finish: FinishReason,
    /// The provider's words about why it ended.
    pub(crate) detail: Option<String>,
    /// Tools of the calls that were dropped.
    pub(crate) dropped_calls: Vec<String>,
}

/// The conversation so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct Conversation {
    /// The complete conversation, from which requests are made.
    entries: Vec<Entry>,
    open: VecDeque<OpenCall>,
    /// The places of the calls of the last reply that have their result.
    closed: Vec<usize>,
    /// Messages of the host that wait until every call has its result.
    held: Vec<String>,
    /// Messages of the owner that wait for the next request.
    unheard: Vec<String>,
    unjudged: Option<PendingVerdict>,
    /// The text that the next reply continues.
    unfinished: String,
    used_ids: HashSet<String>,
    step: u32,
    corrections: u32,
    cut_offs: u32,
    last_text: Option<String>,
    /// Something from the network has entered it.
    tainted: bool,
    last_tool: Option<String>,
    /// The latest results, cut.
    results: VecDeque<LastToolResult>,
}

impl Conversation {
    /// Takes in an event. Gives back the call that a result closes.
    pub(crate) fn apply(&mut self, event: &RunEvent) -> Option<OpenCall> {
        match event {
            RunEvent::Created { task, web_sources, .. } => {
                self.tainted = !web_sources.is_empty();
                self.entries.push(Entry::Said { text: task.clone() });
            }
            RunEvent::ModelReplied { step, reply, dropped_calls, .. } => self.reply(*step, reply, dropped_calls),
            RunEvent::ToolIntended { call_id, arguments, idempotency_key, effects, grant, reserved, began, .. } => {
                if let Some(open) = self.open_mut(call_id) {
                    (open.held, open.began) = (None, *began);
                    open.intent = Some(Intent {
                        arguments: arguments.clone(),
                        grant: grant.clone(),
                        reserved: *reserved,
                        idempotency_key: idempotency_key.clone(),
                        effects: *effects,
                        began: *began,
                    });
                }
            }
            RunEvent::ToolReturned { call_id, result, requests, held: true, .. } => {
                self.reads(result, requests);
                if let Some(open) = self.open_mut(call_id) {
                    let grant = open.intent.take().and_then(|intent| intent.grant);
                    open.held = Some(HeldCall { result: result.clone(), grant });
                    open.holds += 1;
                }
            }
            RunEvent::ToolReturned { call_id, tool, result, requests, .. } => {
                let at = self.open.iter().position(|open| open.call.id == *call_id);
                let closed = at.and_then(|at| self.open.remove(at));
                // Results stand in the order of the calls, also behind one that was held.
                let index = closed.as_ref().map_or(usize::MAX, |call| call.index);
                let later = self.closed.iter().filter(|closed| **closed > index).count();
                let entry = Entry::Result {
                    call_id: call_id.clone(),
                    tool: tool.clone(),
                    result: result.clone(),
                    tainted: self.tainted,
                };
                self.entries.insert(self.entries.len().saturating_sub(later), entry);
                self.closed.push(index);
                self.reads(result, requests);
                self.last_tool = Some(tool.clone());
                if self.results.len() == SUMMARY_RESULTS {
                    self.results.pop_front();
                }
                self.results.push_back(LastToolResult {
                    tool: tool.clone(),
                    ok: result.ok,
                    error_code: result.error_code,
                    output: cut(&result.output, SUMMARY_OUTPUT),
                });
                self.release();
                return closed;
            }
            RunEvent::Told { reason, text, .. } => {
                match reason {
                    TellReason::EmptyReply | TellReason::AmbiguousCall => {
                        self.corrections += 1;
                        self.unjudged = None;
                    }
                    TellReason::CutOff | TellReason::CutOffCall => {
                        self.cut_offs += 1;
                        let cut = self.unjudged.take().filter(|_| *reason == TellReason::CutOff);
                        self.unfinished = cut.map(|cut| cut.text).unwrap_or_default();
                    }
                    TellReason::Heard => self.unjudged = None,
                    TellReason::Repetition | TellReason::Decision | TellReason::Refusals => {}
                }
                self.held.push(format!("[host] {text}"));
                self.release();
            }
            RunEvent::OwnerSaid { text, while_asked, .. } => {
                self.unheard.push(format!("{OWNER}{text}"));
                if !while_asked {
                    self.release();
                }
            }
            RunEvent::Resumed | RunEvent::Finished { .. } => {
                // A request that was under way is made again, with all that was said meanwhile.
                self.release();
                // Content that a call in flight has read may be in the workspace by now.
                let mut intents = self.open.iter().filter_map(|open| open.intent.as_ref());
                self.tainted |= intents.any(|intent| intent.effects.open_world);
            }
            RunEvent::Retried { .. } => self.begin_again(),
            RunEvent::Started
            | RunEvent::Asked { .. }
            | RunEvent::Answered { .. }
            | RunEvent::CeilingRaised { .. }
            | RunEvent::ApprovalAsked { .. }
            | RunEvent::ApprovalDecided { .. } => {}
        }
        None
    }

    fn open_mut(&mut self, call_id: &str) -> Option<&mut OpenCall> {
        self.open.iter_mut().find(|open| open.call.id == call_id)
    }

    /// Bytes that came back count as read, independent of the provenance that the call declares.
    fn reads(&mut self, result: &ToolResult, requests: &[OutgoingRequest]) {
        self.tainted |= result.provenance == Provenance::Web || requests.iter().any(|asked| asked.status.is_some());
    }

    /// A new attempt has the task and the owner's messages: the failure is in its prompt. The workspace is the same, so
    /// content that the run has read may come up again.
    fn begin_again(&mut self) {
        let mut index = 0;
        self.entries.retain(|entry| {
            index += 1;
            index == 1 || entry.is_of_owner()
        });
        self.open.clear();
        self.closed.clear();
        self.held.clear();
        self.unjudged = None;
        self.unfinished.clear();
        self.corrections = 0;
        self.cut_offs = 0;
        self.last_text = None;
        self.last_tool = None;
        self.results.clear();
        self.release();
    }

    fn reply(&mut self, step: u32, reply: &ChatReply, dropped_calls: &[String]) {
        let (text, calls) = (reply.text.as_str(), reply.tool_calls.as_slice());
        let is_silent = text.trim().is_empty();
        self.step = step;
        self.closed.clear();
        self.last_tool = None;
        self.used_ids.extend(calls.iter().map(|call| call.id.clone()));
        // Endpoints refuse an assistant message that says nothing, and recorded models count these messages.
        let said = if is_silent && calls.is_empty() { EMPTY_REPLY } else { text };
        self.entries.push(Entry::Reply { text: said.to_owned(), calls: calls.to_vec(), state: reply.state.clone() });
        let whole = std::mem::take(&mut self.unfinished) + text;
        if !is_silent {
            self.last_text = Some(if calls.is_empty() { whole.clone() } else { text.to_owned() });
        }
        if !calls.is_empty() {
            (self.corrections, self.cut_offs) = (0, 0);
            self.open = calls.iter().enumerate().map(|(index, call)| OpenCall::of(step, index, call.clone())).collect();
        } else if reply.finish == FinishReason::Paused {
            // The provider wants the same conversation again, this reply included.
            self.unfinished = whole;
        } else {
            self.unjudged = Some(PendingVerdict {
                is_silent: whole.trim().is_empty() || (is_silent && self.cut_offs > 0),
                text: whole,
                finish: reply.finish,
                detail: reply.finish_detail.clone(),
                dropped_calls: dropped_calls.to_vec(),
            });
        }
    }

    fn release(&mut self) {
        if self.open.is_empty() && !self.held.is_empty() {
            let text = std::mem::take(&mut self.held).join("\n");
            self.entries.push(Entry::Said { text });
        }
        // A reply that is judged, or that the model goes on with, stays the last message until then.
        if self.open.is_empty() && !self.entries.last().is_some_and(Entry::is_reply) {
            self.entries.extend(self.unheard.drain(..).map(|text| Entry::Said { text }));
        }
    }

    /// Whether the owner said something that no request has delivered yet.
    pub(crate) fn has_unheard(&self) -> bool {
        !self.unheard.is_empty()
    }

    /// The next step, if the run is not over.
    pub(crate) fn next(&self) -> NextStep {
        match (self.open.front(), &self.unjudged) {
            _ if self.open.iter().any(|open| open.intent.is_some()) => NextStep::InFlight,
            (Some(open), _) => NextStep::Call(Box::new(open.clone())),
            (None, Some(reply)) => NextStep::Judge(reply.clone()),
            (None, None) => NextStep::AskModel { step: self.step + 1 },
        }
    }

    /// The messages for the next request, with at most `budget` bytes unless the task alone has more (SPEC RUN-11).
    pub(crate) fn messages(&self, budget: usize, rules: RunRules) -> Vec<Message> {
        compacted(&self.entries, budget, rules)
    }

    /// Whether the model has used this call id before.
    pub(crate) fn has_used(&self, call_id: &str) -> bool {
        self.used_ids.contains(call_id)
    }

    /// The step last begun; 0 before the first reply.
    pub(crate) fn step(&self) -> u32 {
        self.step
    }

    /// Unusable replies since the last one that called tools.
    pub(crate) fn corrections(&self) -> u32 {
        self.corrections
    }

    /// Whether the next reply continues the text of one that was cut off or paused.
    pub(crate) fn is_continued(&self) -> bool {
        !self.unfinished.is_empty()
    }

    /// Replies that were cut off since the last one that called tools.
    pub(crate) fn cut_offs(&self) -> u32 {
        self.cut_offs
    }

    /// The last thing the model said in words: the partial result of a run that has no answer.
    pub(crate) fn last_text(&self) -> Option<&str> {
        self.last_text.as_deref()
    }

    /// The calls of the last reply that have no result yet, the next one first.
    pub(crate) fn open_calls(&self) -> impl Iterator<Item = &OpenCall> {
        self.open.iter()
    }

    /// The calls whose intent is in the history, in the order of the reply.
    pub(crate) fn in_flight(&self) -> Vec<OpenCall> {
        self.open.iter().filter(|open| open.intent.is_some()).cloned().collect()
    }

    /// The latest results, oldest first, cut.
    pub(crate) fn latest_results(&self) -> Vec<LastToolResult> {
        self.results.iter().cloned().collect()
    }

    /// The last action of the run, for people.
    pub(crate) fn last_step(&self) -> Option<String> {
        let doing = self.open.front().map(|open| open.call.name.as_str()).or(self.last_tool.as_deref());
        (self.step > 0).then(|| format!("step {}: {}", self.step, doing.unwrap_or("model reply")))
    }
}

#[cfg(test)]
mod tests;
