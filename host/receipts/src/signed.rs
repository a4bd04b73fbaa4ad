//! A receipt with its signature, in the one form of bytes that it has.
//!
//! JSON allows the same to be written in many ways. One of them is a receipt: two spaces, keys in order of their bytes,
//! a line break at the end. So the whole file is protected, although only its content is signed.

use base::canonical;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::key::ReceiptSignature;
use crate::{PublicKey, Receipt, SEEDED_VERSION, SigningKey, VERSION, VerifyError};

/// The largest receipt, in bytes. One with 10,000 artifacts has about three million.
pub const MAX_BYTES: usize = 16 << 20;
/// Signed before the receipt, so that no signature of this key for something else is one of a receipt.
const CONTEXT: &str = "motor receipt\n";

/// A receipt whose signature fits.
#[derive(Debug, Clone, PartialEq, Eq, JsonSchema)]
pub struct SignedReceipt(Envelope);

/// JSON: `{ key, receipt, signature }`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
struct Envelope {
    receipt: Receipt,
    #[schemars(with = "String")]
    key: PublicKey,
    #[schemars(with = "String")]
    signature: ReceiptSignature,
}

impl SignedReceipt {
    /// Signs a receipt. Its issuer has to be the owner of the key.
    ///
    /// # Errors
    /// When it would not be accepted afterwards: it is too large, or names another key.
    pub fn sign(receipt: Receipt, key: &SigningKey) -> Result<Self, VerifyError> {
        let signature = key.sign(&message(&receipt)?);
        let signed = Self(Envelope { receipt, key: key.public(), signature });
        // No receipt is given out that cannot be verified.
        Self::read(signed.text()?.as_bytes())
    }

    /// Reads a receipt and verifies that its key signed exactly these bytes.
    ///
    /// # Errors
    /// When they are no receipt, or one byte is another.
    pub fn read(bytes: &[u8]) -> Result<Self, VerifyError> {
        if bytes.len() > MAX_BYTES {
            return Err(VerifyError::TooLarge { limit: MAX_BYTES });
        }
        // A newer form would otherwise be refused for an unknown field.
        if let Ok(Glance { receipt: GlanceReceipt { version } }) = serde_json::from_slice(bytes)
            && ![VERSION, SEEDED_VERSION].contains(&version)
        {
            return Err(VerifyError::Version { found: version, known: SEEDED_VERSION });
        }
        // Typed all the way down: deep nesting, or a duplicate key, is an error of the parser.
        let envelope: Envelope = serde_json::from_slice(bytes).map_err(malformed)?;
        let (found, known) = (envelope.receipt.version, Receipt::version_of(envelope.receipt.seed));
        if found != known {
            return Err(VerifyError::Version { found, known });
        }
        let signed = Self(envelope);
        let written = signed.text()?;
        if written.as_bytes() != bytes {
            let same = written.bytes().zip(bytes).take_while(|(written, found)| written == *found).count();
            let line = 1 + bytes.iter().take(same).filter(|byte| **byte == b'\n').count();
            return Err(VerifyError::Rewritten { line });
        }
        let Envelope { receipt, key, signature } = &signed.0;
        let (named, found) = (receipt.issuer.key_id, key.id());
        if named != found {
            return Err(VerifyError::KeyId { named, found });
        }
        if !key.verifies(&message(receipt)?, signature) {
            return Err(VerifyError::Signature);
        }
        Ok(signed)
    }

    /// Reads a receipt that came as a value: the order of its keys and its spaces are lost.
    ///
    /// # Errors
    /// As [`SignedReceipt::read`].
    pub fn of_value(value: &Value) -> Result<Self, VerifyError> {
        Self::read(written(value.clone())?.as_bytes())
    }

    /// The file: exactly the text that [`SignedReceipt::read`] reads.
    ///
    /// # Errors
    /// None that a receipt that was read could cause.
    pub fn text(&self) -> Result<String, VerifyError> {
        written(value(&self.0)?)
    }

    /// The content of the receipt.
    #[must_use]
    pub fn receipt(&self) -> &Receipt {
        &self.0.receipt
    }

    /// The key that signed it.
    #[must_use]
    pub fn key(&self) -> &PublicKey {
        &self.0.key
    }

    /// Verifies that this key signed it, and not just any.
    ///
    /// # Errors
    /// When it was another.
    pub fn is_of(&self, expected: &PublicKey) -> Result<(), VerifyError> {
        if self.key() == expected {
            return Ok(());
        }
        Err(VerifyError::OtherKey { expected: *expected, found: *self.key() })
    }
}

#[derive(Deserialize)]
struct Glance {
    receipt: GlanceReceipt,
}

#[derive(Deserialize)]
struct GlanceReceipt {
    version: u32,
}

/// The bytes that are signed.
fn message(receipt: &Receipt) -> Result<Vec<u8>, VerifyError> {
    Ok(format!("{CONTEXT}{}", canonical::text(&value(receipt)?)).into_bytes())
}

fn value(said: &impl Serialize) -> Result<Value, VerifyError> {
    serde_json::to_value(said).map_err(malformed)
}

/// The parser's words, which may hold a name from the file that is as long as the file.
fn malformed(error: serde_json::Error) -> VerifyError {
    let reason = error.to_string();
    let Some((cut, _)) = reason.char_indices().nth(300) else { return VerifyError::Form { reason } };
    let (line, column) = (error.line(), error.column());
    VerifyError::Form { reason: format!("{}… at line {line} column {column}", reason.get(..cut).unwrap_or_default()) }
}

/// The one form of a file.
fn written(value: Value) -> Result<String, VerifyError> {
    let mut text = serde_json::to_string_pretty(&sorted(value)).map_err(malformed)?;
    text.push('\n');
    Ok(text)
}

/// The same value with the keys of every object in order of their bytes.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            fields.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        plain => plain,
    }
}

#[cfg(test)]
mod tests;
