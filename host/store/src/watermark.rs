//! The mark of a state: the number of its last commit, in a file next to it.
//!
//! A state that lost its end or was replaced by an older one is complete in itself, so nothing inside shows the loss.
//! The mark is written in the first pause after commits are durable, and is not synced: a killed process leaves a
//! number that may be lower by the commits of its last milliseconds, and a power failure one that may be lower by more.
//! It is never higher than the state it was written for, so a state that is behind its mark has lost commits.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::StoreError;
use crate::file::replace_file;
use crate::layout::beside;
use crate::regular::{self, Links, read_regular};

/// The record of [`crate::Table::Meta`] that holds the number of commits, written with each of them.
pub(crate) const COMMITS_KEY: &str = "commits";

/// The record of [`crate::Table::Meta`] of a state that is older than its mark: earlier losses are not detected.
pub(crate) const UNCOUNTED_KEY: &str = "uncounted";

/// Suffix that turns the name of the state directory into that of the mark.
const SUFFIX: &str = ".mark";
/// The first word of the file.
const TITLE: &str = "commits";
/// `commits`, the number in 20 digits, its checksum in 16, separated by spaces and ended by a line break.
const BYTES: usize = TITLE.len() + 1 + 20 + 1 + 16 + 1;

/// The mark of an open state.
#[derive(Debug)]
pub(crate) struct Watermark(File);

impl Watermark {
    /// Opens the mark of the state in `dir`, and sets it to `commits`.
    pub(crate) fn open(dir: &Path, commits: u64) -> Result<Self, StoreError> {
        let mut options = OpenOptions::new();
        options.write(true).custom_flags(regular::flags(Links::Refused));
        let mark = Self(options.open(path(dir)).map_err(writing)?);
        mark.advance(commits)?;
        Ok(mark)
    }

    /// Records that `commits` commits are durable.
    pub(crate) fn advance(&self, commits: u64) -> Result<(), StoreError> {
        // Written in place and in one sector, so it is never half written.
        self.0.write_all_at(render(commits).as_bytes(), 0).map_err(writing)
    }
}

/// The mark of the state in `dir`; `None` if there is no such file.
pub(crate) fn read(dir: &Path) -> Result<Option<u64>, StoreError> {
    let text = match read_regular(&path(dir), Links::Refused, BYTES as u64) {
        Ok(text) => text,
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound => Ok(None),
                io::ErrorKind::InvalidInput | io::ErrorKind::FileTooLarge => Err(damaged(dir)),
                _ => Err(StoreError::io("reading the mark of the state", error)),
            };
        }
    };
    parse(&text).map(Some).ok_or_else(|| damaged(dir))
}

/// Creates or replaces the mark of the state in `dir`. Durable when this returns.
pub(crate) fn write(dir: &Path, commits: u64) -> Result<(), StoreError> {
    let path = path(dir);
    let (Some(parent), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(StoreError::corrupt("its name is not UTF-8"));
    };
    replace_file(if parent.as_os_str().is_empty() { Path::new(".") } else { parent }, name, render(commits).as_bytes())
}

/// The name of the mark's file, for messages.
pub(crate) fn name(dir: &Path) -> String {
    path(dir).file_name().unwrap_or_default().to_string_lossy().into_owned()
}

pub(crate) fn path(dir: &Path) -> PathBuf {
    beside(dir, SUFFIX)
}

fn render(commits: u64) -> String {
    let number = format!("{commits:020}");
    format!("{TITLE} {number} {:016x}\n", xxh3_64(number.as_bytes()))
}

fn parse(text: &[u8]) -> Option<u64> {
    let number = text.get(TITLE.len() + 1..TITLE.len() + 21)?;
    let commits = std::str::from_utf8(number).ok()?.parse().ok()?;
    (render(commits).as_bytes() == text).then_some(commits)
}

fn damaged(dir: &Path) -> StoreError {
    StoreError::Unmarked { mark: name(dir), reason: "damaged" }
}

/// Never [`StoreError::Full`], which says that nothing was stored: the commit is durable when its mark is written.
fn writing(source: io::Error) -> StoreError {
    StoreError::Io { action: "writing the mark of the state", source: source.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mark_as_it_was_written_is_read() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("state");
        assert_eq!(read(&dir).unwrap(), None);
        for commits in [0, 1, u64::MAX] {
            write(&dir, commits).unwrap();
            assert_eq!(read(&dir).unwrap(), Some(commits));
        }
        Watermark::open(&dir, 6).unwrap().advance(7).unwrap();
        assert_eq!(read(&dir).unwrap(), Some(7));
        let good = std::fs::read(path(&dir)).unwrap();
        assert_eq!(good.len(), BYTES);
        for at in 0..good.len() {
            let mut bad = good.clone();
            bad[at] ^= 1;
            assert_eq!(parse(&bad), None, "byte {at}");
            assert_eq!(parse(&good[..at]), None, "cut to {at}");
        }
        assert_eq!(parse(&[&good[..], b"x"].concat()), None);
    }

    #[test]
    fn a_mark_of_another_kind_is_refused_without_waiting() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("state");
        let refused = |kind: &str| assert!(matches!(read(&dir), Err(StoreError::Unmarked { .. })), "{kind}");
        std::fs::create_dir(path(&dir)).unwrap();
        refused("a directory");
        std::fs::remove_dir(path(&dir)).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path(&dir)).unwrap();
        refused("a link");
        std::fs::remove_file(path(&dir)).unwrap();
        rustix::fs::mknodat(
            rustix::fs::CWD,
            path(&dir),
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        refused("a pipe");
    }
}
