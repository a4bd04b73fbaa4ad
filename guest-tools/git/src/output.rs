//! The output of a command.

use bstr::ByteSlice as _;

use crate::Answer;
use crate::error::{Fault, Result};
use crate::limits::MAX_OUTPUT_BYTES;

/// The two standard streams of a command.
#[derive(Debug, Default)]
pub(crate) struct Output {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Output {
    /// Prints to standard output.
    ///
    /// # Errors
    ///
    /// When there is too much of it: a command that goes on printing ends.
    pub(crate) fn put(&mut self, bytes: impl AsRef<[u8]>) -> Result<()> {
        let bytes = bytes.as_ref();
        if self.stdout.len().saturating_add(bytes.len()) > MAX_OUTPUT_BYTES {
            return Err(Fault::limit(format_args!(
                "the output is longer than {MAX_OUTPUT_BYTES} bytes; ask for less, by a path or `-n`"
            )));
        }
        self.stdout.extend_from_slice(bytes);
        Ok(())
    }

    /// Prints a line to standard error.
    pub(crate) fn warn(&mut self, line: &str) {
        if !line.is_empty() && self.stderr.len() < MAX_OUTPUT_BYTES {
            self.stderr.extend_from_slice(line.as_bytes());
            self.stderr.push(b'\n');
        }
    }

    pub(crate) fn finish(self, code: i32) -> Answer {
        // A stop in the middle of a line would run into the message behind it.
        let mut stdout = self.stdout;
        if code > 1 && !stdout.is_empty() && !stdout.ends_with_str("\n") {
            stdout.push(b'\n');
        }
        Answer { stdout, stderr: self.stderr, code }
    }
}
