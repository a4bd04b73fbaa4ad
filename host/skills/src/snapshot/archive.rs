//! Reading an archive in place: nothing is unpacked to the disk.
//!
//! It survives names that lead elsewhere or are there twice, links and devices, encrypted entries, bombs, a list of
//! entries that contradicts them, and unlisted entries. An archive that two programs could read in two ways is refused,
//! because the owner may have looked with the other one.

use std::collections::BTreeMap;
use std::io::{Cursor, Read as _};
use std::sync::Arc;

use rustix::fs::FileType;
use zip::{CompressionMethod, ZipArchive};

use super::error::shown;
use super::rules::{Rules, path_fault};
use super::{
    PLAIN_MODE, PROPOSAL_BYTES, SkillBounds, SkillForm, Snapshot, SnapshotError, is_history, is_manifest, is_proposal,
};

/// How many times larger than the archive its content may be: ten times the ratio of text.
const MAX_RATIO: u64 = 200;
/// Bytes of content that any archive may have.
const RATIO_FREE_BYTES: u64 = 10 << 20;
/// Where the locator of a zip64 archive can be: the last entry, a comment, and itself.
const TAIL_BYTES: usize = (64 << 10) + 22 + 20;
const ZIP64_LOCATOR: &[u8] = b"PK\x06\x07";

/// Reads a `.zip` or `.skill` archive from memory. A single directory around everything is stripped; files that macOS
/// adds are left out.
///
/// # Errors
/// If the archive is damaged or ambiguous, or breaks a rule.
pub fn read_archive(bytes: &[u8], bounds: &SkillBounds) -> Result<Snapshot, SnapshotError> {
    let mut archive = open(bytes)?;
    let entries = listed(&archive, bounds)?;
    let around = around(&entries);
    let mut rules = Rules::new(bounds);
    let mut has_history = false;
    // Names first: a tree that is refused for one is not unpacked.
    for ArchiveEntry { path, is_directory, .. } in &entries {
        match path.strip_prefix(&around) {
            Some("") | None => {}
            Some(path) if is_history(path) => has_history = true,
            Some(path) if *is_directory => rules.directory(path)?,
            Some(path) => rules.file(path)?,
        }
    }
    consistent(&mut archive)?;
    let mut files: BTreeMap<String, (Arc<[u8]>, u32)> = BTreeMap::new();
    let mut left = bytes.len().try_into().map_or(u64::MAX, |size: u64| size.saturating_mul(MAX_RATIO));
    left = left.max(RATIO_FREE_BYTES);
    for ArchiveEntry { index, path, is_directory } in &entries {
        let within = path.strip_prefix(&around).filter(|path| !is_directory && !is_history(path));
        let Some(path) = within else { continue };
        let room = if is_proposal(path) { PROPOSAL_BYTES } else { rules.room(path) };
        let content = content(&mut archive, *index, path, room.min(left).saturating_add(1))?;
        let size = content.len() as u64;
        if is_proposal(path) && size > PROPOSAL_BYTES {
            return Err(SnapshotError::TooLarge { path: path.to_owned(), limit: PROPOSAL_BYTES });
        }
        if !is_proposal(path) {
            rules.sized(path, size)?;
        }
        left = left
            .checked_sub(size)
            .ok_or_else(|| SnapshotError::archive(format!("unpacks to more than {MAX_RATIO} times its own size")))?;
        files.insert(path.to_owned(), (content.into(), PLAIN_MODE));
    }
    rules.finish(SkillForm::Archive)?;
    Ok(Snapshot { has_history, ..Snapshot::of(SkillForm::Archive, files, None) })
}

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

fn open(bytes: &[u8]) -> Result<Archive<'_>, SnapshotError> {
    // Its list may have millions of entries, which would be in memory before they could be counted.
    let tail = bytes.get(bytes.len().saturating_sub(TAIL_BYTES)..).unwrap_or_default();
    if tail.windows(ZIP64_LOCATOR.len()).any(|window| window == ZIP64_LOCATOR) {
        return Err(SnapshotError::archive("is a zip64 archive: pack it as a plain zip"));
    }
    let archive = ZipArchive::new(Cursor::new(bytes)).map_err(|_| SnapshotError::archive("is no zip, or damaged"))?;
    if archive.offset() != 0 {
        return Err(SnapshotError::archive("has something else before it: a file that is two things is not read"));
    }
    if archive.has_duplicate_names() {
        return Err(SnapshotError::archive("has two entries of one name"));
    }
    Ok(archive)
}

struct ArchiveEntry {
    index: usize,
    /// Without the slash at the end of a directory.
    path: String,
    is_directory: bool,
}

/// The entries that count, each of them a file or a directory with a valid path.
fn listed(archive: &Archive<'_>, bounds: &SkillBounds) -> Result<Vec<ArchiveEntry>, SnapshotError> {
    if archive.len() as u64 > bounds.entries.saturating_mul(2) {
        return Err(SnapshotError::TooMany { limit: bounds.entries });
    }
    let mut entries = Vec::with_capacity(archive.len());
    for index in 0..archive.len() {
        let entry = archive.by_index_data(index).map_err(|_| damaged())?;
        let name = std::str::from_utf8(entry.name_raw()).map_err(|_| {
            SnapshotError::path(&String::from_utf8_lossy(entry.name_raw()), "has a name that is not UTF-8")
        })?;
        let (path, is_directory) = name.strip_suffix('/').map_or((name, false), |path| (path, true));
        if let Some(fault) = path_fault(path) {
            return Err(SnapshotError::path(path, fault));
        }
        // Checked for every claimed system of origin: readers differ in whether they ask for it.
        match FileType::from_raw_mode(entry.external_attributes() >> 16) {
            FileType::Symlink => return Err(SnapshotError::Link { path: path.to_owned() }),
            FileType::RegularFile if !is_directory => {}
            FileType::Directory if is_directory => {}
            FileType::Unknown if entry.external_attributes() >> 28 == 0 => {}
            _ => return Err(SnapshotError::Special { path: path.to_owned() }),
        }
        if entry.encrypted() {
            return Err(SnapshotError::archive(format!("has an encrypted file, `{}`", shown(path))));
        }
        if !matches!(entry.compression(), CompressionMethod::Stored | CompressionMethod::Deflated) {
            let fault = format!("has `{}` compressed in another way than deflate", shown(path));
            return Err(SnapshotError::archive(fault));
        }
        if is_directory && entry.size() > 0 {
            return Err(SnapshotError::FileAndDirectory { path: shown(path) });
        }
        if !is_left_out(path, is_directory) {
            entries.push(ArchiveEntry { index, path: path.to_owned(), is_directory });
        }
    }
    Ok(entries)
}

/// Whether macOS adds the entry to archives unasked.
fn is_left_out(path: &str, is_directory: bool) -> bool {
    let (first, last) = (path.split('/').next(), path.rsplit('/').next());
    first == Some("__MACOSX") || (!is_directory && last == Some(".DS_Store"))
}

/// The path, with a slash, of the one directory that holds everything and has the `SKILL.md`; otherwise empty.
fn around(entries: &[ArchiveEntry]) -> String {
    let none = String::new;
    let Some(first) = entries.first().and_then(|entry| entry.path.split('/').next()) else { return none() };
    let prefix = format!("{first}/");
    let all_in_it =
        entries.iter().all(|entry| entry.path.starts_with(&prefix) || (entry.is_directory && entry.path == first));
    let has_manifest =
        entries.iter().any(|entry| !entry.is_directory && entry.path.strip_prefix(&prefix).is_some_and(is_manifest));
    if all_in_it && has_manifest { prefix } else { none() }
}

/// Refuses an archive that another program could read differently.
fn consistent(archive: &mut Archive<'_>) -> Result<(), SnapshotError> {
    if archive.has_overlapping_entries().map_err(|_| damaged())? {
        return Err(SnapshotError::archive("has entries that lie over each other"));
    }
    archive
        .validate_header_consistency()
        .map_err(|_| SnapshotError::archive("has a list of entries that is not what its entries say"))
}

fn content(archive: &mut Archive<'_>, index: usize, path: &str, most: u64) -> Result<Vec<u8>, SnapshotError> {
    let wrong = || SnapshotError::archive(format!("has in `{}` other bytes than it says", shown(path)));
    let entry = archive.by_index(index).map_err(|_| wrong())?;
    let says = entry.size();
    // The declared size is not believed: it only sets the capacity of the buffer.
    let mut content = Vec::with_capacity(usize::try_from(says.min(most)).unwrap_or(0));
    // Reading to the end compares length and checksum with the declared ones.
    entry.take(most).read_to_end(&mut content).map_err(|_| wrong())?;
    let read = content.len() as u64;
    if read < most && read != says { Err(wrong()) } else { Ok(content) }
}

fn damaged() -> SnapshotError {
    SnapshotError::archive("is damaged")
}
