//! Code of components, in files of the cache: a later start maps it, and neither compiles nor unpacks nor copies it.
//!
//! The cache is as trustworthy as this program: only its owner can write to it. A file gets its name when all of it is on the disk,
//! because a process that executes half a file does not come back with an error.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};
use std::{fs, io};

use base::ContentHash;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use rustix::process::geteuid;
use wasmtime::Engine;

/// The bytes of all files together, above which those that were used longest ago are removed.
const MAX_BYTES: u64 = 1 << 30;
/// How the names of drafts begin. No component's code has such a name.
const DRAFT: &str = ".tmp";
/// The age at which a draft is one of a killed process: all of its bytes are in memory when it is made, so that writing it takes seconds.
/// A living writer that is slower loses its draft, and the next start compiles again.
const MAX_DRAFT_AGE: Duration = Duration::from_secs(60 * 60);

/// The file for the code of one component and engine.
#[derive(Clone)]
pub(crate) struct KeptCode {
    directory: PathBuf,
    name: String,
}

impl KeptCode {
    pub(crate) fn of(cache: &Path, engine: &Engine, component: ContentHash) -> Self {
        Self { directory: cache.join("compiled"), name: name(engine, component) }
    }

    /// The file, if there is one in a directory that only its owner can write to. It counts as used now.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let path = self.directory.join(&self.name);
        if !self.is_ours().ok()? {
            return None;
        }
        let file = fs::File::open(&path).ok()?;
        let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        futimens(file, &Timestamps { last_access: at(UTIME_NOW), last_modification: at(UTIME_OMIT) }).ok();
        Some(path)
    }

    /// Whether only its owner, which is this user, can write to the directory.
    fn is_ours(&self) -> io::Result<bool> {
        let directory = fs::metadata(&self.directory)?;
        Ok(directory.uid() == geteuid().as_raw() && directory.mode() & 0o022 == 0)
    }

    /// Keeps the code, and removes drafts of killed processes and files for which there is no room.
    pub(crate) fn keep(&self, code: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        if !self.is_ours()? {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let mut draft = tempfile::Builder::new().prefix(DRAFT).tempfile_in(&self.directory)?;
        draft.write_all(code)?;
        draft.as_file().sync_all()?;
        // The time by the clock that stamps files.
        let now = draft.as_file().metadata()?.modified()?;
        draft.persist(self.directory.join(&self.name))?;
        prune(&self.directory, MAX_BYTES, now)
    }
}

/// The name of the code that an engine makes of a component.
pub(crate) fn name(engine: &Engine, component: ContentHash) -> String {
    let mut compatible = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut compatible);
    format!("{}-{:016x}", component.hex(), compatible.finish())
}

struct FoundFile {
    accessed: SystemTime,
    modified: SystemTime,
    bytes: u64,
    path: PathBuf,
    is_draft: bool,
}

fn prune(directory: &Path, max_bytes: u64, now: SystemTime) -> io::Result<()> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Another process may have removed it.
        let Ok(metadata) = entry.metadata() else { continue };
        files.push(FoundFile {
            accessed: metadata.accessed()?,
            modified: metadata.modified()?,
            bytes: metadata.len(),
            path: entry.path(),
            is_draft: entry.file_name().as_encoded_bytes().starts_with(DRAFT.as_bytes()),
        });
    }
    files.sort_unstable_by_key(|file| std::cmp::Reverse(file.accessed));
    let mut bytes = 0_u64;
    for file in files {
        let is_dead = file.is_draft && now.duration_since(file.modified).is_ok_and(|age| age > MAX_DRAFT_AGE);
        if !is_dead {
            bytes = bytes.saturating_add(file.bytes);
        }
        if is_dead || bytes > max_bytes {
            fs::remove_file(file.path).ok();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_were_used_longest_ago_make_room() {
        let cache = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let kept = ["a", "b", "c"].map(|text| KeptCode::of(cache.path(), &engine, ContentHash::of(text.as_bytes())));
        assert!(kept[0].file().is_none());
        for (code, age) in kept.iter().zip([300, 200, 100]) {
            code.keep(&[0; 1_000]).unwrap();
            let file = fs::File::open(code.file().unwrap()).unwrap();
            let earlier = file.metadata().unwrap().accessed().unwrap() - std::time::Duration::from_secs(age);
            file.set_times(fs::FileTimes::new().set_accessed(earlier)).unwrap();
        }
        kept[0].file().unwrap();
        prune(&cache.path().join("compiled"), 2_999, SystemTime::UNIX_EPOCH).unwrap();
        assert_eq!(kept.map(|code| code.file().is_some()), [true, false, true]);
    }

    #[test]
    fn drafts_of_killed_processes_are_removed_and_those_of_others_stay() {
        let cache = tempfile::tempdir().unwrap();
        let kept =
            ["a", "b"].map(|text| KeptCode::of(cache.path(), &Engine::default(), ContentHash::of(text.as_bytes())));
        kept[0].keep(&[0; 1_000]).unwrap();
        let directory = cache.path().join("compiled");
        let earlier = |file: &Path, age: Duration| {
            let file = fs::File::options().write(true).open(file).unwrap();
            let modified = file.metadata().unwrap().modified().unwrap() - age;
            file.set_times(fs::FileTimes::new().set_modified(modified)).unwrap();
        };
        let minute = Duration::from_secs(60);
        let drafts = [("killed", MAX_DRAFT_AGE + minute), ("other", MAX_DRAFT_AGE - minute)].map(|(name, age)| {
            let draft = directory.join(format!("{DRAFT}-{name}"));
            fs::write(&draft, "half").unwrap();
            earlier(&draft, age);
            draft
        });
        // The age of code is no reason to remove it.
        earlier(&kept[0].file().unwrap(), 2 * MAX_DRAFT_AGE);
        kept[1].keep(&[0; 1_000]).unwrap();
        assert_eq!(drafts.map(|draft| draft.exists()), [false, true]);
        assert!(kept.iter().all(|code| code.file().is_some()));
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 3, "a draft is renamed, not copied");
    }
}
