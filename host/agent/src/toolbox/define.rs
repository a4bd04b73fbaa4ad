//! The descriptions of granted tools for the model.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{ContentHash, Refusal, RefusalCode};
use llm::ToolSpec;
use motor::{SandboxUsage, ToolDefinition, ToolEffects};
use runtime::code::MAX_TIMEOUT_IN_RUN;
use runtime::{Access, Limits, ToolDescription};
use serde_json::json;

use super::code::CodeGrants;
use crate::catalogue::{BASH, CODE, FETCH, FILE_TOOLS, FILESYSTEM};
use crate::config::ToolsConfig;
use crate::sandboxes::{Bundle, CompileTurn, Sandboxes, Toolset};
use crate::skill::OwnTool;

/// Time limit of a file tool (SPEC TOOL-3).
const FILE_TOOL_TIMEOUT: Duration = Duration::from_secs(10);

/// Definitions of the tools in `granted`, in that order.
///
/// # Errors
/// If a tool is missing, or its component cannot be used.
pub(crate) async fn all(
    sandboxes: &Sandboxes,
    config: &ToolsConfig,
    limits: &Limits,
    around: CodeGrants,
    granted: &[String],
    own: &BTreeMap<String, OwnTool>,
) -> Result<Vec<ToolDefinition>, Refusal> {
    // Several tools may share one component.
    let mut needed: Vec<&str> = Vec::new();
    for component in granted.iter().filter(|name| !own.contains_key(*name)).map(|name| component(name)) {
        if !needed.contains(&component) {
            needed.push(component);
        }
    }
    let mut tools = Vec::with_capacity(granted.len());
    for name in granted {
        let number = needed.iter().position(|needed| *needed == component(name)).map_or(1, |index| index + 1);
        let turn = CompileTurn { number, of: needed.len() };
        tools.push(match name.as_str() {
            // No bundled tool has the name of one of these: `catalogue::is_reserved`.
            name if own.contains_key(name) => {
                own.get(name).map(|own| of_skill(name, own, limits)).ok_or_else(|| gone(name))?
            }
            CODE => {
                let sandbox = if around.is_nothing() {
                    sandboxes.isolated(turn).await?
                } else {
                    sandboxes.connected(turn).await?
                };
                code(sandbox.component().hash(), around)
            }
            FETCH => definition_of(sandboxes.tools(Bundle::Fetch, turn).await?, name, config)?,
            BASH => definition_of(sandboxes.tools(Bundle::Bash, turn).await?, name, config)?,
            _ if FILE_TOOLS.contains(&name.as_str()) => {
                definition_of(sandboxes.tools(Bundle::Files, turn).await?, name, config)?
            }
            _ => return Err(gone(name)),
        });
    }
    // A call can spend at most the limits of its sandbox.
    let most =
        SandboxUsage { fuel: limits.fuel, host_calls: limits.host_calls, peak_memory_bytes: limits.memory_bytes };
    tools.iter_mut().for_each(|tool| tool.most = Some(most));
    Ok(tools)
}

fn gone(name: &str) -> Refusal {
    Refusal::new(RefusalCode::UnknownTool, format!("the tool `{name}` is not part of this host"))
}

/// The component name of a bundled tool.
fn component(tool: &str) -> &str {
    if FILE_TOOLS.contains(&tool) { FILESYSTEM } else { tool }
}

fn definition_of(toolset: &Toolset, name: &str, config: &ToolsConfig) -> Result<ToolDefinition, Refusal> {
    let tool = toolset.tools.iter().find(|tool| tool.name == name).ok_or_else(|| gone(name))?;
    Ok(definition(name, tool, toolset, own_timeout(name, config).unwrap_or(FILE_TOOL_TIMEOUT)))
}

fn of_skill(name: &str, own: &OwnTool, limits: &Limits) -> ToolDefinition {
    definition(name, &own.tool, &own.toolset, limits.deadline().min(FILE_TOOL_TIMEOUT))
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

/// The time of a tool that has one of its own (SPEC TOOL-3).
fn own_timeout(name: &str, config: &ToolsConfig) -> Option<Duration> {
    match name {
        BASH => Some(Duration::from_millis(config.bash_timeout_ms)),
        FETCH => Some(Duration::from_millis(config.fetch_timeout_ms)),
        _ => None,
    }
}

/// Wall-clock time limit of one call of a tool. `limits.deadline_ms` is for tools without one of their own.
pub(crate) fn timeout(name: &str, config: &ToolsConfig, limits: &Limits) -> Duration {
    own_timeout(name, config).unwrap_or_else(|| limits.deadline().min(FILE_TOOL_TIMEOUT))
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
pub(crate) fn effects_in_words(effects: ToolEffects) -> String {
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
