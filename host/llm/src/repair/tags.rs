//! Calls written with tags: `<tool_call>{…}</tool_call>`, `<function=name>…</function>`, `<invoke name="…">…</invoke>`.
//!
//! Only the tags that tool-calling models are trained on; anything else in angle brackets is text.

use serde_json::{Map, Value};

use super::{Fence, Form, call_form};

const OPENINGS: [&str; 4] = ["<tool_call>", "<function_call>", "<function=", "<invoke "];

/// Every call written with tags outside code fences and inline code: where it starts, where it ends, what it is.
pub(super) fn find(text: &str, fences: &[Fence<'_>]) -> Vec<(usize, usize, Form)> {
    let mut found = Vec::new();
    let mut position = 0;
    while let Some((start, opening)) = next_opening(text, position) {
        position = start + opening.len();
        let fence = fences.iter().find(|fence| fence.start <= start && start < fence.end);
        if let Some(fence) = fence {
            position = fence.end;
            continue;
        }
        if in_inline_code(text, start) {
            continue;
        }
        let tail = text.get(position..).unwrap_or_default();
        let parsed = match opening {
            "<function=" => named(tail, '>', "</function>"),
            "<invoke " => {
                tail.trim_start().strip_prefix("name=\"").map_or(Parsed::Prose, |rest| named(rest, '"', "</invoke>"))
            }
            "<tool_call>" => json(tail, "</tool_call>"),
            _ => json(tail, "</function_call>"),
        };
        match parsed {
            Parsed::Prose => {}
            Parsed::Form(rest, form) => {
                position = text.len() - rest.len();
                found.push((start, position, form));
            }
        }
        if found.len() > 1 {
            break;
        }
    }
    found
}

/// `text` without the tags that some models put around their calls.
pub(super) fn without_wrappers(text: &str) -> String {
    ["<function_calls>", "</function_calls>", "<tool_calls>", "</tool_calls>", "</tool_call>"]
        .iter()
        .fold(text.to_owned(), |text, wrapper| text.replace(wrapper, ""))
}

/// What follows an opening tag: the rest of the text after the call, and the call.
enum Parsed<'a> {
    Prose,
    Form(&'a str, Form),
}

fn next_opening(text: &str, from: usize) -> Option<(usize, &'static str)> {
    let tail = text.get(from..)?;
    tail.match_indices('<').find_map(|(at, _)| {
        let here = tail.get(at..)?;
        let opening = OPENINGS.iter().find(|opening| here.starts_with(**opening))?;
        Some((from + at, *opening))
    })
}

/// An odd number of back ticks before it on its line.
fn in_inline_code(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let line = before.rsplit('\n').next().unwrap_or_default();
    line.matches('`').count() % 2 == 1
}

/// JSON in a tag, or a `<function=…>` in it. A call whose closing tag is missing at the end of the text counts: the tag
/// is often the token that stops the model.
fn json<'a>(tail: &'a str, closing: &str) -> Parsed<'a> {
    let body = tail.trim_start();
    if let Some(rest) = body.strip_prefix("<function=") {
        return named(rest, '>', "</function>");
    }
    if !body.starts_with('{') {
        return Parsed::Prose;
    }
    let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
    let Some(Ok(value)) = values.next() else {
        return Parsed::Form("", Form::Broken("a tool call is written as text and is not valid JSON".into()));
    };
    let rest = body.get(values.byte_offset()..).unwrap_or_default().trim_start();
    let rest = match rest.strip_prefix(closing) {
        Some(rest) => rest,
        None if rest.is_empty() => rest,
        None => return Parsed::Form(rest, Form::Broken(format!("`{closing}` is missing after the tool call"))),
    };
    match call_form(&value) {
        Some(form) => Parsed::Form(rest, form),
        None => Parsed::Form(rest, Form::Broken("a tool call needs `name` and `arguments`, an object".into())),
    }
}

/// `NAME` up to `end_of_name`, the tag's `>`, then parameters in tags or one JSON object, then `closing`.
fn named<'a>(tail: &'a str, end_of_name: char, closing: &str) -> Parsed<'a> {
    let Some((name, rest)) = tail.split_once(end_of_name) else { return Parsed::Prose };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let name = name.trim().trim_matches('"');
    if name.is_empty() || name.len() > 128 || !name.chars().all(plain) {
        return Parsed::Prose;
    }
    let rest = if end_of_name == '>' { rest } else { rest.trim_start().strip_prefix('>').unwrap_or(rest) };
    let mut body = rest.trim_start();
    let mut arguments = Map::new();
    if body.starts_with('{') {
        let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
        match values.next() {
            Some(Ok(Value::Object(map))) => arguments = map,
            _ => return Parsed::Form("", Form::Broken(format!("the arguments of `{name}` are not valid JSON"))),
        }
        body = body.get(values.byte_offset()..).unwrap_or_default().trim_start();
    }
    while let Some((key, value, rest)) = parameter(body) {
        arguments.insert(key.to_owned(), Value::String(value.to_owned()));
        body = rest.trim_start();
    }
    let form = Form::Call { name: name.to_owned(), arguments: Value::Object(arguments) };
    match body.strip_prefix(closing) {
        Some(rest) => Parsed::Form(rest, form),
        None if body.is_empty() && !rest.trim().is_empty() => Parsed::Form(body, form),
        None => Parsed::Form(
            body,
            Form::Broken(format!("the call of `{name}` written as text does not end with `{closing}`")),
        ),
    }
}

/// `<parameter=key>value</parameter>` or `<parameter name="key">value</parameter>`. One line break on either side of the
/// value belongs to the tags.
fn parameter(body: &str) -> Option<(&str, &str, &str)> {
    let rest = body.strip_prefix("<parameter")?;
    let (key, rest) = match rest.strip_prefix('=') {
        Some(rest) => rest.split_once('>')?,
        None => rest.trim_start().strip_prefix("name=\"")?.split_once("\">")?,
    };
    let (value, rest) = rest.split_once("</parameter>")?;
    let value = value.strip_prefix('\n').unwrap_or(value);
    Some((key.trim(), value.strip_suffix('\n').unwrap_or(value), rest))
}
