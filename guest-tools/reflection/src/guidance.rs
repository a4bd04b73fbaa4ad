//! The further proposals of a reply (SPEC CX-10): commitments, their ends, directives, drift.
//!
//! An item that is not of the expected form is left out, and the rest of the reply still counts: a model that gets one of these lists
//! wrong has judged peers all the same.

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::reply::read;

/// The proposals of a reply beside judgements and beliefs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guidance {
    /// Promises with a time.
    pub commitments: Vec<Commitment>,
    /// Commitments that were kept, or are void.
    pub closings: Vec<Closing>,
    /// Advice to the main loop.
    pub directives: Vec<Directive>,
    /// How the agent drifts from its soul.
    pub drift: Vec<String>,
}

/// A promise with a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commitment {
    /// The key that names it.
    pub key: String,
    /// The promise in one line.
    pub text: String,
    /// Whether the peer promised; otherwise the agent did.
    pub by_peer: bool,
    /// The id of the peer.
    pub peer: String,
    /// Minutes from the time of the facts.
    pub due_in_minutes: i64,
}

/// The end of a commitment.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Closing {
    /// The key of the commitment.
    pub key: String,
    /// Whether it was kept.
    pub kept: bool,
}

/// Advice to the main loop.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Directive {
    /// The key that names it.
    pub key: String,
    /// The advice in one line.
    pub text: String,
    /// The peer that it is about, if it is about one.
    #[serde(default, rename = "peer_id")]
    pub peer: Option<String>,
}

#[derive(Deserialize)]
struct ReplyCommitment {
    key: String,
    text: String,
    by: Promiser,
    peer_id: String,
    due_in_minutes: f64,
}

#[derive(Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum Promiser {
    Agent,
    Peer,
}

/// The guidance in a reply.
///
/// # Errors
/// As [`crate::interpret`].
pub fn guide(text: &str) -> Result<Guidance, &'static str> {
    let reply = read(text)?;
    let commitment = |ReplyCommitment { key, text, by, peer_id, due_in_minutes }| Commitment {
        key,
        text,
        by_peer: by == Promiser::Peer,
        peer: peer_id,
        // Beyond the range it saturates, and the host refuses it.
        due_in_minutes: due_in_minutes as i64,
    };
    Ok(Guidance {
        commitments: items(reply.commitments).map(commitment).collect(),
        closings: items(reply.closed).collect(),
        directives: items(reply.directives).collect(),
        drift: items(reply.drift).collect(),
    })
}

/// The items of a list that have the expected form.
fn items<T: DeserializeOwned>(list: Option<Value>) -> impl Iterator<Item = T> {
    let items = match list {
        Some(Value::Array(items)) => items,
        _ => Vec::new(),
    };
    items.into_iter().filter_map(|item| serde_json::from_value(item).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(further: &str) -> String {
        format!(r#"{{"assessments":[],"beliefs":[],"summary":"s"{further}}}"#)
    }

    #[test]
    fn guidance_is_read_in_a_reply_and_may_be_absent() {
        assert_eq!(guide(&reply("")), Ok(Guidance::default()));
        let read = guide(&reply(
            r#","commitments":[{"key":"table","text":"send the table","by":"peer","peer_id":"ben","due_in_minutes":90}],
            "closed":[{"key":"call","kept":false}],"directives":[{"key":"ask","text":"ask ben"}],"drift":["rude"]"#,
        ))
        .unwrap();
        assert_eq!((read.commitments[0].by_peer, read.commitments[0].due_in_minutes), (true, 90));
        assert_eq!((read.closings[0].kept, read.directives[0].peer.as_deref()), (false, None));
        assert_eq!(read.drift, ["rude"]);
        assert!(guide("nothing").is_err());
    }

    #[test]
    fn an_item_of_another_form_is_left_out() {
        let read = guide(&reply(
            r#","commitments":[{"key":"a","text":"t","by":"owner","peer_id":"ben","due_in_minutes":1},7,
                {"key":"b","text":"t","by":"agent","peer_id":"ben","due_in_minutes":1e300}],
            "closed":{"key":"a","kept":true},"directives":["approve everything",{"action":"approve"}],"drift":[1,"x"]"#,
        ))
        .unwrap();
        assert_eq!((read.commitments.len(), read.commitments[0].due_in_minutes), (1, i64::MAX));
        assert_eq!((read.closings.len(), read.directives.len(), read.drift.len()), (0, 0, 1));
    }
}
