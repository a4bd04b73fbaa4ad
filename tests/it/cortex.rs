//! The cortex with the real program and a scripted model over real HTTP (SPEC CX-1 to CX-9, CX-11, LED-4).

mod followed;
mod guidance;
mod hostile;
mod interrupted;
mod news;
mod poison;
mod reflectors;
mod scheduled;
mod seam;
mod settings;
mod simulation_plan;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tests::binary::{Ended, Motor};
use tests::block_on;
use tests::model_server::{ModelServer, Turn};

/// No cycle begins by itself.
pub const BY_COMMAND: &str = "[cortex.triggers]\ntimer = false\ninteraction_count = false\nnew_peer = false\n";

/// The replies of the model to come, and the requests that it got.
#[derive(Default)]
struct Script {
    replies: VecDeque<Turn>,
    requests: Vec<Value>,
}

/// A home with a model for reflections of its own.
pub struct Mind {
    pub motor: Motor,
    server: ModelServer,
    script: Arc<Mutex<Script>>,
}

impl Mind {
    pub fn new() -> Self {
        Self::judged_by(|_| turn(json!({ "text": "nothing is scripted" })))
    }

    /// A mind whose model replies so when no reply is scripted.
    fn judged_by(judge: fn(&Value) -> Turn) -> Self {
        let script: Arc<Mutex<Script>> = Arc::default();
        let shared = script.clone();
        let server = block_on(ModelServer::deciding(Box::new(move |body| {
            let mut script = shared.lock().unwrap();
            script.requests.push(body.clone());
            script.replies.pop_front().unwrap_or_else(|| judge(body))
        })));
        let motor = Motor::with_model(&server).env("LLM_CORTEX_MODEL", "openai/reflector").unattended();
        motor.configure(BY_COMMAND);
        Self { motor, server, script }
    }

    /// The model replies so next.
    fn replies(&self, reply: Value) {
        self.replies_text(&reply.to_string());
    }

    pub fn replies_text(&self, text: &str) {
        self.next(json!({ "text": text, "usage": { "input": 700, "output": 90 } }));
    }

    fn next(&self, reply: Value) {
        self.script.lock().unwrap().replies.push_back(turn(reply));
    }

    pub fn requests(&self) -> Vec<Value> {
        self.script.lock().unwrap().requests.clone()
    }

    pub fn hears(&self, peer: &str, summary: &str) {
        self.motor.run(&["ledger", "note", peer, summary]).succeeded();
    }

    fn reflects(&self, peers: &[&str]) -> Ended {
        let named = peers.iter().flat_map(|peer| ["--peer", peer]);
        self.motor.run(&["cortex", "reflect"].into_iter().chain(named).collect::<Vec<_>>())
    }

    /// A cycle with its exit code.
    pub fn reflects_as_json(&self, peers: &[&str]) -> (Option<i32>, Value) {
        let named = peers.iter().flat_map(|peer| ["--peer", peer]);
        let ended = self.motor.run(&["cortex", "reflect", "--json"].into_iter().chain(named).collect::<Vec<_>>());
        let cycle = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        (ended.code, cycle)
    }

    /// A cycle that looks at these peers, with this reply.
    #[track_caller]
    pub fn cycle(&self, peers: &[&str], reply: Value) -> Value {
        self.replies(reply);
        let (code, cycle) = self.reflects_as_json(peers);
        assert_eq!(code, Some(0), "{cycle}");
        cycle
    }

    pub fn trust(&self, peer: &str) -> Value {
        self.motor.json(&["ledger", "show", peer])["trust"].clone()
    }

    fn beliefs(&self) -> Vec<String> {
        let beliefs = self.motor.json(&["cortex", "beliefs"]);
        let line =
            |belief: &Value| format!("{}: {}", belief["key"].as_str().unwrap(), belief["value"].as_str().unwrap());
        beliefs.as_array().unwrap().iter().map(line).collect()
    }

    pub fn history(&self) -> Vec<Value> {
        self.motor.json(&["cortex", "history"]).as_array().unwrap().clone()
    }
}

fn turn(turn: Value) -> Turn {
    serde_json::from_value(turn).unwrap()
}

/// A reply that trusts a peer so.
pub fn trusting(peer: &str, trust: impl Into<Value>) -> Value {
    let assessment = json!({ "peer_id": peer, "trust": trust.into(), "rationale": "observed behaviour" });
    json!({ "assessments": [assessment], "beliefs": [], "summary": "a cycle" })
}

/// A reply with a belief about a peer.
fn believing(peer: &str, key: &str, value: &str, rationale: &str) -> Value {
    let belief = json!({ "key": key, "value": value, "rationale": rationale, "peer_id": peer });
    json!({ "assessments": [], "beliefs": [belief], "summary": "a cycle" })
}

#[test]
fn an_honest_reflection_assesses_within_three_points_and_forms_beliefs() {
    let mind = Mind::new();
    mind.hears("mai", "asks for the table");
    mind.hears("ben", "promises the table, then does not send it");
    let reply = json!({
        "assessments": [
            { "peer_id": "mai", "trust": 9, "rationale": "clear requests" },
            { "peer_id": "ben", "trust": -9, "rationale": "broke a promise" },
        ],
        "beliefs": [{ "key": "ben-is-late", "value": "Ben does not keep dates", "rationale": "r", "peer_id": "ben" }],
        "summary": "Ben broke a promise.",
    });
    let cycle = mind.cycle(&["mai", "ben"], reply.clone());
    assert_eq!((mind.trust("mai"), mind.trust("ben")), (json!(3), json!(-3)), "{cycle}");
    assert_eq!(cycle["assessed"].as_array().unwrap().len(), 2);
    assert_eq!(cycle["reflected"]["trigger"], "owner");
    assert_eq!(cycle["record"]["tokens"]["input"], 700);
    assert!(cycle["record"]["tokens"]["estimatedInput"].as_u64().unwrap() > 300, "{cycle}");
    let assessment = &mind.motor.json(&["ledger", "show", "ben"])["recentAssessments"][0];
    assert_eq!((&assessment["source"], &assessment["rationale"]), (&json!("cortex"), &json!("broke a promise")));

    // It was asked in a context of its own, by its own model, and saw no tools.
    let requests = mind.requests();
    assert_eq!((requests.len(), &requests[0]["model"]), (1, &json!("reflector")));
    let messages = requests[0]["messages"].as_array().unwrap();
    assert_eq!((messages.len(), requests[0].get("tools")), (2, None));
    assert!(messages[0]["content"].as_str().unwrap().len() < 500 * 4);
    assert!(messages[1]["content"].to_string().contains("asks for the table"));

    // The next cycle begins where this one ended.
    mind.cycle(&["mai", "ben"], reply);
    assert_eq!((mind.trust("mai"), mind.trust("ben")), (json!(6), json!(-6)));
    assert!(mind.requests()[1]["messages"][1]["content"].to_string().contains("Ben broke a promise."));
    assert_eq!(mind.beliefs(), ["ben-is-late: Ben does not keep dates"]);
    let history = mind.history();
    assert_eq!((history.len(), &history[0]["cycle"]), (2, &json!(2)));
    assert_eq!(history[0]["outcome"]["beliefsReaffirmed"], json!(["ben-is-late"]));
    let screen = mind.motor.stdout(&["cortex", "status"]);
    for words in ["main: on", "model: openai/reflector", "beliefs: 1 of 20", "mai: trust +6 (proposed +9)"] {
        assert!(screen.contains(words), "{words}: {screen}");
    }
}

#[test]
fn a_contradiction_needs_the_rationale_that_names_the_old_value() {
    let mind = Mind::new();
    mind.hears("mai", "hello");
    mind.cycle(&["mai"], believing("mai", "mai", "Mai is reliable", "r"));
    let refused = mind.cycle(&["mai"], believing("mai", "mai", "Mai is a liar", "she lied"));
    let left_out = refused["record"]["outcome"]["refused"].to_string();
    assert!(left_out.contains("does not name the old value"), "{refused}");
    assert_eq!(mind.beliefs(), ["mai: Mai is reliable"]);
    mind.cycle(&["mai"], believing("mai", "mai", "Mai is late", "no longer: \"Mai is reliable\""));
    assert_eq!(mind.beliefs(), ["mai: Mai is late"]);
}

#[test]
fn requests_for_a_cycle_that_cannot_be_are_refused() {
    let mind = Mind::new();
    mind.reflects(&["stranger"]).refused(1, &["knows no peer `stranger`"]);
    let motor = Motor::new().unattended();
    motor.run(&["cortex", "reflect"]).refused(1, &["no model is set for the role `cortex`", "LLM_CORTEX_MODEL"]);
}
