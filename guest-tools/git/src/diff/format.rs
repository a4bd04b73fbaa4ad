//! Prints differences in the formats that were asked for, in git's order.

use bstr::ByteSlice as _;

use super::{Change, Format, Options, detect_renames, patch, stat};
use crate::describe::Short;
use crate::error::Result;
use crate::objects::HASH;
use crate::output::Output;
use crate::quote;
use crate::repository::Repository;

/// Finds renames among differences and prints them. Returns whether there are any.
pub(crate) fn show(repository: &Repository, changes: Vec<Change>, options: &Options, out: &mut Output) -> Result<bool> {
    let changes = prepare(repository, changes, options)?;
    if changes.is_empty() || options.quiet || options.nothing {
        return Ok(!changes.is_empty());
    }
    let short = match options.digits {
        _ if options.full_index => Short::full(repository),
        Some(digits) => Short::with_digits(repository, digits),
        None => Short::new(repository),
    };
    let mut printed = false;
    for change in &changes {
        if options.has(Format::Raw) {
            raw(change, options, &short, out)?;
        } else if options.has(Format::NameStatus) {
            out.put(status(change))?;
            names(change, options, true, out)?;
        } else if options.has(Format::NameOnly) {
            names(change, options, false, out)?;
        } else {
            break;
        }
        printed = true;
    }
    if options.has(Format::Stat) || options.has(Format::NumStat) || options.has(Format::ShortStat) {
        let counts = stat::count(repository, &changes)?;
        if options.has(Format::NumStat) {
            stat::numbers(&counts, options.zero, out)?;
        }
        if options.has(Format::Stat) {
            stat::graph(&counts, out)?;
        }
        if options.has(Format::ShortStat) {
            stat::total(&counts, out)?;
        }
        printed = true;
    }
    if options.has(Format::Summary) {
        for change in &changes {
            summary(change, out)?;
        }
        printed = true;
    }
    if options.has(Format::Patch) {
        if printed {
            out.put("\n")?;
        }
        for change in &changes {
            patch::print(repository, change, options, &short, out)?;
        }
    }
    Ok(true)
}

fn prepare(repository: &Repository, changes: Vec<Change>, options: &Options) -> Result<Vec<Change>> {
    let mut changes = changes;
    if options.reverse {
        for change in &mut changes {
            std::mem::swap(&mut change.old, &mut change.new);
        }
    }
    if let Some(least) = options.renames {
        changes = detect_renames(repository, changes, least)?;
    }
    if let Some(filter) = &options.filter {
        let wanted: Vec<char> = filter.chars().filter(char::is_ascii_uppercase).collect();
        let unwanted: Vec<char> =
            filter.chars().filter(char::is_ascii_lowercase).map(|letter| letter.to_ascii_uppercase()).collect();
        changes.retain(|change| {
            let letter = change.letter();
            (wanted.is_empty() || wanted.contains(&letter)) && !unwanted.contains(&letter)
        });
    }
    Ok(changes)
}

/// The letter of a difference: `A`, `M`, `R095`.
fn status(change: &Change) -> String {
    match change.similarity {
        Some(similarity) => format!("R{similarity:03}"),
        None => change.letter().to_string(),
    }
}

fn names(change: &Change, options: &Options, both: bool, out: &mut Output) -> Result<()> {
    let (before, end) = if options.zero { ("\0", "\0") } else { ("\t", "\n") };
    let name = |path: &bstr::BStr| if options.zero { path.to_owned() } else { quote::name(path) };
    if both {
        out.put(before)?;
        if let (Some(old), Some(_)) = (&change.old, change.similarity) {
            out.put(name(old.path.as_bstr()))?;
            out.put(before)?;
        }
    }
    out.put(name(change.path()))?;
    out.put(end)
}

fn raw(change: &Change, options: &Options, short: &Short<'_>, out: &mut Output) -> Result<()> {
    let null = gix_hash::ObjectId::null(HASH);
    let [old, new] = [&change.old, &change.new].map(|side| {
        // A content of the working tree has no name there.
        side.as_ref().map_or((0, null), |side| {
            (side.mode, if side.in_worktree && change.old.is_some() { null } else { side.id })
        })
    });
    out.put(format!(":{:06o} {:06o} {} {} {}", old.0, new.0, short.of(&old.1)?, short.of(&new.1)?, status(change)))?;
    names(change, options, true, out)
}

/// Created, deleted and renamed files, and changed modes.
pub(crate) fn summary(change: &Change, out: &mut Output) -> Result<()> {
    let name = quote::name(change.path());
    match (&change.old, &change.new) {
        _ if change.conflict.is_some() => Ok(()),
        (None, Some(new)) => out.put(format!(" create mode {:06o} {name}\n", new.mode)),
        (Some(old), None) => out.put(format!(" delete mode {:06o} {name}\n", old.mode)),
        (Some(old), Some(new)) => {
            if let Some(similarity) = change.similarity {
                let names = stat::quote_rename(old.path.as_bstr(), new.path.as_bstr());
                out.put(format!(" rename {names} ({similarity}%)\n"))?;
            }
            if old.mode == new.mode {
                return Ok(());
            }
            let name = if change.similarity.is_some() { String::new() } else { format!(" {name}") };
            out.put(format!(" mode change {:06o} => {:06o}{name}\n", old.mode, new.mode))
        }
        _ => Ok(()),
    }
}
