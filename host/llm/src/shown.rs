//! Tools in the words that a model reads: it pays for them in every request, and the host checks arguments by the full schema.

use serde_json::{Map, Value};

use crate::ToolSpec;

/// Keywords for programs that read schemas.
const UNSHOWN: [&str; 2] = ["$schema", "$comment"];
/// Keywords that [`notation`] can express.
const NOTED: [&str; 5] = ["type", "enum", "items", "properties", "required"];

impl ToolSpec {
    /// The tool as it is sent: without titles, without the rule that no other arguments exist, and without the `null` that an
    /// optional argument also accepts.
    #[must_use]
    pub fn shown(&self) -> Self {
        let mut shown = self.clone();
        let keeps_name = refers_outside(&shown.parameters);
        if let Some(object) = shown.parameters.as_object_mut().filter(|_| !keeps_name) {
            object.shift_remove("$id");
        }
        shorten(&mut shown.parameters);
        shown
    }

    /// The tool on one line, for a model that gets no list of tools: name, arguments in the notation of TypeScript, description.
    #[must_use]
    pub fn signature(&self) -> String {
        let Self { name, description, parameters } = self.shown();
        format!("{name} {}: {description}", notation(&parameters))
    }
}

/// Whether a reference begins at the name of a schema, and not at its root.
fn refers_outside(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => object.iter().any(|(keyword, value)| {
            let is_outside = keyword == "$ref" && value.as_str().is_some_and(|target| !target.starts_with('#'));
            is_outside || refers_outside(value)
        }),
        Value::Array(items) => items.iter().any(refers_outside),
        _ => false,
    }
}

/// Below `properties` and `$defs` the keys are names, not keywords.
fn shorten(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            // Of a choice of constants it may be the only explanation.
            let explains = object.contains_key("const") && !object.contains_key("description");
            object.retain(|keyword, value| match keyword.as_str() {
                "title" => explains,
                "additionalProperties" => *value != Value::Bool(false),
                "minimum" => *value != 0,
                keyword => !UNSHOWN.contains(&keyword),
            });
            without_null(object);
            for (keyword, value) in object.iter_mut() {
                match (keyword.as_str(), value) {
                    ("properties" | "$defs" | "definitions" | "patternProperties", Value::Object(named)) => {
                        named.values_mut().for_each(shorten);
                    }
                    ("default" | "const" | "enum" | "examples" | "required", _) => {}
                    (_, value) => shorten(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(shorten),
        _ => {}
    }
}

/// An argument that may be left out need not be `null`.
fn without_null(object: &mut Map<String, Value>) {
    let required = required(object);
    let Some(Value::Object(properties)) = object.get_mut("properties") else { return };
    for (_, schema) in properties.iter_mut().filter(|(name, _)| !required.contains(name)) {
        let Some(Value::Array(kinds)) = schema.get("type") else { continue };
        let [Value::String(one), Value::String(null)] = kinds.as_slice() else { continue };
        let (kind, true) = (Value::from(one.as_str()), null == "null") else { continue };
        let values = schema.get("enum").and_then(Value::as_array);
        if values.is_some_and(|values| values.iter().all(Value::is_null)) {
            continue;
        }
        if let Some(map) = schema.as_object_mut() {
            map.insert("type".to_owned(), kind);
        }
        if let Some(values) = schema.get_mut("enum").and_then(Value::as_array_mut) {
            values.retain(|value| !value.is_null());
        }
    }
}

fn required(object: &Map<String, Value>) -> Vec<String> {
    let names = object.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// A schema as a type of TypeScript, or as JSON if it says more than a type.
fn notation(schema: &Value) -> String {
    let said = |object: &&Map<String, Value>| object.keys().all(|keyword| NOTED.contains(&keyword.as_str()));
    let Some(object) = schema.as_object().filter(said) else { return schema.to_string() };
    if let Some(Value::Array(values)) = object.get("enum") {
        return values.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match (object.get("type").and_then(Value::as_str), object.get("items"), object.get("properties")) {
        (Some("array"), Some(items), _) => format!("Array<{}>", notation(items)),
        (Some("object"), _, Some(Value::Object(properties))) => {
            let required = required(object);
            let fields = properties.iter().map(|(name, schema)| {
                let optional = if required.contains(name) { "" } else { "?" };
                format!("{name}{optional}: {}", described(schema))
            });
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        (Some(kind), ..) => kind.to_owned(),
        (None, ..) if object.is_empty() => "any".to_owned(),
        (None, ..) => schema.to_string(),
    }
}

fn described(schema: &Value) -> String {
    let mut bare = schema.clone();
    let about = bare.as_object_mut().and_then(|object| object.remove("description"));
    match about.as_ref().and_then(Value::as_str) {
        Some(about) => format!("{} /* {about} */", notation(&bare)),
        None => notation(&bare),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(parameters: Value) -> ToolSpec {
        ToolSpec { name: "find".to_owned(), description: "Finds.".to_owned(), parameters }
    }

    fn full() -> ToolSpec {
        tool(json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "title": "Find",
            "type": "object",
            "properties": {
                "title": { "type": "string", "title": "Title", "description": "Its name." },
                "limit": { "type": ["integer", "null"], "minimum": 0 },
                "size": { "type": "integer", "minimum": 1 },
                "kind": { "type": ["string", "null"], "enum": ["a", "b", null], "default": null },
                "must": { "type": ["string", "null"] },
                "in": {
                    "type": "array",
                    "items": { "type": "object", "properties": { "minimum": { "type": "number" } }, "additionalProperties": false }
                },
                "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            },
            "required": ["title", "must"],
            "additionalProperties": false,
        }))
    }

    #[test]
    fn a_model_is_shown_what_it_needs_to_call_a_tool() {
        let expected = json!({
            "type": "object",
            "properties": {
                "title": { "type": "string", "description": "Its name." },
                "limit": { "type": "integer" },
                "size": { "type": "integer", "minimum": 1 },
                "kind": { "type": "string", "enum": ["a", "b"], "default": null },
                "must": { "type": ["string", "null"] },
                "in": { "type": "array", "items": { "type": "object", "properties": { "minimum": { "type": "number" } } } },
                "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            },
            "required": ["title", "must"],
        });
        let shown = full().shown();
        assert_eq!(shown.parameters, expected);
        assert_eq!(shown.shown(), shown);
        // The order stays too: a prompt cache compares bytes.
        assert!(shown.parameters.to_string().starts_with(r#"{"type":"object","properties":{"title":{"#));
    }

    #[test]
    fn what_a_foreign_schema_needs_is_shown() {
        let constants = json!({ "type": "object", "properties": {
            "level": { "oneOf": [
                { "const": 1, "title": "quiet" },
                { "const": 2, "title": "loud", "description": "All of it." },
            ] },
            "never": { "type": ["string", "null"], "enum": [null] },
        } });
        let expected = json!({ "type": "object", "properties": {
            "level": { "oneOf": [{ "const": 1, "title": "quiet" }, { "const": 2, "description": "All of it." }] },
            "never": { "type": ["string", "null"], "enum": [null] },
        } });
        assert_eq!(tool(constants).shown().parameters, expected);
        let named = |target: &str| json!({ "$id": "https://a.example/s", "properties": { "a": { "$ref": target } } });
        let outside = tool(named("https://a.example/s#/$defs/a"));
        assert_eq!(outside.shown(), outside);
        assert_eq!(
            tool(named("#/$defs/a")).shown().parameters,
            json!({ "properties": { "a": { "$ref": "#/$defs/a" } } })
        );
        // A reference within a named part begins at that part.
        let part = json!({ "$defs": { "p": { "$id": "p", "$defs": { "a": {} }, "items": { "$ref": "#/$defs/a" } } } });
        assert_eq!(tool(part.clone()).shown().parameters, part);
    }

    #[test]
    fn arguments_that_fit_what_was_shown_fit_the_schema() {
        let tool = full();
        for (arguments, fits) in [
            (json!({"title": "t", "must": null}), true),
            (json!({"title": "t", "must": "m", "limit": 3, "kind": "a", "in": [{"minimum": 1}]}), true),
            (json!({"title": "t"}), false),
            (json!({"title": "t", "must": "m", "kind": "c"}), false),
        ] {
            for schema in [&tool.parameters, &tool.shown().parameters] {
                assert_eq!(jsonschema::is_valid(schema, &arguments), fits, "{arguments} {schema}");
            }
        }
    }

    #[test]
    fn a_signature_says_all_that_the_schema_says() {
        assert_eq!(
            full().signature(),
            "find {title: string /* Its name. */, limit?: integer, size?: {\"type\":\"integer\",\"minimum\":1}, \
             kind?: {\"type\":\"string\",\"enum\":[\"a\",\"b\"],\"default\":null}, must: {\"type\":[\"string\",\"null\"]}, \
             in?: Array<{minimum?: number}>, headers?: {\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}}}: Finds."
        );
        let small =
            json!({"type": "object", "properties": {"any": {}, "unit": {"enum": ["m", 1]}, "list": {"type": "array"}}});
        assert_eq!(tool(small).signature(), "find {any?: any, unit?: \"m\" | 1, list?: array}: Finds.");
        assert_eq!(tool(json!({"type": "object"})).signature(), "find object: Finds.");
        assert_eq!(tool(json!({"$ref": "#/x"})).signature(), "find {\"$ref\":\"#/x\"}: Finds.");
    }
}
