//! Reads one character of text through the escapes it may be written in: percent, JSON, C, HTML, CSS, quoted-printable,
//! each also nested.
//!
//! Knows no secrets. It survives any bytes: bytes that are not an escape stand for themselves, and every escape has a
//! maximum length, so that a stream can never be made to wait forever.

use super::references;

/// Levels of encoded percent signs (`%252541`) that are followed.
const PERCENT_LEVELS: usize = 3;
/// Text in JSON in JSON doubles its backslashes each time: `\\\\n` is followed, longer runs are backslashes.
const MAX_BACKSLASHES: usize = 8;
/// Hexadecimal digits of the largest character, `\u{10ffff}` and in CSS `\10ffff`.
const CHARACTER_DIGITS: usize = 6;
/// White space that quoted-printable allows before a soft line break (RFC 2045, section 6.7).
const MAX_TRAILING_SPACE: usize = 8;

/// Whether more text may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextEnd {
    More,
    Final,
}

/// Escapes that contradict each other are read one kind at a time: `\73` is another character in C than in CSS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    /// Percent, JSON, C and HTML escapes.
    Usual,
    /// A backslash before up to six hexadecimal digits and one space, or before the character itself: CSS and shells.
    Css,
    /// Quoted-printable escapes, such as `=41`.
    Quoted,
}

impl Dialect {
    /// All dialects, each with its bit in [`special`].
    pub(super) const ALL: [(Self, u16); 3] = [(Self::Usual, 0x100), (Self::Css, 0x200), (Self::Quoted, 0x400)];
}

/// A character, or a single byte of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EscapedText {
    bytes: [u8; 4],
    count: usize,
}

impl EscapedText {
    /// A character of a single byte.
    pub(super) const fn byte(byte: u8) -> Self {
        Self { bytes: [byte, 0, 0, 0], count: 1 }
    }

    fn character(value: u32) -> Option<Self> {
        let mut bytes = [0; 4];
        let count = char::from_u32(value)?.encode_utf8(&mut bytes).len();
        Some(Self { bytes, count })
    }

    /// The character's bytes in UTF-8.
    pub(super) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.count).unwrap_or_default()
    }
}

/// The first token of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Token {
    /// A character, and its length in the text in bytes.
    Written(EscapedText, usize),
    /// A line break or a zero byte, which do not interrupt a secret: zero bytes are between the characters of UTF-16
    /// and UTF-32. Holds its length in bytes.
    Break(usize),
    /// Undecided until more text arrives.
    Cut,
}

/// The dialects in which a byte may begin something other than itself, as bits of [`Dialect::ALL`].
pub(super) const fn special(byte: u8) -> u16 {
    match byte {
        b'\\' => 0x300,
        b'%' | b'&' => 0x100,
        b'=' => 0x400,
        _ => 0,
    }
}

/// Whether a byte never interrupts a secret.
pub(super) const fn is_break(byte: u8) -> bool {
    matches!(byte, b'\r' | b'\n' | 0)
}

/// The first token of `text`; `None` if it is empty.
pub(super) fn token(text: &[u8], dialect: Dialect, end: TextEnd) -> Option<Token> {
    let first = *text.first()?;
    let read = match (dialect, first) {
        (_, byte) if is_break(byte) => Ok(Token::Break(1)),
        (Dialect::Usual, b'%') => percent(text),
        (Dialect::Usual, b'\\') => backslash(text, end),
        (Dialect::Usual, b'&') => references::read(text, end),
        (Dialect::Css, b'\\') => css(text, end),
        (Dialect::Quoted, b'=') => quoted(text, end),
        _ => Err(NotRead::Literal(1)),
    };
    Some(read.unwrap_or_else(|not| match (not, end) {
        (NotRead::Cut, TextEnd::More) => Token::Cut,
        (NotRead::Cut, TextEnd::Final) => literal(first, 1),
        (NotRead::Literal(len), _) => literal(first, len),
    }))
}

/// The reason no escape was read.
pub(super) enum NotRead {
    /// The text ends too early.
    Cut,
    /// Not an escape: the byte stands for itself, with its length in bytes.
    Literal(usize),
}

type EscapeRead = Result<Token, NotRead>;

const fn literal(byte: u8, len: usize) -> Token {
    Token::Written(EscapedText::byte(byte), len)
}

/// A byte that is written in `len` bytes.
pub(super) fn byte(value: u32, len: usize) -> EscapeRead {
    let value = u8::try_from(value).map_err(|_| NotRead::Literal(1))?;
    Ok(if is_break(value) { Token::Break(len) } else { literal(value, len) })
}

/// A character that is written in `len` bytes.
pub(super) fn character(value: u32, len: usize) -> EscapeRead {
    if value < 0x80 {
        return byte(value, len);
    }
    EscapedText::character(value).map(|written| Token::Written(written, len)).ok_or(NotRead::Literal(1))
}

/// Exactly `count` hexadecimal digits at `at`.
fn hex(text: &[u8], at: usize, count: usize) -> Result<u32, NotRead> {
    let mut value = 0;
    for index in at..at + count {
        let digit = char::from(*text.get(index).ok_or(NotRead::Cut)?).to_digit(16).ok_or(NotRead::Literal(1))?;
        value = value * 16 + digit;
    }
    Ok(value)
}

/// Up to `most` digits at `at`: their value and number. The text may end with them.
pub(super) fn digits(text: &[u8], at: usize, radix: u32, most: usize, end: TextEnd) -> Result<(u32, usize), NotRead> {
    let (mut value, mut count) = (0_u32, 0);
    while count < most {
        match text.get(at + count) {
            None if end == TextEnd::More => return Err(NotRead::Cut),
            None => break,
            Some(byte) => match char::from(*byte).to_digit(radix) {
                Some(digit) => value = value.saturating_mul(radix).saturating_add(digit),
                None => break,
            },
        }
        count += 1;
    }
    if count == 0 { Err(NotRead::Literal(1)) } else { Ok((value, count)) }
}

fn percent(text: &[u8]) -> EscapeRead {
    let mut len = 1;
    for _ in 0..PERCENT_LEVELS {
        let literal = |not| if matches!(not, NotRead::Cut) { not } else { NotRead::Literal(len) };
        if text.get(len).is_some_and(|byte| matches!(byte, b'u' | b'U')) {
            // The format of JavaScript's `escape`.
            return utf16(text, len).map_err(literal);
        }
        match hex(text, len, 2).map_err(literal)? {
            0x25 => len += 2,
            value => return byte(value, len + 2),
        }
    }
    Err(NotRead::Literal(len))
}

fn backslashes(text: &[u8]) -> usize {
    text.iter().take(MAX_BACKSLASHES).take_while(|byte| **byte == b'\\').count()
}

fn backslash(text: &[u8], end: TextEnd) -> EscapeRead {
    let run = backslashes(text);
    let keep = |not| if matches!(not, NotRead::Cut) { not } else { NotRead::Literal(run) };
    match text.get(run) {
        None => Err(NotRead::Cut),
        Some(b'n' | b'r' | b'\r' | b'\n') => Ok(Token::Break(run + 1)),
        Some(b't') => Ok(literal(b'\t', run + 1)),
        Some(b'b') => Ok(literal(8, run + 1)),
        Some(b'f') => Ok(literal(12, run + 1)),
        Some(b'v') => Ok(literal(11, run + 1)),
        Some(sign @ (b'"' | b'\'' | b'/')) => Ok(literal(*sign, run + 1)),
        Some(b'0'..=b'7') => {
            let (value, count) = digits(text, run, 8, 3, end).map_err(keep)?;
            byte(value, run + count).map_err(keep)
        }
        Some(b'x' | b'u') if text.get(run + 1) == Some(&b'{') => {
            let (value, count) = digits(text, run + 2, 16, CHARACTER_DIGITS, end).map_err(keep)?;
            match text.get(run + 2 + count) {
                None => Err(NotRead::Cut),
                Some(b'}') => character(value, run + 3 + count).map_err(keep),
                Some(_) => Err(NotRead::Literal(run)),
            }
        }
        Some(b'x') => byte(hex(text, run + 1, 2).map_err(keep)?, run + 3),
        Some(b'u') => utf16(text, run).map_err(keep),
        Some(b'U') => character(hex(text, run + 1, 8).map_err(keep)?, run + 9).map_err(keep),
        Some(_) => Err(NotRead::Literal(run)),
    }
}

/// `\u0041` and `%u0041`, whose `u` is at `run`, or the two halves of a character beyond the first 65,536.
fn utf16(text: &[u8], run: usize) -> EscapeRead {
    let high = hex(text, run + 1, 4)?;
    let len = run + 5;
    if !(0xd800..0xdc00).contains(&high) {
        return character(high, len);
    }
    let (sign, rest) = (text.get(..=run).unwrap_or_default(), text.get(len..).unwrap_or_default());
    if rest.len() <= run && sign.starts_with(rest) {
        return Err(NotRead::Cut);
    }
    match rest.starts_with(sign).then(|| hex(rest, run + 1, 4)).transpose()? {
        Some(low @ 0xdc00..0xe000) => character(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00), len + run + 5),
        _ => Err(NotRead::Literal(run)),
    }
}

/// CSS Syntax, section 4.3.7. Shells put the backslash before every sign that is special to them.
fn css(text: &[u8], end: TextEnd) -> EscapeRead {
    let next = *text.get(1).ok_or(NotRead::Cut)?;
    if is_break(next) {
        return Ok(Token::Break(2));
    }
    if !next.is_ascii_hexdigit() {
        return Ok(literal(next, 2));
    }
    let (value, count) = digits(text, 1, 16, CHARACTER_DIGITS, end)?;
    let len = 1 + count;
    match text.get(len) {
        None if end == TextEnd::More => Err(NotRead::Cut),
        Some(b' ' | b'\t' | b'\n' | b'\r') => character(value, len + 1),
        _ => character(value, len),
    }
}

/// Reads an escape of RFC 2045, section 6.7.
fn quoted(text: &[u8], end: TextEnd) -> EscapeRead {
    let space = text.iter().skip(1).take(MAX_TRAILING_SPACE).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    match text.get(1 + space) {
        None if end == TextEnd::More => Err(NotRead::Cut),
        Some(b'\r' | b'\n') => Ok(Token::Break(2 + space)),
        _ => byte(hex(text, 1, 2)?, 3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn character(text: &str, len: usize) -> Token {
        let mut bytes = [0; 4];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Token::Written(EscapedText { bytes, count: text.len() }, len)
    }

    #[track_caller]
    fn check(dialect: Dialect, cases: &[(&str, Token)]) {
        for (text, expected) in cases {
            assert_eq!(token(text.as_bytes(), dialect, TextEnd::More), Some(*expected), "{text}");
            if *expected == Token::Cut {
                let last = token(text.as_bytes(), dialect, TextEnd::Final);
                assert!(!matches!(last, None | Some(Token::Cut)), "{text}");
            }
        }
        assert_eq!(token(b"", dialect, TextEnd::Final), None);
    }

    #[test]
    fn escapes_are_read_to_the_bottom() {
        let one = literal;
        check(
            Dialect::Usual,
            &[
                ("a", one(b'a', 1)),
                ("%41b", one(b'A', 3)),
                ("%2541", one(b'A', 5)),
                ("%252541", one(b'A', 7)),
                ("%25x", one(b'%', 3)),
                ("%zz", one(b'%', 1)),
                ("%4", Token::Cut),
                ("%25", Token::Cut),
                ("%0a", Token::Break(3)),
                ("%00", Token::Break(3)),
                ("%u00e9", character("é", 6)),
                ("%u00", Token::Cut),
                ("%ux", one(b'%', 1)),
                ("\0", Token::Break(1)),
                ("\\n", Token::Break(2)),
                ("\\\\n", Token::Break(3)),
                ("\\\n", Token::Break(2)),
                ("\\u002b", one(b'+', 6)),
                ("\\u0000", Token::Break(6)),
                ("\\u00e9", character("é", 6)),
                ("\\ud83d\\ude00", character("😀", 12)),
                ("\\\\ud83d\\\\ude00", character("😀", 14)),
                ("\\ud83d\\u", Token::Cut),
                ("\\ud83d", Token::Cut),
                ("\\ud83d!", one(b'\\', 1)),
                ("\\u{e9}", character("é", 6)),
                ("\\x{e9}!", character("é", 6)),
                ("\\u{1f600}", character("😀", 9)),
                ("\\u{1f6", Token::Cut),
                ("\\u{}", one(b'\\', 1)),
                ("\\u{110000}", one(b'\\', 1)),
                ("\\U0000002b", one(b'+', 10)),
                ("\\xe9", one(0xe9, 4)),
                ("\\053!", one(b'+', 4)),
                ("\\53!", one(b'+', 3)),
                ("\\5", Token::Cut),
                ("\\351", one(0xe9, 4)),
                ("\\777", one(b'\\', 1)),
                ("\\u00", Token::Cut),
                ("\\", Token::Cut),
                ("\\/", one(b'/', 2)),
                ("\\\\\\\"", one(b'"', 4)),
                ("\\q", one(b'\\', 1)),
            ],
        );
        let many = "\\".repeat(100);
        assert_eq!(token(many.as_bytes(), Dialect::Usual, TextEnd::More), Some(literal(b'\\', MAX_BACKSLASHES)));
        assert_eq!(token(b"\\53", Dialect::Usual, TextEnd::Final), Some(literal(b'+', 3)));
    }

    #[test]
    fn css_and_quoted_printable_have_their_own_reading() {
        let one = literal;
        check(
            Dialect::Css,
            &[
                ("\\73 k", one(b's', 4)),
                ("\\73k", one(b's', 3)),
                ("\\000073k", one(b's', 7)),
                ("\\e9 x", character("é", 4)),
                ("\\+", one(b'+', 2)),
                ("\\\n", Token::Break(2)),
                ("\\7", Token::Cut),
                ("\\", Token::Cut),
                ("%41", one(b'%', 1)),
            ],
        );
        assert_eq!(token(b"\\73", Dialect::Css, TextEnd::Final), Some(literal(b's', 3)));
        check(
            Dialect::Quoted,
            &[
                ("=2B", one(b'+', 3)),
                ("=3d=", one(b'=', 3)),
                ("=\r\n", Token::Break(2)),
                ("=  \n", Token::Break(4)),
                ("=C3=A9", one(0xc3, 3)),
                ("=", Token::Cut),
                ("=4", Token::Cut),
                ("=zz", one(b'=', 1)),
                ("\\", one(b'\\', 1)),
            ],
        );
    }
}
