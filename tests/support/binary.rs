//! The real `motor`: found beside the tests, run with a home and an environment of its own, never longer than it should
//! take, killed when a test is over.

mod running;
mod socket;
mod terminal;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::SystemTime;

use serde_json::Value;

pub use running::{Ended, Running, Signal};
pub use terminal::AtTerminal;

use crate::model_server::ModelServer;
use crate::{Patience, cache, target_directory};

/// A home, and the environment that commands on it have.
#[derive(Debug)]
pub struct Motor {
    home: PathBuf,
    variables: Vec<(String, String)>,
    /// A program that starts the commands, with its arguments.
    starter: Vec<String>,
    directory: tempfile::TempDir,
}

impl Default for Motor {
    fn default() -> Self {
        Self::new()
    }
}

impl Motor {
    /// A home that is not there yet. Compiled components are kept from test to test.
    ///
    /// # Panics
    /// If there is no temporary directory.
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
    /// If there is no temporary directory.
    #[must_use]
    pub fn bare() -> Self {
        let directory = tempfile::Builder::new().prefix("motor-it-").tempdir().expect("a temporary directory");
        Self { home: directory.path().join("home"), variables: Vec::new(), starter: Vec::new(), directory }
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

    /// Sets the base URL of its model, `OPENAI_BASE_URL`.
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

    /// The same with its commands in a network namespace without routes. `None` if the machine may not make one.
    #[must_use]
    pub fn without_network(mut self) -> Option<Self> {
        self = self.started_by(&["unshare", "--net", "--"]);
        let tried = Command::new("unshare").args(["--net", "--", "true"]).output();
        tried.is_ok_and(|output| output.status.success()).then_some(self)
    }

    /// The same with its commands as the arguments of another program, which starts them.
    #[must_use]
    pub fn started_by(mut self, starter: &[&str]) -> Self {
        self.starter = starter.iter().map(|&word| word.to_owned()).collect();
        self
    }

    /// The same with commands that survive a limit on the size of files, which a test sets on one that runs: writes fail.
    #[must_use]
    pub fn surviving_file_size_limits(mut self) -> Self {
        self = self.started_by(&["sh", "-c", "trap '' XFSZ; exec \"$0\" \"$@\""]);
        self
    }

    /// The directory of the home.
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
    /// If it cannot be written.
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
    /// If it does not start.
    #[must_use]
    pub fn start<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Running {
        self.start_with_input(arguments, "")
    }

    /// Starts a command that reads this from its standard input.
    ///
    /// # Panics
    /// If it does not start.
    #[must_use]
    pub fn start_with_input<A: AsRef<OsStr>>(&self, arguments: &[A], input: &str) -> Running {
        self.start_with(arguments, input, &[])
    }

    fn start_with<A: AsRef<OsStr>>(&self, arguments: &[A], input: &str, variables: &[(&str, &str)]) -> Running {
        let mut words = self.starter.iter().map(OsStr::new).chain([program().as_os_str()]);
        let mut command = Command::new(words.next().expect("a program"));
        command.args(words);
        self.settle(&mut command, arguments);
        command.envs(variables.iter().copied());
        let arguments = arguments.iter().map(|argument| argument.as_ref().to_string_lossy().into_owned());
        Running::start(command, arguments.collect::<Vec<_>>().join(" "), input)
    }

    /// The command with its environment, not started: for a test that speaks with it.
    #[must_use]
    pub fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new(program());
        self.settle(&mut command, arguments);
        command
    }

    /// The arguments, and the world the command lives in.
    fn settle<A: AsRef<OsStr>>(&self, command: &mut Command, arguments: &[A]) {
        command.args(arguments).arg("--home").arg(&self.home).current_dir(self.directory.path());
        command.env_clear().envs(self.variables.iter().map(|(name, value)| (name, value)));
    }

    /// The owner's token of the home, which is made if there is none yet.
    ///
    /// # Panics
    /// If there is no token, or it is sealed.
    #[must_use]
    pub fn owner_token(&self) -> String {
        let file = self.home.join("config/owner.token");
        if !file.exists() {
            self.stdout(&["owner", "status"]);
        }
        let token = std::fs::read_to_string(file).expect("the owner's token");
        assert!(token.starts_with("motor-owner-"), "the token is sealed");
        token.trim().to_owned()
    }

    /// The same with the owner's token in the environment, so that its commands need no person at a terminal.
    #[must_use]
    pub fn unattended(self) -> Self {
        let token = self.owner_token();
        self.env("MOTOR_OWNER_TOKEN", &token)
    }

    /// Runs a command of the owner, who holds the token, with this on its standard input.
    #[must_use]
    pub fn run_as_owner<A: AsRef<OsStr>>(&self, arguments: &[A], input: &str) -> Ended {
        let token = self.owner_token();
        self.start_with(arguments, input, &[("MOTOR_OWNER_TOKEN", &token)]).wait()
    }

    /// Runs a command to its end.
    #[must_use]
    pub fn run<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Ended {
        self.start(arguments).wait()
    }

    /// Checks that a command with `--json` is refused with this exit code and this code of an error.
    ///
    /// # Panics
    /// If it does something else.
    #[track_caller]
    pub fn refuses<A: AsRef<OsStr>>(&self, arguments: &[A], exit: i32, code: &str) {
        self.run(&with_json(arguments)).refused_as(exit, code);
    }

    /// The same for a command of the owner.
    ///
    /// # Panics
    /// If it does something else.
    #[track_caller]
    pub fn refuses_owner<A: AsRef<OsStr>>(&self, arguments: &[A], exit: i32, code: &str) {
        self.run_as_owner(&with_json(arguments), "").refused_as(exit, code);
    }

    /// Runs a command that reads this from its standard input.
    #[must_use]
    pub fn run_with_input<A: AsRef<OsStr>>(&self, arguments: &[A], input: &str) -> Ended {
        self.start_with_input(arguments, input).wait()
    }

    /// Writes the settings.
    ///
    /// # Panics
    /// If they cannot be written.
    pub fn configure(&self, settings: &str) {
        let directory = self.home.join("config");
        std::fs::create_dir_all(&directory).expect("a directory");
        std::fs::write(directory.join("motor.toml"), settings).expect("a file");
    }

    /// The standard output of a command that has to succeed.
    ///
    /// # Panics
    /// If it fails.
    pub fn stdout<A: AsRef<OsStr>>(&self, arguments: &[A]) -> String {
        let ended = self.run(arguments);
        assert_eq!(ended.code, Some(0), "{ended:?}");
        ended.stdout
    }

    /// The answer of a command with `--json` that has to succeed.
    ///
    /// # Panics
    /// If it fails, or the answer is not JSON.
    #[must_use]
    pub fn json(&self, arguments: &[&str]) -> Value {
        let text = self.stdout(&[arguments, &["--json"]].concat());
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments:?}: {error}: {text}"))
    }

    /// The stream of a command with `--json`: a value for each line.
    ///
    /// # Panics
    /// If it fails, or a line is not JSON.
    #[must_use]
    pub fn json_lines(&self, arguments: &[&str]) -> Vec<Value> {
        let text = self.stdout(&[arguments, &["--json"]].concat());
        text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
    }

    /// The one run that this home has had.
    ///
    /// # Panics
    /// If it has had no run or several.
    #[must_use]
    pub fn only_run(&self) -> String {
        let runs = self.json(&["task", "list"]);
        let [run] = runs.as_array().expect("a list").as_slice() else { panic!("not one run: {runs}") };
        run["runId"].as_str().expect("an id").to_owned()
    }

    /// Runs a command with `--json` until its answer fits, and returns that.
    ///
    /// # Panics
    /// If it fails, or the programs are no longer at work.
    #[track_caller]
    pub fn wait_for(&self, arguments: &[&str], fits: impl Fn(&Value) -> bool) -> Value {
        let (mut patience, mut looks_at_the_end) = (Patience::default(), 0);
        loop {
            let now = self.json(arguments);
            if fits(&now) {
                return now;
            }
            // The commands themselves are at work, so patience alone would not end.
            looks_at_the_end += u32::from(ENDS.iter().any(|end| now["status"] == *end));
            assert!(looks_at_the_end < MAX_LOOKS_AT_THE_END && patience.lasts(), "{arguments:?}: {now:#}");
        }
    }

    /// Waits until the run is in that status, asking with a command each time.
    ///
    /// # Panics
    /// If the programs are no longer at work.
    #[track_caller]
    pub fn wait_for_status(&self, run: &str, status: &str) {
        self.wait_for(&["task", "status", run], |now| now["status"] == status);
    }
}

/// The arguments, and `--json` after them.
fn with_json<A: AsRef<OsStr>>(arguments: &[A]) -> Vec<&OsStr> {
    arguments.iter().map(AsRef::as_ref).chain([OsStr::new("--json")]).collect()
}

/// The states of a run that is over.
const ENDS: [&str; 3] = ["completed", "failed", "cancelled"];
/// How often a finished run is looked at before the wait fails.
const MAX_LOOKS_AT_THE_END: u32 = 200;

/// The file of the program under test.
///
/// # Panics
/// If it is not built.
#[must_use]
pub fn program_file() -> &'static Path {
    program()
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
        // Cargo lists the sources next to the program.
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
