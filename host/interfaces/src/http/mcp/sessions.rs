//! Sessions of MCP clients with a handshake (2025): how many there are, for how long, and whose they are.
//!
//! rmcp keeps the messages of a session in memory. This module binds each session to the caller that opened it, and bounds
//! their number, their calls and their idle time: a client that opens sessions and leaves holds nothing for long, and a
//! foreign caller cannot tell a session from one that does not exist. Sessions are lost with the host; their clients begin
//! new ones, and runs go on.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use axum::http::{HeaderMap, header};
use base::{ContentHash, Refusal, RefusalCode};
use futures_util::Stream;
use parking_lot::Mutex;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_server::session::local::{LocalSessionManager, LocalSessionManagerError};
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Sessions of one endpoint at once.
const MAX_SESSIONS: usize = 256;
/// Sessions of one caller at once.
const MAX_SESSIONS_OF_ONE: usize = 32;
/// Calls of one session that are carried out at once.
const MAX_CALLS: usize = 32;
/// Time without a message after which a session ends.
const MAX_IDLE: Duration = Duration::from_secs(30 * 60);

/// Bounds of the sessions of one endpoint.
#[derive(Debug, Clone, Copy)]
pub(super) struct SessionLimits {
    /// Sessions at once. Default 256. More are refused.
    pub(super) sessions: usize,
    /// Sessions of one caller at once. Default 32. One more ends the one that was unused for longest.
    pub(super) of_one: usize,
    /// Calls of one session that are carried out at once. Default 32. More wait.
    pub(super) calls: usize,
    /// Time without a message after which a session ends. Default 30 minutes.
    pub(super) idle: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self { sessions: MAX_SESSIONS, of_one: MAX_SESSIONS_OF_ONE, calls: MAX_CALLS, idle: MAX_IDLE }
    }
}

/// The caller that a session belongs to: the hash of its `Authorization` header. The header itself was checked before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SessionOwner(Option<ContentHash>);

impl SessionOwner {
    pub(super) fn of(headers: &HeaderMap) -> Self {
        Self(headers.get(header::AUTHORIZATION).map(|value| ContentHash::of(value.as_bytes())))
    }
}

/// The sessions of an endpoint.
pub(super) struct Sessions {
    rmcp: LocalSessionManager,
    limits: SessionLimits,
    open: Mutex<HashMap<SessionId, OpenSession>>,
}

struct OpenSession {
    owner: SessionOwner,
    used: Instant,
    /// One permit for each call that may begin.
    calls: Arc<Semaphore>,
}

impl Sessions {
    pub(super) fn new(limits: SessionLimits) -> Self {
        let mut rmcp = LocalSessionManager::default();
        rmcp.session_config.keep_alive = Some(limits.idle);
        // Only cancelled calls stay in that cache, and those have no result to resume.
        rmcp.session_config.completed_cache_ttl = Duration::ZERO;
        Self { rmcp, limits, open: Mutex::default() }
    }

    /// The session that has to end so that `owner` can open one; `None` if there is a place.
    fn replaced_by(&self, owner: SessionOwner) -> Result<Option<SessionId>, Refusal> {
        let open = self.open.lock();
        let own = || open.iter().filter(|(_, session)| session.owner == owner);
        if own().count() < self.limits.of_one && open.len() < self.limits.sessions {
            return Ok(None);
        }
        let unused = own().filter(|(_, session)| session.calls.available_permits() == self.limits.calls);
        let oldest = unused.min_by_key(|(_, session)| session.used).map(|(id, _)| id.clone());
        oldest.map(Some).ok_or_else(|| {
            let reason = format!("the host has {} MCP sessions open, as many as it keeps", open.len());
            Refusal::new(RefusalCode::TryLater, reason)
                .with_remedy("end sessions that are no longer used (`DELETE /mcp`)")
        })
    }
}

/// The sessions of an endpoint as one caller sees them: those of others do not exist.
pub(super) struct OwnSessions {
    sessions: Arc<Sessions>,
    owner: SessionOwner,
    /// Why no session was opened: rmcp knows no answer for it.
    refused: OnceLock<Refusal>,
}

impl OwnSessions {
    pub(super) fn new(sessions: Arc<Sessions>, owner: SessionOwner) -> Self {
        Self { sessions, owner, refused: OnceLock::new() }
    }

    /// Why this caller's request opened no session.
    pub(super) fn refused(&self) -> Option<Refusal> {
        self.refused.get().cloned()
    }

    /// Whether this caller has a session with this id.
    pub(super) fn has(&self, id: &str) -> bool {
        self.sessions.open.lock().get(id).is_some_and(|session| session.owner == self.owner)
    }

    fn is_missing(id: &SessionId) -> LocalSessionManagerError {
        LocalSessionManagerError::SessionNotFound(id.clone())
    }
}

/// Held by the context of a call until the call is over, also after its client has left.
#[derive(Clone)]
struct CallPermit {
    _permit: Arc<OwnedSemaphorePermit>,
}

type Messages = Pin<Box<dyn Stream<Item = ServerSseMessage> + Send + Sync>>;

impl SessionManager for OwnSessions {
    type Error = LocalSessionManagerError;
    type Transport = <LocalSessionManager as SessionManager>::Transport;

    async fn create_session(&self) -> Result<(SessionId, Self::Transport), Self::Error> {
        match self.sessions.replaced_by(self.owner) {
            Ok(None) => {}
            Ok(Some(replaced)) => self.close_session(&replaced).await?,
            Err(refusal) => {
                self.refused.set(refusal).ok();
                return Err(Self::is_missing(&SessionId::from("")));
            }
        }
        let (id, transport) = self.sessions.rmcp.create_session().await?;
        let calls = Arc::new(Semaphore::new(self.sessions.limits.calls));
        let session = OpenSession { owner: self.owner, used: Instant::now(), calls };
        self.sessions.open.lock().insert(id.clone(), session);
        Ok((id, transport))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, Self::Error> {
        self.sessions.rmcp.initialize_session(id, message).await
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, Self::Error> {
        if let Some(session) = self.sessions.open.lock().get_mut(id).filter(|session| session.owner == self.owner) {
            session.used = Instant::now();
            return Ok(true);
        }
        Ok(false)
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), Self::Error> {
        if !self.has(id) {
            return Ok(());
        }
        self.sessions.open.lock().remove(id);
        self.sessions.rmcp.close_session(id).await
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let calls = self.sessions.open.lock().get(id).map(|session| session.calls.clone());
        let permit = calls.ok_or_else(|| Self::is_missing(id))?.acquire_owned().await;
        let permit = permit.map_err(|_| Self::is_missing(id))?;
        if let ClientJsonRpcMessage::Request(request) = &mut message {
            request.request.extensions_mut().insert(CallPermit { _permit: Arc::new(permit) });
        }
        let messages: Messages = Box::pin(self.sessions.rmcp.create_stream(id, message).await?);
        Ok(messages)
    }

    async fn accept_message(&self, id: &SessionId, message: ClientJsonRpcMessage) -> Result<(), Self::Error> {
        self.sessions.rmcp.accept_message(id, message).await
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let messages: Messages = Box::pin(self.sessions.rmcp.create_standalone_stream(id).await?);
        Ok(messages)
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, Self::Error> {
        let messages: Messages = Box::pin(self.sessions.rmcp.resume(id, last_event_id).await?);
        Ok(messages)
    }
}
