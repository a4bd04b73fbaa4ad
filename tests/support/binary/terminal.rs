//! A command with a controlling terminal of its own: a pseudo-terminal, and a person at its other end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use super::running::{Ended, Running, wait_until};
use super::{Motor, program};

/// A command at a terminal. Standard output and standard error are pipes, so what is on the screen was written to the
/// terminal itself.
#[derive(Debug)]
pub struct AtTerminal {
    running: Running,
    person: File,
    /// Kept open: with nobody at its other side the person would read the end of it, also between two programs.
    _terminal: OwnedFd,
    screen: Arc<(Mutex<Vec<u8>>, Condvar)>,
    /// How much of the screen was read by the person.
    read: usize,
}

impl Motor {
    /// Starts a command at a terminal. Its standard input is empty.
    ///
    /// # Panics
    /// When there is no terminal to be had.
    #[must_use]
    pub fn at_terminal(&self, arguments: &[&str]) -> AtTerminal {
        self.at_terminal_with(arguments, "", "")
    }

    /// Starts a command at a terminal, where something was typed before it began. Its standard input is what is given, not
    /// the terminal.
    ///
    /// # Panics
    /// When there is no terminal to be had.
    #[must_use]
    pub fn at_terminal_with(&self, arguments: &[&str], input: &str, typed: &str) -> AtTerminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo-terminal");
        grantpt(&master).expect("a pseudo-terminal");
        unlockpt(&master).expect("a pseudo-terminal");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let terminal =
            open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).expect("its other side");
        let mut person = File::from(master.try_clone().expect("a file"));
        person.write_all(typed.as_bytes()).expect("a terminal");
        let stdin = self.file("stdin", input);
        // A session whose terminal is standard input, which is then replaced.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "sh", "-c", "IN=$1; shift; exec \"$@\" <\"$IN\"", "sh"]).arg(&stdin).arg(program());
        self.settle(&mut command, arguments);
        command.stdin(Stdio::from(terminal.try_clone().expect("a file")));
        let running = Running::spawn(command, arguments.join(" "));
        let master = File::from(master);
        let screen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let shared = screen.clone();
        std::thread::spawn(move || watch(master, &shared));
        AtTerminal { running, person, _terminal: terminal, screen, read: 0 }
    }
}

/// Reads the screen until the last process has left the terminal.
fn watch(mut master: File, screen: &(Mutex<Vec<u8>>, Condvar)) {
    let mut chunk = [0; 4_096];
    while let Ok(count @ 1..) = master.read(&mut chunk) {
        screen.0.lock().unwrap_or_else(PoisonError::into_inner).extend(&chunk[..count]);
        screen.1.notify_all();
    }
}

impl AtTerminal {
    /// Waits until these words are on the screen, behind those that were waited for before. Gives all that came up to
    /// them.
    ///
    /// # Panics
    /// When they do not come.
    pub fn sees(&mut self, words: &str) -> String {
        let find = |screen: &[u8], from: usize| {
            let rest = screen.get(from..)?;
            let at = rest.windows(words.len()).position(|window| window == words.as_bytes())?;
            Some(from + at + words.len())
        };
        let shown = |screen: &[u8], end: usize| String::from_utf8_lossy(&screen[self.read..end]).into_owned();
        let (end, shown) = wait_until(
            &self.screen,
            |screen| find(screen, self.read).map(|end| (end, shown(screen, end))),
            |screen| panic!("{words:?} is not on the screen: {}", shown(screen, screen.len())),
        );
        self.read = end;
        shown
    }

    /// Types a line.
    ///
    /// # Panics
    /// When the terminal is gone.
    pub fn types(&mut self, line: &str) {
        self.person.write_all(format!("{line}\n").as_bytes()).expect("a terminal");
    }

    /// Waits for the end of the command.
    #[must_use]
    pub fn wait(self) -> Ended {
        self.running.wait()
    }

    /// All that was on the screen so far.
    #[must_use]
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }

    /// The command.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }
}
