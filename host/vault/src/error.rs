//! Errors of the vault. No message holds a value, a key or a host path.

use base::{CredentialName, Refusal, RefusalCode};
use store::StoreError;

/// An error of the vault.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// The underlying store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A credential cannot be kept as it is.
    #[error("credential `{name}` cannot be kept: {reason}")]
    Unfit {
        /// Name of the unfit credential.
        name: CredentialName,
        /// The problem with the value.
        reason: &'static str,
    },
    /// A credential begins or ends with white space, which servers cut off.
    #[error("credential `{name}` begins or ends with white space, which servers do not take for a part of it")]
    Padded {
        /// Name of the padded credential.
        name: CredentialName,
    },
    /// There is no such credential.
    #[error("there is no credential `{name}`{}", skill.as_ref().map(|skill| format!(" of the skill `{skill}`")).unwrap_or_default())]
    NotFound {
        /// Name of the missing credential.
        name: CredentialName,
        /// The requested skill; `None` for shared credentials.
        skill: Option<String>,
    },
    /// A run needs credentials that are not set.
    #[error("{}", missing_in_words(names))]
    Missing {
        /// Names of the missing credentials.
        names: Vec<CredentialName>,
    },
    /// A record does not decrypt or decode.
    #[error("credential `{name}` is unreadable: set it again")]
    Unreadable {
        /// Name of the unreadable credential.
        name: CredentialName,
    },
    /// The key of the vault is not available.
    #[error("the credentials cannot be decrypted: {reason}")]
    Key {
        /// The reason, for people.
        reason: String,
        /// The remedy, for people.
        remedy: String,
    },
    /// The value of `MOTOR_CREDENTIALS_KEY` is not a valid key.
    #[error("`MOTOR_CREDENTIALS_KEY` is no key: {reason}")]
    WeakKey {
        /// The problem with the key.
        reason: &'static str,
    },
    /// The system provided no randomness or no thread.
    #[error("{action} failed")]
    System {
        /// The action that failed.
        action: &'static str,
    },
}

impl From<seal::SystemError> for VaultError {
    fn from(error: seal::SystemError) -> Self {
        Self::System { action: error.action }
    }
}

fn missing_in_words(names: &[CredentialName]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    if names.len() == 1 {
        format!("credential {} is not set", join(&quoted))
    } else {
        format!("credentials {} are not set", join(&quoted))
    }
}

fn join(items: &[String]) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

impl VaultError {
    pub(crate) fn key(reason: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Key { reason: reason.into(), remedy: remedy.into() }
    }
}

impl From<VaultError> for Refusal {
    fn from(error: VaultError) -> Self {
        let set = |name: &CredentialName| format!("motor credential set {name} --domain DOMAIN");
        let (code, remedy) = match &error {
            VaultError::Store(error) => return error.clone().into(),
            VaultError::Unfit { .. } => (RefusalCode::InvalidRequest, None),
            VaultError::Padded { .. } => (
                RefusalCode::InvalidRequest,
                Some("set it again without the spaces, tabs and line breaks at its ends".to_owned()),
            ),
            VaultError::NotFound { .. } => {
                (RefusalCode::NotFound, Some("`motor credential list` shows those there are".to_owned()))
            }
            VaultError::Missing { names } => {
                let commands: Vec<String> = names.iter().map(|name| format!("`{}`", set(name))).collect();
                (RefusalCode::CredentialsNeeded, Some(format!("run {}", join(&commands))))
            }
            VaultError::Unreadable { name } => (RefusalCode::CredentialsNeeded, Some(format!("run `{}`", set(name)))),
            VaultError::Key { remedy, .. } => (RefusalCode::CredentialsNeeded, Some(remedy.clone())),
            VaultError::WeakKey { .. } => (
                RefusalCode::CredentialsNeeded,
                Some("set it to 32 random bytes, such as `openssl rand -base64 32` prints".to_owned()),
            ),
            VaultError::System { .. } => (RefusalCode::TryLater, None),
        };
        Self { code, reason: error.to_string(), remedy, key: None }
    }
}
