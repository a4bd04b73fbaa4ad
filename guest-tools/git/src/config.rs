//! The repository's configuration: `.git/config` only. There is no user and no system, includes are not followed, and keys
//! that name a program are not read.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use bstr::BString;
use gix_config::file::Metadata;
use gix_config::{File, Source};

use crate::error::{Fault, Result};
use crate::limits::MAX_SMALL_FILE_BYTES;
use crate::repository::read_small;

/// Extensions of the format that do not change the files that are read here.
const HARMLESS_EXTENSIONS: [&str; 5] = ["noop", "noop-v1", "preciousobjects", "partialclone", "relativeworktrees"];

pub(crate) struct Config {
    file: File,
    place: PathBuf,
    /// Values of the command line (`-c`) in order, with their keys in small letters.
    overrides: Vec<(String, BString)>,
}

impl Config {
    pub(crate) fn read(git: &Path) -> Result<Self> {
        let place = git.join("config");
        let bytes = read_small(&place, MAX_SMALL_FILE_BYTES)?.unwrap_or_default();
        let file = File::from_bytes_no_includes(&bytes, Metadata::from(Source::Local), Default::default())
            .map_err(|error| Fault::fatal(format_args!("bad config in file .git/config: {error}")))?;
        Ok(Self { file, place, overrides: Vec::new() })
    }

    /// Refuses repositories of a format that is not read here.
    pub(crate) fn check_format(&self) -> Result<()> {
        let version = self.string("core.repositoryFormatVersion").unwrap_or_else(|| "0".into());
        if version != "0" && version != "1" {
            return Err(Fault::fatal(format_args!("Expected git repo version <= 1, found {version}")));
        }
        let hash = self.string("extensions.objectFormat");
        if let Some(format) = hash.filter(|format| *format != "sha1") {
            return Err(Fault::unsupported(format_args!(
                "a repository with the object format `{format}`; only SHA-1 is read"
            )));
        }
        if let Some(format) = self.string("extensions.refStorage").filter(|format| *format != "files") {
            return Err(Fault::unsupported(format_args!("a repository with the reference storage `{format}`")));
        }
        for section in self.file.sections_by_name("extensions").into_iter().flatten() {
            for name in section.value_names() {
                let name = name.to_string().to_ascii_lowercase();
                let known = ["objectformat", "refstorage", "worktreeconfig"].contains(&name.as_str());
                if version == "1" && !known && !HARMLESS_EXTENSIONS.contains(&name.as_str()) {
                    return Err(Fault::fatal(format_args!("unknown repository extension found:\n\t{name}")));
                }
            }
        }
        if self.string("core.worktree").is_some() {
            return Err(Fault::unsupported("a working tree that is elsewhere (`core.worktree`)"));
        }
        if self.boolean("core.bare", false) {
            return Err(Fault::fatal("this operation must be run in a work tree"));
        }
        Ok(())
    }

    /// Takes `key=value` pairs of the command line for this call.
    pub(crate) fn override_with(&mut self, pairs: &[String]) {
        for pair in pairs {
            let (key, value) = pair.split_once('=').unwrap_or((pair, "true"));
            self.overrides.push((key.to_ascii_lowercase(), value.into()));
        }
    }

    /// A value, such as that of `user.name`.
    pub(crate) fn string(&self, key: &str) -> Option<BString> {
        self.overrides(&key.to_ascii_lowercase()).last().cloned().or_else(|| self.file.string(key))
    }

    /// The values that only the command line gives for a key, which is in small letters.
    pub(crate) fn overrides(&self, key: &str) -> impl DoubleEndedIterator<Item = &BString> {
        self.overrides.iter().filter(move |(name, _)| name == key).map(|(_, value)| value)
    }

    /// A value of a section with a name of its own, such as that of a branch.
    pub(crate) fn string_in(&self, section: &str, name: &bstr::BStr, key: &str) -> Option<BString> {
        self.file.string_by(section, name, key)
    }

    /// All values of a section with a name of its own, in order.
    pub(crate) fn all_in(&self, section: &str, name: &bstr::BStr, key: &str) -> Vec<BString> {
        self.file.strings_by(section, name, key).unwrap_or_default()
    }

    /// The names that sections have, such as those of remotes, each once.
    pub(crate) fn names_in(&self, section: &str) -> Vec<BString> {
        let sections = self.file.sections_by_name(section).into_iter().flatten();
        let names: BTreeSet<BString> =
            sections.filter_map(|section| section.header().subsection_name().map(BString::from)).collect();
        names.into_iter().collect()
    }

    pub(crate) fn boolean(&self, key: &str, default: bool) -> bool {
        self.file.boolean(key).ok().flatten().unwrap_or(default)
    }

    pub(crate) fn integer(&self, key: &str) -> Option<i64> {
        self.file.integer(key).ok().flatten()
    }

    /// All values, `key=value` each, in order.
    pub(crate) fn all(&self, key: &str) -> Vec<BString> {
        self.file.strings(key).unwrap_or_default()
    }

    /// Sets a value in the file.
    pub(crate) fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.file.set_raw_value(key, value).map_err(Fault::error)?;
        let lock = self.place.with_extension("lock");
        let failed =
            |error: std::io::Error| Fault::fatal(format_args!("could not write config file .git/config: {error}"));
        fs::write(&lock, self.file.to_bstring()).map_err(failed)?;
        fs::rename(&lock, &self.place).map_err(failed)
    }
}
