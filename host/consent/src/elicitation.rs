//! Answers that come back from an MCP client that was asked (SPEC ASK-1, MCP-1).
//!
//! The program at the other end may play the person, so such an answer is worth as much as the text of a task by the same
//! client: it answers a question, and consents to nothing. It is admitted only with the ticket of that question, which
//! the host hands to its own MCP server and to programs of the owner's user.

use aws_lc_rs::hmac;
use base::{ConsentRecord, Door, RunId};
use serde::{Deserialize, Serialize};

use crate::{Consent, ConsentError, ConsentGate};

/// Separates tickets from everything else that is derived from the owner's token.
const PURPOSE: &str = "motor elicitation ticket 1";
/// Bytes of the authentication code in a ticket.
const TAG_BYTES: usize = 16;

/// The settings of the section `[consent]`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConsentConfig {
    /// Whether the questions of runs that a model requested may be answered through the MCP client that requested them.
    pub elicitation: bool,
}

impl Default for ConsentConfig {
    fn default() -> Self {
        Self { elicitation: true }
    }
}

/// The right to answer a run's question: the owner's, or that of an MCP client that was asked.
///
/// ```
/// fn answer(consent: consent::Consent) -> consent::AnswerAuthority { consent.into() }
/// fn record(authority: consent::AnswerAuthority) -> base::ConsentRecord { authority.into() }
/// ```
/// It is not a consent:
///
/// ```compile_fail,E0277
/// fn approve(authority: consent::AnswerAuthority) -> consent::Consent { authority.into() }
/// ```
/// ```compile_fail,E0423
/// fn forge(record: base::ConsentRecord) -> consent::AnswerAuthority { consent::AnswerAuthority(record) }
/// ```
#[derive(Debug, Clone)]
pub struct AnswerAuthority(ConsentRecord);

impl From<Consent> for AnswerAuthority {
    fn from(consent: Consent) -> Self {
        Self(consent.into())
    }
}

impl From<AnswerAuthority> for ConsentRecord {
    fn from(authority: AnswerAuthority) -> Self {
        authority.0
    }
}

/// A question that is put to an MCP client.
#[derive(Debug, Clone, Copy)]
pub struct ElicitedQuestion<'a> {
    /// The run that asks.
    pub run: &'a RunId,
    /// Id of the question, `ask_…`.
    pub question: &'a str,
    /// The client, as the host knows it.
    pub client: &'a str,
}

impl ConsentGate {
    /// The ticket with which this client may answer this question. It is void once the owner's token is replaced.
    ///
    /// # Errors
    /// If answers of clients are switched off, the owner's token is sealed, or the host knows no token.
    pub fn elicit(&self, asked: ElicitedQuestion<'_>) -> Result<String, ConsentError> {
        let tag = hmac::sign(&self.ticket_key()?, &asked.bytes());
        let tag: String = tag.as_ref().iter().take(TAG_BYTES).map(|byte| format!("{byte:02x}")).collect();
        Ok(format!("{}.{tag}", asked.question))
    }

    /// Admits the answer of a client that holds the ticket of the question.
    ///
    /// # Errors
    /// As for [`ConsentGate::elicit`], or if the ticket is not that of this question and client.
    pub fn elicited(&self, asked: ElicitedQuestion<'_>, ticket: &str) -> Result<AnswerAuthority, ConsentError> {
        let expected = self.elicit(asked)?;
        aws_lc_rs::constant_time::verify_slices_are_equal(expected.as_bytes(), ticket.as_bytes())
            .map_err(|_| ConsentError::ForeignTicket)?;
        Ok(AnswerAuthority(ConsentRecord {
            given_by: asked.client.to_owned(),
            door: Door::Elicitation,
            at: self.clock.now(),
        }))
    }

    /// An owner who sealed the token wants to be asked alone.
    fn ticket_key(&self) -> Result<hmac::Key, ConsentError> {
        if !self.config.elicitation {
            return Err(ConsentError::NoElicitation);
        }
        let (hash, sealed) = self.token_hash().ok_or(ConsentError::Unset)?;
        if sealed {
            return Err(ConsentError::Sealed);
        }
        Ok(hmac::Key::new(hmac::HMAC_SHA256, hash.as_bytes()))
    }
}

impl ElicitedQuestion<'_> {
    /// Ids have no line breaks, and the client comes last.
    fn bytes(&self) -> Vec<u8> {
        format!("{PURPOSE}\n{}\n{}\n{}", self.run, self.question, self.client).into_bytes()
    }
}
