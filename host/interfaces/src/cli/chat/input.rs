//! The lines that a person types, or that standard input holds.

use std::io::{BufRead as _, Read as _};

use base::{Refusal, RefusalCode};
use cognition::MAX_MESSAGE_BYTES;
use tokio::sync::mpsc;

use crate::cli::terminal::Terminal;

/// Lines that wait to be sent: more are left to the pipe.
const MAX_WAITING: usize = 16;

/// A line of input.
#[derive(Debug)]
pub(super) enum TypedLine {
    /// A line without its end.
    Text(String),
    /// The input cannot be read.
    Failed(Refusal),
}

/// The lines of the terminal, or of standard input. The channel closes at the end of the input.
pub(super) fn lines(terminal: Option<&Terminal>) -> mpsc::Receiver<TypedLine> {
    let (sender, lines) = mpsc::channel(MAX_WAITING);
    match terminal.cloned() {
        Some(terminal) => {
            tokio::spawn(async move {
                loop {
                    let line = match terminal.line().await {
                        Ok(Some(line)) => TypedLine::Text(line),
                        Ok(None) => return,
                        Err(error) => TypedLine::Failed(unreadable(&error)),
                    };
                    let has_failed = matches!(line, TypedLine::Failed(_));
                    if sender.send(line).await.is_err() || has_failed {
                        return;
                    }
                }
            });
        }
        None => {
            // A thread of its own, which the end of the process does not wait for.
            std::thread::spawn(move || {
                let mut input = std::io::stdin().lock();
                while let Some(line) = read(&mut input) {
                    let has_failed = matches!(line, TypedLine::Failed(_));
                    if sender.blocking_send(line).is_err() || has_failed {
                        return;
                    }
                }
            });
        }
    }
    lines
}

/// The next line of a stream that may be endless.
fn read(input: &mut impl std::io::BufRead) -> Option<TypedLine> {
    let mut line = Vec::new();
    let most = u64::try_from(MAX_MESSAGE_BYTES).unwrap_or(u64::MAX).saturating_add(2);
    match input.take(most).read_until(b'\n', &mut line) {
        Ok(0) => None,
        Ok(_) => {
            let text = String::from_utf8_lossy(&line);
            let text = text.trim_end_matches(['\n', '\r']);
            if text.len() > MAX_MESSAGE_BYTES {
                let reason = format!("a line of standard input has more than {MAX_MESSAGE_BYTES} bytes");
                return Some(TypedLine::Failed(Refusal::new(RefusalCode::InvalidRequest, reason)));
            }
            Some(TypedLine::Text(text.to_owned()))
        }
        Err(error) => Some(TypedLine::Failed(unreadable(&error))),
    }
}

fn unreadable(error: &std::io::Error) -> Refusal {
    Refusal::new(RefusalCode::InvalidRequest, format!("the input cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_message_and_an_endless_one_is_refused() {
        let mut input = "hello\r\n\nlast".as_bytes();
        for expected in ["hello", "", "last"] {
            assert!(matches!(read(&mut input), Some(TypedLine::Text(text)) if text == expected));
        }
        assert!(read(&mut input).is_none());
        let long = "x".repeat(MAX_MESSAGE_BYTES);
        assert!(matches!(read(&mut format!("{long}\n").as_bytes()), Some(TypedLine::Text(_))));
        assert!(matches!(read(&mut format!("{long}xyz\n").as_bytes()), Some(TypedLine::Failed(_))));
    }
}
