//! The network access of one guest call: `wasi:http` sends through it, `motor:host/outbound` reports from it.
//!
//! A run without a network gets a closed one, which refuses every request and names the remedy. There is no gate behind
//! it, so no request can get through by mistake.

use std::future::Future;
use std::sync::Arc;

use network::{BlockReason, CallNetwork, GateError, RequestBody, RequestTrace, ResponseBody, Rule, Timeouts};
use parking_lot::Mutex;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use crate::Limit;

/// Characters of a path that are recorded.
const MAX_PATH: usize = 512;

/// Network access of one call. Cheap to clone; clones share the record of requests.
#[derive(Clone)]
pub struct Egress {
    way: EgressRoute,
    under_way: TaskTracker,
}

#[derive(Clone)]
enum EgressRoute {
    Open(CallNetwork),
    Closed(Arc<ClosedEgress>),
}

struct ClosedEgress {
    most_requests: u64,
    asked: Mutex<Vec<RequestTrace>>,
    last_refusal: Mutex<Option<BlockReason>>,
}

impl Egress {
    /// Sends requests through the gate.
    #[must_use]
    pub fn open(network: CallNetwork) -> Self {
        Self { way: EgressRoute::Open(network), under_way: TaskTracker::new() }
    }

    /// Refuses every request; at most `most_requests` are recorded.
    #[must_use]
    pub fn closed(most_requests: u64) -> Self {
        let closed = ClosedEgress { most_requests, asked: Mutex::default(), last_refusal: Mutex::default() };
        Self { way: EgressRoute::Closed(Arc::new(closed)), under_way: TaskTracker::new() }
    }

    /// Sends one request.
    ///
    /// # Errors
    /// If a rule refuses it, it fails, or a limit of the call is exceeded.
    pub async fn send(
        &self,
        request: http::Request<RequestBody>,
        timeouts: Timeouts,
    ) -> Result<http::Response<ResponseBody>, GateError> {
        match &self.way {
            EgressRoute::Open(network) => network.send(request, timeouts).await,
            EgressRoute::Closed(closed) => Err(closed.refuse(&request)),
        }
    }

    /// The requests so far, in order.
    #[must_use]
    pub fn traces(&self) -> Vec<RequestTrace> {
        match &self.way {
            EgressRoute::Open(network) => network.traces(),
            EgressRoute::Closed(closed) => closed.asked.lock().clone(),
        }
    }

    /// The last request that a rule refused.
    #[must_use]
    pub fn last_refusal(&self) -> Option<BlockReason> {
        match &self.way {
            EgressRoute::Open(network) => network.last_refusal(),
            EgressRoute::Closed(closed) => closed.last_refusal.lock().clone(),
        }
    }

    /// Marks a future as work of this call, for [`Egress::settled`].
    pub(crate) fn track<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        self.under_way.track_future(work)
    }

    /// Marks its holder as work of this call.
    pub(crate) fn token(&self) -> TaskTrackerToken {
        self.under_way.token()
    }

    /// Waits until all work of the call has ended. After the guest's handles are dropped, which aborts their pending
    /// work, that takes as long as an abort. [`Egress::traces`] is complete then.
    pub async fn settled(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }
}

impl ClosedEgress {
    fn refuse(&self, request: &http::Request<RequestBody>) -> GateError {
        let uri = request.uri();
        // Not the authority, which may contain a user and a password.
        let host = uri.host().unwrap_or_default();
        let asked = match uri.port_u16() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let mut traces = self.asked.lock();
        if traces.len() as u64 >= self.most_requests {
            return GateError::Limit { limit: Limit::OutgoingRequests.as_str(), value: self.most_requests };
        }
        let blocked = BlockReason {
            rule: Rule::DomainNotAllowed,
            reason: format!("`{asked}` was asked for, and this call has no access to the network"),
            remedy: format!("ask the user for access to `{host}`"),
            asked,
        };
        traces.push(RequestTrace {
            method: request.method().to_string(),
            scheme: uri.scheme_str().unwrap_or_default().to_owned(),
            host: blocked.asked.clone(),
            path: uri.path().chars().take(MAX_PATH).collect(),
            status: None,
            request_bytes: 0,
            response_bytes: 0,
            duration_ms: 0.0,
            credentials: Vec::new(),
            error: Some(blocked.reason.clone()),
            rule: Some(blocked.rule),
            hash: None,
            consented: false,
            staged: None,
        });
        *self.last_refusal.lock() = Some(blocked.clone());
        blocked.into()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt as _;

    use super::*;

    fn get(uri: &str) -> http::Request<RequestBody> {
        let body = http_body_util::Empty::new().map_err(|never| match never {}).boxed_unsync();
        http::Request::get(uri).body(body).unwrap()
    }

    #[tokio::test]
    async fn a_closed_way_refuses_and_says_what_would_mend_it() {
        let egress = Egress::closed(2);
        let refused = egress.send(get("https://user:word@example.com:8443/a?b=c"), Timeouts::default()).await;
        let Err(GateError::Blocked(blocked)) = refused else { panic!("let through") };
        assert_eq!((blocked.rule, blocked.asked.as_str()), (Rule::DomainNotAllowed, "example.com:8443"));
        assert!(blocked.remedy.contains("example.com"), "{blocked:?}");
        assert_eq!(egress.last_refusal(), Some(blocked));
        let [trace] = egress.traces().try_into().unwrap();
        let told = serde_json::to_string(&trace).unwrap();
        assert!(trace.path == "/a" && !told.contains("word"), "{told}");
    }

    #[tokio::test]
    async fn what_it_records_is_bounded() {
        let egress = Egress::closed(2);
        for _ in 0..5 {
            assert!(egress.send(get("http://a.example/"), Timeouts::default()).await.is_err());
        }
        let last = egress.send(get("http://a.example/"), Timeouts::default()).await;
        assert!(matches!(last, Err(GateError::Limit { limit: "outgoing_requests", value: 2 })));
        assert_eq!(egress.traces().len(), 2);
    }

    #[tokio::test]
    async fn it_settles_when_aborted_work_is_gone() {
        let egress = Egress::closed(1);
        let held = Arc::new(());
        let inside = held.clone();
        let task = tokio::spawn(egress.track(async move {
            let _inside = inside;
            std::future::pending::<()>().await;
        }));
        task.abort();
        egress.settled().await;
        assert_eq!(Arc::strong_count(&held), 1);
    }
}
