//! Lines of git's protocols: four hexadecimal digits with the length, and the bytes (gitprotocol-common(5)).
//!
//! It survives lengths that are not numbers, that go beyond the end, and lines without an end.

use bstr::{BStr, ByteSlice as _};

use crate::error::{Fault, Result};

/// Bytes of a line's length.
const LENGTH_BYTES: usize = 4;

/// Bytes of the longest line, its length included.
const MAX_LINE_BYTES: usize = 65_520;

/// Ends a list of lines.
pub(super) const FLUSH: &[u8] = b"0000";

/// One line, or the end of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Packet<'a> {
    Line(&'a BStr),
    Flush,
}

/// Takes lines off the front of bytes.
#[derive(Debug, Clone)]
pub(super) struct Packets<'a> {
    rest: &'a [u8],
}

impl<'a> Packets<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next line; `None` at the end of the bytes.
    pub(super) fn next(&mut self) -> Result<Option<Packet<'a>>> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let (digits, after) = self.rest.split_at_checked(LENGTH_BYTES).ok_or_else(|| bad("a line breaks off"))?;
        // `from_str_radix` would take a sign.
        if !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(bad("a line does not begin with its length"));
        }
        let text = std::str::from_utf8(digits).map_err(|_| bad("a line does not begin with its length"))?;
        let length = usize::from_str_radix(text, 16).map_err(|_| bad("a line does not begin with its length"))?;
        if length == 0 {
            self.rest = after;
            return Ok(Some(Packet::Flush));
        }
        let bytes = length.checked_sub(LENGTH_BYTES).ok_or_else(|| bad("a line is shorter than its length"))?;
        if length > MAX_LINE_BYTES {
            return Err(bad("a line is too long"));
        }
        let (line, after) = after.split_at_checked(bytes).ok_or_else(|| bad("a line breaks off"))?;
        self.rest = after;
        Ok(Some(Packet::Line(line.as_bstr())))
    }
}

/// Adds a line. The lines that are sent are short: a reference's name is checked before.
pub(super) fn push_line(to: &mut Vec<u8>, line: &[u8]) -> Result<()> {
    let length = line.len().saturating_add(LENGTH_BYTES);
    if length > MAX_LINE_BYTES {
        return Err(Fault::limit("the name of a reference is too long to be sent"));
    }
    to.extend_from_slice(format!("{length:04x}").as_bytes());
    to.extend_from_slice(line);
    Ok(())
}

/// A line without the line end that it may have.
pub(super) fn without_end(line: &BStr) -> &BStr {
    line.strip_suffix(b"\n").unwrap_or(line).as_bstr()
}

fn bad(reason: &str) -> Fault {
    Fault::protocol(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<Packet<'_>>> {
        let mut packets = Packets::new(bytes);
        let mut found = Vec::new();
        while let Some(packet) = packets.next()? {
            found.push(packet);
        }
        Ok(found)
    }

    #[test]
    fn lines_have_the_length_that_they_say() {
        let line = |text: &'static str| Packet::Line(text.into());
        assert_eq!(
            all(b"0006a\n0004000000051").unwrap(),
            [line("a\n"), line(""), Packet::Flush, line("1")],
            "an empty line is a line"
        );
        assert_eq!(all(b"").unwrap(), []);
        for bytes in ["000", "0006a", "0001", "0002", "0003", "zzzz", "+006ab", "-006", "fff1aaa", "ffff", "\u{e9}00"] {
            assert!(all(bytes.as_bytes()).is_err(), "{bytes}");
        }
        let long = [format!("{MAX_LINE_BYTES:04x}").as_bytes(), &[b'x'; MAX_LINE_BYTES - 4]].concat();
        assert_eq!(all(&long).unwrap().len(), 1);
        let longer = [format!("{:04x}", MAX_LINE_BYTES + 1).as_bytes(), &[b'x'; MAX_LINE_BYTES - 3]].concat();
        assert!(all(&longer).is_err());
    }

    #[test]
    fn a_written_line_is_read_again() {
        let mut bytes = Vec::new();
        push_line(&mut bytes, b"one\n").unwrap();
        assert_eq!(bytes, b"0008one\n");
        assert_eq!(all(&bytes).unwrap(), [Packet::Line("one\n".into())]);
        assert!(push_line(&mut bytes, &[b'x'; MAX_LINE_BYTES]).is_err());
    }
}
