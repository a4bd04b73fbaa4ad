//! Staged writes of runs as callers see them (SPEC LAND-5). camelCase JSON, times in milliseconds since the epoch.

use base::{ConsentRecord, ContentHash, RunId, Timestamp};
use network::HeldHeader;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The writes that a run staged, in order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedTask {
    /// Id of the run.
    pub run_id: RunId,
    /// The first 200 characters of its task.
    pub task: String,
    /// Number of writes that wait for the owner.
    pub held: u32,
    /// All of them, also those that were sent or discarded.
    pub writes: Vec<StagedWrite>,
}

/// Where a staged write is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StagedStatus {
    /// It waits for the owner. Nothing of it has left.
    Held,
    /// It is being sent.
    Sending,
    /// A server has answered it.
    Sent,
    /// It may have been sent: the host stopped, or the connection broke, before there was an answer. It is not sent again
    /// unless the owner says so.
    OutcomeUnknown,
    /// The owner discarded it. It is never sent.
    Discarded,
}

impl StagedStatus {
    /// The status as it appears in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::OutcomeUnknown => "outcome_unknown",
            Self::Discarded => "discarded",
        }
    }
}

/// A write as it was held. Placeholders stand for credentials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedWrite {
    /// Its number within the run, from 1.
    pub number: u32,
    /// Where it is in its life.
    pub status: StagedStatus,
    /// The HTTP method of the request.
    pub method: String,
    /// The whole URL, without secrets.
    pub url: String,
    /// Its headers, without those that the host sets.
    #[schemars(with = "Vec<WriteHeader>")]
    pub headers: Vec<HeldHeader>,
    /// The `Idempotency-Key` that it is sent with.
    pub idempotency_key: String,
    /// The credentials that are put in, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// The whole body, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// The whole body in base64, if it is not text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body_base64: Option<String>,
    /// The hash of all of it: a consent names the hash that was shown.
    pub hash: ContentHash,
    /// Time it was staged.
    pub staged_at: Timestamp,
    /// Sources of the untrusted content that the run had read before it made the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The owner's consent to send it, or decision to discard it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub consent: Option<ConsentRecord>,
    /// Why there is no response, after an attempt to send it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// The response, if there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response: Option<StagedResponse>,
}

/// A header of a request or response.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "stands for `network::HeldHeader` in the schema")]
struct WriteHeader {
    /// The name, in lower case.
    name: String,
    /// The value, as text.
    value: String,
}

/// The response to a write, without secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StagedResponse {
    /// HTTP status of the response.
    pub status: u16,
    /// `content-type`, `location`, `retry-after` and `etag`, if there are any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<WriteHeader>")]
    pub headers: Vec<HeldHeader>,
    /// The first 64 KiB of the body, if it is text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Bytes of the body.
    pub body_bytes: u64,
    /// Why the body ended early. The server has answered the write nevertheless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<String>,
    /// Milliseconds that it took.
    pub duration_ms: f64,
}

/// Writes to send, as they were shown to the owner.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SendStaged {
    /// The writes, each with the hash that was shown. They are sent in this order, one after another.
    pub writes: Vec<ShownWrite>,
    /// Whether writes whose outcome is unknown are sent again. A server that checks idempotency keys takes them once.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// A write that was shown to the owner.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ShownWrite {
    /// Its number within the run.
    #[serde(deserialize_with = "base::whole::number")]
    pub number: u32,
    /// Its hash as it was shown.
    pub hash: ContentHash,
}

/// The writes to discard.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DiscardStaged {
    /// Their numbers. Default: all that are held.
    #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "base::whole::list")]
    pub writes: Vec<u32>,
}
