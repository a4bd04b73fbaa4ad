//! A home in a temporary directory, a scripted model, and tools that remember their calls.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use base::{AgentName, Clock, ContentHash, ErrorCode, Provenance, Random, Refusal, RunId, SystemClock, Timestamp};
use energy::EnergyBook;
use grants::Grant;
use llm::{Arguments, ChatReply, ChatRequest, Delta, FinishReason, Model, ModelError, RequestedCall, ToolSpec, Usage};
use motor::{
    CallReview, ConsentNeeded, Environment, Motor, MotorConfig, MotorParts, OutgoingRequest, PlannedCall, RunRecord,
    RunRequest, RunTrace, ToolDefinition, ToolEffects, ToolInvocation, ToolNote, ToolReply, ToolResult, Toolbox,
};
use serde_json::{Value, json};
use signals::SignalBus;
use store::{Faults, NoFaults, Store};

/// The model's action at one turn.
#[derive(Clone)]
pub enum Turn {
    Say(&'static str),
    Call(Vec<(&'static str, Value)>),
    Malformed(&'static str, &'static str),
    /// A reply that ends for a reason of its own; with it the arguments of calls of `append`.
    Ends(FinishReason, &'static str, Vec<Arguments>),
    Fail(ModelError),
    Hang,
}

pub fn call(tool: &'static str, arguments: Value) -> Turn {
    Turn::Call(vec![(tool, arguments)])
}

/// Answers by the number of its own messages in the request; the last turn repeats for ever.
pub struct Script {
    pub turns: Vec<Turn>,
    pub requests: Mutex<Vec<ChatRequest>>,
}

#[async_trait]
impl Model for Script {
    fn name(&self) -> &str {
        "test/script"
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        self.requests.lock().unwrap().push(request.clone());
        let turn = request.turn();
        let mut reply = ChatReply {
            usage: Usage { input_tokens: 10, output_tokens: 2, ..Usage::default() },
            model: "test/script".into(),
            ..ChatReply::default()
        };
        let id = |index: usize| format!("t{turn}c{index}");
        match self.turns.get(turn).or(self.turns.last()).unwrap().clone() {
            Turn::Say(text) => {
                on_delta(Delta::Text(text.into()));
                reply.text = text.into();
            }
            Turn::Call(calls) => {
                let calls = calls.into_iter().enumerate().map(|(index, (name, arguments))| RequestedCall {
                    id: id(index),
                    name: name.into(),
                    arguments: Arguments::Json(arguments),
                });
                reply.tool_calls = calls.collect();
            }
            Turn::Malformed(name, text) => {
                reply.tool_calls =
                    vec![RequestedCall { id: id(0), name: name.into(), arguments: Arguments::Malformed(text.into()) }];
            }
            Turn::Ends(finish, text, calls) => {
                on_delta(Delta::Text(text.into()));
                let call = |(index, arguments)| RequestedCall { id: id(index), name: "append".into(), arguments };
                reply.tool_calls = calls.into_iter().enumerate().map(call).collect();
                (reply.text, reply.finish) = (text.into(), finish);
                reply.finish_detail = (!finish.is_complete()).then(|| "in its own words".into());
            }
            Turn::Fail(error) => return Err(error),
            Turn::Hang => std::future::pending().await,
        }
        Ok(reply)
    }
}

/// Calls of `meet` that have to be made at once, or none of them ends.
pub const MEETING: usize = 10;

/// The secret that a run knows once it has saved it.
pub const SECRET: &str = "key-7f3a9c51e0b8";

/// Tools with every kind of effect. Their effects outlive the host.
pub struct Tools {
    definitions: Vec<ToolDefinition>,
    /// Texts appended, in order: an effect that must not happen twice.
    pub appended: Mutex<Vec<String>>,
    /// Idempotency keys seen by `set`.
    pub keys: Mutex<Vec<String>>,
    /// Tool and idempotency key of every call that was made.
    pub made: Mutex<Vec<(String, String)>>,
    pub looked: AtomicU32,
    /// Calls of `meet` wait here for each other.
    pub meeting: tokio::sync::Barrier,
    pub entered: tokio::sync::Notify,
    /// Stops `taken` from outside.
    pub taken: tokio::sync::Notify,
}

impl Tools {
    pub fn new() -> Arc<Self> {
        let tool = |name: &str, read_only, idempotent| ToolDefinition {
            spec: ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: json!({"type": "object", "properties": {"text": {"type": "string"}}}),
            },
            effects: ToolEffects { read_only, idempotent, destructive: false, open_world: false },
            timeout: Duration::from_secs(5),
            component: None,
            most: None,
        };
        let outward = |tool: ToolDefinition| ToolDefinition {
            effects: ToolEffects { destructive: true, open_world: true, ..tool.effects },
            ..tool
        };
        let mut short = tool("short", false, false);
        short.timeout = Duration::ZERO;
        let short_polite =
            ToolDefinition { spec: ToolSpec { name: "short_polite".into(), ..short.spec.clone() }, ..short.clone() };
        Arc::new(Self {
            definitions: vec![
                tool("look", true, false),
                tool("meet", true, false),
                tool("append", false, false),
                tool("set", false, true),
                tool("flaky", true, false),
                tool("flaky_write", false, false),
                tool("fail", false, false),
                tool("hang", false, false),
                tool("polite", false, false),
                tool("web", true, false),
                tool("panic", true, false),
                short,
                short_polite,
                tool("polite_look", true, false),
                tool("ends_well", false, false),
                tool("taken", false, false),
                tool(motor::SAVE_CREDENTIAL, false, true),
                outward(tool("send", false, false)),
                outward(tool("get", false, false)),
                outward(tool("sneak", false, false)),
                outward(tool("post", false, false)),
            ],
            appended: Mutex::default(),
            keys: Mutex::default(),
            made: Mutex::default(),
            looked: AtomicU32::new(0),
            meeting: tokio::sync::Barrier::new(MEETING),
            entered: tokio::sync::Notify::new(),
            taken: tokio::sync::Notify::new(),
        })
    }
}

/// A request that was taken.
fn posted() -> OutgoingRequest {
    serde_json::from_value(json!({
        "method": "POST", "url": "u", "host": "h", "status": 201, "sentBytes": 0, "receivedBytes": 0, "durationMs": 1.0,
    }))
    .unwrap()
}

#[async_trait]
impl Toolbox for Tools {
    fn tools(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    async fn review(&self, call: PlannedCall<'_>) -> CallReview {
        let review = CallReview::of(&call);
        match call.name {
            "get" => {
                let class = Some(format!("read from {}", call.arguments["text"].as_str().unwrap()));
                CallReview { low_risk: true, irreversible: false, class, ..review }
            }
            _ => review,
        }
    }

    fn only_reads(&self, tool: &str, _: &Value) -> bool {
        ["look", "meet", "web", "get"].contains(&tool)
    }

    fn clean(&self, value: Value) -> Value {
        serde_json::from_str(&value.to_string().replace(SECRET, "<credential:key>")).unwrap()
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply {
        (call.notes)(ToolNote::Log { level: "info".into(), message: format!("{} begins", call.name) });
        self.made.lock().unwrap().push((call.name.to_owned(), call.idempotency_key.to_owned()));
        self.entered.notify_one();
        let text = call.arguments["text"].as_str().unwrap_or_default().to_owned();
        let result = match call.name {
            "look" => ToolResult::success(format!("look {}", self.looked.fetch_add(1, Ordering::SeqCst))),
            "meet" => {
                self.meeting.wait().await;
                ToolResult::success(format!("met {text}"))
            }
            // A request for each word, each to its own place; the first is sent without asking.
            "sneak" => {
                self.keys.lock().unwrap().push(call.idempotency_key.to_owned());
                let mut leases = call.consents.leases.clone();
                let mut reply = ToolReply { requests: vec![posted()], ..ToolReply::of(ToolResult::success("sent")) };
                for word in text.split(' ') {
                    let hash = ContentHash::of(word.as_bytes());
                    let Some(at) = leases.iter().position(|lease| *lease == hash) else {
                        reply.asks.push(ConsentNeeded {
                            action: hash,
                            summary: format!("POST {word}"),
                            reason: "it is tainted".into(),
                            class: Some("POST".into()),
                            grant: serde_json::from_value(json!({ "shape": "POST" })).unwrap(),
                            request: None,
                        });
                        reply.result = ToolResult::failure(ErrorCode::NetworkBlocked, "refused without consent");
                        continue;
                    };
                    leases.remove(at);
                    self.appended.lock().unwrap().push(word.to_owned());
                    reply.requests.push(OutgoingRequest { hash: Some(hash), consented: true, ..posted() });
                }
                return reply;
            }
            "post" => {
                self.keys.lock().unwrap().push(call.idempotency_key.to_owned());
                let result = if text == "breaks" {
                    ToolResult::failure(ErrorCode::ExecutionError, "failed after it was sent")
                } else {
                    ToolResult::success("posted")
                };
                self.appended.lock().unwrap().push(text);
                return ToolReply { requests: vec![posted()], ..ToolReply::of(result) };
            }
            "get" => ToolResult::success("got"),
            motor::SAVE_CREDENTIAL => ToolResult::success("saved"),
            "append" | "send" => {
                self.appended.lock().unwrap().push(text);
                ToolResult::success("appended")
            }
            "set" => {
                self.keys.lock().unwrap().push(call.idempotency_key.to_owned());
                ToolResult::success("set")
            }
            "flaky" | "flaky_write" => {
                let first = self.looked.fetch_add(1, Ordering::SeqCst).is_multiple_of(2);
                let failed = ToolResult { retryable: true, ..ToolResult::failure(ErrorCode::Timeout, "try again") };
                if first { failed } else { ToolResult::success("there") }
            }
            "fail" => ToolResult::failure(ErrorCode::NotFound, format!("no `{text}`")),
            "web" => ToolResult { provenance: Provenance::Web, ..ToolResult::success("from outside") },
            "polite_look" if self.looked.fetch_add(1, Ordering::SeqCst) > 0 => ToolResult::success("looked again"),
            "ends_well" => {
                call.cancel.cancelled().await;
                ToolResult::success("ended well")
            }
            "polite" | "short_polite" | "polite_look" => {
                call.cancel.cancelled().await;
                ToolResult::failure(ErrorCode::Cancelled, "stopped when asked")
            }
            "taken" => {
                self.taken.notified().await;
                ToolResult::failure(ErrorCode::Cancelled, "the sandbox went away")
            }
            "panic" => panic!("a tool panics"),
            _ => std::future::pending().await,
        };
        ToolReply::of(result)
    }
}

/// Serves the same script and tools to every run.
pub struct World {
    pub model: Arc<Script>,
    pub tools: Arc<Tools>,
    pub refusal: Option<Refusal>,
    pub finished: Mutex<Vec<RunTrace>>,
    /// How often the environment heard of a step.
    pub stepped: AtomicU32,
    /// Never done with hearing of a step or an end.
    pub is_slow: AtomicBool,
}

#[async_trait]
impl Environment for World {
    async fn toolbox(&self, _: &RunRecord, _: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal> {
        Ok(self.tools.clone())
    }

    async fn model(&self, _: &RunRecord) -> Result<Arc<dyn Model>, Refusal> {
        self.refusal.clone().map_or_else(|| Ok(self.model.clone() as Arc<dyn Model>), Err)
    }

    async fn finished(&self, trace: &RunTrace) {
        self.finished.lock().unwrap().push(trace.clone());
        self.hear().await;
    }

    async fn stepped(&self, _: &RunTrace) {
        self.stepped.fetch_add(1, Ordering::SeqCst);
        self.hear().await;
    }
}

impl World {
    async fn hear(&self) {
        if self.is_slow.load(Ordering::SeqCst) {
            std::future::pending().await
        }
    }
}

pub fn world(turns: Vec<Turn>) -> Arc<World> {
    let model = Arc::new(Script { turns, requests: Mutex::default() });
    Arc::new(World {
        model,
        tools: Tools::new(),
        refusal: None,
        finished: Mutex::default(),
        stepped: AtomicU32::new(0),
        is_slow: AtomicBool::new(false),
    })
}

/// A clock that is ahead.
#[derive(Debug)]
struct Later(SystemClock, Duration);

impl Clock for Later {
    fn now(&self) -> Timestamp {
        self.0.now().after(self.1)
    }

    fn monotonic(&self) -> Duration {
        self.0.monotonic()
    }
}

/// A host on a home. Dropping the directory ends the home.
pub struct Home {
    pub directory: Arc<tempfile::TempDir>,
    pub world: Arc<World>,
    pub store: Store,
    pub signals: SignalBus,
    pub motor: Motor,
}

impl Home {
    pub fn new(turns: Vec<Turn>) -> Self {
        Self::open(Arc::new(tempfile::tempdir().unwrap()), world(turns), Arc::new(NoFaults))
    }

    pub fn open(directory: Arc<tempfile::TempDir>, world: Arc<World>, faults: Arc<dyn Faults>) -> Self {
        let store = Store::open_with(&directory.path().join("state"), faults).unwrap();
        Self::over(directory, world, store)
    }

    /// A motor over a store that is open.
    pub fn over(directory: Arc<tempfile::TempDir>, world: Arc<World>, store: Store) -> Self {
        Self::with_clock(directory, world, store, Arc::new(SystemClock::default()))
    }

    pub fn with_clock(
        directory: Arc<tempfile::TempDir>,
        world: Arc<World>,
        store: Store,
        clock: Arc<dyn Clock>,
    ) -> Self {
        let signals = SignalBus::open(store.clone(), clock.clone()).unwrap();
        let motor = Motor::new(MotorParts {
            store: store.clone(),
            signals: signals.clone(),
            energy: Arc::new(EnergyBook::open(store.clone(), clock.clone(), energy::EnergyConfig::default())),
            clock,
            random: Arc::new(Random::from_system()),
            environment: world.clone(),
            config: MotorConfig::default(),
        });
        Self { directory, world, store, signals, motor }
    }

    /// The next host on this home, after this one was stopped.
    pub async fn reopen(self) -> Self {
        self.motor.shutdown().await;
        let Self { directory, world, store, signals, motor } = self;
        store.close().await.ok();
        drop((store, signals, motor));
        Self::open(directory, world, Arc::new(NoFaults))
    }

    /// The next host on this home, so much later.
    pub async fn reopen_at(self, later: Duration) -> Self {
        self.motor.shutdown().await;
        let Self { directory, world, store, signals, motor } = self;
        store.close().await.ok();
        drop((store, signals, motor));
        let store = Store::open(&directory.path().join("state")).unwrap();
        Self::with_clock(directory, world, store, Arc::new(Later(SystemClock::default(), later)))
    }

    pub async fn start(&self, request: RunRequest) -> RunId {
        let id = self.motor.new_run_id();
        self.motor.start(id.clone(), request).await.unwrap();
        id
    }

    /// Runs a task to its end.
    pub async fn run(&self, request: RunRequest) -> RunRecord {
        let id = self.start(request).await;
        self.motor.wait(&id).await.unwrap()
    }

    /// How many signals there are for a run.
    pub fn signals_of(&self, id: &RunId) -> usize {
        self.signals.since(0, 1000).unwrap().iter().filter(|signal| signal.body.run_id == *id).count()
    }

    /// The last request the model received.
    pub fn last_request(&self) -> ChatRequest {
        self.world.model.requests.lock().unwrap().last().unwrap().clone()
    }
}

pub fn request() -> RunRequest {
    let tools = Tools::new().tools().iter().map(|tool| tool.spec.name.clone()).collect();
    RunRequest {
        agent: AgentName::default(),
        task: "do it".into(),
        tools,
        max_iterations: None,
        timeout: None,
        grant: Grant { model: Some("test/script".into()), ..Grant::default() },
        key: None,
        skill: None,
        web_sources: vec![],
        by_model: false,
        money: motor::RunMoney::default(),
        approval_required: false,
        may_ask: false,
        detached: false,
        settled: false,
    }
}
