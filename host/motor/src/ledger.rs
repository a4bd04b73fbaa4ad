//! What was done and what was consented to: a fold of the run's events over all its attempts (SPEC APPR-1, APPR-2).
//!
//! A consent is a lease on one action, told by its hash, and is used up by the intent that names it: both are events, so a
//! crash between them leaves the lease, and one after them has used it. It must not decide what needs consent.

use std::collections::HashMap;

use base::{ContentHash, ErrorCode, RunId};
use serde_json::Value;

use crate::event::RunEvent;
use crate::record::beginning;
use crate::wait::{Approval, Scope, action_hash};

/// Characters kept of the result of an action that is not done again.
const KEPT: usize = 300;

/// Consent to one action, not used yet.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lease {
    pub(crate) approval: String,
    pub(crate) action: ContentHash,
    pub(crate) grant: Value,
    /// The step whose reply asked, when the call was refused first and is to be made again: in the next reply, and before
    /// anything else is done that might change what the call does.
    pub(crate) again: Option<u32>,
}

/// An action that changed something outside and is known to have succeeded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) attempt: u32,
    pub(crate) step: u32,
    pub(crate) output: String,
}

/// What is known of an action.
#[derive(Debug, Clone, Default)]
struct Action {
    /// How often it came to an end that is known.
    known: u32,
    done: Option<Done>,
}

/// What was done and consented to in a run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    asked: Option<Approval>,
    leases: Vec<Lease>,
    /// Classes the owner consented to for the run or longer.
    allowed: HashMap<String, (String, Value)>,
    /// What the owner refused, and why.
    denied_actions: HashMap<ContentHash, Option<String>>,
    denied_classes: HashMap<String, Option<String>>,
    actions: HashMap<ContentHash, Action>,
    in_flight: Option<ContentHash>,
    attempt: u32,
}

/// What the ledger says to an action that needs consent.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Standing {
    /// There is consent: under this id, with what the environment gets.
    Granted(String, Value),
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
                    // The same call is going to be made again, and whoever looks at keys outside must see that it is.
                    for item in &approval.items {
                        if let Some(action) = self.actions.get_mut(&item.action_hash) {
                            action.known = action.known.saturating_sub(1);
                        }
                    }
                }
                self.asked = Some(approval.clone());
            }
            RunEvent::ApprovalDecided { approval, granted, scope, reason, .. } => {
                if let Some(asked) = self.asked.take_if(|asked| asked.id == *approval) {
                    self.decided(asked, *granted, *scope, reason.as_ref());
                }
            }
            RunEvent::ModelReplied { step, .. } => {
                self.leases.retain(|lease| lease.again.is_none_or(|asked| *step <= asked + 1));
            }
            RunEvent::ToolIntended { tool, arguments, approval, effects, .. } => {
                let action = action_hash(run, tool, arguments);
                if let Some(used) = approval
                    && let Some(at) =
                        self.leases.iter().position(|lease| lease.approval == *used && lease.action == action)
                {
                    self.leases.remove(at);
                }
                if !effects.read_only {
                    self.leases.retain(|lease| lease.again.is_none() || lease.action == action);
                }
                self.in_flight = Some(action);
            }
            RunEvent::ToolReturned { step, result, requests, .. } => {
                let Some(action) = self.in_flight.take() else { return };
                // All that leaves goes through the gate, so its record is evidence enough.
                let landed = requests.iter().any(crate::toolbox::OutgoingRequest::is_done_write);
                // A call that was ended from outside may have taken effect just as one whose host died, and one that
                // failed after it had written something is not over either: whoever looks at keys sees them again.
                if result.error_code.is_some_and(is_unclear) || (landed && !result.ok) {
                    return;
                }
                let entry = self.actions.entry(action).or_default();
                entry.known += 1;
                if landed {
                    let output = beginning(&result.output, KEPT);
                    entry.done = Some(Done { attempt: self.attempt, step: *step, output });
                }
            }
            RunEvent::Retried { attempt, .. } => {
                self.attempt = *attempt;
                self.in_flight = None;
                self.leases.clear();
            }
            RunEvent::Finished { .. } => self.asked = None,
            _ => {}
        }
    }

    fn decided(&mut self, asked: Approval, granted: bool, scope: Scope, reason: Option<&String>) {
        let Approval { id, items, class, grant, step, repeat, .. } = asked;
        if !granted {
            // A refusal is remembered for the run, and what is tried by other means is of the same class (SPEC NET-3).
            self.denied_actions.extend(items.iter().map(|item| (item.action_hash, reason.cloned())));
            self.denied_classes.extend(class.map(|class| (class, reason.cloned())));
            return;
        }
        match (scope != Scope::Once).then_some(class).flatten() {
            Some(class) => {
                self.denied_classes.remove(&class);
                self.allowed.insert(class, (id, grant));
            }
            None => {
                for item in items {
                    self.denied_actions.remove(&item.action_hash);
                    let (grant, again) = (grant.clone(), repeat.then_some(step));
                    self.leases.push(Lease { approval: id.clone(), action: item.action_hash, grant, again });
                }
            }
        }
    }

    /// Whether there is consent to an action of a class.
    pub(crate) fn standing(&self, action: ContentHash, class: Option<&str>) -> Standing {
        let of_class = || class.and_then(|class| self.denied_classes.get(class));
        if let Some(reason) = self.denied_actions.get(&action).or_else(of_class) {
            return Standing::Denied(reason.clone());
        }
        if let Some(lease) = self.leases.iter().find(|lease| lease.action == action) {
            return Standing::Granted(lease.approval.clone(), lease.grant.clone());
        }
        match class.and_then(|class| self.allowed.get(class)) {
            Some((approval, grant)) => Standing::Granted(approval.clone(), grant.clone()),
            None => Standing::Unasked,
        }
    }

    /// What tells doubles of an action apart outside. The same in each attempt until the action came to an end that is
    /// known, so that one of which nobody knows is not done twice by whoever looks at keys.
    pub(crate) fn key(&self, run: &RunId, action: ContentHash) -> String {
        let known = self.actions.get(&action).map_or(0, |action| action.known);
        format!("{run}-{}-{known}", action.short())
    }

    /// The action, when an earlier attempt has done it and it changed something outside.
    pub(crate) fn done_before(&self, action: ContentHash) -> Option<&Done> {
        self.actions.get(&action)?.done.as_ref().filter(|done| done.attempt < self.attempt)
    }
}
