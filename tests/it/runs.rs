//! Whole runs of the real program against a scripted model endpoint: all that the user, the model and the files get to
//! see.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

const DATA: &str = "item,quantity,price\napple,3,1.50\npear,4,2.25\nplum,10,4.80\n";
const PROGRAM: &str = "const rows = `apple,3,1.50\npear,4,2.25\nplum,10,4.80`.split('\\n').map((row) => row.split(','));\n\
                       return rows.reduce((sum, [, quantity, price]) => sum + quantity * price, 0);";
const ANSWER: &str = "The order comes to 61.5.";

/// A run that lists, reads, computes, writes and answers.
fn script() -> Value {
    json!({ "key": "sk-test", "turns": [
        { "text": "I look around.", "tool_calls": [{ "name": "list", "arguments": { "path": "." } }] },
        { "tool_calls": [{ "name": "read", "arguments": { "path": "data.csv" } }] },
        { "tool_calls": [{ "name": "code", "arguments": { "code": PROGRAM } }] },
        { "tool_calls": [{ "name": "write", "arguments": { "path": "out/total.txt", "content": "61.5\n" } }] },
        { "text": ANSWER, "usage": { "input": 1_000, "output": 20, "cost": 0.25 } },
    ]})
}

fn completed(extra: &[&str]) -> (ModelServer, Motor) {
    let server = block_on(ModelServer::scripted(script()));
    let motor = Motor::with_model(&server);
    let data = motor.file("data.csv", DATA);
    let act = ["act", "What does the order come to?", "--tools", "code,filesystem", "--file", data.to_str().unwrap()];
    assert_eq!(motor.stdout(&[&act, extra].concat()), format!("{ANSWER}\n"));
    (server, motor)
}

/// Every call of a trace.
fn calls(trace: &Value) -> Vec<&Value> {
    let steps = trace["steps"].as_array().unwrap().iter();
    steps.flat_map(|step| step["toolCalls"].as_array().unwrap()).collect()
}

#[test]
fn a_run_lists_reads_computes_writes_and_answers() {
    let (_server, motor) = completed(&[]);
    let run = motor.only_run();
    assert_eq!(std::fs::read_to_string(motor.workspace(&run).join("out/total.txt")).unwrap(), "61.5\n");
    assert_eq!(std::fs::read_to_string(motor.workspace(&run).join("data.csv")).unwrap(), DATA);

    let trace = motor.json(&["task", "status", &run]);
    assert_eq!((&trace["status"], &trace["summary"]), (&json!("completed"), &json!(ANSWER)));
    assert_eq!((&trace["toolCalls"], &trace["errors"], &trace["llmCalls"]), (&json!(4), &json!(0), &json!(5)));
    assert_eq!(trace["totalUsage"], json!({ "inputTokens": 1_040, "outputTokens": 40, "costUsd": 0.25 }));
    let script = script();
    let asked = script["turns"].as_array().unwrap().iter().filter_map(|turn| turn["tool_calls"].get(0));
    let said = ["data.csv", "plum,10,4.80", "61.5", "out/total.txt"];
    assert_eq!(calls(&trace).len(), 4);
    for ((call, asked), said) in calls(&trace).into_iter().zip(asked).zip(said) {
        assert_eq!((&call["tool"], &call["args"]), (&asked["name"], &asked["arguments"]));
        let result = &call["result"];
        assert_eq!((&result["ok"], &result["provenance"]), (&json!(true), &json!("internal")), "{call}");
        assert!(result["output"].as_str().unwrap().contains(said), "{call}");
        assert!(result["durationMs"].is_u64() && call["durationMs"].is_u64(), "{call}");
        assert!(call["fuel"].as_u64().unwrap() > 1_000 && call["peakMemoryBytes"].as_u64().unwrap() > 65_535, "{call}");
        assert!(call["component"].as_str().unwrap().starts_with("sha256:"), "{call}");
    }
    assert_eq!(calls(&trace)[2]["result"]["output"], "61.5");

    let file = std::fs::read(motor.home().join(format!("logs/motor-runs/{run}.json"))).unwrap();
    // The places of the files are those of the command that was asked.
    let mut trace = trace;
    trace.as_object_mut().unwrap().remove("files");
    assert_eq!(serde_json::from_slice::<Value>(&file).unwrap(), trace);
}

#[test]
fn what_people_read_of_a_run_fits_80_columns() {
    let (_server, motor) = completed(&[]);
    let text = motor.stdout(&["task", "status"]);
    // A path is whole: it is to be opened.
    for line in text.lines().filter(|line| !line.starts_with("artifact ")) {
        assert!(line.chars().count() <= 80, "{} columns: {line}", line.chars().count());
    }
    for tool in ["list", "read", "code", "write"] {
        let line =
            text.lines().find(|line| line.contains(&format!("✓ {tool}  ok"))).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains(" ms") && line.contains("fuel ") && line.ends_with("internal"), "{line}");
    }
    for said in ["arguments {\"path\":\"data.csv\"}", "result    61.5", "completed", "1,040 tokens in", "$0.25", ANSWER]
    {
        assert!(text.contains(said), "{said:?} is missing:\n{text}");
    }
    let list = motor.stdout(&["task", "list"]);
    assert!(list.contains(&motor.only_run()) && list.lines().all(|line| line.chars().count() <= 80), "{list}");
    assert!(motor.stdout(&["task", "log"]).contains("out/total.txt"));
}

#[test]
fn the_model_gets_the_tools_that_were_granted_and_the_results_of_its_calls() {
    let (server, _motor) = completed(&[]);
    let requests = server.requests();
    assert_eq!(requests.len(), 5);
    for request in &requests {
        assert_eq!(request.headers["authorization"], "Bearer sk-test");
        let tools =
            request.body["tools"].as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap());
        // The two that the loop itself has do nothing but ask.
        let expected = "code read write append patch list glob grep ask_user request_approval";
        assert_eq!(tools.collect::<Vec<_>>().join(" "), expected);
    }
    let messages = requests[4].body["messages"].as_array().unwrap();
    let told =
        |message: &Value| message["content"].as_str().is_some_and(|text| text.contains("What does the order come to?"));
    assert!(messages.iter().any(told), "{messages:?}");
    let results: Vec<_> = messages.iter().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results.len(), 4);
    for (result, said) in results.iter().zip(["data.csv", "plum,10,4.80", "61.5", "out/total.txt"]) {
        assert!(result["content"].as_str().unwrap().contains(said), "{result}");
    }
    for (index, result) in results.iter().enumerate() {
        assert_eq!(result["tool_call_id"], format!("call_{index}_0"));
    }
    // Nothing of this machine is in the model's requests.
    assert!(!requests[4].body.to_string().contains("motor-it-"));
}

#[test]
fn a_run_sends_exactly_one_signal() {
    let (_server, motor) = completed(&[]);
    let signals = motor.json_lines(&["signals"]);
    let [signal] = signals.as_slice() else { panic!("{signals:?}") };
    assert_eq!((&signal["type"], &signal["status"]), (&json!("motor_result"), &json!("completed")));
    assert_eq!(signal["runId"], motor.only_run());
    assert_eq!(
        (&signal["priority"], &signal["source"], &signal["ttlMs"]),
        (&json!("high"), &json!("motor.cortex"), &json!(300_000))
    );
    assert_eq!(signal["result"]["summary"], ANSWER);
}

#[test]
fn a_recorded_run_is_played_again_without_a_model() {
    let (server, motor) = completed(&["--record", "turns.jsonl"]);
    drop(server);
    let motor = motor.env("OPENAI_API_KEY", "");
    let data = motor.file("data.csv", DATA);
    let replay = format!("replay/{}", motor.directory().join("turns.jsonl").display());
    let act = ["act", "What does the order come to?", "--tools", "code,filesystem", "--model", &replay, "--json"];
    let ended = motor.json(&[&act[..6], &["--file", data.to_str().unwrap()]].concat());
    assert_eq!(
        (&ended["status"], &ended["result"], &ended["toolCalls"]),
        (&json!("completed"), &json!(ANSWER), &json!(4))
    );
    let run = ended["runId"].as_str().unwrap();
    assert_eq!(std::fs::read_to_string(motor.workspace(run).join("out/total.txt")).unwrap(), "61.5\n");
}

#[test]
fn only_what_was_granted_can_be_called() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "write", "arguments": { "path": "a.txt", "content": "x" } }] },
        { "tool_calls": [{ "name": "list", "arguments": { "path": "." } }] },
        { "text": "I may not." },
    ]})));
    let motor = Motor::with_model(&server);
    assert_eq!(motor.stdout(&["act", "write", "--tools", "list"]), "I may not.\n");
    let trace = motor.json(&["task", "status"]);
    let calls = calls(&trace);
    assert_eq!(calls[0]["result"]["errorCode"], "tool_not_available");
    assert_eq!(calls[1]["result"]["ok"], true);
    assert!(!motor.workspace(&motor.only_run()).join("a.txt").exists());
    assert_eq!(server.requests()[0].body["tools"].as_array().unwrap().len(), 1 + 2);
    assert_eq!(motor.stdout(&["act", "write", "--tools", "list", "--unattended"]), "I may not.\n");
    assert_eq!(server.requests().last().unwrap().body["tools"].as_array().unwrap().len(), 1);
}

#[test]
fn energy_drains_and_the_owner_is_warned_not_refused() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    let mut level = 1.0;
    for _ in 0..8 {
        assert!(!motor.run(&["act", "x"]).succeeded().stderr.contains("warning"));
        let now = motor.json(&["energy"])["level"].as_f64().unwrap();
        assert!(now < level, "{now} after {level}");
        level = now;
    }
    let ended = motor.run(&["act", "x"]).succeeded();
    assert!(ended.stderr.contains("going on because the owner asks"), "{level}: {ended:?}");
    let ended = motor.run(&["act", "x", "--set", "energy.enabled=false"]).succeeded();
    assert!(!ended.stderr.contains("going on because"), "{ended:?}");
}
