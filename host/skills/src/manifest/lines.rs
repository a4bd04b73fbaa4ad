//! Reads one field of a frontmatter that is not YAML, line by line, as its author plainly meant it.

use granit_parser::{Event, Parser};

/// The text of a field: the rest of its line, with the lines that belong to it.
pub(super) fn field(front: &str, name: &str) -> Option<String> {
    let margin = front.lines().filter(|line| !line.trim().is_empty()).map(indent).min().unwrap_or(0);
    let mut lines = front.lines().map(|line| line.get(margin..).unwrap_or_default());
    let head = lines.by_ref().find_map(|line| {
        let (key, value) = keyed(line)?;
        key.eq_ignore_ascii_case(name).then_some(value)
    })?;
    let more: Vec<&str> = lines.take_while(|line| keyed(line).is_none()).collect();
    let text = match head.chars().next() {
        Some('|' | '>') if is_block_header(head) => more.join("\n"),
        Some(quote @ ('"' | '\'')) => quoted(head, &more, quote),
        _ => joined(head, more.iter().copied().filter(|line| !line.starts_with('#'))),
    };
    Some(text)
}

/// Bytes of spaces and tabs before a line's text.
fn indent(line: &str) -> usize {
    line.len() - line.trim_start_matches([' ', '\t']).len()
}

/// Key and value of a line that begins a field. Keys are words: a sentence with a colon in it goes on with the last
/// field.
fn keyed(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let key = key.trim_end();
    let bare = key.trim_matches(['"', '\'']);
    let is_key = !bare.is_empty()
        && bare.len() <= 64
        && bare.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_' | '.'))
        && !value.starts_with("//");
    is_key.then(|| (bare, value.trim()))
}

/// `|` or `>`, with their marks for the treatment of spaces.
fn is_block_header(head: &str) -> bool {
    let rest = head.get(1..).unwrap_or_default();
    let rest = rest.split_once('#').map_or(rest, |(before, _)| before);
    rest.trim_end().chars().all(|c| c.is_ascii_digit() || matches!(c, '+' | '-'))
}

fn joined<'a>(head: &'a str, more: impl Iterator<Item = &'a str>) -> String {
    more.fold(head.to_owned(), |mut text, line| {
        text.push('\n');
        text.push_str(line.trim());
        text
    })
}

/// A text in quotes; the second of them may be missing, and then it ends where the next field begins.
fn quoted(head: &str, more: &[&str], quote: char) -> String {
    let whole = joined(head, more.iter().copied());
    if let Some(text) = scalar(&whole) {
        return text;
    }
    let whole = whole.trim();
    let within = whole.get(1..).unwrap_or_default();
    match within.strip_suffix(quote) {
        // Not validly quoted text, such as `"a "b" c"` or `"\d"`.
        Some(within) => within.to_owned(),
        None if within.contains(quote) => whole.to_owned(),
        None => within.to_owned(),
    }
}

/// The text, if it is one value in quotes and nothing else.
fn scalar(text: &str) -> Option<String> {
    let mut found = None;
    for event in Parser::new_from_str(text) {
        match event.ok()?.0 {
            Event::Scalar(value, ..) if found.is_none() => found = Some(value.into_owned()),
            Event::StreamStart | Event::StreamEnd | Event::DocumentStart(..) | Event::DocumentEnd => {}
            _ => return None,
        }
    }
    found
}
