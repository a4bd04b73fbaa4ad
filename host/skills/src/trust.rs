//! Trust: records in the store, and the one function that says where a skill stands (SPEC SKILL-4, SKILL-6).
//!
//! It must not know directories, components or surfaces: callers name the bytes, the place and the consent. It never
//! trusts a record that is damaged, foreign, older, superseded or about other permission bits, nor old bytes put back
//! after another version replaced them. It survives a caller dropped mid-change, and a crash at any write: the table is
//! then as before the change or as after it.

mod book;
mod known;
mod record;
mod standing;
#[cfg(test)]
pub(crate) mod tests;

pub use book::TrustBook;

use base::{ConsentRecord, ContentHash, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::policy::{ExtractedFrom, Policy, SkillProvenance};
use crate::{SkillName, SkillPlace, SkillStatus, Snapshot};

/// The bytes in one place that a trust record is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// The skill's name, part of the record's key.
    pub name: SkillName,
    /// Root and entry where the skill lies.
    pub place: SkillPlace,
    /// The hash of its bytes.
    pub hash: ContentHash,
    /// The hash of its permission bits.
    pub modes: ContentHash,
}

impl Subject {
    /// The subject of a snapshot under this name in this place.
    #[must_use]
    pub fn of(name: SkillName, place: SkillPlace, snapshot: &Snapshot) -> Self {
        Self { name, place, hash: snapshot.hash, modes: snapshot.modes }
    }
}

/// The stored record of one skill version in one place. Fields may be added, never renamed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TrustRecord {
    /// The skill's name; has to match the record's key.
    pub name: SkillName,
    /// Root and entry of the skill; has to match the key too.
    pub place: SkillPlace,
    /// Content hash of the skill's bytes.
    pub hash: ContentHash,
    /// Their permission bits (`Snapshot::modes`).
    pub modes: ContentHash,
    /// Review status; ignored once `superseded` is set.
    pub status: SkillStatus,
    /// Another version was approved or made in its place: this one is no longer trusted, regardless of its status.
    #[serde(default)]
    pub superseded: bool,
    /// The approved policy, or the one kept for the next approval.
    #[serde(default)]
    pub policy: Option<Policy>,
    /// The source it was fetched or copied from, if known.
    #[serde(default)]
    pub provenance: Option<SkillProvenance>,
    /// The run that made it, if any.
    #[serde(default)]
    pub extracted_from: Option<ExtractedFrom>,
    /// The owner's last consent to these bytes, with time and channel. In force only while the status is `approved`.
    #[serde(default)]
    pub consent: Option<ConsentRecord>,
    /// When its deterministic review was completed.
    #[serde(default)]
    pub reviewed_at: Option<Timestamp>,
    /// The latest advice of a read-only run, if any.
    #[serde(default)]
    pub advisory: Option<Advisory>,
    /// When the owner last rejected it, and why.
    #[serde(default)]
    pub rejected: Option<Rejection>,
    /// A bare component's self-description, as of its review.
    #[serde(default)]
    pub described: Option<Described>,
    /// When the record was last changed.
    pub changed_at: Timestamp,
}

/// A read-only run's opinion of a skill. It is advice and never approves anything.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Advisory {
    /// The read-only run that gave the advice.
    pub run_id: base::RunId,
    /// Whether the run ended with a verdict that found nothing against the skill.
    pub passed: bool,
    /// The run's text, cut to 4,000 characters.
    pub text: String,
    /// When the advice was given.
    pub at: Timestamp,
}

/// The owner's rejection of a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rejection {
    /// The owner's consent to the rejection.
    pub consent: ConsentRecord,
    /// The owner's reason, if they gave one; cut to 4,000 characters.
    #[serde(default)]
    pub reason: Option<String>,
}

/// A component's description of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Described {
    /// One paragraph about the component.
    pub description: String,
    /// Markdown for the prompt.
    pub body: String,
}

/// Where a skill stands, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing {
    /// Status; `needs_reapproval` unless a sound record says otherwise.
    pub status: SkillStatus,
    /// One sentence for people: the meaning of the status and the next step.
    pub reason: String,
    /// The record about exactly these bytes, unless it is superseded or about other permission bits.
    pub record: Option<TrustRecord>,
}
