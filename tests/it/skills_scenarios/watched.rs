//! A host that stays sees skills that arrive in its directory, change there and leave it (SPEC HOST-10).

use std::fs;

use serde_json::Value;

use super::world::{MAIL, World, manifest, says};
use crate::skills_attack::archives::Zip;

#[test]
fn a_host_that_stays_sees_skills_come_change_and_go() {
    let world = World::new(vec![says("done")]);
    let serving = world.serve();
    let started = || world.motor.ask("/v1/host", None, &[]).unwrap().1["startedAt"].clone();
    let host = started();
    assert!(!host.is_null());
    assert_eq!(world.motor.json(&["skill", "list"]), serde_json::json!([]));

    let directory = world.drop_in(MAIL, &[("SKILL.md", &manifest(MAIL, "One."))]);
    let dropped = world.until_listed(MAIL, |skill| skill["readable"] == true);
    assert_eq!(dropped["status"], "needs_reapproval");
    let archive = Zip::of(&[("SKILL.md", &manifest("packed", "Two."))]).finish();
    fs::write(world.skills().join("packed.zip"), archive).unwrap();
    world.until_listed("packed.zip", |skill| skill["readable"] == true && skill["name"] == "packed");

    world.approve(&[MAIL]);
    world.until_listed(MAIL, |skill| skill["status"] == "approved");
    world.act(MAIL, &[]).succeeded();
    fs::create_dir_all(directory.join("scripts/deep")).unwrap();
    world.until_listed(MAIL, |skill| skill["readable"] == true);
    fs::write(directory.join("scripts/deep/x.sh"), "echo x\n").unwrap();
    world.until_listed(MAIL, |skill| skill["status"] == "needs_reapproval");
    // In a directory that came after the watch began.
    fs::remove_dir_all(directory.join("scripts")).unwrap();
    world.until_listed(MAIL, |skill| skill["status"] == "approved");
    fs::write(directory.join("SKILL.md"), manifest(MAIL, "Changed.")).unwrap();
    world.until_listed(MAIL, |skill| skill["status"] == "needs_reapproval");

    fs::rename(&directory, world.skills().join("renamed")).unwrap();
    world.until_listed(MAIL, Value::is_null);
    world.until_listed("renamed", |skill| skill["name"] == MAIL);
    fs::remove_file(world.skills().join("packed.zip")).unwrap();
    world.until_listed("packed.zip", Value::is_null);
    fs::remove_dir_all(world.skills().join("renamed")).unwrap();
    world.until_listed("renamed", Value::is_null);
    // The directory itself goes and comes.
    fs::remove_dir(world.skills()).unwrap();
    assert_eq!(world.motor.json(&["skill", "list"]), serde_json::json!([]));
    world.drop_in("again", &[("SKILL.md", &manifest("again", "Three."))]);
    world.until_listed("again", |skill| skill["readable"] == true);
    assert_eq!(started(), host, "it was another host");
    drop(serving);
}
