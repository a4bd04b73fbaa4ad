//! `git log`.

mod options;

use bstr::ByteSlice as _;
use gix_hash::ObjectId;

use super::pretty::Printer;
use crate::diff::{self, Format};
use crate::error::{Fault, Result};
use crate::history::{Commit, Walk, interesting_parents, merge_base};
use crate::output::Output;
use crate::pathspec::Pathspec;
use crate::repository::Repository;
use crate::revision;

pub(super) use options::LogOptions;

/// Runs the command, and prints its result.
pub(super) fn run(repository: &Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let options = LogOptions::parse(repository, "log", arguments)?;
    let paths = Pathspec::parse(repository, &options.paths)?;
    let (shown, hidden) = starts(repository, &options)?;
    let printer = options.printer(repository)?;
    let mut walk = Walk::new(repository, &shown, &hidden, options.first_parent)?;
    let mut chosen = Vec::new();
    let (mut skipped, mut printed) = (0_usize, 0_usize);
    while let Some(commit) = walk.next()? {
        if options.since.is_some_and(|since| commit.committer.time.seconds < since) {
            continue;
        }
        let (changes, parents) = interesting_parents(repository, &commit, &paths)?;
        walk.follow(&parents)?;
        if !changes || !options.wants(&printer, &commit) {
            continue;
        }
        if skipped < options.skip {
            skipped = skipped.saturating_add(1);
            continue;
        }
        if options.most.is_some_and(|most| printed >= most) {
            break;
        }
        if options.reverse {
            chosen.push(commit);
        } else {
            print(&printer, &commit, &options, &paths, printed == 0, out)?;
        }
        printed = printed.saturating_add(1);
        if options.most.is_some_and(|most| printed >= most) {
            break;
        }
    }
    for (place, commit) in chosen.iter().rev().enumerate() {
        print(&printer, commit, &options, &paths, place == 0, out)?;
    }
    Ok(0)
}

/// Where the walk begins, and which commits it leaves out.
fn starts(repository: &Repository, options: &LogOptions) -> Result<(Vec<ObjectId>, Vec<ObjectId>)> {
    let (mut shown, mut hidden) = (Vec::new(), Vec::new());
    let head = |text: &str| if text.is_empty() { "HEAD".to_owned() } else { text.to_owned() };
    for text in &options.revisions {
        if let Some((from, to, three)) = super::diff::range(text) {
            let (from, to) = (revision::commit(repository, &head(from))?, revision::commit(repository, &head(to))?);
            shown.push(to);
            if three {
                shown.push(from);
                hidden.extend(merge_base(repository, from, to)?);
            } else {
                hidden.push(from);
            }
        } else if let Some(text) = text.strip_prefix('^') {
            hidden.push(revision::commit(repository, text)?);
        } else {
            shown.push(revision::commit(repository, text)?);
        }
    }
    for prefix in &options.references {
        for id in repository.refs.below(prefix)?.into_values() {
            // An object that is no commit in the end has no history.
            if let Ok(id) = revision::peel_to(repository, id, gix_object::Kind::Commit) {
                shown.push(id);
            }
        }
    }
    let from_head = options.revisions.is_empty() && options.references.is_empty();
    if from_head || options.references.iter().any(|prefix| prefix == "refs/") {
        let here = repository.refs.head()?;
        match (here.id, here.short()) {
            (Some(id), _) => shown.push(id),
            (None, Some(branch)) if from_head => {
                return Err(Fault::fatal(format_args!("your current branch '{branch}' does not have any commits yet")));
            }
            _ => {}
        }
    }
    Ok((shown, hidden))
}

/// Prints one commit with its differences.
pub(super) fn print(
    printer: &Printer<'_>,
    commit: &Commit,
    options: &LogOptions,
    paths: &Pathspec,
    first: bool,
    out: &mut Output,
) -> Result<()> {
    let repository = printer.repository;
    if !first && !printer.pretty.ends_itself() {
        out.put("\n")?;
    }
    let text = printer.print(commit)?;
    out.put(&text)?;
    if options.diff.formats.is_empty() {
        return Ok(());
    }
    let old = match commit.parents.as_slice() {
        [] => None,
        [parent] => Some(Commit::read(repository, parent)?.tree),
        [parent, ..] if options.first_parent_diff => Some(Commit::read(repository, parent)?.tree),
        _ => return merge(printer, commit, options, paths, out),
    };
    let changes = diff::trees(repository, old, Some(commit.tree), paths)?;
    if changes.is_empty() {
        return Ok(());
    }
    let one_line = matches!(printer.pretty, super::pretty::Pretty::Oneline | super::pretty::Pretty::Reference);
    if options.diff.has(Format::Patch) && options.diff.has(Format::Stat) && !one_line && !text.is_empty() {
        out.put("---")?;
    }
    if !one_line && !text.is_empty() {
        out.put("\n")?;
    }
    diff::show(repository, changes, &options.diff, out)?;
    Ok(())
}

/// A merge has no difference in a log. `git show` combines those to its parents: files that differ from all of them are
/// named here, because a combined patch is not made.
fn merge(
    printer: &Printer<'_>,
    commit: &Commit,
    options: &LogOptions,
    paths: &Pathspec,
    out: &mut Output,
) -> Result<()> {
    if !options.combined {
        return Ok(());
    }
    let repository = printer.repository;
    let mut common: Option<Vec<bstr::BString>> = None;
    for parent in &commit.parents {
        let tree = Commit::read(repository, parent)?.tree;
        let changes = diff::trees(repository, Some(tree), Some(commit.tree), paths)?;
        let names: Vec<bstr::BString> = changes.iter().map(|change| change.path().to_owned()).collect();
        common = Some(match common {
            None => names,
            Some(known) => known.into_iter().filter(|name| names.contains(name)).collect(),
        });
    }
    let names = common.unwrap_or_default();
    if options.diff.has(Format::NameOnly) && !names.is_empty() {
        out.put("\n")?;
        for name in &names {
            out.put(format!("{}\n", crate::quote::name(name.as_bstr())))?;
        }
    } else if !names.is_empty() {
        let list: Vec<String> = names.iter().map(|name| crate::quote::name(name.as_bstr()).to_string()).collect();
        out.warn(&format!(
            "note: the combined patch of a merge is not made here; it differs from all parents in {}; see `git diff {}^1 {}`",
            list.join(", "),
            commit.id.to_hex_with_len(7),
            commit.id.to_hex_with_len(7)
        ));
    }
    Ok(())
}
