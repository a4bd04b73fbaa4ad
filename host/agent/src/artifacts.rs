//! The output of a run: new or changed files of its workspace, copied to `artifacts/` next to it (SPEC RUN-12).
//!
//! The workspace was filled by guests. Links are not followed and only files are read; every copy is scrubbed of
//! secrets, in any kind of file, and bounded. After a crash: the copy is staged and appears by one rename once it is
//! durable, and a run that ends again copies again.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base::{ContentHash, ContentHasher, Refusal, RefusalCode, RunId};
use grants::DirectoryGrant;
use motor::Artifact;
use receipts::tree::{FoundEntry, Odd, TreeError, sum, walk};
use runtime::Limits;
use serde::{Deserialize, Serialize};
use store::{Links, blocking};
use vault::Scrubber;

use crate::{Home, Runs};

/// Written by the host for the model to read; not an output of the run.
const OUTPUTS: &str = ".motor-output";
/// Staging directory of the copy, in the run's directory.
const STAGE: &str = ".artifacts";
const BASELINE: &str = "baseline.json";
/// The largest baseline: of 10,000 files with long names.
const MAX_BASELINE_BYTES: u64 = 16 << 20;

/// Contents of the workspace's files when its run was accepted. Runs without input files have none; in runs of versions
/// without a baseline, every file counts as produced.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct WorkspaceBaseline {
    files: BTreeMap<String, ContentHash>,
}

impl WorkspaceBaseline {
    /// A baseline of these files, by path.
    pub fn of(files: BTreeMap<String, ContentHash>) -> Self {
        Self { files }
    }

    /// Writes it into the run's directory, durably.
    pub fn write(&self, run: &Path) -> Result<(), Refusal> {
        let text = serde_json::to_vec(self).map_err(|error| failed(&error))?;
        store::create_file(run, BASELINE, &text)?;
        Ok(())
    }

    /// Reads the run's baseline. An unreadable one counts as empty: then too much is kept, not too little.
    pub fn read(run: &Path) -> Self {
        let read = || -> io::Result<Self> {
            let text = store::read_regular(&run.join(BASELINE), Links::Refused, MAX_BASELINE_BYTES)?;
            Ok(serde_json::from_slice(&text)?)
        };
        read().unwrap_or_else(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, "what a run was given cannot be read: all of its files count as produced");
            }
            Self::default()
        })
    }

    /// Whether this path was an input file.
    pub fn names(&self, path: &str) -> bool {
        self.files.contains_key(path)
    }

    /// Whether an input file had this content, under any path.
    pub fn holds(&self, hash: ContentHash) -> bool {
        self.files.values().any(|given| *given == hash)
    }

    /// Whether this path was an input file with this content.
    pub fn has(&self, path: &str, hash: ContentHash) -> bool {
        self.files.get(path) == Some(&hash)
    }
}

impl Runs {
    /// The bytes of a file that a run produced, if they are still those that it produced.
    ///
    /// # Errors
    /// `not_found` if the run has no such file, or it was changed since.
    pub async fn artifact(&self, id: &RunId, path: &str) -> Result<Vec<u8>, Refusal> {
        // The path is only compared: the one that is opened is the host's own.
        let known = self.summary(id)?.artifacts.into_iter().find(|artifact| artifact.path == path);
        let Some(Artifact { path, bytes, hash }) = known else {
            return Err(Refusal::new(RefusalCode::NotFound, format!("run `{id}` has no such file")));
        };
        let file = self.environment.home.artifacts(id).join(path);
        blocking(move || {
            let content = store::read_regular(&file, Links::Refused, bytes);
            match content.ok().filter(|content| ContentHash::of(content) == hash) {
                Some(content) => Ok(content),
                None => {
                    Err(Refusal::new(RefusalCode::NotFound, "the file is gone, or was changed since the run made it"))
                }
            }
        })
        .await
    }
}

/// Copies the run's output to its artifacts, replaces existing ones, and lists them by path.
///
/// # Errors
/// If there is too much output, or the disk fails; do not rely on the artifacts then.
pub(crate) async fn collect(
    home: &Home,
    run: &RunId,
    scrubber: Arc<Scrubber>,
    limits: &Limits,
    directories: &[DirectoryGrant],
) -> Result<Vec<Artifact>, Refusal> {
    // Changes in the owner's directories are landed, not copied.
    let landed: Vec<_> = directories.iter().map(|directory| directory.prefix.clone()).collect();
    if landed.iter().any(String::is_empty) {
        return Ok(Vec::new());
    }
    let (directory, artifacts, limits) = (home.run(run), home.artifacts(run), *limits);
    let workspace = home.workspace(run);
    blocking(move || {
        // The target of a link does not belong to the run.
        if fs::symlink_metadata(&workspace).is_ok_and(|found| !found.is_dir()) {
            tracing::warn!(workspace = %workspace.display(), "a run's workspace is not a directory: nothing of it is kept");
            return Ok(Vec::new());
        }
        let stage = directory.join(STAGE);
        remove(&stage)?;
        let baseline = WorkspaceBaseline::read(&directory);
        let copier = Copier { baseline, landed, stage: stage.clone(), scrubber, limits };
        let copied = copier.copy(&workspace);
        let appeared = copied.and_then(|produced| appear(&stage, &artifacts, &directory).map(|()| produced));
        if appeared.is_err() {
            remove(&stage).ok();
        }
        appeared
    })
    .await
}

/// Puts the copy in its place. Existing artifacts are only replaced: a run that is over is not copied again.
fn appear(stage: &Path, artifacts: &Path, run: &Path) -> Result<(), Refusal> {
    remove(artifacts)?;
    if stage.exists() {
        fs::rename(stage, artifacts).map_err(|error| storage(&error))?;
        store::sync(&File::open(run).map_err(|error| storage(&error))?)?;
    }
    Ok(())
}

fn remove(directory: &Path) -> Result<(), Refusal> {
    match fs::remove_dir_all(directory) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(storage(&error)),
        _ => Ok(()),
    }
}

struct Copier {
    baseline: WorkspaceBaseline,
    /// The owner's directories in the workspace.
    landed: Vec<String>,
    stage: PathBuf,
    scrubber: Arc<Scrubber>,
    limits: Limits,
}

impl Copier {
    fn copy(&self, workspace: &Path) -> Result<Vec<Artifact>, Refusal> {
        let most = self.limits.workspace_bytes;
        let (mut left, mut room) = (most, most);
        let mut produced = BTreeMap::new();
        // The directory of long outputs does not count towards the guest's limit.
        let entries = self.limits.workspace_files.saturating_add(1);
        let read = walk(
            workspace,
            entries,
            Odd::Ignored,
            |path| path == OUTPUTS || self.landed.iter().any(|prefix| path == prefix),
            |FoundEntry { path, mut file }| {
                let found = sum(&mut file, left.saturating_add(1)).map_err(|error| storage(&error))?;
                left = left.checked_sub(found.bytes).ok_or_else(|| too_much(most))?;
                if !self.baseline.has(&path, found.hash) {
                    file.rewind().map_err(|error| storage(&error))?;
                    // A name is disclosed as freely as a content.
                    let path = free(self.scrubber.text(path), &produced);
                    let (bytes, hash) = self.copy_one(&path, file, found.bytes, room)?;
                    room -= bytes;
                    produced.insert(path.clone(), Artifact { path, bytes, hash });
                }
                Ok(())
            },
        );
        read.map_err(|CollectError(refusal)| refusal)?;
        sync_directories(&self.stage)?;
        Ok(produced.into_values().collect())
    }

    /// Copies the first `bytes` of a file, or fewer if it has become shorter. At most `room` are written.
    fn copy_one(&self, path: &str, from: File, bytes: u64, room: u64) -> Result<(u64, ContentHash), Refusal> {
        let to = self.stage.join(path);
        if let Some(parent) = to.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(|error| storage(&error))?;
        }
        let to = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&to);
        let mut to = to.map_err(|error| storage(&error))?;
        let (mut hasher, mut written) = (ContentHasher::default(), 0);
        let mut put = |piece: &[u8]| {
            written += piece.len() as u64;
            if written > room {
                return Err(too_much(self.limits.workspace_bytes));
            }
            hasher.update(piece);
            to.write_all(piece).map_err(|error| storage(&error))
        };
        let (mut from, mut stream) = (from.take(bytes), self.scrubber.stream());
        let mut buffer = vec![0; 64 << 10];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => put(&stream.push(buffer.get(..read).unwrap_or_default()))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(storage(&error)),
            }
        }
        put(&stream.finish())?;
        store::sync(&to)?;
        Ok((written, hasher.finish()))
    }
}

/// A path that no other file has: two names may have differed only by a secret.
fn free(path: String, produced: &BTreeMap<String, Artifact>) -> String {
    let numbered = (2..).map(|number| format!("{path}.{number}"));
    std::iter::once(path.clone()).chain(numbered).find(|path| !produced.contains_key(path)).unwrap_or(path)
}

/// Syncs the copy's own directories: no other process writes there.
fn sync_directories(stage: &Path) -> Result<(), Refusal> {
    let mut waiting = if stage.exists() { vec![stage.to_owned()] } else { Vec::new() };
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(&directory).map_err(|error| storage(&error))? {
            let entry = entry.map_err(|error| storage(&error))?;
            if entry.file_type().map_err(|error| storage(&error))?.is_dir() {
                waiting.push(entry.path());
            }
        }
        store::sync(&File::open(&directory).map_err(|error| storage(&error))?)?;
    }
    Ok(())
}

/// Why a walk stopped.
struct CollectError(Refusal);

impl From<Refusal> for CollectError {
    fn from(refusal: Refusal) -> Self {
        Self(refusal)
    }
}

impl From<TreeError> for CollectError {
    fn from(error: TreeError) -> Self {
        Self(match error {
            TreeError::Io { source, .. } => storage(&source),
            other => failed(&other),
        })
    }
}

fn too_much(limit: u64) -> Refusal {
    Refusal::new(RefusalCode::Failed, format!("the run has produced more than `workspace_bytes`: {limit}"))
        .with_remedy("raise `limits.workspace_bytes`")
}

fn failed(error: &dyn std::error::Error) -> Refusal {
    Refusal::new(RefusalCode::Failed, format!("what the run has produced cannot be kept: {error}"))
}

fn storage(error: &io::Error) -> Refusal {
    Refusal::new(RefusalCode::StorageFailed, format!("what the run has produced cannot be kept: {error}"))
}

#[cfg(test)]
mod tests;
