//! Durable state: typed records in ordered tables, written in atomic batches that are on the disk before they are
//! acknowledged.
//!
//! Architecture invariant: the only crate that sees fjall and the only place that says fsync. It must not know the
//! meaning of a run, a signal or an energy level: its caller defines tables, keys and values. It survives `kill -9` at
//! any instant without losing acknowledged commits; a full disk refuses a write and harms nothing stored; a failed sync
//! stops all further acknowledgements until the store is opened again; a damaged, foreign or newer state directory is
//! refused before anything in it is changed, and so is one that is behind its mark, which records the last commit.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

mod batch;
mod blocking;
mod error;
mod faults;
mod file;
mod handle;
mod journal;
mod layout;
mod lock;
mod loss;
mod manifest;
mod record;
mod regular;
mod scan;
mod schema;
mod simulated;
mod table;
mod tables;
#[cfg(test)]
mod tests;
mod watermark;
mod writer;

pub use batch::Batch;
pub use blocking::{blocking, broke_off};
pub use error::StoreError;
pub use faults::{Faults, NoFaults};
pub use file::{Creation, create_file, replace_file, sync};
pub use handle::{Store, exists};
pub use lock::HomeLock;
pub use loss::{Loss, accept_loss};
pub use regular::{Links, first_special, open_regular, read_regular};
pub use scan::{Each, Scan};
pub use schema::SCHEMA_VERSION;
pub use simulated::{DiskFault, SimulatedDisk};
pub use table::Table;
pub use writer::RESERVE_BYTES;
