//! Landings in real directories, interrupted at every step.

mod committed;
mod conflicts;
mod interrupted;
mod races;
mod random;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use layer::{Tree, stat_of};
use repository::Intent;
use tempfile::TempDir;

use crate::apply::land_with;
use crate::recover::recover_with;
use crate::step::Steps;
use crate::{Edit, LandError, Landed, Landing, Plan, Planning, Side, State, Target, Verdict, plan, undo};

/// Paths with their entries.
type Listing = BTreeMap<String, String>;

/// A directory of the owner, its copy of when the run began, and the run's version of it.
struct Desk {
    root: TempDir,
}

impl Desk {
    /// Entries end with `/` for directories, or have ` -> ` for links.
    fn new(owner: &[(&str, &str)], wanted: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        for (directory, entries) in [("owner", owner), ("base", owner), ("wanted", wanted)] {
            let directory = root.path().join(directory);
            fs::create_dir(&directory).unwrap();
            entries.iter().for_each(|(path, text)| put(&directory, path, text));
        }
        Self { root }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn target(&self) -> Target {
        let found = stat_of(Tree::open(&self.path("owner")).unwrap().handle()).unwrap();
        let (device, inode) = (found.device, found.inode);
        Target { directory: self.path("owner"), device, inode, prefix: String::new() }
    }

    /// The edits that lead from the copy to the run's version.
    fn edits(&self) -> Vec<Edit> {
        let (base, wanted) = (listing(&self.path("base")), listing(&self.path("wanted")));
        let side = |listing: &Listing, tree: &str, path: &str| match listing.get(path).map(String::as_str) {
            None => Side::Missing,
            Some("/") => Side::Directory,
            Some(link) if link.starts_with("-> ") => Side::Symlink { target: Some(link[3..].to_owned()) },
            Some(_) => Side::File { content: Some(self.path(tree).join(path)) },
        };
        let mut paths: Vec<_> = base.keys().chain(wanted.keys()).cloned().collect();
        paths.sort();
        paths.dedup();
        paths
            .into_iter()
            .filter(|path| base.get(path) != wanted.get(path))
            .map(|path| Edit {
                target: 0,
                before: side(&base, "base", &path),
                after: side(&wanted, "wanted", &path),
                path,
            })
            .collect()
    }

    fn plan(&self) -> Plan {
        self.plan_of(self.edits())
    }

    fn plan_of(&self, edits: Vec<Edit>) -> Plan {
        let (targets, merged) = ([self.target()], self.path("merged"));
        let began = UNIX_EPOCH + Duration::from_secs(1 << 40);
        plan(Planning { targets: &targets, began, merged: &merged }, edits).unwrap()
    }

    fn land(&self, plan: Plan, landing: &str, undoes: Option<&str>, steps: &Steps) -> Result<Landed, LandError> {
        self.land_as(plan, landing, undoes, None, steps)
    }

    fn land_as(
        &self,
        plan: Plan,
        landing: &str,
        undoes: Option<&str>,
        commit: Option<Intent>,
        steps: &Steps,
    ) -> Result<Landed, LandError> {
        let undoes = undoes.map(|name| self.path(name));
        let name = format!(".motor-landing-{landing}");
        let landing = Landing { directory: &self.path(landing), name: &name, undoes: undoes.as_deref(), commit };
        land_with(plan, landing, steps)
    }

    fn lands(&self, plan: Plan, landing: &str) -> Landed {
        self.land(plan, landing, None, &Steps::default()).unwrap()
    }

    fn undo(&self, landing: &str, by: &str, steps: &Steps) -> Result<Landed, LandError> {
        let plan = self.plan_of(undo(&self.path(landing)).unwrap().1);
        self.land(plan, by, Some(landing), steps)
    }

    fn now(&self) -> Listing {
        listing(&self.path("owner"))
    }

    fn wanted(&self) -> Listing {
        listing(&self.path("wanted"))
    }

    fn verdicts(&self, plan: &Plan) -> Vec<(String, String)> {
        let shown = |entry: &crate::Planned| match &entry.verdict {
            Verdict::Clean => "clean".to_owned(),
            Verdict::Merged { content } => format!("merged: {}", fs::read_to_string(content).unwrap()),
            Verdict::Same => "same".to_owned(),
            Verdict::Conflict { reason } => format!("conflict: {reason}"),
            Verdict::Refused { reason } => format!("refused: {reason}"),
        };
        plan.entries.iter().map(|entry| (entry.edit.path.clone(), shown(entry))).collect()
    }
}

fn put(root: &Path, path: &str, text: &str) {
    if let Some((path, target)) = path.split_once(" -> ") {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        symlink(target, root.join(path)).unwrap();
    } else if let Some(directory) = path.strip_suffix('/') {
        fs::create_dir_all(root.join(directory)).unwrap();
    } else {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }
}

/// Everything below a directory but its repository: a file's mode and text, a link's target, `/` for a directory.
fn listing(root: &Path) -> Listing {
    fn walk(root: &Path, at: &Path, found: &mut Listing) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            if path.join("index").is_file() && name == ".git" {
                continue;
            }
            let metadata = fs::symlink_metadata(&path).unwrap();
            if metadata.is_symlink() {
                found.insert(name, format!("-> {}", fs::read_link(&path).unwrap().display()));
            } else if metadata.is_dir() {
                found.insert(name, "/".to_owned());
                walk(root, &path, found);
            } else {
                let mode = metadata.permissions().mode() & 0o777;
                found.insert(name, format!("{mode:o} {}", fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Listing::new();
    walk(root, root, &mut found);
    found
}

fn after(left: usize) -> Steps {
    Steps { left: Some(Cell::new(left)), ..Steps::default() }
}

/// Every kind of change at once.
fn every_kind() -> Desk {
    let owner = [
        ("changed.txt", "one\n"),
        ("deleted.txt", "gone"),
        ("old/deep/a.txt", "a"),
        ("old/b.txt", "b"),
        ("link -> changed.txt", ""),
        ("became-a-directory", "file"),
        ("became-a-file/x.txt", "x"),
        ("link-became-a-directory -> old", ""),
        ("kept/c.txt", "c"),
    ];
    let wanted = [
        ("changed.txt", "two\n"),
        ("new.txt", "new"),
        ("made/deep/d.txt", "d"),
        ("made/empty/", ""),
        ("became-a-directory/y.txt", "y"),
        ("became-a-file", "file"),
        ("link-became-a-directory/z.txt", "z"),
        ("kept/c.txt", "c"),
    ];
    Desk::new(&owner, &wanted)
}

#[test]
fn everything_is_landed_and_taken_back() {
    let desk = every_kind();
    fs::set_permissions(desk.path("owner/changed.txt"), fs::Permissions::from_mode(0o750)).unwrap();
    let before = desk.now();
    let plan = desk.plan();
    assert!(plan.conflicts().next().is_none(), "{:?}", desk.verdicts(&plan));
    let deletions = plan.entries.iter().take_while(|entry| entry.deletes()).count();
    assert!(plan.entries.iter().skip(deletions).all(|entry| !entry.deletes()), "deletions come first");
    let landed = desk.lands(plan, "first");
    assert_eq!(landed.kept, [] as [&str; 0]);
    let mut wanted = desk.wanted();
    wanted.insert("changed.txt".to_owned(), "750 two\n".to_owned());
    assert_eq!(desk.now(), wanted, "the mode of the owner's file stays");
    desk.undo("first", "second", &Steps::default()).unwrap();
    assert_eq!(desk.now(), before);
    assert_eq!(crate::state(&desk.path("first")).unwrap(), Some(State::Undone));
    // A landing that was taken back can be landed again by taking that back.
    desk.undo("second", "third", &Steps::default()).unwrap();
    assert_eq!(desk.now(), wanted);
}
