//! From a model's JSON to an author's struct, with errors a model can act on. The JSON is untrusted: any text at all.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::{ToolError, nearest::nearest, schema};

/// A quoted name longer than this is cut, so that an error stays one sentence.
const LONGEST_NAME_CHARS: usize = 64;

/// Reads the arguments of a tool.
///
/// # Errors
/// `bad-input` that names the argument which is unknown, absent or of the wrong type, and the right form.
pub(crate) fn read<A: DeserializeOwned>(tool: &str, schema: &Value, text: &str) -> Result<A, ToolError> {
    let value: Value = serde_json::from_str(text)
        .map_err(|error| ToolError::bad_input(format!("the arguments are not JSON: {error}")))?;
    let Value::Object(object) = &value else {
        return Err(ToolError::bad_input(format!("the arguments must be a JSON object; {}", takes(tool, schema))));
    };
    let names = schema::names(schema);
    if schema::is_closed(schema)
        && let Some(unknown) = object.keys().find(|name| !names.contains(&name.as_str()))
    {
        let shown = cut(unknown);
        let meant = nearest(unknown, names).map(|name| format!(", did you mean `{name}`?")).unwrap_or_default();
        return Err(ToolError::bad_input(format!("unknown argument `{shown}`{meant}; {}", takes(tool, schema))));
    }
    if let Some(name) = schema::absent(schema, object).first() {
        return Err(ToolError::bad_input(format!("the argument `{name}` is missing; {}", takes(tool, schema))));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let place = error.path().to_string();
        let reason = cut_to(&error.inner().to_string(), 300);
        if place == "." {
            ToolError::bad_input(format!("the arguments are wrong: {reason}"))
        } else {
            ToolError::bad_input(format!("the argument `{}` is wrong: {reason}", cut(&place)))
        }
    })
}

fn takes(tool: &str, schema: &Value) -> String {
    let names = schema::names(schema);
    if names.is_empty() {
        return format!("`{tool}` takes no arguments");
    }
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    format!("`{tool}` takes {}", names.join(", "))
}

fn cut(name: &str) -> String {
    cut_to(name, LONGEST_NAME_CHARS)
}

fn cut_to(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Sample {
        path: String,
        limit: Option<u32>,
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let shown = match read::<Sample>("read", &schema::of::<Sample>(), text) {
            Ok(sample) => format!("{} {:?}", sample.path, sample.limit),
            Err(ToolError::BadInput(sentence)) => sentence,
            Err(other) => panic!("wrong kind of error: {other:?}"),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn reads_good_arguments() {
        check(r#"{"path":"a"}"#, "a None");
        check(r#"{"path":"a","limit":null}"#, "a None");
        check(r#"{"limit":3,"path":"ü"}"#, "ü Some(3)");
    }

    #[test]
    fn names_the_right_argument() {
        check(r#"{"paht":"a"}"#, "unknown argument `paht`, did you mean `path`?; `read` takes `path`, `limit`");
        check(r#"{"path":"a","x":1}"#, "unknown argument `x`; `read` takes `path`, `limit`");
        check("{}", "the argument `path` is missing; `read` takes `path`, `limit`");
        check(r#"{"path":7}"#, "the argument `path` is wrong: invalid type: integer `7`, expected a string");
        check(r#"{"path":"a","limit":-1}"#, "the argument `limit` is wrong: invalid value: integer `-1`, expected u32");
    }

    #[test]
    fn survives_what_is_not_an_object() {
        check("[]", "the arguments must be a JSON object; `read` takes `path`, `limit`");
        check("", "the arguments are not JSON: EOF while parsing a value at line 1 column 0");
        check(&"[".repeat(100_000), "the arguments are not JSON: recursion limit exceeded at line 1 column 128");
        let long = "y".repeat(100_000);
        let expected = format!("unknown argument `{}…`; `read` takes `path`, `limit`", "y".repeat(64));
        check(&format!("{{\"{long}\":1}}"), &expected);
    }
}
