//! The ledger of peers (SPEC LED-1 to LED-3): their interactions with an agent, and the agent's trust in each.
//!
//! Architecture invariant: the ledger knows no model and no surface. `info_score` follows from counts and times alone
//! ([`info_score`]); a judgement arrives as a number and a rationale, and is checked here. A peer's text is foreign: bounded when
//! it is stored, and harmless when it is shown to a model. Assessments are appended, never changed.
//!
//! # Keys
//! Sized for 100,000 peers and 10,000,000 interactions, with a small cache:
//!
//! | table | key | value |
//! | --- | --- | --- |
//! | `Peers` | agent, `00`, peer | the peer's head: its number, counts, times, last assessment, trajectory |
//! | `Peers` | `01`, agent, `00`, time (8), number (8) | note that a peer was forgotten, without its id |
//! | `Peers` | `02`, number (8) | a forgotten peer whose entries are still being deleted |
//! | `Interactions` | number (8), sequence (8) | one interaction |
//! | `Assessments` | number (8), sequence (8) | one assessment |
//!
//! Assessing and enriching read the head alone: one point read, however long the history is. A write is the head and one appended
//! entry in one batch. The entries of a peer lie side by side, so the latest ten are a read of one or two blocks. Numbers in keys
//! are big-endian. Nothing is scanned at a start except the keys that begin with `02`.
//!
//! Entries are filed under a random number, not under the peer's id. Forgetting a peer is one batch that deletes the head and notes
//! the number; its entries are out of reach from then on, and are deleted in steps that a crash cannot leave half forgotten. A
//! peer of the same id that appears meanwhile has another number.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

mod assess;
mod enrich;
mod forget;
mod id;
mod keys;
mod ledger;
mod locks;
mod record;
mod report;
mod score;
#[cfg(test)]
mod tests;

pub use assess::{NewAssessment, StagedAssessments, TrustChange};
pub use forget::{DeletedWithPeer, StagedForgetting};
pub use id::{ChannelName, InvalidName, PeerId};
pub use ledger::{Ledger, LedgerParts, MAX_SUMMARY, NewInteraction, Recorded, StagedInteractions};
pub use record::{Assessment, AssessmentSource, Direction, Interaction, PeerIncarnation, TrajectoryPoint};
pub use report::{ForgottenPeer, MAX_LISTED_PEERS, PeerReport, PeerSummary};
pub use score::{Evidence, MAX_TRUST, SCORE_GUIDE, info_score};
