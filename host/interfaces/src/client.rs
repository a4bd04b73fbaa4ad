//! A client of a host's HTTP API over its Unix socket.
//!
//! One connection for each request: on this machine it costs a tenth of a millisecond, and a host that went away shows
//! at once as [`ClientError::Gone`], which is never confused with a host that refused.

pub mod events;

use std::path::Path;
use std::time::Duration;

use axum::BoxError;
use base::{Door, Refusal, RefusalCode};
use bytes::Bytes;
use consent::OwnerToken;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body, Incoming};
use hyper::client::conn::http1;
use hyper::header::HeaderValue;
use hyper::http::request;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;
use tokio::net::UnixStream;

use crate::http::reply::Problem;
use crate::http::{DOOR, listen};
use events::EventStream;

/// The largest answer that is read, in bytes. A trace with many long results is a few megabytes.
const MAX_BYTES: usize = 256 << 20;
/// How long a host may take to accept a connection: it only has to be scheduled.
const CONNECT: Duration = Duration::from_secs(2);

/// Why a request had no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// No host listens, or it went away before it answered. Whether it took the request is unknown.
    #[error("the host is not there")]
    Gone {
        /// Whether the request may have been taken.
        sent: bool,
    },
    /// The host refused the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Reaches the host that listens on one socket.
#[derive(Debug, Clone)]
pub struct Client {
    socket: std::path::PathBuf,
}

impl Client {
    /// A client of the host at this socket. It does not connect yet.
    #[must_use]
    pub fn new(socket: &Path) -> Self {
        Self { socket: socket.to_owned() }
    }

    /// Asks and reads the whole answer.
    ///
    /// # Errors
    /// If there is no host, or it refuses.
    pub async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<T, ClientError> {
        read(self.send(call, None).await?).await
    }

    /// Reads a file.
    ///
    /// # Errors
    /// If there is no host, or it refuses.
    pub async fn read(&self, call: &Call) -> Result<Bytes, ClientError> {
        read_bytes(self.send(call, None).await?).await
    }

    /// Asks for a stream of events, those after the id `after`.
    ///
    /// # Errors
    /// If there is no host, or it refuses.
    pub async fn stream(&self, path: &str, after: Option<u64>) -> Result<EventStream, ClientError> {
        events(self.send(&Call::get(path), after).await?).await
    }

    #[expect(clippy::disallowed_methods, reason = "the socket of the home's host")]
    async fn send(&self, call: &Call, after: Option<u64>) -> Result<Response<Incoming>, ClientError> {
        let unsent = || ClientError::Gone { sent: false };
        let connecting = async {
            let address = listen::address(&self.socket).map_err(|_| unsent())?;
            UnixStream::connect(address.path()).await.map_err(|_| unsent())
        };
        let stream = tokio::time::timeout(CONNECT, connecting).await.map_err(|_| unsent())??;
        let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(|_| unsent())?;
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "the connection to the host ended");
            }
        });
        let mut request = call.request();
        if let Some(id) = after {
            request = request.header("last-event-id", id);
        }
        if let Some(OwnerProof { door, token }) = &call.word {
            let mut bearer =
                HeaderValue::from_str(&format!("Bearer {}", token.expose())).map_err(|error| foreign(&error))?;
            bearer.set_sensitive(true);
            request = request.header(header::AUTHORIZATION, bearer);
            request = request.header(DOOR, if *door == Door::Terminal { "terminal" } else { "token" });
        }
        let request = request.body(call.body()).map_err(|error| foreign(&error))?;
        sender.send_request(request).await.map_err(|_| ClientError::Gone { sent: true })
    }
}

/// The owner's word, as it goes with a request.
#[derive(Debug, Clone)]
pub struct OwnerProof {
    /// How the owner was asked: on the terminal, or not at all.
    pub door: Door,
    /// The token that proves it.
    pub token: OwnerToken,
}

/// One request to the host.
#[derive(Clone)]
pub struct Call {
    method: Method,
    path: String,
    body: Option<Bytes>,
    word: Option<OwnerProof>,
    /// The client says that it speaks for a model.
    for_model: bool,
}

impl std::fmt::Debug for Call {
    // Without the body: there may be a secret in it.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

impl Call {
    /// Reads something. `path` may hold a query.
    #[must_use]
    pub fn get(path: impl Into<String>) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, word: None, for_model: false }
    }

    /// A request for an action.
    ///
    /// # Errors
    /// If the body cannot be written as JSON, which only a path that is not UTF-8 causes.
    pub fn post(path: impl Into<String>, body: &impl serde::Serialize) -> Result<Self, Refusal> {
        let body = serde_json::to_vec(body).map_err(|error| {
            Refusal::new(RefusalCode::InvalidRequest, format!("the request cannot be written as JSON: {error}"))
        })?;
        Ok(Self { method: Method::POST, body: Some(body.into()), ..Self::get(path) })
    }

    /// A request for a deletion. `path` may hold a query.
    #[must_use]
    pub fn delete(path: impl Into<String>) -> Self {
        Self { method: Method::DELETE, ..Self::get(path) }
    }

    /// The head of the request, without the caller's proof of identity.
    pub(crate) fn request(&self) -> request::Builder {
        let mut request = Request::builder().method(&self.method).uri(&self.path).header(header::HOST, "localhost");
        if self.for_model {
            request = request.header(DOOR, "model");
        }
        match self.body {
            Some(_) => request.header(header::CONTENT_TYPE, "application/json"),
            None => request,
        }
    }

    /// The body of the request.
    pub(crate) fn body(&self) -> Full<Bytes> {
        Full::new(self.body.clone().unwrap_or_default())
    }

    /// The same from a client that speaks for a model: it never consents, and a run that it starts is a model's.
    #[must_use]
    pub(crate) fn for_model(&self) -> Self {
        Self { for_model: true, word: None, ..self.clone() }
    }

    /// The same with the owner's word.
    #[must_use]
    pub fn with(mut self, word: OwnerProof) -> Self {
        self.word = Some(word);
        self
    }
}

/// Reads the answer to a request.
///
/// # Errors
/// If the host refused, or its answer ended early.
pub(crate) async fn read<T: DeserializeOwned, B>(response: Response<B>) -> Result<T, ClientError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    serde_json::from_slice(&read_bytes(response).await?).map_err(|error| foreign(&error))
}

/// Reads the answer to a request for bytes.
///
/// # Errors
/// If the host refused, or its answer ended early.
pub(crate) async fn read_bytes<B>(response: Response<B>) -> Result<Bytes, ClientError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let ok = response.status().is_success();
    let body = collect(response.into_body()).await?;
    if ok { Ok(body) } else { Err(refusal(&body)) }
}

/// Reads the answer to a request for a stream of events.
///
/// # Errors
/// If the host refused.
pub(crate) async fn events<B>(response: Response<B>) -> Result<EventStream, ClientError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    if response.status().is_success() {
        return Ok(EventStream::new(axum::body::Body::new(response.into_body())));
    }
    Err(refusal(&collect(response.into_body()).await?))
}

/// The whole body. If the connection broke in the middle, or the answer is beyond reason, the host counts as gone.
async fn collect<B>(body: B) -> Result<Bytes, ClientError>
where
    B: Body<Data = Bytes, Error: Into<BoxError>>,
{
    let body = Limited::new(body, MAX_BYTES).collect().await;
    Ok(body.map_err(|_| ClientError::Gone { sent: true })?.to_bytes())
}

fn refusal(body: &[u8]) -> ClientError {
    match serde_json::from_slice::<Problem>(body) {
        Ok(problem) => ClientError::Refused(problem.into()),
        Err(error) => foreign(&error),
    }
}

/// An answer in an unknown form: another version listens there.
fn foreign(error: &dyn std::error::Error) -> ClientError {
    let refusal = Refusal::new(RefusalCode::Failed, format!("the host's answer cannot be understood: {error}"))
        .with_remedy("another version of `motor` may be running on this home: stop it and try again");
    ClientError::Refused(refusal)
}
