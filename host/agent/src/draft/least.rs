//! The least grant that a run would have needed: measured from its trace (SPEC LAND-6). Pure.

mod script;

use std::collections::BTreeSet;

use grants::extend;
use motor::{OutgoingRequest, RunTrace, ToolCallTrace};
use network::Target;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toolbox::catalogue;

/// Model calls beyond the measured ones: another run of the same task does not take the same steps.
const SPARE_ITERATIONS: u32 = 5;
/// The time of another run, as a multiple of the measured time.
const SPARE_TIME: u64 = 3;
/// The least time that is proposed, in milliseconds.
const MIN_TIMEOUT_MS: u64 = 60_000;

/// The access that a run really used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LeastGrant {
    /// The tools that it called, by exact name.
    pub tools: Vec<String>,
    /// The hosts that answered it, or that it staged writes to.
    pub domains: Vec<String>,
    /// The requests that it sent or staged to change something, each as the shape of exactly this method and path.
    pub writes: Vec<String>,
    /// The credentials that its requests were sent or staged with.
    pub credentials: Vec<String>,
    /// The commands of its shell; `None` if it did not use the shell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// Model calls it took, and a few more.
    pub max_iterations: u32,
    /// Milliseconds it took, with room for another run.
    pub timeout_ms: u64,
}

/// The least grant of a run. Calls and requests that were refused count for nothing: the run did without them.
#[must_use]
pub fn least(trace: &RunTrace) -> LeastGrant {
    let mut least = LeastGrant {
        max_iterations: trace.total_iterations.saturating_add(SPARE_ITERATIONS).min(motor::ITERATION_CEILING),
        timeout_ms: trace.total_duration_ms.saturating_mul(SPARE_TIME).max(MIN_TIMEOUT_MS),
        ..LeastGrant::default()
    };
    let mut commands = BTreeSet::new();
    let granted = |call: &&ToolCallTrace| call.result.is_some() && trace.tools.contains(&call.tool);
    for call in trace.steps.iter().flat_map(|step| &step.tool_calls).filter(granted) {
        extend(&mut least.tools, [call.tool.clone()]);
        if call.tool == catalogue::BASH
            && let Some(script) = call.args.get("script").and_then(Value::as_str)
        {
            commands.extend(script::commands(script));
        }
        for request in call.requests.iter().filter(|request| request.status.is_some() || request.staged.is_some()) {
            least.took(request);
        }
    }
    if least.tools.iter().any(|tool| tool == catalogue::BASH) {
        least.commands = Some(commands.into_iter().collect());
    }
    least
}

impl LeastGrant {
    fn took(&mut self, request: &OutgoingRequest) {
        // The path of a trace has no values of its query, and may be cut: then it is not the path of a request.
        let Ok(target) = Target::parse(&request.url) else { return };
        let authority = target.authority();
        extend(&mut self.credentials, request.credentials.iter().cloned());
        if !network::reads(&request.method, []) {
            let shape = format!("{} {authority}{}", request.method, target.path_and_query().path());
            if shape.parse::<network::Shape>().is_ok() {
                extend(&mut self.writes, [shape]);
            }
        }
        extend(&mut self.domains, [authority]);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn trace(calls: Value) -> RunTrace {
        serde_json::from_value(json!({
            "runId": "run_1", "agent": "main", "task": "t", "tools": ["fetch", "bash", "read"], "status": "completed",
            "createdAt": 1, "transitions": [], "totalIterations": 4, "totalDurationMs": 30_000, "totalEnergyCost": 0.1,
            "totalUsage": { "input_tokens": 1, "output_tokens": 1 }, "llmCalls": 4, "toolCalls": 3, "errors": 0,
            "steps": [{ "iteration": 1, "timestamp": 1, "llmModel": "m", "text": "", "retries": 0, "durationMs": 1,
                "usage": { "input_tokens": 1, "output_tokens": 1 }, "recoveredCall": false, "toolCalls": calls }],
        }))
        .unwrap()
    }

    fn call(tool: &str, args: Value, requests: Value) -> Value {
        let result =
            json!({ "ok": true, "output": "o", "retryable": false, "provenance": "internal", "durationMs": 1 });
        json!({ "callId": "c", "tool": tool, "args": args, "result": result, "durationMs": 1, "requests": requests })
    }

    fn request(method: &str, url: &str, status: Option<u16>) -> Value {
        json!({ "method": method, "url": url, "host": "h", "status": status, "sentBytes": 0, "receivedBytes": 0,
            "durationMs": 1.0, "credentials": ["key"] })
    }

    fn staged(method: &str, url: &str) -> Value {
        let mut request = request(method, url, None);
        request["staged"] = json!(1);
        request
    }

    #[test]
    fn a_run_needed_what_it_used() {
        let found = least(&trace(json!([
            call("fetch", json!({}), json!([
                request("GET", "https://news.example.com/log?q", Some(200)),
                request("GET", "https://refused.example.com/", None),
            ])),
            call("bash", json!({ "script": "curl -s x | jq . # sort\nX=1 grep a" }), json!([
                request("POST", "https://api.example.com:8443/report", Some(202)),
                request("POST", "https://api.example.com:8443/report", Some(202)),
                request("DELETE", "https://api.example.com:8443/other", None),
                staged("PUT", "https://held.example.com/page"),
            ])),
            call("ask_user", json!({}), json!([])),
            { "callId": "c", "tool": "read", "args": {}, "durationMs": 1 },
        ])));
        assert_eq!(found.tools, ["fetch", "bash"]);
        assert_eq!(found.domains, ["news.example.com", "api.example.com:8443", "held.example.com"]);
        assert_eq!(found.writes, ["POST api.example.com:8443/report", "PUT held.example.com/page"]);
        assert_eq!(found.credentials, ["key"]);
        assert_eq!(found.commands.unwrap(), ["curl", "grep", "jq"]);
        assert_eq!((found.max_iterations, found.timeout_ms), (9, 90_000));
        grants::patterns(&found.domains).unwrap();
        grants::shapes(&found.writes).unwrap();
    }

    #[test]
    fn a_run_without_calls_needed_nothing() {
        let found = least(&trace(json!([])));
        let nothing = LeastGrant { max_iterations: 9, timeout_ms: 90_000, ..LeastGrant::default() };
        assert_eq!(found, nothing);
    }
}
