//! `git ls-files`, `git ls-tree` and `git cat-file`.

use bstr::{BStr, BString, ByteSlice as _};

use crate::error::{Fault, Result};
use crate::index::mode;
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::worktree::{self, Untracked};
use crate::{quote, revision, tree};

/// Runs `git ls-files`.
pub(super) fn ls_files(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut cached, mut others, mut modified, mut deleted, mut stage, mut unmerged) =
        (false, false, false, false, false, false);
    let (mut zero, mut excludes, mut strict, mut ignored) = (false, false, false, false);
    let mut names = Vec::new();
    let mut arguments = Arguments::new("ls-files", arguments);
    while let Some(argument) = arguments.next("comdsuzi") {
        match argument {
            Argument::Word(path) | Argument::Path(path) => names.push(path),
            Argument::Option(name) => match name.as_str() {
                "-c" | "--cached" => cached = true,
                "-o" | "--others" => others = true,
                "-m" | "--modified" => modified = true,
                "-d" | "--deleted" => deleted = true,
                "-s" | "--stage" => stage = true,
                "-u" | "--unmerged" => (unmerged, stage) = (true, true),
                "-i" | "--ignored" => ignored = true,
                "-z" => zero = true,
                "--exclude-standard" => excludes = true,
                "--error-unmatch" => strict = true,
                "--full-name" => {}
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    if others && !excludes {
        return Err(Fault::unsupported("`git ls-files --others` without `--exclude-standard`; `find` lists all files"));
    }
    let index = repository.index()?;
    // Without a path, only the caller's directory is listed.
    let here = names.is_empty() && !repository.prefix.is_empty();
    if here {
        names.push(".".to_owned());
    }
    let paths = Pathspec::parse(repository, &names)?;
    if let Some(missing) = paths.unmatched(index.entries().iter().map(|entry| entry.path.as_bstr())).filter(|_| strict)
    {
        return Err(Fault::error(format_args!(
            "pathspec '{missing}' did not match any file(s) known to git\nDid you forget to 'git add'?"
        )));
    }
    let name = |path: &BStr| -> BString {
        let path = quote::relative(path, repository.prefix.as_bstr());
        if zero { path } else { quote::name(path.as_bstr()) }
    };
    let end = if zero { "\0" } else { "\n" };
    if others {
        let found = worktree::unknown(repository, &index, &paths, Untracked::All)?;
        for path in if ignored { &found.ignored } else { &found.untracked } {
            out.put(format!("{}{end}", name(path.as_bstr())))?;
        }
    }
    let listed = cached || stage || !(others || modified || deleted);
    for entry in index.entries().iter().filter(|entry| paths.matches(entry.path.as_bstr(), false)) {
        if listed && (!unmerged || entry.stage != 0) {
            if stage {
                out.put(format!("{:06o} {} {}\t", entry.mode, entry.id, entry.stage))?;
            }
            out.put(format!("{}{end}", name(entry.path.as_bstr())))?;
        }
        if modified || deleted {
            let change = worktree::compare(repository, &index, entry)?;
            let gone = change == worktree::Change::Deleted;
            if deleted && gone {
                out.put(format!("{}{end}", name(entry.path.as_bstr())))?;
            }
            if modified && (change != worktree::Change::Same || entry.stage != 0) {
                out.put(format!("{}{end}", name(entry.path.as_bstr())))?;
            }
        }
    }
    Ok(0)
}

/// Runs `git ls-tree`.
pub(super) fn ls_tree(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let (mut recursive, mut only_names, mut zero) = (false, false, false);
    let mut words = Vec::new();
    let mut arguments = Arguments::new("ls-tree", arguments);
    while let Some(argument) = arguments.next("rz") {
        match argument {
            Argument::Word(word) | Argument::Path(word) => words.push(word),
            Argument::Option(name) => match name.as_str() {
                "-r" => recursive = true,
                "-z" => zero = true,
                "--name-only" | "--name-status" => only_names = true,
                "--full-tree" | "--full-name" => {}
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    let [name, wanted @ ..] = words.as_slice() else { return Err(Fault::usage("`git ls-tree` needs a tree")) };
    let top = revision::tree_of(repository, name)?;
    let mut lines: Vec<(BString, u32, gix_hash::ObjectId)> = Vec::new();
    let mut list = |prefix: &BStr, id: &gix_hash::oid| -> Result<()> {
        if recursive {
            for file in tree::files(&repository.objects, id)? {
                lines.push(([prefix.as_bytes(), &file.path].concat().into(), file.mode, file.id));
            }
        } else {
            for child in tree::children(&repository.objects, id)? {
                lines.push(([prefix.as_bytes(), &child.name].concat().into(), child.mode, child.id));
            }
        }
        Ok(())
    };
    if wanted.is_empty() {
        list(BStr::new(""), &top)?;
    }
    let mut single = Vec::new();
    for path in wanted {
        let plain = BString::from(path.trim_end_matches('/'));
        let Some(child) = tree::lookup(&repository.objects, &top, plain.as_bstr())? else { continue };
        if child.is_tree() && (path.ends_with('/') || recursive) {
            list([plain.as_bytes(), b"/"].concat().as_bstr(), &child.id)?;
        } else {
            single.push((plain, child.mode, child.id));
        }
    }
    lines.extend(single);
    for (path, mode, id) in lines {
        let kind = match mode {
            mode::TREE => "tree",
            mode::SUBMODULE => "commit",
            _ => "blob",
        };
        if !only_names {
            out.put(format!("{mode:06o} {kind} {id}\t"))?;
        }
        out.put(if zero { path } else { quote::name(path.as_bstr()) })?;
        out.put(if zero { "\0" } else { "\n" })?;
    }
    Ok(0)
}

/// Runs `git cat-file`.
pub(super) fn cat_file(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let [what, name] = arguments else {
        return Err(Fault::usage("`git cat-file` needs `-t`, `-s`, `-e` or `-p`, and an object"));
    };
    let id = match revision::find(repository, name) {
        Ok(Some(id)) => id,
        _ => return Err(Fault::fatal(format_args!("Not a valid object name {name}"))),
    };
    let header = repository.objects.header(&id)?;
    let missing = || repository.objects.missing(&id);
    match what.as_str() {
        "-e" => return Ok(i32::from(header.is_none())),
        "-t" => out.put(format!("{}\n", header.ok_or_else(missing)?.kind))?,
        "-s" => out.put(format!("{}\n", header.ok_or_else(missing)?.bytes))?,
        "-p" if header.is_some_and(|header| header.kind == gix_object::Kind::Tree) => {
            return ls_tree(repository, std::slice::from_ref(name), out);
        }
        "-p" => out.put(repository.objects.read(&id)?.data.as_slice())?,
        "blob" | "commit" | "tag" => {
            let kind = gix_object::Kind::from_bytes(what.as_bytes()).map_err(Fault::fatal)?;
            let id = if kind == gix_object::Kind::Tag { id } else { revision::peel_to(repository, id, kind)? };
            out.put(repository.objects.read_as(&id, kind)?.as_slice())?;
        }
        other => return Err(Fault::unsupported(format_args!("`git cat-file {other}`"))),
    }
    Ok(0)
}
