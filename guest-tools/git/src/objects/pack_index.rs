//! The index of a pack (`.idx`, versions 1 and 2): where in the pack an object is.

use std::cmp::Ordering;
use std::path::Path;

use gix_hash::{ObjectId, Prefix, oid};

use super::blocks::Blocks;
use crate::error::{Fault, Result};

/// Bytes of a SHA-1 name.
const ID_BYTES: u64 = 20;

/// Bytes of the table that counts the objects up to each first byte.
const FANOUT_BYTES: u64 = 256 * 4;

pub(super) struct PackIndex {
    blocks: Blocks,
    fanout: Vec<u32>,
    version: u8,
}

impl PackIndex {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let blocks = Blocks::open(path).map_err(|error| damaged(&error))?;
        let mut magic = [0; 8];
        blocks.read_at(0, &mut magic).map_err(|error| damaged(&error))?;
        let version = match magic {
            [0xff, b't', b'O', b'c', 0, 0, 0, 2] => 2,
            [0xff, b't', b'O', b'c', ..] => return Err(damaged(&"its version is unknown")),
            _ => 1,
        };
        let mut table = [0; 1024];
        let start = if version == 2 { 8 } else { 0 };
        blocks.read_at(start, &mut table).map_err(|error| damaged(&error))?;
        let (numbers, _) = table.as_chunks::<4>();
        let fanout: Vec<u32> = numbers.iter().map(|bytes| u32::from_be_bytes(*bytes)).collect();
        if !fanout.is_sorted() {
            return Err(damaged(&"its table is not sorted"));
        }
        let index = Self { blocks, fanout, version };
        let per_object = if version == 2 { ID_BYTES + 4 + 4 } else { ID_BYTES + 4 };
        let least = start + FANOUT_BYTES + per_object.saturating_mul(u64::from(index.count())) + 2 * ID_BYTES;
        if index.blocks.len() < least {
            return Err(damaged(&"it is too short for its objects"));
        }
        Ok(index)
    }

    pub(super) fn count(&self) -> u32 {
        self.fanout.last().copied().unwrap_or(0)
    }

    /// Where the object is in the pack.
    pub(super) fn offset_of(&self, id: &oid) -> Result<Option<u64>> {
        let (mut low, mut high) = self.range(id.first_byte());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.id_at(middle)?.as_ref().cmp(id) {
                Ordering::Equal => return self.offset_at(middle).map(Some),
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
            }
        }
        Ok(None)
    }

    pub(super) fn beginning_with(&self, prefix: &Prefix, most: usize, found: &mut Vec<ObjectId>) -> Result<()> {
        let (mut low, end) = self.range(prefix.as_oid().first_byte());
        let mut high = end;
        while low < high {
            let middle = low + (high - low) / 2;
            match prefix.cmp_oid(&self.id_at(middle)?) {
                Ordering::Greater => low = middle + 1,
                _ => high = middle,
            }
        }
        let mut taken: usize = 0;
        while low < end && taken < most {
            let id = self.id_at(low)?;
            if prefix.cmp_oid(&id).is_ne() {
                break;
            }
            found.push(id);
            taken = taken.saturating_add(1);
            low += 1;
        }
        Ok(())
    }

    fn range(&self, first: u8) -> (u32, u32) {
        let at = |place: usize| self.fanout.get(place).copied().unwrap_or(0);
        let low = usize::from(first).checked_sub(1).map_or(0, at);
        (low, at(usize::from(first)))
    }

    fn id_at(&self, place: u32) -> Result<ObjectId> {
        let place = u64::from(place);
        let at = match self.version {
            2 => 8 + FANOUT_BYTES + place * ID_BYTES,
            _ => FANOUT_BYTES + place * (ID_BYTES + 4) + 4,
        };
        let mut bytes = [0; 20];
        self.blocks.read_at(at, &mut bytes).map_err(|error| damaged(&error))?;
        Ok(ObjectId::Sha1(bytes))
    }

    fn offset_at(&self, place: u32) -> Result<u64> {
        let (place, count) = (u64::from(place), u64::from(self.count()));
        if self.version != 2 {
            return Ok(u64::from(self.number(FANOUT_BYTES + place * (ID_BYTES + 4))?));
        }
        let offsets = 8 + FANOUT_BYTES + count * (ID_BYTES + 4);
        let offset = self.number(offsets + place * 4)?;
        if offset & 0x8000_0000 == 0 {
            return Ok(u64::from(offset));
        }
        // The rest of the number is a place in the table of offsets that need more bits.
        let mut bytes = [0; 8];
        let at = offsets + count * 4 + u64::from(offset & 0x7fff_ffff) * 8;
        self.blocks.read_at(at, &mut bytes).map_err(|error| damaged(&error))?;
        Ok(u64::from_be_bytes(bytes))
    }

    fn number(&self, at: u64) -> Result<u32> {
        let mut bytes = [0; 4];
        self.blocks.read_at(at, &mut bytes).map_err(|error| damaged(&error))?;
        Ok(u32::from_be_bytes(bytes))
    }
}

fn damaged(reason: &dyn std::fmt::Display) -> Fault {
    Fault::corrupt(format_args!("the index of a pack cannot be read: {reason}"))
}
