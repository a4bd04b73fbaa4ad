//! The disk usage of a home. Links are counted as links and never followed: guests make them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde::Serialize;

use crate::Home;

/// Bytes of a block, as `st_blocks` counts them.
const BLOCK: u64 = 512;

/// Disk usage of the parts of a home.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HomeUsage {
    /// Bytes used by `state`.
    pub state_bytes: u64,
    /// Bytes of `runs`: workspaces and artifacts.
    pub runs_bytes: u64,
    /// Number of directories in `runs`.
    pub runs: u64,
    /// Bytes of the trace files.
    pub traces_bytes: u64,
}

impl HomeUsage {
    /// Measures a home, whether or not a host has it open. Reads every directory below it: not for a request.
    #[must_use]
    pub fn measure(home: &Home) -> Self {
        let runs = fs::read_dir(home.runs()).map_or(0, |entries| entries.flatten().count() as u64);
        Self {
            state_bytes: on_disk(&home.state()),
            runs_bytes: on_disk(&home.runs()),
            runs,
            traces_bytes: on_disk(&home.logs()),
        }
    }
}

/// The bytes of everything at or below `path`. Unreadable or vanished entries count as 0.
pub(super) fn on_disk(path: &Path) -> u64 {
    let mut bytes: u64 = 0;
    // A list instead of recursion: guests can nest directories to any depth.
    let mut left = vec![path.to_owned()];
    while let Some(path) = left.pop() {
        let metadata = match fs::symlink_metadata(&path) {
            Ok(metadata) => metadata,
            Err(error) => {
                if error.kind() != ErrorKind::NotFound {
                    tracing::debug!(%error, "a file is not counted");
                }
                continue;
            }
        };
        bytes = bytes.saturating_add(metadata.blocks().saturating_mul(BLOCK));
        if metadata.is_dir()
            && let Ok(entries) = fs::read_dir(&path)
        {
            left.extend(entries.flatten().map(|entry| entry.path()));
        }
    }
    bytes
}
