//! Distinguishes a secret from a part of a placeholder: the value `postgres` is also in
//! `<credential:postgres_password>`.
//!
//! Only a placeholder of an existing credential counts, so a secret in one reveals no more than its name does.

use std::ops::Range;

use super::KnownSecret;
use super::escape::TextEnd;
use crate::environment::folded;

const WORD: &[u8] = b"credential";
/// The longest name of a credential, in bytes.
const NAME_BYTES: usize = 64;
/// The longest placeholder, with its three signs as `\u003c`.
pub(super) const MAX_BYTES: usize = WORD.len() + NAME_BYTES + 18;

/// The signs of a placeholder as written in texts, in URLs and forms, in JSON, and in HTML.
const OPEN: [&[u8]; 4] = [b"<", b"%3c", b"\\u003c", b"&lt;"];
const COLON: [&[u8]; 4] = [b":", b"%3a", b"\\u003a", b"&#58;"];
const CLOSE: [&[u8]; 4] = [b">", b"%3e", b"\\u003e", b"&gt;"];

/// Whether a part of a text lies within a placeholder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Within {
    Yes,
    No,
    /// Undecided until more text arrives.
    Unknown,
}

/// Whether `range` lies within the placeholder of a known credential.
pub(super) fn around(text: &[u8], range: &Range<usize>, end: TextEnd, known: &[KnownSecret]) -> Within {
    let mut within = Within::No;
    for at in (range.end.saturating_sub(MAX_BYTES)..=range.start).rev() {
        match read(text.get(at..).unwrap_or_default(), end) {
            PlaceholderRead::Whole(name, len) if at + len >= range.end && is_known(known, |known| known == name) => {
                return Within::Yes;
            }
            PlaceholderRead::Cut(start) if is_known(known, |known| known.starts_with(&start)) => {
                within = Within::Unknown
            }
            _ => {}
        }
    }
    within
}

fn is_known(known: &[KnownSecret], fits: impl Fn(&str) -> bool) -> bool {
    known.iter().any(|secret| fits(&folded(secret.name.as_str())))
}

enum PlaceholderRead {
    /// A placeholder of this name, and its length in bytes.
    Whole(String, usize),
    /// The text ends within a placeholder whose name begins like this.
    Cut(String),
    None,
}

/// The placeholder that `text` begins with. Names are folded like those of variables.
fn read(text: &[u8], end: TextEnd) -> PlaceholderRead {
    let cut = |name: &[u8]| match end {
        TextEnd::More => PlaceholderRead::Cut(folded(&String::from_utf8_lossy(name))),
        TextEnd::Final => PlaceholderRead::None,
    };
    let mut rest = text;
    for signs in [&OPEN[..], &[WORD], &COLON] {
        match strip(rest, signs) {
            Some(after) => rest = after,
            None if is_cut(rest, signs) => return cut(b""),
            None => return PlaceholderRead::None,
        }
    }
    let is_name = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let (name, rest) = rest.split_at(rest.iter().take(NAME_BYTES).take_while(is_name).count());
    match strip(rest, &CLOSE) {
        Some(rest) => PlaceholderRead::Whole(folded(&String::from_utf8_lossy(name)), text.len() - rest.len()),
        None if is_cut(rest, &CLOSE) => cut(name),
        None => PlaceholderRead::None,
    }
}

fn begins(text: &[u8], with: &[u8]) -> bool {
    text.get(..with.len()).is_some_and(|front| front.eq_ignore_ascii_case(with))
}

fn strip<'a>(text: &'a [u8], signs: &[&[u8]]) -> Option<&'a [u8]> {
    let sign = signs.iter().find(|sign| begins(text, sign))?;
    text.get(sign.len()..)
}

/// Whether a text ends within one of the signs.
fn is_cut(text: &[u8], signs: &[&[u8]]) -> bool {
    signs.iter().any(|sign| text.len() < sign.len() && begins(sign, text))
}
