//! What the vault is given: settings, and the world outside it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base::{Clock, Secret};
use serde::{Deserialize, Serialize};
use store::Store;

/// `[credentials]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Patterns of the domains to which a credential of the environment may be sent, by its name: `api_key` is
    /// `VAULT_API_KEY`. Default none: a credential without a domain is sent nowhere.
    pub domains: BTreeMap<String, Vec<String>>,
}

/// What a vault needs.
#[derive(Debug)]
pub struct VaultParts {
    /// Where the credentials are kept.
    pub store: Store,
    /// For the time a credential was set.
    pub clock: Arc<dyn Clock>,
    /// The home's `config` directory, for the key file of development.
    pub directory: PathBuf,
    /// The key from the environment, `MOTOR_CREDENTIALS_KEY`: 32 bytes in base64 or hexadecimal, or a passphrase.
    pub key: Option<Secret<String>>,
    /// Whether the system's keyring may be used. It is looked for at the session bus of this process.
    pub keyring: bool,
    /// Variables `VAULT_NAME`, each a credential; others are not looked at.
    pub variables: BTreeMap<String, String>,
    /// Settings.
    pub config: Config,
}
