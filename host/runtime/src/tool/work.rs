//! The work that a tool's schema can ask for, bounded before anything is validated by it (SPEC HOST-5).
//!
//! A validator applies `allOf`, `$ref` and their like to the same value, and follows a reference as often as it meets it: two
//! references to a part with two references are four checks, and thirty such levels a billion. Rules for the parts of a value,
//! such as `properties`, may be recursive: how far they go depends on the value, so they are bounded where it is known
//! (`llm::check_arguments`).

use std::collections::{BTreeSet, HashMap};

use base::text::Foreign;
use serde_json::{Map, Value};

/// The most schemas that apply to one value, with the references written out.
const MAX_RULES: u64 = 4_000;
/// The longest chain of schemas that apply to one value: the validator needs stack for each.
const MAX_CHAIN: usize = 128;
/// The most different regular expressions: each is compiled for a check, into as much as some megabytes.
const MAX_PATTERNS: usize = 50;
/// How often the validator looks at the parts of a schema with `unevaluatedProperties` or `unevaluatedItems`, at most: for their
/// own sake, and again for the names and items that they leave over.
const LOOKS_FOR_THE_REST: u64 = 4;

/// Checks that validation by a valid schema takes bounded work for each value, and that no reference leads out of it.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let mut found = BTreeSet::new();
    patterns(schema, &mut found);
    if found.len() > MAX_PATTERNS {
        return Err(format!("has more than {MAX_PATTERNS} different regular expressions; use fewer"));
    }
    // Only in draft 4 is `id` a name: in others it is a member like any other.
    let names: &[&str] = if schema.to_string().contains("/draft-04/") { &["$id", "id"] } else { &["$id"] };
    let names_parts = children(schema).any(|part| has_name(part, names));
    let mut measuring = Measuring { root: schema, names_parts, known: HashMap::new(), waiting: vec![schema] };
    while let Some(next) = measuring.waiting.pop() {
        measuring.measure(next, 0)?;
    }
    Ok(())
}

/// The measure of a schema as it applies to one value.
#[derive(Clone, Copy)]
struct Measured {
    /// The number of schemas that apply, this one included.
    rules: u64,
    /// The longest chain of them.
    chain: usize,
}

struct Measuring<'a> {
    root: &'a Value,
    /// Whether a part has a name of its own, at which references within it begin.
    names_parts: bool,
    /// The measures by the schema's address; `None` while a schema is being measured.
    known: HashMap<*const Value, Option<Measured>>,
    /// Schemas that apply to parts of a value.
    waiting: Vec<&'a Value>,
}

impl<'a> Measuring<'a> {
    fn measure(&mut self, schema: &'a Value, level: usize) -> Result<Measured, String> {
        let Value::Object(keywords) = schema else { return Ok(Measured { rules: 1, chain: 1 }) };
        let address = std::ptr::from_ref(schema);
        match self.known.get(&address) {
            Some(Some(measured)) => return Ok(*measured),
            Some(None) => {
                let why = "refers back to a part from within it for the same value, without end; refer back only from below \
                           `properties` or `items`";
                return Err(why.to_owned());
            }
            None => {}
        }
        let too_long = || {
            format!(
                "applies more than {MAX_CHAIN} schemas within one another to one value; use fewer `$ref` and `allOf`"
            )
        };
        if level >= MAX_CHAIN {
            return Err(too_long());
        }
        self.known.insert(address, None);
        let (mut rules, mut chain) = (0_u64, 0);
        for part in self.same_value(keywords)? {
            let part = self.measure(part, level + 1)?;
            rules = rules.saturating_add(part.rules);
            chain = chain.max(part.chain);
        }
        let asks_for_rest = keywords.contains_key("unevaluatedProperties") || keywords.contains_key("unevaluatedItems");
        let looks = if asks_for_rest { LOOKS_FOR_THE_REST } else { 1 };
        let measured = Measured { rules: rules.saturating_mul(looks).saturating_add(1), chain: chain + 1 };
        if measured.rules > MAX_RULES {
            return Err(format!(
                "applies more than {MAX_RULES} rules to one value, with its `$ref` written out; use fewer `$ref`, `allOf`, \
                 `anyOf` and `oneOf` within one another"
            ));
        }
        if measured.chain > MAX_CHAIN {
            return Err(too_long());
        }
        self.known.insert(address, Some(measured));
        Ok(measured)
    }

    /// The schemas that these keywords apply to the same value. Those for its parts are put aside.
    fn same_value(&mut self, keywords: &'a Map<String, Value>) -> Result<Vec<&'a Value>, String> {
        let mut same = Vec::new();
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    same.push(self.target(reference)?);
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => same.extend(schemas),
                ("not" | "if" | "then" | "else", schema) => same.push(schema),
                ("dependentSchemas" | "dependencies", Value::Object(schemas)) => same.extend(schemas.values()),
                ("properties" | "patternProperties", Value::Object(schemas)) => self.waiting.extend(schemas.values()),
                ("items" | "prefixItems", Value::Array(schemas)) => self.waiting.extend(schemas),
                (
                    "items"
                    | "additionalItems"
                    | "unevaluatedItems"
                    | "contains"
                    | "additionalProperties"
                    | "unevaluatedProperties"
                    | "propertyNames",
                    schema,
                ) => self.waiting.push(schema),
                _ => {}
            }
        }
        Ok(same)
    }

    fn target(&self, reference: &str) -> Result<&'a Value, String> {
        let root = self.root;
        let own = root.get("$id").and_then(Value::as_str).map_or("", |name| name.trim_end_matches('#'));
        let within = reference.strip_prefix(own).and_then(|rest| rest.strip_prefix('#'));
        // A name could lead to a part that is not measured, and the validator decodes URL escapes.
        let pointer = within
            .or_else(|| reference.strip_prefix('#'))
            .filter(|pointer| pointer.is_empty() || pointer.starts_with('/'))
            .filter(|pointer| !pointer.contains('%') && !self.names_parts);
        match pointer.map(|pointer| root.pointer(pointer)) {
            Some(Some(target)) => Ok(target),
            found => {
                let why = match found {
                    None if self.names_parts => "while a part of it has an `$id`",
                    None => "which is not read: nothing outside of a schema is, and parts are found only by their path",
                    Some(_) => "where there is nothing",
                };
                let shown = Foreign(reference).escaped(100);
                Err(format!(
                    "refers to `{shown}`, {why}; write `#/$defs/NAME`, and the part below `$defs` without an `$id`"
                ))
            }
        }
    }
}

fn children(value: &Value) -> impl Iterator<Item = &Value> {
    let (items, members) = (value.as_array(), value.as_object());
    items.into_iter().flatten().chain(members.into_iter().flat_map(Map::values))
}

/// Whether the value or a part of it has one of these members. A property that is called so has a schema, not a text.
fn has_name(value: &Value, names: &[&str]) -> bool {
    names.iter().any(|name| value.get(name).is_some_and(Value::is_string))
        || children(value).any(|part| has_name(part, names))
}

/// Collects the regular expressions. Examples and the like count too if they look like one.
fn patterns<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
    found.extend(value.get("pattern").and_then(Value::as_str));
    let by_pattern = value.get("patternProperties").and_then(Value::as_object);
    found.extend(by_pattern.into_iter().flat_map(Map::keys).map(String::as_str));
    for part in children(value) {
        patterns(part, found);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// `levels` parts, each of which refers to the next by all of these.
    fn levels(levels: usize, part: impl Fn(&Value) -> Value) -> Value {
        let mut parts: Map<String, Value> = (0..levels)
            .map(|number| {
                let next = json!({ "$ref": format!("#/$defs/n{}", number + 1) });
                (format!("n{number}"), part(&next))
            })
            .collect();
        parts.insert(format!("n{levels}"), json!({ "type": "object" }));
        json!({ "type": "object", "$ref": "#/$defs/n0", "$defs": parts })
    }

    #[test]
    fn schemas_that_multiply_are_refused_and_their_twins_are_not() {
        let many = "more than 4000 rules";
        for (schema, says) in [
            (levels(40, |next| json!({ "allOf": [next, next] })), many),
            (levels(40, |next| json!({ "anyOf": [next, { "not": next }] })), many),
            (levels(40, |next| json!({ "oneOf": [next, {}], "$ref": next["$ref"] })), many),
            (levels(40, |next| json!({ "if": next, "then": next, "else": next })), many),
            (levels(40, |next| json!({ "dependentSchemas": { "a": next, "b": next } })), many),
            (levels(40, |next| json!({ "dependencies": { "a": next, "b": next } })), many),
            (levels(40, |next| json!({ "allOf": [next], "unevaluatedProperties": false })), many),
            (levels(40, |next| json!({ "$dynamicRef": next["$ref"], "allOf": [next] })), many),
            (levels(500, |next| json!({ "allOf": [next] })), "more than 128 schemas"),
            // Below a part of the value it is the same.
            (
                json!({ "properties": { "a": { "items": { "$ref": "#/x/$ref~1" } } }, "x": {
                    "$ref/": { "allOf": vec![json!({ "$ref": "#/y" }); 70] } }, "y": { "anyOf": vec![json!({}); 70] } }),
                many,
            ),
        ] {
            let error = check(&schema).unwrap_err();
            assert!(error.contains(says), "{error}: {schema}");
            assert!(error.contains("; use fewer"), "{error}");
        }
        for schema in [
            levels(60, |next| json!({ "allOf": [next] })),
            levels(9, |next| json!({ "allOf": [next, next] })),
            levels(500, |next| json!({ "properties": { "a": next, "b": next } })),
            json!({ "properties": { "a": { "anyOf": vec![json!({}); 1_000] } } }),
        ] {
            check(&schema).unwrap();
        }
    }

    #[test]
    fn shared_and_recursive_parts_are_taken() {
        for schema in [
            json!({ "type": "object", "properties": { "from": { "$ref": "#/$defs/place" }, "to": { "$ref": "#/$defs/place" } },
                    "$defs": { "place": { "type": "object", "properties": { "city": { "$ref": "#/$defs/city" } } },
                               "city": { "anyOf": [{ "type": "string" }, { "type": "null" }] } } }),
            json!({ "type": "object", "properties": { "left": { "$ref": "#" }, "right": { "$ref": "#" } } }),
            json!({ "type": "object", "properties": { "root": { "$ref": "#/$defs/any" } }, "$defs": { "any": { "anyOf": [
                { "type": "string" }, { "type": "array", "items": { "$ref": "#/$defs/any" } },
                { "type": "object", "additionalProperties": { "$ref": "#/$defs/any" } },
            ] } } }),
            json!({ "$id": "https://a.example/s", "properties": { "a": { "$ref": "https://a.example/s#/$defs/a" },
                    "b": { "$ref": "#/$defs/a" } }, "$defs": { "a": {} } }),
            // Names that are not referred by, and members that only look like one.
            json!({ "properties": { "a": { "$id": "a" } }, "$defs": { "b": { "$anchor": "b" } } }),
            json!({ "properties": { "$id": { "$ref": "#/$defs/a" }, "id": { "examples": [{ "id": "a" }] } }, "$defs": { "a": {} } }),
        ] {
            check(&schema).unwrap();
        }
    }

    #[test]
    fn references_lead_to_a_part_by_its_path_or_are_refused() {
        for (reference, says) in [
            ("https://example.invalid/a", "nothing outside of a schema"),
            ("file:///etc/passwd", "nothing outside of a schema"),
            ("json-schema:///#/$defs/a", "nothing outside of a schema"),
            ("/#/$defs/a", "nothing outside of a schema"),
            ("", "nothing outside of a schema"),
            ("#a", "only by their path"),
            ("#/$defs/%61", "only by their path"),
            ("#/$defs/b", "where there is nothing"),
            ("#", "without end"),
            ("#/$defs/a", "without end"),
        ] {
            let schema = json!({ "type": "object", "$ref": reference, "$defs": { "a": { "$ref": "#/$defs/a" } } });
            let error = check(&schema).unwrap_err();
            assert!(error.contains(says), "{reference}: {error}");
        }
        for (draft, name) in [("2020-12", "$id"), ("draft-04", "id")] {
            let draft = format!("https://json-schema.org/{draft}/schema");
            let named = json!({ "$schema": draft, "$ref": "#/$defs/a", "$defs": { "a": {}, "b": { name: "b" } } });
            assert!(check(&named).unwrap_err().contains("has an `$id`"), "{named}");
        }
    }

    #[test]
    fn regular_expressions_are_counted() {
        let with = |count: usize| -> Value {
            let names: Map<String, Value> =
                (1..count).map(|number| (format!("^{number}"), json!({ "pattern": "^a" }))).collect();
            json!({ "properties": { "pattern": { "type": "string" } }, "patternProperties": names })
        };
        check(&with(MAX_PATTERNS)).unwrap();
        assert!(check(&with(MAX_PATTERNS + 1)).unwrap_err().contains("more than 50 different regular expressions"));
    }
}
