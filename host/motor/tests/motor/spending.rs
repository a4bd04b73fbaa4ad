//! The requests and the spending of a run, over the whole loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Random, Refusal, SystemClock};
use energy::EnergyBook;
use grants::Grant;
use llm::{ChatRequest, Message, Model, ToolSpec};
use motor::{
    Environment, FailureCategory, Motor, MotorConfig, MotorParts, Prices, RunRecord, RunRequest, RunStatus, RunTrace,
    SandboxUsage, ToolDefinition, ToolEffects, ToolInvocation, ToolReply, ToolResult, Toolbox,
};
use serde_json::json;
use signals::SignalBus;
use store::{NoFaults, Store};

use crate::home::{Script, Turn, call};

const OUTPUT_BYTES: usize = 42_000;

/// One tool, whose output is long.
struct Reader {
    definitions: Vec<ToolDefinition>,
    usage: Option<SandboxUsage>,
}

#[async_trait]
impl Toolbox for Reader {
    fn tools(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply {
        let line = format!("{}: row\n", call.arguments["text"]);
        let output = line.repeat(OUTPUT_BYTES / line.len() + 1);
        ToolReply { usage: self.usage, ..ToolReply::of(ToolResult::success(output)) }
    }
}

struct World {
    model: Arc<Script>,
    tools: Arc<Reader>,
}

#[async_trait]
impl Environment for World {
    async fn toolbox(&self, _: &RunRecord, _: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal> {
        Ok(self.tools.clone())
    }

    async fn model(&self, _: &RunRecord) -> Result<Arc<dyn Model>, Refusal> {
        Ok(self.model.clone())
    }

    async fn finished(&self, _: &RunTrace) {}
}

/// Reads `reads` times and answers.
async fn run(reads: usize, usage: Option<SandboxUsage>, config: MotorConfig) -> (RunRecord, Vec<ChatRequest>) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_with(&directory.path().join("state"), Arc::new(NoFaults)).unwrap();
    let clock = Arc::new(SystemClock::default());
    let mut turns: Vec<_> = (0..reads).map(|turn| call("read", json!({"text": format!("part {turn}")}))).collect();
    turns.push(Turn::Say("done"));
    let model = Arc::new(Script { turns, requests: Mutex::default() });
    let read = ToolDefinition {
        spec: ToolSpec {
            name: "read".into(),
            description: String::new(),
            parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
        },
        effects: ToolEffects { read_only: true, ..ToolEffects::default() },
        timeout: Duration::from_secs(5),
        component: None,
        most: Some(SandboxUsage { fuel: 20_000_000_000, host_calls: 100_000_000, ..SandboxUsage::default() }),
    };
    let tools = Arc::new(Reader { definitions: vec![read], usage });
    let motor = Motor::new(MotorParts {
        store: store.clone(),
        signals: SignalBus::open(store.clone(), clock.clone()).unwrap(),
        energy: Arc::new(EnergyBook::open(store.clone(), clock.clone(), energy::EnergyConfig::default())),
        clock,
        random: Arc::new(Random::from_system()),
        environment: Arc::new(World { model: model.clone(), tools }),
        config,
    });
    let id = motor.new_run_id();
    let request = RunRequest {
        agent: AgentName::default(),
        task: "read it all".into(),
        tools: vec!["read".into()],
        max_iterations: Some(50),
        timeout: None,
        grant: Grant::default(),
        key: None,
        approval_required: false,
        may_ask: false,
        settled: false,
        skill: None,
        web_sources: vec![],
        by_model: false,
    };
    motor.start(id.clone(), request).await.unwrap();
    let record = motor.wait(&id).await.unwrap();
    let requests = model.requests.lock().unwrap().clone();
    (record, requests)
}

fn bytes(request: &ChatRequest) -> usize {
    serde_json::to_string(&request.messages).unwrap().len()
}

#[tokio::test]
async fn fifty_iterations_with_two_megabytes_of_output() {
    let (record, requests) = run(49, None, MotorConfig::default()).await;
    assert_eq!(record.status, RunStatus::Completed, "{:?}", record.error);
    assert_eq!((requests.len(), record.summary.as_deref()), (50, Some("done")));
    // The output is more than two megabytes; sent whole, the last request would have had all of them.
    let most = requests.iter().map(bytes).max().unwrap();
    assert!(49 * OUTPUT_BYTES > 2_000_000 && most < 200_000, "{most}");
    let last = requests.last().unwrap();
    let whole = |message: &&Message| matches!(message, Message::Tool { content, .. } if content.len() >= OUTPUT_BYTES);
    assert_eq!(last.messages.iter().filter(whole).count(), 3);
    assert!(matches!(&last.messages[0], Message::User { text } if text == "read it all"));
}

#[tokio::test]
async fn a_run_spends_its_budget_and_no_more() {
    let prices = |credits| Prices { credits, ..Prices::default() };
    let used = SandboxUsage { fuel: 5_000_000, host_calls: 10, ..SandboxUsage::default() };
    let with = |budget| MotorConfig { budget, ..MotorConfig::default() };

    let (record, requests) = run(4, Some(used), with(prices(20_000_000))).await;
    assert_eq!(record.status, RunStatus::Completed);
    // Five replies of 10 tokens in and 2 out, four calls of 5 credits of fuel and one of host calls.
    let budget = record.budget.unwrap();
    assert_eq!((budget.spent(), budget.left()), (5 * 18 + 4 * 6, 20_000_000 - 114));
    assert!(requests[4].system.contains("Of the run's budget at least 90 % is left."), "{}", requests[4].system);

    // A call may cost more than was set aside for it, and is paid for all the same.
    let dear = SandboxUsage { fuel: 50_000_000_000, ..SandboxUsage::default() };
    let (record, requests) = run(9, Some(dear), with(prices(200_000))).await;
    let error = record.error.unwrap();
    assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::BudgetExhausted));
    assert!(error.message.starts_with("the run's budget does not reach: this may cost"), "{}", error.message);
    let budget = record.budget.unwrap();
    assert_eq!((requests.len(), record.tool_calls), (3, 3));
    assert_eq!((budget.spent(), budget.left()), (3 * 18 + 3 * 50_000, 50_000 - 54));
    assert!(requests[2].system.contains("Of the run's budget at least 40 % is left."));

    // A call that may cost too much is refused before it is made, and the model can still answer.
    let (record, requests) = run(1, Some(used), with(Prices { reply_tokens: 100, ..prices(20_000) })).await;
    assert_eq!((record.status, record.tool_calls, record.errors), (RunStatus::Completed, 1, 1));
    let Some(Message::Tool { content, .. }) = requests[1].messages.last() else { panic!("no result") };
    assert!(content.starts_with("error limit_exceeded: the run's budget does not reach"), "{content}");

    let (record, requests) = run(2, None, with(Prices { enabled: false, ..prices(0) })).await;
    assert_eq!((record.status, record.budget), (RunStatus::Completed, None));
    assert!(!requests[0].system.contains("budget"));
}
