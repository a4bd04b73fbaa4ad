//! Encryption of one value at a time: XChaCha20-Poly1305 under a random nonce, bound to associated data.
//!
//! It survives an attacker who can write the state but has no key: moving a value to another name or scope, widening
//! its domains or changing it is detected.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use rand::TryRng as _;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::VaultError;

/// Size of a key in bytes.
pub(crate) const KEY_BYTES: usize = 32;
/// A random nonce of this many bytes does not repeat.
const NONCE_BYTES: usize = 24;

/// The encryption key of a vault.
pub(crate) struct Key(Box<Zeroizing<[u8; KEY_BYTES]>>);

/// An encrypted value, as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sealed {
    /// The nonce in base64.
    nonce: String,
    /// The ciphertext in base64, with the tag at its end.
    text: String,
}

impl Key {
    pub(crate) fn random() -> Result<Self, VaultError> {
        let mut key = Self(Box::default());
        fill(&mut **key.0)?;
        Ok(key)
    }

    /// A key from exactly [`KEY_BYTES`] bytes.
    pub(crate) fn of(bytes: &[u8]) -> Option<Self> {
        let mut key = Self(Box::default());
        if bytes.len() != KEY_BYTES {
            return None;
        }
        key.0.copy_from_slice(bytes);
        Some(key)
    }

    /// Lets `derive` write the key in place.
    pub(crate) fn derived<E>(derive: impl FnOnce(&mut [u8]) -> Result<(), E>) -> Result<Self, E> {
        let mut key = Self(Box::default());
        derive(&mut **key.0)?;
        Ok(key)
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &**self.0
    }

    /// Encrypts `value`. It can be opened only with the same `beside`.
    pub(crate) fn seal(&self, value: &[u8], beside: &[u8]) -> Result<Sealed, VaultError> {
        let mut nonce = [0; NONCE_BYTES];
        fill(&mut nonce)?;
        let text = self
            .cipher()
            .encrypt(&XNonce::from(nonce), Payload { msg: value, aad: beside })
            .map_err(|_| VaultError::System { action: "encrypting a credential" })?;
        Ok(Sealed { nonce: STANDARD.encode(nonce), text: STANDARD.encode(text) })
    }

    /// Returns `None` if it was changed, or sealed with another key or another `beside`.
    pub(crate) fn open(&self, sealed: &Sealed, beside: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
        let nonce: [u8; NONCE_BYTES] = STANDARD.decode(&sealed.nonce).ok()?.try_into().ok()?;
        let text = STANDARD.decode(&sealed.text).ok()?;
        let value = self.cipher().decrypt(&XNonce::from(nonce), Payload { msg: &text, aad: beside }).ok()?;
        Some(Zeroizing::new(value))
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

/// Fills `bytes` from the operating system. A seed would make reproducible keys.
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), VaultError> {
    rand::rngs::SysRng
        .try_fill_bytes(bytes)
        .map_err(|_| VaultError::System { action: "asking the system for randomness" })
}

/// Decodes hexadecimal digits, two for each byte.
pub(crate) fn from_hex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    if !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let mut bytes = Zeroizing::new(Vec::with_capacity(text.len() / 2));
    for at in (0..text.len()).step_by(2) {
        bytes.push(u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?);
    }
    Some(bytes)
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
        assert!(key.open(&sealed, b"elsewhere").is_none());
        assert!(other.open(&sealed, b"beside").is_none());
        for (nonce, text) in [("", &*sealed.text), (&*sealed.nonce, ""), ("AAAA", &*sealed.text), (&*sealed.nonce, "?")]
        {
            let changed = Sealed { nonce: nonce.to_owned(), text: text.to_owned() };
            assert!(key.open(&changed, b"beside").is_none());
        }
        let mut text = STANDARD.decode(&sealed.text).unwrap();
        for at in 0..text.len() {
            text[at] ^= 1;
            let changed = Sealed { nonce: sealed.nonce.clone(), text: STANDARD.encode(&text) };
            assert!(key.open(&changed, b"beside").is_none(), "byte {at}");
            text[at] ^= 1;
        }
        assert_eq!(format!("{key:?}"), "[key]");
    }
}
