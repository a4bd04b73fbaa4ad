//! The fence around text that is not trusted, for the prompt of a model (SPEC TOOL-4).
//!
//! It survives content that pretends to end its own fence, or that has learnt the name of another one.

use crate::ContentHash;

/// The prefix of a fence's name.
const TAG: &str = "untrusted";
/// Hexadecimal digits of a hash that name a fence: 64 bits.
const FENCE_DIGITS: usize = 16;

/// Puts a fence around content that its author cannot close: the fence is named by a hash of the content, and no text
/// can be made to contain its own hash. Text that only looks like a closing tag to a model is marked as well.
///
/// `of` identifies the use, such as the id of a call; `source` is the host's word for the origin.
#[must_use]
pub fn fenced(of: &str, source: &str, output: &str) -> String {
    let hash = ContentHash::of(format!("{of}\n{output}").as_bytes()).hex();
    let name: String = hash.chars().take(FENCE_DIGITS).collect();
    let harmless = disarmed(output);
    format!("<untrusted-{name} source=\"{source}\">\n{harmless}\n</untrusted-{name}>")
}

/// The text with a mark behind every `untrusted` that could be taken for a tag.
fn disarmed(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    let mut rest = output;
    while let Some(found) = find_ignoring_case(rest, TAG) {
        let (before, from) = rest.split_at(found);
        let (tag, after) = from.split_at(TAG.len());
        text.push_str(before);
        text.push_str(tag);
        // Only text in angle brackets, or in characters that look like them, can be mistaken for a fence.
        if before.trim_end().ends_with(['<', '/', '\\', '\u{ff1c}', '\u{2039}', '\u{27e8}']) {
            text.push_str("[not a fence]");
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

fn find_ignoring_case(text: &str, needle: &str) -> Option<usize> {
    text.as_bytes().windows(needle.len()).position(|window| window.eq_ignore_ascii_case(needle.as_bytes()))
}
