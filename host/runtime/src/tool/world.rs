//! Components of our worlds `tool` and `skill`: their descriptions of themselves, checked before use.

use std::collections::BTreeSet;

use base::text::Foreign;
use bindings::skill::exports::motor::host::about as wit;
use bindings::types;

use super::{Effects, MAX_SCHEMA_BYTES, MAX_TOOLS, SkillAbout, ToolDescription};
use crate::inspect::Capability;
use crate::inspect::name::is_tool_name;
use crate::outcome::ToolError;

/// The longest description of a tool that is read, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;
/// The longest instructions of a skill that are read, in bytes.
const MAX_INSTRUCTIONS_BYTES: usize = 64 * 1024;

impl From<types::ToolError> for ToolError {
    fn from(error: types::ToolError) -> Self {
        match error {
            types::ToolError::Denied(message) => Self::Denied(message),
            types::ToolError::Missing(message) => Self::Missing(message),
            types::ToolError::BadInput(message) => Self::BadInput(message),
            types::ToolError::Limit(message) => Self::Limit(message),
            types::ToolError::Failed(failure) => {
                Self::Failed { message: failure.message, retryable: failure.retryable }
            }
        }
    }
}

/// Checks a component's descriptions of its tools. One bad description refuses the component: accepting only some of
/// its tools would be guesswork.
pub(super) fn descriptions(
    tools: Vec<types::ToolDescription>,
    capabilities: &BTreeSet<Capability>,
) -> Result<Vec<ToolDescription>, String> {
    if tools.is_empty() || tools.len() > MAX_TOOLS {
        return Err(format!("the component offers {} tools; it may offer 1 to {MAX_TOOLS}", tools.len()));
    }
    let mut checked: Vec<ToolDescription> = Vec::with_capacity(tools.len());
    for tool in tools {
        let name = tool.name;
        if !is_tool_name(&name) {
            let shown = Foreign(&name).escaped(40);
            return Err(format!("`{shown}` is not a tool name: use `[a-z][a-z0-9_-]*`, at most 64"));
        }
        if checked.iter().any(|other| other.name == name) {
            return Err(format!("the component offers `{name}` twice"));
        }
        if tool.description.len() > MAX_DESCRIPTION_BYTES {
            return Err(format!("the description of `{name}` is longer than {MAX_DESCRIPTION_BYTES} bytes"));
        }
        let parameters = schema(&name, "parameters", &tool.parameters)?;
        let output = tool.output.map(|output| schema(&name, "output", &output)).transpose()?;
        let effects = tool.effects.map_or_else(Effects::default, |effects| Effects {
            read_only: effects.read_only,
            destructive: effects.destructive,
            idempotent: effects.idempotent,
            open_world: effects.open_world,
        });
        let effects = effects.bounded_by(capabilities);
        checked.push(ToolDescription { name, description: tool.description, parameters, output, effects });
    }
    Ok(checked)
}

fn schema(tool: &str, what: &str, text: &str) -> Result<serde_json::Value, String> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!("the {what} schema of `{tool}` is longer than {MAX_SCHEMA_BYTES} bytes"));
    }
    let why = match serde_json::from_str(text) {
        Ok(schema @ serde_json::Value::Object(_)) => return Ok(schema),
        Ok(_) => "not a JSON object".to_owned(),
        Err(error) => format!("not JSON: {error}"),
    };
    Err(format!(
        "the {what} schema of `{tool}` is {why}; give the text of a JSON Schema, such as \
         `{{\"type\":\"object\",\"properties\":{{}}}}`"
    ))
}

/// Checks a component's description of itself. The name is checked later, by the code that uses it as one.
pub(super) fn about(description: wit::Description) -> Result<SkillAbout, String> {
    let wit::Description { name, description, instructions } = description;
    for (what, text, most) in [
        ("name", &name, MAX_DESCRIPTION_BYTES),
        ("description", &description, MAX_DESCRIPTION_BYTES),
        ("instructions", &instructions, MAX_INSTRUCTIONS_BYTES),
    ] {
        if text.len() > most {
            return Err(format!("the {what} that the component gives of itself has more than {most} bytes"));
        }
    }
    Ok(SkillAbout { name, description, instructions })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, parameters: &str) -> types::ToolDescription {
        types::ToolDescription {
            name: name.into(),
            description: String::new(),
            parameters: parameters.into(),
            output: None,
            effects: None,
        }
    }

    fn all() -> BTreeSet<Capability> {
        BTreeSet::from([Capability::Network, Capability::Workspace, Capability::Credentials])
    }

    #[test]
    fn a_tool_that_says_nothing_of_its_effects_is_not_trusted() {
        let tools = descriptions(vec![tool("x", "{}")], &all()).unwrap();
        let effects = tools[0].effects;
        assert!(!effects.read_only && effects.destructive && !effects.idempotent && effects.open_world);
    }

    #[test]
    fn bad_descriptions_are_refused_with_the_reason() {
        for (tools, says) in [
            (vec![], "0 tools"),
            (vec![tool("x", "{}"), tool("x", "{}")], "twice"),
            (vec![tool("X", "{}")], "not a tool name"),
            (vec![tool("a\u{202e}b", "{}")], "\\u{202e}"),
            (vec![tool("x", "{")], "not JSON"),
            (vec![tool("x", "[]")], "not a JSON object"),
            (vec![tool("x", &format!("{{\"a\":\"{}\"}}", "b".repeat(MAX_SCHEMA_BYTES)))], "longer"),
        ] {
            let error = descriptions(tools, &all()).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_skill_says_what_it_is_within_bounds() {
        let of = |name: &str, description: &str, instructions: String| {
            about(wit::Description { name: name.into(), description: description.into(), instructions })
        };
        let said = of("units", "Converts units.", "Use `convert`.".into()).unwrap();
        assert_eq!((said.name.as_str(), said.instructions.as_str()), ("units", "Use `convert`."));
        let error = of("units", "", "x".repeat(MAX_INSTRUCTIONS_BYTES + 1)).unwrap_err();
        assert!(error.contains("instructions"), "{error}");
        assert!(of(&"x".repeat(MAX_DESCRIPTION_BYTES + 1), "", String::new()).unwrap_err().contains("name"));
    }
}
