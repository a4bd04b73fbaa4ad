//! A token sealed with a passphrase: XChaCha20-Poly1305 under a key of argon2id.
//!
//! It survives whoever can read the home but not the owner's mind: another program of the same user has the file and
//! nothing else. The parameters stand in the file, which that program may have changed, so they are bounded when read.

use argon2::{Algorithm, Argon2, Params, Version};
use base::{ContentHash, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, Payload};
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305, XNonce};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use crate::ConsentError;
use crate::token::{OwnerToken, fill};

/// Said in what is sealed, so that it is good for nothing else.
const PURPOSE: &str = "motor owner token 1";
const KEY_BYTES: usize = 32;
const SALT_BYTES: usize = 16;
const NONCE_BYTES: usize = 24;
/// The second recommendation of RFC 9106: 64 MiB and three passes, about a tenth of a second for each guess.
const MEMORY_KIB: u32 = 64 << 10;
const PASSES: u32 = 3;
/// What a file may ask for, in case somebody changed it.
const MOST_MEMORY_KIB: u32 = 1 << 20;
const MOST_PASSES: u32 = 16;
/// A shorter passphrase can be guessed by whoever has the file.
const LEAST_CHARACTERS: usize = 16;
const LEAST_DIFFERENT: usize = 8;

/// A passphrase that is fit to seal with.
#[derive(Debug, Clone)]
pub struct Passphrase(Secret<String>);

impl Passphrase {
    /// A new one.
    ///
    /// # Errors
    /// When it could be guessed.
    pub fn new(text: Secret<String>) -> Result<Self, ConsentError> {
        if text.expose().chars().count() < LEAST_CHARACTERS {
            return Err(ConsentError::Weak { reason: "it has less than 16 characters" });
        }
        let mut characters: Vec<char> = text.expose().chars().collect();
        characters.sort_unstable();
        characters.dedup();
        if characters.len() < LEAST_DIFFERENT {
            return Err(ConsentError::Weak { reason: "its characters repeat themselves" });
        }
        Ok(Self(text))
    }
}

/// A sealed token, as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Sealed {
    /// The form of the file.
    version: u32,
    /// The hash of the token, by which the file is known for the right one without being opened.
    hash: ContentHash,
    /// Base64.
    salt: String,
    memory_kib: u32,
    passes: u32,
    /// Base64.
    nonce: String,
    /// Base64, with the tag at its end.
    text: String,
}

impl Sealed {
    pub(crate) fn seal(token: &OwnerToken, passphrase: &Passphrase) -> Result<Self, ConsentError> {
        let (mut salt, mut nonce) = ([0; SALT_BYTES], [0; NONCE_BYTES]);
        fill(&mut salt)?;
        fill(&mut nonce)?;
        let mut sealed = Self {
            version: 1,
            hash: token.hash(),
            salt: STANDARD.encode(salt),
            memory_kib: MEMORY_KIB,
            passes: PASSES,
            nonce: STANDARD.encode(nonce),
            text: String::new(),
        };
        let beside = sealed.beside();
        let payload = Payload { msg: token.expose().as_bytes(), aad: beside.as_bytes() };
        let text = sealed.cipher(&passphrase.0)?.encrypt(&XNonce::from(nonce), payload);
        sealed.text = STANDARD.encode(text.map_err(|_| ConsentError::System { action: "encrypting the token" })?);
        Ok(sealed)
    }

    /// The token, when it was this passphrase.
    pub(crate) fn open(&self, passphrase: &Secret<String>) -> Result<OwnerToken, ConsentError> {
        let nonce: Option<[u8; NONCE_BYTES]> =
            STANDARD.decode(&self.nonce).ok().and_then(|nonce| nonce.try_into().ok());
        let text = STANDARD.decode(&self.text).ok();
        let (nonce, text) = nonce.zip(text).ok_or_else(damaged)?;
        let beside = self.beside();
        let payload = Payload { msg: &text, aad: beside.as_bytes() };
        let opened = self.cipher(passphrase)?.decrypt(&XNonce::from(nonce), payload);
        let opened = Zeroizing::new(opened.map_err(|_| ConsentError::Passphrase)?);
        let token = std::str::from_utf8(&opened).ok().and_then(OwnerToken::parse);
        token.filter(|token| token.hash() == self.hash).ok_or_else(damaged)
    }

    pub(crate) fn hash(&self) -> ContentHash {
        self.hash
    }

    /// What is bound to the sealed text.
    fn beside(&self) -> String {
        format!("{PURPOSE} {} {} {} {}", self.hash, self.salt, self.memory_kib, self.passes)
    }

    fn cipher(&self, passphrase: &Secret<String>) -> Result<XChaCha20Poly1305, ConsentError> {
        if self.version != 1 || self.memory_kib > MOST_MEMORY_KIB || self.passes > MOST_PASSES {
            return Err(damaged());
        }
        let salt = STANDARD.decode(&self.salt).map_err(|_| damaged())?;
        let params = Params::new(self.memory_kib, self.passes, 1, Some(KEY_BYTES)).map_err(|_| damaged())?;
        let argon2 = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
        let mut key = Zeroizing::new([0_u8; KEY_BYTES]);
        argon2.hash_password_into(passphrase.expose().as_bytes(), &salt, &mut *key).map_err(|_| damaged())?;
        Ok(XChaCha20Poly1305::new((&*key).into()))
    }
}

fn damaged() -> ConsentError {
    ConsentError::File { reason: "is sealed and damaged".to_owned(), remedy: "restore it from a backup" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(text: &str) -> Secret<String> {
        Secret::new(text.to_owned())
    }

    #[test]
    fn only_the_passphrase_opens_what_was_sealed() {
        let token = OwnerToken::random().unwrap();
        let passphrase = Passphrase::new(secret("correct horse battery")).unwrap();
        let sealed = Sealed::seal(&token, &passphrase).unwrap();
        assert_eq!(sealed.open(&secret("correct horse battery")).unwrap().expose(), token.expose());
        assert!(matches!(sealed.open(&secret("correct horse batterz")), Err(ConsentError::Passphrase)));
        assert!(matches!(sealed.open(&secret("")), Err(ConsentError::Passphrase)));
        let json = serde_json::to_string(&sealed).unwrap();
        assert!(!json.contains(&token.expose()[12..]));
        // Sealed again it is another text.
        assert_ne!(Sealed::seal(&token, &passphrase).unwrap().text, sealed.text);
    }

    #[test]
    fn a_changed_file_is_not_believed_and_cannot_ask_for_the_whole_machine() {
        let token = OwnerToken::random().unwrap();
        let passphrase = Passphrase::new(secret("correct horse battery")).unwrap();
        let sealed = Sealed::seal(&token, &passphrase).unwrap();
        let other = Sealed::seal(&OwnerToken::random().unwrap(), &passphrase).unwrap();
        for changed in [
            Sealed { hash: other.hash, ..sealed.clone() },
            Sealed { text: other.text.clone(), ..sealed.clone() },
            Sealed { nonce: other.nonce.clone(), ..sealed.clone() },
            Sealed { salt: other.salt.clone(), ..sealed.clone() },
            Sealed { nonce: "AAAA".to_owned(), ..sealed.clone() },
            Sealed { text: "?".to_owned(), ..sealed.clone() },
            Sealed { text: String::new(), ..sealed.clone() },
            Sealed { passes: 2, ..sealed.clone() },
            Sealed { memory_kib: u32::MAX, ..sealed.clone() },
            Sealed { passes: u32::MAX, ..sealed.clone() },
            Sealed { memory_kib: 0, passes: 0, ..sealed.clone() },
            Sealed { version: 2, ..sealed },
        ] {
            assert!(changed.open(&secret("correct horse battery")).is_err(), "{changed:?}");
        }
    }

    #[test]
    fn weak_passphrases_are_refused() {
        for (text, expected) in [("", "16"), ("fifteen letters", "16"), ("aaaaaaaaaaaaaaaaaaaaa", "repeat")] {
            let error = Passphrase::new(secret(text)).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
        Passphrase::new(secret("sixteen letters!")).unwrap();
    }
}
