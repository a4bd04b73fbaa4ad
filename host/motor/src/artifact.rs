//! A file that a run produced (SPEC RUN-12).

use base::ContentHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file that a run produced, as it lies in the run's artifacts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// Its path below the artifacts' directory, with `/` between the parts.
    pub path: String,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Hash of the file's content.
    pub hash: ContentHash,
}
