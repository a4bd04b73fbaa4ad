//! `git` on `/workspace`: the command line of the crate of that name in the shell.
//!
//! It must not know repositories. Files in memory (`/tmp`) are not in its reach: the message of a commit may be in one, so
//! that is read here.

use std::path::PathBuf;
use std::sync::PoisonError;
use std::time::{Instant, SystemTime};

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait, normalize_path, vfs_join};
use git::{Invocation, Network};
use motor_sdk::http;

use crate::curl::Sender;
use crate::workspace::{HOST_DIRECTORY, Modes};

/// The command `git` of the shell.
pub(crate) struct Git {
    pub root: PathBuf,
    pub modes: Modes,
    pub deadline: Option<Instant>,
    pub send: Sender,
}

#[async_trait]
impl Builtin for Git {
    async fn execute(&self, context: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let mut arguments = context.args.to_vec();
        let mut input = context.stdin.map(|input| input.as_bytes().to_vec()).unwrap_or_default();
        if let Some(file) = message_file(&mut arguments) {
            let path = normalize_path(&vfs_join(context.cwd, file.as_str()));
            input = match context.fs.read_file(&path).await {
                Ok(bytes) => bytes,
                Err(error) => {
                    return Ok(ExecResult::err(format!("fatal: could not read log file '{file}': {error}\n"), 128));
                }
            };
            file.clear();
            file.push('-');
        }
        let modes = self.modes.lock().unwrap_or_else(PoisonError::into_inner);
        let modes = modes.iter().map(|(path, mode)| (below_root(path), *mode)).collect();
        let answer = git::run(Invocation {
            root: self.root.clone(),
            shown: crate::ROOT.into(),
            directory: context.cwd.clone(),
            arguments,
            environment: context.env.clone(),
            input,
            now: SystemTime::now(),
            deadline: self.deadline,
            modes,
            network: Some(network(self.send)),
            reserved: Some(HOST_DIRECTORY.to_owned()),
        });
        let mut result = ExecResult::ok_bytes(answer.stdout);
        result.stderr = String::from_utf8_lossy(&answer.stderr).into_owned().into();
        result.exit_code = answer.code;
        Ok(result)
    }
}

/// The way of `git push` through the host's network gate, which decides on each request as on those of `curl`: a refusal
/// has the same words. Redirects are not followed: a push is for one place.
fn network(send: Sender) -> Network {
    Network::new(move |request| {
        let git::Request { method, url, headers, body } = request;
        let request = http::Request { method: method.to_owned(), url, headers, body, timeout_ms: None };
        let response = send(request, None).map_err(|error| error.to_string())?;
        let headers = response.headers.into_iter().collect();
        Ok(git::Response { status: response.status, headers, body: Box::new(response.body) })
    })
}

/// The file of `commit -F FILE`, if it is not standard input already.
fn message_file(arguments: &mut [String]) -> Option<&mut String> {
    let commit = arguments.iter().position(|argument| argument == "commit")?;
    let place = arguments.iter().skip(commit).position(|argument| matches!(argument.as_str(), "-F" | "--file"))?;
    arguments.get_mut(commit.saturating_add(place).saturating_add(1)).filter(|file| *file != "-")
}

/// A path below `/workspace` as a script writes it.
fn below_root(path: &std::path::Path) -> PathBuf {
    PathBuf::from(crate::ROOT).join(path.strip_prefix("/").unwrap_or(path))
}
