//! The answers of a site: correct ones, and ones that are wrong in every way.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Barrier;

use super::{Encoding, Received, repository};

/// The answer of a site.
#[derive(Debug, Clone)]
pub enum Reply {
    /// A complete and correct response.
    Whole {
        /// The HTTP status code.
        status: u16,
        /// Its headers except `Content-Length`.
        headers: Vec<(String, String)>,
        /// The bytes of its body.
        body: Vec<u8>,
    },
    /// The value of a header of the request, as the body.
    Echo {
        /// The name of the header.
        header: String,
        /// The form in which the value is written.
        encoding: Encoding,
    },
    /// The value of a header of the request, in the response's header `x-echo`, in `set-cookie`, and in the reason phrase.
    EchoInHead {
        /// The name of the header.
        header: String,
    },
    /// The value of a header of the request, in an error as a server in trouble writes it.
    EchoInError {
        /// The name of the header.
        header: String,
    },
    /// The value of a header of the request, in the address of a redirect to another path.
    EchoInLocation {
        /// The name of the header.
        header: String,
    },
    /// The value of a header of the request, in pieces of so many bytes, each a chunk and a packet of its own.
    EchoInPieces {
        /// The name of the header.
        header: String,
        /// The bytes of each piece.
        bytes: usize,
    },
    /// The answer of git's own server to a push to this bare repository.
    ReceivePack(PathBuf),
    /// The request's body as the body.
    EchoBody(Encoding),
    /// The request's target as the body.
    EchoTarget(Encoding),
    /// A body of `sent` bytes that is said to have `said`.
    Sized {
        /// The value of `Content-Length`.
        said: u64,
        /// The bytes that are sent.
        sent: u64,
    },
    /// A body that never ends.
    Endless,
    /// A header that never ends.
    EndlessHead,
    /// So many times `100 Continue`, then a response.
    Informational(usize),
    /// One byte of the header, and the next after a pause, for ever.
    Drip(Duration),
    /// A header, half a body, and nothing more; the connection stays open.
    Stall,
    /// These bytes, then the end of the connection.
    Raw(Vec<u8>),
    /// The request's target as the body, once as many requests wait for it as the barrier has places.
    Together(Arc<Barrier>),
    /// No answer, with the connection open for ever.
    Silence,
    /// The end of the connection.
    Close,
}

/// The content of bodies that mean nothing.
static FILLER: [u8; 64 << 10] = [b'x'; 64 << 10];

impl Reply {
    /// A page of plain text.
    #[must_use]
    pub fn text(body: &str) -> Self {
        Self::typed("text/plain; charset=utf-8", body)
    }

    /// A page in HTML.
    #[must_use]
    pub fn html(body: &str) -> Self {
        Self::typed("text/html; charset=utf-8", body)
    }

    /// A document in JSON.
    #[must_use]
    pub fn json(body: &serde_json::Value) -> Self {
        Self::typed("application/json", &body.to_string())
    }

    /// A text of a type.
    #[must_use]
    pub fn typed(content_type: &str, body: &str) -> Self {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        Self::Whole { status: 200, headers, body: body.into() }
    }

    /// A redirect with status 302.
    #[must_use]
    pub fn redirect(location: &str) -> Self {
        Self::redirect_as(302, location)
    }

    /// Leads elsewhere with a status.
    #[must_use]
    pub fn redirect_as(status: u16, location: &str) -> Self {
        Self::Whole { status, headers: vec![("location".to_owned(), location.to_owned())], body: Vec::new() }
    }

    /// The value of a header of the request.
    #[must_use]
    pub fn echo(header: &str, encoding: Encoding) -> Self {
        Self::Echo { header: header.to_owned(), encoding }
    }

    /// These bytes, then the end of the connection.
    #[must_use]
    pub fn raw(bytes: impl Into<Vec<u8>>) -> Self {
        Self::Raw(bytes.into())
    }

    /// A response with one header of so many bytes.
    #[must_use]
    pub fn long_header(bytes: usize) -> Self {
        Self::raw(format!("HTTP/1.1 200 OK\r\nx-long: {}\r\ncontent-length: 2\r\n\r\nok", "x".repeat(bytes)))
    }

    /// A response with so many headers.
    #[must_use]
    pub fn many_headers(count: usize) -> Self {
        let headers: String = (0..count).map(|number| format!("x-{number}: y\r\n")).collect();
        Self::raw(format!("HTTP/1.1 200 OK\r\n{headers}content-length: 2\r\n\r\nok"))
    }

    /// Writes it. Whether the connection may be used again.
    pub(super) async fn write(
        self,
        to: &mut (impl AsyncWrite + Unpin),
        request: &Received,
    ) -> Result<bool, std::io::Error> {
        let sent = |header: &str| request.header(header).unwrap_or_default().into_bytes();
        match self {
            Self::Whole { status, headers, body } => {
                let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
                whole(to, &format!("{status} "), &headers, &body, request).await?;
                return Ok(true);
            }
            Self::Echo { header, encoding } => return encoded(to, encoding, &sent(&header), request).await,
            Self::EchoBody(encoding) => return encoded(to, encoding, &request.body, request).await,
            Self::EchoTarget(encoding) => return encoded(to, encoding, request.target.as_bytes(), request).await,
            Self::Together(barrier) => {
                barrier.wait().await;
                return encoded(to, Encoding::Plain, request.target.as_bytes(), request).await;
            }
            Self::ReceivePack(bare) => {
                let (kind, body) = repository::receive_pack(bare, request.clone()).await?;
                whole(to, "200 OK", &[("content-type", kind.as_bytes())], &body, request).await?;
                return Ok(true);
            }
            Self::EchoInHead { header } => {
                let value = sent(&header);
                let status = format!("200 {}", String::from_utf8_lossy(&value));
                let cookie = [b"session=", &*value].concat();
                whole(to, &status, &[("x-echo", &value), ("set-cookie", &cookie)], b"ok", request).await?;
                return Ok(true);
            }
            Self::EchoInError { header } => {
                let value = String::from_utf8_lossy(&sent(&header)).into_owned();
                let body = format!(
                    "Traceback (most recent call last):\n  File \"/srv/api.py\", line 7, in check\n    \
                     raise Denied(key={value:?})\napi.Denied: {value}\n"
                );
                whole(to, "500 Internal Server Error", &[], body.as_bytes(), request).await?;
                return Ok(true);
            }
            Self::EchoInLocation { header } => {
                let location = [b"/next?key=", &*sent(&header)].concat();
                whole(to, "302 Found", &[("location", &location)], b"", request).await?;
                return Ok(true);
            }
            Self::EchoInPieces { header, bytes } => {
                to.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await?;
                for piece in sent(&header).chunks(bytes) {
                    to.write_all(&[format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat()).await?;
                    to.flush().await?;
                    // So that pieces arrive as pieces, not to wait for anything.
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                to.write_all(b"0\r\n\r\n").await?;
            }
            Self::Sized { said, sent } => {
                to.write_all(format!("HTTP/1.1 200 OK\r\ncontent-length: {said}\r\n\r\n").as_bytes()).await?;
                let mut left = usize::try_from(sent).expect("a size");
                while left > 0 {
                    let piece = &FILLER[..left.min(FILLER.len())];
                    to.write_all(piece).await?;
                    left -= piece.len();
                }
            }
            Self::Endless => {
                to.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await?;
                loop {
                    to.write_all(&FILLER).await?;
                }
            }
            Self::EndlessHead => {
                to.write_all(b"HTTP/1.1 200 OK\r\n").await?;
                loop {
                    to.write_all(b"x-more: and more, and more, and more, and more, and more\r\n").await?;
                }
            }
            Self::Informational(times) => {
                for _ in 0..times {
                    to.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
                }
                whole(to, "200 OK", &[], b"ok", request).await?;
            }
            Self::Drip(pause) => {
                for byte in b"HTTP/1.1 200 OK\r\nx-slow: ".iter().copied().chain(std::iter::repeat(b'z')) {
                    to.write_all(&[byte]).await?;
                    to.flush().await?;
                    tokio::time::sleep(pause).await;
                }
            }
            Self::Stall => {
                to.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf ").await?;
                to.flush().await?;
                std::future::pending().await
            }
            Self::Raw(bytes) => to.write_all(&bytes).await?,
            Self::Silence => std::future::pending().await,
            Self::Close => {}
        }
        to.flush().await?;
        Ok(false)
    }
}

async fn encoded(
    to: &mut (impl AsyncWrite + Unpin),
    encoding: Encoding,
    bytes: &[u8],
    request: &Received,
) -> Result<bool, std::io::Error> {
    let headers: &[(&str, &[u8])] =
        if encoding == Encoding::Gzip { &[("content-encoding", b"gzip")] } else { &[("content-type", b"text/plain")] };
    whole(to, "200 OK", headers, &encoding.apply(bytes), request).await?;
    Ok(true)
}

async fn whole(
    to: &mut (impl AsyncWrite + Unpin),
    status: &str,
    headers: &[(&str, &[u8])],
    body: &[u8],
    request: &Received,
) -> Result<(), std::io::Error> {
    let mut message = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len()).into_bytes();
    for (name, value) in headers {
        message.extend([name.as_bytes(), b": ", value, b"\r\n"].concat());
    }
    message.extend(b"\r\n");
    if request.method != "HEAD" {
        message.extend(body);
    }
    to.write_all(&message).await?;
    to.flush().await
}
