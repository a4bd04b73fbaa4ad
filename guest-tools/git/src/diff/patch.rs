//! A difference as a patch.

use bstr::{BString, ByteSlice as _};

use super::content::Content;
use super::{Change, Options, Side, text};
use crate::describe::Short;
use crate::error::Result;
use crate::output::Output;
use crate::quote;
use crate::repository::Repository;

/// Prints one difference as a patch.
pub(super) fn print(
    repository: &Repository,
    change: &Change,
    options: &Options,
    short: &Short<'_>,
    out: &mut Output,
) -> Result<()> {
    if change.conflict.is_some() {
        return out.put(format!("* Unmerged path {}\n", quote::name(change.path())));
    }
    if change.letter() == 'T' {
        let [gone, new] = [Change::new(change.old.clone(), None), Change::new(None, change.new.clone())];
        print(repository, &gone, options, short, out)?;
        return print(repository, &new, options, short, out);
    }
    let (old, new) = (change.old.as_ref(), change.new.as_ref());
    let Some(any) = new.or(old) else { return Ok(()) };
    let [old_name, new_name] = [old.unwrap_or(any), new.unwrap_or(any)].map(|side| side.path.clone());
    let (a, b) = match (options.prefixes, options.reverse) {
        (false, _) => ("", ""),
        (true, false) => ("a/", "b/"),
        (true, true) => ("b/", "a/"),
    };
    let (a_name, b_name) = (prefixed(a, &old_name), prefixed(b, &new_name));
    out.put(format!("diff --git {} {}\n", quote::name(a_name.as_bstr()), quote::name(b_name.as_bstr())))?;
    match (old, new) {
        (None, Some(new)) => out.put(format!("new file mode {:06o}\n", new.mode))?,
        (Some(old), None) => out.put(format!("deleted file mode {:06o}\n", old.mode))?,
        (Some(old), Some(new)) if old.mode != new.mode => {
            out.put(format!("old mode {:06o}\nnew mode {:06o}\n", old.mode, new.mode))?;
        }
        _ => {}
    }
    if let Some(similarity) = change.similarity {
        let (from, to) = (quote::name(old_name.as_bstr()), quote::name(new_name.as_bstr()));
        out.put(format!("similarity index {similarity}%\nrename from {from}\nrename to {to}\n"))?;
    }
    let null = gix_hash::ObjectId::null(crate::objects::HASH);
    let id = |side: Option<&Side>| side.map_or(null, |side| side.id);
    if id(old) == id(new) {
        return Ok(());
    }
    out.put(format!("index {}..{}", short.of(&id(old))?, short.of(&id(new))?))?;
    if let (Some(old), Some(new)) = (old, new)
        && old.mode == new.mode
    {
        out.put(format!(" {:06o}", old.mode))?;
    }
    out.put("\n")?;
    let [before, after] = [Content::load(repository, old)?, Content::load(repository, new)?];
    let label = |side: Option<&Side>, name: &BString| match side {
        Some(_) => quote::name(name.as_bstr()),
        None => BString::from("/dev/null"),
    };
    let (old_label, new_label) = (label(old, &a_name), label(new, &b_name));
    let texts = if options.text { before.all().zip(after.all()) } else { before.text().zip(after.text()) };
    let Some((before, after)) = texts else {
        return out.put(format!("Binary files {old_label} and {new_label} differ\n"));
    };
    let hunks = text::compare(before, after).unified(options.context);
    if !hunks.is_empty() {
        // git marks the end of a name with spaces, for programs that read patches.
        let end = |label: &BString| if label.contains(&b' ') && !label.starts_with(b"\"") { "\t" } else { "" };
        out.put(format!("--- {old_label}{}\n+++ {new_label}{}\n", end(&old_label), end(&new_label)))?;
        out.put(hunks)?;
    }
    Ok(())
}

fn prefixed(prefix: &str, name: &BString) -> BString {
    [prefix.as_bytes(), name.as_bytes()].concat().into()
}
