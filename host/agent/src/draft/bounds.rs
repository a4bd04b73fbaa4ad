//! The upper bound of a draft: the grants that the user named, and the limits of the host.

use std::time::Duration;

use base::{CredentialName, Refusal};
use grants::{commands, credentials, patterns, shapes};
use motor::MotorConfig;
use network::{Pattern, Shape};
use toolbox::catalogue;

use crate::api::ActRequest;

/// The bounds. An empty list of domains, writes or credentials is no bound.
#[derive(Debug)]
pub(super) struct Bounds {
    /// Exact names of the tools that may be proposed.
    pub(super) tools: Vec<String>,
    pub(super) domains: Vec<Pattern>,
    pub(super) writes: Vec<Shape>,
    pub(super) credentials: Vec<CredentialName>,
    pub(super) commands: Option<Vec<String>>,
    pub(super) max_iterations: u32,
    pub(super) timeout: Duration,
    /// Whether the user named any grant. Then a skill, which brings its own, may not be proposed.
    pub(super) is_bounded: bool,
}

impl Bounds {
    /// The bounds that a request sets.
    ///
    /// # Errors
    /// If one of its grants is invalid.
    pub(super) fn of(request: &ActRequest, config: &MotorConfig) -> Result<Self, Refusal> {
        let tools = if request.tools.is_empty() { catalogue::names() } else { catalogue::resolve(&request.tools)? };
        let most = request.max_iterations.unwrap_or(motor::ITERATION_CEILING);
        let lists = [&request.tools, &request.domains, &request.writes, &request.credentials];
        Ok(Self {
            tools,
            domains: patterns(&request.domains)?,
            writes: shapes(&request.writes)?,
            // The placeholders of the task are granted anyway.
            credentials: credentials("", &request.credentials)?,
            commands: request.commands.as_deref().map(commands).transpose()?,
            max_iterations: config.iterations(Some(most))?,
            timeout: config.timeout(request.timeout_ms.map(Duration::from_millis))?,
            is_bounded: request.commands.is_some() || lists.into_iter().any(|list| !list.is_empty()),
        })
    }
}
