//! Errors in the input: each refusal names the error and the remedy, loses nothing, and leaves the right way open.

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use store::{Batch, Store, Table};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

fn answering() -> (ModelServer, Motor) {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    (server, motor)
}

/// Checks that nothing of an act that was refused is left.
fn left_nothing(motor: &Motor) {
    assert_eq!(motor.json(&["task", "list"]), json!([]));
    let runs = motor.home().join("runs");
    let left = std::fs::read_dir(runs).map_or(0, Iterator::count);
    assert_eq!(left, 0, "a directory of a refused run is left");
    assert_eq!(motor.json(&["energy"])["level"], 1.0);
}

#[test]
fn an_act_that_cannot_be_done_is_refused_before_it_costs_anything() {
    let (server, motor) = answering();
    for (arguments, code, said) in [
        (&["x", "--tools", "filesytem"][..], 2, &["unknown tool `filesytem`", "did you mean `filesystem`?"][..]),
        (&["x", "--tools", "code,browser"], 2, &["unknown tool `browser`", "there are: "]),
        (&["x", "--tools", "fetch", "--domains", "*.com"], 2, &["`*.com`", "too wide"]),
        (&["x", "--tools", "fetch", "--domains", "https://x.example/"], 2, &["`https://x.example/`"]),
        (&["x", "--tools", "bash", "--commands", "a;b"], 2, &["`a;b` is not the name of a command"]),
        (&["x", "--credentials", "<key>"], 2, &["`<key>` is not the name of a credential"]),
        (&["post <credential:key>"], 4, &["`key` is not set", "motor credential set key"]),
        (&["x", "--set", "network.private=[\"nowhere\"]"], 2, &["nowhere"]),
        (&["x", "--max-iterations", "51"], 2, &["51", "at most 50"]),
        (&["x", "--max-iterations", "0"], 2, &["from 1 to 50"]),
        (&["x", "--timeout", "11m"], 2, &["at most 10 min", "timeout_seconds"]),
        (&["x", "--timeout", "0"], 2, &["timeout is 0"]),
        (&[" \n"], 2, &["the task is empty"]),
        (&["x", "--model", "opnai/gpt"], 2, &["opnai", "openai"]),
        (&["x", "--model", "gpt"], 2, &["provider/model"]),
        (&["x", "--model", "replay/no-such-file"], 1, &["no-such-file"]),
        (&["x", "--set", "models.retrys=1"], 2, &["unknown key `models.retrys`", "`models.retries`"]),
    ] {
        motor.run(&[&["act"], arguments].concat()).refused(code, said);
    }
    left_nothing(&motor);
    assert_eq!(server.calls(), 0);
    assert_eq!(
        motor.stdout(&["act", "x", "--tools", "filesystem", "--max-iterations", "50", "--timeout", "10m"]),
        "done\n"
    );
}

#[test]
fn files_that_cannot_be_taken_are_refused() {
    let (server, motor) = answering();
    let file = motor.file("data.csv", "a,b\n");
    let directory = motor.directory().to_str().unwrap().to_owned();
    let pipe = motor.directory().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let (file, pipe) = (file.to_str().unwrap(), pipe.to_str().unwrap());
    let huge = motor.directory().join("huge");
    std::fs::File::create(&huge).unwrap().set_len(1 << 40).unwrap();
    let huge = huge.to_str().unwrap();
    let outside = format!("../data.csv={file}");
    for (argument, code, said) in [
        ("nothing.csv", 1, "nothing.csv"),
        (directory.as_str(), 2, "not a regular file"),
        (pipe, 2, "not a regular file"),
        (huge, 2, "larger than the workspace may be"),
        ("/dev/zero", 2, "not a regular file"),
        (&outside, 2, "not a path in the workspace"),
    ] {
        motor.run(&["act", "x", "--file", argument]).refused(code, &[said]);
    }
    let small = ["act", "x", "--file", file, "--set", "limits.workspace_bytes=3"];
    motor.run(&small).refused(2, &["`workspace_bytes` is 3", "limits.workspace_bytes"]);
    left_nothing(&motor);
    assert_eq!(server.calls(), 0);
    let enough = ["act", "x", "--file", file, "--file", &format!("sub/other.csv={file}")];
    motor.stdout(&[&enough[..], &["--set", "limits.workspace_bytes=8"]].concat());
    let workspace = motor.workspace(&motor.only_run());
    assert_eq!(std::fs::read_to_string(workspace.join("sub/other.csv")).unwrap(), "a,b\n");
}

#[test]
fn a_missing_or_wrong_key_is_4_and_names_the_variable() {
    let (server, _) = answering();
    let motor = Motor::new().env("LLM_MOTOR_MODEL", "openai/test");
    motor.run(&["act", "x"]).refused(4, &["OPENAI_API_KEY", "motor doctor"]);
    left_nothing(&motor);
    let doctor = motor.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(doctor.stdout.contains("OPENAI_API_KEY"), "{doctor:?}");
    let motor = motor.env("OPENAI_API_KEY", "sk-other").endpoint(&server.base_url());
    assert_eq!(motor.stdout(&["act", "x"]), "done\n");
    assert_eq!(motor.run(&["doctor"]).succeeded().code, Some(0));

    let strict = block_on(ModelServer::scripted(json!({ "key": "sk-right", "turns": [{ "text": "done" }] })));
    let motor = motor.endpoint(&strict.base_url());
    let ended = motor.run(&["act", "x"]);
    ended.refused(4, &["OPENAI_API_KEY"]);
    assert!(!ended.stderr.contains("sk-other"), "{ended:?}");
    assert_eq!(motor.env("OPENAI_API_KEY", "sk-right").stdout(&["act", "x"]), "done\n");
}

#[test]
fn no_model_says_how_to_set_one() {
    let motor = Motor::new();
    motor.run(&["act", "x"]).refused(1, &["LLM_MOTOR_MODEL", "motor setup", "motor demo"]);
    left_nothing(&motor);
    let motor = motor.env("LLM_MOTOR_MODEL", "opnai/x");
    motor.run(&["act", "x"]).refused(2, &["LLM_MOTOR_MODEL", "openai"]);
}

#[test]
fn an_endpoint_that_is_not_there_fails_the_run_and_says_so() {
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (_server, motor) = answering();
    let motor = motor.endpoint(&format!("http://{closed}/v1"));
    let ended = motor.run(&["act", "x", "--set", "models.retry_first_ms=1"]);
    ended.failed(1, &["openai/test", "check the base URL"]);
    let trace = motor.json(&["task", "status"]);
    assert_eq!((&trace["status"], &trace["error"]["category"]), (&json!("failed"), &json!("infra_failure")));
    let signals = motor.json_lines(&["signals"]);
    assert_eq!((signals.len(), &signals[0]["status"]), (1, &json!("failed")));
}

#[test]
fn what_does_not_exist_is_named() {
    let motor = Motor::new();
    for command in ["status", "log", "cancel"] {
        motor.refuses(&["task", command, "run_0000000000000000"], 1, "not_found");
    }
    motor.refuses(&["act", "--resume", "run_0000000000000000"], 1, "not_found");
    motor.run(&["task", "status"]).refused(1, &["has no runs", "motor act"]);
    motor.run(&["execute", "--file", "nothing.js"]).refused(2, &["nothing.js"]);
    let binary = motor.file("binary.js", [0xff, 0xfe]);
    motor.run(&["execute", "--file", binary.to_str().unwrap()]).refused(2, &["not UTF-8"]);
    let huge = motor.file("huge.js", " ".repeat((1 << 20) + 1));
    motor.run(&["execute", "--file", huge.to_str().unwrap()]).refused(2, &["more than 1048576 bytes"]);
    let whole = motor.file("whole.js", "1".to_owned() + &" ".repeat((1 << 20) - 1));
    assert_eq!(motor.stdout(&["execute", "--file", whole.to_str().unwrap()]), "1\n");
}

#[test]
fn a_home_that_cannot_be_is_refused() {
    let motor = Motor::new();
    let file = motor.file("file", "");
    let motor = motor.at(file.join("home"));
    motor.run(&["energy"]).refused(1, &["--home"]);
    let motor = motor.at(Path::new("/proc/motor").to_owned());
    motor.run(&["energy"]).refused(1, &["--home"]);
}

/// A home with one run in it.
fn used() -> (Motor, String) {
    let (_server, motor) = answering();
    motor.stdout(&["act", "x"]);
    let run = motor.only_run();
    (motor, run)
}

#[test]
fn damaged_state_is_refused_and_left_as_it_is() {
    let (motor, run) = used();
    let state = motor.home().join("state");
    let journal = state.join("0.jnl");
    for path in [journal, state.join("keyspaces/0/current"), state.join("version")] {
        let whole = std::fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        for byte in damaged.iter_mut().take(40).skip(2) {
            *byte ^= 0x5a;
        }
        std::fs::write(&path, &damaged).unwrap();
        for command in [&["energy"][..], &["act", "x"], &["serve"]] {
            motor.run(command).refused(1, &["state"]);
        }
        assert_eq!(std::fs::read(&path).unwrap(), damaged, "{} was changed", path.display());
        std::fs::write(&path, whole).unwrap();
        assert_eq!(motor.only_run(), run);
    }
}

#[test]
fn state_of_a_newer_version_is_refused_and_left_as_it_is() {
    let (motor, run) = used();
    let (state, kept) = (motor.home().join("state"), motor.home().join("kept"));
    let (mark, kept_mark) = (motor.home().join("state.mark"), motor.home().join("kept.mark"));
    assert!(Command::new("cp").arg("-r").args([&state, &kept]).status().unwrap().success());
    std::fs::copy(&mark, &kept_mark).unwrap();
    let newer = store::SCHEMA_VERSION + 1;
    block_on(async {
        let store = Store::open(&state).unwrap();
        let mut batch = Batch::new();
        batch.put(Table::Meta, "schema", &json!({ "version": newer })).unwrap();
        store.commit(batch).await.unwrap();
        store.close().await.unwrap();
    });
    for command in [&["energy"][..], &["act", "x"], &["serve"], &["task", "list"]] {
        motor.run(command).refused(1, &[&format!("state schema {newer}"), "update `motor`"]);
    }
    let ended = motor.run(&["energy", "--json"]);
    let refused: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(refused["error"]["code"], "state_unusable");
    std::fs::remove_dir_all(&state).unwrap();
    std::fs::rename(kept, state).unwrap();
    std::fs::rename(kept_mark, mark).unwrap();
    assert_eq!(motor.only_run(), run);
}
