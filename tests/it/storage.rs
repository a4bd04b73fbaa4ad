//! Storage that fails under a host that stays: it tells its clients, ends with a code of its own, and the next host goes on
//! where it was. Nothing is done twice, and an act of which it is not known whether it was accepted says so (SPEC DUR-4,
//! DUR-5).
//!
//! The failure is a real one: a limit on the size of files, set on the running host, after which no write of its journal
//! succeeds.

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};
use tests::binary::{Ended, Motor, Running, Signal};
use tests::block_on;
use tests::model_server::ModelServer;

/// From now on the process can write to no regular file.
fn fail_storage(running: &Running) {
    let pid = Pid::from_raw(i32::try_from(running.id()).unwrap());
    prlimit(pid, Resource::Fsize, Rlimit { current: Some(0), maximum: Some(0) }).unwrap();
}

fn serve(motor: &Motor) -> Running {
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving
}

fn ended_for_storage(serving: Running) -> Ended {
    let ended = serving.wait();
    assert_eq!(ended.code, Some(74), "{ended:?}");
    for words in ["storage failed earlier", "start the host again", "go on with the next host"] {
        assert!(ended.stderr.contains(words), "{words}: {ended:?}");
    }
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    ended
}

const ACT: [&str; 4] = ["act", "write a file", "--tools", "write"];

fn gated() -> (ModelServer, Motor) {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "write", "arguments": { "path": "a.txt", "content": "a" } }], "gate": true },
        { "text": "written" },
    ]})));
    let motor = Motor::with_model(&server).surviving_file_size_limits();
    (server, motor)
}

#[test]
fn a_host_that_stays_ends_when_storage_fails_under_a_run_and_the_next_one_goes_on_with_it() {
    let (server, motor) = gated();
    let serving = serve(&motor);
    let following = motor.start(&ACT);
    let run = following.run_id();
    block_on(server.wait_at_gate());
    fail_storage(&serving);
    server.release();
    ended_for_storage(serving);
    let told = following.wait();
    told.refused(75, &["it is not known whether this was stored", &run, "motor act --resume"]);
    // A supervisor starts it again.
    let serving = serve(&motor);
    server.release();
    motor.wait_for_status(&run, "completed");
    assert_eq!(std::fs::read_to_string(motor.workspace(&run).join("a.txt")).unwrap(), "a");
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().code, Some(0));
}

#[test]
fn an_act_whose_commit_is_not_known_carries_its_key_and_given_again_is_one_run() {
    let (server, motor) = gated();
    let motor = motor.env("MOTOR_LOG", "debug");
    let serving = serve(&motor);
    // The next commit must be the act's: an act is refused for certain if its commit comes after a failed one.
    serving.wait_for_words("a pass over the runs has ended");
    fail_storage(&serving);
    let ended = motor.run(&[&ACT[..], &["--json", "--detach"]].concat());
    let refused: Value = serde_json::from_str(&ended.stdout).unwrap();
    let error = &refused["error"];
    assert_eq!((ended.code, &error["code"]), (Some(75), &json!("outcome_unknown")), "{ended:?}");
    let reason = error["reason"].as_str().unwrap();
    assert!(reason.starts_with("it is not known whether the run was accepted"), "{reason}");
    let key = error["key"].as_str().unwrap();
    assert!(error["remedy"].as_str().unwrap().contains(&format!("--key {key}")), "{error}");
    ended_for_storage(serving);
    let serving = serve(&motor);
    let again = [&ACT[..], &["--key", key, "--detach"]].concat();
    let run = motor.stdout(&again);
    assert_eq!(motor.stdout(&again), run);
    block_on(server.wait_at_gate());
    server.release();
    motor.wait_for_status(run.trim(), "completed");
    assert_eq!(motor.only_run(), run.trim());
    assert_eq!(server.calls(), 2);
    drop(serving);
}

#[test]
fn a_run_whose_approval_cannot_be_stored_still_waits_at_the_next_host() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "request_approval", "arguments": { "action": "delete it all", "reason": "to be tidy" } }] },
        { "text": "done" },
    ]})));
    let motor = Motor::with_model(&server).surviving_file_size_limits().unattended();
    let serving = serve(&motor);
    let run = motor.stdout(&["act", "tidy up", "--tools", "read", "--detach"]).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_approval");
    // A follower of a run that waits has no driver to hear from.
    let following = motor.start(&["act", "--resume", &run]);
    following.wait_for_words("waiting: ");
    fail_storage(&serving);
    let ended = motor.run(&["task", "approve", &run]);
    ended.refused(75, &["it is not known whether this was stored", "motor task status"]);
    ended_for_storage(serving);
    let told = following.wait();
    assert_eq!(told.code, Some(75), "{told:?}");
    // It hears of it from the act that failed, or finds storage failed when it asks itself.
    let ways = ["error: it is not known whether this was stored: writing the journal", "error: storage failed earlier"];
    assert!(ways.iter().any(|way| told.stderr.contains(way)), "{told:?}");
    assert!(told.stderr.contains(&format!("motor task approve {run}")), "{told:?}");
    let serving = serve(&motor);
    let trace = motor.json(&["task", "status", &run]);
    if trace["status"] == "awaiting_approval" {
        motor.stdout(&["task", "approve", &run]);
    }
    motor.wait_for_status(&run, "completed");
    drop(serving);
}

#[test]
fn a_command_that_is_the_host_of_another_lets_it_be_the_next_host_when_storage_fails() {
    let (server, motor) = gated();
    let first = motor.start(&ACT);
    let run = first.run_id();
    block_on(server.wait_at_gate());
    let second = motor.start(&["act", "write another", "--tools", "write", "--agent", "other"]);
    let other = second.run_id();
    motor.wait_for_status(&other, "running");
    fail_storage(&first);
    server.release();
    server.release();
    let ended = first.wait();
    assert!(matches!(ended.code, Some(74 | 75)) && ended.stderr.contains(&run), "{ended:?}");
    let mut patience = tests::Patience::default();
    let mut second = second;
    // The second takes both up, and its requests wait at the gate again.
    while second.is_alive() {
        assert!(patience.lasts());
        server.release();
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert_eq!(second.wait().succeeded().stdout, "written\n");
    while motor.json(&["task", "status", &run])["status"] != "completed" {
        assert!(patience.lasts());
        server.release();
        motor.run(&["act", "--resume", &run]).succeeded();
    }
}
