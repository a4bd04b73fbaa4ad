//! The way out of one run: its policy, which may change while it runs, its credentials, and what it has read.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use vault::RunSecrets;

use crate::{CallLimits, CallNetwork, Gate, Pattern, Policy, Taint};

/// The way out of one run. Cheap to clone; clones share the policy.
#[derive(Clone)]
pub struct RunNetwork {
    inner: Arc<Inner>,
    /// What the owner consented to for one call, beyond the policy.
    writes: Arc<[Pattern]>,
}

struct Inner {
    gate: Gate,
    policy: RwLock<Arc<Policy>>,
    secrets: Arc<RunSecrets>,
    taint: Taint,
}

/// A way out that may be gone.
#[derive(Clone)]
pub struct WeakRunNetwork(Weak<Inner>);

impl WeakRunNetwork {
    /// The way, while somebody still uses it.
    #[must_use]
    pub fn upgrade(&self) -> Option<RunNetwork> {
        self.0.upgrade().map(|inner| RunNetwork { inner, writes: Arc::default() })
    }
}

impl RunNetwork {
    pub(crate) fn new(gate: Gate, policy: Policy, secrets: Arc<RunSecrets>, taint: Taint) -> Self {
        let inner = Inner { gate, policy: RwLock::new(Arc::new(policy)), secrets, taint };
        Self { inner: Arc::new(inner), writes: Arc::default() }
    }

    /// A handle that does not keep the way open, nor its secrets in memory.
    #[must_use]
    pub fn downgrade(&self) -> WeakRunNetwork {
        WeakRunNetwork(Arc::downgrade(&self.inner))
    }

    /// The same way, with hosts that may be written to whatever the run has read: for one call that the owner consented
    /// to. What is not granted or was refused stays so.
    #[must_use]
    pub fn with_writes(&self, writes: Vec<Pattern>) -> Self {
        Self { inner: Arc::clone(&self.inner), writes: writes.into() }
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        let policy = self.inner.policy.read().unwrap_or_else(PoisonError::into_inner).clone();
        if self.writes.is_empty() {
            return policy;
        }
        let mut wider = Policy::clone(&policy);
        wider.writes.extend_from_slice(&self.writes);
        Arc::new(wider)
    }

    /// Puts another policy in force for every request that is checked from now on.
    pub fn change(&self, policy: Policy) {
        *self.inner.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// What the run has read from the web.
    #[must_use]
    pub fn taint(&self) -> &Taint {
        &self.inner.taint
    }

    /// Its credentials.
    #[must_use]
    pub fn secrets(&self) -> &Arc<RunSecrets> {
        &self.inner.secrets
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.inner.gate
    }

    /// The way out of one guest call.
    #[must_use]
    pub fn call(&self, limits: CallLimits) -> CallNetwork {
        CallNetwork::new(self.clone(), limits)
    }
}
