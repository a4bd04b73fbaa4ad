//! `git` over a directory: the commands that look at a repository and commit to it (SPEC LAND-7).
//!
//! It starts no program and opens no connection itself: no hooks, filters, text converters, pagers, editors, credential helpers or
//! signatures, against any configuration of the repository. Requests of `push` and `ls-remote` go to the caller's [`Network`]. It must not know runs, policies or the shell. All bytes of the
//! repository are hostile: every size, depth and count has a limit ([`limits`]), names are checked before they become
//! paths, and nothing is written outside the working tree and its `.git`.
//!
//! Decoding and encoding is done by crates of gitoxide. Packs, loose objects and references are read here, because
//! gitoxide maps files into memory, which WASI cannot do.

mod commands;
mod config;
mod describe;
mod diff;
mod error;
mod history;
mod ident;
mod ignore;
mod index;
mod limits;
mod network;
mod objects;
mod options;
mod output;
mod pathspec;
mod quote;
mod refs;
mod remote;
mod repository;
mod revision;
mod tree;
mod worktree;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::time::{Instant, SystemTime};

pub use network::{Network, Request, Response};

/// One call of the command.
#[derive(Debug, Clone)]
pub struct Invocation {
    /// Where the workspace is on this machine. Nothing outside is looked at.
    pub root: PathBuf,
    /// The workspace's name for the caller, which messages use. Absolute.
    pub shown: PathBuf,
    /// The directory that the command is called in, below `shown`.
    pub directory: PathBuf,
    /// The arguments after the command's name.
    pub arguments: Vec<String>,
    /// The caller's environment: `GIT_AUTHOR_NAME` and the like are read from it.
    pub environment: HashMap<String, String>,
    /// The bytes of its standard input.
    pub input: Vec<u8>,
    /// The time of commits without a date of their own.
    pub now: SystemTime,
    /// When to give up.
    pub deadline: Option<Instant>,
    /// Permissions that are known otherwise than from files, by the caller's paths: WASI has none.
    pub modes: BTreeMap<PathBuf, u32>,
    /// The way to remote repositories, if the caller has a network.
    pub network: Option<Network>,
    /// A name at the top of the workspace that belongs to the caller: it is not part of a working tree.
    pub reserved: Option<String>,
}

/// The output of a call, and its exit code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The bytes of its standard output.
    pub stdout: Vec<u8>,
    /// The bytes of its standard error.
    pub stderr: Vec<u8>,
    /// The exit code, as git's own.
    pub code: i32,
}

/// Runs a command to its end.
#[must_use]
pub fn run(invocation: Invocation) -> Answer {
    let mut output = output::Output::default();
    let code = match commands::dispatch(invocation, &mut output) {
        Ok(code) => code,
        Err(fault) => {
            output.warn(&fault.message);
            fault.code
        }
    };
    output.finish(code)
}

#[cfg(test)]
mod tests;
