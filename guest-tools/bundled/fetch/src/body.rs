//! Bodies: the kind they claim, the kind they are, and at most so many bytes of them.

use std::io::Read as _;

use motor_sdk::ToolError;
use motor_sdk::http::{HttpError, Response};

/// Bytes of a body that is shown. Its text, its tree and the Markdown made of it all have to fit the call's memory.
pub const MAX_BYTES: usize = 8 << 20;

/// The kind of a body by its content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A page in HTML or XHTML.
    Html,
    /// Text of any other kind.
    Text,
    /// There is no content type.
    Unknown,
    /// Anything that is not text.
    Binary,
}

/// The content type without parameters, in lower case; empty if there is none.
pub fn content_type(response: &Response) -> String {
    let value = response.header("content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

impl Kind {
    /// The kind that a content type stands for.
    pub fn of(content_type: &str) -> Self {
        let (major, minor) = content_type.split_once('/').unwrap_or((content_type, ""));
        match (major, minor) {
            ("text", "html") | ("application", "xhtml+xml") => Self::Html,
            ("text", _) => Self::Text,
            (_, minor) if minor.ends_with("+json") || minor.ends_with("+xml") || minor.ends_with("+yaml") => Self::Text,
            (
                "application",
                "json" | "xml" | "javascript" | "ecmascript" | "yaml" | "x-yaml" | "toml" | "sql" | "graphql",
            )
            | (
                "application",
                "json5"
                | "jsonl"
                | "ndjson"
                | "x-ndjson"
                | "x-javascript"
                | "x-sh"
                | "x-www-form-urlencoded"
                | "csv"
                | "rtf"
                | "x-tex"
                | "x-httpd-php"
                | "jwt",
            ) => Self::Text,
            ("", _) => Self::Unknown,
            _ => Self::Binary,
        }
    }
}

/// Reads a body to its end.
///
/// # Errors
/// `limit` if it is longer than `most` bytes; the failure that broke it off otherwise.
pub fn read(response: &mut Response, most: usize) -> Result<Vec<u8>, ToolError> {
    refuse_encoded(response)?;
    let (bytes, is_whole) = read_up_to(response, most);
    match is_whole {
        Ok(true) => Ok(bytes),
        Ok(false) => Err(ToolError::limit(format!(
            "the body is larger than the {most} bytes that can be shown: give `save_to` to save it in the workspace, and read parts of it"
        ))),
        Err(error) => Err(error.into()),
    }
}

/// Reads at most `most` bytes; whether that is all of it, or why it broke off.
pub fn read_up_to(response: &mut Response, most: usize) -> (Vec<u8>, Result<bool, HttpError>) {
    let mut bytes = Vec::new();
    let mut piece = vec![0; 64 << 10];
    let end = loop {
        match response.body.read(&mut piece) {
            Ok(0) => break Ok(true),
            Ok(count) => {
                let room = most - bytes.len();
                bytes.extend_from_slice(piece.get(..count.min(room)).unwrap_or_default());
                if count > room {
                    break Ok(false);
                }
            }
            Err(error) => break Err(HttpError::of_read(&error)),
        }
    };
    (bytes, end)
}

/// How many bytes a body has, as far as anyone would want to know: the host takes `Content-Length` away.
pub fn size(response: &mut Response) -> String {
    let mut counted = 0;
    let mut piece = vec![0; 64 << 10];
    while counted <= MAX_BYTES {
        match response.body.read(&mut piece) {
            Ok(0) => return format!("of {counted} bytes"),
            Ok(count) => counted += count,
            Err(_) => return "that breaks off".to_owned(),
        }
    }
    format!("of more than {MAX_BYTES} bytes")
}

/// A compressed body was not asked for, and unpacking it is more code that hostile bytes would reach.
pub fn refuse_encoded(response: &Response) -> Result<(), ToolError> {
    match response.header("content-encoding").map(str::trim) {
        None | Some("" | "identity") => Ok(()),
        Some(encoding) => {
            let shown: String = encoding.chars().take(40).flat_map(char::escape_debug).collect();
            Err(ToolError::failed(format!("the server compressed the body as `{shown}` without being asked to")))
        }
    }
}

/// Whether bytes that are said to be text are binary.
pub fn looks_binary(bytes: &[u8]) -> bool {
    let start = bytes.get(..bytes.len().min(4096)).unwrap_or_default();
    let is_wide = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    !is_wide && start.contains(&0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds() {
        for (content_type, expected) in [
            ("text/html", Kind::Html),
            ("application/xhtml+xml", Kind::Html),
            ("text/plain", Kind::Text),
            ("application/json", Kind::Text),
            ("application/problem+json", Kind::Text),
            ("image/svg+xml", Kind::Text),
            ("application/x-ndjson", Kind::Text),
            ("", Kind::Unknown),
            ("image/png", Kind::Binary),
            ("application/octet-stream", Kind::Binary),
            ("application/pdf", Kind::Binary),
            ("nonsense", Kind::Binary),
        ] {
            assert_eq!(Kind::of(content_type), expected, "{content_type}");
        }
    }
}
