//! Runs and landings in adversity: killed hosts, full disks, and secrets that lie in the tree.

use tests::network::encoding::files_with;

use super::*;
use crate::disk::SmallDisk;

/// A credential of the vault, which a file of the tree repeats.
const SECRET: &str = "swordfish-4711-marlin";

#[test]
fn a_credential_that_lies_in_the_tree_is_scrubbed_where_it_is_read() {
    let text = format!("API_KEY={SECRET}\nOTHER=a value of the tree\n");
    let desk = Desk::new(&[(".env", &text)]);
    let shown = desk.directory.join(".env");
    let shown = ["--show", shown.to_str().unwrap()];
    // It is a secret once its owner says so.
    let run = desk.run_with(&["cat .env"], &shown);
    assert!(desk.output(&run, 0).contains(SECRET));
    desk.motor.stdout(&["task", "delete", &run]);
    desk.asked.lock().unwrap().clear();
    let domain = ["credential", "set", "api_key", "--domain", "api.example.com"];
    desk.motor.run_as_owner(&domain, SECRET).succeeded();
    let run = desk.run_with(&["cat .env; base64 .env", "echo MORE=1 >> .env"], &shown);
    let said = desk.output(&run, 0);
    assert!(said.contains("OTHER=a value of the tree") && said.contains("<credential:api_key>"), "{said}");
    for request in desk.asked.lock().unwrap().iter() {
        assert!(!request.to_string().contains(SECRET), "{request}");
    }
    let review = desk.motor.stdout(&["diff", &run, "--json"]);
    assert!(review.contains("MORE=1") && !review.contains(SECRET), "{review}");
    let holding = files_with(&desk.motor.home().join("logs"), SECRET);
    assert_eq!(holding, []);
    // The file itself is whole.
    desk.motor.stdout(&["land", &run]);
    assert_eq!(desk.read(".env"), format!("{text}MORE=1\n"));
}

#[test]
fn a_run_that_was_killed_goes_on_with_its_own_changes() {
    let script = |script: &str| json!({ "tool_calls": [{ "name": "bash", "arguments": { "script": script } }] });
    let mut second = script("echo 2 >> a.txt; rm d/old.txt");
    second["gate"] = json!(true);
    let turns = [script("echo 1 >> a.txt; echo n > d/new.txt"), second, json!({ "text": "both" })];
    let model = block_on(ModelServer::scripted(json!({ "turns": turns })));
    let desk = Desk::new(&[("a.txt", "0\n"), ("d/old.txt", "o\n")]);
    let motor = Motor::with_model(&model).unattended();
    let before = desk.now();
    let acting = motor.start(&["act", "--on", desk.directory.to_str().unwrap(), "count"]);
    let run = acting.run_id();
    block_on(model.wait_at_gate());
    acting.kill();
    block_on(model.wait_gate_empty());
    model.release();
    motor.run(&["act", "--resume", &run]).succeeded();
    assert_eq!(desk.now(), before);
    motor.stdout(&["land", &run]);
    assert_eq!(desk.read("a.txt"), "0\n1\n2\n");
    assert_eq!(desk.now().keys().collect::<Vec<_>>(), ["a.txt", "d", "d/new.txt"]);
    motor.stdout(&["undo", &run]);
    assert_eq!(desk.now(), before);
}

#[test]
fn on_a_full_disk_nothing_lands_and_nothing_is_taken_back_until_there_is_space() {
    let mut desk = Desk::new(&[]);
    let Some(disk) = SmallDisk::mount() else {
        println!("not tried: a file system cannot be mounted here");
        return;
    };
    desk.directory = disk.path().join("project");
    fs::create_dir(&desk.directory).unwrap();
    let text = "a line of the owner\n".repeat(20_000);
    (0..8).for_each(|number| desk.put(&format!("{number}.txt"), &text));
    let before = desk.now();
    let run = desk.run(&["for f in *.txt; do sed -i s/line/row/ $f; done; rm 7.txt"]);
    let filler = disk.fill();
    desk.motor.run(&["land", &run]).refused(1, &["No space left"]);
    assert_eq!(desk.now(), before);
    fs::remove_file(&filler).unwrap();
    desk.motor.stdout(&["land", &run]);
    let landed = desk.now();
    assert_ne!(landed, before);
    disk.fill();
    desk.motor.run(&["undo", &run]).refused(1, &["No space left"]);
    assert_eq!(desk.now(), landed);
    fs::remove_file(&filler).unwrap();
    desk.motor.stdout(&["undo", &run]);
    assert_eq!(desk.now(), before);
}
