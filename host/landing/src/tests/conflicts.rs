//! The owner changes the directory, too.

use super::*;

fn check(plan: &Plan, desk: &Desk, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected.iter().map(|(path, verdict)| ((*path).to_owned(), (*verdict).to_owned())).collect();
    assert_eq!(desk.verdicts(plan), expected);
}

#[test]
fn other_lines_are_merged_and_the_same_lines_conflict() {
    let desk = Desk::new(
        &[("a.txt", "1\n2\n3\n4\n5\n"), ("b.txt", "1\n")],
        &[("a.txt", "one\n2\n3\n4\n5\n"), ("b.txt", "2\n")],
    );
    put(&desk.path("owner"), "a.txt", "1\n2\n3\n4\nfive\n");
    put(&desk.path("owner"), "b.txt", "3\n");
    let plan = desk.plan();
    let conflict = "conflict: it was changed in the meantime, too, in the same lines";
    check(&plan, &desk, &[("a.txt", "merged: one\n2\n3\n4\nfive\n"), ("b.txt", conflict)]);
    let before = desk.now();
    assert!(matches!(desk.land(plan, "first", None, &Steps::default()), Err(LandError::Conflicts(1))));
    assert_eq!(desk.now(), before);
    // Its twin leaves the conflict out.
    let edits = crate::select(desk.edits(), &["a.txt".to_owned()], |edit| edit.path.clone()).unwrap();
    desk.lands(desk.plan_of(edits), "second");
    assert_eq!(desk.now()["a.txt"], "644 one\n2\n3\n4\nfive\n");
    // Taken back, the owner's own change stays.
    desk.undo("second", "third", &Steps::default()).unwrap();
    assert_eq!(desk.now(), before);
}

#[test]
fn what_changed_or_appeared_or_went_is_a_conflict() {
    let owner = [("deleted", "d"), ("edited", "e"), ("gone", "g"), ("dir/x", "x")];
    let desk = Desk::new(
        &owner,
        &[("edited", "E"), ("gone", "G"), ("new", "n"), ("dir/x", "x"), ("dir/y", "y"), ("same", "s")],
    );
    put(&desk.path("owner"), "deleted", "changed");
    put(&desk.path("owner"), "edited", "\0");
    put(&desk.path("owner"), "new", "somebody's");
    put(&desk.path("owner"), "same", "s");
    fs::remove_file(desk.path("owner/gone")).unwrap();
    fs::remove_dir_all(desk.path("owner/dir")).unwrap();
    let plan = desk.plan();
    let expected = [
        ("deleted", "conflict: it was changed in the meantime"),
        ("dir/y", "conflict: its directory is gone"),
        ("edited", "conflict: it was changed in the meantime, too, in the same lines"),
        ("gone", "conflict: it was deleted in the meantime"),
        ("new", "conflict: there is something at this path that the run did not see"),
        ("same", "same"),
    ];
    check(&plan, &desk, &expected);
}

#[test]
fn a_change_between_the_plan_and_the_landing_takes_everything_back() {
    type Change = fn(&Path);
    let ways: [(&str, Change); 7] = [
        ("a file that is replaced", |owner| put(owner, "changed.txt", "mine\n")),
        ("a file that is deleted", |owner| put(owner, "deleted.txt", "mine, and longer")),
        ("a new file", |owner| put(owner, "new.txt", "mine")),
        ("a new directory", |owner| put(owner, "made/", "")),
        ("a missing file", |owner| fs::remove_file(owner.join("deleted.txt")).unwrap()),
        ("a link in the place of a file", |owner| {
            fs::remove_file(owner.join("changed.txt")).unwrap();
            put(owner, "changed.txt -> kept/c.txt", "");
        }),
        ("a link in the place of a directory", |owner| {
            fs::rename(owner.join("old"), owner.join("elsewhere")).unwrap();
            put(owner, "old -> elsewhere", "");
        }),
    ];
    for (way, change) in ways {
        let desk = every_kind();
        let plan = desk.plan();
        change(&desk.path("owner"));
        let before = desk.now();
        let refused = desk.land(plan, "first", None, &Steps::default());
        assert!(matches!(refused, Err(LandError::Changed(_))), "{way}: {refused:?}");
        assert_eq!(desk.now(), before, "{way}");
        assert_eq!(crate::state(&desk.path("first")).unwrap(), Some(State::RolledBack));
    }
}

#[test]
fn what_the_run_did_not_see_keeps_its_directory() {
    let desk = Desk::new(&[("dir/a", "a"), ("other", "o")], &[("other", "o")]);
    put(&desk.path("owner"), "dir/.env", "S=1");
    let landed = desk.lands(desk.plan(), "first");
    assert_eq!(landed.kept, ["dir"]);
    assert_eq!(desk.now().keys().collect::<Vec<_>>(), ["dir", "dir/.env", "other"]);
    desk.undo("first", "second", &Steps::default()).unwrap();
    assert!(desk.now().contains_key("dir/a"));
}

#[test]
fn later_edits_are_kept_when_a_landing_is_taken_back() {
    let desk =
        Desk::new(&[("a", "1\n2\n3\n4\n"), ("b", "b\n")], &[("a", "one\n2\n3\n4\n"), ("b", "B\n"), ("new", "n\n")]);
    desk.lands(desk.plan(), "first");
    put(&desk.path("owner"), "a", "one\n2\n3\nfour\n");
    put(&desk.path("owner"), "b", "mine\n");
    put(&desk.path("owner"), "new", "n, edited\n");
    let (_, edits) = undo(&desk.path("first")).unwrap();
    let plan = desk.plan_of(edits.clone());
    let changed = "conflict: it was changed in the meantime";
    let both = "conflict: it was changed in the meantime, too, in the same lines";
    check(&plan, &desk, &[("new", changed), ("a", "merged: 1\n2\n3\nfour\n"), ("b", both)]);
    let edits = crate::select(edits, &["a".to_owned()], |edit| edit.path.clone()).unwrap();
    desk.lands(desk.plan_of(edits), "second");
    assert_eq!(desk.now()["a"], "644 1\n2\n3\nfour\n");
    assert_eq!(desk.now()["b"], "644 mine\n");
}

#[test]
fn a_repository_is_left_alone() {
    let desk = Desk::new(&[(".git/HEAD", "h"), ("a", "a")], &[(".git/HEAD", "H"), (".git/hooks/x", "x"), ("a", "A")]);
    let plan = desk.plan();
    assert_eq!(plan.entries.iter().filter(|entry| matches!(entry.verdict, Verdict::Refused { .. })).count(), 3);
    desk.lands(plan, "first");
    let now = desk.now();
    assert_eq!((now[".git/HEAD"].as_str(), now["a"].as_str()), ("644 h", "644 A"));
    assert!(!now.contains_key(".git/hooks"));
}

#[test]
fn a_path_that_selects_nothing_is_named_and_a_new_directory_comes_along() {
    let desk = Desk::new(&[("a", "a")], &[("a", "A"), ("x/y/z", "z"), ("x/other", "o")]);
    let at = |edit: &Edit| edit.path.clone();
    let refused = crate::select(desk.edits(), &["a".to_owned(), "b".to_owned()], at);
    assert!(matches!(refused, Err(LandError::Unselected(path)) if path == "b"));
    let edits = crate::select(desk.edits(), &["./x/y/".to_owned()], at).unwrap();
    desk.lands(desk.plan_of(edits), "first");
    assert_eq!(desk.now().keys().collect::<Vec<_>>(), ["a", "x", "x/y", "x/y/z"]);
    assert_eq!(desk.now()["a"], "644 a");
}

#[test]
fn another_directory_at_the_same_path_is_refused() {
    let desk = every_kind();
    let plan = desk.plan();
    fs::rename(desk.path("owner"), desk.path("moved")).unwrap();
    fs::create_dir(desk.path("owner")).unwrap();
    assert!(matches!(desk.land(plan, "first", None, &Steps::default()), Err(LandError::Replaced(_))));
    assert_eq!(desk.now(), Listing::new());
}
