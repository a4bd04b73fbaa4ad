//! Credentials: kept encrypted, handed out to the network gate only, scrubbed from incoming data and blocked in
//! outgoing requests.
//!
//! Architecture invariant: a value goes in through [`Vault::set`] or the environment and comes out inside a
//! [`RunSecrets`] only. Nothing here knows the network, runs or wasm.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

pub mod compute;
mod config;
mod environment;
mod error;
mod key;
mod records;
mod run;
mod scrub;
mod vault;

pub use config::{VaultConfig, VaultParts};
pub use error::VaultError;
pub use run::{GrantedCredential, RunSecrets};
pub use scrub::{FalseStarts, KnownSecret, ScrubStream, Scrubber};
pub use vault::{CredentialInfo, CredentialSource, MAX_PENDING, NewCredential, NewPending, PendingFacts, Vault};
