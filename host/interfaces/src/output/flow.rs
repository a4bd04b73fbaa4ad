//! A model's words on a terminal, broken between words while they arrive.

use unicode_width::UnicodeWidthChar as _;

use super::text::{is_harmful, width};

/// A word of a stream is shown at the latest once it has this many bytes.
const MAX_WORD_BYTES: usize = 4_096;

/// Breaks text that arrives in pieces between words, for a terminal. Text that was given out is final, and white space is
/// kept. A word that is longer than a row, such as a URL, is left for the terminal to break, so that it can be copied.
#[derive(Debug)]
pub struct Flow {
    indent: usize,
    columns: usize,
    /// Columns of the row that are taken; 0: nothing of it was given out yet.
    used: usize,
    /// Columns by which the further rows of the line stand further in: its own indentation, and the mark of a list's item.
    hang: usize,
    /// The white space behind it, and the word behind that, which may go on.
    space: String,
    word: String,
}

impl Flow {
    /// Rows of at most `columns`, the first `indent` of which stay empty.
    #[must_use]
    pub fn new(indent: usize, columns: usize) -> Self {
        Self { indent, columns, used: 0, hang: 0, space: String::new(), word: String::new() }
    }

    /// The text that can be shown by now. It holds nothing that could harm a terminal.
    pub fn push(&mut self, text: &str) -> String {
        let mut shown = String::new();
        for character in text.chars().filter(|character| *character != '\r') {
            match character {
                ' ' | '\t' | '\n' => {
                    self.end_word(&mut shown);
                    if self.space.len() < self.columns {
                        self.space.push_str(match character {
                            '\t' => "    ",
                            '\n' => "\n",
                            _ => " ",
                        });
                    }
                }
                _ => {
                    // A script that is written without spaces can be broken at each character.
                    let wide = character.width() == Some(2);
                    if wide {
                        self.end_word(&mut shown);
                    }
                    self.word.push(if is_harmful(character) { '\u{fffd}' } else { character });
                    if wide || self.word.len() >= MAX_WORD_BYTES {
                        self.end_word(&mut shown);
                    }
                }
            }
        }
        shown
    }

    /// The rest of the text, without the white space at its end.
    pub fn finish(&mut self) -> String {
        let mut shown = String::new();
        self.end_word(&mut shown);
        self.space.clear();
        self.used = 0;
        shown
    }

    fn end_word(&mut self, shown: &mut String) {
        if self.word.is_empty() {
            return;
        }
        let (mut space, wide) = (std::mem::take(&mut self.space), width(&self.word));
        if let Some((lines, rest)) = space.rsplit_once('\n') {
            shown.extend(lines.chars().filter(|character| *character == '\n').chain(['\n']));
            (space, self.used) = (rest.to_owned(), 0);
        }
        if self.used == 0 {
            self.hang = space.len() + if is_mark(&self.word) { wide + 1 } else { 0 };
            space.insert_str(0, &" ".repeat(self.indent));
        } else if self.used + space.len() + wide > self.columns {
            // A deep indent leaves room for text all the same.
            space = " ".repeat(self.indent + self.hang.min(self.columns / 3));
            shown.push('\n');
            self.used = 0;
        }
        shown.push_str(&space);
        shown.push_str(&self.word);
        self.used += space.len() + wide;
        self.word.clear();
    }
}

/// Whether a word begins an item of a list: `-`, `*`, `7.`
fn is_mark(word: &str) -> bool {
    let number = word.strip_suffix(['.', ')']).unwrap_or_default();
    matches!(word, "-" | "*" | "•") || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same text in one piece, character by character, and in pieces of three bytes' worth of characters.
    fn flows(text: &str, columns: usize) -> String {
        let flow = |pieces: Vec<String>| {
            let mut flow = Flow::new(2, columns);
            let shown: String = pieces.iter().map(|piece| flow.push(piece)).collect();
            shown + &flow.finish()
        };
        let characters: Vec<char> = text.chars().collect();
        let whole = flow(vec![text.to_owned()]);
        for size in [1, 3] {
            assert_eq!(flow(characters.chunks(size).map(String::from_iter).collect()), whole, "{text:?}");
        }
        whole
    }

    #[test]
    fn a_stream_is_broken_between_words_however_it_arrives() {
        for (text, columns, expected) in [
            ("one two three", 9, "  one two\n  three"),
            ("a\r\n\n- b:\n    c  d\n", 20, "  a\n\n  - b:\n      c  d"),
            ("see https://example.com/a/long/path now", 12, "  see\n  https://example.com/a/long/path\n  now"),
            (
                "- one two three four\n  12. a b c d e f g",
                20,
                "  - one two three\n    four\n    12. a b c d e f\n        g",
            ),
            ("字字字字 b", 7, "  字字\n  字字\n  b"),
            ("a\u{1b}[2Jb\tc", 40, "  a\u{fffd}[2Jb    c"),
            ("   ", 10, ""),
        ] {
            assert_eq!(flows(text, columns), expected, "{text:?}");
        }
        let long = flows(&"word ".repeat(100), 33);
        assert!(
            long.lines().all(|row| width(row) <= 33 && row.starts_with("  word") && row.ends_with("word")),
            "{long}"
        );
    }
}
