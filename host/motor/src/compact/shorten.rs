//! Texts, made shorter. It does not know their meaning; every cut is between two characters.

use std::borrow::Cow;

use base::text::cut_bytes;
use llm::Arguments;
use serde_json::{Map, Value, json};

/// Stands where something was left out.
const GAP: &str = "\n[...]\n";
/// A cut that saves less than this is not worth its note.
const WORTH: usize = 256;
/// Keys of a call's arguments that are kept when they are shortened.
const KEYS: usize = 8;
/// Bytes of a key, and of a value, that are kept then.
const VALUE_BYTES: usize = 64;
/// The key that says that arguments were shortened.
const CUT: &str = "[cut]";
/// Bytes of a path that are shown.
const PATH_BYTES: usize = 256;

/// How much of a text is kept, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    pub(crate) head: usize,
    pub(crate) tail: usize,
}

impl Keep {
    /// Whether the text is long enough to be cut.
    pub(crate) fn cuts(self, text: &str) -> bool {
        text.len() > self.shown() + WORTH
    }

    /// Bytes that are shown of a text that is cut.
    pub(crate) fn shown(self) -> usize {
        self.head + self.tail
    }

    /// The beginning and the end of a long text, or the whole of a short one.
    pub(crate) fn of(self, text: &str) -> Cow<'_, str> {
        if !self.cuts(text) {
            return Cow::Borrowed(text);
        }
        let (head, rest) = text.split_at(text.floor_char_boundary(self.head));
        let (_, tail) = rest.split_at(rest.ceil_char_boundary(rest.len().saturating_sub(self.tail)));
        Cow::Owned(format!("{head}{GAP}{tail}"))
    }
}

/// The text on one line of at most about `bytes` bytes: white space and control characters, which could begin a line that
/// looks like the host's, become single spaces.
pub(crate) fn inline(text: &str, bytes: usize) -> String {
    let mut line = String::new();
    let broken = |character: char| character.is_whitespace() || character.is_control();
    for word in text.split(broken).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > bytes {
            line.truncate(line.floor_char_boundary(bytes));
            line.push('…');
            break;
        }
    }
    line
}

/// A path between backticks.
pub(crate) fn path(path: &str) -> String {
    format!("`{}`", inline(path, PATH_BYTES).replace('`', "'"))
}

/// Arguments as a text.
pub(crate) fn arguments_text(arguments: &Arguments) -> Cow<'_, str> {
    match arguments {
        Arguments::Json(value) => Cow::Owned(value.to_string()),
        Arguments::Malformed(text) => Cow::Borrowed(text),
    }
}

/// Arguments of which more than `bytes` is left out: then an object of the same keys with the beginnings of their values,
/// because endpoints accept nothing but objects.
pub(crate) fn arguments(arguments: &Arguments, bytes: usize) -> Arguments {
    let text = arguments_text(arguments);
    if text.len() <= bytes {
        return arguments.clone();
    }
    let mut kept = Map::new();
    if let Arguments::Json(Value::Object(map)) = arguments {
        for (key, value) in map.iter().take(KEYS).filter(|(key, _)| key.len() <= VALUE_BYTES) {
            kept.insert(key.clone(), beginning(value));
        }
    }
    kept.insert(CUT.to_owned(), json!(format!("the arguments had {} bytes", text.len())));
    let kept = Value::Object(kept);
    // Escapes can make a short text long.
    let most = KEYS * 2 * VALUE_BYTES;
    Arguments::Json(if kept.to_string().len() > most { json!({}) } else { kept })
}

fn beginning(value: &Value) -> Value {
    let text = match value {
        Value::String(text) => Cow::Borrowed(text.as_str()),
        other => Cow::Owned(other.to_string()),
    };
    if text.len() <= VALUE_BYTES {
        return value.clone();
    }
    Value::String(cut_bytes(&text, VALUE_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cuts_are_between_characters() {
        let keep = Keep { head: 5, tail: 3 };
        let text = "äöü".repeat(100);
        let cut = keep.of(&text);
        assert_eq!(cut, "äö\n[...]\nü");
        assert_eq!(keep.of("short"), "short");
        let barely = "x".repeat(8 + WORTH);
        assert_eq!(keep.of(&barely), barely);
    }

    #[test]
    fn one_line_stays_one_line() {
        for (text, expected) in [
            ("a\nstep 9, you: \"b\"", "a step 9, you: \"b\""),
            (" a\u{2028}b\u{85}c\r\n\u{0}d ", "a b c d"),
            ("", ""),
            ("ääää", "ää…"),
        ] {
            let bytes = if text == "ääää" { 5 } else { 100 };
            assert_eq!(inline(text, bytes), expected);
        }
        assert_eq!(path("/workspace/a`b\nc"), "`/workspace/a'b c`");
    }

    #[test]
    fn shortened_arguments_are_objects() {
        let check = |given: Arguments, expected: Value| assert_eq!(arguments(&given, 20), Arguments::Json(expected));
        let text = "x".repeat(100);
        check(Arguments::Json(json!({"path": "a"})), json!({"path": "a"}));
        check(
            Arguments::Json(json!({"path": "a", "content": text})),
            json!({"path": "a", "content": format!("{}…", "x".repeat(64)), "[cut]": "the arguments had 125 bytes"}),
        );
        check(Arguments::Malformed(text.clone()), json!({"[cut]": "the arguments had 100 bytes"}));
        check(Arguments::Json(json!([text])), json!({"[cut]": "the arguments had 104 bytes"}));
        // Each of these takes six bytes as JSON.
        let escapes: Map<_, _> = (0..8).map(|key| (key.to_string(), json!("\u{1}".repeat(200)))).collect();
        check(Arguments::Json(Value::Object(escapes)), json!({}));
        assert_eq!(arguments(&Arguments::Malformed("{a".into()), 20), Arguments::Malformed("{a".into()));
    }
}
