//! A key in text: 32 bytes in hexadecimal or base64, or a passphrase.

use argon2::{Algorithm, Argon2, Params, Version};
use base::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::VaultError;
use crate::seal::{KEY_BYTES, Key, fill, from_hex};

const SALT_BYTES: usize = 16;
/// A shorter passphrase can be guessed by an attacker who has the state.
const LEAST_CHARACTERS: usize = 16;
/// For a passphrase and for a key: repetitive text is not random.
const LEAST_DIFFERENT: usize = 8;
/// The second recommendation of RFC 9106: 64 MiB and three passes, about a tenth of a second, once for each host.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
/// Upper bounds for the parameters in a record, which may have been tampered with.
const MOST_MEMORY_KIB: u32 = 1 << 20;
const MOST_PASSES: u32 = 16;

/// The derivation of a key from a passphrase: argon2id, one lane.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Passphrase {
    /// The salt in base64.
    salt: String,
    memory_kib: u32,
    passes: u32,
}

impl Passphrase {
    fn new() -> Result<Self, VaultError> {
        let mut salt = [0; SALT_BYTES];
        fill(&mut salt)?;
        Ok(Self { salt: STANDARD.encode(salt), memory_kib: MEMORY_KIB, passes: PASSES })
    }

    /// Derives the key from a passphrase.
    pub(crate) fn key(&self, passphrase: &Secret<String>) -> Result<Key, VaultError> {
        let damaged = || {
            VaultError::key(
                "the record of their key is damaged",
                "restore the home's `state` directory from a backup, or delete the credentials and set them again",
            )
        };
        let salt = STANDARD.decode(&self.salt).map_err(|_| damaged())?;
        if self.memory_kib > MOST_MEMORY_KIB || self.passes > MOST_PASSES {
            return Err(damaged());
        }
        let params = Params::new(self.memory_kib, self.passes, 1, Some(KEY_BYTES)).map_err(|_| damaged())?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let passphrase = passphrase.expose().trim().as_bytes();
        Key::derived(|key| argon2.hash_password_into(passphrase, &salt, key)).map_err(|_| damaged())
    }
}

/// The key in a text, and the parameters of its derivation if the text is a passphrase.
pub(super) fn read(secret: &Secret<String>) -> Result<(Key, Option<Passphrase>), VaultError> {
    let text = secret.expose().trim();
    if let Some(key) = direct(text) {
        if different(key.bytes()) < LEAST_DIFFERENT {
            return Err(VaultError::WeakKey { reason: "its bytes repeat themselves" });
        }
        return Ok((key, None));
    }
    if text.chars().count() < LEAST_CHARACTERS {
        return Err(VaultError::WeakKey { reason: "a passphrase has at least 16 characters" });
    }
    if different(text.as_bytes()) < LEAST_DIFFERENT {
        return Err(VaultError::WeakKey { reason: "its characters repeat themselves" });
    }
    let passphrase = Passphrase::new()?;
    Ok((passphrase.key(secret)?, Some(passphrase)))
}

/// A key written directly in the text.
pub(super) fn direct(text: &str) -> Option<Key> {
    if let Some(key) = from_hex(text).and_then(|bytes| Key::of(&bytes)) {
        return Some(key);
    }
    [STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD].iter().find_map(|base64| {
        let bytes = Zeroizing::new(base64.decode(text).ok()?);
        Key::of(&bytes)
    })
}

fn different(bytes: &[u8]) -> usize {
    let mut seen = [false; 256];
    for byte in bytes {
        if let Some(seen) = seen.get_mut(usize::from(*byte)) {
            *seen = true;
        }
    }
    seen.iter().filter(|seen| **seen).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Result<(Key, Option<Passphrase>), String> {
        read(&Secret::new(text.to_owned())).map_err(|error| error.to_string())
    }

    #[test]
    fn keys_are_read_in_either_notation() {
        let bytes: Vec<u8> = (200..232).collect();
        let hex: String = bytes.iter().map(|byte| format!("{byte:02X}")).collect();
        for text in [hex, STANDARD.encode(&bytes), format!(" {}\n", URL_SAFE_NO_PAD.encode(&bytes))] {
            let (key, passphrase) = check(&text).unwrap();
            assert_eq!(key.bytes(), bytes);
            assert!(passphrase.is_none());
        }
    }

    #[test]
    fn a_passphrase_needs_its_salt() {
        let (key, made) = check("correct horse battery staple").unwrap();
        let (other, _) = check("correct horse battery staple").unwrap();
        assert_ne!(key.bytes(), other.bytes());
        let again = made.unwrap().key(&Secret::new("correct horse battery staple\n".to_owned())).unwrap();
        assert_eq!(key.bytes(), again.bytes());
    }

    #[test]
    fn weak_keys_are_refused_with_the_reason() {
        for (text, expected) in [
            ("", "16 characters"),
            ("short passphras", "16 characters"),
            ("aaaaaaaaaaaaaaaaaaaaaa", "characters repeat"),
            (&"0".repeat(64), "bytes repeat"),
            (&"A".repeat(43), "bytes repeat"),
        ] {
            let error = check(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn a_record_cannot_ask_for_the_whole_memory() {
        for (memory_kib, passes) in [(u32::MAX, 1), (MEMORY_KIB, u32::MAX), (0, 0)] {
            let passphrase = Passphrase { salt: STANDARD.encode([1; 16]), memory_kib, passes };
            assert!(passphrase.key(&Secret::new("correct horse battery".to_owned())).is_err());
        }
    }
}
