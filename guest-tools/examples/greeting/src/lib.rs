//! The smallest tool: it says hello.

use motor_sdk::{ToolError, tool};

/// Says hello to a person.
#[tool(effects = "read")]
fn greet(
    /// Name of the person to greet.
    name: String,
) -> Result<String, ToolError> {
    Ok(format!("hello, {name}"))
}

motor_sdk::export!([greet]);
