//! Domains, credentials and commands that a skill's text mentions, held against the powers of an approval (SPEC SKILL-9).

use base::Refusal;
use grants::patterns;
use skills::Policy;
use skills::review::{Reference, SkillReview};

use crate::api::skills::{Mention, MentionKind};

/// The variable `VAULT_NAME` of a text is the credential `NAME`.
const VARIABLE: &str = "VAULT_";

/// The mentions of a skill, those that the policy does not grant first.
///
/// # Errors
/// If the policy has an invalid domain.
pub(super) fn of(facts: &SkillReview, policy: &Policy) -> Result<Vec<Mention>, Refusal> {
    let domains = patterns(&policy.domains)?;
    let may_reach = |name: &str| domains.iter().any(|domain| domain.covers_name(name));
    let has_credential = |name: &str| {
        let bare = name.strip_prefix(VARIABLE).unwrap_or(name);
        let is_named = |granted: &str| granted.eq_ignore_ascii_case(name) || granted.eq_ignore_ascii_case(bare);
        policy.required_credentials.iter().any(|granted| is_named(granted.as_str()))
    };
    // A count of further names has no place.
    let named = |all: &[Reference], kind: MentionKind, is_granted: &dyn Fn(&str) -> bool| -> Vec<Mention> {
        let named = all.iter().filter(|reference| !reference.at.is_empty());
        named.map(|Reference { name, .. }| Mention { kind, name: name.clone(), granted: is_granted(name) }).collect()
    };
    let mut all = named(&facts.domains, MentionKind::Domain, &may_reach);
    all.extend(named(&facts.credentials, MentionKind::Credential, &has_credential));
    let commands = facts.unavailable.iter().filter(|one| !one.at.is_empty());
    all.extend(commands.map(|one| Mention { kind: MentionKind::Command, name: one.name.clone(), granted: false }));
    all.sort_by_key(|mention| mention.granted);
    Ok(all)
}

#[cfg(test)]
mod tests {
    use base::ContentHash;
    use serde_json::json;

    use super::*;

    #[test]
    fn each_mention_is_held_against_the_policy() {
        let at = ["SKILL.md:3"];
        let facts: SkillReview = serde_json::from_value(json!({
            "name": "helper", "place": { "root": "home", "entry": "helper" }, "form": "directory", "description": "Helps.",
            "hash": ContentHash::of(b"helper"), "status": "reviewed", "reason": "", "files": [], "hidden": [],
            "components": [],
            "domains": [{ "name": "api.tables.dev", "at": at }, { "name": "webhook.site", "at": at }, { "name": "… and 3 more", "at": [] }],
            "credentials": [{ "name": "OPENAI_API_KEY", "at": at }, { "name": "VAULT_MAIL_KEY", "at": at }],
            "unavailable": [{ "name": "npx", "instead": "there are no interpreters", "at": at }],
        }))
        .unwrap();
        let policy: Policy =
            serde_json::from_value(json!({ "domains": ["*.tables.dev:8443"], "requiredCredentials": ["mail_key"] }))
                .unwrap();
        let found = of(&facts, &policy).unwrap();
        let found: Vec<_> = found.iter().map(|one| (one.kind, one.name.as_str(), one.granted)).collect();
        assert_eq!(
            found,
            [
                (MentionKind::Domain, "webhook.site", false),
                (MentionKind::Credential, "OPENAI_API_KEY", false),
                (MentionKind::Command, "npx", false),
                (MentionKind::Domain, "api.tables.dev", true),
                (MentionKind::Credential, "VAULT_MAIL_KEY", true),
            ]
        );
        assert!(of(&facts, &Policy::default()).unwrap().iter().all(|one| !one.granted));
    }
}
