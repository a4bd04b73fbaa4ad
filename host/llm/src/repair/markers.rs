//! The formats in which models are trained to write calls, as their chat templates have them.
//!
//! A server that does not know a model's format passes the call on as text. Each format begins with a marker that
//! occurs in no ordinary text except one about the format. Every reader looks ahead a bounded distance before it
//! commits itself.

use serde_json::{Map, Value};

use super::value;
use super::{CallForm, MAX_CALLS, TextCall};

/// The longest name of a tool, and the longest header before a call's arguments, in bytes.
const MAX_HEAD: usize = 256;

const NOT_JSON: &str = "a tool call is written as text and is not valid JSON";

/// The rest of the text after the calls, and the calls; `None` if the marker is only mentioned.
type MarkerRead<'a> = Option<(&'a str, CallForm)>;

/// The beginning of a call.
pub(super) struct Marker {
    pub(super) opening: &'static str,
    /// Reads the text after the opening.
    pub(super) read: for<'a> fn(&'a str) -> MarkerRead<'a>,
}

impl Marker {
    pub(super) fn opens(&self, text: &str) -> bool {
        text.starts_with(self.opening)
    }
}

/// All known formats of calls.
pub(super) const MARKERS: [Marker; 12] = [
    // Hermes, Qwen (JSON, or `<function=…>` in it), GLM (`<arg_key>` in it).
    Marker { opening: "<tool_call>", read: |text| tagged(text, "</tool_call>") },
    Marker { opening: "<function_call>", read: |text| tagged(text, "</function_call>") },
    // Llama 3.1 (JSON behind it), Qwen3-Coder (`<parameter=…>` behind it).
    Marker { opening: "<function=", read: |text| named(text, '>', "</function>") },
    // Claude's XML, MiniMax, DeepSeek V3.2.
    Marker { opening: "<invoke ", read: |text| named(text.trim_start().strip_prefix("name=\"")?, '"', "</invoke>") },
    // Mistral: a list, or `name[ARGS]{…}`.
    Marker { opening: "[TOOL_CALLS]", read: mistral },
    // Llama 3: objects with `parameters`, separated by `;`.
    Marker { opening: "<|python_tag|>", read: python_tag },
    // Granite, Phi-4.
    Marker { opening: "<|tool_call|>", read: |text| listed(text, "<|/tool_call|>") },
    Marker { opening: "<|tool_calls|>", read: |text| listed(text, "<|/tool_calls|>") },
    // Cohere.
    Marker { opening: "<|START_ACTION|>", read: |text| listed(text, "<|END_ACTION|>") },
    // DeepSeek: `function<sep>name` and JSON in a code block, or since V3.1 `name<sep>{…}`.
    Marker {
        opening: "<｜tool▁call▁begin｜>", read: |text| headed(text, "<｜tool▁sep｜>", "<｜tool▁call▁end｜>")
    },
    // Kimi K2.
    Marker {
        opening: "<|tool_call_begin|>",
        read: |text| headed(text, "<|tool_call_argument_begin|>", "<|tool_call_end|>"),
    },
    // gpt-oss: a message of the harmony format with a recipient.
    Marker { opening: "<|channel|>", read: harmony },
];

/// Tags around calls, and at the end of a message. Also openings whose readers leave the closing tag behind.
const WRAPPERS: [&str; 21] = [
    "<function_calls>",
    "</function_calls>",
    "<tool_calls>",
    "</tool_calls>",
    "</tool_call>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<|/tool_call|>",
    "<|END_ACTION|>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁calls▁end｜>",
    "<｜end▁of▁sentence｜>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|call|>",
    "<|end|>",
    "<|eom_id|>",
    "<|eot_id|>",
    "<|im_end|>",
    "[/TOOL_CALLS]",
    "</s>",
];

/// `text` without the tags that some models put around their calls.
pub(super) fn without_wrappers(text: &str) -> String {
    WRAPPERS.iter().fold(text.to_owned(), |text, wrapper| text.replace(wrapper, ""))
}

/// Whether the text begins with a marker or a wrapper of calls, and has likely arguments.
pub(super) fn begins_call(text: &str) -> bool {
    let opens =
        MARKERS.iter().any(|marker| marker.opens(text)) || WRAPPERS.iter().any(|wrapper| text.starts_with(wrapper));
    opens && text.contains(['{', '('])
}

/// The part of `text` before `end`, if it is short, and the part after it.
fn head<'a>(text: &'a str, end: &str) -> Option<(&'a str, &'a str)> {
    text.get(..text.floor_char_boundary(MAX_HEAD + end.len()))?
        .find(end)
        .map(|at| text.split_at(at))
        .map(|(head, rest)| (head, rest.strip_prefix(end).unwrap_or(rest)))
}

/// The name at the beginning of `text`, and the rest.
fn name(text: &str) -> Option<(&str, &str)> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    let window = text.get(..text.floor_char_boundary(MAX_HEAD))?;
    let length = window.find(|c| !plain(c)).unwrap_or(window.len());
    (1..MAX_HEAD).contains(&length).then(|| text.split_at(length))
}

fn one(name: &str, arguments: Map<String, Value>) -> CallForm {
    Ok(vec![TextCall { name: name.to_owned(), arguments: Value::Object(arguments) }])
}

/// An unreadable call: it ends with the closing tag, or with the text.
fn broken<'a>(text: &'a str, closing: &str, reason: impl Into<String>) -> MarkerRead<'a> {
    Some((text.split_once(closing).map_or("", |(_, rest)| rest), Err(reason.into())))
}

/// JSON in a tag, or parameters in tags of their own.
fn tagged<'a>(text: &'a str, closing: &str) -> MarkerRead<'a> {
    let body = text.trim_start();
    if let Some(rest) = body.strip_prefix("<function=") {
        return named(rest, '>', "</function>");
    }
    if body.starts_with(['{', '[']) { listed(body, closing) } else { keyed(body, closing) }
}

/// One JSON call, a list of calls, or several of either. A call whose closing tag is missing at the end of the text
/// counts: the tag is often the token that stops the model.
fn listed<'a>(text: &'a str, closing: &str) -> MarkerRead<'a> {
    let separated = |rest: &'a str| rest.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, ';' | ','));
    let mut body = text.trim_start();
    if !body.starts_with(['{', '[']) {
        return None;
    }
    let mut calls = Vec::new();
    while body.starts_with(['{', '[']) && !body.starts_with("[TOOL_CALLS]") && calls.len() <= MAX_CALLS {
        let Some((value, rest)) = value::first(body) else { return broken(body, closing, NOT_JSON) };
        let Some(some) = value::call(&value) else {
            return broken(rest, closing, "a tool call needs `name` and `arguments`, an object");
        };
        calls.extend(some);
        body = separated(rest);
    }
    match body.strip_prefix(closing) {
        Some(rest) => Some((rest, Ok(calls))),
        None if body.is_empty() || !closing.starts_with("</") => Some((body, Ok(calls))),
        None => Some((body, Err(format!("`{closing}` is missing after the tool call")))),
    }
}

/// A name, the JSON object of its arguments, and `closing`, which may be missing.
fn with_object<'a>(name: &str, text: &'a str, closing: &str) -> MarkerRead<'a> {
    match value::first(text) {
        Some((Value::Object(arguments), rest)) => {
            let rest = rest.trim_start();
            Some((rest.strip_prefix(closing).unwrap_or(rest), one(name, arguments)))
        }
        _ => broken(text, closing, format!("the arguments of `{name}` are not valid JSON")),
    }
}

/// `NAME` up to `end_of_name`, then parameters in tags or one JSON object, then `closing`.
fn named<'a>(text: &'a str, end_of_name: char, closing: &str) -> MarkerRead<'a> {
    let (head, rest) = head(text, end_of_name.encode_utf8(&mut [0; 4]))?;
    let (name, "") = name(head.trim().trim_matches('"'))? else { return None };
    let rest = if end_of_name == '>' { rest } else { rest.trim_start().strip_prefix('>').unwrap_or(rest) };
    let mut body = rest.trim_start();
    let mut arguments = Map::new();
    if body.starts_with('{') {
        match value::first(body) {
            Some((Value::Object(map), rest)) => (arguments, body) = (map, rest.trim_start()),
            _ => return broken(body, closing, format!("the arguments of `{name}` are not valid JSON")),
        }
    }
    while let Some((key, value, rest)) = parameter(body) {
        arguments.insert(key.to_owned(), Value::String(value.to_owned()));
        body = rest.trim_start();
    }
    match body.strip_prefix(closing) {
        Some(rest) => Some((rest, one(name, arguments))),
        None if body.is_empty() && !rest.trim().is_empty() => Some((body, one(name, arguments))),
        None => broken(body, closing, format!("the call of `{name}` written as text does not end with `{closing}`")),
    }
}

/// `<parameter=key>value</parameter>` or `<parameter name="key" …>value</parameter>`. One line break on either side of
/// the value belongs to the tags.
fn parameter(text: &str) -> Option<(&str, &str, &str)> {
    let rest = text.strip_prefix("<parameter")?;
    let (key, rest) = match rest.strip_prefix('=') {
        Some(rest) => head(rest, ">")?,
        None => {
            let (key, rest) = head(rest.trim_start().strip_prefix("name=\"")?, "\"")?;
            (key, head(rest, ">")?.1)
        }
    };
    let (value, rest) = rest.split_once("</parameter>")?;
    let value = value.strip_prefix('\n').unwrap_or(value);
    Some((key.trim(), value.strip_suffix('\n').unwrap_or(value), rest))
}

/// GLM: a name on a line, then `<arg_key>key</arg_key><arg_value>value</arg_value>` for each argument.
fn keyed<'a>(text: &'a str, closing: &str) -> MarkerRead<'a> {
    let (name, rest) = name(text)?;
    let mut body = rest.trim_start();
    let mut arguments = Map::new();
    while let Some(rest) = body.strip_prefix("<arg_key>") {
        let pair = head(rest, "</arg_key>")
            .and_then(|(key, rest)| Some((key, rest.trim_start().strip_prefix("<arg_value>")?)))
            .and_then(|(key, rest)| Some((key, rest.split_once("</arg_value>")?)));
        let Some((key, (value, rest))) = pair else {
            return broken(body, closing, format!("the arguments of `{name}` cannot be read"));
        };
        arguments.insert(key.trim().to_owned(), Value::String(value.to_owned()));
        body = rest.trim_start();
    }
    match body.strip_prefix(closing) {
        Some(rest) => Some((rest, one(name, arguments))),
        None if body.is_empty() && !arguments.is_empty() => Some((body, one(name, arguments))),
        None if arguments.is_empty() => None,
        None => broken(body, closing, format!("the call of `{name}` written as text does not end with `{closing}`")),
    }
}

fn mistral(text: &str) -> MarkerRead<'_> {
    let body = text.trim_start();
    if body.starts_with(['{', '[']) {
        return listed(body, "[/TOOL_CALLS]");
    }
    let (name, rest) = name(body)?;
    let rest = match rest.strip_prefix("[CALL_ID]").map(self::name) {
        Some(id) => id?.1,
        None => rest,
    };
    let rest = rest.strip_prefix("[ARGS]").unwrap_or(rest).trim_start();
    if rest.starts_with('{') { with_object(name, rest, "[/TOOL_CALLS]") } else { None }
}

fn python_tag(text: &str) -> MarkerRead<'_> {
    let body = text.trim_start();
    if let Some((name, rest)) = name(body)
        && rest.starts_with('(')
    {
        let name = name.strip_suffix(".call").unwrap_or(name);
        return broken(rest, "<|eom_id|>", format!("the call of `{name}` is written as a program"));
    }
    listed(body, "<|eom_id|>")
}

/// A name, `separator`, and a JSON object, possibly in a code block; `function` in place of the name if the name is
/// after the separator.
fn headed<'a>(text: &'a str, separator: &str, closing: &str) -> MarkerRead<'a> {
    let (before, rest) = head(text, separator)?;
    let (name, rest) = match before.trim() {
        "function" => name(rest)?,
        name => (name, rest),
    };
    let rest = rest.trim_start();
    let rest = rest.strip_prefix("```").map_or(rest, |rest| rest.strip_prefix("json").unwrap_or(rest)).trim_start();
    let (tail, form) = with_object(name, rest, "```")?;
    let tail = tail.trim_start();
    if form.is_err() {
        return broken(rest, closing, format!("the arguments of `{name}` are not valid JSON"));
    }
    Some((tail.strip_prefix(closing).unwrap_or(tail), form))
}

fn harmony(text: &str) -> MarkerRead<'_> {
    let (header, rest) = head(text, "<|message|>")?;
    let (_, recipient) = header.split_once("to=")?;
    let (name, _) = name(recipient)?;
    with_object(name, rest.trim_start(), "<|call|>")
}
