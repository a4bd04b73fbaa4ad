//! Commands of people to a run without a driver: take an answer, a decision, or another attempt.
//!
//! A command is applied by a driver made for it, which is then the only writer of the run as every driver is. It is
//! acknowledged when it is durable, and refused with the reason when it comes twice, late, or for something else
//! (SPEC DUR-4, APPR-1).

use std::time::Duration;

use base::{ContentHash, ErrorCode, Provenance, Refusal, RefusalCode, RunId, Timestamp};
use consent::{AnswerAuthority, Consent};
use grants::Grant;
use llm::MicroUsd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::ceiling;
use crate::config::{MAX_OWNER_MESSAGES, MAX_WORDS_BYTES, MotorConfig};
use crate::event::{RunEvent, TellReason};
use crate::guard::GuardVerdict;
use crate::host_tools::REQUEST_APPROVAL;
use crate::journal::{Journal, JournalError, StoredReply};
use crate::record::RunRecord;
use crate::state::RunState;
use crate::status::{IllegalTransition, RunStatus, StatusEvent};
use crate::toolbox::ToolResult;
use crate::wait::{Approval, ApprovalItem, Question, Scope, Waiting};

/// The answer to a run's question.
#[derive(Debug, Clone)]
pub struct QuestionAnswer {
    /// Text of the answer.
    pub text: String,
    /// The question that is meant; none: whichever waits.
    pub question: Option<String>,
    /// Whose word it is.
    pub consent: AnswerAuthority,
    /// Giving the same answer again with the same key is no second answer.
    pub key: Option<String>,
}

/// The owner's decision about a run's request for consent.
#[derive(Debug, Clone)]
pub struct ApprovalDecision {
    /// The request that is meant; none: whichever waits.
    pub approval: Option<String>,
    /// The actions the owner was shown, by hash; empty: not looked at.
    pub actions: Vec<ContentHash>,
    /// Whether it is allowed.
    pub grant: bool,
    /// The actions that are allowed, by hash, when not all of them are.
    pub only: Vec<ContentHash>,
    /// How long the decision lasts.
    pub scope: Scope,
    /// Why, for the model.
    pub reason: Option<String>,
    /// Whose word it is.
    pub consent: Consent,
    /// Deciding the same again with the same key is no second decision.
    pub key: Option<String>,
}

/// Another attempt at a failed run.
#[derive(Debug, Clone, Default)]
pub struct RetryRequest {
    /// Guidance for the new attempt.
    pub guidance: Option<String>,
    /// The run's settings from now on, when it gets more than before.
    pub grant: Option<Box<Grant>>,
    /// Model calls of the attempt. Default 15.
    pub max_iterations: Option<u32>,
    /// Whose word it is; needed when it gets more than before.
    pub consent: Option<Consent>,
    /// Asking again with the same key starts no further attempt.
    pub key: Option<String>,
    /// The cap of the run in US dollars from now on, over all attempts.
    pub usd: Option<MicroUsd>,
}

/// Something that the owner tells a run while it works. It grants nothing.
#[derive(Debug, Clone)]
pub struct OwnerMessage {
    /// Text of the message, 1 to 16384 bytes.
    pub text: String,
    /// Whose word it is.
    pub consent: Consent,
    /// Sending it again with the same key says it once.
    pub key: Option<String>,
}

/// The effect of a message: it is durable, and the next request to the model delivers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TellReply {
    /// Id of the run.
    pub run_id: RunId,
    /// The last step begun; 0 before the first.
    pub step: u32,
    /// Number of messages that the run has been told, with this one.
    pub messages: u32,
}

/// The effect of an answer or a decision.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandReply {
    /// Id of the run.
    pub run_id: RunId,
    /// The run's status before the command.
    pub previous_status: RunStatus,
    /// The run's status after the command.
    pub new_status: RunStatus,
    /// Id of the question or of the request for consent that was answered.
    pub about: String,
}

/// The effect of a retry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RetryReply {
    /// Id of the run.
    pub run_id: RunId,
    /// The attempt that began: the first was 0.
    pub attempt_index: u32,
    /// The run's status after the command.
    pub status: RunStatus,
}

/// Something that is ordered.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    Respond(QuestionAnswer),
    Approve(ApprovalDecision),
    Retry(RetryRequest),
    Tell(OwnerMessage),
}

impl Command {
    pub(crate) fn key(&self) -> Option<&str> {
        match self {
            Self::Respond(QuestionAnswer { key, .. }) | Self::Approve(ApprovalDecision { key, .. }) => key.as_deref(),
            Self::Retry(RetryRequest { key, .. }) | Self::Tell(OwnerMessage { key, .. }) => key.as_deref(),
        }
    }

    /// The identity of the command, without its sender and its time.
    pub(crate) fn fingerprint(&self) -> ContentHash {
        base::canonical::hash(&match self {
            Self::Respond(QuestionAnswer { text, question, .. }) => json!(["respond", text, question]),
            Self::Approve(ApprovalDecision { approval, actions, grant, only, scope, reason, .. }) => {
                json!(["approve", approval, actions, grant, only, scope, reason])
            }
            Self::Retry(RetryRequest { guidance, grant, max_iterations, usd: None, .. }) => {
                json!(["retry", guidance, grant, max_iterations])
            }
            Self::Retry(RetryRequest { guidance, grant, max_iterations, usd, .. }) => {
                json!(["retry", guidance, grant, max_iterations, usd])
            }
            Self::Tell(OwnerMessage { text, .. }) => json!(["tell", text]),
        })
    }

    /// The command, bound to the run's current question if it names none: a repeated command must not
    /// become the answer to the next question.
    pub(crate) fn meant_for(mut self, record: &RunRecord) -> Self {
        let waiting = || record.waiting.as_ref().map(|waiting| waiting.id().to_owned());
        match &mut self {
            Self::Respond(QuestionAnswer { question: about, .. })
            | Self::Approve(ApprovalDecision { approval: about, .. }) => {
                *about = about.take().or_else(waiting);
            }
            Self::Retry(_) | Self::Tell(_) => {}
        }
        self
    }

    /// Whether a run with this head could take it at all. The driver decides; this saves making one.
    pub(crate) fn fits(&self, record: &RunRecord) -> Result<(), Refusal> {
        let status = record.status;
        let refused = |event| Err(illegal(IllegalTransition { status, event }.to_string()));
        match self {
            Self::Respond(_) | Self::Approve(_) => match (&record.waiting, self) {
                (Some(Waiting::Input(_)), Self::Respond(_)) | (Some(Waiting::Approval(_)), Self::Approve(_)) => Ok(()),
                (Some(Waiting::Input(_)), _) => {
                    Err(illegal(format!("run `{}` waits for an answer, not for an approval", record.id))
                        .with_remedy(format!("`motor task respond {}`", record.id)))
                }
                (Some(Waiting::Approval(_)), _) => {
                    Err(illegal(format!("run `{}` waits for an approval, not for an answer", record.id))
                        .with_remedy(format!("`motor task approve {}`", record.id)))
                }
                (None, _) => Err(illegal(format!(
                    "run `{}` is {status} and asks nothing: it was answered already, or never asked",
                    record.id
                ))),
            },
            Self::Retry(_) if status != RunStatus::Failed => refused(StatusEvent::Retry),
            Self::Retry(_) if record.attempts_left() == 0 => {
                Err(illegal(format!("run `{}` has used its {} attempts", record.id, record.rules.max_attempts))
                    .with_remedy("start a new run with what was learnt"))
            }
            Self::Retry(_) => Ok(()),
            Self::Tell(_) => listens(record),
        }
    }
}

/// Whether the run takes messages of its owner now.
fn listens(record: &RunRecord) -> Result<(), Refusal> {
    let (id, status) = (&record.id, record.status);
    match (&record.waiting, status) {
        (Some(Waiting::Input(_)), _) => Err(illegal(format!("run `{id}` waits for an answer: say it there"))
            .with_remedy(format!("`motor task respond {id}`"))),
        (Some(Waiting::Approval(_)), _) => {
            Err(illegal(format!("run `{id}` waits for an approval: a refusal can say what to do instead"))
                .with_remedy(format!("`motor task approve {id}`")))
        }
        (None, RunStatus::Failed) if record.attempts_left() > 0 => {
            Err(illegal(format!("run `{id}` has failed and hears nothing any more"))
                .with_remedy(format!("`motor task retry {id} --guidance \"…\"`")))
        }
        (None, _) if status.is_terminal() => Err(illegal(format!("run `{id}` is {status} and hears nothing any more"))
            .with_remedy("start a new run: `motor act \"…\"`; `motor task retry` is for runs that failed")),
        (None, _) if record.owner_messages >= MAX_OWNER_MESSAGES => {
            Err(illegal(format!("run `{id}` was told {MAX_OWNER_MESSAGES} things, the most that is possible"))
                .with_remedy(format!("`motor task cancel {id}`, and start a run with a better task")))
        }
        (None, _) => Ok(()),
    }
}

/// The event of a message. `while_asked`: a request to the model is under way, which does not hold it.
///
/// # Errors
/// If no later request of the attempt could deliver it, or the text is empty or too long.
pub(crate) fn tell(record: &RunRecord, message: &OwnerMessage, while_asked: bool) -> Result<CommandEffect, Refusal> {
    check_words("message", &message.text)?;
    if record.attempt_iterations() + u32::from(while_asked) >= record.max_iterations {
        return Err(illegal(format!("run `{}` makes no further request to its model in this attempt", record.id))
            .with_remedy("wait for its end; `motor task retry` or a new run takes guidance"));
    }
    let event = RunEvent::OwnerSaid {
        step: record.iterations,
        text: message.text.clone(),
        while_asked,
        consent: message.consent.clone().into(),
    };
    let reply = TellReply { run_id: record.id.clone(), step: record.iterations, messages: record.owner_messages + 1 };
    Ok(CommandEffect { events: vec![event], reply: serde_json::to_value(reply).unwrap_or_default() })
}

/// An order on its way to a driver.
pub(crate) struct PendingCommand {
    pub(crate) command: Command,
    /// Of the order as it was given.
    pub(crate) fingerprint: ContentHash,
    /// Receives the reply, or the refusal.
    pub(crate) done: oneshot::Sender<Result<Value, Refusal>>,
}

fn illegal(reason: String) -> Refusal {
    Refusal::new(RefusalCode::IllegalState, reason)
}

fn check_words(what: &str, text: &str) -> Result<(), Refusal> {
    let reason = match text.len() {
        0 => format!("the {what} is empty"),
        bytes if bytes > MAX_WORDS_BYTES => {
            format!("the {what} has {bytes} bytes: at most {MAX_WORDS_BYTES} are possible")
        }
        _ => return Ok(()),
    };
    Err(Refusal::new(RefusalCode::InvalidRequest, reason))
}

/// The moment of a run at which a command reaches its driver.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// How long the run may still wait.
    pub(crate) left: Duration,
    /// Whether a request to the model is under way.
    pub(crate) while_asked: bool,
}

/// The events that apply a command, and the reply to its sender.
pub(crate) struct CommandEffect {
    pub(crate) events: Vec<RunEvent>,
    pub(crate) reply: Value,
}

impl Command {
    /// The effect of the command on a run in this state that may wait for as long as is `left`.
    ///
    /// # Errors
    /// If it cannot be applied; nothing happens then.
    pub(crate) fn carry_out(
        &self,
        journal: &Journal,
        config: &MotorConfig,
        moment: Moment,
    ) -> Result<CommandEffect, Refusal> {
        let Moment { left, while_asked } = moment;
        let record = &journal.state().record;
        self.fits(record)?;
        match (self, &record.waiting) {
            (Self::Respond(answer), Some(Waiting::Input(question))) => respond(record, answer, question, left),
            (Self::Approve(decided), Some(Waiting::Approval(approval))) => {
                approve(journal.state(), decided, approval, left)
            }
            (Self::Retry(request), _) => retry(record, request, config),
            (Self::Tell(message), _) => tell(record, message, while_asked),
            _ => Err(illegal(format!("run `{}` is {}", record.id, record.status))),
        }
    }
}

fn in_time(waiting_id: &str, expires_at: Timestamp, left: Duration) -> Result<(), Refusal> {
    if !left.is_zero() {
        return Ok(());
    }
    Err(illegal(format!("`{waiting_id}` expired at {expires_at}: this comes too late")).with_remedy("retry the run"))
}

fn meant(asked: Option<&String>, waiting_id: &str) -> Result<(), Refusal> {
    match asked {
        Some(other) if other != waiting_id => {
            Err(illegal(format!("`{other}` does not wait any more; `{waiting_id}` does"))
                .with_remedy("look at what it asks now: `motor task status`"))
        }
        _ => Ok(()),
    }
}

fn respond(
    record: &RunRecord,
    answer: &QuestionAnswer,
    question: &Question,
    left: Duration,
) -> Result<CommandEffect, Refusal> {
    meant(answer.question.as_ref(), &question.id)?;
    in_time(&question.id, question.expires_at, left)?;
    check_words("answer", &answer.text)?;
    if let Some(raise) = question.ceiling {
        let events = ceiling::answered(question, raise, &answer.text, &answer.consent)?;
        return Ok(CommandEffect { events, reply: moved(record, &question.id) });
    }
    let result = ToolResult { provenance: Provenance::User, ..ToolResult::success(answer.text.clone()) };
    let answered = RunEvent::Answered {
        question: question.id.clone(),
        answer: answer.text.clone(),
        consent: answer.consent.clone().into(),
    };
    let returned = returned(question.step, &question.call_id, crate::host_tools::ASK_USER, result, Vec::new());
    Ok(CommandEffect { events: vec![answered, returned], reply: moved(record, &question.id) })
}

fn approve(
    state: &RunState,
    decided: &ApprovalDecision,
    approval: &Approval,
    left: Duration,
) -> Result<CommandEffect, Refusal> {
    let RunState { record, conversation, .. } = state;
    meant(decided.approval.as_ref(), &approval.id)?;
    let shown = &decided.actions;
    if !shown.is_empty() && !approval.items.iter().map(|item| &item.action_hash).eq(shown) {
        return Err(illegal(format!("`{}` is about another action than the one that was shown", approval.id))
            .with_remedy("look at what it asks now: `motor task status`"));
    }
    in_time(&approval.id, approval.expires_at, left)?;
    if let Some(reason) = &decided.reason {
        check_words("reason", reason)?;
    }
    if decided.grant && !approval.choices.contains(&decided.scope) {
        let choices: Vec<_> = approval.choices.iter().map(|scope| scope.as_str()).collect();
        let reason = format!("this can be allowed for {}, not for {}", choices.join(", "), decided.scope.as_str());
        return Err(Refusal::new(RefusalCode::InvalidRequest, reason));
    }
    if let Some(other) = decided.only.iter().find(|only| !approval.items.iter().any(|item| item.action_hash == **only))
    {
        return Err(illegal(format!("`{}` does not ask about `{other}`", approval.id))
            .with_remedy("look at what it asks now: `motor task status`"));
    }
    let mut events = vec![RunEvent::ApprovalDecided {
        approval: approval.id.clone(),
        granted: decided.grant,
        scope: decided.scope,
        only: decided.only.clone(),
        reason: decided.reason.clone(),
        consent: decided.consent.clone().into(),
    }];
    let reason = decided.reason.as_deref();
    let held = |item: &ApprovalItem| {
        conversation
            .open_calls()
            .next()
            .filter(|open| open.call.id == item.call_id)
            .and_then(|open| open.held.clone())
            .map(|held| held.result)
    };
    if let Some(item) = approval.items.first().filter(|_| approval.repeat) {
        match (held(item), decided.grant) {
            // The host makes the call again.
            (Some(_), true) => {}
            (Some(mut result), false) => {
                result.output.extend(approval.items.iter().map(|item| format!("\n{}", refusal(&item.summary, None))));
                let refused = approval.items.iter().map(|item| item.summary.clone()).collect();
                // The result may be fenced as content of the web: the owner's words must not be in it.
                events.extend(reason.map(|reason| instead(record, reason, decided)));
                events.push(returned(approval.step, &item.call_id, &item.tool, result, refused));
            }
            // An earlier version gave the model the refusal as the call's result.
            (None, granted) => {
                let text = if granted {
                    format!("the owner consented to what was refused{}; make the same call again", why(reason))
                } else {
                    format!("the owner refused it{}; do without it, and do not try it by other means", why(reason))
                };
                events.push(RunEvent::Told { step: approval.step, reason: TellReason::Decision, text });
            }
        }
    } else if let Some(item) = approval.items.first().filter(|item| item.tool == REQUEST_APPROVAL) {
        let (result, refused) = if decided.grant {
            let consents = format!("the owner consents ({}){}", decided.scope.as_str(), why(reason));
            (ToolResult { provenance: Provenance::User, ..ToolResult::success(consents) }, Vec::new())
        } else {
            (refused_by_owner(reason), vec![item.summary.clone()])
        };
        events.push(returned(approval.step, &item.call_id, REQUEST_APPROVAL, result, refused));
    }
    Ok(CommandEffect { events, reply: moved(record, &approval.id) })
}

fn retry(record: &RunRecord, request: &RetryRequest, config: &MotorConfig) -> Result<CommandEffect, Refusal> {
    if let Some(guidance) = &request.guidance {
        check_words("guidance", guidance)?;
    }
    if (request.grant.is_some() || request.usd.is_some()) && request.consent.is_none() {
        return Err(Refusal::new(RefusalCode::ConsentNeeded, "more can be granted to a run by its owner only"));
    }
    let attempt = record.attempt + 1;
    let event = RunEvent::Retried {
        attempt,
        guidance: request.guidance.clone(),
        grant: request.grant.clone(),
        max_iterations: config.retry_iterations(request.max_iterations, &record.rules)?,
        consent: request.consent.clone().map(Into::into),
        usd: request.usd,
    };
    let reply = RetryReply { run_id: record.id.clone(), attempt_index: attempt, status: RunStatus::Running };
    Ok(CommandEffect { events: vec![event], reply: serde_json::to_value(reply).unwrap_or_default() })
}

/// The result for the model of an action that the owner refused.
pub(crate) fn refused_by_owner(reason: Option<&str>) -> ToolResult {
    // The owner's word: it is not fenced, also in a run that has read from the web.
    let result = ToolResult::failure(ErrorCode::PermissionDenied, refusal("this", reason));
    ToolResult { provenance: Provenance::User, ..result }
}

/// The owner's refusal, in words for the model.
pub(crate) fn refusal(action: &str, reason: Option<&str>) -> String {
    format!("the owner refused {action}{}; do without it, and do not try it by other means", why(reason))
}

/// The owner's words beside a refusal, as a message of their own. They grant nothing.
fn instead(record: &RunRecord, reason: &str, decided: &ApprovalDecision) -> RunEvent {
    RunEvent::OwnerSaid {
        step: record.iterations,
        text: format!("No. {reason}"),
        while_asked: false,
        consent: decided.consent.clone().into(),
    }
}

fn why(reason: Option<&str>) -> String {
    reason.map(|reason| format!(": {reason}")).unwrap_or_default()
}

fn moved(record: &RunRecord, about: &str) -> Value {
    let moved = CommandReply {
        run_id: record.id.clone(),
        previous_status: record.status,
        new_status: RunStatus::Running,
        about: about.to_owned(),
    };
    serde_json::to_value(moved).unwrap_or_default()
}

fn returned(step: u32, call_id: &str, tool: &str, result: ToolResult, refused: Vec<String>) -> RunEvent {
    RunEvent::ToolReturned {
        step,
        call_id: call_id.to_owned(),
        tool: tool.to_owned(),
        result,
        usage: None,
        requests: Vec::new(),
        notes: Vec::new(),
        retried: false,
        recovered: false,
        credits: Some(0),
        refused,
        held: false,
    }
}

/// Applies a command and answers its sender: it is durable then, or refused. Returns the verdict of the loop guard
/// on its results; `None` if it was refused.
pub(crate) async fn obey(
    journal: &mut Journal,
    order: PendingCommand,
    config: &MotorConfig,
    moment: Moment,
) -> Result<Option<GuardVerdict>, JournalError> {
    let PendingCommand { command, fingerprint, done } = order;
    let carried = match command.carry_out(journal, config, moment) {
        Ok(carried) => carried,
        Err(refusal) => {
            // The sender may be gone.
            done.send(Err(refusal)).ok();
            return Ok(None);
        }
    };
    let stored = journal
        .carry_out(
            carried.events,
            command.key().map(|key| (key, StoredReply { order: fingerprint, reply: carried.reply.clone() })),
        )
        .await;
    match stored {
        Ok(verdict) => {
            done.send(Ok(carried.reply)).ok();
            Ok(Some(verdict))
        }
        Err(error) => {
            let told = match &error {
                JournalError::Store(error) => Refusal::from(error.clone()),
                JournalError::Uncertain(_) => Refusal::new(RefusalCode::OutcomeUnknown, error.to_string())
                    .with_remedy("start the host again; `motor task status` shows whether it counts"),
                other => Refusal::new(RefusalCode::Failed, other.to_string()),
            };
            done.send(Err(told)).ok();
            Err(error)
        }
    }
}
