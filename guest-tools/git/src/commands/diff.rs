//! `git diff`.

use bstr::ByteSlice as _;
use gix_hash::ObjectId;
use gix_object::Kind;

use crate::diff::{self, Change, Format, Newer, Options, Side};
use crate::error::{Fault, Result};
use crate::history::{Commit, merge_base};
use crate::index::mode;
use crate::options::{Argument, Arguments};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::revision;

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let mut options = Options::default();
    let (mut revisions, mut paths) = (Vec::new(), Vec::new());
    let (mut cached, mut from_base) = (false, false);
    let mut arguments = Arguments::new("diff", arguments);
    while let Some(argument) = arguments.next("") {
        if options.take(&argument, &mut arguments)? {
            continue;
        }
        match argument {
            Argument::Path(path) => paths.push(path),
            Argument::Word(word) => {
                let separated = arguments.has_separator();
                if paths.is_empty() && (separated || is_revision(repository, &word)?) {
                    revisions.push(word);
                } else if separated || exists(repository, &word) {
                    paths.push(word);
                } else {
                    return Err(revision::unknown(&word));
                }
            }
            Argument::Option(name) => match name.as_str() {
                "--cached" | "--staged" => cached = true,
                "--merge-base" => from_base = true,
                "--no-index" => {
                    return Err(Fault::unsupported("`git diff --no-index`; the command `diff` compares files"));
                }
                _ => return Err(arguments.unknown(&name)),
            },
            Argument::Valued(name, _) => return Err(arguments.unknown(&name)),
        }
    }
    if options.formats.is_empty() && !options.nothing {
        options.formats.push(Format::Patch);
    }
    let paths = Pathspec::parse(repository, &paths)?;
    let changes = compare(repository, &revisions, cached, from_base, &paths)?;
    let any = diff::show(repository, changes, &options, out)?;
    Ok(i32::from(options.exit_code && any))
}

/// Whether a word names something in the repository, alone or as a range.
fn is_revision(repository: &Repository, word: &str) -> Result<bool> {
    let known = |text: &str| -> Result<bool> {
        Ok(text.is_empty() || revision::find(repository, text).unwrap_or(None).is_some())
    };
    match range(word) {
        Some((from, to, _)) => Ok(known(from)? && known(to)?),
        None => known(word.strip_prefix('^').unwrap_or(word)),
    }
}

/// Whether a word is a path in the working tree, or a pattern for one.
pub(super) fn exists(repository: &Repository, word: &str) -> bool {
    if word.starts_with(':') || word.contains(['*', '?', '[']) {
        return true;
    }
    let Ok(prefix) = repository.prefix.to_path() else { return false };
    let place = match std::path::Path::new(word).strip_prefix(&repository.shown) {
        Ok(below) => repository.worktree.join(below),
        Err(_) => repository.worktree.join(prefix).join(word),
    };
    std::fs::symlink_metadata(place).is_ok()
}

/// `A..B` and `A...B`: the two sides, and whether there are three dots.
pub(super) fn range(word: &str) -> Option<(&str, &str, bool)> {
    if word.starts_with("../") || word == ".." {
        return None;
    }
    match word.split_once("...") {
        Some((from, to)) => Some((from, to, true)),
        None => word.split_once("..").map(|(from, to)| (from, to, false)),
    }
}

fn compare(
    repository: &Repository,
    revisions: &[String],
    cached: bool,
    from_base: bool,
    paths: &Pathspec,
) -> Result<Vec<Change>> {
    let head = |text: &str| if text.is_empty() { "HEAD".to_owned() } else { text.to_owned() };
    let base = |one: &str, other: &str| -> Result<ObjectId> {
        let (one_id, other_id) = (revision::commit(repository, one)?, revision::commit(repository, other)?);
        let base = merge_base(repository, one_id, other_id)?;
        base.ok_or_else(|| Fault::fatal(format_args!("{one}...{other}: no merge base")))
    };
    let tree_of_commit = |id: ObjectId| -> Result<ObjectId> { Ok(Commit::read(repository, &id)?.tree) };
    match revisions {
        [] if cached => {
            let tree = match repository.refs.head()?.id {
                Some(id) => Some(tree_of_commit(id)?),
                None => None,
            };
            diff::since(repository, tree, Newer::Index(&repository.index()?), paths)
        }
        [] => diff::unstaged(repository, &repository.index()?, paths),
        [one] => {
            if let Some((from, to, three)) = range(one) {
                let (from, to) = (head(from), head(to));
                let old =
                    if three { tree_of_commit(base(&from, &to)?)? } else { revision::tree_of(repository, &from)? };
                let new = revision::tree_of(repository, &to)?;
                return diff::trees(repository, Some(old), Some(new), paths);
            }
            let tree =
                if from_base { tree_of_commit(base(one, "HEAD")?)? } else { revision::tree_of(repository, one)? };
            if cached {
                diff::since(repository, Some(tree), Newer::Index(&repository.index()?), paths)
            } else {
                diff::since(repository, Some(tree), Newer::Worktree(&repository.index()?), paths)
            }
        }
        [one, other] => {
            if let Some(changes) = blobs(repository, one, other)? {
                return Ok(changes);
            }
            let old = if from_base { tree_of_commit(base(one, other)?)? } else { revision::tree_of(repository, one)? };
            diff::trees(repository, Some(old), Some(revision::tree_of(repository, other)?), paths)
        }
        _ => Err(Fault::unsupported("the difference of more than two revisions")),
    }
}

/// Two files of the repository (`REV:PATH`).
fn blobs(repository: &Repository, one: &str, other: &str) -> Result<Option<Vec<Change>>> {
    let side = |text: &str| -> Result<Option<Side>> {
        let id = revision::resolve(repository, text)?;
        let header = repository.objects.header(&id)?.ok_or_else(|| repository.objects.missing(&id))?;
        let path = revision::split_path(text).map_or(text, |(_, path)| path);
        let side = Side { path: path.into(), mode: mode::FILE, id, in_worktree: false };
        Ok((header.kind == Kind::Blob).then_some(side))
    };
    match (side(one)?, side(other)?) {
        (Some(old), Some(new)) if old.id == new.id => Ok(Some(Vec::new())),
        (Some(old), Some(new)) => {
            Ok(Some(vec![Change { old: Some(old), new: Some(new), similarity: None, conflict: None }]))
        }
        _ => Ok(None),
    }
}
