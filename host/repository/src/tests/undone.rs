//! Commits that are taken back, and owners who were faster.

use super::*;

#[test]
fn a_commit_is_taken_back_and_made_again() {
    let Some(desk) = Desk::new() else { return };
    desk.git("echo mine > staged.txt; git add staged.txt");
    let before = desk.state();
    let changes = [desk.file("a.txt", "ONE\n"), gone("src/b.txt"), desk.file("new.txt", "new\n")];
    let intent = desk.commit(&changes);
    let after = desk.state();
    desk.git("echo one > a.txt; echo two > src/b.txt; rm new.txt");
    let back = intent.inverse();
    assert_eq!(desk.repository().standing(&back).unwrap(), Standing::Before);
    assert_eq!(desk.finish(&back), Standing::After);
    assert_eq!(desk.state(), before);
    desk.is_sound();
    desk.land(&changes);
    assert_eq!(desk.finish(&back.inverse()), Standing::After);
    assert_eq!(desk.state(), after);
    assert_eq!(back.inverse().commit(), intent.commit());
}

#[test]
fn the_first_commit_and_a_branch_are_taken_back() {
    let Some(desk) = Desk::bare() else { return };
    let intent = desk.commit(&[desk.file("a.txt", "a\n")]);
    desk.git("rm a.txt");
    assert_eq!(desk.finish(&intent.inverse()), Standing::After);
    assert_eq!(desk.state(), "refs/heads/main\n");

    let Some(desk) = Desk::new() else { return };
    let before = desk.state();
    let branch = desk.intent(&Place::Branch("side/x".to_owned()), &[desk.file("a.txt", "a\n")]);
    desk.finish(&branch);
    assert_eq!(desk.finish(&branch.inverse()), Standing::After);
    assert_eq!(desk.state(), before);
    assert!(!desk.tree().join(".git/refs/heads/side").exists());
}

#[test]
fn a_branch_that_the_owner_moved_stays() {
    let Some(desk) = Desk::new() else { return };
    let changes = [desk.file("a.txt", "ONE\n")];
    // Before the commit is made.
    let intent = desk.intent(&Place::Head, &changes);
    desk.git("git commit -q --allow-empty -m faster");
    let before = desk.state();
    assert_eq!(desk.finish(&intent), Standing::Elsewhere);
    assert_eq!(desk.state(), before);
    // Another branch at the same commit.
    let intent = desk.intent(&Place::Head, &changes);
    desk.git("git checkout -q -b other");
    let before = desk.state();
    assert_eq!(desk.finish(&intent), Standing::Elsewhere);
    assert_eq!(desk.state(), before);
    desk.git("git checkout -q main");
    desk.land(&changes);
    assert_eq!(desk.finish(&intent), Standing::After);
    // On top of it.
    desk.git("git commit -q --allow-empty -m on-top");
    let before = desk.state();
    assert_eq!(desk.repository().standing(&intent).unwrap(), Standing::BuiltOn);
    assert_eq!(desk.finish(&intent.inverse()), Standing::Elsewhere);
    assert_eq!(desk.state(), before);
    // A branch with the name of the new one.
    let branch = desk.intent(&Place::Branch("b".to_owned()), &[desk.file("a.txt", "2\n")]);
    desk.git("git branch b");
    let before = desk.state();
    assert_eq!(desk.finish(&branch), Standing::Elsewhere);
    assert_eq!(desk.state(), before);
}

#[test]
fn a_moved_branch_is_known_while_another_is_checked_out() {
    let Some(desk) = Desk::new() else { return };
    let changes = [desk.file("a.txt", "ONE\n")];
    let intent = desk.intent(&Place::Head, &changes);
    desk.land(&changes);
    let repository = desk.repository();
    assert_eq!(repository.move_reference(&intent).unwrap(), Standing::After);
    // Killed before the index; the owner goes on with another branch.
    desk.git("git reset -q --hard; git checkout -q -b other HEAD^");
    let before = desk.state();
    assert_eq!(desk.finish(&intent), Standing::After);
    assert_eq!(desk.state(), before);
    assert_eq!(desk.repository().standing(&intent.inverse()).unwrap(), Standing::Elsewhere);
}

#[test]
fn an_entry_that_the_owner_staged_since_stays() {
    let Some(desk) = Desk::new() else { return };
    let changes = [desk.file("a.txt", "ONE\n"), desk.file("src/b.txt", "TWO\n")];
    let intent = desk.intent(&Place::Head, &changes);
    desk.land(&changes);
    desk.git("echo staged > a.txt; git add a.txt");
    assert_eq!(desk.finish(&intent), Standing::After);
    assert_eq!(desk.status(), "M  a.txt\n");
    assert_eq!(desk.git("git show :a.txt"), "staged\n");
}

#[test]
fn a_file_that_the_owner_edited_since_is_seen_as_changed() {
    let Some(desk) = Desk::new() else { return };
    let changes = [desk.file("a.txt", "ONE\n")];
    let intent = desk.intent(&Place::Head, &changes);
    desk.land(&changes);
    write(&desk.tree().join("a.txt"), "TWO\n");
    assert_eq!(desk.finish(&intent), Standing::After);
    assert_eq!(desk.status(), " M a.txt\n");
}

#[test]
fn a_locked_index_fails_and_is_tried_again() {
    let Some(desk) = Desk::new() else { return };
    let changes = [desk.file("a.txt", "ONE\n")];
    let intent = desk.intent(&Place::Head, &changes);
    desk.land(&changes);
    let repository = desk.repository();
    write(&desk.tree().join(".git/refs/heads/main.lock"), "");
    assert!(repository.move_reference(&intent).is_err());
    desk.git("rm .git/refs/heads/main.lock; touch .git/index.lock");
    assert_eq!(repository.move_reference(&intent).unwrap(), Standing::After);
    assert!(repository.update_index(&intent).is_err());
    desk.git("rm .git/index.lock");
    assert_eq!(desk.finish(&intent), Standing::After);
    assert_eq!(desk.status(), "");
}
