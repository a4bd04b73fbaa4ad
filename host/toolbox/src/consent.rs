//! Consents and requests, between the loop and the gate (SPEC APPR-1, TAINT-1).
//!
//! The gate refuses a request without consent and hands it out; the loop shows it to the owner and keeps the answer.
//! The host applies the answer to one call, or to the policy of the run.

use base::text::cut;
use grants::{DomainConsent, RunConsent};
use motor::{
    CallReview, ConsentNeeded, PlannedCall, ShownField, ShownRequest, ToolEffects, ToolInvocation, ValueOrigin,
};
use network::{AskedRequest, CallConsents, RunNetwork, Target};
use serde_json::Value;

use crate::{RunToolbox, catalogue};

/// Characters of a path in the first line of a question.
const SHOWN: usize = 160;

/// Whether a run with `--approval` asks before each call of such a tool of a skill or of the home: it cannot be undone, and the
/// gate does not ask about its requests.
#[must_use]
pub fn asks_before(effects: ToolEffects) -> bool {
    effects.destructive && !effects.repeatable() && !effects.open_world
}

impl RunToolbox {
    /// The effects of a call that need consent before it is made: fetched pages, so that one question is enough for
    /// several. The gate asks about all other requests. Tools that reach only the run's own workspace need no consent;
    /// those of a skill declare whether their effects can be undone.
    pub(crate) fn review_of(&self, call: &PlannedCall<'_>) -> CallReview {
        let review = CallReview { outward: false, ..CallReview::of(call) };
        if self.parts.own.contains_key(call.name) {
            return CallReview { irreversible: asks_before(call.effects), ..review };
        }
        let page = catalogue::find(call.name).filter(|tool| tool.pages).and_then(|_| self.of_page(call));
        page.unwrap_or(CallReview { irreversible: false, ..review })
    }

    /// A page with a readable URL, from a granted host. For any other the gate gives the reason.
    fn of_page(&self, call: &PlannedCall<'_>) -> Option<CallReview> {
        let arguments = call.arguments;
        let method = arguments.get("method").and_then(Value::as_str).unwrap_or("GET").to_ascii_uppercase();
        let has_body = arguments.get("body").is_some_and(|body| !body.is_null());
        let spelled =
            percent_encoding::percent_decode_str(&arguments.to_string()).decode_utf8_lossy().to_ascii_lowercase();
        if has_body || !network::reads(&method, headers(arguments)) || spelled.contains("credential:") {
            return None;
        }
        let target = Target::parse(arguments.get("url")?.as_str()?).ok()?;
        self.parts.network.policy().decide(&target).ok()?;
        let host = target.authority();
        let shown: String = target.path_and_query().path().chars().take(SHOWN).collect();
        Some(CallReview {
            summary: format!("{method} {}://{host}{shown}", target.scheme().as_str()),
            outward: true,
            irreversible: false,
            low_risk: true,
            class: Some(format!("read from {}://{host}", target.scheme().as_str())),
            grant: Some(RunConsent::Domains(DomainConsent::of(vec![format!("{}:{}", target.host(), target.port())]))),
            covered: self.parts.allowed.iter().any(|pattern| pattern.covers(&target)),
        })
    }

    /// The network access of one call, with the owner's consents for it.
    pub(crate) fn way_out(&self, call: &ToolInvocation<'_>) -> RunNetwork {
        let reads = match call.grant {
            Some(RunConsent::Domains(allowed)) => allowed.patterns(),
            _ => Vec::new(),
        };
        self.parts.network.with_consents(CallConsents {
            leases: call.consents.leases.clone(),
            sent: call.consents.sent.clone(),
            run: call.run.to_string(),
            reads,
            key: None,
        })
    }
}

/// The requests that the gate refused, as questions to the owner: those with values of responses first, and those with
/// only the user's words last.
pub(crate) fn all_needed(mut asked: Vec<AskedRequest>) -> Vec<ConsentNeeded> {
    let rank = |field: &network::Field| match field.origin {
        network::Origin::Response { .. } => 0,
        network::Origin::Model => 1,
        network::Origin::User => 2,
    };
    asked.sort_by_key(|request| request.fields.iter().map(rank).min().unwrap_or(1));
    asked.into_iter().map(needed).collect()
}

/// A request that the gate refused, as a question to the owner.
fn needed(asked: AskedRequest) -> ConsentNeeded {
    let AskedRequest { hash, reason, method, url, credentials, class, allowed, fields, body_bytes, body, .. } = asked;
    let place = url.split(['?', '#']).next().unwrap_or_default();
    let shown = cut(place, SHOWN);
    let keys = if credentials.is_empty() { String::new() } else { format!(" with {}", credentials.join(", ")) };
    let fields = fields.into_iter().map(|field| ShownField {
        name: field.name,
        value: field.value,
        origin: match field.origin {
            network::Origin::User => ValueOrigin::User,
            network::Origin::Response { source } => ValueOrigin::Response { source },
            network::Origin::Model => ValueOrigin::Model,
        },
    });
    ConsentNeeded {
        action: hash,
        summary: format!("{method} {shown}{keys}"),
        reason,
        class: Some(class.to_string()),
        grant: Some(RunConsent::Requests(allowed)),
        request: Some(ShownRequest { fields: fields.collect(), method, url, credentials, body_bytes, body }),
    }
}

/// The headers of a call, as text.
fn headers(arguments: &Value) -> impl Iterator<Item = (&str, &str)> {
    let named = arguments.get("headers").and_then(Value::as_object).into_iter().flatten();
    // The tool refuses a value that is not text; here it must not pass as empty.
    named.map(|(name, value)| (name.as_str(), value.as_str().unwrap_or("\n")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_cannot_be_undone_is_asked_about_unless_the_gate_asks_about_its_requests() {
        let effects = |destructive, idempotent, open_world| ToolEffects {
            destructive,
            idempotent,
            open_world,
            ..ToolEffects::default()
        };
        for (given, asks) in [
            (effects(true, false, false), true),
            (effects(true, false, true), false),
            (effects(true, true, false), false),
            (effects(false, false, false), false),
            (ToolEffects { read_only: true, ..effects(true, false, false) }, false),
        ] {
            assert_eq!(asks_before(given), asks, "{given:?}");
        }
    }
}
