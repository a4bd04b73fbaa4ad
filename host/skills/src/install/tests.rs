//! Tests of install.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

const TEXT: &str = "---\nname: pdf\ndescription: d\n---\n";
const STEPS: [InstallStep; 5] =
    [InstallStep::Staged, InstallStep::Written, InstallStep::Verified, InstallStep::Placed, InstallStep::Checked];

fn skill(files: &[(&str, &str, u32)]) -> Snapshot {
    let all = [("SKILL.md", TEXT, 0o644)].iter().chain(files);
    let files: BTreeMap<String, (Vec<u8>, u32)> =
        all.map(|(path, text, mode)| ((*path).to_owned(), (text.as_bytes().to_vec(), *mode))).collect();
    Snapshot::of(SkillForm::Directory, files, None)
}

fn old() -> Snapshot {
    skill(&[("scripts/a.sh", "old", 0o755)])
}

fn new() -> Snapshot {
    skill(&[("scripts/a.sh", "new", 0o755), ("a/c/d", "x", 0o644), ("a-b", "y", 0o600), ("a/b", "z", 0o666)])
}

fn lies(root: &Path) -> Snapshot {
    read(&root.join("pdf"), &SkillBounds::default()).unwrap()
}

/// Everything below a directory: path, kind or content.
fn listing(directory: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![directory.to_owned()];
    while let Some(at) = waiting.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(directory).unwrap().to_string_lossy().into_owned();
            let status = fs::symlink_metadata(&path).unwrap();
            if status.is_dir() {
                found.insert(name, "directory".into());
                waiting.push(path);
            } else if status.is_symlink() {
                found.insert(name, format!("link to {}", fs::read_link(&path).unwrap().display()));
            } else {
                found.insert(name, String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned());
            }
        }
    }
    found
}

/// A root with the old skill and another, and a tree beside it that nothing may touch.
struct Home {
    directory: tempfile::TempDir,
    canary: BTreeMap<String, String>,
}

impl Home {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Self { canary: BTreeMap::new(), directory };
        fs::create_dir_all(home.directory.path().join("canary/scripts")).unwrap();
        fs::write(home.directory.path().join("canary/scripts/a.sh"), "untouched").unwrap();
        put(&home.root(), "pdf", &old(), ExpectedState::Absent).unwrap();
        put(&home.root(), "other", &old(), ExpectedState::Absent).unwrap();
        Self { canary: listing(&home.directory.path().join("canary")), ..home }
    }

    fn root(&self) -> PathBuf {
        self.directory.path().join("skills")
    }

    fn check(&self, expected: &Snapshot) {
        assert_eq!(lies(&self.root()).hash, expected.hash);
        self.check_others(&["other", "pdf"]);
    }

    fn check_others(&self, names: &[&str]) {
        let mut entries: Vec<String> =
            fs::read_dir(self.root()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        entries.sort();
        assert_eq!(entries, names);
        assert_eq!(read(&self.root().join("other"), &SkillBounds::default()).unwrap().hash, old().hash);
        assert_eq!(listing(&self.directory.path().join("canary")), self.canary);
    }
}

#[test]
fn a_new_skill_and_a_newer_one() {
    let home = Home::new();
    home.check(&old());
    put(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash)).unwrap();
    home.check(&new());
    let modes: Vec<(String, u32)> =
        lies(&home.root()).files.into_iter().map(|(path, file)| (path, file.mode)).collect();
    let expected = [("SKILL.md", 0o644), ("a-b", 0o600), ("a/b", 0o644), ("a/c/d", 0o644), ("scripts/a.sh", 0o755)];
    assert_eq!(modes, expected.map(|(path, mode)| (path.to_owned(), mode)));
    // The old policy file goes with the old tree.
    fs::write(home.root().join("pdf/policy.json"), "{}").unwrap();
    put(&home.root(), "pdf", &old(), ExpectedState::Hash(new().hash)).unwrap();
    home.check(&old());
    assert!(!home.root().join("pdf/policy.json").exists());
}

#[test]
fn a_root_that_is_missing_or_a_link() {
    let directory = tempfile::tempdir().unwrap();
    let real = directory.path().join("a/real");
    put(&real, "pdf", &old(), ExpectedState::Absent).unwrap();
    symlink(&real, directory.path().join("link")).unwrap();
    put(&directory.path().join("link"), "pdf", &new(), ExpectedState::Hash(old().hash)).unwrap();
    assert_eq!(lies(&real).hash, new().hash);
}

#[test]
fn what_is_not_expected_stays() {
    let home = Home::new();
    let there = put(&home.root(), "pdf", &new(), ExpectedState::Absent).unwrap_err();
    assert_eq!(there.to_string(), "there is something called `pdf` already");
    home.check(&old());
    let changed = put(&home.root(), "pdf", &new(), ExpectedState::Hash(new().hash)).unwrap_err();
    assert!(matches!(changed, SkillError::Changed), "{changed}");
    home.check(&old());
    assert!(matches!(put(&home.root(), "none", &new(), ExpectedState::Hash(old().hash)), Err(SkillError::Changed)));
    home.check(&old());
    // An edit that makes it unreadable is a change too.
    symlink("/etc/passwd", home.root().join("pdf/link")).unwrap();
    assert!(matches!(put(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash)), Err(SkillError::Changed)));
    fs::remove_file(home.root().join("pdf/link")).unwrap();
    put(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash)).unwrap();
    home.check(&new());
}

#[test]
fn an_entry_that_is_a_link_is_refused() {
    let home = Home::new();
    fs::rename(home.root().join("pdf"), home.directory.path().join("elsewhere")).unwrap();
    for target in [home.directory.path().join("elsewhere"), home.directory.path().join("canary"), "none".into()] {
        symlink(&target, home.root().join("pdf")).unwrap();
        for expected in [ExpectedState::Absent, ExpectedState::Hash(old().hash)] {
            let error = put(&home.root(), "pdf", &new(), expected).unwrap_err();
            assert_eq!(error.to_string(), "`pdf` is a link, which is for its owner to remove");
        }
        assert!(remove(&home.root(), "pdf").is_err());
        assert_eq!(fs::read_link(home.root().join("pdf")).unwrap(), target);
        home.check_others(&["other", "pdf"]);
        fs::remove_file(home.root().join("pdf")).unwrap();
    }
    put(&home.root(), "pdf", &new(), ExpectedState::Absent).unwrap();
    home.check(&new());
}

#[test]
fn names_of_places() {
    let home = Home::new();
    for entry in ["", ".", "..", ".hidden", "a/b", "/tmp/x", "../canary", "a\0b", "a\\b", "a\nb", &"a".repeat(256)] {
        assert!(put(&home.root(), entry, &new(), ExpectedState::Absent).is_err(), "{entry:?}");
        assert!(put_file(&home.root(), entry, b"x").is_err(), "{entry:?}");
        assert!(remove(&home.root(), entry).is_err(), "{entry:?}");
    }
    home.check(&old());
    put(&home.root(), "pdf.zip", &new(), ExpectedState::Absent).unwrap();
}

#[test]
fn trees_that_lead_out_are_refused() {
    let home = Home::new();
    for path in ["../canary/scripts/a.sh", "/etc/x", "a/../../x", "a//b", "./a", "a\\b", "skill.MD"] {
        let new = skill(&[(path, "x", 0o644)]);
        assert!(put(&home.root(), "pdf", &new, ExpectedState::Hash(old().hash)).is_err(), "{path}");
        // The writer refuses too, in case the rules ever change.
        if path != "skill.MD" && path != "a\\b" && path != "/etc/x" && path != "a//b" {
            let parent = OwnedFd::from(fs::File::open(home.root()).unwrap());
            assert!(write::tree(&parent, "written", &new).is_err(), "{path}");
            fs::remove_dir_all(home.root().join("written")).unwrap();
        }
        home.check(&old());
    }
}

#[test]
fn a_failure_at_any_step_leaves_what_was() {
    for at in STEPS {
        for expected in [ExpectedState::Absent, ExpectedState::Hash(old().hash)] {
            let home = Home::new();
            if expected == ExpectedState::Absent {
                remove(&home.root(), "pdf").unwrap();
            }
            let mut reached = false;
            let outcome = put_watched(&home.root(), "pdf", &new(), expected, &mut |step| {
                reached |= step == at;
                if step == at { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
            });
            assert_eq!(outcome.is_err(), reached, "{at:?}");
            match (reached, expected) {
                (true, ExpectedState::Absent) => home.check_others(&["other"]),
                (true, ExpectedState::Hash(_)) => home.check(&old()),
                (false, _) => home.check(&new()),
            }
        }
    }
}

#[test]
fn a_crash_at_any_step_leaves_one_or_the_other_and_is_tidied() {
    for at in STEPS {
        let home = Home::new();
        let crash = catch_unwind(AssertUnwindSafe(|| {
            put_watched(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash), &mut |step| {
                assert_ne!(step, at, "crash");
                Ok(())
            })
        }));
        assert!(crash.is_err());
        let whole = if matches!(at, InstallStep::Placed | InstallStep::Checked) { new() } else { old() };
        assert_eq!(lies(&home.root()).hash, whole.hash, "{at:?}");
        tidy(&home.root()).unwrap();
        home.check(&whole);
        // It can be tried again.
        put(&home.root(), "pdf", &new(), ExpectedState::Hash(whole.hash)).unwrap();
        home.check(&new());
    }
}

#[test]
fn what_a_person_changes_meanwhile_is_kept() {
    let edit = |home: &Home, inside: &Path| {
        assert!(inside.starts_with(home.root()));
        fs::write(inside.join("scripts/a.sh"), "by a person").unwrap();
    };
    let edited = skill(&[("scripts/a.sh", "by a person", 0o755)]);
    for at in STEPS {
        let home = Home::new();
        let outcome = put_watched(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash), &mut |step| {
            if step == at && matches!(at, InstallStep::Staged | InstallStep::Written | InstallStep::Verified) {
                edit(&home, &home.root().join("pdf"));
            } else if step == at && at == InstallStep::Placed {
                // Through a directory that was opened before the exchange: it is in the working directory now.
                let staging = fs::read_dir(home.root()).unwrap().map(|entry| entry.unwrap().path());
                let staging = staging.filter(|path| path.to_string_lossy().contains(".motor-staging-"));
                edit(&home, &staging.last().unwrap().join("pdf"));
            }
            Ok(())
        });
        if at == InstallStep::Checked {
            outcome.unwrap();
            home.check(&new());
        } else {
            assert!(matches!(outcome, Err(SkillError::Changed)), "{at:?} {outcome:?}");
            home.check(&edited);
        }
    }
}

#[test]
fn what_cannot_be_put_back_is_kept_for_a_person() {
    let home = Home::new();
    let outcome = put_watched(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash), &mut |step| {
        if step == InstallStep::Placed {
            // A person replaces the new skill by their own work, and then something fails.
            fs::remove_dir_all(home.root().join("pdf")).unwrap();
            fs::create_dir(home.root().join("pdf")).unwrap();
            fs::write(home.root().join("pdf/work"), "of a person").unwrap();
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    });
    assert!(outcome.is_err());
    assert_eq!(lies(&home.root()).hash, old().hash);
    tidy(&home.root()).unwrap();
    let all = listing(&home.root());
    let (path, _) = all.iter().find(|(_, content)| *content == "of a person").unwrap();
    assert!(path.starts_with(".motor-kept-") && path.ends_with("/pdf/work"), "{path}");
    // A new skill removed by a person: the previous content goes back.
    let home = Home::new();
    let outcome = put_watched(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash), &mut |step| {
        if step == InstallStep::Checked {
            fs::remove_dir_all(home.root().join("pdf")).unwrap();
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(())
    });
    assert!(outcome.is_err());
    home.check(&old());
}

#[test]
fn writers_at_the_same_time_leave_a_whole_skill() {
    let home = Home::new();
    let versions: Vec<Snapshot> = (0..8).map(|number| skill(&[("scripts/a.sh", &number.to_string(), 0o755)])).collect();
    let placed: usize = std::thread::scope(|scope| {
        let writers: Vec<_> = versions
            .iter()
            .map(|version| scope.spawn(|| put(&home.root(), "pdf", version, ExpectedState::Hash(old().hash)).is_ok()))
            .collect();
        writers.into_iter().map(|writer| usize::from(writer.join().unwrap())).sum()
    });
    // Each expected the old one, so no more than one can have replaced it.
    assert_eq!(placed, 1);
    let hash = lies(&home.root()).hash;
    assert!(versions.iter().any(|version| version.hash == hash));
    home.check_others(&["other", "pdf"]);
}

#[test]
fn an_editor_at_the_same_time_leaves_a_whole_skill() {
    let home = Home::new();
    let root = home.root();
    for _ in 0..50 {
        let before = lies(&root).hash;
        let next = if before == new().hash { old() } else { new() };
        let outcome = std::thread::scope(|scope| {
            let editor = scope.spawn(|| fs::write(root.join("pdf/scripts/a.sh"), "by a person").unwrap());
            let outcome = put(&root, "pdf", &next, ExpectedState::Hash(before));
            editor.join().unwrap();
            outcome
        });
        let after = lies(&root).files["scripts/a.sh"].bytes.to_vec();
        match outcome {
            // It was made to the new skill, or to a file of the old one that was open when the old one went.
            Ok(()) => assert!(after == b"by a person" || after == next.files["scripts/a.sh"].bytes.to_vec()),
            Err(SkillError::Changed) => assert_eq!(after, b"by a person"),
            Err(other) => panic!("{other}"),
        }
        let now = lies(&root).hash;
        put(&root, "pdf", &old(), ExpectedState::Hash(now)).unwrap();
    }
    home.check(&old());
}

#[test]
fn a_directory_that_cannot_be_written_to() {
    if rustix::process::geteuid().is_root() {
        // Permission bits do not bind it; a file in the place of a root does.
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("skills"), "a file").unwrap();
        assert!(put(&directory.path().join("skills"), "pdf", &new(), ExpectedState::Absent).is_err());
        assert_eq!(fs::read(directory.path().join("skills")).unwrap(), b"a file");
        return;
    }
    let home = Home::new();
    fs::set_permissions(home.root(), fs::Permissions::from_mode(0o555)).unwrap();
    let outcome = put(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash));
    fs::set_permissions(home.root(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(matches!(outcome, Err(SkillError::Io { .. })));
    home.check(&old());
    put(&home.root(), "pdf", &new(), ExpectedState::Hash(old().hash)).unwrap();
    home.check(&new());
}

#[test]
fn removing() {
    let home = Home::new();
    // Unreadable as a skill, and removed without following its links.
    symlink(home.directory.path().join("canary"), home.root().join("pdf/scripts/link")).unwrap();
    remove(&home.root(), "pdf").unwrap();
    home.check_others(&["other"]);
    assert!(matches!(remove(&home.root(), "pdf"), Err(SkillError::Missing { .. })));
    fs::write(home.root().join("a.zip"), "x").unwrap();
    remove(&home.root(), "a.zip").unwrap();
    home.check_others(&["other"]);
}

#[test]
fn files_of_one() {
    let home = Home::new();
    put_file(&home.root(), "b.wasm", b"\0asm").unwrap();
    assert!(put_file(&home.root(), "b.wasm", b"other").is_err());
    assert_eq!(fs::read(home.root().join("b.wasm")).unwrap(), b"\0asm");
    let component = |bytes: &[u8]| {
        Snapshot::of(SkillForm::Component, BTreeMap::from([("b.wasm".to_owned(), (bytes.to_vec(), 0o644))]), None)
    };
    put(&home.root(), "b.wasm", &component(b"\0asm2"), ExpectedState::Hash(component(b"\0asm").hash)).unwrap();
    assert_eq!(fs::read(home.root().join("b.wasm")).unwrap(), b"\0asm2");
    assert!(put(&home.root(), "b", &component(b"x"), ExpectedState::Absent).is_err());
    // A directory can take the place of a file.
    put(&home.root(), "b.wasm", &new(), ExpectedState::Hash(component(b"\0asm2").hash)).unwrap();
    assert!(home.root().join("b.wasm/SKILL.md").is_file());
}

#[test]
fn tidying_takes_only_what_is_ours_and_left() {
    let home = Home::new();
    let names = [
        ".motor-staging-",
        ".motor-staging-short",
        ".motor-staging-0123456789ABCDEF0123456789abcdef",
        "x.motor-staging-0123456789abcdef0123456789abcdef",
        ".motor-kept-0123456789abcdef0123456789abcdef",
    ];
    for name in names {
        fs::create_dir(home.root().join(name)).unwrap();
    }
    let link = home.root().join(".motor-staging-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
    symlink(home.directory.path().join("canary"), &link).unwrap();
    let abandoned = home.root().join(".motor-staging-0123456789abcdef0123456789abcdef");
    fs::create_dir_all(abandoned.join("a")).unwrap();
    symlink(home.directory.path().join("canary"), abandoned.join("a/link")).unwrap();
    let used = Stage::make(&InstallRoot::open(&home.root()).unwrap()).unwrap();
    tidy(&home.root()).unwrap();
    assert!(!abandoned.exists() && used.path.exists() && link.is_symlink());
    let used = used.path.file_name().unwrap().to_str().unwrap().to_owned();
    let mut left = names.to_vec();
    left.extend(["other", "pdf", ".motor-staging-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", &used]);
    left.sort_unstable();
    home.check_others(&left);
    tidy(&home.directory.path().join("none")).unwrap();
}

#[test]
fn the_history_of_a_repository_stays_in_its_place() {
    for fails_at in STEPS.into_iter().map(Some).chain([None]) {
        let home = Home::new();
        let history = home.root().join("pdf/.git");
        fs::create_dir(&history).unwrap();
        fs::write(history.join("HEAD"), "ref").unwrap();
        let (wanted, earlier) = (new(), old());
        let done = put_watched(&home.root(), "pdf", &wanted, ExpectedState::Hash(earlier.hash), &mut |step| {
            if Some(step) == fails_at { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        });
        assert_eq!(done.is_ok(), fails_at.is_none(), "{fails_at:?}");
        home.check(if fails_at.is_none() { &wanted } else { &earlier });
        assert_eq!(fs::read_to_string(history.join("HEAD")).unwrap(), "ref", "{fails_at:?}");
    }
}
