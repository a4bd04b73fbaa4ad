//! Receipts and artifacts of real runs (SPEC RUN-12, RUN-14): the products of a run are kept and signed, and a change
//! to any byte of them is found out, without a host and without a network.

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

const DATA: &str = "item,price\napple,3\npear,4\n";
const ANSWER: &str = "It comes to 7.";

/// A run that changes none of its inputs, computes, and writes a file.
fn completed() -> (Motor, String) {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "read", "arguments": { "path": "data.csv" } }] },
        { "tool_calls": [{ "name": "code", "arguments": { "code": "return 3 + 4;" } }] },
        { "tool_calls": [{ "name": "write", "arguments": { "path": "out/total.txt", "content": "7\n" } }] },
        { "text": ANSWER, "usage": { "input": 1_000, "output": 20, "cost": 0.25 } },
    ]})));
    let motor = Motor::with_model(&server);
    let data = motor.file("data.csv", DATA);
    let act = ["act", "What does it come to?", "--tools", "code,filesystem", "--file", data.to_str().unwrap()];
    assert_eq!(motor.stdout(&act), format!("{ANSWER}\n"));
    let run = motor.only_run();
    (motor, run)
}

/// The receipt of a run in a file.
fn receipt(motor: &Motor, run: &str) -> PathBuf {
    let path = motor.directory().join("receipt.json");
    motor.stdout(&["receipt", "show", run, "--out", path.to_str().unwrap()]);
    path
}

/// Why verifying is refused.
fn refused(motor: &Motor, arguments: &[&str]) -> String {
    let ended = motor.run(&[&["receipt", "verify"], arguments].concat());
    assert_eq!(ended.code, Some(1), "{ended:?}");
    ended.stderr
}

fn checked(report: &Value, key: &str) -> Vec<String> {
    report[key].as_array().unwrap().iter().map(|entry| entry["what"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_run_lists_what_it_produced_and_its_receipt_verifies() {
    let (motor, run) = completed();
    let artifacts = motor.home().join("runs").join(&run).join("artifacts");
    assert_eq!(std::fs::read_to_string(artifacts.join("out/total.txt")).unwrap(), "7\n");
    assert!(!artifacts.join("data.csv").exists(), "what it was given it has not produced");
    let hash = base::ContentHash::of(b"7\n");
    let listed = json!([{ "path": "out/total.txt", "bytes": 2, "hash": hash }]);
    assert_eq!(motor.json(&["task", "status", &run])["artifacts"], listed);

    let file = receipt(&motor, &run);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(motor.stdout(&["receipt", "show", "--json"]), text);
    let said: Value = serde_json::from_str(&text).unwrap();
    let said = &said["receipt"];
    assert_eq!((&said["runId"], &said["status"], &said["result"]), (&json!(run), &json!("completed"), &json!(ANSWER)));
    assert_eq!((&said["artifacts"], &said["models"]), (&listed, &json!(["openai/test"])));
    assert_eq!((&said["costMicroUsd"], &said["tokens"]), (&json!(250_000), &json!({ "input": 1_030, "output": 35 })));
    let tools: Vec<_> = said["components"].as_array().unwrap().iter().map(|component| &component["tools"]).collect();
    assert!(tools.contains(&&json!(["code"])) && tools.contains(&&json!(["read", "write"])), "{tools:?}");

    let report = motor.json(&["receipt", "verify", file.to_str().unwrap()]);
    assert_eq!(checked(&report, "checked"), ["signature", "key", "artifacts", "component", "component"]);
    assert_eq!((checked(&report, "notChecked"), &report["otherFiles"]), (vec![], &json!([])));
    let page = motor.stdout(&["receipt", "verify", file.to_str().unwrap()]);
    assert!(page.contains("it is the key of this home") && page.contains("1 of 1"), "{page}");
    let page = motor.stdout(&["receipt", "show"]);
    assert!(
        page.contains("out/total.txt") && page.contains(ANSWER) && page.contains("called as read, write"),
        "{page}"
    );
}

#[test]
fn a_changed_byte_of_the_receipt_is_refused_wherever_it_is() {
    let (motor, run) = completed();
    let file = receipt(&motor, &run);
    let bytes = std::fs::read(&file).unwrap();
    // Each byte here, by the function that the command calls; some of them by the command itself.
    assert!(receipts::SignedReceipt::read(&bytes).is_ok());
    let mut changed = bytes.clone();
    for at in 0..bytes.len() {
        for mask in [0x01, 0x20] {
            changed[at] ^= mask;
            assert!(receipts::SignedReceipt::read(&changed).is_err(), "byte {at}");
            changed[at] ^= mask;
        }
    }
    let other = motor.directory().join("changed.json");
    for at in (0..bytes.len()).step_by(bytes.len() / 12) {
        changed[at] ^= 1;
        std::fs::write(&other, &changed).unwrap();
        refused(&motor, &[other.to_str().unwrap()]);
        changed[at] ^= 1;
    }
    std::fs::write(&other, &changed).unwrap();
    motor.stdout(&["receipt", "verify", other.to_str().unwrap()]);
}

#[test]
fn a_changed_byte_of_an_artifact_or_a_component_is_refused() {
    let (motor, run) = completed();
    let file = receipt(&motor, &run);
    let file = file.to_str().unwrap();
    let artifact = motor.home().join("runs").join(&run).join("artifacts/out/total.txt");
    std::fs::write(&artifact, "8\n").unwrap();
    assert!(refused(&motor, &[file]).contains("`out/total.txt` was changed"));
    std::fs::remove_file(&artifact).unwrap();
    assert!(refused(&motor, &[file]).contains("`out/total.txt` is missing"));
    // A copy elsewhere will do.
    let copy = motor.directory().join("copy");
    std::fs::create_dir_all(copy.join("out")).unwrap();
    std::fs::write(copy.join("out/total.txt"), "7\n").unwrap();
    std::fs::write(copy.join("notes.txt"), "mine").unwrap();
    let report = motor.json(&["receipt", "verify", file, "--artifacts", copy.to_str().unwrap()]);
    assert_eq!(report["otherFiles"], json!(["notes.txt"]));

    let mut component = tests::bundled("files");
    let tool = motor.file("files.wasm", &component);
    let verify = [file, "--artifacts", copy.to_str().unwrap(), "--component", tool.to_str().unwrap()];
    motor.stdout(&[&["receipt", "verify"], &verify[..]].concat());
    *component.last_mut().unwrap() ^= 1;
    std::fs::write(&tool, component).unwrap();
    assert!(refused(&motor, &verify).contains("none of those in the receipt"));
}

#[test]
fn the_skill_is_part_of_what_is_verified() {
    let (motor, run) = completed();
    let skill = motor.directory().join("sums");
    std::fs::create_dir_all(skill.join("bin")).unwrap();
    std::fs::write(skill.join("SKILL.md"), "# Sums\n").unwrap();
    let text = std::fs::read(receipt(&motor, &run)).unwrap();
    let without = motor.directory().join("receipt.json");
    let arguments = ["--skill", skill.to_str().unwrap()];
    assert!(refused(&motor, &[&[without.to_str().unwrap()], &arguments[..]].concat()).contains("names no skill"));
    // The same receipt, had the run used a skill.
    let mut said = receipts::SignedReceipt::read(&text).unwrap().receipt().clone();
    let hash = receipts::directory_hash(&skill).unwrap();
    said.skill = Some(receipts::Skill { name: "sums".into(), hash });
    let key = std::fs::read_to_string(motor.home().join("config/receipt.key")).unwrap();
    let key = receipts::SigningKey::from_text(&key).unwrap();
    let signed = receipts::SignedReceipt::sign(said, &key).unwrap();
    let file = motor.file("with-skill.json", signed.text().unwrap());
    let verify = [&[file.to_str().unwrap()], &arguments[..]].concat();
    let report = motor.json(&[&["receipt", "verify"], &verify[..]].concat());
    assert!(checked(&report, "checked").contains(&"skill".to_owned()), "{report}");
    assert_eq!(checked(&motor.json(&["receipt", "verify", verify[0]]), "notChecked"), ["skill"]);
    std::fs::write(skill.join("policy.json"), "{}").unwrap();
    motor.stdout(&[&["receipt", "verify"], &verify[..]].concat());
    std::fs::write(skill.join("SKILL.md"), "# sums\n").unwrap();
    assert!(refused(&motor, &verify).contains("skill `sums` is another version"));
    std::fs::write(skill.join("SKILL.md"), "# Sums\n").unwrap();
    std::fs::write(skill.join("bin/more"), "").unwrap();
    assert!(refused(&motor, &verify).contains("skill `sums` is another version"));
}

#[test]
fn another_hosts_key_is_refused() {
    let (motor, run) = completed();
    let (other, _) = completed();
    let file = receipt(&motor, &run);
    let file = file.to_str().unwrap();
    let ours = motor.home().join("config/receipt.pub");
    let theirs = receipt(&other, &other.only_run());
    let key = other.home().join("config/receipt.pub");
    assert!(refused(&motor, &[file, "--key", key.to_str().unwrap()]).contains("signed with another key"));
    let text = std::fs::read_to_string(&ours).unwrap();
    motor.stdout(&["receipt", "verify", file, "--key", text.trim()]);
    // Elsewhere it is whole, but the owner of its key has to be named.
    let elsewhere = Motor::bare();
    let report = elsewhere.json(&["receipt", "verify", theirs.to_str().unwrap()]);
    assert!(checked(&report, "notChecked").contains(&"key".to_owned()), "{report}");
    let report = elsewhere.json(&["receipt", "verify", theirs.to_str().unwrap(), "--key", key.to_str().unwrap()]);
    assert!(checked(&report, "checked").contains(&"key".to_owned()), "{report}");
    assert!(!elsewhere.home().exists(), "verifying makes no home");
    assert_eq!(elsewhere.run(&["receipt", "verify", file, "--key", "ed25519:12"]).code, Some(2));
}

#[test]
fn only_a_run_that_is_over_has_a_receipt_and_a_broken_key_is_never_replaced() {
    let (motor, run) = completed();
    receipt(&motor, &run);
    let path = motor.home().join("config/receipt.key");
    let key = std::fs::read(&path).unwrap();
    std::fs::write(&path, "broken").unwrap();
    let ended = motor.run(&["receipt", "show", &run]);
    assert!(ended.code == Some(1) && ended.stderr.contains("`config/receipt.key`"), "{ended:?}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "broken");
    std::fs::write(&path, key).unwrap();
    motor.stdout(&["receipt", "show", &run]);

    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done", "gate": true }] })));
    let motor = Motor::with_model(&server);
    let running = motor.start(&["act", "wait"]);
    block_on(server.wait_at_gate());
    let ended = motor.run(&["receipt", "show"]);
    assert!(ended.code == Some(1) && ended.stderr.contains("is running"), "{ended:?}");
    assert!(!motor.home().join("config/receipt.key").exists(), "nothing was signed");
    server.release();
    assert_eq!(running.wait().code, Some(0));
    motor.stdout(&["receipt", "show"]);
}
