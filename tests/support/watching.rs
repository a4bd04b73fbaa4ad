//! Clients of event streams, cheap enough for thousands of them in one process.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;

use base::sse::{Decoder, Event};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixStream};

/// Bytes read at a time.
const PIECE: usize = 4 << 10;

/// Where a host listens.
#[derive(Debug, Clone)]
pub enum HostAddress {
    /// On the socket of a home.
    Socket(PathBuf),
    /// On a port, for holders of a token.
    Port {
        /// Address and port, without a scheme.
        address: String,
        /// The token to send.
        token: String,
    },
}

trait Connection: AsyncRead + AsyncWrite + Unpin + Send {}
impl<C: AsyncRead + AsyncWrite + Unpin + Send> Connection for C {}

/// A client of one event stream.
pub struct Watcher {
    connection: Box<dyn Connection>,
    decoder: Decoder,
    ready: VecDeque<Event>,
}

impl Watcher {
    /// Opens a stream behind the event with the id `after`, and waits for the head of the answer.
    ///
    /// # Errors
    /// If no host listens, or the answer is not a success.
    pub async fn open(host: &HostAddress, path: &str, after: Option<u64>) -> io::Result<Self> {
        // The older version has no chunks: an answer ends with its connection.
        let mut request = format!("GET {path} HTTP/1.0\r\nhost: localhost\r\n");
        if let Some(after) = after {
            request.push_str(&format!("last-event-id: {after}\r\n"));
        }
        let mut connection: Box<dyn Connection> = match host {
            HostAddress::Socket(path) => Box::new(UnixStream::connect(path).await?),
            HostAddress::Port { address, token } => {
                request.push_str(&format!("authorization: Bearer {token}\r\n"));
                Box::new(TcpStream::connect(address).await?)
            }
        };
        connection.write_all(format!("{request}\r\n").as_bytes()).await?;
        let (mut head, mut piece) = (Vec::new(), [0; PIECE]);
        let end = loop {
            let read = connection.read(&mut piece).await?;
            head.extend_from_slice(piece.get(..read).unwrap_or_default());
            match memchr::memmem::find(&head, b"\r\n\r\n") {
                Some(end) => break end + 4,
                None if read == 0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                None => {}
            }
        };
        let (head, body) = head.split_at(end);
        if !head.starts_with(b"HTTP/1.0 200") {
            return Err(io::Error::other(String::from_utf8_lossy(head).into_owned()));
        }
        let mut watcher = Self { connection, decoder: Decoder::default(), ready: VecDeque::new() };
        watcher.ready.extend(watcher.decoder.push(body));
        Ok(watcher)
    }

    /// The next event with data; `None` at the end of the stream.
    ///
    /// # Errors
    /// If the connection breaks.
    pub async fn next(&mut self) -> io::Result<Option<Event>> {
        let mut piece = [0; PIECE];
        while self.ready.is_empty() {
            let read = self.connection.read(&mut piece).await?;
            if read == 0 {
                return Ok(None);
            }
            self.ready.extend(self.decoder.push(piece.get(..read).unwrap_or_default()));
        }
        Ok(self.ready.pop_front())
    }
}

/// Raises this process's soft limit of open descriptors to the hard one, for thousands of clients.
///
/// # Panics
/// If the hard limit is lower than `wanted`.
pub fn raise_descriptors(wanted: u64) {
    let maximum = getrlimit(Resource::Nofile).maximum;
    assert!(maximum.is_none_or(|hard| hard >= wanted), "the hard limit of descriptors is {maximum:?}, not {wanted}");
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum }).expect("the hard limit is allowed");
}

/// The memory of a process that is resident, in bytes.
///
/// # Panics
/// If there is no such process.
#[must_use]
pub fn resident_bytes(process: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("its memory");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") << 10
}
