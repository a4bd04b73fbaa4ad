//! The doors of a host: programs and pages over a kept connection of the loopback interface, against the Rust API.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use agent::config::LoadedConfig;
use agent::{Caller, ExecuteRequest, Home, Host, HostOptions};
use anyhow::{Context as _, Result, ensure};
use base::{Random, SystemClock};
use interfaces::http::Lifetime;
use interfaces::http::listen::Server;
use interfaces::http::port::TcpPort;
use reqwest::Client;
use serde_json::{Value, json};
use store::Store;

use crate::runs::{finished_run, past};
use crate::stats::{Aim, Times, line};

const PROGRAM: &str = "return 6 * 7";
/// Requests of this version need no session.
const MCP_VERSION: &str = "2026-07-28";
/// Rounds of one way after the other.
const ROUNDS: usize = 2_000;
/// Connections that ask at the same time, and for how long.
const CLIENTS: usize = 16;
const TIME: Duration = Duration::from_secs(3);
/// Runs that are over while pages are asked for.
const STORED: u64 = 100_000;
/// Records in one commit while they are made.
const BATCH: u64 = 5_000;
const PAGES: [&str; 6] = ["/", "/start", "/skills", "/network", "/signals", "/settings"];

pub fn run() -> Result<()> {
    println!("\ndoors");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    crate::watchers::run(&executor)?;
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    executor.block_on(async {
        let home = Home::at(directory.path().join("home"));
        let door = Door::open(&home).await?;
        programs(&door).await?;
        door.close().await;
        store_runs(&home).await?;
        let door = Door::open(&home).await?;
        pages(&door).await?;
        door.close().await;
        Ok(())
    })
}

/// A host with a port, and a client of it.
struct Door {
    host: Host,
    server: Server,
    address: String,
    client: Client,
    owner: String,
}

impl Door {
    async fn open(home: &Home) -> Result<Self> {
        let env = agent::env::of_list(&[]);
        let settings = [("energy.enabled", "false"), ("retention.age", "never"), ("retention.runs", "0")];
        let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let host = Host::open(HostOptions {
            config: LoadedConfig::load(home, None, &env, &settings)?,
            home: home.clone(),
            env,
            vault_variables: std::collections::BTreeMap::new(),
            compile_worker: None,
            clock: Arc::new(SystemClock::default()),
            random: Arc::new(Random::from_system()),
        })
        .await?;
        let mut server = Server::start(host.clone(), home, Lifetime::Stays)?;
        let port = TcpPort { address: SocketAddr::from(([127, 0, 0, 1], 0)), allow_remote: false };
        let address = format!("http://{}", server.listen(port).await?);
        let file = std::fs::read_to_string(home.config().join("owner.token"))?;
        let owner = file.lines().find(|line| line.starts_with("motor-owner-")).context("a token")?.to_owned();
        Ok(Self { host, server, address, client: Client::new(), owner })
    }

    async fn close(self) {
        drop(self.host);
        self.server.stop().await;
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.client.post(format!("{}{path}", self.address)).bearer_auth(&self.owner);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = match path {
            "/mcp" => request
                .header("mcp-protocol-version", MCP_VERSION)
                .header("mcp-method", "tools/call")
                .header("mcp-name", "core_execute"),
            _ => request,
        };
        let request = request.json(body);
        Ok(request.send().await?.error_for_status()?.json().await?)
    }
}

/// One program by each way in turn, then many clients at once.
async fn programs(door: &Door) -> Result<()> {
    let request = || serde_json::from_value::<ExecuteRequest>(json!({ "code": PROGRAM }));
    let facts = json!({ "io.modelcontextprotocol/protocolVersion": MCP_VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "bench", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {} });
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "core_execute", "arguments": { "code": PROGRAM }, "_meta": facts } });
    let (mut direct, mut http, mut mcp) = (Times::default(), Times::default(), Times::default());
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let reply = door.host.programs.execute(request()?, Caller::Owner).await?;
        direct.add(started.elapsed());
        ensure!(reply.ok && reply.output == "42", "{}", reply.output);
        let started = Instant::now();
        let reply = door.post("/v1/executions", &json!({ "code": PROGRAM })).await?;
        http.add(started.elapsed());
        ensure!(reply["output"] == "42", "{reply}");
        let started = Instant::now();
        let reply = door.post("/mcp", &call).await?;
        mcp.add(started.elapsed());
        ensure!(reply["result"]["structuredContent"]["output"] == "42", "{reply}");
    }
    line("a program by the Rust API, p50", direct.p50(), "ms", None);
    line("the same over HTTP, p50", http.p50(), "ms", None);
    line("HTTP to the Rust API", http.p50() / direct.p50(), "x", Some(Aim::AtMost(3.0)));
    line("the same by MCP over HTTP, p50", mcp.p50(), "ms", Some(Aim::AtMost(0.5)));
    let until = Instant::now() + TIME;
    let clients = (0..CLIENTS).map(|_| async {
        let mut count = 0_u64;
        while Instant::now() < until {
            door.post("/v1/executions", &json!({ "code": PROGRAM })).await?;
            count += 1;
        }
        anyhow::Ok(count)
    });
    let counts = futures_util::future::try_join_all(clients).await?;
    let rate = counts.iter().sum::<u64>() as f64 / TIME.as_secs_f64();
    line("programs over HTTP, client included", rate, "/s", Some(Aim::AtLeast(15_000.0)));
    Ok(())
}

async fn store_runs(home: &Home) -> Result<()> {
    let store = Store::open(&home.state())?;
    let pattern = finished_run().await?;
    let mut made = 0;
    while made < STORED {
        store.commit(past(&pattern, made, (made + BATCH).min(STORED))?).await?;
        made += BATCH;
    }
    store.close().await?;
    Ok(())
}

/// The first byte of each page.
async fn pages(door: &Door) -> Result<()> {
    for page in PAGES {
        let mut times = Times::default();
        for _ in 0..50 {
            let request = door.client.get(format!("{}{page}", door.address)).bearer_auth(&door.owner);
            let started = Instant::now();
            let response = request.send().await?.error_for_status()?;
            times.add(started.elapsed());
            response.bytes().await?;
        }
        let what = format!("first byte of `{page}` with {STORED} runs, p50");
        line(&what, times.p50(), "ms", Some(Aim::AtMost(20.0)));
    }
    Ok(())
}
