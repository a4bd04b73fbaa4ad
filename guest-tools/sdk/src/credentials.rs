//! Credentials, as names: the component never sees a secret.
//!
//! To send one, put its [`placeholder`] into the URL, a header or the body of a request. To compute with one, ask the host here.
//! Outside of a component the credentials are those of a [`Sandbox`](crate::testing::Sandbox).

#[cfg(target_family = "wasm")]
use crate::bindings::motor::host::credentials as host;
#[cfg(not(target_family = "wasm"))]
use crate::testing as host;

use crate::ToolError;

pub use crate::bindings::motor::host::credentials::{CredentialError, SignatureAlgorithm};

/// The text that the host replaces by the secret on the way out, for the domains that its owner bound it to.
#[must_use]
pub fn placeholder(name: &str) -> String {
    format!("<credential:{name}>")
}

/// Whether the run was granted a credential of that name and it is set.
#[must_use]
pub fn exists(name: &str) -> bool {
    host::exists(name)
}

/// HMAC-SHA-256 (RFC 2104) of the data, keyed with the credential's bytes.
///
/// # Errors
/// If the credential was not granted.
pub fn hmac_sha256(name: &str, data: &[u8]) -> Result<Vec<u8>, CredentialError> {
    host::hmac_sha256(name, data)
}

/// Signs the data with the credential as the private key.
///
/// # Errors
/// If the credential was not granted, or is not a key of that algorithm.
pub fn sign(name: &str, algorithm: SignatureAlgorithm, data: &[u8]) -> Result<Vec<u8>, CredentialError> {
    host::sign(name, algorithm, data)
}

/// The secret itself, for protocols that leave no other way.
///
/// # Errors
/// Unless the owner granted exactly this for this credential.
pub fn reveal(name: &str) -> Result<String, CredentialError> {
    host::reveal(name)
}

impl From<CredentialError> for ToolError {
    fn from(error: CredentialError) -> Self {
        match error {
            CredentialError::Missing(text) => Self::missing(text),
            CredentialError::Denied(text) => Self::denied(text),
            CredentialError::Unusable(text) => Self::failed(text),
        }
    }
}
