//! A pack: many objects in one file, most of them as deltas.

use std::cell::RefCell;
use std::collections::{HashMap, VecDeque};
use std::io::{BufReader, Read as _};
use std::path::Path;
use std::rc::Rc;

use flate2::bufread::ZlibDecoder;
use gix_hash::{ObjectId, Prefix, oid};
use gix_object::Kind;

use super::blocks::Blocks;
use super::pack_index::PackIndex;
use super::{Budget, Header, Object, check_size, delta};
use crate::error::{Fault, Result};
use crate::limits::{MAX_CACHED_BYTES, MAX_DELTA_DEPTH};

/// Bytes of a pack's own header.
const HEADER_BYTES: u64 = 12;

pub(super) struct Pack {
    blocks: Blocks,
    index: PackIndex,
    cache: RefCell<Cache>,
}

/// The head of one entry.
struct Entry {
    kind: EntryKind,
    /// Bytes of the decompressed object or delta.
    bytes: u64,
    /// Where the compressed bytes begin.
    data: u64,
}

enum EntryKind {
    Whole(Kind),
    /// A delta on the entry at this offset.
    Delta(u64),
}

/// Objects that may be the base of the next delta.
#[derive(Default)]
struct Cache {
    objects: HashMap<u64, Object>,
    order: VecDeque<u64>,
    bytes: usize,
}

impl Pack {
    /// Opens a pack by its index. `None` when there is only the index.
    pub(super) fn open(index: &Path) -> Result<Option<Self>> {
        let Ok(blocks) = Blocks::open(&index.with_extension("pack")) else { return Ok(None) };
        let mut head = [0; 8];
        blocks.read_at(0, &mut head).map_err(|error| damaged(&error))?;
        if !matches!(head, [b'P', b'A', b'C', b'K', 0, 0, 0, 2 | 3]) {
            return Err(damaged(&"its header is not valid"));
        }
        Ok(Some(Self { blocks, index: PackIndex::open(index)?, cache: RefCell::default() }))
    }

    pub(super) fn count(&self) -> u32 {
        self.index.count()
    }

    pub(super) fn offset_of(&self, id: &oid) -> Result<Option<u64>> {
        self.index.offset_of(id)
    }

    pub(super) fn beginning_with(&self, prefix: &Prefix, most: usize, found: &mut Vec<ObjectId>) -> Result<()> {
        self.index.beginning_with(prefix, most, found)
    }

    /// Reads an object, with all deltas that it is made of.
    pub(super) fn read(&self, offset: u64, budget: &Budget) -> Result<Object> {
        let mut deltas = Vec::new();
        let mut at = offset;
        let mut object = loop {
            if let Some(known) = self.cache.borrow().objects.get(&at) {
                break known.clone();
            }
            let entry = self.entry(at)?;
            match entry.kind {
                EntryKind::Whole(kind) => {
                    let data = self.inflate(&entry, budget)?;
                    let object = Object { kind, data: Rc::new(data) };
                    self.cache.borrow_mut().keep(at, &object);
                    break object;
                }
                EntryKind::Delta(base) => {
                    if deltas.len() >= MAX_DELTA_DEPTH {
                        return Err(Fault::limit(format_args!("a chain of deltas has more than {MAX_DELTA_DEPTH}")));
                    }
                    deltas.push((at, entry));
                    at = base;
                }
            }
        };
        while let Some((at, entry)) = deltas.pop() {
            let delta = self.inflate(&entry, budget)?;
            let (base_bytes, bytes, commands) = delta::sizes(&delta)?;
            if u64::try_from(object.data.len()) != Ok(base_bytes) {
                return Err(damaged(&"a delta is not made for its base"));
            }
            let size = check_size(bytes)?;
            budget.inflate(bytes)?;
            object = Object { kind: object.kind, data: Rc::new(delta::apply(&object.data, commands, size)?) };
            self.cache.borrow_mut().keep(at, &object);
        }
        Ok(object)
    }

    /// The kind and size of an object: only the beginnings of its deltas are decompressed.
    pub(super) fn header(&self, offset: u64, budget: &Budget) -> Result<Header> {
        let mut at = offset;
        let mut bytes = None;
        for _ in 0..=MAX_DELTA_DEPTH {
            budget.object()?;
            let entry = self.entry(at)?;
            match entry.kind {
                EntryKind::Whole(kind) => return Ok(Header { kind, bytes: bytes.unwrap_or(entry.bytes) }),
                EntryKind::Delta(base) => {
                    if bytes.is_none() {
                        let mut head = Vec::new();
                        let reader = ZlibDecoder::new(BufReader::new(self.blocks.reader(entry.data)));
                        reader.take(32).read_to_end(&mut head).map_err(|error| damaged(&error))?;
                        bytes = Some(delta::sizes(&head)?.1);
                    }
                    at = base;
                }
            }
        }
        Err(Fault::limit(format_args!("a chain of deltas has more than {MAX_DELTA_DEPTH}")))
    }

    fn entry(&self, offset: u64) -> Result<Entry> {
        if offset < HEADER_BYTES || offset >= self.blocks.len() {
            return Err(damaged(&"an entry is outside"));
        }
        let mut at = offset;
        let mut next = || -> Result<u8> {
            let mut byte = [0];
            self.blocks.read_at(at, &mut byte).map_err(|error| damaged(&error))?;
            at = at.saturating_add(1);
            let [byte] = byte;
            Ok(byte)
        };
        let first = next()?;
        let mut bytes = u64::from(first & 0x0f);
        let mut shift: u32 = 4;
        let mut byte = first;
        while byte & 0x80 != 0 {
            byte = next()?;
            if shift > 56 {
                return Err(damaged(&"a size is too large"));
            }
            bytes |= u64::from(byte & 0x7f) << shift;
            shift += 7;
        }
        let kind = match (first >> 4) & 0x07 {
            1 => EntryKind::Whole(Kind::Commit),
            2 => EntryKind::Whole(Kind::Tree),
            3 => EntryKind::Whole(Kind::Blob),
            4 => EntryKind::Whole(Kind::Tag),
            6 => {
                let mut byte = next()?;
                let mut distance = u64::from(byte & 0x7f);
                while byte & 0x80 != 0 {
                    byte = next()?;
                    distance = distance
                        .checked_add(1)
                        .and_then(|distance| distance.checked_mul(128))
                        .map(|distance| distance | u64::from(byte & 0x7f))
                        .ok_or_else(|| damaged(&"a distance is too large"))?;
                }
                // A base is always in front, so that such a chain cannot be a circle.
                let base = offset.checked_sub(distance).filter(|base| *base >= HEADER_BYTES && *base < offset);
                EntryKind::Delta(base.ok_or_else(|| damaged(&"the base of a delta is outside"))?)
            }
            7 => {
                let mut id = [0; 20];
                for place in &mut id {
                    *place = next()?;
                }
                let id = ObjectId::Sha1(id);
                let base = self.index.offset_of(&id)?;
                EntryKind::Delta(base.ok_or_else(|| damaged(&"the base of a delta is not in the pack"))?)
            }
            _ => return Err(damaged(&"the kind of an entry is unknown")),
        };
        Ok(Entry { kind, bytes, data: at })
    }

    fn inflate(&self, entry: &Entry, budget: &Budget) -> Result<Vec<u8>> {
        let size = check_size(entry.bytes)?;
        budget.inflate(entry.bytes)?;
        let mut data = Vec::with_capacity(size);
        let reader = ZlibDecoder::new(BufReader::new(self.blocks.reader(entry.data)));
        let read = reader.take(entry.bytes.saturating_add(1)).read_to_end(&mut data);
        if read.is_err() || data.len() != size {
            return Err(damaged(&"an entry does not have the size that it says"));
        }
        Ok(data)
    }
}

impl Cache {
    fn keep(&mut self, offset: u64, object: &Object) {
        let bytes = object.data.len();
        if bytes > MAX_CACHED_BYTES / 4 || self.objects.contains_key(&offset) {
            return;
        }
        while self.bytes.saturating_add(bytes) > MAX_CACHED_BYTES {
            let Some(old) = self.order.pop_front().and_then(|offset| self.objects.remove(&offset)) else { break };
            self.bytes = self.bytes.saturating_sub(old.data.len());
        }
        self.bytes = self.bytes.saturating_add(bytes);
        self.order.push_back(offset);
        self.objects.insert(offset, object.clone());
    }
}

fn damaged(reason: &dyn std::fmt::Display) -> Fault {
    Fault::corrupt(format_args!("a pack cannot be read: {reason}"))
}
