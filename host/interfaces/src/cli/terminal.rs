//! The controlling terminal: where a person is asked (SPEC CONSENT-1).
//!
//! It is opened by its own name, so that neither standard input nor a flag can answer in a person's place. Input typed
//! before the question is thrown away, a background process never asks, and waiting for an answer can be given up: the
//! question may be settled elsewhere.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Secret;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp, tcgetwinsize, tcsetattr,
};
use zeroize::Zeroizing;

/// The path of the controlling terminal of any process.
const PATH: &str = "/dev/tty";
/// Between two looks whether the answer is still wanted.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// The longest line that is read, in bytes. Terminals themselves give up at 4,096.
const MAX_BYTES: usize = 64 << 10;
/// Where the terminal does not say how large it is.
const SIZE: (usize, usize) = (80, 24);

/// The terminal of this process, in front of a person.
#[derive(Debug, Clone)]
pub(super) struct Terminal(Arc<File>);

impl Terminal {
    /// `None` if the process has no controlling terminal, or is not in its foreground: there it would be stopped for
    /// asking.
    pub(super) fn open() -> Option<Self> {
        let file = OpenOptions::new().read(true).write(true).open(PATH).ok()?;
        let foreground = tcgetpgrp(&file).ok()?;
        (foreground == rustix::process::getpgrp()).then(|| Self(Arc::new(file)))
    }

    /// Width in columns, and height in rows.
    pub(super) fn size(&self) -> (usize, usize) {
        let Ok(size) = tcgetwinsize(&*self.0) else { return SIZE };
        match (usize::from(size.ws_col), usize::from(size.ws_row)) {
            (0, _) | (_, 0) => SIZE,
            (columns, rows) => (columns.clamp(20, 500), rows.clamp(6, 500)),
        }
    }

    /// Writes text that this program has made safe to be shown.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        (&*self.0).write_all(text.as_bytes())
    }

    /// Asks, and reads a line without its end. `None` at the end of the input, which is not an answer. Dropping the
    /// future gives up waiting.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) async fn ask(&self, prompt: &str) -> io::Result<Option<String>> {
        self.forget_typed();
        self.write(prompt)?;
        self.line().await
    }

    /// Asks for a secret. Even if the future is dropped, the terminal echoes input again.
    ///
    /// # Errors
    /// If the terminal is gone, or the input ends.
    pub(super) async fn ask_secret(&self, prompt: &str) -> io::Result<Secret<String>> {
        let silent = Silent::make(self)?;
        self.write(prompt)?;
        let line = self.line().await?.map(Secret::new);
        drop(silent);
        self.write("\n")?;
        line.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }

    /// Reads the next line without its end; `None` at the end of the input.
    ///
    /// # Errors
    /// If the terminal is gone.
    pub(super) async fn line(&self) -> io::Result<Option<String>> {
        let wanted = EchoGuard(Arc::new(AtomicBool::new(true)));
        let (terminal, still) = (self.clone(), wanted.0.clone());
        let read = tokio::task::spawn_blocking(move || terminal.read_line(&still)).await;
        drop(wanted);
        read.unwrap_or_else(|_| Err(io::ErrorKind::Interrupted.into()))
    }

    /// Input that was there before the question is not an answer.
    fn forget_typed(&self) {
        if let Err(error) = tcflush(&*self.0, QueueSelector::IFlush) {
            tracing::debug!(%error, "what was typed before cannot be thrown away");
        }
    }

    fn read_line(&self, wanted: &AtomicBool) -> io::Result<Option<String>> {
        let mut line = Zeroizing::new(Vec::with_capacity(4_096));
        let mut chunk = Zeroizing::new([0; 4_096]);
        while wanted.load(Ordering::Relaxed) {
            let mut fds = [PollFd::new(&*self.0, PollFlags::IN)];
            match poll(&mut fds, Some(&LOOK)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => continue,
                Ok(_) => {}
                Err(error) => return Err(error.into()),
            }
            let count = match (&*self.0).read(&mut *chunk) {
                Ok(0) => return Ok(None),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            line.extend(chunk.iter().take(count));
            if line.ends_with(b"\n") {
                return Ok(Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()));
            }
            if line.len() > MAX_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
        }
        Ok(None)
    }
}

/// A terminal that does not echo input; input typed before is thrown away.
struct Silent {
    terminal: Terminal,
    before: Termios,
}

impl Silent {
    fn make(terminal: &Terminal) -> io::Result<Self> {
        let before = tcgetattr(&*terminal.0)?;
        let mut silent = before.clone();
        silent.local_modes.remove(LocalModes::ECHO);
        tcsetattr(&*terminal.0, OptionalActions::Flush, &silent)?;
        Ok(Self { terminal: terminal.clone(), before })
    }
}

impl Drop for Silent {
    fn drop(&mut self) {
        if let Err(error) = tcsetattr(&*self.terminal.0, OptionalActions::Now, &self.before) {
            tracing::warn!(%error, "the terminal stays silent: `stty echo` mends it");
        }
    }
}

/// Ends the reading if its caller has stopped waiting.
struct EchoGuard(Arc<AtomicBool>);

impl Drop for EchoGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}
