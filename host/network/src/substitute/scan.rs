//! Finds placeholders of credentials in a guest's requests, in the ways its libraries may have written them.

use std::ops::Range;

use base::CredentialName;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_encode};
use zeroize::Zeroizing;

/// How a text is encoded: how a placeholder may be written in it, and how a value has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// The text is not encoded.
    Plain,
    /// Path or query of a URL (RFC 3986).
    Url,
    /// `application/x-www-form-urlencoded`.
    Form,
    /// Inside a string of JSON.
    Json,
}

/// Unreserved characters (RFC 3986) need no encoding anywhere in a URL.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');
const WORD: &[u8] = b"credential";
/// The longest name of a credential.
const NAME_BYTES: usize = 64;

/// A placeholder: where it stands, and whose it is.
pub(crate) struct Placeholder {
    pub(crate) range: Range<usize>,
    pub(crate) name: CredentialName,
}

impl Encoding {
    /// Every placeholder in a text, in order. One at a time: a hostile text may hold millions.
    pub(crate) fn placeholders(self, text: &[u8]) -> impl Iterator<Item = Placeholder> + '_ {
        let mut at = 0;
        std::iter::from_fn(move || {
            loop {
                let start = at + text.get(at..)?.iter().position(|byte| self.may_open(*byte))?;
                let found = self.placeholder_at(text, start);
                at = found.as_ref().map_or(start + 1, |placeholder| placeholder.range.end);
                if found.is_some() {
                    return found;
                }
            }
        })
    }

    /// A value as it has to stand in a text.
    pub(crate) fn encode(self, value: &str) -> Zeroizing<Vec<u8>> {
        Zeroizing::new(match self {
            Self::Plain => value.as_bytes().to_vec(),
            Self::Url => percent_encode(value.as_bytes(), RESERVED).flat_map(str::bytes).collect(),
            Self::Form => form_urlencoded::byte_serialize(value.as_bytes()).flat_map(str::bytes).collect(),
            Self::Json => {
                // A string always serialises; its quotes are those around the placeholder.
                let quoted = Zeroizing::new(serde_json::to_vec(value).unwrap_or_default());
                let inside = quoted.strip_prefix(b"\"").and_then(|rest| rest.strip_suffix(b"\""));
                inside.unwrap_or_default().to_vec()
            }
        })
    }

    fn may_open(self, byte: u8) -> bool {
        byte == b'<'
            || (byte == b'%' && matches!(self, Self::Url | Self::Form))
            || (byte == b'\\' && self == Self::Json)
    }

    fn placeholder_at(self, text: &[u8], start: usize) -> Option<Placeholder> {
        let rest = text.get(start..)?;
        let rest = self.strip(rest, b'<')?.strip_prefix(WORD)?;
        let rest = self.strip(rest, b':')?;
        let is_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let length = rest.iter().take(NAME_BYTES + 1).take_while(|byte| is_name(byte)).count();
        let (name, rest) = rest.split_at_checked(length)?;
        let rest = self.strip(rest, b'>')?;
        let name = CredentialName::parse(std::str::from_utf8(name).ok()?).ok()?;
        Some(Placeholder { range: start..text.len() - rest.len(), name })
    }

    /// Takes a sign off the front, written in any way this encoding has for it.
    fn strip(self, text: &[u8], sign: u8) -> Option<&[u8]> {
        if let Some(rest) = text.strip_prefix(&[sign]) {
            return Some(rest);
        }
        let escaped = match self {
            Self::Plain => return None,
            Self::Url | Self::Form => format!("%{sign:02x}"),
            Self::Json => format!("\\u{sign:04x}"),
        };
        let (front, rest) = text.split_at_checked(escaped.len())?;
        front.eq_ignore_ascii_case(escaped.as_bytes()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(encoding: Encoding, text: &str) -> Vec<String> {
        encoding.placeholders(text.as_bytes()).map(|found| found.name.to_string()).collect()
    }

    #[test]
    fn placeholders_are_found_in_every_way_to_write_them() {
        use Encoding::{Form, Json, Plain, Url};
        for (encoding, text, expected) in [
            (Plain, "a <credential:k> b <credential:K-2_x><credential:k>", &["k", "K-2_x", "k"][..]),
            (Plain, "<<credential:k>>", &["k"]),
            (Plain, "<credential:<credential:k>", &["k"]),
            (Plain, "%3Ccredential%3Ak%3E", &[]),
            (Plain, "<credential:> <credential:1> <credential:k", &[]),
            (Plain, "<Credential:k>", &[]),
            (Url, "/a?x=%3Ccredential%3Ak%3E&y=%3ccredential:k%3e&z=<credential:k>", &["k", "k", "k"]),
            (Url, "/%3Ccredential%3Ak", &[]),
            (Form, "a=%3Ccredential%3Ak%3E&b=%3Ccredential%3A", &["k"]),
            (Json, r#"{"a":"<credential:k>","b":"\u003ccredential:j\u003E"}"#, &["k", "j"]),
            (Json, r#"{"a":"%3Ccredential%3Ak%3E"}"#, &[]),
        ] {
            assert_eq!(names(encoding, text), expected, "{encoding:?} {text}");
        }
        let longest = "k".repeat(NAME_BYTES);
        assert_eq!(names(Plain, &format!("<credential:{longest}>")), [longest.as_str()]);
        assert!(names(Plain, &format!("<credential:{longest}k>")).is_empty());
    }

    #[test]
    fn values_are_written_as_the_place_needs_them() {
        for (encoding, encoded) in [
            (Encoding::Plain, "a\"b\\c d&e=\u{fc}"),
            (Encoding::Url, "a%22b%5Cc%20d%26e%3D%C3%BC"),
            (Encoding::Form, "a%22b%5Cc+d%26e%3D%C3%BC"),
            (Encoding::Json, r#"a\"b\\c d&e=ü"#),
        ] {
            assert_eq!(encoding.encode("a\"b\\c d&e=\u{fc}").as_slice(), encoded.as_bytes(), "{encoding:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_break_it(bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..200)) {
            for encoding in [Encoding::Plain, Encoding::Url, Encoding::Form, Encoding::Json] {
                for found in encoding.placeholders(&bytes) {
                    assert!(found.range.end <= bytes.len());
                }
            }
        }

        #[test]
        fn json_stays_json(value in ".{0,40}") {
            let text = [b"\"".as_slice(), &Encoding::Json.encode(&value), b"\""].concat();
            assert_eq!(serde_json::from_slice::<String>(&text).unwrap(), value);
        }
    }
}
