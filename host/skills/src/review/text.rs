//! Which files of a skill are text, and which parts of a text a shell would run.
//!
//! No byte excludes a file: a shell runs a script with a zero byte or invalid UTF-8 like any other, so text that cannot
//! be decoded exactly is searched as well as possible.

use std::borrow::Cow;
use std::ops::Range;

use base::text::cut;

use super::{FileKind, visible_name};

/// Characters shown before the finding in a long line.
const SHOWN_BEFORE: usize = 60;

/// First bytes of a WebAssembly component.
const WASM: &[u8] = b"\0asm";

/// Extensions of text files.
const TEXTS: [&str; 46] = [
    "bash", "bat", "c", "cfg", "cjs", "cmd", "conf", "css", "csv", "env", "fish", "go", "h", "htm", "html", "ini",
    "java", "js", "json", "jsonl", "jsx", "ksh", "lua", "markdown", "md", "mdx", "mjs", "mts", "php", "pl", "ps1",
    "py", "r", "rb", "rs", "rst", "sh", "sql", "svg", "toml", "ts", "tsx", "txt", "xml", "yaml", "zsh",
];
/// Extensions of program files.
const SCRIPTS: [&str; 27] = [
    "bash", "bat", "c", "cjs", "cmd", "fish", "go", "java", "js", "jsx", "ksh", "lua", "mjs", "mts", "php", "pl",
    "ps1", "py", "r", "rb", "rs", "sh", "sql", "ts", "tsx", "yml", "zsh",
];
const SHELLS: [&str; 5] = ["bash", "fish", "ksh", "sh", "zsh"];
const MARKDOWNS: [&str; 3] = ["markdown", "md", "mdx"];
/// Language names on code fences of shell commands.
const FENCES: [&str; 9] = ["bash", "console", "fish", "ksh", "sh", "shell", "shell-session", "shellsession", "zsh"];

/// A file's content, as far as it is text.
pub(super) struct Text<'a> {
    /// Text, binary or WebAssembly component.
    pub kind: FileKind,
    /// The decoded text; `None` for a component.
    pub text: Option<Cow<'a, str>>,
    /// Undecodable content of a file that is meant to be text.
    pub damage: Option<&'static str>,
}

/// Reads a file as text.
pub(super) fn read<'a>(path: &str, bytes: &'a [u8]) -> Text<'a> {
    if is_component(path, bytes) {
        return Text { kind: FileKind::Component, text: None, damage: None };
    }
    if let Some(text) = utf16(bytes) {
        return Text { kind: FileKind::Text, text: Some(Cow::Owned(text)), damage: None };
    }
    let damage = match std::str::from_utf8(bytes) {
        Ok(text) if !bytes.contains(&0) => return Text { kind: FileKind::Text, text: Some(text.into()), damage: None },
        // It is reported among the hidden characters.
        Ok(_) => None,
        Err(_) => Some("bytes that are not UTF-8"),
    };
    let text = Some(String::from_utf8_lossy(bytes));
    if bytes.starts_with(b"#!") || has_extension(path, &TEXTS) || has_extension(path, &SCRIPTS) {
        return Text { kind: FileKind::Text, text, damage };
    }
    Text { kind: FileKind::Binary, text, damage: None }
}

/// Whether a file is a component, by its extension or first bytes.
pub(crate) fn is_component(path: &str, bytes: &[u8]) -> bool {
    has_extension(path, &["wasm"]) || bytes.starts_with(WASM)
}

/// Whether a component lacks the extension `.wasm`.
pub(super) fn is_disguised_component(path: &str, bytes: &[u8]) -> bool {
    bytes.starts_with(WASM) && !has_extension(path, &["wasm"])
}

/// Whether a file is a program, or lies in `scripts/`, and is not a component.
pub(super) fn is_script(path: &str, bytes: &[u8], mode: u32) -> bool {
    let program =
        path.starts_with("scripts/") || has_extension(path, &SCRIPTS) || bytes.starts_with(b"#!") || mode & 0o111 != 0;
    program && !is_component(path, bytes)
}

/// Whether a file is Markdown, by its extension.
pub(super) fn is_markdown(path: &str) -> bool {
    has_extension(path, &MARKDOWNS)
}

/// The parts of a text that are shell commands: all of a shell script, the marked code fences of Markdown.
pub(super) fn shell_parts(path: &str, text: &str) -> Vec<Range<usize>> {
    if has_extension(path, &SHELLS) || shebang_is_shell(text) {
        return std::iter::once(0..text.len()).collect();
    }
    if has_extension(path, &MARKDOWNS) { shell_fences(text) } else { Vec::new() }
}

/// The code fences of shell commands in Markdown, without the fences themselves.
fn shell_fences(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    // The open fence: its character, its length, where its content begins, whether it is of shell commands.
    let mut open: Option<(char, usize, usize, bool)> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        // Indented or in a quotation, as within lists.
        let bare = line.trim_start_matches([' ', '\t', '>']);
        let mark = bare.chars().next().filter(|first| matches!(first, '`' | '~'));
        let length = mark.map_or(0, |mark| bare.chars().take_while(|character| *character == mark).count());
        let info = bare.get(length..).unwrap_or_default().trim();
        match (open, mark) {
            (None, Some(mark)) if length >= 3 && !(mark == '`' && info.contains('`')) => {
                open = Some((mark, length, next, is_shell_info(info)));
            }
            (Some((mark, least, from, is_shell)), Some(closing))
                if closing == mark && length >= least && info.is_empty() =>
            {
                if is_shell {
                    parts.push(from..at);
                }
                open = None;
            }
            _ => {}
        }
        at = next;
    }
    // A fence that is never closed goes to the end.
    if let Some((_, _, from, true)) = open {
        parts.push(from..text.len());
    }
    parts
}

fn is_shell_info(info: &str) -> bool {
    let word = info.trim_start_matches(['{', '.']).split([' ', ',', '{', '}', ':', '\t']).next().unwrap_or_default();
    FENCES.iter().any(|name| word.eq_ignore_ascii_case(name))
}

fn shebang_is_shell(text: &str) -> bool {
    let Some(line) = text.lines().next().and_then(|line| line.strip_prefix("#!")) else { return false };
    let is_shell = |word: &str| {
        let program = word.rsplit('/').next().unwrap_or(word);
        program == "dash" || SHELLS.contains(&program)
    };
    // `/usr/bin/env -S bash -e`: any of the words.
    line.split_whitespace().any(is_shell)
}

fn has_extension(path: &str, extensions: &[&str]) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let Some((_, extension)) = name.rsplit_once('.') else { return false };
    extensions.iter().any(|known| extension.eq_ignore_ascii_case(known))
}

/// A text with a byte order mark of UTF-16, as some editors and shells write them.
fn utf16(bytes: &[u8]) -> Option<String> {
    let (rest, unit): (_, fn([u8; 2]) -> u16) = match bytes {
        [0xff, 0xfe, rest @ ..] => (rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => (rest, u16::from_be_bytes),
        _ => return None,
    };
    let units = rest.as_chunks::<2>().0.iter().map(|pair| unit(*pair));
    Some(char::decode_utf16(units).map(|character| character.unwrap_or(char::REPLACEMENT_CHARACTER)).collect())
}

/// Maps byte offsets in a text to line numbers.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    /// Indexes the lines of `text`.
    pub fn of(text: &str) -> Self {
        Self(text.bytes().zip(0..).filter(|(byte, _)| *byte == b'\n').map(|(_, at)| at).collect())
    }

    /// The line number at `offset`, counted from 1.
    pub fn at(&self, offset: usize) -> u64 {
        self.0.partition_point(|end| *end < offset) as u64 + 1
    }
}

/// The line around a byte offset, without its end.
pub(super) fn line_around(text: &str, offset: usize) -> &str {
    let before = text.get(..offset).unwrap_or_default();
    let from = before.rfind('\n').map_or(0, |at| at + 1);
    let rest = text.get(from..).unwrap_or_default();
    rest.split('\n').next().unwrap_or_default()
}

/// At most `max` characters of a line around the byte offset of a finding, with hidden characters written out.
pub(super) fn excerpt(line: &str, at: usize, max: usize) -> String {
    let line = line.trim_end();
    let skipped = line.get(..at).map_or(0, |before| before.chars().count()).saturating_sub(SHOWN_BEFORE);
    let from = if line.chars().count() <= max { 0 } else { skipped };
    let rest: String = line.chars().skip(from).collect();
    let shown = visible_name(&cut(rest.trim_start().replace('\t', " ").as_str(), max));
    if from > 0 { format!("…{shown}") } else { shown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_text() {
        let check = |path: &str, bytes: &[u8], kind: FileKind, text: Option<&str>, damage: bool| {
            let read = read(path, bytes);
            assert_eq!(read.kind, kind, "{path}");
            assert_eq!(read.text.as_deref(), text, "{path}");
            assert_eq!(read.damage.is_some(), damage, "{path}");
        };
        check("a.md", b"x", FileKind::Text, Some("x"), false);
        check("a", b"", FileKind::Text, Some(""), false);
        check("a.sh", b"x\0y", FileKind::Text, Some("x\0y"), false);
        check("a.sh", b"x\xffy", FileKind::Text, Some("x\u{fffd}y"), true);
        check("run", b"#!/bin/sh\n\xff", FileKind::Text, Some("#!/bin/sh\n\u{fffd}"), true);
        check("a.png", b"\x89PNG\0 http://x.org", FileKind::Binary, Some("\u{fffd}PNG\0 http://x.org"), false);
        check("a.ps1", b"\xff\xfeh\0i\0", FileKind::Text, Some("hi"), false);
        check("a.ps1", b"\xfe\xff\0h\0i", FileKind::Text, Some("hi"), false);
        check("a.wasm", b"text", FileKind::Component, None, false);
        check("a.png", b"\0asm\x0d\0\x01\0", FileKind::Component, None, false);
    }

    #[test]
    fn an_excerpt_of_a_long_line_has_the_finding_in_it() {
        assert_eq!(excerpt("\tcode x\u{202e}\r", 1, 160), "code x<U+202E>");
        let long = format!("{}https://a.dev{}", "é".repeat(5_000), "b".repeat(5_000));
        let shown = excerpt(&long, 10_000, 160);
        assert!(shown.starts_with('…') && shown.contains("https://a.dev") && shown.chars().count() <= 162, "{shown}");
    }

    #[test]
    fn scripts_by_place_name_first_line_or_permission() {
        for (path, bytes, mode) in
            [("scripts/a", &b"x"[..], 0o644), ("a.PY", b"x", 0o644), ("a", b"#!/bin/sh", 0o644), ("a", b"x", 0o744)]
        {
            assert!(is_script(path, bytes, mode), "{path}");
        }
        assert!(!is_script("a.md", b"x", 0o644));
        assert!(!is_script("scripts/a.wasm", b"\0asm", 0o755));
    }

    #[test]
    fn shell_is_found_in_markdown() {
        let check = |path: &str, text: &str, expected: &[&str]| {
            let parts: Vec<&str> = shell_parts(path, text).into_iter().map(|part| &text[part]).collect();
            assert_eq!(parts, expected, "{text}");
        };
        check("a.sh", "echo", &["echo"]);
        check("run", "#!/usr/bin/env -S bash -e\nx", &["#!/usr/bin/env -S bash -e\nx"]);
        check("run.py", "#!/usr/bin/env python3\nx", &[]);
        check("a.md", "a\n```bash\nb\n```\nc\n```js\nd\n```\n", &["b\n"]);
        check("a.md", "- a\n  ~~~~ sh\n  b\n  ~~~\n  c\n  ~~~~\nd", &["  b\n  ~~~\n  c\n"]);
        check("a.md", "```Shell title=x\na", &["a"]);
        check("a.md", "````md\n```bash\na\n```\n````\n```zsh\nb\n```", &["b\n"]);
        check("a.md", "``` a `b`\n```bash\nx\n```", &["x\n"]);
        check("a.txt", "```bash\nx\n```", &[]);
    }

    #[test]
    fn places_have_lines() {
        let text = "a\nbc\n\nd";
        let lines = Lines::of(text);
        let at: Vec<u64> = (0..text.len()).map(|offset| lines.at(offset)).collect();
        assert_eq!(at, [1, 1, 2, 2, 2, 3, 4]);
        assert_eq!(line_around(text, 3), "bc");
        assert_eq!(line_around(text, 6), "d");
        assert_eq!(line_around(text, 0), "a");
    }
}
