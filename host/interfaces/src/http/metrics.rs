//! `/metrics`: the figures of a host for Prometheus (SPEC OBS-2).
//!
//! Labels have few values: statuses, codes, routes of the table. No id, task, tool name, domain or text of a model is in
//! an exposition.

use std::fs;

use agent::HostMetrics;
use axum::extract::State;
use axum::http::header;
use axum::response::IntoResponse;
use base::{Refusal, RefusalCode};
use motor::RunStatus;
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use super::ApiState;
use super::exposition::{CONTENT_TYPE, Exposition, Family};
use super::meters::Meters;
use super::page::word;
use super::reply::ErrorReply;
use super::scope::Reader;

/// The statuses of runs that are not over.
const LIVE: [RunStatus; 4] =
    [RunStatus::Created, RunStatus::Running, RunStatus::AwaitingInput, RunStatus::AwaitingApproval];
/// The statuses of runs that are over.
const OVER: [RunStatus; 3] = [RunStatus::Completed, RunStatus::Failed, RunStatus::Cancelled];

macro_rules! families {
    ($($constant:ident: $kind:literal $name:literal, $help:literal;)*) => {
        $(const $constant: Family = Family { name: $name, kind: $kind, help: $help };)*
        /// Every metric, in the order of the exposition.
        #[cfg(test)]
        const FAMILIES: &[Family] = &[$($constant),*];
    };
}

families! {
    BUILD: "gauge" "motor_build_info", "Always 1; the label is the version of the program.";
    STARTED: "gauge" "motor_host_start_time_seconds", "When the host started, in seconds since 1970.";
    LIVE_RUNS: "gauge" "motor_runs", "Runs that are not over, by status.";
    ACCEPTED: "counter" "motor_runs_accepted_total", "Runs accepted.";
    ENDED: "counter" "motor_runs_ended_total", "Attempts of runs that ended, by status.";
    RETRIED: "counter" "motor_runs_retried_total", "Further attempts of failed runs.";
    RESUMED: "counter" "motor_runs_resumed_total", "Runs continued after their host had stopped.";
    ASKED: "counter" "motor_runs_asked_total", "Questions and requests for approval, by the status of the run.";
    STEPS: "counter" "motor_steps_total", "Steps of runs: replies of models.";
    MODEL_RETRIES: "counter" "motor_model_retries_total", "Requests to models that were tried again.";
    TOKENS: "counter" "motor_model_tokens_total", "Tokens of prompts (input) and replies (output).";
    COST: "counter" "motor_model_cost_dollars_total", "Cost of replies in US dollars, where providers report one.";
    TOOL_CALLS: "counter" "motor_tool_calls_total", "Tool calls of runs, by outcome: ok or the code of the error.";
    FUEL: "counter" "motor_sandbox_fuel_total", "Units of fuel that tool calls of runs consumed.";
    REQUESTS: "counter" "motor_network_requests_total", "Network requests of runs: answered, failed, refused, or staged.";
    ENERGY_SPENT: "counter" "motor_energy_spent_total", "Energy that runs were charged.";
    ENERGY: "gauge" "motor_energy_level", "Energy of the default agent and of agents with live runs, from 0.05 to 1.";
    SIGNAL: "gauge" "motor_signals_newest_id", "The id of the newest signal of the home.";
    COMMITS: "counter" "motor_store_commits_total", "Synced groups of commits since the home was made.";
    HTTP_REQUESTS: "counter" "motor_http_requests_total", "Requests of the HTTP API, by method, route and status.";
    REFUSALS: "counter" "motor_refusals_total", "Refused requests of the HTTP API, by code.";
    CONNECTIONS: "gauge" "motor_http_connections", "Open connections: with a request, or watching events.";
    MAX_CONNECTIONS: "gauge" "motor_http_connections_max", "Connections that are served at most.";
    CPU: "counter" "process_cpu_seconds_total", "Processor time of the host in seconds.";
    MEMORY: "gauge" "process_resident_memory_bytes", "Resident memory of the host in bytes.";
    DESCRIPTORS: "gauge" "process_open_fds", "Open descriptors of the host.";
    MAX_DESCRIPTORS: "gauge" "process_max_fds", "Descriptors that the host may open.";
}

pub(super) async fn show(Reader(access): Reader, State(api): State<ApiState>) -> Result<impl IntoResponse, ErrorReply> {
    if let Some(agent) = access.agent() {
        let reason = format!("the token stands for the agent `{agent}`, and the figures are those of the whole home");
        let refusal = Refusal::new(RefusalCode::Forbidden, reason);
        let remedy = "take a token for all agents: `motor token create --name NAME --scope read`";
        return Err(refusal.with_remedy(remedy).into());
    }
    let host = api.host.clone();
    let metrics = tokio::task::spawn_blocking(move || host.metrics()).await;
    let metrics = metrics.map_err(|_| Refusal::new(RefusalCode::TryLater, "the host is shutting down"))??;
    let mut text = Exposition::default();
    of_host(&mut text, &metrics);
    of_http(&mut text, &api.meters);
    of_process(&mut text);
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text.text()))
}

fn of_host(text: &mut Exposition, metrics: &HostMetrics) {
    let totals = &metrics.totals;
    // Each status has a sample from the beginning, so that rates begin at zero.
    let statuses = |all: &'static [RunStatus], counts: &std::collections::BTreeMap<&'static str, u64>| {
        let count = |status: &RunStatus| counts.get(status.as_str()).copied().unwrap_or(0);
        all.iter().map(|status| ([("status", status.as_str().to_owned())], count(status))).collect::<Vec<_>>()
    };
    let outcomes = |counts: &std::collections::BTreeMap<&'static str, u64>| {
        counts.iter().map(|(outcome, count)| ([("outcome", (*outcome).to_owned())], *count)).collect::<Vec<_>>()
    };
    text.family(&BUILD, [([("version", env!("CARGO_PKG_VERSION").to_owned())], 1)]);
    text.value(&STARTED, metrics.started_at.as_millis() as f64 / 1_000.0);
    text.family(&LIVE_RUNS, statuses(&LIVE, &metrics.live));
    text.value(&ACCEPTED, totals.accepted);
    text.family(&ENDED, statuses(&OVER, &totals.ended));
    text.value(&RETRIED, totals.retried);
    text.value(&RESUMED, totals.resumed);
    text.family(&ASKED, statuses(&[RunStatus::AwaitingInput, RunStatus::AwaitingApproval], &totals.asked));
    text.value(&STEPS, totals.steps);
    text.value(&MODEL_RETRIES, totals.model_retries);
    let tokens = [("input", totals.input_tokens), ("output", totals.output_tokens)];
    text.family(&TOKENS, tokens.map(|(direction, count)| ([("direction", direction.to_owned())], count)));
    text.value(&COST, totals.cost_usd);
    text.family(&TOOL_CALLS, outcomes(&totals.tool_calls));
    text.value(&FUEL, totals.fuel);
    text.family(&REQUESTS, outcomes(&totals.requests));
    text.value(&ENERGY_SPENT, totals.energy);
    let energy = metrics.energy.iter().map(|(agent, level)| ([("agent", agent.to_string())], *level));
    text.family(&ENERGY, energy);
    text.value(&SIGNAL, metrics.latest_signal);
    text.value(&COMMITS, metrics.commits);
}

fn of_http(text: &mut Exposition, meters: &Meters) {
    let requests = meters.requests().into_iter().map(|count| {
        let labels =
            [("method", count.method.to_owned()), ("route", count.route), ("status", count.status.to_string())];
        (labels, count.count)
    });
    text.family(&HTTP_REQUESTS, requests);
    let mut refusals: Vec<_> =
        meters.refusals().into_iter().map(|(code, count)| ([("code", word(&code))], count)).collect();
    refusals.sort();
    text.family(&REFUSALS, refusals);
    let connections = meters.connections();
    let samples = |of: fn((usize, usize)) -> usize| {
        let both = connections.iter().flat_map(move |(listener, count)| {
            [("request", count.asking), ("watch", count.watching)]
                .map(|(kind, count)| ([("listener", (*listener).to_owned()), ("kind", kind.to_owned())], of(count)))
        });
        both.collect::<Vec<_>>()
    };
    text.family(&CONNECTIONS, samples(|(open, _)| open));
    text.family(&MAX_CONNECTIONS, samples(|(_, most)| most));
}

/// Figures of the process. Those that the system does not give are left out.
fn of_process(text: &mut Exposition) {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    text.value(&CPU, used.tv_sec as f64 + used.tv_nsec as f64 / 1e9);
    let resident = fs::read_to_string("/proc/self/status").ok().and_then(|status| {
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    text.family(&MEMORY, resident.map(|kibibytes| ([], kibibytes << 10)));
    let open = fs::read_dir("/proc/self/fd").ok().map(Iterator::count);
    text.family(&DESCRIPTORS, open.map(|open| ([], open)));
    text.family(&MAX_DESCRIPTORS, getrlimit(Resource::Nofile).current.map(|most| ([], most)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_lists_every_metric_with_its_type() {
        let document = include_str!("../../../../docs/monitoring.md");
        let rows =
            document.lines().filter_map(|line| line.strip_prefix("| `")).filter_map(|row| row.split_once("` | "));
        let listed: Vec<_> = rows
            .filter(|(name, _)| name.starts_with("motor_") || name.starts_with("process_"))
            .map(|(name, rest)| (name, rest.split(" | ").next().unwrap_or_default()))
            .collect();
        assert_eq!(listed, FAMILIES.iter().map(|family| (family.name, family.kind)).collect::<Vec<_>>());
        for family in FAMILIES {
            assert_eq!(family.name.ends_with("_total"), family.kind == "counter", "{}", family.name);
        }
    }
}
