//! `git branch`, `git switch` and `git tag`.

use bstr::{BString, ByteSlice as _};

use super::restore::switch_to;
use super::status::detached;
use super::tracking::{short_name, tracking};
use crate::describe::Short;
use crate::error::{Fault, Result};
use crate::history::{Commit, ahead_behind};
use crate::ident::Signature;
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::refs::Head;
use crate::repository::Repository;
use crate::revision;

/// Runs `git branch`, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut words, mut delete, mut force, mut verbose) = (Vec::new(), false, false, false);
    let mut kinds = vec!["refs/heads/"];
    let mut arguments = Arguments::new("branch", arguments);
    while let Some(argument) = arguments.next("v") {
        match argument {
            Argument::Word(word) | Argument::Path(word) => words.push(word),
            Argument::Option(name) => match name.as_str() {
                "--show-current" => {
                    if let Some(branch) = repository.refs.head()?.short() {
                        out.put(format!("{branch}\n"))?;
                    }
                    return Ok(0);
                }
                "-a" | "--all" => kinds = vec!["refs/heads/", "refs/remotes/"],
                "-r" | "--remotes" => kinds = vec!["refs/remotes/"],
                "-v" | "--verbose" => verbose = true,
                "-d" | "--delete" => delete = true,
                "-D" => (delete, force) = (true, true),
                "-l" | "--list" | "--no-color" | "--no-column" => {}
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    match (words.as_slice(), delete) {
        ([], false) => list(repository, &kinds, verbose, out)?,
        (names, true) => names.iter().try_for_each(|name| remove(repository, name, force, out))?,
        ([name], false) => create(repository, name, "HEAD")?,
        ([name, start], false) => create(repository, name, start)?,
        _ => return Err(Fault::usage("too many arguments for `git branch`")),
    }
    Ok(0)
}

fn list(repository: &Repository, kinds: &[&str], verbose: bool, out: &mut Output) -> Result<()> {
    let head = repository.refs.head()?;
    let mut lines = Vec::new();
    if let (None, Some(id)) = (&head.branch, head.id) {
        let place = detached(repository, Some(id))?.unwrap_or_else(|| "no branch".to_owned());
        lines.push(('*', format!("({place})"), id, None));
    }
    for kind in kinds {
        for (full, id) in repository.refs.below(kind)? {
            let mark = if head.branch.as_ref() == Some(&full) { '*' } else { ' ' };
            let name = match full.strip_prefix(b"refs/remotes/") {
                Some(short) if kinds.len() > 1 => format!("remotes/{}", short.as_bstr()),
                _ => short_name(full.as_bstr()).to_string(),
            };
            let name = match repository.refs.read(full.as_bstr())? {
                Some(crate::refs::Target::Reference(to)) => format!("{name} -> {}", short_name(to.as_bstr())),
                _ => name,
            };
            lines.push((mark, name, id, Some(full)));
        }
    }
    let widest = lines.iter().map(|(_, name, _, _)| name.chars().count()).max().unwrap_or(0);
    let short = Short::new(repository);
    for (mark, name, id, full) in lines {
        if !verbose || name.contains(" -> ") {
            out.put(format!("{mark} {name}\n"))?;
            continue;
        }
        let apart = tracking(repository, &Head { branch: full, id: Some(id) })?.map(|tracking| tracking.brief());
        let apart = apart.filter(|text| !text.is_empty()).map_or(String::new(), |text| format!("[{text}] "));
        let subject = Commit::read(repository, &id)?.subject();
        out.put(format!("{mark} {name:<widest$} {} {apart}{subject}\n", short.of(&id)?))?;
    }
    Ok(())
}

fn create(repository: &Repository, name: &str, start: &str) -> Result<()> {
    let full = BString::from(format!("refs/heads/{name}"));
    if gix_validate::reference::branch_name(full.as_bstr()).is_err() || name.starts_with('-') {
        return Err(Fault::fatal(format_args!("'{name}' is not a valid branch name")));
    }
    if repository.refs.resolve(full.as_bstr())?.is_some() {
        return Err(Fault::fatal(format_args!("a branch named '{name}' already exists")));
    }
    let id = revision::commit(repository, start)?;
    repository.refs.update(full.as_bstr(), id, None)?;
    let who = Signature::committer(repository)?.line();
    let note = format!("branch: Created from {start}");
    repository.refs.note(full.as_bstr(), (None, id), who.as_bstr(), note.as_str().into())
}

fn remove(repository: &Repository, name: &str, force: bool, out: &mut Output) -> Result<()> {
    let full = BString::from(format!("refs/heads/{name}"));
    let head = repository.refs.head()?;
    let Some(id) = repository.refs.resolve(full.as_bstr())? else {
        return Err(Fault::error(format_args!("branch '{name}' not found")));
    };
    if head.branch.as_ref() == Some(&full) {
        return Err(Fault::error(format_args!(
            "cannot delete branch '{name}' used by worktree at '{}'",
            repository.shown.display()
        )));
    }
    let merged = match head.id {
        Some(here) => ahead_behind(repository, id, here)?.0 == 0,
        None => false,
    };
    if !merged && !force {
        return Err(Fault::error(format_args!(
            "the branch '{name}' is not fully merged\nhint: If you are sure you want to delete it, run 'git branch -D {name}'"
        )));
    }
    repository.refs.remove(full.as_bstr())?;
    out.put(format!("Deleted branch {name} (was {}).\n", Short::new(repository).of(&id)?))
}

/// Runs `git switch`, and prints its result.
pub(super) fn switch(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut words, mut create, mut quiet) = (Vec::new(), None, false);
    let mut arguments = Arguments::new("switch", arguments);
    while let Some(argument) = arguments.next("q") {
        match argument {
            Argument::Word(word) | Argument::Path(word) => words.push(word),
            Argument::Option(name) => match name.as_str() {
                "-c" | "--create" => create = Some(arguments.value(&name)?),
                "-q" | "--quiet" => quiet = true,
                "--no-progress" | "--no-guess" => {}
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, value) if matches!(name.as_str(), "-c" | "--create") => create = Some(value),
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    let target = match (words.first(), &create) {
        (Some(word), _) => word.as_str(),
        (None, Some(_)) => "HEAD",
        (None, None) => return Err(Fault::fatal("missing branch or commit argument")),
    };
    let full = BString::from(format!("refs/heads/{target}"));
    if create.is_none() && repository.refs.resolve(full.as_bstr())?.is_none() {
        return Err(Fault::fatal(format_args!("invalid reference: {target}")));
    }
    switch_to(repository, target, create.as_deref(), quiet, out)
}

/// Runs `git tag`: the list of tags, and light ones.
pub(super) fn tags(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let mut words = Vec::new();
    let mut arguments = Arguments::new("tag", arguments);
    while let Some(argument) = arguments.next("") {
        match argument {
            Argument::Word(word) | Argument::Path(word) => words.push(word),
            Argument::Option(name) if matches!(name.as_str(), "-l" | "--list") => {}
            Argument::Option(name) | Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    let [name, rest @ ..] = words.as_slice() else {
        for name in repository.refs.below("refs/tags/")?.keys() {
            out.put(format!("{}\n", short_name(name.as_bstr())))?;
        }
        return Ok(0);
    };
    let full = BString::from(format!("refs/tags/{name}"));
    if gix_validate::reference::name(full.as_bstr()).is_err() || name.starts_with('-') {
        return Err(Fault::fatal(format_args!("'{name}' is not a valid tag name.")));
    }
    if repository.refs.resolve(full.as_bstr())?.is_some() {
        return Err(Fault::fatal(format_args!("tag '{name}' already exists")));
    }
    let id = revision::resolve(repository, rest.first().map_or("HEAD", String::as_str))?;
    repository.refs.update(full.as_bstr(), id, None)?;
    Ok(0)
}
