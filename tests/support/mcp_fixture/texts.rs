//! Results with values of the call in their texts: `{path}`, where a path is names and positions with dots between them.

use rmcp::ErrorData;
use rmcp::model::InputResponses;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The arguments of a call together with the answers to its requests, by name.
pub(super) fn merge(mut arguments: Value, answers: InputResponses) -> Value {
    if let Value::Object(arguments) = &mut arguments {
        arguments.extend(answers);
    }
    arguments
}

/// The whole result of a request, with its texts filled.
///
/// # Errors
/// If it is not a result of this kind.
pub(super) fn result<T: DeserializeOwned>(template: &Value, scope: &Value) -> Result<T, ErrorData> {
    let mut template = template.clone();
    // Required by 2026-07-28; rmcp leaves it out for clients of earlier versions.
    template["resultType"] = "complete".into();
    filled(&template, scope)
}

/// A value whose texts are filled.
///
/// # Errors
/// If it is not a result of this kind.
pub(super) fn filled<T: DeserializeOwned>(template: &Value, scope: &Value) -> Result<T, ErrorData> {
    serde_json::from_value(fill(template, scope)).map_err(|error| ErrorData::internal_error(error.to_string(), None))
}

/// A copy of a value whose texts are filled.
pub(super) fn fill(template: &Value, scope: &Value) -> Value {
    match template {
        Value::String(text) => fill_text(text, scope).into(),
        Value::Array(items) => items.iter().map(|item| fill(item, scope)).collect(),
        Value::Object(fields) => fields.iter().map(|(name, field)| (name.clone(), fill(field, scope))).collect(),
        other => other.clone(),
    }
}

/// A brace that begins no path stays: texts may be JSON.
fn fill_text(text: &str, scope: &Value) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        match after.split_once('}').and_then(|(path, tail)| Some((find(scope, path)?, tail))) {
            Some((value, tail)) => {
                out.push_str(&value);
                rest = tail;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out + rest
}

fn find(scope: &Value, path: &str) -> Option<String> {
    let step = |value: &Value, name: &str| match value {
        Value::Array(items) => items.get(name.parse::<usize>().ok()?).cloned(),
        other => other.get(name).cloned(),
    };
    let found = path.split('.').try_fold(scope.clone(), |value, name| step(&value, name))?;
    Some(found.as_str().map_or_else(|| found.to_string(), ToOwned::to_owned))
}
