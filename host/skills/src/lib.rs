//! Skills: directories, archives and components dropped in by people, their descriptions, their abilities, and whether
//! the owner trusts exactly these bytes.
//!
//! Architecture invariant: trust is a record in the store, bound to name, place and content hash. Nothing that lies in
//! a skill's own directory affects it. A missing, corrupt, older or unintelligible record means no trust. This crate
//! knows no wasm, no runs and no models: callers describe the abilities of components.
#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests"))]

#[cfg(test)]
mod corpora;
pub mod error;
pub mod extract;
pub mod install;
pub mod library;
pub mod manifest;
pub mod name;
pub mod place;
pub mod policy;
pub mod review;
pub mod snapshot;
pub mod status;
pub mod trust;
pub mod versions;

pub use error::SkillError;
pub use library::{Library, LibraryParts, SkillSummary, Taken};
pub use manifest::{Manifest, ManifestError};
pub use name::SkillName;
pub use place::{SkillPlace, SkillsRoot};
pub use policy::Policy;
pub use snapshot::{SkillBounds, SkillFile, SkillForm, Snapshot, SnapshotError, Stamp};
pub use status::SkillStatus;
pub use trust::{Standing, Subject, TrustBook, TrustRecord};
pub use versions::Versions;
