//! Requests as a run's history knows them: those that calls made, and those that the owner is asked about.

use std::collections::BTreeMap;

use base::ContentHash;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request that a call made, or tried to make (SPEC NET-4): no query values, no secrets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OutgoingRequest {
    /// The HTTP method, for example `GET`.
    pub method: String,
    /// Scheme, host, port and path; of a query only the names.
    pub url: String,
    /// The host name, without a port.
    pub host: String,
    /// The response's status; none when there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of the request's body.
    pub sent_bytes: u64,
    /// Bytes of the response's body that were read.
    pub received_bytes: u64,
    /// The duration in milliseconds.
    pub duration_ms: f64,
    /// Credentials that were put in, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Why there was no whole response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The rule of the gate that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The hash of the request as it left or would have left, where a consent or an idempotency key is about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// Whether it used up a consent of the owner to this one request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub consented: bool,
    /// The number under which it is held for the owner: it was not sent (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<u32>,
}

/// The rules of the gate that the owner's consent to a request satisfies.
const RULES_OF_CONSENT: [&str; 3] = ["tainted_write", "carried_data", "consent_needed"];

impl OutgoingRequest {
    /// Whether it was refused for want of consent.
    #[must_use]
    pub fn wants_consent(&self) -> bool {
        self.rule.as_deref().is_some_and(|rule| RULES_OF_CONSENT.contains(&rule))
    }

    /// Whether a server accepted it and may have changed something because of it.
    #[must_use]
    pub fn is_done_write(&self) -> bool {
        self.status.is_some_and(|status| (200..400).contains(&status))
            && !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS" | "TRACE")
    }
}

/// A request as the owner is shown it before it is sent (SPEC APPR-1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownRequest {
    /// The HTTP method, for example `POST`.
    pub method: String,
    /// The whole URL, its query included; placeholders stand for credentials.
    pub url: String,
    /// Credentials that it would carry, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Bytes of its body.
    pub body_bytes: u64,
    /// The beginning of a body that has no fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
    /// Its fields, those that are not the user's first: of its query, its headers and its body.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<ShownField>,
}

/// One field of a request: of its query, or of its body.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ShownField {
    /// Where it stands: `items[0].amount`, `?page`.
    pub name: String,
    /// The value, cut to a displayable length.
    pub value: String,
    /// Where the value was first seen.
    pub origin: ValueOrigin,
}

/// Where a value was first seen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "from", rename_all = "snake_case")]
pub enum ValueOrigin {
    /// In the words of the user: the task, an answer, the guidance of an attempt.
    User,
    /// In a response that the run has read.
    Response {
        /// Host, path and place in it: `api.example.com/inbox messages[2]`.
        source: String,
    },
    /// Nowhere: the model wrote it.
    Model,
}

/// The consents that one call has, and how often its requests were sent before.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CallLeases {
    /// The requests that the owner consented to, by hash; as often as they may be sent.
    pub leases: Vec<ContentHash>,
    /// How often a request is known to have been sent by this run, by hash.
    pub sent: BTreeMap<ContentHash, u32>,
}
