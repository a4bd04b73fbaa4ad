//! The HTTP API as the tools use it: through the home's socket, or within the process of the host.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderValue, header};
use base::{Refusal, RefusalCode};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use tokio::sync::Mutex;
use tokio::time::Instant;
use tower::ServiceExt as _;

use crate::client::events::EventStream;
use crate::client::{self, Call, Client, ClientError};
use crate::http::FromMcpServer;
use crate::session::Session;

/// How long a request waits for a host that takes it.
const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(50);

/// A way to the HTTP API.
#[derive(Clone)]
pub enum Api {
    /// Through the socket of a home, whose host may be replaced by another.
    Home(Arc<HomeApi>),
    /// In the process of the host.
    Port {
        /// The routes of the API, without the MCP server.
        router: Router,
        /// The value of the caller's `Authorization` header.
        authorization: Option<HeaderValue>,
    },
}

impl Api {
    /// Sends a request that has no further effect if it is carried out twice.
    ///
    /// # Errors
    /// A refusal of the host; `try_later` if there is none within 20 s.
    pub async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Refusal> {
        match self {
            Self::Home(home) => home.ask(call).await,
            Self::Port { .. } => self.ask_once(call).await,
        }
    }

    /// Sends a request that must not be carried out twice.
    ///
    /// # Errors
    /// A refusal of the host; `outcome_unknown` if it went away before it answered.
    pub async fn ask_once<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Refusal> {
        let answer = match self {
            Self::Home(home) => match home.client.ask(&call.for_model()).await {
                Err(ClientError::Gone { sent: false }) => return home.ask(call).await,
                answer => answer,
            },
            Self::Port { router, authorization } => {
                client::read(within(router, authorization.as_ref(), call).await?).await
            }
        };
        answer.map_err(refusal)
    }

    /// Reads a file.
    ///
    /// # Errors
    /// A refusal of the host, or that it is not there.
    pub async fn read(&self, call: &Call) -> Result<Bytes, Refusal> {
        let bytes = match self {
            Self::Home(home) => home.client.read(&call.for_model()).await,
            Self::Port { router, authorization } => {
                client::read_bytes(within(router, authorization.as_ref(), call).await?).await
            }
        };
        bytes.map_err(refusal)
    }

    /// Asks for events.
    ///
    /// # Errors
    /// A refusal of the host, or that it is not there.
    pub async fn events(&self, path: &str) -> Result<EventStream, Refusal> {
        let stream = match self {
            Self::Home(home) => home.client.stream(path, None).await,
            Self::Port { router, authorization } => {
                client::events(within(router, authorization.as_ref(), &Call::get(path)).await?).await
            }
        };
        stream.map_err(refusal)
    }
}

/// Carries out a request in this process.
async fn within(
    router: &Router,
    authorization: Option<&HeaderValue>,
    call: &Call,
) -> Result<axum::response::Response, Refusal> {
    let mut request = call.request().extension(FromMcpServer);
    if let Some(authorization) = authorization {
        request = request.header(header::AUTHORIZATION, authorization);
    }
    let request = request
        .body(axum::body::Body::new(call.body()))
        .map_err(|error| Refusal::new(RefusalCode::InvalidRequest, error.to_string()))?;
    let Ok(response) = router.clone().oneshot(request).await;
    Ok(response)
}

fn refusal(error: ClientError) -> Refusal {
    match error {
        ClientError::Refused(refusal) => refusal,
        ClientError::Gone { sent: true } => {
            Refusal::new(RefusalCode::OutcomeUnknown, "the host ended before it answered")
        }
        ClientError::Gone { sent: false } => Refusal::new(RefusalCode::TryLater, "the home has no host"),
    }
}

/// The hosts of a home, one after the other.
pub struct HomeApi {
    session: Mutex<Session>,
    client: Client,
}

impl HomeApi {
    /// The hosts that a session reaches.
    #[must_use]
    pub fn new(session: Session) -> Self {
        Self { client: session.client(), session: Mutex::new(session) }
    }

    async fn ask<T: DeserializeOwned>(&self, call: &Call) -> Result<T, Refusal> {
        let deadline = Instant::now() + PATIENCE;
        let call = &call.for_model();
        loop {
            match self.client.ask(call).await {
                Err(ClientError::Gone { .. }) if Instant::now() < deadline => {
                    self.session.lock().await.reach_next().await?;
                }
                // A host that closes refuses; the next one may not.
                Err(ClientError::Refused(refusal))
                    if refusal.code == RefusalCode::TryLater && Instant::now() < deadline =>
                {
                    tokio::time::sleep(PAUSE).await;
                }
                answer => return answer.map_err(refusal),
            }
        }
    }

    /// Makes sure that the home has a host.
    ///
    /// # Errors
    /// If none can be reached within 20 s.
    pub(super) async fn reach_next(&self) -> Result<(), Refusal> {
        self.session.lock().await.reach_next().await
    }

    /// The session, once no tool uses it any more.
    #[must_use]
    pub fn into_session(self) -> Session {
        self.session.into_inner()
    }
}
