//! Reasoning that a server passed on within the text: `<think>` blocks, and the channels of gpt-oss's harmony format.
//! It is not part of the answer or of calls.
//!
//! A text *about* these tags must stay as it is, so a tag counts only in the place where models put it: a block at the
//! beginning of a line, outside of code.

use crate::{ChatReply, Delta};

/// Tags around reasoning. Some servers omit the opening tag of the first pair, because it is part of the prompt.
const TAGS: [(&str, &str); 4] =
    [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]"), ("◁think▷", "◁/think▷")];

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const ENDS: [&str; 3] = ["<|end|>", "<|return|>", "<|call|>"];
/// The longest header of a harmony message, in bytes.
const MAX_HEADER: usize = 256;

/// A text, split into answer and reasoning.
#[derive(Debug, Default)]
struct ReasoningParts {
    said: String,
    thought: String,
}

impl ReasoningParts {
    fn think(&mut self, text: &str) {
        if !self.thought.is_empty() && !text.trim().is_empty() {
            self.thought.push('\n');
        }
        self.thought.push_str(text.trim());
    }
}

/// Moves the reasoning within the text of a reply to its separate field.
pub fn take_reasoning(reply: &mut ChatReply) {
    let Some((text, thought)) = separate_reasoning(&reply.text) else { return };
    reply.text = text;
    let reasoning = reply.reasoning.get_or_insert_default();
    if !reasoning.is_empty() && !thought.is_empty() {
        reasoning.push('\n');
    }
    reasoning.push_str(&thought);
    if reasoning.is_empty() {
        reply.reasoning = None;
    }
}

/// The text without its reasoning, and the reasoning; `None` if the text has no reasoning. Calls of the harmony format
/// stay in the text, as messages with a recipient.
pub(super) fn separate_reasoning(text: &str) -> Option<(String, String)> {
    let mut parts = harmony(text).or_else(|| blocks(text))?;
    // Some models think in tags within a channel.
    if let Some(inner) = blocks(&parts.said) {
        parts.think(&inner.thought);
        parts.said = inner.said;
    }
    // A reply that was cut off may end with the space before the next word.
    Some((parts.said.trim_start().to_owned(), parts.thought))
}

/// Blocks in tags. An unclosed block counts only at the beginning of the text.
fn blocks(text: &str) -> Option<ReasoningParts> {
    let mut parts = ReasoningParts::default();
    let mut rest = text;
    let mut found = false;
    if let Some((before, after)) = unopened(rest) {
        parts.think(before);
        (rest, found) = (after, true);
    }
    let mut fence = 0;
    let mut has_begun = false;
    while !rest.is_empty() {
        let content = rest.trim_start_matches([' ', '\t']);
        if let Some((opening, closing)) = TAGS.iter().find(|(opening, _)| fence == 0 && content.starts_with(opening)) {
            let inner = content.get(opening.len()..).unwrap_or_default();
            match inner.split_once(closing) {
                Some((thought, after)) => {
                    parts.think(thought);
                    (rest, found) = (after, true);
                }
                None if !has_begun => {
                    parts.think(inner);
                    return Some(parts);
                }
                // Not closed, and the rest of the text cannot close it.
                None => break,
            }
            continue;
        }
        // A nested block leaves its closing tag behind.
        let stray = TAGS.iter().filter(|_| found && !has_begun).find_map(|(_, closing)| content.strip_prefix(closing));
        if let Some(after) = stray {
            rest = after;
            continue;
        }
        let line = rest.split_inclusive('\n').next().unwrap_or_default();
        fence = fence_after(fence, line.trim());
        has_begun |= !line.trim().is_empty();
        parts.said.push_str(line);
        rest = rest.get(line.len()..).unwrap_or_default();
    }
    parts.said.push_str(rest);
    found.then_some(parts)
}

/// The length of the mark that opened the code block around the text after `line`; 0 outside of code blocks.
fn fence_after(fence: usize, line: &str) -> usize {
    let ticks = line.len() - line.trim_start_matches('`').len();
    match fence {
        0 if ticks >= 3 && (line.len() == ticks || !line.ends_with("```")) => ticks,
        open if open > 0 && ticks >= open && line.len() == ticks => 0,
        open => open,
    }
}

/// The text before a closing tag that was never opened, and the text after it.
fn unopened(text: &str) -> Option<(&str, &str)> {
    let [(opening, closing), ..] = TAGS;
    let (before, after) = text.split_once(closing)?;
    if before.contains(opening) {
        return None;
    }
    let line = before.rsplit('\n').next().unwrap_or_default();
    let is_alone = line.trim().is_empty();
    let is_mentioned = line.ends_with(' ') && after.starts_with([' ', '.', ',', ';', ':', '!', '?', ')']);
    let in_code = line.matches('`').count() % 2 == 1 || before.lines().filter(|line| is_fence(line)).count() % 2 == 1;
    (!in_code && (is_alone || !is_mentioned)).then_some((before, after))
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```")
}

/// The messages of a text in the harmony format. Only a text that is framed as a whole counts: it begins with a header,
/// or with the reasoning whose header the server omitted.
fn harmony(text: &str) -> Option<ReasoningParts> {
    let trimmed = text.trim_start();
    let framed = format!("<|end|>{START}assistant");
    // An answer may quote a foreign call in its middle: without a header at its beginning, no text may follow a call.
    let mut has_call = false;
    let (lead, mut rest) = if trimmed.starts_with(CHANNEL) || trimmed.starts_with("<|start|>assistant") {
        ("", trimmed)
    } else {
        let at = trimmed.find(&framed)?;
        trimmed.split_at(at)
    };
    let mut parts = ReasoningParts::default();
    let mut found = !lead.is_empty();
    if lead.contains('`') {
        return None;
    }
    parts.think(lead.strip_prefix("analysis").map_or(lead, |lead| lead.strip_prefix(MESSAGE).unwrap_or(lead)));
    while !rest.is_empty() {
        if let Some(tail) = ENDS.iter().find_map(|end| rest.strip_prefix(end)) {
            rest = tail.trim_start();
            continue;
        }
        let Some((header, body)) = header(rest) else { break };
        found = true;
        let end = ends(body);
        let (content, tail) = body.split_at(end);
        rest = tail;
        let recipient =
            header.split_once("to=").map(|(_, to)| to.split(|c: char| c.is_whitespace() || c == '<').next());
        let role = header.strip_prefix(START).unwrap_or("assistant");
        match recipient.flatten().filter(|_| role.starts_with("assistant")) {
            Some(tool) => {
                has_call = true;
                parts.said.push_str(&format!("{CHANNEL}commentary to={tool}{MESSAGE}{content}<|call|>"));
            }
            None if has_call && !lead.is_empty() => return None,
            None if header.contains("<|channel|>analysis") => parts.think(content),
            None => {
                if !parts.said.is_empty() {
                    parts.said.push('\n');
                }
                parts.said.push_str(content);
            }
        }
    }
    // The rest is not readable.
    parts.said.push_str(rest);
    let is_quoted = has_call && !lead.is_empty() && !rest.trim().is_empty();
    (found && !is_quoted).then_some(parts)
}

/// The header of a message, and the text after it.
fn header(text: &str) -> Option<(&str, &str)> {
    if !text.starts_with(START) && !text.starts_with(CHANNEL) {
        return None;
    }
    let window = text.get(..text.floor_char_boundary(MAX_HEADER))?;
    let at = window.find(MESSAGE)?;
    let (header, body) = text.split_at(at);
    // One header only: the message of a header without a body belongs to the next.
    let is_one = header.matches(CHANNEL).count() <= 1 && header.matches(START).count() <= 1;
    is_one.then(|| (header, body.strip_prefix(MESSAGE).unwrap_or(body)))
}

/// The offset where a message's body ends.
fn ends(body: &str) -> usize {
    let begins = |at: usize| {
        let rest = body.get(at..).unwrap_or_default();
        ENDS.iter().any(|end| rest.starts_with(end)) || rest.starts_with(START) || rest.starts_with(CHANNEL)
    };
    body.match_indices("<|").map(|(at, _)| at).find(|at| begins(*at)).unwrap_or(body.len())
}

/// Separates reasoning from text while a reply streams, for live display. Only blocks at the beginning of a reply are
/// recognised: until then no other text was shown.
#[derive(Debug, Default)]
pub struct ReasoningFilter {
    state: ReasoningState,
    held: String,
}

#[derive(Debug, Default)]
enum ReasoningState {
    /// Only reasoning so far.
    #[default]
    Begins,
    /// Within reasoning with this closing tag.
    Thinks(&'static str),
    /// The text has begun.
    Says,
}

/// Tags that open reasoning at the beginning of a reply, and those that close it.
const OPENINGS: [(&str, &str); 6] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|>"),
    ("<|start|>assistant<|channel|>analysis<|message|>", "<|end|>"),
];
/// Headers before the text of a reply.
const HEADERS: [&str; 2] = ["<|start|>assistant<|channel|>final<|message|>", "<|channel|>final<|message|>"];

impl ReasoningFilter {
    /// Takes the next piece of a reply, and returns the pieces that can be classified by now.
    pub fn pass(&mut self, delta: Delta) -> Vec<Delta> {
        match delta {
            Delta::Text(text) => {
                self.held.push_str(&text);
                self.advance()
            }
            Delta::Reasoning(_) => vec![delta],
            Delta::Restart { .. } => {
                *self = Self::default();
                vec![delta]
            }
        }
    }

    /// Returns the held-back piece, once the reply is complete.
    pub fn finish(&mut self) -> Option<Delta> {
        let held = std::mem::take(&mut self.held);
        let delta =
            if matches!(self.state, ReasoningState::Thinks(_)) { Delta::Reasoning(held) } else { Delta::Text(held) };
        let (Delta::Reasoning(text) | Delta::Text(text)) = &delta else { return None };
        (!text.is_empty()).then_some(delta)
    }

    fn advance(&mut self) -> Vec<Delta> {
        let mut deltas = Vec::new();
        let held = std::mem::take(&mut self.held);
        let mut text = held.as_str();
        loop {
            match self.state {
                ReasoningState::Says => {
                    if !text.is_empty() {
                        deltas.push(Delta::Text(text.to_owned()));
                    }
                    return deltas;
                }
                ReasoningState::Thinks(closing) => {
                    let Some((thought, rest)) = text.split_once(closing) else {
                        // Everything except a possible beginning of the closing tag.
                        let safe = text.floor_char_boundary(text.len().saturating_sub(closing.len() - 1));
                        let (thought, rest) = text.split_at(safe);
                        if !thought.is_empty() {
                            deltas.push(Delta::Reasoning(thought.to_owned()));
                        }
                        rest.clone_into(&mut self.held);
                        return deltas;
                    };
                    deltas.push(Delta::Reasoning(thought.to_owned()));
                    (self.state, text) = (ReasoningState::Begins, rest);
                }
                ReasoningState::Begins => {
                    text = text.trim_start();
                    let opened =
                        OPENINGS.iter().find_map(|(opening, closing)| Some((text.strip_prefix(opening)?, *closing)));
                    let begun = || HEADERS.iter().find_map(|header| text.strip_prefix(header));
                    let mut all = OPENINGS.iter().map(|(opening, _)| *opening).chain(HEADERS);
                    if let Some((rest, closing)) = opened {
                        (self.state, text) = (ReasoningState::Thinks(closing), rest);
                    } else if let Some(rest) = begun() {
                        (self.state, text) = (ReasoningState::Says, rest);
                    } else if all.any(|opening| opening.starts_with(text)) {
                        text.clone_into(&mut self.held);
                        return deltas;
                    } else {
                        self.state = ReasoningState::Says;
                    }
                }
            }
        }
    }
}
