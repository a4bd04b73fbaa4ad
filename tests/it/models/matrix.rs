//! The matrix of provider behaviours: a row for each, with the bytes that real providers and servers send and the reply
//! or error they must become.
//!
//! A row of `tests/fixtures/providers/PROVIDER/*.json` has answers as raw HTTP (see `tests::model_server::exchange`), and
//! may have a second exchange: the reply goes back with results for its calls, and the row lists the values
//! that this request must hold and must lack.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::Secret;
use llm::{Arguments, ChatReply, ChatRequest, Delta, FinishReason, Message, ModelError, ModelErrorKind, ToolSpec};
use providers::{Endpoint, ModelLimits, ProviderSettings, RetryPolicy};
use serde::Deserialize;
use serde_json::{Value, json};
use tests::model_server::exchange::{Answer, Exchanges};

const ROWS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/providers");
const KEY: &str = "sk-canary-123456";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    row: String,
    model: String,
    /// Nothing listens at the address.
    #[serde(default)]
    unreachable: bool,
    /// Milliseconds without a byte before the request is given up. Default: more than any answer takes.
    idle_ms: Option<u64>,
    #[serde(default)]
    answers: Vec<Answer>,
    expect: Expect,
    next: Option<Next>,
}

/// The second exchange of a case.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Next {
    /// Default: the model of the first exchange.
    model: Option<String>,
    /// Values in the request, by JSON pointer.
    #[serde(default)]
    sends: BTreeMap<String, Value>,
    /// JSON pointers that must lead to nothing.
    #[serde(default)]
    lacks: Vec<String>,
    answers: Vec<Answer>,
    expect: Expect,
}

#[derive(Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Expect {
    text: String,
    reasoning: Option<String>,
    /// `[NAME, ARGUMENTS]`; arguments that are not JSON are `{"!": TEXT}`.
    calls: Vec<(String, Value)>,
    finish: Option<FinishReason>,
    /// The whole detail of the finish reason.
    detail: Option<String>,
    /// Input and output. Default: not reported.
    usage: (u64, u64),
    cost: Option<f64>,
    retries: u32,
    error: Option<ModelErrorKind>,
    /// Words that the error must contain.
    says: Vec<String>,
    retry_after_ms: Option<u64>,
}

impl Expect {
    /// The result in the form of an expectation.
    fn found(result: &Result<ChatReply, ModelError>, expected: &Self) -> Self {
        match result {
            Ok(reply) => Self {
                text: reply.text.clone(),
                reasoning: reply.reasoning.clone(),
                calls: reply
                    .tool_calls
                    .iter()
                    .map(|call| match &call.arguments {
                        Arguments::Json(value) => (call.name.clone(), value.clone()),
                        Arguments::Malformed(text) => (call.name.clone(), json!({ "!": text })),
                    })
                    .collect(),
                finish: Some(reply.finish),
                detail: reply.finish_detail.clone(),
                usage: (reply.usage.input_tokens, reply.usage.output_tokens),
                // A table of prices changes: only reported costs are compared.
                cost: reply.usage.cost_usd.filter(|_| expected.cost.is_some()),
                retries: reply.retries,
                ..Self::default()
            },
            Err(error) => Self {
                error: Some(error.kind),
                says: match expected.says.iter().all(|part| error.message.contains(part)) {
                    true => expected.says.clone(),
                    false => vec![error.message.clone()],
                },
                retry_after_ms: error.retry_after_ms,
                ..Self::default()
            },
        }
    }
}

fn settings(origin: &str, row: &Row) -> ProviderSettings {
    let at = |url: String| Endpoint { base_url: Some(url), key: Some(Secret::new(KEY.to_owned())) };
    ProviderSettings {
        openai: at(format!("{origin}/v1")),
        openrouter: at(format!("{origin}/v1")),
        anthropic: at(origin.to_owned()),
        gemini: at(origin.to_owned()),
        ollama: at(origin.to_owned()),
        limits: ModelLimits {
            idle: Duration::from_millis(row.idle_ms.unwrap_or(20_000)),
            deadline: Duration::from_secs(30),
            ..ModelLimits::default()
        },
        retries: RetryPolicy { max: 1, first: Duration::from_millis(1), longest: Duration::from_millis(2) },
        ..ProviderSettings::default()
    }
}

async fn ask(model: &str, settings: &ProviderSettings, request: &ChatRequest) -> Result<ChatReply, ModelError> {
    let model = providers::connect(&model.parse().unwrap(), settings).unwrap();
    let mut streamed = String::new();
    let result = model
        .chat(request, &mut |delta| match delta {
            Delta::Text(text) => streamed.push_str(&text),
            Delta::Restart { .. } => streamed.clear(),
            Delta::Reasoning(_) => {}
        })
        .await;
    if let Ok(reply) = &result {
        assert_eq!(streamed, reply.text, "what streamed is not the text");
    }
    result
}

/// Plays a row. The error says how it failed.
async fn play(row: &Row) -> Result<(), String> {
    let later = row.next.iter().flat_map(|next| next.answers.clone());
    let server = Exchanges::start(row.answers.iter().cloned().chain(later).collect(), Box::new(|_| Ok(()))).await;
    let origin = match row.unreachable {
        true => format!("http://127.0.0.1:{}", closed_port()),
        false => server.origin(),
    };
    let settings = settings(&origin, row);
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "A tool.".into(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    };
    let mut request = ChatRequest {
        system: "be brief".into(),
        messages: vec![Message::User { text: "task".into() }],
        tools: vec![tool("read"), tool("list")],
        ..ChatRequest::default()
    };
    let result = ask(&row.model, &settings, &request).await;
    compare(&row.expect, &result)?;
    let used = server.requests().len();
    if used != row.answers.len() {
        return Err(format!("{} answers, {used} requests", row.answers.len()));
    }
    let (Some(next), Ok(reply)) = (&row.next, result) else { return Ok(()) };
    let results = reply.tool_calls.iter().enumerate().map(|(index, call)| Message::Tool {
        call_id: call.id.clone(),
        name: call.name.clone(),
        content: format!("result {index}"),
    });
    let results: Vec<_> = results.collect();
    let none = results.is_empty().then(|| Message::User { text: "go on".into() });
    request.messages.push(reply.into());
    request.messages.extend(results.into_iter().chain(none));
    let result = ask(next.model.as_deref().unwrap_or(&row.model), &settings, &request).await;
    let sent = server.requests().last().expect("a request").body.clone();
    for (pointer, expected) in &next.sends {
        if sent.pointer(pointer) != Some(expected) {
            return Err(format!("{pointer} is not {expected} in the second request: {sent}"));
        }
    }
    if let Some(pointer) = next.lacks.iter().find(|pointer| sent.pointer(pointer).is_some()) {
        return Err(format!("{pointer} is in the second request: {sent}"));
    }
    compare(&next.expect, &result)
}

fn compare(expected: &Expect, result: &Result<ChatReply, ModelError>) -> Result<(), String> {
    let found = Expect::found(result, expected);
    if *expected == found { Ok(()) } else { Err(format!("expected {expected:#?}\nfound {found:#?}\n{result:?}")) }
}

fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

#[tokio::test]
async fn every_provider_behaviour_gives_what_its_row_says() {
    let only = std::env::var("MOTOR_TEST_ROW").ok();
    let (mut played, mut names, mut failed) = (0, std::collections::BTreeSet::new(), Vec::new());
    let directories = files(Path::new(ROWS)).into_iter().filter(|path| path.file_name().unwrap() != "runs");
    for path in directories.flat_map(|provider| files(&provider)) {
        assert_eq!(path.extension().and_then(|end| end.to_str()), Some("json"), "{}", path.display());
        let bytes = std::fs::read(&path).unwrap();
        let rows: Vec<Row> = serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        assert!(!rows.is_empty(), "{} has no rows", path.display());
        for row in rows {
            let name = format!("{}: {}", path.strip_prefix(ROWS).unwrap().display(), row.row);
            assert!(names.insert(name.clone()), "two rows are called {name}");
            if only.as_ref().is_some_and(|only| !name.contains(only.as_str())) {
                continue;
            }
            played += 1;
            if let Err(problem) = play(&row).await {
                failed.push(format!("{name}\n{problem}"));
            }
        }
    }
    println!("{played} rows");
    assert!(failed.is_empty(), "{} of {played} rows failed:\n{}", failed.len(), failed.join("\n\n"));
    assert!(only.is_some() || played >= 150, "only {played} rows");
}
