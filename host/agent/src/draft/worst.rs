//! The harm that a run could do with exactly its access, worst first (SPEC LAND-6): from the same explanation that the
//! owner is shown.

use grants::patterns;
use network::{Pattern, Shape};

use crate::explain::{ExplainedCredential, Explanation, FileAccess};

/// The sentences, worst first.
pub(super) fn at_worst(explanation: &Explanation) -> Vec<String> {
    let network = &explanation.network;
    let (whole, single): (Vec<&Shape>, Vec<&Shape>) = network.writes.iter().partition(|shape| shape.is_whole_host());
    let mut lines: Vec<String> = whole.iter().map(|shape| format!("sends anything to {shape}")).collect();
    let raw = |credential: &&ExplainedCredential| credential.raw;
    for credential in explanation.credentials.iter().filter(raw) {
        lines.push(format!("gives the value of credential {} to a component", credential.name));
    }
    lines.extend(single.iter().map(|shape| format!("sends any content by {shape}")));
    for credential in &explanation.credentials {
        let hosts = reached(credential, &network.domains);
        if !hosts.is_empty() {
            lines.push(format!("uses credential {} at {}", credential.name, hosts.join(", ")));
        }
    }
    let open = |pattern: &&Pattern| !network.refused.contains(pattern);
    let read: Vec<_> = network.domains.iter().filter(open).map(Pattern::to_string).collect();
    if !read.is_empty() {
        lines.push(format!("reads from {}, and does what a page there tells it, within these lines", read.join(", ")));
    }
    if explanation.files.access == FileAccess::ReadWrite {
        lines.push("changes or deletes any file in its workspace".to_owned());
    }
    lines.push(format!(
        "in at most {} model calls and {} s, for at most {:.2} energy",
        explanation.max_iterations,
        explanation.timeout_ms.div_ceil(1_000),
        if explanation.energy.enabled { explanation.energy.most } else { 0.0 },
    ));
    lines
}

/// The hosts of a run that a credential may be sent to.
fn reached(credential: &ExplainedCredential, domains: &[Pattern]) -> Vec<String> {
    let bound = patterns(&credential.domains).unwrap_or_default();
    let meets =
        |domain: &&Pattern| bound.iter().any(|own| own == *domain || own.is_wider(domain) || domain.is_wider(own));
    domains.iter().filter(meets).map(Pattern::to_string).collect()
}
