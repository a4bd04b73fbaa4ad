//! The object database: loose objects, packs, and directories of objects borrowed from others.
//!
//! It must not know references or the working tree. It survives bytes of any kind: an object that is larger than a limit,
//! a delta that grows without end, a chain of deltas or borrowed directories that leads back to itself.

mod blocks;
mod budget;
mod delta;
mod loose;
mod pack;
mod pack_index;
mod pack_writer;

use std::cell::OnceCell;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use gix_hash::{Kind as HashKind, ObjectId, Prefix, oid};
use gix_object::Kind;

use crate::error::{Fault, Result};
use crate::limits::{MAX_ALTERNATES, MAX_OBJECT_BYTES, MAX_PACKS, MAX_SMALL_FILE_BYTES};
use crate::repository::read_small;

pub(crate) use budget::Budget;
use pack::Pack;

/// The hash of all repositories that are read here.
pub(crate) const HASH: HashKind = HashKind::Sha1;

/// An object in memory.
#[derive(Debug, Clone)]
pub(crate) struct Object {
    pub kind: Kind,
    pub data: Rc<Vec<u8>>,
}

/// The kind and size of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub kind: Kind,
    pub bytes: u64,
}

/// One directory of objects.
struct Store {
    directory: PathBuf,
    packs: OnceCell<Vec<Pack>>,
}

/// All objects that a repository sees.
pub(crate) struct Objects {
    stores: Vec<Store>,
    /// Whether a borrowed directory lies outside the workspace, where it cannot be read.
    borrowed_out_of_reach: bool,
    budget: Rc<Budget>,
}

impl Objects {
    /// Opens the objects of a repository. `root` is the workspace on this machine and `shown` its name.
    pub(crate) fn open(git: &Path, root: &Path, shown: &Path, budget: Rc<Budget>) -> Result<Self> {
        let mut objects = Self { stores: Vec::new(), borrowed_out_of_reach: false, budget };
        let mut waiting = vec![git.join("objects")];
        while let Some(directory) = waiting.pop() {
            // A directory that leads back to itself is known already.
            if objects.stores.iter().any(|store| store.directory == directory) {
                continue;
            }
            if objects.stores.len() > MAX_ALTERNATES {
                return Err(Fault::limit(format_args!(
                    "objects are borrowed from more than {MAX_ALTERNATES} directories"
                )));
            }
            if let Some(list) = read_small(&directory.join("info/alternates"), MAX_SMALL_FILE_BYTES)? {
                for line in list.split(|byte| *byte == b'\n').filter(|line| !line.is_empty() && !line.starts_with(b"#"))
                {
                    match alternate(line, &directory, root, shown) {
                        Some(place) => waiting.push(place),
                        None => objects.borrowed_out_of_reach = true,
                    }
                }
            }
            objects.stores.push(Store { directory, packs: OnceCell::new() });
        }
        Ok(objects)
    }

    pub(crate) fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Reads an object, if there is one of this name.
    pub(crate) fn find(&self, id: &oid) -> Result<Option<Object>> {
        self.budget.object()?;
        if id == ObjectId::empty_tree(HASH) {
            return Ok(Some(Object { kind: Kind::Tree, data: Rc::new(Vec::new()) }));
        }
        for store in &self.stores {
            for pack in store.packs()? {
                if let Some(offset) = pack.offset_of(id)? {
                    return pack.read(offset, &self.budget).map(Some);
                }
            }
            if let Some(found) = loose::read(&store.directory, id, &self.budget)? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Reads an object that has to be there.
    pub(crate) fn read(&self, id: &oid) -> Result<Object> {
        self.find(id)?.ok_or_else(|| self.missing(id))
    }

    /// Reads an object of one kind.
    pub(crate) fn read_as(&self, id: &oid, kind: Kind) -> Result<Rc<Vec<u8>>> {
        let object = self.read(id)?;
        if object.kind == kind {
            return Ok(object.data);
        }
        Err(Fault::corrupt(format_args!("object {id} is a {}, not a {kind}", object.kind)))
    }

    /// The kind and size of an object, without reading it whole.
    pub(crate) fn header(&self, id: &oid) -> Result<Option<Header>> {
        self.budget.object()?;
        for store in &self.stores {
            for pack in store.packs()? {
                if let Some(offset) = pack.offset_of(id)? {
                    return pack.header(offset, &self.budget).map(Some);
                }
            }
            if let Some(header) = loose::header(&store.directory, id)? {
                return Ok(Some(header));
            }
        }
        Ok((id == ObjectId::empty_tree(HASH)).then_some(Header { kind: Kind::Tree, bytes: 0 }))
    }

    pub(crate) fn contains(&self, id: &oid) -> Result<bool> {
        for store in &self.stores {
            if loose::exists(&store.directory, id) {
                return Ok(true);
            }
            for pack in store.packs()? {
                if pack.offset_of(id)?.is_some() {
                    return Ok(true);
                }
            }
        }
        Ok(id == ObjectId::empty_tree(HASH))
    }

    /// The objects whose names begin so, at most `most` of them, sorted and each once.
    pub(crate) fn beginning_with(&self, prefix: &Prefix, most: usize) -> Result<Vec<ObjectId>> {
        let mut found = Vec::new();
        for store in &self.stores {
            loose::beginning_with(&store.directory, prefix, most, &mut found)?;
            for pack in store.packs()? {
                pack.beginning_with(prefix, most, &mut found)?;
            }
        }
        found.sort_unstable();
        found.dedup();
        found.truncate(most);
        Ok(found)
    }

    /// The number of objects in packs: git's default length of short names depends on it.
    pub(crate) fn packed_count(&self) -> Result<u64> {
        let mut count: u64 = 0;
        for store in &self.stores {
            for pack in store.packs()? {
                count = count.saturating_add(u64::from(pack.count()));
            }
        }
        Ok(count)
    }

    /// Stores an object and returns its name.
    pub(crate) fn write(&self, kind: Kind, data: &[u8]) -> Result<ObjectId> {
        let id = hash(kind, data)?;
        if !self.contains(&id)? {
            let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
            loose::write(self.own()?, kind, bytes, &mut &*data, &id)?;
        }
        Ok(id)
    }

    /// Stores a file of any size, read in pieces: once for its name and, if it is new, once to be stored.
    pub(crate) fn write_file(&self, place: &Path, bytes: u64, id: &ObjectId) -> Result<()> {
        if self.contains(id)? {
            return Ok(());
        }
        let mut file = fs::File::open(place).map_err(|error| Fault::fatal(format_args!("cannot read: {error}")))?;
        loose::write(self.own()?, Kind::Blob, bytes, &mut file, id)
    }

    fn own(&self) -> Result<&Path> {
        let store = self.stores.first().ok_or_else(|| Fault::corrupt("there is no directory of objects"))?;
        Ok(&store.directory)
    }

    pub(crate) fn missing(&self, id: &oid) -> Fault {
        if self.borrowed_out_of_reach {
            return Fault::fatal(format_args!(
                "object {id} is missing: the repository borrows objects from a directory outside the workspace"
            ));
        }
        Fault::fatal(format_args!("bad object {id}"))
    }
}

impl Store {
    fn packs(&self) -> Result<&[Pack]> {
        if let Some(packs) = self.packs.get() {
            return Ok(packs);
        }
        let mut packs = Vec::new();
        for entry in fs::read_dir(self.directory.join("pack")).into_iter().flatten().flatten() {
            let index = entry.path();
            if index.extension().is_none_or(|extension| extension != "idx") {
                continue;
            }
            if packs.len() >= MAX_PACKS {
                return Err(Fault::limit(format_args!("the repository has more than {MAX_PACKS} packs")));
            }
            if let Some(pack) = Pack::open(&index)? {
                packs.push(pack);
            }
        }
        // The order of a directory is no order; the largest first finds most.
        packs.sort_by_key(|pack| std::cmp::Reverse(pack.count()));
        Ok(self.packs.get_or_init(|| packs))
    }
}

/// The place of a borrowed directory, if it is in the workspace.
fn alternate(line: &[u8], directory: &Path, root: &Path, shown: &Path) -> Option<PathBuf> {
    let path = Path::new(std::str::from_utf8(line).ok()?);
    let below = match path.strip_prefix(shown) {
        Ok(below) => below.to_owned(),
        Err(_) if path.is_absolute() => return None,
        Err(_) => directory.strip_prefix(root).ok()?.join(path),
    };
    let mut place = root.to_owned();
    let mut depth: usize = 0;
    for component in below.components() {
        match component {
            Component::Normal(name) => {
                place.push(name);
                depth = depth.saturating_add(1);
            }
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => {
                place.pop();
                depth = depth.saturating_sub(1);
            }
            _ => return None,
        }
    }
    Some(place)
}

/// The name of an object.
pub(crate) fn hash(kind: Kind, data: &[u8]) -> Result<ObjectId> {
    gix_object::compute_hash(HASH, kind, data).map_err(Fault::fatal)
}

/// Refuses an object that is too large for memory.
fn check_size(bytes: u64) -> Result<usize> {
    if bytes > MAX_OBJECT_BYTES {
        return Err(Fault::limit(format_args!("an object has {bytes} bytes, and at most {MAX_OBJECT_BYTES} are read")));
    }
    usize::try_from(bytes).map_err(|_| Fault::limit("an object is larger than memory"))
}
