//! Cutting text at a number of bytes without splitting a character.

/// The longest prefix of `text` of at most `max` bytes that ends between characters.
pub fn prefix(text: &str, max: usize) -> &str {
    text.get(..text.floor_char_boundary(max)).unwrap_or(text)
}

/// Cuts `text` so that it has at most `max` bytes, its marker included. Says whether it had to.
pub fn with_marker(text: &mut String, max: usize) -> bool {
    let total = text.len();
    if total <= max {
        return false;
    }
    let marker = format!("…[truncated: {total} bytes]");
    match max.checked_sub(marker.len()) {
        Some(room) => {
            text.truncate(prefix(text, room).len());
            text.push_str(&marker);
        }
        None => text.truncate(prefix(text, max).len()),
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, max: usize, expected: &str) {
        let mut cut = text.to_owned();
        assert_eq!(with_marker(&mut cut, max), text != expected);
        assert_eq!(cut, expected);
        assert!(cut.len() <= max);
    }

    #[test]
    fn cuts_between_characters() {
        check("123", 3, "123");
        check("\"ééééééééééééééééé\"", 33, "\"éééé…[truncated: 36 bytes]");
        check("\"ééééééééééééééééé\"", 4, "\"é");
        check("1234", 0, "");
    }
}
