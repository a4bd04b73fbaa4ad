//! The lines that two texts differ in.

use gix_imara_diff::{Algorithm, Diff, InternedInput};

/// Bytes of the line that a hunk's header repeats.
const MAX_HEADING_BYTES: usize = 80;

/// The differences of two texts.
pub(super) struct Compared<'a> {
    old: Vec<&'a [u8]>,
    new: Vec<&'a [u8]>,
    hunks: Vec<gix_imara_diff::Hunk>,
    pub added: usize,
    pub deleted: usize,
}

/// Compares line by line, as git does by default: Myers, with hunks moved to where a reader expects them.
pub(super) fn compare<'a>(old: &'a [u8], new: &'a [u8]) -> Compared<'a> {
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Myers, &input);
    diff.postprocess_lines(&input);
    let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
    Compared {
        hunks: diff.hunks().collect(),
        added: count(diff.count_additions()),
        deleted: count(diff.count_removals()),
        old: lines(old),
        new: lines(new),
    }
}

fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// A range of lines as two places.
fn range(range: &std::ops::Range<u32>) -> (usize, usize) {
    (usize::try_from(range.start).unwrap_or(usize::MAX), usize::try_from(range.end).unwrap_or(usize::MAX))
}

impl Compared<'_> {
    /// Hunks with lines around them (`@@ … @@`).
    pub(super) fn unified(&self, context: usize) -> Vec<u8> {
        let mut out = Vec::new();
        let mut group: Vec<&gix_imara_diff::Hunk> = Vec::new();
        let mut heading: &[u8] = b"";
        let mut looked_at: usize = 0;
        for hunk in &self.hunks {
            let apart = group.last().is_some_and(|last| {
                range(&hunk.before).0.saturating_sub(range(&last.before).1) > context.saturating_mul(2)
            });
            if apart {
                self.group(&group, context, &mut heading, &mut looked_at, &mut out);
                group.clear();
            }
            group.push(hunk);
        }
        self.group(&group, context, &mut heading, &mut looked_at, &mut out);
        out
    }

    fn group<'b>(
        &'b self,
        group: &[&gix_imara_diff::Hunk],
        context: usize,
        heading: &mut &'b [u8],
        looked_at: &mut usize,
        out: &mut Vec<u8>,
    ) {
        let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
        let ((old_start, _), (new_start, _)) = (range(&first.before), range(&first.after));
        let ((_, old_end), (_, new_end)) = (range(&last.before), range(&last.after));
        let lead = context.min(old_start).min(new_start);
        let tail = context.min(self.old.len().saturating_sub(old_end)).min(self.new.len().saturating_sub(new_end));
        let (old_start, new_start) = (old_start.saturating_sub(lead), new_start.saturating_sub(lead));
        let (old_end, new_end) = (old_end.saturating_add(tail), new_end.saturating_add(tail));
        // The nearest line above that looks like the beginning of a function.
        let above = self.old.get(*looked_at..old_start).unwrap_or_default();
        if let Some(line) = above.iter().rev().find(|line| begins_function(line)) {
            *heading = line;
        }
        *looked_at = old_start;
        out.extend_from_slice(b"@@ -");
        place(old_start, old_end, out);
        out.extend_from_slice(b" +");
        place(new_start, new_end, out);
        out.extend_from_slice(b" @@");
        if !heading.is_empty() {
            out.push(b' ');
            let cut = heading.get(..MAX_HEADING_BYTES).unwrap_or(heading);
            out.extend_from_slice(cut.trim_ascii_end());
        }
        out.push(b'\n');
        let mut at = old_start;
        for hunk in group {
            let ((old_from, old_to), (new_from, new_to)) = (range(&hunk.before), range(&hunk.after));
            each(b' ', self.old.get(at..old_from), out);
            each(b'-', self.old.get(old_from..old_to), out);
            each(b'+', self.new.get(new_from..new_to), out);
            at = old_to;
        }
        each(b' ', self.old.get(at..old_end), out);
    }
}

fn begins_function(line: &[u8]) -> bool {
    line.first().is_some_and(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$'))
}

/// `line,count`, as a hunk's header has it.
fn place(start: usize, end: usize, out: &mut Vec<u8>) {
    let count = end.saturating_sub(start);
    let first = if count == 0 { start } else { start.saturating_add(1) };
    out.extend_from_slice(first.to_string().as_bytes());
    if count != 1 {
        out.extend_from_slice(format!(",{count}").as_bytes());
    }
}

fn each(mark: u8, lines: Option<&[&[u8]]>, out: &mut Vec<u8>) {
    for line in lines.unwrap_or_default() {
        out.push(mark);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}
