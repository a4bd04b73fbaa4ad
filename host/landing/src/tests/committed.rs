//! Landings with a commit: killed at every step, and beside an owner who uses the same branch.

use std::process::{Command, Stdio};

use repository::{CommitError, Place};

use super::*;
use crate::{CommitEnd, CommitProgress, commit, draft};

fn git(desk: &Desk, script: &str) -> String {
    let output = Command::new("bash")
        .args(["-ec", script])
        .current_dir(desk.path("owner"))
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .envs(["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"].map(|name| (name, "1600000000 +0000")))
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A directory that is a repository whose files are committed, and a staged file of the owner. `None` if there is no git.
fn desk() -> Option<Desk> {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `git` on this machine");
        return None;
    }
    let desk = every_kind();
    let init = "git init -q -b main; git config user.name x; git config user.email x@example.com; git add -A
                git commit -qm first; echo mine > staged.txt; git add staged.txt";
    git(&desk, init);
    Some(desk)
}

/// More steps than a landing has.
const MANY: usize = 1000;

/// HEAD, the branches, the index, and the changed files.
fn state(desk: &Desk) -> String {
    git(desk, "git symbolic-ref HEAD; git for-each-ref; git ls-files -s; git status --porcelain")
}

fn intent(desk: &Desk, plan: &Plan, place: &Place) -> Intent {
    let (repository, draft) = draft(plan, place).unwrap();
    repository.write(draft, "Land\n", 1_700_000_000).unwrap_or_else(|error| panic!("{error:?} {}", state(desk)))
}

fn land(desk: &Desk, steps: &Steps) -> Result<Landed, LandError> {
    let plan = desk.plan();
    let intent = intent(desk, &plan, &Place::Head);
    desk.land_as(plan, "first", None, Some(intent), steps)
}

fn take_back(desk: &Desk, steps: &Steps) -> Result<Landed, LandError> {
    let plan = desk.plan_of(undo(&desk.path("first")).unwrap().1);
    let inverse = commit(&desk.path("first")).unwrap().unwrap().intent.inverse();
    desk.land_as(plan, "second", Some("first"), Some(inverse), steps)
}

fn ended(end: CommitEnd) -> Option<CommitProgress> {
    Some(CommitProgress::Ended(end))
}

/// The state and the files after a whole landing, and its number of steps.
fn whole(begin: impl Fn(&Desk, &Steps) -> Result<Landed, LandError>, desk: &Desk) -> (String, Listing, usize) {
    let steps = after(MANY);
    let landed = begin(desk, &steps).unwrap();
    assert_eq!(landed.commit, ended(CommitEnd::Done));
    (state(desk), desk.now(), MANY - steps.left.unwrap().get())
}

/// Kills at each of the last steps and at some of the earlier ones, which `interrupted` knows all, and checks that files, branch and index are all before or all after.
fn at_each_step(
    make: impl Fn() -> Desk,
    begin: impl Fn(&Desk, &Steps) -> Result<Landed, LandError> + Copy,
    landing: &str,
) {
    let example = make();
    let before = (state(&example), example.now());
    let (now, files, count) = whole(begin, &example);
    let after = (now, files);
    assert_ne!(before.0, after.0);
    let mut ends = [0, 0];
    for step in (0..count).filter(|step| step + 6 > count || step % 6 == 0) {
        let desk = make();
        let done = begin(&desk, &self::after(step));
        assert!(matches!(done, Err(LandError::Killed)), "step {step}: {done:?}");
        for again in (0..60).step_by(1 + step % 3 * 10) {
            if recover_with(&desk.path(landing), &self::after(again)).is_ok() {
                break;
            }
        }
        let recovered = crate::recover(&desk.path(landing)).unwrap();
        let now = (state(&desk), desk.now());
        match recovered {
            Some(State::Landed) => assert_eq!(now, after, "step {step}"),
            None | Some(State::RolledBack) => assert_eq!(now, before, "step {step}"),
            other => panic!("step {step}: {other:?}"),
        }
        ends[usize::from(recovered == Some(State::Landed))] += 1;
        assert_eq!(git(&desk, "git fsck --full --strict --no-dangling 2>&1"), "", "step {step}");
    }
    assert!(ends[0] > 3 && ends[1] > 4, "{ends:?}");
}

#[test]
fn a_killed_commit_ends_in_one_or_the_other() {
    if desk().is_some() {
        at_each_step(|| desk().unwrap(), land, "first");
    }
}

#[test]
fn a_killed_undo_of_a_commit_ends_in_one_or_the_other() {
    let landed = || {
        let desk = desk().unwrap();
        land(&desk, &Steps::default()).unwrap();
        desk
    };
    if desk().is_some() {
        at_each_step(landed, take_back, "second");
    }
}

#[test]
fn a_commit_is_made_of_the_landed_files_and_taken_back() {
    let Some(desk) = desk() else { return };
    let before = (state(&desk), desk.now());
    whole(land, &desk);
    assert_eq!(git(&desk, "git status --porcelain"), "A  staged.txt\n");
    assert_eq!(
        git(&desk, "git rev-list --count HEAD; git show :changed.txt; git show HEAD:made/deep/d.txt"),
        "2\ntwo\nd"
    );
    whole(take_back, &desk);
    assert_eq!((state(&desk), desk.now()), before);
}

#[test]
fn a_branch_takes_no_file_and_is_taken_back() {
    let Some(desk) = desk() else { return };
    let before = (state(&desk), desk.now());
    let mut plan = desk.plan();
    let intent = intent(&desk, &plan, &Place::Branch("run".to_owned()));
    plan.entries.clear();
    let landed = desk.land_as(plan, "first", None, Some(intent), &Steps::default()).unwrap();
    assert_eq!((landed.paths, landed.commit), (0, ended(CommitEnd::Done)));
    assert_eq!(desk.now(), before.1);
    assert_eq!(git(&desk, "git show run:changed.txt; git rev-list --count run"), "two\n2\n");
    take_back(&desk, &Steps::default()).unwrap();
    assert_eq!((state(&desk), desk.now()), before);
}

#[test]
fn a_branch_that_the_owner_moved_in_between_stays_and_the_files_are_landed() {
    let Some(desk) = desk() else { return };
    let plan = desk.plan();
    let intent = intent(&desk, &plan, &Place::Head);
    git(&desk, "git commit -qm faster");
    let landed = desk.land_as(plan, "first", None, Some(intent), &Steps::default()).unwrap();
    assert_eq!(landed.commit, ended(CommitEnd::Elsewhere));
    assert_eq!(git(&desk, "git log --format=%s"), "faster\nfirst\n");
    assert_eq!(fs::read_to_string(desk.path("owner/changed.txt")).unwrap(), "two\n");
    assert!(git(&desk, "git status --porcelain").contains(" M changed.txt\n"));
    assert_eq!(commit(&desk.path("first")).unwrap().unwrap().end, Some(CommitEnd::Elsewhere));
}

#[test]
fn commits_of_the_owner_on_top_stay_and_the_files_go_back() {
    let Some(desk) = desk() else { return };
    land(&desk, &Steps::default()).unwrap();
    git(&desk, "git commit -qm on-top");
    let taken = take_back(&desk, &Steps::default()).unwrap();
    assert_eq!(taken.commit, ended(CommitEnd::Elsewhere));
    assert_eq!(git(&desk, "git log --format=%s"), "on-top\nLand\nfirst\n");
    assert_eq!(fs::read_to_string(desk.path("owner/changed.txt")).unwrap(), "one\n");
}

#[test]
fn a_locked_index_waits_and_the_next_recovery_finishes() {
    let Some(desk) = desk() else { return };
    let plan = desk.plan();
    let intent = intent(&desk, &plan, &Place::Head);
    git(&desk, "touch .git/index.lock");
    let landed = desk.land_as(plan, "first", None, Some(intent), &Steps::default()).unwrap();
    assert!(matches!(landed.commit, Some(CommitProgress::Waits(_))), "{landed:?}");
    assert_eq!(commit(&desk.path("first")).unwrap().unwrap().end, None);
    git(&desk, "rm .git/index.lock");
    assert_eq!(crate::recover(&desk.path("first")).unwrap(), Some(State::Landed));
    assert_eq!(git(&desk, "git status --porcelain"), "A  staged.txt\n");
}

#[test]
fn a_directory_without_a_repository_is_refused() {
    let desk = every_kind();
    let refused = draft(&desk.plan(), &Place::Head);
    assert!(matches!(refused, Err(LandError::Commit(CommitError::NoRepository(_)))), "{:?}", refused.err());
}
