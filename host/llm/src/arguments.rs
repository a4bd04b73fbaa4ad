//! Arguments of a tool call against the tool's schema (SPEC LLM-2): valid arguments pass untouched, obvious slips are
//! mended, and the rest comes back as a sentence that explains how to call the tool.
//!
//! Both sides are untrusted: the schema comes with a component, the value from a model. Validation never resolves a
//! reference to a file or a host, patterns are linear, and depth, size and steps are bounded.

mod work;

use base::text::{cut, did_you_mean, nearest};
use jsonschema::error::ValidationErrorKind;
use serde_json::{Map, Value};

/// Maximum depth of mending: a deeper mismatch is not a slip.
const MAX_DEPTH: usize = 16;

/// The largest schema that is compiled, in bytes of JSON.
const MAX_SCHEMA_BYTES: usize = 256 << 10;

/// The largest regular expression of a schema, in bytes of its compiled form.
const MAX_PATTERN_BYTES: usize = 4 << 20;

/// Maximum number of problems reported at once.
const MAX_PROBLEMS: usize = 5;

/// Checks `value` against `schema`. A valid value is returned unchanged; otherwise obvious slips are mended (`"5"` for
/// 5, `"true"` for true, one value for a list of one, JSON in a string for an object or list, null for an optional
/// parameter).
///
/// # Errors
/// One sentence for the model: the mismatch, the parameter that was probably meant, the required ones.
pub fn check_arguments(schema: &Value, value: Value) -> Result<Value, String> {
    bounded(schema, &value)?;
    let validator = compile(schema)?;
    if validator.is_valid(&value) {
        return Ok(value);
    }
    let mended = mend(schema, schema, value, MAX_DEPTH);
    // Mending reads JSON in strings, so there may be more to check now.
    bounded(schema, &mended)?;
    if validator.is_valid(&mended) {
        return Ok(mended);
    }
    Err(explain(&validator, schema, &mended))
}

fn bounded(schema: &Value, value: &Value) -> Result<(), String> {
    match work::is_bounded(schema, value) {
        true => Ok(()),
        false => Err("checking these arguments by the tool's schema takes too many steps: send fewer values, or nest \
                      them less deeply"
            .to_owned()),
    }
}

fn compile(schema: &Value) -> Result<jsonschema::Validator, String> {
    // Writing JSON to a string only fails for keys that are not strings, which `Value` does not have.
    if serde_json::to_string(schema).unwrap_or_default().len() > MAX_SCHEMA_BYTES {
        return Err(format!("the tool's schema is larger than {} KiB", MAX_SCHEMA_BYTES >> 10));
    }
    jsonschema::options()
        .offline()
        .with_pattern_options(jsonschema::PatternOptions::regex().size_limit(MAX_PATTERN_BYTES))
        .build(schema)
        .map_err(|error| format!("the tool's schema is not valid: {}", cut(&error.to_string(), 200)))
}

/// Resolves a reference within the schema itself; any other stays unresolved and mends nothing.
fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        let Some(pointer) = schema.get("$ref").and_then(Value::as_str).and_then(|text| text.strip_prefix('#')) else {
            break;
        };
        match root.pointer(pointer) {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

fn allows(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    }
}

/// The value with its slips mended, where the schema is unambiguous.
fn mend(root: &Value, schema: &Value, value: Value, depth: usize) -> Value {
    let schema = resolve(root, schema);
    if depth == 0 {
        return value;
    }
    let value = convert(schema, value);
    match value {
        Value::Object(map) => Value::Object(mend_object(root, schema, map, depth)),
        Value::Array(items) => match schema.get("items") {
            Some(item) => Value::Array(items.into_iter().map(|one| mend(root, item, one, depth - 1)).collect()),
            None => Value::Array(items),
        },
        other => other,
    }
}

fn mend_object(root: &Value, schema: &Value, map: Map<String, Value>, depth: usize) -> Map<String, Value> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let required = names(schema, "required");
    let mut mended = Map::new();
    for (key, value) in map {
        match properties.and_then(|properties| properties.get(&key)) {
            // `null` for "I do not set this" is how strict modes write an optional parameter.
            Some(property)
                if value.is_null() && !required.contains(&key.as_str()) && !allows(resolve(root, property), "null") => {
            }
            Some(property) => {
                mended.insert(key, mend(root, property, value, depth - 1));
            }
            None => {
                mended.insert(key, value);
            }
        }
    }
    mended
}

/// Converts one value if the schema wants another type and there is only one way to read it.
fn convert(schema: &Value, value: Value) -> Value {
    let kind = match &value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let wants = |kind| allows(schema, kind);
    if schema.get("type").is_none() || wants(kind) {
        return value;
    }
    match &value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0 && float.abs() < 9e15);
            if wants("integer") {
                // 5.0 where an integer is wanted is valid JSON Schema; it is left alone.
                return value;
            }
            if wants("string") && whole.is_some() {
                return Value::String(number.to_string());
            }
        }
        Value::String(text) => {
            let text = text.trim();
            if wants("integer")
                && let Ok(number) = text.parse::<i64>()
            {
                return number.into();
            }
            if wants("number")
                && let Some(number) = text.parse::<f64>().ok().and_then(serde_json::Number::from_f64)
            {
                return text.parse::<i64>().map_or(Value::Number(number), Value::from);
            }
            if wants("boolean")
                && let Ok(flag) = text.to_ascii_lowercase().parse::<bool>()
            {
                return flag.into();
            }
            if wants("object") || wants("array") {
                match serde_json::from_str::<Value>(text) {
                    Ok(inner @ Value::Object(_)) if wants("object") => return inner,
                    Ok(inner @ Value::Array(_)) if wants("array") => return inner,
                    _ if text.is_empty() && wants("object") => return Value::Object(Map::new()),
                    _ => {}
                }
            }
        }
        Value::Null if wants("object") => return Value::Object(Map::new()),
        _ => {}
    }
    if wants("array") && !value.is_null() { Value::Array(vec![value]) } else { value }
}

fn names<'a>(schema: &'a Value, key: &str) -> Vec<&'a str> {
    schema.get(key).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The problems of the value, and the correct form.
fn explain(validator: &jsonschema::Validator, schema: &Value, value: &Value) -> String {
    let schema = resolve(schema, schema);
    let known: Vec<&str> = schema
        .get("properties")
        .and_then(Value::as_object)
        .map(|properties| properties.keys().map(String::as_str).collect())
        .unwrap_or_default();
    let required = names(schema, "required");
    let given = value.as_object();
    let mut problems: Vec<String> = Vec::new();
    for key in given.into_iter().flat_map(Map::keys).filter(|key| !known.is_empty() && !known.contains(&key.as_str())) {
        let free = known.iter().filter(|name| given.is_some_and(|given| !given.contains_key(**name)));
        let meant = did_you_mean(nearest(key, free.map(|name| (*name, name))));
        problems.push(format!("unknown parameter `{}`{meant}", cut(key, 80)));
    }
    let missing: Vec<_> = match given {
        Some(given) => {
            required.iter().filter(|name| !given.contains_key(**name)).map(|name| format!("`{name}`")).collect()
        }
        None => Vec::new(),
    };
    if !missing.is_empty() {
        problems.push(format!("missing: {}", missing.join(", ")));
    }
    // Names beside a `$ref` are not found above, and only the validator knows them.
    let has_names = !problems.is_empty();
    for error in validator.iter_errors(value).take(MAX_PROBLEMS) {
        let at_top = error.instance_path().as_str().is_empty();
        // Names at the top level are reported above, in better words.
        let about_names = matches!(
            error.kind(),
            ValidationErrorKind::Required { .. } | ValidationErrorKind::AdditionalProperties { .. }
        );
        if at_top && about_names && has_names {
            continue;
        }
        let place = error.instance_path().as_str().trim_start_matches('/').replace('/', ".");
        let place = if at_top { "the arguments".to_owned() } else { format!("`{}`", cut(&place, 80)) };
        problems.push(format!("{place}: {}", cut(&error.masked().to_string(), 200)));
    }
    problems.truncate(MAX_PROBLEMS);
    let optional: Vec<_> =
        known.iter().filter(|name| !required.contains(*name)).map(|name| format!("`{name}`")).collect();
    let required: Vec<_> = required.iter().map(|name| format!("`{name}`")).collect();
    let mut text = problems.join("; ");
    for (label, names) in [("required", required), ("optional", optional)] {
        if !names.is_empty() {
            text.push_str(&format!(". {label}: {}", cut(&names.join(", "), 300)));
        }
    }
    text
}

#[cfg(test)]
mod tests;
