//! Repositories made by git itself, and calls of both.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime};

use crate::{Answer, Invocation, Network};

/// The environment of both: no configuration but the repository's, and times that do not change.
pub(super) const ENVIRONMENT: [(&str, &str); 14] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_AUTHOR_NAME", "A U Thor"),
    ("GIT_AUTHOR_EMAIL", "author@example.com"),
    ("GIT_COMMITTER_NAME", "C O Mitter"),
    ("GIT_COMMITTER_EMAIL", "committer@example.com"),
    ("GIT_AUTHOR_DATE", "1700000000 +0100"),
    ("GIT_COMMITTER_DATE", "1700000000 +0100"),
    ("GIT_TEST_DATE_NOW", "1800000000"),
    ("LC_ALL", "C"),
    ("TZ", "UTC"),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
];

/// Whether there is a git to compare with; says once in each test that it was skipped.
pub(super) fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no `git` on this machine to compare with");
    }
    found
}

/// A shell with git in a directory. Dates go on by a minute with each `tick`.
pub(super) fn script(directory: &Path, script: &str) -> String {
    const HEAD: &str = "set -e\nT=1700000000\ntick() { T=$((T + 60)); export GIT_AUTHOR_DATE=\"$T +0100\" GIT_COMMITTER_DATE=\"$T \
                        +0100\"; }\nci() { tick; git add -A; git commit -qm \"$@\"; }\ninit() { git init -q -b main \"$@\"; }\n";
    let output = Command::new("bash")
        .arg("-c")
        .arg(format!("{HEAD}{script}"))
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .envs(ENVIRONMENT)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// git's own answer.
pub(super) fn theirs(directory: &Path, arguments: &[&str]) -> Answer {
    let output = Command::new("git")
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", directory)
        .envs(ENVIRONMENT)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    Answer { stdout: output.stdout, stderr: output.stderr, code: output.status.code().unwrap() }
}

/// The answer of this crate in a directory below a workspace.
pub(super) fn ours(root: &Path, directory: &Path, arguments: &[&str]) -> Answer {
    with_environment(root, directory, arguments, ENVIRONMENT.into_iter())
}

pub(super) fn with_environment<'a>(
    root: &Path,
    directory: &Path,
    arguments: &[&str],
    environment: impl Iterator<Item = (&'a str, &'a str)>,
) -> Answer {
    crate::run(invocation(root, directory, arguments, environment))
}

/// The answer of this crate with a network.
pub(super) fn ours_over(network: &Network, root: &Path, directory: &Path, arguments: &[&str]) -> Answer {
    let call = invocation(root, directory, arguments, ENVIRONMENT.into_iter());
    crate::run(Invocation { network: Some(network.clone()), ..call })
}

fn invocation<'a>(
    root: &Path,
    directory: &Path,
    arguments: &[&str],
    environment: impl Iterator<Item = (&'a str, &'a str)>,
) -> Invocation {
    Invocation {
        root: root.to_owned(),
        shown: root.to_owned(),
        directory: directory.to_owned(),
        arguments: arguments.iter().map(|argument| (*argument).to_owned()).collect(),
        environment: environment.map(|(name, value)| (name.to_owned(), value.to_owned())).collect::<HashMap<_, _>>(),
        input: Vec::new(),
        now: SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000),
        deadline: None,
        modes: Default::default(),
        network: None,
        reserved: Some(".motor-output".to_owned()),
    }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Splits a command line at spaces; `'…'` keeps them.
pub(super) fn words(line: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let (mut quoted, mut inside) = (false, false);
    for letter in line.chars() {
        match letter {
            '\'' => {
                quoted = !quoted;
                if !inside {
                    words.push(String::new());
                }
                inside = true;
            }
            letter if letter.is_whitespace() && !quoted => inside = false,
            letter => {
                if !inside {
                    words.push(String::new());
                }
                inside = true;
                words.last_mut().unwrap().push(letter);
            }
        }
    }
    words
}

/// A copy of a tree.
pub(super) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

/// A fresh directory, by its real name.
pub(super) fn workspace() -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().canonicalize().unwrap();
    (directory, path)
}
