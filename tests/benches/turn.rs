//! A turn of cognition: from a message that is accepted to the durable end of its turn, with a model that answers at once. Alone,
//! and while the reflector of the same agent attacks one cycle after another. The host's own part is the turn without the time that the same
//! request, with the whole conversation in it, takes from a client without a host.

mod cycles;
mod hooks;

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::config::LoadedConfig;
use agent::{Home, Host, HostOptions};
use anyhow::{Context as _, Result, anyhow, ensure};
use base::{AgentName, Random, SystemClock};
use cognition::{ChatEventBody, ConversationKey, NewMessage, Sender};
use ledger::{ChannelName, PeerId};
use serde_json::Value;
use tests::binary::Motor;
use tests::model_server::{ModelServer, Turn};

use crate::stats::{Aim, Times, line};

/// Turns of the one conversation; the first warms up.
const TURNS: usize = 100;

pub fn run() -> Result<()> {
    println!("\na turn of cognition");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    executor.block_on(async {
        let model = Model::start(cycles::reply).await;
        let home = Motor::bare().env("MOTOR_KEYRING", "off").unattended();
        let mut talk = Talk::open(&home, &model).await?;
        alone(&mut talk).await?;
        talk.host.shutdown().await;
        cycles::attacked(&model).await?;
        hooks::measure().await
    })
}

async fn alone(talk: &mut Talk<'_>) -> Result<()> {
    let (mut turns, mut replies) = (Times::default(), Times::default());
    for _ in 0..TURNS {
        turns.add(talk.turn().await?);
        replies.add(talk.bare_request().await?);
    }
    line("message to the end of its turn, p50", turns.p50(), "ms", None);
    line("  p99", turns.p99(), "ms", None);
    line("  of it the same request to that model, p50", replies.p50(), "ms", None);
    line("  the host's own part, p50", turns.p50() - replies.p50(), "ms", Some(Aim::AtMost(2.0)));
    Ok(())
}

/// A model that answers at once.
struct Model {
    server: ModelServer,
    /// The latest request that was not for a reflection.
    asked: Arc<Mutex<String>>,
}

impl Model {
    /// `reflect` has the replies to requests for a reflection; all others get one word.
    async fn start(reflect: fn(&str) -> Option<String>) -> Self {
        let asked = Arc::new(Mutex::new(String::new()));
        let latest = asked.clone();
        let reply = move |body: &Value| {
            let body = body.to_string();
            let text = reflect(&body).unwrap_or_else(|| {
                *latest.lock().expect("no panic holds it") = body;
                "noted".to_owned()
            });
            Turn { text, ..Turn::default() }
        };
        Self { server: ModelServer::deciding(Box::new(reply)).await, asked }
    }
}

fn peer(name: &str) -> Result<PeerId> {
    PeerId::parse(name).map_err(|error| anyhow!(error.to_string()))
}

async fn open(motor: &Motor, model: &Model) -> Result<Host> {
    let home = Home::at(motor.home().to_owned());
    let url = model.server.base_url();
    let variables = [("LLM_DEFAULT_MODEL", "openai/test"), ("OPENAI_API_KEY", "sk-bench"), ("OPENAI_BASE_URL", &url)];
    let env = agent::env::of_list(&variables);
    let options = HostOptions {
        config: LoadedConfig::load(&home, None, &env, &[("energy.enabled".to_owned(), "false".to_owned())])?,
        home,
        env,
        vault_variables: std::collections::BTreeMap::new(),
        compile_worker: Some(crate::component::compile_worker()?),
        clock: Arc::new(SystemClock::default()),
        random: Arc::new(Random::from_system()),
    };
    Ok(Host::open(options).await?)
}

/// One conversation with a host.
struct Talk<'a> {
    host: Host,
    client: reqwest::Client,
    model: &'a Model,
    seen: Option<u64>,
}

impl<'a> Talk<'a> {
    /// After its first turn.
    async fn open(motor: &Motor, model: &'a Model) -> Result<Self> {
        let host = open(motor, model).await?;
        let mut talk = Self { host, client: reqwest::Client::new(), model, seen: None };
        talk.turn().await?;
        Ok(talk)
    }

    /// From a message to the durable end of its turn.
    async fn turn(&mut self) -> Result<Duration> {
        let channel = ChannelName::parse("bench").map_err(|error| anyhow!(error.to_string()))?;
        let (agent, peer) = (AgentName::default(), peer("bench")?);
        let key = ConversationKey { agent: agent.clone(), channel: channel.clone(), peer: Some(peer.clone()) };
        let message = NewMessage { agent, channel, sender: Sender::Peer(peer), id: None, text: "a message".to_owned() };
        let started = Instant::now();
        let accepted = self.host.cognition.accept(message).await?;
        let mut follower = self.host.cognition.follow(key, Some(self.seen.unwrap_or(accepted.event))).await?;
        let mut has_reply = false;
        loop {
            let event = follower.next().await?.context("the conversation goes on")?;
            self.seen = Some(event.id);
            match event.body {
                ChatEventBody::Said { .. } => has_reply = true,
                ChatEventBody::Ended { .. } => break,
                _ => (),
            }
        }
        ensure!(has_reply, "a turn ended without a reply");
        Ok(started.elapsed())
    }

    /// The latest request once more, without a host.
    async fn bare_request(&self) -> Result<Duration> {
        let body = self.model.asked.lock().expect("no panic holds it").clone();
        let started = Instant::now();
        let request = self.client.post(format!("{}/chat/completions", self.model.server.base_url())).body(body);
        let request = request.header("content-type", "application/json");
        request.send().await?.error_for_status()?.bytes().await?;
        Ok(started.elapsed())
    }
}
