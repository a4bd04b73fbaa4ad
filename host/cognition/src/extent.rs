//! The extent of a conversation: its size, its last event and the last words in it, kept in its head for lists and `[retention]`.

use base::Timestamp;
use base::text::cut;
use serde::{Deserialize, Serialize};

use crate::record::{Entry, EntryBody};

/// Characters of the last message or reply.
const MAX_TEXT: usize = 200;

/// The extent of a conversation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Extent {
    /// Bytes of all entries as they are stored, without their keys.
    pub bytes: u64,
    /// Time of the last entry. `None`: there is no entry.
    pub at: Option<Timestamp>,
    /// The beginning of the last message or reply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Extent {
    /// Counts an entry that follows all others.
    pub fn add(&mut self, entry: &Entry) {
        // An entry that cannot be encoded is refused by the store.
        let bytes = serde_json::to_vec(entry).map_or(0, |encoded| encoded.len());
        self.bytes = self.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX));
        self.at = Some(entry.at);
        if let EntryBody::Message { text, .. } | EntryBody::Said { text, .. } = &entry.body {
            self.text = Some(cut(text, MAX_TEXT));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Speaker;

    #[test]
    fn an_extent_has_the_last_time_and_the_last_words() {
        let mut extent = Extent::default();
        let entry = |at: u64, body: EntryBody| Entry { at: Timestamp::from_millis(at), body };
        let message = entry(1, EntryBody::Message { text: "é".repeat(1_000), id: None });
        let entries = [
            message.clone(),
            entry(2, EntryBody::Said { text: "hello".to_owned(), by: Speaker::Agent }),
            entry(3, EntryBody::Ended { trigger: 1, error: None }),
        ];
        extent.add(&message);
        assert!(extent.bytes > 2_000 && extent.text.as_ref().unwrap().chars().count() <= MAX_TEXT + 1, "{extent:?}");
        extent = Extent::default();
        entries.iter().for_each(|entry| extent.add(entry));
        assert_eq!((extent.at, extent.text.as_deref()), (Some(Timestamp::from_millis(3)), Some("hello")));
    }
}
