//! Commits that are made.

use super::*;

#[test]
fn the_changes_and_only_they_become_a_commit() {
    let Some(desk) = Desk::new() else { return };
    let changes = [
        desk.file("a.txt", "ONE\n"),
        gone("src/b.txt"),
        desk.file("bin/run", "#!/bin/sh\n"),
        Change { path: "link".to_owned(), after: Content::Symlink("a.txt".to_owned()) },
    ];
    // The owner's own work: staged, changed, and untracked.
    desk.git("echo mine > staged.txt; git add staged.txt; echo mine >> src/deep/c.txt; echo mine > untracked.txt");
    let before = desk.git("git rev-parse HEAD");
    let intent = desk.commit(&changes);
    assert_eq!(desk.git("git rev-parse HEAD").trim(), intent.commit());
    assert_eq!(desk.git("git rev-parse HEAD^"), before);
    let shown = desk.git("git show --summary --stat=80 --format='%an <%ae> %cn <%ce> %at%n%B' HEAD");
    let expected = [
        "O Wner <owner@example.com> O Wner <owner@example.com> 1700000000",
        "Change things",
        "",
        "Motor-Run: run_1",
        "",
        "",
        " a.txt     | 2 +-",
        " bin/run   | 1 +",
        " link      | 1 +",
        " src/b.txt | 1 -",
        " 4 files changed, 3 insertions(+), 2 deletions(-)",
        " create mode 100755 bin/run",
        " create mode 120000 link",
        " delete mode 100644 src/b.txt",
    ];
    assert_eq!(lines(&shown), expected);
    assert_eq!(desk.status(), " M src/deep/c.txt\nA  staged.txt\n?? untracked.txt\n");
    // Without reading the files again.
    assert_eq!(desk.git("git diff-files --name-only"), "src/deep/c.txt\n");
    let log = desk.git("git reflog --format=%gs HEAD; git reflog --format=%gs main");
    assert_eq!(lines(&log), ["commit: Change things", "commit (initial): first"].repeat(2));
}

#[test]
fn a_branch_changes_neither_files_nor_index_nor_head() {
    let Some(desk) = Desk::new() else { return };
    desk.git("echo mine > staged.txt; git add staged.txt; echo mine >> src/b.txt");
    let before = (desk.git("git symbolic-ref HEAD; git rev-parse HEAD; git ls-files -s"), desk.status());
    let index = fs::read(desk.tree().join(".git/index")).unwrap();
    let place = Place::Branch("motor/fix".to_owned());
    let intent = desk.intent(&place, &[desk.file("a.txt", "ONE\n"), desk.file("src/new.txt", "new\n")]);
    assert_eq!((intent.branch(), intent.is_head()), ("motor/fix", false));
    assert_eq!(desk.finish(&intent), Standing::After);
    desk.is_sound();
    assert_eq!(fs::read(desk.tree().join(".git/index")).unwrap(), index);
    let after = (desk.git("git symbolic-ref HEAD; git rev-parse HEAD; git ls-files -s"), desk.status());
    assert_eq!(after, before);
    let named = desk.git("git diff --name-status HEAD motor/fix; git rev-list --count motor/fix");
    assert_eq!(named, "M\ta.txt\nA\tsrc/new.txt\n2\n");
    let again = desk.draft(&place, &[desk.file("a.txt", "2\n")]);
    assert!(matches!(again, Err(CommitError::BranchExists(_))), "{again:?}");
}

#[test]
fn the_first_commit_of_a_repository_has_no_parent() {
    let Some(desk) = Desk::bare() else { return };
    let intent = desk.commit(&[desk.file("deep/a.txt", "a\n")]);
    assert_eq!(desk.git("git rev-list --count main; git status --porcelain; cat deep/a.txt"), "1\na\n");
    // And the same as a branch, while `main` is not there.
    let Some(desk) = Desk::bare() else { return };
    let branch = desk.intent(&Place::Branch("first".to_owned()), &[desk.file("deep/a.txt", "a\n")]);
    assert_eq!(desk.finish(&branch), Standing::After);
    assert_eq!(branch.commit(), intent.commit(), "the same tree, parents, author, time and message");
    assert_eq!(desk.git("git for-each-ref --format='%(refname)'"), "refs/heads/first\n");
}

#[test]
fn a_detached_head_moves_itself() {
    let Some(desk) = Desk::new() else { return };
    desk.git("git checkout -q --detach");
    let main = desk.git("git rev-parse main");
    let intent = desk.commit(&[desk.file("a.txt", "ONE\n")]);
    assert_eq!(intent.branch(), "HEAD");
    assert_eq!(desk.git("git rev-parse main"), main);
    assert_eq!(desk.git("git rev-parse HEAD").trim(), intent.commit());
    assert_eq!(desk.status(), "");
}

#[test]
fn a_subdirectory_and_a_linked_working_tree_are_of_the_repository() {
    let Some(mut desk) = Desk::new() else { return };
    desk.below = "src";
    desk.commit(&[desk.file("b.txt", "TWO\n"), gone("deep/c.txt")]);
    assert_eq!(desk.git("git show --name-status --format= HEAD"), "M\tsrc/b.txt\nD\tsrc/deep/c.txt\n");
    assert_eq!(desk.status(), "");

    desk.git("git worktree add -q ../linked -b side");
    let main = desk.git("git rev-parse main");
    desk.tree = "linked";
    desk.commit(&[desk.file("b.txt", "linked\n")]);
    assert_eq!(desk.git("git show --name-status --format= side"), "M\tsrc/b.txt\n");
    assert_eq!((desk.status(), desk.git("git rev-parse main")), (String::new(), main));
    desk.tree = "tree";
    assert_eq!(desk.status(), "");
}

#[test]
fn references_and_objects_in_packs_are_found() {
    let Some(desk) = Desk::new() else { return };
    desk.git("git branch other; git pack-refs --all; git gc -q");
    let place = Place::Branch("other".to_owned());
    assert!(matches!(desk.draft(&place, &[desk.file("a.txt", "x")]), Err(CommitError::BranchExists(_))));
    desk.commit(&[desk.file("a.txt", "ONE\n"), desk.file("src/deep/d.txt", "d\n")]);
    assert_eq!(desk.status(), "");
}

#[test]
fn a_file_that_became_a_directory_and_the_reverse_are_committed() {
    let Some(desk) = Desk::new() else { return };
    let changes = [gone("a.txt"), gone("src/b.txt"), gone("src/deep/c.txt")];
    let made = [desk.file("a.txt/inside", "x\n"), desk.file("src", "y\n")];
    let intent = desk.intent(&Place::Head, &[&changes[..], &made[..]].concat());
    desk.land(&changes);
    desk.git("rm -r src");
    desk.land(&made);
    assert_eq!(desk.finish(&intent), Standing::After);
    desk.is_sound();
    assert_eq!(desk.git("git ls-tree -r --name-only HEAD"), "a.txt/inside\nsrc\n");
    assert_eq!(desk.status(), "");
    desk.git("rm -r a.txt src; git restore -s HEAD^ .");
    assert_eq!(desk.finish(&intent.inverse()), Standing::After);
    assert_eq!(
        (desk.status(), desk.git("git ls-files")),
        (String::new(), "a.txt\nsrc/b.txt\nsrc/deep/c.txt\n".to_owned())
    );
}

#[test]
fn ignored_files_stay_out_and_tracked_ones_do_not() {
    let Some(desk) = Desk::new() else { return };
    desk.git("printf '*.log\\nbuild/\\n' > .gitignore; echo old > kept.log; git add -f kept.log .gitignore; git commit -qm i");
    let changes = [desk.file("kept.log", "new\n"), desk.file("b.log", "b\n"), desk.file("build/x", "x\n")];
    let draft = desk.draft(&Place::Head, &changes).unwrap();
    assert_eq!((draft.left_out(), draft.paths()), (&["b.log".to_owned(), "build/x".to_owned()][..], 1));
    desk.commit(&changes);
    assert_eq!(desk.git("git show --name-only --format= HEAD"), "kept.log\n");
    let only = desk.draft(&Place::Head, &changes[1..]);
    assert!(matches!(only, Err(CommitError::Empty)), "{only:?}");
}

#[test]
fn changes_of_the_owner_that_would_be_committed_are_named() {
    let Some(desk) = Desk::new() else { return };
    desk.git("echo mine >> src/b.txt; echo mine > own.txt");
    let changes = [desk.file("a.txt", "x\n"), desk.file("src/b.txt", "x\n"), desk.file("own.txt", "x\n")];
    let draft = desk.draft(&Place::Head, &changes).unwrap();
    assert_eq!(draft.own(), ["src/b.txt", "own.txt"]);
    assert_eq!((draft.branch(), draft.author().as_str()), ("main", "O Wner <owner@example.com>"));
}

#[test]
fn no_hook_and_no_filter_runs() {
    let Some(desk) = Desk::new() else { return };
    desk.git(
        "for hook in pre-commit commit-msg post-commit reference-transaction post-index-change; do
                  printf '#!/bin/sh\\ntouch %s\\nexit 1\\n' \"$PWD/ran\" > .git/hooks/$hook; chmod +x .git/hooks/$hook
              done
              git config filter.f.clean 'touch ran; cat'; git config core.fsmonitor 'touch ran'
              echo '*.txt filter=f' > .git/info/attributes",
    );
    let intent = desk.intent(&Place::Head, &[desk.file("a.txt", "ONE\n")]);
    desk.land(&[desk.file("a.txt", "ONE\n")]);
    assert_eq!(desk.finish(&intent), Standing::After);
    assert!(!desk.tree().join("ran").exists());
}
