//! `git init`.

use std::fs;
use std::path::Path;

use crate::Invocation;
use crate::error::{Fault, Result};
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::repository::below;

/// The configuration of a new repository.
const CONFIG: &str =
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n";

/// Runs the command, and prints its result.
pub(super) fn run(call: &Invocation, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut branch, mut directory, mut quiet) = ("main".to_owned(), None, false);
    let mut arguments = Arguments::new("init", arguments);
    while let Some(argument) = arguments.next("q") {
        match argument {
            Argument::Word(word) | Argument::Path(word) => directory = Some(word),
            Argument::Option(name) => match name.as_str() {
                "-b" | "--initial-branch" => branch = arguments.value(&name)?,
                "-q" | "--quiet" => quiet = true,
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, value) => match name.as_str() {
                "-b" | "--initial-branch" => branch = value,
                "--object-format" if value == "sha1" => {}
                _ => return Err(arguments.unknown(&format!("{name}={value}"))),
            },
        }
    }
    if gix_validate::reference::branch_name(format!("refs/heads/{branch}").as_str().into()).is_err() {
        return Err(Fault::fatal(format_args!("invalid initial branch name: '{branch}'")));
    }
    let place = call.directory.join(directory.as_deref().unwrap_or("."));
    let below = below(&call.shown, &place)
        .map_err(|_| Fault::fatal(format_args!("'{}' is outside the workspace", place.display())))?;
    let shown = call.shown.join(&below).join(".git");
    let git = call.root.join(&below).join(".git");
    if fs::symlink_metadata(&git).is_ok() {
        if !quiet {
            out.put(format!("Reinitialized existing Git repository in {}/\n", shown.display()))?;
        }
        return Ok(0);
    }
    create(&git, &branch).map_err(|error| Fault::fatal(format_args!("cannot create {}: {error}", shown.display())))?;
    if !quiet {
        out.put(format!("Initialized empty Git repository in {}/\n", shown.display()))?;
    }
    Ok(0)
}

fn create(git: &Path, branch: &str) -> std::io::Result<()> {
    for directory in ["objects/info", "objects/pack", "refs/heads", "refs/tags", "info"] {
        fs::create_dir_all(git.join(directory))?;
    }
    fs::write(git.join("config"), CONFIG)?;
    fs::write(git.join("description"), "Unnamed repository; edit this file 'description' to name the repository.\n")?;
    fs::write(git.join("HEAD"), format!("ref: refs/heads/{branch}\n"))
}
