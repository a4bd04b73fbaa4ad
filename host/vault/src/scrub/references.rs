//! Character references of HTML: `&amp;`, `&#43;`, `&#x2b;`, named ones, and those that browsers also read without `;`.

use std::sync::LazyLock;

use super::escape::{NotRead, TextEnd, Token, character, digits};

/// The longest name, `DiacriticalGrave`, and its `;`.
const MAX_NAME: usize = 17;
/// Digits of a numeric reference, leading zeros included.
const MAX_DIGITS: usize = 10;
/// Levels of nesting (`&amp;lt;`) that are followed.
const LEVELS: usize = 3;

/// Names of ASCII signs. Those that begin the list are also read without `;`.
const SIGNS: [(&str, u8); 46] = [
    ("amp", b'&'),
    ("lt", b'<'),
    ("gt", b'>'),
    ("quot", b'"'),
    ("nbsp", b' '),
    ("AMP", b'&'),
    ("LT", b'<'),
    ("GT", b'>'),
    ("QUOT", b'"'),
    ("apos", b'\''),
    ("Tab", b'\t'),
    ("NewLine", b'\n'),
    ("excl", b'!'),
    ("num", b'#'),
    ("dollar", b'$'),
    ("percnt", b'%'),
    ("lpar", b'('),
    ("rpar", b')'),
    ("ast", b'*'),
    ("midast", b'*'),
    ("plus", b'+'),
    ("comma", b','),
    ("period", b'.'),
    ("sol", b'/'),
    ("colon", b':'),
    ("semi", b';'),
    ("equals", b'='),
    ("quest", b'?'),
    ("commat", b'@'),
    ("lsqb", b'['),
    ("lbrack", b'['),
    ("bsol", b'\\'),
    ("rsqb", b']'),
    ("rbrack", b']'),
    ("Hat", b'^'),
    ("lowbar", b'_'),
    ("UnderBar", b'_'),
    ("grave", b'`'),
    ("DiacriticalGrave", b'`'),
    ("lcub", b'{'),
    ("lbrace", b'{'),
    ("verbar", b'|'),
    ("vert", b'|'),
    ("VerticalLine", b'|'),
    ("rcub", b'}'),
    ("rbrace", b'}'),
];
/// Number of names at the beginning of the list that need no `;`.
const WITHOUT_SEMICOLON: usize = 9;

/// The names of the characters from 161 to 255, in order. All of them are also read without `;`.
const LATIN: [&str; 95] = [
    "iexcl", "cent", "pound", "curren", "yen", "brvbar", "sect", "uml", "copy", "ordf", "laquo", "not", "shy", "reg",
    "macr", "deg", "plusmn", "sup2", "sup3", "acute", "micro", "para", "middot", "cedil", "sup1", "ordm", "raquo",
    "frac14", "frac12", "frac34", "iquest", "Agrave", "Aacute", "Acirc", "Atilde", "Auml", "Aring", "AElig", "Ccedil",
    "Egrave", "Eacute", "Ecirc", "Euml", "Igrave", "Iacute", "Icirc", "Iuml", "ETH", "Ntilde", "Ograve", "Oacute",
    "Ocirc", "Otilde", "Ouml", "times", "Oslash", "Ugrave", "Uacute", "Ucirc", "Uuml", "Yacute", "THORN", "szlig",
    "agrave", "aacute", "acirc", "atilde", "auml", "aring", "aelig", "ccedil", "egrave", "eacute", "ecirc", "euml",
    "igrave", "iacute", "icirc", "iuml", "eth", "ntilde", "ograve", "oacute", "ocirc", "otilde", "ouml", "divide",
    "oslash", "ugrave", "uacute", "ucirc", "uuml", "yacute", "thorn", "yuml",
];
const FIRST_LATIN: u32 = 161;

/// The reference that `text` begins with.
pub(super) fn read(text: &[u8], end: TextEnd) -> Result<Token, NotRead> {
    let mut at = 1;
    for _ in 1..LEVELS {
        match reference(text, at, end) {
            // The referenced character may be the `&` of the next reference.
            Ok((38, len)) if text.get(at + len - 1) == Some(&b';') => match reference(text, at + len, end) {
                Ok((value, inner)) if text.get(at + len + inner - 1) == Some(&b';') => {
                    if value != 38 {
                        return character(value, at + len + inner);
                    }
                    at += len;
                }
                Err(NotRead::Cut) if end == TextEnd::More => return Err(NotRead::Cut),
                _ => return character(38, at + len),
            },
            Ok((value, len)) => return character(value, at + len),
            Err(not) => return Err(not),
        }
    }
    reference(text, at, end).and_then(|(value, len)| character(value, at + len))
}

/// The character of a reference, whose text after the `&` begins at `at`, and the length of that text in bytes.
fn reference(text: &[u8], at: usize, end: TextEnd) -> Result<(u32, usize), NotRead> {
    let body = text.get(at..).unwrap_or_default();
    match body {
        [] | [b'#'] | [b'#', b'x' | b'X'] => Err(NotRead::Cut),
        [b'#', b'x' | b'X', ..] => numeric(body, 2, 16, end),
        [b'#', ..] => numeric(body, 1, 10, end),
        _ => named(body, end),
    }
}

fn numeric(body: &[u8], at: usize, radix: u32, end: TextEnd) -> Result<(u32, usize), NotRead> {
    let (value, count) = digits(body, at, radix, MAX_DIGITS, end)?;
    match body.get(at + count) {
        None if end == TextEnd::More => Err(NotRead::Cut),
        Some(b';') => Ok((value, at + count + 1)),
        _ => Ok((value, at + count)),
    }
}

fn named(body: &[u8], end: TextEnd) -> Result<(u32, usize), NotRead> {
    let length = body.iter().take(MAX_NAME).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let (name, rest) = body.split_at_checked(length).unwrap_or_default();
    match rest.first() {
        None if length < MAX_NAME && end == TextEnd::More => Err(NotRead::Cut),
        Some(b';') => value_of(name).map(|value| (value, length + 1)).map_or_else(|| without_semicolon(name), Ok),
        _ => without_semicolon(name),
    }
}

/// A name, its character, and whether it needs its `;`.
type Name = (&'static [u8], u32, bool);

/// The names by their first byte: every `&` of a text is looked up.
static NAMES: LazyLock<[Vec<Name>; 128]> = LazyLock::new(|| {
    let signs = SIGNS.iter().enumerate();
    let signs = signs.map(|(at, (name, sign))| (name.as_bytes(), u32::from(*sign), at >= WITHOUT_SEMICOLON));
    let latin = LATIN.iter().zip(FIRST_LATIN..).map(|(name, value)| (name.as_bytes(), value, false));
    let mut names = [const { Vec::new() }; 128];
    for name in signs.chain(latin) {
        if let Some(same) = name.0.first().and_then(|first| names.get_mut(usize::from(*first))) {
            same.push(name);
        }
    }
    names
});

fn beginning_like(name: &[u8]) -> &'static [Name] {
    name.first().and_then(|first| NAMES.get(usize::from(*first))).map_or(&[], Vec::as_slice)
}

fn value_of(name: &[u8]) -> Option<u32> {
    beginning_like(name).iter().find(|(known, ..)| *known == name).map(|(_, value, _)| *value)
}

/// The longest name that needs no `;` and with which `name` begins.
fn without_semicolon(name: &[u8]) -> Result<(u32, usize), NotRead> {
    let begins = beginning_like(name).iter().filter(|(known, _, needs)| !needs && name.starts_with(known));
    let longest = begins.max_by_key(|(known, ..)| known.len()).ok_or(NotRead::Literal(1))?;
    Ok((longest.1, longest.0.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scrub::escape::{Dialect, token};

    #[test]
    fn references_are_read_in_every_way_to_write_them() {
        for (text, expected) in [
            ("&amp;", "&"),
            ("&amp", "&"),
            ("&#43;", "+"),
            ("&#43", "+"),
            ("&#x2B;", "+"),
            ("&#x00002b", "+"),
            ("&#0043;", "+"),
            ("&plus;", "+"),
            ("&eacute;", "é"),
            ("&Eacute;", "É"),
            ("&yuml;", "ÿ"),
            ("&iexcl;", "¡"),
            ("&szlig", "ß"),
            ("&#233;", "é"),
            ("&amp;lt;", "<"),
            ("&amp;amp;lt;", "<"),
            ("&amp;#43;", "+"),
            ("&DiacriticalGrave;", "`"),
            // The longest of several names.
            ("&sup1", "\u{b9}"),
            ("&not;", "\u{ac}"),
        ] {
            let Some(Token::Written(written, len)) = token(text.as_bytes(), Dialect::Usual, TextEnd::Final) else {
                panic!("{text}");
            };
            assert_eq!((std::str::from_utf8(written.bytes()), len), (Ok(expected), text.len()), "{text}");
        }
        for (text, cut) in [
            ("&am", true),
            ("&#", true),
            ("&#4", true),
            ("& am", false),
            ("&plus ", false),
            ("&abcdefghijklmnopqrst;", false),
        ] {
            let found = token(text.as_bytes(), Dialect::Usual, TextEnd::More);
            assert_eq!(found == Some(Token::Cut), cut, "{text}: {found:?}");
        }
        assert_eq!(token(b"&#10;", Dialect::Usual, TextEnd::More), Some(Token::Break(5)));
        assert_eq!(
            token(b"&amp x", Dialect::Usual, TextEnd::More),
            token(b"&amp; x", Dialect::Usual, TextEnd::More).map(|token| {
                let Token::Written(written, len) = token else { panic!("{token:?}") };
                Token::Written(written, len - 1)
            })
        );
    }
}
