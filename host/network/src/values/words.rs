//! Texts as values are compared in: normal form, tokens, numbers, links.
//!
//! It survives texts of an attacker: everything is linear in the text, and nothing is allocated for a byte.

use std::borrow::Cow;
use std::ops::Range;

use percent_encoding::percent_decode_str;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// The meaning of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordKind {
    /// A token in lower case; a number in its plain spelling.
    Token,
    /// A token as it was spelled.
    Spelling,
    /// Path and query of a URL as they were spelled.
    Link,
}

/// Signs that belong to a token between alphanumerics: `a@b.example`, `2024-01-31`, `https://host/path`.
pub(super) fn is_inner(sign: char) -> bool {
    matches!(sign, '@' | '.' | '-' | '_' | '+' | '/' | ':')
}

/// Signs between the pieces of a token.
pub(super) fn is_joint(sign: char) -> bool {
    matches!(sign, '/' | ':' | ',' | '+')
}

/// Lower case, white space collapsed and trimmed.
pub(super) fn normal(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        push_folded(word, &mut out);
    }
    out
}

pub(super) fn push_folded(text: &str, out: &mut String) {
    for character in text.chars() {
        match character {
            // The Kelvin sign is another letter in an address; in lower case it would be an ASCII `k`.
            '\u{212a}' => out.push(character),
            _ if character.is_ascii() => out.push(character.to_ascii_lowercase()),
            _ => out.extend(character.to_lowercase()),
        }
    }
}

/// The plain spelling of an amount: `250` for `250.00`, `1250.5` for `1,250.50` and `1.250,50`. Leading zeros stay: they
/// tell account numbers apart. `None` if it is not an unsigned decimal number.
pub(super) fn number(text: &str) -> Option<Cow<'_, str>> {
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if is_digits(text) {
        return Some(Cow::Borrowed(text));
    }
    if !text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b',')) {
        return None;
    }
    let (whole, fraction, group) = match (text.rsplit_once('.'), text.rsplit_once(',')) {
        (Some((whole, fraction)), _) if is_digits(fraction) && !whole.contains('.') => (whole, fraction, ','),
        // One comma before three digits groups thousands, unless dots do.
        (_, Some((whole, fraction)))
            if is_digits(fraction) && !whole.contains(',') && (whole.contains('.') || fraction.len() != 3) =>
        {
            (whole, fraction, '.')
        }
        (None, Some(_)) => (text, "", ','),
        _ => return None,
    };
    let mut groups = whole.split(group);
    let first = groups.next().unwrap_or_default();
    let is_grouped = whole.contains(group);
    let is_valid = if is_grouped {
        is_digits(first) && first.len() <= 3 && groups.all(|group| group.len() == 3 && is_digits(group))
    } else {
        first.is_empty() || is_digits(first)
    };
    if !is_valid {
        return None;
    }
    let mut plain = if first.is_empty() { "0".to_owned() } else { whole.replace(group, "") };
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        plain.push('.');
        plain.push_str(fraction);
    }
    Some(Cow::Owned(plain))
}

/// The key of a text in lower case, spelled plainly if it is a number.
pub(super) fn key(seed: u64, folded: &str) -> u64 {
    let is_maybe_number = folded.bytes().next().is_some_and(|byte| byte.is_ascii_digit() || byte == b'.');
    match is_maybe_number.then(|| number(folded)).flatten() {
        Some(number) => spelling(seed, &number),
        None => spelling(seed, folded),
    }
}

/// The key of a text as it is spelled.
pub(super) fn spelling(seed: u64, text: &str) -> u64 {
    xxh3_64_with_seed(text.as_bytes(), seed)
}

/// The places of the tokens of a text: maximal runs of alphanumerics and of inner signs, and commas inside numbers.
pub(super) struct Runs<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Runs<'a> {
    pub(super) fn of(text: &'a str) -> Self {
        Self { text, at: 0 }
    }
}

impl Iterator for Runs<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let rest = self.text.get(self.at..)?;
        let found = rest.find(char::is_alphanumeric)?;
        let (before, rest) = rest.split_at_checked(found)?;
        let start = self.at + found;
        // `.5` is not `5`.
        let is_fraction = before.ends_with('.') && rest.starts_with(|first: char| first.is_ascii_digit());
        let (mut end, mut last) = (start, ' ');
        for (offset, character) in rest.char_indices() {
            let is_in = if last == ',' { character.is_ascii_digit() } else { character.is_alphanumeric() };
            if is_in {
                end = start + offset + character.len_utf8();
            } else if last == ',' || !(is_inner(character) || (character == ',' && last.is_ascii_digit())) {
                break;
            }
            last = character;
        }
        self.at = end;
        Some(start - usize::from(is_fraction)..end)
    }
}

/// The pieces of a token with the signs around them; the token itself if it has none or is a number.
pub(super) fn pieces(run: &str) -> impl Iterator<Item = &str> {
    let is_whole = number(run).is_some();
    run.split(move |sign| !is_whole && is_joint(sign))
}

/// Calls `found` with every token and every piece of one, as it is spelled and in lower case.
pub(super) fn tokens(text: &str, mut found: impl FnMut(&str, &str)) {
    let mut folded = String::new();
    let mut emit = |token: &str| {
        folded.clear();
        push_folded(token, &mut folded);
        found(token, &folded);
    };
    for run in Runs::of(text).filter_map(|range| text.get(range)) {
        emit(run);
        if run.contains(is_joint) {
            for piece in pieces(run).map(|piece| piece.trim_matches(is_inner)) {
                if !piece.is_empty() && piece.len() < run.len() {
                    emit(piece);
                }
            }
        }
    }
}

/// Calls `found` with the keys of everything in a text that a later request may repeat, percent-encoded or not.
pub(super) fn keys(seed: u64, text: &str, found: &mut dyn FnMut(WordKind, u64)) {
    keys_as_written(seed, text, found);
    if text.contains('%') {
        let decoded = percent_decode_str(text).decode_utf8_lossy();
        if decoded != text {
            keys_as_written(seed, &decoded, found);
        }
    }
}

fn keys_as_written(seed: u64, text: &str, found: &mut dyn FnMut(WordKind, u64)) {
    tokens(text, |token, folded| {
        found(WordKind::Token, key(seed, folded));
        if token != folded {
            found(WordKind::Spelling, spelling(seed, token));
        }
    });
    let ends_word = |sign: char| sign.is_whitespace() || matches!(sign, '"' | '\'' | '<' | '>' | '`' | '\\');
    for word in text.split(ends_word).filter(|word| word.contains(['/', '?'])) {
        // `(/path)` and, in Markdown, `[text](/path)`.
        let word = word.rsplit_once("](").map_or(word, |(_, link)| link);
        let word = word.strip_prefix('(').unwrap_or(word);
        let link = match word.split_once("://") {
            Some((_, rest)) => rest.find(['/', '?']).and_then(|at| rest.get(at..)),
            None => word.starts_with(['/', '?']).then_some(word),
        };
        let link = link.and_then(|link| link.split('#').next()).unwrap_or_default();
        let link = link.trim_end_matches(['.', ',', ';', ':', '!', ']']);
        found(WordKind::Link, spelling(seed, if link.contains('(') { link } else { link.trim_end_matches(')') }));
    }
}

/// Whether a token says something: most short words stand in any text.
pub(super) fn is_strong(token: &str) -> bool {
    token.len() >= 6 || token.bytes().any(|byte| byte.is_ascii_digit() || byte == b'@') || token.contains("://")
}

/// Whether a value stands in words, neither end inside a token. Both are in normal form. A piece of a URL may stand alone.
pub(super) fn stands_in(words: &str, value: &str) -> bool {
    let binds = |sign: char| is_inner(sign) && (!matches!(sign, '/' | ':') || value.contains(sign));
    let is_cut = |at: usize| {
        let Some((left, right)) = words.split_at_checked(at) else { return true };
        let mut before = left.chars().rev();
        let mut after = right.chars();
        let is_in_token = before.clone().find(|sign| !binds(*sign)).is_some_and(char::is_alphanumeric)
            && after.clone().find(|sign| !binds(*sign)).is_some_and(char::is_alphanumeric);
        // `250` does not stand in `1,250.00`.
        let sides = [before.next(), before.next(), after.next(), after.next()];
        let sides = sides.map(|side| side.map_or(' ', |sign| if sign.is_ascii_digit() { '0' } else { sign }));
        is_in_token || matches!(sides, [',', '0', '0', _] | ['0', _, ',', '0'])
    };
    words.match_indices(value).any(|(at, found)| !is_cut(at) && !is_cut(at + found.len()))
}
