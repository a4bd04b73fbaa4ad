//! The connections of a listener: each gets a [slot](Slots), and a bounded time to send its request.
//!
//! Without these bounds a program that connects and says nothing keeps a descriptor for ever, and a thousand of them keep
//! out the owner's own commands. An answer may take as long as it likes: a watch stays open for days.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::listen::Listener;
use super::slots::{ConnectionSlot, Slots};

/// Maximum bytes of the head of a request, and of a body's part that is read at once. A head has at most 100 headers, hyper's
/// default.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// Serves connections until `closing`, then waits for those that are open.
pub(super) async fn serve(listener: impl Listener, router: Router, slots: Arc<Slots>, closing: CancellationToken) {
    let full = Router::new().fallback({
        let slots = slots.clone();
        move || async move { slots.full() }
    });
    let connections = TaskTracker::new();
    let next = async || (slots.place().await, listener.accept().await);
    while let Some((place, stream)) = closing.run_until_cancelled(next()).await {
        let (slots, router, full, closing) = (slots.clone(), router.clone(), full.clone(), closing.clone());
        connections.spawn(async move {
            let served = match slots.enter().await {
                Some(slot) => {
                    drop(place);
                    connection(stream, router, Some(slot), slots.limits.head, closing).await
                }
                // A connection that is refused keeps its waiting place, so that there are never more than the bounds allow.
                None => {
                    let _place = place;
                    connection(stream, full, None, slots.limits.head, closing).await
                }
            };
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended");
            }
        });
    }
    connections.close();
    connections.wait().await;
}

/// Serves one connection. Without a slot it gets one answer.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    router: Router,
    slot: Option<ConnectionSlot>,
    head: Duration,
    closing: CancellationToken,
) -> hyper::Result<()> {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head).keep_alive(slot.is_some()).max_buf_size(MAX_HEAD_BYTES);
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |request: Request<Incoming>| {
        let (answering, slot) = (router.call(request), slot.clone());
        async move {
            match slot {
                Some(slot) => slot.hold(answering).await,
                None => answering.await,
            }
        }
    });
    let mut serving = pin!(http.serve_connection(TokioIo::new(stream), service));
    tokio::select! {
        served = &mut serving => return served,
        () = closing.cancelled() => serving.as_mut().graceful_shutdown(),
    }
    serving.await
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use axum::response::Sse;
    use axum::response::sse::Event;
    use axum::routing::get;
    use futures_util::stream;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{UnixListener, UnixStream};

    use super::*;
    use crate::http::listen::OwnersOnly;
    use crate::http::slots::SocketLimits;

    fn limits(watching: usize) -> SocketLimits {
        SocketLimits { served: 4, watching, waiting: 2, ..SocketLimits::default() }
    }

    struct Socket {
        path: std::path::PathBuf,
        closing: CancellationToken,
        slots: Arc<Slots>,
        _home: tempfile::TempDir,
    }

    impl Socket {
        fn open(watching: usize) -> Self {
            let home = tempfile::tempdir().unwrap();
            let path = home.path().join("s");
            let listener = OwnersOnly::new(UnixListener::bind(&path).unwrap());
            let slow = get(|| async {
                tokio::time::sleep(Duration::from_secs(100_000)).await;
                "at last"
            });
            let watch = get(|| async { Sse::new(stream::pending::<Result<Event, Infallible>>()) });
            let here = Router::new().route("/", get(|| async { "here" }));
            let router = here.route("/slow", slow).route("/watch", watch);
            let closing = CancellationToken::new();
            let slots = Slots::new(limits(watching));
            tokio::spawn(serve(listener, router, slots.clone(), closing.clone()));
            Self { path, closing, slots, _home: home }
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
        let socket = Socket::open(0);
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
        let socket = Socket::open(0);
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
        let socket = Socket::open(0);
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
    #[tokio::test(start_paused = true)]
    async fn watchers_and_long_answers_leave_the_slots_for_requests_free() {
        let socket = Socket::open(6);
        let request = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        let mut watching = Vec::new();
        for _ in 0..3 {
            watching.push(socket.connect(&request("/slow")).await);
            let mut watch = socket.connect(&request("/watch")).await;
            let mut head = [0; 12];
            watch.read_exact(&mut head).await.unwrap();
            assert_eq!(&head, b"HTTP/1.1 200");
            watching.push(watch);
        }
        // Three long answers stand beside three streams, more together than there are slots for requests.
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(socket.slots.open(), (0, 6));
        assert!(socket.ask("/").await.ends_with("here"));
        let refused = socket.ask("/watch").await;
        assert!(refused.contains("503") && refused.contains("6 connections watch"), "{refused}");
        assert!(socket.ask("/").await.ends_with("here"));
        // Silent clients take slots for requests alone, and a watch outlasts them.
        let mut silent = Vec::new();
        for _ in 0..4 {
            silent.push(socket.connect("GET").await);
        }
        assert!(socket.ask("/").await.ends_with("here"));
        assert_eq!(socket.slots.open().1, 6);
        drop(watching);
        while socket.slots.open().1 > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_asks_again_after_a_long_answer() {
        let socket = Socket::open(1);
        let mut stream = socket.connect("GET /slow HTTP/1.1\r\nhost: x\r\n\r\n").await;
        let mut answer = vec![0; 16 << 10];
        let read = stream.read(&mut answer).await.unwrap();
        assert!(answer[..read].ends_with(b"at last"));
        assert_eq!(socket.slots.open(), (1, 0));
        stream.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let read = stream.read(&mut answer).await.unwrap();
        assert!(answer[..read].ends_with(b"here"));
    }
}
