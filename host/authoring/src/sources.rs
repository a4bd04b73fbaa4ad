//! A fingerprint of a project's sources, for noticing that a file was saved.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};

use crate::Project;

/// Directories at the top of a project that are made by building. Further down these are names of an author's own modules.
const BUILT: [&str; 2] = ["build", "target"];
/// Those that are made at any depth.
const BUILT_ANYWHERE: [&str; 2] = ["node_modules", "__pycache__"];
/// Files that are looked at.
const MAX_FILES: usize = 10_000;

/// A number that changes with the names, sizes and times of the project's files, without those that are built and those that are hidden.
#[must_use]
pub fn fingerprint(project: &Project) -> u64 {
    let mut files = BTreeSet::new();
    collect(&project.directory, &BUILT, &mut files);
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

fn collect(directory: &Path, built: &[&str], files: &mut BTreeSet<PathBuf>) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_built = built.contains(&name.as_str()) || BUILT_ANYWHERE.contains(&name.as_str());
        if files.len() >= MAX_FILES || name.starts_with('.') || is_built || name == "Cargo.lock" {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), &[], files),
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

    #[test]
    fn modules_named_like_a_build_are_sources() {
        let root = tempfile::tempdir().unwrap();
        let name = SkillName::parse("greeter").unwrap();
        let project = crate::create(&root.path().join("p"), Kind::Tool, Language::Python, &name).unwrap();
        let changes = |path: &str| {
            let (before, path) = (fingerprint(&project), project.directory.join(path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
            fingerprint(&project) != before
        };
        for source in ["src/build/a.py", "src/target/a.py", "skill/scripts/build/a.py"] {
            assert!(changes(source), "{source}");
        }
        for built in ["build/a.py", "target/a.py", "src/__pycache__/a.pyc", "src/node_modules/a/a.js"] {
            assert!(!changes(built), "{built}");
        }
    }
}
