//! Fetching a skill that the owner named: through the gate, like all requests (SPEC NET-1).

use std::sync::Arc;

use base::{Refusal, RefusalCode};
use network::{GetError, Got, Pattern, Policy, Taint, Target, get};

use crate::access::NetworkAccess;

/// Gets a URL from its host and no other. Returns the bytes and their file name.
pub(super) async fn download(access: &NetworkAccess, url: &str, most_bytes: u64) -> Result<(Vec<u8>, String), Refusal> {
    let invalid = |reason: String| Refusal::new(RefusalCode::InvalidRequest, reason);
    let target = Target::parse(url).map_err(|blocked| invalid(blocked.reason))?;
    let host: Pattern = format!("{}:{}", target.host(), target.port())
        .parse()
        .map_err(|error: network::InvalidPattern| invalid(error.to_string()))?;
    let secrets = Arc::new(access.secrets(&[], None).await?);
    let policy = Policy { domains: vec![host], ..Policy::default() };
    let network = access.gate.run(policy, secrets, Taint::default());
    let Got { bytes, name } = get(&network, url, most_bytes).await.map_err(|error| match error {
        GetError::Gate(network::GateError::Blocked(blocked)) => invalid(blocked.reason)
            .with_remedy("name the address that it leads to, or fetch it yourself and add the file"),
        error => Refusal::new(RefusalCode::Failed, format!("the skill cannot be fetched: {error}")),
    })?;
    Ok((bytes, name))
}
