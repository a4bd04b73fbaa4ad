//! What the owner's word is, once it was given: by whom, through which door, when (SPEC CONSENT-1).
//!
//! Evidence for records, not a right: it says that the gate of crate `consent` has let somebody through. The right is
//! `consent::Consent`, which no record turns into.

use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The way by which a person's word reached the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Door {
    /// The command line asked on the controlling terminal.
    Terminal,
    /// A program that holds the owner's token, without a terminal.
    Token,
    /// The owner's page in a browser.
    Web,
    /// A client that showed the question to a person.
    Elicitation,
    /// The owner's own message to the built-in cognition.
    Message,
    /// A model, or a program that speaks for one. Never lets anybody through.
    Model,
}

/// The stored form of the owner's consent.
///
/// JSON: `{ "givenBy": "owner", "door": "terminal", "at": 1767225600000 }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsentRecord {
    /// Who gave it.
    pub given_by: String,
    /// Through which door.
    pub door: Door,
    /// When.
    pub at: Timestamp,
}
