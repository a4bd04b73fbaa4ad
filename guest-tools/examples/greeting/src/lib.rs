//! The smallest tool: it says hello.

use motor_sdk::{Context, Tool, ToolError};

motor_sdk::arguments! {
    struct Greet {
        /// Who is to be greeted.
        name: String,
    }
}

fn greet(arguments: Greet, _context: &Context) -> Result<String, ToolError> {
    Ok(format!("hello, {}", arguments.name))
}

fn tools() -> Vec<Tool> {
    vec![Tool::new("greet", "Says hello to somebody.", greet).read_only()]
}

motor_sdk::export!(tools);
