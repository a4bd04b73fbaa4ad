//! The owner's token: 32 random bytes, written `motor-owner-` and 64 hex digits, so that it is recognised where
//! it was left by mistake.

use base::{ContentHash, Secret};
use zeroize::Zeroizing;

use crate::ConsentError;

/// Bytes of a token.
const BYTES: usize = 32;
/// How it begins in text.
const PREFIX: &str = "motor-owner-";

/// The owner's token. Does not print.
#[derive(Debug, Clone)]
pub struct OwnerToken(Secret<String>);

impl OwnerToken {
    /// A new one. From the system's cryptographic generator and never from a seed, which could make it again.
    ///
    /// # Errors
    /// When the system has no randomness.
    pub fn random() -> Result<Self, ConsentError> {
        random(PREFIX).map(Self)
    }

    /// Parses a token. `None` if the text cannot be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        is_token(text.trim(), PREFIX).then(|| Self(Secret::new(text.trim().to_owned())))
    }

    /// The hash that a host knows of it. A hash without salt is enough: 256 random bits cannot be guessed.
    #[must_use]
    pub fn hash(&self) -> ContentHash {
        ContentHash::of(self.expose().as_bytes())
    }

    /// The text, for where it has to be shown.
    #[must_use]
    pub fn expose(&self) -> &str {
        self.0.expose()
    }
}

/// A new token: the prefix and random digits.
pub(crate) fn random(prefix: &str) -> Result<Secret<String>, ConsentError> {
    let mut bytes = Zeroizing::new([0_u8; BYTES]);
    seal::fill(&mut *bytes)?;
    let mut text = String::with_capacity(prefix.len() + 2 * BYTES);
    text.push_str(prefix);
    for byte in *bytes {
        use std::fmt::Write as _;
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
    }
    Ok(Secret::new(text))
}

/// Whether a text has the form of a token with this prefix.
pub(crate) fn is_token(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix).is_some_and(|digits| {
        digits.len() == 2 * BYTES && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_do_not_print() {
        let (one, other) = (OwnerToken::random().unwrap(), OwnerToken::random().unwrap());
        assert_ne!(one.expose(), other.expose());
        assert_ne!(one.hash(), other.hash());
        assert_eq!(one.expose().len(), 12 + 64);
        assert!(!format!("{one:?}").contains(&one.expose()[12..]));
        let again = OwnerToken::parse(&format!(" {}\n", one.expose())).unwrap();
        assert_eq!(again.hash(), one.hash());
    }

    #[test]
    fn what_is_no_token_is_not_read_as_one() {
        let hex = "ab".repeat(32);
        assert!(OwnerToken::parse(&format!("motor-owner-{hex}")).is_some());
        for text in [
            "",
            "motor-owner-",
            &hex,
            &format!("motor-owner-{}", "AB".repeat(32)),
            &format!("motor-owner-{hex}0"),
            &format!("motor-owner-{}", &hex[..62]),
            &format!("motor-owner-{}é", &hex[..62]),
            &format!("motor-owner- {}", &hex[..63]),
            &format!("motor-agent-{hex}"),
        ] {
            assert!(OwnerToken::parse(text).is_none(), "{text:?}");
        }
    }
}
