//! Commits in a git repository of the owner (SPEC LAND-7).
//!
//! A commit is made in four parts, so that a caller can journal it with other work:
//! 1. [`Repository::draft`] reads and refuses; nothing is written.
//! 2. [`Repository::write`] writes the objects, which nothing refers to yet, and returns the [`Intent`]: the reference, its
//!    old and its new value, and the index entries that belong to it. The caller keeps it durably.
//! 3. [`Repository::move_reference`] moves the reference by compare-and-swap.
//! 4. [`Repository::update_index`] updates the entries that are still as they were.
//!
//! Parts 3 and 4 can be repeated after a crash. [`Intent::inverse`] takes them back. No hook, filter or other program runs, and
//! no variable of the environment is read but those that name the owner's configuration. This crate knows nothing of runs,
//! landings or consent.

mod draft;
mod error;
mod index;
mod intent;
mod open;
mod reference;
#[cfg(test)]
mod tests;
mod write;

pub use draft::{Change, Content, Draft, Place};
pub use error::CommitError;
pub use intent::{Intent, Standing};
pub use open::Repository;
