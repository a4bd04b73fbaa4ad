//! The text that the model reads: a few lines about the response, then its body.
//!
//! A header's value is the server's text: it gets one line, escaped and cut, so that it cannot pose as another line.

use motor_sdk::ToolError;
use motor_sdk::http::Response;

use crate::body::{self, Kind};
use crate::{Format, charset, page};

/// Bytes of an error's body that are read, and characters of its text that are shown.
const MAX_ERROR_BYTES: usize = 64 << 10;
const MAX_ERROR_CHARACTERS: usize = 2_000;
/// Characters of one header's value that are shown.
const MAX_VALUE_CHARACTERS: usize = 1_000;
/// Header lines shown for `HEAD`.
const MAX_HEADERS: usize = 100;

/// Status, final URL and content type, each on a line of its own.
pub fn lines(response: &Response) -> String {
    let mut lines = format!("status: {}\nurl: {}\n", status(response), one_line(&response.url));
    if let Some(kind) = response.header("content-type") {
        lines.push_str(&format!("content-type: {}\n", one_line(kind)));
    }
    lines
}

/// All that there is to a response without a body.
pub fn head(response: &Response) -> String {
    let mut answer = format!("status: {}\nurl: {}\n", status(response), one_line(&response.url));
    for (name, value) in response.headers.iter().take(MAX_HEADERS) {
        answer.push_str(&format!("{}: {}\n", one_line(name), one_line(value)));
    }
    answer
}

/// A response with its body as text.
///
/// # Errors
/// If the body is not text, too long or breaks off.
pub fn show(mut response: Response, format: Format) -> Result<String, ToolError> {
    let kind = Kind::of(&body::content_type(&response));
    if kind == Kind::Binary {
        let size = body::size(&mut response);
        return Err(not_text(&response, &size));
    }
    let bytes = body::read(&mut response, body::MAX_BYTES)?;
    if body::looks_binary(&bytes) {
        return Err(not_text(&response, &format!("of {} bytes", bytes.len())));
    }
    let mut answer = lines(&response);
    let declared = response.header("content-type").unwrap_or_default();
    let is_html = kind == Kind::Html || (kind == Kind::Unknown && starts_like_html(&bytes));
    let text = charset::decode(bytes, declared, is_html);
    if !is_html || format == Format::Raw {
        answer.push('\n');
        answer.push_str(&text);
        return Ok(answer);
    }
    let page = page::read(text, &response.url, format == Format::Markdown);
    if !page.title.is_empty() {
        answer.push_str(&format!("title: {}\n", one_line(&page.title)));
    }
    if let Some(left_out) = page.left_out {
        answer.push_str(&format!("note: {left_out}\n"));
    }
    answer.push('\n');
    answer.push_str(&page.body);
    Ok(answer)
}

/// A status that says that it did not work.
pub fn failure(mut response: Response, is_head: bool) -> ToolError {
    let mut message = format!("`{}` answered {}", one_line(&response.url), status(&response));
    if let Some(seconds) = response.header("retry-after") {
        message.push_str(&format!(" (retry after: {})", one_line(seconds)));
    }
    let excerpt = if is_head { String::new() } else { excerpt(&mut response) };
    if !excerpt.is_empty() {
        message.push_str(": ");
        message.push_str(&excerpt);
    }
    if matches!(response.status, 429 | 502 | 503 | 504) {
        ToolError::failed_for_now(message)
    } else {
        ToolError::failed(message)
    }
}

/// The beginning of an error's body, when it is text. That it broke off does not matter here.
fn excerpt(response: &mut Response) -> String {
    let kind = Kind::of(&body::content_type(response));
    if kind == Kind::Binary || body::refuse_encoded(response).is_err() {
        return String::new();
    }
    let (bytes, _) = body::read_up_to(response, MAX_ERROR_BYTES);
    if body::looks_binary(&bytes) {
        return String::new();
    }
    let text = charset::decode(bytes, response.header("content-type").unwrap_or_default(), kind == Kind::Html);
    let text = if kind == Kind::Html { page::read(text, &response.url, false).body } else { text };
    cut(text.trim(), MAX_ERROR_CHARACTERS)
}

fn not_text(response: &Response, size: &str) -> ToolError {
    let kind = response.header("content-type");
    let kind = kind.map_or_else(|| "binary data".to_owned(), |kind| format!("`{}`", one_line(kind)));
    ToolError::failed(format!("the body is {kind} {size}, not text: give `save_to` to save it in the workspace"))
}

fn starts_like_html(bytes: &[u8]) -> bool {
    let start = bytes.trim_ascii_start();
    ["<!doctype html", "<html", "<head", "<body"]
        .iter()
        .any(|tag| start.get(..tag.len()).is_some_and(|start| start.eq_ignore_ascii_case(tag.as_bytes())))
}

fn status(response: &Response) -> String {
    match reason(response.status) {
        Some(reason) => format!("{} {reason}", response.status),
        None => response.status.to_string(),
    }
}

/// The phrases of RFC 9110 that tell a model more than the number.
fn reason(status: u16) -> Option<&'static str> {
    Some(match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        409 => "Conflict",
        410 => "Gone",
        413 => "Content Too Large",
        415 => "Unsupported Media Type",
        422 => "Unprocessable Content",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => return None,
    })
}

fn one_line(text: &str) -> String {
    let shown = cut(text, MAX_VALUE_CHARACTERS);
    shown.chars().map(|c| if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') { ' ' } else { c }).collect()
}

fn cut(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}
