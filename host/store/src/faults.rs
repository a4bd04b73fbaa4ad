//! Points at which a test can make storage fail, or end the process, at a commit of its choice.

use std::fmt;
use std::io;

/// Called by the writer at each group of commits. The defaults do nothing.
///
/// The engine writes and syncs in one call, so that nothing is readable before it is durable; both failing calls
/// therefore come just before it, and both leave the batch unacknowledged and the store poisoned, like real failures
/// do.
pub trait Faults: Send + Sync + fmt::Debug {
    /// Before the journal is written.
    ///
    /// # Errors
    /// The error with which the write should fail.
    fn before_write(&self) -> io::Result<()> {
        Ok(())
    }

    /// Before the journal is synced. Called once for each sync.
    ///
    /// # Errors
    /// The error with which the sync should fail.
    fn before_sync(&self) -> io::Result<()> {
        Ok(())
    }

    /// After the sync, before the commit is acknowledged: ending the process here leaves a batch durable and
    /// unacknowledged.
    fn after_sync(&self) {}
}

/// Storage without injected faults.
#[derive(Debug, Clone, Copy)]
pub struct NoFaults;

impl Faults for NoFaults {}
