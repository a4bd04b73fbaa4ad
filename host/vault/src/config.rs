//! Inputs of the vault: settings, store, environment and clock.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Clock, Secret};
use serde::{Deserialize, Serialize};
use store::Store;

/// The section `[credentials]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct VaultConfig {
    /// Domain patterns to which a credential of the environment may be sent, by its name: `api_key` is `VAULT_API_KEY`.
    /// Default empty: a credential without a domain is sent nowhere.
    pub domains: BTreeMap<String, Vec<String>>,
}

/// The parts a vault is opened with.
#[derive(Debug)]
pub struct VaultParts {
    /// The store that holds the credentials.
    pub store: Store,
    /// Clock for the time a credential was set.
    pub clock: Arc<dyn Clock>,
    /// The home's `config` directory, for the key file of development.
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
