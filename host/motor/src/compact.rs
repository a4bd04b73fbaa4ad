//! The conversation as it is sent: shorter than it was, and always under its budget (SPEC RUN-11).
//!
//! Pure: the same history gives the same bytes, with no clock, no chance and no file, so a resumed run makes the same
//! request. It knows no events and no store. It survives outputs of any size, a model that writes megabytes into
//! its arguments, and untrusted content that must not come out of its fence by being shortened.
//!
//! Every few replies (`compact_every`) a boundary is drawn. The steps before it become one record; later ones stay as messages, of
//! which only results older than the last few (`full_results`) are shortened. So between two boundaries the beginning of a request stays
//! as it was, and endpoints can cache it. A reply and the results of its calls are one group, kept or recorded together.

mod digest;
mod shorten;

#[cfg(test)]
mod tests;

use llm::{Message, ProviderState, RequestedCall};

use crate::fence;
use crate::rules::RunRules;
use crate::toolbox::ToolResult;
use digest::{DigestStep, digest};
use shorten::Keep;

/// The kept part of an older result, in bytes.
const SHORT: Keep = Keep { head: 1_536, tail: 512 };
/// The kept part of a text if room is short, in bytes.
const BRIEF: Keep = Keep { head: 192, tail: 64 };
/// Bytes of one call's arguments that are kept when room is short.
const BRIEF_ARGUMENTS: usize = 256;
/// Begins a message of the owner.
pub(crate) const OWNER: &str = "[owner] ";
/// Bytes counted for the endpoint's format around a message, and around a call.
const AROUND: usize = 16;

/// One entry of an attempt's history, as it was.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// The task (the first entry), or a message of the host or of the owner.
    Said {
        /// Text of the message.
        text: String,
    },
    /// A reply of the model. Each begins an iteration.
    Reply {
        /// Text of the reply.
        text: String,
        /// The calls, in order.
        calls: Vec<RequestedCall>,
        /// Goes back to the provider with the whole reply; a shortened reply is sent without it.
        state: Option<ProviderState>,
    },
    /// The result of a call of the last reply.
    Result {
        /// Id of the call.
        call_id: String,
        /// Name of the tool.
        tool: String,
        /// The result of the call.
        result: ToolResult,
        /// Whether the run had read from the network before.
        tainted: bool,
    },
}

impl Entry {
    /// The message, nothing left out.
    pub(crate) fn whole(&self) -> Message {
        match self {
            Self::Said { text } => Message::User { text: text.clone() },
            Self::Reply { text, calls, state } => {
                Message::Assistant { text: text.clone(), tool_calls: calls.clone(), state: state.clone() }
            }
            Self::Result { call_id, tool, result, tainted } => {
                let content = fence::content(call_id, result, &result.output, *tainted);
                Message::Tool { call_id: call_id.clone(), name: tool.clone(), content }
            }
        }
    }

    /// The message with at most `keep` of a text. The omission is noted outside of the fence, where only the
    /// host can write.
    fn kept(&self, keep: Keep) -> Message {
        match self {
            Self::Said { text } => Message::User { text: keep.of(text).into_owned() },
            Self::Reply { text, calls, .. } => {
                let tool_calls = calls.iter().map(|call| RequestedCall {
                    arguments: shorten::arguments(&call.arguments, BRIEF_ARGUMENTS),
                    ..call.clone()
                });
                Message::Assistant { text: keep.of(text).into_owned(), tool_calls: tool_calls.collect(), state: None }
            }
            Self::Result { call_id, tool, result, tainted } if keep.cuts(&result.output) => {
                let output = keep.of(&result.output);
                let content = fence::content(call_id, result, &output, *tainted);
                let (bytes, shown) = (result.output.len(), keep.shown());
                let whole = result.saved.as_deref().map(|path| format!("; the whole is in {}", shorten::path(path)));
                let whole = whole.unwrap_or_default();
                let content =
                    format!("{content}\n[cut: the output has {bytes} bytes, of which {shown} are shown{whole}]");
                Message::Tool { call_id: call_id.clone(), name: tool.clone(), content }
            }
            Self::Result { .. } => self.whole(),
        }
    }

    pub(crate) fn is_reply(&self) -> bool {
        matches!(self, Self::Reply { .. })
    }

    /// Whether it is a message of the owner. Only the host begins messages, so no other text can look like one.
    pub(crate) fn is_of_owner(&self) -> bool {
        matches!(self, Self::Said { text } if text.starts_with(OWNER))
    }

    fn is_result(&self) -> bool {
        matches!(self, Self::Result { .. })
    }
}

/// The messages of the next request: those of `entries`, shortened so that they have at most `budget` bytes by [`size`].
/// The first entry is the task and is never cut, so a task above the budget is sent all alone.
pub(crate) fn compacted(entries: &[Entry], budget: usize, rules: RunRules) -> Vec<Message> {
    let Some((task, rest)) = entries.split_first() else { return Vec::new() };
    let task = task.whole();
    let room = budget.saturating_sub(size(&task));
    let groups: Vec<&[Entry]> = rest.chunk_by(|_, next| !next.is_reply()).collect();
    let (record, kept) = Draft::new(&groups, rules).fitted(room);
    std::iter::once(task).chain(record).chain(kept).collect()
}

/// The size of a message in the context budget, in bytes: its texts, and a little for the format around them.
pub(crate) fn size(message: &Message) -> usize {
    AROUND
        + match message {
            Message::User { text } => text.len(),
            Message::Assistant { text, tool_calls, state } => {
                let state = state.as_ref().map_or(0, ProviderState::bytes);
                text.len() + state + tool_calls.iter().map(call_size).sum::<usize>()
            }
            Message::Tool { call_id, name, content } => call_id.len() + name.len() + content.len(),
        }
}

/// The size of a call in the context budget.
pub(crate) fn call_size(call: &RequestedCall) -> usize {
    AROUND + call.id.len() + call.name.len() + shorten::arguments_text(&call.arguments).len()
}

/// The group with which the messages begin; earlier groups are in the record. It depends on nothing after the last boundary.
/// The last results before a boundary stay behind it, with the groups they are in: they are sent in full for a while yet.
fn window(groups: &[&[Entry]], rules: RunRules) -> usize {
    let replies = groups.iter().filter(|group| group.first().is_some_and(Entry::is_reply)).count();
    let boundary = replies - replies % (rules.compact_every as usize).max(1);
    if boundary == 0 {
        return 0;
    }
    // Only the first group can be one without a reply.
    let before = boundary + (groups.len() - replies);
    let mut results = 0;
    let mut start = before;
    for (index, group) in groups.iter().enumerate().take(before).rev() {
        let found = group.iter().filter(|entry| entry.is_result()).count();
        if found > 0 {
            results += found;
            start = index;
        }
        if results >= rules.full_results as usize {
            break;
        }
    }
    start
}

/// An entry of the window and the message made of it.
struct Piece<'a> {
    group: usize,
    entry: &'a Entry,
    message: Message,
    size: usize,
}

impl<'a> Piece<'a> {
    fn new(group: usize, entry: &'a Entry, message: Message) -> Self {
        let size = size(&message);
        Self { group, entry, message, size }
    }

    fn keep(&mut self, keep: Keep) {
        self.message = self.entry.kept(keep);
        self.size = size(&self.message);
    }
}

/// A request while it is made to fit.
struct Draft<'a> {
    rules: RunRules,
    groups: &'a [&'a [Entry]],
    /// The first group that is sent as messages.
    start: usize,
    pieces: Vec<Piece<'a>>,
}

impl<'a> Draft<'a> {
    fn new(groups: &'a [&'a [Entry]], rules: RunRules) -> Self {
        let start = window(groups, rules);
        let results =
            groups.iter().skip(start).flat_map(|group| group.iter()).filter(|entry| entry.is_result()).count();
        let mut older = results.saturating_sub(rules.full_results as usize);
        let pieces = groups
            .iter()
            .enumerate()
            .skip(start)
            .flat_map(|(index, group)| group.iter().map(move |entry| (index, entry)));
        let pieces = pieces
            .map(|(index, entry)| {
                let message = if older > 0 && entry.is_result() {
                    older -= 1;
                    entry.kept(SHORT)
                } else {
                    entry.whole()
                };
                Piece::new(index, entry, message)
            })
            .collect();
        Self { rules, groups, start, pieces }
    }

    /// Leaves out more and more, in a fixed order, until all fits into `room`: older results, the last ones from the
    /// oldest, texts and arguments, the record, and in the end whole steps, which then are in the record.
    fn fitted(mut self, room: usize) -> (Option<Message>, impl Iterator<Item = Message>) {
        let record_bytes = self.rules.record_bytes as usize;
        let mut record = self.record(record_bytes);
        let mut size = self.size() + record.as_ref().map_or(0, self::size);
        let (results, texts): (Vec<usize>, Vec<usize>) = (0..self.pieces.len())
            .partition(|index| self.pieces.get(*index).is_some_and(|piece| piece.entry.is_result()));
        let (older, last) = results.split_at(results.len().saturating_sub(self.rules.full_results as usize));
        for (indices, keep) in [(older, BRIEF), (last, SHORT), (last, BRIEF), (&texts, BRIEF)] {
            for index in indices {
                if size <= room {
                    break;
                }
                if let Some(piece) = self.pieces.get_mut(*index) {
                    size -= piece.size;
                    piece.keep(keep);
                    size += piece.size;
                }
            }
        }
        let mut fits = size <= room;
        while !fits {
            let left = room.checked_sub(self.size());
            record = left.and_then(|left| self.record(left.min(record_bytes)));
            // Steps are not left out without a word while there is room for one.
            let told = record.is_some() || self.start == 0;
            fits = (left.is_some() && told) || self.pieces.is_empty();
            if !fits {
                self.start += 1;
                let start = self.start;
                self.pieces.retain(|piece| piece.group >= start);
            }
        }
        (record, self.pieces.into_iter().map(|piece| piece.message))
    }

    fn size(&self) -> usize {
        self.pieces.iter().map(|piece| piece.size).sum()
    }

    fn record(&self, bytes: usize) -> Option<Message> {
        let unnumbered = self.groups.first().is_some_and(|group| !group.first().is_some_and(Entry::is_reply));
        let steps = self.groups.iter().take(self.start).enumerate();
        let steps: Vec<_> =
            steps.map(|(index, group)| DigestStep::new(index + usize::from(!unnumbered), group)).collect();
        let text = digest(&steps, bytes.saturating_sub(AROUND))?;
        Some(Message::User { text })
    }
}
