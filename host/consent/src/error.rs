//! Why the gate refused a claim. No message holds a token, a passphrase or a host path.

use base::{Refusal, RefusalCode, TokenName};
use store::StoreError;

/// An error of the consent gate.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum ConsentError {
    /// The store failed to read or write.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A model, or a program that speaks for one, wanted to consent.
    #[error("a model cannot consent: only the owner can do this")]
    Model,
    /// No token came with the request.
    #[error("only the owner can do this, and the request carries no token of the owner")]
    Missing,
    /// The token is not the owner's, or no longer.
    #[error("the token is not the one of this home's owner")]
    Wrong,
    /// The host has no token to compare with.
    #[error("this home has no owner's token that the host knows")]
    Unset,
    /// The settings switch off answers of MCP clients.
    #[error("answers of MCP clients are switched off")]
    NoElicitation,
    /// The owner's token is sealed, so the owner alone is asked.
    #[error("the owner's token is sealed with a passphrase: only the owner answers")]
    Sealed,
    /// The ticket of an answer is not that of the question, or not of this client.
    #[error("the answer does not belong to this question")]
    ForeignTicket,
    /// So many wrong tokens wait for their answer that no more are taken.
    #[error("too many wrong tokens at once")]
    TooMany,
    /// The token's file cannot be used.
    #[error("the owner's token, `config/owner.token` of the home, {reason}")]
    File {
        /// Why the file is unusable.
        reason: String,
        /// How to mend it.
        remedy: &'static str,
    },
    /// A passphrase can be guessed.
    #[error("the passphrase is too weak: {reason}")]
    Weak {
        /// Why the passphrase is too weak.
        reason: &'static str,
    },
    /// The passphrase does not open the token.
    #[error("the passphrase does not open the owner's token")]
    Passphrase,
    /// A file that was to replace the token's holds another token than it should.
    #[error("the new file does not hold the new token")]
    Mismatch,
    /// An API token of this name exists.
    #[error("there is a token `{0}` already")]
    TokenExists(TokenName),
    /// No API token has this name.
    #[error("there is no token `{0}`")]
    NoSuchToken(TokenName),
    /// The home has as many API tokens as it may.
    #[error("there are {0} tokens, as many as a home may have")]
    TooManyTokens(usize),
    /// The operating system failed.
    #[error("{action} failed")]
    System {
        /// The action that failed, in words.
        action: &'static str,
    },
}

impl From<seal::SystemError> for ConsentError {
    fn from(error: seal::SystemError) -> Self {
        Self::System { action: error.action }
    }
}

impl From<ConsentError> for Refusal {
    fn from(error: ConsentError) -> Self {
        let terminal = "run the command in a terminal, where it asks (`motor task approve RUN`, `motor task respond \
                        RUN`), or set `MOTOR_OWNER_TOKEN` for unattended use";
        let (code, remedy) = match &error {
            ConsentError::Store(error) => return error.clone().into(),
            ConsentError::Model
            | ConsentError::Missing
            | ConsentError::NoElicitation
            | ConsentError::Sealed
            | ConsentError::ForeignTicket => (RefusalCode::ConsentNeeded, Some(terminal)),
            ConsentError::Wrong => {
                let mend = "it may have been replaced since: `motor owner status` looks at the one of the home";
                (RefusalCode::ConsentNeeded, Some(mend))
            }
            ConsentError::Unset => {
                let mend = "mend what `motor owner status` says of its file, and start the host again";
                (RefusalCode::ConsentNeeded, Some(mend))
            }
            ConsentError::TooMany => (RefusalCode::TryLater, None),
            ConsentError::File { remedy, .. } => (RefusalCode::ConsentNeeded, Some(*remedy)),
            ConsentError::Weak { .. } => {
                let mend = "take at least 16 characters, such as four words that have nothing to do with each other";
                (RefusalCode::InvalidRequest, Some(mend))
            }
            ConsentError::Passphrase => (RefusalCode::ConsentNeeded, Some("try again with the right one")),
            ConsentError::Mismatch => (RefusalCode::InvalidRequest, None),
            ConsentError::TokenExists(_) => {
                (RefusalCode::IllegalState, Some("take another name, or revoke it first: `motor token revoke NAME`"))
            }
            ConsentError::NoSuchToken(_) => {
                (RefusalCode::NotFound, Some("list the tokens to see their names: `motor token list`"))
            }
            ConsentError::TooManyTokens(_) => {
                (RefusalCode::IllegalState, Some("revoke one that is no longer used: `motor token revoke NAME`"))
            }
            ConsentError::System { .. } => (RefusalCode::Failed, None),
        };
        let refusal = Self::new(code, error.to_string());
        match remedy {
            Some(remedy) => refusal.with_remedy(remedy),
            None => refusal,
        }
    }
}
