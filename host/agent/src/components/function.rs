//! A function of a reflector or a neuron as a tool of one argument (SPEC HOST-9).

use std::collections::BTreeMap;

use runtime::{Outcome, ToolError};
use serde_json::Value;

/// The only argument of a function; `form` describes it in an error.
pub(super) fn only_argument(arguments: &str, parameter: &str, form: &str) -> Result<Value, String> {
    let mut arguments: BTreeMap<String, Value> =
        serde_json::from_str(arguments).map_err(|error| format!("the arguments are not a JSON object: {error}"))?;
    match (arguments.remove(parameter), arguments.is_empty()) {
        (Some(argument), true) => Ok(argument),
        _ => Err(format!("the only argument is `{parameter}`: {form}")),
    }
}

/// The outcome of a function as that of a tool: its own error is `failed`.
pub(super) fn settled<T>(outcome: Outcome<T, String>) -> Outcome<T, ToolError> {
    match outcome {
        Outcome::Returned(value) => Outcome::Returned(value),
        Outcome::Refused(message) => Outcome::Refused(failed(message)),
        Outcome::Exceeded(exceeded) => Outcome::Exceeded(exceeded),
        Outcome::Trapped(trap) => Outcome::Trapped(trap),
        Outcome::Cancelled => Outcome::Cancelled,
        Outcome::HostFault(message) => Outcome::HostFault(message),
    }
}

/// An error of the guest, which another call would repeat.
pub(super) fn failed(message: String) -> ToolError {
    ToolError::Failed { message, retryable: false }
}
