//! The changes of a push that are sent, and those refused here: the rules of git for values that are not newer (git-push(1)).

use bstr::{BStr, BString, ByteSlice as _};
use gix_hash::ObjectId;
use gix_object::Kind;

use super::options::{Lease, Options};
use crate::error::{Fault, Result};
use crate::history::ahead_behind;
use crate::objects::HASH;
use crate::remote::{Advertisement, Remote, Update};
use crate::repository::Repository;
use crate::revision;

/// A reference of the remote that is to change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    /// The source, as it is printed; `None` for a deletion.
    pub from: Option<BString>,
    /// The full name on the remote.
    pub to: BString,
    pub old: ObjectId,
    pub new: ObjectId,
    /// Whether it was asked to change it against the rules.
    pub is_forced: bool,
    /// Whether it is against the rules, so that it is printed as forced.
    pub is_against_rules: bool,
    pub status: Status,
}

/// The state of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Status {
    /// It is to be sent.
    Pending,
    UpToDate,
    /// Refused here, for a reason of git's.
    Rejected(&'static str),
    Changed,
    /// Refused by the remote, for its reason.
    RemoteRejected(String),
    /// The remote said nothing of it.
    Unreported,
}

impl Change {
    pub(super) fn new(from: Option<BString>, to: BString, new: ObjectId, is_forced: bool) -> Self {
        let old = ObjectId::null(HASH);
        Self { from, to, old, new, is_forced, is_against_rules: false, status: Status::Pending }
    }

    pub(super) fn is_sent(&self) -> bool {
        self.status == Status::Pending
    }

    pub(super) fn update(&self) -> Update {
        Update { name: self.to.clone(), old: self.old, new: self.new }
    }
}

/// Decides which changes are sent.
pub(super) fn decide(
    repository: &Repository,
    options: &Options,
    remote: &Remote,
    advertised: &Advertisement,
    changes: &mut [Change],
) -> Result<()> {
    if !changes.is_empty() && !advertised.has("report-status") {
        return Err(Fault::unsupported("a server that does not report on a push"));
    }
    if options.atomic && !advertised.has("atomic") {
        return Err(Fault::fatal("the receiving end does not support --atomic push"));
    }
    for change in changes.iter_mut() {
        change.status = status(repository, options, remote, advertised, change)?;
    }
    let is_refused = changes.iter().any(|change| matches!(change.status, Status::Rejected(_)));
    if options.atomic && is_refused {
        for change in changes.iter_mut().filter(|change| change.status == Status::Pending) {
            change.status = Status::Rejected("atomic push failed");
        }
    }
    Ok(())
}

fn status(
    repository: &Repository,
    options: &Options,
    remote: &Remote,
    advertised: &Advertisement,
    change: &mut Change,
) -> Result<Status> {
    if change.old == change.new {
        return Ok(Status::UpToDate);
    }
    if change.new.is_null() && !advertised.has("delete-refs") {
        return Ok(Status::Rejected("remote does not support deleting refs"));
    }
    let against = if change.new.is_null() || change.old.is_null() { None } else { rule(repository, change)? };
    change.is_against_rules = against.is_some();
    let lease = options.leases.iter().rev().find(|lease| lease.is_for(change.to.as_bstr()));
    if let (Some(lease), false) = (lease, change.is_forced) {
        // A lease that holds is the permission to force.
        let is_held = lease.expected(repository, remote, change.to.as_bstr())? == Some(change.old);
        return Ok(if is_held { Status::Pending } else { Status::Rejected("stale info") });
    }
    Ok(match against {
        Some(reason) if !change.is_forced => Status::Rejected(reason),
        _ => Status::Pending,
    })
}

/// The rule that a new value of an existing reference is against.
fn rule(repository: &Repository, change: &Change) -> Result<Option<&'static str>> {
    if change.to.starts_with(b"refs/tags/") {
        return Ok(Some("already exists"));
    }
    if !repository.objects.contains(&change.old)? {
        return Ok(Some("fetch first"));
    }
    let commit = |id: ObjectId| match revision::peel_to(repository, id, Kind::Commit) {
        Ok(id) => Ok(Some(id)),
        // Another kind of object.
        Err(fault) if fault.code == 1 => Ok(None),
        Err(fault) => Err(fault),
    };
    let (Some(old), Some(new)) = (commit(change.old)?, commit(change.new)?) else { return Ok(Some("needs force")) };
    let (_, behind) = ahead_behind(repository, new, old)?;
    Ok((behind > 0).then_some("non-fast-forward"))
}

impl Lease {
    fn is_for(&self, full: &BStr) -> bool {
        let Some(name) = &self.name else { return true };
        full == name.as_str()
            || ["refs/heads/", "refs/tags/", "refs/"].iter().any(|kind| full == format!("{kind}{name}").as_str())
    }

    /// The value that the reference has to have; `None` if it is not known.
    fn expected(&self, repository: &Repository, remote: &Remote, full: &BStr) -> Result<Option<ObjectId>> {
        match self.expected.as_deref() {
            Some("") => Ok(Some(ObjectId::null(HASH))),
            Some(text) => revision::find(repository, text)?
                .map(Some)
                .ok_or_else(|| Fault::error(format_args!("cannot parse expected object name '{text}'"))),
            None => match remote.tracking(full) {
                Some(name) => repository.refs.resolve(name.as_bstr()),
                None => Ok(None),
            },
        }
    }
}
