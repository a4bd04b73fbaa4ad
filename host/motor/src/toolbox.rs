//! The port through which the loop uses tools.
//!
//! The loop does not know the implementation behind it: a sandboxed component, a test's closure, a remote server. It relies on
//! the [`ToolEffects`] a definition declares, and on nothing that the tool's output says about itself.

use std::time::Duration;

use base::{ContentHash, ErrorCode, Provenance, RunId, Timestamp};
use grants::RunConsent;
use llm::ToolSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::request::{CallLeases, OutgoingRequest, ShownRequest};

/// A tool that a run may be granted.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    /// The definition that the model sees.
    pub spec: ToolSpec,
    /// The effects that a call can have.
    pub effects: ToolEffects,
    /// Wall-clock time one call may take. The toolbox enforces it; the loop ends a call that overstays by a second.
    pub timeout: Duration,
    /// The component behind the tool, for the trace.
    pub component: Option<ContentHash>,
    /// The most that one call can spend in its sandbox (SPEC EN-2); none: it has no sandbox.
    pub most: Option<SandboxUsage>,
}

/// The effects that a call can have (SPEC HOST-2). The default is the worst case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolEffects {
    /// The call changes nothing outside itself.
    pub read_only: bool,
    /// May destroy or overwrite something.
    pub destructive: bool,
    /// Calling it again with the same arguments changes nothing more.
    pub idempotent: bool,
    /// Reaches things outside the workspace.
    pub open_world: bool,
}

impl ToolEffects {
    /// Whether the host may run the same call again without asking.
    #[must_use]
    pub fn repeatable(self) -> bool {
        self.read_only || self.idempotent
    }
}

impl Default for ToolEffects {
    fn default() -> Self {
        Self { read_only: false, destructive: true, idempotent: false, open_world: true }
    }
}

/// The tools of one run.
#[async_trait::async_trait]
pub trait Toolbox: Send + Sync {
    /// The tools that can be called.
    fn tools(&self) -> &[ToolDefinition];

    /// The part of the prompt about domains and credentials. It changes only when they do.
    fn briefing(&self) -> Option<String> {
        None
    }

    /// The domains that a model asks access to, in the form in which they would be granted and are shown.
    ///
    /// # Errors
    /// Why one cannot be granted, for the model.
    fn domains(&self, named: &[String]) -> Result<Vec<String>, String> {
        Ok(named.to_vec())
    }

    /// Reviews a call for the person who has to consent to it. Executes nothing. Unknown effects are the worst case.
    async fn review(&self, call: PlannedCall<'_>) -> CallReview {
        CallReview::of(&call)
    }

    /// The component that this call of a tool runs in, for the trace. Default: that of the tool's definition.
    fn component(&self, tool: &ToolDefinition, _arguments: &Value) -> Option<ContentHash> {
        tool.component
    }

    /// Whether this call of a tool only reads, as far as the host itself knows: calls of one reply that only read are
    /// made side by side. The declaration of a foreign component is not enough.
    fn only_reads(&self, _tool: &str, _arguments: &Value) -> bool {
        false
    }

    /// The value without the secrets that the run knows by now. It is used on events that were stored before it knew them.
    fn clean(&self, value: Value) -> Value {
        value
    }

    /// Calls one tool and waits for its result. A failed call is a result like any other. When the invocation's token
    /// is cancelled the call must end at once; the loop waits 50 ms for a last reply, then drops the future.
    async fn call(&self, call: ToolInvocation<'_>) -> ToolReply;
}

/// A call that is about to be made.
#[derive(Clone, Copy)]
pub struct PlannedCall<'a> {
    /// The run that would make it.
    pub run: &'a RunId,
    /// The name of the tool.
    pub name: &'a str,
    /// The JSON arguments of the call.
    pub arguments: &'a Value,
    /// The effects that calls of the tool can have.
    pub effects: ToolEffects,
}

/// The review of a call, for consent.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReview {
    /// Its effect, in one line for people.
    pub summary: String,
    /// It reaches things outside the workspace.
    pub outward: bool,
    /// Whether its effect cannot be undone.
    pub irreversible: bool,
    /// Asking for several of the kind at once hides nothing: it only reads, from a place that the question names.
    pub low_risk: bool,
    /// The class that a lasting consent would cover; absent if it can cover only this call.
    pub class: Option<String>,
    /// The access that the environment gets for the call after a consent.
    pub grant: Option<RunConsent>,
    /// The owner consented to the class for longer than this run.
    pub covered: bool,
}

impl CallReview {
    /// The review that follows from the declared effects alone.
    #[must_use]
    pub fn of(call: &PlannedCall<'_>) -> Self {
        Self {
            summary: format!("call `{}`", call.name),
            outward: call.effects.open_world && !call.effects.read_only,
            irreversible: call.effects.destructive && !call.effects.repeatable(),
            low_risk: false,
            class: None,
            grant: None,
            covered: false,
        }
    }
}

/// A request that a call was refused for want of the owner's consent. It was not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct ConsentNeeded {
    /// The request, by its hash: one changed byte is another.
    pub action: ContentHash,
    /// The request in one line for people.
    pub summary: String,
    /// Why it needs consent.
    pub reason: String,
    /// The requests that a consent for longer than once covers.
    pub class: Option<String>,
    /// The access that the environment gets for the run after such a consent.
    pub grant: Option<RunConsent>,
    /// The request as the owner is to see it.
    pub request: Option<ShownRequest>,
}

/// One call of a tool. The arguments fit the tool's schema.
#[derive(Clone, Copy)]
pub struct ToolInvocation<'a> {
    /// The run that makes the call.
    pub run: &'a RunId,
    /// The step of the run, from 1.
    pub step: u32,
    /// The model's id of the call.
    pub call_id: &'a str,
    /// The name of the tool.
    pub name: &'a str,
    /// The JSON arguments of the call.
    pub arguments: &'a Value,
    /// The same for every repetition of this call, also after a crash (SPEC DUR-4).
    pub idempotency_key: &'a str,
    /// The access the owner consented to for this call (see [`CallReview::grant`]).
    pub grant: Option<&'a RunConsent>,
    /// The consents to single requests.
    pub consents: &'a CallLeases,
    /// When the call was first made: a call that is made again after a consent is to send the same.
    pub began: Timestamp,
    /// Takes log lines and progress while the call runs.
    pub notes: &'a (dyn Fn(ToolNote) + Send + Sync),
    /// Cancelled when the call has to end.
    pub cancel: &'a CancellationToken,
}

/// A sign of life from a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum ToolNote {
    /// A line for the run's log.
    Log {
        /// `debug`, `info`, `warn` or `error`.
        level: String,
        /// One line, without a line break.
        message: String,
    },
    /// A notice for the run's owner.
    Notice {
        /// One sentence for the owner.
        message: String,
    },
    /// The call's current activity.
    Progress {
        /// One sentence for watchers.
        message: String,
        /// From 0.0 to 1.0, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        fraction: Option<f32>,
    },
}

impl ToolNote {
    /// The notice for the owner, if it is one.
    pub(crate) fn notice(&self) -> Option<String> {
        if let Self::Notice { message } = self { Some(message.clone()) } else { None }
    }
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolReply {
    /// The result that the model sees and the loop decides on.
    pub result: ToolResult,
    /// The sandbox's resource use, if the call had a sandbox.
    pub usage: Option<SandboxUsage>,
    /// Its network requests, in order.
    pub requests: Vec<OutgoingRequest>,
    /// The requests that it was refused for want of the owner's consent.
    pub asks: Vec<ConsentNeeded>,
}

impl ToolReply {
    /// A result of the host's own: nothing was executed.
    #[must_use]
    pub fn of(result: ToolResult) -> Self {
        Self { result, usage: None, requests: Vec::new(), asks: Vec::new() }
    }
}

/// The resources that a sandboxed call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SandboxUsage {
    /// Units of wasmtime fuel.
    pub fuel: u64,
    /// The most linear memory held at once, in bytes.
    pub peak_memory_bytes: u64,
    /// Calls from the guest into the host.
    pub host_calls: u64,
}

impl SandboxUsage {
    /// The sum over two tries of a call.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            fuel: self.fuel.saturating_add(other.fuel),
            peak_memory_bytes: self.peak_memory_bytes.max(other.peak_memory_bytes),
            host_calls: self.host_calls.saturating_add(other.host_calls),
        }
    }
}

/// The envelope of every tool result (SPEC RUN-8).
///
/// JSON: `{ ok, output, errorCode?, retryable, provenance, durationMs, cost? }`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolResult {
    /// Whether the call succeeded.
    pub ok: bool,
    /// The output for the model: text, or JSON as text.
    pub output: String,
    /// The error of a failed call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// Trying the same again may work.
    pub retryable: bool,
    /// Where the output came from.
    pub provenance: Provenance,
    /// The wall-clock duration in milliseconds.
    pub duration_ms: u64,
    /// The cost of the call in US dollars, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Where the whole output is in the workspace, when it was also saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<String>,
}

impl ToolResult {
    /// A success computed by the host or a sandboxed tool.
    #[must_use]
    pub fn success(output: impl Into<String>) -> Self {
        Self {
            ok: true,
            output: output.into(),
            error_code: None,
            retryable: false,
            provenance: Provenance::Internal,
            duration_ms: 0,
            cost: None,
            saved: None,
        }
    }

    /// A failure that trying again would not mend. The message is one sentence for the model.
    #[must_use]
    pub fn failure(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { ok: false, error_code: Some(code), ..Self::success(message) }
    }

    /// Says how long it took.
    #[must_use]
    pub fn took(mut self, duration: Duration) -> Self {
        self.duration_ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        self
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    #[test]
    fn the_envelope_in_json() {
        let failed = ToolResult::failure(ErrorCode::NotFound, "no file `a.csv`").took(Duration::from_millis(3));
        expect![[r#"{"ok":false,"output":"no file `a.csv`","errorCode":"not_found","retryable":false,"provenance":"internal","durationMs":3}"#]]
            .assert_eq(&serde_json::to_string(&failed).unwrap());
        expect![[r#"{"ok":true,"output":"7","retryable":false,"provenance":"internal","durationMs":0}"#]]
            .assert_eq(&serde_json::to_string(&ToolResult::success("7")).unwrap());
    }

    #[test]
    fn a_tool_that_says_nothing_may_not_be_repeated() {
        assert!(!ToolEffects::default().repeatable());
        assert!(ToolEffects { read_only: true, ..ToolEffects::default() }.repeatable());
        assert!(ToolEffects { idempotent: true, ..ToolEffects::default() }.repeatable());
    }
}
