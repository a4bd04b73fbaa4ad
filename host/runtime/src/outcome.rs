//! The result of a call: outcome, resource usage and traces.

use std::time::Duration;

use base::CredentialName;
use capabilities::{Limit, LimitExceeded};
use network::{BlockReason, RequestTrace};
use wasmtime_wasi::I32Exit;

use crate::limits::Limits;

/// How a call ended. `E` is the guest's own error.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T, E> {
    /// The guest returned a value.
    Returned(T),
    /// The guest reports that it could not do it.
    Refused(E),
    /// The guest exceeded a limit and was ended.
    Exceeded(LimitExceeded),
    /// The guest trapped or exited.
    Trapped(Trap),
    /// The caller cancelled the call.
    Cancelled,
    /// The host failed; the guest is not to blame.
    HostFault(String),
}

/// A tool's own error (SPEC HOST-2): each case means one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// A policy forbids the call.
    Denied(String),
    /// The thing named does not exist.
    Missing(String),
    /// The arguments are wrong or incomplete.
    BadInput(String),
    /// The tool met a limit of its own.
    Limit(String),
    /// The attempt was made and failed.
    Failed {
        /// The error in one sentence.
        message: String,
        /// Whether another attempt may succeed.
        retryable: bool,
    },
}

impl<T, E> Outcome<T, E> {
    /// Changes the value of a call that returned.
    pub fn map<U>(self, change: impl FnOnce(T) -> U) -> Outcome<U, E> {
        match self {
            Self::Returned(value) => Outcome::Returned(change(value)),
            Self::Refused(error) => Outcome::Refused(error),
            Self::Exceeded(limit) => Outcome::Exceeded(limit),
            Self::Trapped(trap) => Outcome::Trapped(trap),
            Self::Cancelled => Outcome::Cancelled,
            Self::HostFault(message) => Outcome::HostFault(message),
        }
    }
}

/// A trap: the guest did something that WebAssembly forbids, or ended itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trap {
    /// The cause, in the engine's words.
    pub message: String,
    /// Whether an instruction of the guest ended it, as a panic does, and not its use of the host.
    pub is_panic: bool,
}

/// Resources that a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallUsage {
    /// Units of work (see [`Limits::fuel`]).
    pub fuel: u64,
    /// Peak linear memory, in bytes.
    pub peak_memory_bytes: u64,
    /// Number of calls into the host.
    pub host_calls: u64,
    /// Wall-clock time, instantiation included.
    pub duration: Duration,
}

/// A call that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct CallReport<T, E> {
    /// The way it ended, with the value or error.
    pub outcome: Outcome<T, E>,
    /// Fuel, memory, host calls and time used.
    pub usage: CallUsage,
    /// The exit status of a command that ended by itself; `None` for any other call, and if the host ended it.
    pub exit_status: Option<i32>,
    /// Standard output and error, bounded.
    pub stdio: String,
    /// Network requests of the call, in order.
    pub requests: Vec<RequestTrace>,
    /// The last request that a rule refused.
    pub last_refusal: Option<BlockReason>,
    /// The credentials whose values were replaced in the call's output.
    pub withheld: Vec<CredentialName>,
}

impl<T, E> CallReport<T, E> {
    /// A call without output and requests.
    pub(crate) fn of(outcome: Outcome<T, E>, usage: CallUsage) -> Self {
        Self {
            outcome,
            usage,
            exit_status: None,
            stdio: String::new(),
            requests: Vec::new(),
            last_refusal: None,
            withheld: Vec::new(),
        }
    }

    /// A call that failed before it began.
    pub(crate) fn host_fault(message: String) -> Self {
        Self::of(Outcome::HostFault(message), CallUsage::default())
    }

    /// Converts the outcome and keeps everything else.
    pub(crate) fn map<U>(self, change: impl FnOnce(Outcome<T, E>) -> Outcome<U, E>) -> CallReport<U, E> {
        CallReport {
            outcome: change(self.outcome),
            usage: self.usage,
            exit_status: self.exit_status,
            stdio: self.stdio,
            requests: self.requests,
            last_refusal: self.last_refusal,
            withheld: self.withheld,
        }
    }
}

/// Classifies an error of the engine. `limits` and `stack_bytes` are those the call ran under.
pub(crate) fn classify<T, E>(error: &wasmtime::Error, limits: &Limits, stack_bytes: usize) -> Outcome<T, E> {
    if let Some(exceeded) = error.downcast_ref::<LimitExceeded>() {
        return Outcome::Exceeded(*exceeded);
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Outcome::Trapped(Trap { message: format!("the guest exited with status {}", exit.0), is_panic: false });
    }
    let exceeded = |limit, value| Outcome::Exceeded(LimitExceeded { limit, value });
    if let Some(trap) = error.downcast_ref::<wasmtime::Trap>() {
        return match trap {
            wasmtime::Trap::OutOfFuel => exceeded(Limit::Fuel, limits.fuel),
            wasmtime::Trap::StackOverflow => exceeded(Limit::StackBytes, stack_bytes as u64),
            other => Outcome::Trapped(Trap { message: other.to_string(), is_panic: true }),
        };
    }
    if error.is::<wasmtime::PoolConcurrencyLimitError>() {
        return Outcome::HostFault("all sandboxes are in use; try later".to_owned());
    }
    if error.is::<wasmtime::component::ResourceTableError>() {
        return exceeded(Limit::Handles, limits.handles);
    }
    if capabilities::http::exceeds_header_bytes(error) {
        return exceeded(Limit::HttpHeaderBytes, limits.http_header_bytes);
    }
    let text = root_message(error);
    // The engine keeps the types of these errors private.
    if text.contains("fuel allocated for hostcalls") {
        return exceeded(Limit::HostcallBytes, limits.hostcall_bytes);
    }
    if text.contains("store handle limit exceeded") {
        return exceeded(Limit::Handles, limits.handles);
    }
    if text.contains("count too high at") {
        return exceeded(Limit::Instances, limits.instances);
    }
    // Every other error stems from the guest's own bad data (a pointer out of bounds, a string that is not UTF-8): a
    // host fault is returned by the code that meets one, never guessed from an error text.
    Outcome::Trapped(Trap { message: text, is_panic: false })
}

fn root_message(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}
