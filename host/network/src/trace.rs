//! One line for each request (SPEC NET-4): without query values, without secrets.
//!
//! It is made from the guest's request, before any secret was inserted, and is always finished: also if a guest drops
//! a response half-read.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::text::cut;
use base::{ContentHash, CredentialName};
use parking_lot::Mutex;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::time::Instant;
use vault::Scrubber;

use crate::admit::Pass;
use crate::target::Target;
use crate::{BlockReason, GateError, Nature};

/// A request that passed the gate, or that it refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestTrace {
    /// The method of the request.
    pub method: String,
    /// `http` or `https`; empty when it was not understood.
    pub scheme: String,
    /// Host and port, as the gate understood them.
    pub host: String,
    /// The path; of a query only the names.
    pub path: String,
    /// The response's status; none when there was no response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Bytes of the request's body as sent.
    pub request_bytes: u64,
    /// Bytes of the response's body, as far as it was read.
    pub response_bytes: u64,
    /// Milliseconds from the check to the last byte read.
    pub duration_ms: f64,
    /// The credentials that were put in, or would be if it is held, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub credentials: Vec<String>,
    /// Why there was no response: the rule that refused it, or the failure. It is for the owner: it may name a private address
    /// that the run was not told of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The rule that refused it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<crate::Rule>,
    /// The hash of the request ([`crate::Unit::hash`]); of writes, and of requests that the owner has to consent to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hash: Option<ContentHash>,
    /// Whether it used up a lease: the owner's consent to this very request.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub consented: bool,
    /// The number under which the request is held: it was not sent (SPEC LAND-5).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub staged: Option<u32>,
}

impl RequestTrace {
    /// The trace with each of its texts mapped. Every field is listed, so that a new one is decided about here.
    #[must_use]
    pub fn map_text(self, map: impl Fn(String) -> String) -> Self {
        let Self {
            status, request_bytes, response_bytes, duration_ms, credentials, rule, hash, consented, staged, ..
        } = self;
        Self {
            method: map(self.method),
            scheme: map(self.scheme),
            host: map(self.host),
            path: map(self.path),
            error: self.error.map(map),
            status,
            request_bytes,
            response_bytes,
            duration_ms,
            credentials,
            rule,
            hash,
            consented,
            staged,
        }
    }
}

/// The longest path that is kept, in characters, and the longest method.
const MAX_PATH: usize = 512;
const MAX_METHOD: usize = 32;

/// The traces of a call, in the order of its requests.
pub(crate) type Traces = Arc<Mutex<Vec<RequestTrace>>>;

/// The trace of a request that is not over. Finished when dropped.
pub(crate) struct OpenTrace {
    traces: Traces,
    position: usize,
    started: Instant,
    scrubber: Arc<Scrubber>,
    /// Is shown when it turns out that the owner has to consent.
    hash: Option<ContentHash>,
    /// The owner's words for a failure, if they differ from the guest's.
    for_owner: Option<String>,
    trace: RequestTrace,
}

impl OpenTrace {
    pub(crate) fn start(
        traces: &Traces,
        scrubber: &Arc<Scrubber>,
        method: &http::Method,
        target: Result<&Target, &BlockReason>,
    ) -> Self {
        let mut trace = RequestTrace {
            // Searched before it is cut: half a secret would not be found.
            method: cut(&scrubber.text(method.to_string()), MAX_METHOD),
            scheme: String::new(),
            host: String::new(),
            path: String::new(),
            status: None,
            request_bytes: 0,
            response_bytes: 0,
            duration_ms: 0.0,
            credentials: Vec::new(),
            error: Some("dropped before there was a response".to_owned()),
            rule: None,
            hash: None,
            consented: false,
            staged: None,
        };
        if let Ok(target) = target {
            trace.scheme = target.scheme().as_str().to_owned();
            trace.host = scrubber.text(target.authority());
            trace.path = cut(&without_values(&scrubber.text(target.path_and_query().to_string())), MAX_PATH);
        }
        let mut all = traces.lock();
        let position = all.len();
        all.push(trace.clone());
        Self {
            traces: traces.clone(),
            position,
            started: Instant::now(),
            scrubber: scrubber.clone(),
            hash: None,
            for_owner: None,
            trace,
        }
    }

    /// Says which request it is.
    pub(crate) fn identify(&mut self, hash: ContentHash, nature: Nature) {
        self.hash = Some(hash);
        self.trace.hash = self.hash.filter(|_| nature == Nature::Write);
    }

    pub(crate) fn sent(&mut self, bytes: u64, credentials: &[CredentialName], pass: &Pass) {
        if pass.consented {
            (self.trace.hash, self.trace.consented) = (self.hash, true);
        }
        self.trace.request_bytes = bytes;
        self.trace.credentials = credentials.iter().map(ToString::to_string).collect();
    }

    /// Says that the request is held under a number, with these credentials still to be put in.
    pub(crate) fn staged(&mut self, number: u32, credentials: &BTreeSet<CredentialName>) {
        self.trace.staged = Some(number);
        self.trace.credentials = credentials.iter().map(ToString::to_string).collect();
    }

    pub(crate) fn answered(&mut self, status: http::StatusCode) {
        self.trace.status = Some(status.as_u16());
        self.trace.error = None;
    }

    pub(crate) fn received(&mut self, bytes: u64) {
        self.trace.response_bytes = bytes;
    }

    /// Says why it is about to fail, in words that are not for the guest.
    pub(crate) fn explain(&mut self, for_owner: String) {
        self.for_owner = Some(for_owner);
    }

    pub(crate) fn failed(&mut self, error: &GateError) {
        if let GateError::Blocked(blocked) = error {
            self.trace.rule = Some(blocked.rule);
            if blocked.rule.asks_owner() {
                self.trace.hash = self.hash;
            }
        }
        let why = self.for_owner.take().unwrap_or_else(|| error.to_string());
        self.trace.error = Some(self.scrubber.text(why));
    }
}

impl Drop for OpenTrace {
    fn drop(&mut self) {
        self.trace.duration_ms = self.started.elapsed().as_secs_f64() * 1000.0;
        let mut all = self.traces.lock();
        if let Some(place) = all.get_mut(self.position) {
            *place = self.trace.clone();
        }
    }
}

/// The path, and of a query only the names.
fn without_values(path_and_query: &str) -> String {
    let (path, query) =
        path_and_query.split_once('?').map_or((path_and_query, None), |(path, query)| (path, Some(query)));
    let mut text = path.to_owned();
    if let Some(query) = query {
        // A part without `=` is all value as much as all name.
        let names = query.split('&').map(|part| part.split_once('=').map_or("…", |(name, _)| name));
        text.push('?');
        text.push_str(&names.collect::<Vec<_>>().join("&"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_a_query_are_left_out() {
        for (url, path) in [
            ("https://e.example", "/"),
            ("https://e.example/a/b", "/a/b"),
            ("https://e.example/a?key=hunter2&b=c=d&e=", "/a?key&b&e"),
            ("https://e.example/a?hunter2", "/a?…"),
            ("https://e.example/?", "/?…"),
        ] {
            let target = Target::parse(url).unwrap();
            assert_eq!(without_values(target.path_and_query().as_str()), path, "{url}");
        }
    }

    #[test]
    fn a_trace_stays_short_and_is_finished_when_dropped() {
        let traces = Traces::default();
        let target = Target::parse(&format!("https://e.example/{}", "a".repeat(9000))).unwrap();
        let open = OpenTrace::start(&traces, &Arc::default(), &http::Method::GET, Ok(&target));
        drop(open);
        let all = traces.lock();
        assert_eq!(all[0].path.chars().count(), MAX_PATH + 1);
        assert_eq!(all[0].error.as_deref(), Some("dropped before there was a response"));
    }

    fn traced(scrubber: &Arc<Scrubber>, method: &str, url: &str) -> RequestTrace {
        let traces = Traces::default();
        let method = http::Method::from_bytes(method.as_bytes()).unwrap();
        OpenTrace::start(&traces, scrubber, &method, Ok(&Target::parse(url).unwrap()));
        let all = traces.lock();
        all[0].clone()
    }

    #[test]
    fn no_border_of_what_is_kept_cuts_a_secret() {
        let name = CredentialName::parse("key").unwrap();
        let secret = "0123abcd=part&rest45/67";
        let scrubber = Arc::new(Scrubber::new(vec![(name, base::Secret::new(secret.to_owned()))]));
        let method_secret = base::Secret::new("SECRET-METHOD-0123456789".to_owned());
        let methods = Arc::new(Scrubber::new(vec![(CredentialName::parse("key").unwrap(), method_secret)]));
        for before in [0, 4, MAX_METHOD - 12, MAX_METHOD - 1] {
            let method = format!("{}SECRET-METHOD-0123456789", "X".repeat(before));
            let kept = traced(&methods, &method, "https://e.example/").method;
            assert!(!kept.contains("SECRET") && kept.contains('<') == (before < MAX_METHOD), "{kept}");
        }
        for before in ["/", "/?", "/?a=", &format!("/{}", "a".repeat(MAX_PATH - 6))] {
            let kept = traced(&scrubber, "GET", &format!("https://e.example{before}{secret}")).path;
            assert!(!kept.contains("0123") && !kept.contains("part") && !kept.contains("rest45"), "{kept}");
        }
        // Other text is kept up to the border.
        let kept = traced(&scrubber, &"X".repeat(40), "https://e.example/0123abcd?part=1&rest45");
        assert_eq!(
            (kept.method.as_str(), kept.path.as_str()),
            (format!("{}…", "X".repeat(32)).as_str(), "/0123abcd?part&…")
        );
    }
}
