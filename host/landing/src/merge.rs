//! Merging texts.

use std::fs::File;
use std::io::{self, Read as _};

/// The longest text that is merged.
const MAX_MERGED_BYTES: u64 = 1 << 20;
/// The most lines of such a text: comparing takes their number times that of the differences.
const MAX_MERGED_LINES: usize = 10_000;

/// Both changes of a text, if they touch different lines.
pub fn merged(base: &[u8], theirs: &[u8], ours: &[u8]) -> Option<Vec<u8>> {
    let lines = |text: &[u8]| text.iter().filter(|byte| **byte == b'\n').count();
    let long = |text: &[u8]| text.len() as u64 > MAX_MERGED_BYTES || lines(text) > MAX_MERGED_LINES;
    if [base, theirs, ours].iter().any(|text| long(text) || text.contains(&0)) {
        return None;
    }
    let [base, theirs, ours] = [base, theirs, ours].map(std::str::from_utf8);
    diffy::merge(base.ok()?, theirs.ok()?, ours.ok()?).ok().map(String::into_bytes)
}

/// A file's whole content, if it is short enough to be merged.
pub fn whole(file: &mut File) -> io::Result<Option<Vec<u8>>> {
    let mut text = Vec::new();
    file.take(MAX_MERGED_BYTES + 1).read_to_end(&mut text)?;
    Ok((text.len() as u64 <= MAX_MERGED_BYTES).then_some(text))
}
