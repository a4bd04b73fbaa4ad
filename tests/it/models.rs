//! Model providers against a scripted endpoint over real HTTP: which replies stream, which are tried again, which are
//! not, and which words an error may contain.

use std::time::{Duration, Instant};

use base::Secret;
use llm::{Arguments, ChatReply, ChatRequest, Delta, FinishReason, Message, ModelError, ModelErrorKind, ToolSpec};
use providers::{Endpoint, ModelLimits, ProviderSettings, RetryPolicy};
use serde_json::{Value, json};
use tests::model_server::ModelServer;

mod matrix;
mod recorded;

const KEY: &str = "sk-canary-123456";

fn settings(server: &ModelServer) -> ProviderSettings {
    let at = |url: String| Endpoint { base_url: Some(url), key: Some(Secret::new(KEY.to_owned())) };
    ProviderSettings {
        openai: at(server.base_url()),
        openrouter: at(server.base_url()),
        anthropic: at(server.origin()),
        gemini: at(server.origin()),
        ollama: at(server.origin()),
        limits: ModelLimits {
            idle: Duration::from_millis(1_500),
            deadline: Duration::from_secs(10),
            response_bytes: 1 << 20,
            ..ModelLimits::default()
        },
        retries: RetryPolicy { max: 2, first: Duration::from_millis(10), longest: Duration::from_millis(50) },
        ..ProviderSettings::default()
    }
}

fn request() -> ChatRequest {
    let parameters = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    ChatRequest {
        system: "be brief".into(),
        messages: vec![Message::User { text: "task".into() }],
        tools: vec![ToolSpec { name: "read".into(), description: "Reads a file.".into(), parameters }],
        note: None,
        response_schema: None,
        turn: None,
    }
}

struct Asked {
    result: Result<ChatReply, ModelError>,
    deltas: Vec<Delta>,
    took: Duration,
}

impl Asked {
    fn reply(&self) -> &ChatReply {
        self.result.as_ref().expect("a reply")
    }

    fn error(&self) -> &ModelError {
        let error = self.result.as_ref().expect_err("an error");
        assert!(!error.to_string().contains(KEY), "{error}");
        assert!(!format!("{error:?}{:?}", self.deltas).contains(KEY));
        error
    }

    fn restarts(&self) -> Vec<(&str, Duration)> {
        let mut restarts = Vec::new();
        for delta in &self.deltas {
            if let Delta::Restart { reason, wait } = delta {
                restarts.push((reason.as_str(), *wait));
            }
        }
        restarts
    }

    /// The text that streamed since the last restart.
    fn streamed(&self) -> String {
        self.deltas.iter().fold(String::new(), |text, delta| match delta {
            Delta::Text(more) => text + more,
            Delta::Restart { .. } => String::new(),
            Delta::Reasoning(_) => text,
        })
    }
}

async fn ask_with(model: &str, settings: &ProviderSettings, request: &ChatRequest) -> Asked {
    let model = providers::connect(&model.parse().unwrap(), settings).unwrap();
    let mut deltas = Vec::new();
    let started = Instant::now();
    let result = model.chat(request, &mut |delta| deltas.push(delta)).await;
    Asked { result, deltas, took: started.elapsed() }
}

async fn ask(model: &str, server: &ModelServer) -> Asked {
    ask_with(model, &settings(server), &request()).await
}

/// A server that says `hello there, friend` after the faults.
async fn faulty(faults: Value) -> ModelServer {
    ModelServer::scripted(json!({"turns": [{"text": "hello there, friend"}], "faults": faults})).await
}

const DIALECTS: [&str; 6] = [
    "openai/gpt",
    "openrouter/vendor/name",
    "compatible/local",
    "ollama/qwen3:4b",
    "anthropic/claude-x",
    "gemini/gemini-x",
];

#[tokio::test]
async fn every_provider_streams_text_and_tool_calls() {
    let server = ModelServer::scripted(json!({
        "key": KEY,
        "turns": [{
            "text": "reading two files",
            "tool_calls": [
                {"name": "read", "arguments": {"path": "a.txt"}},
                {"name": "read", "arguments": {"path": "größe.txt"}},
            ],
            "usage": {"input": 120, "output": 30},
        }, {"text": "done"}],
    }))
    .await;
    for model in DIALECTS {
        let asked = ask(model, &server).await;
        let reply = asked.reply();
        assert_eq!(reply.text, "reading two files", "{model}");
        assert_eq!(asked.streamed(), reply.text, "{model}");
        assert!(asked.deltas.len() > 1, "{model}: {:?}", asked.deltas);
        assert_eq!(reply.finish, FinishReason::ToolCalls, "{model}");
        assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), (120, 30), "{model}");
        assert_eq!((reply.model.as_str(), reply.retries), (model, 0));
        let paths: Vec<_> = reply.tool_calls.iter().map(|call| (call.name.as_str(), call.arguments.clone())).collect();
        let path = |path: &str| ("read", Arguments::Json(json!({"path": path})));
        assert_eq!(paths, [path("a.txt"), path("größe.txt")], "{model}");
        assert_ne!(reply.tool_calls[0].id, reply.tool_calls[1].id, "{model}");

        // The conversation goes on: both results go back, and the server finds its next turn.
        let mut next = request();
        next.messages.push(reply.clone().into());
        next.messages.extend(reply.tool_calls.iter().map(|call| Message::Tool {
            call_id: call.id.clone(),
            name: call.name.clone(),
            content: "content".into(),
        }));
        let asked = ask_with(model, &settings(&server), &next).await;
        assert_eq!((asked.reply().text.as_str(), asked.reply().finish), ("done", FinishReason::Stop), "{model}");
    }
}

#[tokio::test]
async fn a_request_carries_the_key_the_tools_and_the_whole_conversation() {
    let server = ModelServer::scripted(json!({"turns": [{"text": "a"}]})).await;
    ask("openrouter/vendor/name", &server).await.result.unwrap();
    let requests = server.requests();
    let [request] = requests.as_slice() else { panic!("{requests:?}") };
    assert_eq!(request.headers["authorization"], format!("Bearer {KEY}"));
    assert_eq!(request.body["model"], "vendor/name");
    assert_eq!(request.body["messages"][0], json!({"role": "system", "content": "be brief"}));
    assert_eq!(request.body["tools"][0]["function"]["name"], "read");
    assert_eq!(request.body["stream_options"]["include_usage"], true);
    assert_eq!(request.body["usage"]["include"], true);
}

#[tokio::test]
async fn arguments_that_are_not_json_are_data() {
    let server = ModelServer::scripted(json!({
        "turns": [{"tool_calls": [{"name": "read", "arguments_text": "{\"path\": oops"}]}],
    }))
    .await;
    for model in ["openai/gpt", "anthropic/claude-x"] {
        let asked = ask(model, &server).await;
        let arguments = &asked.reply().tool_calls[0].arguments;
        assert_eq!(*arguments, Arguments::Malformed("{\"path\": oops".into()), "{model}");
    }
}

#[tokio::test]
async fn a_call_written_as_text_comes_as_text() {
    let text = "<tool_call>{\"name\":\"read\",\"arguments\":{\"path\":\"a\"}}</tool_call>";
    let server = ModelServer::scripted(json!({"turns": [{"text": text}]})).await;
    let asked = ask("openai/gpt", &server).await;
    let recovered = llm::recover_text_calls(&asked.reply().text, &request().tools);
    assert!(matches!(recovered, llm::Recovery::Calls { calls, .. } if calls[0].name == "read"));
}

#[tokio::test]
async fn cost_comes_from_the_endpoint_else_from_the_price_table() {
    let usage = |cost: Value| json!({"turns": [{"text": "a", "usage": {"input": 1000, "output": 100, "cost": cost}}]});
    let server = ModelServer::scripted(usage(json!(0.25))).await;
    let mut priced = settings(&server);
    let price = json!({ "input": 2.0, "output": 10.0 });
    priced.prices.insert("openai/gpt", serde_json::from_value(price).unwrap());
    let asked = ask_with("openai/gpt", &priced, &request()).await;
    assert_eq!(asked.reply().usage.cost_usd, Some(0.25));
    let server = ModelServer::scripted(usage(Value::Null)).await;
    let asked =
        ask_with("openai/gpt", &ProviderSettings { prices: priced.prices, ..settings(&server) }, &request()).await;
    assert_eq!(asked.reply().usage.cost_usd, Some(0.003));
    assert_eq!(ask("openai/other", &server).await.reply().usage.cost_usd, None);
}

#[tokio::test]
async fn retry_after_is_honoured() {
    for model in ["openai/gpt", "anthropic/claude-x"] {
        let server = faulty(json!({"1": {"status": {"code": 429, "retry_after": "1"}}})).await;
        let asked = ask(model, &server).await;
        assert_eq!((asked.reply().text.as_str(), asked.reply().retries), ("hello there, friend", 1), "{model}");
        assert!(asked.took >= Duration::from_secs(1), "{model}: {:?}", asked.took);
        assert!(
            matches!(asked.restarts().as_slice(), [(reason, wait)] if reason.contains("429") && *wait >= Duration::from_secs(1))
        );
    }
}

#[tokio::test]
async fn a_wait_past_the_deadline_is_reported_at_once() {
    let server = faulty(json!({"1": {"status": {"code": 429, "retry_after": "3600"}}})).await;
    let asked = ask("openai/gpt", &server).await;
    assert_eq!((asked.error().kind, asked.error().retry_after_ms), (ModelErrorKind::RateLimited, Some(3_600_000)));
    assert!(asked.took < Duration::from_secs(5), "{:?}", asked.took);
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for (fault, part) in [
        (json!({"status": {"code": 503}}), "503"),
        (json!({"status": {"code": 529}}), "529"),
        (json!({"reset": {"after_chunks": 2}}), "connection broke"),
        (json!("cut"), "ended before"),
        (json!("malformed_event"), "not JSON"),
        (json!("malformed_body"), "not JSON"),
        (json!({"error_event": {"code": 502}}), "while replying"),
        (json!("never"), "silent"),
    ] {
        let server = faulty(json!({"1": fault})).await;
        let asked = ask("openai/gpt", &server).await;
        assert_eq!((asked.reply().text.as_str(), asked.reply().retries), ("hello there, friend", 1), "{fault}");
        assert!(
            matches!(asked.restarts().as_slice(), [(reason, _)] if reason.contains(part)),
            "{fault}: {:?}",
            asked.deltas
        );
        assert_eq!(asked.streamed(), "hello there, friend", "{fault}");
        assert_eq!(server.calls(), 2);
    }
}

#[tokio::test]
async fn the_other_dialects_try_again_too() {
    for model in ["anthropic/claude-x", "gemini/gemini-x"] {
        for fault in
            [json!({"status": {"code": 503}}), json!({"reset": {"after_chunks": 2}}), json!("cut"), json!("never")]
        {
            let server = faulty(json!({"1": fault})).await;
            let asked = ask(model, &server).await;
            assert_eq!(
                (asked.reply().text.as_str(), asked.reply().retries),
                ("hello there, friend", 1),
                "{model} {fault}"
            );
            assert_eq!(asked.streamed(), "hello there, friend", "{model} {fault}");
        }
    }
}

#[tokio::test]
async fn an_endpoint_that_stays_down_is_given_up() {
    let down = json!({"status": {"code": 503, "body": format!("sorry {KEY} {}", "x".repeat(10_000))}});
    let server = faulty(json!({"1": down, "2": down, "3": down, "4": down})).await;
    let asked = ask("openai/gpt", &server).await;
    assert_eq!(asked.error().kind, ModelErrorKind::Unavailable);
    assert!(asked.error().to_string().contains("tried again 2 times"), "{}", asked.error());
    assert!(asked.error().message.len() < 800);
    assert_eq!((server.calls(), asked.restarts().len()), (3, 2));
}

#[tokio::test]
async fn an_endpoint_that_never_answers_meets_the_deadline() {
    let server = faulty(json!({"1": "never", "2": "never", "3": "never"})).await;
    for model in ["openai/gpt", "anthropic/claude-x"] {
        let mut hurried = settings(&server);
        hurried.limits.deadline = Duration::from_millis(400);
        let asked = ask_with(model, &hurried, &request()).await;
        assert_eq!(asked.error().kind, ModelErrorKind::Timeout, "{model}");
        assert!(asked.took < Duration::from_secs(5), "{model}: {:?}", asked.took);
    }
}

#[tokio::test]
async fn a_slow_endpoint_is_waited_for() {
    let server = faulty(json!({"1": {"slow": {"headers_ms": 300, "chunk_ms": 100}}})).await;
    let asked = ask("openai/gpt", &server).await;
    assert_eq!((asked.reply().text.as_str(), asked.reply().retries), ("hello there, friend", 0));
}

#[tokio::test]
async fn a_flood_is_cut_off() {
    let server = faulty(json!({"1": "flood", "2": "flood"})).await;
    let asked = ask("openai/gpt", &server).await;
    assert_eq!(asked.error().kind, ModelErrorKind::Malformed);
    assert!(asked.error().message.contains("larger than"));
    assert_eq!(server.calls(), 1);
}

#[tokio::test]
async fn a_refused_key_is_not_tried_again_and_not_shown() {
    let server = ModelServer::scripted(json!({"key": "another", "turns": [{"text": "a"}]})).await;
    for (calls, (model, variable)) in [
        ("openai/gpt", "OPENAI_API_KEY"),
        ("openrouter/a/b", "OPENROUTER_API_KEY"),
        ("anthropic/claude-x", "ANTHROPIC_API_KEY"),
        ("gemini/gemini-x", "GEMINI_API_KEY"),
    ]
    .into_iter()
    .enumerate()
    {
        let asked = ask(model, &server).await;
        assert_eq!(asked.error().kind, ModelErrorKind::Auth, "{model}");
        // The endpoint repeated the key: it is struck out, the rest is kept.
        assert!(asked.error().message.contains("[secret]"), "{}", asked.error());
        assert!(asked.error().message.contains(variable), "{}", asked.error());
        assert_eq!(server.calls(), calls + 1, "{model}");
    }
}

#[tokio::test]
async fn a_wrong_request_is_not_tried_again() {
    for code in [400, 404, 422, 302] {
        let server = faulty(json!({"1": {"status": {"code": code}}})).await;
        let asked = ask("openai/gpt", &server).await;
        assert_eq!(asked.error().kind, ModelErrorKind::Rejected, "{code}");
        assert_eq!(server.calls(), 1);
    }
}

#[tokio::test]
async fn nobody_at_the_address_says_so_without_the_address() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut settings = settings(&faulty(json!({})).await);
    settings.openai.base_url = Some(format!("http://user:hunter2@127.0.0.1:{port}/v1"));
    settings.anthropic.base_url = settings.openai.base_url.clone();
    for model in ["openai/gpt", "anthropic/claude-x"] {
        let asked = ask_with(model, &settings, &request()).await;
        assert_eq!(asked.error().kind, ModelErrorKind::Unavailable, "{model}");
        assert!(asked.error().message.contains("cannot connect") && !asked.error().message.contains("hunter2"));
    }
}

#[tokio::test]
async fn a_missing_key_is_found_before_anything_is_sent() {
    let error = |model: &str| match providers::connect(&model.parse().unwrap(), &ProviderSettings::default()) {
        Err(error) => error,
        Ok(_) => panic!("{model} connected"),
    };
    assert_eq!(error("openai/gpt").kind, ModelErrorKind::Auth);
    assert!(error("openai/gpt").to_string().contains("set `OPENAI_API_KEY`"));
    assert!(error("compatible/x").to_string().contains("set `OPENAI_BASE_URL`"));
    assert!(error("replay/nowhere.jsonl").to_string().contains("cannot read the recording"));
    assert!(providers::connect(&"ollama/qwen".parse().unwrap(), &ProviderSettings::default()).is_ok());
}

#[tokio::test]
async fn an_endpoint_that_does_not_stream_is_understood() {
    // Answers in one piece although it was asked to stream, as some gateways do.
    let whole = json!({
        "choices": [{"message": {"role": "assistant", "content": "hi", "tool_calls": [
            {"id": "a", "function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
        ]}, "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 4},
    });
    let server = faulty(json!({"1": {"status": {"code": 200, "body": whole.to_string()}}})).await;
    let asked = ask("openai/gpt", &server).await;
    let reply = asked.reply();
    assert_eq!((reply.text.as_str(), reply.tool_calls.len(), reply.usage.input_tokens), ("hi", 1, 3));
}

#[tokio::test]
async fn a_dropped_call_leaves_the_endpoint() {
    let server = ModelServer::scripted(json!({"turns": [{"text": "late", "gate": true}]})).await;
    let settings = settings(&server);
    let model = providers::connect(&"openai/gpt".parse().unwrap(), &settings).unwrap();
    let (request, mut ignore) = (request(), |_| {});
    tokio::select! {
        _ = model.chat(&request, &mut ignore) => panic!("the gate is closed"),
        () = server.wait_at_gate() => {}
    }
    // The server sees the client leave: nothing is held for a call that was abandoned.
    tokio::time::timeout(tests::MAX_WAIT, server.wait_gate_empty()).await.expect("the request is abandoned");
    server.release();
    assert_eq!(ask("openai/gpt", &server).await.reply().text, "late");
    assert_eq!(server.calls(), 2);
}

#[tokio::test]
async fn another_model_answers_when_one_is_down() {
    let down = ModelServer::scripted(json!({"key": "another"})).await;
    let up = ModelServer::scripted(json!({"turns": [{"text": "here"}]})).await;
    let first = providers::connect(&"openai/gpt".parse().unwrap(), &settings(&down)).unwrap();
    let second = providers::connect(&"ollama/qwen".parse().unwrap(), &settings(&up)).unwrap();
    let reply = llm::Model::chat(&llm::Fallback::new(first, vec![second]), &request(), &mut |_| {}).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.model.as_str(), reply.retries), ("here", "ollama/qwen", 1));
}

#[tokio::test]
async fn a_small_model_calls_tools_by_a_schema() {
    let text = json!({"tool": "read", "arguments": {"path": "a"}}).to_string();
    let server = ModelServer::scripted(json!({"turns": [{"text": text}]})).await;
    let inner = providers::connect(&"ollama/tiny".parse().unwrap(), &settings(&server)).unwrap();
    let reply = llm::Model::chat(&llm::ConstrainedModel::new(inner), &request(), &mut |_| {}).await.unwrap();
    assert_eq!(reply.tool_calls[0].arguments, Arguments::Json(json!({"path": "a"})));
    let body = server.requests().remove(0).body;
    assert_eq!(body["response_format"]["type"], "json_schema");
    assert!(body.get("tools").is_none());
}

#[tokio::test]
async fn a_recorded_run_replays_without_the_endpoint() {
    let server = ModelServer::scripted(json!({
        "turns": [{"tool_calls": [{"name": "read", "arguments": {"path": "a"}}]}, {"text": "done"}],
    }))
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl");
    let model = providers::connect(&"openai/gpt".parse().unwrap(), &settings(&server)).unwrap();
    let recorder = llm::Recorder::open(model, &path).unwrap();
    let mut asked = request();
    let mut replies = Vec::new();
    for _ in 0..2 {
        let reply = llm::Model::chat(&recorder, &asked, &mut |_| {}).await.unwrap();
        asked.messages.push(reply.clone().into());
        replies.push(reply);
    }
    drop(server);
    let replay = format!("replay/{}", path.display()).parse().unwrap();
    let replay = providers::connect(&replay, &ProviderSettings::default()).unwrap();
    let mut asked = request();
    for reply in replies {
        assert_eq!(replay.chat(&asked, &mut |_| {}).await.unwrap(), reply);
        asked.messages.push(reply.clone().into());
    }
}
