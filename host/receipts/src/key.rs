//! The key that signs receipts, and the one that verifies them, as text. Where they lie is others' business.
//!
//! A private key is shown by nothing but [`SigningKey::to_text`], and no error repeats anything of one.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::encoding::{AsBigEndian as _, Curve25519SeedBin};
use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};
use base::ContentHash;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

const WARNING: &str = "# Whoever has this key can forge the receipts of this host. Keep it to yourself.";
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
const ALGORITHM: &str = "ed25519:";
/// RFC 8410: the prefix of the 32 bytes of an Ed25519 key in PKCS#8.
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];

/// Why there is no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyError {
    /// The system gives no randomness.
    #[error("no key can be made: the system gives no randomness")]
    Generate,
    /// The text is no private key.
    #[error("it holds no Ed25519 key in PKCS#8")]
    Private,
    /// The text is no public key.
    #[error("a public key is `ed25519:` and 64 lower-case hex digits")]
    Public,
}

/// The private key that signs receipts.
pub struct SigningKey(Ed25519KeyPair);

impl SigningKey {
    /// A new key.
    ///
    /// # Errors
    /// When the system gives no randomness.
    pub fn generate() -> Result<Self, KeyError> {
        Ed25519KeyPair::generate().map(Self).map_err(|_| KeyError::Generate)
    }

    /// The key of a file as [`SigningKey::to_text`] makes it. Text before the armour is ignored.
    ///
    /// # Errors
    /// If the file holds no key.
    pub fn from_text(text: &str) -> Result<Self, KeyError> {
        let (_, body) = text.split_once(BEGIN).ok_or(KeyError::Private)?;
        let (body, _) = body.split_once(END).ok_or(KeyError::Private)?;
        let mut digits = Zeroizing::new(String::with_capacity(body.len()));
        digits.extend(body.chars().filter(|character| !character.is_ascii_whitespace()));
        let der = Zeroizing::new(STANDARD.decode(&*digits).map_err(|_| KeyError::Private)?);
        let seed = der.strip_prefix(&PKCS8).ok_or(KeyError::Private)?;
        Ed25519KeyPair::from_seed_unchecked(seed).map(Self).map_err(|_| KeyError::Private)
    }

    /// The key as text: a warning, and PKCS#8 in PEM.
    ///
    /// # Errors
    /// When the library does not give the key out.
    pub fn to_text(&self) -> Result<Zeroizing<String>, KeyError> {
        let seed = self.0.seed().map_err(|_| KeyError::Private)?;
        let seed: Curve25519SeedBin<'_> = seed.as_be_bytes().map_err(|_| KeyError::Private)?;
        let mut der = Zeroizing::new(PKCS8.to_vec());
        der.extend_from_slice(seed.as_ref());
        let body = Zeroizing::new(STANDARD.encode(&*der));
        Ok(Zeroizing::new(format!("{WARNING}\n{BEGIN}\n{}\n{END}\n", &*body)))
    }

    /// The key that verifies signatures of this one.
    #[must_use]
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; 32];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    pub(crate) fn sign(&self, message: &[u8]) -> ReceiptSignature {
        let mut bytes = [0; 64];
        bytes.copy_from_slice(self.0.sign(message).as_ref());
        ReceiptSignature(bytes)
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public())
    }
}

/// Verifies receipts. Written `ed25519:` and 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// The name of the key in receipts.
    #[must_use]
    pub fn id(&self) -> ContentHash {
        ContentHash::of(&self.0)
    }

    pub(crate) fn verifies(&self, message: &[u8], signature: &ReceiptSignature) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, &signature.0).is_ok()
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ALGORITHM)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for PublicKey {
    type Err = KeyError;

    fn from_str(text: &str) -> Result<Self, KeyError> {
        text.strip_prefix(ALGORITHM).and_then(from_hex).map(Self).ok_or(KeyError::Public)
    }
}

impl TryFrom<String> for PublicKey {
    type Error = KeyError;

    fn try_from(text: String) -> Result<Self, KeyError> {
        text.parse()
    }
}

impl From<PublicKey> for String {
    fn from(key: PublicKey) -> Self {
        key.to_string()
    }
}

/// A signature (RFC 8032). Written as 128 lower-case hex digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(crate) struct ReceiptSignature([u8; 64]);

impl TryFrom<String> for ReceiptSignature {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        from_hex(&text).map(Self).ok_or("a signature is 128 lower-case hex digits")
    }
}

impl From<ReceiptSignature> for String {
    fn from(signature: ReceiptSignature) -> Self {
        signature.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn from_hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let plain = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if text.len() != 2 * N || !text.bytes().all(plain) {
        return None;
    }
    let mut bytes = [0; N];
    for (index, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * index..2 * index + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, section 7.1, test 2.
    #[test]
    fn a_known_key_signs_as_it_should() {
        let seed = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
        let der = [&PKCS8[..], &from_hex::<32>(seed).unwrap()].concat();
        let key = SigningKey::from_text(&format!("{BEGIN}{}{END}", STANDARD.encode(der))).unwrap();
        let public = "ed25519:3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
        assert_eq!(key.public().to_string(), public);
        let signature = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                         085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        assert_eq!(String::from(key.sign(&[0x72])), signature);
        assert!(key.public().verifies(&[0x72], &key.sign(&[0x72])));
        assert!(!key.public().verifies(&[0x73], &key.sign(&[0x72])));
    }

    #[test]
    fn a_key_comes_back_from_its_text_and_shows_nowhere_else() {
        let key = SigningKey::generate().unwrap();
        let text = key.to_text().unwrap();
        assert!(text.starts_with(WARNING) && text.lines().count() == 4, "{}", text.lines().count());
        let again = SigningKey::from_text(&text).unwrap();
        assert_eq!(again.public(), key.public());
        assert_eq!(again.to_text().unwrap(), text);
        assert_ne!(SigningKey::generate().unwrap().public(), key.public());
        let body = text.lines().nth(2).unwrap();
        assert!(!format!("{key:?}").contains(&body[24..]));
    }

    #[test]
    fn what_is_no_key_is_refused_without_showing_it() {
        let text = SigningKey::generate().unwrap().to_text().unwrap();
        for broken in [
            "",
            "hunter2",
            &text.replace(END, ""),
            &text.replace(BEGIN, BEGIN.replace("PRIVATE", "PUBLIC").as_str()),
            &format!("{BEGIN}\nhunter2\n{END}"),
            &format!("{BEGIN}{END}"),
            &format!("{BEGIN}\n{}\n{END}", STANDARD.encode([&PKCS8[..], b"hunter2"].concat())),
            &format!("{BEGIN}\n{}\n{END}", STANDARD.encode([0_u8; 48])),
        ] {
            assert_eq!(SigningKey::from_text(broken).unwrap_err(), KeyError::Private);
        }
        let public = SigningKey::generate().unwrap().public().to_string();
        assert!(public.parse::<PublicKey>().is_ok());
        for broken in ["", "ed25519:", &public[8..], &public.to_uppercase(), &format!("{public}0"), "ed25519:é"] {
            assert_eq!(broken.parse::<PublicKey>().unwrap_err(), KeyError::Public, "{broken}");
        }
    }
}
