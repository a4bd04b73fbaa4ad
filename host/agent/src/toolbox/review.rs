//! What a call would do, for whoever has to consent to it (SPEC APPR-1, TAINT-1), and what a consent gives a call.
//!
//! What can be read off the arguments is said before the call is made. What only shows while a program runs, the gate
//! refuses, and the refusal says what to ask. Neither widens anything: a grant is applied to one call, or to the policy of
//! the run, by the host.

use motor::{ConsentNeeded, OutgoingRequest, Planned, Review};
use network::{Blocked, Pattern, Rule, RunNetwork, TaintedWrite, Target};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::RunToolbox;
use crate::catalogue::{BASH, CODE, FETCH, FILE_TOOLS};

/// Characters of a command or program that a question shows in its first line.
const SHOWN: usize = 160;

/// What the owner grants with a consent. JSON: `{ "domains": ["api.example.com"], "writes": true }`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct NetworkGrant {
    /// The hosts.
    #[serde(default)]
    pub domains: Vec<String>,
    /// Whether they may be written to after the run has read from the web.
    #[serde(default)]
    pub writes: bool,
}

impl NetworkGrant {
    /// Reads a grant of a consent. What cannot be read grants nothing.
    pub fn read(grant: &Value) -> Option<Self> {
        Self::deserialize(grant).ok()
    }

    /// Its hosts. A model may have named them: what is no pattern is left out.
    pub fn patterns(&self) -> Vec<Pattern> {
        self.domains.iter().filter_map(|domain| domain.trim().parse().ok()).collect()
    }

    fn of(host: String, writes: bool) -> Value {
        serde_json::to_value(Self { domains: vec![host], writes }).unwrap_or_default()
    }
}

impl RunToolbox {
    pub(super) fn review_of(&self, call: &Planned<'_>) -> Review {
        let of_effects = Review::of(call);
        match call.name {
            FETCH => self.of_fetch(call).unwrap_or(Review { outward: false, ..of_effects }),
            BASH | CODE => {
                let field = if call.name == BASH { "command" } else { "code" };
                let source = call.arguments.get(field).and_then(Value::as_str).unwrap_or_default();
                let summary =
                    format!("run `{}` with {} lines: {}", call.name, source.lines().count(), first_of(source));
                // Without domains a program reaches its workspace and nothing else, and that is the run's own.
                let reaches = call.effects.open_world && !self.parts.network.policy().domains.is_empty();
                Review { summary, outward: reaches, irreversible: reaches, ..of_effects }
            }
            name if FILE_TOOLS.contains(&name) => Review { outward: false, irreversible: false, ..of_effects },
            _ => of_effects,
        }
    }

    /// A request whose target can be read. Of any other the gate says why it is none.
    fn of_fetch(&self, call: &Planned<'_>) -> Option<Review> {
        let url = call.arguments.get("url")?.as_str()?;
        let target = Target::parse(url).ok()?;
        let policy = self.parts.network.policy();
        // What is not granted is refused by the gate, with the next step: nobody need be asked for it here.
        policy.decide(&target).ok()?;
        let method = call.arguments.get("method").and_then(Value::as_str).unwrap_or("GET").to_ascii_uppercase();
        let is_write = self.is_write(call.arguments, &method);
        let host = target.authority();
        let required = is_write.then(|| tainted(&self.parts.network, &target, &method)).flatten();
        let covered = if is_write {
            policy.writes.iter().any(|pattern| pattern.covers(&target))
        } else {
            self.parts.allowed.iter().any(|pattern| pattern.covers(&target))
        };
        let shown: String = target.path_and_query().path().chars().take(SHOWN).collect();
        Some(Review {
            summary: format!("{method} {}://{host}{shown}", target.scheme().as_str()),
            outward: true,
            irreversible: is_write,
            low_risk: !is_write,
            class: Some(if is_write { format!("write to {host}") } else { format!("read from {host}") }),
            grant: NetworkGrant::of(host, is_write),
            covered,
            required,
        })
    }

    /// As the gate will see it: a method that writes, anything that carries something outwards, or a credential.
    fn is_write(&self, arguments: &Value, method: &str) -> bool {
        let has_body = arguments.get("body").is_some_and(|body| !body.is_null());
        !matches!(method, "GET" | "HEAD")
            || has_body
            || arguments.to_string().contains("<credential:")
            || self.parts.network.secrets().was_computed_with()
    }

    /// The way out of one call, with what the owner consented to for it.
    pub(super) fn way_out(&self, grant: Option<&Value>) -> RunNetwork {
        match grant.and_then(NetworkGrant::read) {
            Some(grant) if grant.writes => self.parts.network.with_writes(grant.patterns()),
            _ => self.parts.network.clone(),
        }
    }
}

/// Why a write needs the owner, when the configuration says that the owner is to be asked.
fn tainted(network: &RunNetwork, target: &Target, method: &str) -> Option<String> {
    let policy = network.policy();
    let asks = policy.tainted_write == TaintedWrite::Ask;
    let refused = policy.decide_write(target, &format!("`{method}`"), &network.taint().sources()).err()?;
    asks.then_some(refused.reason)
}

/// What the owner can consent to, when a call was refused a write for want of consent.
pub(super) fn refused_write(refused: &Blocked, asks: bool, requests: &[OutgoingRequest]) -> Option<ConsentNeeded> {
    if refused.rule != Rule::TaintedWrite || !asks {
        return None;
    }
    let rule = Rule::TaintedWrite.as_str();
    let request = requests.iter().rev().find(|request| request.rule.as_deref() == Some(rule));
    let summary = request.map_or_else(
        || format!("write to {}", refused.asked),
        |request| {
            let url: String = request.url.chars().take(SHOWN).collect();
            format!("{} {url}", request.method)
        },
    );
    Some(ConsentNeeded {
        summary,
        reason: refused.reason.clone(),
        class: Some(format!("write to {}", refused.asked)),
        grant: NetworkGrant::of(refused.asked.clone(), true),
    })
}

fn first_of(source: &str) -> String {
    let line = source.trim().lines().next().unwrap_or_default();
    let shown: String = line.chars().take(SHOWN).collect();
    if shown.len() < source.trim().len() { format!("`{shown}` …") } else { format!("`{shown}`") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_grant_that_cannot_be_read_grants_nothing() {
        let grant =
            NetworkGrant::read(&json!({"domains": ["api.example.com", "*.com", "a b"], "writes": true})).unwrap();
        assert_eq!(grant.patterns().len(), 1);
        for broken in [json!(null), json!("api.example.com"), json!({"domains": "x"}), json!({"domain": ["x"]})] {
            assert_eq!(NetworkGrant::read(&broken), None, "{broken}");
        }
    }

    #[test]
    fn only_a_tainted_write_can_be_consented_to() {
        let blocked = |rule| Blocked { rule, asked: "a.example".into(), reason: "why".into(), remedy: String::new() };
        let needed = refused_write(&blocked(Rule::TaintedWrite), true, &[]).unwrap();
        assert_eq!(needed.class.as_deref(), Some("write to a.example"));
        assert_eq!(needed.grant, json!({"domains": ["a.example"], "writes": true}));
        assert_eq!(refused_write(&blocked(Rule::TaintedWrite), false, &[]), None);
        assert_eq!(refused_write(&blocked(Rule::DomainRefused), true, &[]), None);
    }
}
