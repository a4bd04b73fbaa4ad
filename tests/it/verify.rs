//! `motor verify` with the real program (SPEC SIM-1): a home and every skill in it, offline, with an exit code by severity.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

const SKILL: &str = "---\nname: csv\ndescription: Reads tables.\n---\n\nRead the header first.\n";

/// A home with a run that wrote a file, and an approved skill.
fn furnished() -> (ModelServer, Motor, String) {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "write", "arguments": { "path": "out/total.txt", "content": "7\n" } }] },
        { "text": "done" },
    ]})));
    let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
    motor.stdout(&["act", "write it", "--tools", "filesystem"]);
    let run = motor.only_run();
    fs::create_dir_all(motor.home().join("skills/csv")).unwrap();
    fs::write(motor.home().join("skills/csv/SKILL.md"), SKILL).unwrap();
    motor.run_as_owner(&["skill", "approve", "csv"], "").succeeded();
    motor.stdout(&["receipt", "show", &run]);
    (server, motor, run)
}

/// The exit code, the worst severity, and the checks that are not well.
#[track_caller]
fn verify(motor: &Motor) -> (Option<i32>, String, Vec<String>) {
    let ended = motor.run(&["verify", "--json"]);
    let said: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let findings = said["findings"].as_array().unwrap();
    let broken = findings.iter().filter(|finding| finding["status"] == "problem" || finding["id"] == "skills");
    let broken = broken.filter(|finding| finding["status"] != "ok").map(|finding| text(&finding["id"])).collect();
    (ended.code, text(&said["status"]), broken)
}

#[test]
fn a_whole_home_verifies_and_each_damage_has_its_code() {
    let (server, motor, run) = furnished();
    let asked = server.requests().len();
    let skill = motor.home().join("skills/csv/SKILL.md");
    let artifact = motor.home().join("runs").join(run).join("artifacts/out/total.txt");
    for host in [false, true] {
        let serving = host.then(|| motor.start(&["serve"]));
        if let Some(serving) = &serving {
            serving.wait_for_words("listening");
        }
        let (code, _, broken) = verify(&motor);
        assert_eq!((code, broken), (Some(0), vec![]));

        fs::write(&skill, SKILL.replace("first", "last")).unwrap();
        let (code, status, broken) = verify(&motor);
        assert_eq!((code, status.as_str(), broken), (Some(5), "warning", vec!["skills".to_owned()]));

        fs::write(&artifact, "8\n").unwrap();
        let (code, status, broken) = verify(&motor);
        assert_eq!((code, status.as_str()), (Some(1), "problem"), "the worse one decides");
        assert_eq!(broken, ["artifacts", "skills"]);

        fs::write(&skill, SKILL).unwrap();
        fs::write(&artifact, "7\n").unwrap();
        assert_eq!(verify(&motor).0, Some(0), "as it was, it verifies");
    }
    assert_eq!(server.requests().len(), asked, "no request is made");
}

#[test]
fn every_skill_is_listed_and_a_home_that_is_new_is_whole() {
    let (_server, motor, _) = furnished();
    fs::create_dir_all(motor.home().join("skills/other")).unwrap();
    fs::write(motor.home().join("skills/other/SKILL.md"), SKILL.replace("csv", "other")).unwrap();
    let verified = motor.json(&["verify"]);
    let of = |skill: &Value| (skill["name"].clone(), skill["wasApproved"].clone());
    let skills: Vec<_> = verified["skills"].as_array().unwrap().iter().map(of).collect();
    assert_eq!(skills, [(json!("csv"), json!(true)), (json!("other"), json!(false))]);
    let page = motor.stdout(&["verify"]);
    assert!(
        page.contains("all are as their receipts say (runs: 1, files: 1)") && page.contains("2 skills read"),
        "{page}"
    );

    let new = Motor::bare();
    assert_eq!(new.json(&["verify"])["skills"], json!([]));
    assert!(!new.home().exists(), "nothing is created");
}

#[test]
fn a_lost_key_of_receipts_and_a_damaged_state_are_found() {
    let (_server, motor, _) = furnished();
    let key = motor.home().join("config/receipt.key");
    let text = fs::read(&key).unwrap();
    fs::remove_file(&key).unwrap();
    assert_eq!(verify(&motor), (Some(1), "problem".to_owned(), vec!["receipt_key".to_owned()]));
    fs::write(&key, text).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(verify(&motor).0, Some(0));
    fs::remove_dir_all(motor.home().join("state")).unwrap();
    let (code, _, broken) = verify(&motor);
    assert_eq!((code, broken.first().map(String::as_str)), (Some(1), Some("state")));
}
