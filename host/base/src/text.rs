//! Text for messages, cut to a length.

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
}
