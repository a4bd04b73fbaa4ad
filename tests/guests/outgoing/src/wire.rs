//! `wasi:http` with nothing in between: calls that a guest can make and no library would make for it.

use motor_sdk::serde_json::{Value, json};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{
    ErrorCode, Fields, FutureIncomingResponse, IncomingResponse, Method, OutgoingBody, OutgoingRequest, Scheme,
    http_error_code,
};
use wasip2::io::streams::{OutputStream, StreamError};

/// A request as it is written, and its URL as the guest takes it apart: badly, on purpose.
pub(crate) fn request(method: &str, url: &str, fields: Fields) -> Result<OutgoingRequest, String> {
    let (scheme, rest) = url.split_once("://").ok_or("no scheme")?;
    let (authority, path) = match rest.find('/') {
        Some(at) => rest.split_at(at),
        None => (rest, "/"),
    };
    let scheme = match scheme {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        other => Scheme::Other(other.to_owned()),
    };
    let method = match method {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PUT" => Method::Put,
        other => Method::Other(other.to_owned()),
    };
    let request = OutgoingRequest::new(fields);
    request.set_method(&method).map_err(|()| "the method is refused")?;
    request.set_scheme(Some(&scheme)).map_err(|()| "the scheme is refused")?;
    request.set_authority(Some(authority)).map_err(|()| "the authority is refused")?;
    request.set_path_with_query(Some(path)).map_err(|()| "the path is refused")?;
    Ok(request)
}

/// Sends a request without a body.
pub(crate) fn begin(url: &str) -> Result<FutureIncomingResponse, String> {
    handle(request("GET", url, Fields::new())?, None).map_err(|code| name(&code))
}

/// Sends a request, and gives the end of its body that is written to.
pub(crate) fn begin_upload(url: &str, fields: Fields) -> Result<(FutureIncomingResponse, OutgoingBody), String> {
    let request = request("POST", url, fields)?;
    let body = request.body().map_err(|()| "no body")?;
    Ok((handle(request, None).map_err(|code| name(&code))?, body))
}

/// Waits for the response, and returns it.
pub(crate) fn finish(future: &FutureIncomingResponse) -> Result<IncomingResponse, String> {
    loop {
        match future.get() {
            Some(Ok(Ok(response))) => return Ok(response),
            Some(Ok(Err(code))) => return Err(name(&code)),
            Some(Err(())) => return Err("taken twice".to_owned()),
            None => future.subscribe().block(),
        }
    }
}

/// Writes all of it, at most so many bytes with each call as the interface allows.
pub(crate) fn write_all(stream: &OutputStream, bytes: &[u8]) -> Result<(), String> {
    for piece in bytes.chunks(4096) {
        stream.blocking_write_and_flush(piece).map_err(stream_error)?;
    }
    Ok(())
}

/// Reads the response to its end; at most `most` bytes are kept.
pub(crate) fn read(response: &IncomingResponse, most: usize) -> Result<Value, String> {
    let headers: Vec<[String; 2]> = response
        .headers()
        .entries()
        .into_iter()
        .map(|(name, value)| [name, String::from_utf8_lossy(&value).into_owned()])
        .collect();
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    let (mut kept, mut read) = (Vec::new(), 0);
    let ended = loop {
        match stream.blocking_read(64 * 1024) {
            Ok(bytes) => {
                read += bytes.len();
                kept.extend(bytes.into_iter().take(most - kept.len()));
            }
            Err(StreamError::Closed) => break None,
            Err(error) => break Some(stream_error(error)),
        }
    };
    let text = String::from_utf8_lossy(&kept).into_owned();
    Ok(json!({"status": response.status(), "headers": headers, "body": text, "read": read, "error": ended}))
}

fn stream_error(error: StreamError) -> String {
    match error {
        StreamError::Closed => "closed".to_owned(),
        StreamError::LastOperationFailed(error) => match http_error_code(&error) {
            Some(code) => name(&code),
            None => format!("no code: {}", error.to_debug_string()),
        },
    }
}

/// The code, without its payload.
pub(crate) fn name(code: &ErrorCode) -> String {
    let text = format!("{code:?}");
    let code = text.strip_prefix("ErrorCode::").unwrap_or(&text);
    code.split(['(', ' ', '{']).next().unwrap_or_default().to_owned()
}
