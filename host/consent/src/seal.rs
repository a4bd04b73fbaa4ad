//! A token sealed with a passphrase: XChaCha20-Poly1305 under a key of argon2id.
//!
//! It survives an attacker who can read the home but does not know the passphrase: another program of the same user. The parameters stand in the file, which that program may have changed, so they are bounded when read.

use base::{ContentHash, Secret};
use seal::{Derivation, MIN_DIFFERENT, MIN_PASSPHRASE_CHARS, OpenError};
use serde::{Deserialize, Serialize};

use crate::ConsentError;
use crate::token::OwnerToken;

/// The purpose bound to the sealed text, so that it is good for nothing else.
const PURPOSE: &str = "motor owner token 1";

/// A passphrase that is fit to seal with.
#[derive(Debug, Clone)]
pub struct OwnerPassphrase(Secret<String>);

impl OwnerPassphrase {
    /// A new one.
    ///
    /// # Errors
    /// When it could be guessed.
    pub fn new(text: Secret<String>) -> Result<Self, ConsentError> {
        if text.expose().chars().count() < MIN_PASSPHRASE_CHARS {
            return Err(ConsentError::Weak { reason: "it has less than 16 characters" });
        }
        let mut characters: Vec<char> = text.expose().chars().collect();
        characters.sort_unstable();
        characters.dedup();
        if characters.len() < MIN_DIFFERENT {
            return Err(ConsentError::Weak { reason: "its characters repeat themselves" });
        }
        Ok(Self(text))
    }
}

/// A sealed token, as it stands in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SealedToken {
    /// The form of the file.
    version: u32,
    /// The hash of the token, by which the file is known for the right one without being opened.
    hash: ContentHash,
    #[serde(flatten)]
    derivation: Derivation,
    #[serde(flatten)]
    token: seal::Sealed,
}

impl SealedToken {
    pub(crate) fn seal(token: &OwnerToken, passphrase: &OwnerPassphrase) -> Result<Self, ConsentError> {
        let (hash, derivation) = (token.hash(), Derivation::random()?);
        let key = derivation.key(passphrase.0.expose()).ok_or_else(damaged)?;
        let token = key.seal(token.expose().as_bytes(), beside(hash, &derivation).as_bytes())?;
        Ok(Self { version: 1, hash, derivation, token })
    }

    /// The token, when it was this passphrase.
    pub(crate) fn open(&self, passphrase: &Secret<String>) -> Result<OwnerToken, ConsentError> {
        if self.version != 1 {
            return Err(damaged());
        }
        let key = self.derivation.key(passphrase.expose()).ok_or_else(damaged)?;
        let opened = key.open(&self.token, beside(self.hash, &self.derivation).as_bytes());
        let opened = opened.map_err(|error| match error {
            OpenError::Malformed => damaged(),
            OpenError::Mismatch => ConsentError::Passphrase,
        })?;
        let token = std::str::from_utf8(&opened).ok().and_then(OwnerToken::parse);
        token.filter(|token| token.hash() == self.hash).ok_or_else(damaged)
    }

    pub(crate) fn hash(&self) -> ContentHash {
        self.hash
    }
}

/// The data bound to the sealed text.
fn beside(hash: ContentHash, Derivation { salt, memory_kib, passes }: &Derivation) -> String {
    format!("{PURPOSE} {hash} {salt} {memory_kib} {passes}")
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
        let passphrase = OwnerPassphrase::new(secret("correct horse battery")).unwrap();
        let sealed = SealedToken::seal(&token, &passphrase).unwrap();
        assert_eq!(sealed.open(&secret("correct horse battery")).unwrap().expose(), token.expose());
        assert!(matches!(sealed.open(&secret("correct horse batterz")), Err(ConsentError::Passphrase)));
        assert!(matches!(sealed.open(&secret("")), Err(ConsentError::Passphrase)));
        let json = serde_json::to_string(&sealed).unwrap();
        assert!(!json.contains(&token.expose()[12..]));
        // Sealed again it is another text.
        assert_ne!(SealedToken::seal(&token, &passphrase).unwrap().token.text, sealed.token.text);
    }

    #[test]
    fn a_changed_file_is_not_believed_and_cannot_ask_for_the_whole_machine() {
        let token = OwnerToken::random().unwrap();
        let passphrase = OwnerPassphrase::new(secret("correct horse battery")).unwrap();
        let sealed = SealedToken::seal(&token, &passphrase).unwrap();
        let other = SealedToken::seal(&OwnerToken::random().unwrap(), &passphrase).unwrap();
        let with_token = |nonce: &str, text: &str| SealedToken {
            token: seal::Sealed { nonce: nonce.to_owned(), text: text.to_owned() },
            ..sealed.clone()
        };
        let with_derivation = |salt: &str, memory_kib, passes| SealedToken {
            derivation: Derivation { salt: salt.to_owned(), memory_kib, passes },
            ..sealed.clone()
        };
        let Derivation { salt, memory_kib, passes } = &sealed.derivation;
        let seal::Sealed { nonce, text } = &sealed.token;
        for changed in [
            SealedToken { hash: other.hash, ..sealed.clone() },
            with_token(nonce, &other.token.text),
            with_token(&other.token.nonce, text),
            with_derivation(&other.derivation.salt, *memory_kib, *passes),
            with_token("AAAA", text),
            with_token(nonce, "?"),
            with_token(nonce, ""),
            with_derivation(salt, *memory_kib, 2),
            with_derivation(salt, u32::MAX, *passes),
            with_derivation(salt, *memory_kib, u32::MAX),
            with_derivation(salt, 0, 0),
            SealedToken { version: 2, ..sealed.clone() },
        ] {
            assert!(changed.open(&secret("correct horse battery")).is_err(), "{changed:?}");
        }
    }

    /// A file of an earlier build: the token `motor-owner-` and 64 times `a`, sealed with `correct horse battery`.
    const STORED: &str = concat!(
        r#"{"version":1,"hash":"sha256:f6bf0db61cc2b4d73bc4a723c553ec032b32f91782c5da58947384bb320fe31c","#,
        r#""salt":"jLmAUOiYJbjvQOz+tCThtA==","memoryKib":65536,"passes":3,"nonce":"x0+UU1dcjEC9aYQvlSt9dPbAOXBQYUyL","#,
        r#""text":"6L1q9puWvUlCIs0ejJd4RArEVlQmeR90LRz/vldI0HHs30G/OWl2KQ0f5HeK"#,
        r#"qRWkzDHHMIYB5ezO1C9BgbkO5adMW5GdwhV4oeg0557DJSIicbx4EKzgAEgYdEY="}"#,
    );

    #[test]
    fn a_stored_file_opens_and_is_written_the_same_way() {
        let sealed: SealedToken = serde_json::from_str(STORED).unwrap();
        let token = sealed.open(&secret("correct horse battery")).unwrap();
        assert_eq!(token.expose(), format!("motor-owner-{}", "a".repeat(64)));
        assert_eq!(serde_json::to_string(&sealed).unwrap(), STORED);
        let more = STORED.replacen('{', r#"{"more":1,"#, 1);
        assert!(serde_json::from_str::<SealedToken>(&more).is_err(), "an unknown field is refused");
    }

    #[test]
    fn weak_passphrases_are_refused() {
        for (text, expected) in [("", "16"), ("fifteen letters", "16"), ("aaaaaaaaaaaaaaaaaaaaa", "repeat")] {
            let error = OwnerPassphrase::new(secret(text)).unwrap_err();
            assert!(error.to_string().contains(expected), "{text}: {error}");
        }
        OwnerPassphrase::new(secret("sixteen letters!")).unwrap();
    }
}
