//! A guest over `wasi:http`: tools that use the network as they should, and tools that attack the gate and the host
//! with it. An attack answers with the things it reached; `REACHED` in an answer means that a boundary failed.

mod attacks;
mod benign;
mod wire;

use motor_sdk::{Tool, ToolError};

fn tools() -> Vec<Tool> {
    let mut tools = benign::tools();
    tools.extend(attacks::tools());
    tools
}

/// The result of every tool: text.
type Answer = Result<String, ToolError>;

motor_sdk::export!(tools);
