//! The example of the design on the virtual clock (SPEC NEU-1): a host in this process whose clock only the test moves, with the real
//! engine, default settings, so a trial of 24 hours and 50 signals, and the real program as its client.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use agent::config::LoadedConfig;
use agent::{ActRequest, Caller, Home, Host, HostOptions};
use base::{Clock as _, Random, RefusalCode, SystemClock, TestClock};
use interfaces::http::Lifetime;
use interfaces::http::listen::Server;
use motor::RunStatus;
use serde_json::{Value, json};
use tests::{Patience, block_on};

use super::{notes_prices, status, wait_for_signals};
use crate::chat::world::World;

/// Time between two runs: 50 of them take less than a day, and an agent recovers the energy of each.
const PAUSE: Duration = Duration::from_secs(25 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A host on the home of a world, which its commands reach.
struct Hosted {
    host: Host,
    server: Server,
    clock: Arc<TestClock>,
}

impl Hosted {
    fn open(world: &World, clock: Arc<TestClock>) -> Self {
        block_on(async {
            let home = Home::at(world.motor.home().to_owned());
            let url = world.model.base_url();
            let env = base::env_of_list(&[
                ("LLM_MOTOR_MODEL", "openai/test"),
                ("OPENAI_API_KEY", "sk-test"),
                ("OPENAI_BASE_URL", &url),
                ("MOTOR_KEYRING", "off"),
            ]);
            let options = || HostOptions {
                config: LoadedConfig::load(&home, None, &env, &[]).unwrap(),
                home: home.clone(),
                env: env.clone(),
                vault_variables: BTreeMap::new(),
                compile_worker: None,
                clock: clock.clone(),
                random: Arc::new(Random::from_system()),
            };
            // A process that another test is starting has the lock of a closed host until it is its program.
            let mut patience = Patience::default();
            let host = loop {
                match Host::open(options()).await {
                    Err(refusal) if refusal.code == RefusalCode::HomeInUse && patience.lasts() => {
                        tokio::time::sleep(Duration::from_millis(10)).await;
                    }
                    opened => break opened.unwrap(),
                }
            };
            let server = Server::start(host.clone(), &home, Lifetime::Stays).unwrap();
            Self { host, server, clock }
        })
    }

    fn close(self) {
        drop(self.host);
        block_on(self.server.stop());
    }

    /// A run of the owner that notes a price.
    fn notes(&self, price: &str) -> String {
        block_on(async {
            let task = format!("note the price of [{price}]");
            let request = ActRequest { task, tools: vec!["code".to_owned()], ..ActRequest::default() };
            let run = self.host.runs.act(request, Caller::Owner).await.unwrap().run_id;
            let ended = self.host.runs.wait(&run).await.unwrap();
            assert_eq!(ended.status, RunStatus::Completed, "{ended:?}");
            run.to_string()
        })
    }
}

/// Waits until the neuron has processed so many signals.
fn ticked(world: &World, count: u64) -> Value {
    world.motor.wait_for(&["neuron", "show", "bitcoin"], |shown| shown["neuron"]["meter"]["ticks"] == count)
}

#[test]
fn a_day_and_fifty_signals_make_the_neuron_of_the_design_active() {
    let asked: Arc<Mutex<Vec<String>>> = Arc::default();
    let log = asked.clone();
    let world = World::new(move |asked| {
        log.lock().unwrap().push(asked.text());
        notes_prices(asked)
    });
    let clock = Arc::new(TestClock::at(SystemClock::default().now()));
    let hosted = Hosted::open(&world, clock);
    let mut chat = world.follow();
    let mut last = String::new();
    for number in 0..8 {
        last = hosted.notes(&format!("97,50{number}"));
        hosted.clock.advance(PAUSE);
    }
    world.send(&format!("learn [{last}]"));
    chat.until("said", "\"status\":\"quarantined\"");
    let shown = world.motor.json(&["neuron", "show", "bitcoin"])["neuron"].clone();
    assert_eq!((&shown["origin"]["successes"], &shown["status"]), (&json!(8), &json!("quarantined")), "{shown:#}");
    hosted.notes("97,600");
    assert_eq!(world.motor.json(&["neuron", "signals"]), json!([]));
    assert_eq!(world.motor.run(&["neuron", "approve", "bitcoin"]).code, Some(5));
    world.motor.run_as_owner(&["neuron", "approve", "bitcoin"], "").succeeded();

    // Neither 50 signals nor a day alone ends the trial, whose neuron reacts already.
    let began = hosted.clock.now();
    let before = world.model.calls();
    let (mut signals, mut high) = (0, 0);
    while hosted.clock.now().since(began) < DAY {
        assert_eq!(status(&world, "bitcoin"), ("trial".to_owned(), Value::Null), "after {signals} signals");
        let is_high = signals % 2 == 0;
        hosted.notes(if is_high { "98,000" } else { "3" });
        (signals, high) = (signals + 1, high + usize::from(is_high));
        ticked(&world, signals);
        hosted.clock.advance(PAUSE);
    }
    assert!(signals > 50, "{signals}");
    let expected = before + 2 * usize::try_from(signals).unwrap();
    assert_eq!(world.model.calls(), expected, "each run asked twice, the neuron never");
    hosted.notes("3");
    let shown = ticked(&world, signals + 1);
    assert_eq!(shown["neuron"]["status"], "active", "{shown:#}");
    wait_for_signals(&world, high);

    // It is active, also in the next host, and its signal costs no request to a model.
    let clock = hosted.clock.clone();
    drop(chat);
    hosted.close();
    let hosted = Hosted::open(&world, clock);
    asked.lock().unwrap().clear();
    hosted.notes("98,765");
    let emitted = wait_for_signals(&world, high + 1);
    assert_eq!(
        (&emitted[0]["source"], &emitted[0]["kind"], &emitted[0]["data"]),
        (&json!("neuron:bitcoin"), &json!("bitcoin.high"), &json!({ "price": 98_765 }))
    );
    let asked = asked.lock().unwrap().clone();
    let is_of_run = |request: &String| request.contains("note the price of [98,765]") && !request.contains("core_say");
    assert!(asked.len() == 2 && asked.iter().all(is_of_run), "{asked:#?}");
    hosted.close();
}
