//! Revisions: the names of commits and other objects on a command line (gitrevisions(7)).

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::{ObjectId, Prefix};
use gix_object::Kind;

use crate::error::{Fault, Result};
use crate::history::Commit;
use crate::limits::{MAX_REVISION_STEPS, MAX_TAG_DEPTH};
use crate::objects::HASH;
use crate::repository::Repository;
use crate::tree;

/// The fewest digits of a short name.
const MIN_DIGITS: usize = 4;

/// The object that a revision leads to.
pub(crate) fn resolve(repository: &Repository, text: &str) -> Result<ObjectId> {
    find(repository, text)?.ok_or_else(|| unknown(text))
}

/// The commit that a revision leads to.
pub(crate) fn commit(repository: &Repository, text: &str) -> Result<ObjectId> {
    let id = resolve(repository, text)?;
    peel_to(repository, id, Kind::Commit)
        .map_err(|fault| if fault.code == 1 { Fault::fatal(format_args!("bad revision '{text}'")) } else { fault })
}

/// The tree that a revision leads to.
pub(crate) fn tree_of(repository: &Repository, text: &str) -> Result<ObjectId> {
    let id = resolve(repository, text)?;
    peel_to(repository, id, Kind::Tree)
}

/// git's message for a word that is neither a revision nor a path.
pub(crate) fn unknown(text: &str) -> Fault {
    Fault::fatal(format_args!(
        "ambiguous argument '{text}': unknown revision or path not in the working tree.\nUse '--' to separate paths from \
         revisions, like this:\n'git <command> [<revision>...] -- [<file>...]'"
    ))
}

/// As [`resolve`]; `None` for a word that names nothing.
pub(crate) fn find(repository: &Repository, text: &str) -> Result<Option<ObjectId>> {
    if let Some((revision, path)) = split_path(text) {
        return find_path(repository, revision, path);
    }
    let base_end = text.find(['^', '~']).unwrap_or(text.len());
    let (base, steps) = text.split_at(base_end);
    let Some(mut id) = find_base(repository, base)? else { return Ok(None) };
    let mut rest = steps;
    let mut walked: usize = 0;
    while let Some(step) = rest.chars().next() {
        let after = rest.get(1..).unwrap_or_default();
        if step == '^' && after.starts_with('{') {
            let Some((kind, after)) = after.get(1..).and_then(|after| after.split_once('}')) else { return Ok(None) };
            id = match kind {
                "" => peel(repository, id)?,
                "commit" => peel_to(repository, id, Kind::Commit)?,
                "tree" => peel_to(repository, id, Kind::Tree)?,
                "object" => id,
                _ => return Err(Fault::unsupported(format_args!("the revision '{text}'"))),
            };
            rest = after;
            continue;
        }
        let digits = after.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(digits);
        let count: usize = if number.is_empty() { 1 } else { number.parse().map_err(|_| unknown(text))? };
        rest = after;
        id = peel_to(repository, id, Kind::Commit)?;
        match step {
            '^' if count == 0 => {}
            '^' => match Commit::read(repository, &id)?.parents.get(count.saturating_sub(1)) {
                Some(parent) => id = *parent,
                None => return Ok(None),
            },
            '~' => {
                for _ in 0..count {
                    walked = walked.saturating_add(1);
                    if walked > MAX_REVISION_STEPS {
                        return Err(Fault::limit(format_args!(
                            "'{text}' goes more than {MAX_REVISION_STEPS} commits back"
                        )));
                    }
                    match Commit::read(repository, &id)?.parents.first() {
                        Some(parent) => id = *parent,
                        None => return Ok(None),
                    }
                }
            }
            _ => return Ok(None),
        }
    }
    Ok(Some(id))
}

/// `REV:PATH`, or `:PATH` for the index.
pub(crate) fn split_path(text: &str) -> Option<(&str, &str)> {
    // A `:` in braces belongs to the revision.
    let colon = text.find(':')?;
    let (revision, path) = text.split_at(colon);
    (!revision.contains('{')).then(|| (revision, path.get(1..).unwrap_or_default()))
}

/// The path of `REV:PATH` in the repository: relative to the caller's directory where it begins with a dot.
pub(crate) fn path_in(repository: &Repository, path: &str) -> Result<BString> {
    if !(path.starts_with("./") || path.starts_with("../") || path == "." || path == "..") {
        return Ok(path.trim_end_matches('/').into());
    }
    let mut parts: Vec<&[u8]> = repository.prefix.split_str("/").filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop().ok_or_else(|| Fault::fatal(format_args!("'{path}' is outside repository")))?;
            }
            part => parts.push(part.as_bytes()),
        }
    }
    Ok(parts.join(&b'/').into())
}

fn find_path(repository: &Repository, revision: &str, path: &str) -> Result<Option<ObjectId>> {
    if revision.is_empty() {
        let (stage, path) = match path.split_once(':') {
            Some((stage @ ("0" | "1" | "2" | "3"), path)) => (stage.parse().unwrap_or(0), path),
            _ => (0, path),
        };
        let path = path_in(repository, path)?;
        let index = repository.index()?;
        let found = index.entries().iter().find(|entry| entry.path == path && entry.stage == stage);
        return match found {
            Some(entry) => Ok(Some(entry.id)),
            None => Err(Fault::fatal(format_args!("path '{path}' does not exist (neither on disk nor in the index)"))),
        };
    }
    let Some(id) = find(repository, revision)? else {
        return Err(Fault::fatal(format_args!("invalid object name '{revision}'.")));
    };
    let tree = peel_to(repository, id, Kind::Tree)?;
    let path = path_in(repository, path)?;
    if path.is_empty() {
        return Ok(Some(tree));
    }
    match tree::lookup(&repository.objects, &tree, path.as_bstr())? {
        Some(child) => Ok(Some(child.id)),
        None => Err(Fault::fatal(format_args!("path '{path}' does not exist in '{revision}'"))),
    }
}

fn find_base(repository: &Repository, base: &str) -> Result<Option<ObjectId>> {
    if base.is_empty() {
        return Ok(None);
    }
    if base == "@" {
        return repository.refs.resolve("HEAD".into());
    }
    if let Some((name, rest)) = base.split_once("@{") {
        let Some(what) = rest.strip_suffix('}') else { return Ok(None) };
        return at(repository, name, what, base);
    }
    if base.len() == HASH.len_in_hex()
        && let Ok(id) = ObjectId::from_hex(base.as_bytes())
    {
        return Ok(Some(id));
    }
    if let Some((_, id)) = repository.refs.expand(BStr::new(base))? {
        return Ok(Some(id));
    }
    // `git describe` writes a short name behind `-g`.
    let digits = base.rsplit_once("-g").map_or(base, |(_, digits)| digits);
    if digits.len() < MIN_DIGITS || digits.len() > HASH.len_in_hex() {
        return Ok(None);
    }
    let Ok(prefix) = Prefix::from_hex(digits) else { return Ok(None) };
    let found = repository.objects.beginning_with(&prefix, 64)?;
    match found.as_slice() {
        [] => Ok(None),
        [id] => Ok(Some(*id)),
        several => {
            // Where only one is a commit, that is meant.
            let mut commits = Vec::new();
            for id in several {
                if repository.objects.header(id)?.is_some_and(|header| header.kind == Kind::Commit) {
                    commits.push(*id);
                }
            }
            match commits.as_slice() {
                [id] => Ok(Some(*id)),
                _ => Err(Fault {
                    code: 128,
                    message: format!(
                        "error: short object ID {digits} is ambiguous\nfatal: ambiguous argument '{base}': unknown revision or path not in the working tree."
                    ),
                }),
            }
        }
    }
}

/// Resolves names such as `REF@{N}` and `REF@{upstream}`.
fn at(repository: &Repository, name: &str, what: &str, text: &str) -> Result<Option<ObjectId>> {
    let full = match name {
        "" | "HEAD" if what.parse::<usize>().is_ok() => BString::from("HEAD"),
        "" | "@" | "HEAD" => repository.refs.head()?.branch.unwrap_or_else(|| "HEAD".into()),
        name => match repository.refs.expand(BStr::new(name))? {
            Some((full, _)) => full,
            None => return Ok(None),
        },
    };
    if matches!(what, "u" | "upstream") {
        let upstream = crate::history::upstream(repository, full.as_bstr())?
            .ok_or_else(|| Fault::fatal(format_args!("no upstream configured for branch '{full}'")))?;
        return repository.refs.resolve(upstream.as_bstr());
    }
    let Ok(number) = what.parse::<usize>() else {
        return Err(Fault::unsupported(format_args!("the revision '{text}'")));
    };
    let log = repository.refs.log(full.as_bstr())?;
    if number == 0 {
        return repository.refs.resolve(full.as_bstr());
    }
    let entries = log.len();
    match log.get(number.saturating_sub(1)) {
        Some(entry) if !entry.old.is_null() => Ok(Some(entry.old)),
        _ => Err(Fault::fatal(format_args!("log for '{name}' only has {entries} entries"))),
    }
}

/// Follows tags to the tagged object.
pub(crate) fn peel(repository: &Repository, id: ObjectId) -> Result<ObjectId> {
    let mut id = id;
    for _ in 0..=MAX_TAG_DEPTH {
        let object = repository.objects.read(&id)?;
        if object.kind != Kind::Tag {
            return Ok(id);
        }
        let tag = gix_object::TagRefIter::from_bytes(&object.data, HASH);
        id = tag.target_id().map_err(|_| Fault::corrupt(format_args!("the tag {id} cannot be read")))?;
    }
    Err(Fault::limit(format_args!("a tag leads through more than {MAX_TAG_DEPTH} tags")))
}

/// Follows tags, and a commit to its tree, to an object of a kind.
pub(crate) fn peel_to(repository: &Repository, id: ObjectId, kind: Kind) -> Result<ObjectId> {
    let id = peel(repository, id)?;
    let object = repository.objects.read(&id)?;
    match (object.kind, kind) {
        (is, wanted) if is == wanted => Ok(id),
        (Kind::Commit, Kind::Tree) => Ok(Commit::parse(&id, &object.data)?.tree),
        (is, wanted) => Err(Fault::error(format_args!("object {id} is a {is}, not a {wanted}"))),
    }
}
