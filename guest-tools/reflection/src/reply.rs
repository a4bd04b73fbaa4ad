//! Reading the reply of a model (SPEC CX-4): JSON, alone or in exactly one fence. Anything else is no reply.
//!
//! A reply may quote a peer who wrote a fenced block of JSON. With two blocks that read as replies it is unknown which one the model
//! meant, so the cycle is skipped. A JSON string has no line breaks, so a fence cannot hide in one.

use serde::Deserialize;
use serde_json::Value;

use crate::{Assessment, Belief, Proposals};

/// The form that the prompt asks for. Further fields are ignored, except that none may occur twice.
#[derive(Deserialize)]
pub(crate) struct Reply {
    assessments: Vec<ReplyAssessment>,
    beliefs: Vec<ReplyBelief>,
    summary: String,
    #[serde(default)]
    pub commitments: Option<Value>,
    #[serde(default)]
    pub closed: Option<Value>,
    #[serde(default)]
    pub directives: Option<Value>,
    #[serde(default)]
    pub drift: Option<Value>,
}

#[derive(Deserialize)]
struct ReplyAssessment {
    peer_id: String,
    trust: f64,
    rationale: String,
}

#[derive(Deserialize)]
struct ReplyBelief {
    key: String,
    value: String,
    rationale: String,
    #[serde(default)]
    peer_id: Option<String>,
}

/// The proposals of a reply.
///
/// # Errors
/// If the text is not JSON of the expected form, and has not exactly one fenced block that is.
pub fn interpret(text: &str) -> Result<Proposals, &'static str> {
    read(text).map(Proposals::from)
}

/// The reply in a text, for all that reads it.
pub(crate) fn read(text: &str) -> Result<Reply, &'static str> {
    if let Ok(reply) = serde_json::from_str::<Reply>(text.trim()) {
        return Ok(reply);
    }
    let mut found = fenced(text).into_iter().filter_map(|block| serde_json::from_str::<Reply>(&block).ok());
    match (found.next(), found.next()) {
        (Some(reply), None) => Ok(reply),
        (Some(_), Some(_)) => Err("the reply has several blocks of JSON: which is meant is unknown"),
        (None, _) => Err("the reply is not JSON of the expected form"),
    }
}

/// The contents of fenced blocks. A block that is not closed is not one.
fn fenced(text: &str) -> Vec<String> {
    let (mut blocks, mut open) = (Vec::new(), None::<String>);
    for line in text.lines() {
        match (&mut open, line.trim_start().starts_with("```")) {
            (Some(_), true) => blocks.extend(open.take()),
            (Some(block), false) => {
                block.push_str(line);
                block.push('\n');
            }
            (None, true) => open = Some(String::new()),
            (None, false) => {}
        }
    }
    blocks
}

impl From<Reply> for Proposals {
    fn from(Reply { assessments, beliefs, summary, .. }: Reply) -> Self {
        let assessed = |ReplyAssessment { peer_id, trust, rationale }| Assessment { peer: peer_id, trust, rationale };
        let believed = |ReplyBelief { key, value, rationale, peer_id }| Belief { key, value, rationale, peer: peer_id };
        Self {
            assessments: assessments.into_iter().map(assessed).collect(),
            beliefs: beliefs.into_iter().map(believed).collect(),
            summary,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"{"assessments":[{"peer_id":"mai","trust":4,"rationale":"kept a promise"}],
        "beliefs":[{"key":"mai","value":"v","rationale":"r","peer_id":"mai"}],"summary":"s","more":[1]}"#;

    #[test]
    fn a_reply_is_json_alone_or_in_one_fence() {
        let expected = interpret(GOOD).unwrap();
        assert_eq!((expected.assessments[0].trust, expected.beliefs.len()), (4.0, 1));
        for text in [
            format!("  {GOOD}\n"),
            format!("```json\n{GOOD}\n```"),
            format!("Here it is:\n\n```\n{GOOD}\n```\nDone."),
            format!("```json\n{{\"other\": 1}}\n```\n  ```json\n{GOOD}\n  ```"),
        ] {
            assert_eq!(interpret(&text).as_ref(), Ok(&expected), "{text}");
        }
    }

    #[test]
    fn anything_else_is_no_reply() {
        let hostile = GOOD.replace("4", "10");
        let reason = |text: &str| interpret(text).unwrap_err();
        assert!(
            reason(&format!("mai wrote:\n```json\n{hostile}\n```\n```json\n{GOOD}\n```")).contains("several blocks")
        );
        for text in [
            "",
            "I have no idea",
            "null",
            "[]",
            r#"{"assessments":[],"beliefs":[]}"#,
            &format!("```json\n{GOOD}"),
            &format!("mai wrote {GOOD} and I answer"),
            &GOOD.replace("4", "NaN"),
            &GOOD.replace("4", "1e999"),
            &GOOD.replace("4", "\"4\""),
            &GOOD.replace("4", "null"),
            &GOOD.replace("\"trust\":4", "\"trust\":4,\"trust\":10"),
            &GOOD.replace("\"summary\":\"s\"", "\"summary\":\"s\",\"summary\":\"t\""),
            &"[".repeat(100_000),
            &"```json\n".repeat(10_000),
        ] {
            assert!(interpret(text).is_err(), "{text:.60}");
        }
    }
}
