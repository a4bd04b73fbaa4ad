//! A copy-on-write layer over directories of the owner (SPEC LAND-1).
//!
//! A run sees the directories as they were when it began; everything that it writes, renames or deletes is in the
//! layer, below the run's own directory. This crate only ever reads the owner's directories: no function in it opens
//! anything there for writing. It knows no wasm, no runs and no tools.
//!
//! On disk, below the directory of a run:
//! - `workspace/`: every file and directory that the run made or changed, at its path as the run sees it.
//! - `layer/sources.json`: the directories, written once.
//! - `layer/gone/PATH`: an empty file for each path of the owner that the run deleted, with everything below it.
//! - `layer/base/PATH`: a file of the owner as it was before the run first changed it.
//! - `layer/touched.jsonl`: which call touched which path first.
//!
//! Each operation changes the run's view in one step, so a host that is killed leaves the state before or after it.

mod altered;
mod changes;
mod copy;
mod error;
mod handles;
mod layer;
mod lookup;
mod path;
mod rules;
mod secrets;
mod sources;
#[cfg(test)]
mod tests;
mod touched;
mod tree;
mod write;

pub use changes::{After, Before, Change, Changes, MAX_CHANGES, OUTPUT};
pub use copy::CopySize;
pub use error::LayerError;
pub use layer::{Call, Entry, Guard, Layer, NewTime, OpenMode, OpenedFile, Origin};
pub use path::{plain, within};
pub use rules::KeptOut;
pub use secrets::folded;
pub use sources::{Source, SourceRequest};
pub use touched::{Operation, Touch};
pub use tree::{FileKind, Stat, Tree, stat_of};
