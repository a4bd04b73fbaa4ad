//! The two places where a state can be, for tests of what holds for both.

use std::sync::Arc;

use crate::{SimulatedDisk, Store, StoreError};

pub(super) enum Backend {
    Files(tempfile::TempDir),
    Simulated(Arc<SimulatedDisk>),
}

impl Backend {
    /// Each, without a state yet.
    pub(super) fn both() -> [Self; 2] {
        [Self::Files(tempfile::tempdir().unwrap()), Self::Simulated(SimulatedDisk::new(1))]
    }

    pub(super) fn open(&self) -> Result<Store, StoreError> {
        match self {
            Self::Files(home) => Store::open(&home.path().join("state")),
            Self::Simulated(disk) => Store::simulated(disk.clone()),
        }
    }
}
