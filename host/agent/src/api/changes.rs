//! Changes of runs in the owner's directories, and landings, as callers see them (SPEC LAND-2 to LAND-4). camelCase JSON.

use std::path::PathBuf;

use base::{ConsentRecord, ContentHash, RunId};
use landing::State;
use motor::RunStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use skills::review::FileSide;

use super::commits::{CommitRequest, LandedCommit, PlannedCommit};

/// The changes of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RunChanges {
    /// The id of the run.
    pub run_id: RunId,
    /// Where the run is in its life. A run that is not over may change more.
    pub status: RunStatus,
    /// The directories that it works on.
    pub directories: Vec<ChangedDirectory>,
    /// The changed files, by path.
    pub files: Vec<ChangedFile>,
    /// The steps that changed something, in order.
    pub steps: Vec<ChangingStep>,
    /// Files of the directories that the run does not see because their names are those of secrets, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets_kept_out: Vec<String>,
}

/// A directory that a run works on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedDirectory {
    /// Absolute path on the host's machine.
    pub path: PathBuf,
    /// Its path below `/workspace`; empty if it is `/workspace` itself.
    pub prefix: String,
    /// Whether the run may only read it.
    pub read_only: bool,
}

/// A path that a run changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangedFile {
    /// The path below `/workspace`.
    pub path: String,
    /// The kind of its change.
    pub change: PathChange,
    /// The kind of the path, or that of the deleted one.
    pub kind: PathKind,
    /// The path that it had before it was renamed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The file when the run began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<FileSide>,
    /// The file as it is now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<FileSide>,
    /// Number of lines added, for texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub added: Option<u64>,
    /// Number of lines removed, for texts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed: Option<u64>,
    /// A unified diff with hidden characters written out; absent if a side is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The steps that touched it.
    pub steps: Vec<u32>,
    /// Whether the run had read from the web when it touched it last.
    pub after_web: bool,
}

/// The change of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathChange {
    /// The path is gone afterwards.
    Deleted,
    /// The path was not there before.
    Created,
    /// It is another one.
    Changed,
    /// It has another path.
    Renamed,
}

/// The kind of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PathKind {
    /// The entry is a file.
    File,
    /// The entry is a directory.
    Directory,
    /// The entry is a symbolic link.
    Link,
}

/// A step that changed something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChangingStep {
    /// The number of the step.
    pub step: u32,
    /// The model's words in it; may be empty.
    pub said: String,
    /// Whether the run had read from the web by then.
    pub after_web: bool,
    /// Number of paths that it touched.
    pub paths: usize,
}

/// A request to land changes, or to take a landing back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct LandRequest {
    /// The paths below `/workspace`, each with everything below it. Default: all.
    #[serde(default)]
    pub paths: Vec<String>,
    /// The number of the landing that is taken back. Default: the run's changes are landed.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "base::whole::option")]
    pub undoes: Option<u32>,
    /// Leave conflicting paths as they are. Default: a conflict refuses the whole.
    #[serde(default)]
    pub skip_conflicts: bool,
    /// Make the landed changes a commit on the branch that is checked out. Default: no commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<CommitRequest>,
    /// Make them a commit on a new branch of this name, and change no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The hash of the plan that was looked at. Another plan is refused. Default: any plan.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
}

/// The effects of a landing, deletions first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LandingPlan {
    /// The id of the run.
    pub run_id: RunId,
    /// The hash of the plan.
    pub hash: ContentHash,
    /// The number of the landing that it takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u32>,
    /// The directories that it works on.
    pub directories: Vec<ChangedDirectory>,
    /// The change of each path.
    pub paths: Vec<PlannedPath>,
    /// The effect on a git branch, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<PlannedCommit>,
    /// The hosts and files that the run has read from outside, if it has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub web_sources: Vec<String>,
}

/// The change of one path by a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedPath {
    /// The path below `/workspace`.
    pub path: String,
    /// The kind of its change.
    pub change: PathChange,
    /// The kind of the path, or of the new one.
    pub kind: PathKind,
    /// Whether it can be done.
    pub outcome: PlannedOutcome,
    /// The reason if it cannot be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The program that runs the file later, if one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_later: Option<String>,
    /// Whether the run had read from the web when it touched it last.
    pub after_web: bool,
}

/// Whether something can be landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PlannedOutcome {
    /// The path is changed as shown.
    Clean,
    /// It is done, together with the owner's own change of other lines.
    Merged,
    /// It is so already.
    Same,
    /// It conflicts with the owner's own change.
    Conflict,
    /// It is never done.
    Refused,
}

/// The result of a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LandReply {
    /// The number of the landing in the run.
    pub landing: u32,
    /// Number of paths that were changed, or are in the commit on a new branch.
    pub paths: usize,
    /// Directories that stay, because there is something in them that the run did not see.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<String>,
    /// Conflicting paths that stay as they are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
    /// The commit that was made or taken back, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<LandedCommit>,
}

/// A landing of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LandingSummary {
    /// Its number in the run.
    pub landing: u32,
    /// How far it is: `landed`, `rolled_back`, `undone`.
    pub state: String,
    /// Number of paths that it changed.
    pub paths: usize,
    /// The number of the landing that it took back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undoes: Option<u32>,
    /// The commit that it made or took back, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<LandedCommit>,
    /// Whose word it was.
    pub consent: ConsentRecord,
}

impl LandingSummary {
    /// Whether it is in force.
    #[must_use]
    pub fn is_landed(&self) -> bool {
        self.state == State::Landed.name()
    }
}
