//! The messages of commits.

use bstr::{BString, ByteSlice as _};

use crate::error::{Fault, Result};
use crate::limits::MAX_MESSAGE_BYTES;

/// A message as git stores it: without spaces at the ends of lines, without empty lines at its beginning and end, and
/// with one empty line where there were several.
pub(super) fn tidy(text: &[u8]) -> Result<BString> {
    if text.len() > MAX_MESSAGE_BYTES {
        return Err(Fault::limit(format_args!("the message has more than {MAX_MESSAGE_BYTES} bytes")));
    }
    if text.contains(&0) {
        return Err(Fault::error("a NUL byte in commit log message not allowed."));
    }
    let mut tidy = BString::default();
    let mut empty = false;
    for line in text.lines() {
        let line = line.trim_ascii_end();
        if line.is_empty() {
            empty = true;
            continue;
        }
        if empty && !tidy.is_empty() {
            tidy.push(b'\n');
        }
        empty = false;
        tidy.extend_from_slice(line);
        tidy.push(b'\n');
    }
    Ok(tidy)
}

/// Adds a `Signed-off-by` line, unless it is the last one already.
pub(super) fn sign_off(message: &BString, who: &str) -> BString {
    let line = format!("Signed-off-by: {who}");
    let mut signed = message.clone();
    let last = message.lines().next_back().unwrap_or_default().as_bstr().to_owned();
    if last == line {
        return signed;
    }
    let is_trailer = |line: &[u8]| {
        line.split_once_str(": ").is_some_and(|(key, _)| {
            !key.is_empty() && key.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        })
    };
    let paragraphs = message.find("\n\n").is_some();
    if !(paragraphs && is_trailer(&last)) {
        signed.push(b'\n');
    }
    signed.extend_from_slice(line.as_bytes());
    signed.push(b'\n');
    signed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_tidied() {
        for (given, expected) in
            [("a", "a\n"), ("\n\n a  \n\n\n\nb\n\n", " a\n\nb\n"), (" \n\t\n", ""), ("a\nb\n", "a\nb\n")]
        {
            assert_eq!(tidy(given.as_bytes()).unwrap(), expected);
        }
        assert!(tidy(b"a\0b").is_err());
        assert_eq!(sign_off(&"a\n".into(), "N <e>"), "a\n\nSigned-off-by: N <e>\n");
        assert_eq!(sign_off(&"a\n\nX-y: z\n".into(), "N <e>"), "a\n\nX-y: z\nSigned-off-by: N <e>\n");
    }
}
