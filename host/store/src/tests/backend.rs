//! The two backends of a state, for tests that apply to both.

use std::sync::Arc;

use crate::{SimulatedDisk, Store, StoreError};

pub(super) enum Backend {
    Files(tempfile::TempDir),
    Simulated(Arc<SimulatedDisk>),
}

impl Backend {
    /// Each backend, without a state yet.
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
