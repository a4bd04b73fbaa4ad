//! The powers of a run: one type, from the words of a caller to the record of the run.
//!
//! A [`Grant`] is resolved once, when a run is planned. It is stored with the run and read by everything that enforces
//! or explains it. This crate grants nothing itself: it parses, combines and stores.

mod agreement;
mod consent;
mod directory;
mod parse;
mod skill;

pub use agreement::{Agreement, Drafting};
pub use consent::{DomainConsent, RunConsent};
pub use directory::{DirectoryGrant, MAX_DIRECTORIES, directories};
pub use parse::{commands, credentials, patterns, shapes};
pub use skill::{Admission, SkillGrant};

use std::path::PathBuf;

use base::{CredentialName, Refusal, RefusalCode};
use network::{Pattern, Shape};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

/// The powers of one run. Stored with the run: a field may be added, never renamed.
///
/// The names of its tools are in the run's record. The default grants nothing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// `provider/model` instead of the configured one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The file that records the model's turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<PathBuf>,
    /// Whether the code tool's static guard is on. Default: as configured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<bool>,
    /// Seeds the random numbers and sets the clock of its programs and tools (SPEC SIM-1). Default: the system's.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub seed: Option<u32>,
    /// The hosts it may reach.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<Pattern>,
    /// The requests it may send after reading web content.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub writes: Vec<Shape>,
    /// The credentials it may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<CredentialName>,
    /// The commands that its shell is narrowed to. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<String>>,
    /// The directories of the owner that it works on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub directories: Vec<DirectoryGrant>,
    /// Whether its writes to the network are held until the owner sends them (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub staged: bool,
    /// The skill it works by, or reviews.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skill: Option<SkillGrant>,
    /// The tools of the home that it was granted by name, each bound to its bytes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<SkillGrant>,
    /// The plan that the owner agreed to, if the run is held to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agreement: Option<Agreement>,
    /// Why the stored grant cannot be read. Such a grant is empty, and the run is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unreadable: Option<String>,
}

impl Grant {
    /// Adds hosts and requests. A host with granted requests is also reachable.
    pub fn extend(&mut self, domains: Vec<Pattern>, writes: Vec<Shape>) {
        extend(&mut self.domains, domains);
        extend(&mut self.domains, writes.iter().map(|shape| shape.host().clone()));
        extend(&mut self.writes, writes);
    }

    /// The skill whose own credentials the run gets: a skill's credentials belong to its approved version, not to any
    /// skill with the same name.
    #[must_use]
    pub fn credentials_of(&self) -> Option<&str> {
        let approved = self.skill.as_ref().filter(|skill| skill.admission == Admission::Approved);
        approved.map(|skill| skill.name.as_str())
    }

    /// Whether the run reviews its skill instead of working by it.
    #[must_use]
    pub fn is_review(&self) -> bool {
        self.skill.as_ref().is_some_and(|skill| skill.admission == Admission::Review)
    }

    /// Reads a stored grant. One that cannot be read is empty and fails [`Grant::check`], so that the rest of its run
    /// stays readable. `null` is an empty grant.
    ///
    /// # Errors
    /// If the format's own reader fails.
    pub fn stored<'de, D: Deserializer<'de>, T: From<Self>>(deserializer: D) -> Result<T, D::Error> {
        let unreadable = |error: serde_json::Error| Self { unreadable: Some(error.to_string()), ..Self::default() };
        let value = Option::<Value>::deserialize(deserializer)?;
        let grant = value.map(|value| serde_json::from_value(value).unwrap_or_else(unreadable));
        Ok(grant.unwrap_or_default().into())
    }

    /// Checks that the stored grant could be read.
    ///
    /// # Errors
    /// `state_unusable` if it could not; the reason says why.
    pub fn check(&self) -> Result<(), Refusal> {
        match &self.unreadable {
            None => Ok(()),
            Some(error) => {
                Err(Refusal::new(RefusalCode::StateUnusable, format!("the run's grant cannot be read: {error}")))
            }
        }
    }
}

/// Adds the missing elements.
pub fn extend<T: PartialEq>(all: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for one in more {
        if !all.contains(&one) {
            all.push(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Record {
        #[serde(deserialize_with = "Grant::stored")]
        settings: Grant,
    }

    fn stored(settings: Value) -> Grant {
        serde_json::from_value::<Record>(json!({ "settings": settings })).unwrap().settings
    }

    #[test]
    fn a_grant_is_read_as_it_was_stored() {
        let grant = Grant {
            domains: vec!["a.example.com".parse().unwrap()],
            writes: vec!["POST a.example.com/x".parse().unwrap()],
            commands: Some(vec!["grep".to_owned()]),
            ..Grant::default()
        };
        let value = serde_json::to_value(&grant).unwrap();
        let expected =
            json!({ "domains": ["a.example.com"], "writes": ["POST a.example.com/x"], "commands": ["grep"] });
        assert_eq!(value, expected);
        assert_eq!(stored(value), grant);
        // Homes of earlier versions: no settings, and fields that no longer exist.
        assert_eq!(stored(Value::Null), Grant::default());
        assert_eq!(stored(json!({ "gone": 1 })), Grant::default());
    }

    #[test]
    fn an_unreadable_grant_is_empty_and_refused_also_after_it_is_stored_again() {
        for settings in [json!({ "domains": ["*.com"] }), json!({ "writes": "x" }), json!([1]), json!("x")] {
            let grant = stored(settings.clone());
            assert!(grant.domains.is_empty() && grant.writes.is_empty(), "{settings}");
            assert_eq!(grant.check().unwrap_err().code, RefusalCode::StateUnusable, "{settings}");
            let again = stored(serde_json::to_value(&grant).unwrap());
            assert!(again.check().is_err(), "{settings}");
        }
        assert!(stored(json!({ "domains": ["a.example.com"] })).check().is_ok());
    }

    #[test]
    fn a_host_with_granted_requests_is_reachable() {
        let mut grant = Grant::default();
        let domains: Vec<Pattern> = patterns(&["a.example.com".to_owned()]).unwrap();
        let writes = shapes(&["POST b.example.com/x".to_owned(), "a.example.com".to_owned()]).unwrap();
        grant.extend(domains, writes);
        let hosts: Vec<_> = grant.domains.iter().map(Pattern::to_string).collect();
        assert_eq!((hosts, grant.writes.len()), (vec!["a.example.com".to_owned(), "b.example.com".to_owned()], 2));
    }
}
