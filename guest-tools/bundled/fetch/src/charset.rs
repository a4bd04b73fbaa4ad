//! From bytes to text: byte order mark, then the header, then the page's own claim, then UTF-8 (WHATWG Encoding).
//!
//! For any bytes, the answer is text: bytes that do not decode become U+FFFD.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// Bytes at a page's start in which it may name its character set (WHATWG HTML, 13.2.3.2).
const SCANNED_BYTES: usize = 1024;

/// Decodes a body. `content_type` is the header's value, with parameters.
pub fn decode(bytes: Vec<u8>, content_type: &str, is_html: bool) -> String {
    let named = Encoding::for_bom(&bytes).map(|(encoding, _)| encoding).or_else(|| named_in(content_type.as_bytes()));
    let encoding = named.or_else(|| if is_html { named_in_page(&bytes) } else { None });
    match encoding {
        Some(encoding) if encoding != UTF_8 => decode_as(encoding, &bytes),
        Some(_) => String::from_utf8(bytes).map_or_else(|error| decode_as(UTF_8, error.as_bytes()), without_mark),
        None => String::from_utf8(bytes).unwrap_or_else(|error| {
            // Cut in the middle of a character, or a few broken ones: still UTF-8. Otherwise the old web's encoding.
            let guess = if mostly_utf8(error.as_bytes()) { UTF_8 } else { WINDOWS_1252 };
            decode_as(guess, error.as_bytes())
        }),
    }
}

fn decode_as(encoding: &'static Encoding, bytes: &[u8]) -> String {
    encoding.decode(bytes).0.into_owned()
}

fn without_mark(mut text: String) -> String {
    if text.starts_with('\u{feff}') {
        text.remove(0);
    }
    text
}

/// The character set in `charset=LABEL`.
fn named_in(text: &[u8]) -> Option<&'static Encoding> {
    const NAME: &[u8] = b"charset";
    let start = text.windows(NAME.len()).position(|window| window.eq_ignore_ascii_case(NAME))?;
    let rest = text.get(start + NAME.len()..)?.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let quotes: &[u8] = b"\"'";
    let rest = rest.strip_prefix(b"\"").or_else(|| rest.strip_prefix(b"'")).unwrap_or(rest);
    let end = rest.iter().position(|byte| byte.is_ascii_whitespace() || b";/>".contains(byte) || quotes.contains(byte));
    Encoding::for_label(rest.get(..end.unwrap_or(rest.len()))?)
}

/// The character set that a page's `meta` names. A page that can be read far enough to find it is not UTF-16.
fn named_in_page(bytes: &[u8]) -> Option<&'static Encoding> {
    const META: &[u8] = b"<meta";
    let mut rest = bytes.get(..bytes.len().min(SCANNED_BYTES))?;
    while let Some(start) = rest.windows(META.len()).position(|window| window.eq_ignore_ascii_case(META)) {
        rest = rest.get(start + META.len()..)?;
        let tag = rest.get(..rest.iter().position(|byte| *byte == b'>').unwrap_or(rest.len()))?;
        if let Some(encoding) = named_in(tag) {
            return Some(encoding.output_encoding());
        }
    }
    None
}

/// Whether at most one in ten characters beyond ASCII is broken, or the last one alone.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let broken = bytes.utf8_chunks().filter(|chunk| !chunk.invalid().is_empty()).count();
    let whole: usize = bytes.utf8_chunks().map(|chunk| chunk.valid().chars().filter(|c| !c.is_ascii()).count()).sum();
    broken * 10 <= whole || (broken == 1 && whole > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], content_type: &str, expected: &str) {
        assert_eq!(decode(bytes.to_vec(), content_type, true), expected, "{content_type}");
    }

    #[test]
    fn finds_the_character_set() {
        check("grün".as_bytes(), "text/html", "grün");
        check(b"gr\xfcn", "text/html; charset=ISO-8859-1", "grün");
        check(b"gr\xfcn", "text/html; Charset=\"latin1\"; x=y", "grün");
        check(b"gr\xfcn", "text/html", "grün");
        check(b"\xef\xbb\xbfgr\xc3\xbcn", "text/html; charset=latin1", "grün");
        check(b"\xff\xfeg\0r\0\xfc\0n\0", "text/html", "grün");
        check(b"<meta charset='shift_jis'>\x83e", "text/html", "<meta charset='shift_jis'>テ");
        check(
            b"<META http-equiv=x content='text/html; charset=koi8-r'/>\xd4",
            "",
            "<META http-equiv=x content='text/html; charset=koi8-r'/>т",
        );
        check(b"<meta name=a><meta charset=utf-16>\xc3\xbc", "", "<meta name=a><meta charset=utf-16>ü");
    }

    #[test]
    fn text_comes_out_of_any_bytes() {
        check(b"a\xffb", "text/html; charset=utf-8", "a\u{fffd}b");
        check("grüner Tee\u{20ac}".as_bytes().split_last().unwrap().1, "", "grüner Tee\u{fffd}");
        check(b"gr\xfcn", "text/html; charset=nonsense", "grün");
        check(b"gr\xfcn", "text/html; charset=", "grün");
        check(b"<meta charset", "charset", "<meta charset");
        check(b"", "", "");
        check(b"x", "text/html; charset=iso-2022-kr", "\u{fffd}");
    }
}
