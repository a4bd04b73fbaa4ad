//! Applying what a run changed to the owner's directories, all or nothing, and taking it back (SPEC LAND-3, LAND-4).
//!
//! A landing has a directory of its own below that of the run:
//! - `plan.json`: what is done, in its order, and what has to be there before; written before anything is touched.
//! - `state`: `staging`, `applying`, `landed`, `rolled_back` or `undone`.
//! - `staged.json`: the numbers of the staged files, by which an interrupted landing is taken back.
//! - `landed/N`: the new content of the edit N; `originals/N`: what it replaced or deleted.
//! - `left/N`: what somebody wrote while a landing was taken back, which fits nowhere else.
//!
//! New contents are first written to a directory beside the owner's files, on the same file system. Then each path is
//! exchanged in one step, and what came out is compared with what was expected: a file that somebody changed in
//! between takes everything back. This crate knows nothing of runs, tools or consent.

mod apply;
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

pub use apply::{Landed, land};
pub use edit::{Edit, Side, Target};
pub use error::LandError;
pub use journal::State;
pub use plan::{Plan, Planned, Planning, Verdict, plan};
pub use recover::{recover, state};
pub use select::select;
pub use undo::{done, undo};
