//! The way out of one run: its policy, which may change while it runs, its credentials, and the content it has read.

use std::sync::{Arc, Weak};

use parking_lot::{Mutex, MutexGuard, RwLock};
use vault::RunSecrets;

use crate::carried::CarriedData;
use crate::consent::Consents;
use crate::{AskedRequest, CallConsents, CallLimits, CallNetwork, Gate, GivenValues, Policy, Stage, Taint};

/// The way out of one run. Cheap to clone; clones share the policy.
#[derive(Clone)]
pub struct RunNetwork {
    inner: Arc<RunInner>,
    /// The owner's consents for one call, beyond the policy.
    consents: Option<Arc<Consents>>,
}

struct RunInner {
    gate: Gate,
    policy: RwLock<Arc<Policy>>,
    secrets: Arc<RunSecrets>,
    taint: Taint,
    exchanged: RunExchange,
    /// Holds the run's writes, if they are staged.
    stage: Option<Arc<dyn Stage>>,
}

/// The exchanges of a run with the web so far: the values it was given, and the sums of data that its reads carried. A run
/// that waits for its owner keeps it for as long as the host lives. Cheap to clone; clones share.
#[derive(Debug, Clone, Default)]
pub struct RunExchange {
    given: GivenValues,
    carried: Arc<Mutex<CarriedData>>,
}

/// A way out that may be gone.
#[derive(Clone)]
pub struct WeakRunNetwork(Weak<RunInner>);

impl WeakRunNetwork {
    /// The network access, while it is in use.
    #[must_use]
    pub fn upgrade(&self) -> Option<RunNetwork> {
        self.0.upgrade().map(|inner| RunNetwork { inner, consents: None })
    }
}

impl RunNetwork {
    pub(crate) fn new(
        gate: Gate,
        policy: Policy,
        secrets: Arc<RunSecrets>,
        taint: Taint,
        exchanged: RunExchange,
        stage: Option<Arc<dyn Stage>>,
    ) -> Self {
        let inner = RunInner { gate, policy: RwLock::new(Arc::new(policy)), secrets, taint, exchanged, stage };
        Self { inner: Arc::new(inner), consents: None }
    }

    /// A handle that does not keep the way open, nor its secrets in memory.
    #[must_use]
    pub fn downgrade(&self) -> WeakRunNetwork {
        WeakRunNetwork(Arc::downgrade(&self.inner))
    }

    /// The same network access for one call of a tool, with the owner's consents for it: all requests through the
    /// result, and through clones of it, share the leases. Other requests stay refused.
    #[must_use]
    pub fn with_consents(&self, consents: CallConsents) -> Self {
        Self { inner: Arc::clone(&self.inner), consents: Some(Arc::new(Consents::new(consents))) }
    }

    /// The requests that were refused for want of the owner's consent since [`RunNetwork::with_consents`], in the order they
    /// were made: at most 16, equal ones once. Those of a network access without consents are in [`CallNetwork::asked`] only.
    #[must_use]
    pub fn asked(&self) -> Vec<AskedRequest> {
        self.consents.as_ref().map(|consents| consents.asked()).unwrap_or_default()
    }

    pub(crate) fn consents(&self) -> Arc<Consents> {
        self.consents.clone().unwrap_or_default()
    }

    /// The policy in force.
    #[must_use]
    pub fn policy(&self) -> Arc<Policy> {
        self.inner.policy.read().clone()
    }

    /// Puts another policy in force for every request that is checked from now on.
    pub fn change(&self, policy: Policy) {
        *self.inner.policy.write() = Arc::new(policy);
    }

    /// The sources that the run has read from the web.
    #[must_use]
    pub fn taint(&self) -> &Taint {
        &self.inner.taint
    }

    /// The values that the run was given. The gate adds values of responses; the caller adds the user's words.
    #[must_use]
    pub fn given(&self) -> &GivenValues {
        &self.inner.exchanged.given
    }

    /// Its exchanges so far, for a later continuation.
    #[must_use]
    pub fn exchanged(&self) -> RunExchange {
        self.inner.exchanged.clone()
    }

    /// The data that its reads have carried so far.
    pub(crate) fn carried(&self) -> MutexGuard<'_, CarriedData> {
        self.inner.exchanged.carried.lock()
    }

    /// The credentials of the run.
    #[must_use]
    pub fn secrets(&self) -> &Arc<RunSecrets> {
        &self.inner.secrets
    }

    /// Whether its writes are held instead of being sent.
    #[must_use]
    pub fn is_staged(&self) -> bool {
        self.inner.stage.is_some()
    }

    pub(crate) fn stage(&self) -> Option<&Arc<dyn Stage>> {
        self.inner.stage.as_ref()
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
