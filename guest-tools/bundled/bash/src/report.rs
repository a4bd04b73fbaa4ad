//! The answer of a call: standard output, then standard error and the exit code where there is something to say.
//!
//! It must not know the script. It survives bytes that are not text and output of any length: each part is cut at
//! a character, with a mark that says how much was left out.

use std::fmt::Write as _;

/// The result of a script.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Report {
    pub stdout: Stream,
    pub stderr: Stream,
    pub exit_code: i32,
}

/// The text written to one of the two, as far as it was kept.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Stream {
    bytes: Vec<u8>,
    cut: bool,
}

impl Stream {
    /// Everything that was written, cut at a limit; `cut` when some of it is gone already.
    pub(crate) fn new(mut bytes: Vec<u8>, most: usize, cut: bool) -> Self {
        let cut = cut || bytes.len() > most;
        if bytes.len() > most {
            bytes.truncate(boundary(&bytes, most));
        }
        Self { bytes, cut }
    }

    /// Adds bytes as far as there is room.
    pub(crate) fn push(&mut self, bytes: &[u8], most: usize) {
        let room = most.saturating_sub(self.bytes.len());
        let taken = if bytes.len() > room { boundary(bytes, room) } else { bytes.len() };
        self.bytes.extend(bytes.iter().take(taken));
        self.cut |= taken < bytes.len();
    }

    fn render(&self, name: &str, into: &mut String) {
        into.push_str(&String::from_utf8_lossy(&self.bytes));
        if self.cut {
            end_line(into);
            let _written = write!(into, "[{name} is cut here, after {} bytes]", self.bytes.len());
        }
    }
}

/// The end of the last whole character within `most` bytes.
fn boundary(bytes: &[u8], most: usize) -> usize {
    let continues = |index: usize| bytes.get(index).is_some_and(|byte| byte & 0xc0 == 0x80);
    (most.saturating_sub(3)..=most).rev().find(|&index| !continues(index)).unwrap_or(most)
}

fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

impl Report {
    /// As the model reads it.
    pub(crate) fn render(&self) -> String {
        let mut text = String::new();
        self.stdout.render("standard output", &mut text);
        if !self.stderr.bytes.is_empty() {
            end_line(&mut text);
            text.push_str("[stderr]\n");
            self.stderr.render("standard error", &mut text);
        }
        if self.exit_code != 0 {
            end_line(&mut text);
            let _written = write!(text, "[exit code: {}]", self.exit_code);
        }
        if text.is_empty() { "[no output]".to_owned() } else { text }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(stdout: &[u8], stderr: &[u8], exit_code: i32, expected: &str) {
        let stream = |bytes: &[u8]| Stream::new(bytes.to_vec(), 8, false);
        assert_eq!(Report { stdout: stream(stdout), stderr: stream(stderr), exit_code }.render(), expected);
    }

    #[test]
    fn only_what_there_is_to_say() {
        check(b"hi\n", b"", 0, "hi\n");
        check(b"", b"", 0, "[no output]");
        check(b"", b"", 1, "[exit code: 1]");
        check(b"a", b"b\n", 0, "a\n[stderr]\nb\n");
        check(b"a", b"b", 2, "a\n[stderr]\nb\n[exit code: 2]");
        check(b"\xff", b"", 0, "\u{fffd}");
        check(b"123456789", b"", 0, "12345678\n[standard output is cut here, after 8 bytes]");
        check("123456\u{20ac}".as_bytes(), b"", 0, "123456\n[standard output is cut here, after 6 bytes]");
    }

    #[test]
    fn pieces_add_up_to_the_same() {
        let mut stream = Stream::default();
        for piece in ["1234", "56\u{20ac}", "x"] {
            stream.push(piece.as_bytes(), 8);
        }
        assert!(stream.cut);
        assert!(stream.bytes.starts_with(b"123456"), "{stream:?}");
        assert!(stream.bytes.len() <= 8);
    }
}
