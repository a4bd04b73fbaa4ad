//! The form of a draft: the schema that a model is given, and the reading of its arguments.

use llm::{ToolSpec, check_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

/// The tool that a model calls with its draft. No run has it.
pub(super) const PROPOSE: &str = "propose_access";
/// The largest draft that is read, in bytes of JSON. A useful one has less than 4 KiB.
pub(super) const MAX_DRAFT_BYTES: usize = 256 << 10;

/// A model's proposal. Untrusted: any text may be in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Draft {
    pub(super) reason: String,
    pub(super) tools: Vec<String>,
    pub(super) domains: Vec<String>,
    pub(super) writes: Vec<String>,
    pub(super) credentials: Vec<String>,
    pub(super) commands: Vec<String>,
    #[serde(default)]
    pub(super) skill: Option<String>,
    pub(super) max_iterations: u64,
    pub(super) timeout_seconds: u64,
}

/// The tool with the schema of a draft.
pub(super) fn tool() -> ToolSpec {
    let list =
        |description: &str| json!({ "type": "array", "items": { "type": "string" }, "description": description });
    ToolSpec {
        name: PROPOSE.to_owned(),
        description: "Proposes the least access that the task needs. The owner sees it and decides.".to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "reason": { "type": "string", "description": "One or two sentences: why the task needs this." },
                "tools": list("Names of tools from `tools`."),
                "domains": list("Exact hosts that it reads from: `example.com`, or `example.com:8443` for another port. No wildcards."),
                "writes": list("Requests that it sends to change something: `POST api.example.com/report`, `PUT api.example.com/items/*`, where `*` is one segment. Always with a method and a path."),
                "credentials": list("Names from `credentials`."),
                "commands": list("Commands that `bash` may run, such as `curl`, `jq`, `grep`. Empty without `bash`."),
                "skill": { "type": ["string", "null"], "description": "A name from `skills`, if one fits the task." },
                "maxIterations": { "type": "integer", "minimum": 0, "description": "Model calls it needs: about two for each tool call." },
                "timeoutSeconds": { "type": "integer", "minimum": 0, "description": "Seconds it needs." }
            },
            "required": ["reason", "tools", "domains", "writes", "credentials", "commands", "maxIterations", "timeoutSeconds"],
            "additionalProperties": false
        }),
    }
}

/// Reads the arguments of [`PROPOSE`].
///
/// # Errors
/// One sentence for the model: why they are not a draft.
pub(super) fn read(arguments: Value) -> Result<Draft, String> {
    let bytes = arguments.to_string().len();
    if bytes > MAX_DRAFT_BYTES {
        return Err(format!("the draft has {bytes} bytes; at most {MAX_DRAFT_BYTES} are read"));
    }
    let arguments = check_arguments(&tool().parameters, arguments)?;
    Draft::deserialize(arguments).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draft() -> Value {
        json!({
            "reason": "r", "tools": ["fetch"], "domains": ["a.example.com"], "writes": [], "credentials": [],
            "commands": [], "maxIterations": 5, "timeoutSeconds": 60
        })
    }

    fn with(field: &str, value: Value) -> Value {
        let mut draft = draft();
        draft[field] = value;
        draft
    }

    #[test]
    fn a_draft_has_its_fields_and_no_others() {
        assert_eq!(read(draft()).unwrap().tools, ["fetch"]);
        assert_eq!(read(with("skill", Value::Null)).unwrap().skill, None);
        assert_eq!(read(with("skill", json!("csv"))).unwrap().skill.as_deref(), Some("csv"));
        for wrong in [
            json!(null),
            json!([draft()]),
            json!({}),
            with("domains", json!([["a.example.com"]])),
            with("domains", json!([{ "host": "a.example.com" }])),
            with("writes", json!({ "POST": "a.example.com" })),
            with("maxIterations", json!(-1)),
            with("maxIterations", json!(1e30)),
            with("approvalRequired", json!(false)),
            with("files", json!([{ "path": "/etc/passwd" }])),
            with("model", json!("openai/other")),
            with("reason", json!("x".repeat(MAX_DRAFT_BYTES))),
        ] {
            let error = read(wrong.clone()).expect_err(&wrong.to_string());
            assert!(error.len() < 2_000, "{error}");
        }
        let mut deep = json!([]);
        for _ in 0..100 {
            deep = json!([deep]);
        }
        assert!(read(with("tools", deep)).is_err());
    }
}
