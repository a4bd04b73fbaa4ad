//! Text made fit to be shown: no escape sequences, no line longer than there is room, numbers that people can read.

use std::borrow::Cow;
use std::time::Duration;

use base::Timestamp;
use base::text::is_invisible;
use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// The least room behind a label, however narrow the terminal is.
const MIN_HANGING: usize = 16;
/// Text that begins at this column or later stands in a column of a page.
const COLUMN: usize = 8;

/// Columns a text takes.
#[must_use]
pub fn width(text: &str) -> usize {
    text.width()
}

/// Whether a character could do something to a terminal, or make text read other than it is: control characters and
/// the marks that change the direction of writing.
pub(super) fn is_harmful(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}')
}

/// Text over several lines without characters that could harm a terminal: they become `�`.
#[must_use]
pub fn printable(text: &str) -> Cow<'_, str> {
    let bad = |c: char| is_harmful(c) && !matches!(c, '\n' | '\t');
    if !text.contains(bad) {
        return Cow::Borrowed(text);
    }
    // A carriage return before a newline is only another way to end a line.
    let text = text.replace("\r\n", "\n");
    Cow::Owned(text.chars().map(|c| if bad(c) { '\u{fffd}' } else { c }).collect())
}

/// Text over several lines in which nothing is hidden: characters that are invisible, change the direction or move the
/// cursor are written by their numbers, `<U+202E>`. For text that a person is asked to consent to.
#[must_use]
pub fn revealed(text: &str) -> Cow<'_, str> {
    let hidden = |c: char| c != '\n' && (is_harmful(c) || is_invisible(c));
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 64);
    for character in text.chars() {
        if hidden(character) {
            shown.push_str(&format!("<U+{:04X}>", u32::from(character)));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// The lines of a text in rows of at most `columns`, every character kept. A row ends behind a space if it has one in
/// its second half.
#[must_use]
pub fn rows(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut rows = Vec::new();
    for line in text.split('\n') {
        let (mut row, mut used) = (String::new(), 0);
        for character in line.chars() {
            let wide = character.width().unwrap_or(0);
            if used + wide > columns {
                let end = row.rfind(' ').map(|space| space + 1).filter(|end| *end > row.len() / 2 && *end < row.len());
                let rest = end.map(|end| row.split_off(end)).unwrap_or_default();
                used = width(&rest);
                rows.push(std::mem::replace(&mut row, rest));
            }
            row.push(character);
            used += wide;
        }
        rows.push(row);
    }
    rows
}

/// A text in rows of at most `columns`, broken between words where possible; white space collapses, and nothing is cut. A
/// command between backticks stays on one row if it fits there, so that it can be copied.
#[must_use]
pub fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let columns = columns.max(2);
    let mut wrapped = Vec::new();
    for line in text.split('\n') {
        let mut row = String::new();
        for word in words(line, columns) {
            if !row.is_empty() && painted_width(&row) + 1 + painted_width(&word) > columns {
                wrapped.push(std::mem::take(&mut row));
            }
            if !row.is_empty() {
                row.push(' ');
            }
            row.push_str(&word);
            if painted_width(&row) > columns {
                let mut parts = rows(&row, columns);
                row = parts.pop().unwrap_or_default();
                wrapped.extend(parts);
            }
        }
        wrapped.push(row);
    }
    wrapped
}

/// The words of a line; text between backticks counts as one word if it takes at most `columns`.
fn words(line: &str, columns: usize) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut open = false;
    for word in line.split_whitespace() {
        match words.last_mut().filter(|last| open && width(last) + 1 + width(word) <= columns) {
            Some(quoted) => {
                quoted.push(' ');
                quoted.push_str(word);
            }
            None => {
                open = false;
                words.push(word.to_owned());
            }
        }
        open ^= word.matches('`').count() % 2 == 1;
    }
    words
}

/// Columns of a text that may hold colours of this program's own.
fn painted_width(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let plain = parts.next().map_or(0, width);
    plain + parts.map(|part| width(part.split_once('m').map_or(part, |(_, rest)| rest))).sum::<usize>()
}

/// A text that begins `indent` columns to the right, and whose other rows begin at the same column.
#[must_use]
pub fn hanging(indent: usize, text: &str, columns: usize) -> String {
    wrapped(text, columns.saturating_sub(indent).max(MIN_HANGING)).join(&format!("\n{:indent$}", ""))
}

/// Lines that are too long for `columns`, wrapped. Their other rows begin below the text behind the last gap of two spaces
/// near the beginning, as a label or a mark has it; else below their first, if that stands in a column of its own, or two
/// columns further in.
#[must_use]
pub fn fitted(text: &str, columns: usize) -> Cow<'_, str> {
    if text.lines().all(|line| painted_width(line) <= columns) {
        return Cow::Borrowed(text);
    }
    let mut fitted = String::with_capacity(text.len() + 64);
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if painted_width(line) <= columns {
            fitted.push_str(line);
        } else {
            let (before, indent, rest) = hang(line, columns);
            fitted.push_str(before);
            fitted.push_str(&hanging(indent, rest, columns));
        }
        fitted.push_str(end);
    }
    Cow::Owned(fitted)
}

/// A line as its beginning, the column of its further rows, and its text.
fn hang(line: &str, columns: usize) -> (&str, usize, &str) {
    let text = line.trim_start_matches(' ');
    let leading = line.len() - text.len();
    let mut found = (leading, if leading >= COLUMN { leading } else { leading + 2 });
    for (gap, _) in text.match_indices("  ") {
        let behind = line.get(leading + gap..).unwrap_or_default();
        let start = line.len() - behind.trim_start_matches(' ').len();
        let indent = painted_width(line.get(..start).unwrap_or_default());
        if indent <= columns / 2 && start < line.len() {
            found = (start, indent);
        }
    }
    let (before, rest) = line.split_at_checked(found.0).unwrap_or(("", line));
    (before, found.1, rest)
}

/// Foreign text on one line in which nothing is hidden.
#[must_use]
pub fn quoted(text: &str) -> String {
    one_line(&revealed(text))
}

/// Text on one line: white space runs together, harmful characters become spaces.
#[must_use]
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len().min(512));
    for character in text.chars().map(|c| if c.is_whitespace() || is_harmful(c) { ' ' } else { c }) {
        if character != ' ' || !line.ends_with(' ') {
            line.push(character);
        }
    }
    line.trim().to_owned()
}

/// The beginning of a line in at most `columns`, ending in `…` if there is more.
#[must_use]
pub fn cut(line: &str, columns: usize) -> String {
    if width(line) <= columns {
        return line.to_owned();
    }
    let mut room = columns.saturating_sub(1);
    let mut text = String::new();
    for character in line.chars() {
        let wide = character.width().unwrap_or(0);
        if wide > room {
            break;
        }
        room -= wide;
        text.push(character);
    }
    if columns > 0 {
        text.push('…');
    }
    text
}

/// One line of at most `columns` out of any text.
#[must_use]
pub fn brief(text: &str, columns: usize) -> String {
    // Long texts are cut first, so that a megabyte of output costs no more than a line of it.
    let beginning: String = text.chars().take(columns.saturating_mul(4)).collect();
    let line = one_line(&beginning);
    let more = beginning.len() < text.len() && width(&line) <= columns;
    cut(&if more { format!("{line} …") } else { line }, columns)
}

/// Milliseconds: `0.4 ms`, `12 ms`, `1.2 s`, `3m 20s`, `2h 05m`.
#[must_use]
pub fn millis(millis: f64) -> String {
    let seconds = millis / 1_000.0;
    match millis {
        m if m < 0.95 => format!("{m:.2} ms"),
        m if m < 9.95 => format!("{m:.1} ms"),
        m if m < 999.5 => format!("{m:.0} ms"),
        _ if seconds < 99.95 => format!("{seconds:.1} s"),
        _ => {
            let seconds = seconds as u64;
            let (hours, minutes, seconds) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
            if hours > 0 { format!("{hours}h {minutes:02}m") } else { format!("{minutes}m {seconds:02}s") }
        }
    }
}

/// A whole number of milliseconds, as text.
#[must_use]
pub fn whole_millis(count: u64) -> String {
    if count < 1_000 { format!("{count} ms") } else { millis(count as f64) }
}

/// How long ago something was: `now`, `5 s`, `3 min`, `2 h`, `4 d`.
#[must_use]
pub fn age(age: Duration) -> String {
    match age.as_secs() {
        0 => "now".to_owned(),
        s @ 1..=59 => format!("{s} s"),
        s @ 60..=3_599 => format!("{} min", s / 60),
        s @ 3_600..=86_399 => format!("{} h", s / 3_600),
        s => format!("{} d", s / 86_400),
    }
}

/// The time that is left of a wait, as [`age`]; `None` if it has no limit.
#[must_use]
pub fn left(left: Duration) -> Option<String> {
    (left < motor::UNLIMITED / 2).then(|| age(left))
}

/// A large count: `950`, `1.2 k`, `34 M`.
#[must_use]
pub fn count(count: u64) -> String {
    scaled(count as f64, 1_000.0, &["", " k", " M", " G", " T"])
}

/// Bytes: `950 B`, `1.2 KiB`, `34 MiB`.
#[must_use]
pub fn bytes(count: u64) -> String {
    scaled(count as f64, 1_024.0, &[" B", " KiB", " MiB", " GiB", " TiB"])
}

fn scaled(mut value: f64, step: f64, units: &[&str]) -> String {
    let mut units = units.iter();
    let mut unit = units.next().copied().unwrap_or_default();
    let mut whole = true;
    for next in units {
        if value < step {
            break;
        }
        value /= step;
        unit = next;
        whole = false;
    }
    if whole || value >= 99.5 { format!("{value:.0}{unit}") } else { format!("{value:.1}{unit}") }
}

/// Tokens of a prompt with those of them that the provider had in its cache, if any: `1,200 tokens in (800 cached)`.
#[must_use]
pub fn tokens_in(input: u64, cached: u64) -> String {
    let cached = if cached > 0 { format!(" ({} cached)", thousands(cached)) } else { String::new() };
    format!("{} tokens in{cached}", thousands(input))
}

/// A number with commas between thousands.
#[must_use]
pub fn thousands(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 call`, `2 calls`.
#[must_use]
pub fn plural(count: u64, noun: &str) -> String {
    format!("{} {noun}{}", thousands(count), if count == 1 { "" } else { "s" })
}

/// A time without milliseconds: `2026-01-02 03:04:05`.
#[must_use]
pub fn seconds(at: Timestamp) -> String {
    at.to_string().chars().take(19).collect::<String>().replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_sees_no_escape_sequences() {
        assert_eq!(printable("\u{1b}]0;owned\u{7}a\tb\r\nc"), "�]0;owned�a\tb\nc");
        assert_eq!(printable("a\u{202e}b\u{9b}2J"), "a�b�2J");
        assert!(matches!(printable("plain ü 字\n"), Cow::Borrowed(_)));
        assert_eq!(one_line("  a\n\n b\u{1b}[2Jc\r"), "a b [2Jc");
    }

    #[test]
    fn nothing_is_hidden_from_who_consents() {
        assert_eq!(
            revealed("a\u{202e}b\u{200b}\u{e0041}\u{1b}[2J\r\nc"),
            "a<U+202E>b<U+200B><U+E0041><U+001B>[2J<U+000D>\nc"
        );
        assert_eq!(revealed("\t\u{feff}\u{2028}\u{fe0f}"), "<U+0009><U+FEFF><U+2028><U+FE0F>");
        assert!(matches!(revealed("plain ü 字\n\nünd"), Cow::Borrowed(_)));
        // Everything the width table gives no room is revealed, but marks that belong to a letter.
        for character in ('\0'..=char::MAX).filter(|c| c.width() == Some(0) && !is_invisible(*c) && !is_harmful(*c)) {
            assert!(character.is_alphanumeric() || !character.is_ascii(), "{character:?}");
        }
    }

    #[test]
    fn rows_lose_nothing() {
        assert_eq!(rows("abcdef\ng\n", 3), ["abc", "def", "g", ""]);
        assert_eq!(rows("字字字", 5), ["字字", "字"]);
        assert_eq!(rows("one two three  four", 9), ["one two ", "three  ", "four"]);
        assert_eq!(rows("a bcdefghij", 8), ["a bcdefg", "hij"]);
        let text = "x字\n ".repeat(50);
        assert_eq!(rows(&text, 7).concat(), text.replace('\n', ""));
        assert!(rows(&text, 7).iter().all(|row| width(row) <= 7));
    }

    #[test]
    fn words_stay_whole_where_there_is_room() {
        for (text, columns, expected) in [
            ("one two  three", 8, &["one two", "three"][..]),
            ("one two", 7, &["one two"]),
            ("abcdefghij kl", 4, &["abcd", "efgh", "ij", "kl"]),
            ("a\n\nb", 10, &["a", "", "b"]),
            ("字字 字", 5, &["字字", "字"]),
            ("", 10, &[""]),
        ] {
            assert_eq!(wrapped(text, columns), expected, "{text:?}");
        }
        assert!(wrapped(&"word ".repeat(200), 33).iter().all(|row| width(row) <= 33));
        assert_eq!(quoted("a\u{202e}\n b\u{200b}"), "a<U+202E> b<U+200B>");
    }

    #[test]
    fn commands_stay_whole_and_colours_take_no_room() {
        assert_eq!(wrapped("see `motor task list` and more", 18), ["see", "`motor task list`", "and more"]);
        assert_eq!(wrapped("see `motor task list` and more", 12), ["see", "`motor task", "list` and", "more"]);
        assert_eq!(wrapped("a ` b c d", 4), ["a", "` b", "c d"]);
        assert_eq!(wrapped("\u{1b}[31mab\u{1b}[0m cd", 5), ["\u{1b}[31mab\u{1b}[0m cd"]);
        assert_eq!(hanging(8, "one two three four five six", 26), "one two three four\n        five six");
        assert_eq!(fitted("  short\n  this is not so short\n", 20), "  short\n  this is not so\n    short\n");
        assert_eq!(fitted("ok  home  this is good to know", 26), "ok  home  this is good to\n          know");
        assert!(matches!(fitted("  short\n\n", 14), Cow::Borrowed(_)));
    }

    #[test]
    fn lines_are_cut_by_columns() {
        assert_eq!(cut("hello", 5), "hello");
        assert_eq!(cut("hello!", 5), "hell…");
        assert_eq!(cut("字字字", 5), "字字…");
        assert_eq!(cut("字字字", 4), "字…");
        assert_eq!(cut("x", 0), "");
        assert_eq!(brief(&"x ".repeat(1_000), 10), "x x x x x…");
        assert_eq!(brief(&format!("a{}b", " ".repeat(1_000)), 10), "a …");
        assert_eq!(brief("", 10), "");
    }

    #[test]
    fn numbers_for_people() {
        for (value, expected) in [
            (0.04, "0.04 ms"),
            (1.26, "1.3 ms"),
            (12.0, "12 ms"),
            (999.0, "999 ms"),
            (1_240.0, "1.2 s"),
            (200_000.0, "3m 20s"),
            (7_500_000.0, "2h 05m"),
        ] {
            assert_eq!(millis(value), expected);
        }
        assert_eq!(
            (count(950).as_str(), count(1_234).as_str(), count(345_678_901).as_str()),
            ("950", "1.2 k", "346 M")
        );
        assert_eq!(
            (bytes(10).as_str(), bytes(1_536).as_str(), bytes(64 << 20).as_str()),
            ("10 B", "1.5 KiB", "64.0 MiB")
        );
        assert_eq!((thousands(7), thousands(1_234_567)), ("7".to_owned(), "1,234,567".to_owned()));
        assert_eq!((plural(1, "call"), plural(1_000, "call")), ("1 call".to_owned(), "1,000 calls".to_owned()));
        assert_eq!(age(Duration::from_secs(125)), "2 min");
    }
}
