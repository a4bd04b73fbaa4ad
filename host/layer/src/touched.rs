//! Which call of a run touched which path first: a review of the changes is arranged by it.

use std::collections::{BTreeMap, HashSet};
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::OFlags;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::error::Result;
use crate::tree::Tree;

/// The file in the layer's directory.
const FILE: &str = "touched.jsonl";
/// The most touches that are kept; later ones are still changes, but of no known step.
const MAX_TOUCHES: usize = 200_000;

/// The first operation of a call on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// Wrote to a file that was there.
    Write,
    /// The call made a file.
    Create,
    /// The call deleted a file.
    Delete,
    /// The call made a directory.
    MakeDirectory,
    /// The call removed a directory.
    RemoveDirectory,
    /// Renamed something to this path.
    Rename,
}

/// The first touch of a path in a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Touch {
    /// The key of the call.
    pub call: String,
    /// The step of the run.
    pub step: u32,
    /// The path as the run sees it.
    pub path: String,
    /// The operation on the path.
    pub operation: Operation,
    /// The path that it had before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
}

/// The file of touches, open for adding to it.
#[derive(Debug)]
pub struct Touches {
    file: Mutex<(File, usize)>,
}

/// The paths that one call has touched.
pub type Seen = Arc<Mutex<HashSet<String>>>;

impl Touches {
    pub fn open(layer: &Tree) -> Result<Self> {
        let count = read(layer)?.len();
        let mut file = layer.write(FILE, OFlags::RDWR | OFlags::CREATE | OFlags::APPEND)?;
        // A torn last line of a killed host ends here.
        file.write_all(b"\n")?;
        Ok(Self { file: Mutex::new((file, count)) })
    }

    /// Notes a touch before it is made.
    pub fn note(&self, touch: &Touch, seen: &Seen) -> Result<()> {
        if !seen.lock().insert(touch.path.clone()) {
            return Ok(());
        }
        let mut file = self.file.lock();
        if file.1 >= MAX_TOUCHES {
            return Ok(());
        }
        let mut line = serde_json::to_vec(touch).map_err(std::io::Error::other)?;
        line.push(b'\n');
        file.0.write_all(&line)?;
        file.1 += 1;
        Ok(())
    }
}

/// Every touch, in their order. A line that cannot be read is the rest of a killed host's write.
pub fn read(layer: &Tree) -> Result<Vec<Touch>> {
    let file = match layer.read(FILE) {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(Vec::new()),
        Err(error) => return Err(error.into()),
    };
    let mut touches = Vec::new();
    for line in BufReader::new(file).split(b'\n') {
        touches.extend(serde_json::from_slice(&line?).ok());
    }
    Ok(touches)
}

/// Touches by path, in their order.
pub fn by_path(touches: Vec<Touch>) -> BTreeMap<String, Vec<Touch>> {
    let mut by_path: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for touch in touches {
        by_path.entry(touch.path.clone()).or_default().push(touch);
    }
    by_path
}
