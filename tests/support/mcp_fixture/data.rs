//! The fixture as its file describes it.

use rmcp::model::{ClientCapabilities, InputRequests, Prompt, Resource, ResourceTemplate, ServerCapabilities, Tool};
use serde::Deserialize;
use serde_json::{Value, json};

use super::rounds::Rounds;

/// Everything that the server offers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Data {
    pub capabilities: ServerCapabilities,
    /// Words that complete any argument.
    pub completions: Vec<String>,
    pub tools: Vec<KnownTool>,
    pub prompts: Vec<KnownPrompt>,
    pub resources: Vec<KnownResource>,
    pub templates: Vec<KnownTemplate>,
}

/// A tool, and the effects of a call, in this order.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownTool {
    pub tool: Tool,
    /// Capabilities that the client has to declare.
    pub needs: Option<ClientCapabilities>,
    /// Input that the client gives by repeating the call.
    #[serde(default)]
    pub input: Rounds,
    /// Runs the rest as a task, if the client can.
    pub task: Option<TaskBehaviour>,
    /// Messages to log, with a pause between them.
    #[serde(default)]
    pub logs: Vec<String>,
    /// Progress to report, in percent, with a pause between two reports.
    #[serde(default)]
    pub progress: Vec<u32>,
    /// A request to the client, whose result is `answer` in the texts of the result.
    pub asks: Option<Value>,
    /// The list that changes.
    pub changes: Option<Change>,
    /// The result, with `{path}` for values of the arguments and of the answers.
    pub returns: Value,
}

/// The behaviour of a task.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TaskBehaviour {
    /// A client without the extension cannot call the tool.
    #[serde(default)]
    pub required: bool,
    /// Input that the task needs, all at once.
    #[serde(default)]
    pub inputs: InputRequests,
    /// The message of the protocol error with which the task ends.
    pub breaks: Option<String>,
}

/// A list of the server that may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Change {
    Tools,
    Prompts,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownPrompt {
    pub prompt: Prompt,
    #[serde(default)]
    pub input: Rounds,
    pub returns: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownResource {
    pub resource: Resource,
    pub contents: Value,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KnownTemplate {
    /// Its URI contains `{id}`.
    pub template: ResourceTemplate,
    pub contents: Value,
}

impl Data {
    /// Reads the fixture's file.
    pub(super) fn read() -> Self {
        serde_json::from_str(include_str!("../../fixtures/mcp/server.json")).expect("the fixture's file is valid")
    }

    pub(super) fn tool(&self, name: &str) -> Option<&KnownTool> {
        self.tools.iter().find(|known| known.tool.name == name)
    }

    /// The contents of a resource, and the values for its texts.
    pub(super) fn contents(&self, uri: &str) -> Option<(&Value, Value)> {
        if let Some(known) = self.resources.iter().find(|known| known.resource.uri == uri) {
            return Some((&known.contents, Value::Null));
        }
        self.templates.iter().find_map(|known| {
            let (before, after) = known.template.uri_template.split_once("{id}")?;
            let id = uri.strip_prefix(before)?.strip_suffix(after)?;
            Some((&known.contents, json!({ "id": id })))
        })
    }
}
