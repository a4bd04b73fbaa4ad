//! `git` in the shell as a component, over a repository that git made, against git itself (SPEC LAND-7).

use std::path::Path;
use std::process::{Command, Stdio};

use super::{Call, MEMORY_BYTES, copy, parts, text};

/// A packed repository with changes in its working tree.
const SETUP: &str = "git init -q -b main; mkdir -p src; \
    for i in $(seq 1 40); do seq $i $((i + 200)) > numbers; echo \"$i\" >> src/list; git add -A; git commit -qm \"commit $i\"; done; \
    printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh; git add -A; git commit -qm 'a script'; git tag v1; git gc -q; \
    printf '*.log\\n' > .gitignore; echo x > a.log; sed -i 5d numbers; echo more >> src/list; echo new > 'a file'";

/// Each is run in the component and by git's own program, one after the other in the same working tree.
const SCRIPTS: [&str; 12] = [
    "git status; git status --porcelain -b",
    "git diff; git diff --stat",
    "git log --oneline | head -5; git log -3 -p --stat",
    "git show HEAD~7; git show v1:src/list | tail -2; git rev-parse HEAD v1",
    "cd src && git status -s && git diff list; git ls-files",
    "git add -A && git status -s; git diff --cached --stat",
    "git commit -m 'from the shell' -m 'With a body.'; git log -1 --stat",
    "git switch -c topic 2>/dev/null; echo t > topic; git add topic; git commit -qm topic; git log --oneline -2; git switch -q main",
    "git branch; ls; git restore --source HEAD~1 src/list; git status -s; git checkout -- src/list; git status -s",
    "git reset -q --hard HEAD~1; git status -s; cat numbers | wc -l",
    "for f in $(git diff --name-only HEAD~3 HEAD); do echo \"changed $f\"; done",
    "git log --format='%h %s' -- run.sh; git push; echo $?",
];

/// The identity and time of both.
const EXPORTS: &str = "export GIT_AUTHOR_NAME=Ann GIT_AUTHOR_EMAIL=ann@example.com GIT_COMMITTER_NAME=Ann GIT_COMMITTER_EMAIL=ann@example.com \
                       GIT_AUTHOR_DATE='1700000000 +0000' GIT_COMMITTER_DATE='1700000000 +0000'; ";

/// Standard output and exit code of a script with git itself.
fn by_git(directory: &Path, script: &str) -> (String, i32) {
    let output = Command::new("bash")
        .args(["-c", &format!("{EXPORTS}{script}")])
        .current_dir(directory)
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C"), ("TZ", "UTC"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    (String::from_utf8_lossy(&output.stdout).trim_end_matches('\n').to_owned(), output.status.code().unwrap())
}

#[test]
fn git_does_what_git_does_in_a_repository() {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `git` on this machine to compare with");
        return;
    }
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (_, code) = by_git(here.path(), SETUP);
    assert_eq!(code, 0);
    copy(here.path(), there.path());
    let mut wrong = String::new();
    let mut peak = 0;
    for script in SCRIPTS {
        let finished = tests::block_on(Call::over(here.path()).make(&format!("{EXPORTS}{script}")));
        peak = peak.max(finished.usage.peak_memory_bytes);
        let found = parts(&text(finished, script));
        let expected = by_git(there.path(), script);
        // `push` fails either way, each with a reason of its own.
        let same = if script.contains("push") {
            expected.0.lines().next() == found.0.lines().next()
        } else {
            expected == found
        };
        if !same {
            wrong.push_str(&format!("{script}:\n  git  {expected:?}\n  here {found:?}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
    assert!(peak <= MEMORY_BYTES, "{peak}");
    // The repository is sound, and is the same as the one of git.
    let check =
        "git fsck --full --strict && git log --all --format='%H %T %s' && git status --porcelain && git ls-files -s";
    assert_eq!(by_git(here.path(), check), by_git(there.path(), check));
    assert!(by_git(here.path(), "git log --all --format=%s").0.contains("topic"));
}
