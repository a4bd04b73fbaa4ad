//! `[channels]`: ways of messages beside the HTTP API.

use std::path::PathBuf;

use base::AgentName;
use serde::{Deserialize, Serialize};

/// The section `[channels]` of the configuration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelsConfig {
    /// Messages as files of a directory. Default none.
    pub directory: Option<DirectoryConfig>,
}

/// The section `[channels.directory]` of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DirectoryConfig {
    /// The directory with `inbox` and `outbox`, an absolute path.
    pub path: PathBuf,
    /// The agent that the messages are for. Default `main`.
    #[serde(default)]
    pub agent: AgentName,
}
