//! `.gitignore` and `.git/info/exclude`, and the one attribute that matters here: a filter, which would be a program.

use std::path::Path;

use bstr::{BStr, BString, ByteSlice as _};
use gix_glob::pattern::Case;
use gix_ignore::Search;
use gix_ignore::search::Ignore;

use crate::error::{Fault, Result};
use crate::limits::MAX_PATTERNS;
use crate::repository::{Repository, read_patterns};

/// The patterns that apply to a directory during a walk.
pub(crate) struct Ignored {
    search: Search,
    /// The number of lists before each directory that the walk is in.
    entered: Vec<usize>,
}

const SYNTAX: Ignore = Ignore { support_precious: false };

impl Ignored {
    pub(crate) fn open(repository: &Repository) -> Result<Self> {
        let mut search = Search::default();
        if let Some(bytes) = read_patterns(&repository.git.join("info/exclude"))? {
            search.add_patterns_buffer(&bytes, "exclude", None, SYNTAX).map_err(Fault::fatal)?;
        }
        Ok(Self { search, entered: Vec::new() })
    }

    /// Reads a directory's own patterns, which are stronger than those above.
    pub(crate) fn enter(&mut self, repository: &Repository, directory: &BStr) -> Result<()> {
        self.entered.push(self.search.patterns.len());
        let place = if directory.is_empty() { repository.worktree.clone() } else { repository.place(directory)? };
        if let Some(bytes) = read_patterns(&place.join(".gitignore"))? {
            let name = directory.to_path().unwrap_or(Path::new("")).join(".gitignore");
            self.search.add_patterns_buffer(&bytes, name, Some(Path::new("")), SYNTAX).map_err(Fault::fatal)?;
        }
        let patterns: usize = self.search.patterns.iter().map(|list| list.patterns.len()).sum();
        if patterns > MAX_PATTERNS {
            return Err(Fault::limit(format_args!("more than {MAX_PATTERNS} patterns apply to one directory")));
        }
        Ok(())
    }

    pub(crate) fn leave(&mut self) {
        if let Some(before) = self.entered.pop() {
            self.search.patterns.truncate(before);
        }
    }

    /// Whether a path is ignored by the patterns of the directories entered. Those above it are the walk's to check.
    pub(crate) fn is_ignored(&self, path: &BStr, is_directory: bool) -> bool {
        self.search
            .pattern_matching_relative_path(path, Some(is_directory), Case::Sensitive)
            .is_some_and(|found| !found.pattern.is_negative())
    }

    /// Whether a path is ignored, itself or by a directory above it: for a path that was named and not walked to.
    pub(crate) fn covers(repository: &Repository, path: &BStr, is_directory: bool) -> Result<bool> {
        let mut ignored = Self::open(repository)?;
        ignored.enter(repository, BStr::new(""))?;
        let mut at = BString::default();
        let mut parts = path.trim_end_with(|letter| letter == '/').split_str("/").peekable();
        while let Some(part) = parts.next() {
            if !at.is_empty() {
                at.push(b'/');
            }
            at.extend_from_slice(part);
            let last = parts.peek().is_none();
            if ignored.is_ignored(at.as_bstr(), !last || is_directory) {
                return Ok(true);
            }
            if !last {
                ignored.enter(repository, at.as_bstr())?;
            }
        }
        Ok(false)
    }
}

/// The filter that `.gitattributes` names for a path, such as that of large files elsewhere (LFS).
pub(crate) fn filter_of(repository: &Repository, path: &BStr) -> Result<Option<BString>> {
    use gix_attributes::search::{MetadataCollection, Outcome};
    let mut search = gix_attributes::Search::default();
    let mut names = MetadataCollection::default();
    let mut add = |place: &Path, name: &Path, root: Option<&Path>| -> Result<()> {
        if let Some(bytes) = read_patterns(place)? {
            search.add_patterns_buffer(&bytes, name.to_owned(), root, &mut names, false).map_err(Fault::fatal)?;
        }
        Ok(())
    };
    let root = Some(Path::new(""));
    add(&repository.worktree.join(".gitattributes"), Path::new(".gitattributes"), root)?;
    for end in path.find_iter("/") {
        let Some(Ok(directory)) = path.get(..end).map(|directory| directory.to_path()) else { continue };
        add(&repository.worktree.join(directory).join(".gitattributes"), &directory.join(".gitattributes"), root)?;
    }
    add(&repository.git.join("info/attributes"), Path::new("attributes"), None)?;
    let mut outcome = Outcome::default();
    outcome.initialize_with_selection(&names, ["filter"]);
    search.pattern_matching_relative_path(path, Case::Sensitive, Some(false), &mut outcome);
    let found = outcome.iter_selected().find_map(|found| match found.assignment.state {
        gix_attributes::StateRef::Value(value) => Some(value.as_bstr().to_owned()),
        _ => None,
    });
    Ok(found)
}
