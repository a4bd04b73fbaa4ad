//! Puts a skill in a place whose content cannot be read, and keeps that content beside it (SPEC SKILL-12).
//!
//! The unreadable content is exchanged by its name alone: links, unreadable files and files of any size are never
//! opened. A crash leaves the place as it was or with the new skill, and the old content under one of two names, none of
//! which [`super::tidy`] removes.

use std::path::Path;

use rustix::fs::{AtFlags, RenameFlags, renameat_with, unlinkat};
use rustix::io::Errno;

use super::stage::Stage;
use super::{BOUNDS, InstallRoot, check_entry, failed, io_failed, write};
use crate::snapshot::{check_tree, read};
use crate::{SkillBounds, SkillError, SkillForm, Snapshot};

/// Puts `new` in the place `entry` of a root and keeps the content that lay there. Returns the name under which it is
/// kept in the root, which begins with a dot, so that it is not a skill. Durable on return.
///
/// # Errors
/// [`SkillError::Changed`] if the place is empty or holds a skill that can be read within `bounds`. The content of the
/// place stays on any error.
pub fn put_aside(root: &Path, entry: &str, new: &Snapshot, bounds: &SkillBounds) -> Result<String, SkillError> {
    check_entry(entry)?;
    check_tree(new.form, new.files.iter().map(|(path, file)| (path.as_str(), file.bytes.len() as u64)), &BOUNDS)?;
    let root = InstallRoot::open(root)?;
    let stage = Stage::make(&root)?;
    let kept = stage.kept_name();
    let done = exchanged(&root, &stage, entry, new, bounds, &kept);
    stage.discard();
    done.map(|()| kept)
}

fn exchanged(
    root: &InstallRoot,
    stage: &Stage,
    entry: &str,
    new: &Snapshot,
    bounds: &SkillBounds,
    kept: &str,
) -> Result<(), SkillError> {
    let doing = "putting a skill in its place";
    match (new.form, new.files.values().next()) {
        (SkillForm::Component, Some(file)) => write::file(&stage.directory, entry, &file.bytes, 0o644)?,
        _ => write::tree(&stage.directory, entry, new)?,
    }
    write::sync(&stage.directory)?;
    root.take_turn();
    if read(&root.path.join(entry), bounds).is_ok_and(|lies| lies.manifest(entry).is_ok()) {
        return Err(SkillError::Changed);
    }
    // Beside its place, and not in the stage: a directory that may not be written to cannot get another parent.
    renameat_with(&stage.directory, entry, &root.directory, kept, RenameFlags::NOREPLACE)
        .map_err(|error| failed(doing, error))?;
    match renameat_with(&root.directory, kept, &root.directory, entry, RenameFlags::EXCHANGE) {
        Ok(()) => root.sync(),
        Err(error) => {
            discard(root, kept)?;
            Err(if error == Errno::NOENT { SkillError::Changed } else { failed(doing, error) })
        }
    }
}

/// Removes the new skill, which was not put in place.
fn discard(root: &InstallRoot, kept: &str) -> Result<(), SkillError> {
    let path = root.path.join(kept);
    match unlinkat(&root.directory, kept, AtFlags::empty()) {
        Ok(()) => Ok(()),
        Err(_) => std::fs::remove_dir_all(path).map_err(|source| io_failed("removing a skill's copy", source)),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use super::*;
    use crate::install::{ExpectedState, put, tidy};

    fn skill(text: &str) -> Snapshot {
        let manifest = format!("---\nname: pdf\ndescription: {text}\n---\n");
        let files = BTreeMap::from([("SKILL.md".to_owned(), (manifest.into_bytes(), 0o644))]);
        Snapshot::of(SkillForm::Directory, files, None)
    }

    #[test]
    fn unreadable_content_is_kept_and_the_skill_is_whole() {
        type Break = fn(&Path);
        let breaks: [(&str, Break); 7] = [
            ("bytes", |at| fs::write(at.join("SKILL.md"), b"\xff\xfe\xfd").unwrap()),
            ("no manifest", |at| fs::remove_file(at.join("SKILL.md")).unwrap()),
            ("a link inside", |at| symlink("/etc/passwd", at.join("data")).unwrap()),
            ("too large", |at| fs::write(at.join("big.txt"), vec![b'a'; 3 << 20]).unwrap()),
            ("no permission", |at| fs::set_permissions(at, fs::Permissions::from_mode(0o500)).unwrap()),
            ("a file", |at| {
                fs::remove_dir_all(at).unwrap();
                fs::write(at, "a file").unwrap();
            }),
            ("a link", |at| {
                fs::remove_dir_all(at).unwrap();
                symlink("/etc", at).unwrap();
            }),
        ];
        for (name, spoil) in breaks {
            let root = tempfile::tempdir().unwrap();
            let at = root.path().join("pdf");
            put(root.path(), "pdf", &skill("old"), ExpectedState::Absent).unwrap();
            if name == "no permission" {
                fs::write(at.join("broken"), "x").unwrap();
                symlink("nowhere", at.join("link")).unwrap();
            }
            spoil(&at);
            let before = fs::symlink_metadata(&at).unwrap().permissions().mode();
            let kept = put_aside(root.path(), "pdf", &skill("new"), &SkillBounds::default()).unwrap();
            assert_eq!(read(&at, &SkillBounds::default()).unwrap().hash, skill("new").hash, "{name}");
            let aside = fs::symlink_metadata(root.path().join(&kept)).unwrap();
            assert_eq!(aside.permissions().mode(), before, "{name}");
            tidy(root.path()).unwrap();
            let mut names: Vec<_> =
                fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            names.sort();
            assert_eq!(names, [kept.as_str(), "pdf"], "{name}");
            if aside.is_dir() {
                fs::set_permissions(root.path().join(&kept), fs::Permissions::from_mode(0o700)).unwrap();
            }
        }
    }

    #[test]
    fn a_skill_that_can_be_read_is_not_put_aside() {
        let root = tempfile::tempdir().unwrap();
        put(root.path(), "pdf", &skill("old"), ExpectedState::Absent).unwrap();
        let bounds = SkillBounds::default();
        assert!(matches!(put_aside(root.path(), "pdf", &skill("new"), &bounds), Err(SkillError::Changed)));
        assert!(matches!(put_aside(root.path(), "none", &skill("new"), &bounds), Err(SkillError::Changed)));
        assert_eq!(read(&root.path().join("pdf"), &bounds).unwrap().hash, skill("old").hash);
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
        assert!(put_aside(root.path(), "../pdf", &skill("new"), &bounds).is_err());
    }
}
