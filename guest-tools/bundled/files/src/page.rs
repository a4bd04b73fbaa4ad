//! One bounded answer: lines until it is full, and a note at the end that names the omissions.

use crate::limits;

/// Room for the note at the end.
const NOTE_BYTES: usize = 600;

/// An answer that is being written.
#[derive(Debug, Default)]
pub(crate) struct Page {
    text: String,
    lines: usize,
}

impl Page {
    /// Adds a line, which contains no newline. Returns whether it fits.
    #[must_use]
    pub(crate) fn push(&mut self, line: &str) -> bool {
        let fits = self.lines + 1 < limits::ANSWER_LINES
            && self.text.len() + line.len() + 1 + NOTE_BYTES <= limits::ANSWER_BYTES;
        if fits {
            self.text.push_str(line);
            self.text.push('\n');
            self.lines += 1;
        }
        fits
    }

    /// The answer, with its note when there is something to say.
    pub(crate) fn finish(mut self, notes: &[String]) -> String {
        if !notes.is_empty() {
            self.text.push_str(&format!("[{}]", notes.join("; ")));
        }
        self.text
    }
}
