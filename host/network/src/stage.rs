//! Writes that are held instead of being sent, until the owner sends them (SPEC LAND-5).
//!
//! The gate hands a write of a staged run to a [`Stage`], in the form in which it would leave: with placeholders, never with a
//! secret. It is durable before the guest is answered. [`deliver`] sends a held write later, through the same checks. It must
//! not know where writes are kept or who decides about them.

use std::collections::BTreeSet;

use async_trait::async_trait;
use base::{ContentHash, CredentialName};
use bytes::Bytes;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue};
use http_body_util::{BodyExt as _, Full};
use serde::{Deserialize, Serialize};

use crate::consent::CallConsents;
use crate::{
    BlockReason, CallLimits, CallNetwork, GateError, RequestTrace, Rule, RunNetwork, Target, Timeouts, Unit, WebSource,
};

/// Bytes of a held response's body that are kept; the rest is read and counted by the gate's own limits, and dropped.
pub const MAX_KEPT_RESPONSE_BYTES: usize = 64 << 10;
/// Headers of a response that are kept: the ones that tell the owner the fate of a write.
const KEPT_HEADERS: [HeaderName; 4] =
    [http::header::CONTENT_TYPE, http::header::LOCATION, http::header::RETRY_AFTER, http::header::ETAG];

/// A write as it would have left. Its body is beside it, so that a list of writes needs no bodies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldWrite {
    /// The method of the request.
    pub method: String,
    /// The absolute URL, with placeholders.
    pub url: String,
    /// The guest's headers, in order, with placeholders, without those that the gate sets itself.
    pub headers: Vec<HeldHeader>,
    /// The credentials that would be put in, by name.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub credentials: BTreeSet<CredentialName>,
    /// The hash of the request ([`Unit::hash`]), body included.
    pub hash: ContentHash,
    /// Tells the write from all others of its run: a call that is repeated after a crash holds it under the same key. Sent
    /// as `Idempotency-Key` unless the guest set one.
    pub key: String,
    /// The sources in the web that the run had read before it made the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The body, with placeholders.
    #[serde(skip)]
    pub body: Bytes,
}

/// A header of a held write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldHeader {
    /// The name, in lower case.
    pub name: String,
    /// The value, as text.
    pub value: String,
}

/// Why a write could not be held. It was not sent either.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotHeld {
    /// The limit or the failure, in one sentence.
    pub reason: String,
    /// The next step for the run.
    pub remedy: String,
}

/// Holds the writes of one run.
#[async_trait]
pub trait Stage: Send + Sync {
    /// Holds a write, and returns its number within the run. Durable when this returns. A write whose key is already held
    /// keeps its number.
    ///
    /// # Errors
    /// If there is no room for it, or it cannot be stored.
    async fn hold(&self, write: HeldWrite) -> Result<u32, NotHeld>;
}

impl HeldWrite {
    /// The form in which a request is held.
    ///
    /// # Errors
    /// If a header cannot be kept as text.
    pub(crate) fn of(unit: &Unit, hash: ContentHash, key: String, sources: &[WebSource]) -> Result<Self, BlockReason> {
        let mut headers = Vec::with_capacity(unit.headers.len());
        for (name, value) in &unit.headers {
            let Ok(text) = std::str::from_utf8(value.as_bytes()) else {
                let reason = format!("the header `{name}` is not UTF-8");
                return Err(not_staged(unit, reason, "send headers as text".to_owned()));
            };
            headers.push(HeldHeader { name: name.as_str().to_owned(), value: text.to_owned() });
        }
        Ok(Self {
            method: unit.method.to_string(),
            url: unit.target.to_string(),
            headers,
            credentials: unit.credentials.clone(),
            hash,
            key,
            sources: sources.iter().map(|source| source.host.clone()).collect(),
            body: unit.body.clone(),
        })
    }

    /// Bytes of the write: method, URL, headers and body.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let headers: usize = self.headers.iter().map(|header| header.name.len() + header.value.len()).sum();
        self.method.len() + self.url.len() + headers + self.body.len()
    }

    /// The `Idempotency-Key` that it is sent with.
    #[must_use]
    pub fn idempotency_key(&self) -> &str {
        let of_guest = self.headers.iter().find(|header| header.name == "idempotency-key");
        of_guest.map_or(self.key.as_str(), |header| header.value.as_str())
    }

    /// The request, if it still is the one that was held.
    fn request(&self) -> Result<http::Request<crate::RequestBody>, BlockReason> {
        let target = Target::parse(&self.url)?;
        let mut headers = HeaderMap::with_capacity(self.headers.len());
        for HeldHeader { name, value } in &self.headers {
            let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name.as_str()), HeaderValue::from_bytes(value.as_bytes()))
            else {
                return Err(altered(&target));
            };
            headers.append(name, value);
        }
        let body = Full::new(self.body.clone()).map_err(|never| match never {}).boxed_unsync();
        let uri = format!("{}://{}{}", target.scheme().as_str(), target.authority(), target.path_and_query());
        let request = http::Request::builder().method(self.method.as_str()).uri(uri).body(body);
        let mut request = request.map_err(|_| altered(&target))?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// The answer to a guest whose write is held.
pub(crate) fn staged(unit: &Unit, number: u32) -> BlockReason {
    let (method, target) = (&unit.method, &unit.target);
    BlockReason {
        rule: Rule::Staged,
        asked: target.authority(),
        reason: format!(
            "staged #{number}: `{method}` to `{}` is held for the owner. It was NOT sent, and there is no response",
            target.authority()
        ),
        remedy: format!(
            "go on without the response and do not send it again; if you cannot go on without it, ask the user to send \
             #{number} and to tell you what came back"
        ),
    }
}

/// The answer to a guest whose write can be neither held nor sent.
pub(crate) fn not_staged(unit: &Unit, reason: String, remedy: String) -> BlockReason {
    let asked = unit.target.authority();
    let reason = format!("`{}` to `{asked}` was neither sent nor staged: {reason}", unit.method);
    BlockReason { rule: Rule::NotStaged, asked, reason, remedy }
}

fn altered(target: &Target) -> BlockReason {
    BlockReason {
        rule: Rule::Header,
        asked: target.authority(),
        reason: "the held write cannot be read as a request".to_owned(),
        remedy: "discard it".to_owned(),
    }
}

/// A response to a held write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivered {
    /// The status of the response.
    pub status: u16,
    /// Headers that tell the fate of the write, without secrets.
    pub headers: Vec<HeldHeader>,
    /// The first [`MAX_KEPT_RESPONSE_BYTES`] of its body, without secrets.
    pub body: Vec<u8>,
    /// Bytes of the body as received.
    pub body_bytes: u64,
    /// Why the body ended early, if it did. The server has taken the write nevertheless.
    pub broken: Option<String>,
}

/// The end of an attempt to send a held write.
#[derive(Debug)]
pub struct Delivery {
    /// The response, or the reason that it is missing.
    pub outcome: Result<Delivered, GateError>,
    /// Whether any byte may have left. If not, the write was certainly not sent.
    pub may_have_left: bool,
    /// The gate's record of the request.
    pub trace: Option<RequestTrace>,
}

/// Sends a held write with the owner's consent to exactly this one: policy, addresses, credentials, limits and scrubbing are
/// those of `run`, which must not be staged itself.
pub async fn deliver(run: &RunNetwork, write: &HeldWrite, limits: CallLimits) -> Delivery {
    let consents = CallConsents { leases: vec![write.hash], key: Some(write.key.clone()), ..CallConsents::default() };
    let call = run.with_consents(consents).call(limits);
    let outcome = match write.request() {
        Ok(request) => send(&call, request).await,
        Err(blocked) => Err(blocked.into()),
    };
    Delivery { outcome, may_have_left: call.has_sent(), trace: call.traces().pop() }
}

async fn send(call: &CallNetwork, request: http::Request<crate::RequestBody>) -> Result<Delivered, GateError> {
    let (parts, mut body) = call.send(request, Timeouts::default()).await?.into_parts();
    let named = KEPT_HEADERS.iter().flat_map(|name| parts.headers.get_all(name).iter().map(move |value| (name, value)));
    let headers = named.filter_map(|(name, value)| {
        let value = std::str::from_utf8(value.as_bytes()).ok()?;
        Some(HeldHeader { name: name.as_str().to_owned(), value: value.to_owned() })
    });
    let mut delivered = Delivered {
        status: parts.status.as_u16(),
        headers: headers.collect(),
        body: Vec::new(),
        body_bytes: 0,
        broken: None,
    };
    // The status says the fate of the write: a body that breaks off takes nothing of that back.
    while let Some(frame) = body.frame().await {
        match frame {
            Ok(frame) => {
                let piece = frame.into_data().unwrap_or_default();
                let room = MAX_KEPT_RESPONSE_BYTES.saturating_sub(delivered.body.len());
                delivered.body.extend_from_slice(piece.get(..room.min(piece.len())).unwrap_or_default());
                delivered.body_bytes = delivered.body_bytes.saturating_add(piece.len() as u64);
            }
            Err(error) => {
                delivered.broken = Some(error.to_string());
                break;
            }
        }
    }
    Ok(delivered)
}
