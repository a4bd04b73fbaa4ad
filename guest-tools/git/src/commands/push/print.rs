//! The lines of a push, as git prints them to standard error.

use bstr::{BString, ByteSlice as _};

use super::is_failure;
use super::options::Options;
use super::plan::{Change, Status};
use crate::commands::tracking::short_name;
use crate::describe::Short;
use crate::error::Result;
use crate::output::Output;
use crate::remote::Remote;
use crate::repository::Repository;

/// One line: its mark, its summary, and the reason behind it.
struct Line {
    mark: char,
    summary: String,
    note: Option<String>,
}

/// Prints a line for each change: those that were made, then those that were refused.
pub(super) fn changes(
    repository: &Repository,
    options: &Options,
    remote: &Remote,
    changes: &[Change],
    out: &mut Output,
) -> Result<()> {
    let short = Short::new(repository);
    let mut width: usize = 0;
    for id in changes.iter().flat_map(|change| [&change.old, &change.new]) {
        width = width.max(short.of(id)?.len());
    }
    let width = width.saturating_mul(2).saturating_add("...".len());
    let rank = |change: &Change| match change.status {
        Status::UpToDate => 0,
        Status::Changed | Status::Pending => 1,
        _ => 2,
    };
    let mut sorted: Vec<&Change> = changes.iter().filter(|change| is_shown(options, change)).collect();
    sorted.sort_by_key(|change| rank(change));
    if !sorted.is_empty() {
        out.warn(&format!("To {}", remote.url));
    }
    for change in sorted {
        let Line { mark, summary, note } = line(&short, change)?;
        let to = short_name(change.to.as_bstr());
        let name = match &change.from {
            Some(from) if !change.new.is_null() => format!("{} -> {to}", short_name(from.as_bstr())),
            _ => to.to_string(),
        };
        let note = note.map_or(String::new(), |note| format!(" ({note})"));
        out.warn(&format!(" {mark} {summary:<width$} {name}{note}"));
    }
    Ok(())
}

fn is_shown(options: &Options, change: &Change) -> bool {
    match change.status {
        Status::UpToDate => options.verbose,
        Status::Changed | Status::Pending => !options.quiet,
        _ => true,
    }
}

fn line(short: &Short<'_>, change: &Change) -> Result<Line> {
    let refused =
        |summary: &str, note: &str| Line { mark: '!', summary: summary.to_owned(), note: Some(note.to_owned()) };
    Ok(match &change.status {
        Status::UpToDate => Line { mark: '=', summary: "[up to date]".to_owned(), note: None },
        Status::Rejected(reason) => refused("[rejected]", reason),
        Status::RemoteRejected(reason) => refused("[remote rejected]", reason),
        Status::Unreported => refused("[remote failure]", "remote failed to report status"),
        Status::Changed | Status::Pending if change.new.is_null() => {
            Line { mark: '-', summary: "[deleted]".to_owned(), note: None }
        }
        Status::Changed | Status::Pending if change.old.is_null() => {
            Line { mark: '*', summary: kind_of_new(&change.to).to_owned(), note: None }
        }
        Status::Changed | Status::Pending => {
            let (old, new) = (short.of(&change.old)?, short.of(&change.new)?);
            if change.is_against_rules {
                Line { mark: '+', summary: format!("{old}...{new}"), note: Some("forced update".to_owned()) }
            } else {
                Line { mark: ' ', summary: format!("{old}..{new}"), note: None }
            }
        }
    })
}

fn kind_of_new(name: &BString) -> &'static str {
    if name.starts_with(b"refs/tags/") {
        "[new tag]"
    } else if name.starts_with(b"refs/heads/") {
        "[new branch]"
    } else {
        "[new reference]"
    }
}

/// Prints the last lines and returns the exit code.
pub(super) fn end(options: &Options, remote: &Remote, changes: &[Change], out: &mut Output) -> Result<i32> {
    if !changes.iter().any(is_failure) {
        if !options.quiet && changes.iter().all(|change| change.status == Status::UpToDate) {
            out.warn("Everything up-to-date");
        }
        return Ok(0);
    }
    out.warn(&format!("error: failed to push some refs to '{}'", remote.url));
    let is_behind = |change: &Change| matches!(change.status, Status::Rejected("non-fast-forward" | "fetch first"));
    if changes.iter().any(is_behind) {
        out.warn(
            "hint: Updates were rejected because the remote has commits that the pushed branch does not have.\nhint: They cannot be \
             fetched here: ask the owner to fetch them, or push to a new branch:\nhint: `git push REMOTE HEAD:refs/heads/NEW-BRANCH`",
        );
    }
    Ok(1)
}
