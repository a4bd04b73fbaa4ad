//! Signals of runs into the conversations that delegated them (SPEC COG-3, SIG-2).
//!
//! The entry, the open question and the position behind the signal are one batch: a signal enters its conversation once. A
//! run names its conversation by its idempotency key, which holds the conversation's secret id; so the link exists as soon as
//! the run does, however soon its signal comes.

use std::time::Duration;

use base::{Provenance, Refusal, RunId};
use serde_json::json;
use signals::{MotorResult, Signal, SignalStatus};
use store::{Batch, Table};

use crate::cognition::Cognition;
use crate::conversation::Appended;
use crate::perform::conversation_of;
use crate::ports::{Observed, RunView};
use crate::record::{AskedBy, EntryBody, OpenQuestion, SIGNALS_KEY, Speaker};

/// Signals that are read at a time.
const PAGE: usize = 100;
/// Signals of other runs after which the position is stored: so many are read again after a restart, and a signal that concerns no
/// conversation costs no sync.
const MAX_UNSTORED: u64 = 1_000;
/// Pause after a failure of the storage.
const PAUSE: Duration = Duration::from_secs(5);
/// Characters of a signal's content for the model.
const MAX_CONTENT: usize = 8_000;
/// Characters of one line in a request for consent, as the owner sees it.
const MAX_LINE: usize = 500;
/// Lines of the actions in a request for consent.
const MAX_LINES: usize = 40;
/// Open questions of a conversation; the oldest is dropped, and is still answered on the command line.
const MAX_QUESTIONS: usize = 16;

/// Follows the signals until the host ends or its storage fails.
pub(crate) async fn run(cognition: &Cognition) {
    while let Err(refusal) = follow(cognition).await {
        // Such as a full disk: the position is stored, so that it goes on where it was.
        tracing::error!(%refusal, "the signals of runs do not reach their conversations; trying again");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn follow(cognition: &Cognition) -> Result<(), Refusal> {
    let parts = &cognition.inner.parts;
    let mut newest = parts.signals.subscribe();
    let mut stored: u64 = parts.store.get(Table::Conversations, SIGNALS_KEY)?.unwrap_or(0);
    let mut after = stored;
    loop {
        let latest = *newest.borrow_and_update();
        let page = parts.signals.since(after, PAGE)?;
        for signal in &page {
            after = signal.id;
            if take_in(cognition, signal).await? {
                stored = after;
            }
        }
        if after.saturating_sub(stored) >= MAX_UNSTORED {
            let mut batch = Batch::new();
            batch.put(Table::Conversations, SIGNALS_KEY, &after)?;
            parts.store.commit(batch).await?;
            stored = after;
        }
        // Signals are dropped once every consumer has them, so a page may be empty below the latest.
        if page.is_empty() && *newest.borrow() == latest && newest.changed().await.is_err() {
            return Ok(());
        }
    }
}

/// Takes in a signal, and the position with it. `false`: it concerns no conversation.
async fn take_in(cognition: &Cognition, signal: &Signal) -> Result<bool, Refusal> {
    let hands = &cognition.inner.parts.hands;
    let Some(key) = hands.key_of(&signal.body.run_id).await? else { return Ok(false) };
    let Some(conversation) = conversation_of(&key) else { return Ok(false) };
    let Some(conversation) = cognition.conversation(conversation)? else { return Ok(false) };
    // A run that was deleted since is told about from its signal alone.
    let view = hands.view(&signal.body.run_id).await.ok();
    let held = conversation.hold().await;
    if held.is_forgotten || held.head.key.agent != signal.agent || held.head.key.peer.is_some() {
        return Ok(false);
    }
    let body = &signal.body;
    let waits = matches!(body.status, SignalStatus::AwaitingInput | SignalStatus::AwaitingApproval);
    // Only the question that the run waits for now: an old signal must not open a question that was answered.
    let asked = view.and_then(|RunView { waiting, .. }| waiting).filter(|_| waits);
    let mut entries = vec![entry(signal)];
    let card = asked.as_ref().and_then(|asked| card(&signal.body.run_id, asked));
    entries.extend(card.clone().map(|text| EntryBody::Said { text, by: Speaker::Host }));
    let mut batch = Batch::new();
    batch.put(Table::Conversations, SIGNALS_KEY, &signal.id)?;
    let (run, key) = (signal.body.run_id.clone(), held.head.key.clone());
    let Appended { held, .. } = conversation
        .append(held, entries, batch, |head, first| {
            head.pending.push(first);
            head.questions.retain(|question| question.run != run);
            head.questions.extend(asked.map(|asked| OpenQuestion { run: run.clone(), shown: first, asked }));
            let excess = head.questions.len().saturating_sub(MAX_QUESTIONS);
            head.questions.drain(..excess);
            head.runs.retain(|other| *other != run);
            if waits {
                head.runs.push(run);
            }
        })
        .await?;
    drop(held);
    if let Some(card) = &card {
        cognition.observe(&key, Observed::Sent(card));
    }
    cognition.wake(conversation);
    Ok(true)
}

fn entry(signal: &Signal) -> EntryBody {
    let MotorResult { result, error, question, choices, approval, failure, artifacts, .. } = &signal.body;
    let files: Vec<&str> = artifacts.iter().map(|artifact| artifact.path.as_str()).collect();
    let content = json!({
        "summary": result.as_ref().map(|result| &result.summary),
        "error": error.as_ref().map(|error| &error.message),
        "failure": failure,
        "question": question,
        "choices": choices,
        "approval": approval.as_ref().map(|approval| &approval.summaries),
        "artifacts": files,
        "unknownOutcomes": signal.body.unknown_outcomes,
        "staged": signal.body.staged,
        "webSources": signal.body.sources,
    });
    let is_absent = |value: &serde_json::Value| {
        value.is_null() || value == &json!(0) || value.as_array().is_some_and(Vec::is_empty)
    };
    let fields = content.as_object().into_iter().flatten().filter(|(_, value)| !is_absent(value));
    let content: serde_json::Map<_, _> = fields.map(|(name, value)| (name.clone(), value.clone())).collect();
    let content = base::text::cut(&serde_json::Value::from(content).to_string(), MAX_CONTENT);
    let provenance = if signal.body.sources.is_empty() { Provenance::Internal } else { Provenance::Web };
    let (run, status) = (signal.body.run_id.clone(), signal.body.status.to_string());
    let sources = signal.body.sources.clone();
    EntryBody::Signal { signal: signal.id, run, status, content, provenance, sources }
}

/// The request for consent in the host's words, so that the owner decides about the actions and not about a model's account of
/// them.
fn card(run: &RunId, asked: &AskedBy) -> Option<String> {
    let AskedBy::Approval { id, reason, summaries, .. } = asked else { return None };
    let line = |text: &str| base::text::Foreign(text).visible(MAX_LINE);
    let mut actions: Vec<String> =
        summaries.iter().take(MAX_LINES).map(|summary| format!("- {}", line(summary))).collect();
    let answer = if is_cut(summaries) {
        actions.push(format!("- more than is shown here: `motor task approve {run}` shows all of it"));
        format!("Answer no here, or decide with `motor task approve {run}`.")
    } else {
        format!("Approve? Answer yes or no; once anything else was said here, `yes {run}`.")
    };
    Some(format!("{run} asks for your consent ({id}): {}\n{}\n{answer}", line(reason), actions.join("\n")))
}

/// Whether a request for consent has more than its card shows. A yes in the conversation does not cover it.
pub(crate) fn is_cut(summaries: &[String]) -> bool {
    summaries.len() > MAX_LINES || summaries.iter().any(|summary| summary.chars().count() > MAX_LINE)
}
