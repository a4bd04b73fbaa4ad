//! The index entries that belong to a commit.

use std::collections::HashMap;
use std::io::Write as _;
use std::time::Duration;

use gix::bstr::{BStr, ByteSlice as _};
use gix::index::entry::{Flags, Stage, Stat};
use gix::index::write::{Extensions, Options};
use gix::index::{File, decode};
use gix::lock::acquire::Fail;

use crate::draft::{hash, read};
use crate::error::{CommitError, Result};
use crate::intent::{Blob, EntryChange, Intent, Standing, id};
use crate::open::Repository;

/// How long another program may hold the lock of the index.
const MAX_LOCKED: Duration = Duration::from_secs(3);

impl Repository {
    /// Updates the index entries of an intent whose reference was moved. An entry that is another one than before is the
    /// owner's, and stays; so do all others.
    ///
    /// # Errors
    /// If the index cannot be read or written; it can be tried again.
    pub fn update_index(&self, intent: &Intent) -> Result<()> {
        if !intent.is_head || self.head()? != intent.reference || !self.is_moved(intent)? {
            return Ok(());
        }
        let failed = || CommitError::failed::<gix::Error>("the index cannot be updated");
        let cannot = || CommitError::failed::<std::io::Error>("the index cannot be updated");
        let path = self.repo.index_path();
        // Read under the lock: a `git add` in between would be lost otherwise.
        let lock =
            gix::lock::File::acquire_to_update_resource(&path, Fail::AfterDurationWithBackoff(MAX_LOCKED), None, 0);
        let mut lock = lock.map_err(failed())?;
        let kind = self.repo.object_hash();
        let mut index = match path.exists() {
            true => File::at(&path, kind, false, decode::Options::default()).map_err(failed())?,
            false => File::from_state(gix::index::State::new(kind), &path),
        };
        let changes: Vec<_> =
            intent.entries.iter().filter(|entry| current(&index, &entry.path) == entry.from).collect();
        if changes.is_empty() {
            return Ok(());
        }
        self.change(&mut index, &changes)?;
        // The cached trees are those of before.
        let extensions = Extensions::Given { tree_cache: false, end_of_index_entry: true };
        index.remove_tree();
        let mut bytes = Vec::new();
        index.write_to(&mut bytes, Options { extensions, skip_hash: false }).map_err(failed())?;
        lock.with_mut(|file| file.write_all(&bytes).and_then(|()| file.sync_all())).map_err(cannot())?;
        lock.commit().map(|_| ()).map_err(|error| cannot()(error.error))
    }

    fn is_moved(&self, intent: &Intent) -> Result<bool> {
        Ok(matches!(self.standing(intent)?, Standing::After | Standing::BuiltOn))
    }

    fn change(&self, index: &mut File, changes: &[&EntryChange]) -> Result<()> {
        let by_path: HashMap<&[u8], &EntryChange> =
            changes.iter().map(|change| (change.path.as_bytes(), *change)).collect();
        let mut flags = HashMap::new();
        index.remove_entries(|_, path, entry| {
            let change = by_path.get(path.as_bytes());
            if change.is_some() {
                flags.insert(path.to_vec(), entry.flags);
            }
            change.is_some()
        });
        // Lookups need the order, which pushing breaks.
        let free: Vec<_> =
            changes.iter().filter(|change| change.to.is_some() && is_free(index, &change.path)).collect();
        for change in free {
            let Some(to) = &change.to else { continue };
            let kept = flags.get(change.path.as_bytes()).copied().unwrap_or(Flags::empty());
            let kept = kept & (Flags::ASSUME_VALID | Flags::SKIP_WORKTREE);
            let stat = self.stat(&change.path, to).unwrap_or_default();
            index.dangerously_push_entry(stat, id(&to.id)?, kept, to.mode()?, BStr::new(&change.path));
        }
        index.sort_entries();
        Ok(())
    }

    /// The times of the file, if it has this content: by them, git knows without reading that it is unchanged. Otherwise
    /// git has to read it.
    fn stat(&self, path: &str, to: &Blob) -> Option<Stat> {
        let file = self.root.join(path);
        let before = gix::index::fs::Metadata::from_path_no_follow(&file).ok()?;
        let content = read(&file, path).ok()?;
        if hash(&content).ok()? != id(&to.id).ok()? {
            return None;
        }
        let after = gix::index::fs::Metadata::from_path_no_follow(&file).ok()?;
        let (before, after) = (Stat::from_fs(&before).ok()?, Stat::from_fs(&after).ok()?);
        (before == after).then_some(after)
    }
}

fn current(index: &File, path: &str) -> Option<Blob> {
    let entry = index.entry_by_path_and_stage(BStr::new(path), Stage::Unconflicted)?;
    (!entry.flags.contains(Flags::INTENT_TO_ADD)).then(|| Blob::of(entry.mode, entry.id))
}

/// Whether no entry of the index is above or below the path.
fn is_free(index: &File, path: &str) -> bool {
    let mut above = path;
    while let Some((next, _)) = above.rsplit_once('/') {
        above = next;
        if index.entry_by_path(BStr::new(above)).is_some() {
            return false;
        }
    }
    index.prefixed_entries(BStr::new(&format!("{path}/"))).unwrap_or_default().is_empty()
}
