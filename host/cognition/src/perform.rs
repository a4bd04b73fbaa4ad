//! Executing one call of a turn. Each command carries a key that is derived from the call, so a call whose outcome was lost in a crash
//! is given again and has one effect.

use base::text::{Foreign, cut};
use base::{Refusal, RefusalCode, RunId};
use consent::Consent;
use llm::{Arguments, RequestedCall};
use serde_json::{Value, json};

use crate::dispatch::is_cut;
use crate::ports::{Delegation, Hands, RunAnswer, RunDecision, RunView};
use crate::record::{AskedBy, Head};
use crate::tools::{ActCall, CoreCall, TaskAction, TaskCall, TurnPowers, read};
use crate::word::{OwnerWord, owner_word};

/// Characters of a reply to the other side.
pub(crate) const MAX_REPLY: usize = 16_000;
/// A run that was answered is under way again.
const GOES_ON: &str = "goes on after the answer";
/// Characters of a run's report for the model.
const MAX_REPORT: usize = 8_000;

/// The beginning of the idempotency keys of runs that a conversation started.
pub(crate) fn run_key_prefix(conversation: &str) -> String {
    format!("chat-{conversation}-")
}

/// The conversation that a run's key names.
pub(crate) fn conversation_of(key: &str) -> Option<&str> {
    Some(key.strip_prefix("chat-")?.split_once('-')?.0)
}

/// The surroundings of a call.
pub(crate) struct CallContext<'a> {
    /// The id of the conversation.
    pub id: &'a str,
    pub hands: &'a dyn Hands,
    pub head: &'a Head,
    pub powers: TurnPowers,
    /// The entry that triggered the turn.
    pub trigger: u64,
    /// The owner's message of the turn, with its authority.
    pub word: Option<(String, Consent)>,
    /// The idempotency key of the call.
    pub key: String,
    /// Sources of the web content that the model sees.
    pub sources: Vec<String>,
    /// Whether the turn has dealt with a run before this call: the owner's yes may have been about that one.
    pub has_acted: bool,
}

/// The outcome of a call: its result for the model, and its effect on the conversation.
#[derive(Debug, Default)]
pub(crate) struct CallOutcome {
    pub content: String,
    pub said: Option<String>,
    pub delegated: Option<(RunId, String)>,
    pub settled: Option<Settled>,
}

/// A question that is no longer open.
#[derive(Debug)]
pub(crate) struct Settled {
    pub run: RunId,
    /// Its id; `None`: all of the run.
    pub question: Option<String>,
}

impl CallOutcome {
    fn result(value: &Value) -> Self {
        Self { content: value.to_string(), ..Self::default() }
    }

    pub fn refused(refusal: &Refusal) -> Self {
        let remedy = refusal.remedy.as_deref().map(|remedy| format!(" ({remedy})")).unwrap_or_default();
        Self { content: format!("error: {}{remedy}", refusal.reason), ..Self::default() }
    }

    fn error(reason: impl std::fmt::Display) -> Self {
        Self { content: format!("error: {reason}"), ..Self::default() }
    }
}

/// Executes a call. It has one outcome, also if it is refused.
pub(crate) async fn perform(call: &RequestedCall, context: CallContext<'_>) -> CallOutcome {
    let arguments = match &call.arguments {
        Arguments::Json(value) => value.clone(),
        Arguments::Malformed(_) => return CallOutcome::error("the arguments are not JSON"),
    };
    match read(context.powers, &call.name, arguments) {
        Err(reason) => CallOutcome::error(reason),
        Ok(CoreCall::Say { text }) => {
            let said = Some(cut(&text, MAX_REPLY));
            CallOutcome { said, ..CallOutcome::result(&json!({ "sent": true })) }
        }
        Ok(CoreCall::Act(request)) => act(request, context).await,
        Ok(CoreCall::Task(request)) => {
            task(request, context).await.unwrap_or_else(|refusal| CallOutcome::refused(&refusal))
        }
    }
}

async fn act(request: ActCall, context: CallContext<'_>) -> CallOutcome {
    let ActCall { task, tools, domains, skill, approval_required } = request;
    let (agent, key, sources) = (context.head.key.agent.clone(), context.key, context.sources);
    let delegation = Delegation { agent, task: task.clone(), tools, domains, skill, approval_required, key, sources };
    match context.hands.act(delegation).await {
        Ok(run) => {
            let result = json!({ "runId": run, "status": "created" });
            CallOutcome { delegated: Some((run, cut(&task, 200))), ..CallOutcome::result(&result) }
        }
        Err(refusal) => CallOutcome::refused(&refusal),
    }
}

async fn task(request: TaskCall, context: CallContext<'_>) -> Result<CallOutcome, Refusal> {
    let TaskCall { run, action, answer, guidance } = request;
    let view = context.hands.view(&run).await?;
    // A run of another agent is as unknown as none.
    if view.agent != context.head.key.agent {
        return Err(Refusal::new(RefusalCode::NotFound, format!("there is no run `{run}`")));
    }
    // Every other action takes a run that was delegated here: text of a run cannot stop the work of others.
    let is_own = context.hands.key_of(&run).await?.is_some_and(|key| key.starts_with(&run_key_prefix(context.id)));
    if action != TaskAction::Status && !is_own {
        let reason = format!("`{run}` was not delegated in this conversation: only its status is shown");
        return Err(Refusal::new(RefusalCode::Forbidden, reason));
    }
    match action {
        TaskAction::Status => Ok(CallOutcome { content: report(&run, &view), ..CallOutcome::default() }),
        TaskAction::Cancel => {
            if !view.is_over {
                context.hands.cancel(&run).await?;
            }
            let settled = Some(Settled { run: run.clone(), question: None });
            Ok(CallOutcome { settled, ..CallOutcome::result(&json!({ "runId": run, "cancelled": true })) })
        }
        TaskAction::Retry => {
            if guidance.is_some() && !context.sources.is_empty() {
                let reason = "the guidance may come from web content that is in this conversation";
                return Err(Refusal::new(RefusalCode::Forbidden, reason)
                    .with_remedy("retry without guidance, or delegate a new task"));
            }
            context.hands.retry(&run, guidance, context.key).await?;
            // It is under way again, as if delegated anew.
            let delegated = Some((run.clone(), "another attempt".to_owned()));
            Ok(CallOutcome { delegated, ..CallOutcome::result(&json!({ "runId": run, "status": "running" })) })
        }
        TaskAction::Respond => respond(run, &view, answer, context).await,
    }
}

async fn respond(
    run: RunId,
    view: &RunView,
    answer: Option<String>,
    context: CallContext<'_>,
) -> Result<CallOutcome, Refusal> {
    let illegal = |reason: String| Refusal::new(RefusalCode::IllegalState, reason);
    let CallContext { hands, head, trigger, word, key, has_acted, .. } = context;
    // A host that died after the answer and before its outcome was stored: the authority is gone, and is not needed.
    let is_open = |open: &AskedBy| view.waiting.as_ref().is_some_and(|waiting| waiting.id() == open.id());
    if let Some(question) = head.questions.iter().find(|question| question.run == run)
        && !is_open(&question.asked)
    {
        let result = json!({ "runId": run, "status": view.status, "note": "it no longer waits for this answer" });
        let settled = Some(Settled { run, question: Some(question.asked.id().to_owned()) });
        return Ok(CallOutcome { settled, ..CallOutcome::result(&result) });
    }
    let Some((message, consent)) = word else {
        return Err(Refusal::new(
            RefusalCode::ConsentNeeded,
            "only a message of the owner answers, and this turn has none",
        ));
    };
    let question = head.questions.iter().find(|question| question.run == run);
    let question =
        question.ok_or_else(|| illegal(format!("`{run}` has no open question: the message is only chat")))?;
    if question.shown >= trigger {
        return Err(illegal(format!("the message was written before `{run}` asked: put the question to the owner")));
    }
    let settled = Some(Settled { run: run.clone(), question: Some(question.asked.id().to_owned()) });
    match &question.asked {
        AskedBy::Question { id, .. } => {
            // The model may pick the answer out of the owner's words, and adds none.
            let folded = message.to_lowercase();
            let text = answer.filter(|answer| folded.contains(&answer.to_lowercase())).unwrap_or(message);
            hands.respond(&run, RunAnswer { question: id.clone(), text, key, consent }).await?;
            let delegated = Some((run.clone(), GOES_ON.to_owned()));
            Ok(CallOutcome { settled, delegated, ..CallOutcome::result(&json!({ "runId": run, "answered": true })) })
        }
        AskedBy::Approval { id, actions, summaries, .. } => {
            let others = head.questions.len() > 1 || has_acted;
            let grant = match owner_word(&message, &[run.as_str(), id], others) {
                OwnerWord::Yes => true,
                OwnerWord::No => false,
                OwnerWord::Unclear => {
                    let also = if others {
                        format!(", with `{run}` in it because it may mean another matter")
                    } else {
                        String::new()
                    };
                    return Err(illegal(format!(
                        "the owner's message is neither a plain yes nor a no: ask for one{also}"
                    )));
                }
            };
            if grant && is_cut(summaries) {
                return Err(illegal(format!(
                    "the owner was not shown all of it: `motor task approve {run}` shows it and asks"
                )));
            }
            let decision = RunDecision { approval: id.clone(), actions: actions.clone(), grant, key, consent };
            hands.decide(&run, decision).await?;
            let delegated = Some((run.clone(), GOES_ON.to_owned()));
            Ok(CallOutcome { settled, delegated, ..CallOutcome::result(&json!({ "runId": run, "approved": grant })) })
        }
    }
}

/// The report of a run for the model. Its texts are those of a run, so it is fenced.
fn report(run: &RunId, view: &RunView) -> String {
    let text = Foreign(&view.report.to_string()).visible(MAX_REPORT);
    format!("{run} is {}\n{}", view.status, base::fence::fenced(run.as_str(), "run", &text))
}
