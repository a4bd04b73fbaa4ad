//! Names as git prints them: in quotes with escapes where a byte is special (`core.quotePath`).

use bstr::{BStr, BString, ByteSlice as _};

/// Whether a name needs quotes.
fn special(byte: u8) -> bool {
    !(0x20..0x7f).contains(&byte) || byte == b'"' || byte == b'\\'
}

/// The name as it is printed in a diff or a list.
pub(crate) fn name(name: &BStr) -> BString {
    quoted(name, false)
}

/// As [`name`], with quotes also around a space: the short forms of `status`.
pub(crate) fn name_with_space(name: &BStr) -> BString {
    quoted(name, true)
}

fn quoted(name: &BStr, spaces: bool) -> BString {
    let needed = name.iter().any(|byte| special(*byte)) || (spaces && name.contains(&b' '));
    if !needed {
        return name.to_owned();
    }
    let mut text = BString::from("\"");
    for byte in name.bytes() {
        match byte {
            b'"' => text.extend_from_slice(b"\\\""),
            b'\\' => text.extend_from_slice(b"\\\\"),
            7 => text.extend_from_slice(b"\\a"),
            8 => text.extend_from_slice(b"\\b"),
            b'\t' => text.extend_from_slice(b"\\t"),
            b'\n' => text.extend_from_slice(b"\\n"),
            11 => text.extend_from_slice(b"\\v"),
            12 => text.extend_from_slice(b"\\f"),
            b'\r' => text.extend_from_slice(b"\\r"),
            byte if special(byte) => text.extend_from_slice(format!("\\{byte:03o}").as_bytes()),
            byte => text.push(byte),
        }
    }
    text.push(b'"');
    text
}

/// A path of the working tree as seen from a directory in it: `prefix` is empty or ends with `/`.
pub(crate) fn relative(path: &BStr, prefix: &BStr) -> BString {
    if prefix.is_empty() {
        return path.to_owned();
    }
    let trimmed = prefix.strip_suffix(b"/").unwrap_or(prefix);
    let mut from: Vec<&[u8]> = trimmed.split_str("/").collect();
    let mut to: Vec<&[u8]> = path.split_str("/").collect();
    while to.len() > 1 && !from.is_empty() && from.first() == to.first() {
        from.remove(0);
        to.remove(0);
    }
    // A directory that ends with `/` has an empty last part: the directory itself is `./`.
    let mut text = BString::default();
    for _ in &from {
        text.extend_from_slice(b"../");
    }
    text.extend_from_slice(&to.join(&b'/'));
    if text.is_empty() {
        text.extend_from_slice(b"./");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_as_git_does() {
        for (given, expected) in [
            ("plain-1.txt", "plain-1.txt"),
            ("a b", "a b"),
            ("na\u{ef}ve", "\"na\\303\\257ve\""),
            ("tab\tnl\n", "\"tab\\tnl\\n\""),
            ("q\"b\\", "\"q\\\"b\\\\\""),
            ("\u{7f}\u{1}", "\"\\177\\001\""),
        ] {
            assert_eq!(name(given.into()), expected);
        }
        assert_eq!(name_with_space("a b".into()), "\"a b\"");
    }

    #[test]
    fn paths_are_relative_to_a_directory() {
        for (path, prefix, expected) in [
            ("a/b", "", "a/b"),
            ("a/b", "a/", "b"),
            ("a/b", "c/", "../a/b"),
            ("x", "a/b/", "../../x"),
            ("a/c", "a/b/", "../c"),
            ("a/", "a/", "./"),
        ] {
            assert_eq!(relative(path.into(), prefix.into()), expected, "{path} {prefix}");
        }
    }
}
