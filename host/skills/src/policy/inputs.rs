//! The inputs of a skill against the schema that its policy has for them (SPEC SKILL-8).
//!
//! It must not reach out, nor quote inputs at length. It survives schemas of any content: one that refers to another
//! document, to itself, or to so much that a check would take long, is refused before it is compiled; patterns are
//! linear, few and small.

use std::collections::HashMap;

use base::text::Foreign;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::{Map, Value};

use super::bounds::{shown, size};
use crate::SkillError;

/// The largest schema, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 32 << 10;
/// The largest inputs, in bytes of JSON: they become part of a prompt.
const MAX_INPUT_BYTES: usize = 32 << 10;
/// The most JSON values of a schema with its references expanded: each may be checked against each part of the inputs.
const MAX_PARTS: u64 = 4_000;
/// The deepest nesting of schemas and inputs.
const MAX_DEPTH: usize = 64;
/// The most patterns of a schema, and the most bytes of each when compiled.
const MAX_PATTERNS: usize = 50;
const MAX_PATTERN_BYTES: usize = 256 << 10;
/// The most problems that are reported.
const MAX_PROBLEMS: usize = 5;
/// The most characters of a quoted rule of the schema.
const MAX_RULE: usize = 160;

/// Checks the inputs of a run. Without a schema the skill takes none.
///
/// # Errors
/// If an input is invalid; the error names it and the rule.
pub fn check_inputs(schema: Option<&Value>, inputs: Option<&Value>) -> Result<(), SkillError> {
    check(schema, inputs).map_err(|reason| SkillError::Invalid { reason })
}

fn check(schema: Option<&Value>, inputs: Option<&Value>) -> Result<(), String> {
    let none = Value::Object(Map::new());
    let inputs = inputs.unwrap_or(&none);
    let Value::Object(given) = inputs else { return Err("the inputs have to be a JSON object".to_owned()) };
    let Some(schema) = schema else {
        return match given.is_empty() {
            true => Ok(()),
            false => Err("this skill takes no inputs: leave them out".to_owned()),
        };
    };
    check_depth(inputs, MAX_DEPTH).map_err(|()| format!("the inputs are nested deeper than {MAX_DEPTH} levels"))?;
    if size(inputs) > MAX_INPUT_BYTES {
        return Err(format!("the inputs have more than {} KiB: put what is long into a file", MAX_INPUT_BYTES >> 10));
    }
    let validator = compile(schema)?;
    if validator.is_valid(inputs) {
        return Ok(());
    }
    let mut problems: Vec<String> =
        validator.iter_errors(inputs).take(MAX_PROBLEMS).map(|error| problem(schema, &error)).collect();
    problems.dedup();
    Err(problems.join("; "))
}

/// Whether `schema` can be the schema of inputs.
pub(super) fn check_schema(schema: &Value) -> Result<(), String> {
    compile(schema).map(drop)
}

fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    check_depth(schema, MAX_DEPTH).map_err(|()| too_deep())?;
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("`inputs` has to be a JSON Schema with `\"type\": \"object\"`".to_owned());
    }
    if size(schema) > MAX_SCHEMA_BYTES {
        return Err(format!("`inputs` is larger than {} KiB", MAX_SCHEMA_BYTES >> 10));
    }
    check_patterns(schema)?;
    let measured = Measuring { root: schema, known: HashMap::new() }.of(schema, 0)?;
    if measured.parts > MAX_PARTS {
        return Err(format!("`inputs` refers to more than {MAX_PARTS} rules: say it with fewer `$ref`"));
    }
    jsonschema::options()
        .offline()
        .with_draft(jsonschema::Draft::Draft202012)
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(MAX_PATTERN_BYTES))
        .build(schema)
        .map_err(|error| format!("`inputs` is no valid JSON Schema: {}", rule(&error)))
}

/// Measures a schema with its references expanded, because compiling and checking it follows them as deep and as often.
struct Measuring<'a> {
    root: &'a Value,
    /// Size of each referenced value; `None` while it is being measured.
    known: HashMap<&'a str, Option<SchemaSize>>,
}

#[derive(Clone, Copy)]
struct SchemaSize {
    /// The number of JSON values.
    parts: u64,
    /// How deep they are nested.
    depth: usize,
}

impl<'a> Measuring<'a> {
    /// The size of a value at that level of nesting.
    fn of(&mut self, value: &'a Value, level: usize) -> Result<SchemaSize, String> {
        if level >= MAX_DEPTH {
            return Err(too_deep());
        }
        let mut size = SchemaSize { parts: 1, depth: 1 };
        let mut add = |part: SchemaSize| {
            size.parts = size.parts.saturating_add(part.parts);
            size.depth = size.depth.max(part.depth + 1);
        };
        match value {
            Value::Array(items) => {
                for item in items {
                    add(self.of(item, level + 1)?);
                }
            }
            Value::Object(fields) => {
                for (name, value) in fields {
                    match (name.as_str(), value) {
                        ("$ref", Value::String(target)) => add(self.target(target, level + 1)?),
                        // They would change the meaning of a `$ref`, or are references themselves.
                        ("$id" | "$dynamicRef" | "$recursiveRef", Value::String(_)) => {
                            return Err(format!("`inputs` has `{name}`: only `$ref` with `#/…` is possible"));
                        }
                        ("$schema", Value::String(draft)) if level > 0 || !is_known(draft) => {
                            return Err("`inputs` has another `$schema` than a draft from 7 to 2020-12".to_owned());
                        }
                        _ => add(self.of(value, level + 1)?),
                    }
                }
            }
            _ => {}
        }
        Ok(size)
    }

    fn target(&mut self, reference: &'a str, level: usize) -> Result<SchemaSize, String> {
        let refused = |why| Err(format!("`inputs` has the `$ref` `{}`, {why}", shown(reference)));
        match self.known.get(reference) {
            Some(Some(size)) if level + size.depth > MAX_DEPTH => return Err(too_deep()),
            Some(Some(size)) => return Ok(*size),
            Some(None) => return refused("which leads back to itself: write it out as deep as it is needed"),
            None => {}
        }
        // URL escapes could be read differently here and by the validator.
        let pointer = reference.strip_prefix('#').filter(|pointer| pointer.starts_with('/') && !pointer.contains('%'));
        let Some(pointer) = pointer else { return refused("and only `#/…`, within the schema itself, is possible") };
        let Some(target) = self.root.pointer(pointer) else { return refused("and there is nothing there") };
        self.known.insert(reference, None);
        let size = self.of(target, level)?;
        self.known.insert(reference, Some(size));
        Ok(size)
    }
}

fn too_deep() -> String {
    format!("`inputs` is nested deeper than {MAX_DEPTH} levels, with its `$ref` written out")
}

fn is_known(draft: &str) -> bool {
    let draft = draft.trim_end_matches('#');
    ["http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/schema"].contains(&draft)
        || ["https://json-schema.org/draft/2019-09/schema", "https://json-schema.org/draft/2020-12/schema"]
            .contains(&draft)
}

fn check_depth(value: &Value, left: usize) -> Result<(), ()> {
    let left = left.checked_sub(1).ok_or(())?;
    match value {
        Value::Array(items) => items.iter().try_for_each(|item| check_depth(item, left)),
        Value::Object(fields) => fields.values().try_for_each(|field| check_depth(field, left)),
        _ => Ok(()),
    }
}

fn check_patterns(schema: &Value) -> Result<(), String> {
    if patterns(schema) > MAX_PATTERNS {
        return Err(format!("`inputs` has more than {MAX_PATTERNS} patterns"));
    }
    Ok(())
}

fn patterns(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(patterns).sum(),
        Value::Object(fields) => {
            let own = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                ("pattern", Value::String(_)) => 1,
                ("patternProperties", Value::Object(by_pattern)) => by_pattern.len() + patterns(value),
                _ => patterns(value),
            };
            fields.iter().map(own).sum()
        }
        _ => 0,
    }
}

/// A message that names the wrong input and the rule.
fn problem(schema: &Value, error: &ValidationError<'_>) -> String {
    let path =
        error.instance_path().as_str().trim_start_matches('/').replace('/', ".").replace("~1", "/").replace("~0", "~");
    let input = format!("input `{}`", shown(&path));
    match error.kind() {
        ValidationErrorKind::Required { property } => {
            let missing = shown(property.as_str().unwrap_or_default());
            match path.is_empty() {
                true => format!("input `{missing}` is required"),
                false => format!("{input} needs `{missing}`"),
            }
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let unexpected = shown(unexpected.first().map(String::as_str).unwrap_or_default());
            match path.is_empty() {
                true => format!("there is no input `{unexpected}`: {}", known(schema)),
                false => format!("{input} has `{unexpected}`, which it cannot have"),
            }
        }
        _ if path.is_empty() => format!("the inputs do not fit: {}", rule(error)),
        _ => format!("{input} is `{}`: {}", shown(&error.instance().to_string()), rule(error)),
    }
}

/// The rule of the schema, without the value.
fn rule(error: &ValidationError<'_>) -> String {
    let text = error.masked_with("it").to_string();
    Foreign(&text).line(MAX_RULE)
}

fn known(schema: &Value) -> String {
    let names: Vec<String> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::keys)
        .take(20)
        .map(|name| format!("`{}`", shown(name)))
        .collect();
    if names.is_empty() { "there are none".to_owned() } else { format!("there are {}", names.join(", ")) }
}

#[cfg(test)]
mod tests;
