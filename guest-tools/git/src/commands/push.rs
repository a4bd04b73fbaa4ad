//! `git push`: new values for references of a remote repository, in one request (SPEC LAND-7).
//!
//! The caller's network decides whether a request leaves. Nothing is written here but the branches that follow the remote,
//! and with `-u` the configuration of the branch.

mod options;
mod plan;
mod print;
mod refspec;
mod settle;

use bstr::{BStr, ByteSlice as _};
use gix_hash::ObjectId;

use crate::error::{Fault, Result};
use crate::history;
use crate::output::Output;
use crate::refs::Head;
use crate::remote::{self, Connection, Remote, Service, Update};
use crate::repository::Repository;

use options::Options;
use plan::{Change, Status};

/// Runs the command, and prints its result.
pub(super) fn run(repository: Repository, arguments: &[String], out: &mut Output) -> Result<i32> {
    let mut repository = repository;
    let options = Options::parse(arguments)?;
    let head = repository.refs.head()?;
    let remote = find_remote(&repository, &options, &head)?;
    let specs = refspec::of(&repository, &options, &remote, &head)?;
    let connection = Connection::new(&repository, &remote)?;
    let advertised = connection.advertisement(Service::ReceivePack)?;
    let mut changes = match refspec::resolve(&repository, &specs, &advertised) {
        Ok(changes) => changes,
        Err(fault) if fault.code == 1 => {
            return Err(Fault::error_after(&fault, format_args!("failed to push some refs to '{}'", remote.url)));
        }
        Err(fault) => return Err(fault),
    };
    plan::decide(&repository, &options, &remote, &advertised, &mut changes)?;
    let updates: Vec<Update> = changes.iter().filter(|change| change.is_sent()).map(Change::update).collect();
    if !updates.is_empty() && !options.dry_run {
        let new: Vec<ObjectId> = updates.iter().map(|update| update.new).filter(|id| !id.is_null()).collect();
        let known: Vec<ObjectId> = advertised.references.values().chain(&advertised.others).copied().collect();
        let needed = if new.is_empty() { Vec::new() } else { history::missing(&repository, &new, &known)? };
        let report = connection.push(&updates, &advertised, &repository.objects, &needed)?;
        settle::apply(&mut changes, report, out);
    }
    print::changes(&repository, &options, &remote, &changes, out)?;
    if !options.dry_run {
        settle::follow(&repository, &remote, &changes, out)?;
    }
    if options.set_upstream {
        settle::set_upstream(&mut repository, &options, &remote, &changes, out)?;
    }
    print::end(&options, &remote, &changes, out)
}

fn find_remote(repository: &Repository, options: &Options, head: &Head) -> Result<Remote> {
    if let Some(name) = &options.remote {
        return Remote::find(repository, name, true);
    }
    let name = remote::push_name(repository, head.short());
    // A name of the configuration without a URL is no destination.
    if !remote::is_configured(repository, &name) && !name.contains(':') {
        return Err(Fault::fatal(
            "No configured push destination.\nEither specify the URL from the command-line or have the owner configure a remote: \
             `git push https://HOST/PATH BRANCH`",
        ));
    }
    Remote::find(repository, &name, true)
}

/// The name of the current branch; a fault if `HEAD` is detached.
fn current_branch<'a>(head: &'a Head, remote: &Remote) -> Result<&'a BStr> {
    head.branch.as_ref().map(|name| name.as_bstr()).ok_or_else(|| {
        Fault::fatal(format_args!(
            "You are not currently on a branch.\nTo push the history leading to the current (detached HEAD)\nstate now, use\n\n    \
             git push {} HEAD:<name-of-remote-branch>\n",
            remote.name
        ))
    })
}

/// Whether a change was refused, here or by the remote.
fn is_failure(change: &Change) -> bool {
    !matches!(change.status, Status::Changed | Status::UpToDate | Status::Pending)
}
