//! The console: keeps the first bytes a program wrote and forgets the rest, so that a flood of lines costs no memory.

use crate::cut;

/// The output of a program, up to a number of bytes.
#[derive(Default)]
pub struct Console {
    kept: String,
    max_bytes: usize,
    truncated: bool,
}

impl Console {
    /// An empty console that keeps `max_bytes` bytes.
    pub fn new(max_bytes: usize) -> Self {
        Self { kept: String::new(), max_bytes, truncated: false }
    }

    /// Whether further lines are dropped.
    pub fn is_full(&self) -> bool {
        self.truncated
    }

    /// Appends one line, or as much of it as is kept.
    pub fn write_line(&mut self, line: &str) {
        if self.truncated {
            return;
        }
        let room = self.max_bytes.saturating_sub(self.kept.len());
        if line.len() < room {
            self.kept.push_str(line);
            self.kept.push('\n');
        } else {
            self.kept.push_str(cut::prefix(line, room));
            self.truncated = true;
        }
    }

    /// The kept output, and whether there was more.
    pub fn into_parts(self) -> (String, bool) {
        (self.kept, self.truncated)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(max_bytes: usize, lines: &[&str], expected: (&str, bool)) {
        let mut console = Console::new(max_bytes);
        lines.iter().for_each(|line| console.write_line(line));
        let (kept, truncated) = console.into_parts();
        assert_eq!((kept.as_str(), truncated), expected);
    }

    #[test]
    fn keeps_the_first_bytes() {
        check(8, &["one", "two"], ("one\ntwo\n", false));
        check(7, &["one", "two"], ("one\ntwo", true));
        check(6, &["one", "éé", "x"], ("one\né", true));
        check(0, &["one"], ("", true));
        check(0, &[], ("", false));
    }
}
