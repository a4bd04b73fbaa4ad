//! Checks the engine's journal before the engine reads it. It must not know the meaning of records: it follows the
//! framing.
//!
//! The engine takes the first frame that it cannot read for the torn end of the file, and cuts the journal there. After
//! a crash that is right: every group of commits is synced before the next is begun, so at most the last one is torn,
//! and it was never acknowledged. After a damaged disk it would silently drop acknowledged commits. The rest of the
//! file tells the two apart: nothing follows a torn group.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::StoreError;

/// Ends each group: tag 3, a checksum of eight bytes, these four. Values are JSON, which has no control characters.
const TRAILER: &[u8; 4] = b"FJL\x03";
/// A disk writes whole sectors, so an unwritten part of a torn group is a run of zeros of at least this many bytes.
const SECTOR_BYTES: usize = 512;

/// Checks a journal that is no longer written to: all of it was synced.
pub(crate) fn check_sealed(path: &Path, number: u64) -> Result<(), StoreError> {
    let mut journal = JournalFile::open(path).map_err(reading)?;
    let groups = journal.groups().map_err(reading)?;
    if journal.rest(groups.end).map_err(reading)?.is_empty() { Ok(()) } else { Err(damaged(number, groups.end)) }
}

/// Checks the active journal, and cuts off a torn group at its end that the engine would not recognise.
pub(crate) fn check_active(path: &Path, number: u64) -> Result<(), StoreError> {
    let mut journal = JournalFile::open(path).map_err(reading)?;
    let groups = journal.groups().map_err(reading)?;
    let rest = journal.rest(groups.end).map_err(reading)?;
    if rest.is_empty() {
        // The last group may have complete framing but torn content: its values then hold unwritten sectors.
        let last = journal.bytes(groups.last, groups.end).map_err(reading)?;
        return if has_empty_sector(&last) { cut(path, groups.last) } else { Ok(()) };
    }
    let rest_end = groups.end + rest.len() as u64;
    match rest.windows(TRAILER.len()).position(|window| window == TRAILER) {
        // The group breaks off before its end, which the engine recognises.
        None if groups.needed > rest_end => Ok(()),
        Some(at) if at + TRAILER.len() < rest.len() => Err(damaged(number, groups.end)),
        _ if has_empty_sector(&rest) => cut(path, groups.end),
        _ => Err(damaged(number, groups.end)),
    }
}

fn has_empty_sector(bytes: &[u8]) -> bool {
    let mut zeros = 0;
    bytes.iter().any(|&byte| {
        zeros = if byte == 0 { zeros + 1 } else { 0 };
        zeros >= SECTOR_BYTES
    })
}

fn cut(path: &Path, at: u64) -> Result<(), StoreError> {
    tracing::warn!(at, "the last write before a power failure was torn and is discarded; nobody was told of it");
    let file = OpenOptions::new().write(true).open(path).map_err(reading)?;
    file.set_len(at).and_then(|()| file.sync_all()).map_err(reading)
}

fn damaged(number: u64, at: u64) -> StoreError {
    StoreError::corrupt(format!("its journal `{number}.jnl` is damaged at byte {at}"))
}

fn reading(source: io::Error) -> StoreError {
    StoreError::io("reading the journal", source)
}

/// Offsets: the end of the readable groups, the beginning of the last of them, and the length that the file would need
/// to hold the next field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Groups {
    last: u64,
    end: u64,
    needed: u64,
}

struct JournalFile {
    reader: BufReader<File>,
    position: u64,
    length: u64,
    /// The end of the last field that was read.
    needed: u64,
    /// The sequence number of the previous group.
    sequence: Option<u64>,
}

impl JournalFile {
    fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { reader: BufReader::with_capacity(64 << 10, file), position: 0, length, needed: 0, sequence: None })
    }

    /// Follows the groups from the start until one is incomplete.
    fn groups(&mut self) -> io::Result<Groups> {
        let mut groups = Groups { last: 0, end: 0, needed: 0 };
        while self.group()?.is_some() {
            groups = Groups { last: groups.end, end: self.position, needed: 0 };
        }
        Ok(Groups { needed: self.needed, ..groups })
    }

    /// Skips one group: a start with the number of items, the items, the end. `None` if there is no such group here.
    fn group(&mut self) -> io::Result<Option<()>> {
        if self.take::<1>()? != Some([1]) {
            return Ok(None);
        }
        let Some(head) = self.take::<12>()? else { return Ok(None) };
        let [a, b, c, d, sequence @ ..] = head;
        // The engine's checksum leaves out the head. With sequence numbers that do not rise it would skip a group as
        // known.
        let sequence = u64::from_le_bytes(sequence);
        if self.sequence.is_some_and(|before| before >= sequence) {
            return Ok(None);
        }
        self.sequence = Some(sequence);
        for _ in 0..u32::from_le_bytes([a, b, c, d]) {
            if self.item()?.is_none() {
                return Ok(None);
            }
        }
        if self.take::<1>()? != Some([3]) || self.take::<8>()?.is_none() {
            return Ok(None);
        }
        Ok((self.take::<4>()?.as_ref() == Some(TRAILER)).then_some(()))
    }

    /// Skips one item: kind, compression, table, key length, value length, stored length, key, value.
    fn item(&mut self) -> io::Result<Option<()>> {
        if self.take::<1>()? != Some([2]) {
            return Ok(None);
        }
        let Some([_kind, compression, table @ .., k0, k1, v0, v1, v2, v3, s0, s1, s2, s3]) = self.take::<20>()? else {
            return Ok(None);
        };
        let table: [u8; 8] = table;
        let (value, stored) = (u32::from_le_bytes([v0, v1, v2, v3]), u32::from_le_bytes([s0, s1, s2, s3]));
        // Tables are numbered from 1 and compression is never used, so other values are damage.
        if compression != 0 || value != stored || u64::from_le_bytes(table) == 0 {
            return Ok(None);
        }
        self.skip(u64::from(u16::from_le_bytes([k0, k1])) + u64::from(stored))
    }

    fn take<const N: usize>(&mut self) -> io::Result<Option<[u8; N]>> {
        self.needed = self.position + N as u64;
        if self.needed > self.length {
            return Ok(None);
        }
        let mut bytes = [0; N];
        self.reader.read_exact(&mut bytes)?;
        self.position += N as u64;
        Ok(Some(bytes))
    }

    fn skip(&mut self, bytes: u64) -> io::Result<Option<()>> {
        let Ok(offset) = i64::try_from(bytes) else { return Ok(None) };
        self.needed = self.position + bytes;
        if self.needed > self.length {
            return Ok(None);
        }
        self.reader.seek_relative(offset)?;
        self.position += bytes;
        Ok(Some(()))
    }

    /// The content from `from` on, without the zeros at the end: the engine makes journals longer than their content.
    fn rest(&mut self, from: u64) -> io::Result<Vec<u8>> {
        let mut rest = self.bytes(from, self.data_end(from)?)?;
        let used = rest.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        rest.truncate(used);
        Ok(rest)
    }

    fn bytes(&mut self, from: u64, to: u64) -> io::Result<Vec<u8>> {
        self.reader.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        self.reader.by_ref().take(to.saturating_sub(from)).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// The end of the data in the file: the 64 MB of a new journal are a hole, not worth reading.
    fn data_end(&self, from: u64) -> io::Result<u64> {
        use rustix::fs::{SeekFrom as At, seek};
        use rustix::io::Errno;
        let file = self.reader.get_ref();
        let mut end = from;
        while end < self.length {
            match seek(file, At::Data(end)) {
                Ok(data) => end = seek(file, At::Hole(data))?,
                Err(Errno::NXIO) => return Ok(end),
                // The file system does not support holes: read it all.
                Err(_) => return Ok(self.length),
            }
        }
        Ok(end)
    }
}
