//! One request, from the check of its name to the head of its response.
//!
//! The order is the protection: everything is checked before anything leaves, the address before the connection, the policy and
//! the taint once more before the first byte, because a run changes while its requests are under way.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header, request};
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::time::{Instant, timeout_at};

use crate::admit::{Credentials, RequestAdmission};
use crate::body::{BodyFeed, Decoder, Http, Patience, ScrubbedBody, described, gather, timeout};
use crate::budget::CallBudget;
use crate::connect::GateConnection;
use crate::recorded::Recording;
use crate::stage::{not_staged, staged};
use crate::substitute::{PermittedCredentials, RequestParts, in_clear_text, permit};
use crate::target::{Scheme, Target};
use crate::trace::OpenTrace;
use crate::{
    BlockReason, GateError, HeldWrite, Nature, NotHeld, RequestBody, Rule, Stage, Timeouts, Unit, WebSource, headers,
    leak, resolve,
};

use super::call::CallShared;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// A request and the state of its call.
pub(crate) struct Exchange<'a> {
    pub(crate) call: &'a CallShared,
    pub(crate) target: &'a Target,
    pub(crate) method: &'a Method,
    pub(crate) timeouts: Timeouts,
    pub(crate) started: Instant,
}

impl Exchange<'_> {
    /// Sends it, within its time.
    pub(crate) async fn run(
        self,
        parts: request::Parts,
        body: RequestBody,
        trace: &mut OpenTrace,
    ) -> Result<http::Response<ScrubbedBody>, GateError> {
        let total = self.call.run.gate().timeout();
        let exchange = timeout_at(self.deadline(), self.exchange(parts, body, trace));
        exchange.await.unwrap_or_else(|_| Err(timeout(&self.target.authority(), total)))
    }

    async fn exchange(
        &self,
        parts: request::Parts,
        body: RequestBody,
        trace: &mut OpenTrace,
    ) -> Result<http::Response<ScrubbedBody>, GateError> {
        let (target, method, secrets) = (self.target, self.method, self.call.run.secrets());
        headers::check(method, &parts.headers, target)?;
        let reads = headers::is_read(method, &parts.headers);
        // Counted before anything can refuse it, so that a call that is repeated numbers its writes as before.
        let number = (!reads).then(|| self.call.next_write());
        self.call.run.policy().decide(target)?;
        let weight = headers::weight(&parts.headers) + target.path_and_query().as_str().len();
        self.call.request_bytes.take(weight as u64)?;
        let body = gather(body, &self.call.request_bytes).await?;

        let path = target.path_and_query().clone();
        let mut parts = RequestParts { path, headers: headers::of_guest(parts.headers), body };
        let mut names = leak::check(method, &parts, secrets, target).await?;
        let holds_value = !names.is_empty();
        let mentioned = parts.mentioned(target)?;
        names.extend(mentioned.into_iter().filter(|name| !names.contains(name)).collect::<Vec<_>>());
        let permitted = permit(names, secrets, target)?;
        if !permitted.names().is_empty() {
            headers::remove_ranges(&mut parts.headers);
        }
        let credentials = Credentials { names: permitted.names(), holds_value };
        let admission =
            RequestAdmission::new(&self.call.run, &self.call.consents, method, target, &parts, credentials).await?;
        trace.identify(admission.hash, admission.unit.nature());
        if let Some(stage) = self.call.run.stage().filter(|_| admission.unit.nature() == Nature::Write) {
            let call_key = self.call.limits.idempotency_key.as_deref();
            let held = admission.held(call_key, || same_bytes(&parts, &admission.unit, &permitted))?;
            return Err(self.hold(stage, held, &admission, trace).await.into());
        }
        admission.check()?;

        let connect_deadline = self.connect_deadline();
        let connection = self.connect(&permitted, &admission, connect_deadline, trace);
        let connection = timeout_at(connect_deadline, connection).await.unwrap_or_else(|_| {
            Err(timeout(&target.authority(), connect_deadline.saturating_duration_since(self.started)))
        })?;

        let site = self.call.run.gate().site();
        let recording = site.and_then(|site| site.record(method, target, &admission.unit.body));
        let mut filled = parts.put_in(&permitted, target, &self.call.request_bytes)?;
        headers::add_of_gate(&mut filled.headers, target).map_err(|_| self.unsendable("the host is no header"))?;
        let pass = admission.pass()?;
        let of_call =
            number.and_then(|number| Some(format!("{}-{number}", self.call.limits.idempotency_key.as_ref()?)));
        if let Some(key) = pass.key.as_ref().or(of_call.as_ref())
            && !filled.headers.contains_key(IDEMPOTENCY_KEY)
        {
            let value = HeaderValue::try_from(key).map_err(|_| self.unsendable("the idempotency key is no header"))?;
            filled.headers.insert(IDEMPOTENCY_KEY, value);
        }
        trace.sent(filled.body.len() as u64, permitted.names(), &pass);
        self.call.leaves();
        let (connection, response) = self.request(connection, filled).await?;
        trace.answered(response.status());
        self.call.run.taint().add(WebSource { host: target.host().to_string() });
        if response.status() == StatusCode::PARTIAL_CONTENT && !permitted.names().is_empty() {
            return Err(self.protocol("it sends a part (206) where the whole was asked for, with a credential"));
        }
        self.answer(connection, response, admission.unit.path(), recording)
    }

    /// Holds a write, and returns the guest's answer: it has not been sent.
    async fn hold(
        &self,
        stage: &Arc<dyn Stage>,
        held: HeldWrite,
        admission: &RequestAdmission<'_>,
        trace: &mut OpenTrace,
    ) -> BlockReason {
        let credentials = held.credentials.clone();
        match stage.hold(held).await {
            Ok(number) => {
                trace.staged(number, &credentials);
                staged(&admission.unit, number)
            }
            Err(NotHeld { reason, remedy }) => not_staged(&admission.unit, reason, remedy),
        }
    }

    async fn connect(
        &self,
        permitted: &PermittedCredentials<'_>,
        admission: &RequestAdmission<'_>,
        deadline: Instant,
        trace: &mut OpenTrace,
    ) -> Result<Box<dyn GateConnection>, GateError> {
        let gate = self.call.run.gate();
        if let Some(site) = gate.site() {
            admission.check()?;
            if self.target.scheme() == Scheme::Http && !permitted.names().is_empty() {
                return Err(in_clear_text(permitted.names(), self.target).into());
            }
            let has_credentials = !permitted.names().is_empty();
            if let Some(replay) = site.connect(self.method, self.target, &admission.unit.body, has_credentials)? {
                return Ok(replay);
            }
        }
        let addresses = gate.resolver().addresses(self.target.host()).await?;
        let policy = admission.check()?;
        let addresses = resolve::guard(self.target, &addresses, &policy, gate.private()).map_err(|refused| {
            trace.explain(refused.for_owner);
            refused.blocked
        })?;
        let to_public = addresses.iter().any(|address| !gate.private().contains(address));
        if self.target.scheme() == Scheme::Http && to_public && !permitted.names().is_empty() {
            return Err(in_clear_text(permitted.names(), self.target).into());
        }
        gate.connector().connect(self.target, &addresses, deadline).await
    }

    /// Sends the request on its connection, and waits for the head of the response.
    async fn request(
        &self,
        connection: Box<dyn GateConnection>,
        parts: RequestParts,
    ) -> Result<ResponseHead, GateError> {
        let mut request = http::Request::new(Full::new(parts.body));
        *request.method_mut() = self.method.clone();
        *request.headers_mut() = parts.headers;
        *request.uri_mut() = Uri::from(parts.path);

        let head = converse(connection, request, self.call.run.gate().response_header_bytes());
        let answered = match self.timeouts.first_byte {
            None => head.await,
            Some(first_byte) => match tokio::time::timeout(first_byte, head).await {
                Ok(answered) => answered,
                Err(_) => return Err(timeout(&self.target.authority(), first_byte)),
            },
        };
        answered.map_err(|error| self.failed(&error))
    }

    fn answer(
        &self,
        connection: Option<Pin<Box<Http>>>,
        response: http::Response<Incoming>,
        path: &str,
        recording: Option<Recording>,
    ) -> Result<http::Response<ScrubbedBody>, GateError> {
        let secrets = self.call.run.secrets();
        let scrubber = secrets.scrubber();
        let (parts, incoming) = response.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(self.protocol("it switches protocols, which was not asked for"));
        }
        let transfer = parts.headers.get_all(header::TRANSFER_ENCODING).iter();
        if !transfer.into_iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"chunked")) {
            return Err(self.protocol("the transfer encoding is not `chunked`"));
        }
        let has_body = self.method != Method::HEAD && !incoming.is_end_stream();
        let decoder =
            if has_body { Decoder::of(&parts.headers).map_err(|reason| self.protocol(&reason))? } else { None };
        let mut headers = headers::of_response(parts.headers, scrubber);
        if decoder.is_some() {
            headers.remove(header::CONTENT_ENCODING);
        }
        if decoder.is_some() || (has_body && !scrubber.is_empty()) {
            headers.remove(header::CONTENT_LENGTH);
        }
        let mut feed = self.feed(&headers, path);
        feed.recording = recording.map(|mut recording| {
            recording.answered(parts.status, &headers);
            recording
        });
        let gate = self.call.run.gate();
        let patience =
            Patience::new(self.target.authority(), self.deadline(), gate.timeout(), self.timeouts.between_bytes);
        let budget = Arc::clone(&self.call.response_bytes);
        let mut response =
            http::Response::new(ScrubbedBody::new((connection, incoming), decoder, secrets, patience, budget, feed));
        *response.status_mut() = parts.status;
        *response.headers_mut() = headers;
        Ok(response)
    }

    /// Adds the headers to the run's record of values, and begins on the body. A value that a host gives in a header may be sent
    /// to it again: cookies, tags, the target of a redirect.
    fn feed(&self, headers: &HeaderMap, path: &str) -> BodyFeed {
        let mut collector = self.call.run.given().response(&self.target.authority(), path);
        collector.headers(headers);
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
        BodyFeed { collector: Some(collector), content_type, recording: None }
    }

    fn deadline(&self) -> Instant {
        self.started + self.call.run.gate().timeout()
    }

    fn connect_deadline(&self) -> Instant {
        let most = self.call.run.gate().connect_timeout();
        let connect = self.timeouts.connect.unwrap_or(Duration::MAX).min(most);
        (Instant::now() + connect).min(self.deadline())
    }

    fn failed(&self, error: &hyper::Error) -> GateError {
        failed(error, self.target, self.call.run.gate().response_header_bytes())
    }

    fn protocol(&self, message: &str) -> GateError {
        GateError::Protocol { host: self.target.authority(), message: message.to_owned() }
    }

    fn unsendable(&self, reason: &str) -> BlockReason {
        BlockReason {
            rule: Rule::Header,
            asked: self.target.authority(),
            reason: reason.to_owned(),
            remedy: "send other headers".to_owned(),
        }
    }
}

/// Whether a request in the form in which it is held becomes the same bytes as the request itself.
fn same_bytes(parts: &RequestParts, unit: &Unit, permitted: &PermittedCredentials<'_>) -> bool {
    let held = RequestParts {
        path: unit.target.path_and_query().clone(),
        headers: unit.headers.clone(),
        body: unit.body.clone(),
    };
    // Compared, not sent: the call's budget is not touched.
    let filled =
        |parts: RequestParts| parts.put_in(permitted, &unit.target, &CallBudget::new("request_bytes", u64::MAX));
    match (filled(parts.clone()), filled(held)) {
        (Ok(one), Ok(other)) => (one.path, one.headers, one.body) == (other.path, other.headers, other.body),
        _ => false,
    }
}

/// The head of a response, and the connection that the rest comes in on, unless that is done.
pub(crate) type ResponseHead = (Option<Pin<Box<Http>>>, http::Response<Incoming>);

/// Sends a request on a fresh connection, and waits for the head of the response.
pub(crate) async fn converse(
    connection: Box<dyn GateConnection>,
    request: http::Request<Full<Bytes>>,
    most_header_bytes: usize,
) -> Result<ResponseHead, hyper::Error> {
    let handshake = http1::Builder::new().max_header_size(most_header_bytes).handshake(TokioIo::new(connection));
    let (mut sender, connection) = handshake.await?;
    let mut connection = Some(Box::pin(connection));
    let mut sending = Box::pin(sender.send_request(request));
    let head = poll_fn(|cx| {
        if connection.as_mut().is_some_and(|connection| connection.as_mut().poll(cx).is_ready()) {
            // Its errors arrive in the response.
            connection = None;
        }
        sending.as_mut().poll(cx)
    });
    let response = head.await?;
    Ok((connection, response))
}

/// Why there is no response.
pub(crate) fn failed(error: &hyper::Error, target: &Target, most_header_bytes: usize) -> GateError {
    if error.is_parse_too_large() {
        return GateError::Limit { limit: "response_header_bytes", value: most_header_bytes as u64 };
    }
    GateError::Protocol { host: target.authority(), message: described(error) }
}
