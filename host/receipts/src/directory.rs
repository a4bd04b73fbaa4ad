//! The content hash of a directory: which version of a skill it is (SPEC SKILL-5).
//!
//! SHA-256 over a heading and, for each file in order of the bytes of its path, the length of the path, the path, and the
//! SHA-256 of the content. Lengths come before the measured bytes and hashes have one length, so no two trees give the
//! same bytes. Times, owners, modes and empty directories do not count; links, pipes and devices are errors, because their
//! targets could change while the hash stays.

use std::path::Path;

use base::{ContentHash, ContentHasher};

use crate::tree::{Odd, TreeError, TreeLimits, sums};

/// The one file of a skill that does not count: the owner's policy for it, which names the hash.
pub const POLICY: &str = "policy.json";

/// The history of a repository at the top of a skill. It is no part of the skill: not hashed, not given to runs.
pub const HISTORY: &str = ".git";

/// Whether a path is [`HISTORY`] or lies in it.
#[must_use]
pub fn is_history(path: &str) -> bool {
    path.strip_prefix(HISTORY).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

const HEADING: &[u8] = b"motor directory 1\n";
/// Far more than a skill has.
const BOUNDS: TreeLimits = TreeLimits { entries: 10_000, bytes: 512 << 20 };

/// The hash of every file in a directory but [`POLICY`] and [`HISTORY`] at its top.
///
/// # Errors
/// When it cannot be read as a whole, or has something that is neither a file nor a directory.
pub fn directory_hash(directory: &Path) -> Result<ContentHash, TreeError> {
    let found = sums(directory, BOUNDS, Odd::Refused, |path| path == POLICY || is_history(path))?;
    Ok(files_hash(found.iter().map(|(path, sum)| (path.as_str(), &sum.hash))))
}

/// The same hash over files that are known already: path and hash of the content, in order of the bytes of the paths,
/// without [`POLICY`] and [`HISTORY`].
pub fn files_hash<'a>(files: impl IntoIterator<Item = (&'a str, &'a ContentHash)>) -> ContentHash {
    let mut hasher = ContentHasher::default();
    hasher.update(HEADING);
    for (path, hash) in files {
        hasher.update(&(path.len() as u64).to_be_bytes());
        hasher.update(path.as_bytes());
        hasher.update(hash.as_bytes());
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    fn tree(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = directory.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        directory
    }

    fn hash(files: &[(&str, &[u8])]) -> ContentHash {
        directory_hash(tree(files).path()).unwrap()
    }

    /// The hash is a promise to every later version and to other programs.
    #[test]
    fn the_hash_is_what_its_definition_says() {
        let mut bytes = b"motor directory 1\n".to_vec();
        // By bytes of whole paths: `-` is before `/`.
        for (path, content) in [("a-b", "2"), ("a/c", "1"), ("b", "")] {
            bytes.extend((path.len() as u64).to_be_bytes());
            bytes.extend(path.bytes());
            bytes.extend(ContentHash::of(content.as_bytes()).as_bytes());
        }
        assert_eq!(hash(&[("a/c", b"1"), ("b", b""), ("a-b", b"2")]), ContentHash::of(&bytes));
        assert_eq!(
            hash(&[("SKILL.md", b"# A\n")]).to_string(),
            "sha256:c8e0708391bd5320e9a21094d5d4e9b468b1c551b97fc96c4c11c53237d36a35"
        );
    }

    #[test]
    fn what_does_not_count() {
        let files: &[(&str, &[u8])] = &[("SKILL.md", b"x"), ("bin/a", b"y")];
        let first = tree(files);
        let hash = directory_hash(first.path()).unwrap();
        let other = tree(files);
        fs::write(other.path().join(POLICY), "{}").unwrap();
        fs::create_dir_all(other.path().join("empty")).unwrap();
        fs::create_dir_all(other.path().join(".git/hooks")).unwrap();
        fs::write(other.path().join(".git/hooks/post-checkout"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", other.path().join(".git/link")).unwrap();
        fs::set_permissions(other.path().join("bin/a"), fs::Permissions::from_mode(0o755)).unwrap();
        fs::File::open(other.path().join("bin/a")).unwrap().set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(directory_hash(other.path()).unwrap(), hash);
        for path in [".git", ".git/config"] {
            assert!(is_history(path), "{path}");
        }
        for path in [".gitignore", ".github/x", "a/.git", "git"] {
            assert!(!is_history(path), "{path}");
        }
        // A policy further down is a file like any other.
        fs::write(other.path().join("bin").join(POLICY), "{}").unwrap();
        assert_ne!(directory_hash(other.path()).unwrap(), hash);
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let directory = tree(&[("a", b"x")]);
        std::os::unix::fs::symlink("a", directory.path().join("b")).unwrap();
        assert!(matches!(directory_hash(directory.path()), Err(TreeError::Odd { path }) if path == "b"));
        fs::remove_file(directory.path().join("b")).unwrap();
        assert!(directory_hash(directory.path()).is_ok());
        assert!(directory_hash(&directory.path().join("a")).is_err());
        assert!(directory_hash(&directory.path().join("none")).is_err());
    }

    fn files() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
        // Few letters, so that trees that nearly collide are common; a part is never the name of a directory.
        prop::collection::btree_map("([ab]d/)?[ab-]{1,3}", prop::collection::vec(0..3_u8, 0..4), 1..5)
    }

    fn hash_of(files: &BTreeMap<String, Vec<u8>>) -> ContentHash {
        let files: Vec<_> = files.iter().map(|(path, content)| (path.as_str(), content.as_slice())).collect();
        hash(&files)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

        #[test]
        fn trees_have_one_hash_exactly_when_they_are_the_same(one in files(), other in files()) {
            prop_assert_eq!(hash_of(&one) == hash_of(&other), one == other);
        }

        /// Another content, another name, a byte moved to the next file, a file more or less.
        #[test]
        fn any_change_is_another_hash(files in files(), at in any::<prop::sample::Index>(), kind in 0..5) {
            let before = hash_of(&files);
            let path = at.get(&files.keys().cloned().collect::<Vec<_>>()).clone();
            let mut changed = files.clone();
            let mut content = changed.remove(&path).unwrap();
            match kind {
                0 => {
                    content.push(7);
                    changed.insert(path, content);
                }
                1 => drop(changed.insert(format!("{path}c"), content)),
                2 => drop(changed.insert(format!("c/{path}"), content)),
                3 => {
                    let rest = content.split_off(content.len() / 2);
                    changed.insert(path.clone(), content);
                    changed.insert(format!("{path}c"), rest);
                }
                _ => {}
            }
            prop_assert_ne!(hash_of(&changed), before);
        }
    }
}
