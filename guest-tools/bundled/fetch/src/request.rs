//! From a model's arguments to a request.

use motor_sdk::http::Request;
use motor_sdk::serde_json::Value;
use motor_sdk::{Context, ToolError};

use crate::{Fetch, Method};

/// The types asked for unless the model says otherwise: those that become text best.
const ACCEPT: &str = "text/markdown, text/html;q=0.9, application/json;q=0.9, text/*;q=0.8, */*;q=0.5";

const USER_AGENT: &str = concat!("motor-cortex/", env!("CARGO_PKG_VERSION"));

/// Milliseconds before the call's end at which a silent server is given up, so that the answer says why.
const MARGIN_MS: u64 = 1_000;

/// The request that the arguments mean.
///
/// # Errors
/// If a body goes with a method that has none.
pub fn of(arguments: Fetch, context: &Context) -> Result<Request, ToolError> {
    let has_body = arguments.body.as_ref().is_some_and(|body| !body.is_null());
    let method = match arguments.method {
        Some(Method::Post) => "POST",
        _ if has_body => return Err(ToolError::bad_input("`body` needs `method` to be `POST`")),
        Some(Method::Head) => "HEAD",
        Some(Method::Get) | None => "GET",
    };
    let mut headers: Vec<(String, String)> = arguments.headers.unwrap_or_default().into_iter().collect();
    let (body, kind) = match arguments.body {
        None | Some(Value::Null) => (Vec::new(), None),
        Some(Value::String(text)) => (text.into_bytes(), Some("text/plain; charset=utf-8")),
        Some(json) => (json.to_string().into_bytes(), Some("application/json")),
    };
    let defaults = [("Accept", Some(ACCEPT)), ("User-Agent", Some(USER_AGENT)), ("Content-Type", kind)];
    for (name, value) in defaults {
        if let Some(value) = value
            && !headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name))
        {
            headers.push((name.to_owned(), value.to_owned()));
        }
    }
    let timeout_ms = (context.deadline_ms > MARGIN_MS).then(|| context.deadline_ms - MARGIN_MS);
    Ok(Request { method: method.to_owned(), url: arguments.url, headers, body, timeout_ms })
}
