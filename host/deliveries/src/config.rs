//! `[signals]`: who receives the signals of runs (SPEC SIG-2). By default, they are sent nowhere.

use base::CredentialName;
use serde::{Deserialize, Serialize};
use signals::SignalStatus;

/// The section `[signals]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SignalsConfig {
    /// A URL to which every signal is posted. Default none.
    pub webhook: Option<WebhookConfig>,
    /// A program that is run for signals, for example to show a notification. Default none.
    pub hook: Option<HookConfig>,
}

/// The section `[telemetry]` of the configuration: where traces of runs are sent (SPEC OBS-1). By default, nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TelemetryConfig {
    /// The base URL of an OTLP collector, to which `/v1/traces` is added, for example `http://127.0.0.1:4318`. `https`, or
    /// `http` to this machine. Default none.
    pub endpoint: Option<String>,
    /// Seconds that the collector has to answer, from 1 to 300. Default 10.
    pub timeout_seconds: u64,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self { endpoint: None, timeout_seconds: default_timeout() }
    }
}

/// The section `[signals.webhook]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// Target of the posts. `http`, private addresses and `localhost` are reached if named here; a name that resolves
    /// to a private address needs that address in `network.private`.
    pub url: String,
    /// The credential that posts are signed with, by name: in the vault, or the variable `VAULT_<NAME>`.
    pub secret: CredentialName,
    /// Seconds that the endpoint has to answer, from 1 to 300. Default 10.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
    /// Seconds between two attempts, at most; from 1 to 86,400. Default 300.
    #[serde(default = "default_max_backoff")]
    pub max_backoff_seconds: u64,
}

/// The section `[signals.hook]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookConfig {
    /// The program and its arguments. It is run directly and not through a shell.
    pub command: Vec<String>,
    /// Seconds that it may take, from 1 to 300; then it is killed. Default 10.
    #[serde(default = "default_timeout")]
    pub timeout_seconds: u64,
    /// Statuses of a run that the program is run for. Default `awaiting_input`, `awaiting_approval`, `completed`,
    /// `failed`.
    #[serde(default = "default_statuses")]
    pub statuses: Vec<SignalStatus>,
}

fn default_timeout() -> u64 {
    10
}

fn default_max_backoff() -> u64 {
    300
}

fn default_statuses() -> Vec<SignalStatus> {
    vec![SignalStatus::AwaitingInput, SignalStatus::AwaitingApproval, SignalStatus::Completed, SignalStatus::Failed]
}
