//! Small answers of commands as JSON: those that no route of the API has.

use std::path::{Path, PathBuf};

use agent::config::ConfigEntry;
use agent::{ChangedSetting, Decision};
use base::CredentialName;
use schemars::JsonSchema;
use serde::Serialize;

/// A credential that was set.
#[derive(Serialize, JsonSchema)]
pub(super) struct SetCredentialAnswer {
    /// Name of the credential.
    pub(super) name: CredentialName,
    /// True: a refusal is printed otherwise.
    pub(super) set: bool,
    /// Warnings for the owner; empty without any.
    pub(super) warnings: Vec<String>,
}

/// A saved credential that was accepted.
#[derive(Serialize, JsonSchema)]
pub(super) struct AcceptedCredential {
    /// Name of the credential.
    pub(super) name: CredentialName,
    /// The skill whose runs may use it; null for all runs.
    pub(super) skill: Option<String>,
    /// True: a refusal is printed otherwise.
    pub(super) accepted: bool,
}

/// A saved credential that was rejected and removed.
#[derive(Serialize, JsonSchema)]
pub(super) struct RejectedCredential {
    /// Name of the credential.
    pub(super) name: CredentialName,
    /// The skill whose run saved it; null for none.
    pub(super) skill: Option<String>,
    /// True: a refusal is printed otherwise.
    pub(super) rejected: bool,
}

/// A credential that was deleted.
#[derive(Serialize, JsonSchema)]
pub(super) struct DeletedCredential {
    /// Name of the credential.
    pub(super) name: CredentialName,
    /// True: a refusal is printed otherwise.
    pub(super) deleted: bool,
}

/// A decision about domains that was made or taken back.
#[derive(Serialize, JsonSchema)]
pub(super) struct MadeDecision<'a> {
    /// The decision as it is stored.
    pub(super) decision: &'a Decision,
    /// Whether it was taken back.
    pub(super) forgotten: bool,
}

/// The configuration file of a home.
#[derive(Serialize, JsonSchema)]
pub(super) struct ConfigFile {
    /// Path of the file.
    pub(super) path: PathBuf,
    /// Whether there is such a file.
    pub(super) exists: bool,
}

/// A configuration file that was edited.
#[derive(Serialize, JsonSchema)]
pub(super) struct EditedConfig<'a> {
    /// Path of the file.
    pub(super) path: &'a Path,
    /// Settings of the running host that differ now; empty without a host.
    pub(super) changed: &'a [ChangedSetting],
}

/// A key that was set or unset.
#[derive(Serialize, JsonSchema)]
pub(super) struct ChangedKey<'a> {
    /// The key with the value that is in force now.
    pub(super) entry: &'a ConfigEntry,
    /// Path of the file that was changed.
    pub(super) path: &'a Path,
    /// Settings of the running host that differ now; empty without a host.
    pub(super) changed: &'a [ChangedSetting],
}

/// The token of the owner.
#[derive(Serialize, JsonSchema)]
pub(super) struct PrintedToken<'a> {
    /// Text of the token.
    pub(super) token: &'a str,
}

/// The configuration of an MCP client, for pasting.
#[derive(Serialize, JsonSchema)]
pub(super) struct ClientSnippet {
    /// The file of the client that it belongs to; null if there is none on this machine.
    pub(super) file: Option<PathBuf>,
    /// The text to paste.
    pub(super) configuration: String,
}

/// The configuration of an MCP client that was written.
#[derive(Serialize, JsonSchema)]
pub(super) struct ClientInstall {
    /// The file of the client.
    pub(super) file: PathBuf,
    /// Whether the file was changed.
    pub(super) written: bool,
}

/// A host that accepts connections.
#[derive(Serialize, JsonSchema)]
pub(super) struct Listening {
    /// Path of the home's socket.
    pub(super) listening: PathBuf,
    /// Address of the page and the API, such as `http://127.0.0.1:7777`; null without a port.
    pub(super) address: Option<String>,
    /// Process id of the host.
    pub(super) pid: u32,
}

/// A term and its meaning.
#[derive(Serialize, JsonSchema)]
pub(super) struct Term {
    /// The term itself, lower case.
    #[serde(rename = "term")]
    pub(super) name: &'static str,
    /// Its meaning in a sentence or two.
    pub(super) meaning: String,
}
