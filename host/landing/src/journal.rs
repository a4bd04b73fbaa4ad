//! The directory of one landing: its plan and its progress.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use repository::Intent;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::commit::CommitEnd;
use crate::error::{LandError, Result};
use crate::plan::Plan;

const RECORD: &str = "plan.json";
const STATE: &str = "state";
const STAGED: &str = "staged.json";
const COMMIT: &str = "commit.json";

/// How far a landing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// New contents are being written beside the files: nothing is changed.
    Staging,
    /// Files are being exchanged.
    Applying,
    /// Every edit of the plan is applied.
    Landed,
    /// No edit of the plan is applied.
    RolledBack,
    /// It was applied and taken back by another landing.
    Undone,
}

impl State {
    /// The name that is stored and shown.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Staging => "staging",
            Self::Applying => "applying",
            Self::Landed => "landed",
            Self::RolledBack => "rolled_back",
            Self::Undone => "undone",
        }
    }

    fn named(name: &str) -> Option<Self> {
        [Self::Staging, Self::Applying, Self::Landed, Self::RolledBack, Self::Undone]
            .into_iter()
            .find(|state| state.name() == name)
    }
}

/// The record that is written before anything is touched.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The version of this form.
    pub version: u32,
    /// The name of the directory beside the owner's files.
    pub staging: String,
    /// The directory of the landing that this one takes back.
    pub undoes: Option<PathBuf>,
    /// The commit that is made, or taken back, after the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Intent>,
    pub plan: Plan,
}

/// The version of the form of a landing on the disk.
pub const VERSION: u32 = 1;

/// The directory of one landing.
#[derive(Debug, Clone)]
pub struct Journal(PathBuf);

impl Journal {
    pub fn at(directory: &Path) -> Self {
        Self(directory.to_owned())
    }

    /// Makes the directory; there must be no landing in it.
    pub fn create(&self, record: &Record) -> Result<()> {
        for part in ["landed", "originals", "left"] {
            fs::create_dir_all(self.0.join(part)).map_err(LandError::journal)?;
        }
        if self.state()?.is_some() {
            return Err(LandError::State("there already"));
        }
        self.write(RECORD, record)?;
        self.set(State::Staging)
    }

    pub fn record(&self) -> Result<Record> {
        let record: Record = self.read(RECORD)?;
        if record.version == VERSION { Ok(record) } else { Err(LandError::Damaged(RECORD)) }
    }

    /// The state; `None` if nothing was ever begun.
    pub fn state(&self) -> Result<Option<State>> {
        match fs::read_to_string(self.0.join(STATE)) {
            Ok(name) => State::named(name.trim()).map(Some).ok_or(LandError::Damaged(STATE)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(LandError::journal(error)),
        }
    }

    pub fn set(&self, state: State) -> Result<()> {
        self.replace(STATE, state.name().as_bytes()).map_err(LandError::journal)
    }

    /// Keeps the numbers of the staged files, by entry.
    pub fn keep_staged(&self, staged: &[Option<u64>]) -> Result<()> {
        self.write(STAGED, &staged)
    }

    pub fn staged(&self) -> Result<Vec<Option<u64>>> {
        self.read(STAGED)
    }

    /// The end of the commit; `None` if it is not there yet.
    pub fn commit_end(&self) -> Result<Option<CommitEnd>> {
        if self.0.join(COMMIT).exists() { self.read(COMMIT).map(Some) } else { Ok(None) }
    }

    pub fn set_commit_end(&self, end: CommitEnd) -> Result<()> {
        self.write(COMMIT, &end)
    }

    /// The new content of an entry.
    pub fn landed(&self, entry: usize) -> PathBuf {
        self.0.join("landed").join(entry.to_string())
    }

    /// The content that an entry replaced or deleted.
    pub fn original(&self, entry: usize) -> PathBuf {
        self.0.join("originals").join(entry.to_string())
    }

    /// The owner's own words, written while the landing was taken back.
    pub fn left(&self, entry: usize) -> PathBuf {
        self.0.join("left").join(entry.to_string())
    }

    fn read<T: DeserializeOwned>(&self, name: &'static str) -> Result<T> {
        let read = fs::read(self.0.join(name)).map_err(LandError::journal)?;
        serde_json::from_slice(&read).map_err(|_| LandError::Damaged(name))
    }

    fn write(&self, name: &str, value: &impl Serialize) -> Result<()> {
        let bytes = serde_json::to_vec(value).map_err(|error| LandError::journal(io::Error::other(error)))?;
        self.replace(name, &bytes).map_err(LandError::journal)
    }

    fn replace(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let new = self.0.join(format!("{name}.new"));
        let mut file = File::create(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(new, self.0.join(name))?;
        File::open(&self.0)?.sync_all()
    }
}
