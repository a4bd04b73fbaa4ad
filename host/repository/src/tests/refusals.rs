//! Repositories and paths that are refused; each has a twin in `commits`.

use super::*;

/// The refusal of a draft on `HEAD`, after a script.
fn refused(script: &str, path: &str) -> Option<CommitError> {
    let desk = Desk::new()?;
    desk.git(script);
    desk.draft(&Place::Head, &[desk.file(path, "x\n")]).err().or_else(|| panic!("`{script}` is not refused"))
}

#[test]
fn a_directory_outside_of_any_repository_is_refused() {
    let root = tempfile::tempdir().unwrap();
    assert!(matches!(Repository::open(root.path()), Err(CommitError::NoRepository(_))));
    let Some(desk) = Desk::new() else { return };
    for inside in [".git", ".git/objects"] {
        assert!(Repository::open(&desk.tree().join(inside)).is_err(), "{inside}");
    }
    desk.git("git init -q --bare ../naked.git");
    assert!(Repository::open(&desk.root.path().join("naked.git")).is_err());
    desk.git("git config core.worktree /usr");
    assert!(matches!(Repository::open(&desk.tree()), Err(CommitError::NoRepository(_))));
}

#[test]
fn an_unknown_owner_is_refused() {
    let Some(error) = refused("git config user.name ''", "a.txt") else { return };
    assert!(matches!(error, CommitError::Identity), "{error:?}");
    assert!(error.remedy().unwrap().contains("git config --global user.name"));
    let error = refused("git config user.email '<>'", "a.txt").unwrap();
    assert!(matches!(error, CommitError::Identity), "{error:?}");
}

#[test]
fn a_merge_or_rebase_in_progress_is_refused_and_a_branch_is_not() {
    let fork = "git checkout -q -b side; echo side > a.txt; git commit -qam side; git checkout -q main
                echo main > a.txt; git commit -qam main;";
    for (command, named) in [
        ("git merge side || true", "a merge"),
        ("git rebase side || true", "a rebase"),
        ("git cherry-pick side || true", "a cherry-pick"),
        ("git revert --no-edit HEAD^ || true", "a revert"),
    ] {
        let Some(error) = refused(&format!("{fork} {command}"), "new.txt") else { return };
        assert!(matches!(error, CommitError::InProgress(name) if name == named), "{command}: {error:?}");
    }
    let desk = Desk::new().unwrap();
    desk.git(&format!("{fork} git merge side || true"));
    let intent = desk.intent(&Place::Branch("meanwhile".to_owned()), &[desk.file("new.txt", "x\n")]);
    assert_eq!(desk.finish(&intent), Standing::After);
    desk.git("git merge --abort; git stash list");
    // Unmerged files without an operation.
    let error = refused(
        &format!("{fork} echo stashed > a.txt; git stash -q; git reset -q --hard side; git stash apply || true"),
        "n",
    );
    assert!(matches!(error, Some(CommitError::Unmerged)), "{error:?}");
}

#[test]
fn a_path_in_a_repository_within_is_refused() {
    let sub = "git init -q -b main sub; (cd sub; git -c user.name=x -c user.email=x@y commit -q --allow-empty -m x);";
    let Some(error) = refused(&format!("{sub} git add sub 2>/dev/null; git commit -qm sub"), "sub/x.txt") else {
        return;
    };
    assert!(matches!(error, CommitError::Nested(_)), "{error:?}");
    assert!(error.remedy().unwrap().contains("without `--commit`"));
    let emptied = format!("{sub} git add sub 2>/dev/null; git commit -qm sub; rm -rf sub; mkdir sub");
    for script in [emptied.as_str(), sub] {
        let error = refused(script, "sub/deep/x.txt").unwrap();
        assert!(matches!(error, CommitError::Nested(_)), "{error:?}");
    }
    // A file beside it is committed.
    let desk = Desk::new().unwrap();
    desk.git(&format!("{sub} git add sub 2>/dev/null; git commit -qm sub"));
    desk.commit(&[desk.file("subject.txt", "x\n")]);
    assert_eq!(desk.status(), "");
}

#[test]
fn a_staged_file_in_the_way_is_refused() {
    for (script, path) in
        [("mkdir way; echo x > way/x; git add way; rm -r way", "way"), ("echo x > way; git add way; rm way", "way/x")]
    {
        let Some(error) = refused(script, path) else { return };
        assert!(matches!(error, CommitError::Blocked(_)), "{error:?}");
    }
}

#[test]
fn invalid_branches_and_paths_are_refused() {
    let Some(desk) = Desk::new() else { return };
    let changes = [desk.file("a.txt", "ONE\n")];
    for name in ["", "-x", "HEAD", "a..b", "a b", "a~1", "x.lock", "/x", "x/", "@{", "a\nb", "../x", &"x".repeat(300)] {
        let found = desk.draft(&Place::Branch(name.to_owned()), &changes);
        assert!(matches!(found, Err(CommitError::BranchName(_))), "{name:?}: {found:?}");
    }
    for name in ["x", "motor/run-1", "ä"] {
        desk.draft(&Place::Branch(name.to_owned()), &changes).unwrap();
    }
    for path in [".git/hooks/post-commit", "src/.GIT/config", "a/../b"] {
        let repository = desk.repository();
        let draft = repository.draft(&Place::Head, vec![Change { path: path.to_owned(), ..desk.file("x", "x") }]);
        let written = draft.and_then(|draft| repository.write(draft, "m", 0));
        assert!(written.is_err(), "{path}: {written:?}");
    }
}

#[test]
fn a_commit_without_a_change_is_refused() {
    let Some(desk) = Desk::new() else { return };
    let same = desk.draft(&Place::Head, &[desk.file("a.txt", "one\n"), gone("never.txt")]);
    assert!(matches!(same, Err(CommitError::Empty)), "{same:?}");
}

#[test]
fn a_content_that_changed_in_between_is_refused() {
    let Some(desk) = Desk::new() else { return };
    let change = desk.file("a.txt", "ONE\n");
    let draft = desk.draft(&Place::Head, std::slice::from_ref(&change)).unwrap();
    desk.file("a.txt", "other\n");
    let written = desk.repository().write(draft, "m", 0);
    assert!(matches!(written, Err(CommitError::Changed(_))), "{written:?}");
}

#[test]
fn a_repository_of_another_form_is_refused() {
    for form in ["--object-format=sha256", "--ref-format=reftable"] {
        let Some(desk) = Desk::new() else { return };
        desk.git(&format!(
            "git init -q {form} ../other; cd ../other; git config user.name x; git config user.email x@y"
        ));
        let found = Repository::open(&desk.root.path().join("other"));
        assert!(found.is_err(), "{form}: {found:?}");
    }
}
