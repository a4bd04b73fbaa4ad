//! Reflogs: the earlier values of a reference.

use std::fs::{self, OpenOptions};
use std::io::Write as _;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::Refs;
use crate::error::{Fault, Result};
use crate::limits::MAX_REFLOG_BYTES;
use crate::objects::HASH;
use crate::repository::read_small;

/// One line of a reflog.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub old: ObjectId,
    pub new: ObjectId,
    pub message: BString,
}

impl Refs {
    /// The entries of a reference's log, the newest first.
    pub(crate) fn log(&self, name: &BStr) -> Result<Vec<Entry>> {
        if gix_validate::reference::name(name).is_err() {
            return Ok(Vec::new());
        }
        let Ok(path) = name.to_path() else { return Ok(Vec::new()) };
        let bytes = read_small(&self.git.join("logs").join(path), MAX_REFLOG_BYTES)?.unwrap_or_default();
        Ok(bytes.lines().rev().filter_map(parse).collect())
    }

    /// Adds an entry to a reference's log.
    pub(crate) fn note(
        &self,
        name: &BStr,
        change: (Option<ObjectId>, ObjectId),
        who: &BStr,
        message: &BStr,
    ) -> Result<()> {
        gix_validate::reference::name(name).map_err(Fault::fatal)?;
        let failed =
            |error: std::io::Error| Fault::fatal(format_args!("cannot append to the log of '{name}': {error}"));
        let path = name.to_path().map_err(|_| Fault::fatal("a reference's name is not UTF-8"))?;
        let place = self.git.join("logs").join(path);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent).map_err(failed)?;
        }
        let old = change.0.unwrap_or(ObjectId::null(HASH));
        let words: Vec<&[u8]> = message.lines().next().unwrap_or_default().fields().collect();
        let first = BString::from(words.join(&b' '));
        let mut file = OpenOptions::new().append(true).create(true).open(place).map_err(failed)?;
        file.write_all(format!("{old} {} {who}\t{first}\n", change.1).as_bytes()).map_err(failed)
    }
}

fn parse(line: &[u8]) -> Option<Entry> {
    let (head, message) = line.split_once_str("\t").unwrap_or((line, b""));
    let mut words = head.splitn_str(3, " ");
    let old = ObjectId::from_hex(words.next()?).ok()?;
    let new = ObjectId::from_hex(words.next()?).ok()?;
    Some(Entry { old, new, message: message.into() })
}
