//! The effects of calling a tool: the component's claim, bounded by the capabilities of its imports.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::inspect::Capability;

/// Effects that a tool may have. The default is the worst case: a guest that claims nothing is not trusted with more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Effects {
    /// A call changes nothing.
    #[serde(alias = "read_only")]
    pub read_only: bool,
    /// A call may destroy something.
    pub destructive: bool,
    /// A call may be repeated safely.
    pub idempotent: bool,
    /// A call reaches beyond the workspace.
    #[serde(alias = "open_world")]
    pub open_world: bool,
}

impl Default for Effects {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

impl Effects {
    /// These effects without those that a component with these capabilities cannot have, regardless of its claims:
    /// without the network it reaches nothing outside, and without network, files and credentials a call cannot change
    /// anything. An effect is never added.
    #[must_use]
    pub fn bounded_by(self, capabilities: &BTreeSet<Capability>) -> Self {
        if capabilities.iter().any(|capability| capability.is_power()) {
            let network = capabilities.contains(&Capability::Network);
            return Self { open_world: self.open_world && network, ..self };
        }
        Self { read_only: true, destructive: false, idempotent: true, open_world: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORST: Effects = Effects { read_only: false, destructive: true, idempotent: false, open_world: true };
    const NOTHING: Effects = Effects { read_only: true, destructive: false, idempotent: true, open_world: false };

    #[test]
    fn imports_bound_what_a_tool_can_do() {
        let check = |declared: Effects, capabilities: &[Capability], expected: Effects| {
            let capabilities = capabilities.iter().copied().collect();
            assert_eq!(declared.bounded_by(&capabilities), expected, "{declared:?} {capabilities:?}");
        };
        let inside = Effects { open_world: false, ..WORST };
        check(WORST, &[], NOTHING);
        check(WORST, &[Capability::Clock, Capability::Random, Capability::CommandLine, Capability::Log], NOTHING);
        check(WORST, &[Capability::Workspace], inside);
        // A credential can sign a message that another system acts on.
        check(WORST, &[Capability::Credentials], inside);
        check(WORST, &[Capability::Network], WORST);
        check(WORST, &[Capability::Network, Capability::Workspace], WORST);
        // A claim of fewer effects is kept.
        check(NOTHING, &[Capability::Network, Capability::Workspace], NOTHING);
        check(Effects { idempotent: true, ..WORST }, &[Capability::Workspace], Effects { idempotent: true, ..inside });
    }
}
