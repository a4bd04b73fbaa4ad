//! Servers with scripted answers that remember their requests.

use std::future::Future;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A request as the server received it.
#[derive(Debug, Clone, Default)]
pub struct Received {
    pub head: String,
    pub body: Vec<u8>,
}

impl Received {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().skip(1).find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    pub fn text(&self) -> String {
        format!("{}{}", self.head, String::from_utf8_lossy(&self.body))
    }
}

type Talk = Arc<dyn Fn(Box<dyn Stream>, Received) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync>;

/// A server on a loopback address.
pub struct Server {
    pub address: SocketAddr,
    connections: Arc<AtomicUsize>,
    requests: Arc<Mutex<Vec<Received>>>,
}

impl Server {
    /// Answers every request with these bytes, and closes.
    pub async fn saying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = Arc::new(answer.into());
        Self::talking(move |mut stream, _| {
            let answer = answer.clone();
            async move {
                // The client may have had enough of it.
                stream.write_all(&answer).await.unwrap_or_default();
                stream.shutdown().await.unwrap_or_default();
            }
        })
        .await
    }

    /// Answers `200` with this body.
    pub async fn ok(body: &str) -> Self {
        Self::saying(response(body)).await
    }

    /// Answers every request as the function does.
    pub async fn talking<F>(talk: impl Fn(Box<dyn Stream>, Received) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        Self::start(
            Ipv4Addr::LOCALHOST.into(),
            0,
            None,
            Arc::new(move |stream, received| Box::pin(talk(stream, received))),
        )
        .await
    }

    /// Speaks before it is spoken to, as no server of the web does.
    pub async fn speaking_first(words: &'static [u8]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            stream.write_all(words).await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap_or_default();
        });
        Self { address, connections: Arc::default(), requests: Arc::default() }
    }

    /// Answers each request over TLS.
    pub async fn tls(acceptor: TlsAcceptor, body: &str) -> Self {
        let answer = response(body);
        let talk: Talk = Arc::new(move |mut stream, _| {
            let answer = answer.clone();
            Box::pin(async move {
                stream.write_all(&answer).await.unwrap_or_default();
                stream.shutdown().await.unwrap_or_default();
            })
        });
        Self::start(Ipv4Addr::LOCALHOST.into(), 0, Some(acceptor), talk).await
    }

    /// Listens at an address that no request may reach, on the port of another server.
    pub async fn trap(address: &str, port: u16) -> Self {
        let talk: Talk = Arc::new(|mut stream, _| {
            Box::pin(async move { stream.write_all(&response("trapped")).await.unwrap_or_default() })
        });
        Self::start(address.parse().unwrap(), port, None, talk).await
    }

    async fn start(ip: IpAddr, port: u16, tls: Option<TlsAcceptor>, talk: Talk) -> Self {
        let listener = TcpListener::bind((ip, port)).await.unwrap();
        let server =
            Self { address: listener.local_addr().unwrap(), connections: Arc::default(), requests: Arc::default() };
        let (connections, requests) = (server.connections.clone(), server.requests.clone());
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                connections.fetch_add(1, Ordering::SeqCst);
                let (tls, talk, requests) = (tls.clone(), talk.clone(), requests.clone());
                tokio::spawn(async move {
                    let mut stream: Box<dyn Stream> = match tls {
                        None => Box::new(stream),
                        Some(acceptor) => match acceptor.accept(stream).await {
                            Ok(stream) => Box::new(stream),
                            Err(_) => return,
                        },
                    };
                    if let Some(received) = receive(&mut stream).await {
                        requests.lock().unwrap().push(received.clone());
                        talk(stream, received).await;
                    }
                });
            }
        });
        server
    }

    /// Connections that were made to it.
    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Requests that it was sent.
    pub fn requests(&self) -> Vec<Received> {
        self.requests.lock().unwrap().clone()
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }
}

/// A plain answer.
pub fn response(body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

async fn receive(stream: &mut Box<dyn Stream>) -> Option<Received> {
    let mut bytes = Vec::new();
    loop {
        let mut piece = [0; 4096];
        let read = stream.read(&mut piece).await.ok().filter(|read| *read > 0)?;
        bytes.extend_from_slice(&piece[..read]);
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let mut received = Received {
                head: String::from_utf8_lossy(&bytes[..end + 4]).into_owned(),
                body: bytes[end + 4..].to_vec(),
            };
            let length: usize = received.header("content-length").map_or(0, |length| length.parse().unwrap());
            let mut rest = vec![0; length - received.body.len()];
            stream.read_exact(&mut rest).await.ok()?;
            received.body.extend(rest);
            return Some(received);
        }
    }
}
