//! Claims to be trusted: files that say so, copies of trusted skills, a forged index, and a store that is damaged or
//! gone.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::Patience;

use crate::skills_scenarios::world::{MAIL, World, files, manifest, says, write};

fn skill() -> String {
    manifest(MAIL, "Run `scripts/send.sh`.")
}

fn put_down(directory: &Path) {
    write(directory, &[("SKILL.md", &skill()), ("scripts/send.sh", "echo sending\n")]);
}

fn approved() -> World {
    let world = World::new(vec![says("done")]);
    put_down(&world.skills().join(MAIL));
    world.approve(&[MAIL, "--tools", "code", "--domains", "mail.example"]);
    world
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Checks that it can neither run nor be explained.
#[track_caller]
fn is_refused(world: &World, skill: &str) {
    for command in ["act", "explain"] {
        let ended = world.motor.run(&[command, "send it", "--skill", skill]);
        assert!(ended.code == Some(5) && ended.stderr.contains("needs_reapproval"), "{ended:?}");
    }
}

/// Checks that nothing uses it, wherever one looks.
#[track_caller]
fn is_a_stranger(world: &World, entry: &str) {
    let calls = world.model.calls();
    assert_eq!(world.status(entry), "needs_reapproval");
    let place = format!("home/{entry}");
    is_refused(world, &place);
    assert_eq!(world.model.calls(), calls);
}

#[test]
fn a_directory_that_says_it_is_approved_is_a_stranger() {
    let world = World::new(vec![says("done")]);
    let directory = world.skills().join(MAIL);
    put_down(&directory);
    let hash = receipts::directory_hash(&directory).unwrap();
    let policy = json!({
        "schemaVersion": 1, "status": "approved", "trust": "approved", "contentHash": hash, "domains": ["*"], "writes": ["*"],
        "tools": ["bash", "fetch", "code"], "requiredCredentials": [], "approvedBy": "owner", "approvedAt": "2031-01-01T00:00:00Z",
        "provenance": { "source": "https://trusted.example/", "fetchedAt": "2031-01-01T00:00:00Z", "contentHash": hash },
    });
    fs::write(directory.join("policy.json"), policy.to_string()).unwrap();
    let index = json!({ "version": 1, "skills": [{ "name": MAIL, "status": "approved", "contentHash": hash }] });
    for path in ["index.json", "agentmail/index.json"] {
        fs::write(world.skills().join(path), index.to_string()).unwrap();
    }
    is_a_stranger(&world, MAIL);
    let review = world.review(MAIL);
    assert!(review["policy"].is_null() && review["provenance"].is_null(), "{review:#}");
    let claims = review["claims"].to_string();
    for claim in ["status", "approvedBy"] {
        assert!(claims.contains(claim), "{claim} is not told: {claims}");
    }
    assert_eq!(review["proposal"]["domains"], json!(["*"]), "what its author asks for is shown: {review:#}");
    assert_eq!(world.status(MAIL), "reviewed");
    // Its twin: the owner, who was shown its proposal, decides on its powers.
    world.approve(&[MAIL, "--tools", "code", "--domains", "", "--writes", ""]);
    assert_eq!(world.explain(MAIL)["network"]["domains"], json!([]));
    world.act(MAIL, &[]).succeeded();
}

#[test]
fn a_copy_of_what_is_trusted_is_a_stranger() {
    let here = approved();
    // In another home, with all that lies beside it.
    let there = World::new(vec![says("done")]);
    // It has a state of its own.
    there.motor.stdout(&["task", "list"]);
    copy(&here.skills(), &there.skills());
    fs::write(there.motor.home().join("cache/skills.json"), index_with(&here, "")).unwrap();
    copy(&here.motor.home().join("versions"), &there.motor.home().join("versions"));
    is_a_stranger(&there, MAIL);

    // In another place of the same home: two skills, and neither is the other.
    copy(&here.skills().join(MAIL), &here.skills().join("copy"));
    assert_eq!(here.status(MAIL), "approved");
    is_a_stranger(&here, "copy");
    let ended = here.act(MAIL, &[]);
    assert!(ended.code == Some(0) || ended.stderr.contains("home/agentmail"), "{ended:?}");
    here.act("home/agentmail", &[]).succeeded();
    // The approval is for its place, not for its name.
    fs::remove_dir_all(here.skills().join(MAIL)).unwrap();
    is_a_stranger(&here, "copy");
    here.act(MAIL, &[]).refused(5, &["needs_reapproval"]);
    fs::rename(here.skills().join("copy"), here.skills().join(MAIL)).unwrap();
    here.act(MAIL, &[]).succeeded();
}

#[test]
fn a_skill_of_another_root_does_not_shadow_nor_borrow() {
    let world = approved();
    let root = world.motor.directory().join("more");
    put_down(&root.join(MAIL));
    world.motor.configure(&format!("[skills]\nroots = [{:?}]\n", root.to_str().unwrap()));
    let list = world.motor.json(&["skill", "list"]);
    let found: Vec<_> =
        list.as_array().unwrap().iter().map(|skill| (&skill["place"]["root"], &skill["status"])).collect();
    let other = json!(root.to_str().unwrap());
    assert_eq!(found.len(), 2, "{list:#}");
    assert!(
        found.contains(&(&json!("home"), &json!("approved"))) && found.contains(&(&other, &json!("needs_reapproval"))),
        "{list:#}"
    );
    let theirs = format!("{}/{MAIL}", root.to_str().unwrap());
    world.act(&theirs, &[]).refused(5, &["needs_reapproval"]);
    assert_eq!(world.model.calls(), 0);
    world.act("home/agentmail", &[]).succeeded();
    world.approve(&[&theirs, "--tools", "code"]);
    fs::write(world.skills().join(MAIL).join("scripts/send.sh"), "evil\n").unwrap();
    world.act("home/agentmail", &[]).refused(5, &["needs_reapproval"]);
    world.act(&theirs, &[]).succeeded();
}

/// The index once it has this; a recent change is not in it until it is settled.
fn index_with(world: &World, text: &str) -> String {
    let mut patience = Patience::default();
    loop {
        world.status(MAIL);
        match fs::read_to_string(world.motor.home().join("cache/skills.json")) {
            Ok(index) if index.contains(text) => return index,
            other => assert!(patience.lasts(), "it is never in the index: {other:?}"),
        }
    }
}

#[test]
fn a_forged_index_changes_what_is_shown_and_not_what_is_used() {
    let world = approved();
    let index = world.motor.home().join("cache/skills.json");
    let good = world.summary(MAIL)["hash"].as_str().unwrap().to_owned();
    let hex = good.trim_start_matches("sha256:");
    fs::write(world.skills().join(MAIL).join("scripts/send.sh"), "echo evil\n").unwrap();
    let evil = world.summary(MAIL);
    assert_eq!(evil["status"], "needs_reapproval");
    let evil = evil["hash"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let honest = index_with(&world, &evil);
    let forgeries =
        [honest.replace(&evil, hex), honest.replace("\"modes\"", "\"status\":\"approved\",\"modes\""), "{".to_owned()];
    for forged in &forgeries {
        fs::write(&index, forged).unwrap();
        is_refused(&world, MAIL);
        let verified = world.motor.run(&["skill", "verify", MAIL]);
        assert_eq!(verified.code, Some(5), "{verified:?}");
        fs::write(&index, forged).unwrap();
        world.as_owner(&["skill", "update", MAIL, "--domains", "evil.example"]).refused(5, &[]);
    }
    assert_eq!(world.model.calls(), 0);
    // Its twin: without an index, and with one that is a directory, everything is as it was.
    put_down(&world.skills().join(MAIL));
    fs::remove_file(&index).ok();
    world.act(MAIL, &[]).succeeded();
    fs::remove_file(&index).ok();
    fs::create_dir_all(index.join("x")).unwrap();
    assert_eq!(world.status(MAIL), "approved");
    world.act(MAIL, &[]).succeeded();
}

fn regular_files(directory: &Path) -> Vec<PathBuf> {
    files(directory).into_keys().map(|name| directory.join(name)).collect()
}

#[test]
fn trust_that_is_lost_or_damaged_is_none() {
    let world = approved();
    let home = world.motor.home().to_owned();
    let state = home.join("state");
    let kept = world.motor.directory().join("kept");
    copy(&state, &kept);
    let mark = fs::read(home.join("state.mark")).unwrap();
    let restore = || {
        fs::remove_dir_all(&state).unwrap();
        copy(&kept, &state);
        fs::write(home.join("state.mark"), &mark).unwrap();
    };
    let powers = |explained: &Value| (explained["network"]["domains"].clone(), explained["network"]["writes"].clone());
    let given = powers(&world.explain(MAIL));

    // One byte of the store's data about the skill, anywhere in it.
    let mut tried = 0;
    for file in regular_files(&kept) {
        let bytes = fs::read(&file).unwrap();
        let places =
            memchr::memmem::find_iter(&bytes, MAIL.as_bytes()).chain(memchr::memmem::find_iter(&bytes, b"approved"));
        let places: Vec<_> =
            places.take(6).flat_map(|at| [at, at + 3, at + 40]).filter(|at| *at < bytes.len()).collect();
        for at in places {
            restore();
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x11;
            fs::write(state.join(file.strip_prefix(&kept).unwrap()), damaged).unwrap();
            tried += 1;
            let ended = world.motor.run(&["explain", "send it", "--skill", MAIL, "--json"]);
            assert!(!ended.stderr.contains("panicked"), "{ended:?}");
            if ended.code == Some(0) {
                // The damage was elsewhere: then it has exactly its former powers.
                let explained: Value = serde_json::from_str(&ended.stdout).unwrap();
                assert_eq!(
                    (powers(&explained), &explained["skill"]["status"]),
                    (given.clone(), &json!("approved")),
                    "byte {at} of {file:?}"
                );
            }
        }
    }
    assert!(tried > 0, "the store keeps nothing of the skill that can be found");

    // Everything cut short.
    for file in regular_files(&kept) {
        let length = fs::metadata(&file).unwrap().len();
        if length == 0 {
            continue;
        }
        restore();
        fs::File::options()
            .write(true)
            .open(state.join(file.strip_prefix(&kept).unwrap()))
            .unwrap()
            .set_len(length / 2)
            .unwrap();
        let ended = world.motor.run(&["explain", "send it", "--skill", MAIL, "--json"]);
        if ended.code == Some(0) {
            let explained: Value = serde_json::from_str(&ended.stdout).unwrap();
            assert_eq!(powers(&explained), given, "{file:?}");
        }
    }

    // All of it lost, with the versions and without.
    for lost in [&["state"][..], &["state", "versions"], &["state", "versions", "cache/skills.json"]] {
        restore();
        for path in lost {
            let path = home.join(path);
            // The index is there once everything is settled.
            fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path)).ok();
        }
        world.motor.run(&["skill", "list"]).refused(1, &["motor doctor --accept-loss"]);
        world.motor.stdout(&["doctor", "--accept-loss"]);
        is_a_stranger(&world, MAIL);
    }
    assert_eq!(world.model.calls(), 0);
    // Its twin: put back, it is trusted again; approved once more, too. The file of the powers that were granted is now
    // a proposal like any other.
    world.approve(&[MAIL, "--proposed"]);
    world.act(MAIL, &[]).succeeded();
    restore();
    let ended = world.act(MAIL, &[]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
}
