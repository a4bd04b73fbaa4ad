//! A large file read in blocks: WASI cannot map a file, and a pack does not fit in memory.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use crate::limits::{BLOCK_BYTES, MAX_BLOCKS};

/// A file of which a few blocks are kept.
pub(super) struct Blocks {
    file: RefCell<File>,
    bytes: u64,
    kept: RefCell<Kept>,
}

#[derive(Default)]
struct Kept {
    blocks: HashMap<u64, (u64, Rc<Vec<u8>>)>,
    /// Counts uses, to find the block that was not used for longest.
    clock: u64,
}

impl Blocks {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(io::Error::other("not a regular file"));
        }
        Ok(Self { bytes: metadata.len(), file: RefCell::new(file), kept: RefCell::default() })
    }

    pub(super) fn len(&self) -> u64 {
        self.bytes
    }

    /// Reads exactly `buffer.len()` bytes at a place.
    pub(super) fn read_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<()> {
        Reader { blocks: self, offset }.read_exact(buffer)
    }

    /// Reads on from a place.
    pub(super) fn reader(&self, offset: u64) -> Reader<'_> {
        Reader { blocks: self, offset }
    }

    fn block(&self, number: u64) -> io::Result<Rc<Vec<u8>>> {
        let mut kept = self.kept.borrow_mut();
        kept.clock = kept.clock.wrapping_add(1);
        let now = kept.clock;
        if let Some((used, block)) = kept.blocks.get_mut(&number) {
            *used = now;
            return Ok(block.clone());
        }
        let mut block = Vec::new();
        let mut file = self.file.borrow_mut();
        file.seek(SeekFrom::Start(number.saturating_mul(BLOCK_BYTES)))?;
        Read::by_ref(&mut *file).take(BLOCK_BYTES).read_to_end(&mut block)?;
        let block = Rc::new(block);
        if kept.blocks.len() >= MAX_BLOCKS
            && let Some(oldest) = kept.blocks.iter().min_by_key(|(_, (used, _))| *used).map(|(number, _)| *number)
        {
            kept.blocks.remove(&oldest);
        }
        kept.blocks.insert(number, (now, block.clone()));
        Ok(block)
    }
}

/// A position in a file.
pub(super) struct Reader<'a> {
    blocks: &'a Blocks,
    offset: u64,
}

impl Read for Reader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let (number, within) = (self.offset / BLOCK_BYTES, self.offset % BLOCK_BYTES);
        if self.offset >= self.blocks.bytes {
            return Ok(0);
        }
        let block = self.blocks.block(number)?;
        let within = usize::try_from(within).unwrap_or(usize::MAX);
        let read = block.get(within..).unwrap_or_default().read(buffer)?;
        self.offset = self.offset.saturating_add(u64::try_from(read).unwrap_or(0));
        Ok(read)
    }
}
