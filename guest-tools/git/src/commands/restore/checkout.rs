//! `git checkout`: paths, or another branch.

use std::fs;

use bstr::{BString, ByteSlice as _};
use gix_hash::ObjectId;

use super::{bring_back, head_tree, write_out};
use crate::describe::Short;
use crate::diff::{self, Change, Newer};
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::ident::Signature;
use crate::index::Entry;
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::{quote, revision, worktree};

/// Runs `git checkout`, and prints its result.
pub(in super::super) fn checkout(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut words, mut names, mut create, mut detach, mut quiet) = (Vec::new(), Vec::new(), None, false, false);
    let mut arguments = Arguments::new("checkout", arguments);
    while let Some(argument) = arguments.next("q") {
        match argument {
            Argument::Word(word) => words.push(word),
            Argument::Path(path) => names.push(path),
            Argument::Option(name) => match name.as_str() {
                "-b" => create = Some(arguments.value(&name)?),
                "--detach" => detach = true,
                "-q" | "--quiet" => quiet = true,
                "--no-progress" | "--no-guess" => {}
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, value) if name == "-b" => create = Some(value),
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    if let Some(branch) = create {
        return switch_to(repository, words.first().map_or("HEAD", String::as_str), Some(&branch), quiet, out);
    }
    let mut words = words.into_iter();
    let first = words.next();
    if names.is_empty()
        && words.len() == 0
        && let Some(target) = &first
    {
        let known = repository.refs.resolve(format!("refs/heads/{target}").as_str().into())?.is_some()
            || matches!(revision::find(repository, target), Ok(Some(_)));
        if known {
            if detach {
                return Err(Fault::unsupported(format_args!(
                    "a detached HEAD; make a branch: `git switch -c NAME {target}`"
                )));
            }
            return switch_to(repository, target, None, quiet, out);
        }
    }
    let tree = match &first {
        Some(target) if arguments.separated() || matches!(revision::find(repository, target), Ok(Some(_))) => {
            Some(revision::tree_of(repository, target)?)
        }
        Some(path) => {
            names.insert(0, path.clone());
            None
        }
        None => None,
    };
    names.extend(words);
    if names.is_empty() {
        return match first {
            Some(path) => Err(Fault::error(format_args!("pathspec '{path}' did not match any file(s) known to git"))),
            None => Err(Fault::unsupported("`git checkout` without a branch or a path")),
        };
    }
    let paths = Pathspec::parse(repository, &names)?;
    let count = bring_back(repository, tree, &paths, tree.is_some(), true)?;
    let from = match tree {
        Some(tree) => Short::new(repository).of(&tree)?,
        None => "the index".to_owned(),
    };
    out.warn(&format!("Updated {count} path{} from {from}", if count == 1 { "" } else { "s" }));
    Ok(0)
}

/// Moves `HEAD` to a branch or a commit, and with it index and working tree where they differ.
pub(in super::super) fn switch_to(
    repository: &Repository,
    target: &str,
    create: Option<&str>,
    quiet: bool,
    out: &mut Output,
) -> Result<i32> {
    let head = repository.refs.head()?;
    let full = BString::from(format!("refs/heads/{}", create.unwrap_or(target)));
    let exists = repository.refs.resolve(full.as_bstr())?;
    if let Some(name) = create {
        if gix_validate::reference::branch_name(full.as_bstr()).is_err() || name.starts_with('-') {
            return Err(Fault::fatal(format_args!("'{name}' is not a valid branch name")));
        }
        if exists.is_some() {
            return Err(Fault::fatal(format_args!("a branch named '{name}' already exists")));
        }
        if head.id.is_none() && target == "HEAD" {
            repository.refs.set_head(full.as_bstr())?;
            out.warn(&format!("Switched to a new branch '{name}'"));
            return Ok(0);
        }
    }
    let id = revision::commit(repository, target)?;
    let to_branch = create.is_some() || exists.is_some();
    if !to_branch {
        return Err(Fault::unsupported(format_args!("a detached HEAD; make a branch: `git switch -c NAME {target}`")));
    }
    let tree = Commit::read(repository, &id)?.tree;
    if Some(id) != head.id {
        move_files(repository, tree)?;
    }
    // A branch at the same place keeps the files as they are, and nothing is told of them.
    if !quiet && (create.is_none() || target != "HEAD") {
        for change in
            diff::since(repository, Some(tree), Newer::Worktree(&repository.index()?), &Pathspec::all(repository)?)?
        {
            out.put(format!("{}\t{}\n", change.letter(), quote::name(change.path())))?;
        }
    }
    let old = head.short().map_or_else(|| head.id.map_or_else(String::new, |id| id.to_string()), ToString::to_string);
    let who = Signature::committer(repository)?.line();
    if let Some(name) = create {
        repository.refs.update(full.as_bstr(), id, None)?;
        let note = format!("branch: Created from {target}");
        repository.refs.note(full.as_bstr(), (None, id), who.as_bstr(), note.as_str().into())?;
        repository.refs.set_head(full.as_bstr())?;
        out.warn(&format!("Switched to a new branch '{name}'"));
    } else if head.branch.as_ref() == Some(&full) {
        out.warn(&format!("Already on '{target}'"));
    } else {
        repository.refs.set_head(full.as_bstr())?;
        out.warn(&format!("Switched to branch '{target}'"));
    }
    let note = format!("checkout: moving from {old} to {}", create.unwrap_or(target));
    repository.refs.note("HEAD".into(), (head.id, id), who.as_bstr(), note.as_str().into())?;
    Ok(0)
}

/// Changes the files that differ between `HEAD` and a tree. Nothing is done if one of them was changed here.
fn move_files(repository: &Repository, tree: ObjectId) -> Result<()> {
    let mut index = repository.index()?;
    let changes = diff::trees(repository, head_tree(repository)?, Some(tree), &Pathspec::all(repository)?)?;
    let mut in_the_way: Vec<String> = Vec::new();
    for change in &changes {
        let path = change.path();
        crate::repository::check_path(path)?;
        let kept = match (index.get(path), &change.old) {
            (Some(entry), Some(old)) => {
                entry.id == old.id
                    && entry.mode == old.mode
                    && worktree::compare(repository, &index, entry)? == worktree::Change::Same
            }
            (None, None) => fs::symlink_metadata(repository.place(path)?).is_err(),
            _ => false,
        };
        if !kept {
            in_the_way.push(format!("\t{}", quote::name(path)));
        }
    }
    if !in_the_way.is_empty() {
        return Err(Fault::error(format_args!(
            "Your local changes to the following files would be overwritten by checkout:\n{}\nPlease commit your changes or stash \
             them before you switch branches.\nAborting",
            in_the_way.join("\n")
        )));
    }
    let (gone, new): (Vec<&Change>, Vec<&Change>) = changes.iter().partition(|change| change.new.is_none());
    for change in gone {
        worktree::remove(repository, change.path())?;
        index.remove(change.path());
    }
    for change in new {
        let Some(side) = &change.new else { continue };
        let stat = write_out(repository, side.path.as_bstr(), side.mode, side.id)?;
        index.put(Entry::new(side.path.clone(), side.mode, side.id, stat))?;
    }
    index.settle(repository)?;
    index.write()
}
