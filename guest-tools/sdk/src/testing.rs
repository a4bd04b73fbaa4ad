//! Calling tools in an author's unit tests, natively: schema checks, handler and errors as in the host, without its
//! limits. `motor test` runs the built component under those. A [`Sandbox`] has the files, credentials and responses that such a test needs.

#[cfg(not(target_family = "wasm"))]
mod sandbox;

#[cfg(not(target_family = "wasm"))]
pub use sandbox::{Reply, Sandbox};
#[cfg(not(target_family = "wasm"))]
pub(crate) use sandbox::{exists, hmac_sha256, reveal, send, sign, workspace};

use serde_json::Value;

use crate::{Context, Tool, ToolError};

/// The context of a call outside runs, with ten seconds.
#[must_use]
pub fn context() -> Context {
    Context { run_id: String::new(), step: 0, deadline_ms: 10_000, idempotency_key: String::new() }
}

/// Calls the tool `name` of `tools` with JSON arguments.
///
/// # Errors
/// The tool's own error, `bad-input` if the arguments do not match its schema, or `missing` if there is no such tool.
pub fn call(tools: &[Tool], name: &str, arguments: Value) -> Result<String, ToolError> {
    crate::call(tools, name, &arguments.to_string(), &context())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Double {
        number: f64,
    }

    fn double(arguments: Double, _context: &Context) -> Result<String, ToolError> {
        Ok((arguments.number * 2.0).to_string())
    }

    #[test]
    fn the_schema_is_checked_as_in_the_host() {
        let tools = [Tool::new("double", "Doubles a number.", double)];
        assert_eq!(call(&tools, "double", json!({ "number": 2 })).unwrap(), "4");
        let refused = call(&tools, "double", json!({ "nmber": 2 })).unwrap_err();
        assert!(matches!(&refused, ToolError::BadInput(text) if text.contains("`number`")), "{refused:?}");
        assert!(matches!(call(&tools, "dubble", json!({})), Err(ToolError::Missing(_))));
    }
}
