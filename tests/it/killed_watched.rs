//! `kill -9` of a host with a hundred runs under way and a hundred watchers, twice (SPEC DUR-1, DUR-2, SIG-2, API-1): the
//! watchers go on with the next host from the last event that they saw and miss none, each run ends once, its order is
//! placed once, and runs that MCP clients started are still theirs to ask about.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use base::sse::Event;
use futures_util::future::join_all;
use reqwest::Client;
use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::model_server::{Call, ModelServer, Turn};
use tests::network::{Reply, Site};
use tests::watching::{HostAddress, Watcher};
use tests::{Patience, block_on};
use tokio::task::JoinHandle;

const RUNS: usize = 100;
const WATCHERS: usize = 100;
/// Between two attempts to reach a host.
const PAUSE: Duration = Duration::from_millis(20);
const MCP_VERSION: &str = "2026-07-28";

/// The turns of the run with the task `order N`: a file, an order, a file, and, once the gate is open, the answer.
async fn model(site: &Site) -> ModelServer {
    let url = site.url("/orders");
    ModelServer::deciding(Box::new(move |body| {
        let messages = body["messages"].as_array().unwrap();
        let turn = messages.iter().filter(|message| message["role"] == "assistant").count();
        let text = body["messages"].to_string();
        let number: String = text.split("order-").nth(1).unwrap().chars().take_while(char::is_ascii_digit).collect();
        let call = |name: &str, arguments: Value| {
            let call = Call { name: name.to_owned(), arguments, ..Call::default() };
            Turn { tool_calls: vec![call], ..Turn::default() }
        };
        match turn {
            0 => call("append", json!({ "path": "log.txt", "content": "before\n" })),
            1 => call("fetch", json!({ "url": url, "method": "POST", "body": { "order": number } })),
            2 => call("append", json!({ "path": "log.txt", "content": "after\n" })),
            _ => Turn { text: format!("placed {number}"), gate: true, ..Turn::default() },
        }
    }))
    .await
}

/// A host on a port that stays the same.
fn serve(motor: &Motor, address: &str) -> (Running, String) {
    let serving = motor.start(&["serve", "--listen", address, "--json"]);
    let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
    (serving, line["address"].as_str().unwrap().trim_start_matches("http://").to_owned())
}

/// Follows a stream over all hosts until `is_last`, each time from the last event with an id. The events with ids.
fn follow(
    host: HostAddress,
    path: String,
    mut is_last: impl FnMut(&Value) -> bool + Send + 'static,
) -> JoinHandle<Vec<Event>> {
    tokio::spawn(async move {
        let mut seen: Vec<Event> = Vec::new();
        loop {
            let last = seen.last().and_then(|event| event.id).unwrap_or(0);
            let Ok(mut watcher) = Watcher::open(&host, &path, Some(last)).await else {
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            while let Ok(Some(event)) = watcher.next().await {
                if event.id.is_none() {
                    continue;
                }
                let ended = is_last(&serde_json::from_str(&event.data).unwrap());
                seen.push(event);
                if ended {
                    return seen;
                }
            }
        }
    })
}

/// A tool call over `/mcp`: its structured content.
async fn mcp(address: &str, token: &str, tool: &str, arguments: Value) -> Value {
    // Without a handshake no session ends with the host.
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": tool, "arguments": arguments, "_meta": meta });
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let request = Client::new().post(format!("http://{address}/mcp")).bearer_auth(token);
    let request = request.header("accept", "application/json, text/event-stream");
    let request = request.header("mcp-protocol-version", MCP_VERSION).header("mcp-method", "tools/call");
    let request = request.header("mcp-name", tool).json(&message);
    let answer: Value = request.send().await.unwrap().json().await.unwrap();
    assert_ne!(answer["result"]["isError"], json!(true), "{answer}");
    answer["result"]["structuredContent"].clone()
}

/// Starts the run of an order, by MCP or over HTTP.
async fn start(address: &str, token: &str, number: usize, domain: &str) -> String {
    let (task, agent) = (format!("place order-{number}."), format!("agent-{number}"));
    let request = json!({ "task": task, "agent": agent, "tools": ["append", "fetch"], "domains": [domain] });
    let started = if number.is_multiple_of(2) {
        mcp(address, token, "core_act", request).await["runId"].clone()
    } else {
        let post = Client::new().post(format!("http://{address}/v1/tasks")).bearer_auth(token).json(&request);
        post.send().await.unwrap().json::<Value>().await.unwrap()["runId"].clone()
    };
    started.as_str().unwrap_or_else(|| panic!("no run: {started}")).to_owned()
}

fn orders(site: &Site) -> BTreeMap<String, usize> {
    let mut orders = BTreeMap::new();
    for request in site.requests() {
        let body: Value = serde_json::from_slice(&request.body).unwrap();
        *orders.entry(body["order"].as_str().unwrap().to_owned()).or_default() += 1;
    }
    orders
}

#[test]
fn a_hundred_runs_and_a_hundred_watchers_outlive_two_hosts() {
    let site = block_on(Site::start()).with("/orders", Reply::text("taken"));
    let model = block_on(model(&site));
    let motor = Motor::with_model(&model).env("MOTOR_KEYRING", "off").env("MOTOR_ENERGY_ENABLED", "false");
    motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", site.address()));
    let motor = motor.unattended();
    let token = motor.stdout(&["token", "create", "--name", "agent", "--scope", "agent"]).trim().to_owned();
    let (serving, address) = serve(&motor, "127.0.0.1:0");
    let domain = site.address().to_string();

    let runs = block_on(join_all((0..RUNS).map(|number| start(&address, &token, number, &domain))));
    let hosts = [
        HostAddress::Port { address: address.clone(), token: token.clone() },
        HostAddress::Socket(motor.home().join("host.sock")),
    ];
    // Half of the watchers follow all signals, half a run each; on either listener.
    let watching: Vec<_> = block_on(async {
        (0..WATCHERS)
            .map(|number| {
                let host = hosts[number / 2 % 2].clone();
                if number % 2 == 0 {
                    let mut ended = BTreeSet::new();
                    let is_last = move |signal: &Value| {
                        ended.insert(signal["runId"].as_str().unwrap().to_owned());
                        ended.len() == RUNS
                    };
                    follow(host, "/v1/signals/events".into(), is_last)
                } else {
                    let path = format!("/v1/tasks/{}/events", runs[number]);
                    follow(host, path, |event| event["type"] == "finished")
                }
            })
            .collect()
    });
    // Killed while orders are being placed, and again while answers come in.
    block_on(site.wait_for_requests(RUNS / 3));
    serving.kill();
    // Requests of a dead host must not take the turns of the next one's.
    block_on(model.wait_gate_empty());
    let (serving, _) = serve(&motor, &address);
    (0..RUNS / 2).for_each(|_| model.release());
    let mut patience = Patience::default();
    while motor.ask("/v1/host", None, &[]).unwrap().1["latestSignal"].as_u64().unwrap() < RUNS as u64 / 4 {
        assert!(patience.lasts(), "runs do not end");
        std::thread::sleep(PAUSE);
    }
    serving.kill();
    block_on(model.wait_gate_empty());
    let (serving, _) = serve(&motor, &address);
    (0..RUNS).for_each(|_| model.release());

    let seen: Vec<_> = block_on(join_all(watching)).into_iter().map(Result::unwrap).collect();
    for run in &runs {
        motor.wait_for_status(run, "completed");
    }
    let signals = motor.ask("/v1/signals?limit=1000", None, &[]).unwrap().1;
    let signals = signals.as_array().unwrap();
    let announced: BTreeSet<_> = signals.iter().map(|signal| signal["runId"].as_str().unwrap().to_owned()).collect();
    assert_eq!((signals.len(), announced), (RUNS, runs.iter().cloned().collect()), "each run ends once");
    for (number, events) in seen.iter().enumerate() {
        let ids: Vec<_> = events.iter().map(|event| event.id.unwrap()).collect();
        let values: Vec<Value> = events.iter().map(|event| serde_json::from_str(&event.data).unwrap()).collect();
        if number % 2 == 0 {
            assert_eq!(values, *signals, "watcher {number} of signals");
        } else {
            let path = format!("/v1/tasks/{}/events", runs[number]);
            let whole: Vec<_> = motor.events(&path, 0).unwrap().collect();
            assert_eq!(ids.iter().copied().zip(values).collect::<Vec<_>>(), whole, "watcher {number} of a run");
        }
    }
    // An order that was under way when the host died may have been placed or not, and is not placed again.
    let (orders, mut unknown) = (orders(&site), 0);
    for (number, run) in runs.iter().enumerate() {
        let trace = motor.ask(&format!("/v1/tasks/{run}"), None, &[]).unwrap().1;
        let placed = orders.get(&number.to_string()).copied().unwrap_or(0);
        let mut calls =
            trace["steps"].as_array().unwrap().iter().flat_map(|step| step["toolCalls"].as_array().unwrap());
        let is_unknown = calls.any(|call| call["result"]["errorCode"] == "outcome_unknown");
        assert!(placed == 1 || placed == 0 && is_unknown, "order {number} was placed {placed} times: {trace:#}");
        assert_eq!(trace["summary"], format!("placed {number}"));
        unknown += usize::from(is_unknown);
        let log = std::fs::read_to_string(motor.workspace(run).join("log.txt")).unwrap();
        assert!(log == "before\nafter\n" || is_unknown && ["before\n", "after\n", ""].contains(&log.as_str()), "{log}");
    }
    println!("{unknown} of {RUNS} runs have a call of unknown outcome");
    let asked = (0..RUNS).step_by(2).map(async |number| {
        let get = json!({ "action": "get", "runId": runs[number] });
        let reply = mcp(&address, &token, "core_task", get).await;
        assert_eq!((&reply["run"]["status"], &reply["run"]["runId"]), (&json!("completed"), &json!(runs[number])));
    });
    block_on(join_all(asked));
    drop(serving);
}
