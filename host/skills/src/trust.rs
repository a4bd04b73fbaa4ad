//! Trust: records in the store, and the one function that says where a skill stands (SPEC SKILL-4, SKILL-6).
//!
//! It must not know directories, components or surfaces: it is told which bytes lie where, and by whose word. What it
//! survives: records that are damaged, foreign, older, superseded or about other permission bits, none of which is ever
//! taken for trust; old bytes put back after another version took their place; a caller that goes away in the middle of
//! a change; an end of the process at any write, after which the table is as it was before a change or after it.

mod book;
mod known;
mod record;
mod standing;
#[cfg(test)]
pub(crate) mod tests;

pub use book::TrustBook;

use base::{ConsentRecord, ContentHash, Timestamp};
use serde::{Deserialize, Serialize};

use crate::policy::{ExtractedFrom, Policy, SkillProvenance};
use crate::{SkillName, SkillPlace, SkillStatus, Snapshot};

/// Bytes in a place: what trust is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The skill.
    pub name: SkillName,
    /// Where it lies.
    pub place: SkillPlace,
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// The hash of its permission bits.
    pub modes: ContentHash,
}

impl Subject {
    /// These bytes, under that name, in that place.
    #[must_use]
    pub fn of(name: SkillName, place: SkillPlace, snapshot: &Snapshot) -> Self {
        Self { name, place, hash: snapshot.hash, modes: snapshot.modes }
    }
}

/// What is known of one version of a skill in one place. Stored: a field may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustRecord {
    /// The skill.
    pub name: SkillName,
    /// Where it lies.
    pub place: SkillPlace,
    /// The bytes that this is about.
    pub hash: ContentHash,
    /// Their permission bits (`Snapshot::modes`).
    pub modes: ContentHash,
    /// Its state.
    pub status: SkillStatus,
    /// Another version was approved or made in its place: this one is no trust any more, whatever its status.
    #[serde(default)]
    pub superseded: bool,
    /// The approved policy, or the one kept for the next approval.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// Where it came from.
    #[serde(default)]
    pub provenance: Option<SkillProvenance>,
    /// The run that made it.
    #[serde(default)]
    pub extracted_from: Option<ExtractedFrom>,
    /// The owner's word, with when and through which door; only when approved.
    #[serde(default)]
    pub consent: Option<ConsentRecord>,
    /// When its deterministic review was completed.
    #[serde(default)]
    pub reviewed_at: Option<Timestamp>,
    /// What the advisory review said.
    #[serde(default)]
    pub advisory: Option<Advisory>,
    /// When the owner last rejected it, and why.
    #[serde(default)]
    pub rejected: Option<Rejection>,
    /// What a bare component said of itself when it was reviewed.
    #[serde(default)]
    pub described: Option<Described>,
    /// When the record was last changed.
    pub changed_at: Timestamp,
}

/// What a read-only run of the motor thought of a skill. Advice: it never approves anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Advisory {
    /// The run.
    pub run_id: base::RunId,
    /// Whether it ended, with a verdict, and the verdict was that nothing speaks against it.
    pub passed: bool,
    /// What it said, cut.
    pub text: String,
    /// When.
    pub at: Timestamp,
}

/// A rejection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// The owner's word.
    pub consent: ConsentRecord,
    /// Why.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A component's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// One paragraph.
    pub description: String,
    /// Markdown for the prompt.
    pub body: String,
}

/// Where a skill stands, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// The state.
    pub status: SkillStatus,
    /// One sentence for people: what it means and what to do.
    pub reason: String,
    /// The record about exactly these bytes, unless it is superseded or about other permission bits.
    pub record: Option<TrustRecord>,
}
