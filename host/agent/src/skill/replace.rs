//! Replacing the bytes of a skill: after a run changed it, and when the owner rolls back.

use std::path::PathBuf;

use base::{ContentHash, Refusal, RefusalCode};
use skills::install::{ExpectedState, put, put_aside};
use skills::{Library, SkillForm, SkillPlace, Snapshot};
use store::blocking;

/// Replaces the skill at `place` by `new`. Its bytes must be `expected` and already kept as a version. A concurrent
/// change by a person is not overwritten.
///
/// # Errors
/// If other bytes are in place, or the disk fails: then the existing files are left in place.
pub(super) async fn replace(
    library: &Library,
    place: &SkillPlace,
    expected: ContentHash,
    new: Snapshot,
) -> Result<(), Refusal> {
    check_form(place, &new)?;
    let root = library.root_path(place)?;
    let (versions, entry, bounds) = (library.versions().clone(), place.entry.clone(), *library.bounds());
    blocking(move || {
        let lies = skills::snapshot::read(&root.join(&entry), &bounds).map_err(skills::SkillError::from)?;
        if lies.hash != expected {
            return Err(skills::SkillError::Changed.into());
        }
        versions.keep(&lies)?;
        versions.keep(&new)?;
        Ok(put(&root, &entry, &new, ExpectedState::Hash(expected))?)
    })
    .await
}

/// Puts `new` in the place of a skill that cannot be read. Returns the path where the unreadable content is kept.
///
/// # Errors
/// If the skill can be read by now, or the disk fails: then the existing files are left in place.
pub(super) async fn replace_unreadable(
    library: &Library,
    place: &SkillPlace,
    new: Snapshot,
) -> Result<PathBuf, Refusal> {
    check_form(place, &new)?;
    let root = library.root_path(place)?;
    let (versions, entry, bounds) = (library.versions().clone(), place.entry.clone(), *library.bounds());
    blocking(move || {
        versions.keep(&new)?;
        Ok(root.join(put_aside(&root, &entry, &new, &bounds)?))
    })
    .await
}

/// Refuses a version of another form, or with files that are no part of a skill.
fn check_form(place: &SkillPlace, new: &Snapshot) -> Result<(), Refusal> {
    // Trust belongs to a place: a skill of one form is not moved to another, where its history would not be known.
    let fits = match SkillForm::of_file(&place.entry) {
        Some(SkillForm::Component) => new.form == SkillForm::Component,
        Some(_) => false,
        None => new.form != SkillForm::Component,
    };
    if !fits {
        let reason = format!("`{place}` is not a directory, so only its owner can change what lies there");
        return Err(Refusal::new(RefusalCode::IllegalState, reason)
            .with_remedy("unpack it into a directory of the skill's name, and approve that"));
    }
    if new.files.keys().any(|path| skills::snapshot::is_history(path)) {
        let reason = "this version was kept with files in `.git`, which are not part of a skill any more";
        return Err(
            Refusal::new(RefusalCode::IllegalState, reason).with_remedy("check it out with `git`, and approve it")
        );
    }
    Ok(())
}
