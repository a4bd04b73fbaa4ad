//! The events of a run, as they are stored: append-only, one record each, in order.
//!
//! Everything else about a run (its record, its conversation, its trace, its log) is a fold of these events, so a crash
//! at any point leaves a prefix that means something. Old events must stay readable: add fields with defaults, never
//! change the meaning of one.

use base::{AgentName, ConsentRecord, ContentHash, RunId, Timestamp};
use grants::{Grant, RunConsent};
use llm::{ChatReply, MicroUsd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::artifact::Artifact;
use crate::ceiling::CeilingRaise;
use crate::failure::{FailureSummary, RunError};
use crate::money::RunMoney;
use crate::request::OutgoingRequest;
use crate::rules::RunRules;
use crate::skill::{InstalledSkill, SkillLabel};
use crate::status::RunStatus;
use crate::toolbox::{SandboxUsage, ToolEffects, ToolNote, ToolResult};
use crate::wait::{Approval, Question, Scope};

/// An event and when it happened.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredEvent {
    /// When, by the wall clock.
    pub at: Timestamp,
    /// Milliseconds that the attempt had worked, by the monotonic clock of its hosts, and by the wall clock between two of them.
    /// None in events of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worked_ms: Option<u64>,
    /// The event, without its envelope.
    pub event: RunEvent,
}

/// One thing that happened to a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunEvent {
    /// The run was accepted.
    Created {
        /// Whose run it is.
        agent: AgentName,
        /// The full text of the task.
        task: String,
        /// The tools granted, by exact name.
        tools: Vec<String>,
        /// How many model calls it may take.
        max_iterations: u32,
        /// Milliseconds of wall clock it may take.
        timeout_ms: u64,
        /// The powers of the run. The loop does not look inside.
        #[serde(rename = "settings", deserialize_with = "Grant::stored")]
        grant: Box<Grant>,
        /// The idempotency key of the command that asked for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
        /// Energy drained for it.
        energy: f64,
        /// Whether irreversible and outward actions wait for consent (SPEC APPR-1).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        approval_required: bool,
        /// Whether it may ask its user and owner.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        may_ask: bool,
        /// Whether it was started to be left alone.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        detached: bool,
        /// Whether its access is settled: the owner agreed to a plan, and is asked for nothing more (SPEC LAND-6).
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        settled: bool,
        /// Its budget in credits (SPEC EN-2); `None`: not counted.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credits: Option<u64>,
        /// The skill it works by.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        skill: Option<SkillLabel>,
        /// The untrusted sources of its inputs (SPEC TAINT-1).
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        web_sources: Vec<String>,
        /// Whether a model requested it.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        by_model: bool,
        /// The rules that it is folded by. Runs of earlier versions have the defaults.
        #[serde(default)]
        rules: RunRules,
        /// Its cap in US dollars, and the prices of its models.
        #[serde(default, skip_serializing_if = "RunMoney::is_default")]
        money: RunMoney,
    },
    /// A driver took it up for the first time.
    Started,
    /// A driver took it up again after the host had stopped.
    Resumed,
    /// The model's reply is complete.
    ModelReplied {
        /// The step this reply begins, from 1.
        step: u32,
        /// The reply, its call ids made unique and calls written as text turned into calls.
        reply: ChatReply,
        /// Milliseconds of the request, including retries.
        duration_ms: u64,
        /// Whether a call was read out of the text (SPEC LLM-2).
        #[serde(default)]
        recovered_call: bool,
        /// Tools of the calls that were taken out of the reply because it was cut off, filtered or refused: arguments may
        /// be incomplete, so they are neither executed nor stored.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        dropped_calls: Vec<String>,
        /// Its cost in credits.
        #[serde(default, skip_serializing_if = "is_zero")]
        credits: u64,
    },
    /// A tool call is about to be executed (SPEC DUR-2).
    ToolIntended {
        /// The step it belongs to.
        step: u32,
        /// The model's id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// The arguments it gets: those of the model, slips mended.
        arguments: Value,
        /// The same for every repetition of this call.
        idempotency_key: String,
        /// The effects of the call, as declared at the time of the intent.
        effects: ToolEffects,
        /// The component behind it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        component: Option<ContentHash>,
        /// The consent that this call uses up, or that covers it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approval: Option<String>,
        /// The power that came with the consent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        grant: Option<RunConsent>,
        /// Credits set aside for it (SPEC EN-2).
        #[serde(default, skip_serializing_if = "is_zero")]
        reserved: u64,
        /// When the call was first made; none: now.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        began: Option<Timestamp>,
    },
    /// A tool call has its result. Without an intent before it, the host refused the call and executed nothing.
    ToolReturned {
        /// The step it belongs to.
        step: u32,
        /// The model's id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// The result of the call.
        result: ToolResult,
        /// The resources that the sandbox used.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<SandboxUsage>,
        /// The network requests of the call.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        requests: Vec<OutgoingRequest>,
        /// Lines the call wrote to the run's log.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        notes: Vec<ToolNote>,
        /// Whether the host tried a transient failure again before giving this result (SPEC RUN-6).
        #[serde(default)]
        retried: bool,
        /// Whether the host had stopped between the intent and this result.
        #[serde(default)]
        recovered: bool,
        /// Its cost in credits; `None`: its reservation.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        credits: Option<u64>,
        /// The requests that it was refused by the owner, or for want of the owner's consent, in words.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        refused: Vec<String>,
        /// The call is held: the owner is asked, and after a consent it is made again. The model does not see this result
        /// unless the owner refuses.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        held: bool,
    },
    /// The host told the model something.
    Told {
        /// The step after which.
        step: u32,
        /// Reason for the message.
        reason: TellReason,
        /// Text of the message.
        text: String,
    },
    /// The owner told the run something while it worked, or beside a refusal.
    OwnerSaid {
        /// The step last begun; 0 before the first.
        step: u32,
        /// Text of the message.
        text: String,
        /// Whether the model was at work on a reply: its request was sent before, so the next one delivers this.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        while_asked: bool,
        /// Whose word it is.
        consent: ConsentRecord,
    },
    /// The model asks the user something, and the run waits (SPEC ASK-1).
    Asked {
        /// The question, with its choices.
        question: Question,
    },
    /// The user answered a question.
    Answered {
        /// Id of the question.
        question: String,
        /// Text of the answer.
        answer: String,
        /// Whose word it is.
        consent: ConsentRecord,
    },
    /// The owner raised a ceiling of the run; follows the answer in the same batch (SPEC RUN-16).
    CeilingRaised {
        /// The ceiling and the amount.
        raise: CeilingRaise,
    },
    /// Actions need the owner's consent, and the run waits (SPEC APPR-1).
    ApprovalAsked {
        /// The request for consent.
        approval: Approval,
    },
    /// The owner decided about a request.
    ApprovalDecided {
        /// Id of the request.
        approval: String,
        /// Whether the owner consented.
        granted: bool,
        /// How long the decision lasts.
        scope: Scope,
        /// The actions that are allowed, by hash, when not all of them are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        only: Vec<ContentHash>,
        /// Why, in the owner's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// Whose word it is.
        consent: ConsentRecord,
    },
    /// A failed run is tried again, with a conversation that begins anew (SPEC RUN-10).
    Retried {
        /// Which attempt begins, from 1: the first was 0.
        attempt: u32,
        /// Guidance for the attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        guidance: Option<String>,
        /// New settings, when it was given more than before.
        #[serde(default, rename = "settings", skip_serializing_if = "Option::is_none")]
        grant: Option<Box<Grant>>,
        /// How many model calls this attempt may take.
        max_iterations: u32,
        /// Whose word it is, when more was given.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        consent: Option<ConsentRecord>,
        /// The new cap in US dollars over all attempts, when it was given another.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usd: Option<MicroUsd>,
    },
    /// The run is over.
    Finished {
        /// How: a terminal status.
        status: RunStatus,
        /// The answer; for a run without one, the last thing the model said.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// Why there is no answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error: Option<RunError>,
        /// Energy drained at the end.
        energy: f64,
        /// The consequences of a failure for a retry.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failure: Option<FailureSummary>,
        /// The files it produced.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<Artifact>,
        /// The skills that it left behind.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        installed_skills: Vec<InstalledSkill>,
    },
}

/// Why the host told the model something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TellReason {
    /// Its reply had neither text nor calls.
    EmptyReply,
    /// Its text may or may not have been meant as a call.
    AmbiguousCall,
    /// Its text was cut off at the limit of output tokens, and goes on in the next reply.
    CutOff,
    /// It was cut off within a tool call, which was not executed.
    CutOffCall,
    /// It goes in circles (SPEC RUN-5).
    Repetition,
    /// The owner decided about a call that had been refused.
    Decision,
    /// Too many of its actions were refused (SPEC RUN-5).
    Refusals,
    /// The owner said something while it wrote its answer.
    Heard,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// The key of an event: the run's id and its place in the run, so that a prefix scan reads one run in order.
pub(crate) fn event_key(run: &RunId, sequence: u64) -> String {
    format!("{run}/{sequence:08}")
}

/// The prefix of a run's events.
pub(crate) fn event_prefix(run: &RunId) -> String {
    format!("{run}/")
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_stored_form_is_stable() {
        let event = StoredEvent {
            at: Timestamp::from_millis(1),
            worked_ms: None,
            event: RunEvent::ToolIntended {
                step: 2,
                call_id: "c".into(),
                tool: "read".into(),
                arguments: json!({"path": "a"}),
                idempotency_key: "run_1-2-0".into(),
                effects: ToolEffects::default(),
                component: None,
                approval: None,
                grant: None,
                reserved: 0,
                began: None,
            },
        };
        let text = serde_json::to_string(&event).unwrap();
        expect![[r#"{"at":1,"event":{"type":"tool_intended","step":2,"call_id":"c","tool":"read","arguments":{"path":"a"},"idempotency_key":"run_1-2-0","effects":{"readOnly":false,"destructive":true,"idempotent":false,"openWorld":true}}}"#]]
            .assert_eq(&text);
        assert_eq!(serde_json::from_str::<StoredEvent>(&text).unwrap(), event);
    }

    #[test]
    fn keys_sort_like_sequences() {
        let run = RunId::parse("run_1").unwrap();
        assert!(event_key(&run, 9) < event_key(&run, 10));
        assert!(event_key(&run, 3).starts_with(&event_prefix(&run)));
        // A run whose id begins with another's is not read with it.
        assert!(!event_key(&RunId::parse("run_12").unwrap(), 0).starts_with(&event_prefix(&run)));
    }
}
