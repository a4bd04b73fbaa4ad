//! Differences of texts, for a terminal.

use std::fmt::Write as _;

use super::Palette;
use super::text::revealed;

/// A unified diff with its lines coloured. Each line stays one line, even with hidden characters in it.
pub(crate) fn unified(diff: &str, palette: Palette) -> String {
    let mut page = String::new();
    // Which file it is was said already.
    for line in diff.lines().skip_while(|line| line.starts_with("--- ") || line.starts_with("+++ ")) {
        // Tabs indent code: they are not hidden characters.
        let shown = line.split('\t').map(revealed).collect::<Vec<_>>().join("    ");
        let line = match line.as_bytes().first() {
            Some(b'+') => palette.green(&shown),
            Some(b'-') => palette.red(&shown),
            Some(b'@') => palette.cyan(&shown),
            _ => shown,
        };
        writeln!(page, "{line}").ok();
    }
    page
}
