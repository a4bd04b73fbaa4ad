//! The descriptions of granted tools for the model.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{ContentHash, Refusal, RefusalCode};
use llm::ToolSpec;
use motor::{SandboxUsage, ToolDefinition, ToolEffects};
use runtime::code::MAX_TIMEOUT_IN_RUN;
use runtime::{Access, Limits, ToolDescription};
use serde_json::json;

use crate::catalogue::{self, BundledTool, CODE};
use crate::{CodeGrants, CompileTurn, SandboxPool, SkillTool, ToolsConfig, Toolset};

/// Definitions of the tools in `granted`, in that order.
///
/// # Errors
/// If a tool is missing, or its component cannot be used.
pub async fn define(
    sandboxes: &SandboxPool,
    config: &ToolsConfig,
    limits: &Limits,
    around: CodeGrants,
    granted: &[String],
    own: &BTreeMap<String, SkillTool>,
) -> Result<Vec<ToolDefinition>, Refusal> {
    // No bundled tool has the name of a skill's: `catalogue::is_reserved`. Several tools may share one component.
    let bundled = |name: &str| catalogue::find(name).ok_or_else(|| gone(name));
    let mut needed: Vec<&str> = Vec::new();
    for name in granted.iter().filter(|name| !own.contains_key(*name)) {
        let BundledTool { component, .. } = bundled(name)?;
        if !needed.contains(component) {
            needed.push(component);
        }
    }
    let mut tools = Vec::with_capacity(granted.len());
    for name in granted {
        let timeout = catalogue::timeout(name, config, limits);
        if let Some(SkillTool { tool, toolset }) = own.get(name) {
            tools.push(definition(name, tool, toolset, timeout));
            continue;
        }
        let component = bundled(name)?.component;
        let number = needed.iter().position(|needed| *needed == component).map_or(1, |index| index + 1);
        let turn = CompileTurn { number, of: needed.len() };
        tools.push(if name == CODE {
            let sandbox = sandboxes.code(around.is_connected(), turn).await?;
            code(sandbox.component().hash(), around)
        } else {
            let toolset = sandboxes.tools(component, turn).await?;
            let tool = toolset.tools.iter().find(|tool| tool.name == *name).ok_or_else(|| gone(name))?;
            definition(name, tool, toolset, timeout)
        });
    }
    // A call can spend at most the limits of its sandbox.
    let most =
        SandboxUsage { fuel: limits.fuel, host_calls: limits.host_calls, peak_memory_bytes: limits.memory_bytes };
    tools.iter_mut().for_each(|tool| tool.most = Some(most));
    Ok(tools)
}

pub(crate) fn gone(name: &str) -> Refusal {
    Refusal::new(RefusalCode::UnknownTool, format!("the tool `{name}` is not part of this host"))
}

fn definition(name: &str, tool: &ToolDescription, toolset: &Toolset, timeout: Duration) -> ToolDefinition {
    ToolDefinition {
        spec: ToolSpec {
            name: name.to_owned(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        },
        effects: ToolEffects {
            read_only: tool.effects.read_only,
            destructive: tool.effects.destructive,
            idempotent: tool.effects.idempotent,
            open_world: tool.effects.open_world,
        },
        timeout,
        component: Some(toolset.component.component().hash()),
        most: None,
    }
}

fn code(component: ContentHash, around: CodeGrants) -> ToolDefinition {
    let mut description = String::from(
        "Runs JavaScript (ES2023) in a fresh sandbox and returns the value of the last expression, or of `return`, as \
         JSON. For computing, parsing and transforming. `await` and `console.log` work; there are no modules.",
    );
    description.push_str(match around.files {
        None => " There are no files: put the data into the code.",
        Some(Access::ReadOnly) => {
            " Files of `/workspace` are read with `await workspace.readText(path)`, `readBytes`, `list`, `exists`, `stat`; \
             `await workspace.load(path)` runs a script among them and gives what it returns."
        }
        Some(Access::ReadWrite) => {
            " Files of `/workspace`: `await workspace.readText(path)`, `readBytes`, `writeText(path, text)`, `writeBytes`, \
             `appendText`, `list`, `exists`, `stat`, `remove`, `makeDirectory`; `await workspace.load(path)` runs a script \
             among them and gives what it returns."
        }
    });
    description.push_str(if around.network {
        " `await fetch(url, {method, headers, body})` reaches the domains granted."
    } else {
        " There is no network."
    });
    let writes = around.files == Some(Access::ReadWrite);
    ToolDefinition {
        spec: ToolSpec {
            name: CODE.to_owned(),
            description,
            parameters: json!({
                "type": "object",
                "properties": {
                    "code": { "type": "string", "description": "The program." },
                    "timeout_ms": { "type": "integer", "description": "Milliseconds it may take, 100 to 30000. Default 5000." }
                },
                "required": ["code"],
                "additionalProperties": false
            }),
        },
        // A program without side effects may run again after a crash; otherwise it has the effects of its access.
        effects: ToolEffects {
            read_only: !writes && !around.network,
            destructive: writes || around.network,
            idempotent: !writes && !around.network,
            open_world: around.network,
        },
        timeout: MAX_TIMEOUT_IN_RUN,
        component: Some(component),
        most: None,
    }
}

/// A tool's possible effects on the world, in words for people.
#[must_use]
pub fn effects_in_words(effects: ToolEffects) -> String {
    let mut words = vec![match (effects.read_only, effects.destructive) {
        (true, _) => "changes nothing",
        (false, false) => "adds",
        (false, true) => "changes and overwrites",
    }];
    if effects.open_world {
        words.push("reaches the network");
    }
    words.join(", ")
}
