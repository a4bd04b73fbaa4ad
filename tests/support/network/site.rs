//! A site: an HTTP/1.1 server on a socket of its own, plain or with TLS, written by hand because no library of servers
//! lies about lengths or breaks off where it is told to.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

use super::{Reply, ServerTls};
use crate::MAX_WAIT;

/// The most that a request's head may be.
const MAX_WAIT_HEAD_BYTES: usize = 1 << 20;

/// A request as it came over the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Received {
    /// The method of the request.
    pub method: String,
    /// The target of the request line.
    pub target: String,
    /// The headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The bytes of the body.
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<String> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone())
    }

    /// The body as text, invalid UTF-8 replaced.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// A running site. It stops when dropped.
#[derive(Debug)]
pub struct Site {
    address: SocketAddr,
    scheme: &'static str,
    shared: Arc<Shared>,
    task: tokio::task::JoinHandle<()>,
}

#[derive(Debug, Default)]
struct Shared {
    routes: Mutex<BTreeMap<String, Reply>>,
    requests: Mutex<Vec<Received>>,
    received: watch::Sender<usize>,
    connections: AtomicUsize,
    written: AtomicU64,
    open: watch::Sender<usize>,
}

impl Site {
    /// Starts on a free port of `127.0.0.1`.
    pub async fn start() -> Self {
        Self::at("127.0.0.1:0").await
    }

    /// Starts a site at an address, without TLS.
    pub async fn at(address: &str) -> Self {
        Self::serve(address, None).await
    }

    /// Starts at an address, with TLS.
    pub async fn with_tls(address: &str, tls: ServerTls) -> Self {
        Self::serve(address, Some(tls)).await
    }

    async fn serve(address: &str, tls: Option<ServerTls>) -> Self {
        let listener = TcpListener::bind(address).await.unwrap_or_else(|error| panic!("{address}: {error}"));
        let address = listener.local_addr().expect("an address");
        let scheme = if tls.is_some() { "https" } else { "http" };
        let shared = Arc::new(Shared::default());
        let acceptor = tls.map(|tls| TlsAcceptor::from(tls.0));
        let task = tokio::spawn(accept(listener, acceptor, Arc::clone(&shared)));
        Self { address, scheme, shared, task }
    }

    /// Answers a path, with any query, from now on. Other paths are 404.
    #[must_use]
    pub fn with(self, path: &str, reply: Reply) -> Self {
        self.route(path, reply);
        self
    }

    /// Answers a path, with any query, from now on.
    pub fn route(&self, path: &str, reply: Reply) {
        self.shared.routes.lock().insert(path.to_owned(), reply);
    }

    /// The address at which it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The port at which it listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// The URL of a path, by its address.
    #[must_use]
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// The URL of a path, by a name.
    #[must_use]
    pub fn url_as(&self, name: &str, path: &str) -> String {
        format!("{}://{name}:{}{path}", self.scheme, self.port())
    }

    /// The number of connections so far.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Every request that came whole, over all connections.
    #[must_use]
    pub fn requests(&self) -> Vec<Received> {
        self.shared.requests.lock().clone()
    }

    /// The request that came last.
    ///
    /// # Panics
    /// If no request came.
    #[must_use]
    pub fn last_request(&self) -> Received {
        self.requests().pop().expect("a request came")
    }

    /// Bytes that clients took from it, those on the way included.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.shared.written.load(Ordering::SeqCst)
    }

    /// Waits until so many requests have come, and gives all of them.
    ///
    /// # Panics
    /// If they do not come.
    pub async fn wait_for_requests(&self, count: usize) -> Vec<Received> {
        let mut received = self.shared.received.subscribe();
        let came = tokio::time::timeout(MAX_WAIT, received.wait_for(|received| *received >= count)).await;
        came.unwrap_or_else(|_| panic!("not {count} requests came: {:?}", self.requests())).expect("the site runs");
        self.requests()
    }

    /// Waits until every connection is over.
    ///
    /// # Panics
    /// If one stays open.
    pub async fn wait_closed(&self) {
        let mut open = self.shared.open.subscribe();
        let closed = tokio::time::timeout(MAX_WAIT, open.wait_for(|open| *open == 0)).await;
        closed.expect("connections end").expect("the site runs");
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Counts a connection as open until it is dropped.
struct Open(Arc<Shared>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.send_modify(|open| *open -= 1);
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, shared: Arc<Shared>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        shared.connections.fetch_add(1, Ordering::SeqCst);
        shared.open.send_modify(|open| *open += 1);
        let (acceptor, open) = (acceptor.clone(), Open(Arc::clone(&shared)));
        connections.spawn(async move {
            stream.set_nodelay(true).ok();
            // How a connection ends is the client's business: the counters hold the requests.
            match acceptor {
                None => converse(stream, &open.0).await.ok(),
                Some(acceptor) => over_tls(acceptor, stream, &open.0).await.ok(),
            }
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn over_tls(acceptor: TlsAcceptor, stream: TcpStream, shared: &Shared) -> Result<(), std::io::Error> {
    converse(acceptor.accept(stream).await?, shared).await
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, shared: &Shared) -> Result<(), std::io::Error> {
    let (mut from, to) = tokio::io::split(stream);
    let mut to = Counted { inner: to, shared };
    let mut unread = Vec::new();
    while let Some(request) = read_request(&mut from, &mut unread).await? {
        let path = request.target.split('?').next().unwrap_or_default().to_owned();
        let reply = shared.routes.lock().get(&path).cloned();
        let reply = reply.unwrap_or_else(|| Reply::Whole { status: 404, headers: Vec::new(), body: Vec::new() });
        shared.requests.lock().push(request.clone());
        shared.received.send_modify(|received| *received += 1);
        // A client that goes away ends the reply, also one that has nothing to say.
        let again = tokio::select! {
            again = reply.write(&mut to, &request) => again?,
            () = gone(&mut from, &mut unread) => false,
        };
        if !again {
            break;
        }
    }
    tokio::io::AsyncWriteExt::shutdown(&mut to).await
}

/// Ends when the client does.
async fn gone(from: &mut (impl AsyncRead + Unpin), unread: &mut Vec<u8>) {
    while from.read_buf(unread).await.is_ok_and(|read| read > 0) {}
}

/// The next request; `None` if the client has closed the connection.
async fn read_request(
    from: &mut (impl AsyncRead + Unpin),
    unread: &mut Vec<u8>,
) -> Result<Option<Received>, std::io::Error> {
    let invalid = |message: &str| std::io::Error::new(std::io::ErrorKind::InvalidData, message.to_owned());
    let (mut request, head) = loop {
        if let Some(parsed) = parse_head(unread).map_err(|error| invalid(&error.to_string()))? {
            break parsed;
        }
        if unread.len() > MAX_WAIT_HEAD_BYTES || from.read_buf(unread).await? == 0 {
            return Ok(None);
        }
    };
    unread.drain(..head);
    if request.header("transfer-encoding").is_some_and(|encoding| encoding.eq_ignore_ascii_case("chunked")) {
        loop {
            let line = line(from, unread).await?.ok_or_else(|| invalid("no chunk"))?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(|error| invalid(&error.to_string()))?;
            request.body.extend(exactly(from, unread, size).await?);
            exactly(from, unread, 2).await?;
            if size == 0 {
                break;
            }
        }
    } else if let Some(length) = request.header("content-length") {
        let length = length.parse().map_err(|_| invalid("a length"))?;
        request.body = exactly(from, unread, length).await?;
    }
    Ok(Some(request))
}

fn parse_head(bytes: &[u8]) -> Result<Option<(Received, usize)>, httparse::Error> {
    let mut headers = [httparse::EMPTY_HEADER; 256];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(head) = parsed.parse(bytes)? else { return Ok(None) };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let headers = parsed.headers.iter().map(|header| (header.name.to_lowercase(), text(header.value)));
    let request = Received {
        method: parsed.method.unwrap_or_default().to_owned(),
        target: parsed.path.unwrap_or_default().to_owned(),
        headers: headers.collect(),
        body: Vec::new(),
    };
    Ok(Some((request, head)))
}

async fn exactly(
    from: &mut (impl AsyncRead + Unpin),
    unread: &mut Vec<u8>,
    bytes: usize,
) -> Result<Vec<u8>, std::io::Error> {
    while unread.len() < bytes {
        if from.read_buf(unread).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
    Ok(unread.drain(..bytes).collect())
}

async fn line(from: &mut (impl AsyncRead + Unpin), unread: &mut Vec<u8>) -> Result<Option<String>, std::io::Error> {
    loop {
        if let Some(end) = unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = unread.drain(..=end).collect();
            return Ok(Some(String::from_utf8_lossy(&line).into_owned()));
        }
        if from.read_buf(unread).await? == 0 {
            return Ok(None);
        }
    }
}

/// Counts the bytes that are written.
struct Counted<'a, W> {
    inner: W,
    shared: &'a Shared,
}

impl<W: AsyncWrite + Unpin> AsyncWrite for Counted<'_, W> {
    fn poll_write(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
        bytes: &[u8],
    ) -> std::task::Poll<Result<usize, std::io::Error>> {
        let written = std::pin::Pin::new(&mut self.inner).poll_write(context, bytes);
        if let std::task::Poll::Ready(Ok(written)) = &written {
            self.shared.written.fetch_add(u64::try_from(*written).unwrap_or(u64::MAX), Ordering::SeqCst);
        }
        written
    }

    fn poll_flush(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), std::io::Error>> {
        std::pin::Pin::new(&mut self.inner).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Result<(), std::io::Error>> {
        std::pin::Pin::new(&mut self.inner).poll_shutdown(context)
    }
}
