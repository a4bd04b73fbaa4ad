//! The content of a file on one side of a difference.

use std::rc::Rc;

use bstr::ByteSlice as _;
use gix_object::Kind;

use super::Side;
use crate::error::Result;
use crate::index::mode;
use crate::limits::MAX_TEXT_BYTES;
use crate::repository::Repository;
use crate::worktree;

/// How many bytes git looks at to tell text from binary.
const LOOKED_AT: usize = 8_000;

/// The content of one side of a difference.
#[derive(Debug, Clone, Default)]
pub(super) struct Content {
    /// The bytes, where they are few enough to be compared.
    pub bytes: Option<Rc<Vec<u8>>>,
    pub size: u64,
}

impl Content {
    pub(super) fn load(repository: &Repository, side: Option<&Side>) -> Result<Self> {
        let Some(side) = side else { return Ok(Self::of(Vec::new())) };
        if side.mode == mode::SUBMODULE {
            return Ok(Self::of(format!("Subproject commit {}\n", side.id).into_bytes()));
        }
        if side.in_worktree {
            let size = worktree::look(repository, side.path.as_bstr())?.map_or(0, |found| found.bytes);
            return Ok(match worktree::read(repository, side.path.as_bstr(), MAX_TEXT_BYTES)? {
                Some(bytes) => Self::of(bytes),
                None => Self { bytes: None, size },
            });
        }
        let header = repository.objects.header(&side.id)?.ok_or_else(|| repository.objects.missing(&side.id))?;
        if header.bytes > MAX_TEXT_BYTES {
            return Ok(Self { bytes: None, size: header.bytes });
        }
        let data = repository.objects.read_as(&side.id, Kind::Blob)?;
        Ok(Self { size: header.bytes, bytes: Some(data) })
    }

    fn of(bytes: Vec<u8>) -> Self {
        Self { size: u64::try_from(bytes.len()).unwrap_or(u64::MAX), bytes: Some(Rc::new(bytes)) }
    }

    /// The bytes of a text; `None` for one that is binary or too large.
    pub(super) fn text(&self) -> Option<&[u8]> {
        self.bytes.as_deref().map(Vec::as_slice).filter(|bytes| !is_binary(bytes))
    }

    /// The bytes, also of a binary file.
    pub(super) fn all(&self) -> Option<&[u8]> {
        self.bytes.as_deref().map(Vec::as_slice)
    }
}

pub(super) fn is_binary(bytes: &[u8]) -> bool {
    bytes.get(..LOOKED_AT).unwrap_or(bytes).find_byte(0).is_some()
}
