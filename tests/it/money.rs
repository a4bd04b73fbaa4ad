//! Money with the real program and scripted usage (SPEC EN-4): prices, caps of runs and of days, spending by day; the rules that a
//! run keeps from its start (SPEC CONF-2); and the floor of energy (SPEC EN-3).

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

/// A dollar for a million tokens in, ten for a million out.
const PRICE: &str = "[prices]\n\"openai/test\" = { input = 1.0, output = 10.0 }\n";

/// Tokens of a reply that costs a dollar.
fn dollar() -> Value {
    json!({ "input": 1_000_000, "output": 0 })
}

/// A model that writes three files and answers; each reply costs a dollar.
fn dear() -> ModelServer {
    let write = |name: &str| {
        let call = json!({ "name": "write", "arguments": { "path": name, "content": name } });
        json!({ "tool_calls": [call], "usage": dollar() })
    };
    let turns = [write("a"), write("b"), write("c"), json!({ "text": "written", "usage": dollar() })];
    block_on(ModelServer::scripted(json!({ "turns": turns })))
}

/// A model that answers at once, for a dollar.
fn answers() -> ModelServer {
    block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done", "usage": dollar() }] })))
}

/// The dollars that an agent spent today and yesterday, and the number of replies: a test may run at midnight.
fn spent(motor: &Motor, agent: &str) -> (f64, u64) {
    let days = motor.json(&["spend", "--days", "2", "--agent", agent]);
    let days = days.as_array().unwrap().iter();
    days.fold((0.0, 0), |(usd, replies), day| {
        assert_eq!(day["agent"], agent);
        (usd + day["usd"].as_f64().unwrap(), replies + day["replies"].as_u64().unwrap())
    })
}

#[test]
fn a_run_ends_at_its_cap_and_goes_on_with_a_higher_one() {
    let server = dear();
    let motor = Motor::with_model(&server);
    motor.configure(PRICE);
    let act = ["act", "write", "--tools", "filesystem", "--budget-usd", "2.50", "--unattended"];
    let explained = motor.stdout(&["explain", "write", "--tools", "filesystem", "--budget-usd", "2.50"]);
    assert!(explained.contains("$2.50 on models at most"), "{explained}");
    assert_ne!(motor.run(&act).code, Some(0));
    // Three replies came to three dollars; the fourth was not asked for.
    assert_eq!(server.requests().len(), 3);
    let run = motor.only_run();
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!((&trace["status"], &trace["error"]["code"]), (&json!("failed"), &json!("spend_cap_reached")), "{trace}");
    assert!(trace["error"]["message"].as_str().unwrap().contains("the run's cap of $2.50 is reached: $3.00 are spent"));
    assert!(trace["error"]["remedy"].as_str().unwrap().contains("--budget-usd"), "{trace}");
    assert_eq!((&trace["totalUsage"]["costUsd"], &trace["usdCap"]), (&json!(3.0), &json!(2.5)));
    let listed = &motor.json(&["task", "list"])[0];
    assert_eq!((&listed["costUsd"], &listed["usdCap"]), (&json!(3.0), &json!(2.5)));
    assert!(motor.stdout(&["task", "list"]).contains("$3.00"));
    assert!(motor.stdout(&["task", "status"]).contains("$3.00 of at most $2.50"));
    assert_eq!(spent(&motor, "main"), (3.0, 3));

    // Another price does not change the bill of this run, and another cap is the owner's to give.
    motor.configure("[prices]\n\"openai/test\" = { input = 100.0, output = 10.0 }\n");
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let raised = json!({ "budgetUsd": 10.0 });
    let (status, refused) = motor.ask(&format!("/v1/tasks/{run}/retries"), Some(&raised), &[]).unwrap();
    assert_eq!((status, &refused["code"]), (403, &json!("consent_needed")), "{refused}");
    motor.run_as_owner(&["task", "retry", &run, "--budget-usd", "10"], "").succeeded();
    motor.wait_for_status(&run, "completed");
    let trace = motor.json(&["task", "status", &run]);
    assert_eq!((&trace["totalUsage"]["costUsd"], &trace["usdCap"]), (&json!(7.0), &json!(10.0)), "{trace}");
    assert_eq!(spent(&motor, "main"), (7.0, 7));
    assert!(motor.stdout(&["spend"]).contains("total $7.00"));
    drop(serving);
}

#[test]
fn a_model_of_unknown_price_is_refused_under_a_cap_and_shown_as_unknown_without() {
    let server = answers();
    let motor = Motor::with_model(&server);
    motor.configure("[budget]\nusd = 5.0\n");
    motor.run(&["act", "x"]).refused(7, &["the price of `openai/test` is unknown", "prices.openai/test"]);
    assert_eq!(server.requests().len(), 0, "it costs nothing");
    // With a price it runs.
    let set = ["config", "set", "prices.openai/test", "{ input = 1.0, output = 2.0 }"];
    assert!(motor.stdout(&set).contains("prices.openai/test"));
    let price: Value = serde_json::from_str(&motor.stdout(&["config", "get", "prices.openai/test"])).unwrap();
    assert_eq!(price, json!({ "input": 1.0, "output": 2.0 }));
    assert_eq!(motor.stdout(&["act", "x"]), "done\n");
    assert_eq!(spent(&motor, "main"), (1.0, 1));
    motor.stdout(&["config", "unset", "prices.openai/test"]);
    motor.refuses(&["act", "x"], 7, "price_unknown");
    // Without a cap too, and its cost is not nothing.
    motor.stdout(&["config", "unset", "budget.usd"]);
    assert_eq!(motor.stdout(&["act", "x"]), "done\n");
    let listed = &motor.json(&["task", "list"])[0];
    assert_eq!((&listed["costUsd"], &listed["unpricedReplies"]), (&Value::Null, &json!(1)));
    assert!(motor.stdout(&["task", "status"]).contains("cost unknown"));
    assert!(motor.stdout(&["spend"]).contains("$1.00, with 1 of 2 replies of unknown price"));
    motor
        .run(&["config", "set", "prices.opnai/test", "{ input = 1.0, output = 2.0 }"])
        .refused(2, &["prices.opnai/test"]);
    // A cap that is not a number would be no cap.
    motor.run(&["config", "set", "budget.usd", "nan"]).refused(2, &["budget.usd"]);
    motor.run(&["act", "x", "--set", "budget.usd=inf"]).refused(2, &["budget.usd"]);
    for amount in ["2000000000", "-1"] {
        motor.run(&["config", "set", "budget.usd", amount]).refused(2, &["use US dollars from 0"]);
    }
    // A price is taken in the form in which it is shown.
    motor.stdout(&["config", "set", "prices.openai/test", &price.to_string()]);
    assert_eq!(motor.json(&["config", "get", "prices.openai/test"])["value"], price);
}

#[test]
fn a_day_of_an_agent_has_a_cap() {
    let server = answers();
    let motor = Motor::with_model(&server);
    motor.configure(&format!("[budget]\nusd_day = 1.5\n{PRICE}"));
    assert_eq!(motor.stdout(&["act", "x"]), "done\n");
    // A reply may exceed the cap; the next run may not begin.
    assert_eq!(motor.stdout(&["act", "x"]), "done\n");
    motor
        .run(&["act", "x", "--unattended"])
        .refused(7, &["the cap of $1.50 a day is reached", "agent `main` has spent $2.00 today"]);
    assert_eq!(server.requests().len(), 2);
    // Another agent has a day of its own.
    assert_eq!(motor.stdout(&["act", "x", "--agent", "other"]), "done\n");
    assert_eq!((spent(&motor, "main"), spent(&motor, "other")), ((2.0, 2), (1.0, 1)));
    let all = motor.json(&["spend", "--all"]);
    assert!(all.as_array().unwrap().len() >= 2, "{all}");
    motor.run(&["spend", "--days", "0"]).refused(2, &["1 to 400"]);
}

#[test]
fn a_conversation_counts_for_the_day_and_costs_energy() {
    let server = answers();
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.configure(&format!("[budget]\nusd_day = 0.5\n{PRICE}"));
    let said = motor.run_as_owner(&["chat"], "hello\n").succeeded();
    assert!(said.stdout.contains("done"), "{said:?}");
    assert_eq!(spent(&motor, "main"), (1.0, 1));
    // A message and a reply.
    let level = motor.json(&["energy"])["level"].as_f64().unwrap();
    assert!((0.969..0.99).contains(&level), "{level}");
    let refused = motor.run_as_owner(&["chat"], "hello again\n");
    assert!((refused.stdout.clone() + &refused.stderr).contains("the cap of $0.50 a day is reached"), "{refused:?}");
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn a_run_keeps_the_rules_that_it_started_with() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{
        "tool_calls": [{ "name": "read", "arguments": { "path": "missing" } }]
    }] })));
    let motor = Motor::with_model(&server);
    motor.configure("[rules]\nsame_failures = 1\nmax_attempts = 1\n");
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let fails = || {
        let before = server.requests().len();
        assert_ne!(motor.run(&["act", "x", "--tools", "read"]).code, Some(0));
        let run = motor.json(&["task", "list"])[0]["runId"].as_str().unwrap().to_owned();
        (run, server.requests().len() - before)
    };
    let (first, requests) = fails();
    assert_eq!(requests, 1, "one failure ends the attempt");
    let said = motor.stdout(&["config", "set", "rules.max_attempts", "2"]);
    assert!(said.contains("the next run"), "{said}");
    motor.refuses(&["task", "retry", &first], 1, "illegal_state");
    let (second, _) = fails();
    motor.stdout(&["task", "retry", &second]);
    motor.wait_for_status(&second, "failed");
    motor.wait_for(&["task", "status", &second], |now| now["attempts"].as_array().is_some_and(|all| all.len() == 2));
    motor.run(&["config", "set", "rules.max_attempts", "0"]).refused(2, &["use a whole number from 1 to 10"]);
    assert_eq!(motor.stdout(&["config", "get", "rules.max_attempts"]), "2\n");
    drop(serving);
}

#[test]
fn at_the_floor_nothing_begins_that_a_model_asks_for() {
    let server = answers();
    let motor = Motor::with_model(&server);
    motor.configure("[energy]\nrecharge_per_hour = 0.01\n");
    let _made = motor.owner_token();
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let execute = |ask: &dyn Fn(&Value) -> (u16, Value)| {
        let (status, reply) = ask(&json!({ "code": "1 + 1" }));
        assert_eq!(status, 200, "{reply}");
        reply
    };
    let as_model = |body: &Value| motor.ask("/v1/executions", Some(body), &[]).unwrap();
    let as_owner = |body: &Value| motor.ask_as_owner("/v1/executions", body).unwrap();
    let mut begun = 0;
    for _ in 0..25 {
        let reply = execute(&as_model);
        if reply["ok"] == true {
            begun += 1;
        } else {
            assert_eq!(reply["errorCode"], "EXECUTION_DENIED", "{reply}");
            assert!(reply["output"].as_str().unwrap().contains("too tired to act: energy is 0.05"), "{reply}");
        }
    }
    assert!((19..=20).contains(&begun), "{begun} of 25 began");
    let (status, refused) = motor.ask("/v1/tasks", Some(&json!({ "task": "x" })), &[]).unwrap();
    assert_eq!((status, &refused["code"]), (429, &json!("energy_too_low")), "{refused}");
    assert_eq!(server.requests().len(), 0);
    // The owner is warned, not refused.
    let reply = execute(&as_owner);
    assert_eq!((&reply["ok"], reply["warnings"].as_array().map(Vec::len)), (&json!(true), Some(1)), "{reply}");
    drop(serving);
}

/// Tokens that the provider had in its cache cost their own price, and are shown wherever tokens are.
#[test]
fn cached_tokens_are_cheaper_and_shown() {
    let usage = json!({ "input": 1_000_000, "cached": 800_000, "output": 0 });
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done", "usage": usage }] })));
    let motor = Motor::with_model(&server);
    motor.configure("[prices]\n\"openai/test\" = { input = 1.0, cached = 0.1, output = 10.0 }\n");
    motor.run(&["act", "go"]).succeeded();
    let run = motor.only_run();
    let trace = motor.json(&["task", "status", &run]);
    // 200,000 at a dollar for a million, 800,000 at ten cents.
    assert_eq!(trace["totalUsage"]["costUsd"], json!(0.28), "{trace:#}");
    assert_eq!(trace["totalUsage"]["cachedInputTokens"], json!(800_000), "{trace:#}");
    assert_eq!(trace["steps"][0]["usage"]["cachedInputTokens"], json!(800_000));
    assert_eq!(motor.json(&["task", "list"])[0]["cachedInputTokens"], json!(800_000));
    let shown = motor.stdout(&["task", "status", &run]);
    assert!(shown.contains("1,000,000 tokens in (800,000 cached), 0 out"), "{shown}");
    let days = motor.json(&["spend", "--days", "2"]);
    assert_eq!((&days[0]["cachedInputTokens"], &days[0]["usd"]), (&json!(800_000), &json!(0.28)), "{days}");
    assert!(motor.stdout(&["spend", "--days", "2"]).contains("CACHED"));
    // Without a price of cached ones they cost as others.
    motor.configure(PRICE);
    motor.run(&["act", "go"]).succeeded();
    let newest = motor.json(&["task", "status"]);
    assert_eq!(newest["totalUsage"]["costUsd"], json!(1.0), "{newest:#}");
}
