//! Commits in repositories that git made, compared with the words of git.

mod commits;
mod refusals;
mod undone;

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;

use crate::{Change, CommitError, Content, Draft, Intent, Place, Repository, Standing};

/// Whether there is a git that makes repositories; says once in each test that it was skipped.
fn has_git() -> bool {
    let found = Command::new("git").arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: there is no `git` on this machine");
    }
    found
}

/// A repository, and a directory for new contents.
struct Desk {
    root: TempDir,
    /// The directory in the repository that changes are relative to.
    below: &'static str,
    /// The path of the working tree, below the root.
    tree: &'static str,
}

impl Desk {
    /// A repository with a commit of three files. `None` if there is no git.
    fn new() -> Option<Self> {
        let desk = Self::bare()?;
        desk.git("echo one > a.txt; mkdir -p src/deep; echo two > src/b.txt; echo three > src/deep/c.txt");
        desk.git("git add -A; git commit -qm first");
        Some(desk)
    }

    /// A repository without a commit.
    fn bare() -> Option<Self> {
        if !has_git() {
            return None;
        }
        let desk = Self { root: tempfile::tempdir().unwrap(), below: "", tree: "tree" };
        fs::create_dir(desk.root.path().join("tree")).unwrap();
        fs::create_dir(desk.root.path().join("new")).unwrap();
        desk.git("git init -q -b main; git config user.name 'O Wner'; git config user.email owner@example.com");
        Some(desk)
    }

    fn tree(&self) -> PathBuf {
        self.root.path().join(self.tree)
    }

    /// The output of a script in the working tree.
    fn git(&self, script: &str) -> String {
        let output = Command::new("bash")
            .args(["-ec", script])
            .current_dir(self.tree())
            .env_clear()
            .envs([
                ("PATH", "/usr/local/bin:/usr/bin:/bin"),
                ("LC_ALL", "C"),
                ("TZ", "UTC"),
                ("GIT_CONFIG_NOSYSTEM", "1"),
            ])
            .env("HOME", "/nonexistent")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn repository(&self) -> Repository {
        Repository::open(&self.tree().join(self.below)).unwrap()
    }

    /// A changed file. Its content is also put into the working tree when it is landed.
    fn file(&self, path: &str, text: &str) -> Change {
        let content = self.root.path().join("new").join(path.replace('/', "%"));
        fs::write(&content, text).unwrap();
        let hash = Some(base::ContentHash::of(text.as_bytes()));
        Change { path: path.to_owned(), after: Content::File { content, hash, executable: text.starts_with("#!") } }
    }

    fn draft(&self, place: &Place, changes: &[Change]) -> Result<Draft, CommitError> {
        let repository = self.repository();
        repository.draft(place, in_tree(&repository, changes))
    }

    fn intent(&self, place: &Place, changes: &[Change]) -> Intent {
        let repository = self.repository();
        let draft = repository.draft(place, in_tree(&repository, changes)).unwrap();
        repository.write(draft, "Change things\n\nMotor-Run: run_1\n", 1_700_000_000).unwrap()
    }

    /// Changes the files, as a landing does.
    fn land(&self, changes: &[Change]) {
        for change in changes {
            let path = self.tree().join(self.below).join(&change.path);
            match &change.after {
                Content::Missing => fs::remove_file(&path).unwrap(),
                Content::Symlink(target) => symlink(target, &path).unwrap(),
                Content::File { content, executable, .. } => {
                    fs::create_dir_all(path.parent().unwrap()).unwrap();
                    fs::copy(content, &path).unwrap();
                    let mode = if *executable { 0o755 } else { 0o644 };
                    fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
                }
            }
        }
    }

    fn finish(&self, intent: &Intent) -> Standing {
        let repository = Repository::of(intent).unwrap();
        let standing = repository.move_reference(intent).unwrap();
        repository.update_index(intent).unwrap();
        standing
    }

    /// Files and commit, as a landing makes them.
    fn commit(&self, changes: &[Change]) -> Intent {
        let intent = self.intent(&Place::Head, changes);
        self.land(changes);
        assert_eq!(self.finish(&intent), Standing::After);
        self.is_sound();
        intent
    }

    fn is_sound(&self) {
        assert_eq!(self.git("git fsck --full --strict --no-dangling 2>&1"), "");
    }

    fn status(&self) -> String {
        self.git("git status --porcelain")
    }

    /// HEAD, the branches with their commits, the index, and the changed files.
    fn state(&self) -> String {
        self.git(
            "git symbolic-ref -q HEAD || git rev-parse HEAD; git for-each-ref; git ls-files -s; git status --porcelain",
        )
    }
}

fn in_tree(repository: &Repository, changes: &[Change]) -> Vec<Change> {
    changes.iter().map(|change| Change { path: repository.path(&change.path), ..change.clone() }).collect()
}

fn gone(path: &str) -> Change {
    Change { path: path.to_owned(), after: Content::Missing }
}

fn lines(text: &str) -> Vec<&str> {
    text.lines().collect()
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}
