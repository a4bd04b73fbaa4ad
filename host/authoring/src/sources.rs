//! A fingerprint of a project's sources, for noticing that a file was saved.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crate::Project;

/// Directories that are made by building.
const BUILT: [&str; 4] = ["build", "target", "node_modules", "__pycache__"];
/// Files that are looked at.
const MAX_FILES: usize = 10_000;

/// A number that changes with the names, sizes and times of the project's files, without those that are built and those that are hidden.
#[must_use]
pub fn fingerprint(project: &Project) -> u64 {
    let mut files = BTreeSet::new();
    collect(&project.directory, &mut files);
    let mut hasher = DefaultHasher::new();
    for path in files {
        path.hash(&mut hasher);
        if let Ok(metadata) = fs::metadata(&path) {
            metadata.len().hash(&mut hasher);
            metadata.modified().ok().hash(&mut hasher);
        }
    }
    hasher.finish()
}

fn collect(directory: &Path, files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if files.len() >= MAX_FILES || name.starts_with('.') || BUILT.contains(&name.as_str()) || name == "Cargo.lock" {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), files),
            Ok(kind) if kind.is_file() => drop(files.insert(entry.path())),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use skills::SkillName;

    use super::*;
    use crate::{Kind, Language};

    #[test]
    fn saving_a_source_changes_it_and_building_does_not() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("p"), Kind::Tool, Language::Rust, &name).unwrap();
        let before = fingerprint(&project);
        fs::create_dir(project.build_directory()).unwrap();
        fs::write(project.component(), "x").unwrap();
        assert_eq!(fingerprint(&project), before);
        fs::write(project.directory.join("src/lib.rs"), "// changed").unwrap();
        let changed = fingerprint(&project);
        assert_ne!(changed, before);
        fs::write(project.directory.join("src/more.rs"), "").unwrap();
        assert_ne!(fingerprint(&project), changed);
    }
}
