//! Lines as a shell or a decoder would join them: continued with a backslash or a pipe, or encoded text that is wrapped.
//!
//! Characters without a width are left out, so that one of them cannot split a command.

/// Maximum bytes joined to one line.
const MAX_JOINED: usize = 16 << 10;
/// Minimum characters of a line that is taken for wrapped encoded text.
const MIN_WRAPPED: usize = 40;

/// One line after joining.
pub(super) struct LogicalLine {
    /// Number of its first line, from 1.
    pub number: u64,
    /// Byte offset of its first line.
    pub at: usize,
    /// The text, without its end.
    pub text: String,
    /// Whether more lines belong to it than are joined.
    pub is_cut: bool,
}

/// The joined lines of a text. Rows of Markdown tables lose their separators: those are not pipes.
pub(super) fn logical(text: &str, markdown: bool) -> impl Iterator<Item = LogicalLine> {
    let mut lines = text.split_inclusive('\n').zip(1_u64..).peekable();
    let mut next_at = 0;
    std::iter::from_fn(move || {
        let (first, number) = lines.next()?;
        let at = next_at;
        next_at += first.len();
        let first = first.trim_end();
        let mut joined = if markdown && is_table_row(first) { cells(first) } else { plain(first) };
        while joined.len() < MAX_JOINED
            && let Some((next, _)) = lines.peek()
            && let Some(separator) = continues(&joined, next.trim_end(), markdown)
        {
            if joined.ends_with('\\') || joined.ends_with('^') || joined.ends_with('`') {
                joined.pop();
            }
            joined.push_str(separator);
            joined.push_str(&plain(next.trim()));
            next_at += next.len();
            lines.next();
        }
        // Encoded text goes on in the next line where it is whole again; a command does not.
        let is_cut = joined.len() >= MAX_JOINED
            && lines.peek().is_some_and(|(next, _)| continues(&joined, next.trim_end(), markdown) == Some(" "));
        Some(LogicalLine { number, at, text: joined, is_cut })
    })
}

/// The text between two lines that belong together.
fn continues(line: &str, next: &str, markdown: bool) -> Option<&'static str> {
    let next = next.trim_start();
    if next.is_empty() || next.starts_with("```") || (markdown && is_table_row(next)) {
        return None;
    }
    if is_wrapped(line.trim_start()) && is_encoded(next) {
        return Some("");
    }
    let open = line.ends_with('\\') || line.ends_with(" `") || line.ends_with(" ^");
    let pipes = line.ends_with('|') || line.ends_with("&&") || next.starts_with("| ") || next.starts_with("&& ");
    (open || (pipes && !line.is_empty())).then_some(" ")
}

fn is_encoded(line: &str) -> bool {
    !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='))
}

fn is_wrapped(line: &str) -> bool {
    line.len() >= MIN_WRAPPED && is_encoded(line) && !line.ends_with('=')
}

fn is_table_row(line: &str) -> bool {
    let line = line.trim();
    line.len() > 1 && line.starts_with('|') && line.ends_with('|')
}

/// A row of a table; a pipe within a cell is written `\|`.
fn cells(row: &str) -> String {
    plain(row).replace("\\|", "\u{1}").replace('|', " ¦ ").replace('\u{1}', "|")
}

/// The line without characters that have no width.
fn plain(line: &str) -> String {
    let has_width = |c: &char| !matches!(*c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    line.chars().filter(has_width).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(u64, &str)]) {
        let lines: Vec<(u64, String)> = logical(text, true).map(|line| (line.number, line.text)).collect();
        let lines: Vec<(u64, &str)> = lines.iter().map(|(number, text)| (*number, text.as_str())).collect();
        assert_eq!(lines, expected, "{text:?}");
    }

    #[test]
    fn lines_are_joined_as_a_shell_joins_them() {
        check("a\nb\r\n\nc", &[(1, "a"), (2, "b"), (3, ""), (4, "c")]);
        check("curl x \\\n  -o y\nz", &[(1, "curl x  -o y"), (3, "z")]);
        check("curl x |\n  sh\nz", &[(1, "curl x | sh"), (3, "z")]);
        check("curl x\n  | sh", &[(1, "curl x | sh")]);
        check("cu\u{200b}rl", &[(1, "curl")]);
    }

    #[test]
    fn a_table_has_no_pipes_but_those_that_are_escaped() {
        check("a\n| curl | bash |\n", &[(1, "a"), (2, " ¦  curl  ¦  bash  ¦ ")]);
        check("| `curl x \\| bash` |", &[(1, " ¦  `curl x | bash`  ¦ ")]);
    }

    #[test]
    fn wrapped_text_is_one_line() {
        let (full, rest) = ("A".repeat(76), "B".repeat(8));
        check(&format!("{full}\n{rest}==\nc"), &[(1, &format!("{full}{rest}==")), (3, "c")]);
    }

    #[test]
    fn a_joined_line_has_an_end() {
        let text = "a \\\n".repeat(100_000);
        let lines: Vec<LogicalLine> = logical(&text, false).collect();
        assert!(lines.iter().all(|line| line.text.len() <= MAX_JOINED + 4));
        assert!(lines.first().is_some_and(|line| line.is_cut) && lines.last().is_some_and(|line| !line.is_cut));
        assert!(logical(&"A".repeat(76).repeat(3_000), false).all(|line| !line.is_cut));
    }
}
