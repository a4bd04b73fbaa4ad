//! `kill -9` while the skills of a run are taken over: each is whole as it was or whole as it is now, a new one is not
//! trusted yet, and the run ends once, with the same skills (SPEC SKILL-10, DUR-5).

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use base::Random;
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::model_server::ModelServer;
use tests::{Patience, block_on, cache};

use crate::skills_scenarios::world::{MAIL, World, files, gated, manifest, put, says, write};

const ROUNDS: usize = 40;
/// The skill that the run makes beside the one it changes.
const FRESH: &str = "fresh";

type Tree = BTreeMap<String, Vec<u8>>;

/// So much that putting it in its place takes a while.
fn references(word: &str) -> Vec<(String, String)> {
    (0..12).map(|number| (format!("references/{number}.md"), format!("{word} {number}\n").repeat(2_000))).collect()
}

fn old() -> Vec<(String, String)> {
    [vec![("SKILL.md".to_owned(), manifest(MAIL, "Old."))], references("old")].concat()
}

fn turns() -> Vec<Value> {
    let mut calls = vec![
        json!({ "name": "write", "arguments": { "path": "SKILL.md", "content": manifest(MAIL, "New.") } }),
        json!({ "name": "bash", "arguments": { "script": "rm references/0.md" } }),
        json!({ "name": "write", "arguments": { "path": "skills/fresh/SKILL.md", "content": manifest(FRESH, "Fresh.") } }),
    ];
    for (path, content) in references("new").into_iter().skip(1) {
        calls.push(json!({ "name": "write", "arguments": { "path": path, "content": content } }));
        calls.push(
            json!({ "name": "write", "arguments": { "path": format!("skills/fresh/{path}"), "content": content } }),
        );
    }
    vec![json!({ "tool_calls": calls }), put("done.txt", "done"), gated(says("corrected"))]
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else if kind.is_symlink() {
            symlink(cache().join("compiled"), target).unwrap();
        }
    }
}

/// The standard that a round is compared with: a run without a kill.
struct Undisturbed {
    installed: Value,
    trees: [Tree; 2],
    /// From the last word of the model to the end.
    took: Duration,
}

fn tree(motor: &Motor, entry: &str) -> Tree {
    files(&motor.home().join("skills").join(entry))
}

fn status(motor: &Motor, entry: &str) -> Option<String> {
    let list = motor.json(&["skill", "list"]);
    let found = list.as_array().unwrap().iter().find(|skill| skill["place"]["entry"] == entry)?;
    Some(found["status"].as_str().unwrap().to_owned())
}

/// The installed skills of the one run, without the fields that differ from run to run.
fn installed(motor: &Motor) -> Value {
    let trace = motor.json(&["task", "status"]);
    assert_eq!((&trace["status"], &trace["summary"]), (&json!("completed"), &json!("corrected")), "{trace:#}");
    trace["installedSkills"].clone()
}

/// The remains of a killed host are hidden, and go with the next host that stays.
fn tidied(motor: &Motor, round: usize) {
    let left = || {
        let entries = fs::read_dir(motor.home().join("skills")).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let lies = left();
    if lies == [MAIL, FRESH] {
        return;
    }
    assert!(
        lies.iter().all(|name| name.starts_with('.') || [MAIL, FRESH].contains(&name.as_str())),
        "round {round}: {lies:?}"
    );
    let serving = motor.start(&["serve"]);
    let mut patience = Patience::default();
    while left() != [MAIL, FRESH] {
        assert!(patience.lasts(), "round {round}: {:?}", left());
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(serving);
}

#[test]
fn a_kill_while_skills_are_taken_over_leaves_them_whole_and_untrusted() {
    let mut world = World::new(Vec::new());
    world.motor.configure("[energy]\nenabled = false\n");
    for (path, content) in old() {
        write(&world.skills().join(MAIL), &[(&path, &content)]);
    }
    world.approve(&[MAIL, "--tools", "bash,filesystem"]);
    world.plays(turns());
    let template = world.motor.home().to_owned();
    let before = tree(&world.motor, MAIL);
    let homes = tempfile::tempdir().unwrap();
    let home = |name: &str| {
        let home = homes.path().join(name);
        copy(&template, &home);
        Motor::bare()
            .at(home)
            .env("LLM_MOTOR_MODEL", "openai/test")
            .env("OPENAI_API_KEY", "sk-test")
            .env("MOTOR_KEYRING", "off")
            .endpoint(&world.model.base_url())
    };
    // The run, up to its last word.
    let last_word = |motor: &Motor| {
        let acting = motor.start(&["act", "send it", "--skill", MAIL, "--unattended"]);
        let run = acting.run_id();
        block_on(world.model.wait_at_gate());
        (acting, run)
    };

    // Lets the last word through, which then is on its way.
    let release = || {
        world.model.release();
        block_on(world.model.wait_gate_empty());
    };
    let undisturbed = {
        let motor = home("undisturbed");
        let (acting, _) = last_word(&motor);
        release();
        let began = Instant::now();
        acting.wait().succeeded();
        let took = began.elapsed();
        assert_eq!(status(&motor, MAIL).as_deref(), Some("pending_review"));
        Undisturbed { installed: installed(&motor), trees: [tree(&motor, MAIL), tree(&motor, FRESH)], took }
    };
    let expected = undisturbed.installed.as_array().unwrap();
    assert_eq!(expected.len(), 2, "{expected:#?}");
    assert!(expected.iter().all(|skill| skill["place"].is_string() && skill["problem"].is_null()), "{expected:#?}");
    assert_eq!(undisturbed.trees[0].len(), before.len() - 1);

    let mut ready = turns();
    ready[2]["gate"] = json!(false);
    let ready = block_on(ModelServer::scripted(json!({ "turns": ready })));
    let chance = Random::from_system();
    let (mut interrupted, mut halfway) = (0, 0);
    for round in 0..ROUNDS {
        let motor = home(&format!("round-{round}"));
        let (acting, run) = last_word(&motor);
        let part = (chance.next_u64() % 1_000) as f64 / 1_000.0;
        release();
        std::thread::sleep(undisturbed.took.mul_f64((round as f64 + part) / ROUNDS as f64));
        let was_alive = acting.kill().code.is_none();

        let [changed, fresh] = [tree(&motor, MAIL), tree(&motor, FRESH)];
        assert!(
            changed == before || changed == undisturbed.trees[0],
            "round {round}: half of it: {:?}",
            changed.keys()
        );
        assert!(fresh.is_empty() || fresh == undisturbed.trees[1], "round {round}: half of it: {:?}", fresh.keys());
        let now = status(&motor, MAIL).unwrap();
        if changed == before {
            assert_eq!(now, "approved", "round {round}");
        } else {
            assert!(["pending_review", "needs_reapproval"].contains(&now.as_str()), "round {round}: {now}");
        }
        let now = status(&motor, FRESH);
        assert_ne!(now.as_deref(), Some("approved"), "round {round}");
        let is_over = motor.json(&["task", "status", &run])["status"] == "completed";
        interrupted += usize::from(was_alive && !is_over);
        halfway += usize::from(!is_over && (changed != before || !fresh.is_empty()));

        // The model that the next host asks answers without waiting.
        let motor = motor.endpoint(&ready.base_url());
        motor.run(&["act", "--resume"]).succeeded();
        assert_eq!(installed(&motor), undisturbed.installed, "round {round}");
        assert_eq!([tree(&motor, MAIL), tree(&motor, FRESH)], undisturbed.trees, "round {round}");
        for entry in [MAIL, FRESH] {
            assert_eq!(status(&motor, entry).as_deref(), Some("pending_review"), "round {round}: {entry}");
        }
        let signals = motor.json_lines(&["signals", "--since", "0"]);
        let [signal] = signals.as_slice() else { panic!("round {round}: {signals:#?}") };
        assert_eq!(
            (&signal["status"], &signal["installedSkills"]),
            (&json!("completed"), &undisturbed.installed),
            "{signal:#}"
        );
        tidied(&motor, round);
        if round % 8 == 0 {
            motor.run_as_owner(&["skill", "rollback", MAIL], "").succeeded();
            assert_eq!(
                (tree(&motor, MAIL), status(&motor, MAIL).as_deref()),
                (before.clone(), Some("approved")),
                "round {round}"
            );
        }
    }
    println!(
        "{ROUNDS} kills within {:?}: {interrupted} before the end, {halfway} of them after a skill was in place",
        undisturbed.took
    );
    assert!(interrupted > 0, "no kill came before the run was over");
}
