//! The tables of a home. Each is a separate ordered keyspace, so that a busy one is compacted apart from the rest.

use std::fmt;

/// A table of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Table {
    /// Metadata of the store, and single values of the host.
    Meta,
    /// One record for each run.
    Runs,
    /// The journals of the runs, appended to at every step.
    Events,
    /// Unfinished runs, which a starting host has to check.
    Live,
    /// Slots held by running acts (SPEC RUN-2).
    Places,
    /// Signals, ordered by id.
    Signals,
    /// Energy levels, ordered by agent.
    Energy,
    /// Credentials, encrypted, and the record about their key. Since schema 2.
    Vault,
    /// The owner's trust in the skills, and when each was used. Since schema 4.
    Skills,
    /// Writes of runs that are held until the owner sends them, and the fate of each (SPEC LAND-5). Each key begins with its
    /// run and `/`. Since schema 6.
    Staged,
    /// One record for each peer of an agent, and notes about forgotten ones (SPEC LED-1). Since schema 7.
    Peers,
    /// The interactions with peers, under the number of the peer. Since schema 7.
    Interactions,
    /// The assessments of peers, under the number of the peer. Since schema 7.
    Assessments,
    /// The beliefs and the reflections of each agent (SPEC CX-6, CX-8). Since schema 7.
    Reflections,
    /// Conversations of agents with the owner and with peers (SPEC COG-1). Since schema 8.
    Conversations,
}

impl Table {
    /// Every table of the current schema.
    pub(crate) const ALL: [Self; 15] = [
        Self::Meta,
        Self::Runs,
        Self::Events,
        Self::Live,
        Self::Places,
        Self::Signals,
        Self::Energy,
        Self::Vault,
        Self::Skills,
        Self::Staged,
        Self::Peers,
        Self::Interactions,
        Self::Assessments,
        Self::Reflections,
        Self::Conversations,
    ];

    /// The schema version that added the table: a state of an older one lacks it.
    pub(crate) const fn since(self) -> u32 {
        match self {
            Self::Conversations => 8,
            Self::Peers | Self::Interactions | Self::Assessments | Self::Reflections => 7,
            Self::Staged => 6,
            Self::Skills => 4,
            Self::Vault => 2,
            Self::Meta | Self::Runs | Self::Events | Self::Live | Self::Places | Self::Signals | Self::Energy => 1,
        }
    }

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
            Self::Vault => "vault",
            Self::Skills => "skills",
            Self::Staged => "staged",
            Self::Peers => "peers",
            Self::Interactions => "interactions",
            Self::Assessments => "assessments",
            Self::Reflections => "reflections",
            Self::Conversations => "conversations",
        }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
