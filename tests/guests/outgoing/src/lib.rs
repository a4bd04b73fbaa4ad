//! A guest over `wasi:http`: tools that use the network as they should, and tools that attack the gate and the host with
//! it. An attack answers with what it reached; `REACHED` in an answer means that a boundary failed.

mod attacks;
mod benign;
mod wire;

use motor_sdk::{Tool, ToolError};

fn tools() -> Vec<Tool> {
    let mut tools = benign::tools();
    tools.extend(attacks::tools());
    tools
}

/// What every tool gives back: text.
type Answer = Result<String, ToolError>;

motor_sdk::export!(tools);
