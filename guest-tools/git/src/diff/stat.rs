//! Numbers of changed lines: `--stat`, `--numstat`, `--shortstat`.

use bstr::{BStr, BString, ByteSlice as _};

use super::content::Content;
use super::{Change, text};
use crate::error::Result;
use crate::output::Output;
use crate::quote;
use crate::repository::Repository;

/// Columns of the whole, where there is no terminal.
const WIDTH: usize = 80;

/// The numbers of one difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Count {
    name: BString,
    /// Old and new name, for a rename.
    names: Option<(BString, BString)>,
    added: u64,
    deleted: u64,
    binary: bool,
    conflict: bool,
}

/// Counts the lines of each difference.
pub(super) fn count(repository: &Repository, changes: &[Change]) -> Result<Vec<Count>> {
    changes.iter().map(|change| count_one(repository, change)).collect()
}

fn count_one(repository: &Repository, change: &Change) -> Result<Count> {
    let names = match (&change.old, &change.new) {
        (Some(old), Some(new)) if old.path != new.path => Some((old.path.clone(), new.path.clone())),
        _ => None,
    };
    let name = match &names {
        Some((old, new)) => quote_rename(old.as_bstr(), new.as_bstr()),
        None => quote::name(change.path()),
    };
    let mut count = Count { name, names, added: 0, deleted: 0, binary: false, conflict: change.conflict.is_some() };
    let same = matches!((&change.old, &change.new), (Some(old), Some(new)) if old.id == new.id);
    if count.conflict || same {
        return Ok(count);
    }
    let old = Content::load(repository, change.old.as_ref())?;
    let new = Content::load(repository, change.new.as_ref())?;
    match old.text().zip(new.text()) {
        Some((old, new)) => {
            let compared = text::compare(old, new);
            count.added = u64::try_from(compared.added).unwrap_or(u64::MAX);
            count.deleted = u64::try_from(compared.deleted).unwrap_or(u64::MAX);
        }
        None => {
            count.binary = true;
            (count.deleted, count.added) = (old.size, new.size);
        }
    }
    Ok(count)
}

/// A rename in short, such as `a/{b => c}/d`.
pub(super) fn quote_rename(old: &BStr, new: &BStr) -> BString {
    let (old_quoted, new_quoted) = (quote::name(old), quote::name(new));
    if old_quoted != *old || new_quoted != *new {
        return format!("{old_quoted} => {new_quoted}").into();
    }
    let same = old.iter().zip(new.iter()).take_while(|(one, other)| one == other).count();
    let prefix = old.get(..same).and_then(|start| start.rfind_byte(b'/')).map_or(0, |slash| slash.saturating_add(1));
    // The slash in front may be the one behind: `a/b/c` to `a/c`.
    let least = prefix.saturating_sub(usize::from(prefix > 0));
    let most = old.len().min(new.len()).saturating_sub(least);
    let tail = old.bytes().rev().zip(new.bytes().rev()).take(most).take_while(|(one, other)| one == other).count();
    let ending = old.get(old.len().saturating_sub(tail)..).unwrap_or_default();
    let suffix = ending.find_byte(b'/').map_or(0, |slash| tail.saturating_sub(slash));
    let middle = |name: &BStr| -> BString {
        name.get(prefix..name.len().saturating_sub(suffix).max(prefix)).unwrap_or_default().into()
    };
    if prefix == 0 && suffix == 0 {
        return format!("{old} => {new}").into();
    }
    let start = BString::from(old.get(..prefix).unwrap_or_default());
    let end = BString::from(old.get(old.len().saturating_sub(suffix)..).unwrap_or_default());
    format!("{start}{{{} => {}}}{end}", middle(old), middle(new)).into()
}

/// Prints the numbers of `--numstat`, a line each.
pub(super) fn numbers(counts: &[Count], zero: bool, out: &mut Output) -> Result<()> {
    for count in counts {
        let number = |number: u64| if count.binary { "-".to_owned() } else { number.to_string() };
        out.put(format!("{}\t{}\t", number(count.added), number(count.deleted)))?;
        match &count.names {
            Some((old, new)) if zero => out.put([b"\0", old.as_bytes(), b"\0", new.as_bytes(), b"\0"].concat())?,
            _ => {
                out.put(&count.name)?;
                out.put(if zero { "\0" } else { "\n" })?;
            }
        }
    }
    Ok(())
}

/// Prints the graph of `--stat`, a line each.
pub(super) fn graph(counts: &[Count], out: &mut Output) -> Result<()> {
    let changed = |count: &Count| count.added.saturating_add(count.deleted);
    let lines = || counts.iter().filter(|count| !count.binary && !count.conflict);
    let most = lines().map(changed).max().unwrap_or(0);
    let longest = counts.iter().map(|count| width(count.name.as_bstr())).max().unwrap_or(0);
    let binaries = counts.iter().filter(|count| count.binary);
    let binary = binaries.map(|count| digits(count.added) + digits(count.deleted) + 14).max().unwrap_or(0);
    let number = digits(most).max(if binary > 0 { 3 } else { 0 });
    // The graph gets the rest of the line, but at most three eighths if names are long.
    let whole = WIDTH.max(16 + 6 + number);
    let wanted = usize::try_from(most).unwrap_or(usize::MAX);
    let mut bars = if wanted.saturating_add(4) > binary { wanted } else { binary.saturating_sub(4) };
    let mut names = longest;
    if names.saturating_add(number).saturating_add(6).saturating_add(bars) > whole {
        let part = (whole * 3 / 8).saturating_sub(number + 6);
        if bars > part {
            bars = part.max(6);
        }
        let room = whole.saturating_sub(number + 6);
        if names > room.saturating_sub(bars) {
            names = room.saturating_sub(bars);
        } else {
            bars = room.saturating_sub(names);
        }
    }
    for count in counts {
        let (name, used) = fit(count.name.as_bstr(), names);
        out.put(format!(" {name}{} | ", " ".repeat(names.saturating_sub(used))))?;
        if count.conflict {
            out.put("Unmerged\n")?;
        } else if count.binary {
            out.put(format!("{:>number$}", "Bin"))?;
            if count.added > 0 || count.deleted > 0 {
                out.put(format!(" {} -> {} bytes", count.deleted, count.added))?;
            }
            out.put("\n")?;
        } else {
            let (plus, minus) = scale(count.added, count.deleted, bars, most);
            let space = if changed(count) > 0 { " " } else { "" };
            out.put(format!("{:>number$}{space}{}{}\n", changed(count), "+".repeat(plus), "-".repeat(minus)))?;
        }
    }
    total(counts, out)
}

fn scale(added: u64, deleted: u64, bars: usize, most: u64) -> (usize, usize) {
    let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    if size(most) < bars {
        return (size(added), size(deleted));
    }
    let linear = |number: u64| -> usize {
        if number == 0 {
            return 0;
        }
        let part = u128::from(number) * u128::try_from(bars.saturating_sub(1)).unwrap_or(0);
        1 + usize::try_from(part.checked_div(u128::from(most)).unwrap_or(0)).unwrap_or(0)
    };
    let mut whole = linear(added.saturating_add(deleted));
    if whole < 2 && added > 0 && deleted > 0 {
        whole = 2;
    }
    if added < deleted {
        let plus = linear(added);
        (plus, whole.saturating_sub(plus))
    } else {
        let minus = linear(deleted);
        (whole.saturating_sub(minus), minus)
    }
}

/// A name in a number of columns: its end, where it is too long, from a directory on.
fn fit(name: &BStr, columns: usize) -> (String, usize) {
    let text = name.to_str_lossy();
    let length = text.chars().count();
    if length <= columns {
        return (text.into_owned(), length);
    }
    let room = columns.saturating_sub(3);
    let end: String = text.chars().skip(length.saturating_sub(room)).collect();
    let end = end.find('/').and_then(|slash| end.get(slash..)).map_or(end.clone(), str::to_owned);
    let used = end.chars().count().saturating_add(3);
    (format!("...{end}"), used)
}

fn width(name: &BStr) -> usize {
    name.to_str_lossy().chars().count()
}

fn digits(number: u64) -> usize {
    number.to_string().len()
}

/// `--shortstat`, and the last line of `--stat`.
pub(super) fn total(counts: &[Count], out: &mut Output) -> Result<()> {
    let files = counts.iter().filter(|count| !count.conflict).count();
    let lines = || counts.iter().filter(|count| !count.binary && !count.conflict);
    let added: u64 = lines().map(|count| count.added).sum();
    let deleted: u64 = lines().map(|count| count.deleted).sum();
    let mut text = format!(" {files} file{} changed", if files == 1 { "" } else { "s" });
    if added > 0 || deleted == 0 && files > 0 {
        text.push_str(&format!(", {added} insertion{}(+)", if added == 1 { "" } else { "s" }));
    }
    if deleted > 0 || added == 0 && files > 0 {
        text.push_str(&format!(", {deleted} deletion{}(-)", if deleted == 1 { "" } else { "s" }));
    }
    text.push('\n');
    out.put(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_are_shortened() {
        for (old, new, expected) in [
            ("a", "b", "a => b"),
            ("d/a", "d/b", "d/{a => b}"),
            ("a/x", "b/x", "{a => b}/x"),
            ("a/b/c", "a/c", "a/{b => }/c"),
            ("a/c", "a/b/c", "a/{ => b}/c"),
            ("s/a/x.rs", "s/b/x.rs", "s/{a => b}/x.rs"),
        ] {
            assert_eq!(quote_rename(old.into(), new.into()), expected);
        }
    }
}
