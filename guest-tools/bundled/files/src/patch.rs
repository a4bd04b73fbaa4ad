//! `patch`: one unique piece of text replaced by another. A text that is not unique is refused rather than guessed; one
//! that is not there exactly is looked for once more with whitespace overlooked, since models reproduce it badly.

use std::{io::Read as _, ops::Range};

use motor_sdk::ToolError;

use crate::{fault, limits, read, similar, workspace::Workspace, write};

motor_sdk::arguments! {
    /// Arguments of `patch`.
    pub(crate) struct Patch {
        path: String,
        find: String,
        replace: String,
    }
}

/// Replaces one piece of a file.
pub(crate) fn patch(workspace: &Workspace, arguments: Patch) -> Result<String, ToolError> {
    let place = workspace.resolve_to_change(&arguments.path)?;
    let (file, size) = read::open(workspace, &place)?;
    let shown = place.shown();
    if size > limits::PATCHED_BYTES {
        return Err(ToolError::limit(format!(
            "`{shown}` has {size} bytes, and `patch` takes {}",
            limits::PATCHED_BYTES
        )));
    }
    let mut bytes = Vec::new();
    // It may have grown since its size was asked for.
    file.take(limits::PATCHED_BYTES).read_to_end(&mut bytes).map_err(|error| fault::of(&error, &shown))?;
    let text = String::from_utf8(bytes)
        .map_err(|_| ToolError::bad_input(format!("`{shown}` is not valid UTF-8: `patch` changes text only")))?;

    let change = plan(&text, &arguments.find, &arguments.replace, &shown)?;
    let line = 1 + text.get(..change.range.start).unwrap_or_default().matches('\n').count();
    let mut patched = text;
    patched.replace_range(change.range, &change.with);
    write::replace(workspace, &place, patched.as_bytes())?;
    let how = if change.exact { "" } else { ", overlooking differences in whitespace" };
    Ok(format!("replaced 1 occurrence in `{shown}` at line {line}{how}"))
}

/// A change that is to be made. The range lies on character boundaries.
#[derive(Debug, PartialEq, Eq)]
struct Change {
    range: Range<usize>,
    with: String,
    exact: bool,
}

fn plan(text: &str, find: &str, replace: &str, shown: &str) -> Result<Change, ToolError> {
    if find.trim().is_empty() {
        return Err(ToolError::bad_input("`find` is empty: give the text to replace, or use `write` for a whole file"));
    }
    if find == replace {
        return Err(ToolError::bad_input("`find` and `replace` are the same: nothing would change"));
    }
    let exact = occurrences(text, find);
    if let [start] = *exact {
        return Ok(Change { range: start..start + find.len(), with: replace.to_owned(), exact: true });
    }
    if !exact.is_empty() {
        return Err(ambiguous(text, &exact, shown, ""));
    }
    let loose = loosely(text, find);
    match loose.as_slice() {
        [] => Err(not_found(text, find, shown)),
        [range] => Ok(Change { range: range.clone(), with: adjusted(text, range, find, replace), exact: false }),
        _ => {
            let starts: Vec<usize> = loose.iter().map(|range| range.start).collect();
            Err(ambiguous(text, &starts, shown, " when whitespace is overlooked"))
        }
    }
}

/// Where a text occurs in another; occurrences may overlap, as `aa` in `aaa`, and are all the same then.
fn occurrences(text: &str, find: &str) -> Vec<usize> {
    let step = find.chars().next().map_or(1, char::len_utf8);
    let mut starts = Vec::new();
    let mut from = 0;
    // Three are enough to show.
    while starts.len() < 4
        && let Some(at) = text.get(from..).and_then(|rest| rest.find(find))
    {
        starts.push(from + at);
        from += at + step;
    }
    starts
}

/// Where a text occurs in another when every run of whitespace counts as one blank, wherever it stands.
fn loosely(text: &str, find: &str) -> Vec<Range<usize>> {
    // Blanks at the ends stand for "here a word ends", and are not part of the replaced text.
    let needle = collapsed(find);
    let haystack = format!(" {} ", collapsed(text).trim());
    occurrences(&haystack, &needle)
        .into_iter()
        .filter_map(|at| {
            let words = needle.trim();
            let start = at + needle.len() - needle.trim_start().len();
            let first = solid(&haystack, start);
            let count = words.chars().filter(|char| !char.is_whitespace()).count();
            original(text, first, count)
        })
        .collect()
}

/// The text with every run of whitespace as one blank.
fn collapsed(text: &str) -> String {
    let mut collapsed = String::with_capacity(text.len());
    for char in text.chars() {
        if !char.is_whitespace() {
            collapsed.push(char);
        } else if !collapsed.ends_with(' ') {
            collapsed.push(' ');
        }
    }
    collapsed
}

/// How many characters that are not whitespace lie before an index.
fn solid(text: &str, end: usize) -> usize {
    text.get(..end).unwrap_or_default().chars().filter(|char| !char.is_whitespace()).count()
}

/// The range from the `first` character that is not whitespace over `count` of them.
fn original(text: &str, first: usize, count: usize) -> Option<Range<usize>> {
    let mut solid = text.char_indices().filter(|(_, char)| !char.is_whitespace()).skip(first);
    let (start, head) = solid.next()?;
    let (end, tail) = match count {
        0 => return None,
        1 => (start, head),
        _ => solid.nth(count - 2)?,
    };
    Some(start..end + tail.len_utf8())
}

/// The replacement for a loose match: without the whitespace at the ends that `find` had and the match has not, with
/// the indentation and line ends of the file.
fn adjusted(text: &str, range: &Range<usize>, find: &str, replace: &str) -> String {
    let theirs = indentation_before(text, range.start);
    let ours: String =
        find.trim_start_matches(['\n', '\r']).chars().take_while(|char| matches!(char, ' ' | '\t')).collect();
    let mut with = if find.starts_with(char::is_whitespace) { replace.trim_start() } else { replace };
    if find.ends_with(char::is_whitespace) {
        with = with.trim_end();
    }
    let crlf = text.get(range.clone()).is_some_and(|matched| matched.contains("\r\n"))
        || text.get(range.end..).and_then(|rest| rest.split_once('\n')).is_some_and(|(line, _)| line.ends_with('\r'));
    let mut adjusted = String::with_capacity(with.len());
    for (index, line) in with.lines().enumerate() {
        if index > 0 {
            adjusted.push_str(if crlf { "\r\n" } else { "\n" });
        }
        match (index, theirs, line.strip_prefix(ours.as_str())) {
            (1.., Some(theirs), Some(rest)) if !rest.is_empty() => {
                adjusted.push_str(theirs);
                adjusted.push_str(rest);
            }
            _ => adjusted.push_str(line),
        }
    }
    if with.ends_with('\n') {
        adjusted.push_str(if crlf { "\r\n" } else { "\n" });
    }
    adjusted
}

/// The whitespace from the start of the line to an index, when there is nothing else.
fn indentation_before(text: &str, index: usize) -> Option<&str> {
    let before = text.get(..index)?;
    let line = before.rsplit('\n').next()?;
    line.trim().is_empty().then_some(line)
}

fn ambiguous(text: &str, starts: &[usize], shown: &str, how: &str) -> ToolError {
    let lines: Vec<String> = starts
        .iter()
        .take(3)
        .map(|start| (1 + text.get(..*start).unwrap_or_default().matches('\n').count()).to_string())
        .collect();
    let (count, more) =
        if starts.len() > 3 { ("more than 3".to_owned(), ", …") } else { (starts.len().to_string(), "") };
    ToolError::bad_input(format!(
        "`find` occurs {count} times in `{shown}`{how} (lines {}{more}): give more context so that it occurs once",
        lines.join(", ")
    ))
}

fn not_found(text: &str, find: &str, shown: &str) -> ToolError {
    let wanted = find.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let nearest = match similar::line(text, wanted) {
        Some((number, line)) => {
            let line: String = line.chars().take(limits::MATCH_CHARS).collect();
            format!("the nearest line is {number}: `{line}`")
        }
        None => "no line is like it: `read` the file first".to_owned(),
    };
    ToolError::bad_input(format!("`find` does not occur in `{shown}`; {nearest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, find: &str, replace: &str, expected: &str) {
        let shown = match plan(text, find, replace, "f") {
            Ok(change) => {
                let mut patched = text.to_owned();
                patched.replace_range(change.range, &change.with);
                patched
            }
            Err(error) => error.sentence().to_owned(),
        };
        assert_eq!(shown, expected, "{find:?} in {text:?}");
    }

    #[test]
    fn replaces_the_only_occurrence() {
        check("one two three", "two", "2", "one 2 three");
        check("a\r\nb\r\n", "b", "c", "a\r\nc\r\n");
        check("äöü", "ö", "", "äü");
        check("a  b", "a  b", "a b", "a b");
    }

    #[test]
    fn refuses_what_occurs_more_often() {
        let tail = "give more context so that it occurs once";
        check("x\ny\nx", "x", "z", &format!("`find` occurs 2 times in `f` (lines 1, 3): {tail}"));
        check("aaa", "aa", "b", &format!("`find` occurs 2 times in `f` (lines 1, 1): {tail}"));
        let many = "`find` occurs more than 3 times in `f` (lines 1, 2, 3, …)";
        check("x\nx\nx\nx\nx", "x", "z", &format!("{many}: {tail}"));
        let loose = "`find` occurs 2 times in `f` when whitespace is overlooked (lines 1, 2)";
        check("f( a)\nf(  a)", "f(   a)", "z", &format!("{loose}: {tail}"));
    }

    #[test]
    fn overlooks_whitespace_when_the_exact_text_does_not_occur() {
        check("x = f(a,  b);", "f(a, b)", "g()", "x = g();");
        check("if x {\n\ty()\n}\n", "if x {\n    y()\n}", "z", "z\n");
        check("a\r\nb\r\nc\r\n", "a\nb\n", "1\n2\n3\n", "1\r\n2\r\n3\r\nc\r\n");
        check("  one\n    two\n", "one\n  two\n", "1\n  2\n", "  1\n    2\n");
        check("\tif a {\n\t\tb\n\t}\n", "    if a {\n        b\n    }", "    if c {\n    }", "\tif c {\n\t}\n");
        check("abc", " b ", "x", "`find` does not occur in `f`; no line is like it: `read` the file first");
        check("a\u{a0}b", "a b", "c", "c");
    }

    #[test]
    fn says_what_is_near_when_nothing_fits() {
        let text = "let total = 1;\nlet count = 2;\n";
        check(text, "let count = 3;", "", "`find` does not occur in `f`; the nearest line is 2: `let count = 2;`");
    }

    #[test]
    fn refuses_what_would_change_nothing() {
        check("x", "", "y", "`find` is empty: give the text to replace, or use `write` for a whole file");
        check("x", "x", "x", "`find` and `replace` are the same: nothing would change");
    }

    #[test]
    fn unicode_forms_are_not_the_same_text() {
        let composed = "caf\u{e9} is open";
        let decomposed = "cafe\u{301} is open";
        check(composed, "caf\u{e9}", "x", "x is open");
        let nearest = "`find` does not occur in `f`; the nearest line is 1: `caf\u{e9} is open`";
        check(composed, decomposed, "x", nearest);
    }

    #[test]
    fn a_hostile_pattern_takes_linear_time() {
        let text = "ab ".repeat(200_000);
        let find = format!("{}c", "ab ".repeat(50_000));
        assert!(plan(&text, &find, "x", "f").is_err());
    }
}
