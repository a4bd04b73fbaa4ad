//! Ways back for a skill, with the real program (SPEC SKILL-5, SKILL-12): from files that cannot be read, and after a
//! review of other files; and `.git`, which is no part of a skill.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::json;

use super::skills_cli::{World, is_fit, write};

const NOTES: [(&str, &str); 2] = [
    ("SKILL.md", "---\nname: notes\ndescription: Sorts notes.\n---\n\nRead `references/order.md` first.\n"),
    ("references/order.md", "By date.\n"),
];

#[test]
fn files_that_cannot_be_read_are_put_aside_and_the_approved_ones_come_back() {
    let world = World::new();
    let motor = &world.motor;
    let directory = world.drop_in("notes", &NOTES);
    world.approve(&["notes", "--tools", "code"]);
    let outside = motor.file("outside.txt", "theirs");
    type Break<'a> = (&'a str, &'a dyn Fn());
    let breaks: [Break<'_>; 5] = [
        ("bytes that are no text", &|| fs::write(directory.join("SKILL.md"), b"\xff\xfe\xfd").unwrap()),
        ("no `SKILL.md`", &|| fs::remove_file(directory.join("SKILL.md")).unwrap()),
        ("a link that leads outside", &|| symlink(&outside, directory.join("data.txt")).unwrap()),
        ("a file that is too large", &|| fs::write(directory.join("big.txt"), vec![b'a'; 2 << 20]).unwrap()),
        ("a link in place of the directory", &|| {
            fs::remove_dir_all(&directory).unwrap();
            symlink(motor.directory(), &directory).unwrap();
        }),
    ];
    for (what, spoil) in breaks {
        spoil();
        assert_eq!(motor.run(&["act", "sort", "--skill", "notes"]).code, Some(5), "{what}");
        motor.refuses(&["skill", "rollback", "notes"], 5, "consent_needed");
        let mut asking = motor.at_terminal(&["skill", "rollback", "notes"]);
        let card = asking.sees("[y/N] ").replace('\r', "");
        is_fit(&card);
        assert!(card.contains("unreadable") && card.contains("put aside"), "{what}: {card}");
        asking.types("n");
        asking.wait().refused(5, &["nothing was done"]);

        let ended = motor.run_as_owner(&["skill", "rollback", "notes", "--json"], "").succeeded();
        let back: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!((&back["status"], &back["name"]), (&json!("approved"), &json!("notes")), "{what}: {back}");
        let aside = Path::new(back["putAside"].as_str().unwrap()).to_owned();
        assert!(aside.starts_with(world.skills()) && fs::symlink_metadata(&aside).is_ok(), "{what}: {back}");
        for (path, text) in NOTES {
            assert_eq!(fs::read_to_string(directory.join(path)).unwrap(), text, "{what}");
        }
        assert!(!fs::symlink_metadata(&directory).unwrap().is_symlink(), "{what}");
        assert_eq!(motor.json(&["skill", "list"]).as_array().unwrap().len(), 1, "{what}: the kept files are no skill");
        assert_eq!(world.status("notes"), "approved", "{what}");
    }
    assert_eq!(fs::read_to_string(&outside).unwrap(), "theirs");
    motor.run(&["act", "sort", "--skill", "notes"]).succeeded();
    // In words, and with nothing to put aside the way back says so.
    fs::remove_file(directory.join("SKILL.md")).unwrap();
    let told = motor.run_as_owner(&["skill", "rollback", "notes"], "").succeeded();
    assert!(told.stdout.contains("it is approved") && told.stdout.contains(".motor-kept-"), "{told:?}");
    motor.refuses_owner(&["skill", "rollback", "notes"], 1, "not_found");
}

#[test]
fn an_unreadable_skill_is_found_by_the_name_that_was_approved() {
    let world = World::new();
    let directory = world.drop_in("memo", &NOTES);
    world.approve(&["notes", "--tools", "code"]);
    fs::write(directory.join("SKILL.md"), b"\xff").unwrap();
    world.motor.run(&["skill", "review", "notes"]).refused(1, &["notes"]);
    world.motor.run_as_owner(&["skill", "rollback", "notes"], "").succeeded();
    assert_eq!(world.status("memo"), "approved");
}

#[test]
fn an_unreadable_skill_that_nobody_approved_has_no_way_back() {
    let world = World::new();
    let directory = world.drop_in("notes", &[("README.md", "no skill")]);
    world.motor.refuses_owner(&["skill", "rollback", "notes"], 1, "not_found");
    assert_eq!(fs::read_to_string(directory.join("README.md")).unwrap(), "no skill");
    assert_eq!(fs::read_dir(world.skills()).unwrap().count(), 1);
}

#[test]
fn a_review_of_later_files_leaves_the_approval_of_earlier_ones() {
    let world = World::new();
    let motor = &world.motor;
    let directory = world.drop_in("notes", &NOTES);
    world.approve(&["notes", "--tools", "code"]);
    for text in ["By size.\n", "By name.\n"] {
        fs::write(directory.join("references/order.md"), text).unwrap();
        let reviewed = motor.json(&["skill", "review", "notes"]);
        assert_eq!(reviewed["review"]["status"], "reviewed", "{reviewed:#}");
        motor.run(&["act", "sort", "--skill", "notes"]).refused(5, &["motor skill approve"]);
        motor.run_as_owner(&["skill", "reject", "notes"], "").succeeded();
        let ended = motor.run_as_owner(&["skill", "rollback", "notes"], "").succeeded();
        assert!(ended.stdout.contains("it is approved"), "{ended:?}");
        assert_eq!(fs::read_to_string(directory.join("references/order.md")).unwrap(), NOTES[1].1);
        assert_eq!(world.status("notes"), "approved");
        motor.run(&["act", "sort", "--skill", "notes"]).succeeded();
    }
}

/// Paths below a directory of files that have these bytes in them.
fn holding(directory: &Path, bytes: &str) -> Vec<String> {
    let (mut found, mut waiting) = (Vec::new(), vec![directory.to_owned()]);
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(&at).unwrap() {
            let entry = entry.unwrap();
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                waiting.push(entry.path());
            } else if kind.is_file()
                && String::from_utf8_lossy(&fs::read(entry.path()).unwrap_or_default()).contains(bytes)
            {
                found.push(entry.path().strip_prefix(directory).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    found
}

#[test]
fn the_history_of_a_repository_is_no_part_of_a_skill() {
    const CANARY: &str = "canary-of-the-history-7f3a";
    let world = World::new();
    let motor = &world.motor;
    let directory = world.drop_in("notes", &NOTES);
    world.approve(&["notes", "--tools", "code,bash,filesystem"]);
    let before = motor.json(&["skill", "review", "notes"])["review"].clone();
    assert_eq!(before["hasHistory"], serde_json::Value::Null, "{before:#}");
    write(&directory, &[(".git/config", CANARY), (".git/hooks/post-checkout", CANARY)]);
    symlink("/etc/passwd", directory.join(".git/link")).unwrap();
    fs::write(directory.join(".git/pack"), vec![b'a'; 3 << 20]).unwrap();

    let reviewed = motor.json(&["skill", "review", "notes"])["review"].clone();
    assert_eq!((&reviewed["hash"], &reviewed["status"]), (&before["hash"], &json!("approved")), "{reviewed:#}");
    assert_eq!(reviewed["hasHistory"], true);
    let shown = motor.stdout(&["skill", "review", "notes"]);
    is_fit(&shown);
    assert!(shown.contains("`.git` is not part of the skill: not hashed, not given to runs"), "{shown}");
    motor.run(&["skill", "show", "notes", ".git/config"]).refused(2, &["not a file of the skill"]);

    motor.run(&["act", "sort", "--skill", "notes"]).succeeded();
    let given = holding(&motor.home().join("runs"), "Read `references/order.md` first");
    assert!(given.iter().any(|path| path.ends_with("workspace/SKILL.md")), "{given:?}");
    // A name like it is a file like any other.
    write(&directory, &[(".gitignore", "*.log\n")]);
    assert_eq!(world.status("notes"), "needs_reapproval");
    world.approve(&["notes", "--tools", "code"]);
    let old = before["hash"].as_str().unwrap();
    motor.run_as_owner(&["skill", "rollback", "notes", "--to", old], "").succeeded();
    assert!(!directory.join(".gitignore").exists());
    // It stays with the place, and nowhere else.
    let found = holding(motor.home(), CANARY);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|path| path.starts_with("skills/notes/.git/")), "{found:?}");
    assert_eq!(fs::read_dir(world.skills()).unwrap().count(), 1);
    assert_eq!(world.status("notes"), "approved");
}
