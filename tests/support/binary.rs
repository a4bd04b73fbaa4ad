//! The real `motor`: found beside the tests, run with a home and an environment of its own, never longer than it should
//! take, killed when a test is over.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::{Pid, kill_process};
use serde_json::Value;

pub use rustix::process::Signal;

use crate::model_server::ModelServer;
use crate::{cache, target_directory};

/// The longest any one command of a test may take: far more than it does, on a machine that is busy with others.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two looks at a process.
const PAUSE: Duration = Duration::from_millis(2);

/// A home, and the environment that commands on it have.
#[derive(Debug)]
pub struct Motor {
    home: PathBuf,
    variables: Vec<(String, String)>,
    directory: tempfile::TempDir,
}

impl Default for Motor {
    fn default() -> Self {
        Self::new()
    }
}

impl Motor {
    /// A home that is not there yet. What it compiles is kept from test to test.
    ///
    /// # Panics
    /// When there is no temporary directory.
    #[must_use]
    pub fn new() -> Self {
        let motor = Self::bare();
        std::fs::create_dir_all(&motor.home).expect("a home");
        std::fs::create_dir_all(cache()).expect("a cache");
        std::os::unix::fs::symlink(cache(), motor.home.join("cache")).expect("a link");
        motor
    }

    /// A home that shares nothing with any other.
    ///
    /// # Panics
    /// When there is no temporary directory.
    #[must_use]
    pub fn bare() -> Self {
        let directory = tempfile::Builder::new().prefix("motor-it-").tempdir().expect("a temporary directory");
        Self { home: directory.path().join("home"), variables: Vec::new(), directory }
    }

    /// A home whose model is a scripted one.
    #[must_use]
    pub fn with_model(server: &ModelServer) -> Self {
        Self::new().env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", "sk-test").endpoint(&server.base_url())
    }

    /// Adds a variable to the environment, which is otherwise empty.
    #[must_use]
    pub fn env(mut self, name: &str, value: &str) -> Self {
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Where its model is.
    #[must_use]
    pub fn endpoint(self, url: &str) -> Self {
        self.env("OPENAI_BASE_URL", url)
    }

    /// The same with its home elsewhere.
    #[must_use]
    pub fn at(mut self, home: PathBuf) -> Self {
        self.home = home;
        self
    }

    /// The home.
    #[must_use]
    pub fn home(&self) -> &Path {
        &self.home
    }

    /// A directory beside the home.
    #[must_use]
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A file in that directory.
    ///
    /// # Panics
    /// When it cannot be written.
    #[must_use]
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.directory.path().join(name);
        std::fs::write(&path, content).expect("a file");
        path
    }

    /// A run's workspace.
    #[must_use]
    pub fn workspace(&self, run: &str) -> PathBuf {
        self.home.join("runs").join(run).join("workspace")
    }

    /// Starts a command.
    ///
    /// # Panics
    /// When it does not start.
    #[must_use]
    pub fn start<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Running {
        let mut command = Command::new(program());
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
        command.args(arguments).arg("--home").arg(&self.home).current_dir(self.directory.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let stdout = Sink::read(child.stdout.take().expect("a pipe"));
        let stderr = Sink::read(child.stderr.take().expect("a pipe"));
        let arguments = arguments.iter().map(|argument| argument.as_ref().to_string_lossy().into_owned());
        Running { child, stdout, stderr, said: arguments.collect::<Vec<_>>().join(" ") }
    }

    /// Runs a command to its end.
    #[must_use]
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Ended {
        self.start(arguments).wait()
    }

    /// What a command prints that has to succeed.
    ///
    /// # Panics
    /// When it fails.
    pub fn stdout<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    }

    /// What a command answers with `--json`, when it has to succeed.
    ///
    /// # Panics
    /// When it fails, or the answer is not JSON.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.stdout(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// What a command streams with `--json`: a value for each line.
    ///
    /// # Panics
    /// When it fails, or a line is not JSON.
    #[must_use]
    pub fn json_lines(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.stdout(&[arguments, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// The one run that this home has had.
    ///
    /// # Panics
    /// When it has had none or several.
    #[must_use]
    pub fn only_run(&self) -> String {
        let runs = self.json(&["task", "list"]);
        let [run] = runs.as_array().expect("a list").as_slice() else { panic!("not one run: {runs}") };
        run["id"].as_str().expect("an id").to_owned()
    }

    /// Waits until the run is in that status, asking with a command each time.
    ///
    /// # Panics
    /// When it takes too long.
    pub fn wait_for_status(&self, run: &str, status: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let now = self.json(&["task", "status", run]);
            if now["status"] == status {
                return;
            }
            assert!(Instant::now() < deadline, "{run} is not {status}: {now:#}");
        }
    }
}

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
    /// None when a signal ended it.
    pub code: Option<i32>,
    /// What it printed.
    pub stdout: String,
    /// What it said.
    pub stderr: String,
}

impl Ended {
    /// Checks that it refused with this exit code, an error with these words, and nothing on stdout.
    ///
    /// # Panics
    /// When it did something else.
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

    /// Checks that it did what it was asked.
    ///
    /// # Panics
    /// When it did not.
    #[track_caller]
    pub fn succeeded(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:?}");
        self
    }
}

impl Running {
    /// Sends a signal.
    ///
    /// # Panics
    /// When the process is gone already.
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
    /// When that cannot be told.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().expect("a child").is_none()
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// When that does not come.
    #[must_use]
    pub fn wait(mut self) -> Ended {
        let deadline = Instant::now() + PATIENCE;
        while self.is_alive() {
            assert!(Instant::now() < deadline, "`motor {}` does not end: {:?}", self.said, self.stderr.text());
            std::thread::sleep(PAUSE);
        }
        self.end()
    }

    fn end(&mut self) -> Ended {
        let status = self.child.wait().expect("a child");
        Ended { code: status.code(), stdout: self.stdout.whole(), stderr: self.stderr.whole() }
    }

    /// Waits for a line on stderr that has these words.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait_for_words(&self, words: &str) -> String {
        self.stderr.wait_for(words, &self.said)
    }

    /// Waits for a line on stdout that has these words.
    ///
    /// # Panics
    /// When it does not come.
    pub fn wait_for_output(&self, words: &str) -> String {
        self.stdout.wait_for(words, &self.said)
    }

    /// The run that it has started, as soon as it says so.
    ///
    /// # Panics
    /// When it does not.
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

/// What a process writes, read as it comes.
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
                shared.0.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                shared.1.notify_all();
                line.clear();
            }
        });
        Self { lines, reader: Some(reader) }
    }

    fn text(&self) -> String {
        self.lines.0.lock().unwrap_or_else(PoisonError::into_inner).concat()
    }

    /// Everything, after the process has ended.
    fn whole(&mut self) -> String {
        if let Some(reader) = self.reader.take() {
            reader.join().expect("the reader");
        }
        self.text()
    }

    fn wait_for(&self, words: &str, said: &str) -> String {
        let lines = self.lines.0.lock().unwrap_or_else(PoisonError::into_inner);
        let has = |lines: &Vec<String>| lines.iter().find(|line| line.contains(words)).cloned();
        let waited = self.lines.1.wait_timeout_while(lines, PATIENCE, |lines| has(lines).is_none());
        let (lines, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let found = has(&lines);
        found.unwrap_or_else(|| panic!("`motor {said}` does not say {words:?}: {lines:?}")).trim_end().to_owned()
    }
}

/// The program: built from the sources that are there, or the tests would be about another one.
fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let hint = "run `cargo build -p interfaces`, or all with `cargo xtask test`";
        let target = target_directory();
        let test = std::env::current_exe().expect("this program has a path");
        let profile = test.strip_prefix(&target).ok().and_then(|path| path.components().next());
        let program = target.join(profile.expect("a profile")).join("motor");
        let built = modified(&program).unwrap_or_else(|| panic!("there is no `motor` to test: {hint}"));
        // Cargo lists beside it what it was built from.
        let sources = std::fs::read_to_string(program.with_extension("d")).unwrap_or_default();
        for source in sources.split_whitespace().skip(1) {
            let current = modified(Path::new(source)).is_some_and(|changed| changed <= built);
            assert!(current, "`motor` is older than {source}: {hint}");
        }
        program
    })
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).ok()?.modified().ok()
}
