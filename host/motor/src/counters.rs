//! The work of all runs since this host started, counted from durable events (SPEC OBS-2).
//!
//! Counts for people and monitoring: nothing is decided by them, and they begin at zero with each host.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::event::RunEvent;
use crate::request::OutgoingRequest;
use crate::status::RunStatus;

/// Totals of all runs since the host started. They only grow.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RunTotals {
    /// Runs that were accepted.
    pub accepted: u64,
    /// Attempts that ended, by status: `completed`, `failed`, `cancelled`.
    pub ended: BTreeMap<&'static str, u64>,
    /// Further attempts of failed runs.
    pub retried: u64,
    /// Times that a run was taken up after its host had stopped.
    pub resumed: u64,
    /// Questions and requests for approval, by the status of the run: `awaiting_input`, `awaiting_approval`.
    pub asked: BTreeMap<&'static str, u64>,
    /// Replies of models; each begins a step.
    pub steps: u64,
    /// Requests to models that were tried again.
    pub model_retries: u64,
    /// Tokens of all prompts.
    pub input_tokens: u64,
    /// Tokens of all replies.
    pub output_tokens: u64,
    /// Cost of replies in US dollars, where providers report one.
    pub cost_usd: f64,
    /// Results of tool calls by outcome: `ok`, or an error's code. Held calls count once they are made again.
    pub tool_calls: BTreeMap<&'static str, u64>,
    /// Units of wasmtime fuel of all calls.
    pub fuel: u64,
    /// Network requests of calls by outcome: `answered`, `failed`, or `refused` by the gate.
    pub requests: BTreeMap<&'static str, u64>,
    /// Energy that runs were charged.
    pub energy: f64,
}

/// Counts events. The driver of each run reports its own, once they are durable.
#[derive(Debug, Default)]
pub(crate) struct RunCounters(Mutex<RunTotals>);

impl RunCounters {
    pub(crate) fn totals(&self) -> RunTotals {
        self.0.lock().clone()
    }

    /// Counts a durable event.
    pub(crate) fn count(&self, event: &RunEvent) {
        let totals = &mut *self.0.lock();
        match event {
            RunEvent::Created { energy, .. } => {
                totals.accepted += 1;
                totals.energy += energy;
            }
            RunEvent::Resumed => totals.resumed += 1,
            RunEvent::Retried { .. } => totals.retried += 1,
            RunEvent::Asked { .. } => add(&mut totals.asked, RunStatus::AwaitingInput.as_str()),
            RunEvent::ApprovalAsked { .. } => add(&mut totals.asked, RunStatus::AwaitingApproval.as_str()),
            RunEvent::ModelReplied { reply, .. } => {
                totals.steps += 1;
                totals.model_retries += u64::from(reply.retries);
                totals.input_tokens += reply.usage.input_tokens;
                totals.output_tokens += reply.usage.output_tokens;
                totals.cost_usd += reply.usage.cost_usd.filter(|cost| cost.is_finite() && *cost > 0.0).unwrap_or(0.0);
            }
            RunEvent::ToolReturned { result, usage, requests, held, .. } => {
                if !held {
                    let failed = result.error_code.map_or("unknown", base::ErrorCode::as_str);
                    add(&mut totals.tool_calls, if result.ok { "ok" } else { failed });
                }
                totals.fuel += usage.map_or(0, |usage| usage.fuel);
                for request in requests {
                    add(&mut totals.requests, outcome(request));
                }
            }
            RunEvent::Finished { status, energy, .. } => {
                totals.energy += energy;
                totals.end(*status);
            }
            _ => {}
        }
    }

    /// Counts the end of a run whose history cannot be read.
    pub(crate) fn count_abandoned(&self, status: RunStatus) {
        self.0.lock().end(status);
    }
}

impl RunTotals {
    fn end(&mut self, status: RunStatus) {
        add(&mut self.ended, status.as_str());
    }
}

fn add(counts: &mut BTreeMap<&'static str, u64>, key: &'static str) {
    *counts.entry(key).or_default() += 1;
}

fn outcome(request: &OutgoingRequest) -> &'static str {
    match request {
        OutgoingRequest { staged: Some(_), .. } => "staged",
        OutgoingRequest { rule: Some(_), .. } => "refused",
        OutgoingRequest { error: None, status: Some(_), .. } => "answered",
        _ => "failed",
    }
}

#[cfg(test)]
mod tests {
    use base::ErrorCode;
    use serde_json::json;

    use super::*;
    use crate::toolbox::ToolResult;

    #[test]
    fn events_are_counted_by_outcome_and_held_calls_once() {
        let counters = RunCounters::default();
        let request = |more: serde_json::Value| -> OutgoingRequest {
            let mut all = json!({ "method": "GET", "url": "u", "host": "h", "sentBytes": 0, "receivedBytes": 0,
                "durationMs": 1.0 });
            all.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(all).unwrap()
        };
        let returned = |result, requests, held| RunEvent::ToolReturned {
            step: 1,
            call_id: "c".into(),
            tool: "fetch".into(),
            result,
            usage: None,
            requests,
            notes: vec![],
            retried: false,
            recovered: false,
            credits: None,
            refused: vec![],
            held,
        };
        let refused = request(json!({ "rule": "consent_needed", "error": "no" }));
        counters.count(&returned(ToolResult::failure(ErrorCode::NetworkBlocked, "no"), vec![refused.clone()], true));
        let sent = [request(json!({ "status": 500 })), request(json!({ "status": 200, "error": "cut off" })), refused];
        counters.count(&returned(ToolResult::success("x"), sent.to_vec(), false));
        counters.count(&returned(ToolResult::failure(ErrorCode::Timeout, "slow"), vec![], false));
        counters.count_abandoned(RunStatus::Failed);
        let totals = counters.totals();
        assert_eq!(totals.tool_calls, BTreeMap::from([("ok", 1), ("timeout", 1)]));
        assert_eq!(totals.requests, BTreeMap::from([("answered", 1), ("failed", 1), ("refused", 2)]));
        assert_eq!((totals.ended, totals.steps), (BTreeMap::from([("failed", 1)]), 0));
    }
}
