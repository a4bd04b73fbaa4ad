//! Code of components from outside, in files of the cache: a later start maps it, and neither compiles nor copies it.
//!
//! The cache is as trustworthy as this program: only its owner can write to it. A file gets its name when all of it is on the disk,
//! because a process that executes half a file does not come back with an error.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use std::{fs, io};

use base::ContentHash;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use rustix::process::geteuid;
use tempfile::NamedTempFile;
use wasmtime::Engine;

/// The bytes of all files together, above which those that were used longest ago are removed.
const MAX_BYTES: u64 = 1 << 30;

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
        let directory = fs::metadata(&self.directory).ok()?;
        if directory.uid() != geteuid().as_raw() || directory.mode() & 0o022 != 0 {
            return None;
        }
        let file = fs::File::open(&path).ok()?;
        let at = |tv_nsec| Timespec { tv_sec: 0, tv_nsec };
        futimens(file, &Timestamps { last_access: at(UTIME_NOW), last_modification: at(UTIME_OMIT) }).ok();
        Some(path)
    }

    /// Keeps the code, and removes files for which there is no room.
    pub(crate) fn keep(&self, code: &[u8]) -> io::Result<()> {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&self.directory)?;
        let mut draft = NamedTempFile::new_in(&self.directory)?;
        draft.write_all(code)?;
        draft.as_file().sync_all()?;
        draft.persist(self.directory.join(&self.name))?;
        prune(&self.directory, MAX_BYTES)
    }
}

/// The name of the code that an engine makes of a component.
pub(crate) fn name(engine: &Engine, component: ContentHash) -> String {
    let mut compatible = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut compatible);
    format!("{}-{:016x}", component.hex(), compatible.finish())
}

fn prune(directory: &Path, max_bytes: u64) -> io::Result<()> {
    let mut files: Vec<(SystemTime, u64, PathBuf)> = Vec::new();
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Another process may have removed it.
        if let Ok(metadata) = entry.metadata() {
            files.push((metadata.accessed()?, metadata.len(), entry.path()));
        }
    }
    files.sort_unstable_by(|one, other| other.cmp(one));
    let mut bytes = 0_u64;
    for (_, length, path) in files {
        bytes = bytes.saturating_add(length);
        if bytes > max_bytes {
            fs::remove_file(path).ok();
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
        prune(&cache.path().join("compiled"), 2_999).unwrap();
        assert_eq!(kept.map(|code| code.file().is_some()), [true, false, true]);
    }
}
