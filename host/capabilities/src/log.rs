//! `motor:host/log`: lines for the run's log, bounded in number and bytes so that a guest cannot flood it.

use bindings::log::{Host, Level};
use wasmtime::component::HasData;

use crate::limit::CallCounter;
use crate::{Limit, Note, NoteSink};

/// Settings and state of one call's log; progress reports share its budgets.
pub struct LogCtx {
    pub(crate) lines: CallCounter,
    pub(crate) bytes: CallCounter,
    pub(crate) sink: NoteSink,
}

impl LogCtx {
    /// Allows at most `lines` lines and `bytes` bytes in this call.
    #[must_use]
    pub fn new(lines: u64, bytes: u64, sink: NoteSink) -> Self {
        Self { lines: CallCounter::new(Limit::LogLines, lines), bytes: CallCounter::new(Limit::LogBytes, bytes), sink }
    }

    pub(crate) fn admit(&mut self, message: &str) -> wasmtime::Result<()> {
        self.lines.spend(1)?;
        self.bytes.spend(message.len() as u64)?;
        Ok(())
    }
}

/// The view that implements the host trait.
pub struct LogView<'a>(pub &'a mut LogCtx);

/// Marks stores that have a [`LogCtx`].
pub struct HasLog;

impl HasData for HasLog {
    type Data<'a> = LogView<'a>;
}

impl Host for LogView<'_> {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        self.0.admit(&message)?;
        let level = match level {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warn => "warn",
            Level::Error => "error",
        };
        (self.0.sink)(Note::Log { level, message });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::LimitExceeded;

    #[test]
    fn lines_arrive_until_the_limit() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let sink = seen.clone();
        let mut ctx = LogCtx::new(2, 100, Arc::new(move |note| sink.lock().unwrap().push(note)));
        let mut view = LogView(&mut ctx);
        view.write(Level::Info, "one".into()).unwrap();
        view.write(Level::Warn, "two".into()).unwrap();
        let error = view.write(Level::Info, "three".into()).unwrap_err();
        assert_eq!(error.downcast_ref::<LimitExceeded>().unwrap().limit, Limit::LogLines);
        assert_eq!(seen.lock().unwrap().len(), 2);
    }

    #[test]
    fn one_huge_line_is_refused() {
        let mut ctx = LogCtx::new(10, 100, crate::note::ignore());
        let error = LogView(&mut ctx).write(Level::Info, "x".repeat(101)).unwrap_err();
        assert_eq!(error.downcast_ref::<LimitExceeded>().unwrap().limit, Limit::LogBytes);
    }
}
