//! `git rm`.

use bstr::{BString, ByteSlice as _};

use crate::diff::{self, Newer};
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::{quote, worktree};

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut cached, mut force, mut recursive, mut quiet, mut lenient, mut dry) =
        (false, false, false, false, false, false);
    let mut names = Vec::new();
    let mut arguments = Arguments::new("rm", arguments);
    while let Some(argument) = arguments.next("rfqn") {
        match argument {
            Argument::Word(path) | Argument::Path(path) => names.push(path),
            Argument::Option(name) => match name.as_str() {
                "--cached" => cached = true,
                "-f" | "--force" => force = true,
                "-r" => recursive = true,
                "-q" | "--quiet" => quiet = true,
                "-n" | "--dry-run" => dry = true,
                "--ignore-unmatch" => lenient = true,
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    if names.is_empty() {
        return Err(Fault::fatal("No pathspec was given. Which files should I remove?"));
    }
    let mut index = repository.index()?;
    let paths = Pathspec::parse(repository, &names)?;
    if let Some(missing) =
        paths.unmatched(index.entries().iter().map(|entry| entry.path.as_bstr())).filter(|_| !lenient)
    {
        return Err(Fault::fatal(format_args!("pathspec '{missing}' did not match any files")));
    }
    let matched = |path: &bstr::BStr| paths.matches(path, false);
    let mut removed: Vec<BString> =
        index.entries().iter().filter(|entry| matched(entry.path.as_bstr())).map(|entry| entry.path.clone()).collect();
    removed.dedup();
    if !recursive && let Some((text, _)) = paths.named().iter().find(|(_, path)| index.has_below(path.as_bstr())) {
        return Err(Fault::fatal(format_args!("not removing '{text}' recursively without -r")));
    }
    if !force {
        refuse_losses(repository, &index, &paths, cached)?;
    }
    for path in &removed {
        if !quiet {
            out.put(format!("rm '{}'\n", quote::name(path.as_bstr())))?;
        }
        if !dry {
            index.remove(path.as_bstr());
        }
    }
    if !dry {
        index.settle(repository)?;
        index.write()?;
        if !cached {
            removed.iter().try_for_each(|path| worktree::remove(repository, path.as_bstr()))?;
        }
    }
    Ok(0)
}

/// A content that is nowhere else is not removed without `-f`.
fn refuse_losses(repository: &Repository, index: &crate::index::Index, paths: &Pathspec, cached: bool) -> Result<()> {
    let tree = match repository.refs.head()?.id {
        Some(id) => Some(Commit::read(repository, &id)?.tree),
        None => None,
    };
    let staged = diff::since(repository, tree, Newer::Index(index), paths)?;
    let unstaged = diff::unstaged(repository, index, paths)?;
    let is_staged = |path: &bstr::BStr| staged.iter().any(|change| change.path() == path && change.conflict.is_none());
    let changed = |path: &bstr::BStr| unstaged.iter().any(|change| change.path() == path && change.new.is_some());
    for entry in index.entries().iter().filter(|entry| entry.stage == 0 && paths.matches(entry.path.as_bstr(), false)) {
        let path = entry.path.as_bstr();
        let (in_index, in_worktree) = (is_staged(path), changed(path));
        let name = quote::name(path);
        if in_index && in_worktree {
            return Err(Fault::error(format_args!(
                "the following file has staged content different from both the\nfile and the HEAD:\n    {name}\n(use -f to force \
                 removal)"
            )));
        }
        if in_index && !cached {
            return Err(Fault::error(format_args!(
                "the following file has changes staged in the index:\n    {name}\n(use --cached to keep the file, or -f to force \
                 removal)"
            )));
        }
        if in_worktree && !cached {
            return Err(Fault::error(format_args!(
                "the following file has local modifications:\n    {name}\n(use --cached to keep the file, or -f to force removal)"
            )));
        }
    }
    Ok(())
}
