//! What one run may use.

use std::sync::Arc;

use base::{CredentialName, Secret};

use crate::Scrubber;

/// The credentials of one run, and the scrubber that knows every secret of the home. Wiped when dropped.
#[derive(Debug, Default)]
pub struct RunSecrets {
    granted: Vec<Granted>,
    scrubber: Arc<Scrubber>,
}

/// One credential that a run was granted.
#[derive(Debug)]
pub struct Granted {
    /// Its name.
    pub name: CredentialName,
    /// Its value.
    pub value: Secret<String>,
    /// Patterns of the domains it may be sent to, in the grammar of the network gate. None: nowhere.
    pub domains: Vec<String>,
    /// Whether a component may be given the value itself (SPEC VAULT-5).
    pub raw: bool,
}

impl RunSecrets {
    /// The credentials granted, and the scrubber for everything that flows back.
    #[must_use]
    pub fn new(granted: Vec<Granted>, scrubber: Arc<Scrubber>) -> Self {
        Self { granted, scrubber }
    }

    /// The credential of that name, when the run was granted it.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Granted> {
        self.granted.iter().find(|granted| granted.name.as_str() == name)
    }

    /// Those granted.
    #[must_use]
    pub fn granted(&self) -> &[Granted] {
        &self.granted
    }

    /// Replaces every secret of the home by its placeholder.
    #[must_use]
    pub fn scrubber(&self) -> &Arc<Scrubber> {
        &self.scrubber
    }
}
