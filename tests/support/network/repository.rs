//! A bare repository that takes pushes over smart HTTP, with the program `git` behind it.

use std::io::{Error, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{Received, Reply, Site};

/// The service that takes pushes.
const SERVICE: &str = "git-receive-pack";

/// A bare repository in a directory of its own.
#[derive(Debug)]
pub struct BareRepository {
    directory: tempfile::TempDir,
}

impl BareRepository {
    /// Makes an empty repository.
    ///
    /// # Panics
    /// If it cannot be made.
    #[must_use]
    pub fn empty() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let bare = Self { directory };
        bare.git(&["init", "-q", "--bare", "-b", "main"]);
        bare
    }

    /// Takes pushes to a path of a site from now on.
    pub fn serve(&self, site: &Site, path: &str) {
        for end in ["info/refs", SERVICE] {
            site.route(&format!("{path}/{end}"), Reply::ReceivePack(self.path().to_owned()));
        }
    }

    /// The directory of the repository.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    /// The output of a command of git in it.
    ///
    /// # Panics
    /// If the command fails.
    #[must_use]
    pub fn output(&self, arguments: &[&str]) -> String {
        self.git(arguments)
    }

    fn git(&self, arguments: &[&str]) -> String {
        let output = git(self.path()).args(arguments).output().expect("git runs");
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }
}

/// git without the configuration of this machine.
fn git(directory: &Path) -> Command {
    let mut command = Command::new("git");
    command
        .current_dir(directory)
        .env_clear()
        .envs([
            ("PATH", "/usr/local/bin:/usr/bin:/bin"),
            ("LC_ALL", "C"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("HOME", "/nonexistent"),
        ])
        .stdin(Stdio::null());
    command
}

/// The content type and body of the answer to a request of a push.
pub(super) async fn receive_pack(bare: PathBuf, request: Received) -> Result<(String, Vec<u8>), Error> {
    let answer = move || {
        let mut command = git(&bare);
        command.args(["receive-pack", "--stateless-rpc"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let is_first = request.method == "GET";
        let (kind, mut body) = if is_first {
            let line = format!("# service={SERVICE}\n");
            command.arg("--http-backend-info-refs");
            ("advertisement", format!("{:04x}{line}0000", line.len() + 4).into_bytes())
        } else {
            ("result", Vec::new())
        };
        let mut child = command.arg(&bare).spawn()?;
        child.stdin.take().ok_or_else(|| Error::other("no standard input"))?.write_all(&request.body)?;
        body.extend(child.wait_with_output()?.stdout);
        Ok((format!("application/x-{SERVICE}-{kind}"), body))
    };
    tokio::task::spawn_blocking(answer).await.map_err(Error::other)?
}
