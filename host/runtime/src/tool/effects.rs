//! What calling a tool can do to the world: the component's word, bounded by what its imports allow.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::inspect::Capability;

/// What a tool does to the world. The default is the worst case: a guest that says nothing is not trusted with more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effects {
    /// Changes nothing.
    pub read_only: bool,
    /// May destroy something.
    pub destructive: bool,
    /// May be repeated.
    pub idempotent: bool,
    /// Reaches beyond the workspace.
    pub open_world: bool,
}

impl Default for Effects {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

impl Effects {
    /// These effects without those that a component with these capabilities cannot have. Whatever it says or leaves
    /// unsaid: without the network it reaches nothing outside, and without network, files and credentials there is
    /// nothing that a call could change. Nothing is ever added to what it promises.
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
        // A credential can sign what somebody else acts on.
        check(WORST, &[Capability::Credentials], inside);
        check(WORST, &[Capability::Network], WORST);
        check(WORST, &[Capability::Network, Capability::Workspace], WORST);
        // What it promises stays promised.
        check(NOTHING, &[Capability::Network, Capability::Workspace], NOTHING);
        check(Effects { idempotent: true, ..WORST }, &[Capability::Workspace], Effects { idempotent: true, ..inside });
    }
}
