//! Encoded text within a line: base64, hexadecimal, escapes, character codes. Only what decodes to readable text counts.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::Regex;

/// Maximum bytes decoded of one file, over all of its encoded texts.
pub(super) const MAX_DECODED: usize = 1 << 20;
/// Maximum encoded texts looked at in one line.
const MAX_IN_LINE: usize = 200;
/// Minimum characters of a decoded text.
const MIN_TEXT: usize = 10;

/// An encoded text.
pub(super) struct Blob {
    /// Byte offset in the line.
    pub at: usize,
    /// The decoded text.
    pub decoded: String,
}

/// How a text is encoded.
#[derive(Clone, Copy)]
enum Encoding {
    Base64,
    Hex,
    Codes(u32),
}

/// A row per encoding. Digits are searched before base64, whose alphabet contains them.
const ENCODINGS: [(Encoding, &str); 5] = [
    (Encoding::Hex, r"(?i)(?:\\x|%)[0-9a-f]{2}(?:(?:\\x|%)[0-9a-f]{2}){7,}"),
    (Encoding::Hex, r"(?i)\b(?:[0-9a-f]{2}){12,}\b"),
    (Encoding::Codes(8), r"\\0?[0-7]{2,3}(?:\\0?[0-7]{2,3}){7,}"),
    (Encoding::Codes(10), r"\b\d{2,3}(?:\s?,\s?\d{2,3}){9,}\b"),
    (Encoding::Base64, r"[A-Za-z0-9+/_-]{16,}={0,2}"),
];

static FINDERS: LazyLock<Vec<(Encoding, Regex)>> = LazyLock::new(|| {
    // Constant patterns, and a test compiles each.
    ENCODINGS.iter().filter_map(|(encoding, pattern)| Some((*encoding, Regex::new(pattern).ok()?))).collect()
});

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The encoded texts of a line. `budget` is the number of bytes that may still be decoded.
pub(super) fn find(line: &str, budget: &mut usize) -> Vec<Blob> {
    let joined = joined_literals(line);
    let mut found = Vec::new();
    for (encoding, finder) in FINDERS.iter() {
        for part in finder.find_iter(&joined).take(MAX_IN_LINE) {
            let Some(left) = budget.checked_sub(part.len()) else { return found };
            *budget = left;
            if let Some(decoded) = decode(*encoding, part.as_str()).as_deref().and_then(readable) {
                found.push(Blob { at: part.start().min(line.len()), decoded });
            }
        }
    }
    found
}

/// The line with adjacent string literals as one: `"aGVs" + "bG8="`.
fn joined_literals(line: &str) -> std::borrow::Cow<'_, str> {
    static BETWEEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r#"(?:"\s*[+.]?\s*"|'\s*[+.]?\s*')"#).ok());
    BETWEEN.as_ref().map_or(line.into(), |between| between.replace_all(line, ""))
}

fn decode(encoding: Encoding, part: &str) -> Option<Vec<u8>> {
    match encoding {
        Encoding::Base64 => {
            let bare = part.trim_end_matches('=');
            // One character more than whole bytes need is not part of the text.
            let whole = if bare.len() % 4 == 1 { bare.get(..bare.len() - 1)? } else { bare };
            STANDARD.decode(whole).or_else(|_| URL_SAFE.decode(whole)).ok()
        }
        Encoding::Hex => {
            let digits: Vec<u32> =
                part.replace("\\x", "").replace("\\X", "").chars().filter_map(|c| c.to_digit(16)).collect();
            digits.as_chunks::<2>().0.iter().map(|[high, low]| u8::try_from(high * 16 + low).ok()).collect()
        }
        Encoding::Codes(radix) => {
            let codes = part.split(['\\', ',']).map(str::trim).filter(|code| !code.is_empty());
            codes.map(|code| u8::from_str_radix(code, radix).ok()).collect()
        }
    }
}

/// The bytes as text, if a person could read them: UTF-8 or UTF-16, nearly all of it letters, signs and spaces.
fn readable(bytes: &[u8]) -> Option<String> {
    let wide = bytes.len() >= 2 * MIN_TEXT && bytes.iter().skip(1).step_by(2).all(|byte| *byte == 0);
    let text = if wide {
        bytes.iter().step_by(2).map(|byte| char::from(*byte)).collect()
    } else {
        String::from_utf8(bytes.to_vec()).ok()?
    };
    let (mut length, mut odd) = (0_usize, 0_usize);
    for character in text.chars() {
        length += 1;
        let plain = character.is_ascii_graphic() || matches!(character, ' ' | '\n' | '\t' | '\r');
        odd += usize::from(!plain);
    }
    (length >= MIN_TEXT && odd * 20 <= length).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &str, expected: &[&str]) {
        let found = find(line, &mut MAX_DECODED.clone());
        let found: Vec<&str> = found.iter().map(|blob| blob.decoded.as_str()).collect();
        assert_eq!(found, expected, "{line}");
    }

    #[test]
    fn every_pattern_compiles() {
        assert_eq!(FINDERS.len(), ENCODINGS.len());
    }

    #[test]
    fn readable_text_is_decoded() {
        let text = "curl http://x.example/a";
        check("x Y3VybCBodHRwOi8veC5leGFtcGxlL2E= y", &[text]);
        check("'Y3VybCBodHRw' + 'Oi8veC5leGFtcGxlL2E'", &[text]);
        check("6375726c20687474703a2f2f782e6578616d706c652f61", &[text]);
        check(r"$'\x63\x75\x72\x6c\x20\x78\x2e\x65\x78\x61\x6d\x70\x6c\x65'", &["curl x.example"]);
        check(r"\143\165\162\154\040\170\056\145\170\141\155\160\154\145", &["curl x.example"]);
        check("fromCharCode(99,117,114,108,32,120,46,101,120,97,109)", &["curl x.exam"]);
        check("aQBlAHgAIAAoAGkAdwByACAAeAAuAGUAeAApAA==", &["iex (iwr x.ex)"]);
    }

    #[test]
    fn anything_else_is_not_text() {
        check("sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", &[]);
        check("9c53c074d7ac6a2728b638ac1f376c5fa9eb8f71603017c3ea638c2fd40548df", &[]);
        check("aVeryLongIdentifierThatStandsInSomeProgram", &[]);
        check("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ", &[]);
    }

    #[test]
    fn decoding_is_bounded() {
        let mut budget = 40;
        assert_eq!(find(&"Y3VybCBodHRwOi8veC5leGFtcGxlL2E= ".repeat(9), &mut budget).len(), 1);
    }
}
