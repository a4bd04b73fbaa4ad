//! A home whose model is a function of the request, and a client of its conversations.

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::{Call, ModelServer, Turn};

/// A request to the model.
pub(crate) struct Asked<'a>(&'a Value);

impl Asked<'_> {
    /// Whether it is of cognition; otherwise of a run.
    pub(crate) fn is_mind(&self) -> bool {
        let tools = self.0["tools"].as_array().into_iter().flatten();
        tools.into_iter().any(|tool| tool["function"]["name"] == "core_say")
    }

    /// Whether it asks for the summary of a conversation.
    pub(crate) fn is_summary(&self) -> bool {
        text(&self.messages()[0]).starts_with("You keep the summary of a conversation")
    }

    /// Whether it is of a reflection of the cortex.
    pub(crate) fn is_reflection(&self) -> bool {
        text(&self.messages()[0]).starts_with("You are the reflective cortex")
    }

    fn messages(&self) -> &[Value] {
        self.0["messages"].as_array().unwrap()
    }

    /// The author of the last message.
    pub(crate) fn role(&self) -> &str {
        self.messages().last().unwrap()["role"].as_str().unwrap()
    }

    /// The text of the last message.
    pub(crate) fn last(&self) -> &str {
        text(self.messages().last().unwrap())
    }

    /// The text of the last message of that author.
    pub(crate) fn last_of(&self, role: &str) -> &str {
        text(self.messages().iter().rfind(|message| message["role"] == role).unwrap())
    }

    /// The number of replies before it.
    pub(crate) fn replies(&self) -> usize {
        self.messages().iter().filter(|message| message["role"] == "assistant").count()
    }

    /// Whether the last message is the host's note of a signal.
    pub(crate) fn is_signal(&self) -> bool {
        self.last().starts_with("[host-") && self.last().contains("motor_result")
    }

    /// The last message between two texts.
    pub(crate) fn between(&self, before: &str, after: &str) -> &str {
        between(self.last(), before, after)
    }

    /// The first run with an open question, by the system prompt.
    pub(crate) fn open_run(&self) -> String {
        between(text(&self.messages()[0]), "# Open questions of runs\n- ", " ").to_owned()
    }

    /// The model that is asked.
    pub(crate) fn model(&self) -> &str {
        self.0["model"].as_str().unwrap()
    }

    /// The whole request as JSON.
    pub(crate) fn text(&self) -> String {
        self.0.to_string()
    }
}

fn text(message: &Value) -> &str {
    message["content"].as_str().unwrap_or_default()
}

fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let rest = text.split_once(before).map_or("", |(_, rest)| rest);
    rest.split_once(after).map_or(rest, |(found, _)| found)
}

/// A reply that is only text.
pub(crate) fn says(text: &str) -> Turn {
    Turn { text: text.to_owned(), ..Turn::default() }
}

/// A reply that calls one tool. The server numbers the call.
pub(crate) fn call(name: &str, arguments: Value) -> Turn {
    Turn { tool_calls: vec![Call { name: name.to_owned(), arguments, ..Call::default() }], ..Turn::default() }
}

/// A home and its model.
pub(crate) struct World {
    pub(crate) model: ModelServer,
    pub(crate) motor: Motor,
}

impl World {
    pub(crate) fn new(decide: impl Fn(&Asked<'_>) -> Turn + Send + Sync + 'static) -> Self {
        let model = block_on(ModelServer::deciding(Box::new(move |body| decide(&Asked(body)))));
        let motor = Motor::with_model(&model).env("MOTOR_KEYRING", "off");
        let _made = motor.owner_token();
        Self { model, motor }
    }

    /// Starts a host that stays.
    pub(crate) fn serve(&self) -> Running {
        let serving = self.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        serving
    }

    /// Sends a message of the owner.
    pub(crate) fn send(&self, text: &str) {
        let (status, reply) = self.motor.ask_as_owner("/v1/messages", &json!({ "text": text })).unwrap();
        assert_eq!(status, 200, "{reply}");
    }

    /// Sends a message of the owner on another channel.
    pub(crate) fn send_on(&self, channel: &str, text: &str) {
        let message = json!({ "text": text, "channel": channel });
        let (status, reply) = self.motor.ask_as_owner("/v1/messages", &message).unwrap();
        assert_eq!(status, 200, "{reply}");
    }

    /// Sends a message of a peer, as a program of the owner's user may.
    pub(crate) fn send_as_peer(&self, peer: &str, text: &str) -> (u16, Value) {
        self.motor.ask("/v1/messages", Some(&json!({ "text": text, "peer": peer })), &[]).unwrap()
    }

    /// The owner's conversation from its beginning.
    pub(crate) fn follow(&self) -> Follower {
        self.follow_on("chat")
    }

    pub(crate) fn follow_on(&self, channel: &str) -> Follower {
        self.events(&format!("/v1/conversations/{channel}/events"))
    }

    pub(crate) fn follow_peer(&self, peer: &str) -> Follower {
        self.events(&format!("/v1/conversations/chat/events?peer={peer}"))
    }

    fn events(&self, path: &str) -> Follower {
        Follower { events: Box::new(self.motor.events(path, 0).unwrap().map(|(_, event)| event)), seen: Vec::new() }
    }
}

/// The events of a conversation as they come.
pub(crate) struct Follower {
    events: Box<dyn Iterator<Item = Value>>,
    seen: Vec<Value>,
}

impl Follower {
    /// Reads on until an event of this type has this text or status.
    #[track_caller]
    pub(crate) fn until(&mut self, kind: &str, words: &str) -> Value {
        for event in self.events.by_ref() {
            self.seen.push(event.clone());
            let text = event["text"].as_str().or(event["status"].as_str()).unwrap_or_default();
            if event["type"] == kind && text.contains(words) {
                return event;
            }
        }
        panic!("no {kind} with `{words}`: {:#?}", self.seen);
    }
}
