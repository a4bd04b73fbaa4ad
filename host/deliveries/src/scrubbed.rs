//! Bodies without secrets. Runs put none in; values that became secrets since are removed here.

use serde::Serialize;
use store::blocking;
use vault::Vault;

/// A value as JSON, with placeholders in place of secrets.
pub(crate) async fn scrubbed(vault: &Vault, value: &impl Serialize) -> Result<Vec<u8>, String> {
    let vault = vault.clone();
    let scrubber = blocking(move || vault.scrubber()).await.map_err(|refusal| refusal.to_string())?;
    let body = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    if scrubber.secrets_in(&body).is_empty() {
        return Ok(body);
    }
    let value = serde_json::to_value(value).map_err(|error| error.to_string())?;
    serde_json::to_vec(&scrubber.json(value)).map_err(|error| error.to_string())
}
