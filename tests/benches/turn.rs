//! A turn of cognition: from a message that is accepted to the durable end of its turn, with a model that answers at once. Alone,
//! and while a reflector of the same agent loops until its limit ends it. The host's own part is the turn without the time that the same
//! request, with the whole conversation in it, takes from a client without a host.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use agent::config::LoadedConfig;
use agent::{Home, Host, HostOptions, ReflectRequest};
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
/// Turns beside a cycle, in rounds that take turns with as many alone.
const ROUNDS: usize = 10;
const TURNS_OF_ROUND: usize = 10;
/// The hostile reflector loops when it reads this.
const LOOP: &str = "attack:spin";
/// The most that a turn may take beside a cycle, in turns alone.
const MAX_SLOWDOWN: f64 = 1.25;
/// How long the cycle may take to begin looping, before its turns are counted: much less than it loops.
const BEGINNING: Duration = Duration::from_millis(5);

pub fn run() -> Result<()> {
    println!("\na turn of cognition");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let asked = Arc::new(Mutex::new(String::new()));
    let latest = asked.clone();
    let reply = move |body: &Value| {
        *latest.lock().expect("no panic holds it") = body.to_string();
        Turn { text: "noted".into(), ..Turn::default() }
    };
    let model = executor.block_on(ModelServer::deciding(Box::new(reply)));
    let url = model.base_url();
    let motor = Motor::bare().env("MOTOR_KEYRING", "off").unattended();
    let reflectors = motor.home().join("reflectors");
    std::fs::create_dir_all(&reflectors)?;
    std::fs::write(reflectors.join("looping.wasm"), tests::hostile_guest("reflectors-pure"))?;
    motor.configure(
        "[cortex]\nreflector = \"looping\"\n[cortex.triggers]\ntimer = false\ninteraction_count = false\nnew_peer = false\n",
    );
    ensure!(motor.run_as_owner(&["cortex", "reflector", "approve", "looping"], "").code == Some(0));
    motor.stdout(&["ledger", "note", "spinner", LOOP]);
    executor.block_on(measure(Home::at(motor.home().to_owned()), &url, asked))
}

async fn measure(home: Home, url: &str, asked: Arc<Mutex<String>>) -> Result<()> {
    let variables = [("LLM_DEFAULT_MODEL", "openai/test"), ("OPENAI_API_KEY", "sk-bench"), ("OPENAI_BASE_URL", url)];
    let env = agent::env::of_list(&variables);
    let host = Host::open(HostOptions {
        config: LoadedConfig::load(&home, None, &env, &[("energy.enabled".to_owned(), "false".to_owned())])?,
        home,
        env,
        vault_variables: std::collections::BTreeMap::new(),
        compile_worker: Some(crate::component::compile_worker()?),
        clock: Arc::new(SystemClock::default()),
        random: Arc::new(Random::from_system()),
    })
    .await?;
    let mut talk = Talk { host, client: reqwest::Client::new(), url: url.to_owned(), asked, seen: None };
    talk.turn().await?;
    let (mut turns, mut replies) = (Times::default(), Times::default());
    for _ in 0..TURNS {
        turns.add(talk.turn().await?);
        replies.add(talk.bare_request().await?);
    }
    line("message to the end of its turn, p50", turns.p50(), "ms", None);
    line("  p99", turns.p99(), "ms", None);
    line("  of it the same request to that model, p50", replies.p50(), "ms", None);
    line("  the host's own part, p50", turns.p50() - replies.p50(), "ms", Some(Aim::AtMost(2.0)));
    beside_a_cycle(&mut talk).await?;
    talk.host.shutdown().await;
    Ok(())
}

/// Turns while the reflector of the same agent loops, against turns without a cycle, a round each in turn.
async fn beside_a_cycle(talk: &mut Talk) -> Result<()> {
    let peers = vec![peer("spinner")?];
    let (mut alone, mut beside, mut cycles) = (Times::default(), Times::default(), Times::default());
    for _ in 0..ROUNDS {
        for _ in 0..TURNS_OF_ROUND {
            alone.add(talk.turn().await?);
        }
        let (reflections, peers) = (talk.host.reflections.clone(), peers.clone());
        let cycle = tokio::spawn(async move {
            let started = Instant::now();
            let reply = reflections.reflect(ReflectRequest { agent: AgentName::default(), peers }).await;
            (started.elapsed(), reply)
        });
        tokio::time::sleep(BEGINNING).await;
        for _ in 0..TURNS_OF_ROUND {
            let took = talk.turn().await?;
            if !cycle.is_finished() {
                beside.add(took);
            }
        }
        let (took, reply) = cycle.await?;
        let record = serde_json::to_value(reply?)?;
        ensure!(record.to_string().contains("reflector_limit"), "the reflector did not loop: {record}");
        cycles.add(took);
    }
    ensure!(beside.count() >= ROUNDS, "only {} turns were beside a cycle", beside.count());
    line("turns beside a reflector that loops, counted", beside.count() as f64, "", None);
    line("  how long a cycle looped, p50", cycles.p50(), "ms", None);
    line("  a turn alone, p50", alone.p50(), "ms", None);
    line("  a turn beside it, p50", beside.p50(), "ms", None);
    line("  p99 alone", alone.p99(), "ms", None);
    line("  p99 beside it", beside.p99(), "ms", None);
    line("  beside it to alone, p50", beside.p50() / alone.p50(), "x", Some(Aim::AtMost(MAX_SLOWDOWN)));
    Ok(())
}

fn peer(name: &str) -> Result<PeerId> {
    PeerId::parse(name).map_err(|error| anyhow!(error.to_string()))
}

/// One conversation with a host.
struct Talk {
    host: Host,
    client: reqwest::Client,
    url: String,
    /// The latest request to the model.
    asked: Arc<Mutex<String>>,
    seen: Option<u64>,
}

impl Talk {
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
        let body = self.asked.lock().expect("no panic holds it").clone();
        let started = Instant::now();
        let request = self.client.post(format!("{}/chat/completions", self.url)).body(body);
        let request = request.header("content-type", "application/json");
        request.send().await?.error_for_status()?.bytes().await?;
        Ok(started.elapsed())
    }
}
