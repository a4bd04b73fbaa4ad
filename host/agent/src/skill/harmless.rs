//! Descriptions of a component's tools for other programs (SPEC MCP-1): untrusted text, made harmless.
//!
//! Hidden characters are written out in texts, and refused where a program compares them (names, keys, values). A schema
//! refers to nothing outside itself, so a client that resolves references fetches nothing.

use base::text::cut;
use serde_json::{Map, Value, json};
use skills::review::{visible, visible_name};

/// Characters of a tool's description.
const MAX_DESCRIPTION: usize = 1_024;
/// Bytes of a schema, after hidden characters were written out.
const MAX_SCHEMA_BYTES: usize = 64 << 10;

/// A description with every hidden character written out.
pub(super) fn description(text: &str) -> String {
    cut(&visible(text), MAX_DESCRIPTION)
}

/// The schema of an object, for other programs; `None` if it is about something else, refers to something outside
/// itself, hides characters where they count, or is too long.
pub(super) fn schema(schema: &Value) -> Option<Value> {
    let mut schema = cleaned(schema, Within::Schema)?;
    let object = schema.as_object_mut()?;
    if *object.entry("type").or_insert_with(|| json!("object")) != "object" {
        return None;
    }
    (schema.to_string().len() <= MAX_SCHEMA_BYTES).then_some(schema)
}

/// The kind of a part of a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Within {
    /// Keywords and their values.
    Schema,
    /// Schemas by names of the author's choice.
    Named,
    /// Values of the arguments, such as those of `enum`.
    Data,
}

/// The part without identities of its own.
fn cleaned(part: &Value, within: Within) -> Option<Value> {
    Some(match part {
        Value::Object(members) => {
            let mut kept = Map::new();
            for (key, value) in members {
                if let Some(value) = member(key, value, within)? {
                    kept.insert(key.clone(), value);
                }
            }
            Value::Object(kept)
        }
        Value::Array(items) => Value::Array(items.iter().map(|item| cleaned(item, within)).collect::<Option<_>>()?),
        Value::String(text) if visible_name(text) != *text => return None,
        other => other.clone(),
    })
}

/// A member of an object; the inner `None` leaves it out, the outer one refuses the schema.
fn member(key: &str, value: &Value, within: Within) -> Option<Option<Value>> {
    if visible_name(key) != key {
        return None;
    }
    let inner = match (within, key) {
        (Within::Schema, "description" | "title") if value.is_string() => {
            return Some(value.as_str().map(|text| json!(visible(text))));
        }
        (Within::Schema, "$schema" | "$id" | "$comment") if value.is_string() => return Some(None),
        (_, "$ref" | "$dynamicRef" | "$recursiveRef")
            if value.as_str().is_some_and(|target| !target.starts_with('#')) =>
        {
            return None;
        }
        (Within::Schema, "enum" | "const" | "default" | "examples") | (Within::Data, _) => Within::Data,
        (Within::Schema, "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas") => {
            Within::Named
        }
        (Within::Schema | Within::Named, _) => Within::Schema,
    };
    Some(Some(cleaned(value, inner)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_keeps_its_meaning_and_loses_its_identity() {
        for (given, expected) in [
            (json!({}), json!({ "type": "object" })),
            (
                json!({ "$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://evil.example/", "type": "object" }),
                json!({ "type": "object" }),
            ),
            (
                json!({ "type": "object", "properties": { "$id": { "type": "string" }, "description": { "enum": ["a"] } } }),
                json!({ "type": "object", "properties": { "$id": { "type": "string" }, "description": { "enum": ["a"] } } }),
            ),
            (
                json!({ "properties": { "a": { "$ref": "#/$defs/b", "description": "x\u{202e}y" } }, "$defs": { "b": {} } }),
                json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/b", "description": "x<U+202E>y" } }, "$defs": { "b": {} } }),
            ),
            (
                json!({ "properties": { "a": { "const": { "$id": "kept", "title": "kept" } } } }),
                json!({ "type": "object", "properties": { "a": { "const": { "$id": "kept", "title": "kept" } } } }),
            ),
        ] {
            assert_eq!(schema(&given), Some(expected), "{given}");
        }
    }

    #[test]
    fn a_schema_that_hides_or_reaches_out_is_refused() {
        for refused in [
            json!({ "type": "string" }),
            json!({ "type": ["object", "null"] }),
            json!({ "$ref": "https://example.invalid/schema.json" }),
            json!({ "properties": { "a": { "items": { "$ref": "file:///etc/passwd" } } } }),
            json!({ "properties": { "a": { "default": { "$ref": "http://169.254.169.254/" } } } }),
            json!({ "properties": { "a": { "$dynamicRef": "other.json" } } }),
            json!({ "properties": { "na\u{200b}me": {} } }),
            json!({ "properties": { "a": { "enum": ["x\u{202e}"] } } }),
            json!({ "properties": { "a": { "default": "\u{e0041}" } } }),
            json!({ "properties": { "a": { "pattern": "\u{1b}[2J" } } }),
            json!({ "properties": { "a": { "description": "\u{202e}".repeat(20_000) } } }),
        ] {
            assert_eq!(schema(&refused), None, "{refused}");
        }
    }

    #[test]
    fn a_description_is_bounded_and_shows_what_it_hides() {
        assert_eq!(description("Adds.\u{202e}\u{1b}[2J"), "Adds.<U+202E><U+001B>[2J");
        assert_eq!(description(&"x".repeat(5_000)).chars().count(), MAX_DESCRIPTION + 1);
    }
}
