//! The state that all runs share: the resolver, the trusted authorities, the owner's settings.

use std::sync::Arc;
use std::time::Duration;

use base::Refusal;
use vault::RunSecrets;

use crate::carried::CarryLimits;
use crate::connect::Connector;
use crate::resolve::{Private, Resolver};
use crate::{NetworkConfig, Policy, RecordedSite, RunExchange, RunNetwork, Stage, Taint};

/// Longer than any request may take: a setting beyond it means "for ever", which a clock cannot hold.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// The gate of a host. Cheap to clone.
#[derive(Clone)]
pub struct Gate(Arc<GateInner>);

struct GateInner {
    private: Private,
    resolver: Resolver,
    connector: Connector,
    /// Has the responses in place of all servers, if there is one.
    recorded: Option<RecordedSite>,
    timeout: Duration,
    connect_timeout: Duration,
    response_header_bytes: usize,
    bounds: CarryLimits,
}

impl Gate {
    /// Makes the gate. Names are not looked up and the system's authorities not read before the first request.
    ///
    /// # Errors
    /// When a setting is wrong: an address, a pattern, a file of authorities that cannot be read.
    pub fn new(config: &NetworkConfig) -> Result<Self, Refusal> {
        Self::make(config, None)
    }

    /// Makes a gate whose responses a recorded site has. It looks up no name and makes no connection, unless the site is being recorded.
    ///
    /// # Errors
    /// As [`Gate::new`].
    pub fn recorded(config: &NetworkConfig, site: RecordedSite) -> Result<Self, Refusal> {
        Self::make(config, Some(site))
    }

    fn make(config: &NetworkConfig, recorded: Option<RecordedSite>) -> Result<Self, Refusal> {
        config.write_shapes()?;
        config.code_patterns()?;
        let time = |ms: u64| Duration::from_millis(ms).min(MAX_TIMEOUT);
        Ok(Self(Arc::new(GateInner {
            private: config.private()?,
            resolver: Resolver::new(config.resolver()?),
            connector: Connector::new(&config.authorities)?,
            recorded,
            timeout: time(config.timeout_ms),
            connect_timeout: time(config.connect_timeout_ms),
            response_header_bytes: config.response_header_bytes,
            bounds: CarryLimits::of(config),
        })))
    }

    /// The way out of one run.
    #[must_use]
    pub fn run(&self, policy: Policy, secrets: Arc<RunSecrets>, taint: Taint) -> RunNetwork {
        self.resume(policy, secrets, taint, RunExchange::default())
    }

    /// The network access of a resumed run, with its exchanges so far.
    #[must_use]
    pub fn resume(&self, policy: Policy, secrets: Arc<RunSecrets>, taint: Taint, exchanged: RunExchange) -> RunNetwork {
        RunNetwork::new(self.clone(), policy, secrets, taint, exchanged, None)
    }

    /// The network access of a run whose writes are held.
    #[must_use]
    pub fn resume_staged(
        &self,
        policy: Policy,
        secrets: Arc<RunSecrets>,
        taint: Taint,
        exchanged: RunExchange,
        stage: Arc<dyn Stage>,
    ) -> RunNetwork {
        RunNetwork::new(self.clone(), policy, secrets, taint, exchanged, Some(stage))
    }

    pub(crate) fn private(&self) -> &Private {
        &self.0.private
    }

    pub(crate) fn resolver(&self) -> &Resolver {
        &self.0.resolver
    }

    pub(crate) fn connector(&self) -> &Connector {
        &self.0.connector
    }

    pub(crate) fn site(&self) -> Option<&RecordedSite> {
        self.0.recorded.as_ref()
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.0.timeout
    }

    pub(crate) fn connect_timeout(&self) -> Duration {
        self.0.connect_timeout
    }

    pub(crate) fn response_header_bytes(&self) -> usize {
        self.0.response_header_bytes
    }

    pub(crate) fn bounds(&self) -> &CarryLimits {
        &self.0.bounds
    }
}
