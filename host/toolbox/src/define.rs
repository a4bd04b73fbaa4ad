//! The descriptions of granted tools for the model.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{ContentHash, Refusal, RefusalCode};
use llm::ToolSpec;
use motor::{RunRules, SandboxUsage, ToolDefinition, ToolEffects};
use runtime::{Access, Language, Limits, ToolDescription};
use serde_json::{Value, json};

use crate::catalogue::{self, BASH, BundledTool, CODE};
use crate::save::{self, SAVE_CREDENTIAL};
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
    for name in granted.iter().filter(|name| !own.contains_key(*name) && *name != SAVE_CREDENTIAL) {
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
        if name == SAVE_CREDENTIAL {
            tools.push(save::definition());
            continue;
        }
        let component = bundled(name)?.component;
        let number = needed.iter().position(|needed| *needed == component).map_or(1, |index| index + 1);
        let turn = CompileTurn { number, of: needed.len() };
        tools.push(if name == CODE {
            let sandbox = sandboxes.code(Language::JavaScript, around.is_connected(), turn).await?;
            let python = sandboxes.python(around.is_connected()).is_some();
            code(sandbox.component().hash(), around, python)
        } else {
            let toolset = sandboxes.tools(component, turn).await?;
            let tool = toolset.tools.iter().find(|tool| tool.name == *name).ok_or_else(|| gone(name))?;
            let mut defined = definition(name, tool, toolset, timeout);
            if name == BASH && sandboxes.python(true).is_some() {
                defined.spec.description.push_str(PYTHON_SCRIPTS);
            }
            defined
        });
    }
    // A call can spend at most the limits of its sandbox.
    let most =
        SandboxUsage { fuel: limits.fuel, host_calls: limits.host_calls, peak_memory_bytes: limits.memory_bytes };
    tools.iter_mut().filter(|tool| tool.component.is_some()).for_each(|tool| tool.most = Some(most));
    Ok(tools)
}

/// The words for the model about scripts in the shell, where this host has Python.
const PYTHON_SCRIPTS: &str =
    " `python3` (3.14, standard library) runs scripts, `-c`, `-m` and standard input, and sees no `/tmp`.";

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

/// The words for the model about Python, where this host has it.
fn python(around: CodeGrants) -> String {
    let mut text = String::from(" Python is 3.14 with its standard library: no packages, threads or processes");
    if around.files.is_some() {
        text.push_str("; it opens files of `/workspace`");
    }
    if around.network {
        text.push_str("; `requests` and `urllib.request` work");
    }
    text.push('.');
    text
}

fn code(component: ContentHash, around: CodeGrants, has_python: bool) -> ToolDefinition {
    let mut description = String::from(
        "Runs JavaScript (ES2023, `await`, `console.log`, no modules) in a fresh sandbox; the last expression or `return` comes \
         back as JSON.",
    );
    description.push_str(match around.files {
        None => " No files: put the data into the code.",
        Some(Access::ReadOnly) => {
            " Files: `await workspace.readText(path)`, `readBytes`, `list`, `exists`, `stat`; `load` runs a script and gives what \
             it returns."
        }
        Some(Access::ReadWrite) => {
            " Files: `await workspace.readText(path)`, `readBytes`, `writeText(path, text)`, `writeBytes`, `appendText`, `list`, \
             `exists`, `stat`, `remove`, `makeDirectory`; `load` runs a script and gives what it returns."
        }
    });
    description.push_str(if around.network {
        " `await fetch(url, {method, headers, body})` reaches granted domains."
    } else {
        " No network."
    });
    let writes = around.files == Some(Access::ReadWrite);
    let mut parameters = json!({
        "type": "object",
        "properties": {
            "code": { "type": "string" },
            "timeout_ms": { "type": "integer", "description": "" }
        },
        "required": ["code"],
        "additionalProperties": false
    });
    if has_python {
        description.push_str(&python(around));
        let names = Language::NAMES.map(|(name, _)| name);
        let language = json!({ "type": "string", "enum": names, "default": Language::default() });
        if let Some(properties) = parameters.pointer_mut("/properties").and_then(Value::as_object_mut) {
            properties.insert("language".to_owned(), language);
        }
    }
    let mut tool = ToolDefinition {
        spec: ToolSpec { name: CODE.to_owned(), description, parameters },
        // A program without side effects may run again after a crash; otherwise it has the effects of its access.
        effects: ToolEffects {
            read_only: !writes && !around.network,
            destructive: writes || around.network,
            idempotent: !writes && !around.network,
            open_world: around.network,
        },
        timeout: Duration::ZERO,
        component: Some(component),
        most: None,
    };
    bound_code(&mut tool, &RunRules::default());
    tool
}

/// Gives the `code` tool the times of a run's rules.
pub(crate) fn bound_code(tool: &mut ToolDefinition, rules: &RunRules) {
    let RunRules { code_min_timeout_ms: least, code_max_timeout_ms: most, .. } = rules;
    tool.timeout = rules.longest_code();
    if let Some(description) = tool.spec.parameters.pointer_mut("/properties/timeout_ms/description") {
        *description = format!("{least} to {most}, default 5000").into();
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
