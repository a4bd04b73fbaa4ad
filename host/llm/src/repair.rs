//! Tool calls that a model wrote as text (SPEC LLM-2): found where there is no doubt, else left alone or reported.
//!
//! The text is untrusted: it may hold a file or a web page that the model quotes. So a call is recovered only when the
//! text *ends* with exactly one call of a granted tool; JSON shown inside an answer, an example, a quoted tag are prose.
//! Scanning is linear and bounded.

use serde_json::{Map, Value};

use crate::{ToolSpec, nearest};

mod tags;

/// Text longer than this is not searched, in bytes: a call written as text is short.
const MAX_BYTES: usize = 256 << 10;

/// Before a call in a code fence stands at most this much prose, in bytes; more is an answer that ends with JSON.
const MAX_PROSE_BYTES: usize = 1_000;

/// What a reply's text holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Recovery {
    /// No call: the text is what the model wants to say.
    None,
    /// One call, written as text.
    Call {
        /// The granted tool it names.
        name: String,
        /// Its arguments: an object, not yet checked against the tool's schema.
        arguments: Value,
        /// The text without the call.
        text: String,
    },
    /// It looks like a call and cannot be taken for one; the reason is for the model to read.
    Ambiguous(String),
}

/// A piece of text that has the form of a call.
#[derive(Debug, Clone, PartialEq)]
enum Form {
    Call { name: String, arguments: Value },
    Broken(String),
}

/// Finds the tool call in `text`, if there is exactly one and nothing else it could mean. A bare JSON object, a JSON code
/// fence at the end, `<tool_call>`, `<function=…>` and `<invoke name="…">` are known.
#[must_use]
pub fn recover_text_calls(text: &str, tools: &[ToolSpec]) -> Recovery {
    let trimmed = text.trim();
    if tools.is_empty() || trimmed.is_empty() || trimmed.len() > MAX_BYTES {
        return Recovery::None;
    }
    let blocks = fences(trimmed);
    let tagged = tags::find(trimmed, &blocks);
    let fenced: Vec<(usize, usize, Form)> =
        blocks.iter().filter_map(|block| Some((block.start, block.end, whole(block.body, tools)?))).collect();
    match (tagged.as_slice(), fenced.as_slice()) {
        ([], []) => bare(trimmed, tools),
        ([(start, end, form)], []) => {
            let after = tags::without_wrappers(trimmed.get(*end..).unwrap_or_default());
            if !after.trim().is_empty() && matches!(form, Form::Call { .. }) {
                return Recovery::Ambiguous("text goes on after the tool call: end the message with the call".into());
            }
            decide(form, tags::without_wrappers(trimmed.get(..*start).unwrap_or_default()).trim(), tools)
        }
        ([], [(start, end, form)]) => {
            let before = trimmed.get(..*start).unwrap_or_default().trim();
            if *end < trimmed.len() || speaks_of_it(before) { Recovery::None } else { at_end(form, before, tools) }
        }
        ([], [.., (_, end, _)]) if *end < trimmed.len() => Recovery::None,
        _ => Recovery::Ambiguous("more than one tool call is written as text: call the tools instead".into()),
    }
}

fn at_end(form: &Form, before: &str, tools: &[ToolSpec]) -> Recovery {
    if before.len() > MAX_PROSE_BYTES {
        return Recovery::Ambiguous("a long text ends with what looks like a tool call: call the tool instead".into());
    }
    decide(form, before, tools)
}

fn decide(form: &Form, text: &str, tools: &[ToolSpec]) -> Recovery {
    match form {
        Form::Broken(reason) => Recovery::Ambiguous(reason.clone()),
        Form::Call { name, arguments } if granted(name, tools) => {
            Recovery::Call { name: name.clone(), arguments: arguments.clone(), text: text.to_owned() }
        }
        Form::Call { name, .. } => {
            let name = crate::cut(name, 80);
            let meant = nearest(&name, tools.iter().map(|tool| tool.name.as_str()));
            let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
            Recovery::Ambiguous(format!("a tool call written as text names `{name}`, which is no tool here{meant}"))
        }
    }
}

fn granted(name: &str, tools: &[ToolSpec]) -> bool {
    tools.iter().any(|tool| tool.name == name)
}

/// The whole text as a call, or the call its last lines are.
fn bare(text: &str, tools: &[ToolSpec]) -> Recovery {
    if let Some(form) = whole(text, tools) {
        return decide(&form, "", tools);
    }
    if text.starts_with('{') {
        let values: Vec<_> = serde_json::Deserializer::from_str(text).into_iter::<Value>().take(64).collect();
        if values.iter().flatten().filter(|value| call_form(value).is_some()).count() > 1 {
            return Recovery::Ambiguous("more than one tool call is written as text: call the tools instead".into());
        }
        let names_tool = tools.iter().any(|tool| text.contains(&format!("\"{}\"", tool.name)));
        let has_arguments = ARGUMENTS.iter().any(|key| text.contains(&format!("\"{key}\"")));
        if names_tool && has_arguments && values.iter().any(Result::is_err) {
            return Recovery::Ambiguous("a tool call is written as text and is not valid JSON".into());
        }
        return Recovery::None;
    }
    // The first line that opens an object which ends the text; a few tries keep this linear.
    for (start, _) in text.match_indices("\n{").take(8) {
        let Some(form) = text.get(start + 1..).and_then(|tail| whole(tail, tools)) else { continue };
        let before = text.get(..start).unwrap_or_default().trim();
        return if speaks_of_it(before) { Recovery::None } else { at_end(&form, before, tools) };
    }
    Recovery::None
}

const NAMES: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENTS: [&str; 5] = ["arguments", "parameters", "input", "args", "params"];

/// `text` as one call and nothing else. JSON that has a call's form by chance, like `{"name": "Ada", "input": {}}`, is
/// one only when it names a granted tool or nearly does.
fn whole(text: &str, tools: &[ToolSpec]) -> Option<Form> {
    let text = text.trim();
    if text.starts_with('<') {
        return match tags::find(text, &[]).as_slice() {
            [(start, end, form)] => {
                let rest = [text.get(..*start)?, text.get(*end..)?].map(tags::without_wrappers);
                rest.iter().all(|rest| rest.trim().is_empty()).then(|| form.clone())
            }
            _ => None,
        };
    }
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let value = match serde_json::from_str(text).ok()? {
        Value::Array(mut values) if values.len() == 1 => values.pop()?,
        value => value,
    };
    let form = call_form(&value)?;
    match &form {
        Form::Call { name, .. } if granted(name, tools) => Some(form),
        Form::Call { name, .. } => nearest(name, tools.iter().map(|tool| tool.name.as_str())).map(|_| form),
        Form::Broken(_) => Some(form),
    }
}

/// A JSON value with a name, arguments, and nothing that a call does not have.
fn call_form(value: &Value) -> Option<Form> {
    let object = value.as_object()?;
    for key in ["function", "tool_call", "function_call"] {
        if let Some(inner) = object.get(key).filter(|inner| inner.is_object()) {
            let rest = object.keys().all(|other| other == key || matches!(other.as_str(), "id" | "type"));
            return if rest { call_form(inner) } else { None };
        }
    }
    let mut name = None;
    let mut arguments = None;
    for (key, value) in object {
        if NAMES.contains(&key.as_str()) && name.is_none() {
            name = Some(value.as_str()?);
        } else if ARGUMENTS.contains(&key.as_str()) && arguments.is_none() {
            arguments = Some(value);
        } else if !matches!(key.as_str(), "id" | "type" | "call_id") {
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
    Some(Form::Call { name, arguments: Value::Object(arguments) })
}

/// Whether the words before a piece of JSON present it as something to look at, not as something to do.
fn speaks_of_it(before: &str) -> bool {
    const WORDS: [&str; 18] = [
        "example",
        "e.g.",
        "for instance",
        "such as",
        "like this",
        "looks like",
        "would look",
        "format",
        "syntax",
        "schema",
        "would you",
        "should i",
        "shall i",
        "could",
        "do not",
        "don't",
        "never",
        "instead of",
    ];
    let before = before.to_lowercase();
    WORDS.iter().any(|word| before.contains(word))
}

/// A code fence: where it stands and what is in it.
struct Fence<'a> {
    start: usize,
    end: usize,
    body: &'a str,
}

fn fences(text: &str) -> Vec<Fence<'_>> {
    const MARK: &str = "```";
    let mut found = Vec::new();
    let mut open: Option<(usize, usize)> = None;
    let mut position = 0;
    for line in text.split_inclusive('\n') {
        let start = position;
        position += line.len();
        let content = line.trim();
        match open {
            None if content.starts_with(MARK) => {
                let inner = content.trim_start_matches('`');
                match inner.strip_suffix(MARK) {
                    // Open and closed in one line: the first word may be the language.
                    Some(body) if !body.trim().is_empty() => {
                        let body = body.find(['{', '[', '<']).and_then(|at| body.get(at..)).unwrap_or(body);
                        found.push(Fence { start, end: start + line.trim_end().len(), body });
                    }
                    _ => open = Some((start, position)),
                }
            }
            Some((fence, body)) if content == MARK => {
                let body = text.get(body..start).unwrap_or_default();
                found.push(Fence { start: fence, end: start + line.trim_end().len(), body });
                open = None;
            }
            _ => {}
        }
    }
    if let Some((start, body)) = open {
        // A model that stopped before the closing mark.
        found.push(Fence { start, end: text.len(), body: text.get(body..).unwrap_or_default() });
    }
    found
}

#[cfg(test)]
mod tests;
