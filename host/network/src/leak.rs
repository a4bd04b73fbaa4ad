//! Searches outgoing requests for secrets that did not come by a placeholder (SPEC VAULT-3).
//!
//! It survives a guest that knows a value although it was given a placeholder: one that decoded a server's own
//! encoding, or read it where the host did not look. A value that the run was granted may go where its placeholder
//! may: a component that computes with it (SPEC VAULT-5) has to send it.

use std::sync::Arc;

use base::CredentialName;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use percent_encoding::percent_decode;
use serde_json::Value;
use vault::{KnownSecret, RunSecrets};
use zeroize::Zeroizing;

use crate::substitute::scan::Encoding;
use crate::substitute::{RequestParts, basic, encoding_of, may_be_sent};
use crate::target::Target;
use crate::{BlockReason, Rule};

/// Larger bodies are searched where they keep nothing else waiting.
pub(crate) const LARGE_BYTES: usize = 256 << 10;
/// A byte that is in no text.
const NO_TEXT: u8 = 0xff;

/// The credentials whose values a request holds, each once.
///
/// # Errors
/// When one of them may not be sent to the target.
pub(crate) async fn check(
    method: &Method,
    parts: &RequestParts,
    secrets: &Arc<RunSecrets>,
    target: &Target,
) -> Result<Vec<CredentialName>, BlockReason> {
    if parts.body.len() < LARGE_BYTES {
        return found(method, parts, secrets, target);
    }
    let of = (method.clone(), parts.clone(), Arc::clone(secrets), target.clone());
    let search = tokio::task::spawn_blocking(move || found(&of.0, &of.1, &of.2, &of.3));
    search.await.unwrap_or_else(|_| Err(not_searched(target)))
}

fn found(
    method: &Method,
    parts: &RequestParts,
    secrets: &RunSecrets,
    target: &Target,
) -> Result<Vec<CredentialName>, BlockReason> {
    let mut search = LeakSearch { secrets, target, found: Vec::new() };
    if secrets.scrubber().is_empty() {
        return Ok(search.found);
    }
    let url = format!("{method} {}{}", target.authority(), parts.path);
    search.look("URL", url.as_bytes())?;
    search.look_behind_percent("URL", url.as_bytes())?;
    for (name, value) in &parts.headers {
        let decoded = basic(name, value);
        // A placeholder is no leak, however it is encoded.
        let bare = decoded.as_deref().and_then(|decoded| without_placeholders(decoded));
        let value = bare.as_deref().map_or(value.as_bytes(), Vec::as_slice);
        search.look("headers", &[name.as_str().as_bytes(), b": ", value].concat())?;
        if let Some(decoded) = decoded {
            search.look("headers", &decoded)?;
        }
    }
    search.look("body", &parts.body)?;
    // The transformed value is encoded once more, as its position demands.
    match encoding_of(&parts.headers) {
        Encoding::Form => search.look_behind_percent("body", &parts.body)?,
        Encoding::Json if parts.body.contains(&b'\\') => {
            let value = serde_json::from_slice(&parts.body).unwrap_or_default();
            search.look_into(&value)?;
        }
        _ => {}
    }
    Ok(search.found)
}

/// `Basic` credentials whose placeholders are no text; none when they have none.
fn without_placeholders(decoded: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let mut bare = Zeroizing::new(decoded.to_vec());
    let mut has_any = false;
    for placeholder in Encoding::Plain.placeholders(decoded) {
        has_any = true;
        bare.get_mut(placeholder.range).unwrap_or_default().fill(NO_TEXT);
    }
    has_any.then(|| Zeroizing::new([b"Basic ", STANDARD.encode(&*bare).as_bytes()].concat()))
}

struct LeakSearch<'a> {
    secrets: &'a RunSecrets,
    target: &'a Target,
    found: Vec<CredentialName>,
}

impl LeakSearch<'_> {
    fn look(&mut self, place: &str, text: &[u8]) -> Result<(), BlockReason> {
        for secret in self.secrets.scrubber().secrets_in(text) {
            let granted = self.secrets.with_value(secret.value).find(|granted| may_be_sent(granted, self.target));
            let name = &granted.ok_or_else(|| in_clear(place, secret, self.target))?.name;
            if !self.found.contains(name) {
                self.found.push(name.clone());
            }
        }
        Ok(())
    }

    fn look_behind_percent(&mut self, place: &str, text: &[u8]) -> Result<(), BlockReason> {
        if !text.contains(&b'%') {
            return Ok(());
        }
        let decoded: Vec<u8> = percent_decode(text).collect();
        self.look(place, &decoded)
    }

    /// Looks into every text of a value.
    fn look_into(&mut self, value: &Value) -> Result<(), BlockReason> {
        match value {
            Value::String(text) => self.look("body", text.as_bytes()),
            Value::Array(items) => items.iter().try_for_each(|item| self.look_into(item)),
            Value::Object(fields) => fields.iter().try_for_each(|(name, value)| {
                self.look("body", name.as_bytes())?;
                self.look_into(value)
            }),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }
}

fn in_clear(place: &str, KnownSecret { name, .. }: &KnownSecret, target: &Target) -> BlockReason {
    let asked = target.authority();
    BlockReason {
        rule: Rule::CredentialInClear,
        reason: format!(
            "the {place} of a request to `{asked}` held the value of the credential `{name}`, which did not come by its placeholder"
        ),
        remedy: format!(
            "write `<credential:{name}>` where a server needs it that the credential is bound to; never send what you found its value in"
        ),
        asked,
    }
}

fn not_searched(target: &Target) -> BlockReason {
    BlockReason {
        rule: Rule::CredentialInClear,
        asked: target.authority(),
        reason: "the request could not be searched for the values of credentials".to_owned(),
        remedy: "send a smaller request".to_owned(),
    }
}
