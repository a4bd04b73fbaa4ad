//! Directories of the owner that a run works on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use base::text::Foreign;
use base::{Refusal, RefusalCode};
use serde::{Deserialize, Serialize};

/// The most directories of one run.
pub const MAX_DIRECTORIES: usize = 16;

/// A directory that a run sees through a copy-on-write layer (SPEC LAND-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DirectoryGrant {
    /// Absolute path on this machine, without links.
    pub path: PathBuf,
    /// Its directory below `/workspace`; empty if it is `/workspace` itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub prefix: String,
    /// Whether the run may only read it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
    /// Paths in it that the run may see although a rule hides them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shown: Vec<String>,
}

/// Names the directories below `/workspace`: one is `/workspace` itself if it is `alone`, with no other files beside it;
/// otherwise each has the last component of its path as its name.
///
/// # Errors
/// If two have the same name, one lies in another, one has no name, or there are more than [`MAX_DIRECTORIES`].
pub fn directories(mut granted: Vec<DirectoryGrant>, alone: bool) -> Result<Vec<DirectoryGrant>, Refusal> {
    let wrong = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
    if granted.len() > MAX_DIRECTORIES {
        return Err(wrong(format!("a run works on at most {MAX_DIRECTORIES} directories")));
    }
    if granted.is_empty() || (granted.len() == 1 && alone) {
        return Ok(granted);
    }
    let mut names = BTreeSet::new();
    for directory in &mut granted {
        let named = directory.path.file_name().and_then(|name| name.to_str());
        let name = named.ok_or_else(|| wrong(format!("{} has no name that is text", shown(&directory.path))))?;
        if !names.insert(name.to_owned()) {
            let reason = format!("two of the directories are named `{}`", Foreign(name).escaped(80));
            return Err(wrong(reason).with_remedy("name the directory above them: `--on PARENT`"));
        }
        name.clone_into(&mut directory.prefix);
    }
    for outer in &granted {
        if let Some(inner) = granted.iter().find(|one| one.path != outer.path && one.path.starts_with(&outer.path)) {
            return Err(wrong(format!("{} lies in {}: name one of them", shown(&inner.path), shown(&outer.path))));
        }
    }
    Ok(granted)
}

fn shown(path: &Path) -> String {
    format!("`{}`", Foreign(&path.to_string_lossy()).escaped(200))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grant(path: &&str) -> DirectoryGrant {
        DirectoryGrant { path: PathBuf::from(path), prefix: String::new(), read_only: false, shown: Vec::new() }
    }

    fn named(paths: &[&str]) -> Result<Vec<String>, String> {
        let named = directories(paths.iter().map(grant).collect(), true).map_err(|refusal| refusal.reason)?;
        Ok(named.into_iter().map(|directory| directory.prefix).collect())
    }

    #[test]
    fn one_directory_is_the_workspace_and_several_are_in_it() {
        assert_eq!(named(&["/a/src"]).unwrap(), [""]);
        assert_eq!(
            directories(vec![grant(&"/a/src")], false).unwrap()[0].prefix,
            "src",
            "files of a skill are beside it"
        );
        assert_eq!(named(&["/a/src", "/b/data"]).unwrap(), ["src", "data"]);
        assert!(named(&["/a/src", "/b/src"]).unwrap_err().contains("named `src`"));
        assert!(named(&["/a/src", "/a"]).unwrap_err().contains("lies in `/a`"));
        assert!(named(&["/", "/a"]).unwrap_err().contains("has no name"));
        assert!(named(&["/a"; MAX_DIRECTORIES + 1]).unwrap_err().contains("at most 16"));
    }
}
