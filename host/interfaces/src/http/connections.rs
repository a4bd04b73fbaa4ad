//! The connections of a listener: how many there are at once, and how long one may take to send its request.
//!
//! Without these bounds a program that connects and says nothing keeps a descriptor for ever, and a thousand of them keep
//! out the owner's own commands. An answer may take as long as it likes: a watch stays open for days.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use base::{Refusal, RefusalCode};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listen::Listener;
use super::reply::ErrorReply;

/// Maximum bytes of the head of a request, and of a body's part that is read at once. A head has at most 100 headers, hyper's
/// default.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The bounds of one socket.
#[derive(Debug, Clone, Copy)]
pub(super) struct SocketLimits {
    /// Connections that are served at once. Default 256: descriptors are a thousand for a process.
    pub served: usize,
    /// Connections that wait for a place. More stay in the queue of the kernel. Default 64.
    pub waiting: usize,
    /// How long a client may take to send the head of a request, also the next one of a connection. Default 10 s.
    pub head: Duration,
    /// How long a connection waits for a place before it is refused: longer than connections without a request last.
    /// Default 15 s.
    pub wait: Duration,
}

impl Default for SocketLimits {
    fn default() -> Self {
        Self { served: 256, waiting: 64, head: Duration::from_secs(10), wait: Duration::from_secs(15) }
    }
}

/// Serves connections until `closing`, then waits for those that are open.
pub(super) async fn serve(listener: impl Listener, router: Router, bounds: SocketLimits, closing: CancellationToken) {
    let (served, waiting) = (Arc::new(Semaphore::new(bounds.served)), Arc::new(Semaphore::new(bounds.waiting)));
    let full = Router::new().fallback(move || async move { ErrorReply::from(no_place(bounds.served)) });
    let connections = TaskTracker::new();
    let next = async || {
        // The semaphores are never closed.
        let place = waiting.clone().acquire_owned().await.ok();
        (place, listener.accept().await)
    };
    while let Some((place, stream)) = closing.run_until_cancelled(next()).await {
        let (served, router, full, closing) = (served.clone(), router.clone(), full.clone(), closing.clone());
        connections.spawn(async move {
            let slot = tokio::time::timeout(bounds.wait, served.acquire_owned()).await;
            // A connection that is refused keeps its waiting place, so that there are never more than both bounds allow.
            let (router, _place, is_served) = match slot {
                Ok(slot) => {
                    drop(place);
                    (router, slot.ok(), true)
                }
                Err(_) => (full, place, false),
            };
            if let Err(error) = connection(stream, router, is_served, bounds.head, closing).await {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    connections.close();
    connections.wait().await;
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    keep_alive: bool,
    head: Duration,
    closing: CancellationToken,
) -> hyper::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head).keep_alive(keep_alive).max_buf_size(MAX_HEAD_BYTES);
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), TowerToHyperService::new(router)));
    tokio::select! {
        served = &mut serving => return served,
        () = closing.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

fn no_place(most: usize) -> Refusal {
    Refusal::new(RefusalCode::TryLater, format!("the host has {most} connections open, as many as it takes"))
        .with_remedy("end commands that watch runs or signals, and try again")
}

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{UnixListener, UnixStream};

    use super::*;
    use crate::http::listen::OwnersOnly;

    const BOUNDS: SocketLimits =
        SocketLimits { served: 4, waiting: 2, head: Duration::from_secs(10), wait: Duration::from_secs(15) };

    struct Socket {
        path: std::path::PathBuf,
        closing: CancellationToken,
        _home: tempfile::TempDir,
    }

    impl Socket {
        fn open() -> Self {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("s");
            let listener = OwnersOnly::new(UnixListener::bind(&path).unwrap());
            let slow = get(|| async {
                tokio::time::sleep(Duration::from_secs(100_000)).await;
                "at last"
            });
            let router = Router::new().route("/", get(|| async { "here" })).route("/slow", slow);
            let closing = CancellationToken::new();
            tokio::spawn(serve(listener, router, BOUNDS, closing.clone()));
            Self { path, closing, _home: home }
        }

        async fn connect(&self, said: &str) -> UnixStream {
            let mut stream = UnixStream::connect(&self.path).await.unwrap();
            stream.write_all(said.as_bytes()).await.unwrap();
            stream
        }

        async fn ask(&self, path: &str) -> String {
            let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
            all(self.connect(&request).await).await
        }
    }

    async fn all(mut stream: UnixStream) -> String {
        let mut text = String::new();
        stream.read_to_string(&mut text).await.ok();
        text
    }

    #[tokio::test(start_paused = true)]
    async fn clients_that_say_nothing_are_dropped_and_others_get_their_places() {
        let socket = Socket::open();
        let began = tokio::time::Instant::now();
        let mut silent = Vec::new();
        for said in ["", "GET", "GET / HTTP/1.1\r\nhost", "GET / HTTP/1.1\r\nhost: x\r\n"].repeat(5) {
            silent.push(socket.connect(said).await);
        }
        assert!(socket.ask("/").await.ends_with("here"));
        // Five groups of four, one after another.
        assert!(began.elapsed() <= Duration::from_secs(51), "{:?}", began.elapsed());
        for stream in silent {
            assert!(!all(stream).await.contains("here"));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn answers_may_take_long_and_a_client_may_ask_again() {
        let socket = Socket::open();
        let watch = socket.ask("/slow");
        let idle = async {
            let mut stream = socket.connect("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
            let mut answer = vec![0; 16 << 10];
            for _ in 0..20 {
                let read = stream.read(&mut answer).await.unwrap();
                assert!(answer[..read].ends_with(b"here"));
                tokio::time::sleep(Duration::from_secs(8)).await;
                stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
            }
        };
        let (watch, ()) = tokio::join!(watch, idle);
        assert!(watch.ends_with("at last"), "{watch}");
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_place_the_answer_says_so() {
        let socket = Socket::open();
        let watching =
            async { tokio::join!(socket.ask("/slow"), socket.ask("/slow"), socket.ask("/slow"), socket.ask("/slow")) };
        let late = async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            let answer = socket.ask("/").await;
            assert!(answer.contains("503") && answer.contains("4 connections open"), "{answer}");
        };
        let (watched, ()) = tokio::join!(watching, late);
        assert!(watched.3.ends_with("at last"));
        assert!(socket.ask("/").await.ends_with("here"));
        // Half a request does not hold up the end.
        let half = socket.connect("GET").await;
        socket.closing.cancel();
        all(half).await;
    }
}
