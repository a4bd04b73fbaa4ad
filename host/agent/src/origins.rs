//! Taint follows files: output of a run after reading web content carries its sources by content (SPEC TAINT-1).
//!
//! A run whose inputs have such bytes, as a file, as part of a skill, or in the words of its task, begins tainted.
//! Files are identified by their hash, so one changed byte makes another file; a file in the directory of another run
//! of the home is also identified by that run. Forgetting would let data out, so nothing here is ever removed.

use std::collections::BTreeSet;
use std::path::Path;

use base::{ContentHash, Refusal, RunId};
use motor::{Artifact, RunRecord};
use receipts::tree::{FoundEntry, Odd, TreeError, sum, walk};
use serde_json::Value;
use store::{Batch, Store, Table, blocking};

use crate::Home;
use crate::artifacts::WorkspaceBaseline;

/// Prefix of the keys of [`Table::Meta`] that hold the sources of contents.
const PREFIX: &str = "origin/";
/// Maximum number of sources kept per content.
const MAX_SOURCES: usize = 16;
/// Maximum number of files noted per run, and the largest that is hashed, in bytes.
const MAX_FILES: u64 = 10_000;
const MAX_FILE: u64 = 64 << 20;
/// Maximum depth of nested directories that are read.
const MAX_DEPTH: usize = 60;
/// Letters of a distinguishable line: shorter ones occur anywhere.
const MIN_LINE: usize = 40;
/// Maximum number of lines noted per answer or task.
const MAX_LINES: usize = 1_000;

/// The sources of contents, in the state of a home.
#[derive(Clone)]
pub(crate) struct Origins {
    store: Store,
    home: Home,
}

impl Origins {
    pub fn new(store: Store, home: Home) -> Self {
        Self { store, home }
    }

    /// Notes the files of a run's workspace, except its inputs. Durable when this returns.
    ///
    /// # Errors
    /// If the workspace cannot be read, or the store fails.
    pub async fn note_files(&self, run: &RunRecord) -> Result<(), Refusal> {
        if run.web_sources.is_empty() {
            return Ok(());
        }
        let (workspace, directory) = (self.home.workspace(&run.id), self.home.run(&run.id));
        let hashes = blocking(move || {
            let given = WorkspaceBaseline::read(&directory);
            files_of(&workspace).map(|hashes| hashes.into_iter().filter(|hash| !given.holds(*hash)).collect())
        });
        self.note(run, hashes.await?).await
    }

    /// The same for a run that ended without an answer.
    pub async fn note_ended(&self, run: &RunId) -> Result<(), Refusal> {
        match self.store.get::<RunRecord>(Table::Runs, run.as_str())? {
            Some(record) => self.note_files(&record).await,
            None => Ok(()),
        }
    }

    /// Notes the copies of a run's files.
    pub async fn note_copies(&self, run: &RunRecord, artifacts: &[Artifact]) -> Result<(), Refusal> {
        self.note(run, artifacts.iter().map(|artifact| artifact.hash).collect()).await
    }

    /// Notes a run's answer, except for lines of its task.
    pub async fn note_answer(&self, run: &RunRecord, answer: &str) -> Result<(), Refusal> {
        let told: BTreeSet<_> = texts(&run.task).collect();
        self.note(run, texts(answer).filter(|hash| !told.contains(hash)).collect()).await
    }

    async fn note(&self, run: &RunRecord, hashes: BTreeSet<ContentHash>) -> Result<(), Refusal> {
        let mut batch = Batch::new();
        for hash in hashes {
            let mut sources = self.known(hash)?;
            let before = sources.len();
            for source in &run.web_sources {
                if sources.len() < MAX_SOURCES && !sources.contains(source) {
                    sources.push(source.clone());
                }
            }
            if sources.len() > before {
                batch.put(Table::Meta, key(hash), &sources)?;
            }
        }
        Ok(self.store.commit(batch).await?)
    }

    /// The sources of a run's inputs.
    ///
    /// # Errors
    /// If the store fails: unknown content may be tainted.
    pub fn of(
        &self,
        task: &str,
        inputs: Option<&Value>,
        files: &[&Path],
        hashes: &[ContentHash],
    ) -> Result<Vec<String>, Refusal> {
        let mut sources = BTreeSet::new();
        let inputs = inputs.map(strings).unwrap_or_default();
        let told = inputs.into_iter().chain([task]).flat_map(texts);
        for hash in hashes.iter().copied().chain(told) {
            sources.extend(self.known(hash)?);
        }
        for path in files {
            if let Some(run) = self.run_of(path)
                && let Some(record) = self.store.get::<RunRecord>(Table::Runs, run.as_str())?
            {
                sources.extend(record.web_sources);
            }
        }
        Ok(sources.into_iter().collect())
    }

    /// The run whose directory has the file.
    fn run_of(&self, path: &Path) -> Option<RunId> {
        let runs = self.home.runs().canonicalize().ok()?;
        let path = path.canonicalize().ok()?;
        let run = path.strip_prefix(runs).ok()?.components().next()?;
        RunId::parse(run.as_os_str().to_str()?).ok()
    }

    fn known(&self, hash: ContentHash) -> Result<Vec<String>, Refusal> {
        Ok(self.store.get(Table::Meta, key(hash))?.unwrap_or_default())
    }
}

fn key(hash: ContentHash) -> String {
    format!("{PREFIX}{}", hash.hex())
}

/// The hashes of a whole text, and of its longer lines.
fn texts(text: &str) -> impl Iterator<Item = ContentHash> {
    let lines = text.lines().map(str::trim).filter(|line| line.chars().count() >= MIN_LINE).take(MAX_LINES);
    let whole = Some(text.trim()).filter(|text| text.chars().count() >= MIN_LINE);
    whole.into_iter().chain(lines).map(|text| ContentHash::of(text.as_bytes()))
}

/// All strings in a value.
fn strings(value: &Value) -> Vec<&str> {
    match value {
        Value::String(text) => vec![text],
        Value::Array(values) => values.iter().flat_map(strings).collect(),
        Value::Object(members) => members.values().flat_map(strings).collect(),
        _ => Vec::new(),
    }
}

fn files_of(workspace: &Path) -> Result<BTreeSet<ContentHash>, Refusal> {
    let mut hashes = BTreeSet::new();
    if !workspace.is_dir() {
        return Ok(hashes);
    }
    let visit = |FoundEntry { mut file, .. }: FoundEntry| {
        let found = sum(&mut file, MAX_FILE + 1).map_err(|source| TreeError::Io { path: String::new(), source })?;
        // An empty file has no content to trace, and occurs in many workspaces.
        if found.bytes > 0 && found.bytes <= MAX_FILE {
            hashes.insert(found.hash);
        }
        Ok(())
    };
    // A directory too deep to be walked must not hide its siblings.
    let is_deep = |path: &str| path.matches('/').count() >= MAX_DEPTH;
    match walk(workspace, MAX_FILES, Odd::Ignored, is_deep, visit) {
        Ok(()) => Ok(hashes),
        Err(error @ TreeError::Io { .. }) => {
            let reason = format!("the files of the run cannot be read: {error}");
            Err(Refusal::new(base::RefusalCode::StorageFailed, reason))
        }
        // With more files than that only the first are noted; files in the run's directory are identified by the run.
        Err(_) => Ok(hashes),
    }
}
