//! Actions and consents: a fold of the run's events over all its attempts (SPEC APPR-1, APPR-2).
//!
//! An action is a request as it is sent, no matter which tool sends it, or a whole call of a tool that needs consent before
//! the call; either is identified by its hash. A consent is a lease on one action. A call uses it up with its intent, a
//! request with the result that reports the sending: both are events, so a crash in between leaves the lease, and one
//! afterwards has used it. The ledger does not decide which actions need consent.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use base::text::cut;
use base::{ContentHash, ErrorCode, RunId};
use grants::RunConsent;

use crate::event::RunEvent;
use crate::request::{CallLeases, OutgoingRequest};
use crate::toolbox::ToolResult;
use crate::wait::{Approval, Scope, action_hash, allows};

/// Characters kept of the result of an action that is not done again.
const KEPT: usize = 300;
/// Refusals of a class after which it is refused without a question.
const MAX_DENIALS: u32 = 3;

/// Consent to one action, not used yet.
#[derive(Debug, Clone, PartialEq)]
struct Lease {
    approval: String,
    action: ContentHash,
    grant: Option<RunConsent>,
    /// It is on a request that a call was refused, and not on a call.
    is_request: bool,
}

/// An action that changed something outside and is known to have succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletedAction {
    pub(crate) attempt: u32,
    pub(crate) step: u32,
    pub(crate) output: String,
}

/// The recorded facts about an action.
#[derive(Debug, Clone, Default)]
struct ActionRecord {
    /// How often it came to an end that is known.
    known: u32,
    done: Option<CompletedAction>,
}

/// How often the owner refused something of a class, and why the last time.
#[derive(Debug, Clone, Default)]
struct Denials {
    times: u32,
    reason: Option<String>,
}

/// The actions and consents of a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    asked: Option<Approval>,
    leases: Vec<Lease>,
    /// Those that the call which is held has used up: it is made again, so a consent to the rest renews them.
    again: Vec<Lease>,
    /// The calls that are held, by their ids, and the requests they have sent.
    held: Vec<(String, ContentHash, Vec<OutgoingRequest>)>,
    /// Classes the owner consented to for the run or longer.
    allowed: HashMap<String, (String, Option<RunConsent>)>,
    /// The actions that the owner refused, and why.
    denied_actions: HashMap<ContentHash, Option<String>>,
    denied_classes: HashMap<String, Denials>,
    actions: HashMap<ContentHash, ActionRecord>,
    /// How often a request is known to have been sent.
    sent: BTreeMap<ContentHash, u32>,
    /// The calls in flight, by their ids.
    in_flight: Vec<(String, ContentHash)>,
    attempt: u32,
}

/// The ledger's answer to an action that needs consent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ConsentState {
    /// There is consent: its id, and the access that the environment gets.
    Granted(String, Option<RunConsent>),
    /// The owner has refused it, for this reason.
    Denied(Option<String>),
    /// The owner has not been asked.
    Unasked,
}

/// Whether a call that failed so may have taken effect all the same.
fn is_unclear(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::OutcomeUnknown | ErrorCode::Timeout | ErrorCode::Cancelled)
}

impl Ledger {
    pub(crate) fn apply(&mut self, run: &RunId, event: &RunEvent) {
        match event {
            RunEvent::ApprovalAsked { approval } => {
                if approval.repeat {
                    // The same call is made again, and a server that checks idempotency keys must recognise it.
                    for item in &approval.items {
                        if let Some(action) = self.actions.get_mut(&item.action_hash) {
                            action.known = action.known.saturating_sub(1);
                        }
                    }
                }
                self.asked = Some(approval.clone());
            }
            RunEvent::ApprovalDecided { approval, granted, scope, only, reason, .. } => {
                if let Some(asked) = self.asked.take_if(|asked| asked.id == *approval) {
                    self.decided(asked, *granted, *scope, only, reason.as_ref());
                }
            }
            RunEvent::ToolIntended { call_id, tool, arguments, approval, .. } => {
                let action = action_hash(run, tool, arguments);
                if let Some(used) = approval {
                    self.use_up(|lease| lease.approval == *used && lease.action == action);
                }
                self.held.retain(|(id, ..)| id != call_id);
                self.in_flight.push((call_id.clone(), action));
            }
            RunEvent::ToolReturned { step, call_id, result, requests, held, .. } => {
                self.returned(*step, call_id, result, requests, *held)
            }
            RunEvent::Retried { attempt, .. } => {
                self.attempt = *attempt;
                self.in_flight.clear();
                self.held.clear();
                self.leases.clear();
                self.again.clear();
            }
            RunEvent::Finished { .. } => self.asked = None,
            _ => {}
        }
    }

    fn returned(&mut self, step: u32, call_id: &str, result: &ToolResult, requests: &[OutgoingRequest], held: bool) {
        let is_unclear = result.error_code.is_some_and(is_unclear);
        let in_flight = self.in_flight.iter().position(|(id, _)| id == call_id);
        let (action, requests) = if let Some(at) = in_flight {
            let (id, action) = self.in_flight.swap_remove(at);
            for request in requests.iter().filter(|request| request.consented) {
                let used = self.use_up(|lease| Some(lease.action) == request.hash);
                self.again.extend(used);
            }
            if held {
                self.held.push((id, action, requests.to_vec()));
                return;
            }
            self.again.clear();
            if is_unclear {
                // A request that used up its consent may be among those that nothing is known of.
                self.leases.retain(|lease| !lease.is_request);
            }
            (action, Cow::Borrowed(requests))
        } else if let Some(at) = self.held.iter().position(|(id, ..)| id == call_id) {
            let (_, action, requests) = self.held.swap_remove(at);
            // The call is not made again, so the record of its requests stands.
            (action, Cow::Owned(requests))
        } else {
            return;
        };
        // All that leaves goes through the gate, so its record is evidence enough.
        let landed = requests.iter().any(OutgoingRequest::is_done_write);
        // A call that was ended from outside may have taken effect, like one whose host died, and one that failed after it
        // had written is not finished either: a server that checks keys sees the same key again.
        if is_unclear || (landed && !result.ok) {
            return;
        }
        for hash in requests.iter().filter(|request| request.status.is_some()).filter_map(|sent| sent.hash) {
            *self.sent.entry(hash).or_default() += 1;
        }
        let entry = self.actions.entry(action).or_default();
        entry.known += 1;
        if landed {
            let output = cut(&result.output, KEPT);
            entry.done = Some(CompletedAction { attempt: self.attempt, step, output });
        }
    }

    /// Removes the first lease that matches.
    fn use_up(&mut self, is_used: impl Fn(&Lease) -> bool) -> Option<Lease> {
        let at = self.leases.iter().position(is_used)?;
        Some(self.leases.remove(at))
    }

    fn decided(&mut self, asked: Approval, granted: bool, scope: Scope, only: &[ContentHash], reason: Option<&String>) {
        let Approval { id, items, class, grant, repeat, .. } = asked;
        let again = std::mem::take(&mut self.again);
        if repeat && granted {
            self.leases.extend(again);
        }
        let (allowed, denied): (Vec<_>, Vec<_>) =
            items.into_iter().partition(|item| granted && allows(only, item.action_hash));
        // A refusal is remembered under the action, and counts once for the class of the items shown together: one "no" to
        // a request must not refuse the user's own at the same place (SPEC NET-3).
        let of_denied = denied.iter().map(|item| item.class.as_ref().or(class.as_ref()));
        for class in of_denied.flatten().collect::<BTreeSet<_>>() {
            let denials = self.denied_classes.entry(class.clone()).or_default();
            denials.times += 1;
            denials.reason = reason.cloned();
        }
        self.denied_actions.extend(denied.iter().map(|item| (item.action_hash, reason.cloned())));
        for item in allowed {
            self.denied_actions.remove(&item.action_hash);
            let of_item = item.class.map(|class| (class, item.grant));
            let lasting = (scope != Scope::Once).then(|| of_item.or(class.clone().map(|class| (class, grant.clone()))));
            if let Some((class, grant)) = lasting.flatten() {
                self.denied_classes.remove(&class);
                self.allowed.insert(class, (id.clone(), grant));
            }
            // The action that was shown is allowed by its own consent, regardless of the class.
            let (approval, action, grant) = (id.clone(), item.action_hash, grant.clone());
            self.leases.push(Lease { approval, action, grant, is_request: repeat });
        }
    }

    /// Whether there is consent to an action of a class.
    pub(crate) fn standing(&self, action: ContentHash, class: Option<&str>) -> ConsentState {
        let of_class = || class.and_then(|class| self.denied_classes.get(class));
        let of_class = || of_class().filter(|denials| denials.times >= MAX_DENIALS).map(|denials| &denials.reason);
        if let Some(reason) = self.denied_actions.get(&action).or_else(of_class) {
            return ConsentState::Denied(reason.clone());
        }
        if let Some(lease) = self.leases.iter().find(|lease| lease.action == action) {
            return ConsentState::Granted(lease.approval.clone(), lease.grant.clone());
        }
        match class.and_then(|class| self.allowed.get(class)) {
            Some((approval, grant)) => ConsentState::Granted(approval.clone(), grant.clone()),
            None => ConsentState::Unasked,
        }
    }

    /// The consents to requests that a call gets.
    pub(crate) fn consents(&self) -> CallLeases {
        let leases = self.leases.iter().filter(|lease| lease.is_request).map(|lease| lease.action).collect();
        CallLeases { leases, sent: self.sent.clone() }
    }

    /// Whether a call would get no consent that is good for one request: two calls at once could both use it.
    pub(crate) fn has_no_lease(&self) -> bool {
        self.leases.is_empty()
    }

    /// The idempotency key of an action. It stays the same in each attempt until the action has a known outcome, so that a
    /// server that checks keys does not repeat an action whose outcome is unknown.
    pub(crate) fn key(&self, run: &RunId, action: ContentHash) -> String {
        let known = self.actions.get(&action).map_or(0, |action| action.known);
        format!("{run}-{}-{known}", action.short())
    }

    /// The action, when an earlier attempt has done it and it changed something outside.
    pub(crate) fn done_before(&self, action: ContentHash) -> Option<&CompletedAction> {
        self.actions.get(&action)?.done.as_ref().filter(|done| done.attempt < self.attempt)
    }
}
