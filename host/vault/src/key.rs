//! The sources of the key: the system's keyring, the environment, or a file for development (SPEC VAULT-2).
//!
//! Architecture invariant: the source is recorded with the first credential, and only that source is asked from then
//! on. A keyring that is temporarily unavailable is a refusal, and never a reason to make another key.

mod file;
#[cfg(feature = "keyring")]
mod keyring;
mod secret;

use std::path::Path;

use base::Secret;
use seal::{Derivation, Key, Sealed};
use serde::{Deserialize, Serialize};

use crate::VaultError;

/// Associated data of the check value, which is sealed with the key.
const CHECK: &[u8] = b"motor credentials key 1";

/// The source of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeySource {
    /// The key is in the system's keyring.
    Keyring,
    /// The key is in the variable `MOTOR_CREDENTIALS_KEY`.
    Environment,
    /// The key is in `config/credentials.key` of the home.
    File,
}

/// The stored record about the key, readable without it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRecord {
    pub(crate) source: KeySource,
    /// The key's id in the keyring, if it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    /// Parameters of the key derivation, if the key is derived from a passphrase.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    passphrase: Option<Derivation>,
    /// Opens with the right key only, and differs for each key ever made.
    pub(crate) check: Sealed,
}

/// The possible sources of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sources<'a> {
    pub(crate) keyring: bool,
    pub(crate) environment: Option<&'a Secret<String>>,
    pub(crate) directory: &'a Path,
}

/// The reason the keyring failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(feature = "keyring"), expect(dead_code, reason = "nothing can fail that is not there"))]
enum KeyringFault {
    /// There is no keyring.
    Absent,
    /// The keyring is locked.
    Locked,
    /// It did not answer, or with an error.
    Failed,
    /// The keyring has no such key.
    NoKey,
}

impl Sources<'_> {
    /// Makes the key of a vault that has none, in the first source that can hold it.
    pub(crate) fn create(&self) -> Result<(Key, KeyRecord), VaultError> {
        self.create_with(keyring_put)
    }

    fn create_with(
        &self,
        keyring_put: impl FnOnce(&Key) -> Result<String, KeyringFault>,
    ) -> Result<(Key, KeyRecord), VaultError> {
        if self.keyring {
            let key = Key::random()?;
            match keyring_put(&key) {
                Ok(id) => return recorded(key, KeySource::Keyring, Some(id), None),
                Err(KeyringFault::Absent) => {}
                // A key from the owner is as good. A file is not: it would be recorded as the source for good.
                Err(fault) if self.environment.is_some() => {
                    tracing::warn!(?fault, "the system's keyring cannot keep the key of the credentials");
                }
                Err(fault) => return Err(unkept(fault)),
            }
        }
        if let Some(secret) = self.environment {
            let (key, passphrase) = secret::read(secret)?;
            return recorded(key, KeySource::Environment, None, passphrase);
        }
        recorded(file::read_or_create(self.directory)?, KeySource::File, None, None)
    }

    /// Reads the recorded key, and checks that it is the right one.
    pub(crate) fn open(&self, record: &KeyRecord) -> Result<Key, VaultError> {
        let (key, place) = match record.source {
            KeySource::Keyring => (self.of_keyring(record)?, "of the system's keyring"),
            KeySource::Environment => (self.of_environment(record)?, "in `MOTOR_CREDENTIALS_KEY`"),
            KeySource::File => (file::read(self.directory)?, "in `config/credentials.key` of the home"),
        };
        if key.open(&record.check, CHECK).is_err() {
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
            Some(passphrase) => secret::derived(passphrase, secret),
            None => secret::read(secret).map(|(key, _)| key),
        }
    }
}

/// The error if there is a keyring that currently does not keep the key.
fn unkept(fault: KeyringFault) -> VaultError {
    let reason = match fault {
        KeyringFault::Locked => "the system's keyring, which is to keep their key, is locked",
        _ => "the system's keyring, which is to keep their key, does not answer as it should",
    };
    let remedy = "unlock the keyring in the session of the host and ask again, or set `MOTOR_CREDENTIALS_KEY`, or set \
                  `MOTOR_KEYRING=off` to have the key in a file";
    VaultError::key(reason, remedy)
}

fn recorded(
    key: Key,
    source: KeySource,
    id: Option<String>,
    passphrase: Option<Derivation>,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keyring_that_is_there_and_keeps_nothing_is_no_reason_for_a_file() {
        let given = Secret::new("correct horse battery staple".to_owned());
        for (keyring, fault, environment, source) in [
            (true, KeyringFault::Locked, None, None),
            (true, KeyringFault::Failed, None, None),
            (true, KeyringFault::Absent, None, Some(KeySource::File)),
            (false, KeyringFault::Locked, None, Some(KeySource::File)),
            (true, KeyringFault::Locked, Some(&given), Some(KeySource::Environment)),
            (true, KeyringFault::Absent, Some(&given), Some(KeySource::Environment)),
        ] {
            let home = tempfile::tempdir().unwrap();
            let directory = home.path().join("config");
            let sources = Sources { keyring, environment, directory: &directory };
            match (sources.create_with(|_| Err(fault)), source) {
                (Ok((_, record)), Some(source)) => assert_eq!(record.source, source, "{fault:?}"),
                (Err(VaultError::Key { remedy, .. }), None) => {
                    assert!(remedy.contains("unlock") && remedy.contains("MOTOR_KEYRING=off"), "{remedy}");
                }
                (other, _) => panic!("{fault:?}: {:?}", other.map(|(_, record)| record)),
            }
            assert_eq!(directory.join("credentials.key").exists(), source == Some(KeySource::File), "{fault:?}");
        }
        let directory = tempfile::tempdir().unwrap();
        let sources = Sources { keyring: true, environment: Some(&given), directory: directory.path() };
        let (_, record) = sources.create_with(|_| Ok("id".to_owned())).unwrap();
        assert_eq!(record.source, KeySource::Keyring);
    }
}
