//! Lines of a file of any size, read piece by piece: of each line only a beginning is kept, so neither a huge file nor
//! one huge line fills the memory.

use std::io::{self, BufRead};

use memchr::{memchr, memchr_iter};

use crate::limits;

/// One line, without its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// Its beginning, as many bytes as were asked for.
    pub(crate) kept: Vec<u8>,
    /// Its whole length in bytes.
    pub(crate) length: u64,
    /// It ended in a carriage return and a newline.
    pub(crate) crlf: bool,
}

impl Line {
    /// Whether more than was kept belongs to it.
    pub(crate) fn is_cut(&self) -> bool {
        self.length > self.kept.len() as u64
    }
}

/// Reads one line into `line` and keeps at most `keep` bytes of it. False at the end of the file.
///
/// # Errors
/// Those of the file.
pub(crate) fn next(reader: &mut impl BufRead, line: &mut Line, keep: usize) -> io::Result<bool> {
    line.kept.clear();
    line.length = 0;
    line.crlf = false;
    let mut last = None;
    let mut any = false;
    loop {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            return Ok(any);
        }
        any = true;
        let end = memchr(b'\n', available);
        let piece = end.and_then(|end| available.get(..end)).unwrap_or(available);
        let room = keep.saturating_sub(line.kept.len()).min(piece.len());
        line.kept.extend_from_slice(piece.get(..room).unwrap_or_default());
        line.length += piece.len() as u64;
        last = piece.last().copied().or(last);
        let used = piece.len() + usize::from(end.is_some());
        reader.consume(used);
        if end.is_some() {
            if last == Some(b'\r') {
                line.crlf = true;
                line.length -= 1;
                line.kept.truncate(usize::try_from(line.length).unwrap_or(usize::MAX).min(line.kept.len()));
            }
            return Ok(true);
        }
    }
}

/// Skips up to `count` lines; returns how many there were.
///
/// # Errors
/// Those of the file.
pub(crate) fn skip(reader: &mut impl BufRead, count: u64) -> io::Result<u64> {
    let mut skipped = 0;
    let mut partial = false;
    while skipped < count {
        let available = reader.fill_buf()?;
        if available.is_empty() {
            // A last line without a newline is a line.
            return Ok(skipped + u64::from(partial));
        }
        // Counting is much quicker than finding, and all but the last piece needs no more.
        let ends = memchr_iter(b'\n', available).count() as u64;
        let wanted = usize::try_from(count - skipped - 1).unwrap_or(usize::MAX);
        let last = if ends < count - skipped { None } else { memchr_iter(b'\n', available).nth(wanted) };
        let used = match last {
            Some(end) => {
                skipped = count;
                end + 1
            }
            None => {
                skipped += ends;
                partial = available.last() != Some(&b'\n');
                available.len()
            }
        };
        reader.consume(used);
    }
    Ok(skipped)
}

/// Whether the beginning of a file says that it is not text: text has no NUL.
pub(crate) fn is_binary(beginning: &[u8]) -> bool {
    memchr(0, beginning.get(..limits::SNIFFED_BYTES).unwrap_or(beginning)).is_some()
}

/// The text of bytes that were perhaps cut inside a character, at most `chars` characters; true when all of them
/// were valid. Characters that would disturb a terminal or forge lines are replaced.
pub(crate) fn text(bytes: &[u8], cut: bool, chars: usize) -> (String, bool) {
    let valid = match std::str::from_utf8(bytes) {
        Ok(_) => true,
        Err(error) => cut && error.error_len().is_none(),
    };
    let bytes = match std::str::from_utf8(bytes) {
        Err(error) if valid => bytes.get(..error.valid_up_to()).unwrap_or_default(),
        _ => bytes,
    };
    let text = String::from_utf8_lossy(bytes);
    let text = text.chars().take(chars).map(|char| if char.is_control() && char != '\t' { '\u{fffd}' } else { char });
    (text.collect(), valid)
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    /// Lines as `text/length`, with a small buffer so that lines cross its edges.
    #[track_caller]
    fn check(input: &str, expected: &[&str]) {
        let mut reader = BufReader::with_capacity(3, input.as_bytes());
        let mut line = Line::default();
        let mut shown = Vec::new();
        while next(&mut reader, &mut line, 4).unwrap() {
            let end = if line.crlf { "\\r" } else { "" };
            shown.push(format!("{}{end}/{}", String::from_utf8_lossy(&line.kept), line.length));
        }
        assert_eq!(shown, expected, "{input:?}");
        let mut reader = BufReader::with_capacity(3, input.as_bytes());
        assert_eq!(skip(&mut reader, 1_000).unwrap(), expected.len() as u64, "{input:?}");
    }

    #[test]
    fn splits_lines() {
        check("", &[]);
        check("\n", &["/0"]);
        check("a", &["a/1"]);
        check("a\nb\n", &["a/1", "b/1"]);
        check("a\n\nb", &["a/1", "/0", "b/1"]);
        check("abcdefgh\nx", &["abcd/8", "x/1"]);
    }

    #[test]
    fn carriage_returns_belong_to_the_end_only_before_a_newline() {
        check("a\r\nb\r\n", &["a\\r/1", "b\\r/1"]);
        check("abc\r\n", &["abc\\r/3"]);
        check("abcd\r\n", &["abcd\\r/4"]);
        check("ab\r", &["ab\r/3"]);
        check("a\rb\n", &["a\rb/3"]);
        check("\r\n", &["\\r/0"]);
    }

    #[test]
    fn skips_to_the_line_after() {
        let mut reader = BufReader::with_capacity(3, "one\ntwo\nthree".as_bytes());
        assert_eq!(skip(&mut reader, 2).unwrap(), 2);
        let mut line = Line::default();
        assert!(next(&mut reader, &mut line, 10).unwrap());
        assert_eq!(line.kept, b"three");
    }

    #[test]
    fn a_cut_inside_a_character_is_not_an_error() {
        let bytes = "aé".as_bytes();
        assert_eq!(text(&bytes[..2], true, 10), ("a".to_owned(), true));
        assert_eq!(text(&bytes[..2], false, 10), ("a\u{fffd}".to_owned(), false));
        assert_eq!(text(b"a\xffb", true, 10), ("a\u{fffd}b".to_owned(), false));
        assert_eq!(text(b"a\x1b[2Jb\tc", false, 10), ("a\u{fffd}[2Jb\tc".to_owned(), true));
    }
}
