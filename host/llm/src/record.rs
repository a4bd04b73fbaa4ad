//! Recording of any run: a model that records each turn it passes on, so that [`crate::Replay`] can serve it.
//!
//! It survives a kill at any point: a line goes out in one write, a torn last line is dropped at the next start, and a
//! repeated turn replaces the one whose answer was lost. It does not survive a power cut, and need not: a recording is
//! not the state of a run, so nothing here waits for the disk.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::recording::{self, Header, RecordedTurn, conversation_key, request_hash};
use crate::{ChatReply, ChatRequest, Delta, Model, ModelError};

/// Records the replies of another model.
pub struct Recorder {
    inner: Arc<dyn Model>,
    file: Arc<Mutex<RecordingFile>>,
}

/// A recording that cannot be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// The file cannot be read or written.
    #[error("cannot write the recording: {}", .0.kind())]
    Io(#[from] io::Error),
    /// The existing file is not a recording: it is left unchanged.
    #[error("the file to record into is something else: {0}; name a new file")]
    NotARecording(#[from] recording::InvalidRecording),
}

impl Recorder {
    /// Records `inner` into `path`: a new file, or one that an earlier part of the same run began.
    ///
    /// # Errors
    /// If the file cannot be written, or is not a recording.
    pub fn open(inner: Arc<dyn Model>, path: &Path) -> Result<Self, RecordError> {
        Ok(Self { inner, file: Arc::new(Mutex::new(RecordingFile::open(path)?)) })
    }
}

#[async_trait::async_trait]
impl Model for Recorder {
    fn name(&self) -> &str {
        self.inner.name()
    }

    /// A reply is passed on even if it cannot be recorded: the run is worth more than its recording. The failure is
    /// logged, and recording stops, because a recording with a gap would replay wrongly.
    async fn chat(
        &self,
        request: &ChatRequest,
        on_delta: &mut (dyn FnMut(Delta) + Send),
    ) -> Result<ChatReply, ModelError> {
        let reply = self.inner.chat(request, on_delta).await?;
        let turn = RecordedTurn {
            conversation: Some(conversation_key(request)),
            turn: Some(request.turn()),
            request_hash: Some(request_hash(request)),
            reply: (&reply).into(),
        };
        let file = Arc::clone(&self.file);
        let write = move || file.lock().put(turn);
        match tokio::task::spawn_blocking(write).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!(kind = %error.kind(), "recording stopped: the file cannot be written"),
            Err(_) => tracing::error!("recording stopped: the writer failed"),
        }
        Ok(reply)
    }
}

struct RecordingFile {
    path: PathBuf,
    /// Open for appending; `None` once a write has failed.
    file: Option<File>,
    header: Header,
    turns: Vec<RecordedTurn>,
}

impl RecordingFile {
    fn open(path: &Path) -> Result<Self, RecordError> {
        let mut bytes = Vec::new();
        match File::open(path) {
            Ok(file) => {
                file.take(recording::MAX_BYTES + 1).read_to_end(&mut bytes)?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
        // A line and its end are written in one piece: a remainder after the last line end is torn. A file without any
        // line end may be anything, and is judged whole.
        if let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') {
            bytes.truncate(end + 1);
        }
        let (header, turns) = if bytes.is_empty() { Default::default() } else { recording::parse(&bytes)? };
        let mut recording = Self { path: path.to_owned(), file: None, header, turns };
        recording.rewrite()?;
        Ok(recording)
    }

    fn put(&mut self, turn: RecordedTurn) -> io::Result<()> {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        let later = |other: &RecordedTurn| other.conversation == turn.conversation && other.turn >= turn.turn;
        if self.turns.iter().any(later) {
            // The run was resumed before this turn: the recorded turns from here on were not used.
            self.turns.retain(|other| !later(other));
            self.turns.push(turn);
            return self.rewrite();
        }
        file.write_all(&line(&turn)?)?;
        self.turns.push(turn);
        self.file = Some(file);
        Ok(())
    }

    /// Replaces the file by a renamed new one, so that a kill leaves either the old recording or the new.
    fn rewrite(&mut self) -> io::Result<()> {
        let mut bytes = line(&self.header)?;
        for turn in &self.turns {
            bytes.extend_from_slice(&line(turn)?);
        }
        let mut name = self.path.file_name().unwrap_or_default().to_owned();
        name.push(".new");
        let new = self.path.with_file_name(name);
        // A crash may have left a file; any other kind of file is not opened either: a pipe would block.
        match std::fs::remove_file(&new) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        private(OpenOptions::new().write(true).create_new(true)).open(&new)?.write_all(&bytes)?;
        std::fs::rename(&new, &self.path)?;
        self.file = Some(OpenOptions::new().append(true).open(&self.path)?);
        Ok(())
    }
}

fn line(value: &impl serde::Serialize) -> io::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}

/// A model's text about a run's files is for the owner only.
fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, Replay};

    fn replay(words: &[&str]) -> Arc<dyn Model> {
        let turns: String = words.iter().map(|word| format!("{{\"reply\":{{\"text\":\"{word}\"}}}}\n")).collect();
        let file = format!("{{\"format\":\"motor-replay\",\"version\":1}}\n{turns}");
        Arc::new(Replay::from_bytes("replay/x", file.as_bytes()).unwrap())
    }

    fn request(turns: usize) -> ChatRequest {
        let assistant = Message::Assistant { text: "x".into(), tool_calls: Vec::new(), state: None };
        let messages = std::iter::once(Message::User { text: "task".into() })
            .chain(std::iter::repeat_n(assistant, turns))
            .collect();
        ChatRequest { messages, ..ChatRequest::default() }
    }

    async fn texts(path: &Path, turns: usize) -> Vec<String> {
        let replay = Replay::open(path).unwrap().strict();
        let mut texts = Vec::new();
        for turn in 0..turns {
            texts.push(replay.chat(&request(turn), &mut |_| {}).await.unwrap().text);
        }
        assert!(replay.chat(&request(turns), &mut |_| {}).await.is_err());
        texts
    }

    #[tokio::test]
    async fn a_recording_replays_also_after_a_kill_and_a_resume() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let first = Recorder::open(replay(&["a", "b", "lost"]), &path).unwrap();
        for turn in 0..3 {
            first.chat(&request(turn), &mut |_| {}).await.unwrap();
        }
        drop(first);
        // The kill tore a line, and the answer of the last whole line never reached the run.
        OpenOptions::new().append(true).open(&path).unwrap().write_all(b"{\"conversation\":\"to").unwrap();
        let resumed = Recorder::open(replay(&["a", "b", "c", "d"]), &path).unwrap();
        for turn in 2..4 {
            resumed.chat(&request(turn), &mut |_| {}).await.unwrap();
        }
        assert_eq!(texts(&path, 4).await, ["a", "b", "c", "d"]);
        assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 5);
    }

    #[tokio::test]
    async fn another_file_is_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.txt");
        for text in ["my notes\nmore\n", "no line end"] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(Recorder::open(replay(&["a"]), &path), Err(RecordError::NotARecording(_))));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_recording_is_for_its_owner_alone() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        Recorder::open(replay(&["a"]), &path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
