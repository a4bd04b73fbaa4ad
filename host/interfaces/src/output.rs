//! Output for people and scripts: the answer on stdout, everything else on stderr (SPEC CLI-0).
//!
//! Models and tools write text that may hold escape sequences; on a terminal those could move the cursor, change the
//! title or forge earlier output. All text from them goes through [`text`].

pub(crate) mod diff;
pub mod flow;
pub mod style;
pub mod table;
pub mod text;

use std::io::{self, IsTerminal as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::Refusal;
use schemars::JsonSchema;
use serde::Serialize;

use flow::Flow;
pub use style::{ColorChoice, Palette};

/// Columns for tables if there is no terminal to ask.
const COLUMNS: usize = 80;
/// Goes to the beginning of the line and clears it.
pub const CLEAR: &str = "\r\u{1b}[2K";

/// The answer of every command that is refused, usage errors included.
#[derive(Serialize, JsonSchema)]
pub(crate) struct Refused<'a> {
    /// The refusal, with the code that programs match on.
    pub(crate) error: &'a Refusal,
}

/// Where a command writes.
#[derive(Debug, Clone)]
pub struct Output {
    json: bool,
    /// Columns of stdout, if it is a terminal, or 80.
    pub columns: usize,
    /// Columns of stderr, if it is a terminal, or 80.
    pub err_columns: usize,
    /// Colours for text on stdout.
    pub out: Palette,
    /// Colours for text on stderr.
    pub err: Palette,
    /// Whether stderr is a terminal: spinners only there.
    pub live: bool,
    /// Whether a model's words are shown as they arrive: only where the answer is printed too, or it would be on one
    /// terminal twice or in a log in pieces.
    pub streams: bool,
    out_is_terminal: bool,
    err_is_terminal: bool,
    /// A notice is on the screen, or was printed.
    noticed: Arc<AtomicBool>,
}

impl Output {
    /// The process's own streams.
    #[must_use]
    pub fn of_process(json: bool, color: ColorChoice, env: &dyn Fn(&str) -> Option<String>) -> Self {
        let (out, err) = (io::stdout().is_terminal(), io::stderr().is_terminal());
        let columns = terminal_size::terminal_size().map_or(COLUMNS, |(width, _)| usize::from(width.0).clamp(40, 160));
        let live = err && env("TERM").as_deref() != Some("dumb");
        Self {
            json,
            columns: if out { columns } else { COLUMNS.min(columns) },
            err_columns: if err { columns } else { COLUMNS.min(columns) },
            out: Palette::new(color.wants(out, env)),
            err: Palette::new(color.wants(err, env)),
            live,
            streams: live && out && !json && one_terminal(),
            out_is_terminal: out,
            err_is_terminal: err,
            noticed: Arc::default(),
        }
    }

    /// Whether answers are JSON.
    #[must_use]
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether stdout is a terminal.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    /// Prints text to stdout, with a newline at its end.
    ///
    /// # Errors
    /// If stdout is closed or full.
    pub fn print(&self, text: &str) -> io::Result<()> {
        let shown = if self.out_is_terminal { text::printable(text) } else { text.into() };
        self.print_trusted(&shown)
    }

    /// The answer of a run: on a terminal broken between words, elsewhere exactly as it is.
    ///
    /// # Errors
    /// If stdout is closed or full.
    pub fn print_answer(&self, answer: &str) -> io::Result<()> {
        if !self.out_is_terminal {
            return self.print_trusted(answer);
        }
        let mut flow = Flow::new(0, self.columns);
        let shown = flow.push(answer);
        self.print_trusted(&(shown + &flow.finish()))
    }

    /// Columns that a line of stdout may have: unlimited without a terminal.
    #[must_use]
    pub fn row_columns(&self) -> usize {
        if self.out_is_terminal { self.columns } else { usize::MAX }
    }

    /// A page of this program's own making: on a terminal, lines that are too long for it are broken between words.
    ///
    /// # Errors
    /// If stdout is closed or full.
    pub fn print_page(&self, page: &str) -> io::Result<()> {
        self.print_trusted(&text::fitted(page, self.row_columns()))
    }

    /// Text that this program made itself, colours included, as it is.
    ///
    /// # Errors
    /// If stdout is closed or full.
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
    /// If stdout is closed or full.
    pub fn print_json(&self, value: &impl Serialize) -> io::Result<()> {
        self.print_trusted(&serde_json::to_string_pretty(value)?)
    }

    /// One JSON value for stdout, on one line: an item of a stream.
    ///
    /// # Errors
    /// If stdout is closed or full.
    pub fn print_json_line(&self, value: &impl Serialize) -> io::Result<()> {
        self.print_trusted(&serde_json::to_string(value)?)
    }

    /// A line for stderr, on a terminal broken between words. Nothing of it can harm the terminal.
    pub fn say(&self, text: &str) {
        self.say_trusted(&text::printable(text));
    }

    /// A line that this program made itself, colours included, for stderr. A closed stderr is ignored.
    pub fn say_trusted(&self, text: &str) {
        let shown = if self.err_is_terminal { text::fitted(text, self.err_columns) } else { text.into() };
        let mut stderr = io::stderr().lock();
        writeln!(stderr, "{shown}").ok();
    }

    /// A text on stderr behind a label of its own colour. Nothing of it can harm the terminal.
    pub fn say_labelled(&self, label: &str, paint: fn(Palette, &str) -> String, text: &str) {
        let text = text::printable(text);
        let indent = text::width(label) + 1;
        let columns = if self.err_is_terminal { self.err_columns } else { usize::MAX };
        let fits = columns == usize::MAX || text.lines().all(|line| text::width(line) + indent <= columns);
        let shown = if fits { text.into_owned() } else { text::hanging(indent, &text, columns) };
        writeln!(io::stderr().lock(), "{} {shown}", paint(self.err, label)).ok();
    }

    /// A warning on stderr.
    pub fn warn(&self, text: &str) {
        self.say_labelled("warning:", Palette::yellow, text);
    }

    /// Reports an error on stderr, with its remedy.
    pub fn fail(&self, reason: &str, remedy: Option<&str>) {
        self.say_labelled("error:", Palette::red, reason);
        if let Some(remedy) = remedy {
            self.say_labelled("help:", Palette::cyan, remedy);
        }
    }

    /// Reports slow work: on a terminal in a line that the next one replaces, elsewhere once. `None` removes the line.
    pub fn notice(&self, text: Option<&str>) {
        let shown = self.noticed.load(Ordering::Relaxed);
        match text {
            Some(text) if self.live => {
                let line = text::cut(text, self.err_columns.saturating_sub(1));
                self.stream_trusted(&format!("{CLEAR}{}", self.err.cyan(&line)));
            }
            Some(text) if !shown => self.say(text),
            None if self.live && shown => self.stream_trusted(CLEAR),
            _ => return,
        }
        self.noticed.store(text.is_some() || !self.live, Ordering::Relaxed);
    }

    /// Text that this program made itself, for stderr as it is, without a newline.
    pub fn stream_trusted(&self, text: &str) {
        let mut stderr = io::stderr().lock();
        stderr.write_all(text.as_bytes()).ok();
        stderr.flush().ok();
    }

    /// Reports a refusal: on stderr for people, and as the answer if answers are JSON.
    ///
    /// # Errors
    /// If stdout is closed or full.
    pub fn refuse(&self, refusal: &Refusal) -> io::Result<()> {
        self.fail(&refusal.reason, refusal.remedy.as_deref());
        if self.json { self.print_json(&Refused { error: refusal }) } else { Ok(()) }
    }
}

/// Whether stdout and stderr are the same terminal.
fn one_terminal() -> bool {
    let device = |stream| std::fs::metadata(stream).ok().map(|stream| stream.rdev());
    device("/dev/fd/1").is_some_and(|out| device("/dev/fd/2") == Some(out))
}
