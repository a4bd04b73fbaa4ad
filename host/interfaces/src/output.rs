//! What a person or a script sees: the answer on stdout, everything else on stderr (SPEC CLI-0).
//!
//! Models and tools write text that may hold escape sequences; on a terminal those could move the cursor, change the
//! title or forge what was printed before. Whatever comes from them goes through [`text`].

pub mod style;
pub mod table;
pub mod text;

use std::io::{self, IsTerminal as _, Write as _};

use base::Refusal;
use serde::Serialize;
use serde_json::json;

pub use style::{ColorChoice, Palette};

/// Columns for tables where there is no terminal to ask.
const COLUMNS: usize = 80;

/// Where a command writes.
#[derive(Debug, Clone)]
pub struct Output {
    json: bool,
    /// Columns of the terminal, or 80.
    pub columns: usize,
    /// Colours for stdout.
    pub out: Palette,
    /// Colours for stderr.
    pub err: Palette,
    /// Whether stderr is a terminal: spinners and streaming text only there.
    pub live: bool,
    out_is_terminal: bool,
}

impl Output {
    /// The process's own streams.
    #[must_use]
    pub fn of_process(json: bool, color: ColorChoice, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let columns = terminal_size::terminal_size().map_or(COLUMNS, |(width, _)| usize::from(width.0).clamp(40, 160));
        Self {
            json,
            columns: if out { columns } else { columns.min(COLUMNS) },
            out: Palette::new(color.wants(out, env)),
            err: Palette::new(color.wants(err, env)),
            live: err && env("TERM").as_deref() != Some("dumb"),
            out_is_terminal: out,
        }
    }

    /// Whether answers are JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Text for stdout, a newline added where there is none.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn print(&self, text: &str) -> io::Result<()> {
        let shown = if self.out_is_terminal { text::printable(text) } else { text.into() };
        self.print_trusted(&shown)
    }

    /// The same for text that this program made itself, colours included.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn print_trusted(&self, text: &str) -> io::Result<()> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        if !text.ends_with('\n') {
            stdout.write_all(b"\n")?;
        }
        stdout.flush()
    }

    /// One JSON value for stdout, over several lines.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn print_json(&self, value: &impl Serialize) -> io::Result<()> {
        self.print_trusted(&serde_json::to_string_pretty(value)?)
    }

    /// One JSON value for stdout, on one line: an item of a stream.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn print_json_line(&self, value: &impl Serialize) -> io::Result<()> {
        self.print_trusted(&serde_json::to_string(value)?)
    }

    /// A line for stderr. A closed stderr is nobody's loss.
    pub fn say(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        writeln!(stderr, "{text}").ok();
    }

    /// A warning on stderr.
    pub fn warn(&self, text: &str) {
        self.say(&format!("{} {}", self.err.yellow("warning:"), text::printable(text)));
    }

    /// Bytes for stderr as they are, without a newline.
    pub fn stream(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        stderr.write_all(text.as_bytes()).ok();
        stderr.flush().ok();
    }

    /// Says why something was refused: on stderr for people, and as the answer when answers are JSON.
    ///
    /// # Errors
    /// When stdout is closed or full.
    pub fn refuse(&self, refusal: &Refusal) -> io::Result<()> {
        self.say(&format!("{} {}", self.err.red("error:"), text::printable(&refusal.reason)));
        if let Some(remedy) = &refusal.remedy {
            self.say(&format!("{} {}", self.err.cyan("help:"), text::printable(remedy)));
        }
        if self.json { self.print_json(&json!({ "error": refusal })) } else { Ok(()) }
    }
}
