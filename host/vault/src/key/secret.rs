//! A key in text: 32 bytes in hexadecimal or base64, or a passphrase.

use base::Secret;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use seal::{Derivation, Key, MIN_DIFFERENT, MIN_PASSPHRASE_CHARS};
use zeroize::Zeroizing;

use crate::VaultError;
use crate::compute::from_hex;

/// Derives the key from a passphrase.
pub(super) fn derived(passphrase: &Derivation, secret: &Secret<String>) -> Result<Key, VaultError> {
    passphrase.key(secret.expose().trim()).ok_or_else(|| {
        VaultError::key(
            "the record of their key is damaged",
            "restore the home's `state` directory from a backup, or delete the credentials and set them again",
        )
    })
}

/// The key in a text, and the parameters of its derivation if the text is a passphrase.
pub(super) fn read(secret: &Secret<String>) -> Result<(Key, Option<Derivation>), VaultError> {
    let text = secret.expose().trim();
    if let Some(key) = direct(text) {
        if different(key.bytes()) < MIN_DIFFERENT {
            return Err(VaultError::WeakKey { reason: "its bytes repeat themselves" });
        }
        return Ok((key, None));
    }
    if text.chars().count() < MIN_PASSPHRASE_CHARS {
        return Err(VaultError::WeakKey { reason: "a passphrase has at least 16 characters" });
    }
    if different(text.as_bytes()) < MIN_DIFFERENT {
        return Err(VaultError::WeakKey { reason: "its characters repeat themselves" });
    }
    let passphrase = Derivation::random()?;
    Ok((derived(&passphrase, secret)?, Some(passphrase)))
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

    fn check(text: &str) -> Result<(Key, Option<Derivation>), String> {
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
        let again = derived(&made.unwrap(), &Secret::new("correct horse battery staple\n".to_owned())).unwrap();
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
}
