//! The request behind `fetch`: sent, followed and read to its end before the promise is there.

use std::cell::Cell;
use std::io::Read as _;

use motor_sdk::http::{self, FailureKind, HttpError, Request, Response};
use rquickjs::{Ctx, Function, IntoJs as _, Object, Result, TypedArray, Value};

use super::failure::Failure;

/// Redirects that are followed (WHATWG Fetch, section 4.4).
const MAX_REDIRECTS: usize = 20;

/// Bytes of a body. Text takes two bytes a character, JSON more than that, of the 64 MiB that a program has.
const MAX_BODY_BYTES: usize = 8 << 20;

/// Adds `send` to the functions for the JavaScript side.
pub fn install<'js>(ctx: &Ctx<'js>, natives: &Object<'js>) -> Result<()> {
    natives.set("send", Function::new(ctx.clone(), send)?)?;
    natives.set("decode", Function::new(ctx.clone(), decode)?)
}

fn send<'js>(
    ctx: Ctx<'js>,
    method: String,
    url: String,
    headers: Vec<Vec<String>>,
    body: Value<'js>,
    follow: bool,
) -> Result<Object<'js>> {
    let headers = headers.into_iter().filter_map(|header| <[String; 2]>::try_from(header).ok());
    let headers = headers.map(|[name, value]| (name, value)).collect();
    let body = match body_of(&body) {
        Ok(body) => body,
        Err(failure) => return failure.into_object(&ctx),
    };
    let request = Request { method, url, headers, body, timeout_ms: None };
    let redirects = Cell::new(0_usize);
    let answer = if follow {
        http::follow(request, MAX_REDIRECTS, |request| {
            redirects.set(redirects.get() + 1);
            http::send(request.clone())
        })
    } else {
        http::send(request)
    };
    match answer.and_then(read) {
        Ok((response, body)) => {
            let object = Object::new(ctx.clone())?;
            object.set("status", response.status)?;
            object.set("url", response.url)?;
            object.set("redirected", redirects.get() > 1)?;
            let headers: Vec<Vec<String>> =
                response.headers.into_iter().map(|(name, value)| vec![name, value]).collect();
            object.set("headers", headers)?;
            object.set("body", TypedArray::<u8>::new(ctx, body)?)?;
            Ok(object)
        }
        Err(error) => failure(&error).into_object(&ctx),
    }
}

fn read(mut response: Response) -> std::result::Result<(Response, Vec<u8>), HttpError> {
    let mut body = Vec::new();
    let most = MAX_BODY_BYTES as u64 + 1;
    response.body.by_ref().take(most).read_to_end(&mut body).map_err(|error| HttpError::of_read(&error))?;
    if body.len() > MAX_BODY_BYTES {
        let message = format!("the body is larger than {MAX_BODY_BYTES} bytes");
        return Err(HttpError::failed(FailureKind::Limit, message));
    }
    Ok((response, body))
}

/// The bytes of a string or of a typed array of bytes; the JavaScript side makes everything else into one of these.
pub fn body_of(value: &Value<'_>) -> std::result::Result<Vec<u8>, Failure> {
    if let Some(text) = value.as_string() {
        return text
            .to_string()
            .map(String::into_bytes)
            .map_err(|_| Failure::new("bad_input", "the text is not Unicode"));
    }
    let bytes = TypedArray::<u8>::from_value(value.clone()).ok();
    bytes
        .and_then(|bytes| copied(&bytes))
        .ok_or_else(|| Failure::new("bad_input", "the bytes are gone: their buffer was detached"))
}

/// UTF-8 to text as `Response.text` has it: invalid UTF-8 becomes U+FFFD, a byte order mark goes.
fn decode<'js>(ctx: Ctx<'js>, bytes: TypedArray<'js, u8>) -> Result<Value<'js>> {
    let bytes = copied(&bytes).unwrap_or_default();
    let text = String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    text.strip_prefix('\u{feff}').unwrap_or(&text).into_js(&ctx)
}

/// The bytes of an array; `None` if its buffer is gone.
#[allow(unsafe_code, reason = "the engine's memory is borrowed for the copy alone, and no JavaScript runs meanwhile")]
fn copied(bytes: &TypedArray<'_, u8>) -> Option<Vec<u8>> {
    // SAFETY: the slice does not outlive this expression, in which the engine is not called.
    unsafe { bytes.as_bytes() }.map(<[u8]>::to_vec)
}

fn failure(error: &HttpError) -> Failure {
    let code = match error {
        HttpError::Blocked { .. } if error.is_staged() => "staged",
        HttpError::Blocked { .. } => "network_blocked",
        HttpError::BadRequest { .. } => "bad_request",
        HttpError::Failed { kind, .. } => match kind {
            FailureKind::Dns => "dns",
            FailureKind::Connect => "connect",
            FailureKind::Tls => "tls",
            FailureKind::Timeout => "timeout",
            FailureKind::Limit => "limit",
            _ => "protocol",
        },
        _ => "protocol",
    };
    Failure::new(code, error)
}
