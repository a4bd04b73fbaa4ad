//! Tests of snapshot stamps.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::time::{Duration, SystemTime};

use base::Timestamp;

use super::*;

fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    Timestamp::from_millis(since.as_millis().try_into().unwrap())
}

/// Each does one thing; `true`: a stamp sees it.
#[test]
fn whatever_changes_is_another_stamp() {
    type Change = fn(&Path);
    let cases: &[(Change, bool)] = &[
        (|_| {}, false),
        (|root| drop(fs::read(root.join("d/x")).unwrap()), false),
        (|root| fs::write(root.join("d/x"), "longer").unwrap(), true),
        (|root| fs::write(root.join("d/y"), "x").unwrap(), true),
        (|root| fs::remove_file(root.join("d/x")).unwrap(), true),
        (|root| fs::rename(root.join("d/x"), root.join("d/z")).unwrap(), true),
        (|root| fs::rename(root.join("d"), root.join("e")).unwrap(), true),
        (|root| fs::create_dir(root.join("e")).unwrap(), true),
        (|root| symlink("x", root.join("d/l")).unwrap(), true),
        (|root| fs::hard_link(root.join("d/x"), root.with_extension("out")).unwrap(), true),
        (|root| fs::set_permissions(root.join("d/x"), fs::Permissions::from_mode(0o600)).unwrap(), true),
        (
            |root| {
                // The same size and time, another file.
                let old = fs::metadata(root.join("d/x")).unwrap().modified().unwrap();
                fs::write(root.join("new"), "y").unwrap();
                fs::File::open(root.join("new")).unwrap().set_modified(old).unwrap();
                fs::rename(root.join("new"), root.join("d/x")).unwrap();
            },
            true,
        ),
        (
            |root| {
                // Its modification time set back; its change time cannot be.
                let old = fs::metadata(root.join("d/x")).unwrap().modified().unwrap();
                let file = fs::File::options().write(true).open(root.join("d/x")).unwrap();
                file.set_modified(old - Duration::from_secs(9)).unwrap();
                file.set_modified(old).unwrap();
            },
            true,
        ),
    ];
    for (number, (change, seen)) in cases.iter().enumerate() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("pdf");
        write(&root, [("SKILL.md", MANIFEST.as_bytes()), ("d/x", b"x")]);
        let before = stamp(&root).unwrap();
        settle(&root.join("d/x"));
        let settled = stamp(&root).unwrap();
        assert_ne!(before, settled);
        change(&root);
        assert_eq!(stamp(&root).unwrap() != settled, *seen, "case {number}");
        let stored = serde_json::to_string(&settled).unwrap();
        assert_eq!(serde_json::from_str::<Stamp>(&stored).unwrap(), settled);
    }
}

/// Waits, by changing it, until the clock of a file has gone on: the next change has another time.
fn settle(path: &Path) {
    use std::os::unix::fs::MetadataExt as _;
    let time = || {
        let metadata = fs::metadata(path).unwrap();
        (metadata.ctime(), metadata.ctime_nsec())
    };
    let first = time();
    while time() == first {
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }
    let second = time();
    let probe = path.with_extension("probe");
    loop {
        fs::write(&probe, "").unwrap();
        let later = fs::metadata(&probe).unwrap().modified().unwrap();
        let (seconds, nanos) = second;
        if later > SystemTime::UNIX_EPOCH + Duration::new(seconds.try_into().unwrap(), nanos.try_into().unwrap()) {
            break;
        }
    }
    fs::remove_file(probe).unwrap();
}

#[test]
fn a_fresh_stamp_is_not_settled() {
    let directory = skill(&[]);
    let fresh = stamp(directory.path()).unwrap();
    assert!(!fresh.is_settled(now()));
    assert!(fresh.is_settled(now().after(Duration::from_secs(3))));
    // A clock that was set back: not settled until it has caught up.
    assert!(!fresh.is_settled(Timestamp::from_millis(0)));
}

#[test]
fn a_stamp_follows_nothing_and_ends() {
    let outer = tempfile::tempdir().unwrap();
    symlink("/", outer.path().join("link")).unwrap();
    symlink("none", outer.path().join("dangling")).unwrap();
    assert!(stamp(&outer.path().join("link")).is_ok());
    assert!(stamp(&outer.path().join("link/")).is_ok());
    assert!(stamp(&outer.path().join("dangling")).is_ok());
    assert!(matches!(stamp(&outer.path().join("none")), Err(SnapshotError::Missing)));
    let deep = outer.path().join("deep");
    fs::create_dir_all(deep.join(vec!["x"; 200].join("/"))).unwrap();
    assert!(stamp(&deep).is_ok());
    let wide = outer.path().join("wide");
    fs::create_dir(&wide).unwrap();
    (0..3_000).for_each(|n| fs::write(wide.join(n.to_string()), "").unwrap());
    assert!(stamp(&wide).is_ok());
    let file = outer.path().join("a.zip");
    fs::write(&file, "x").unwrap();
    assert!(stamp(&file).is_ok());
}
