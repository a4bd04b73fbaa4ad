//! The price of a run before its first word: system prompt and tools, as each dialect sends them. `--nocapture` shows the table.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::model_server::{ModelServer, Recorded};

use crate::skills_scenarios::world::{MAIL, World, call, manifest, says};

const DIALECTS: [(&str, &str, &[&str]); 4] = [
    ("chat completions", "openai/test", &[]),
    ("Anthropic", "anthropic/claude-test", &[]),
    ("Gemini", "gemini/gemini-test", &[]),
    ("constrained", "openai/test", &["--set", "models.constrained=true"]),
];

/// The grants of a run, and the most tokens in each dialect, at four bytes a token. They may only fall.
const CASES: [(&str, &[&str], [usize; 4]); 6] = [
    ("nothing", &[], [415, 405, 405, 375]),
    ("`code`", &["--tools", "code"], [635, 620, 620, 550]),
    ("the file tools", &["--tools", "filesystem"], [1_000, 930, 950, 690]),
    ("a directory, as `--on` grants it", &["--on", "DIRECTORY"], [1_240, 1_160, 1_180, 812]),
    ("every tool", &["--tools", ALL, "--domains", "example.com"], [1_620, 1_530, 1_550, 1_100]),
    ("a skill with every tool", &["--skill", MAIL], [1_720, 1_630, 1_650, 1_260]),
];

const ALL: &str = "code,fetch,bash,filesystem";

/// A home with an approved skill.
fn home(turns: Vec<Value>) -> (Motor, ModelServer) {
    let world = World::new(turns);
    world.drop_in(MAIL, &[("SKILL.md", &manifest(MAIL, "Send it."))]);
    world.approve(&[MAIL, "--tools", ALL, "--domains", "example.com"]);
    let World { motor, model } = world;
    let origin = model.origin();
    let motor = ["ANTHROPIC", "GEMINI"].into_iter().fold(motor, |motor, provider| {
        motor.env(&format!("{provider}_BASE_URL"), &origin).env(&format!("{provider}_API_KEY"), "sk-test")
    });
    std::fs::create_dir_all(motor.directory().join("work")).unwrap();
    (motor, model)
}

/// Runs a task, and gives the requests of it.
fn requests(motor: &Motor, model: &ModelServer, arguments: &[&str]) -> Vec<Recorded> {
    let directory = motor.directory().join("work").display().to_string();
    let given = arguments.iter().map(|argument| if *argument == "DIRECTORY" { directory.as_str() } else { argument });
    let before = model.calls();
    motor.run(&["act", "What is there?"].into_iter().chain(given).collect::<Vec<_>>()).succeeded();
    model.requests().split_off(before)
}

/// The part of a request that does not grow with the conversation. The schema of a constrained reply is a grammar, which no model
/// reads.
fn prefix(request: &Recorded) -> String {
    let system = ["/messages/0/content", "/system/0/text", "/systemInstruction/parts/0/text"];
    // Anthropic's first message is the task.
    let system = system.iter().rev().find_map(|pointer| request.body.pointer(pointer)?.as_str()).unwrap();
    let tools = request.body.get("tools").map(Value::to_string).unwrap_or_default();
    format!("{tools}{system}")
}

#[test]
fn a_run_costs_few_tokens_before_its_first_word() {
    let mut rows = CASES.map(|(name, ..)| format!("| {name} |"));
    let mut grown = Vec::new();
    for (column, (dialect, model, extra)) in DIALECTS.into_iter().enumerate() {
        let (motor, server) = home(vec![says(r#"{"answer": "nothing"}"#)]);
        let motor = motor.env("LLM_MOTOR_MODEL", model);
        for (row, (name, arguments, most)) in CASES.into_iter().enumerate() {
            let asked = requests(&motor, &server, &[arguments, extra].concat());
            let tokens = prefix(&asked[0]).len().div_ceil(4);
            rows[row].push_str(&format!(" {tokens} |"));
            if tokens > most[column] {
                grown.push(format!("{name}, {dialect}: {tokens} of {}", most[column]));
            }
        }
    }
    println!("{}", rows.join("\n"));
    assert!(grown.is_empty(), "more tokens than before: {grown:#?}\n{}", rows.join("\n"));
}

#[test]
fn a_prefix_is_the_same_at_each_step_and_in_each_run() {
    let turns = || vec![call("list", json!({ "path": "." })), call("read", json!({ "path": "none" })), says("nothing")];
    let arguments = ["--tools", ALL, "--domains", "example.com", "--max-iterations", "5"];
    let mut all = Vec::new();
    for _ in 0..2 {
        let (motor, server) = home(turns());
        all.extend(requests(&motor, &server, &arguments));
    }
    assert_eq!(all.len(), 6);
    assert!(all.iter().all(|request| prefix(request) == prefix(&all[0])));
    // Only the last words depend on the number of iterations.
    let (motor, server) = home(turns());
    let other = requests(&motor, &server, &[&arguments[..4], &["--max-iterations", "6"]].concat());
    let (one, two) = (prefix(&all[0]), prefix(&other[0]));
    let same = one.bytes().zip(two.bytes()).take_while(|(one, two)| one == two).count();
    assert!(one != two && one.len() - same < 100, "{}", &one[same..]);
}
