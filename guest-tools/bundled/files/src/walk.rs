//! Directories, entry by entry in a fixed order. Links are shown and never followed, so a walk stays inside and ends;
//! the number of entries and the depth are bounded, and omissions are reported.

use std::{ops::ControlFlow, vec};

pub(crate) use direct::Kind;
use motor_sdk::ToolError;

use crate::{
    fault, limits,
    workspace::{HOST_DIRECTORY, Place, Workspace},
};

/// Unreadable entries in a row after which a directory counts as broken.
const BROKEN_ENTRIES: usize = 1_000;

/// An entry of a directory.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) kind: Kind,
}

/// How far a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The entries of the directory.
    Directory,
    /// Also those of the directories in it, but not of the host's.
    Tree,
}

/// The entries that a walk did not see.
#[derive(Debug, Default)]
pub(crate) struct Omitted {
    /// Entries whose names are not UTF-8, which no path can mean.
    names: usize,
    /// Directories that could not be read.
    unreadable: usize,
    /// Directories below the greatest depth.
    deep: usize,
    /// The walk ended at its greatest number of entries.
    ended: bool,
}

impl Omitted {
    /// A note for each kind.
    pub(crate) fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if self.names > 0 {
            notes.push(format!("left out: {} entries whose names are not UTF-8", self.names));
        }
        if self.unreadable > 0 {
            notes.push(format!("left out: {} directories that cannot be read", self.unreadable));
        }
        if self.deep > 0 {
            notes.push(format!("left out: {} directories deeper than {}", self.deep, limits::WALKED_DEPTH));
        }
        if self.ended {
            notes.push(format!("stopped after {} entries: choose a smaller `path`", limits::WALKED_ENTRIES));
        }
        notes
    }
}

/// Visits the entries of a directory, sorted by name, a directory before its entries.
///
/// # Errors
/// If the directory itself cannot be read.
pub(crate) fn walk(
    workspace: &Workspace,
    start: &Place,
    reach: Reach,
    visit: &mut dyn FnMut(&Entry) -> ControlFlow<()>,
) -> Result<Omitted, ToolError> {
    let mut omitted = Omitted::default();
    let mut room = limits::WALKED_ENTRIES;
    let first =
        entries(workspace, start, &mut room, &mut omitted).map_err(|error| fault::of(&error, &start.shown()))?;
    let mut open: Vec<vec::IntoIter<Entry>> = vec![first.into_iter()];
    while let Some(directory) = open.last_mut() {
        let Some(entry) = directory.next() else {
            open.pop();
            continue;
        };
        if visit(&entry).is_break() {
            break;
        }
        let is_hosts = entry.place.is_the_hosts() && !start.is_the_hosts();
        if entry.kind != Kind::Directory || reach == Reach::Directory || is_hosts {
            continue;
        }
        if open.len() > limits::WALKED_DEPTH {
            omitted.deep += 1;
            continue;
        }
        match entries(workspace, &entry.place, &mut room, &mut omitted) {
            Ok(entries) => open.push(entries.into_iter()),
            Err(_) => omitted.unreadable += 1,
        }
    }
    Ok(omitted)
}

fn entries(
    workspace: &Workspace,
    place: &Place,
    room: &mut usize,
    omitted: &mut Omitted,
) -> std::io::Result<Vec<Entry>> {
    let mut found = Vec::new();
    let mut broken = 0;
    for entry in direct::list(&workspace.path(place))? {
        let Some(left) = room.checked_sub(1) else {
            omitted.ended = true;
            break;
        };
        *room = left;
        match entry {
            Ok((name, kind)) => found.push(Entry { place: place.join(&name), kind }),
            // A name that is not UTF-8.
            Err(_) if broken < BROKEN_ENTRIES => {
                broken += 1;
                omitted.names += 1;
            }
            Err(error) => return Err(error),
        }
    }
    found.sort_by(|a, b| a.place.name().cmp(b.place.name()));
    if place.is_root()
        && let Some(at) = found.iter().position(|entry| entry.place.name() == HOST_DIRECTORY)
    {
        let hosts = found.remove(at);
        found.push(hosts);
    }
    Ok(found)
}
