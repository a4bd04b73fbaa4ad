//! The way out of one run: its policy, which may change while it runs, its credentials, and what it has read.

use std::sync::{Arc, PoisonError, RwLock, Weak};

use vault::RunSecrets;

use crate::{CallLimits, CallNetwork, Gate, Policy, Taint};

/// The way out of one run. Cheap to clone; clones share the policy.
#[derive(Clone)]
pub struct RunNetwork(Arc<Inner>);

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
        self.0.upgrade().map(RunNetwork)
    }
}

impl RunNetwork {
    pub(crate) fn new(gate: Gate, policy: Policy, secrets: Arc<RunSecrets>, taint: Taint) -> Self {
        Self(Arc::new(Inner { gate, policy: RwLock::new(Arc::new(policy)), secrets, taint }))
    }

    /// A handle that does not keep the way open, nor its secrets in memory.
    #[must_use]
    pub fn downgrade(&self) -> WeakRunNetwork {
        WeakRunNetwork(Arc::downgrade(&self.0))
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.0.policy.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Puts another policy in force for every request that is checked from now on.
    pub fn change(&self, policy: Policy) {
        *self.0.policy.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// What the run has read from the web.
    #[must_use]
    pub fn taint(&self) -> &Taint {
        &self.0.taint
    }

    /// Its credentials.
    #[must_use]
    pub fn secrets(&self) -> &Arc<RunSecrets> {
        &self.0.secrets
    }

    pub(crate) fn gate(&self) -> &Gate {
        &self.0.gate
    }

    /// The way out of one guest call.
    #[must_use]
    pub fn call(&self, limits: CallLimits) -> CallNetwork {
        CallNetwork::new(self.clone(), limits)
    }
}
