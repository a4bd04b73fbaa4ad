//! JSON Schemas of argument types, kept small: a model reads them on every turn, so useless parts are left out.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde_json::{Map, Value, json};

/// The JSON Schema (2020-12) of a type as it is read from JSON.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.meta_schema = None;
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    shorten(&mut schema);
    if let Value::Object(object) = &mut schema {
        // The tool's own description says it better than the type's.
        object.remove("description");
        if object.get("type").is_some_and(|kind| kind == "object") {
            object.entry("properties").or_insert_with(|| json!({}));
            object.entry("additionalProperties").or_insert(json!(false));
        }
    }
    schema
}

/// Takes away Rust's type names and number formats. Below `properties` and `$defs` the keys are names, not keywords.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            object.remove("title");
            object.remove("format");
            for (keyword, value) in object.iter_mut() {
                match (keyword.as_str(), value) {
                    ("properties" | "$defs", Value::Object(named)) => named.values_mut().for_each(shorten),
                    ("default" | "const" | "enum" | "examples", _) => {}
                    (_, value) => shorten(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// The arguments that a schema names, in its order.
pub(crate) fn names(schema: &Value) -> Vec<&str> {
    schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|all| all.keys().map(String::as_str).collect())
        .unwrap_or_default()
}

/// The arguments that a schema requires and the object lacks.
pub(crate) fn absent<'a>(schema: &'a Value, object: &Map<String, Value>) -> Vec<&'a str> {
    let required = schema.get("required").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    required.iter().filter_map(Value::as_str).filter(|name| !object.contains_key(*name)).collect()
}

/// Whether the schema closes its object to names it does not list.
pub(crate) fn is_closed(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code)]
    struct Sample {
        /// What it is called.
        title: String,
        count: Option<u32>,
    }

    #[test]
    fn keeps_what_a_model_needs_and_names_that_look_like_keywords() {
        assert_eq!(
            of::<Sample>(),
            json!({
                "type": "object",
                "properties": {
                    "title": { "type": "string", "description": "What it is called." },
                    "count": { "type": ["integer", "null"], "minimum": 0 },
                },
                "required": ["title"],
                "additionalProperties": false,
            })
        );
    }

    #[derive(JsonSchema)]
    struct Nothing {}

    #[test]
    fn no_arguments_are_an_empty_object() {
        assert_eq!(of::<Nothing>(), json!({ "type": "object", "properties": {}, "additionalProperties": false }));
    }
}
