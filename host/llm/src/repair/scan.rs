//! One pass over a text: the calls after markers, and the code blocks. Inside of code no marker counts.

use super::CallForm;
use super::markers::{MARKERS, Marker};

/// Markers that are followed by the form of a call, readable or not, are collected up to this number.
const MAX_FOUND: usize = super::MAX_CALLS + 1;

/// Calls in a text.
#[derive(Debug)]
pub(super) struct FoundCall {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) form: CallForm,
}

/// A code block: its place and its content.
#[derive(Debug)]
pub(super) struct Fence<'a> {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) body: &'a str,
}

/// The calls after markers outside of code, and the code blocks outside of calls: arguments may hold either.
pub(super) fn scan(text: &str) -> (Vec<FoundCall>, Vec<Fence<'_>>) {
    let (mut found, mut fences) = (Vec::new(), Vec::new());
    let mut position = 0;
    let mut in_code = false;
    let mut line_begins = true;
    while found.len() < MAX_FOUND {
        if line_begins && let Some(fence) = fence(text, position) {
            position = fence.end;
            fences.push(fence);
        }
        line_begins = false;
        let rest = text.get(position..).unwrap_or_default();
        let Some(at) = rest.find(['<', '[', '`', '\n']) else { break };
        let here = position + at;
        let rest = rest.get(at..).unwrap_or_default();
        position = here + 1;
        if rest.starts_with('\n') {
            (in_code, line_begins) = (false, true);
        } else if rest.starts_with('`') {
            position = here + rest.len() - rest.trim_start_matches('`').len();
            in_code = !in_code;
        } else if !in_code && let Some(Marker { opening, read, .. }) = MARKERS.iter().find(|marker| marker.opens(rest))
        {
            position = here + opening.len();
            if let Some((tail, form)) = read(text.get(position..).unwrap_or_default()) {
                position = text.len() - tail.len();
                found.push(FoundCall { start: here, end: position, form });
            }
        }
    }
    (found, fences)
}

/// The code block that begins with the line at `start`.
fn fence(text: &str, start: usize) -> Option<Fence<'_>> {
    const MARK: &str = "```";
    let rest = text.get(start..)?;
    let line = rest.split_inclusive('\n').next()?;
    let content = line.trim();
    let inner = content.trim_start_matches('`');
    let ticks = content.len() - inner.len();
    if ticks < MARK.len() {
        return None;
    }
    if let Some(body) = inner.strip_suffix(MARK).filter(|body| !body.trim().is_empty()) {
        // Open and closed in one line: the first word may be the language.
        let body = body.find(['{', '[', '<']).and_then(|at| body.get(at..)).unwrap_or(body);
        return Some(Fence { start, end: start + line.trim_end().len(), body });
    }
    let body = start + line.len();
    let mut position = body;
    for line in text.get(body..)?.split_inclusive('\n') {
        let content = line.trim();
        if content.len() >= ticks && content.bytes().all(|byte| byte == b'`') {
            return Some(Fence { start, end: position + line.trim_end().len(), body: text.get(body..position)? });
        }
        position += line.len();
    }
    // The model stopped before the closing mark.
    Some(Fence { start, end: text.len(), body: text.get(body..)? })
}
