//! Walking trees with links, special files, strange names and too much of everything.

use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;

use super::*;

const BOUNDS: TreeLimits = TreeLimits { entries: 100, bytes: 1_000 };

fn paths(root: &Path, odd: Odd) -> Result<Vec<String>, TreeError> {
    sums(root, BOUNDS, odd, |path| path == "skipped").map(|found| found.into_keys().collect())
}

#[test]
fn every_file_is_found_and_nothing_outside() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("secret"), "s").unwrap();
    let root = tempfile::tempdir().unwrap();
    let at = |path: &str| root.path().join(path);
    for directory in ["a/b", "skipped", "empty"] {
        fs::create_dir_all(at(directory)).unwrap();
    }
    for file in ["x", "a/y", "a/b/z", "skipped/w", "a/skipped"] {
        fs::write(at(file), file).unwrap();
    }
    let expected = ["a/b/z", "a/skipped", "a/y", "x"];
    assert_eq!(paths(root.path(), Odd::Refused).unwrap(), expected);

    symlink(outside.path(), at("a/link")).unwrap();
    symlink(outside.path().join("secret"), at("a/file")).unwrap();
    rustix::fs::mknodat(CWD, at("a/pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert!(matches!(paths(root.path(), Odd::Refused), Err(TreeError::Odd { .. })));
    assert_eq!(paths(root.path(), Odd::Ignored).unwrap(), expected);
    let sum = sums(root.path(), BOUNDS, Odd::Ignored, |_| false).unwrap()["a/y"];
    assert_eq!(sum, Sum { bytes: 3, hash: ContentHash::of(b"a/y") });
    // The root may be reached by a link: its caller knows where it leads.
    symlink(root.path(), outside.path().join("root")).unwrap();
    assert_eq!(paths(&outside.path().join("root"), Odd::Ignored).unwrap(), expected);
}

#[test]
fn a_directory_that_is_too_much_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let bytes = |bytes| sums(root.path(), TreeLimits { entries: 3, bytes }, Odd::Refused, |_| false);
    fs::write(root.path().join("a"), "12345").unwrap();
    assert!(bytes(5).is_ok());
    assert!(matches!(bytes(4), Err(TreeError::TooMuch { limit: 4, .. })));
    fs::create_dir(root.path().join("b")).unwrap();
    fs::write(root.path().join("b/c"), "").unwrap();
    assert!(bytes(5).is_ok());
    fs::write(root.path().join("b/d"), "").unwrap();
    assert!(matches!(bytes(5), Err(TreeError::TooMuch { limit: 3, .. })));
}

#[test]
fn depth_is_limited() {
    let root = tempfile::tempdir().unwrap();
    let nested = |depth: usize| vec!["d"; depth].join("/");
    fs::create_dir_all(root.path().join(nested(MAX_DEPTH - 1))).unwrap();
    assert!(paths(root.path(), Odd::Refused).is_ok());
    fs::create_dir_all(root.path().join(nested(MAX_DEPTH))).unwrap();
    assert!(matches!(paths(root.path(), Odd::Refused), Err(TreeError::Deep { .. })));
}

#[test]
fn a_name_that_is_no_text_is_refused() {
    let root = tempfile::tempdir().unwrap();
    fs::write(root.path().join(std::ffi::OsStr::from_bytes(b"a\xff")), "").unwrap();
    assert!(matches!(paths(root.path(), Odd::Ignored), Err(TreeError::Name { path }) if path == "a\u{fffd}"));
    assert!(matches!(paths(&root.path().join("none"), Odd::Ignored), Err(TreeError::Io { .. })));
}

#[test]
fn a_walk_goes_by_name_into_the_directories_it_is_told_to() {
    let root = tempfile::tempdir().unwrap();
    fs::create_dir_all(root.path().join("a/b")).unwrap();
    for file in ["a/b/z", "a/c", "a.x", "b"] {
        fs::write(root.path().join(file), "").unwrap();
    }
    let mut tree = Walk::new(openat(CWD, root.path(), DIRECTORY, Mode::empty()).unwrap());
    assert_eq!(tree.list(None, 2), Err(Unlisted::TooMany));
    assert_eq!(tree.list(None, 3), Ok(3));
    let mut found = Vec::new();
    while let Some(entry) = tree.next() {
        let is_directory = entry.kind().unwrap() == FileType::Directory;
        assert_eq!(entry.open_directory().is_ok(), is_directory, "{}", entry.path);
        if is_directory && entry.path != "a/b" {
            assert_eq!(tree.list(Some(&entry), 10), Ok(2));
            // A listed directory may be a link by the time it is opened.
            fs::rename(root.path().join("a"), root.path().join("moved")).unwrap();
            symlink("moved", root.path().join("a")).unwrap();
            assert_eq!(entry.open_directory().unwrap_err(), Errno::NOTDIR);
            assert_eq!(tree.list(Some(&entry), 10), Err(Unlisted::Failed(Errno::NOTDIR)));
        }
        found.push((entry.path, entry.depth));
    }
    let expected = [("a", 1), ("a/b", 2), ("a/c", 2), ("a.x", 1), ("b", 1)];
    assert_eq!(found, expected.map(|(path, depth)| (path.to_owned(), depth)));
}
