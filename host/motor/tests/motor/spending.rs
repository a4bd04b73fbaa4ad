//! The requests and the spending of a run, over the whole loop.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Clock as _, Random, Refusal, RefusalCode, SystemClock};
use energy::EnergyBook;
use grants::Grant;
use llm::{ChatReply, ChatRequest, Delta, Message, MicroUsd, Model, ModelError, ToolSpec};
use motor::{
    AgentSpend, Environment, FailureCategory, Motor, MotorConfig, MotorParts, Prices, RunRecord, RunRequest, RunStatus,
    RunTrace, SandboxUsage, SpendBook, ToolDefinition, ToolEffects, ToolInvocation, ToolReply, ToolResult, Toolbox,
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

/// A script whose replies have a cost.
struct Priced {
    script: Arc<Script>,
    cost: Option<f64>,
}

#[async_trait]
impl Model for Priced {
    fn name(&self) -> &str {
        self.script.name()
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        let mut reply = self.script.chat(request, on_delta).await?;
        reply.usage.cost_usd = self.cost;
        Ok(reply)
    }
}

struct World {
    model: Arc<Priced>,
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
    let (record, requests, _) = paid(reads, usage, config, None, motor::RunMoney::default()).await;
    (record, requests)
}

/// The same with a cost of each reply. Also gives the spending of the agent's last two days: a test may run at midnight.
async fn paid(
    reads: usize,
    usage: Option<SandboxUsage>,
    config: MotorConfig,
    cost: Option<f64>,
    money: motor::RunMoney,
) -> (RunRecord, Vec<ChatRequest>, Vec<AgentSpend>) {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::open_with(&directory.path().join("state"), Arc::new(NoFaults)).unwrap();
    let clock = Arc::new(SystemClock::default());
    let mut turns: Vec<_> = (0..reads).map(|turn| call("read", json!({"text": format!("part {turn}")}))).collect();
    turns.push(Turn::Say("done"));
    let script = Arc::new(Script { turns, requests: Mutex::default() });
    let model = Arc::new(Priced { script: script.clone(), cost });
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
        environment: Arc::new(World { model, tools }),
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
        detached: false,
        settled: false,
        skill: None,
        web_sources: vec![],
        by_model: false,
        money,
    };
    motor.start(id.clone(), request).await.unwrap();
    let record = motor.wait(&id).await.unwrap();
    let requests = script.requests.lock().unwrap().clone();
    let spent = SpendBook::new(store).days(None, SystemClock::default().now(), 2).unwrap();
    (record, requests, spent)
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
    assert!(requests[4].note.is_none(), "{:?}", requests[4].note);

    // A call may cost more than was set aside for it, and is paid for all the same.
    let dear = SandboxUsage { fuel: 50_000_000_000, ..SandboxUsage::default() };
    let (record, requests) = run(9, Some(dear), with(prices(200_000))).await;
    let error = record.error.unwrap();
    assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::BudgetExhausted));
    assert!(error.message.starts_with("the run's budget does not reach: this may cost"), "{}", error.message);
    let budget = record.budget.unwrap();
    assert_eq!((requests.len(), record.tool_calls), (3, 3));
    assert_eq!((budget.spent(), budget.left()), (3 * 18 + 3 * 50_000, 50_000 - 54));
    assert!(requests[2].note.as_ref().unwrap().contains("budget at least 40 % is left."));

    // A call that may cost too much is refused before it is made, and the model can still answer.
    let (record, requests) = run(1, Some(used), with(Prices { reply_tokens: 100, ..prices(20_000) })).await;
    assert_eq!((record.status, record.tool_calls, record.errors), (RunStatus::Completed, 1, 1));
    let Some(Message::Tool { content, .. }) = requests[1].messages.last() else { panic!("no result") };
    assert!(content.starts_with("error limit_exceeded: the run's budget does not reach"), "{content}");

    let (record, requests) = run(2, None, with(Prices { enabled: false, ..prices(0) })).await;
    assert_eq!((record.status, record.budget), (RunStatus::Completed, None));
    assert!(!requests[0].system.contains("budget"));
}

#[tokio::test]
async fn a_run_ends_at_its_cap_of_money_and_its_day_is_counted() {
    let usd = |dollars| MicroUsd::from_usd(dollars);
    let capped = |cap| motor::RunMoney { cap, ..motor::RunMoney::default() };
    let (record, requests, spent) = paid(9, None, MotorConfig::default(), Some(0.1), capped(usd(0.25))).await;
    let error = record.error.clone().unwrap();
    assert_eq!((error.category, error.code), (FailureCategory::BudgetExhausted, Some(RefusalCode::SpendCapReached)));
    assert_eq!((requests.len(), record.cost_usd, record.unpriced_replies), (3, Some(0.3), 0));
    assert!(record.failure.unwrap().retryable);
    let sum: MicroUsd = spent.iter().map(|day| day.spend.usd).sum();
    assert_eq!((Some(sum), spent.iter().map(|day| day.spend.replies).sum::<u64>()), (usd(0.3), 3));

    // Under the cap of a day too, and under a cap that is not reached it goes on.
    let budget = Prices { usd_day: usd(0.15), ..Prices::default() };
    let day = MotorConfig { budget, ..MotorConfig::default() };
    let (record, requests, _) = paid(9, None, day, Some(0.1), motor::RunMoney::default()).await;
    assert_eq!((record.error.unwrap().code, requests.len()), (Some(RefusalCode::SpendCapReached), 2));
    let (record, ..) = paid(2, None, MotorConfig::default(), Some(0.1), capped(usd(0.5))).await;
    assert_eq!((record.status, record.cost_usd), (RunStatus::Completed, Some(0.3)));

    // An unknown cost under a cap ends the run; without a cap it is counted as unknown.
    let (record, requests, _) = paid(2, None, MotorConfig::default(), None, capped(usd(0.5))).await;
    assert_eq!((record.error.unwrap().code, requests.len()), (Some(RefusalCode::PriceUnknown), 1));
    assert!(!record.failure.unwrap().retryable);
    let (record, _, spent) = paid(2, None, MotorConfig::default(), None, motor::RunMoney::default()).await;
    assert_eq!((record.status, record.cost_usd, record.unpriced_replies), (RunStatus::Completed, None, 3));
    assert_eq!(spent.iter().map(|day| day.spend.unpriced).sum::<u64>(), 3);
}
