//! A home with many runs that wait for their users, made by the loop itself without a host around it.

use std::path::Path;
use std::sync::Arc;

use base::{AgentName, Random, Refusal, RunId, SystemClock};
use energy::EnergyBook;
use llm::{Arguments, ChatReply, ChatRequest, Delta, Model, ModelError, RequestedCall, Usage};
use motor::{
    Environment, LiveEvent, Motor, MotorParts, RunRecord, RunRequest, RunTrace, ToolDefinition, ToolInvocation,
    ToolReply, ToolResult, Toolbox,
};
use serde_json::json;
use signals::SignalBus;
use store::Store;

/// A host on a home, as far as its runs are concerned.
pub struct Hosted {
    /// The engine of its runs.
    pub motor: Motor,
    /// The signals that the runs reported.
    pub signals: SignalBus,
    store: Store,
}

impl Hosted {
    /// Opens the state of a home, which is made if it is missing. Its runs ask their users, and complete.
    ///
    /// # Panics
    /// If the state cannot be used.
    #[must_use]
    pub fn open(home: &Path) -> Self {
        let clock = Arc::new(SystemClock::default());
        let store = Store::open(&home.join("state")).expect("a state");
        let signals = SignalBus::open(store.clone(), clock.clone()).expect("signals");
        let motor = Motor::new(MotorParts {
            store: store.clone(),
            signals: signals.clone(),
            energy: Arc::new(EnergyBook::open(store.clone(), clock.clone(), energy::EnergyConfig::default())),
            clock,
            random: Arc::new(Random::from_system()),
            environment: Arc::new(Asking),
            config: motor::MotorConfig::default(),
        });
        Self { motor, signals, store }
    }

    /// Starts so many runs, each of an agent of its own, and waits until all of them wait.
    ///
    /// # Panics
    /// If a run cannot be started, or does not ask.
    pub async fn park(&self, runs: usize) -> Vec<RunId> {
        let mut parked = Vec::with_capacity(runs);
        for number in 0..runs {
            let request = RunRequest {
                agent: AgentName::parse(&format!("agent-{number}")).expect("a name"),
                task: format!("task {number}"),
                tools: Vec::new(),
                max_iterations: None,
                timeout: None,
                grant: grants::Grant::default(),
                key: None,
                approval_required: false,
                may_ask: true,
                detached: false,
                settled: false,
                skill: None,
                web_sources: vec![],
                by_model: false,
                money: motor::RunMoney::default(),
            };
            let record = self.motor.start(self.motor.new_run_id(), request).await.expect("a run");
            parked.push(record.id);
        }
        for run in &parked {
            let mut watch = self.motor.watch(run).expect("a run");
            while !matches!(watch.next().await.expect("it asks"), LiveEvent::Asked { .. }) {}
        }
        parked
    }

    /// Stops as a host does that is told to.
    ///
    /// # Panics
    /// If the store does not close.
    pub async fn close(self) {
        self.motor.shutdown().await;
        self.store.close().await.expect("the store closes");
    }
}

/// Serves runs without tools and with a model that asks.
struct Asking;

#[async_trait::async_trait]
impl Environment for Asking {
    async fn toolbox(&self, _: &RunRecord, _: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal> {
        Ok(Arc::new(Self))
    }

    async fn model(&self, _: &RunRecord) -> Result<Arc<dyn Model>, Refusal> {
        Ok(Arc::new(Self))
    }

    async fn finished(&self, _: &RunTrace) {}
}

#[async_trait::async_trait]
impl Toolbox for Asking {
    fn tools(&self) -> &[ToolDefinition] {
        &[]
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply {
        ToolReply::of(ToolResult::failure(base::ErrorCode::NotFound, format!("there is no `{}`", call.name)))
    }
}

#[async_trait::async_trait]
impl Model for Asking {
    fn name(&self) -> &str {
        "test/asking"
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        _on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        let ask = RequestedCall {
            id: "ask".into(),
            name: "ask_user".into(),
            arguments: Arguments::Json(
                json!({ "question": "Which of the two is meant?", "choices": ["this", "that"] }),
            ),
        };
        let asks = request.turn() == 0;
        Ok(ChatReply {
            text: if asks { String::new() } else { "done".into() },
            tool_calls: if asks { vec![ask] } else { Vec::new() },
            usage: Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() },
            model: "test/asking".into(),
            ..ChatReply::default()
        })
    }
}
