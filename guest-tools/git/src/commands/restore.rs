//! `git restore`, `git checkout -- PATH` and `git reset`: files and entries back to a former state.

mod checkout;

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::Kind;

use crate::describe::Short;
use crate::diff;
use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::ident::Signature;
use crate::index::{Entry, Index, mode};
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::{quote, revision, tree, worktree};

pub(super) use checkout::{checkout, switch_to};

/// Runs `git restore`, and prints its result.
pub(super) fn restore(repository: &Repository, arguments: &[String], _out: &mut Output) -> Result<i32> {
    let (mut staged, mut in_worktree, mut source) = (false, false, None);
    let mut names = Vec::new();
    let mut arguments = Arguments::new("restore", arguments);
    while let Some(argument) = arguments.next("SWq") {
        match argument {
            Argument::Word(path) | Argument::Path(path) => names.push(path),
            Argument::Option(name) => match name.as_str() {
                "-S" | "--staged" => staged = true,
                "-W" | "--worktree" => in_worktree = true,
                "-s" | "--source" => source = Some(arguments.value(&name)?),
                "-q" | "--quiet" | "--no-progress" => {}
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, value) => match name.as_str() {
                "-s" | "--source" => source = Some(value),
                _ => return Err(arguments.unknown(&name)),
            },
        }
    }
    if names.is_empty() {
        return Err(Fault::fatal("you must specify path(s) to restore"));
    }
    let tree = match (&source, staged) {
        (Some(source), _) => Some(revision::tree_of(repository, source)?),
        (None, true) => Some(head_tree(repository)?.unwrap_or(ObjectId::empty_tree(crate::objects::HASH))),
        (None, false) => None,
    };
    let paths = Pathspec::parse(repository, &names)?;
    bring_back(repository, tree, &paths, staged, in_worktree || !staged)?;
    Ok(0)
}

pub(super) fn head_tree(repository: &Repository) -> Result<Option<ObjectId>> {
    match repository.refs.head()?.id {
        Some(id) => Ok(Some(Commit::read(repository, &id)?.tree)),
        None => Ok(None),
    }
}

/// Brings paths back from a tree, or from the index. Returns how many.
fn bring_back(
    repository: &Repository,
    from: Option<ObjectId>,
    paths: &Pathspec,
    staged: bool,
    in_worktree: bool,
) -> Result<usize> {
    let mut index = repository.index()?;
    let source = match from {
        Some(tree) => tree::to_entries(tree::files(&repository.objects, &tree)?, &index)?,
        None => index.entries().to_vec(),
    };
    let chosen: Vec<&Entry> = source.iter().filter(|entry| paths.matches(entry.path.as_bstr(), false)).collect();
    let names = source.iter().chain(index.entries()).map(|entry| entry.path.as_bstr());
    if let Some(missing) = paths.unmatched(names) {
        return Err(Fault::error(format_args!("pathspec '{missing}' did not match any file(s) known to git")));
    }
    if let Some(conflict) = chosen.iter().find(|entry| entry.stage != 0) {
        return Err(Fault::error(format_args!("path '{}' is unmerged", quote::name(conflict.path.as_bstr()))));
    }
    // Tracked files that the source does not have are taken away.
    let gone: Vec<BString> = match from {
        Some(_) => index
            .entries()
            .iter()
            .filter(|entry| paths.matches(entry.path.as_bstr(), false))
            .filter(|entry| source.binary_search_by(|other| other.path.cmp(&entry.path)).is_err())
            .map(|entry| entry.path.clone())
            .collect(),
        None => Vec::new(),
    };
    let mut done: usize = 0;
    let mut updated = Vec::new();
    for entry in chosen {
        let mut entry = entry.clone();
        if in_worktree {
            let same = worktree::look(repository, entry.path.as_bstr())?
                .is_some_and(|found| found.mode != mode::SUBMODULE && is_as(repository, &index, &entry, &found));
            if !same {
                entry.stat = write_out(repository, entry.path.as_bstr(), entry.mode, entry.id)?;
                done = done.saturating_add(1);
            }
        }
        updated.push(entry);
    }
    for path in &gone {
        if in_worktree {
            worktree::remove(repository, path.as_bstr())?;
        }
    }
    for entry in updated {
        let known = index.get(entry.path.as_bstr());
        let same = known.is_some_and(|known| known.id == entry.id && known.mode == entry.mode);
        if staged || same {
            index.put(entry)?;
        }
    }
    if staged {
        gone.iter().for_each(|path| index.remove(path.as_bstr()));
    }
    index.settle(repository)?;
    index.write()?;
    Ok(done)
}

fn is_as(repository: &Repository, index: &Index, entry: &Entry, found: &worktree::Found) -> bool {
    let known = index.get(entry.path.as_bstr());
    let mode = worktree::mode_of(found, Some(entry.mode));
    let fresh = known.is_some_and(|known| known.id == entry.id && worktree::fresh(index, known, found));
    mode == entry.mode
        && (fresh || worktree::hash_file(repository, entry.path.as_bstr(), found).is_ok_and(|id| id == entry.id))
}

/// Writes a file of the repository into the working tree.
fn write_out(repository: &Repository, path: &BStr, mode: u32, id: ObjectId) -> Result<gix_index::entry::Stat> {
    if mode == mode::SUBMODULE {
        return Ok(Default::default());
    }
    if let Some(filter) = crate::ignore::filter_of(repository, path)? {
        return Err(Fault::unsupported(format_args!("'{path}' has the filter `{filter}` (.gitattributes), a program")));
    }
    let data = repository.objects.read_as(&id, Kind::Blob)?;
    worktree::write(repository, path, mode, &data)
}

/// Runs `git reset`, and prints its result.
pub(super) fn reset(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut how, mut quiet) = ("--mixed".to_owned(), false);
    let mut words = Vec::new();
    let mut names = Vec::new();
    let mut arguments = Arguments::new("reset", arguments);
    while let Some(argument) = arguments.next("q") {
        match argument {
            Argument::Path(path) => names.push(path),
            Argument::Word(word) if arguments.has_separator() => words.push(word),
            Argument::Word(word) => {
                let known =
                    names.is_empty() && words.is_empty() && matches!(revision::find(repository, &word), Ok(Some(_)));
                if known { words.push(word) } else { names.push(word) }
            }
            Argument::Option(name) => match name.as_str() {
                "--soft" | "--mixed" | "--hard" => how = name,
                "-q" | "--quiet" | "--no-refresh" => quiet = true,
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    let target = words.first().map_or("HEAD", String::as_str);
    let head = repository.refs.head()?;
    if !names.is_empty() {
        if how != "--mixed" {
            return Err(Fault::fatal(format_args!("Cannot do {} reset with paths.", how.trim_start_matches('-'))));
        }
        let tree = match (head.id, target) {
            (None, "HEAD") => ObjectId::empty_tree(crate::objects::HASH),
            _ => revision::tree_of(repository, target)?,
        };
        let paths = Pathspec::parse(repository, &names)?;
        bring_back(repository, Some(tree), &paths, true, false)?;
        return tell_unstaged(repository, quiet, out);
    }
    let (id, tree) = match (head.id, target) {
        (None, "HEAD") => (None, ObjectId::empty_tree(crate::objects::HASH)),
        _ => {
            let id = revision::commit(repository, target)?;
            (Some(id), Commit::read(repository, &id)?.tree)
        }
    };
    match how.as_str() {
        "--hard" => {
            bring_back(repository, Some(tree), &Pathspec::all(repository)?, true, true)?;
        }
        "--mixed" => {
            bring_back(repository, Some(tree), &Pathspec::all(repository)?, true, false)?;
        }
        _ => {}
    }
    if let Some(id) = id {
        let name = head.branch.clone().unwrap_or_else(|| "HEAD".into());
        let who = Signature::committer(repository)?.line();
        let note = BString::from(format!("reset: moving to {target}"));
        repository.refs.note("HEAD".into(), (head.id, id), who.as_bstr(), note.as_bstr())?;
        if Some(id) != head.id {
            repository.refs.update(name.as_bstr(), id, head.id)?;
        }
        if Some(id) != head.id && head.branch.is_some() {
            repository.refs.note(name.as_bstr(), (head.id, id), who.as_bstr(), note.as_bstr())?;
        }
    }
    match (how.as_str(), id) {
        ("--hard", Some(id)) if !quiet => {
            let subject = Commit::read(repository, &id)?.subject();
            out.put(format!("HEAD is now at {} {subject}\n", Short::new(repository).of(&id)?))?;
            Ok(0)
        }
        ("--mixed", _) => tell_unstaged(repository, quiet, out),
        _ => Ok(0),
    }
}

fn tell_unstaged(repository: &Repository, quiet: bool, out: &mut Output) -> Result<i32> {
    if quiet {
        return Ok(0);
    }
    let changes = diff::unstaged(repository, &repository.index()?, &Pathspec::all(repository)?)?;
    if !changes.is_empty() {
        out.put("Unstaged changes after reset:\n")?;
    }
    for change in changes {
        out.put(format!("{}\t{}\n", change.letter(), quote::name(change.path())))?;
    }
    Ok(0)
}
