//! The host's part of one step of a run: from a model's reply to the next request, with one tool call between that
//! returns at once, and two durable writes.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::Result;
use base::{Provenance, Random, Refusal, SystemClock};
use energy::EnergyBook;
use llm::{Arguments, ChatReply, ChatRequest, Delta, FinishReason, Model, ModelError, RequestedCall, ToolSpec};
use motor::{
    Environment, Motor, MotorParts, RunRecord, RunRequest, RunTrace, ToolDefinition, ToolEffects, ToolInvocation,
    ToolReply, ToolResult, Toolbox,
};
use serde_json::json;
use signals::SignalBus;
use store::Store;

use crate::stats::{Aim, Times, line};

const RUNS: usize = 30;
pub const STEPS: usize = 40;

pub fn run() -> Result<()> {
    println!("\nmotor step");
    let executor = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let directory = tempfile::tempdir_in(std::env::current_dir()?)?;
    let mut gaps = executor.block_on(measure(directory.path()))?;
    line("host time of one step, p50", gaps.p50(), "ms", Some(Aim::AtMost(1.0)));
    line("host time of one step, p99", gaps.p99(), "ms", None);
    let mut syncs = sync_floor(directory.path())?;
    line("floor: two fdatasyncs, p50", syncs.p50() * 2.0, "ms", None);
    Ok(())
}

async fn measure(directory: &std::path::Path) -> Result<Times> {
    let clock = Arc::new(SystemClock::default());
    let store = Store::open(&directory.join("state"))?;
    let environment = Arc::new(Instantaneous::for_one_run());
    let motor = Motor::new(MotorParts {
        signals: SignalBus::open(store.clone(), clock.clone())?,
        energy: Arc::new(EnergyBook::open(
            store.clone(),
            clock.clone(),
            energy::EnergyConfig { enabled: false, ..energy::EnergyConfig::default() },
        )),
        store,
        clock,
        random: Arc::new(Random::seeded(1)),
        environment: environment.clone(),
        config: motor::MotorConfig::default(),
    });
    for _ in 0..RUNS {
        let request = RunRequest {
            agent: Default::default(),
            task: "count".into(),
            tools: vec!["noop".into()],
            max_iterations: Some(50),
            timeout: None,
            grant: grants::Grant::default(),
            key: None,
            approval_required: false,
            may_ask: false,
            detached: false,
            settled: false,
            skill: None,
            web_sources: vec![],
            by_model: false,
            money: motor::RunMoney::default(),
        };
        let run = motor.start(motor.new_run_id(), request).await?;
        motor.wait(&run.id).await?;
    }
    motor.shutdown().await;
    Ok(environment.gaps())
}

/// The disk's own time for one small durable write.
fn sync_floor(directory: &std::path::Path) -> Result<Times> {
    use std::io::Write as _;
    let mut file = std::fs::File::create(directory.join("floor"))?;
    let mut times = Times::default();
    for _ in 0..500 {
        let started = Instant::now();
        file.write_all(&[0; 512])?;
        file.sync_data()?;
        times.add(started.elapsed());
    }
    Ok(times)
}

/// Serves runs with a tool and a model that answer at once.
pub struct Instantaneous {
    gaps: Arc<Mutex<Times>>,
    /// The one model of runs that come after each other; `None` if each run has its own.
    model: Option<Arc<Counting>>,
}

impl Instantaneous {
    fn for_one_run() -> Self {
        let gaps = Arc::default();
        Self { model: Some(Arc::new(Counting::new(&gaps))), gaps }
    }

    /// For runs side by side.
    pub fn for_each_run() -> Self {
        Self { gaps: Arc::default(), model: None }
    }

    /// The times between a reply and the next request so far.
    pub fn gaps(&self) -> Times {
        std::mem::take(&mut *self.gaps.lock().expect("unpoisoned"))
    }
}

#[async_trait::async_trait]
impl Environment for Instantaneous {
    async fn toolbox(&self, _: &RunRecord, _: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal> {
        Ok(Arc::new(Noop([ToolDefinition {
            spec: ToolSpec {
                name: "noop".into(),
                description: "Does nothing.".into(),
                parameters: json!({ "type": "object", "properties": { "n": { "type": "integer" } } }),
            },
            effects: ToolEffects::default(),
            timeout: Duration::from_secs(1),
            component: None,
            most: None,
        }])))
    }

    async fn model(&self, _: &RunRecord) -> Result<Arc<dyn Model>, Refusal> {
        Ok(self.model.clone().unwrap_or_else(|| Arc::new(Counting::new(&self.gaps))))
    }

    async fn finished(&self, _: &RunTrace) {}
}

struct Noop([ToolDefinition; 1]);

#[async_trait::async_trait]
impl Toolbox for Noop {
    fn tools(&self) -> &[ToolDefinition] {
        &self.0
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply {
        let result = ToolResult {
            ok: true,
            output: call.arguments.to_string(),
            error_code: None,
            retryable: false,
            provenance: Provenance::Internal,
            duration_ms: 0,
            cost: None,
            saved: None,
        };
        ToolReply::of(result)
    }
}

/// A model that answers at once and takes the time between its calls.
struct Counting {
    gaps: Arc<Mutex<Times>>,
    left: Mutex<Option<Instant>>,
}

impl Counting {
    fn new(gaps: &Arc<Mutex<Times>>) -> Self {
        Self { gaps: gaps.clone(), left: Mutex::default() }
    }
}

#[async_trait::async_trait]
impl Model for Counting {
    fn name(&self) -> &str {
        "bench/counting"
    }

    async fn chat(&self, request: &ChatRequest, _: &mut (dyn FnMut(Delta) + Send)) -> Result<ChatReply, ModelError> {
        let step = request.turn();
        if let (Some(left), true) = (*self.left.lock().expect("unpoisoned"), step > 0) {
            self.gaps.lock().expect("unpoisoned").add(left.elapsed());
        }
        let call = RequestedCall {
            id: format!("call-{step}"),
            name: "noop".into(),
            arguments: Arguments::Json(json!({ "n": step })),
        };
        let done = step == STEPS;
        let reply = ChatReply {
            text: if done { "done".into() } else { String::new() },
            tool_calls: if done { Vec::new() } else { vec![call] },
            finish: if done { FinishReason::Stop } else { FinishReason::ToolCalls },
            model: "bench/counting".into(),
            ..ChatReply::default()
        };
        *self.left.lock().expect("unpoisoned") = Some(Instant::now());
        Ok(reply)
    }
}
