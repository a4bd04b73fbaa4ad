//! `git add`.

use std::fs;

use bstr::{BStr, BString, ByteSlice as _};
use gix_object::Kind;

use crate::error::{Fault, Result};
use crate::ignore::{Ignored, filter_of};
use crate::index::{Entry, Index, mode, stat};
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::quote;
use crate::repository::Repository;
use crate::worktree::{self, Untracked};

#[derive(Debug, Default)]
struct Options {
    paths: Vec<String>,
    all: bool,
    update: bool,
    force: bool,
    dry: bool,
    verbose: bool,
    intent: bool,
    refresh: bool,
    /// `--chmod`: the permission to execute that the files get.
    executable: Option<bool>,
}

fn parse(arguments: &[String]) -> Result<Options> {
    let mut options = Options::default();
    let mut arguments = Arguments::new("add", arguments);
    while let Some(argument) = arguments.next("Aufnv") {
        match argument {
            Argument::Word(path) | Argument::Path(path) => options.paths.push(path),
            Argument::Option(name) => match name.as_str() {
                "-A" | "--all" | "--no-ignore-removal" => options.all = true,
                "-u" | "--update" => options.update = true,
                "-f" | "--force" => options.force = true,
                "-n" | "--dry-run" => options.dry = true,
                "-v" | "--verbose" => options.verbose = true,
                "-N" | "--intent-to-add" => options.intent = true,
                "--refresh" => options.refresh = true,
                "--ignore-errors" | "--no-warn-embedded-repo" => {}
                "-p" | "--patch" | "-i" | "--interactive" | "-e" | "--edit" => {
                    return Err(Fault::unsupported(format_args!("`git add {name}`: nobody could answer it")));
                }
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, value) => match (name.as_str(), value.as_str()) {
                ("--chmod", "+x") => options.executable = Some(true),
                ("--chmod", "-x") => options.executable = Some(false),
                _ => return Err(arguments.unknown(&format!("{name}={value}"))),
            },
        }
    }
    Ok(options)
}

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let options = parse(arguments)?;
    if options.paths.is_empty() && !options.all && !options.update {
        out.warn("Nothing specified, nothing added.\nhint: Maybe you wanted to say 'git add .'?\nhint: Disable this message with \"git config set advice.addEmptyPathspec false\"");
        return Ok(0);
    }
    let mut index = repository.index()?;
    let paths = Pathspec::parse(repository, &options.paths)?;
    let untracked = if options.update || options.refresh {
        Vec::new()
    } else {
        worktree::unknown(repository, &index, &paths, Untracked::All)?.untracked
    };
    let mut code = 0;
    let mut forced = Vec::new();
    if !options.update {
        let (more, ignored) = named(repository, &index, &paths, &untracked, options.force)?;
        forced = more;
        if !ignored.is_empty() {
            let list: Vec<&str> = ignored.iter().map(String::as_str).collect();
            out.warn(&format!(
                "The following paths are ignored by one of your .gitignore files:\n{}\nhint: Use -f if you really want to add \
                 them.\nhint: Disable this message with \"git config set advice.addIgnoredFile false\"",
                list.join("\n")
            ));
            code = 1;
        }
        let known: Vec<&BStr> = index.entries().iter().map(|entry| entry.path.as_bstr()).collect();
        let all = known
            .into_iter()
            .chain(untracked.iter().map(|path| path.as_bstr()))
            .chain(forced.iter().map(|path| path.as_bstr()));
        if let Some(missing) = paths.unmatched(all).filter(|missing| !there(repository, &paths, missing)) {
            return Err(Fault::fatal(format_args!("pathspec '{missing}' did not match any files")));
        }
    }
    let changes = tracked(repository, &index, &paths)?;
    let say = |out: &mut Output, verb: &str, path: &BStr| match options.verbose || options.dry {
        true => out.put(format!("{verb} '{}'\n", quote::name(path))),
        false => Ok(()),
    };
    for (path, gone) in changes {
        say(out, if gone { "remove" } else { "add" }, path.as_bstr())?;
        match gone {
            _ if options.dry => {}
            true => index.remove(path.as_bstr()),
            false => put(repository, &mut index, path, options.executable)?,
        }
    }
    for path in untracked.into_iter().chain(forced) {
        if path.ends_with(b"/") {
            return Err(Fault::unsupported(format_args!("'{path}' is a repository of its own: a submodule")));
        }
        say(out, "add", path.as_bstr())?;
        if options.intent && !options.dry {
            let id = repository.objects.write(Kind::Blob, b"")?;
            index.put(Entry::intended(path, mode::FILE, id))?;
        } else if !options.dry {
            put(repository, &mut index, path, options.executable)?;
        }
    }
    if let Some(executable) = options.executable {
        change_modes(&mut index, &paths, executable);
    }
    if !options.dry {
        index.settle(repository)?;
        index.write()?;
    }
    Ok(code)
}

/// Whether a path that matched nothing is there nevertheless: ignored, or an empty directory.
fn there(repository: &Repository, paths: &Pathspec, text: &str) -> bool {
    let named = paths.named();
    let path = named.iter().find(|(given, _)| *given == text).map(|(_, path)| path.as_bstr());
    path.and_then(|path| repository.place(path).ok()).is_some_and(|place| fs::symlink_metadata(place).is_ok())
}

/// Tracked files that differ from their entries, with whether each is gone.
pub(super) fn tracked(repository: &Repository, index: &Index, paths: &Pathspec) -> Result<Vec<(BString, bool)>> {
    let mut changed: Vec<(BString, bool)> = Vec::new();
    for entry in index.entries() {
        if !paths.matches(entry.path.as_bstr(), false) || changed.last().is_some_and(|(path, _)| *path == entry.path) {
            continue;
        }
        let gone = match worktree::compare(repository, index, entry)? {
            worktree::Change::Deleted => true,
            // A path in conflict is resolved by the file as it is now.
            worktree::Change::Same if entry.stage == 0 => continue,
            _ => false,
        };
        changed.push((entry.path.clone(), gone));
    }
    Ok(changed)
}

/// Files that are named and would not be found by a walk, because they are ignored: those to add, and those refused.
fn named(
    repository: &Repository,
    index: &Index,
    paths: &Pathspec,
    untracked: &[BString],
    force: bool,
) -> Result<(Vec<BString>, Vec<String>)> {
    let (mut more, mut refused) = (Vec::new(), Vec::new());
    for (text, path) in paths.named() {
        let Ok(place) = repository.place(path.as_bstr()) else { continue };
        let Ok(metadata) = fs::symlink_metadata(place) else { continue };
        let known = index.get(path.as_bstr()).is_some() || index.has_below(path.as_bstr());
        if known || untracked.contains(&path) {
            continue;
        }
        if repository.beyond_link(path.as_bstr()) {
            return Err(Fault::fatal(format_args!("pathspec '{text}' is beyond a symbolic link")));
        }
        if !Ignored::covers(repository, path.as_bstr(), metadata.is_dir())? {
            continue;
        }
        if !force {
            refused.push(path.to_string());
        } else if metadata.is_dir() {
            return Err(Fault::unsupported(format_args!("adding the ignored directory '{text}'; name its files")));
        } else {
            more.push(path);
        }
    }
    Ok((more, refused))
}

/// Stores a file and puts it into the index.
pub(super) fn put(repository: &Repository, index: &mut Index, path: BString, executable: Option<bool>) -> Result<()> {
    let Some(found) = worktree::look(repository, path.as_bstr())? else {
        index.remove(path.as_bstr());
        return Ok(());
    };
    if found.mode == mode::SUBMODULE {
        return match index.get(path.as_bstr()) {
            Some(entry) if entry.mode == mode::SUBMODULE => Ok(()),
            _ => Err(Fault::unsupported(format_args!("'{path}' is a repository of its own: a submodule"))),
        };
    }
    if let Some(filter) = filter_of(repository, path.as_bstr())? {
        return Err(Fault::unsupported(format_args!(
            "'{path}' has the filter `{filter}` (.gitattributes), a program that would have to change it first"
        )));
    }
    let known = index.get(path.as_bstr()).map(|entry| entry.mode);
    let mut mode = worktree::mode_of(&found, known);
    if let (Some(executable), true) = (executable, mode::is_file(mode)) {
        mode = if executable { mode::EXECUTABLE } else { mode::FILE };
    }
    let place = repository.place(path.as_bstr())?;
    let id = if mode == mode::LINK {
        repository.objects.write(Kind::Blob, &worktree::link_target(&place, path.as_bstr())?)?
    } else {
        let id = worktree::hash_file(repository, path.as_bstr(), &found)?;
        repository.objects.write_file(&place, found.bytes, &id)?;
        id
    };
    index.put(Entry::new(path, mode, id, stat(found.bytes, found.modified)))
}

fn change_modes(index: &mut Index, paths: &Pathspec, executable: bool) {
    for entry in index.entries_mut() {
        if mode::is_file(entry.mode) && paths.matches(entry.path.as_bstr(), false) {
            entry.mode = if executable { mode::EXECUTABLE } else { mode::FILE };
        }
    }
}
