//! Components of our worlds `tool` and `skill`: their descriptions of themselves, checked before use.

use std::collections::BTreeSet;

use base::text::Foreign;
use bindings::skill::exports::motor::host::about as wit;
use bindings::types;
use jsonschema::Draft;
use serde_json::Value;

use super::{Effects, MAX_SCHEMA_BYTES, MAX_TOOLS, SkillAbout, ToolDescription, work};
use crate::inspect::Capability;
use crate::inspect::name::is_tool_name;
use crate::outcome::ToolError;

/// The longest description of a tool that is read, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 4 * 1024;
/// The longest instructions of a skill that are read, in bytes.
const MAX_INSTRUCTIONS_BYTES: usize = 64 * 1024;
/// The longest text of a broken rule of JSON Schema, which quotes the value.
const MAX_RULE_CHARACTERS: usize = 200;
/// A schema to start from, for the remedies.
const EXAMPLE_SCHEMA: &str = r#"{"type":"object","properties":{"name":{"type":"string"}}}"#;

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
        let parameters = object_schema(&name, &tool.parameters)?;
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

/// Reads a schema, checks it against the rules of its draft, and bounds the work of checks by it. Nothing outside of it is read,
/// and each part is looked at once, so that the work here is bounded by its size.
fn schema(tool: &str, what: &str, text: &str) -> Result<Value, String> {
    if text.len() > MAX_SCHEMA_BYTES {
        return Err(format!("the {what} schema of `{tool}` is longer than {MAX_SCHEMA_BYTES} bytes"));
    }
    let refused = |why: String| {
        format!("the {what} schema of `{tool}` {why}; give the text of a JSON Schema, such as `{EXAMPLE_SCHEMA}`")
    };
    let schema: Value = serde_json::from_str(text).map_err(|error| refused(format!("is not JSON: {error}")))?;
    if !schema.is_object() {
        return Err(refused("is not a JSON object".to_owned()));
    }
    if Draft::default().detect(&schema) == Draft::Unknown {
        return Err(refused("has another `$schema` than a draft from 4 to 2020-12".to_owned()));
    }
    if let Err(error) = jsonschema::meta::validate(&schema) {
        let place = Foreign(error.instance_path().as_str()).escaped(100);
        let place = if place.is_empty() { String::new() } else { format!(" at `{place}`") };
        return Err(refused(format!("is invalid{place}: {}", Foreign(&error.to_string()).line(MAX_RULE_CHARACTERS))));
    }
    work::check(&schema).map_err(|why| format!("the {what} schema of `{tool}` {why}"))?;
    Ok(schema)
}

/// As [`schema`], for arguments: each call has an object of them.
fn object_schema(tool: &str, text: &str) -> Result<Value, String> {
    let schema = schema(tool, "parameters", text)?;
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => Ok(schema),
        _ => Err(format!("the parameters schema of `{tool}` needs `\"type\":\"object\"`, such as `{EXAMPLE_SCHEMA}`")),
    }
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

    const OBJECT: &str = r#"{"type":"object"}"#;

    /// A schema with schemas below one another.
    fn nested(levels: usize) -> String {
        format!(r#"{{"type":"object","not":{}{{}}{}}}"#, r#"{"not":"#.repeat(levels), "}".repeat(levels))
    }

    /// A schema whose parts refer to the next one twice.
    fn doubling(levels: usize) -> String {
        let part = |number: usize| {
            format!(r##""n{number}":{{"allOf":[{{"$ref":"#/$defs/n{0}"}},{{"$ref":"#/$defs/n{0}"}}]}}"##, number + 1)
        };
        let parts: Vec<String> = (0..levels).map(part).collect();
        format!(r##"{{"type":"object","$ref":"#/$defs/n0","$defs":{{{},"n{levels}":{{}}}}}}"##, parts.join(","))
    }

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
        let tools = descriptions(vec![tool("x", OBJECT)], &all()).unwrap();
        let effects = tools[0].effects;
        assert!(!effects.read_only && effects.destructive && !effects.idempotent && effects.open_world);
    }

    #[test]
    fn bad_descriptions_are_refused_with_the_reason() {
        for (tools, says) in [
            (vec![], "0 tools"),
            (vec![tool("x", OBJECT), tool("x", OBJECT)], "twice"),
            (vec![tool("X", OBJECT)], "not a tool name"),
            (vec![tool("a\u{202e}b", OBJECT)], "\\u{202e}"),
            (vec![tool("x", "{")], "not JSON"),
            (vec![tool("x", "[]")], "not a JSON object"),
            (vec![tool("x", "{}")], "needs `\"type\":\"object\"`"),
            (vec![tool("x", r#"{"type":"array"}"#)], "needs `\"type\":\"object\"`"),
            (vec![tool("x", r#"{"type":"strng"}"#)], "invalid at `/type`: \"strng\""),
            (vec![tool("x", r#"{"type":"object","properties":[]}"#)], "invalid at `/properties`"),
            (vec![tool("x", r#"{"type":"object","required":"a"}"#)], "invalid at `/required`"),
            (vec![tool("x", r#"{"type":"object","$schema":"https://example.com/own"}"#)], "another `$schema`"),
            (vec![tool("x", r#"{"type":"object","$schema":7}"#)], "invalid at `/$schema`"),
            (vec![tool("x", &nested(200))], "not JSON"),
            (vec![tool("x", r#"{"type":"object","$ref":"https://example.invalid/a"}"#)], "of `x` refers to `https:"),
            (vec![tool("x", &doubling(30))], "of `x` applies more than 4000 rules to one value"),
            (vec![tool("x", &format!("{{\"a\":\"{}\"}}", "b".repeat(MAX_SCHEMA_BYTES)))], "longer"),
        ] {
            let error = descriptions(tools, &all()).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }

    /// The twins of the refused ones: other drafts, references within the schema, and the deepest nesting that is read.
    #[test]
    fn a_valid_schema_of_any_draft_is_taken_as_it_is() {
        for parameters in [
            r#"{"type":"object","properties":{"type":{"type":"string"},"$ref":{"type":"integer"}}}"#,
            r#"{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"items":[{}]}}}"#,
            r##"{"type":"object","properties":{"a":{"$ref":"#/$defs/a"}},"$defs":{"a":{"items":{"$ref":"#/$defs/a"}}}}"##,
            &doubling(5),
            &nested(120),
        ] {
            let tools = descriptions(vec![tool("x", parameters)], &all()).unwrap();
            assert_eq!(tools[0].parameters, serde_json::from_str::<Value>(parameters).unwrap());
        }
        let with_output = |output: &str| types::ToolDescription { output: Some(output.into()), ..tool("x", OBJECT) };
        assert!(descriptions(vec![with_output(r#"{"type":"array"}"#)], &all()).is_ok());
        let error = descriptions(vec![with_output(r#"{"type":"strng"}"#)], &all()).unwrap_err();
        assert!(error.contains("the output schema of `x` is invalid at `/type`"), "{error}");
    }

    #[test]
    fn the_largest_schemas_are_checked() {
        let property = |number: usize| format!(r#""p{number}":{{"type":["string","null"],"enum":[1,2]}}"#);
        let properties: Vec<String> = (0..MAX_SCHEMA_BYTES / 56).map(property).collect();
        let parameters = format!(r#"{{"type":"object","properties":{{{}}}}}"#, properties.join(","));
        assert!(
            parameters.len() <= MAX_SCHEMA_BYTES && parameters.len() > MAX_SCHEMA_BYTES / 2,
            "{}",
            parameters.len()
        );
        let tools = (0..MAX_TOOLS).map(|number| tool(&format!("t{number}"), &parameters)).collect();
        assert!(descriptions(tools, &all()).is_ok());
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
