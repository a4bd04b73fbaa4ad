//! The credentials that one run may use until they are revoked.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use base::{ContentHash, CredentialName, Secret};

use crate::environment::is_same;
use crate::{FalseStarts, KnownSecret, ScrubStream, Scrubber};

/// The credentials of one run, and the scrubber that knows every secret of the home. Wiped when dropped.
#[derive(Debug, Default)]
pub struct RunSecrets {
    granted: Vec<GrantedCredential>,
    /// Whether each of them was revoked since.
    revoked: Vec<AtomicBool>,
    /// Whether a component has computed with one of them, or seen it.
    computed: AtomicBool,
    scrubber: Arc<Scrubber>,
    false_starts: Arc<FalseStarts>,
}

/// One credential that a run was granted.
#[derive(Debug)]
pub struct GrantedCredential {
    /// Name under which the run was granted it.
    pub name: CredentialName,
    /// The secret value in clear.
    pub value: Secret<String>,
    /// Domain patterns it may be sent to, in the grammar of the network gate. Empty: nowhere.
    pub domains: Vec<String>,
    /// Whether a component may be given the value itself (SPEC VAULT-5).
    pub raw: bool,
}

impl RunSecrets {
    /// Combines granted credentials with the scrubber for incoming data.
    #[must_use]
    pub fn new(granted: Vec<GrantedCredential>, scrubber: Arc<Scrubber>) -> Self {
        let revoked = granted.iter().map(|_| AtomicBool::new(false)).collect();
        Self { granted, revoked, computed: AtomicBool::new(false), scrubber, false_starts: Arc::default() }
    }

    /// The credential of that name, if it was granted to the run and not revoked since.
    ///
    /// A name that was not granted matches one that denotes the same variable: a variable of the environment is granted
    /// under the requested name, and listed under its own spelling.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&GrantedCredential> {
        let (granted, revoked) = self.find(name)?;
        (!revoked.load(Ordering::SeqCst)).then_some(granted)
    }

    /// The granted, unrevoked credentials with a given value, by its hash ([`KnownSecret::hash_of`]).
    pub fn with_value(&self, value: ContentHash) -> impl Iterator<Item = &GrantedCredential> {
        let usable = self.granted.iter().zip(&self.revoked).filter(|(_, revoked)| !revoked.load(Ordering::SeqCst));
        usable.map(|(granted, _)| granted).filter(move |granted| KnownSecret::hash_of(&granted.value) == value)
    }

    /// Records that a component computed with a credential. The result is as sensitive as the credential, and may be in
    /// any later request of the run.
    pub fn note_computed(&self) {
        self.computed.store(true, Ordering::SeqCst);
    }

    /// Whether a component of the run has computed with a credential.
    #[must_use]
    pub fn was_computed_with(&self) -> bool {
        self.computed.load(Ordering::SeqCst)
    }

    /// Revokes a credential: the run can no longer use it. It stays known to the scrubber.
    pub fn revoke(&self, name: &CredentialName) {
        if let Some((_, revoked)) = self.find(name.as_str()) {
            revoked.store(true, Ordering::SeqCst);
        }
    }

    /// Whether a credential was granted to the run and revoked since.
    #[must_use]
    pub fn is_revoked(&self, name: &CredentialName) -> bool {
        self.find(name.as_str()).is_some_and(|(_, revoked)| revoked.load(Ordering::SeqCst))
    }

    /// Prefers the exact name over an equivalent one, so that a vault may have both.
    fn find(&self, name: &str) -> Option<(&GrantedCredential, &AtomicBool)> {
        let all = || self.granted.iter().zip(&self.revoked);
        let exact = all().find(|(granted, _)| granted.name.as_str() == name);
        exact.or_else(|| all().find(|(granted, _)| is_same(granted.name.as_str(), name)))
    }

    /// All granted credentials, including revoked ones.
    #[must_use]
    pub fn granted(&self) -> &[GrantedCredential] {
        &self.granted
    }

    /// The scrubber, which replaces every secret of the home by its placeholder.
    #[must_use]
    pub fn scrubber(&self) -> &Arc<Scrubber> {
        &self.scrubber
    }

    /// A scrubber for a stream that the run reads. Its false starts count with those of all streams of the run.
    #[must_use]
    pub fn stream(&self) -> ScrubStream {
        ScrubStream::new(self.scrubber.clone(), self.false_starts.clone())
    }

    /// How often streams of the run were held back for the beginning of a secret that did not become one.
    #[must_use]
    pub fn false_starts(&self) -> &FalseStarts {
        &self.false_starts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> CredentialName {
        CredentialName::parse(text).unwrap()
    }

    #[test]
    fn a_revoked_credential_is_gone_and_no_other_takes_its_place() {
        let granted = ["token", "TOKEN", "other"].map(|text| GrantedCredential {
            name: name(text),
            value: Secret::new(text.to_owned()),
            domains: Vec::new(),
            raw: false,
        });
        let secrets = RunSecrets::new(granted.into(), Arc::default());
        let value = |text: &str| secrets.get(text).map(|granted| granted.value.expose().as_str());
        assert_eq!((value("token"), value("TOKEN"), value("other")), (Some("token"), Some("TOKEN"), Some("other")));
        secrets.revoke(&name("token"));
        secrets.revoke(&name("never-granted"));
        assert_eq!((value("token"), value("TOKEN"), value("other")), (None, Some("TOKEN"), Some("other")));
        assert!(secrets.is_revoked(&name("token")) && !secrets.is_revoked(&name("TOKEN")));
        assert!(!secrets.is_revoked(&name("never-granted")));
        // By an equivalent spelling of the variable.
        secrets.revoke(&name("Other"));
        assert_eq!((value("other"), value("OTHER")), (None, None));
    }
}
