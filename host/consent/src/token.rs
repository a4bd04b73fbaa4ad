//! The owner's token: 32 random bytes, written `motor-owner-` and 64 hex digits, so that it is known for what it is where
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
        let mut bytes = Zeroizing::new([0_u8; BYTES]);
        fill(&mut *bytes)?;
        let mut text = String::with_capacity(PREFIX.len() + 2 * BYTES);
        text.push_str(PREFIX);
        for byte in *bytes {
            use std::fmt::Write as _;
            // Writing to a string cannot fail.
            write!(text, "{byte:02x}").ok();
        }
        Ok(Self(Secret::new(text)))
    }

    /// Reads one that somebody wrote. None when it cannot be one.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.trim().strip_prefix(PREFIX)?;
        let is_one = digits.len() == 2 * BYTES && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_one.then(|| Self(Secret::new(text.trim().to_owned())))
    }

    /// What a host knows of it. A hash without salt is enough: nobody guesses 256 random bits.
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

/// Random bytes of the system's cryptographic generator.
#[expect(clippy::disallowed_methods, reason = "a token must not come from a seed")]
pub(crate) fn fill(bytes: &mut [u8]) -> Result<(), ConsentError> {
    aws_lc_rs::rand::fill(bytes).map_err(|_| ConsentError::System { action: "asking the system for randomness" })
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
