//! The worker of a conversation: it gives each message and signal its turn, one at a time, in order.
//!
//! It goes on from the head alone, so a turn that a crash interrupted continues at its last durable entry: a reply of the model
//! that was stored is not asked for again, and a call with a stored outcome is not made again.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use base::{Refusal, RefusalCode, RunId};
use llm::{
    Arguments, ChatReply, FinishReason, Recovery, RequestedCall, ToolSpec, granted_name, recover_text_calls,
    take_reasoning,
};
use store::{Batch, StoreError};
use tokio::time::{Instant, timeout_at};

use crate::cognition::Cognition;
use crate::conversation::{Conversation, Held};
use crate::perform::{CallContext, CallOutcome, MAX_REPLY, Settled, perform, run_key_prefix};
use crate::ports::Observed;
use crate::prompt::{Prompted, moved};
use crate::record::{Entry, EntryBody, Head, OpenQuestion, Speaker};
use crate::tools::{MAX_CALLS, TurnPowers, toolset};
use crate::turn::{TriggerKind, Turn, TurnPhase};

/// The longest turn (SPEC COG-1), counted anew after a restart.
const MAX_TURN: Duration = Duration::from_secs(120);
/// Replies of the model in one turn.
const MAX_REPLIES: u32 = 12;
/// Runs of a conversation that are shown as under way.
const MAX_RUNS: usize = 32;
/// Sources that a delegated run begins with.
const MAX_SOURCES: usize = 64;

/// Works until the conversation has nothing to do. Returns at once if another worker is at it.
pub(crate) async fn run(cognition: &Cognition, conversation: Arc<Conversation>) {
    {
        let mut held = conversation.hold().await;
        if std::mem::replace(&mut held.is_worked_on, true) {
            return;
        }
    }
    loop {
        match go_on(cognition, &conversation).await {
            Ok(true) => {}
            Ok(false) => return,
            Err(refusal) => {
                // The entry stays pending: the next message, signal or host takes it up.
                tracing::error!(%refusal, "a turn cannot go on");
                conversation.hold().await.is_worked_on = false;
                return;
            }
        }
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
        let window = moved(&conversation.entries(held.head.window, usize::MAX)?);
        let (begun, _) = conversation
            .append(held, vec![began], Batch::new(), |head, _| {
                head.pending.retain(|pending| *pending != trigger);
                head.window = window.unwrap_or(head.window);
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
            TurnPhase::Replied => end(cognition, conversation, None, None).await?,
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
        (EntryBody::Signal { .. }, None) => TriggerKind::Signal,
        (_, None) => TriggerKind::OwnerMessage,
    })
}

fn damaged(reason: &str) -> Refusal {
    Refusal::new(RefusalCode::StateUnusable, format!("a conversation cannot be read: {reason}"))
}

fn powers(conversation: &Conversation, turn: Turn) -> TurnPowers {
    TurnPowers::of(turn.kind, conversation.consents.lock().contains_key(&turn.trigger))
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
    let entries = conversation.entries(head.window, usize::MAX)?;
    let triggers = triggers(conversation, &entries)?;
    let (powers, sections) = (powers(conversation, turn), cognition.sections(&head.key));
    let request =
        Prompted { id: &conversation.id, head, turn, powers, entries: &entries, triggers: &triggers, sections }
            .request();
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
    replied(cognition, conversation, head, reply).await
}

async fn replied(
    cognition: &Cognition,
    conversation: &Arc<Conversation>,
    head: &Head,
    reply: ChatReply,
) -> Result<(), Refusal> {
    let usage = reply.usage;
    let observed = Observed::ModelReplied { input_tokens: usage.input_tokens, output_tokens: usage.output_tokens };
    let is_complete = reply.finish.is_complete();
    let detail = reply.finish_detail.clone().unwrap_or_else(|| format!("{:?}", reply.finish));
    let calls = reply.tool_calls;
    let text = base::text::cut(reply.text.trim(), MAX_REPLY);
    let has_calls = !calls.is_empty();
    let (input_tokens, output_tokens) = (usage.input_tokens, usage.output_tokens);
    let entry = EntryBody::Replied { text: text.clone(), calls, state: reply.state, input_tokens, output_tokens };
    let mut batch = Batch::new();
    cognition.inner.parts.minds.charge(&mut batch, &head.key.agent).await?;
    if has_calls {
        conversation.append(conversation.hold().await, vec![entry], batch, |_, _| {}).await?;
    } else {
        let error = (!is_complete).then(|| format!("the model did not finish its reply: {detail}"));
        let text = Some(text).filter(|text| !text.is_empty());
        // The reply, its delivery and the end of the turn are one batch: nothing is said twice.
        finish(cognition, conversation, TurnEnd { entries: vec![entry], batch, text, error }).await?;
    }
    cognition.observe(&head.key, observed);
    Ok(())
}

/// The reply with calls that can be executed: those written as text are recovered (SPEC LLM-2), those of half a reply dropped,
/// because any of them may be truncated.
fn normal(mut reply: ChatReply, tools: &[ToolSpec], entries: &[(u64, Entry)]) -> ChatReply {
    take_reasoning(&mut reply);
    let before = reply.tool_calls.len();
    if !reply.finish.is_complete() {
        reply.tool_calls.clear();
    }
    reply.tool_calls.truncate(MAX_CALLS);
    if reply.tool_calls.len() < before {
        // It belongs to all calls.
        reply.state = None;
    }
    if reply.tool_calls.is_empty()
        && matches!(reply.finish, FinishReason::Stop | FinishReason::ToolCalls)
        && let Recovery::Calls { calls, text } = recover_text_calls(&reply.text, tools)
    {
        let call = |call: llm::TextCall| RequestedCall {
            id: String::new(),
            name: call.name,
            arguments: Arguments::Json(call.arguments),
        };
        reply.tool_calls = calls.into_iter().take(MAX_CALLS).map(call).collect();
        reply.text = text;
    }
    let used = entries.iter().flat_map(|(_, entry)| match &entry.body {
        EntryBody::Replied { calls, .. } => calls.iter().map(|call| call.id.clone()).collect(),
        _ => Vec::new(),
    });
    let mut seen: BTreeSet<String> = used.collect();
    let last = entries.last().map_or(0, |(number, _)| *number);
    // A result names one call of the conversation.
    for (index, call) in reply.tool_calls.iter_mut().enumerate() {
        if call.id.is_empty() || !seen.insert(call.id.clone()) {
            call.id = format!("call_{last}_{index}");
            seen.insert(call.id.clone());
        }
        if let Some(name) = granted_name(&call.name, tools) {
            name.clone_into(&mut call.name);
        }
    }
    reply
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
}

/// Ends the turn. The other side of a message always gets an answer, or the notice that the agent gave no answer.
async fn finish(cognition: &Cognition, conversation: &Arc<Conversation>, end: TurnEnd) -> Result<(), Refusal> {
    let TurnEnd { mut entries, batch, text, error } = end;
    let held = conversation.hold().await;
    let Some(turn) = held.head.turn else { return Ok(()) };
    let is_owner = held.head.key.peer.is_none();
    let (key, trigger) = (held.head.key.clone(), turn.trigger);
    let mut sent = Vec::new();
    // The same text again, after `core_say`, is not a second reply.
    let text = text.filter(|text| !repeats(conversation, &held.head, text).unwrap_or(false));
    sent.extend(text.map(|text| (text, Speaker::Agent)));
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
    let context = CallContext {
        id: &conversation.id,
        hands: &*cognition.inner.parts.hands,
        head,
        powers: TurnPowers::of(turn.kind, word.is_some()),
        trigger: turn.trigger,
        word,
        key: format!("{}{reply}-{done}", run_key_prefix(&conversation.id)),
        sources: sources(&window, &triggers(conversation, &window)?),
        has_acted: has_acted(&window, turn.trigger, &call.id),
    };
    let outcome = timeout_at(deadline, perform(&call, context)).await.unwrap_or_else(|_| CallOutcome {
        content: "error: the outcome is unknown, because the turn ran out of time".to_owned(),
        ..CallOutcome::default()
    });
    let CallOutcome { content, said, delegated, settled } = outcome;
    let held: Held = conversation.hold().await;
    // A run that has signalled since the call is further than this: it must not look as if it were only just under way.
    let later = conversation.entries(reply.saturating_add(1), usize::MAX)?;
    let has_signalled = |run: &RunId| {
        later.iter().any(|(_, entry)| matches!(&entry.body, EntryBody::Signal { run: of, .. } if of == run))
    };
    let delegated = delegated.filter(|(run, _)| !has_signalled(run));
    let mut entries = Vec::new();
    entries.extend(said.clone().map(|text| EntryBody::Said { text, by: Speaker::Agent }));
    entries.extend(delegated.clone().map(|(run, task)| EntryBody::Delegated { run, task }));
    entries.push(EntryBody::Returned { call: call.id, name: call.name.clone(), content });
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
    conversation.append(held, entries, Batch::new(), change).await?;
    if let Some(text) = &said {
        cognition.observe(&head.key, Observed::Sent(text));
    }
    cognition.observe(&head.key, Observed::ToolReturned { name: &call.name });
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

/// Sources of the web content that the model sees: in the window, and in the triggers of its turns.
fn sources(window: &[(u64, Entry)], triggers: &BTreeMap<u64, Entry>) -> Vec<String> {
    let of = |body: &EntryBody| match body {
        EntryBody::Signal { sources, .. } => sources.clone(),
        _ => Vec::new(),
    };
    let entries = window.iter().map(|(_, entry)| entry).chain(triggers.values());
    let found: BTreeSet<String> = entries.flat_map(|entry| of(&entry.body)).collect();
    found.into_iter().take(MAX_SOURCES).collect()
}

/// The triggers of the turns in the window.
fn triggers(conversation: &Conversation, entries: &[(u64, Entry)]) -> Result<BTreeMap<u64, Entry>, StoreError> {
    let numbers = entries.iter().filter_map(|(_, entry)| match entry.body {
        EntryBody::Began { trigger, .. } => Some(trigger),
        _ => None,
    });
    let mut found = BTreeMap::new();
    for number in numbers {
        found.extend(conversation.entry(number)?.map(|entry| (number, entry)));
    }
    Ok(found)
}
