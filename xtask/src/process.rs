//! Running other programs: in a directory, to their end, with failures that name the command.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};

/// A command that is to be run.
pub struct Command(std::process::Command);

/// A command in the current directory.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    Command(std::process::Command::new(program))
}

/// The cargo this program was started by, in `directory`. A program without its components is an error there.
pub fn cargo(directory: &Path) -> Command {
    let mut cargo = std::process::Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(directory).env("MOTOR_REQUIRE_GUESTS", "1");
    Command(cargo)
}

impl Command {
    /// Adds arguments to the command.
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.0.args(arguments);
        self
    }

    /// Runs it in another directory.
    pub fn directory(mut self, directory: &Path) -> Self {
        self.0.current_dir(directory);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Removes an environment variable.
    pub fn without_env(mut self, name: &str) -> Self {
        self.0.env_remove(name);
        self
    }

    /// Runs it with this program's input and output.
    ///
    /// # Errors
    /// If it does not start or does not succeed.
    pub fn run(mut self) -> Result<()> {
        let status = self.0.status().with_context(|| format!("cannot start {}", self.shown()))?;
        if !status.success() {
            bail!("{} failed ({status})", self.shown());
        }
        Ok(())
    }

    /// Runs it and returns its standard output; `None` if it is missing or does not succeed.
    pub fn output(mut self) -> Option<String> {
        let output = self.0.stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    fn shown(&self) -> String {
        let words = std::iter::once(self.0.get_program()).chain(self.0.get_args());
        let line: Vec<_> = words.map(|word| word.to_string_lossy().into_owned()).collect();
        format!("`{}`", line.join(" "))
    }
}
