//! Runs that are over are deleted: when the owner says so, when they are too old, too many or too large. Nothing of them is left,
//! nothing else is touched, and a crash leaves nothing that harms.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tests::binary::{Motor, Running, Signal};
use tests::block_on;
use tests::model_server::ModelServer;

const ACT: [&str; 4] = ["act", "write a file", "--tools", "write"];

fn model() -> ModelServer {
    block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "write", "arguments": { "path": "a.txt", "content": "a" } }] },
        { "text": "written" },
    ]})))
}

fn runs(motor: &Motor) -> Vec<String> {
    let runs = motor.json(&["task", "list", "--all", "--limit", "100"]);
    runs.as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
}

fn ran(motor: &Motor) -> String {
    motor.stdout(&ACT);
    runs(motor)[0].clone()
}

fn trace(motor: &Motor, run: &str) -> PathBuf {
    motor.home().join(format!("logs/motor-runs/{run}.json"))
}

fn directory(motor: &Motor, run: &str) -> PathBuf {
    motor.home().join("runs").join(run)
}

fn serve(motor: &Motor, settings: &[&str]) -> Running {
    let settings: Vec<_> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let serving = motor.start(&[&["serve"], &settings[..]].concat());
    serving.wait_for_words("listening");
    serving
}

fn stop(serving: Running) {
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().code, Some(0));
}

fn wait_until(is_so: impl Fn() -> bool) {
    let mut patience = tests::Patience::default();
    while !is_so() {
        assert!(patience.lasts());
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}

/// Makes a path look as if it were old.
fn make_old(path: &Path) {
    assert!(Command::new("touch").args(["-d", "2020-01-01"]).arg(path).status().unwrap().success());
}

#[test]
fn a_run_is_deleted_with_everything_and_nothing_else_is() {
    let _server = model();
    let motor = Motor::with_model(&_server);
    let (gone, kept) = (ran(&motor), ran(&motor));
    motor.stdout(&["receipt", "show", &gone]);
    let deleted = motor.json(&["task", "delete", &gone]);
    assert_eq!(deleted, json!({ "deleted": [gone] }));
    assert_eq!(runs(&motor), [kept.as_str()]);
    assert!(!directory(&motor, &gone).exists() && !trace(&motor, &gone).exists());
    for command in [["task", "status"], ["task", "log"], ["task", "delete"], ["receipt", "show"]] {
        motor.run(&[&command[..], &[&gone]].concat()).refused(1, &[&gone]);
    }
    assert_eq!(fs::read_to_string(motor.workspace(&kept).join("a.txt")).unwrap(), "a");
    assert!(trace(&motor, &kept).exists());
    motor.stdout(&["receipt", "show", &kept]);
    // Its signal goes when a host that stays has looked, and the newest is another's.
    let serving = serve(&motor, &[]);
    wait_until(|| motor.json_lines(&["signals", "--since", "0"]).len() == 1);
    assert_eq!(motor.json_lines(&["signals", "--since", "0"])[0]["runId"], kept);
    stop(serving);
    // One that cannot be deleted keeps no other from it.
    motor.run(&["task", "delete", &gone, &kept]).refused(1, &[&gone, &format!("{kept} is deleted")]);
    assert_eq!(runs(&motor), Vec::<String>::new());
}

#[test]
fn a_run_that_is_not_over_is_refused_with_the_way_to_end_it() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done", "gate": true }] })));
    let motor = Motor::with_model(&server);
    let acting = motor.start(&ACT);
    let run = acting.run_id();
    block_on(server.wait_at_gate());
    let refused = motor.run(&["task", "delete", &run]);
    refused.refused(1, &["cannot be deleted before it is over", &format!("motor task cancel {run}")]);
    motor.stdout(&["task", "cancel", &run]);
    assert_eq!(acting.wait().code, Some(1));
    assert_eq!(motor.stdout(&["task", "delete", &run]), format!("{run} is deleted\n"));
    assert_eq!(runs(&motor), Vec::<String>::new());
}

#[test]
fn the_oldest_runs_go_when_there_are_too_many_or_they_are_too_large_or_too_old_and_one_that_waits_stays() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "ask_user", "arguments": { "question": "Which?" } }] }, { "text": "done" },
    ]})));
    let motor = Motor::with_model(&server);
    let waiting = motor.start(&["act", "ask", "--tools", "read", "--agent", "asks"]);
    let asks = waiting.run_id();
    waiting.wait_for_words("waiting, for ");
    waiting.signal(Signal::TERM);
    assert_eq!(waiting.wait().code, Some(130));
    drop(server);
    let server = model();
    let motor = motor.endpoint(&server.base_url());
    let all: Vec<_> = (0..4).map(|_| ran(&motor)).collect();
    let left = |motor: &Motor| runs(motor).into_iter().rev().collect::<Vec<_>>();
    let remain = |setting: &str, expected: &[&String]| {
        let serving = serve(&motor, &[setting]);
        wait_until(|| left(&motor).iter().eq(expected.iter().copied()));
        for run in &all {
            // Files go after the record.
            wait_until(|| directory(&motor, run).exists() == expected.contains(&run));
            wait_until(|| trace(&motor, run).exists() == expected.contains(&run));
        }
        stop(serving);
    };
    remain("retention.runs=100", &[&asks, &all[0], &all[1], &all[2], &all[3]]);
    // The one that waits does not count.
    remain("retention.runs=3", &[&asks, &all[1], &all[2], &all[3]]);
    remain("retention.runs=2", &[&asks, &all[2], &all[3]]);
    // An artifact of a megabyte in one, and room for less.
    fs::write(motor.workspace(&all[2]).join("large"), vec![b'x'; 1 << 20]).unwrap();
    remain("retention.bytes=1MiB", &[&asks, &all[3]]);
    remain("retention.age=1h", &[&asks, &all[3]]);
    remain("retention.age=0s", &[&asks]);
    assert_eq!(motor.json(&["task", "status", &asks])["status"], "awaiting_input");
    // A short command that only looks deletes nothing.
    let last = ran(&motor);
    motor.configure("[retention]\nage = \"0s\"\n");
    assert_eq!(left(&motor), [asks.clone(), last.clone()]);
    motor.configure("[retention]\nage = \"30 days\"\n");
    motor.run(&["task", "list"]).refused(2, &["retention.age", "`30d`"]);
}

#[test]
fn directories_without_a_run_are_swept_only_when_they_are_old_and_the_state_is_not_new() {
    let server = model();
    let motor = Motor::with_model(&server);
    let run = ran(&motor);
    let old = directory(&motor, "run_0000000000000000");
    let fresh = directory(&motor, "run_0000000000000001");
    let other = motor.home().join("runs/notes");
    for path in [&old, &fresh, &other] {
        fs::create_dir_all(path.join("workspace")).unwrap();
    }
    let kept = directory(&motor, &run);
    for path in [&old, &other, &kept] {
        make_old(path);
    }
    let serving = serve(&motor, &[]);
    wait_until(|| !old.exists());
    assert!(fresh.exists() && other.exists() && kept.join("workspace/a.txt").exists());
    stop(serving);
    // Beside a state that is new, or was started over, nothing is known of any directory.
    fs::remove_dir_all(motor.home().join("state")).unwrap();
    make_old(&fresh);
    let started: Result<Running, ()> = {
        let serving = motor.start(&["serve"]);
        let mut serving = serving;
        let mut patience = tests::Patience::default();
        // Either it refuses to start over here, or it does and leaves the directories alone.
        while serving.is_alive() && !motor.home().join("host.sock").exists() && patience.lasts() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        if serving.is_alive() { Ok(serving) } else { Err(()) }
    };
    if let Ok(serving) = started {
        serving.wait_for_words("listening");
        motor.stdout(&["task", "list"]);
        stop(serving);
    }
    assert!(fresh.exists() && kept.exists() && other.exists());
}

#[test]
fn a_host_that_is_killed_while_it_deletes_leaves_no_run_without_files() {
    let server = model();
    let motor = Motor::with_model(&server);
    for round in 0..6 {
        let all: Vec<_> = (0..6).map(|_| ran(&motor)).collect();
        let serving = motor.start(&["serve", "--set", "retention.runs=1"]);
        wait_until(|| !directory(&motor, &all[round % 5]).exists());
        serving.kill();
        let left = runs(&motor);
        for run in &left {
            assert!(motor.workspace(run).join("a.txt").exists() && trace(&motor, run).exists(), "{round}: {run}");
            let status: Value = motor.json(&["task", "status", run]);
            assert_eq!(status["status"], "completed", "{round}: {run}");
        }
        assert!(left.contains(&all[5]), "{round}: {left:?}");
    }
}
