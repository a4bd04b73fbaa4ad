//! Computing with a secret on behalf of a component that never sees it (SPEC VAULT-5).
//!
//! Messages name the credential and the expected kind of key, never any part of its value.

use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base::{CredentialName, Secret};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use crate::GrantedCredential;

/// A signature algorithm, with its key format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// RFC 8032. The key is PKCS#8 in PEM, or 32 bytes in hexadecimal.
    Ed25519,
    /// RFC 7518 ES256: r and s, 64 bytes. The key is PKCS#8 in PEM.
    EcdsaP256Sha256,
    /// RFC 8017 PKCS#1 v1.5, RS256 of RFC 7518. The key is PKCS#8 in PEM.
    RsaPkcs1Sha256,
}

/// The reason a computation was refused or failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ComputeError {
    /// The owner did not allow the value itself to be given out.
    #[error("credential `{name}` is not given out: the owner has to set it with `--raw`")]
    Denied {
        /// Name of the denied credential.
        name: CredentialName,
    },
    /// The value is not a key of the expected kind.
    #[error("credential `{name}` is no {expected}")]
    Unusable {
        /// Name of the unusable credential.
        name: CredentialName,
        /// The expected kind of key.
        expected: &'static str,
    },
    /// The computation itself failed.
    #[error("signing with credential `{name}` failed")]
    Failed {
        /// Name of the credential used.
        name: CredentialName,
    },
}

/// HMAC-SHA-256 (RFC 2104) of the data, keyed with the credential's bytes.
#[must_use]
pub fn hmac_sha256(credential: &GrantedCredential, data: &[u8]) -> [u8; 32] {
    let key = hmac::Key::new(hmac::HMAC_SHA256, credential.value.expose().as_bytes());
    let mut code = [0; 32];
    code.copy_from_slice(hmac::sign(&key, data).as_ref());
    code
}

/// Signs the data with the credential as the private key.
///
/// # Errors
/// If the value is not a key of that kind, or the computation fails.
#[expect(clippy::disallowed_methods, reason = "signatures take it from the system")]
pub fn sign(credential: &GrantedCredential, algorithm: Algorithm, data: &[u8]) -> Result<Vec<u8>, ComputeError> {
    let unusable = |expected| ComputeError::Unusable { name: credential.name.clone(), expected };
    let failed = |_| ComputeError::Failed { name: credential.name.clone() };
    let value = credential.value.expose().trim();
    match algorithm {
        Algorithm::Ed25519 => {
            let expected = "Ed25519 key: PKCS#8 in PEM, or 32 bytes in hexadecimal";
            let key = match (pkcs8(value), from_hex(value).filter(|seed| seed.len() == 32)) {
                (Some(der), _) => Ed25519KeyPair::from_pkcs8_maybe_unchecked(&der),
                (None, Some(seed)) => Ed25519KeyPair::from_seed_unchecked(&seed),
                (None, None) => return Err(unusable(expected)),
            };
            Ok(key.map_err(|_| unusable(expected))?.sign(data).as_ref().to_vec())
        }
        Algorithm::EcdsaP256Sha256 => {
            let expected = "P-256 key: PKCS#8 in PEM";
            let der = pkcs8(value).ok_or_else(|| unusable(expected))?;
            let key =
                EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).map_err(|_| unusable(expected))?;
            Ok(key.sign(&SystemRandom::new(), data).map_err(failed)?.as_ref().to_vec())
        }
        Algorithm::RsaPkcs1Sha256 => {
            let expected = "RSA key of 2048 to 8192 bits: PKCS#8 in PEM";
            let der = pkcs8(value).ok_or_else(|| unusable(expected))?;
            let key = RsaKeyPair::from_pkcs8(&der).map_err(|_| unusable(expected))?;
            let mut signature = vec![0; key.public_modulus_len()];
            key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), data, &mut signature).map_err(failed)?;
            Ok(signature)
        }
    }
}

/// The secret itself, for the few protocols that have no alternative.
///
/// # Errors
/// If the owner did not allow exactly this for the credential.
pub fn reveal(credential: &GrantedCredential) -> Result<&Secret<String>, ComputeError> {
    if credential.raw { Ok(&credential.value) } else { Err(ComputeError::Denied { name: credential.name.clone() }) }
}

/// The content of a private key's armour. Line breaks may be written `\n`, as in an environment variable.
fn pkcs8(value: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (_, body) = value.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = body.split_once("-----END PRIVATE KEY-----")?;
    let body = Zeroizing::new(body.replace("\\n", "\n"));
    let mut digits = Zeroizing::new(String::with_capacity(body.len()));
    digits.extend(body.chars().filter(|character| !character.is_ascii_whitespace()));
    STANDARD.decode(&*digits).ok().map(Zeroizing::new)
}

/// The bytes that hexadecimal digits stand for.
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
    use aws_lc_rs::encoding::AsDer as _;
    use aws_lc_rs::rsa::KeySize;
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ED25519, KeyPair as _, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    };

    use super::*;

    fn credential(value: &str) -> GrantedCredential {
        let name = CredentialName::parse("signing-key").unwrap();
        GrantedCredential { name, value: Secret::new(value.to_owned()), domains: Vec::new(), raw: false }
    }

    fn pem(der: &[u8]) -> String {
        let body = STANDARD.encode(der);
        let lines: Vec<&str> = body.as_bytes().chunks(64).map(|line| std::str::from_utf8(line).unwrap()).collect();
        format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", lines.join("\n"))
    }

    fn to_hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// RFC 4231, test cases 1, 2 and 6, as far as a key can be text.
    #[test]
    fn hmac_gives_the_known_answers() {
        for (key, data, expected) in [
            ("\u{b}".repeat(20), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"),
            (
                "Jefe".to_owned(),
                "what do ya want for nothing?",
                "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
            ),
        ] {
            assert_eq!(to_hex(&hmac_sha256(&credential(&key), data.as_bytes())), expected);
        }
    }

    /// RFC 8032, section 7.1, tests 1 and 2; the second also in PEM.
    #[test]
    fn ed25519_gives_the_known_answers() {
        let seeds = [
            "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
            "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        ];
        let second = "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da\
                      085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
        let first = "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b";
        let armoured = {
            let mut der = vec![0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
            der.extend(from_hex(seeds[1]).unwrap().iter());
            pem(&der)
        };
        for (key, data, expected) in [
            (seeds[0], &b""[..], first),
            (seeds[1], &[0x72][..], second),
            (&armoured, &[0x72][..], second),
            (&armoured.replace('\n', "\\n"), &[0x72][..], second),
        ] {
            let signature = sign(&credential(key), Algorithm::Ed25519, data).unwrap();
            assert_eq!(to_hex(&signature), expected);
        }
    }

    #[test]
    fn signatures_verify_with_the_public_key() {
        let random = SystemRandom::new();
        let data = b"header.payload";
        let ecdsa = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let signature = sign(&credential(&pem(ecdsa.as_ref())), Algorithm::EcdsaP256Sha256, data).unwrap();
        assert_eq!(signature.len(), 64);
        let public = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, ecdsa.as_ref()).unwrap();
        let verify = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, public.public_key().as_ref());
        verify.verify(data, &signature).unwrap();
        assert!(verify.verify(b"other", &signature).is_err());

        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let der: aws_lc_rs::encoding::Pkcs8V1Der = rsa.as_der().unwrap();
        let signature = sign(&credential(&pem(der.as_ref())), Algorithm::RsaPkcs1Sha256, data).unwrap();
        let verify = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, rsa.public_key().as_ref());
        verify.verify(data, &signature).unwrap();

        let ed25519 = Ed25519KeyPair::generate_pkcs8(&random).unwrap();
        let signature = sign(&credential(&pem(ed25519.as_ref())), Algorithm::Ed25519, data).unwrap();
        let public = Ed25519KeyPair::from_pkcs8(ed25519.as_ref()).unwrap();
        UnparsedPublicKey::new(&ED25519, public.public_key().as_ref()).verify(data, &signature).unwrap();
    }

    #[test]
    fn what_is_no_key_is_said_without_showing_it() {
        let ecdsa = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new()).unwrap();
        let ecdsa = pem(ecdsa.as_ref());
        for (value, algorithm) in [
            ("hunter2hunter2", Algorithm::Ed25519),
            (&"é".repeat(32), Algorithm::Ed25519),
            (&"a".repeat(62), Algorithm::Ed25519),
            ("hunter2hunter2", Algorithm::EcdsaP256Sha256),
            ("-----BEGIN PRIVATE KEY-----\nhunter2=\n-----END PRIVATE KEY-----", Algorithm::RsaPkcs1Sha256),
            (&ecdsa, Algorithm::Ed25519),
            (&ecdsa, Algorithm::RsaPkcs1Sha256),
        ] {
            let error = sign(&credential(value), algorithm, b"x").unwrap_err();
            assert!(matches!(error, ComputeError::Unusable { .. }), "{value}: {error}");
            assert!(!format!("{error} {error:?}").contains("hunter2"));
        }
    }

    #[test]
    fn a_value_is_revealed_only_when_the_owner_said_so() {
        let mut credential = credential("hunter2hunter2");
        assert!(matches!(reveal(&credential), Err(ComputeError::Denied { .. })));
        credential.raw = true;
        assert_eq!(reveal(&credential).unwrap().expose(), "hunter2hunter2");
    }
}
