//! A tick of a neuron: its program in a fresh sandbox, with the limits of its energy, alone and on every core. Then signals of runs
//! through the book of neurons, as a host processes them: the position, the counts and the emitted signals are one durable commit.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use async_trait::async_trait;
use base::{AgentName, ConsentRecord, Door, Refusal, RunId, SystemClock, Timestamp};
use neurons::{
    InputKind, NeuronBook, NeuronDraft, NeuronHost, NeuronInput, NeuronName, NeuronOrigin, NeuronProgram,
    NeuronsConfig, OutputKind, Scenario, TickCode, TickEnd, TickProgram, TickReport,
};
use runtime::{
    CodeSandbox, Component, ComponentOrigin, EngineConfig, Limits, NeuronComponent, Program, Runtime, SignalText,
};
use serde_json::json;
use signals::{MotorResult, SignalBus, SignalStatus, TTL, TaskResult, TaskStats};
use store::{Batch, Store};
use tokio_util::sync::CancellationToken;

use crate::code::{cache, sandbox};
use crate::stats::{Aim, Times, line};

const TICKS: usize = 5_000;
/// Neurons of a home that run at a time.
const NEURONS: usize = 5;
/// Signals of runs that the book processes.
const SIGNALS: usize = 2_000;
const CODE: &str = r#"const found = /Bitcoin is at \$([0-9,]+)/.exec(signal.data.summary);
return found ? [{ kind: "bitcoin.price", data: { price: Number(found[1].replaceAll(",", "")) } }] : [];"#;

pub fn run() -> Result<()> {
    println!("\nneurons");
    let sandbox = sandbox()?;
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let signal = r#"const signal = JSON.parse("{\"kind\":\"run.completed\",\"data\":{\"summary\":\"Bitcoin is at $97,500\"}}");"#;
    let program = program(format!("{signal}\n{CODE}"), 1, Timestamp::from_millis(1_000));
    let tick = async || {
        let began = Instant::now();
        let report = sandbox.execute(&program, &limits(), &CancellationToken::new()).await;
        (began.elapsed(), report.outcome.is_ok_and(|value| value.json.contains("97500")))
    };
    let mut times = Times::default();
    for _ in 0..TICKS {
        let (took, is_right) = executor.block_on(tick());
        ensure!(is_right, "a tick gives another result");
        times.add(took);
    }
    line("one tick of code, p50", times.p50(), "ms", Some(Aim::AtMost(0.1)));
    line("  p99", times.p99(), "ms", None);
    let threads = std::thread::available_parallelism()?.get();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an executor");
                (0..TICKS).for_each(|_| assert!(executor.block_on(tick()).1, "a tick gives another result"));
            });
        }
    });
    let rate = (threads * TICKS) as f64 / began.elapsed().as_secs_f64();
    line("ticks of code a second on all cores", rate, "/s", Some(Aim::AtLeast(5_000.0)));
    executor.block_on(component())?;
    for neurons in [1, NEURONS] {
        executor.block_on(book(&sandbox, neurons))?;
    }
    Ok(())
}

fn program(source: String, seed: u64, now: Timestamp) -> Program {
    Program { source, timeout: Duration::from_secs(5), guard: false, seed, now_ms: now.as_millis() }
}

fn limits() -> Limits {
    Limits { fuel: 1_000_000, memory_bytes: 16 << 20, hostcall_bytes: 1 << 20, ..Limits::default() }
}

/// Ticks of a component of the world `neuron`: the benign one of the tests, which answers any signal.
async fn component() -> Result<()> {
    let worker = Some(crate::component::compile_worker()?);
    let runtime =
        Runtime::new(EngineConfig { cache: Some(cache()), compile_worker: worker, ..EngineConfig::default() })?;
    let bytes = tests::hostile_guest("neurons-pure");
    let component = Component::load(&runtime, &bytes, ComponentOrigin::Untrusted).await?;
    let component = NeuronComponent::link(&runtime, &component)?;
    let mut times = Times::default();
    for _ in 0..TICKS {
        let signal = SignalText { kind: "run.completed".to_owned(), data: r#"{"summary":"price 1"}"#.to_owned() };
        let began = Instant::now();
        let report = component.tick(signal, &limits(), &CancellationToken::new()).await;
        times.add(began.elapsed());
        ensure!(matches!(report.outcome, runtime::Outcome::Returned(_)), "{:?}", report.outcome);
    }
    line("one tick of a component, p50", times.p50(), "ms", Some(Aim::AtMost(0.1)));
    line("  p99", times.p99(), "ms", None);
    Ok(())
}

/// The engine, without the energy of agents.
struct Engine(CodeSandbox);

#[async_trait]
impl NeuronHost for Engine {
    fn blocked(&self, _: &str) -> Option<&'static str> {
        None
    }

    async fn execute(&self, ticked: TickProgram) -> Result<TickReport, Refusal> {
        let TickCode::Script(source) = ticked.code else { panic!("only scripts tick here") };
        let program = program(source, ticked.seed, ticked.now);
        let report = self.0.execute(&program, &limits(), &CancellationToken::new()).await;
        let json = report.outcome.unwrap_or_else(|error| panic!("{error}")).json;
        Ok(TickReport { end: TickEnd::Returned(json), energy_micros: 40 })
    }

    fn check_energy(&self, _: &AgentName, _: u64) -> Result<(), Refusal> {
        Ok(())
    }

    async fn drain(&self, _: &mut Batch, _: &AgentName, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}

/// Signals of runs through so many neurons, none of which emits: an hour has room for 60 signals.
async fn book(sandbox: &CodeSandbox, neurons: usize) -> Result<()> {
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let (store, clock) = (Store::open(&directory.path().join("state"))?, Arc::new(SystemClock::default()));
    let bus = SignalBus::open(store.clone(), clock.clone())?;
    let book = NeuronBook::open(store.clone(), clock, bus.clone(), NeuronsConfig::default())?;
    let (agent, host) = (AgentName::default(), Engine(sandbox.clone()));
    for number in 0..neurons {
        let name = NeuronName::parse(&format!("neuron-{number}")).map_err(|error| anyhow!(error.to_string()))?;
        book.propose(draft(&name)?, None).await?;
        let neuron = book.quarantine(&agent, &name, &host).await?;
        ensure!(neuron.fault.is_none(), "{:?}", neuron.fault);
        let at = Timestamp::from_millis(1);
        let consent = ConsentRecord { given_by: "owner".to_owned(), door: Door::Terminal, at };
        book.approve(&agent, &name, neuron.hash, consent).await?;
    }
    for number in 0..SIGNALS {
        let result = TaskResult { ok: true, summary: format!("weather {number}"), stats: TaskStats::default() };
        let body = MotorResult { result: Some(result), ..MotorResult::new(completed()?, SignalStatus::Completed) };
        let mut batch = Batch::new();
        let staged = bus.stage(&mut batch, &agent, body, TTL).await?;
        store.commit(batch).await?;
        staged.deliver();
    }
    let (began, mut processed) = (Instant::now(), 0);
    loop {
        match book.process(&host).await? {
            0 => break,
            taken => processed += taken,
        }
    }
    let took = began.elapsed();
    ensure!(processed == SIGNALS, "{processed} signals of {SIGNALS}");
    let ticks: u64 = book.list(&agent).await.iter().map(|neuron| neuron.meter.ticks).sum();
    ensure!(ticks >= (neurons * SIGNALS) as u64, "{ticks} ticks");
    let rate = (neurons * SIGNALS) as f64 / took.as_secs_f64();
    let aim = (neurons == NEURONS).then_some(Aim::AtLeast(5_000.0));
    line(&format!("durable ticks a second, neurons: {neurons}"), rate, "/s", aim);
    line("  a signal of a run, processed", took.as_secs_f64() * 1_000.0 / SIGNALS as f64, "ms", None);
    Ok(())
}

fn completed() -> Result<RunId> {
    RunId::parse("run_1").map_err(|error| anyhow!(error.to_string()))
}

fn draft(name: &NeuronName) -> Result<NeuronDraft> {
    let output = OutputKind::parse("bitcoin.price").map_err(|error| anyhow!(error.to_string()))?;
    let scenario = |summary: &str, emits: &[&OutputKind]| Scenario {
        signal: NeuronInput { kind: InputKind::RunCompleted, data: json!({ "summary": summary }) },
        emits: emits.iter().map(|&kind| kind.clone()).collect(),
    };
    Ok(NeuronDraft {
        agent: AgentName::default(),
        name: name.clone(),
        purpose: "notes prices".to_owned(),
        program: NeuronProgram::Source(CODE.to_owned()),
        inputs: BTreeSet::from([InputKind::RunCompleted]),
        outputs: BTreeSet::from([output.clone()]),
        energy_micros: 1_000,
        scenarios: vec![
            scenario("Bitcoin is at $1", &[&output]),
            scenario("Bitcoin is at $2", &[&output]),
            scenario("weather", &[]),
        ],
        origin: NeuronOrigin { run: Some(completed()?), successes: 8, sources: Vec::new() },
    })
}
