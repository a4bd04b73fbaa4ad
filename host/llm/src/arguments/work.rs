//! The work of validating one value by one schema, bounded before it is done.
//!
//! The validator follows each reference as often as it meets it, and a recursive schema may apply itself to the same part of
//! the value by several branches: its work doubles with each level of the value. So the same steps are walked here first, without
//! doing them, up to a bound.

use serde_json::{Map, Value};

/// The most steps of a validation: some tenths of a second.
const MAX_STEPS: usize = 2_000_000;
/// The deepest nesting of steps, in the schema and in the value together: the validator needs stack for each.
const MAX_DEPTH: usize = 256;
/// How often the validator looks at the parts of a schema with `unevaluatedProperties` or `unevaluatedItems`, at most.
const LOOKS_FOR_THE_REST: usize = 4;
/// Bytes of a text that a regular expression reads in one step.
const TEXT_STEP: usize = 16;

/// Whether `value` can be validated by `schema` within the bounds.
pub(super) fn is_bounded(schema: &Value, value: &Value) -> bool {
    Walk { root: schema, left: MAX_STEPS }.applies(schema, value, MAX_DEPTH)
}

struct Walk<'a> {
    root: &'a Value,
    left: usize,
}

/// Each function says whether the walk ended within the bounds.
impl<'a> Walk<'a> {
    fn spend(&mut self, steps: usize) -> bool {
        let rest = self.left.checked_sub(steps);
        self.left = rest.unwrap_or(0);
        rest.is_some()
    }

    fn applies(&mut self, schema: &'a Value, value: &Value, depth: usize) -> bool {
        let Value::Object(keywords) = schema else { return self.spend(1) };
        let Some(depth) = depth.checked_sub(1) else { return false };
        let asks_for_rest = keywords.contains_key("unevaluatedProperties") || keywords.contains_key("unevaluatedItems");
        let looks = if asks_for_rest { LOOKS_FOR_THE_REST } else { 1 };
        keywords.iter().all(|(keyword, rule)| {
            self.spend(1 + length(rule))
                && (0..looks).all(|_| self.same_value(keyword, rule, value, depth))
                && match value {
                    Value::Object(fields) => self.members(keywords, keyword, rule, fields, depth),
                    Value::Array(items) => self.items(keyword, rule, items, depth),
                    Value::String(text) if keyword == "pattern" => self.spend(text.len() / TEXT_STEP),
                    _ => true,
                }
        })
    }

    /// A keyword whose schemas apply to the same value.
    fn same_value(&mut self, keyword: &str, rule: &'a Value, value: &Value, depth: usize) -> bool {
        match (keyword, rule) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                let root = self.root;
                let own = root.get("$id").and_then(Value::as_str).map_or("", |name| name.trim_end_matches('#'));
                let target = reference.strip_prefix(own).unwrap_or(reference).strip_prefix('#');
                // One that leads elsewhere is refused when the schema is compiled.
                target.and_then(|pointer| root.pointer(pointer)).is_none_or(|part| self.applies(part, value, depth))
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                parts.iter().all(|part| self.applies(part, value, depth))
            }
            ("not" | "if" | "then" | "else", part) => self.applies(part, value, depth),
            ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                parts.values().all(|part| self.applies(part, value, depth))
            }
            _ => true,
        }
    }

    /// A keyword whose schemas apply to the members of an object.
    fn members(
        &mut self,
        keywords: &'a Map<String, Value>,
        keyword: &str,
        rule: &'a Value,
        fields: &Map<String, Value>,
        depth: usize,
    ) -> bool {
        match (keyword, rule) {
            ("properties", Value::Object(parts)) => {
                fields.iter().all(|(name, field)| parts.get(name).is_none_or(|part| self.applies(part, field, depth)))
            }
            ("patternProperties", Value::Object(parts)) => parts.values().all(|part| {
                fields
                    .iter()
                    .all(|(name, field)| self.spend(name.len() / TEXT_STEP) && self.applies(part, field, depth))
            }),
            ("additionalProperties" | "unevaluatedProperties", part) => {
                let named = keywords.get("properties").and_then(Value::as_object);
                let is_named = |name: &str| named.is_some_and(|named| named.contains_key(name));
                fields.iter().all(|(name, field)| is_named(name) || self.applies(part, field, depth))
            }
            ("propertyNames", part) => fields.keys().all(|name| {
                // The text of the name has no parts, so only its length counts.
                self.spend(name.len() / TEXT_STEP) && self.applies(part, &Value::Null, depth)
            }),
            _ => true,
        }
    }

    /// A keyword whose schemas apply to the items of an array.
    fn items(&mut self, keyword: &str, rule: &'a Value, items: &[Value], depth: usize) -> bool {
        match (keyword, rule) {
            ("items" | "prefixItems", Value::Array(parts)) => {
                parts.iter().zip(items).all(|(part, item)| self.applies(part, item, depth))
            }
            ("items" | "additionalItems" | "unevaluatedItems" | "contains", part) => {
                items.iter().all(|item| self.applies(part, item, depth))
            }
            _ => true,
        }
    }
}

/// The number of entries of a rule, such as the names of `required`: the validator goes through them.
fn length(rule: &Value) -> usize {
    match rule {
        Value::Array(entries) => entries.len(),
        Value::Object(entries) => entries.len(),
        _ => 0,
    }
}
