//! Powers that the owner adds by consenting to an action of the run (SPEC APPR-1).

use network::{AllowedShape, Pattern};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A power that comes with a consent. JSON: one of the two objects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum RunConsent {
    /// Hosts that the run may reach.
    Domains(DomainConsent),
    /// Requests that the run may send.
    Requests(AllowedShape),
    /// A consent that this version cannot read. It allows nothing.
    Unreadable(Value),
}

/// Hosts that the owner allows a run to reach. JSON: `{ "domains": ["api.example.com"] }`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DomainConsent {
    /// Names of the hosts.
    pub domains: Vec<String>,
    /// Earlier versions also granted all requests to a host. Only the owner's own command grants that.
    #[serde(default, skip_serializing)]
    writes: bool,
}

impl DomainConsent {
    /// A consent to reach these hosts.
    #[must_use]
    pub fn of(domains: Vec<String>) -> Self {
        Self { domains, writes: false }
    }

    /// Its hosts. A model may have named them: invalid patterns are left out.
    #[must_use]
    pub fn patterns(&self) -> Vec<Pattern> {
        self.domains.iter().filter_map(|domain| domain.trim().parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_consent_that_cannot_be_read_allows_nothing() {
        let read = |value: &Value| serde_json::from_value::<RunConsent>(value.clone()).unwrap();
        for value in
            [json!({"domains": ["api.example.com", "*.com", "a b"]}), json!({"domains": ["b.example"], "writes": true})]
        {
            let RunConsent::Domains(consent) = read(&value) else { panic!("{value}") };
            assert_eq!(consent.patterns().len(), 1, "{value}");
        }
        let requests = json!({"shape": "POST a.example/x", "values": {"to": 7}, "encrypted": true});
        assert!(matches!(read(&requests), RunConsent::Requests(_)));
        assert_eq!(serde_json::to_value(read(&requests)).unwrap(), requests);
        for broken in [
            json!("api.example.com"),
            json!({"domains": "x"}),
            json!({"domain": ["x"]}),
            json!({"shape": "POST a.example/x", "more": 1}),
        ] {
            assert_eq!(read(&broken), RunConsent::Unreadable(broken.clone()), "{broken}");
        }
    }
}
