//! The forms in which a server may give a secret back, and in which a leak of it is looked for.

use std::io::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};

/// A way to write bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// As they are.
    Plain,
    /// Lower case hexadecimal.
    Hex,
    /// Upper case hexadecimal.
    HexUpper,
    /// Base64 after so many other bytes, which shift it.
    Base64(usize),
    /// The alphabet for URLs, without padding, after so many other bytes.
    Base64Url(usize),
    /// Every byte as `%XX`.
    Percent,
    /// Backwards.
    Reversed,
    /// Compressed, and said to be in `Content-Encoding`.
    Gzip,
}

impl Encoding {
    /// Every form that no reader of text sees through by itself.
    pub const ALL: [Self; 12] = [
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
        Self::Gzip,
    ];

    /// Writes the bytes so.
    ///
    /// # Panics
    /// When memory cannot be written to.
    #[must_use]
    pub fn apply(self, bytes: &[u8]) -> Vec<u8> {
        let shifted = |by: usize| [&b">>>"[..by], bytes].concat();
        match self {
            Self::Plain => bytes.to_vec(),
            Self::Hex => bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into(),
            Self::HexUpper => bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>().into(),
            Self::Base64(by) => STANDARD.encode(shifted(by)).into(),
            Self::Base64Url(by) => URL_SAFE_NO_PAD.encode(shifted(by)).into(),
            Self::Percent => bytes.iter().map(|byte| format!("%{byte:02X}")).collect::<String>().into(),
            Self::Reversed => bytes.iter().rev().copied().collect(),
            Self::Gzip => {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(bytes).expect("memory");
                encoder.finish().expect("memory")
            }
        }
    }

    /// What of the encoded bytes is the same whatever stands before and after them: what a search has to look for.
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
/// When a file cannot be read.
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
