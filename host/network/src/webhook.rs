//! The owner's endpoint, to which the host posts signals (SPEC SIG-2).
//!
//! It is no guest's way out: the URL comes from the configuration and from nowhere else, so there is no policy, no taint and
//! no secret to put in. It must not know the content of its posts. It survives an endpoint that sends the host elsewhere, answers
//! without end, does not answer, and a name that is made to lead into the owner's network.

#[cfg(test)]
mod tests;

use std::future::{Future as _, poll_fn};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::{Full, Limited};
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use crate::body::{Http, timeout};
use crate::send::{converse, failed};
use crate::target::{Host, Scheme, Target};
use crate::{BlockReason, Gate, GateError, Rule, headers};

/// Of the body of an answer so much is read, so that a server which is still writing sees no broken connection.
const MAX_ANSWER_BYTES: usize = 64 << 10;
/// And for so long: the status has been heard.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// A place that the owner named.
#[derive(Clone)]
pub struct Webhook {
    gate: Gate,
    target: Target,
    timeout: Duration,
}

impl std::fmt::Debug for Webhook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Webhook({})", self.place())
    }
}

impl Webhook {
    /// The place with this URL; a post may take as long as `timeout`, from the look-up to the status.
    ///
    /// `http` and private addresses are reached when they stand in the URL: an address itself, or `localhost`. A name that
    /// leads to a private address needs the address in `network.private`.
    ///
    /// # Errors
    /// When it is no URL of `http` or `https`, or carries a user.
    pub fn new(gate: &Gate, url: &str, timeout: Duration) -> Result<Self, BlockReason> {
        Ok(Self { gate: gate.clone(), target: Target::parse(url)?, timeout })
    }

    /// Scheme, host and port. For messages: the rest of such a URL is often as good as a password.
    #[must_use]
    pub fn place(&self) -> String {
        format!("{}://{}", self.target.scheme().as_str(), self.target.authority())
    }

    /// Whether posts are encrypted, or stay on this machine: its address or `localhost` is in the URL.
    #[must_use]
    pub fn is_local_or_encrypted(&self) -> bool {
        let is_local = match self.target.host() {
            Host::Name(name) => is_localhost(name),
            Host::Address(address) => address.is_loopback(),
        };
        is_local || self.target.scheme() == Scheme::Https
    }

    /// Posts a body, on a connection of its own. Redirects are answers; the answer's body is thrown away.
    ///
    /// # Errors
    /// When there is no status in time. The place may have taken the body all the same.
    pub async fn post(&self, headers: &[(&'static str, String)], body: Vec<u8>) -> Result<StatusCode, GateError> {
        let deadline = Instant::now() + self.timeout;
        let exchange = timeout_at(deadline, self.exchange(headers, body, deadline)).await;
        let (connection, response) =
            exchange.unwrap_or_else(|_| Err(timeout(&self.target.authority(), self.timeout)))?;
        let (head, body) = response.into_parts();
        // Whether the rest comes changes nothing.
        timeout_at(deadline.min(Instant::now() + ANSWER_PATIENCE), drain(connection, body)).await.ok();
        Ok(head.status)
    }

    async fn exchange(
        &self,
        headers: &[(&'static str, String)],
        body: Vec<u8>,
        deadline: Instant,
    ) -> Result<crate::send::ResponseHead, GateError> {
        let mut request = http::Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from(self.target.path_and_query().clone());
        *request.headers_mut() =
            self.headers(headers).map_err(|error| self.blocked(Rule::Header, error.to_string()))?;
        let addresses = self.addresses().await?;
        let connect_deadline = deadline.min(Instant::now() + self.gate.connect_timeout());
        let connection = self.gate.connector().connect(&self.target, &addresses, connect_deadline).await?;
        let most = self.gate.response_header_bytes();
        converse(connection, request, most).await.map_err(|error| failed(&error, &self.target, most))
    }

    fn headers(&self, given: &[(&'static str, String)]) -> Result<HeaderMap, http::Error> {
        let mut headers = HeaderMap::with_capacity(given.len() + 3);
        for (name, value) in given {
            headers.insert(HeaderName::try_from(*name)?, HeaderValue::try_from(value)?);
        }
        headers::add_of_gate(&mut headers, &self.target)?;
        Ok(headers)
    }

    async fn addresses(&self) -> Result<Vec<SocketAddr>, GateError> {
        let addresses = match self.target.host() {
            // The meaning of the name everywhere (RFC 6761, section 6.3), independent of the resolver.
            Host::Name(name) if is_localhost(name) => {
                vec![IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST)]
            }
            host => {
                let found = self.gate.resolver().addresses(host).await?;
                if let Some(blocked) = self.unwanted(&found) {
                    return Err(blocked.into());
                }
                found
            }
        };
        Ok(addresses.into_iter().map(|address| SocketAddr::new(address, self.target.port())).collect())
    }

    /// Why a name with these addresses is not connected to. One bad address refuses them all, as in the gate.
    fn unwanted(&self, addresses: &[IpAddr]) -> Option<BlockReason> {
        if matches!(self.target.host(), Host::Address(_)) {
            return None;
        }
        addresses.iter().find_map(|address| {
            let socket = SocketAddr::new(address.to_canonical(), self.target.port());
            let what = crate::address::not_public(socket.ip())?;
            let is_listed = self.gate.private().contains(&socket);
            (!is_listed).then(|| {
                let reason = format!("`{}` leads to {socket}, which is {what}", self.target.authority());
                let mut blocked = self.blocked(Rule::PrivateAddress, reason);
                blocked.remedy =
                    format!("put the address itself into the URL, or list `{socket}` in `network.private`");
                blocked
            })
        })
    }

    fn blocked(&self, rule: Rule, reason: String) -> BlockReason {
        BlockReason { rule, asked: self.target.authority(), reason, remedy: "correct the configuration".to_owned() }
    }
}

fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Reads and discards the rest of an answer, up to a limit.
async fn drain(mut connection: Option<Pin<Box<Http>>>, body: Incoming) {
    let mut body = pin!(Limited::new(body, MAX_ANSWER_BYTES));
    poll_fn(|cx| {
        if connection.as_mut().is_some_and(|connection| connection.as_mut().poll(cx).is_ready()) {
            connection = None;
        }
        loop {
            if !matches!(ready!(body.as_mut().poll_frame(cx)), Some(Ok(_))) {
                return Poll::Ready(());
            }
        }
    })
    .await;
}
