//! A state that lost something (SPEC DUR-1, DUR-4): refused by name, shown by `motor doctor`, used again by the owner's order.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

/// A home with two runs and a credential.
fn used() -> (ModelServer, Motor) {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.stdout(&["act", "one"]);
    motor.run_as_owner(&["credential", "set", "key", "--domain", "api.example.com"], "a-secret-of-mine\n").succeeded();
    motor.stdout(&["act", "two"]);
    (server, motor)
}

fn journal(motor: &Motor) -> PathBuf {
    motor.home().join("state/0.jnl")
}

/// The end of the journal's content: a hole follows.
fn end_of(journal: &[u8]) -> usize {
    journal.iter().rposition(|&byte| byte != 0).unwrap() + 1
}

/// Every command refuses, with the way out, and nothing is changed.
#[track_caller]
fn refused_everywhere(motor: &Motor, words: &[&str]) {
    let words = [words, &["motor doctor --accept-loss"]].concat();
    for command in [&["act", "three"][..], &["task", "list"], &["credential", "list"], &["serve"]] {
        motor.run(command).refused(1, &words);
    }
    let doctor = motor.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert!(words.iter().all(|word| doctor.stdout.contains(word)), "{doctor:?}");
}

#[test]
fn a_shortened_state_is_refused_until_its_loss_is_accepted() {
    let (_server, motor) = used();
    let whole = fs::read(journal(&motor)).unwrap();
    fs::write(journal(&motor), &whole[..end_of(&whole) - 3_000]).unwrap();
    refused_everywhere(&motor, &["the state is incomplete: it ends at commit", "`state.mark` says"]);
    assert_eq!(motor.json(&["doctor", "--accept-loss"])["isNew"], false);
    assert!(motor.run(&["doctor"]).stdout.contains("complete: "));
    // The first run and the credential were before the cut.
    assert!(motor.stdout(&["credential", "list"]).contains("key"));
    // The second run may have lost its end, and would go on.
    motor.stdout(&["act", "three", "--agent", "other"]);
    assert!(motor.stdout(&["doctor", "--accept-loss"]).contains("no loss to accept"));
}

#[test]
fn a_state_that_is_gone_is_not_begun_anew_beside_runs() {
    for with_mark in [true, false] {
        let (_server, motor) = used();
        let runs: Vec<_> =
            fs::read_dir(motor.home().join("runs")).unwrap().map(|run| run.unwrap().file_name()).collect();
        let token = motor.owner_token();
        fs::remove_dir_all(motor.home().join("state")).unwrap();
        if !with_mark {
            fs::remove_file(motor.home().join("state.mark")).unwrap();
        }
        refused_everywhere(&motor, &[if with_mark { "nothing is left of it" } else { "the state is gone" }]);
        let loss = motor.json(&["doctor", "--accept-loss"]);
        assert_eq!((&loss["isNew"], loss["runs"].as_array().unwrap().len()), (&json!(true), 2), "{loss}");
        let aside = Path::new(loss["aside"].as_str().unwrap()).join("runs");
        assert!(runs.iter().all(|run| aside.join(run).is_dir()), "{loss}");
        assert_eq!(motor.json(&["task", "list"]), json!([]));
        assert_eq!(motor.owner_token(), token, "no other token was issued");
        motor.stdout(&["act", "three"]);
    }
}

#[test]
fn a_damaged_state_is_named_and_kept_aside() {
    let (_server, motor) = used();
    let mut damaged = fs::read(journal(&motor)).unwrap();
    let middle = end_of(&damaged) / 2;
    damaged[middle] ^= 0x40;
    damaged[middle + 1] ^= 0x40;
    fs::write(journal(&motor), &damaged).unwrap();
    refused_everywhere(&motor, &["state directory cannot be used"]);
    let loss = motor.json(&["doctor", "--accept-loss"]);
    let aside = Path::new(loss["aside"].as_str().unwrap());
    assert_eq!(fs::read(aside.join("state/0.jnl")).unwrap().len(), damaged.len());
    assert_eq!(motor.json(&["task", "list"]), json!([]));
}

#[test]
fn the_doctor_looks_at_runs_and_credentials_with_and_without_a_host() {
    let (_server, motor) = used();
    let stray = motor.home().join("runs/run_0000000000000000");
    let check = |motor: &Motor, status: &str, name: &str, words: &str| {
        let ended = motor.run(&["doctor", "--offline", "--json"]);
        let findings: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        let fits = |finding: &&serde_json::Value| {
            finding["name"] == name
                && finding["status"] == status
                && finding["message"].as_str().unwrap().contains(words)
        };
        assert_eq!(findings.as_array().unwrap().iter().filter(fits).count(), 1, "{name}: {findings:#}");
        assert_eq!(ended.code, Some(i32::from(status == "problem")));
    };
    for host in [false, true] {
        let serving = host.then(|| motor.start(&["serve"]));
        if let Some(serving) = &serving {
            serving.wait_for_words("listening");
        }
        check(&motor, "ok", "state", "2 runs, 0 unfinished");
        check(&motor, "ok", "disk", "MiB are free");
        check(&motor, "ok", "credentials", "1 set, all of them readable");
        fs::create_dir(&stray).unwrap();
        check(&motor, "warning", "runs", "run_0000000000000000");
        fs::remove_dir(&stray).unwrap();
    }
    let key = motor.home().join("config/credentials.key");
    fs::rename(&key, motor.home().join("config/elsewhere")).unwrap();
    check(&motor, "problem", "credentials", "credentials.key");
}
