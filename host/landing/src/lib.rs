//! Applying the changes of a run to the owner's directories, all or nothing, and taking them back (SPEC LAND-3, LAND-4).
//!
//! A landing has a directory of its own below that of the run:
//! - `plan.json`: the edits in their order, with the state that each expects; written before anything is touched.
//! - `state`: `staging`, `applying`, `landed`, `rolled_back` or `undone`.
//! - `staged.json`: the numbers of the staged files, by which an interrupted landing is taken back.
//! - `landed/N`: the new content of the edit N; `originals/N`: the content that it replaced or deleted.
//! - `commit.json`: the end of the commit that `plan.json` names, if it names one.
//! - `left/N`: content of the owner, written while a landing was taken back, which fits nowhere else.
//!
//! New contents are first written to a directory beside the owner's files, on the same file system. Then each path is
//! exchanged in one step, and the entry that came out is compared with the expected one: a file that the owner changed in
//! between takes everything back. A commit of the changes is finished after the files: its objects are written before
//! anything is touched, and its branch moves last, if the owner has not moved it. This crate knows nothing of runs, tools or consent.

mod apply;
mod commit;
mod edit;
mod error;
mod executed;
mod journal;
mod merge;
mod plan;
mod recover;
mod refused;
mod select;
mod stage;
mod step;
#[cfg(test)]
mod tests;
mod undo;

pub use apply::{CommitProgress, Landed, Landing, land};
pub use commit::{CommitEnd, LandedCommit, commit, draft};
pub use edit::{Edit, Side, Target};
pub use error::LandError;
pub use journal::State;
pub use plan::{Plan, Planned, Planning, Verdict, plan};
pub use recover::{recover, state};
pub use select::select;
pub use undo::{done, undo};
