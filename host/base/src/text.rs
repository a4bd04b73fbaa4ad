//! Text for messages: cut to a length, and the nearest of several names.

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

/// The same as [`cut`] with spaces in place of control characters, so that foreign text stays on one line.
#[must_use]
pub fn cut_line(text: &str, max_chars: usize) -> String {
    let plain = text.chars().map(|character| if character.is_control() { ' ' } else { character });
    cut(&plain.take(max_chars.saturating_add(1)).collect::<String>(), max_chars)
}

/// Of several names, each with the value it stands for, the one nearest to `text`, if it is similar enough to be meant.
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
        assert_eq!(cut_line("a\nb\u{1b}c", 4), "a b …");
        assert_eq!(cut_line("a\nb", 3), "a b");
        assert_eq!(cut_line("a", usize::MAX), "a");
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
