//! Probable meanings: file names and lines near to those a model gave.

use std::{collections::HashMap, fs};

use crate::workspace::{Place, Workspace};

/// Names of a directory that are compared.
const NAMES: usize = 1_000;

/// Lines of a file that are compared, and characters of each.
const LINES: usize = 20_000;
const CHARS: usize = 200;

/// The place of a file in the same directory whose name is near to that of one that does not exist.
pub(crate) fn name_beside(workspace: &Workspace, place: &Place) -> Option<String> {
    let path = workspace.path(place);
    let mut names: Vec<String> = fs::read_dir(path.parent()?)
        .ok()?
        .take(NAMES)
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| !name.chars().any(char::is_control))
        .collect();
    names.sort();
    let name = motor_sdk::nearest(place.name(), names.iter().map(String::as_str))?;
    let shown = place.shown();
    Some(format!("{}{name}", shown.strip_suffix(place.name())?))
}

/// The line of a text most like another, with its number from 1, when one is like it at all.
pub(crate) fn line<'a>(text: &'a str, wanted: &str) -> Option<(usize, &'a str)> {
    let wanted = pairs(wanted);
    let mut best: Option<(f64, usize, &str)> = None;
    for (index, line) in text.lines().take(LINES).enumerate() {
        let likeness = likeness(&wanted, &pairs(line));
        if likeness >= 0.5 && best.is_none_or(|(most, _, _)| likeness > most) {
            best = Some((likeness, index + 1, line));
        }
    }
    best.map(|(_, number, line)| (number, line.trim()))
}

/// How often each pair of neighbouring characters occurs; whitespace and letter case do not count.
fn pairs(text: &str) -> HashMap<(char, char), usize> {
    let chars: Vec<char> =
        text.chars().filter(|char| !char.is_whitespace()).take(CHARS).flat_map(char::to_lowercase).collect();
    let mut pairs = HashMap::new();
    for pair in chars.windows(2) {
        if let [first, second] = *pair {
            *pairs.entry((first, second)).or_insert(0) += 1;
        }
    }
    pairs
}

/// Dice's coefficient: 0.0 for nothing in common, 1.0 for all.
fn likeness(a: &HashMap<(char, char), usize>, b: &HashMap<(char, char), usize>) -> f64 {
    let total: usize = a.values().sum::<usize>() + b.values().sum::<usize>();
    if total == 0 {
        return 0.0;
    }
    let common: usize = a.iter().map(|(pair, count)| (*count).min(b.get(pair).copied().unwrap_or(0))).sum();
    2.0 * common as f64 / total as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_the_line_that_was_probably_meant() {
        let text = "fn main() {\n    let total = sum(numbers);\n}\n";
        assert_eq!(line(text, "let totals = sum(&numbers);"), Some((2, "let total = sum(numbers);")));
        assert_eq!(line(text, "something quite different"), None);
        assert_eq!(line(text, ""), None);
        assert_eq!(line("", "x"), None);
    }
}
