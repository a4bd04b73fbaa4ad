//! The sources of the configuration. Examined by the command, because the file may have changed since a host read it.

use super::{Check, Finding};
use crate::config::{ConfigFault, LoadedConfig};

const CONFIGURATION: Check = Check::new("configuration", "configuration");

/// The values that are not taken, each with the command that takes it away.
#[must_use]
pub fn config_findings(loaded: &LoadedConfig, faults: &[ConfigFault]) -> Vec<Finding> {
    let path = loaded.path();
    if faults.is_empty() {
        let place = path.display();
        let message = if path.exists() { format!("{place} fits") } else { format!("defaults: there is no {place}") };
        return vec![CONFIGURATION.ok(message)];
    }
    faults.iter().map(|fault| CONFIGURATION.problem(&fault.refusal.reason, &fault.fix)).collect()
}
