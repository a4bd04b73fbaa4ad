//! One process of the program under test: its output, as it comes, and its end.

use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use rustix::process::{Pid, kill_process};
use serde_json::Value;

pub use rustix::process::Signal;

use crate::Patience;

/// Between two looks at a process.
const PAUSE: Duration = Duration::from_millis(2);

/// A command that runs. It is killed when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    stdout: Sink,
    stderr: Sink,
    said: String,
}

/// A command that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// Its whole standard output.
    pub stdout: String,
    /// Its whole standard error.
    pub stderr: String,
}

impl Ended {
    /// Checks that it refused with this exit code, an error with these words, and nothing on stdout.
    ///
    /// # Panics
    /// If it did something else.
    #[track_caller]
    pub fn refused(&self, code: i32, words: &[&str]) {
        assert_eq!(self.code, Some(code), "{self:?}");
        for word in words {
            assert!(self.stderr.contains(word), "{word:?} is not said: {self:?}");
        }
        assert!(self.stderr.contains("error:"), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
        assert_eq!(self.stdout, "", "{self:?}");
    }

    /// Checks that a command with `--json` refused with this exit code and this code of an error.
    ///
    /// # Panics
    /// If it did something else.
    #[track_caller]
    pub fn refused_as(&self, exit: i32, code: &str) {
        let reply: Value = serde_json::from_str(&self.stdout).unwrap_or_default();
        assert_eq!((self.code, &reply["error"]["code"]), (Some(exit), &Value::from(code)), "{self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
    }

    /// Checks that it began, and failed with this exit code and these words.
    ///
    /// # Panics
    /// If it did something else.
    #[track_caller]
    pub fn failed(&self, code: i32, words: &[&str]) {
        self.refused(code, words);
        assert!(self.stderr.contains("run run_"), "{self:?}");
    }

    /// Checks that the command succeeded.
    ///
    /// # Panics
    /// If its exit code is not 0.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl Running {
    /// Starts a command, which the test's messages call `said`.
    pub(super) fn start(mut command: Command, said: String, input: &str) -> Self {
        let stdin = if input.is_empty() { Stdio::null() } else { Stdio::piped() };
        // In a group of its own it is in the background of any terminal the tests run at, and prompts no person there.
        command.stdin(stdin).process_group(0);
        let mut running = Self::spawn(command, said);
        if let Some(mut stdin) = running.child.stdin.take() {
            // A program that does not read it has said why.
            stdin.write_all(input.as_bytes()).ok();
        }
        running
    }

    /// Starts a command whose standard input is set already.
    pub(super) fn spawn(mut command: Command, said: String) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = Sink::read(child.stdout.take().expect("a pipe"));
        let stderr = Sink::read(child.stderr.take().expect("a pipe"));
        Self { child, stdout, stderr, said }
    }

    /// The operating system's id of the process.
    #[must_use]
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the process is gone already.
    pub fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw).expect("a process id");
        kill_process(pid, signal).expect("the process is there");
    }

    /// Kills it, as `kill -9` does, and waits until it is gone.
    pub fn kill(mut self) -> Ended {
        self.child.kill().ok();
        self.end()
    }

    /// Whether it still runs.
    ///
    /// # Panics
    /// If that cannot be told.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If that does not come.
    #[must_use]
    pub fn wait(mut self) -> Ended {
        self.end()
    }

    pub(super) fn end(&mut self) -> Ended {
        let mut patience = Patience::default();
        while self.is_alive() {
            assert!(patience.lasts(), "`motor {}` does not end: {:?}", self.said, self.stderr.text());
            std::thread::sleep(PAUSE);
        }
        let status = self.child.wait().expect("a child");
        Ended { code: status.code(), stdout: self.stdout.whole(), stderr: self.stderr.whole() }
    }

    /// Waits for a line on stderr that has these words.
    ///
    /// # Panics
    /// If it does not come.
    pub fn wait_for_words(&self, words: &str) -> String {
        self.stderr.wait_for(words, 1, &self.said)
    }

    /// Waits until that many lines on stderr have these words, and returns the last of them.
    ///
    /// # Panics
    /// If they do not come.
    pub fn wait_for_lines(&self, words: &str, count: usize) -> String {
        self.stderr.wait_for(words, count, &self.said)
    }

    /// Waits for a line on stdout that has these words.
    ///
    /// # Panics
    /// If it does not come.
    pub fn wait_for_output(&self, words: &str) -> String {
        self.stdout.wait_for(words, 1, &self.said)
    }

    /// The run that it has started, as soon as it says so.
    ///
    /// # Panics
    /// If it does not.
    pub fn run_id(&self) -> String {
        let line = self.wait_for_words("run run_");
        line.trim_start_matches("run ").to_owned()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// Waits until `find` finds something in the data that other threads add to, or ends with `fail`.
pub(super) fn wait_until<T, F>(
    shared: &(Mutex<T>, Condvar),
    find: impl Fn(&T) -> Option<F>,
    fail: impl FnOnce(&T) -> F,
) -> F {
    let mut patience = Patience::default();
    let mut content = shared.0.lock();
    loop {
        if let Some(found) = find(&content) {
            return found;
        }
        if !patience.lasts() {
            return fail(&content);
        }
        shared.1.wait_for(&mut content, Duration::from_secs(1));
    }
}

/// The output of a process, read as it comes.
#[derive(Debug)]
struct Sink {
    lines: Arc<(Mutex<Vec<String>>, Condvar)>,
    reader: Option<JoinHandle<()>>,
}

impl Sink {
    fn read(pipe: impl Read + Send + 'static) -> Self {
        let lines = Arc::new((Mutex::new(Vec::new()), Condvar::new()));
        let shared = Arc::clone(&lines);
        let reader = std::thread::spawn(move || {
            let mut pipe = BufReader::new(pipe);
            let mut line = Vec::new();
            while pipe.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                let text = String::from_utf8_lossy(&line).into_owned();
                shared.0.lock().push(text);
                shared.1.notify_all();
                line.clear();
            }
        });
        Self { lines, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.lines.0.lock().concat()
    }

    /// Everything, after the process has ended.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader");
        }
        self.text()
    }

    /// The line with these words that comes as the `count`th.
    fn wait_for(&self, words: &str, count: usize, said: &str) -> String {
        let has = |lines: &Vec<String>| {
            lines.iter().filter(|line| line.contains(words)).nth(count.saturating_sub(1)).cloned()
        };
        let line = wait_until(&self.lines, has, |lines| panic!("`motor {said}` does not say {words:?}: {lines:?}"));
        line.trim_end().to_owned()
    }
}
