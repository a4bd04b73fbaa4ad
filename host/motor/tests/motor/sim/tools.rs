//! Tools with every kind of effect, and the environment of a run. Their effects are outside and survive the host.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base::{ContentHash, ErrorCode, Provenance, Refusal, RunId};
use grants::RunConsent;
use llm::{Model, ToolSpec};
use motor::{
    CallReview, ConsentNeeded, Environment, OutgoingRequest, PlannedCall, RunEvent, RunRecord, RunTrace, StoredEvent,
    ToolDefinition, ToolEffects, ToolInvocation, ToolReply, ToolResult, Toolbox,
};
use serde_json::{Value, json};
use store::{Scan, SimulatedDisk, Store, Table};

use super::chance::Chance;
use super::model::SimulatedModel;
use super::outside::{CODES, Delivery, Outside};

/// The names of all tools.
pub const NAMES: [&str; 11] =
    ["look", "append", "set", "send", "fetch", "needy", "flaky", "fail", "slow", "stubborn", "long"];

/// Those whose calls only read, so that calls of one reply are made side by side.
pub const READERS: [&str; 5] = ["look", "long", "flaky", "fetch", "needy"];

/// Longer than this a call of `slow` takes at times.
const TIMEOUT: Duration = Duration::from_secs(2);

pub fn effects(name: &str) -> ToolEffects {
    let (read_only, destructive, idempotent, open_world) = match name {
        "look" | "flaky" | "long" => (true, false, false, false),
        "fetch" => (true, false, false, true),
        "set" => (false, false, true, true),
        "send" => (false, true, false, true),
        "needy" => (false, false, false, true),
        _ => (false, false, false, false),
    };
    ToolEffects { read_only, destructive, idempotent, open_world }
}

/// The environment of every run in one life of the host.
pub struct Surroundings {
    definitions: Vec<ToolDefinition>,
    pub store: Store,
    pub disk: Arc<SimulatedDisk>,
    pub outside: Arc<Outside>,
    pub tools: Arc<Chance>,
    pub models: Arc<Chance>,
}

impl Surroundings {
    pub fn new(
        store: Store,
        disk: Arc<SimulatedDisk>,
        outside: Arc<Outside>,
        tools: Arc<Chance>,
        models: Arc<Chance>,
    ) -> Self {
        let definition = |name: &str| ToolDefinition {
            spec: ToolSpec {
                name: name.into(),
                description: String::new(),
                parameters: json!({
                    "type": "object",
                    "properties": { "text": { "type": "string" }, "place": { "type": "string" } },
                }),
            },
            effects: effects(name),
            timeout: TIMEOUT,
            component: None,
            most: None,
        };
        Self { definitions: NAMES.map(definition).into(), store, disk, outside, tools, models }
    }

    /// Time passes. A dead host does nothing after it.
    async fn wait(&self, most: Duration) {
        tokio::time::sleep(self.tools.span(most)).await;
        if self.disk.is_crashed() {
            std::future::pending().await
        }
    }

    /// The call has its effect, which it may not have before its intent is durable (SPEC DUR-2).
    fn deliver(&self, call: ToolInvocation<'_>) {
        let delivery = Delivery {
            run: call.run.clone(),
            call_id: call.call_id.into(),
            tool: call.name.into(),
            key: call.idempotency_key.into(),
            arguments: call.arguments.clone(),
            is_repeatable: effects(call.name).repeatable(),
        };
        if let Err(what) = self.is_intended(call.run, &delivery) {
            self.outside.broken(format!("{} `{}` of {} has an effect {what}", call.name, call.call_id, call.run));
        }
        self.outside.deliver(delivery);
    }

    fn is_intended(&self, run: &RunId, delivery: &Delivery) -> Result<(), &'static str> {
        let scan = Scan::prefix(format!("{run}/")).newest_first().limit(16);
        let events = self.store.scan::<StoredEvent>(Table::Events, &scan).map_err(|_| "and no history")?;
        for (_, stored) in events {
            match stored.event {
                // Another one, made beside it.
                RunEvent::ToolIntended { call_id, .. } if call_id != delivery.call_id => {}
                RunEvent::ToolIntended { call_id, idempotency_key, arguments, tool, .. } => {
                    let same = (&call_id, &idempotency_key, &arguments, &tool)
                        == (&delivery.call_id, &delivery.key, &delivery.arguments, &delivery.tool);
                    return if same { Ok(()) } else { Err("that another call was intended to have") };
                }
                RunEvent::Resumed | RunEvent::Told { .. } | RunEvent::OwnerSaid { .. } => {}
                _ => break,
            }
        }
        Err("without a durable intent")
    }
}

#[async_trait]
impl Toolbox for Surroundings {
    fn tools(&self) -> &[ToolDefinition] {
        &self.definitions
    }

    async fn review(&self, call: PlannedCall<'_>) -> CallReview {
        let place = call.arguments["place"].as_str().unwrap_or("a");
        CallReview {
            low_risk: call.name == "fetch",
            class: (call.name == "fetch").then(|| format!("fetch:{place}")),
            grant: (call.name == "fetch").then(|| RunConsent::Unreadable(json!({ "place": place }))),
            ..CallReview::of(&call)
        }
    }

    fn only_reads(&self, tool: &str, _: &Value) -> bool {
        READERS.contains(&tool)
    }

    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply {
        self.wait(Duration::from_millis(400)).await;
        let mut reply = ToolReply::of(ToolResult::success(format!("{} did it", call.name)));
        match call.name {
            "look" | "long" => self.deliver(call),
            "flaky" => {
                self.deliver(call);
                if self.tools.percent(50) {
                    reply.result = ToolResult::failure(ErrorCode::Timeout, "try again");
                    reply.result.retryable = true;
                }
            }
            "fetch" => {
                self.deliver(call);
                reply.requests = vec![request("GET")];
                reply.result.provenance = Provenance::Web;
            }
            "needy" if !call.consents.leases.contains(&needed(call.arguments)) => {
                let refused = "this is for the owner to allow";
                reply.result = ToolResult::failure(ErrorCode::NetworkBlocked, refused);
                reply.asks.push(ConsentNeeded {
                    action: needed(call.arguments),
                    summary: "need something".into(),
                    reason: refused.into(),
                    class: self.tools.percent(50).then(|| "needs".into()),
                    grant: Some(RunConsent::Unreadable(json!({ "needed": true }))),
                    request: None,
                });
            }
            "fail" => {
                reply.result = ToolResult::failure(*self.tools.pick(&CODES), "it does not work");
            }
            "set" | "send" => {
                self.deliver(call);
                reply.requests = vec![request("POST")];
            }
            "needy" => {
                self.deliver(call);
                let hash = Some(needed(call.arguments));
                reply.requests = vec![OutgoingRequest { hash, consented: true, ..request("POST") }];
            }
            _ => self.deliver(call),
        }
        match call.name {
            "long" => reply.result.output = "long ".repeat(if self.tools.percent(10) { 14_000 } else { 400 }),
            "slow" => self.wait(Duration::from_secs(8)).await,
            "stubborn" if self.tools.percent(50) => std::future::pending().await,
            _ => self.wait(Duration::from_millis(400)).await,
        }
        reply
    }
}

/// The request that a call of `needy` makes.
pub fn needed(arguments: &serde_json::Value) -> ContentHash {
    ContentHash::of(arguments.to_string().as_bytes())
}

fn request(method: &str) -> OutgoingRequest {
    OutgoingRequest {
        method: method.into(),
        url: "https://a.example/".into(),
        host: "a.example".into(),
        status: Some(200),
        sent_bytes: 1,
        received_bytes: 1,
        duration_ms: 1.0,
        credentials: Vec::new(),
        error: None,
        rule: None,
        hash: None,
        consented: false,
        staged: None,
    }
}

#[async_trait]
impl Environment for SharedSurroundings {
    async fn toolbox(&self, _: &RunRecord, _: &RunTrace) -> Result<Arc<dyn Toolbox>, Refusal> {
        Ok(self.0.clone())
    }

    async fn model(&self, run: &RunRecord) -> Result<Arc<dyn Model>, Refusal> {
        let Surroundings { disk, outside, models, .. } = self.0.as_ref();
        let (chance, disk, outside) = (models.clone(), disk.clone(), outside.clone());
        Ok(Arc::new(SimulatedModel { run: run.id.clone(), chance, disk, outside }))
    }

    async fn finished(&self, _: &RunTrace) {
        self.0.wait(Duration::from_secs(2)).await;
    }

    async fn stepped(&self, _: &RunTrace) {
        self.0.wait(Duration::from_millis(2)).await;
    }
}

/// The same for every run.
pub struct SharedSurroundings(pub Arc<Surroundings>);
