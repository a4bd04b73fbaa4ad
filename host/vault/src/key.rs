//! Where the key comes from: the system's keyring, the environment, or a file for development (SPEC VAULT-2).
//!
//! Architecture invariant: which of them it was is remembered with the first credential, and only that one is asked from then
//! on. A keyring that does not answer for a moment is a refusal, and never a reason to make another key.

mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod secret;

use std::path::Path;

use base::Secret;
use serde::{Deserialize, Serialize};

use crate::VaultError;
use crate::seal::{Key, Sealed};
pub(crate) use secret::Passphrase;

/// What the check value says, sealed with the key.
const CHECK: &[u8] = b"motor credentials key 1";

/// Where a key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeySource {
    /// In the system's keyring.
    Keyring,
    /// In `MOTOR_CREDENTIALS_KEY`.
    Environment,
    /// In `config/credentials.key` of the home.
    File,
}

/// What is known of the key without having it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRecord {
    pub(crate) source: KeySource,
    /// Which one of the keyring.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// How it is made of a passphrase, when it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    passphrase: Option<Passphrase>,
    /// Opens with the right key only, and differs for each key ever made.
    pub(crate) check: Sealed,
}

/// The places where a key may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) keyring: bool,
    pub(crate) environment: Option<&'a Secret<String>>,
    pub(crate) directory: &'a Path,
}

/// Why the keyring did not do it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "keyring"), expect(dead_code, reason = "nothing can fail that is not there"))]
enum KeyringFault {
    /// There is none.
    Absent,
    /// It is locked.
    Locked,
    /// It did not answer, or with an error.
    Failed,
    /// It has no such key.
    NoKey,
}

impl Sources<'_> {
    /// Makes the key of a vault that has none, at the first place that can hold it.
    pub(crate) fn create(&self) -> Result<(Key, KeyRecord), VaultError> {
        if self.keyring {
            let key = Key::random()?;
            match keyring_put(&key) {
                Ok(id) => return recorded(key, KeySource::Keyring, Some(id), None),
                Err(KeyringFault::Absent) => {}
                Err(fault) => tracing::warn!(?fault, "the system's keyring cannot keep the key of the credentials"),
            }
        }
        if let Some(secret) = self.environment {
            let (key, passphrase) = secret::read(secret)?;
            return recorded(key, KeySource::Environment, None, passphrase);
        }
        recorded(file::read_or_create(self.directory)?, KeySource::File, None, None)
    }

    /// The key that was made before.
    pub(crate) fn open(&self, record: &KeyRecord) -> Result<Key, VaultError> {
        let (key, place) = match record.source {
            KeySource::Keyring => (self.of_keyring(record)?, "of the system's keyring"),
            KeySource::Environment => (self.of_environment(record)?, "in `MOTOR_CREDENTIALS_KEY`"),
            KeySource::File => (file::read(self.directory)?, "in `config/credentials.key` of the home"),
        };
        if key.open(&record.check, CHECK).is_none() {
            return Err(VaultError::key(
                format!("the key {place} is not the one they were encrypted with"),
                "give that key back, or delete the credentials and set them again",
            ));
        }
        Ok(key)
    }

    fn of_keyring(&self, record: &KeyRecord) -> Result<Key, VaultError> {
        let why = match record.id.as_deref() {
            _ if !self.keyring => "their key is in the system's keyring, which `MOTOR_KEYRING=off` turned off",
            None => "the record of their key does not say which one of the keyring it is",
            Some(id) => match keyring_get(id) {
                Ok(key) => return Ok(key),
                Err(KeyringFault::Absent) => "their key is in the system's keyring, and there is none here",
                Err(KeyringFault::Locked) => "their key is in the system's keyring, which is locked",
                Err(KeyringFault::Failed) => "their key is in the system's keyring, which does not answer",
                Err(KeyringFault::NoKey) => "their key is gone from the system's keyring",
            },
        };
        let remedy =
            "unlock the keyring in the session of the host and ask again, or delete the credentials and set them again";
        Err(VaultError::key(why, remedy))
    }

    fn of_environment(&self, record: &KeyRecord) -> Result<Key, VaultError> {
        let missing = || {
            VaultError::key(
                "they were encrypted with the key in `MOTOR_CREDENTIALS_KEY`, which is not set",
                "set it to that key and start the host again, or delete the credentials and set them again",
            )
        };
        let secret = self.environment.ok_or_else(missing)?;
        match &record.passphrase {
            Some(passphrase) => passphrase.key(secret),
            None => secret::read(secret).map(|(key, _)| key),
        }
    }
}

fn recorded(
    key: Key,
    source: KeySource,
    id: Option<String>,
    passphrase: Option<Passphrase>,
) -> Result<(Key, KeyRecord), VaultError> {
    let check = key.seal(b"", CHECK)?;
    Ok((key, KeyRecord { source, id, passphrase, check }))
}

#[cfg(feature = "keyring")]
use keyring::{get as keyring_get, put as keyring_put};

#[cfg(not(feature = "keyring"))]
fn keyring_put(_: &Key) -> Result<String, KeyringFault> {
    Err(KeyringFault::Absent)
}

#[cfg(not(feature = "keyring"))]
fn keyring_get(_: &str) -> Result<Key, KeyringFault> {
    Err(KeyringFault::Absent)
}
