//! The forms in which a server may give a secret back, and in which a leak of it is looked for.

use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// A way to write bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// The bytes as they are.
    Plain,
    /// Hexadecimal in lower case letters.
    Hex,
    /// Hexadecimal in upper case letters.
    HexUpper,
    /// Base64 after so many other bytes, which shift it.
    Base64(usize),
    /// The alphabet for URLs, without padding, after so many other bytes.
    Base64Url(usize),
    /// Every byte as `%XX`.
    Percent,
    /// The bytes in reverse order.
    Reversed,
    /// UTF-16, little end first.
    Utf16,
    /// UTF-32, big end first.
    Utf32,
    /// Every byte as `\163`.
    Octal,
    /// A list of numbers, as JSON has it.
    List,
    /// Every byte as `=73`.
    QuotedPrintable,
    /// Every byte as `&#115;`.
    References,
    /// Base32 of RFC 4648. Not in [`Encoding::ALL`], because it depends on the bytes before.
    Base32,
    /// Letters moved by thirteen: a form the host does not know. Not in [`Encoding::ALL`].
    Rot13,
    /// Compressed, and said to be in `Content-Encoding`.
    Gzip,
}

impl Encoding {
    /// Every form that no reader of text sees through by itself.
    pub const ALL: [Self; 18] = [
        Self::Plain,
        Self::Hex,
        Self::HexUpper,
        Self::Base64(0),
        Self::Base64(1),
        Self::Base64(2),
        Self::Base64Url(0),
        Self::Base64Url(1),
        Self::Base64Url(2),
        Self::Percent,
        Self::Reversed,
        Self::Utf16,
        Self::Utf32,
        Self::Octal,
        Self::List,
        Self::QuotedPrintable,
        Self::References,
        Self::Gzip,
    ];

    /// Writes the bytes so.
    ///
    /// # Panics
    /// If memory cannot be written to.
    #[must_use]
    pub fn apply(self, bytes: &[u8]) -> Vec<u8> {
        let shifted = |by: usize| [&b">>>"[..by], bytes].concat();
        let each = |write: fn(&u8) -> String| bytes.iter().map(write).collect::<String>().into_bytes();
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
            Self::HexUpper => bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>().into(),
            Self::Base64(by) => STANDARD.encode(shifted(by)).into(),
            Self::Base64Url(by) => URL_SAFE_NO_PAD.encode(shifted(by)).into(),
            Self::Percent => bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<String>().into(),
            Self::Reversed => bytes.iter().rev().copied().collect(),
            Self::Utf16 => bytes.iter().flat_map(|byte| [*byte, 0]).collect(),
            Self::Utf32 => bytes.iter().flat_map(|byte| [0, 0, 0, *byte]).collect(),
            Self::Octal => each(|byte| format!("\\{byte:03o}")),
            Self::List => bytes.iter().map(u8::to_string).collect::<Vec<_>>().join(", ").into(),
            Self::QuotedPrintable => each(|byte| format!("={byte:02X}")),
            Self::References => each(|byte| format!("&#{byte};")),
            Self::Base32 => {
                let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
                let digit = |bits: &[u8]| {
                    bits.iter().fold(0, |value, bit| value * 2 + usize::from(bit - b'0')) << (5 - bits.len())
                };
                bits.as_bytes().chunks(5).map(|bits| b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[digit(bits)]).collect()
            }
            Self::Rot13 => {
                let moved = |first: u8, byte: u8| first + (byte - first + 13) % 26;
                let letter = |byte: &u8| match byte {
                    b'a'..=b'z' => moved(b'a', *byte),
                    b'A'..=b'Z' => moved(b'A', *byte),
                    _ => *byte,
                };
                bytes.iter().map(letter).collect()
            }
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(bytes).expect("memory");
                encoder.finish().expect("memory")
            }
        }
    }

    /// The encoded bytes that do not depend on the bytes around them: a search has to look for these.
    fn needle(self, bytes: &[u8]) -> Vec<u8> {
        let (Self::Base64(by) | Self::Base64Url(by)) = self else { return self.apply(bytes) };
        // A character holds six bits: those shared with a neighbour depend on it.
        let (first, last) = ((8 * by).div_ceil(6), 8 * (by + bytes.len()) / 6);
        self.apply(bytes)[first..last].to_vec()
    }
}

/// The encoded forms of a secret that occur in these bytes.
#[must_use]
pub fn forms_in(haystack: &[u8], secret: &str) -> Vec<Encoding> {
    let occurs = |needle: &[u8]| memchr::memmem::find(haystack, needle).is_some();
    let mut forms = Encoding::ALL.to_vec();
    // Compressed bytes depend on all that is compressed with them.
    forms.retain(|form| *form != Encoding::Gzip && occurs(&form.needle(secret.as_bytes())));
    forms
}

/// Files below a directory that hold a secret in any form, and the form.
///
/// # Panics
/// If a file cannot be read.
#[must_use]
pub fn files_with(directory: &Path, secret: &str) -> Vec<(String, Encoding)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(files_with(&path, secret));
        } else if path.is_file() {
            let content = std::fs::read(&path).expect("a file");
            found.extend(forms_in(&content, secret).into_iter().map(|form| (path.display().to_string(), form)));
        }
        // A name is told as freely as a content.
        let name = path.file_name().map(|name| name.as_encoded_bytes().to_vec()).unwrap_or_default();
        found.extend(forms_in(&name, secret).into_iter().map(|form| (path.display().to_string(), form)));
    }
    found
}
