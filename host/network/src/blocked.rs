//! Why a request failed at the gate: refused by a rule, tried and failed, or over a limit.

use std::fmt;

use base::excerpt;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The rule that refused a request (SPEC NET-3). Stable names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
#[schemars(rename = "NetworkRule")]
pub enum Rule {
    /// The URL does not parse, or names its host in a way that is not taken.
    InvalidUrl,
    /// The URL carries a user or a password.
    Userinfo,
    /// The scheme is neither `http` nor `https`.
    Scheme,
    /// The method is not for servers of the web, or asks for a tunnel.
    Method,
    /// A header is not allowed or has an invalid value.
    Header,
    /// The run was not granted the domain.
    DomainNotAllowed,
    /// The owner refused the domain for this run.
    DomainRefused,
    /// The port is neither 80 nor 443, and no pattern names it.
    PortNotAllowed,
    /// The address behind the name is not public and not on the owner's list.
    PrivateAddress,
    /// The credential is not set, or the run was not granted it.
    CredentialNotGranted,
    /// The credential may not be sent to this domain.
    CredentialNotForDomain,
    /// The request holds the value of a credential, in clear or encoded, where only its placeholder may stand.
    CredentialInClear,
    /// The request has more placeholders of credentials than any needs.
    TooManyPlaceholders,
    /// An outward write, or a read with a credential, after the run has read from the web (SPEC TAINT-1).
    TaintedWrite,
    /// A read that carries more than it may, after the run has read from the web (SPEC TAINT-1).
    CarriedData,
    /// A request of a run that asks before every request (SPEC APPR-1).
    ConsentNeeded,
    /// An outward write that the run's plan does not list (SPEC LAND-6).
    NotPlanned,
    /// An outward write of a run whose writes are staged: it is held for the owner (SPEC LAND-5).
    Staged,
    /// An outward write of such a run that could not be held.
    NotStaged,
    /// A request to a recorded site, which has no response to it (SPEC HOST-9). Only in tests of authors.
    NotRecorded,
}

impl Rule {
    /// Whether the owner can consent to a request that this rule refused.
    #[must_use]
    pub fn asks_owner(self) -> bool {
        matches!(self, Self::TaintedWrite | Self::CarriedData | Self::ConsentNeeded)
    }

    /// The rule's name in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidUrl => "invalid_url",
            Self::Userinfo => "userinfo",
            Self::Scheme => "scheme",
            Self::Method => "method",
            Self::Header => "header",
            Self::DomainNotAllowed => "domain_not_allowed",
            Self::DomainRefused => "domain_refused",
            Self::PortNotAllowed => "port_not_allowed",
            Self::PrivateAddress => "private_address",
            Self::CredentialNotGranted => "credential_not_granted",
            Self::CredentialNotForDomain => "credential_not_for_domain",
            Self::CredentialInClear => "credential_in_clear",
            Self::TooManyPlaceholders => "too_many_placeholders",
            Self::TaintedWrite => "tainted_write",
            Self::CarriedData => "carried_data",
            Self::ConsentNeeded => "consent_needed",
            Self::NotPlanned => "not_planned",
            Self::Staged => "staged",
            Self::NotStaged => "not_staged",
            Self::NotRecorded => "not_recorded",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A request that a rule refused. Nothing of it left the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{reason}")]
pub struct BlockReason {
    /// The rule that refused it.
    pub rule: Rule,
    /// The target: host and port as the gate understood them; empty if it did not.
    pub asked: String,
    /// The target and the reason for the refusal, in one sentence.
    pub reason: String,
    /// The next step for the owner.
    pub remedy: String,
}

/// Why a request has no response.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GateError {
    /// A rule refused it.
    #[error(transparent)]
    Blocked(#[from] BlockReason),
    /// The name has no address.
    #[error("`{host}` has no address: {message}")]
    Unresolved {
        /// Name of the host.
        host: String,
        /// Why, in the resolver's words.
        message: String,
    },
    /// No server listens there, or the connection broke.
    #[error("cannot connect to `{host}`: {message}")]
    Connect {
        /// Host and port of the target.
        host: String,
        /// The cause of the failure.
        message: String,
    },
    /// TLS failed: no certificate that is trusted for this name.
    #[error("no trusted TLS connection to `{host}`: {message}")]
    Tls {
        /// Host and port of the target.
        host: String,
        /// The cause of the failure.
        message: String,
    },
    /// The server does not speak HTTP as it should, or broke off.
    #[error("`{host}` broke off or does not speak HTTP/1.1: {message}")]
    Protocol {
        /// Host and port of the target.
        host: String,
        /// The cause of the failure.
        message: String,
    },
    /// It took too long.
    #[error("`{host}` took longer than {after_ms} ms")]
    Timeout {
        /// Host and port of the target.
        host: String,
        /// The time it had.
        after_ms: u64,
    },
    /// One of the call's limits: its name and value, as in the runtime's `Limits`.
    #[error("`{limit}` is limited to {value}")]
    Limit {
        /// `outgoing_requests`, `request_bytes`, `response_bytes` or `response_header_bytes`.
        limit: &'static str,
        /// Value of the limit.
        value: u64,
    },
    /// The request's own body ended early: the guest dropped it.
    #[error("the request's body broke off")]
    RequestBody,
}

impl GateError {
    /// The error with every secret in a foreign text replaced, and long texts cut to an excerpt: servers and libraries quote requests.
    pub(crate) fn scrubbed(self, scrubber: &vault::Scrubber) -> Self {
        let clean = |text: String| excerpt(scrubber.text(text));
        match self {
            Self::Blocked(BlockReason { rule, asked, reason, remedy }) => {
                Self::Blocked(BlockReason { rule, asked: clean(asked), reason: clean(reason), remedy: clean(remedy) })
            }
            Self::Unresolved { host, message } => Self::Unresolved { host: clean(host), message: clean(message) },
            Self::Connect { host, message } => Self::Connect { host: clean(host), message: clean(message) },
            Self::Tls { host, message } => Self::Tls { host: clean(host), message: clean(message) },
            Self::Protocol { host, message } => Self::Protocol { host: clean(host), message: clean(message) },
            Self::Timeout { host, after_ms } => Self::Timeout { host: clean(host), after_ms },
            Self::Limit { .. } | Self::RequestBody => self,
        }
    }
}
