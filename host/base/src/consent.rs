//! The record of the owner's consent: by whom, through which channel, when (SPEC CONSENT-1).
//!
//! Evidence for records, not a right: it says that the gate of crate `consent` allowed an action. The right is
//! `consent::Consent`, which no record turns into.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Timestamp;

/// The channel through which a person's decision reached the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
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
    /// A model, or a program that speaks for one. Never gives consent.
    Model,
}

/// The stored form of the owner's consent.
///
/// JSON: `{ "givenBy": "owner", "door": "terminal", "at": 1767225600000 }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConsentRecord {
    /// The person who gave it, such as `owner`.
    pub given_by: String,
    /// The channel it came through.
    pub door: Door,
    /// Time it was given.
    pub at: Timestamp,
}
