//! The tables of a home. Each is one ordered keyspace of its own, so that a busy one is compacted apart from the rest.

use std::fmt;

/// A table of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// What the store says about itself, and single values of the host.
    Meta,
    /// One record for each run.
    Runs,
    /// The journals of the runs, appended to at every step.
    Events,
    /// Runs that are not finished: what a start of the host has to look at.
    Live,
    /// Places held by running acts (SPEC RUN-2).
    Places,
    /// Signals, by id.
    Signals,
    /// Energy levels, by agent.
    Energy,
}

impl Table {
    /// Every table.
    pub(crate) const ALL: [Self; 7] =
        [Self::Meta, Self::Runs, Self::Events, Self::Live, Self::Places, Self::Signals, Self::Energy];

    /// The name on disk; it never changes.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Meta => "meta",
            Self::Runs => "runs",
            Self::Events => "events",
            Self::Live => "live",
            Self::Places => "places",
            Self::Signals => "signals",
            Self::Energy => "energy",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
