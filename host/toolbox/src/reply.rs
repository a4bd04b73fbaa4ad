//! The result of a sandboxed call, as the loop's envelope (SPEC RUN-8).

use std::time::Duration;

use base::{ErrorCode, Provenance, RunId};
use motor::{OutgoingRequest, SandboxUsage, ToolReply, ToolResult};
use network::{AskedRequest, BlockReason, RequestTrace, Rule};
use runtime::{CallReport, CallUsage, CodeErrorCode, CodeReport, Limit, Outcome, ToolError};

use crate::consent::all_needed;

/// Characters of a crashed guest's last output that the model is shown.
const LAST_WORDS: usize = 500;

/// The reply if the host could not even begin.
pub(crate) fn host_failed(reason: String) -> ToolReply {
    failed(ErrorCode::Unknown, reason, false, Duration::ZERO, None)
}

/// The reply to a tool call; `run` is `None` outside runs.
pub(crate) fn of_tool(
    mut finished: CallReport<String, ToolError>,
    asked: Vec<AskedRequest>,
    run: Option<&RunId>,
) -> ToolReply {
    let (requests, refused) = (std::mem::take(&mut finished.requests), finished.last_refusal.take());
    with_network(tool_reply(finished), requests, refused, asked, run)
}

/// The reply to a program.
pub(crate) fn of_code(mut report: CodeReport, asked: Vec<AskedRequest>, run: &RunId) -> ToolReply {
    let (requests, refused) = (std::mem::take(&mut report.requests), report.last_refusal.take());
    with_network(code_reply(report), requests, refused, asked, Some(run))
}

/// Adds the call's network requests: content from the network is marked, and a refusal is reported with its reason
/// and the next step, even if the guest did not report it (SPEC NET-3, TOOL-4).
fn with_network(
    mut reply: ToolReply,
    requests: Vec<RequestTrace>,
    refused: Option<BlockReason>,
    asked: Vec<AskedRequest>,
    run: Option<&RunId>,
) -> ToolReply {
    let was_last = requests.last().is_some_and(|request| request.rule.is_some());
    let is_web = requests.iter().any(|request| request.status.is_some());
    let staged: Vec<u32> = requests.iter().filter_map(|request| request.staged).collect();
    reply.requests = requests.into_iter().map(outgoing).collect();
    reply.asks = all_needed(asked);
    let result = &mut reply.result;
    if is_web {
        result.provenance = Provenance::Web;
    }
    if let Some(blocked) = refused {
        let BlockReason { rule, reason, remedy, .. } = blocked;
        let whose = run.map(|run| format!(" (the run is `{run}`)")).unwrap_or_default();
        let text = match rule {
            Rule::Staged => format!("{}{reason}; {remedy}{whose}", earlier(&staged)),
            _ => format!("network_blocked ({rule}): {reason}; {remedy}{whose}"),
        };
        // A call that went on to other requests after a refusal failed for another reason, which is then its error.
        if result.ok || !was_last {
            result.output.push_str(&format!("\n{text}"));
        } else {
            // A guest that says itself that it was denied something repeats the refusal.
            let repeats = result.error_code == Some(ErrorCode::PermissionDenied);
            result.output = if repeats { text } else { format!("{text}\n{}", result.output) };
            let is_staged = rule == Rule::Staged;
            result.error_code = Some(if is_staged { ErrorCode::Staged } else { ErrorCode::NetworkBlocked });
            result.retryable = false;
        }
    }
    reply
}

/// The writes of a call that are held, but for the last, which has its own text.
fn earlier(staged: &[u32]) -> String {
    match staged.split_last() {
        Some((_, earlier)) if !earlier.is_empty() => {
            let numbers: Vec<_> = earlier.iter().map(|number| format!("#{number}")).collect();
            format!("staged {}, none of them sent; ", numbers.join(", "))
        }
        _ => String::new(),
    }
}

fn outgoing(trace: RequestTrace) -> OutgoingRequest {
    let url = if trace.scheme.is_empty() {
        trace.host.clone()
    } else {
        format!("{}://{}{}", trace.scheme, trace.host, trace.path)
    };
    OutgoingRequest {
        method: trace.method,
        url,
        host: trace.host,
        status: trace.status,
        sent_bytes: trace.request_bytes,
        received_bytes: trace.response_bytes,
        duration_ms: trace.duration_ms,
        credentials: trace.credentials,
        error: trace.error,
        rule: trace.rule.map(|rule| rule.as_str().to_owned()),
        hash: trace.hash,
        consented: trace.consented,
        staged: trace.staged,
    }
}

fn sandbox_usage(usage: &CallUsage) -> SandboxUsage {
    SandboxUsage { fuel: usage.fuel, peak_memory_bytes: usage.peak_memory_bytes, host_calls: usage.host_calls }
}

fn failed(
    code: ErrorCode,
    output: String,
    retryable: bool,
    duration: Duration,
    usage: Option<SandboxUsage>,
) -> ToolReply {
    let result = ToolResult {
        ok: false,
        output,
        error_code: Some(code),
        retryable,
        provenance: Provenance::Internal,
        duration_ms: millis(duration),
        cost: None,
        saved: None,
    };
    ToolReply { usage, ..ToolReply::of(result) }
}

fn succeeded(output: String, duration: Duration, usage: SandboxUsage) -> ToolReply {
    let result = ToolResult {
        ok: true,
        output,
        error_code: None,
        retryable: false,
        provenance: Provenance::Internal,
        duration_ms: millis(duration),
        cost: None,
        saved: None,
    };
    ToolReply { usage: Some(usage), ..ToolReply::of(result) }
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn code_reply(report: CodeReport) -> ToolReply {
    let usage = sandbox_usage(&report.usage);
    let duration = report.usage.duration;
    let console = if report.console.is_empty() { String::new() } else { format!("\nconsole:\n{}", report.console) };
    match report.outcome {
        Ok(value) => succeeded(format!("{}{console}", value.json), duration, usage),
        Err(error) => {
            let code = match error.code {
                CodeErrorCode::Timeout => ErrorCode::Timeout,
                CodeErrorCode::Blocked => ErrorCode::PermissionDenied,
                CodeErrorCode::Limit => ErrorCode::LimitExceeded,
                CodeErrorCode::Cancelled => ErrorCode::Cancelled,
                CodeErrorCode::Error => ErrorCode::ExecutionError,
            };
            failed(code, format!("{error}{console}"), false, duration, Some(usage))
        }
    }
}

fn tool_reply(finished: CallReport<String, ToolError>) -> ToolReply {
    let usage = sandbox_usage(&finished.usage);
    let duration = finished.usage.duration;
    let fail = |code, message, retryable| failed(code, message, retryable, duration, Some(usage));
    match finished.outcome {
        Outcome::Returned(output) => succeeded(output, duration, usage),
        Outcome::Refused(ToolError::Denied(message)) => fail(ErrorCode::PermissionDenied, message, false),
        Outcome::Refused(ToolError::Missing(message)) => fail(ErrorCode::NotFound, message, false),
        Outcome::Refused(ToolError::BadInput(message)) => fail(ErrorCode::InvalidArgs, message, false),
        Outcome::Refused(ToolError::Limit(message)) => fail(ErrorCode::LimitExceeded, message, false),
        Outcome::Refused(ToolError::Failed { message, retryable }) => {
            fail(ErrorCode::ExecutionError, message, retryable)
        }
        Outcome::Exceeded(exceeded) if exceeded.limit == Limit::DeadlineMs => {
            fail(ErrorCode::Timeout, format!("the tool took longer than its {} ms", exceeded.value), false)
        }
        Outcome::Exceeded(exceeded) => fail(ErrorCode::LimitExceeded, exceeded.to_string(), false),
        Outcome::Trapped(trap) => {
            let words: String = finished.stdio.chars().take(LAST_WORDS).collect();
            let words = if words.is_empty() { words } else { format!("; it said: {words}") };
            fail(ErrorCode::ExecutionError, format!("the tool crashed: {}{words}", trap.message), false)
        }
        Outcome::Cancelled => fail(ErrorCode::Cancelled, "the call was cancelled".to_owned(), false),
        Outcome::HostFault(message) => {
            // The message may name host paths: it is for the log, not for a model.
            tracing::error!(%message, "a tool call failed in the host");
            fail(ErrorCode::Unknown, "the host could not run the tool".to_owned(), true)
        }
    }
}
