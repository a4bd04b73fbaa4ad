//! `motor doctor` with the real program (SPEC CONF-3): each check has an id, a status and the one command that mends it, the model
//! is asked for one word, and `--fix` mends only where that is safe.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

use super::skills_cli::World;

/// The ids that every examination of a home with a model has.
const IDS: [&str; 17] = [
    "home",
    "configuration",
    "model_motor",
    "model_fast",
    "model_smart",
    "model_cortex",
    "sandbox",
    "disk",
    "state",
    "credentials",
    "owner_token",
    "clock",
    "usage",
    "skills",
    "model_answer",
    "permissions",
    "terminal",
];

fn server(script: &Value) -> ModelServer {
    block_on(ModelServer::scripted(script.clone()))
}

/// The findings, and the exit code.
fn examine(motor: &Motor, arguments: &[&str]) -> (Vec<Value>, Option<i32>) {
    let ended = motor.run(&[&["doctor", "--json"], arguments].concat());
    let findings = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    (findings, ended.code)
}

/// The findings of one check.
fn of<'a>(findings: &'a [Value], id: &str) -> Vec<&'a Value> {
    findings.iter().filter(|finding| finding["id"] == id).collect()
}

#[track_caller]
fn only<'a>(findings: &'a [Value], id: &str) -> &'a Value {
    let found = of(findings, id);
    assert_eq!(found.len(), 1, "{id}: {findings:#?}");
    found[0]
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn a_whole_home_is_examined_with_and_without_a_host_and_its_model_is_asked_once() {
    let server = server(&json!({ "turns": [{ "text": "ready" }] }));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.stdout(&["act", "one"]);
    for host in [false, true] {
        let serving = host.then(|| motor.start(&["serve"]));
        if let Some(serving) = &serving {
            serving.wait_for_words("listening");
        }
        let asked = server.requests().len();
        let (findings, code) = examine(&motor, &[]);
        assert_eq!(code, Some(0), "{findings:#?}");
        for id in IDS {
            assert!(!of(&findings, id).is_empty(), "{id}: {findings:#?}");
        }
        assert!(findings.iter().all(|finding| finding["status"] != "problem"), "{findings:#?}");
        assert!(only(&findings, "owner_token")["message"].as_str().unwrap().contains("in plain"));
        assert!(only(&findings, "model_answer")["message"].as_str().unwrap().contains("answered in"));
        let requests = server.requests();
        assert_eq!(requests.len(), asked + 1, "one request");
        assert_eq!(requests[asked].body["max_completion_tokens"], 16, "{}", requests[asked].body);

        let (findings, code) = examine(&motor, &["--offline"]);
        assert_eq!((code, server.requests().len()), (Some(0), asked + 1));
        assert_eq!(only(&findings, "model_answer")["status"], "skipped");
    }
}

#[test]
fn a_model_that_refuses_the_key_is_a_problem_with_one_command() {
    let server = server(&json!({ "key": "sk-right", "turns": [{ "text": "ready" }] }));
    let motor = Motor::with_model(&server);
    let (findings, code) = examine(&motor, &[]);
    let answer = only(&findings, "model_answer");
    assert_eq!((code, &answer["status"]), (Some(1), &json!("problem")), "{answer}");
    assert!(answer["message"].as_str().unwrap().contains("`openai/test` of openai"), "{answer}");
    assert_eq!(answer["fix"], "motor setup --model openai/test");
    // Without the request all is well, and with the right key too.
    assert_eq!(examine(&motor, &["--offline"]).1, Some(0));
    let (findings, code) = examine(&motor.env("OPENAI_API_KEY", "sk-right"), &[]);
    assert_eq!((code, &only(&findings, "model_answer")["status"]), (Some(0), &json!("ok")), "{findings:#?}");
}

#[test]
fn fix_mends_what_is_safe_to_mend_and_says_so() {
    let server = server(&json!({ "turns": [{ "text": "done" }] }));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.stdout(&["act", "one"]);
    let (token, runs) = (motor.home().join("config/owner.token"), motor.home().join("runs"));
    // A whole home is left as it is.
    let (findings, code) = examine(&motor, &["--offline", "--fix"]);
    assert_eq!((code, of(&findings, "fix").len()), (Some(0), 0), "{findings:#?}");

    let words = fs::read_to_string(&token).unwrap();
    set_mode(&token, 0o644);
    set_mode(&runs, 0o777);
    let (findings, code) = examine(&motor, &["--offline"]);
    let broken = [of(&findings, "permissions"), of(&findings, "owner_token")].concat();
    assert_eq!((code, broken.len()), (Some(1), 3), "{findings:#?}");
    for finding in broken {
        assert_eq!(
            (&finding["status"], &finding["fix"]),
            (&json!("problem"), &json!("motor doctor --fix")),
            "{finding}"
        );
    }
    assert_eq!((mode(&token), mode(&runs)), (0o644, 0o777), "looking changes nothing");

    let (findings, code) = examine(&motor, &["--offline", "--fix"]);
    let fixed = of(&findings, "fix");
    assert_eq!((code, fixed.len()), (Some(0), 2), "{findings:#?}");
    assert!(fixed.iter().all(|finding| finding["status"] == "fixed"), "{fixed:#?}");
    assert_eq!((mode(&token), mode(&runs)), (0o600, 0o755));
    assert_eq!(fs::read_to_string(&token).unwrap(), words, "the token is the same");
    assert_eq!(motor.stdout(&["act", "two"]), "done\n");
}

#[test]
fn a_token_that_the_host_does_not_know_is_a_problem() {
    let server = server(&json!({ "turns": [{ "text": "done" }] }));
    let motor = Motor::with_model(&server);
    motor.stdout(&["act", "one"]);
    let token = motor.home().join("config/owner.token");
    let good = fs::read_to_string(&token).unwrap();
    fs::write(&token, format!("motor-owner-{}\n", "ab".repeat(32))).unwrap();
    let (findings, code) = examine(&motor, &["--offline"]);
    let other = only(&findings, "owner_token");
    assert_eq!((code, &other["status"]), (Some(1), &json!("problem")), "{other}");
    assert!(other["fix"].as_str().unwrap().starts_with("cp -a BACKUP/config/owner.token "), "{other}");
    fs::write(&token, good).unwrap();
    let (findings, code) = examine(&motor, &["--offline"]);
    assert_eq!((code, &only(&findings, "owner_token")["status"]), (Some(0), &json!("ok")));
}

#[test]
fn skills_are_counted_and_named() {
    let world = World::new();
    let files = |name: &str| format!("---\nname: {name}\ndescription: Does {name}.\n---\n\nDo it.\n");
    world.drop_in("first", &[("SKILL.md", &files("first"))]);
    world.drop_in("second", &[("SKILL.md", &files("second"))]);
    world.approve(&["first"]);
    let said = || {
        let (findings, code) = examine(&world.motor, &["--offline"]);
        assert_eq!(code, Some(0), "{findings:#?}");
        let of = |finding: &&Value| {
            let text = |key: &str| finding[key].as_str().unwrap_or_default().to_owned();
            (text("status"), text("message"), text("fix"))
        };
        self::of(&findings, "skills").iter().map(of).collect::<Vec<_>>()
    };
    let line = |status: &str, message: &str, fix: &str| (status.to_owned(), message.to_owned(), fix.to_owned());
    let waits = line("ok", "1 wait for your review: `second`", "motor skill review second");
    assert_eq!(said(), [line("ok", "1 approved and unchanged", ""), waits.clone()]);

    world.drop_in("first", &[("SKILL.md", &(files("first") + "And more.\n"))]);
    let changed = line("warning", "1 changed since the approval, and not used: `first`", "motor skill review first");
    assert_eq!(said(), [line("ok", "0 approved and unchanged", ""), changed, waits]);
}

#[test]
fn a_setting_that_no_host_can_start_with_is_refused_and_an_old_one_is_found() {
    let server = server(&json!({ "turns": [{ "text": "ready" }] }));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.run(&["config", "set", "network.writes", "[\"POST\"]"]).refused(2, &["network.writes"]);
    assert!(!motor.home().join("config/motor.toml").exists());
    motor.stdout(&["config", "set", "network.writes", "[\"POST api.example.com/transfers\"]"]);
    let (findings, code) = examine(&motor, &["--offline"]);
    assert_eq!((code, &only(&findings, "configuration")["status"]), (Some(0), &json!("ok")), "{findings:#?}");

    motor.configure("[network]\nresolver = \"here\"\nwrites = [\"POST\"]\n[limits]\nfuel = 7\n");
    motor.run(&["task", "list"]).refused(2, &["is wrong", "motor config unset network."]);
    let (findings, code) = examine(&motor, &["--offline"]);
    assert_eq!(code, Some(1));
    for key in ["network.resolver", "network.writes"] {
        let is_fix = |finding: &&Value| finding["fix"] == format!("motor config unset {key}");
        let found = of(&findings, "configuration").into_iter().find(is_fix).unwrap_or_else(|| panic!("{findings:#?}"));
        assert_eq!(found["status"], "problem");
        assert!(found["message"].as_str().unwrap().contains(key), "{found}");
    }
    assert!(!of(&findings, "sandbox").is_empty() && !of(&findings, "state").is_empty(), "the other checks go on");
    let verified = motor.run(&["verify", "--json"]);
    let verification: Value = serde_json::from_str(&verified.stdout).unwrap();
    assert_eq!((verified.code, &verification["status"]), (Some(1), &json!("problem")), "{verified:?}");
    assert!(verified.stdout.contains("motor config unset network.writes"), "{verified:?}");

    // The commands that it names are all that is needed; the first leaves another problem, and says so.
    motor.run(&["config", "unset", "network.resolver"]).refused(2, &["network.writes"]);
    motor.stdout(&["config", "unset", "network.writes"]);
    assert_eq!(motor.stdout(&["config", "get", "limits.fuel"]), "7\n");
    assert_eq!(examine(&motor, &["--offline"]).1, Some(0));
    assert_eq!(motor.run(&["verify"]).succeeded().code, Some(0));
}

#[test]
fn a_file_that_does_not_load_is_a_finding_and_the_other_checks_go_on() {
    let server = server(&json!({ "turns": [{ "text": "ready" }] }));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.stdout(&["act", "one"]);
    for (file, says) in [
        ("[limits]\nfuel = = 7\n", "line 2"),
        ("[limits]\nfeul = 7\n", "did you mean `limits.fuel`"),
        ("[limts]\nfuel = 7\n", "unknown key `limts"),
    ] {
        motor.configure(file);
        let (findings, code) = examine(&motor, &["--offline"]);
        let found = only(&findings, "configuration");
        assert_eq!((code, &found["status"]), (Some(1), &json!("problem")), "{found}");
        assert_eq!(found["fix"], "motor config edit");
        assert!(found["message"].as_str().unwrap().contains(says), "{found}");
        let others = findings.iter().filter(|finding| finding["id"] != "configuration");
        assert!(others.clone().count() >= IDS.len() - 1, "{findings:#?}");
        assert!(others.clone().all(|finding| finding["status"] != "problem"), "{findings:#?}");
        // Other commands name the command that works with such a file.
        for command in [&["config", "show"][..], &["config", "set", "limits.handles", "7"], &["task", "list"]] {
            motor.run(command).refused(2, &["motor config edit"]);
        }
    }
    fs::write(motor.home().join("config/motor.toml"), b"\xff\xfe").unwrap();
    let (findings, _) = examine(&motor, &["--offline"]);
    assert!(only(&findings, "configuration")["fix"].as_str().unwrap().starts_with("mv "), "{findings:#?}");
    motor.configure("[limits]\nfuel = 7\n");
    assert_eq!(examine(&motor, &["--offline"]).1, Some(0));
    // A path that was mistyped is not a finding about the home.
    motor.run(&["doctor", "--offline", "--config", "/no/such.toml"]).refused(2, &["/no/such.toml"]);
}

#[test]
fn an_old_file_with_a_number_that_no_run_can_work_with_is_a_finding() {
    let server = server(&json!({ "turns": [{ "text": "ready" }] }));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.configure("[limits]\nmemory_bytes = 1\n");
    let (findings, code) = examine(&motor, &["--offline"]);
    let found = only(&findings, "configuration");
    assert_eq!((code, &found["fix"]), (Some(1), &json!("motor config unset limits.memory_bytes")), "{found}");
    assert!(found["message"].as_str().unwrap().contains("at least 4194304"), "{found}");
    motor.run(&["act", "one"]).refused(2, &["limits.memory_bytes", "motor config unset limits.memory_bytes"]);
    motor.stdout(&["config", "unset", "limits.memory_bytes"]);
    assert_eq!(examine(&motor, &["--offline"]).1, Some(0));
    motor.run(&["config", "set", "limits.memory_bytes", "1"]).refused(2, &["at least 4194304"]);
    motor.stdout(&["config", "set", "limits.memory_bytes", "33554432"]);
    assert_eq!(motor.stdout(&["act", "one"]), "ready\n");
}
