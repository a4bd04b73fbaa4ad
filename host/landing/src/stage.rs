//! The directories beside the owner's files in which new contents wait, and originals after the exchange.

use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use layer::{FileKind, Tree, stat_of};
use rustix::fs::{OFlags, RenameFlags};
use rustix::io::Errno;

use crate::edit::Side;
use crate::error::{LandError, Result};
use crate::journal::{Journal, Record};
use crate::plan::{Expected, Planned, hash_of};
use crate::step::Steps;

/// A landing's open directories.
#[derive(Debug)]
pub struct Stage {
    pub record: Record,
    pub journal: Journal,
    /// The open directories, by target.
    pub trees: Vec<Tree>,
    /// By target; those without an entry have none.
    pub slots: BTreeMap<usize, Tree>,
    /// The numbers of the staged files, by entry.
    pub staged: Vec<Option<u64>>,
}

impl Stage {
    /// Writes all new contents beside the owner's files, durably.
    pub fn prepare(record: Record, journal: Journal, steps: &Steps) -> Result<Self> {
        let trees = record.plan.targets.iter().map(crate::Target::open).collect::<Result<Vec<_>>>()?;
        let mut stage =
            Self { staged: vec![None; record.plan.entries.len()], record, journal, trees, slots: BTreeMap::new() };
        let used: Vec<_> = stage.record.plan.done().map(|(_, entry)| entry.edit.target).collect();
        for target in used {
            if !stage.slots.contains_key(&target) {
                steps.step()?;
                let tree = stage.tree(target)?;
                tree.make_private_directory(&stage.record.staging).map_err(LandError::at(&stage.record.staging))?;
                let slots = tree.below(&stage.record.staging).map_err(LandError::at(&stage.record.staging))?;
                stage.slots.insert(target, slots);
            }
        }
        let mut staged = std::mem::take(&mut stage.staged);
        for (index, entry) in stage.record.plan.done() {
            if let Some(place) = staged.get_mut(index) {
                *place = stage.put(index, entry, steps)?;
            }
        }
        stage.staged = staged;
        for slots in stage.slots.values() {
            steps.step()?;
            rustix::fs::syncfs(slots.handle()).map_err(LandError::at(&stage.record.staging))?;
        }
        stage.journal.keep_staged(&stage.staged)?;
        Ok(stage)
    }

    /// Opens the directories of an interrupted landing, as far as they are there.
    pub fn reopen(journal: Journal) -> Result<Self> {
        let record = journal.record()?;
        let trees = record.plan.targets.iter().map(crate::Target::open).collect::<Result<Vec<_>>>()?;
        let mut slots = BTreeMap::new();
        for (target, tree) in trees.iter().enumerate() {
            match tree.below(&record.staging) {
                Ok(found) => {
                    slots.insert(target, found);
                }
                Err(Errno::NOENT) => {}
                Err(error) => return Err(LandError::at(&record.staging)(error)),
            }
        }
        let staged = journal.staged().unwrap_or_default();
        Ok(Self { record, journal, trees, slots, staged })
    }

    pub fn tree(&self, target: usize) -> Result<&Tree> {
        self.trees.get(target).ok_or(LandError::Damaged("plan.json"))
    }

    pub fn slots(&self, target: usize) -> Result<&Tree> {
        self.slots.get(&target).ok_or(LandError::Damaged("plan.json"))
    }

    /// Writes the new content of one entry, and returns its number.
    fn put(&self, index: usize, entry: &Planned, steps: &Steps) -> Result<Option<u64>> {
        let slots = self.slots(entry.edit.target)?;
        let name = index.to_string();
        let at = LandError::at(&entry.edit.path);
        match &entry.edit.after {
            Side::Missing => return Ok(None),
            Side::Directory => {
                steps.step()?;
                slots.make_directory(&name).map_err(&at)?;
            }
            Side::Symlink { target } => {
                steps.step()?;
                slots.symlink(target.as_deref().unwrap_or_default(), &name).map_err(&at)?;
            }
            Side::File { .. } => {
                let content = entry.content().ok_or(LandError::Damaged("plan.json"))?;
                let kept = self.journal.landed(index);
                steps.step()?;
                copy(content, &kept).map_err(LandError::journal)?;
                // The landed content is the content that was shown.
                if Some(hash_of(&kept)?) != entry.new {
                    return Err(LandError::Changed(entry.edit.path.clone()));
                }
                steps.step()?;
                let mut file = slots.write(&name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL).map_err(&at)?;
                let kept = File::open(kept).map_err(LandError::journal)?;
                let mode = match entry.expected {
                    Expected::Content { mode, .. } => mode,
                    _ => stat_of(&kept).map_err(&at)?.mode,
                };
                let written = fill(&kept, &mut file).and_then(|()| file.set_permissions(Permissions::from_mode(mode)));
                written.map_err(|source| LandError::Io { what: entry.edit.path.clone(), source })?;
            }
        }
        Ok(Some(slots.stat(&name).map_err(&at)?.inode))
    }

    /// Moves the entry in a slot to a place in the journal.
    pub fn keep(&self, target: usize, index: usize, place: &Path) -> Result<()> {
        let slots = self.slots(target)?;
        let name = index.to_string();
        let kind = match slots.stat(&name) {
            Ok(found) => found.kind,
            Err(Errno::NOENT) => return Ok(()),
            Err(error) => return Err(LandError::at(&name)(error)),
        };
        let (above, file) = (place.parent().unwrap_or(place), place.file_name().and_then(|name| name.to_str()));
        let journal = Tree::open(above).map_err(|_| LandError::Damaged("originals"))?;
        let file = file.ok_or(LandError::Damaged("originals"))?;
        match slots.rename(&name, &journal, file, RenameFlags::empty()) {
            Ok(()) => return Ok(()),
            Err(Errno::XDEV) => {}
            Err(error) => return Err(LandError::at(&name)(error)),
        }
        // The home is on another file system: a copy under another name first, so that a half one is not taken for it.
        let new = format!("{file}.new");
        fs::remove_file(above.join(&new)).or_else(missing).map_err(LandError::journal)?;
        match kind {
            FileKind::File => {
                let original = slots.read(&name).map_err(LandError::at(&name))?;
                let mut kept = File::create_new(above.join(&new)).map_err(LandError::journal)?;
                let mode = stat_of(&original).map_err(LandError::at(&name))?.mode;
                let filled =
                    fill(&original, &mut kept).and_then(|()| kept.set_permissions(Permissions::from_mode(mode)));
                filled.and_then(|()| kept.sync_all()).map_err(LandError::journal)?;
            }
            FileKind::Symlink => {
                let target = slots.read_link(&name).map_err(|_| LandError::Damaged("originals"))?;
                journal.symlink(&target, &new).map_err(LandError::at(&name))?;
            }
            FileKind::Directory => return Err(LandError::Damaged("originals")),
        }
        fs::rename(above.join(&new), place).map_err(LandError::journal)?;
        File::open(above).and_then(|above| above.sync_all()).map_err(LandError::journal)?;
        slots.remove(&name).map_err(LandError::at(&name))
    }

    /// Removes the directories beside the owner's files, which are empty now.
    pub fn clear(&mut self, steps: &Steps) -> Result<()> {
        for target in std::mem::take(&mut self.slots).into_keys() {
            steps.step()?;
            let tree = self.tree(target)?;
            tree.remove_all(&self.record.staging).map_err(LandError::at(&self.record.staging))?;
        }
        Ok(())
    }

    /// Makes everything in the owner's directories durable.
    pub fn sync(&self) -> Result<()> {
        for target in self.slots.keys() {
            rustix::fs::syncfs(self.tree(*target)?.handle()).map_err(LandError::at(&self.record.staging))?;
        }
        Ok(())
    }
}

fn missing(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}

/// Copies a file with its mode; where the file system can, both share their blocks.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let original = File::open(from)?;
    let mut copy = File::create(to)?;
    fill(&original, &mut copy)?;
    copy.set_permissions(original.metadata()?.permissions())
}

fn fill(mut original: &File, copy: &mut File) -> io::Result<()> {
    if rustix::fs::ioctl_ficlone(&*copy, original).is_err() {
        io::copy(&mut original, copy)?;
    }
    Ok(())
}
