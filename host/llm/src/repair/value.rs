//! A call as one JSON value, in the shapes in which models write it.

use serde_json::{Map, Value};

use super::TextCall;

const NAMES: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "input", "args", "params"];

/// The JSON value at the beginning of `text`, and the rest.
pub(super) fn first(text: &str) -> Option<(Value, &str)> {
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = values.next()?.ok()?;
    Some((value, text.get(values.byte_offset()..)?))
}

/// The first `max` JSON values of `text`, and whether the text consists only of them.
pub(super) fn objects(text: &str, max: usize) -> (Vec<Value>, bool) {
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>().take(max) {
        match value {
            Ok(value) => values.push(value),
            Err(_) => return (values, false),
        }
    }
    (values, true)
}

/// Whether `text` has a key that only the arguments of a call have.
pub(super) fn has_call_keys(text: &str) -> bool {
    ARGUMENTS.iter().any(|key| text.contains(&format!("\"{key}\"")))
}

/// A JSON value as calls: an object with a name, arguments and no other keys than those of calls; or a list of such.
pub(super) fn call(value: &Value) -> Option<Vec<TextCall>> {
    if let Value::Array(values) = value {
        return if values.is_empty() { None } else { values.iter().map(one).collect() };
    }
    if let Some(Value::Array(_)) =
        value.get("tool_calls").filter(|_| value.as_object().is_some_and(|map| map.len() == 1))
    {
        return call(value.get("tool_calls")?);
    }
    Some(vec![one(value)?])
}

fn one(value: &Value) -> Option<TextCall> {
    const OTHERS: [&str; 5] = ["id", "type", "call_id", "tool_call_id", "index"];
    let object = value.as_object()?;
    for key in ["function", "tool_call", "function_call"] {
        if let Some(inner) = object.get(key).filter(|inner| inner.is_object()) {
            let rest = object.keys().all(|other| other == key || OTHERS.contains(&other.as_str()));
            return if rest { one(inner) } else { None };
        }
    }
    let mut name = None;
    let mut arguments = None;
    for (key, value) in object {
        if NAMES.contains(&key.as_str()) && name.is_none() {
            name = Some(value.as_str()?);
        } else if ARGUMENTS.contains(&key.as_str()) && arguments.is_none() {
            arguments = Some(value);
        } else if !OTHERS.contains(&key.as_str()) {
            return None;
        }
    }
    let name = name?.to_owned();
    let arguments = match arguments? {
        Value::Object(map) => map.clone(),
        Value::Null => Map::new(),
        Value::String(text) => match serde_json::from_str(text) {
            Ok(Value::Object(map)) => map,
            _ => return None,
        },
        _ => return None,
    };
    Some(TextCall { name, arguments: Value::Object(arguments) })
}
