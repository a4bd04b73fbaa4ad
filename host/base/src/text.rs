//! Text for messages: foreign text made harmless, text cut to a length, and the nearest of several names.

use std::fmt::Display;

/// Jaro-Winkler similarity below which two names are unrelated.
const MIN_SIMILARITY: f64 = 0.82;

/// The first `max_chars` characters of a text, with `…` if there are more.
#[must_use]
pub fn cut(text: &str, max_chars: usize) -> String {
    text.char_indices().nth(max_chars).map_or_else(|| text.to_owned(), |(end, _)| cut_bytes(text, end))
}

/// The whole characters within the first `max_bytes` bytes of a text, with `…` if there are more.
#[must_use]
pub fn cut_bytes(text: &str, max_bytes: usize) -> String {
    match text.get(..text.floor_char_boundary(max_bytes)) {
        Some(head) if head.len() < text.len() => format!("{head}…"),
        _ => text.to_owned(),
    }
}

/// Text by a guest, a model, an endpoint, a skill or a page. It has no `Display`: it gets into a message by a method
/// that makes it harmless.
#[derive(Debug, Clone, Copy)]
pub struct Foreign<'a>(pub &'a str);

impl Foreign<'_> {
    /// As [`cut`], with unprintable characters, quotes and line breaks escaped: for a name or a value within a message.
    #[must_use]
    #[expect(clippy::disallowed_methods, reason = "the one place that escapes")]
    pub fn escaped(self, max_chars: usize) -> String {
        cut(self.0, max_chars).escape_debug().to_string()
    }

    /// As [`cut`], with spaces in place of control characters: for a message that stays on one line.
    #[must_use]
    pub fn line(self, max_chars: usize) -> String {
        let plain = self.0.chars().map(|character| if character.is_control() { ' ' } else { character });
        cut(&plain.take(max_chars.saturating_add(1)).collect::<String>(), max_chars)
    }

    /// On one line, with `U+FFFD` in place of characters that do not show or turn the direction of others, and the
    /// number of bytes if it is cut: for a value that a person decides about.
    #[must_use]
    pub fn visible(self, max_chars: usize) -> String {
        let harmless = |sign: char| match sign {
            _ if sign.is_whitespace() => ' ',
            // Selects the coloured form of an emoji.
            '\u{fe0f}' => sign,
            _ if sign.is_control() || is_invisible(sign) => char::REPLACEMENT_CHARACTER,
            _ => sign,
        };
        let cut = self.0.char_indices().nth(max_chars).map(|_| format!("… ({} bytes)", self.0.len()));
        let room = cut.as_ref().map_or(max_chars, |cut| max_chars.saturating_sub(cut.chars().count()));
        self.0.chars().take(room).map(harmless).chain(cut.iter().flat_map(|cut| cut.chars())).collect()
    }
}

/// Whether a character is invisible because it takes no room: zero-width and filling ones, variation selectors, tags
/// (the default ignorable code points of Unicode that are not letters of a living script).
#[must_use]
pub fn is_invisible(character: char) -> bool {
    matches!(character,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// `1 step`, `2 steps`.
#[must_use]
pub fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}

/// The value of the name nearest to `text`, if the name is similar enough to be meant.
/// Of equally near names, the last.
pub fn nearest<'a, T>(text: &str, known: impl IntoIterator<Item = (&'a str, T)>) -> Option<T> {
    let text = text.to_lowercase();
    let scored = known.into_iter().map(|(name, meant)| {
        let name = name.to_lowercase();
        // `file_path` for `path`, `filePath` for `path`, `q` for `query`: a name that contains the other.
        let is_part = name.len() >= 3 && text.contains(&name) || text.len() >= 3 && name.contains(&text);
        (if is_part { 0.95 } else { strsim::jaro_winkler(&text, &name) }, meant)
    });
    let similar = scored.filter(|(score, _)| *score >= MIN_SIMILARITY);
    similar.max_by(|(a, _), (b, _)| a.total_cmp(b)).map(|(_, meant)| meant)
}

/// The end of an error about an unknown name: `; did you mean …?`, or nothing.
pub fn did_you_mean(nearest: Option<impl Display>) -> String {
    nearest.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular() {
        assert_eq!([0, 1, 2].map(|count| counted(count, "step")), ["0 steps", "1 step", "2 steps"]);
    }

    #[test]
    fn text_is_cut_between_characters() {
        for (text, max_chars, expected) in
            [("short", 200, "short"), ("äöü", 2, "äö…"), ("äöü", 3, "äöü"), ("", 0, ""), ("a", 0, "…")]
        {
            assert_eq!(cut(text, max_chars), expected);
        }
        for (text, max_bytes, expected) in
            [("short", 5, "short"), ("äöü", 5, "äö…"), ("äöü", 6, "äöü"), ("ä", 1, "…"), ("", 0, "")]
        {
            assert_eq!(cut_bytes(text, max_bytes), expected);
        }
    }

    #[test]
    fn foreign_text_is_harmless() {
        assert_eq!(Foreign("a\nb\u{1b}c").line(4), "a b …");
        assert_eq!(Foreign("a\nb").line(3), "a b");
        assert_eq!(Foreign("a").line(usize::MAX), "a");
        assert_eq!(Foreign("a\nb\u{202e}").escaped(9), "a\\nb\\u{202e}");
        assert_eq!(Foreign("abc").escaped(2), "ab…");
        assert_eq!(Foreign("a\n\u{200b}b\u{7}").visible(9), "a \u{fffd}b\u{fffd}");
        assert_eq!(Foreign(&"x".repeat(100)).visible(20), "xxxxxxx… (100 bytes)");
    }

    #[test]
    fn only_a_similar_name_is_meant() {
        let check = |text: &str, expected: Option<&str>| {
            let known = ["path", "query", "limit", "filesystem"];
            assert_eq!(nearest(text, known.map(|name| (name, name))), expected, "{text}");
        };
        check("file_path", Some("path"));
        check("filePath", Some("path"));
        check("limt", Some("limit"));
        check("LIMIT", Some("limit"));
        check("filesytem", Some("filesystem"));
        check("zzz", None);
        check("", None);
        assert_eq!(did_you_mean(nearest("limt", [("limit", "limits.limit")])), "; did you mean `limits.limit`?");
        assert_eq!(did_you_mean(None::<&str>), "");
    }
}
