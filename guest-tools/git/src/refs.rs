//! References: branches, tags and `HEAD`, as files and in `packed-refs`.
//!
//! It survives names that would leave `.git`, references that lead back to themselves, and files that are no references.

mod log;

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;

use crate::error::{Fault, Result};
use crate::limits::{MAX_PACKED_REFS_BYTES, MAX_REFERENCE_BYTES, MAX_REFERENCES, MAX_SYMBOLIC_DEPTH, MAX_TREE_DEPTH};
use crate::objects::HASH;
use crate::repository::read_small;

/// The content of a reference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Target {
    Object(ObjectId),
    Reference(BString),
}

/// The branch or commit that `HEAD` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Head {
    /// The branch's full name; `None` when detached.
    pub branch: Option<BString>,
    /// The commit; `None` before the first.
    pub id: Option<ObjectId>,
}

impl Head {
    /// The branch's name as people say it.
    pub(crate) fn short(&self) -> Option<&BStr> {
        self.branch.as_ref().map(|name| name.strip_prefix(b"refs/heads/").unwrap_or(name).as_bstr())
    }
}

/// The references of one repository.
pub(crate) struct Refs {
    git: PathBuf,
    packed: OnceCell<BTreeMap<BString, ObjectId>>,
}

impl Refs {
    pub(crate) fn at(git: &Path) -> Self {
        Self { git: git.to_owned(), packed: OnceCell::new() }
    }

    pub(crate) fn head(&self) -> Result<Head> {
        match self.read("HEAD".into())? {
            Some(Target::Object(id)) => Ok(Head { branch: None, id: Some(id) }),
            Some(Target::Reference(_)) => {
                let (name, id) = self.follow("HEAD".into())?;
                Ok(Head { branch: Some(name), id })
            }
            None => Err(Fault::corrupt("`HEAD` is missing")),
        }
    }

    /// The object that a reference leads to.
    pub(crate) fn resolve(&self, name: &BStr) -> Result<Option<ObjectId>> {
        Ok(self.follow(name)?.1)
    }

    /// Follows symbolic references to the last name and its object, if it has one yet.
    fn follow(&self, name: &BStr) -> Result<(BString, Option<ObjectId>)> {
        let mut name = name.to_owned();
        for _ in 0..=MAX_SYMBOLIC_DEPTH {
            match self.read(name.as_bstr())? {
                Some(Target::Object(id)) => return Ok((name, Some(id))),
                Some(Target::Reference(next)) => name = next,
                None => return Ok((name, None)),
            }
        }
        Err(Fault::corrupt(format_args!("`{name}` leads through more than {MAX_SYMBOLIC_DEPTH} references")))
    }

    /// Reads one reference, file or packed. A name that is not valid names none.
    pub(crate) fn read(&self, name: &BStr) -> Result<Option<Target>> {
        if gix_validate::reference::name(name).is_err() {
            return Ok(None);
        }
        let Ok(path) = name.to_path() else { return Ok(None) };
        if let Some(bytes) = read_small(&self.git.join(path), MAX_REFERENCE_BYTES)? {
            return parse(&bytes)
                .map(Some)
                .ok_or_else(|| Fault::corrupt(format_args!("the reference `{name}` is not valid")));
        }
        Ok(self.packed()?.get(name).copied().map(Target::Object))
    }

    fn packed(&self) -> Result<&BTreeMap<BString, ObjectId>> {
        if let Some(packed) = self.packed.get() {
            return Ok(packed);
        }
        let bytes = read_small(&self.git.join("packed-refs"), MAX_PACKED_REFS_BYTES)?.unwrap_or_default();
        let mut packed = BTreeMap::new();
        for line in bytes.lines() {
            // A comment, or the object that the tag of the line before leads to.
            if line.starts_with(b"#") || line.starts_with(b"^") {
                continue;
            }
            let Some((hex, name)) = line.split_once_str(" ") else { continue };
            let (Ok(id), name) = (ObjectId::from_hex(hex), name.as_bstr()) else { continue };
            if gix_validate::reference::name(name).is_ok() {
                packed.insert(name.to_owned(), id);
            }
            if packed.len() > MAX_REFERENCES {
                return Err(too_many());
            }
        }
        Ok(self.packed.get_or_init(|| packed))
    }

    /// All references below a directory such as `refs/heads/`, by name.
    pub(crate) fn below(&self, prefix: &str) -> Result<BTreeMap<BString, ObjectId>> {
        let mut names: BTreeMap<BString, ObjectId> = BTreeMap::new();
        for (name, id) in self.packed()? {
            if name.starts_with_str(prefix) {
                names.insert(name.clone(), *id);
            }
        }
        let mut waiting = vec![(prefix.trim_end_matches('/').to_owned(), 0_usize)];
        let mut seen: usize = 0;
        while let Some((directory, depth)) = waiting.pop() {
            if depth > MAX_TREE_DEPTH {
                return Err(too_many());
            }
            for entry in fs::read_dir(self.git.join(&directory)).into_iter().flatten().flatten() {
                seen = seen.saturating_add(1);
                if seen > MAX_REFERENCES {
                    return Err(too_many());
                }
                let Ok(name) = entry.file_name().into_string() else { continue };
                let name = format!("{directory}/{name}");
                match entry.file_type() {
                    Ok(kind) if kind.is_dir() => waiting.push((name, depth.saturating_add(1))),
                    Ok(kind) if kind.is_file() => {
                        // A broken reference is left out, as by git.
                        if let Ok(Some(id)) = self.resolve(name.as_str().into()) {
                            names.insert(name.into(), id);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(names)
    }

    /// The full names that a short one may mean, in git's order, with the first that exists.
    pub(crate) fn expand(&self, short: &BStr) -> Result<Option<(BString, ObjectId)>> {
        for (before, after) in [
            ("", ""),
            ("refs/", ""),
            ("refs/tags/", ""),
            ("refs/heads/", ""),
            ("refs/remotes/", ""),
            ("refs/remotes/", "/HEAD"),
        ] {
            let full = BString::from([before.as_bytes(), short, after.as_bytes()].concat());
            // Files of `.git` such as `config` are no references: those outside `refs/` are in capitals.
            if before.is_empty() && !full.starts_with(b"refs/") && full.iter().any(|byte| byte.is_ascii_lowercase()) {
                continue;
            }
            if let Some(id) = self.resolve(full.as_bstr())? {
                return Ok(Some((full, id)));
            }
        }
        Ok(None)
    }

    /// Sets a reference, if it still has the value that the caller saw.
    pub(crate) fn update(&self, name: &BStr, new: ObjectId, seen: Option<ObjectId>) -> Result<()> {
        self.check_name(name)?;
        self.write(name, format!("{new}\n").as_bytes(), || {
            let now = self.resolve(name)?;
            if now == seen {
                return Ok(());
            }
            Err(Fault::fatal(format_args!("cannot lock ref '{name}': it changed meanwhile")))
        })
    }

    /// Makes `HEAD` lead to a branch.
    pub(crate) fn set_head(&self, branch: &BStr) -> Result<()> {
        self.check_name(branch)?;
        self.write("HEAD".into(), &[b"ref: ", branch.as_bytes(), b"\n"].concat(), || Ok(()))
    }

    fn check_name(&self, name: &BStr) -> Result<()> {
        gix_validate::reference::branch_name(name)
            .map_err(|_| Fault::fatal(format_args!("'{name}' is not a valid reference name")))?;
        // A branch `a` and a branch `a/b` cannot be at once.
        let taken = self.packed()?.keys().any(|other| {
            let within =
                |long: &[u8], short: &[u8]| long.strip_prefix(short).is_some_and(|rest| rest.starts_with(b"/"));
            within(other, name) || within(name, other)
        });
        if taken && self.read(name)?.is_none() {
            return Err(Fault::fatal(format_args!("cannot lock ref '{name}': another reference is in its way")));
        }
        Ok(())
    }

    /// Writes under a lock: into a file beside it, which is renamed once the check passes.
    fn write(&self, name: &BStr, content: &[u8], check: impl FnOnce() -> Result<()>) -> Result<()> {
        let place = self.git.join(name.to_path().map_err(|_| Fault::fatal("a reference's name is not UTF-8"))?);
        let mut locked = place.clone().into_os_string();
        locked.push(".lock");
        let locked = PathBuf::from(locked);
        if let Some(parent) = place.parent() {
            fs::create_dir_all(parent)
                .map_err(|error| Fault::fatal(format_args!("cannot lock ref '{name}': {error}")))?;
        }
        let mut file = lock(&locked, &format!("cannot lock ref '{name}'"))?;
        let written = check().and_then(|()| {
            file.write_all(content)
                .and_then(|()| fs::rename(&locked, &place))
                .map_err(|error| Fault::fatal(format_args!("cannot update ref '{name}': {error}")))
        });
        if written.is_err() {
            // The fault is the answer, whether or not the lock can be removed.
            drop(fs::remove_file(&locked));
        }
        written
    }

    /// Removes a reference's file. One that is packed cannot be removed here.
    pub(crate) fn remove(&self, name: &BStr) -> Result<()> {
        self.check_name(name)?;
        if self.packed()?.contains_key(name) {
            return Err(Fault::unsupported(format_args!("deleting `{name}`, which is in packed-refs")));
        }
        let place = self.git.join(name.to_path().map_err(|_| Fault::fatal("a reference's name is not UTF-8"))?);
        fs::remove_file(place).map_err(|error| Fault::fatal(format_args!("cannot delete '{name}': {error}")))
    }
}

/// Creates a lock file, which is there already while another call holds it.
pub(crate) fn lock(place: &Path, what: &str) -> Result<fs::File> {
    OpenOptions::new().write(true).create_new(true).open(place).map_err(|error| {
        if error.kind() == ErrorKind::AlreadyExists {
            let name = place.file_name().unwrap_or_default().to_string_lossy();
            return Fault::fatal(format_args!(
                "{what}: Unable to create '{name}': File exists.\n\nAnother git process seems to be running in this \
                 repository, or one was interrupted: then remove the file."
            ));
        }
        Fault::fatal(format_args!("{what}: {error}"))
    })
}

fn parse(bytes: &[u8]) -> Option<Target> {
    if let Some(rest) = bytes.strip_prefix(b"ref:") {
        let name = rest.trim().as_bstr();
        return gix_validate::reference::name(name).ok().map(|name| Target::Reference(name.to_owned()));
    }
    let hex = bytes.get(..HASH.len_in_hex())?;
    let rest = bytes.get(HASH.len_in_hex()..)?;
    if rest.first().is_some_and(|byte| !byte.is_ascii_whitespace()) {
        return None;
    }
    ObjectId::from_hex(hex).ok().map(Target::Object)
}

fn too_many() -> Fault {
    Fault::limit(format_args!("the repository has more than {MAX_REFERENCES} references"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_references_are_read() {
        let hex = "1234567890123456789012345678901234567890";
        assert_eq!(
            parse(format!("{hex}\n").as_bytes()),
            Some(Target::Object(ObjectId::from_hex(hex.as_bytes()).unwrap()))
        );
        assert_eq!(parse(b"ref: refs/heads/main\n"), Some(Target::Reference("refs/heads/main".into())));
        for bytes in ["", "ref: ../../x\n", "ref: refs/heads/../x", "ref: config", "12", &format!("{hex}00")] {
            assert_eq!(parse(bytes.as_bytes()), None, "{bytes}");
        }
    }
}
