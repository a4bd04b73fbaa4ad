//! Commits of landed changes, as callers see them (SPEC LAND-7). camelCase JSON.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request to make the landed changes a commit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CommitRequest {
    /// The message; its first line is the subject. Default: the beginning of the run's task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// The effect of a landing on a git branch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCommit {
    /// The kind of the effect.
    pub effect: CommitEffect,
    /// The branch; `HEAD` if none is checked out.
    pub branch: String,
    /// The commit that is taken back or stays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The parent of the new commit, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// The author of the new commit: name and address of the repository's configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    /// The message of the new commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Paths in the repository that git ignores: they are landed, and are no part of the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// Paths in the repository with changes of the owner that are not committed: they become part of the commit.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub own: Vec<String>,
}

/// The kind of an effect on a branch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommitEffect {
    /// A commit is made on the branch that is checked out.
    Commit,
    /// A commit is made on a new branch, and no file is changed.
    Branch,
    /// The branch goes back to before the commit, or is deleted.
    TakeBack,
    /// A commit that was taken back is made again.
    Redo,
    /// The branch has moved on: the commit stays.
    Keep,
}

/// The commit of a landing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LandedCommit {
    /// The id of the commit.
    pub id: String,
    /// The branch; `HEAD` if none was checked out.
    pub branch: String,
    /// Whether it is a branch of its own, so that no file was changed.
    pub is_new_branch: bool,
    /// The state of the commit.
    pub state: CommitState,
    /// The reason if it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The state of the commit of a landing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CommitState {
    /// The branch has it.
    Made,
    /// The owner moved the branch in between: the files are landed without a commit.
    NotMade,
    /// The branch is back where it was before it.
    TakenBack,
    /// The branch had moved on: the commit stays, and the files are as they were.
    Kept,
    /// The branch or the index could not be changed: it is tried again when the run's landings are looked at.
    Waits,
}
