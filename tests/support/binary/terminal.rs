//! A command with a controlling terminal of its own: a pseudo-terminal, and a person at its other end.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::num::NonZeroU16;
use std::os::fd::OwnedFd;
use std::process::{Command, Stdio};
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use rustix::fs::{Mode, OFlags, open};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

use super::running::{Ended, Running, wait_until};
use super::{Motor, program};

/// Columns and rows of a terminal.
const SIZE: (u16, u16) = (80, 24);
/// Rows of a screen: enough for all that a command shows.
const ROWS: u16 = 200;
/// Behind everything that a command has written. No program writes it.
const END: &str = "\u{f8ff}";

/// A command at a terminal. Streams that are not the terminal's are pipes.
#[derive(Debug)]
pub struct AtTerminal {
    running: Running,
    person: File,
    /// Kept open: if the other side had no opener left, the person would read its end, also between two programs.
    terminal: OwnedFd,
    /// Its columns and its rows.
    size: (u16, u16),
    screen: Arc<(Mutex<Vec<u8>>, Condvar)>,
    /// How much of the screen was read by the person.
    read: usize,
}

impl Motor {
    /// Starts a command at a terminal. Its standard input is empty.
    ///
    /// # Panics
    /// If no terminal can be made.
    #[must_use]
    pub fn at_terminal(&self, arguments: &[&str]) -> AtTerminal {
        self.at_terminal_with(arguments, "", "")
    }

    /// Starts a command at a terminal, where something was typed before it began. Its standard input is `input`, not
    /// the terminal.
    ///
    /// # Panics
    /// If no terminal can be made.
    #[must_use]
    pub fn at_terminal_with(&self, arguments: &[&str], input: &str, typed: &str) -> AtTerminal {
        let stdin = self.file("stdin", input);
        self.in_session(arguments, SIZE, &format!("<'{}'", stdin.display()), typed)
    }

    /// Starts a command whose streams are a terminal of so many columns, or as many of them as `streams` says: `>&0` for
    /// standard output, `2>&0` for standard error.
    ///
    /// # Panics
    /// If no terminal can be made.
    #[must_use]
    pub fn on_screen(&self, arguments: &[&str], columns: u16, streams: &str) -> AtTerminal {
        self.in_session(arguments, (columns, ROWS), streams, "")
    }

    fn in_session(&self, arguments: &[&str], size: (u16, u16), streams: &str, typed: &str) -> AtTerminal {
        let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).expect("a pseudo-terminal");
        grantpt(&master).expect("a pseudo-terminal");
        unlockpt(&master).expect("a pseudo-terminal");
        let name = ptsname(&master, Vec::new()).expect("a name");
        let terminal =
            open(&name, OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC, Mode::empty()).expect("its other side");
        let mut person = File::from(master.try_clone().expect("a file"));
        person.write_all(typed.as_bytes()).expect("a terminal");
        let (ws_col, ws_row) = size;
        tcsetwinsize(&terminal, Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 }).expect("a size");
        // A session whose terminal is standard input. Other streams are made of it, or it of them.
        let mut command = Command::new("setsid");
        command.args(["--ctty", "sh", "-c", &format!("exec \"$@\" {streams}"), "sh"]).arg(program());
        self.settle(&mut command, arguments);
        command.stdin(Stdio::from(terminal.try_clone().expect("a file")));
        let running = Running::spawn(command, arguments.join(" "));
        let master = File::from(master);
        let screen = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let shared = screen.clone();
        std::thread::spawn(move || watch(master, &shared));
        AtTerminal { running, person, terminal, size, screen, read: 0 }
    }
}

/// On a light and on a dark background: words have the terminal's own colour or red, green, yellow or cyan of its palette,
/// and nothing has a background of its own.
fn is_legible(screen: &vt100::Screen, (columns, rows): (u16, u16)) {
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    for cell in places.filter_map(|(row, column)| screen.cell(row, column)) {
        let is_known = matches!(cell.fgcolor(), vt100::Color::Default | vt100::Color::Idx(1..=3 | 6));
        assert!(is_known && cell.bgcolor() == vt100::Color::Default && !cell.inverse(), "{cell:?}");
    }
}

/// Reads the screen until the last process has left the terminal.
fn watch(mut master: File, screen: &(Mutex<Vec<u8>>, Condvar)) {
    let mut chunk = [0; 4_096];
    while let Ok(count @ 1..) = master.read(&mut chunk) {
        screen.0.lock().extend(&chunk[..count]);
        screen.1.notify_all();
    }
}

impl AtTerminal {
    /// Waits until these words are on the screen, behind those that were waited for before. Gives all that came up to
    /// them.
    ///
    /// # Panics
    /// If they do not come.
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

    /// Waits until these words are anywhere on the screen, for those whose order is open.
    ///
    /// # Panics
    /// If they do not come.
    pub fn shows(&self, words: &str) {
        let has = |screen: &Vec<u8>| memchr::memmem::find(screen, words.as_bytes()).map(drop);
        wait_until(&self.screen, has, |screen| {
            panic!("{words:?} is not on the screen: {}", String::from_utf8_lossy(screen))
        });
    }

    /// Types a line.
    ///
    /// # Panics
    /// If the terminal is gone.
    pub fn types(&mut self, line: &str) {
        self.person.write_all(format!("{line}\n").as_bytes()).expect("a terminal");
    }

    /// Waits for the end of the command.
    #[must_use]
    pub fn wait(self) -> Ended {
        self.running.wait()
    }

    /// Waits for the end of the command, and gives the content of the screen then, without the empty rows below.
    ///
    /// # Panics
    /// If it does not end.
    #[must_use]
    pub fn finish(mut self) -> (Ended, String) {
        let ended = self.running.end();
        // All output written earlier has been read once this mark is there.
        rustix::io::write(&self.terminal, END.as_bytes()).expect("a terminal");
        self.sees(END);
        let [columns, rows] = [self.size.0, self.size.1].map(|size| NonZeroU16::new(size).expect("a size"));
        let mut parser = vt100::Parser::new(rows, columns, 0);
        parser.process(self.screen().trim_end_matches(END).as_bytes());
        is_legible(parser.screen(), self.size);
        (ended, parser.screen().contents())
    }

    /// All that was on the screen so far.
    #[must_use]
    pub fn screen(&self) -> String {
        String::from_utf8_lossy(&self.screen.0.lock()).into_owned()
    }

    /// The process behind the terminal.
    #[must_use]
    pub fn running(&self) -> &Running {
        &self.running
    }
}
