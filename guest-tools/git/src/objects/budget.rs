//! The limits of one call: bytes that are decompressed, and time.

use std::cell::Cell;
use std::time::Instant;

use crate::error::{Fault, Result};
use crate::limits::MAX_INFLATED_BYTES;

/// Counts the work of one call.
#[derive(Debug)]
pub(crate) struct Budget {
    bytes: Cell<u64>,
    calls: Cell<u64>,
    deadline: Option<Instant>,
}

impl Budget {
    pub(crate) fn until(deadline: Option<Instant>) -> Self {
        Self { bytes: Cell::new(0), calls: Cell::new(0), deadline }
    }

    /// Counts bytes before they are decompressed.
    pub(crate) fn inflate(&self, bytes: u64) -> Result<()> {
        let all = self.bytes.get().saturating_add(bytes);
        self.bytes.set(all);
        if all > MAX_INFLATED_BYTES {
            return Err(Fault::limit(format_args!("objects decompress to more than {MAX_INFLATED_BYTES} bytes")));
        }
        self.time()
    }

    /// Counts an object or a file that is looked at.
    pub(crate) fn object(&self) -> Result<()> {
        let calls = self.calls.get().wrapping_add(1);
        self.calls.set(calls);
        // The clock is a call to the host.
        if calls.is_multiple_of(64) { self.time() } else { Ok(()) }
    }

    fn time(&self) -> Result<()> {
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => {
                Err(Fault { code: 124, message: "fatal: the time of this call is over".to_owned() })
            }
            _ => Ok(()),
        }
    }
}
