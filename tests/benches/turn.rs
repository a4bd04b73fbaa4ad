//! A turn of cognition: from a message that is accepted to the durable end of its turn, with a model that answers at once.

use std::sync::Arc;
use std::time::Instant;

use agent::config::LoadedConfig;
use agent::{Home, Host, HostOptions};
use anyhow::{Context as _, Result, anyhow, ensure};
use base::{AgentName, Random, SystemClock};
use cognition::{ChatEventBody, ConversationKey, NewMessage, Sender};
use ledger::{ChannelName, PeerId};
use serde_json::json;
use tests::model_server::{ModelServer, Turn};

use crate::stats::{Times, line};

/// Turns of one conversation; the first warms up.
const TURNS: usize = 100;

pub fn run() -> Result<()> {
    println!("\na turn of cognition");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    executor.block_on(measure())
}

async fn measure() -> Result<()> {
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let home = Home::at(directory.path().join("home"));
    let model = ModelServer::deciding(Box::new(|_| Turn { text: "noted".into(), ..Turn::default() })).await;
    let url = model.base_url();
    let variables =
        [("LLM_DEFAULT_MODEL", "openai/test"), ("OPENAI_API_KEY", "sk-bench"), ("OPENAI_BASE_URL", url.as_str())];
    let env = agent::env::of_list(&variables);
    let host = Host::open(HostOptions {
        config: LoadedConfig::load(&home, None, &env, &[("energy.enabled".to_owned(), "false".to_owned())])?,
        home,
        env,
        vault_variables: std::collections::BTreeMap::new(),
        compile_worker: None,
        clock: Arc::new(SystemClock::default()),
        random: Arc::new(Random::from_system()),
    })
    .await?;
    let peer = PeerId::parse("bench").map_err(|error| anyhow!(error.to_string()))?;
    let channel = ChannelName::parse("bench").map_err(|error| anyhow!(error.to_string()))?;
    let (agent, mut seen) = (AgentName::default(), None);
    let (mut turns, mut replies) = (Times::default(), Times::default());
    let client = reqwest::Client::new();
    for number in 0..=TURNS {
        let key = ConversationKey { agent: agent.clone(), channel: channel.clone(), peer: Some(peer.clone()) };
        let message = NewMessage {
            agent: agent.clone(),
            channel: channel.clone(),
            sender: Sender::Peer(peer.clone()),
            id: None,
            text: format!("message {number}"),
        };
        let started = Instant::now();
        let accepted = host.cognition.accept(message).await?;
        let mut follower = host.cognition.follow(key, Some(seen.unwrap_or(accepted.event))).await?;
        let mut has_reply = false;
        loop {
            let event = follower.next().await?.context("the conversation goes on")?;
            seen = Some(event.id);
            match event.body {
                ChatEventBody::Said { .. } => has_reply = true,
                ChatEventBody::Ended { .. } => break,
                _ => (),
            }
        }
        let took = started.elapsed();
        ensure!(has_reply, "turn {number} ended without a reply");
        let started = Instant::now();
        let body = json!({ "model": "test", "messages": [{ "role": "user", "content": "x" }], "stream": true });
        client.post(format!("{url}/chat/completions")).json(&body).send().await?.error_for_status()?.bytes().await?;
        if number > 0 {
            turns.add(took);
            replies.add(started.elapsed());
        }
    }
    line("message to the end of its turn, p50", turns.p50(), "ms", None);
    line("  p99", turns.p99(), "ms", None);
    line("  of it a request to that model, p50", replies.p50(), "ms", None);
    host.shutdown().await;
    Ok(())
}
