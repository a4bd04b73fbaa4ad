//! Tests of snapshot directories.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;

use receipts::tree::FILE;
use rustix::fs::{CWD, FileType, Mode, mknodat, openat};

use super::super::directory::file;
use super::*;

fn read_all(path: &Path) -> Result<Snapshot, SnapshotError> {
    read(path, &SkillBounds::default())
}

#[test]
fn the_history_of_a_repository_is_left_out() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join("SKILL.md"), "---\nname: pdf\ndescription: d\n---\n").unwrap();
    let before = read_all(root.path()).unwrap();
    fs::create_dir_all(root.path().join(".git/objects")).unwrap();
    let stamp_with = stamp(root.path()).unwrap();
    fs::write(root.path().join(".git/objects/pack"), vec![0; 3 << 20]).unwrap();
    symlink("/etc/passwd", root.path().join(".git/link")).unwrap();
    mknodat(CWD, root.path().join(".git/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let after = read_all(root.path()).unwrap();
    assert_eq!((after.hash, after.modes, &after.files), (before.hash, before.modes, &before.files));
    assert_eq!((before.has_history, after.has_history), (false, true));
    assert_eq!(receipts::directory_hash(root.path()).unwrap(), before.hash);
    assert_eq!(stamp(root.path()).unwrap(), stamp_with, "a change in it is not looked at");
    // A file of that name, as in a work tree of a repository, is no part either; a name like it is.
    fs::remove_dir_all(root.path().join(".git")).unwrap();
    fs::write(root.path().join(".git"), "gitdir: /elsewhere\n").unwrap();
    assert_eq!(read_all(root.path()).unwrap(), after);
    fs::write(root.path().join(".gitignore"), "x").unwrap();
    assert_ne!(read_all(root.path()).unwrap().hash, before.hash);
    for prefix in ["", "pdf/"] {
        let manifest: &[u8] = b"---\nname: pdf\ndescription: d\n---\n";
        let files: [(&str, &[u8]); 3] = [("SKILL.md", manifest), (".git/config", b"x"), (".git/../../x", b"x")];
        let packed = |count: usize| {
            let files = files.iter().take(count).map(|(path, bytes)| (format!("{prefix}{path}"), *bytes));
            super::archives::packed(files)
        };
        let archive = read_archive(&packed(2), &SkillBounds::default()).unwrap();
        assert_eq!((archive.hash, archive.has_history), (before.hash, true));
        assert!(read_archive(&packed(3), &SkillBounds::default()).is_err());
    }
}

/// Each does one thing to a skill that can be read without it.
#[test]
fn what_is_no_plain_file_is_refused_and_nothing_else_is() {
    type Change = fn(&Path);
    let cases: &[(Change, Option<&str>)] = &[
        (|_| {}, None),
        (|root| fs::create_dir(root.join("empty")).unwrap(), None),
        (|root| symlink("a", root.join("link")).unwrap(), Some("`link` is a link: put the file itself there")),
        (
            |root| symlink("/etc/passwd", root.join("d/link")).unwrap(),
            Some("`d/link` is a link: put the file itself there"),
        ),
        (|root| symlink("none", root.join("link")).unwrap(), Some("`link` is a link: put the file itself there")),
        (|root| symlink("d", root.join("e")).unwrap(), Some("`e` is a link: put the file itself there")),
        (|root| symlink("..", root.join("up")).unwrap(), Some("`up` is a link: put the file itself there")),
        (
            |root| {
                fs::rename(root.join("SKILL.md"), root.join("x.md")).unwrap();
                symlink("x.md", root.join("SKILL.md")).unwrap();
            },
            Some("`SKILL.md` is a link: put the file itself there"),
        ),
        (
            |root| symlink("a", root.join("policy.json")).unwrap(),
            Some("`policy.json` is a link: put the file itself there"),
        ),
        (
            |root| fs::hard_link(root.join("a"), root.join("b")).unwrap(),
            Some("`a` is a hard link: put a copy of its own there"),
        ),
        (
            |root| {
                let outside = root.with_extension("outside");
                fs::write(&outside, "x").unwrap();
                fs::hard_link(&outside, root.join("d/b")).unwrap();
            },
            Some("`d/b` is a hard link: put a copy of its own there"),
        ),
        (|root| fs::copy(root.join("a"), root.join("b")).map(drop).unwrap(), None),
        (
            |root| mknodat(CWD, root.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap(),
            Some("`pipe` is neither a file nor a directory"),
        ),
        (
            |root| drop(UnixListener::bind(root.join("socket")).unwrap()),
            Some("`socket` is neither a file nor a directory"),
        ),
        (
            |root| fs::write(root.join(OsStr::from_bytes(b"d/\xff")), "").unwrap(),
            Some("`d/\u{fffd}` has a name that is not UTF-8"),
        ),
        (|root| fs::write(root.join("A"), "").unwrap(), Some("`A` and `a` are the same name on some systems")),
        (|root| fs::create_dir(root.join("D")).unwrap(), Some("`D` and `d` are the same name on some systems")),
        (|root| fs::write(root.join("a\\b"), "").unwrap(), Some("`a\\\\b` has a backslash in its name")),
        (|root| fs::write(root.join("a\nb"), "").unwrap(), Some("`a\\nb` has a control character in its name")),
        (|root| fs::write(root.join("c:"), "").unwrap(), Some("`c:` begins with the letter of a drive")),
        (|root| fs::remove_file(root.join("SKILL.md")).unwrap(), Some("it has no `SKILL.md`")),
        (|root| fs::rename(root.join("SKILL.md"), root.join("skill.md")).unwrap(), None),
        (|root| fs::write(root.join("b"), vec![0; (1 << 20) + 1]).unwrap(), Some("`b` is larger than 1 MiB")),
        (|root| fs::write(root.join("b"), vec![0; 1 << 20]).unwrap(), None),
        (|root| fs::write(root.join("b.wasm"), vec![0; (1 << 20) + 1]).unwrap(), None),
        (
            |root| fs::File::create(root.join("b.wasm")).unwrap().set_len((64 << 20) + 1).unwrap(),
            Some("`b.wasm` is larger than 64 MiB"),
        ),
        (
            |root| (0..10).for_each(|n| fs::write(root.join(format!("f{n}")), vec![0; 1 << 20]).unwrap()),
            Some("its files that are no components are more than 10 MiB"),
        ),
        (
            |root| fs::write(root.join("policy.json"), vec![0; (256 << 10) + 1]).unwrap(),
            Some("`policy.json` is larger than 256 KiB"),
        ),
        (|root| fs::write(root.join("policy.json"), vec![0; 256 << 10]).unwrap(), None),
        (
            |root| (0..2_000).for_each(|n| fs::write(root.join(format!("f{n}")), "").unwrap()),
            Some("it has more than 2000 files and directories"),
        ),
        (|root| fs::create_dir_all(root.join(vec!["x"; 63].join("/"))).unwrap(), None),
        (
            |root| fs::create_dir_all(root.join(vec!["x"; 64].join("/"))).unwrap(),
            Some(concat!(
                "`x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x",
                "/x/x/x/x/x/x/x/x/x/x/x` is nested more than 64 deep"
            )),
        ),
    ];
    for (number, (change, reason)) in cases.iter().enumerate() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("pdf");
        write(&root, [("SKILL.md", MANIFEST.as_bytes()), ("a", b"a"), ("d/x", b"x")]);
        change(&root);
        let read = read_all(&root).map_err(|error| error.to_string());
        assert_eq!(read.as_ref().err().map(String::as_str), *reason, "case {number}");
        if let Ok(read) = read {
            assert_eq!(read.hash, receipts::directory_hash(&root).unwrap(), "case {number}");
        }
    }
}

#[test]
fn the_entry_itself_is_no_link_either() {
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("pdf");
    write(&root, [("SKILL.md", MANIFEST.as_bytes())]);
    let packed = outer.path().join("pdf.zip");
    fs::write(&packed, archives::packed([("SKILL.md", MANIFEST.as_bytes())])).unwrap();
    fs::write(outer.path().join("pdf.wasm"), "\0asm").unwrap();
    for (entry, target) in [("l1", "pdf"), ("l2.zip", "pdf.zip"), ("l3.wasm", "pdf.wasm"), ("l4", "none")] {
        symlink(target, outer.path().join(entry)).unwrap();
        refused(read_all(&outer.path().join(entry)), "it is a link: put the file itself there");
        // With a slash at its end the system would follow it.
        refused(read_all(&outer.path().join(format!("{entry}/"))), "it is a link: put the file itself there");
    }
    for (entry, form) in [
        ("pdf", SkillForm::Directory),
        ("pdf/", SkillForm::Directory),
        ("pdf.zip", SkillForm::Archive),
        ("pdf.wasm", SkillForm::Component),
    ] {
        assert_eq!(read_all(&outer.path().join(entry)).unwrap().form, form);
    }
    assert_eq!(read_all(&root).unwrap().hash, read_all(&packed).unwrap().hash);
    // The path to a root may have links: they were named when the root was set up.
    symlink(outer.path(), outer.path().join("way")).unwrap();
    assert!(read_all(&outer.path().join("way/pdf")).is_ok());

    fs::hard_link(&packed, outer.path().join("second.zip")).unwrap();
    refused(read_all(&packed), "it is a hard link: put a copy of its own there");
    mknodat(CWD, outer.path().join("pipe.zip"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    refused(read_all(&outer.path().join("pipe.zip")), "it is neither a file nor a directory");
    refused(read_all(&outer.path().join("none")), "there is nothing there any more");
    fs::write(outer.path().join("README.md"), "").unwrap();
    let no_skill = "it is no skill: a skill is a directory, a `.zip` or `.skill` archive, or a `.wasm` component";
    refused(read_all(&outer.path().join("README.md")), no_skill);
    let large = fs::File::create(outer.path().join("large.zip")).unwrap();
    large.set_len((66 << 20) + 1).unwrap();
    refused(read_all(&outer.path().join("large.zip")), "it is larger than 65 MiB");
    fs::File::create(outer.path().join("large.wasm")).unwrap().set_len((64 << 20) + 1).unwrap();
    refused(read_all(&outer.path().join("large.wasm")), "it is larger than 64 MiB");
}

#[test]
fn modes_are_read_and_are_not_content() {
    let directory = skill(&[("bin/a", b"x")]);
    let before = read_all(directory.path()).unwrap();
    fs::set_permissions(directory.path().join("bin/a"), fs::Permissions::from_mode(0o755)).unwrap();
    let after = read_all(directory.path()).unwrap();
    assert_eq!(after.files.get("bin/a").unwrap().mode, 0o755);
    assert_eq!(before.hash, after.hash);
    assert_ne!(before.modes, after.modes);
    fs::set_permissions(directory.path().join("bin/a"), fs::Permissions::from_mode(0o4755)).unwrap();
    assert_ne!(read_all(directory.path()).unwrap().modes, after.modes);
}

/// Files of the kernel say that they are empty and are not, like a file that grows while it is read.
#[test]
fn a_file_that_is_not_what_it_was_is_refused() {
    let parent = fs::File::open("/proc/self").unwrap();
    let opened = |name: &str| openat(&parent, name, FILE, Mode::empty()).map(fs::File::from);
    let read = |name: &str| file(|| opened(name), "a", 1 << 20);
    refused(read("status"), "`a` changed while it was read: try again when it is written");
    refused(read("exe"), "`a` changed while it was read: try again when it is written");
    refused(read("fd"), "`a` is neither a file nor a directory");
    let directory = skill(&[]);
    let opened = || fs::File::open(directory.path().join("SKILL.md")).map_err(|_| rustix::io::Errno::IO);
    assert!(file(opened, "a", 1 << 20).is_ok());
}

/// Files, links and directories are swapped all the time: only the skill's own bytes are read, never a link's target.
#[test]
fn nothing_outside_is_read_in_a_race() {
    const ROUNDS: usize = 2_000;
    let outer = tempfile::tempdir().unwrap();
    let root = outer.path().join("pdf");
    let secret = outer.path().join("secret");
    write(&secret, [("x", &b"secret"[..])]);
    write(&root, [("SKILL.md", MANIFEST.as_bytes()), ("x", b"0"), ("d/x", b"0")]);
    let done = std::sync::atomic::AtomicBool::new(false);
    let (mut read, mut refused) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let at = |name: &str| outer.path().join(name);
            for round in 0.. {
                if done.load(std::sync::atomic::Ordering::Relaxed) {
                    break;
                }
                symlink(secret.join("x"), at("l")).unwrap();
                fs::write(at("f"), if round % 2 == 0 { "0" } else { "11" }).unwrap();
                fs::rename(at("l"), root.join("x")).unwrap();
                fs::rename(at("f"), root.join("x")).unwrap();
                symlink(&secret, at("l")).unwrap();
                fs::rename(root.join("d"), at("d")).unwrap();
                fs::rename(at("l"), root.join("d")).unwrap();
                fs::remove_file(root.join("d")).unwrap();
                fs::rename(at("d"), root.join("d")).unwrap();
            }
        });
        for _ in 0..ROUNDS {
            match read_all(&root) {
                Ok(snapshot) => {
                    read += 1;
                    for (path, file) in &snapshot.files {
                        assert_eq!(file.hash, ContentHash::of(&file.bytes));
                        assert!(path == "SKILL.md" || matches!(&*file.bytes, b"0" | b"11"), "{path}: {:?}", file.bytes);
                    }
                }
                Err(_) => refused += 1,
            }
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    assert!(read + refused == ROUNDS && refused > 0, "{read} {refused}");
}
