//! The owner's word: the one gate that every answer, approval and decision of the owner goes through (SPEC CONSENT-1).
//!
//! Who holds the owner's token is the owner. The token lies in the home, in plain or sealed with a passphrase; the host
//! knows its hash only. It must not know the subject of a decision, nor any surface: who asks a person, and how, is the
//! surface's business, and the door it came through is recorded with the answer. Other programs are known by tokens that
//! the owner makes for them ([`ApiTokens`]): none of those consents to anything.
//!
//! Architecture invariant: no other crate makes a [`Consent`] or an [`AnswerAuthority`]. It survives the following: a guessed, old, missing or foreign
//! token is refused; a crash at any write of [`ConsentGate::replace`] leaves a token that works and a host that knows it.

mod api_tokens;
mod attempts;
mod elicitation;
mod error;
mod file;
mod gate;
mod seal;
mod sign_ins;
mod token;

pub use api_tokens::{ApiToken, ApiTokens, NewApiToken, TokenScope};
pub use elicitation::{AnswerAuthority, ConsentConfig, ElicitedQuestion};
pub use error::ConsentError;
pub use file::{FILE_NAME, MAX_FILE_BYTES, TokenFile};
pub use gate::{Claim, Consent, ConsentGate, FileState, OwnerStatus, Replacement};
pub use seal::OwnerPassphrase;
pub use token::OwnerToken;
