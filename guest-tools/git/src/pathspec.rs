//! Paths of the command line: names, directories, patterns, and git's `:(…)` forms except attributes.

use std::cell::RefCell;

use bstr::{BStr, BString, ByteSlice as _};
use gix_pathspec::{Defaults, Search};

use crate::error::{Fault, Result};
use crate::repository::Repository;

/// A set of paths; empty for all.
pub(crate) struct Pathspec {
    search: RefCell<Search>,
    /// Each alone, with the text as given: to find those that match nothing.
    each: Vec<(String, RefCell<Search>, bool)>,
    empty: bool,
}

impl Pathspec {
    /// Reads the paths of a command line. Without any, everything matches, wherever the caller is.
    pub(crate) fn parse(repository: &Repository, paths: &[String]) -> Result<Self> {
        let prefix = repository.prefix.to_path().ok();
        let mut patterns = Vec::new();
        let mut each = Vec::new();
        let mut everything = false;
        for path in paths {
            let bad = |error: &dyn std::fmt::Display| Fault::fatal(format_args!("bad pathspec '{path}': {error}"));
            if path.is_empty() {
                return Err(Fault::fatal(
                    "empty string is not a valid pathspec. please use . instead if you meant to match all paths",
                ));
            }
            let pattern = gix_pathspec::parse(path.as_bytes(), Defaults::default()).map_err(|error| bad(&error))?;
            if !pattern.attributes.is_empty() {
                return Err(Fault::unsupported(format_args!("attributes in the pathspec '{path}'")));
            }
            let alone = Search::from_specs([pattern.clone()], prefix, &repository.shown).map_err(|_| {
                Fault::fatal(format_args!("{path}: '{path}' is outside repository at '{}'", repository.shown.display()))
            })?;
            // The top of the working tree: everything, of which others may be excluded.
            if !pattern.is_excluded()
                && alone.patterns().next().is_some_and(|pattern| matches!(pattern.path().as_bytes(), b"" | b"."))
            {
                everything = true;
                continue;
            }
            each.push((path.clone(), RefCell::new(alone), pattern.is_excluded()));
            patterns.push(pattern);
        }
        if everything {
            patterns.retain(gix_pathspec::Pattern::is_excluded);
        }
        let empty = patterns.is_empty();
        let search = Search::from_specs(patterns, if empty { None } else { prefix }, &repository.shown)
            .map_err(|error| Fault::fatal(format_args!("bad pathspec: {error}")))?;
        Ok(Self { search: RefCell::new(search), each, empty })
    }

    /// Every path of the repository.
    pub(crate) fn all(repository: &Repository) -> Result<Self> {
        Self::parse(repository, &[])
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.empty
    }

    pub(crate) fn matches(&self, path: &BStr, is_directory: bool) -> bool {
        self.empty || matches(&self.search, path, is_directory)
    }

    /// Whether something in a directory can match.
    pub(crate) fn may_match_below(&self, directory: &BStr) -> bool {
        self.empty || self.search.borrow().can_match_relative_path(directory, Some(true))
    }

    /// The first path that matches none of the names given.
    pub(crate) fn unmatched<'a>(&self, names: impl Iterator<Item = &'a BStr> + Clone) -> Option<&str> {
        self.unmatched_all(names).into_iter().next()
    }

    fn unmatched_all<'a>(&self, names: impl Iterator<Item = &'a BStr> + Clone) -> Vec<&str> {
        let mut missing = Vec::new();
        for (text, search, excluded) in &self.each {
            if !excluded && !names.clone().any(|name| matches(search, name, false)) {
                missing.push(text.as_str());
            }
        }
        missing
    }

    /// The paths as given that are plain names: each with its name in the repository.
    pub(crate) fn named(&self) -> Vec<(&str, BString)> {
        self.each
            .iter()
            .filter(|(_, _, excluded)| !excluded)
            .filter_map(|(text, search, _)| {
                let search = search.borrow();
                let pattern = search.patterns().next()?;
                let path = pattern.path().trim_end_with(|letter| letter == '/').as_bstr().to_owned();
                (!path.is_empty()).then_some((text.as_str(), path))
            })
            .collect()
    }
}

fn matches(search: &RefCell<Search>, path: &BStr, is_directory: bool) -> bool {
    search
        .borrow_mut()
        .pattern_matching_relative_path(path, Some(is_directory), &mut |_, _, _, _| false)
        .is_some_and(|found| !found.is_excluded())
}
