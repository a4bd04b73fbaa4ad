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
                let field = if call.name == BASH { "script" } else { "code" };
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
            class: Some(class(if is_write { "write to" } else { "read from" }, &target)),
            grant: NetworkGrant::of(pattern(&target), is_write),
            covered,
            required,
        })
    }

    /// As the gate will see it: a method that writes, also by a header, anything that carries something outwards, or a
    /// credential in any spelling.
    fn is_write(&self, arguments: &Value, method: &str) -> bool {
        let has_body = arguments.get("body").is_some_and(|body| !body.is_null());
        let text = arguments.to_string();
        let text = percent_encoding::percent_decode_str(&text).decode_utf8_lossy().to_ascii_lowercase();
        !network::reads(method, headers(arguments))
            || has_body
            || text.contains("credential:")
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
    let request = request?;
    let target = Target::parse(&request.url).ok()?;
    let url: String = request.url.chars().take(SHOWN).collect();
    Some(ConsentNeeded {
        summary: format!("{} {url}", request.method),
        reason: refused.reason.clone(),
        class: Some(class("write to", &target)),
        grant: NetworkGrant::of(pattern(&target), true),
    })
}

/// A class of actions: nothing of it goes to another port, or in the clear when it was shown encrypted.
fn class(what: &str, target: &Target) -> String {
    format!("{what} {}://{}", target.scheme().as_str(), target.authority())
}

/// The pattern of this host and this port alone.
fn pattern(target: &Target) -> String {
    format!("{}:{}", target.host(), target.port())
}

/// The headers that a call names, as text.
fn headers(arguments: &Value) -> impl Iterator<Item = (&str, &str)> {
    let named = arguments.get("headers").and_then(Value::as_object).into_iter().flatten();
    // What is no text is refused by the tool; here it must not pass for nothing.
    named.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or("\n")))
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
        let request = |url: &str| -> OutgoingRequest {
            let request = json!({
                "method": "POST", "url": url, "host": "a.example", "sentBytes": 0, "receivedBytes": 0, "durationMs": 1.0,
                "rule": Rule::TaintedWrite.as_str(),
            });
            serde_json::from_value(request).unwrap()
        };
        let asked = [request("https://a.example/x")];
        let needed = refused_write(&blocked(Rule::TaintedWrite), true, &asked).unwrap();
        assert_eq!(needed.class.as_deref(), Some("write to https://a.example"));
        assert_eq!(needed.grant, json!({"domains": ["a.example:443"], "writes": true}));
        assert_eq!(needed.summary, "POST https://a.example/x");
        let clear = refused_write(&blocked(Rule::TaintedWrite), true, &[request("http://a.example/x")]).unwrap();
        assert_eq!(clear.grant, json!({"domains": ["a.example:80"], "writes": true}));
        assert_ne!(clear.class, needed.class);
        assert_eq!(refused_write(&blocked(Rule::TaintedWrite), false, &asked), None);
        assert_eq!(refused_write(&blocked(Rule::DomainRefused), true, &asked), None);
        assert_eq!(refused_write(&blocked(Rule::TaintedWrite), true, &[]), None);
    }
}
