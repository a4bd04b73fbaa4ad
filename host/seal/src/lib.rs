//! Encryption of one value at a time: XChaCha20-Poly1305 under a random nonce, bound to associated data, with a random key or
//! one derived from a passphrase by argon2id.

use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use rand::TryRng as _;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

/// Bytes of a key.
pub const KEY_BYTES: usize = 32;
/// A random nonce of so many bytes does not repeat.
const NONCE_BYTES: usize = 24;
const SALT_BYTES: usize = 16;
/// The second recommendation of RFC 9106: 64 MiB and three passes, about a tenth of a second for each derivation.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
/// Bounds on the parameters of a stored record, which may have been tampered with.
const MAX_MEMORY_KIB: u32 = 1 << 20;
const MAX_PASSES: u32 = 16;
/// A shorter passphrase can be guessed by anyone who has the sealed value.
pub const MIN_PASSPHRASE_CHARS: usize = 16;
/// Fewer different characters or bytes were not chosen at random.
pub const MIN_DIFFERENT: usize = 8;

/// The system failed to encrypt or to give randomness.
#[derive(Debug, thiserror::Error)]
#[error("{action} failed")]
pub struct SystemError {
    /// The action that failed, as the subject of a sentence.
    pub action: &'static str,
}

/// Why a sealed value does not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenError {
    /// It is not in the form of a sealed value.
    Malformed,
    /// It was sealed with another key or other associated data, or it was changed.
    Mismatch,
}

/// An encryption key of 32 bytes.
pub struct Key(Box<Zeroizing<[u8; KEY_BYTES]>>);

/// An encrypted value, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// In base64, 24 bytes.
    pub nonce: String,
    /// Base64, with the tag at its end.
    pub text: String,
}

/// How a key is derived from a passphrase: argon2id, one lane.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Derivation {
    /// In base64, 16 bytes.
    pub salt: String,
    /// Memory of the derivation in KiB.
    pub memory_kib: u32,
    /// Number of passes over the memory.
    pub passes: u32,
}

impl Derivation {
    /// A derivation with a new salt.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn random() -> Result<Self, SystemError> {
        let mut salt = [0; SALT_BYTES];
        fill(&mut salt)?;
        Ok(Self { salt: STANDARD.encode(salt), memory_kib: MEMORY_KIB, passes: PASSES })
    }

    /// The key of a passphrase. `None` if the parameters are invalid or out of bounds.
    #[must_use]
    pub fn key(&self, passphrase: &str) -> Option<Key> {
        let salt = STANDARD.decode(&self.salt).ok()?;
        if self.memory_kib > MAX_MEMORY_KIB || self.passes > MAX_PASSES {
            return None;
        }
        let params = Params::new(self.memory_kib, self.passes, 1, Some(KEY_BYTES)).ok()?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut key = Key(Box::default());
        argon2.hash_password_into(passphrase.as_bytes(), &salt, &mut **key.0).ok()?;
        Some(key)
    }
}

impl Key {
    /// A new random key.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn random() -> Result<Self, SystemError> {
        let mut key = Self(Box::default());
        fill(&mut **key.0)?;
        Ok(key)
    }

    /// A key from its bytes. `None` if their number is wrong.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Option<Self> {
        let mut key = Self(Box::default());
        if bytes.len() != KEY_BYTES {
            return None;
        }
        key.0.copy_from_slice(bytes);
        Some(key)
    }

    /// The bytes of the key.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &**self.0
    }

    /// Encrypts `value`; it opens with the same associated data only.
    ///
    /// # Errors
    /// If the system gives no randomness.
    pub fn seal(&self, value: &[u8], aad: &[u8]) -> Result<Sealed, SystemError> {
        let mut nonce = [0; NONCE_BYTES];
        fill(&mut nonce)?;
        let text = self
            .cipher()
            .encrypt(&XNonce::from(nonce), Payload { msg: value, aad })
            .map_err(|_| SystemError { action: "encrypting a secret" })?;
        Ok(Sealed { nonce: STANDARD.encode(nonce), text: STANDARD.encode(text) })
    }

    /// Decrypts a sealed value.
    ///
    /// # Errors
    /// If it is not a sealed value, or not one of this key and associated data.
    pub fn open(&self, sealed: &Sealed, aad: &[u8]) -> Result<Zeroizing<Vec<u8>>, OpenError> {
        let decoded = |text: &str| STANDARD.decode(text).map_err(|_| OpenError::Malformed);
        let nonce: [u8; NONCE_BYTES] = decoded(&sealed.nonce)?.try_into().map_err(|_| OpenError::Malformed)?;
        let text = decoded(&sealed.text)?;
        let value = self.cipher().decrypt(&XNonce::from(nonce), Payload { msg: &text, aad });
        value.map(Zeroizing::new).map_err(|_| OpenError::Mismatch)
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        let key: &[u8; KEY_BYTES] = &self.0;
        XChaCha20Poly1305::new(key.into())
    }
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("[key]")
    }
}

/// Fills `bytes` from the operating system. A seed would make keys that can be made again.
///
/// # Errors
/// If the system gives no randomness.
pub fn fill(bytes: &mut [u8]) -> Result<(), SystemError> {
    rand::rngs::SysRng.try_fill_bytes(bytes).map_err(|_| SystemError { action: "asking the system for randomness" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opens_only_what_it_sealed_where_it_was_sealed() {
        let (key, other) = (Key::random().unwrap(), Key::random().unwrap());
        let sealed = key.seal(b"value", b"beside").unwrap();
        assert_eq!(key.open(&sealed, b"beside").unwrap().as_slice(), b"value");
        assert_ne!(sealed, key.seal(b"value", b"beside").unwrap());
        assert_eq!(key.open(&sealed, b"elsewhere").unwrap_err(), OpenError::Mismatch);
        assert_eq!(other.open(&sealed, b"beside").unwrap_err(), OpenError::Mismatch);
        for (nonce, text) in [("", &*sealed.text), (&*sealed.nonce, ""), ("AAAA", &*sealed.text), (&*sealed.nonce, "?")]
        {
            let changed = Sealed { nonce: nonce.to_owned(), text: text.to_owned() };
            assert!(key.open(&changed, b"beside").is_err());
        }
        let mut text = STANDARD.decode(&sealed.text).unwrap();
        for at in 0..text.len() {
            text[at] ^= 1;
            let changed = Sealed { nonce: sealed.nonce.clone(), text: STANDARD.encode(&text) };
            assert!(key.open(&changed, b"beside").is_err(), "byte {at}");
            text[at] ^= 1;
        }
        assert_eq!(format!("{key:?}"), "[key]");
    }
    #[test]
    fn a_passphrase_needs_its_salt() {
        let (one, other) = (Derivation::random().unwrap(), Derivation::random().unwrap());
        let key = |derivation: &Derivation, text| derivation.key(text).unwrap().bytes().to_owned();
        assert_eq!(key(&one, "correct horse battery"), key(&one.clone(), "correct horse battery"));
        assert_ne!(key(&one, "correct horse battery"), key(&other, "correct horse battery"));
        assert_ne!(key(&one, "correct horse battery"), key(&one, "correct horse batterz"));
    }

    #[test]
    fn the_derivation_stays_as_it_was_stored() {
        let stored = r#"{"salt":"AQEBAQEBAQEBAQEBAQEBAQ==","memoryKib":8,"passes":1}"#;
        let derivation: Derivation = serde_json::from_str(stored).unwrap();
        assert_eq!(serde_json::to_string(&derivation).unwrap(), stored);
        let mut expected = [0; KEY_BYTES];
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, Params::new(8, 1, 1, Some(KEY_BYTES)).unwrap());
        argon2.hash_password_into(b"passphrase", &[1; SALT_BYTES], &mut expected).unwrap();
        assert_eq!(derivation.key("passphrase").unwrap().bytes(), expected);
    }

    #[test]
    fn a_record_cannot_ask_for_the_whole_memory() {
        for (memory_kib, passes) in [(u32::MAX, 1), (MEMORY_KIB, u32::MAX), (0, 0)] {
            let derivation = Derivation { salt: STANDARD.encode([1; 16]), memory_kib, passes };
            assert!(derivation.key("correct horse battery").is_none());
        }
        assert!(Derivation { salt: "?".to_owned(), memory_kib: 8, passes: 1 }.key("correct horse battery").is_none());
    }
}
