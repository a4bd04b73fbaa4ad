//! A plan as a file: a small TOML with comments for people, or the JSON of the API.

use std::fmt::Write as _;

use agent::{ActRequest, TaskPlan};
use base::{Refusal, RefusalCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::duration;
use crate::output::text;

/// The fields with lines of their own, by their names in the API. Everything else is below `[also]`, as it is.
const EDITED: [&str; 8] =
    ["task", "tools", "domains", "writes", "credentials", "commands", "maxIterations", "timeoutMs"];
/// The fields that belong to one request to the host.
const OF_REQUEST: [&str; 2] = ["plan", "key"];

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    task: String,
    #[serde(default)]
    tools: Vec<String>,
    #[serde(default)]
    domains: Vec<String>,
    #[serde(default)]
    writes: Vec<String>,
    #[serde(default)]
    credentials: Vec<String>,
    commands: Option<Vec<String>>,
    max_iterations: Option<u32>,
    timeout: Option<String>,
    #[serde(default)]
    also: Map<String, Value>,
}

/// The plan as TOML.
///
/// # Errors
/// If the request cannot be written as TOML.
pub(super) fn write(plan: &TaskPlan) -> Result<String, Refusal> {
    let request = &plan.request;
    let list = |list: &[String]| toml::Value::from(list.to_vec()).to_string();
    let mut file = format!(
        "# The access of one run: it is held to exactly this, and is refused everything else without a question.\n\
         task = {}\n\n\
         # code, fetch, bash, read, write, append, patch, list, glob, grep\n\
         tools = {}\n\
         # hosts that it reads from, with `:PORT` if that is not 80 or 443\n\
         domains = {}\n\
         # requests that change something: `POST api.example.com/report`\n\
         writes = {}\n\
         # by name; each is sent only to the hosts that it is bound to\n\
         credentials = {}\n",
        toml::Value::from(request.task.clone()),
        list(&request.tools),
        list(&request.domains),
        list(&request.writes),
        list(&request.credentials),
    );
    // Writing to a string cannot fail.
    let mut line = |line: std::fmt::Arguments<'_>| file.write_fmt(line).unwrap_or_default();
    match &request.commands {
        Some(commands) => {
            line(format_args!("# commands of `bash`; without this line: all\ncommands = {}\n", list(commands)))
        }
        None => line(format_args!(
            "# commands of `bash`, all unless they are named here\n# commands = [\"curl\", \"grep\"]\n"
        )),
    }
    line(format_args!("\n"));
    if let Some(iterations) = request.max_iterations {
        line(format_args!("max_iterations = {iterations}\n"));
    }
    if let Some(timeout) = request.timeout_ms {
        let text = if timeout % 1_000 == 0 { format!("{}s", timeout / 1_000) } else { format!("{timeout}ms") };
        line(format_args!("timeout = \"{text}\"\n"));
    }
    let lines = |label: &str, lines: &[String]| {
        let lines = lines.iter().map(|line| format!("# {label}: {}\n", text::one_line(line)));
        lines.collect::<String>()
    };
    line(format_args!("\n{}{}", lines("at worst", &plan.at_worst), lines("note", &plan.notes)));
    let rest = rest(request)?;
    if !rest.is_empty() {
        let also = toml::to_string(&json!({ "also": rest })).map_err(|error| unwritable(&error))?;
        line(format_args!("\n# from the command line, in the words of the API\n{also}"));
    }
    Ok(file)
}

/// The fields without lines of their own.
fn rest(request: &ActRequest) -> Result<Map<String, Value>, Refusal> {
    let Value::Object(mut fields) = serde_json::to_value(request).map_err(|error| unwritable(&error))? else {
        return Ok(Map::new());
    };
    fields.retain(|name, value| {
        let is_empty = value.as_array().is_some_and(Vec::is_empty);
        !EDITED.contains(&name.as_str()) && !OF_REQUEST.contains(&name.as_str()) && !value.is_null() && !is_empty
    });
    Ok(fields)
}

fn unwritable(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, format!("the plan cannot be written as a file: {error}"))
        .with_remedy("take `--json`")
}

/// Reads a plan: TOML, the JSON of `motor plan --json`, or the JSON of a request.
///
/// # Errors
/// Why it is not a plan, with the line.
pub(super) fn read(text: &str) -> Result<ActRequest, String> {
    if text.trim_start().starts_with('{') {
        let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let request = value.get("request").cloned().unwrap_or(value);
        return serde_json::from_value(request).map_err(|error| error.to_string());
    }
    let file: PlanFile = toml::from_str(text).map_err(|error| {
        let line = error.span().map(|span| line_of(text, span.start));
        match line {
            Some(line) => format!("line {line}: {}", error.message()),
            None => error.message().to_owned(),
        }
    })?;
    if let Some(name) =
        file.also.keys().find(|name| EDITED.contains(&name.as_str()) || OF_REQUEST.contains(&name.as_str()))
    {
        return Err(format!("`{name}` has no place below `[also]`"));
    }
    let timeout = file.timeout.as_deref().map(duration::parse).transpose();
    let timeout = timeout.map_err(|error| located(text, &error.to_string()))?;
    let mut request: ActRequest = {
        let mut fields = file.also;
        fields.insert("task".to_owned(), Value::String(file.task));
        serde_json::from_value(Value::Object(fields)).map_err(|error| format!("below `[also]`: {error}"))?
    };
    (request.tools, request.domains, request.writes) = (file.tools, file.domains, file.writes);
    (request.credentials, request.commands) = (file.credentials, file.commands);
    (request.max_iterations, request.timeout_ms) = (file.max_iterations, timeout.map(duration::millis));
    Ok(request)
}

/// A reason with the number of the line that holds its first quotation, if there is one.
pub(super) fn located(text: &str, reason: &str) -> String {
    let quoted = reason.split('`').nth(1).filter(|quoted| !quoted.is_empty());
    let found = quoted.and_then(|quoted| {
        let is_setting = |line: &&str| !line.trim_start().starts_with('#');
        text.lines().enumerate().find(|(_, line)| is_setting(line) && line.contains(quoted))
    });
    match found {
        Some((index, _)) => format!("line {}: {reason}", index + 1),
        None => reason.to_owned(),
    }
}

fn line_of(text: &str, offset: usize) -> usize {
    text.bytes().take(offset).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(request: ActRequest) -> TaskPlan {
        let explanation = serde_json::from_value(json!({
            "agent": "main", "tools": [], "credentials": [], "maxIterations": 1, "timeoutMs": 1, "problems": [], "warnings": [],
            "network": { "domains": [], "refused": [], "writes": [], "taintedWrite": "ask", "private": [] },
            "files": { "access": "none", "inputs": [], "mostBytes": 1, "mostFiles": 1 },
            "limits": runtime::Limits::default(),
            "energy": { "level": 1.0, "base": 0.1, "perIteration": 0.01, "freeIterations": 5, "most": 0.2, "enabled": true },
        }));
        TaskPlan {
            request,
            explanation: explanation.unwrap(),
            at_worst: vec!["sends anything\n task = \"x\"".to_owned()],
            notes: vec!["dropped the domain `*`".to_owned()],
            reason: None,
        }
    }

    fn full() -> ActRequest {
        ActRequest {
            task: "say \"hi\"\n# then\n[also]\n'''\u{1b}".to_owned(),
            tools: vec!["fetch".to_owned(), "bash".to_owned()],
            domains: vec!["127.0.0.1:8080".to_owned()],
            writes: vec!["POST 127.0.0.1:8080/x".to_owned()],
            credentials: vec!["key".to_owned()],
            commands: Some(vec![]),
            max_iterations: Some(7),
            timeout_ms: Some(90_000),
            files: vec![agent::FileInput { path: "/a b.csv".into(), name: Some("n".to_owned()) }],
            inputs: Some(json!({ "rows": [1, { "a": "b" }] })),
            skill: Some("csv".to_owned()),
            model: Some("openai/x".to_owned()),
            unattended: true,
            guard: Some(false),
            ..ActRequest::default()
        }
    }

    #[test]
    fn a_plan_reads_back_as_it_was_written() {
        for request in [full(), ActRequest { task: "t".to_owned(), timeout_ms: Some(1_500), ..ActRequest::default() }] {
            let written = write(&plan(request.clone())).unwrap();
            let read_back = read(&written).unwrap_or_else(|error| panic!("{error}\n{written}"));
            assert_eq!(serde_json::to_value(read_back).unwrap(), serde_json::to_value(&request).unwrap(), "{written}");
            assert!(!written.contains('\u{1b}'), "{written}");
            let json = serde_json::to_string(&plan(request.clone())).unwrap();
            assert_eq!(serde_json::to_value(read(&json).unwrap()).unwrap(), serde_json::to_value(&request).unwrap());
        }
    }

    #[test]
    fn an_invalid_line_is_named() {
        let written = write(&plan(full())).unwrap();
        for (from, to, says) in [
            ("domains = [", "domains = [,", "line 11"),
            ("domains = [", "domain = [", "unknown field `domain`"),
            ("max_iterations = 7", "max_iterations = \"seven\"", "line "),
            ("\"90s\"", "\"soon\"", "`soon` is not a duration"),
            ("skill = ", "skills = ", "below `[also]`"),
            ("skill = ", "key = \"k\"\nskill = ", "`key` has no place"),
        ] {
            let error = read(&written.replacen(from, to, 1)).expect_err(to);
            assert!(error.contains(says), "{to}: {error}");
        }
        let short = write(&plan(ActRequest { task: "t".to_owned(), ..ActRequest::default() })).unwrap();
        let error = read(&short.replacen("task = ", "# task = ", 1)).unwrap_err();
        assert!(error.contains("missing field `task`"), "{error}");
        assert_eq!(located("a = 1\nb = [\"*.com\"]", "`*.com` is no pattern"), "line 2: `*.com` is no pattern");
        assert_eq!(located("# *.com\n", "`*.com` is no pattern"), "`*.com` is no pattern");
        for hostile in ["", "[[[[", "{", "{\"request\": 7}", "task = 7", "\u{0}"] {
            assert!(read(hostile).is_err(), "{hostile}");
        }
    }
}
