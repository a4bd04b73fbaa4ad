//! Inputs of the vault: settings, store, environment and clock.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Clock, Secret};
use serde::{Deserialize, Serialize};
use store::Store;

/// The section `[credentials]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VaultConfig {
    /// For each credential of an environment variable, the patterns of the domains it may be sent to. The key is the
    /// name of the credential: `api_key` for `VAULT_API_KEY`.
    /// Default empty: a credential without a domain is sent nowhere.
    pub domains: BTreeMap<String, Vec<String>>,
    /// Hours that a credential which a run saved waits for the owner. Then it is removed. Default 168, a week; 1 to 8760.
    pub pending_hours: u64,
}

impl Default for VaultConfig {
    fn default() -> Self {
        Self { domains: BTreeMap::new(), pending_hours: 168 }
    }
}

/// The longest that a saved credential may wait, in hours: a year.
pub(crate) const MAX_PENDING_HOURS: u64 = 8_760;

impl VaultConfig {
    /// Checks the ranges of numbers.
    ///
    /// # Errors
    /// The key that is out of range, and the range.
    pub fn check(&self) -> Result<(), String> {
        match self.pending_hours {
            1..=MAX_PENDING_HOURS => Ok(()),
            hours => Err(format!("`credentials.pending_hours` is {hours}: it has to be from 1 to {MAX_PENDING_HOURS}")),
        }
    }
}

/// The parts a vault is opened with.
#[derive(Debug)]
pub struct VaultParts {
    /// The store that holds the credentials.
    pub store: Store,
    /// Clock for the time a credential was set.
    pub clock: Arc<dyn Clock>,
    /// The home's `config` directory, which holds the key file if there is neither a keyring nor [`Self::key`].
    pub directory: PathBuf,
    /// The key from the environment, `MOTOR_CREDENTIALS_KEY`: 32 bytes in base64 or hexadecimal, or a passphrase.
    pub key: Option<Secret<String>>,
    /// Whether the system's keyring may be used. It is found through the session bus of this process.
    pub keyring: bool,
    /// Variables `VAULT_NAME`, each a credential; other variables are ignored.
    pub variables: BTreeMap<String, String>,
    /// Settings of `[credentials]` in the configuration.
    pub config: VaultConfig,
}
