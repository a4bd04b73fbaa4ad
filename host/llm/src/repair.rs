//! Tool calls that a model wrote as text (SPEC LLM-2): recovered if unambiguous, otherwise left alone or reported.
//!
//! The text is untrusted: it may quote a file or a web page. So calls are recovered only if the text *ends* with them
//! and they name granted tools; JSON within an answer, an example and a quoted marker are prose. Time is linear in the
//! text.

use base::text::{cut, did_you_mean, nearest};

use crate::ToolSpec;

mod json;
mod markers;
mod reasoning;
mod scan;
mod value;

pub use reasoning::{ReasoningFilter, take_reasoning};

use json::whole;
use scan::{FoundCall, scan};
use value::{has_call_keys, objects};

/// With more prose than this around it, in bytes, a call in a code block is an example in an answer.
const MAX_PROSE_BYTES: usize = 1_000;

/// More calls than this in one text are not recovered.
const MAX_CALLS: usize = 64;

/// Advice for a model that wrote text after its call, in most cases an imagined result.
const GOES_ON: &str = "text goes on after the tool call: end the message with the call";
const MORE_THAN_ONE: &str = "more than one tool call is written as text: call the tools instead";

/// The calls in a reply's text.
#[derive(Debug, Clone, PartialEq)]
pub enum Recovery {
    /// No call: the text is the model's answer.
    None,
    /// Calls written as text.
    Calls {
        /// The calls, in order; at least one.
        calls: Vec<TextCall>,
        /// The text without the calls.
        text: String,
    },
    /// It looks like a call but is ambiguous; the reason is for the model to read.
    Ambiguous(String),
}

/// A call written as text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCall {
    /// Name of the granted tool.
    pub name: String,
    /// Its arguments: an object, not yet checked against the tool's schema.
    pub arguments: serde_json::Value,
}

/// The calls in a text, or the reason they are unreadable, for the model.
type CallForm = Result<Vec<TextCall>, String>;

/// Finds the tool calls in `text`, if it ends with them and they are unambiguous. Known are a bare JSON object or list,
/// a JSON code block, and the formats in which models are trained to write calls: those of `repair/markers.rs`.
/// Reasoning must be removed first: [`take_reasoning`].
#[must_use]
pub fn recover_text_calls(text: &str, tools: &[ToolSpec]) -> Recovery {
    let text = text.trim();
    if tools.is_empty() || text.is_empty() {
        return Recovery::None;
    }
    // DeepSeek V3.2 marks each tag of its calls.
    let plain = text.contains("｜DSML｜").then(|| text.replace("｜DSML｜", ""));
    let text = plain.as_deref().unwrap_or(text);
    let (marked, blocks) = scan(text);
    // A format within a code block that does not end the text is shown, not used.
    let is_last = |end: usize| text.get(end..).unwrap_or_default().trim().is_empty();
    let fenced: Vec<FoundCall> = blocks
        .iter()
        .filter(|block| block.body.trim_start().starts_with(['{', '[']) || is_last(block.end))
        .filter_map(|block| Some(FoundCall { start: block.start, end: block.end, form: whole(block.body, tools)? }))
        .collect();
    let behind_markers = decide_marked(text, &marked, tools);
    match (behind_markers, fenced.as_slice()) {
        (Recovery::None, []) if marked.is_empty() => bare(text, tools),
        (Recovery::None, [one]) => unmarked(text, one, tools),
        (Recovery::None, [first, .., last]) => {
            let all = FoundCall { start: first.start, end: last.end, form: Err(MORE_THAN_ONE.into()) };
            unmarked(text, &all, tools)
        }
        (decided, []) => decided,
        _ => Recovery::Ambiguous(MORE_THAN_ONE.into()),
    }
}

/// The granted tool that `name` means, also with a namespace before it (`functions.read`) or a number after it
/// (`functions.read:0`), as some models write.
#[must_use]
pub fn granted_name<'a>(name: &str, tools: &'a [ToolSpec]) -> Option<&'a str> {
    const NAMESPACES: [&str; 6] = ["functions.", "function.", "tools.", "tool.", "default_api.", "api."];
    let find = |name: &str| tools.iter().map(|tool| tool.name.as_str()).find(|known| *known == name);
    let unnumbered = || match name.rsplit_once(':') {
        Some((name, number)) if number.bytes().all(|byte| byte.is_ascii_digit()) => name,
        _ => name,
    };
    let short = || NAMESPACES.iter().find_map(|namespace| unnumbered().strip_prefix(namespace));
    find(name).or_else(|| find(unnumbered())).or_else(|| find(short()?))
}

/// Whether `name` is a granted tool or nearly is.
fn means_tool(name: &str, tools: &[ToolSpec]) -> bool {
    granted_name(name, tools).is_some() || near_tool(&cut(name, 80), tools).is_some()
}

fn near_tool<'a>(name: &str, tools: &'a [ToolSpec]) -> Option<&'a str> {
    nearest(name, tools.iter().map(|tool| (tool.name.as_str(), tool.name.as_str())))
}

/// Decides about calls after markers, outside of code.
fn decide_marked(text: &str, found: &[FoundCall], tools: &[ToolSpec]) -> Recovery {
    let between = |start: usize, end: usize| markers::without_wrappers(text.get(start..end).unwrap_or_default());
    let (Some(first), Some(last)) = (found.first(), found.last()) else { return Recovery::None };
    let before = between(0, first.start);
    let goes_on = !between(last.end, text.len()).trim().is_empty();
    if goes_on && !found.iter().any(|found| concerns(text, found, tools)) {
        // A text about the format, with an example of a foreign tool.
        return Recovery::None;
    }
    if found.len() > MAX_CALLS {
        return Recovery::Ambiguous(too_many());
    }
    if let Some(reason) = found.iter().find_map(|found| found.form.as_ref().err()) {
        return Recovery::Ambiguous(reason.clone());
    }
    if goes_on {
        return Recovery::Ambiguous(GOES_ON.into());
    }
    let mut pairs = found.iter().zip(found.iter().skip(1));
    if pairs.any(|(one, next)| !between(one.end, next.start).trim().is_empty()) {
        return Recovery::Ambiguous("text stands between the tool calls: end the message with all of them".into());
    }
    let last_line = before.trim_end().lines().next_back().unwrap_or_default().to_lowercase();
    if last_line.ends_with(':') && (contains(&last_line, &EXAMPLES) || contains(&last_line, &DOUBTS)) {
        return Recovery::Ambiguous("the tool call may be an example: put examples into a code block".into());
    }
    decide(found.iter().flat_map(|found| found.form.iter().flatten()), before.trim(), tools)
}

/// Whether the calls can be meant for a tool of this run.
fn concerns(text: &str, found: &FoundCall, tools: &[ToolSpec]) -> bool {
    match &found.form {
        Ok(calls) => calls.iter().take(MAX_CALLS).any(|call| means_tool(&call.name, tools)),
        Err(reason) => {
            let is_named = reason.split('`').any(|word| granted_name(word, tools).is_some());
            is_named || names_tool(text.get(found.start..found.end).unwrap_or_default(), tools)
        }
    }
}

fn names_tool(text: &str, tools: &[ToolSpec]) -> bool {
    tools.iter().any(|tool| text.contains(&format!("\"{}\"", tool.name)) || text.contains(&format!("={}>", tool.name)))
}

/// A call without a marker, in a code block or on a line: it counts only if the prose around it does not present it.
fn unmarked(text: &str, found: &FoundCall, tools: &[ToolSpec]) -> Recovery {
    let before = text.get(..found.start).unwrap_or_default().trim();
    let after = text.get(found.end..).unwrap_or_default().trim();
    let is_long = before.len() + after.len() > MAX_PROSE_BYTES;
    let words = before.to_lowercase();
    let is_example =
        contains(&words, &EXAMPLES) || contains(&after.to_lowercase(), &["would", "example", "for instance"]);
    if is_example || (is_long && !after.is_empty()) {
        return Recovery::None;
    }
    if !after.is_empty() {
        return Recovery::Ambiguous(GOES_ON.into());
    }
    if contains(&words, &DOUBTS) {
        return Recovery::Ambiguous(
            "it is not clear whether the tool call is meant: call it, or call it an example".into(),
        );
    }
    match &found.form {
        Err(reason) => Recovery::Ambiguous(reason.clone()),
        Ok(_) if is_long => {
            Recovery::Ambiguous("a long text ends with what looks like a tool call: call the tool instead".into())
        }
        Ok(calls) => decide(calls, before, tools),
    }
}

fn decide<'a>(calls: impl IntoIterator<Item = &'a TextCall>, text: &str, tools: &[ToolSpec]) -> Recovery {
    let mut granted = Vec::new();
    for call in calls {
        let Some(name) = granted_name(&call.name, tools) else {
            let name = cut(&call.name, 80);
            let meant = did_you_mean(near_tool(&name, tools));
            return Recovery::Ambiguous(format!(
                "a tool call written as text names `{name}`, which is no tool here{meant}"
            ));
        };
        granted.push(TextCall { name: name.to_owned(), arguments: call.arguments.clone() });
    }
    match granted.len() {
        0 => Recovery::None,
        1..=MAX_CALLS => Recovery::Calls { calls: granted, text: text.to_owned() },
        _ => Recovery::Ambiguous(too_many()),
    }
}

fn too_many() -> String {
    format!("more than {MAX_CALLS} tool calls are written as text: call fewer at once")
}

/// The whole text as calls, or the call in its last lines.
fn bare(text: &str, tools: &[ToolSpec]) -> Recovery {
    if let Some(form) = whole(text, tools) {
        return unmarked(text, &FoundCall { start: 0, end: text.len(), form }, tools);
    }
    if markers::begins_call(text) {
        return Recovery::Ambiguous("the message begins like a tool call, which cannot be read: call the tool".into());
    }
    if text.starts_with('{') {
        let (values, is_whole) = objects(text, MAX_CALLS);
        if values.iter().filter(|value| value::call(value).is_some()).count() > 1 {
            return Recovery::Ambiguous(MORE_THAN_ONE.into());
        }
        if !is_whole && names_tool(text, tools) && has_call_keys(text) {
            return Recovery::Ambiguous("a tool call is written as text and is not valid JSON".into());
        }
        return Recovery::None;
    }
    // The first line that opens a call; a few tries keep this linear.
    for (start, _) in text.match_indices("\n{").take(8) {
        let Some(tail) = text.get(start + 1..) else { continue };
        let Some((value, rest)) = value::first(tail) else { continue };
        let Some(calls) = value::call(&value)
            .filter(|calls| calls.len() <= MAX_CALLS)
            .filter(|calls| calls.iter().all(|call| means_tool(&call.name, tools)))
        else {
            continue;
        };
        return unmarked(text, &FoundCall { start, end: text.len() - rest.len(), form: Ok(calls) }, tools);
    }
    Recovery::None
}

/// Words before a piece of JSON that present it as an example.
const EXAMPLES: [&str; 9] =
    ["example", "e.g.", "for instance", "like this", "looks like", "would look", "would you", "should i", "shall i"];

/// Words that may present it as an example.
const DOUBTS: [&str; 9] = ["such as", "format", "syntax", "schema", "could", "do not", "don't", "never", "instead of"];

fn contains(text: &str, words: &[&str]) -> bool {
    words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests;
