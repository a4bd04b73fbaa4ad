//! `replay/FILE`: a model that answers with recorded turns (SPEC LLM-3), for demonstrations and offline tests.
//!
//! It keeps no position: the turn is chosen by the number of the model's messages in the request, so a run resumed
//! after a crash, or a repeated call, gets the reply that belongs there.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::Path;
use std::time::Duration;

use crate::recording::{self, RecordedReply, RecordedTurn, conversation_key, request_hash};
use crate::{ChatReply, ChatRequest, Delta, Model, ModelError, ModelErrorKind};

/// A recording that acts as a model.
#[derive(Debug)]
pub struct Replay {
    name: String,
    pace: Duration,
    strict: bool,
    /// Turns by conversation and number.
    turns: BTreeMap<(String, usize), RecordedTurn>,
    /// The fallback for requests of unrecorded conversations: the file's first conversation.
    first: String,
}

impl Replay {
    /// Opens a recording file.
    ///
    /// # Errors
    /// If the file cannot be read or is not a recording; the message names the line.
    pub fn open(path: &Path) -> Result<Self, ModelError> {
        let name = format!("replay/{}", path.file_name().unwrap_or_default().to_string_lossy());
        // Opening a pipe in place of a recording would block.
        if path.metadata().is_ok_and(|file| !file.is_file()) {
            let message = "the recording is not a regular file; check the path after `replay/`".to_owned();
            return Err(ModelError { model: name, kind: ModelErrorKind::Rejected, message, retry_after_ms: None });
        }
        let read = || -> std::io::Result<Vec<u8>> {
            let mut bytes = Vec::new();
            std::fs::File::open(path)?.take(recording::MAX_BYTES + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        let bytes = read().map_err(|error| ModelError {
            model: name.clone(),
            kind: ModelErrorKind::Rejected,
            message: format!("cannot read the recording: {}; check the path after `replay/`", error.kind()),
            retry_after_ms: None,
        })?;
        Self::from_bytes(name, &bytes)
    }

    /// Reads a recording from memory. `name` becomes [`Model::name`].
    ///
    /// # Errors
    /// If it is not a recording; the message names the line.
    pub fn from_bytes(name: impl Into<String>, bytes: &[u8]) -> Result<Self, ModelError> {
        let name = name.into();
        let (header, turns) = recording::parse(bytes).map_err(|error| ModelError {
            model: name.clone(),
            kind: ModelErrorKind::Rejected,
            message: error.to_string(),
            retry_after_ms: None,
        })?;
        let first = turns.first().and_then(|turn| turn.conversation.clone()).unwrap_or_default();
        // Of duplicate turns, the later one is the one used by the run.
        let turns = turns
            .into_iter()
            .map(|turn| ((turn.conversation.clone().unwrap_or_default(), turn.turn.unwrap_or_default()), turn))
            .collect();
        Ok(Self { name, pace: Duration::from_millis(header.pace_ms), strict: false, turns, first })
    }

    /// Refuses a turn whose recorded `request_hash` is not the request's. Otherwise the difference is only logged:
    /// prompts and tool results hold times and paths that change from run to run.
    #[must_use]
    pub fn strict(mut self) -> Self {
        self.strict = true;
        self
    }

    fn find(&self, request: &ChatRequest) -> Result<(usize, RecordedReply), ModelError> {
        let number = request.turn();
        let key = conversation_key(request);
        let own = self.turns.keys().any(|(conversation, _)| *conversation == key);
        let conversation = if own { key } else { self.first.clone() };
        let refuse = |message: String| ModelError {
            model: self.name.clone(),
            kind: ModelErrorKind::ReplayExhausted,
            message,
            retry_after_ms: None,
        };
        let count = self.turns.keys().filter(|(other, _)| *other == conversation).count();
        let turn = self.turns.get(&(conversation, number)).ok_or_else(|| {
            refuse(format!(
                "the recording has {count} turns for this conversation, and this is call {}; record the run again",
                number + 1
            ))
        })?;
        if turn.request_hash.is_some_and(|hash| hash != request_hash(request)) {
            if self.strict {
                return Err(refuse(format!("turn {number} was recorded for another request; record the run again")));
            }
            tracing::debug!(model = self.name, turn = number, "the request differs from the recorded one");
        }
        Ok((number, turn.reply.clone()))
    }
}

#[async_trait::async_trait]
impl Model for Replay {
    fn name(&self) -> &str {
        &self.name
    }

    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        let (turn, recorded) = self.find(request)?;
        if !self.pace.is_zero() {
            tokio::time::sleep(self.pace).await;
        }
        let reply = recorded.into_reply(turn, &self.name);
        if let Some(reasoning) = &reply.reasoning {
            on_delta(Delta::Reasoning(reasoning.clone()));
        }
        if !reply.text.is_empty() {
            on_delta(Delta::Text(reply.text.clone()));
        }
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    const FILE: &str = concat!(
        "{\"format\":\"motor-replay\",\"version\":1}\n",
        "{\"reply\":{\"text\":\"one\"}}\n",
        "{\"reply\":{\"text\":\"two\"}}\n",
    );

    fn request(turns: usize) -> ChatRequest {
        let assistant = Message::Assistant { text: "x".into(), tool_calls: Vec::new(), state: None };
        let messages = std::iter::once(Message::User { text: "task".into() })
            .chain(std::iter::repeat_n(assistant, turns))
            .collect();
        ChatRequest { messages, ..ChatRequest::default() }
    }

    async fn ask(replay: &Replay, turns: usize) -> Result<String, ModelError> {
        replay.chat(&request(turns), &mut |_| {}).await.map(|reply| reply.text)
    }

    #[tokio::test]
    async fn the_turn_follows_the_conversation_not_the_order_of_calls() {
        let replay = Replay::from_bytes("replay/x", FILE.as_bytes()).unwrap();
        assert_eq!(ask(&replay, 1).await.unwrap(), "two");
        assert_eq!(ask(&replay, 0).await.unwrap(), "one");
        assert_eq!(ask(&replay, 0).await.unwrap(), "one");
        let error = ask(&replay, 2).await.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::ReplayExhausted);
        assert!(error.to_string().contains("2 turns"), "{error}");
    }

    #[tokio::test]
    async fn conversations_do_not_mix() {
        let key = conversation_key(&ChatRequest { system: "second attempt".into(), ..request(0) });
        let file = format!("{FILE}{{\"conversation\":\"{key}\",\"turn\":0,\"reply\":{{\"text\":\"again\"}}}}\n");
        let replay = Replay::from_bytes("replay/x", file.as_bytes()).unwrap();
        let second = ChatRequest { system: "second attempt".into(), ..request(0) };
        assert_eq!(replay.chat(&second, &mut |_| {}).await.unwrap().text, "again");
        assert_eq!(ask(&replay, 0).await.unwrap(), "one");
        let later = ChatRequest { system: "second attempt".into(), ..request(1) };
        assert!(replay.chat(&later, &mut |_| {}).await.is_err());
    }

    #[tokio::test]
    async fn a_strict_replay_refuses_another_request() {
        let hash = serde_json::to_string(&request_hash(&request(0))).unwrap();
        let file = format!(
            "{{\"format\":\"motor-replay\",\"version\":1}}\n{{\"request_hash\":{hash},\"reply\":{{\"text\":\"a\"}}}}\n"
        );
        let replay = Replay::from_bytes("replay/x", file.as_bytes()).unwrap();
        let other = ChatRequest { system: "other".into(), ..request(0) };
        assert_eq!(replay.chat(&other, &mut |_| {}).await.unwrap().text, "a");
        let replay = replay.strict();
        assert_eq!(ask(&replay, 0).await.unwrap(), "a");
        assert!(replay.chat(&other, &mut |_| {}).await.is_err());
    }

    #[test]
    fn a_directory_is_no_recording() {
        let directory = tempfile::tempdir().unwrap();
        let error = Replay::open(directory.path()).err().unwrap();
        assert!(error.message.contains("not a regular file"), "{error}");
    }

    #[test]
    fn a_missing_file_does_not_show_where_it_was_sought() {
        let error = Replay::open(Path::new("/nonexistent/secret-place/turns.jsonl")).unwrap_err().to_string();
        assert!(error.contains("replay/turns.jsonl") && !error.contains("secret-place"), "{error}");
    }
}
