//! The invariants between the disk and the outside: promises, displays and effects.

use std::collections::BTreeMap;
use std::time::Duration;

use base::Timestamp;
use motor::{LiveEvent, RunEvent, RunStatus, StoredEvent};

use super::check::{Run, Stored, UNCLEAR};
use super::outside::{Issued, Known, Order, Told};

/// A cancel is through after this (SPEC RUN-7), but for a disk without room.
const CANCEL: Duration = Duration::from_millis(100);

/// The violations between stored state and the facts known outside.
pub fn broken(stored: &Stored, known: &Known) -> Vec<String> {
    let mut broken = Vec::new();
    for issued in &known.orders {
        broken.extend(kept(stored, known, issued).err().map(|what| format!("{issued:?}: {what}")));
    }
    for id in stored.runs.keys() {
        if !known.orders.iter().any(|issued| matches!(issued.order, Order::Start { .. }) && issued.run.as_str() == id) {
            broken.push(format!("nobody asked for run {id}"));
        }
    }
    for signal in &known.signals {
        if !stored.signals.contains(signal) {
            broken.push(format!("a signal was delivered that is not stored: {signal:?}"));
        }
    }
    for (run, event) in &known.shown {
        let events = stored.runs.get(run.as_str()).map_or(&[][..], |run| &run.events);
        if !events.iter().any(|stored| is_shown(stored, event)) {
            broken.push(format!("run {run} showed what is not stored: {event:?}"));
        }
    }
    broken.extend(doubles(stored, known));
    broken
}

/// Acknowledged commands are in the history, refused ones are not, and none is in it twice.
fn kept(stored: &Stored, known: &Known, issued: &Issued) -> Result<(), String> {
    let run = stored.runs.get(issued.run.as_str());
    let events = || run.into_iter().flat_map(|run| &run.events).map(|stored| &stored.event);
    let mark = &issued.mark;
    let times = match &issued.order {
        Order::Start { agent, key, .. } => return started(stored, issued, &format!("{agent}/{key}")),
        Order::Cancel => {
            let Some(Ok(_)) = issued.told else { return Ok(()) };
            if issued.took > CANCEL && !issued.short_of_room {
                return Err(format!("it took {:?}", issued.took));
            }
            let last = events().next_back();
            let is_cancelled = matches!(last, Some(RunEvent::Finished { status: RunStatus::Cancelled, .. }));
            return if is_cancelled { Ok(()) } else { Err(format!("the run goes on to {last:?}")) };
        }
        Order::Respond { question } => events()
            .filter(|event| {
                matches!(event, RunEvent::Answered { answer, question: of, .. }
                    if answer == mark && question.as_ref().is_none_or(|question| question == of))
            })
            .count(),
        Order::Approve { is_astray: true, .. } if issued.is_done() => {
            return Err("it was about another action, and was taken".into());
        }
        Order::Approve { approval, grant, .. } => events()
            .filter(|event| {
                matches!(event, RunEvent::ApprovalDecided { approval: of, granted, consent, .. }
                    if mark_of(consent.at) == *mark && granted == grant && approval.as_ref().is_none_or(|id| id == of))
            })
            .count(),
        Order::Retry => events()
            .filter(|event| {
                matches!(event, RunEvent::Retried { attempt, consent: Some(consent), .. } if mark_of(consent.at) == *mark
                    && !matches!(&issued.told, Some(Ok(Told::Attempt(told))) if told != attempt))
            })
            .count(),
    };
    // A repeated command is one command, and its sender needs one good answer.
    let again = || known.orders.iter().filter(|other| other.mark == *mark);
    match times {
        0 if issued.is_done() => Err("it was acknowledged, and is lost".into()),
        0 => Ok(()),
        1 if again().all(Issued::is_refused) => Err("it was refused, and took effect".into()),
        1 => Ok(()),
        _ => Err(format!("it took effect {times} times")),
    }
}

/// The mark of the order that a consent belongs to, by the time it was given.
pub fn mark_of(at: Timestamp) -> String {
    format!("order {}", at.as_millis())
}

fn started(stored: &Stored, issued: &Issued, key: &str) -> Result<(), String> {
    let has_key = |run: &&Run| match run.events.first().map(|stored| &stored.event) {
        Some(RunEvent::Created { agent, key: Some(of), .. }) => format!("{agent}/{of}") == key,
        _ => false,
    };
    let runs: Vec<_> = stored.runs.values().filter(has_key).map(|run| &run.record.id).collect();
    match (&issued.told, runs.as_slice()) {
        (Some(Ok(Told::Run(id))), [run]) if *run == id => Ok(()),
        (Some(Ok(told)), _) => Err(format!("it was acknowledged with {told:?}, and the key stands for {runs:?}")),
        (_, [_, _, ..]) => Err(format!("its key stands for {runs:?}")),
        _ if issued.is_refused() && stored.runs.contains_key(issued.run.as_str()) => {
            Err("it was refused, and is there".into())
        }
        _ => Ok(()),
    }
}

fn is_shown(stored: &StoredEvent, shown: &LiveEvent) -> bool {
    match (&stored.event, shown) {
        (
            RunEvent::ToolReturned { call_id, result, .. },
            LiveEvent::ToolFinished { at, call_id: of, result: was, .. },
        ) => stored.at == *at && call_id == of && result == was,
        (RunEvent::Finished { status, .. }, LiveEvent::Finished { at, status: was, .. }) => {
            stored.at == *at && status == was
        }
        (RunEvent::ToolIntended { call_id, .. }, LiveEvent::ToolStarted { at, call_id: of, .. }) => {
            stored.at == *at && call_id == of
        }
        _ => false,
    }
}

/// Whether an event is of a kind that [`broken`] compares.
pub fn is_compared(event: &LiveEvent) -> bool {
    matches!(event, LiveEvent::ToolFinished { .. } | LiveEvent::Finished { .. } | LiveEvent::ToolStarted { .. })
}

/// A call has one effect unless its tool may be called again; then every repetition has the same key. Two calls share a key
/// only if the outcome of the first is unknown.
fn doubles(stored: &Stored, known: &Known) -> Vec<String> {
    let mut broken = Vec::new();
    let mut by_call = BTreeMap::new();
    let mut by_key = BTreeMap::new();
    for delivery in &known.deliveries {
        let call = (delivery.run.as_str(), delivery.call_id.as_str());
        if let Some(key) = by_call.insert(call, &delivery.key)
            && (!delivery.is_repeatable || *key != delivery.key)
        {
            broken.push(format!("a call was made again: {delivery:?}, before with {key}"));
        }
        if delivery.is_repeatable {
            continue;
        }
        if let Some(before) = by_key.insert(&delivery.key, call)
            && before != call
            && !is_unknown(stored, before)
        {
            broken.push(format!("two calls have one key: {before:?} and {delivery:?}"));
        }
    }
    broken
}

fn is_unknown(stored: &Stored, (run, call): (&str, &str)) -> bool {
    let events = stored.runs.get(run).map_or(&[][..], |run| &run.events);
    let result = events.iter().find_map(|stored| match &stored.event {
        RunEvent::ToolReturned { call_id, result, held: false, .. } if call_id == call => Some(result.error_code),
        _ => None,
    });
    // A run that ended in the middle of a call has no result of it.
    result.is_none_or(|code| code.is_some_and(|code| UNCLEAR.contains(&code)))
}
