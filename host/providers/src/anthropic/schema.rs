//! The JSON Schema that Anthropic's structured outputs accept: objects are closed, and ranges and lengths are unknown.

use serde_json::{Map, Value};

/// Keywords that are refused. The prompt states these constraints too.
const REFUSED: [&str; 14] = [
    "$schema",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minProperties",
    "maxProperties",
    "patternProperties",
];

/// `schema` without refused keywords, its objects closed.
pub(super) fn accepted(schema: &Value) -> Value {
    match schema {
        Value::Object(map) => {
            let mut kept = Map::new();
            for (key, value) in map.iter().filter(|(key, _)| !REFUSED.contains(&key.as_str())) {
                let value = match key.as_str() {
                    // Names of properties, not keywords.
                    "properties" | "$defs" | "definitions" => named(value),
                    "enum" | "const" | "default" | "required" => value.clone(),
                    _ => accepted(value),
                };
                kept.insert(key.clone(), value);
            }
            if kept.get("type").is_some_and(|kind| kind == "object") {
                kept.insert("additionalProperties".to_owned(), Value::Bool(false));
            }
            Value::Object(kept)
        }
        Value::Array(values) => values.iter().map(accepted).collect(),
        other => other.clone(),
    }
}

fn named(schemas: &Value) -> Value {
    match schemas {
        Value::Object(map) => map.iter().map(|(name, schema)| (name.clone(), accepted(schema))).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_closed_and_ranges_are_dropped() {
        let schema = json!({
            "type": "object",
            "properties": {"maximum": {"type": "integer", "maximum": 3}, "list": {"type": "array", "minItems": 1,
                "items": {"type": "object", "properties": {}}}},
        });
        let expected = json!({
            "type": "object",
            "properties": {"maximum": {"type": "integer"}, "list": {"type": "array",
                "items": {"type": "object", "properties": {}, "additionalProperties": false}}},
            "additionalProperties": false,
        });
        assert_eq!(accepted(&schema), expected);
    }
}
