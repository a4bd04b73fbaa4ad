//! Traces of runs to the owner's collector, by OTLP over HTTP in its JSON encoding (SPEC OBS-1).
//!
//! The signal of a run's end is the cue, so the durable position of signals is that of traces: a host that dies repeats
//! the trace that had no answer, which has the same ids. The form of a trace is not known here. It survives a collector
//! that is away: an attempt is repeated for a bounded time, then this trace is given up, and nothing else waits for it.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use base::{Refusal, RefusalCode, RunId};
use network::{Gate, Webhook};
use serde_json::Value;
use signals::Signal;
use vault::Vault;

use crate::line::{Consumer, RetrySchedule};
use crate::scrubbed::scrubbed;
use crate::{DeliverParts, TelemetryConfig};

/// The name of the position.
const NAME: &str = "telemetry";
/// The path of traces below an endpoint (OTLP 1.x, "OTLP/HTTP Request").
const PATH: &str = "/v1/traces";
/// The schedule of further attempts: about an hour, while other traces wait.
const RETRIES: RetrySchedule =
    RetrySchedule { first: Duration::from_secs(1), longest: Duration::from_secs(60), most: Some(80) };
/// Statuses after which a request is sent again (OTLP 1.x, "Retryable Response Codes"). Any other is final.
const RETRYABLE: [u16; 4] = [429, 502, 503, 504];

/// Makes the exported form of a run's trace.
#[async_trait::async_trait]
pub trait TraceSource: Send + Sync {
    /// The body of an OTLP request about a run that is over; `None` if the run was deleted.
    ///
    /// # Errors
    /// If it cannot be read now.
    async fn export(&self, run: &RunId) -> Result<Option<Value>, Refusal>;
}

/// Posts traces to a collector.
pub(crate) struct PostTraces {
    collector: Webhook,
    traces: Arc<dyn TraceSource>,
    vault: Vault,
}

impl PostTraces {
    /// `None` if no collector is configured.
    pub fn new(parts: &DeliverParts) -> Result<Option<Self>, Refusal> {
        let collector = collector(&parts.telemetry, &parts.gate)?;
        Ok(collector.map(|collector| Self { collector, traces: parts.traces.clone(), vault: parts.vault.clone() }))
    }
}

/// The collector of the settings; `None` if none is set.
pub(crate) fn collector(config: &TelemetryConfig, gate: &Gate) -> Result<Option<Webhook>, Refusal> {
    let Some(endpoint) = &config.endpoint else { return Ok(None) };
    let wrong = |reason: &str, remedy: String| {
        let reason = format!("the setting `telemetry.endpoint` is wrong: {reason}");
        Refusal::new(RefusalCode::InvalidRequest, reason).with_remedy(remedy)
    };
    let timeout = Duration::from_secs(config.timeout_seconds.clamp(1, 300));
    let url = format!("{}{PATH}", endpoint.trim_end_matches('/'));
    let collector = Webhook::new(gate, &url, timeout).map_err(|blocked| wrong(&blocked.reason, blocked.remedy))?;
    if !collector.is_local_or_encrypted() {
        let reason = "traces would cross the network in plain text";
        return Err(wrong(reason, "use `https`, or a collector on this machine".to_owned()));
    }
    Ok(Some(collector))
}

#[async_trait::async_trait]
impl Consumer for PostTraces {
    fn name(&self) -> &'static str {
        NAME
    }

    fn retries(&self) -> RetrySchedule {
        RETRIES
    }

    fn wants(&self, signal: &Signal, _: bool) -> bool {
        !signal.body.status.is_waiting()
    }

    async fn deliver(&self, signal: &Signal) -> Result<(), String> {
        let Some(trace) = self.traces.export(&signal.body.run_id).await.map_err(|refusal| refusal.to_string())? else {
            return Ok(());
        };
        let body = scrubbed(&self.vault, &trace).await?;
        let headers = [
            ("content-type", "application/json".to_owned()),
            ("user-agent", concat!("motor/", env!("CARGO_PKG_VERSION")).to_owned()),
        ];
        let status = self.collector.post(&headers, body).await.map_err(|error| error.to_string())?;
        if status.is_success() {
            return Ok(());
        }
        let reason = format!("{} answers {}", self.collector.place(), status.as_u16());
        if RETRYABLE.contains(&status.as_u16()) {
            return Err(reason);
        }
        tracing::warn!(run = %signal.body.run_id, reason, "a trace was rejected and is given up");
        Ok(())
    }
}
