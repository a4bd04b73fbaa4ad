//! Reads one byte of text through the escapes it may be written in: percent, JSON and C, HTML, each also nested.
//!
//! Knows no secrets. It survives any bytes: what is no escape is the byte that stands there, and every escape has a
//! longest form, so that a stream can never be made to wait for ever.

/// Percent signs that are themselves encoded (`%252541`) are followed so many levels deep.
const PERCENT_LEVELS: usize = 3;
/// Text in JSON in JSON doubles its backslashes each time: `\\\\n` is followed, longer runs are backslashes.
const MOST_BACKSLASHES: usize = 8;
/// The longest character reference, without its `&`: `#x0041;` and one to spare.
const LONGEST_REFERENCE: usize = 8;

/// What a text begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A byte, written in so many bytes.
    Byte(u8, usize),
    /// A line break, which separates nothing as far as secrets are concerned.
    Break(usize),
    /// The text may go on such that this is an escape. If it does not: the byte, and how many it is written in.
    Cut(u8, usize),
}

/// Whether a byte may begin something other than itself.
pub(super) const fn is_special(byte: u8) -> bool {
    matches!(byte, b'%' | b'\\' | b'&' | b'\r' | b'\n')
}

/// What `text` begins with; none when it is empty.
pub(super) fn token(text: &[u8]) -> Option<Token> {
    Some(match *text.first()? {
        b'\r' | b'\n' => Token::Break(1),
        b'%' => percent(text),
        b'\\' => backslash(text),
        b'&' => reference(text),
        byte => Token::Byte(byte, 1),
    })
}

fn written(value: u8, len: usize) -> Token {
    if matches!(value, b'\r' | b'\n') { Token::Break(len) } else { Token::Byte(value, len) }
}

enum Digits {
    Value(u32),
    Cut,
    None,
}

/// `count` hexadecimal digits at `at`.
fn hex(text: &[u8], at: usize, count: usize) -> Digits {
    let mut value = 0;
    for index in at..at + count {
        match text.get(index) {
            None => return Digits::Cut,
            Some(digit @ b'0'..=b'9') => value = value * 16 + u32::from(digit - b'0'),
            Some(digit @ (b'a'..=b'f' | b'A'..=b'F')) => value = value * 16 + u32::from(digit | 0x20) - 87,
            Some(_) => return Digits::None,
        }
    }
    Digits::Value(value)
}

fn percent(text: &[u8]) -> Token {
    let mut len = 1;
    for _ in 0..PERCENT_LEVELS {
        match hex(text, len, 2) {
            Digits::Value(0x25) => len += 2,
            Digits::Value(value) => return written(u8::try_from(value).unwrap_or(b'%'), len + 2),
            Digits::Cut => return Token::Cut(b'%', len),
            Digits::None => break,
        }
    }
    Token::Byte(b'%', len)
}

fn backslash(text: &[u8]) -> Token {
    let run = text.iter().take(MOST_BACKSLASHES).take_while(|byte| **byte == b'\\').count();
    let digits = match text.get(run) {
        None => return Token::Cut(b'\\', run),
        Some(b'n' | b'r') => return Token::Break(run + 1),
        Some(b't') => return Token::Byte(b'\t', run + 1),
        Some(b'b') => return Token::Byte(8, run + 1),
        Some(b'f') => return Token::Byte(12, run + 1),
        Some(literal @ (b'"' | b'\'' | b'/')) => return Token::Byte(*literal, run + 1),
        Some(b'u') => 4,
        Some(b'x') => 2,
        Some(_) => return Token::Byte(b'\\', run),
    };
    match hex(text, run + 1, digits) {
        // Beyond that a `\u` stands for several bytes: such secrets have their escaped forms as patterns.
        Digits::Value(value) if digits == 2 || value < 0x80 => {
            written(u8::try_from(value).unwrap_or(b'\\'), run + 1 + digits)
        }
        Digits::Cut => Token::Cut(b'\\', run),
        _ => Token::Byte(b'\\', run),
    }
}

fn reference(text: &[u8]) -> Token {
    let plain = Token::Byte(b'&', 1);
    let body = text.get(1..).unwrap_or_default();
    let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'#';
    let name_len = body.iter().take(LONGEST_REFERENCE).take_while(|byte| is_name(byte)).count();
    match body.get(name_len) {
        None if name_len < LONGEST_REFERENCE => return Token::Cut(b'&', 1),
        Some(b';') => {}
        _ => return plain,
    }
    let name = body.get(..name_len).unwrap_or_default();
    let value = match name {
        b"amp" => b'&',
        b"lt" => b'<',
        b"gt" => b'>',
        b"quot" => b'"',
        b"apos" => b'\'',
        b"nbsp" => b' ',
        [b'#', digits @ ..] => match number(digits) {
            Some(value) => value,
            None => return plain,
        },
        _ => return plain,
    };
    written(value, name_len + 2)
}

/// An ASCII character by its number, `65` or `x41`.
fn number(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits).ok()?;
    let value = match digits.strip_prefix(['x', 'X']) {
        Some(hex) => u8::from_str_radix(hex, 16).ok()?,
        None => digits.parse().ok()?,
    };
    value.is_ascii().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_read_to_the_bottom() {
        for (text, expected) in [
            ("a", Token::Byte(b'a', 1)),
            ("%41b", Token::Byte(b'A', 3)),
            ("%2541", Token::Byte(b'A', 5)),
            ("%252541", Token::Byte(b'A', 7)),
            ("%25x", Token::Byte(b'%', 3)),
            ("%zz", Token::Byte(b'%', 1)),
            ("%4", Token::Cut(b'%', 1)),
            ("%25", Token::Cut(b'%', 3)),
            ("%0a", Token::Break(3)),
            ("\\n", Token::Break(2)),
            ("\\\\n", Token::Break(3)),
            ("\\u002b", Token::Byte(b'+', 6)),
            ("\\u00e9", Token::Byte(b'\\', 1)),
            ("\\xe9", Token::Byte(0xe9, 4)),
            ("\\u00", Token::Cut(b'\\', 1)),
            ("\\", Token::Cut(b'\\', 1)),
            ("\\/", Token::Byte(b'/', 2)),
            ("\\\\\\\"", Token::Byte(b'"', 4)),
            ("\\q", Token::Byte(b'\\', 1)),
            ("&amp;", Token::Byte(b'&', 5)),
            ("&#x2B;", Token::Byte(b'+', 6)),
            ("&#43;", Token::Byte(b'+', 5)),
            ("&#10;", Token::Break(5)),
            ("&#233;", Token::Byte(b'&', 1)),
            ("&am", Token::Cut(b'&', 1)),
            ("& am", Token::Byte(b'&', 1)),
            ("&abcdefghij;", Token::Byte(b'&', 1)),
        ] {
            assert_eq!(token(text.as_bytes()), Some(expected), "{text}");
        }
        assert_eq!(token(b""), None);
        assert_eq!(token("\\".repeat(100).as_bytes()), Some(Token::Byte(b'\\', MOST_BACKSLASHES)));
    }
}
