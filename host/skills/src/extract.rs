//! Skills that a run left in its workspace (SPEC SKILL-10). Nothing that is copied is ever executed.
//!
//! The workspace was filled by guests. Its files are read once, below open directories, through no link, within bounds,
//! and obey the rules of any other skill; secrets are scrubbed before anything is hashed. Failures are reported, and
//! hinder nothing else. It must not know where a skill is installed or its permissions.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Arc;

use receipts::tree::{DIRECTORY, Entry, Unlisted, Walk};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, openat, statat};
use rustix::io::Errno;

use crate::snapshot::{check_tree, is_manifest, read_kept};
use crate::{SkillBounds, SkillFile, SkillForm, SkillName, Snapshot};

mod parts;

use parts::{is_looked_at, is_part};

/// Maximum skills of one run.
pub const MAX_SKILLS: usize = 16;
/// Where a run puts skills beside the one at the top of its workspace.
const SKILLS: &str = "skills";
/// Maximum names of any kind in one directory of a workspace.
const MAX_LISTED: u64 = 100_000;

/// Parameters of an extraction.
pub struct Extraction<'a> {
    /// A workspace that no guest uses any longer.
    pub workspace: &'a Path,
    /// The skill that the run was given at the top of its workspace, if it was given one.
    pub baseline: Option<Baseline<'a>>,
    /// Removes secrets from a file's content.
    pub scrub: &'a dyn Fn(&[u8]) -> Vec<u8>,
    /// Limits on a skill's files and bytes.
    pub bounds: SkillBounds,
}

/// The skill that a run was given.
#[derive(Clone, Copy)]
pub struct Baseline<'a> {
    /// Name of the given skill.
    pub name: &'a SkillName,
    /// Bytes of the given skill.
    pub snapshot: &'a Snapshot,
}

/// A skill that a run made or changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractedSkill {
    /// Name from its own manifest.
    pub name: SkillName,
    /// The whole new tree: a directory without a proposal.
    pub snapshot: Snapshot,
    /// Whether it is not the skill that the run was given.
    pub created: bool,
    /// Files that were added or changed.
    pub changed: Vec<String>,
    /// Files that were removed.
    pub deleted: Vec<String>,
}

/// Something that looks like a skill but cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExtractFailure {
    /// Name from its manifest, otherwise that of its directory.
    pub name: String,
    /// Path in the workspace; empty: at the top.
    pub path: String,
    /// Why it cannot be taken.
    pub reason: String,
}

/// Finds the skills that a run made: the one at the top of its workspace and those in `skills/`, each as a whole or
/// with the reason for its failure. Unchanged skills are skipped.
#[must_use]
pub fn extract(extraction: &Extraction<'_>) -> Vec<Result<ExtractedSkill, ExtractFailure>> {
    let workspace = match openat(CWD, extraction.workspace, DIRECTORY.difference(OFlags::NOFOLLOW), Mode::empty()) {
        Ok(workspace) => workspace,
        // A run that never began has no workspace.
        Err(Errno::NOENT) => return Vec::new(),
        Err(error) => return vec![Err(unreadable("the workspace", "", error))],
    };
    let mut found: Vec<Result<ExtractedSkill, ExtractFailure>> = Vec::new();
    let skills = beside(&workspace);
    found.extend(one(extraction, "", workspace).transpose());
    let skills = match skills {
        Ok(skills) => skills,
        Err(failure) => {
            found.push(Err(failure));
            return found;
        }
    };
    for entry in skills {
        let shown = entry.path.clone();
        let path = format!("{SKILLS}/{shown}");
        if found.len() >= MAX_SKILLS {
            let reason = format!("a run can leave {MAX_SKILLS} skills: this one and those after it were not looked at");
            found.push(Err(ExtractFailure { name: shown, path, reason }));
            break;
        }
        let taken = match entry.open_directory() {
            Ok(directory) => one(extraction, &path, directory),
            // A link to a directory, or one that took the place of a directory just now.
            Err(Errno::LOOP | Errno::NOTDIR) => Err(ExtractFailure { name: shown, path, reason: LINK.to_owned() }),
            Err(error) => Err(unreadable(&shown, &path, error)),
        };
        let is_twice = |new: &ExtractedSkill| found.iter().flatten().any(|other| other.name == new.name);
        let taken = match taken {
            Ok(Some(new)) if is_twice(&new) => {
                let reason = format!("the run left another skill that is called `{}`", new.name);
                Err(ExtractFailure { name: new.name.to_string(), path: format!("{SKILLS}/{}", entry.path), reason })
            }
            taken => taken,
        };
        found.extend(taken.transpose());
    }
    found
}

const LINK: &str = "it is a link: put the directory itself there";

fn unreadable(name: &str, path: &str, error: Errno) -> ExtractFailure {
    let reason = format!("it cannot be read: {}", std::io::Error::from(error).kind());
    ExtractFailure { name: name.to_owned(), path: path.to_owned(), reason }
}

/// The directories in `skills/`, by name, and links in it, which are refused by name. They are opened one at a time.
fn beside(workspace: &OwnedFd) -> Result<Vec<Entry>, ExtractFailure> {
    let failed = |error| unreadable(SKILLS, SKILLS, error);
    let skills = match openat(workspace, SKILLS, DIRECTORY, Mode::empty()) {
        Ok(skills) => skills,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => {
            let status = statat(workspace, SKILLS, AtFlags::SYMLINK_NOFOLLOW).map_err(failed)?;
            return match FileType::from_raw_mode(status.st_mode) {
                // A file of that name is a file like any other.
                FileType::RegularFile => Ok(Vec::new()),
                FileType::Symlink => {
                    Err(ExtractFailure { name: SKILLS.into(), path: SKILLS.into(), reason: LINK.into() })
                }
                _ => Err(failed(error)),
            };
        }
    };
    let mut list = Walk::new(skills);
    list.list(None, MAX_LISTED).map_err(|error| match error {
        Unlisted::Failed(error) => failed(error),
        Unlisted::TooMany => {
            let reason = format!("it has more than {MAX_LISTED} entries");
            ExtractFailure { name: SKILLS.into(), path: SKILLS.into(), reason }
        }
    })?;
    let mut found = Vec::new();
    for entry in list.filter(|entry| !entry.path.starts_with('.')) {
        if matches!(entry.kind().map_err(failed)?, FileType::Directory | FileType::Symlink) {
            found.push(entry);
        }
    }
    Ok(found)
}

/// The skill in a directory; `None` if it is missing or unchanged.
fn one(extraction: &Extraction<'_>, path: &str, directory: OwnedFd) -> Result<Option<ExtractedSkill>, ExtractFailure> {
    let called = path.rsplit('/').next().filter(|name| !name.is_empty());
    let baseline = extraction.baseline;
    let fallback = called.or(baseline.map(|baseline| baseline.name.as_str())).unwrap_or("SKILL.md");
    let failed = |name: &str, reason: String| ExtractFailure { name: name.to_owned(), path: path.to_owned(), reason };
    if !has_manifest(&directory, baseline) {
        return Ok(None);
    }
    let mut read = read_kept(directory, &extraction.bounds, MAX_LISTED, &is_looked_at)
        .map_err(|error| failed(fallback, error.to_string()))?;
    read.retain(|path, _| is_part(path));
    let mut files = BTreeMap::new();
    for (path, (bytes, mode)) in read {
        let known = baseline.and_then(|baseline| baseline.snapshot.files.get(&path));
        let file = cleaned(extraction, &path, bytes, mode, known).map_err(|reason| failed(fallback, reason))?;
        files.insert(path, file);
    }
    // Its name decides which skill it is compared with.
    let draft = Snapshot::of(SkillForm::Directory, files, None);
    let manifest = draft.manifest(fallback).map_err(|error| failed(fallback, error.to_string()))?;
    let baseline = baseline.filter(|baseline| *baseline.name == manifest.name).map(|baseline| baseline.snapshot);
    let (snapshot, changed, deleted) = whole(draft, baseline);
    if baseline.is_some() && changed.is_empty() && deleted.is_empty() {
        return Ok(None);
    }
    let sizes = snapshot.files.iter().map(|(path, file)| (path.as_str(), file.bytes.len() as u64));
    check_tree(SkillForm::Directory, sizes, &extraction.bounds)
        .map_err(|error| failed(manifest.name.as_str(), error.to_string()))?;
    Ok(Some(ExtractedSkill { name: manifest.name, snapshot, created: baseline.is_none(), changed, deleted }))
}

/// Whether there is a manifest: by the name that the standard says, or by that in the given skill.
fn has_manifest(directory: &OwnedFd, baseline: Option<Baseline<'_>>) -> bool {
    let given = baseline.iter().flat_map(|baseline| baseline.snapshot.files.keys()).filter(|path| is_manifest(path));
    let mut names = given.map(String::as_str).chain(["SKILL.md"]);
    names.any(|name| {
        let status = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
        // A special file is refused with a reason when it is read.
        status.is_ok_and(|status| FileType::from_raw_mode(status.st_mode) != FileType::Directory)
    })
}

/// A file's content without secrets, and its permission bits. An unchanged file stays as given, bits included: guests
/// cannot change the bits, but copying to a workspace may.
fn cleaned(
    extraction: &Extraction<'_>,
    path: &str,
    bytes: Arc<[u8]>,
    mode: u32,
    known: Option<&SkillFile>,
) -> Result<(Arc<[u8]>, u32), String> {
    let mode = known.map_or(if mode & 0o111 == 0 { 0o644 } else { 0o755 }, |known| known.mode);
    if known.is_some_and(|known| known.bytes == bytes) {
        return Ok((bytes, mode));
    }
    let scrubbed = (extraction.scrub)(&bytes);
    if scrubbed == *bytes {
        return Ok((bytes, mode));
    }
    // Replacing bytes would break it, and leaving them would store the secret.
    let is_text = !bytes.contains(&0) && std::str::from_utf8(&bytes).is_ok();
    if !is_text {
        return Err(format!("`{path}` has the value of a credential in it and is no text"));
    }
    Ok((scrubbed.into(), mode))
}

/// The whole new tree with its changed and removed files. Files of the given skill that a run has no say about stay.
fn whole(draft: Snapshot, baseline: Option<&Snapshot>) -> (Snapshot, Vec<String>, Vec<String>) {
    let Some(baseline) = baseline else {
        let changed = draft.files.keys().cloned().collect();
        return (draft, changed, Vec::new());
    };
    let differs = |path: &str, file: &SkillFile| baseline.files.get(path).is_none_or(|known| known.hash != file.hash);
    let changed = draft.files.iter().filter(|(path, file)| differs(path, file)).map(|(path, _)| path.clone()).collect();
    let given = baseline.files.iter();
    let (parts, others): (Vec<_>, Vec<_>) = given.partition(|(path, _)| is_part(path));
    let deleted =
        parts.into_iter().map(|(path, _)| path.clone()).filter(|path| !draft.files.contains_key(path)).collect();
    let all = draft.files.iter().chain(others).map(|(path, file)| (path.clone(), (file.bytes.clone(), file.mode)));
    (Snapshot::of(SkillForm::Directory, all.collect(), None), changed, deleted)
}

#[cfg(test)]
mod tests;
