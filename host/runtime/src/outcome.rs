//! What became of a call.

use std::time::Duration;

use base::CredentialName;
use capabilities::{Limit, LimitExceeded};
use network::{Blocked, RequestTrace};
use wasmtime_wasi::I32Exit;

use crate::limits::Limits;

/// How a call ended. `E` is the guest's own error.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome<T, E> {
    /// It returned a value.
    Returned(T),
    /// The guest says it could not do it.
    Refused(E),
    /// It exceeded a limit and was ended.
    Exceeded(LimitExceeded),
    /// It trapped.
    Trapped(Trap),
    /// The caller cancelled it.
    Cancelled,
    /// The host failed; the guest is not to blame.
    HostFault(String),
}

/// A tool's own error (SPEC HOST-2): each case means one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolError {
    /// Policy forbids it.
    Denied(String),
    /// The thing named does not exist.
    Missing(String),
    /// The arguments are wrong.
    BadInput(String),
    /// The tool met a limit of its own.
    Limit(String),
    /// It was tried and failed.
    Failed {
        /// How.
        message: String,
        /// Trying again may work.
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
    /// What it did, in the words of the engine.
    pub message: String,
}

/// What a call used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Units of work.
    pub fuel: u64,
    /// The most linear memory it had, in bytes.
    pub peak_memory_bytes: u64,
    /// Calls into the host.
    pub host_calls: u64,
    /// Wall-clock time, instantiation included.
    pub duration: Duration,
}

/// A call that ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Finished<T, E> {
    /// How.
    pub outcome: Outcome<T, E>,
    /// What it used.
    pub usage: Usage,
    /// What it wrote to standard output and error, bounded.
    pub stdio: String,
    /// What it asked of the network, in the order it asked.
    pub requests: Vec<RequestTrace>,
    /// The last request that a rule refused.
    pub last_refusal: Option<Blocked>,
    /// The credentials whose values stood in what the call gave back, and were replaced there.
    pub withheld: Vec<CredentialName>,
}

impl<T, E> Finished<T, E> {
    /// A call that told nothing but its end.
    pub(crate) fn of(outcome: Outcome<T, E>, usage: Usage) -> Self {
        Self { outcome, usage, stdio: String::new(), requests: Vec::new(), last_refusal: None, withheld: Vec::new() }
    }

    /// A call that never began.
    pub(crate) fn host_fault(message: String) -> Self {
        Self::of(Outcome::HostFault(message), Usage::default())
    }

    /// Changes how it ended.
    pub(crate) fn map<U>(self, change: impl FnOnce(Outcome<T, E>) -> Outcome<U, E>) -> Finished<U, E> {
        Finished {
            outcome: change(self.outcome),
            usage: self.usage,
            stdio: self.stdio,
            requests: self.requests,
            last_refusal: self.last_refusal,
            withheld: self.withheld,
        }
    }
}

/// Says what an error out of the engine means. `limits` and `stack_bytes` are those the call ran under.
pub(crate) fn classify<T, E>(error: &wasmtime::Error, limits: &Limits, stack_bytes: usize) -> Outcome<T, E> {
    if let Some(exceeded) = error.downcast_ref::<LimitExceeded>() {
        return Outcome::Exceeded(*exceeded);
    }
    if let Some(exit) = error.downcast_ref::<I32Exit>() {
        return Outcome::Trapped(Trap { message: format!("the guest exited with status {}", exit.0) });
    }
    let exceeded = |limit, value| Outcome::Exceeded(LimitExceeded { limit, value });
    if let Some(trap) = error.downcast_ref::<wasmtime::Trap>() {
        return match trap {
            wasmtime::Trap::OutOfFuel => exceeded(Limit::Fuel, limits.fuel),
            wasmtime::Trap::StackOverflow => exceeded(Limit::StackBytes, stack_bytes as u64),
            other => Outcome::Trapped(Trap { message: other.to_string() }),
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
    // The engine keeps the types of these errors to itself.
    if text.contains("fuel allocated for hostcalls") {
        return exceeded(Limit::HostcallBytes, limits.hostcall_bytes);
    }
    if text.contains("store handle limit exceeded") {
        return exceeded(Limit::Handles, limits.handles);
    }
    if text.contains("count too high at") {
        return exceeded(Limit::Instances, limits.instances);
    }
    // Everything else comes out of the guest's own bad data (a pointer out of bounds, a string that is not UTF-8):
    // a host fault is returned by the code that meets one, never guessed from an error text.
    Outcome::Trapped(Trap { message: text })
}

fn root_message(error: &wasmtime::Error) -> String {
    error.root_cause().to_string()
}
