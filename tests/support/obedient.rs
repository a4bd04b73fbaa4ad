//! A model that does as its task says: it runs each script of the task in the shell, one a step.

use serde_json::{Value, json};

use crate::model_server::{ModelServer, Turn};

/// Between the scripts of a task.
pub const NEXT: &str = "\n%%\n";

/// A task of these scripts.
#[must_use]
pub fn task(scripts: &[&str]) -> String {
    format!("do this: {NEXT}{}{NEXT}", scripts.join(NEXT))
}

/// A server of such a model.
pub async fn start() -> ModelServer {
    ModelServer::deciding(Box::new(obey)).await
}

/// The next turn of a conversation: the next script of its task, or the end.
///
/// # Panics
/// If the request has no task of scripts.
#[must_use]
pub fn obey(body: &Value) -> Turn {
    let messages = body["messages"].as_array().expect("messages");
    let said = |role: &str| messages.iter().filter(|message| message["role"] == role).collect::<Vec<_>>();
    let task = said("user")[0]["content"].to_string();
    let task: String = serde_json::from_str(&task).unwrap_or(task);
    let scripts: Vec<_> = task.split(NEXT).collect();
    let scripts = &scripts[1..scripts.len() - 1];
    let done = said("assistant").len();
    let turn = match scripts.get(done) {
        Some(script) => json!({
            "text": format!("step {}", done + 1),
            "tool_calls": [{ "name": "bash", "arguments": { "script": script } }],
        }),
        None => json!({ "text": "it is done" }),
    };
    serde_json::from_value(turn).expect("a turn")
}
