//! Updating skills from the sources they were added from, with the real program (SPEC SKILL-13): shown, put in place, and
//! not trusted for it.

use std::fs;

use serde_json::json;
use tests::block_on;
use tests::network::{Reply, Site};

use super::skills_cli::{World, is_fit, write};
use super::skills_scenarios::world as scenarios;

const NOTES: [(&str, &str); 2] = [
    ("SKILL.md", "---\nname: notes\ndescription: Sorts notes.\n---\n\nRead `references/order.md` first.\n"),
    ("references/order.md", "By date.\n"),
];
const NEWER: &str = "By date; see https://order.notes.dev/newer\n";

#[test]
fn an_update_from_a_directory_is_shown_and_waits_for_the_owner() {
    let world = World::new();
    let motor = &world.motor;
    let source = motor.directory().join("mine");
    let placed = world.skills().join("notes/references/order.md");
    write(&source, &NOTES);
    motor.run(&["skill", "add", "mine"]).succeeded();
    world.approve(&["notes", "--tools", "code"]);
    // The same bytes: nothing changes.
    let same = motor.run_as_owner(&["skill", "update", "notes", "--json"], "").succeeded();
    let same: serde_json::Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!((&same["outcome"], &same["status"]), (&json!("unchanged"), &json!("approved")), "{same:#}");
    assert_eq!(motor.json(&["skill", "versions", "notes"]).as_array().unwrap().len(), 1);

    write(&source, &[("references/order.md", NEWER)]);
    let checked = motor.json(&["skill", "update", "notes", "--check"]);
    assert_eq!((&checked["outcome"], &checked["status"]), (&json!("newer"), &json!("approved")), "{checked:#}");
    assert_eq!(fs::read_to_string(&placed).unwrap(), NOTES[1].1);
    motor.refuses(&["skill", "update", "notes"], 5, "consent_needed");
    assert_eq!(fs::read_to_string(&placed).unwrap(), NOTES[1].1);

    let updated = motor.run_as_owner(&["skill", "update", "notes"], "").succeeded();
    is_fit(&updated.stdout);
    let at = |words: &str| updated.stdout.find(words).unwrap_or_else(|| panic!("{words:?} is not said: {updated:?}"));
    assert!(at("order.notes.dev") < at("+By date; see"), "{updated:?}");
    assert!(updated.stdout.contains("needs_reapproval"), "{updated:?}");
    assert_eq!(fs::read_to_string(&placed).unwrap(), NEWER);
    assert_eq!(world.status("notes"), "needs_reapproval");
    motor.run(&["act", "sort", "--skill", "notes"]).refused(5, &["motor skill review"]);
    let review = motor.json(&["skill", "review", "notes"])["review"].clone();
    assert_eq!(review["provenance"]["contentHash"], review["hash"], "{review:#}");
    assert!(review["changes"]["powers"][0]["what"].as_str().unwrap().contains("order.notes.dev"), "{review:#}");
    // And back.
    motor.run_as_owner(&["skill", "rollback", "notes"], "").succeeded();
    assert_eq!(
        (fs::read_to_string(&placed).unwrap().as_str(), world.status("notes").as_str()),
        (NOTES[1].1, "approved")
    );
    let all = motor.run_as_owner(&["skill", "update", "--all", "--check", "--json"], "").succeeded();
    let all: serde_json::Value = serde_json::from_str(&all.stdout).unwrap();
    assert_eq!((all.as_array().unwrap().len(), &all[0]["outcome"]), (1, &json!("newer")), "{all:#}");
}

#[test]
fn nothing_is_lost_to_an_update() {
    let world = World::new();
    let motor = &world.motor;
    let source = motor.directory().join("mine");
    let placed = world.skills().join("notes/references/order.md");
    write(&source, &NOTES);
    motor.run(&["skill", "add", "mine"]).succeeded();
    world.approve(&["notes", "--tools", "code"]);
    let update = ["skill", "update", "notes"];
    // A source that is gone, that holds another skill, or that holds no skill.
    for (files, says) in [
        (&[][..], "stays as it is"),
        (&[("SKILL.md", "---\nname: other\ndescription: d\n---\n")][..], "another skill"),
        (&[("README.md", "nothing")][..], "stays as it is"),
    ] {
        fs::remove_dir_all(&source).ok();
        write(&source, files);
        let ended = motor.run_as_owner(&update, "");
        assert!(ended.code != Some(0) && ended.stderr.contains(says), "{ended:?}");
        assert_eq!(fs::read_to_string(&placed).unwrap(), NOTES[1].1);
        assert_eq!(world.status("notes"), "approved");
    }
    // Work of a person, of which no version is kept.
    fs::remove_dir_all(&source).ok();
    write(&source, &NOTES);
    write(&source, &[("references/order.md", NEWER)]);
    fs::write(&placed, "By my own order.\n").unwrap();
    let ended = motor.run_as_owner(&update, "");
    assert!(ended.code != Some(0) && ended.stderr.contains("changed here"), "{ended:?}");
    assert_eq!(fs::read_to_string(&placed).unwrap(), "By my own order.\n");
    world.approve(&["notes", "--tools", "code"]);
    let updated = motor.run_as_owner(&update, "").succeeded();
    assert!(updated.stdout.replace('\n', " ").contains("changed here"), "{updated:?}");
    assert_eq!(fs::read_to_string(&placed).unwrap(), NEWER);
    motor.run_as_owner(&["skill", "rollback", "notes"], "").succeeded();
    assert_eq!(fs::read_to_string(&placed).unwrap(), "By my own order.\n");
    // A skill that was put there by hand has no source.
    world.drop_in("found", &[("SKILL.md", "---\nname: found\ndescription: d\n---\n")]);
    motor.refuses_owner(&["skill", "update", "found"], 1, "not_found");
}

#[test]
fn an_update_from_a_url_is_fetched_on_the_owners_word_alone() {
    let site = block_on(Site::start());
    let page = |body: &str| Reply::text(&scenarios::manifest("single", body));
    site.route("/single/SKILL.md", page("One."));
    let world = scenarios::World::new(vec![scenarios::says("done")]).beside(&[&site]);
    world.as_owner(&["skill", "add", &site.url("/single/SKILL.md")]).succeeded();
    world.approve(&["single"]);
    site.route("/single/SKILL.md", page("Two."));
    let before = site.connections();
    for command in [&["skill", "update", "single"][..], &["skill", "update", "single", "--check"]] {
        world.motor.refuses(command, 5, "consent_needed");
    }
    assert_eq!(site.connections(), before, "it was fetched on nobody's word");
    let checked = world.as_owner(&["skill", "update", "single", "--check"]).succeeded();
    assert!(checked.stdout.contains("+Two."), "{checked:?}");
    assert_eq!(world.status("single"), "approved");
    world.as_owner(&["skill", "update", "single"]).succeeded();
    assert_eq!(world.status("single"), "needs_reapproval");
    assert!(fs::read_to_string(world.skills().join("single/SKILL.md")).unwrap().contains("Two."));
    let unknown = world.as_owner(&["skill", "update", "single"]).succeeded();
    assert!(unknown.stdout.contains("single is what"), "{unknown:?}");
    site.route("/single/SKILL.md", Reply::html("<html>gone</html>"));
    let ended = world.as_owner(&["skill", "update", "single"]);
    assert!(ended.code != Some(0) && ended.stderr.contains("stays as it is"), "{ended:?}");
    assert!(fs::read_to_string(world.skills().join("single/SKILL.md")).unwrap().contains("Two."));
}
