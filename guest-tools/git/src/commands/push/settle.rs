//! After a push: the remote's report, the branches here that follow it, and the upstream of a branch.

use bstr::{BStr, ByteSlice as _};

use super::options::Options;
use super::plan::{Change, Status};
use crate::commands::tracking::short_name;
use crate::error::Result;
use crate::ident::Signature;
use crate::output::Output;
use crate::remote::{Outcome, Remote, Report};
use crate::repository::Repository;

/// Takes over the remote's report.
pub(super) fn apply(changes: &mut [Change], report: Report, out: &mut Output) {
    for line in &report.messages {
        out.warn(&format!("remote: {line}"));
    }
    if let Some(reason) = &report.unpack_error {
        out.warn(&format!("error: remote unpack failed: {reason}"));
    }
    for change in changes.iter_mut().filter(|change| change.is_sent()) {
        change.status = match report.outcomes.get(&change.to) {
            // Without the objects no reference can have changed, also where the report says so.
            Some(Outcome::Changed) if report.unpack_error.is_some() => {
                Status::RemoteRejected("unpacker error".to_owned())
            }
            Some(Outcome::Changed) => Status::Changed,
            Some(Outcome::Refused(reason)) => Status::RemoteRejected(reason.clone()),
            None => Status::Unreported,
        };
    }
}

/// Moves the branches that follow the remote's.
pub(super) fn follow(repository: &Repository, remote: &Remote, changes: &[Change], out: &mut Output) -> Result<()> {
    for change in changes.iter().filter(|change| matches!(change.status, Status::Changed | Status::UpToDate)) {
        let Some(name) = remote.tracking(change.to.as_bstr()) else { continue };
        let before = repository.refs.resolve(name.as_bstr())?;
        let moved = if change.new.is_null() {
            before.map_or(Ok(()), |_| repository.refs.remove(name.as_bstr()))
        } else if before == Some(change.new) {
            Ok(())
        } else {
            repository.refs.update(name.as_bstr(), change.new, before).and_then(|()| {
                let who = Signature::committer(repository)?.line();
                repository.refs.note(name.as_bstr(), (before, change.new), who.as_bstr(), "update by push".into())
            })
        };
        // The remote has changed already: a failure here does not undo it.
        if let Err(fault) = moved {
            out.warn(&format!("warning: '{name}' was not moved: {}", fault.message));
        }
    }
    Ok(())
}

/// `-u`: has the pushed branches follow those of the remote.
pub(super) fn set_upstream(
    repository: &mut Repository,
    options: &Options,
    remote: &Remote,
    changes: &[Change],
    out: &mut Output,
) -> Result<()> {
    for change in changes {
        let is_done = matches!(change.status, Status::Changed | Status::UpToDate);
        if change.new.is_null() || !(is_done || options.dry_run && change.status == Status::Pending) {
            continue;
        }
        let Some(branch) = local_branch(repository, change)? else { continue };
        let (name, to) = (short_name(branch.as_ref()).to_owned(), short_name(change.to.as_bstr()));
        if options.dry_run {
            out.put(format!("Would set upstream of '{name}' to '{to}' of '{}'\n", remote.name))?;
            continue;
        }
        repository.config.set(&format!("branch.{name}.remote"), &remote.name)?;
        repository.config.set(&format!("branch.{name}.merge"), &change.to.to_string())?;
        if !options.quiet {
            let shown = remote.tracking(change.to.as_bstr()).unwrap_or_else(|| change.to.clone());
            out.put(format!("branch '{name}' set up to track '{}'.\n", short_name(shown.as_bstr())))?;
        }
    }
    Ok(())
}

/// The branch here that was pushed, if it was one.
fn local_branch(repository: &Repository, change: &Change) -> Result<Option<bstr::BString>> {
    let from = change.from.as_ref().map_or(BStr::new(""), |from| from.as_bstr());
    if from == "HEAD" {
        return Ok(repository.refs.head()?.branch);
    }
    Ok(from.starts_with(b"refs/heads/").then(|| from.to_owned()))
}
