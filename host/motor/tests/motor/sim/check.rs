//! The invariants of everything on the disk, at every end of the host.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::{ErrorCode, Timestamp};
use llm::{ChatReply, FinishReason};
use motor::{RunEvent, RunRecord, RunStatus, StatusEvent, StoredEvent, TellReason};
use serde::de::DeserializeOwned;
use serde_json::Value;
use signals::{Signal, SignalStatus};
use store::{SimulatedDisk, Table};

use super::tools::READERS;

/// A run as it is stored.
pub struct Run {
    pub record: RunRecord,
    pub events: Vec<StoredEvent>,
}

/// Everything that is stored, and the violations found in it.
#[derive(Default)]
pub struct Stored {
    pub runs: BTreeMap<String, Run>,
    pub signals: Vec<Signal>,
    live: BTreeSet<String>,
    /// The run that holds the place of each agent.
    places: BTreeMap<String, String>,
    levels: Vec<Value>,
    pub broken: Vec<String>,
}

impl Stored {
    /// Reads the disk, and checks its records. Wall clocks were set forward by `ahead` in all.
    pub fn on(disk: &SimulatedDisk, ahead: Duration) -> Self {
        let mut stored = Self::default();
        let mut events: BTreeMap<String, Vec<StoredEvent>> = BTreeMap::new();
        for (table, key, bytes) in disk.records() {
            let key = String::from_utf8_lossy(&key).into_owned();
            match table {
                Table::Runs => {
                    let record = read(&bytes);
                    stored.runs.insert(key, Run { record, events: Vec::new() });
                }
                Table::Events => {
                    let (run, number) = key.split_once('/').unwrap();
                    let events = events.entry(run.to_owned()).or_default();
                    if number.parse::<usize>() != Ok(events.len()) {
                        stored.broken.push(format!("event {key} is number {}", events.len()));
                    }
                    events.push(read(&bytes));
                }
                Table::Live => drop(stored.live.insert(key)),
                Table::Places => {
                    if let Some(agent) = key.strip_prefix("agent/") {
                        stored.places.insert(agent.to_owned(), read(&bytes));
                    }
                }
                Table::Signals => stored.signals.push(read(&bytes)),
                Table::Energy => stored.levels.push(read(&bytes)),
                _ => {}
            }
        }
        for (run, events) in events {
            match stored.runs.get_mut(&run) {
                Some(found) => found.events = events,
                None => stored.broken.push(format!("events of {run}, which has no record")),
            }
        }
        let mut broken = std::mem::take(&mut stored.broken);
        for (id, run) in &stored.runs {
            let wrong =
                lawful(run).and_then(|()| calls(run)).and_then(|()| endings(run)).and_then(|()| consents(run, ahead));
            broken
                .extend(wrong.and_then(|()| told(run, &stored.signals)).err().map(|what| format!("run {id}: {what}")));
        }
        broken.extend(stored.places());
        let is_level = |level: &&Value| level["level"].as_f64().is_some_and(|level| (0.0..=1.0).contains(&level));
        broken.extend(stored.levels.iter().filter(|level| !is_level(level)).map(|level| format!("energy is {level}")));
        if !stored.signals.is_sorted_by(|a, b| a.id < b.id) {
            broken.push("signals are out of order".into());
        }
        stored.broken = broken;
        stored
    }

    /// A place is held by the one run of its agent that is not over, and by nothing else.
    fn places(&self) -> Vec<String> {
        let alive = || self.runs.values().filter(|run| !run.record.status.is_terminal());
        let mut broken = Vec::new();
        let held: BTreeMap<String, String> =
            alive().map(|run| (format!("{}/{}", run.record.agent, run.record.id), run.record.id.to_string())).collect();
        let agents: BTreeSet<String> = alive().map(|run| run.record.agent.to_string()).collect();
        if agents.len() != held.len() || held != self.places {
            let alive: Vec<_> = alive().map(|run| format!("{} of {}", run.record.id, run.record.agent)).collect();
            broken.push(format!("places are held by {:?}, and alive are {alive:?}", self.places));
        }
        let alive: BTreeSet<String> = alive().map(|run| run.record.id.to_string()).collect();
        if alive != self.live {
            broken.push(format!("live are said to be {:?}, and are {alive:?}", self.live));
        }
        broken
    }
}

#[derive(serde::Deserialize)]
struct Envelope<T> {
    d: T,
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> T {
    serde_json::from_slice::<Envelope<T>>(bytes).unwrap().d
}

/// The error codes of calls that may have taken effect nevertheless.
pub const UNCLEAR: [ErrorCode; 3] = [ErrorCode::OutcomeUnknown, ErrorCode::Timeout, ErrorCode::Cancelled];

type Checked = Result<(), String>;

/// The effect of an event on the status; `None` if it begins the run.
fn meaning(event: &RunEvent) -> Option<StatusEvent> {
    Some(match event {
        RunEvent::Created { .. } => return None,
        RunEvent::Started => StatusEvent::Start,
        RunEvent::Asked { .. } => StatusEvent::AskInput,
        RunEvent::ApprovalAsked { .. } => StatusEvent::AskApproval,
        RunEvent::Answered { .. } | RunEvent::ApprovalDecided { .. } => StatusEvent::Answer,
        RunEvent::Retried { .. } => StatusEvent::Retry,
        RunEvent::Finished { status: RunStatus::Completed, .. } => StatusEvent::Complete,
        RunEvent::Finished { status: RunStatus::Cancelled, .. } => StatusEvent::Cancel,
        RunEvent::Finished { .. } => StatusEvent::Fail,
        _ => StatusEvent::GoOn,
    })
}

/// Every change of status is one that the table of transitions has, and the head agrees with the history.
fn lawful(run: &Run) -> Checked {
    let mut status = None;
    let mut attempt = 0;
    let mut steps = 0;
    for (number, StoredEvent { event, .. }) in run.events.iter().enumerate() {
        status = Some(match (status, meaning(event)) {
            (None, None) => RunStatus::Created,
            (Some(status), Some(what)) => {
                RunStatus::transition(status, what).map_err(|illegal| format!("event {number}: {illegal}"))?
            }
            _ => return Err(format!("event {number} begins it, or nothing does")),
        });
        if let RunEvent::Retried { attempt: next, .. } = event {
            attempt += 1;
            if (*next, attempt > 2) != (attempt, false) {
                return Err(format!("event {number} is attempt {next} after {}", attempt - 1));
            }
        }
        if let RunEvent::ModelReplied { step, .. } = event {
            steps += 1;
            if *step != steps {
                return Err(format!("event {number} is step {step}, expected {steps}"));
            }
        }
    }
    let counted = (run.record.status, run.record.attempt, run.record.next_sequence, run.record.iterations);
    let found = (status.ok_or("it has no history")?, attempt, run.events.len() as u64, steps);
    if counted == found { Ok(()) } else { Err(format!("its head says {counted:?}, its history {found:?}")) }
}

/// No call of half a reply is made, no half reply is the answer, and one that was cut off is continued once.
fn endings(run: &Run) -> Checked {
    let mut last = None;
    let mut cut_offs = 0;
    for (number, StoredEvent { event, .. }) in run.events.iter().enumerate() {
        match event {
            RunEvent::ModelReplied { reply, dropped_calls, .. } => {
                let is_half = !reply.finish.is_complete() && reply.finish != FinishReason::Paused;
                if (is_half && !reply.tool_calls.is_empty()) || (!is_half && !dropped_calls.is_empty()) {
                    return Err(format!("event {number} has calls that it should not have: {reply:?}"));
                }
                if !reply.tool_calls.is_empty() {
                    cut_offs = 0;
                }
                last = Some(reply);
            }
            RunEvent::Told { reason: TellReason::CutOff | TellReason::CutOffCall, .. } => {
                cut_offs += 1;
                if cut_offs > 1 {
                    return Err(format!("event {number} continues a reply that was continued"));
                }
            }
            RunEvent::Retried { .. } => cut_offs = 0,
            RunEvent::Finished { status: RunStatus::Completed, summary, .. } => {
                let summary = summary.as_deref().unwrap_or_default();
                // After many refusals the last words are the answer, followed by the refused actions.
                let is_cut_short = summary.contains("Not done, because it was refused: ");
                let is_answer = |reply: &ChatReply| reply.finish.is_complete() && summary.ends_with(reply.text.trim());
                if !is_cut_short && last.as_ref().is_none_or(|reply| !is_answer(reply)) {
                    return Err(format!("event {number} takes {last:?} for the answer"));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// A call is intended once and has one result; it is intended before the result, and nothing comes between. An action that
/// is done again has a new key if its outcome is known, and the old one otherwise.
fn calls(run: &Run) -> Checked {
    let mut intended = BTreeSet::new();
    let mut returned = BTreeSet::new();
    // By the id of the call: the action, and whether it only reads.
    let mut in_flight: BTreeMap<&String, (String, bool)> = BTreeMap::new();
    let mut held: BTreeMap<&String, String> = BTreeMap::new();
    let mut keys: BTreeMap<String, (&String, bool)> = BTreeMap::new();
    for (number, StoredEvent { event, .. }) in run.events.iter().enumerate() {
        match event {
            RunEvent::ToolIntended { call_id, tool, arguments, idempotency_key, .. } => {
                let action = format!("{tool} {arguments}");
                let reads = READERS.contains(&tool.as_str());
                let alone = in_flight.values().any(|(other, others)| !reads || !others || *other == action);
                if !intended.insert(call_id) || alone {
                    return Err(format!(
                        "event {number} intends `{call_id}` again, or while {in_flight:?} is in flight"
                    ));
                }
                if let Some((key, is_known)) = keys.insert(action.clone(), (idempotency_key, false))
                    && (key == idempotency_key) == is_known
                {
                    return Err(format!("event {number} has {idempotency_key} after {key}, known: {is_known}"));
                }
                held.remove(call_id);
                in_flight.insert(call_id, (action, reads));
            }
            // The owner is asked, and it is made again: nothing is known of it yet.
            RunEvent::ToolReturned { call_id, held: true, .. } => {
                let Some((action, _)) = in_flight.remove(call_id).filter(|_| intended.remove(call_id)) else {
                    return Err(format!("event {number} holds `{call_id}`, which was not in flight"));
                };
                held.insert(call_id, action);
            }
            RunEvent::ToolReturned { call_id, result, .. } => {
                // One that is held and not made again has come to its end.
                let action = in_flight.remove(call_id).map(|(action, _)| action).or_else(|| held.remove(call_id));
                if !returned.insert(call_id) {
                    return Err(format!("event {number} is a second result of `{call_id}`"));
                }
                let is_known = !result.error_code.is_some_and(|code| UNCLEAR.contains(&code));
                if let Some(key) = action.and_then(|action| keys.get_mut(&action)) {
                    key.1 = is_known;
                }
            }
            RunEvent::ModelReplied { .. } if !in_flight.is_empty() => {
                return Err(format!("event {number} goes on while {in_flight:?} is in flight"));
            }
            RunEvent::Retried { .. } => {
                in_flight.clear();
                held.clear();
            }
            _ => {}
        }
    }
    Ok(())
}

/// Each question is asked once and decided once, in time except for the time by which the clock was set `ahead` meanwhile, and
/// a consent to one action is used once.
fn consents(run: &Run, ahead: Duration) -> Checked {
    let mut questions: BTreeMap<&String, Timestamp> = BTreeMap::new();
    let mut asked = BTreeMap::new();
    let mut decided = BTreeMap::new();
    let mut used = BTreeMap::new();
    let (mut leases, mut sent, mut held) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for StoredEvent { at, event, .. } in &run.events {
        match event {
            RunEvent::Asked { question } => {
                let before = questions.insert(&question.id, question.expires_at);
                if before.is_some() {
                    return Err(format!("`{}` is asked twice", question.id));
                }
            }
            RunEvent::Answered { question, .. } => {
                // An answered question is no question any more.
                let expires = questions.insert(question, Timestamp::from_millis(0));
                if expires.is_none_or(|expires| expires.as_millis() == 0 || *at >= expires.after(ahead)) {
                    return Err(format!("`{question}` is answered at {at}: twice, late, or without being asked"));
                }
            }
            RunEvent::ApprovalAsked { approval } => {
                let before = asked.insert(approval.id.clone(), approval);
                if before.is_some() {
                    return Err(format!("`{}` is asked twice", approval.id));
                }
            }
            RunEvent::ApprovalDecided { approval, granted, scope, only, .. } => {
                if let Some(asked) = asked.get(approval).filter(|asked| asked.repeat && *granted) {
                    let items = asked.items.iter().map(|item| item.action_hash);
                    for action in items.filter(|action| only.is_empty() || only.contains(action)) {
                        *leases.entry(action).or_insert(0) += 1;
                    }
                }
                let in_time = asked.get(approval).is_some_and(|asked| *at < asked.expires_at.after(ahead));
                if !in_time || decided.insert(approval.clone(), (*granted, *scope)).is_some() {
                    return Err(format!("`{approval}` is decided at {at}: twice, late, or without being asked"));
                }
            }
            // A held call is made again by the consent that it had.
            RunEvent::ToolIntended { call_id, .. } if held.remove(call_id) => {}
            RunEvent::ToolIntended { tool, call_id, arguments, approval: Some(approval), .. } => {
                let Some((true, scope)) = decided.get(approval) else {
                    return Err(format!("`{call_id}` relies on `{approval}`, which was not granted"));
                };
                let action = (approval.clone(), tool.clone(), arguments.to_string());
                let times = used.entry(action).or_insert(0);
                *times += 1;
                let items = &asked[approval].items;
                let covered = items.iter().filter(|item| item.tool == *tool && item.arguments == *arguments).count();
                if *scope == motor::Scope::Once && *times > covered {
                    return Err(format!("`{call_id}` uses `{approval}` {times} times, and it covers {covered}"));
                }
            }
            RunEvent::ToolIntended { tool, call_id, approval: None, .. } => {
                let effects = super::tools::effects(tool);
                if run.record.approval_required && effects.open_world && !effects.read_only {
                    return Err(format!("`{call_id}` of `{tool}` is made without consent"));
                }
            }
            RunEvent::ToolReturned { call_id, held: true, .. } => drop(held.insert(call_id)),
            RunEvent::ToolReturned { call_id, requests, .. } => {
                for hash in requests.iter().filter(|request| request.consented).filter_map(|request| request.hash) {
                    *sent.entry(hash).or_insert(0) += 1;
                    if sent.get(&hash) > leases.get(&hash) {
                        return Err(format!("`{call_id}` sent `{hash}` more often than the owner consented to"));
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// The signals of the run: each question and each end, in order, and nothing else. A question may be repeated.
fn told(run: &Run, signals: &[Signal]) -> Checked {
    let mut expected = Vec::new();
    for StoredEvent { event, .. } in &run.events {
        match event {
            RunEvent::Asked { question } => {
                expected.push((SignalStatus::AwaitingInput, Some(question.question.clone())));
            }
            RunEvent::ApprovalAsked { approval } => {
                expected.push((SignalStatus::AwaitingApproval, Some(approval.id.clone())));
            }
            RunEvent::Finished { status, .. } => expected.push((
                match status {
                    RunStatus::Completed => SignalStatus::Completed,
                    RunStatus::Cancelled => SignalStatus::Cancelled,
                    _ => SignalStatus::Failed,
                },
                None,
            )),
            _ => {}
        }
    }
    let mut expected = expected.into_iter();
    let mut last = None;
    for signal in signals.iter().filter(|signal| signal.body.run_id == run.record.id) {
        let body = &signal.body;
        let approval = body.approval.as_ref().map(|approval| approval.id.clone());
        let said = (body.status, body.question.clone().or(approval).filter(|_| body.status.is_waiting()));
        if body.status.is_waiting() && last.as_ref() == Some(&said) && expected.as_slice().first() != Some(&said) {
            continue;
        }
        let next = expected.next();
        if next.as_ref() != Some(&said) {
            return Err(format!("signal {} says {said:?}, expected {next:?}", signal.id));
        }
        last = Some(said);
    }
    match expected.next() {
        None => Ok(()),
        Some(missing) => Err(format!("nobody was told {missing:?}")),
    }
}
