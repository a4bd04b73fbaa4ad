//! Putting other bytes where a skill lies: after a run changed it, and when the owner goes back to a version.

use base::{ContentHash, Refusal};
use skills::install::{Expected, put, remove};
use skills::{Form, Library, Place, SkillName, Snapshot};

use crate::environment::blocking;

/// Where a skill lies when the host itself puts it there, in the root of the old place: a bare component as a file, anything else
/// as a directory.
pub(super) fn target(old: &Place, name: &SkillName, form: Form) -> Place {
    let entry = match (form, Form::of_file(&old.entry)) {
        (Form::Component, Some(Form::Component)) | (Form::Directory | Form::Archive, None) => return old.clone(),
        (Form::Component, _) => format!("{name}.wasm"),
        (Form::Directory | Form::Archive, Some(_)) => name.to_string(),
    };
    Place { root: old.root.clone(), entry }
}

/// Puts `new` in the place of what lies at `old`, which must be `expected` and whose bytes are kept as a version before. What
/// a person changed meanwhile is not overwritten.
///
/// # Errors
/// When something else lies there, or the disk fails: then what lay there still does.
pub(super) async fn replace(
    library: &Library,
    old: &Place,
    expected: ContentHash,
    name: &SkillName,
    new: Snapshot,
) -> Result<Place, Refusal> {
    let to = target(old, name, new.form);
    let root = library.root_path(old)?;
    let (versions, from, place, bounds) = (library.versions().clone(), old.clone(), to.clone(), *library.bounds());
    blocking(move || {
        let lies = skills::snapshot::read(&root.join(&from.entry), &bounds).map_err(skills::SkillError::from)?;
        if lies.hash != expected {
            return Err(skills::SkillError::Changed.into());
        }
        versions.keep(&lies)?;
        versions.keep(&new)?;
        if place == from {
            put(&root, &place.entry, &new, Expected::Hash(expected))?;
        } else {
            put(&root, &place.entry, &new, Expected::Absent)?;
            remove(&root, &from.entry)?;
        }
        Ok(())
    })
    .await?;
    Ok(to)
}
