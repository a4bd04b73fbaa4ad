//! Runs of whole conversations through the real program: recorded replies of each API over real SSE, from a server that
//! refuses the requests that the real endpoint would refuse.

use std::path::Path;

use serde::Deserialize;
use serde_json::Value;
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::exchange::{Answer, Exchanges};
use tests::model_server::strict::{Strictness, check};

const RUNS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/providers/runs");

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    model: String,
    strictness: Strictness,
    answers: Vec<Answer>,
    /// The standard output of the program.
    stdout: String,
    /// JSON pointers into the last request: without any one of them, or with it altered, the endpoint refuses.
    required: Vec<String>,
}

fn runs() -> Vec<(String, Run)> {
    let mut paths: Vec<_> = std::fs::read_dir(RUNS).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let read = |path: &std::path::PathBuf| {
        let run = serde_json::from_slice(&std::fs::read(path).unwrap());
        (name(path), run.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
    };
    paths.iter().map(read).collect()
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap().to_string_lossy().into_owned()
}

#[test]
fn recorded_conversations_hold_before_an_endpoint_that_checks_them() {
    let runs = runs();
    assert!(runs.len() >= 5, "{} runs", runs.len());
    for (name, run) in runs {
        let strict = check(run.strictness, run.answers.clone());
        let server = block_on(Exchanges::start(run.answers.clone(), strict));
        let (origin, v1) = (server.origin(), format!("{}/v1", server.origin()));
        let motor = Motor::new()
            .env("LLM_MOTOR_MODEL", &run.model)
            .env("OPENAI_BASE_URL", &v1)
            .env("OPENROUTER_BASE_URL", &v1)
            .env("ANTHROPIC_BASE_URL", &origin)
            .env("GEMINI_BASE_URL", &origin)
            .env("OLLAMA_HOST", &origin);
        let motor = ["OPENAI", "OPENROUTER", "ANTHROPIC", "GEMINI"]
            .into_iter()
            .fold(motor, |motor, provider| motor.env(&format!("{provider}_API_KEY"), "sk-test-123456"));
        let file = motor.file("sales.csv", "item,amount\ntea,120\ncups,80\n");
        let act = ["act", "What do the sales add up to?", "--tools", "filesystem", "--file", file.to_str().unwrap()];
        let ended = motor.run(&act);
        let requests = server.requests();
        let last = requests.last().unwrap();
        assert_eq!(ended.succeeded().stdout, format!("{}\n", run.stdout), "{name}: {}", last.body);
        assert_eq!(requests.len(), run.answers.len(), "{name}: requests were refused");

        // The server does check: without any one of the required values it refuses.
        let strict = check(run.strictness, run.answers);
        assert!(strict(last).is_ok(), "{name}");
        assert!(!run.required.is_empty(), "{name}");
        for pointer in &run.required {
            let mut altered = last.clone();
            let value = altered.body.pointer_mut(pointer).unwrap_or_else(|| panic!("{name}: {pointer}: {}", last.body));
            *value = "altered".into();
            assert!(strict(&altered).is_err(), "{name}: an altered {pointer} is accepted");
            let (parent, key) = pointer.rsplit_once('/').unwrap();
            let mut without = last.clone();
            match without.body.pointer_mut(parent).unwrap() {
                Value::Object(map) => {
                    map.remove(key);
                }
                Value::Array(list) => {
                    list.remove(key.parse().unwrap());
                }
                _ => panic!("{name}: {pointer} has no parent"),
            }
            assert!(strict(&without).is_err(), "{name}: a missing {pointer} is accepted");
        }
    }
}
