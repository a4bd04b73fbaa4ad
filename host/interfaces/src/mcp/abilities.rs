//! The abilities that the client of a call declared.

use rmcp::model::ProtocolVersion;
use rmcp::service::{RequestContext, RoleServer};

/// The abilities of the client, as its protocol version defines them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Abilities {
    /// It shows a form to a person and returns their entries (since 2025-06-18).
    pub(super) form: bool,
    /// It opens an address for a person (since 2025-11-25).
    pub(super) url: bool,
    /// It follows tasks (SEP-2663, since 2026-07-28).
    pub(super) tasks: bool,
    /// It is asked by an incomplete result, and repeats its call with the answer (since 2026-07-28).
    pub(super) repeats: bool,
}

impl Abilities {
    pub(super) fn of(context: &RequestContext<RoleServer>) -> Self {
        let (Some(version), Some(declared)) = (context.protocol_version(), context.client_capabilities()) else {
            return Self::default();
        };
        let since = |first: &ProtocolVersion| version.as_str() >= first.as_str();
        let repeats = since(&ProtocolVersion::V_2026_07_28);
        let (form, url) = match &declared.elicitation {
            None => (false, false),
            // A client that names no mode has forms.
            Some(elicitation) => (elicitation.form.is_some() || elicitation.url.is_none(), elicitation.url.is_some()),
        };
        Self {
            form: form && since(&ProtocolVersion::V_2025_06_18),
            url: url && since(&ProtocolVersion::V_2025_11_25),
            tasks: repeats && declared.supports_tasks(),
            repeats,
        }
    }
}
