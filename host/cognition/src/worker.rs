//! The worker of a conversation: it gives each message and signal its turn, one at a time, in order.
//!
//! It goes on from the head alone, so a turn that a crash interrupted continues at its last durable entry: a reply of the model
//! that was stored is not asked for again, and a call with a stored outcome is not made again.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base::{Refusal, RefusalCode, RunId};
use llm::{Arguments, ChatReply, RequestedCall};
use serde_json::json;
use store::{Batch, StoreError};
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::cognition::Cognition;
use crate::compact::{compact, shown};
use crate::conversation::{Appended, Conversation, Held};
use crate::perform::{CallContext, CallOutcome, MAX_OUTCOME, MAX_REPLY, Settled, judged, perform, run_key_prefix};
use crate::ports::{Charged, Observed, PeerAnswer};
use crate::programs::{self, ExecutedProgram};
use crate::prompt::Prompted;
use crate::record::{Entry, EntryBody, Head, OpenQuestion, Speaker};
use crate::reply::normal;
use crate::tools::{TurnPowers, toolset};
use crate::turn::{TriggerKind, Turn, TurnPhase};
use crate::window::{ShownTurn, fitting, moved, turns};

/// The words to a peer whose answer is considered first.
const HOLDING: &str = "Let me think about this; the answer follows in a moment.";
/// The words to a peer whose answer is held back.
const WITHHELD: &str = "I cannot answer that at the moment.";

/// The longest turn (SPEC COG-1), counted anew after a restart or a failure.
const MAX_TURN: Duration = Duration::from_secs(120);
/// Pause after a turn could not go on; after each further failure it is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest of these pauses. A turn that fails again and again may ask its model each time.
const MAX_PAUSE: Duration = Duration::from_secs(600);
/// Pause between two commits that try whether the store takes one, such as on a full disk.
const STORE_PAUSE: Duration = Duration::from_secs(5);
/// Replies of the model in one turn.
const MAX_REPLIES: u32 = 12;
/// Texts before an answer that its consultation takes into account: about six exchanges.
const MAX_EARLIER: usize = 12;
/// Begins the outcome of a failed call; a result is JSON, or begins with a count or with the id of a run.
const FAILED: &str = "error: ";
/// Runs of a conversation that are shown as under way.
const MAX_RUNS: usize = 32;

/// Works until the conversation has nothing to do, also over a failure such as a full disk. Returns at once if another worker is at it.
pub(crate) async fn run(cognition: &Cognition, conversation: Arc<Conversation>) {
    {
        let mut held = conversation.hold().await;
        if std::mem::replace(&mut held.is_worked_on, true) {
            return;
        }
    }
    let mut pause = PAUSE;
    loop {
        match go_on(cognition, &conversation).await {
            Ok(true) => pause = PAUSE,
            Ok(false) => return,
            Err(refusal) => {
                tracing::error!(%refusal, "a turn cannot go on; trying again");
                rest(&conversation, pause).await;
                pause = pause.saturating_mul(2).min(MAX_PAUSE);
            }
        }
    }
}

/// Waits for the pause, or until a message or a signal comes; then until the store takes a commit, so that no model is asked for
/// a reply that cannot be stored.
async fn rest(conversation: &Arc<Conversation>, pause: Duration) {
    let mut newest = conversation.subscribe();
    timeout(pause, newest.changed()).await.ok();
    loop {
        let held = conversation.hold().await;
        // A forgotten conversation has nothing left to do.
        if held.is_forgotten || conversation.append(held, Vec::new(), Batch::new(), |_, _| {}).await.is_ok() {
            return;
        }
        sleep(STORE_PAUSE).await;
    }
}

/// One turn, or the rest of one. `false`: nothing is left, and this worker is dismissed.
async fn go_on(cognition: &Cognition, conversation: &Arc<Conversation>) -> Result<bool, Refusal> {
    let mut held = conversation.hold().await;
    if held.head.turn.is_none() {
        let Some(trigger) = held.head.pending.first().copied() else {
            held.is_worked_on = false;
            return Ok(false);
        };
        let kind = kind(conversation, &held.head, trigger)?;
        let began = EntryBody::Began { trigger, kind };
        let Appended { held: begun, .. } = conversation
            .append(held, vec![began], Batch::new(), |head, _| {
                head.pending.retain(|pending| *pending != trigger);
            })
            .await?;
        held = begun;
    }
    drop(held);
    let deadline = Instant::now() + MAX_TURN;
    loop {
        let head = conversation.hold().await.head.clone();
        let Some(turn) = head.turn else { return Ok(true) };
        match turn.phase {
            TurnPhase::Replied => consider(cognition, conversation, &head, deadline).await?,
            TurnPhase::Thinking => think(cognition, conversation, &head, turn, deadline).await?,
            TurnPhase::Acting { reply, done, .. } => {
                let call = call(conversation, reply, done)?;
                act(cognition, conversation, &head, turn, Acting { call, reply, done, deadline }).await?;
            }
        }
    }
}

fn kind(conversation: &Conversation, head: &Head, trigger: u64) -> Result<TriggerKind, Refusal> {
    let entry = conversation.entry(trigger)?.ok_or_else(|| damaged("a message is missing"))?;
    Ok(match (entry.body, &head.key.peer) {
        // A conversation with a peer never has the powers of the owner's.
        (_, Some(_)) => TriggerKind::PeerMessage,
        (EntryBody::Signal { .. } | EntryBody::Noted { .. }, None) => TriggerKind::Signal,
        (_, None) => TriggerKind::OwnerMessage,
    })
}

fn damaged(reason: &str) -> Refusal {
    Refusal::new(RefusalCode::StateUnusable, format!("a conversation cannot be read: {reason}"))
}

/// Looked at anew for each request and each call: the cortex may be switched in between.
async fn powers(cognition: &Cognition, head: &Head, turn: Turn, has_authority: bool) -> TurnPowers {
    let powers = TurnPowers::of(turn.kind, has_authority);
    let is_offered = powers.answers && cognition.inner.parts.hands.offers_assess_peer(&head.key.agent).await;
    powers.assessing(is_offered)
}

async fn think(
    cognition: &Cognition,
    conversation: &Arc<Conversation>,
    head: &Head,
    turn: Turn,
    deadline: Instant,
) -> Result<(), Refusal> {
    if turn.replies >= MAX_REPLIES {
        return end(cognition, conversation, None, Some(format!("it took more than {MAX_REPLIES} replies"))).await;
    }
    let mut entries = conversation.entries(head.window, usize::MAX)?;
    let mut turns = turns(&conversation.id, &entries, &triggers(conversation, &entries)?);
    let mut head = Cow::Borrowed(head);
    if let Some(window) = moved(&turns) {
        entries.retain(|(number, _)| *number >= window);
        let leaving: Vec<ShownTurn> = turns.extract_if(.., |turn| turn.begin < window).collect();
        let summary = compact(cognition, conversation, &head, &leaving, (window, deadline)).await?;
        head.to_mut().summary = Some(summary);
    }
    let head = &*head;
    let mut messages = Vec::from_iter(shown(&conversation.id, head));
    messages.extend(fitting(&conversation.id, turns));
    let has_authority = conversation.consents.lock().contains_key(&turn.trigger);
    let (powers, sections) = (powers(cognition, head, turn, has_authority).await, cognition.sections(&head.key));
    let sources = sections.iter().flat_map(|section| section.sources.clone()).collect();
    let request = Prompted { id: &conversation.id, head, turn, powers, messages, sections }.request();
    let asked = timeout_at(deadline, async {
        let model = cognition.inner.parts.minds.model(&head.key.agent, turn.kind).await?;
        model
            .chat(&request, &mut |_| {})
            .await
            .map_err(|error| Refusal::new(RefusalCode::ModelUnavailable, error.to_string()))
    });
    let reply = match asked.await {
        Ok(Ok(reply)) => reply,
        Ok(Err(refusal)) => return end(cognition, conversation, None, Some(refusal.reason)).await,
        Err(_) => {
            let reason = format!("the model took longer than {} s", MAX_TURN.as_secs());
            return end(cognition, conversation, None, Some(reason)).await;
        }
    };
    let reply = normal(reply, &toolset(powers), &entries);
    replied(cognition, conversation, head, (reply, sources), &entries).await
}

/// Makes a reply durable, with the sources of the foreign text that it was asked with: the runs that it delegates begin tainted by them.
async fn replied(
    cognition: &Cognition,
    conversation: &Arc<Conversation>,
    head: &Head,
    (reply, sources): (ChatReply, Vec<String>),
    entries: &[(u64, Entry)],
) -> Result<(), Refusal> {
    let usage = reply.usage;
    let observed = Observed::ModelReplied { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens };
    let is_complete = reply.finish.is_complete();
    let detail = reply.finish_detail.clone().unwrap_or_else(|| format!("{:?}", reply.finish));
    let calls = reply.tool_calls;
    let text = base::text::cut(reply.text.trim(), MAX_REPLY);
    let has_calls = !calls.is_empty();
    let (input_tokens, output_tokens) = (usage.input_tokens, usage.output_tokens);
    let state = reply.state;
    let entry = EntryBody::Replied { text: text.clone(), calls, state, input_tokens, output_tokens, sources };
    let mut batch = Batch::new();
    let charged = Charged::Reply { conversation: &conversation.id, usage: &usage };
    cognition.inner.parts.minds.charge(&mut batch, &head.key.agent, charged).await?;
    // Also of a reply that was cut off no word is said unseen.
    let waits = !has_calls && awaits_consultation(cognition, conversation, head, (entries, &text))?;
    if has_calls {
        conversation.append(conversation.hold().await, vec![entry], batch, |_, _| {}).await?;
    } else if is_complete && waits {
        // The answer is durable and not said: the turn goes on from here, also after a crash.
        let holding = EntryBody::Said { text: HOLDING.to_owned(), by: Speaker::Host };
        conversation.append(conversation.hold().await, vec![entry, holding], batch, |_, _| {}).await?;
        cognition.observe(&head.key, Observed::Sent(HOLDING));
    } else {
        let error = (!is_complete).then(|| format!("the model did not finish its reply: {detail}"));
        let text = Some(text).filter(|text| !text.is_empty() && !waits);
        // The reply, its delivery and the end of the turn are one batch: nothing is said twice.
        finish(cognition, conversation, TurnEnd { entries: vec![entry], batch, text, error, is_withheld: false })
            .await?;
    }
    cognition.observe(&head.key, observed);
    Ok(())
}

/// Whether an answer waits for a consultation: only one to a peer ever does.
fn awaits_consultation(
    cognition: &Cognition,
    conversation: &Conversation,
    head: &Head,
    (entries, text): (&[(u64, Entry)], &str),
) -> Result<bool, Refusal> {
    let (Some(turn), true, false) = (head.turn, head.key.peer.is_some(), text.is_empty()) else { return Ok(false) };
    let (message, earlier) = (message(conversation, turn)?, earlier(entries, turn));
    let answer = PeerAnswer { earlier: &earlier, message: &message, text };
    Ok(cognition.inner.parts.minds.consultation(&head.key, answer).is_some())
}

/// The texts in entries before the answer of a turn: a bare yes is an answer to them.
fn earlier(entries: &[(u64, Entry)], turn: Turn) -> Vec<String> {
    let mut texts: Vec<String> = entries
        .iter()
        .rev()
        .filter_map(|(number, entry)| match &entry.body {
            EntryBody::Message { text, .. } if *number < turn.trigger => Some(format!("peer: {text}")),
            EntryBody::Said { text, by: Speaker::Agent } => Some(format!("agent: {text}")),
            _ => None,
        })
        .take(MAX_EARLIER)
        .collect();
    texts.reverse();
    texts
}

fn message(conversation: &Conversation, turn: Turn) -> Result<String, Refusal> {
    match conversation.entry(turn.trigger)?.map(|entry| entry.body) {
        Some(EntryBody::Message { text, .. }) => Ok(text),
        _ => Err(damaged("a message is missing")),
    }
}

/// Ends a turn whose reply is durable, after the consultation that its answer waits for (SPEC CX-10). No verdict in time is a no.
async fn consider(
    cognition: &Cognition,
    conversation: &Arc<Conversation>,
    head: &Head,
    deadline: Instant,
) -> Result<(), Refusal> {
    let entries = conversation.entries(head.window, usize::MAX)?;
    let replied = entries.iter().rev().find_map(|(_, entry)| match &entry.body {
        EntryBody::Replied { text, calls, .. } => Some((text.clone(), calls.len())),
        _ => None,
    });
    let replied = replied.filter(|(text, _)| !text.is_empty());
    let (Some((text, 0)), Some(turn), Some(_)) = (replied, head.turn, &head.key.peer) else {
        return end(cognition, conversation, None, None).await;
    };
    let (minds, message) = (&cognition.inner.parts.minds, message(conversation, turn)?);
    let earlier = earlier(&entries, turn);
    let answer = PeerAnswer { earlier: &earlier, message: &message, text: &text };
    let sends = match minds.consultation(&head.key, answer) {
        // Switched off since the answer was held.
        None => true,
        Some(time) => match timeout_at(deadline.min(Instant::now() + time), minds.consult(&head.key, answer)).await {
            Ok(Ok(sends)) => sends,
            Ok(Err(refusal)) => {
                tracing::warn!(%refusal, "an answer to a peer is withheld: the consultation failed");
                false
            }
            Err(_) => {
                tracing::warn!("an answer to a peer is withheld: the consultation took too long");
                false
            }
        },
    };
    let end = TurnEnd { text: sends.then_some(text), is_withheld: !sends, ..TurnEnd::default() };
    finish(cognition, conversation, end).await
}

async fn end(
    cognition: &Cognition,
    conversation: &Arc<Conversation>,
    text: Option<String>,
    error: Option<String>,
) -> Result<(), Refusal> {
    finish(cognition, conversation, TurnEnd { text, error, ..TurnEnd::default() }).await
}

/// The end of a turn.
#[derive(Default)]
struct TurnEnd {
    entries: Vec<EntryBody>,
    /// Committed together with the entries.
    batch: Batch,
    /// A reply to the other side.
    text: Option<String>,
    /// Why the turn failed, if it did.
    error: Option<String>,
    /// Whether a consultation held the answer back.
    is_withheld: bool,
}

/// Ends the turn. The other side of a message always gets an answer, or the notice that the agent gave no answer.
async fn finish(cognition: &Cognition, conversation: &Arc<Conversation>, end: TurnEnd) -> Result<(), Refusal> {
    let TurnEnd { mut entries, batch, text, error, is_withheld } = end;
    let held = conversation.hold().await;
    let Some(turn) = held.head.turn else { return Ok(()) };
    let is_owner = held.head.key.peer.is_none();
    let (key, trigger) = (held.head.key.clone(), turn.trigger);
    let mut sent = Vec::new();
    // The same text again, after `core_say`, is not a second reply.
    let text = text.filter(|text| !repeats(conversation, &held.head, text).unwrap_or(false));
    sent.extend(text.map(|text| (text, Speaker::Agent)));
    if is_withheld {
        sent.push((WITHHELD.to_owned(), Speaker::Host));
    }
    match &error {
        // A peer learns nothing about the inside of the host.
        Some(_) if !is_owner => sent.push(("The agent cannot answer at the moment.".to_owned(), Speaker::Host)),
        Some(error) => sent.push((format!("The agent did not finish its answer: {error}"), Speaker::Host)),
        None if sent.is_empty() && !turn.has_spoken && turn.kind != TriggerKind::Signal => {
            sent.push(("The agent gave no answer.".to_owned(), Speaker::Host));
        }
        None => {}
    }
    entries.extend(sent.iter().map(|(text, by)| EntryBody::Said { text: text.clone(), by: *by }));
    let error = error.filter(|error| {
        if !is_owner {
            tracing::warn!(error, "a message of a peer is not answered");
        }
        is_owner
    });
    // The model has the answer in its conversation, and learns that the peer has not.
    let error = error.or_else(|| is_withheld.then(|| "the answer was not sent".to_owned()));
    entries.push(EntryBody::Ended { trigger, error });
    conversation.append(held, entries, batch, |_, _| {}).await?;
    conversation.consents.lock().remove(&trigger);
    for (text, _) in &sent {
        cognition.observe(&key, Observed::Sent(text));
    }
    Ok(())
}

/// Whether the turn has already said exactly this.
fn repeats(conversation: &Conversation, head: &Head, text: &str) -> Result<bool, StoreError> {
    let from = head.turn.map_or(head.next, |turn| turn.trigger);
    let entries = conversation.entries(from, usize::MAX)?;
    let says = |entry: &Entry| matches!(&entry.body, EntryBody::Said { text: said, by: Speaker::Agent } if said.trim() == text);
    let began = entries.iter().rposition(|(_, entry)| matches!(entry.body, EntryBody::Began { .. })).unwrap_or(0);
    Ok(entries.iter().skip(began).any(|(_, entry)| says(entry)))
}

/// A call that is about to be made.
struct Acting {
    call: RequestedCall,
    reply: u64,
    done: u32,
    deadline: Instant,
}

async fn act(
    cognition: &Cognition,
    conversation: &Arc<Conversation>,
    head: &Head,
    turn: Turn,
    acting: Acting,
) -> Result<(), Refusal> {
    let Acting { call, reply, done, deadline } = acting;
    let consent = conversation.consents.lock().get(&turn.trigger).cloned();
    let word = match (consent, conversation.entry(turn.trigger)?.map(|entry| entry.body)) {
        (Some(consent), Some(EntryBody::Message { text, .. })) => Some((text, consent)),
        _ => None,
    };
    let window = conversation.entries(head.window, usize::MAX)?;
    let key = format!("{}{reply}-{done}", run_key_prefix(&conversation.id));
    let context = CallContext {
        id: &conversation.id,
        hands: &*cognition.inner.parts.hands,
        store: &cognition.inner.parts.store,
        memories: &cognition.inner.memories,
        head,
        powers: powers(cognition, head, turn, word.is_some()).await,
        trigger: turn.trigger,
        word,
        key: key.clone(),
        said: said(conversation, head, turn.trigger)?,
        has_acted: has_acted(&window, turn.trigger, &call.id),
    };
    let outcome = timeout_at(deadline, perform(&call, context)).await.unwrap_or_else(|_| CallOutcome {
        content: "error: the outcome is unknown, because the turn ran out of time".to_owned(),
        ..CallOutcome::default()
    });
    let CallOutcome { mut content, mut said, delegated, settled, sources, remembered, learnable, judgement } = outcome;
    if let Some(text) = &said
        && awaits_consultation(cognition, conversation, head, (&window, text))?
    {
        // A turn has one consultation, about its answer.
        content =
            "error: not said, because it has to be considered first: give it as your final answer, without a call"
                .to_owned();
        said = None;
    }
    let mut batch = Batch::new();
    let mut remembering = None;
    if let Some(text) = remembered {
        let now = cognition.inner.parts.clock.now();
        // Durable together with the outcome, so that it is kept once and only if it is said to be.
        content = match cognition.inner.memories.stage(&mut batch, head, &text, now).await {
            Ok((change, memory)) => {
                let content = CallOutcome::result(&json!({ "remembered": memory.id })).content;
                remembering = Some((change, memory));
                content
            }
            Err(refusal) => CallOutcome::refused(&refusal).content,
        };
    }
    if let Some(program) = learnable {
        let (at, turn) = (cognition.inner.parts.clock.now(), format!("{}-{}", conversation.id, turn.trigger));
        let program = ExecutedProgram { at, turn, sources: head.sources().list(), program };
        programs::stage(&cognition.inner.parts.store, &mut batch, &head.key.agent, (&key, &program))?;
    }
    let held: Held = conversation.hold().await;
    let mut judging = None;
    if let Some(judgement) = judgement {
        // As a memory. The peer stays as it is until the commit; its lock comes after that of a conversation, as for its messages.
        let ledger = &cognition.inner.parts.ledger;
        content = match ledger.stage_assessments(&mut batch, &head.key.agent, vec![judgement]).await {
            Ok(staged) => {
                let content = staged.assessments().first().map(|(peer, assessment)| judged(peer, assessment));
                judging = Some(staged);
                content.unwrap_or_default()
            }
            Err(refusal) => {
                // It may hold a part of the judgement, and a call that judges has nothing else to store.
                batch = Batch::new();
                CallOutcome::refused(&refusal).content
            }
        };
    }
    let content = base::text::cut(&content, MAX_OUTCOME);
    let is_ok = !content.starts_with(FAILED);
    // A run that has signalled since the call is further than this: it must not look as if it were only just under way.
    let later = conversation.entries(reply.saturating_add(1), usize::MAX)?;
    let has_signalled = |run: &RunId| {
        later.iter().any(|(_, entry)| matches!(&entry.body, EntryBody::Signal { run: of, .. } if of == run))
    };
    let delegated = delegated.filter(|(run, _)| !has_signalled(run));
    let mut entries = Vec::new();
    entries.extend(said.clone().map(|text| EntryBody::Said { text, by: Speaker::Agent }));
    entries.extend(delegated.clone().map(|(run, task)| EntryBody::Delegated { run, task }));
    entries.push(EntryBody::Returned { call: call.id, name: call.name.clone(), content, sources });
    let change = |head: &mut Head, _| {
        if let Some((run, _)) = delegated {
            head.runs.retain(|other| *other != run);
            head.runs.push(run);
            let excess = head.runs.len().saturating_sub(MAX_RUNS);
            head.runs.drain(..excess);
        }
        if let Some(Settled { run, question: id }) = settled {
            // A later question of the same run stays open.
            let is_settled =
                |open: &OpenQuestion| open.run == run && id.as_deref().is_none_or(|id| open.asked.id() == id);
            head.questions.retain(|question| !is_settled(question));
        }
    };
    conversation.append_holding(held, entries, (batch, judging), change).await?;
    if let Some((change, memory)) = remembering {
        change.committed(|index| index.insert(&memory.id, memory.at, &memory.text, &memory.sources));
    }
    if let Some(text) = &said {
        cognition.observe(&head.key, Observed::Sent(text));
    }
    cognition.observe(&head.key, Observed::ToolReturned { name: &call.name, is_ok });
    Ok(())
}

fn call(conversation: &Conversation, reply: u64, done: u32) -> Result<RequestedCall, Refusal> {
    let entry = conversation.entry(reply)?;
    let Some(Entry { body: EntryBody::Replied { calls, .. }, .. }) = entry else {
        return Err(damaged("a reply is missing"));
    };
    calls.into_iter().nth(done as usize).ok_or_else(|| damaged("a call is missing"))
}

/// Whether another call of the turn deals with a run, other than by looking at it.
fn has_acted(window: &[(u64, Entry)], trigger: u64, call: &str) -> bool {
    let is_beginning = |entry: &Entry| matches!(entry.body, EntryBody::Began { trigger: of, .. } if of == trigger);
    let of_turn = window.iter().rev().take_while(|(_, entry)| !is_beginning(entry));
    let mut calls = of_turn.flat_map(|(_, entry)| match &entry.body {
        EntryBody::Replied { calls, .. } => calls.as_slice(),
        _ => &[],
    });
    let looks = |arguments: &Arguments| match arguments {
        Arguments::Json(value) => value.get("action").is_some_and(|action| action == "status"),
        Arguments::Malformed(_) => true,
    };
    calls.any(|other| other.id != call && other.name == "core_task" && !looks(&other.arguments))
}

/// Entries before the trigger with words that the owner may answer, since the oldest open question: replies, and a model's texts about
/// news and tasks, which are shown at once.
fn said(conversation: &Conversation, head: &Head, trigger: u64) -> Result<Vec<u64>, StoreError> {
    let Some(oldest) = head.questions.iter().map(|question| question.shown).min() else { return Ok(Vec::new()) };
    let limit = usize::try_from(trigger.saturating_sub(oldest)).unwrap_or(usize::MAX);
    let entries = conversation.entries(oldest, limit)?;
    let is_shown = |body: &EntryBody| {
        matches!(body, EntryBody::Said { .. } | EntryBody::Noted { .. } | EntryBody::Delegated { .. })
    };
    Ok(entries.into_iter().filter(|(_, entry)| is_shown(&entry.body)).map(|(number, _)| number).collect())
}

/// The triggers of the turns in the window that are older than it.
fn triggers(conversation: &Conversation, entries: &[(u64, Entry)]) -> Result<BTreeMap<u64, Entry>, StoreError> {
    let first = entries.first().map_or(0, |(number, _)| *number);
    let numbers = entries.iter().filter_map(|(_, entry)| match entry.body {
        EntryBody::Began { trigger, .. } if trigger < first => Some(trigger),
        _ => None,
    });
    let mut found = BTreeMap::new();
    for number in numbers {
        found.extend(conversation.entry(number)?.map(|entry| (number, entry)));
    }
    Ok(found)
}
