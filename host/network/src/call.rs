//! The way out of one guest call: its counters, its trace, its last refusal.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::budget::CallBudget;
use crate::consent::Consents;
use crate::run::RunNetwork;
use crate::send::Exchange;
use crate::target::Target;
use crate::trace::{OpenTrace, Traces};
use crate::{AskedRequest, BlockReason, GateError, RequestTrace};

/// The body of a request. An error ends the request: the guest dropped it.
pub type RequestBody = UnsyncBoxBody<Bytes, GateError>;
/// The body of a response: limited, and scrubbed of secrets. An error is the reason why it ends early.
pub type ResponseBody = UnsyncBoxBody<Bytes, GateError>;

/// The limits of one call's traffic.
#[derive(Debug, Clone)]
pub struct CallLimits {
    /// Requests, refused ones included.
    pub requests: u64,
    /// Bytes of request bodies and headers together.
    pub request_bytes: u64,
    /// Bytes of response bodies together.
    pub response_bytes: u64,
    /// The idempotency key of this call outside runs. Sent as `Idempotency-Key` with writes that carry none (SPEC DUR-4),
    /// followed by `-` and the number of the write within the call, from 1. Writes are all methods but `GET`, `HEAD` and
    /// `OPTIONS` here; refused ones are counted, so a call that is repeated numbers the same. In a run
    /// ([`CallConsents::run`](crate::CallConsents::run)) the key is the run, the first 12 digits of the request's hash and
    /// how often the run has sent it before, and this field is ignored.
    pub idempotency_key: Option<String>,
}

/// Times that a guest asks for; the configured ones are the upper bounds.
#[derive(Debug, Clone, Copy, Default)]
pub struct Timeouts {
    /// For look-up and connection.
    pub connect: Option<Duration>,
    /// For the first byte of the response.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the body.
    pub between_bytes: Option<Duration>,
}

/// The way out of one guest call. Cheap to clone; clones share counters and trace.
#[derive(Clone)]
pub struct CallNetwork(Arc<CallShared>);

/// The state that the requests of a call share.
pub(crate) struct CallShared {
    pub(crate) run: RunNetwork,
    pub(crate) limits: CallLimits,
    pub(crate) request_bytes: CallBudget,
    pub(crate) response_bytes: Arc<CallBudget>,
    pub(crate) consents: Arc<Consents>,
    requests: CallBudget,
    writes: AtomicU64,
    has_sent: AtomicBool,
    traces: Traces,
    last_refusal: Mutex<Option<BlockReason>>,
}

impl CallShared {
    /// The number of a write within the call, from 1.
    pub(crate) fn next_write(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Notes that a request is about to leave.
    pub(crate) fn leaves(&self) {
        self.has_sent.store(true, Ordering::SeqCst);
    }
}

impl CallNetwork {
    pub(crate) fn new(run: RunNetwork, limits: CallLimits) -> Self {
        Self(Arc::new(CallShared {
            request_bytes: CallBudget::new("request_bytes", limits.request_bytes),
            response_bytes: Arc::new(CallBudget::new("response_bytes", limits.response_bytes)),
            requests: CallBudget::new("outgoing_requests", limits.requests),
            writes: AtomicU64::new(0),
            has_sent: AtomicBool::new(false),
            consents: run.consents(),
            traces: Traces::default(),
            last_refusal: Mutex::default(),
            run,
            limits,
        }))
    }

    /// Sends one request through the gate. Redirects are responses like any other: following one is a new request.
    ///
    /// The URI is absolute. Placeholders in headers, URL and body become secrets on the way out.
    ///
    /// # Errors
    /// If a rule refuses it, it fails, or a limit of the call is exceeded.
    pub async fn send(
        &self,
        request: http::Request<RequestBody>,
        timeouts: Timeouts,
    ) -> Result<http::Response<ResponseBody>, GateError> {
        let started = Instant::now();
        let (parts, body) = request.into_parts();
        let target = Target::from_uri(&parts.uri);
        let within = self.0.requests.take(1);
        if let Err(limit) = &within
            && !self.is_first_too_many()
        {
            return Err(limit.clone());
        }
        let scrubber = self.0.run.secrets().scrubber();
        let mut trace = OpenTrace::start(&self.0.traces, scrubber, &parts.method, target.as_ref());
        let outcome = match (within, target) {
            (Err(limit), _) => Err(limit),
            (Ok(()), Err(blocked)) => Err(blocked.into()),
            (Ok(()), Ok(target)) => {
                let method = parts.method.clone();
                let exchange = Exchange { call: &self.0, target: &target, method: &method, timeouts, started };
                exchange.run(parts, body, &mut trace).await
            }
        };
        match outcome {
            Ok(response) => Ok(response.map(|body| body.traced(trace).boxed_unsync())),
            Err(error) => {
                let error = error.scrubbed(scrubber);
                trace.failed(&error);
                if let GateError::Blocked(blocked) = &error {
                    *self.0.last_refusal.lock() = Some(blocked.clone());
                }
                Err(error)
            }
        }
    }

    /// One request too many is traced, to show that it was tried. More would let a guest fill the trace.
    fn is_first_too_many(&self) -> bool {
        let traced = self.0.traces.lock().len();
        u64::try_from(traced).is_ok_and(|traced| traced <= self.0.limits.requests)
    }

    /// The requests to the gate so far, in order.
    #[must_use]
    pub fn traces(&self) -> Vec<RequestTrace> {
        self.0.traces.lock().clone()
    }

    /// Whether a byte of a request of this call may have left the host.
    pub(crate) fn has_sent(&self) -> bool {
        self.0.has_sent.load(Ordering::SeqCst)
    }

    /// The requests of this call that were refused for want of the owner's consent, in the order they were made: at most 16,
    /// equal ones once. One that was sent later is not among them.
    #[must_use]
    pub fn asked(&self) -> Vec<AskedRequest> {
        self.0.consents.asked()
    }

    /// The last request of this call that a rule refused.
    #[must_use]
    pub fn last_refusal(&self) -> Option<BlockReason> {
        self.0.last_refusal.lock().clone()
    }
}
