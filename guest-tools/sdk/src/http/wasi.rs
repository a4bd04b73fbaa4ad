//! Requests over `wasi:http/outgoing-handler`.
//!
//! Its error codes carry no reason; for a refusal the host has one apart.

use std::io::{self, Read, Write as _};

use url::Url;
use wasip2::http::outgoing_handler;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingBody, IncomingResponse, Method, OutgoingBody, OutgoingRequest,
    RequestOptions, Scheme, http_error_code,
};
use wasip2::io::streams::{InputStream, StreamError};

use super::{Body, FailureKind, HttpError, Request, Response};
use crate::bindings::motor::host::outbound;

/// Sends one request to a URL that was checked.
pub(super) fn send(request: &Request, url: &Url) -> Result<Response, HttpError> {
    let host = url.host_str().unwrap_or_default();
    let outgoing = outgoing(request, url)?;
    let body = outgoing.body().map_err(|()| internal())?;
    let pending = outgoing_handler::handle(outgoing, options(request)).map_err(|code| of_code(&code, host))?;
    // When the body cannot be written, the server or the gate has answered already, and says why.
    if write(&body, &request.body).is_ok() {
        OutgoingBody::finish(body, None).map_err(|code| of_code(&code, host))?;
    } else {
        drop(body);
    }
    incoming(wait(&pending, host)?, url)
}

fn outgoing(request: &Request, url: &Url) -> Result<OutgoingRequest, HttpError> {
    let mut headers: Vec<(String, Vec<u8>)> = request
        .headers
        .iter()
        .filter(|(name, _)| !name.eq_ignore_ascii_case("content-length"))
        .map(|(name, value)| (name.clone(), value.clone().into_bytes()))
        .collect();
    let method = method(&request.method);
    if !request.body.is_empty() || matches!(method, Method::Post | Method::Put | Method::Patch) {
        headers.push(("content-length".to_owned(), request.body.len().to_string().into_bytes()));
    }
    let headers = Fields::from_list(&headers).map_err(|_| {
        HttpError::bad_request(
            "a header is one that a request may not set, such as `Host` or `Connection`: leave it out",
        )
    })?;
    let outgoing = OutgoingRequest::new(headers);
    let scheme = if url.scheme() == "https" { Scheme::Https } else { Scheme::Http };
    let path = match url.query() {
        Some(query) => format!("{}?{query}", url.path()),
        None => url.path().to_owned(),
    };
    outgoing.set_method(&method).map_err(|()| HttpError::bad_request("the host does not send that method"))?;
    outgoing
        .set_scheme(Some(&scheme))
        .and_then(|()| outgoing.set_authority(Some(url.authority())))
        .and_then(|()| outgoing.set_path_with_query(Some(&path)))
        .map_err(|()| HttpError::bad_request("the host does not take that URL"))?;
    Ok(outgoing)
}

fn method(name: &str) -> Method {
    match name.to_ascii_uppercase().as_str() {
        "GET" => Method::Get,
        "HEAD" => Method::Head,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        "DELETE" => Method::Delete,
        "CONNECT" => Method::Connect,
        "OPTIONS" => Method::Options,
        "TRACE" => Method::Trace,
        "PATCH" => Method::Patch,
        other => Method::Other(other.to_owned()),
    }
}

fn options(request: &Request) -> Option<RequestOptions> {
    let nanoseconds = request.timeout_ms?.saturating_mul(1_000_000);
    let options = RequestOptions::new();
    // An option that a host does not support is one that it bounds by itself.
    options.set_connect_timeout(Some(nanoseconds)).ok();
    options.set_first_byte_timeout(Some(nanoseconds)).ok();
    options.set_between_bytes_timeout(Some(nanoseconds)).ok();
    Some(options)
}

fn write(body: &OutgoingBody, bytes: &[u8]) -> io::Result<()> {
    if bytes.is_empty() {
        return Ok(());
    }
    let mut stream = body.write().map_err(|()| io::Error::from(io::ErrorKind::BrokenPipe))?;
    stream.write_all(bytes)?;
    io::Write::flush(&mut stream)
}

fn wait(pending: &FutureIncomingResponse, host: &str) -> Result<IncomingResponse, HttpError> {
    loop {
        match pending.get() {
            Some(Ok(Ok(response))) => return Ok(response),
            Some(Ok(Err(code))) => return Err(of_code(&code, host)),
            Some(Err(())) => return Err(internal()),
            None => pending.subscribe().block(),
        }
    }
}

fn incoming(response: IncomingResponse, url: &Url) -> Result<Response, HttpError> {
    let headers = response.headers().entries();
    let headers = headers
        .into_iter()
        .map(|(name, value)| (name.to_ascii_lowercase(), String::from_utf8_lossy(&value).into_owned()))
        .collect();
    let body = response.consume().map_err(|()| internal())?;
    let stream = body.stream().map_err(|()| internal())?;
    let host = url.host_str().unwrap_or_default().to_owned();
    let body = Body::from_reader(Incoming { stream, _body: body, host });
    Ok(Response { status: response.status(), headers, body, url: url.to_string() })
}

/// The body of a response. Fields are dropped in order, and a stream has to go before its body.
struct Incoming {
    stream: InputStream,
    _body: IncomingBody,
    host: String,
}

impl Read for Incoming {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match self.stream.blocking_read(buffer.len() as u64) {
                // Nothing yet is not the end.
                Ok(piece) if piece.is_empty() => {}
                Ok(piece) => {
                    let room = buffer.get_mut(..piece.len()).ok_or(io::ErrorKind::InvalidData)?;
                    room.copy_from_slice(&piece);
                    return Ok(piece.len());
                }
                Err(StreamError::Closed) => return Ok(0),
                Err(StreamError::LastOperationFailed(error)) => {
                    let reason = match http_error_code(&error) {
                        Some(code) => of_code(&code, &self.host),
                        None => HttpError::failed(FailureKind::Protocol, error.to_debug_string()),
                    };
                    return Err(io::Error::other(reason));
                }
            }
        }
    }
}

fn internal() -> HttpError {
    HttpError::failed(FailureKind::Protocol, "the host did not take the request apart as it should")
}

fn of_code(code: &ErrorCode, host: &str) -> HttpError {
    use ErrorCode as E;
    use FailureKind::{Connect, Dns, Limit, Protocol, Timeout, Tls};
    let failed = HttpError::failed;
    match code {
        E::HttpRequestDenied | E::DestinationIpProhibited | E::HttpRequestUriInvalid => refusal(host),
        E::DnsTimeout => failed(Timeout, format!("looking up `{host}` took too long")),
        E::DnsError(_) | E::DestinationNotFound => failed(Dns, format!("`{host}` has no address")),
        E::DestinationUnavailable | E::DestinationIpUnroutable | E::ConnectionRefused => {
            failed(Connect, format!("cannot connect to `{host}`"))
        }
        E::ConnectionTerminated => failed(Connect, format!("the connection to `{host}` broke")),
        E::ConnectionTimeout | E::ConnectionReadTimeout | E::ConnectionWriteTimeout | E::HttpResponseTimeout => {
            failed(Timeout, format!("`{host}` took too long to answer"))
        }
        E::TlsProtocolError | E::TlsCertificateError | E::TlsAlertReceived(_) => {
            failed(Tls, format!("no trusted TLS connection to `{host}`"))
        }
        E::ConnectionLimitReached => failed(Limit, "the call has made as many requests as it may".to_owned()),
        E::HttpRequestBodySize(most) => failed(Limit, larger("the request's body", *most)),
        E::HttpRequestHeaderSectionSize(most) => failed(Limit, larger("the request's header", most.map(u64::from))),
        E::HttpResponseBodySize(most) => failed(Limit, larger("the response's body", *most)),
        E::HttpResponseHeaderSectionSize(most) => failed(Limit, larger("the response's header", most.map(u64::from))),
        E::HttpRequestMethodInvalid | E::HttpRequestUriTooLong => {
            HttpError::bad_request(format!("the host does not send such a request to `{host}`"))
        }
        E::HttpResponseIncomplete => failed(Protocol, format!("the response of `{host}` broke off")),
        E::InternalError(Some(message)) => failed(Protocol, message.clone()),
        _ => failed(Protocol, format!("`{host}` broke off or does not speak HTTP as it should")),
    }
}

fn larger(what: &str, most: Option<u64>) -> String {
    match most {
        Some(most) => format!("{what} is larger than {most} bytes"),
        None => format!("{what} is larger than the host lets through"),
    }
}

fn refusal(host: &str) -> HttpError {
    match outbound::last_refusal() {
        Some(refusal) => HttpError::Blocked { rule: refusal.rule, reason: refusal.reason, remedy: refusal.remedy },
        None => HttpError::Blocked {
            rule: "denied".to_owned(),
            reason: format!("the host lets no request to `{host}` out"),
            remedy: "ask the user for access to it".to_owned(),
        },
    }
}
