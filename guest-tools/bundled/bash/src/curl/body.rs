//! From options to a request: the method, the headers, and a body out of arguments, files and standard input.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bashkit::BuiltinContext;
use motor_sdk::http::Request;

use super::options::{Data, Field, Options, Target};
use super::{Fault, USER_AGENT, exit, place};

/// How a credential is written in a request.
const CREDENTIAL: &str = "<credential:";

/// Makes the request for one URL.
pub(super) async fn request(
    options: &Options,
    target: &Target,
    context: &BuiltinContext<'_>,
) -> Result<Request, Fault> {
    let mut url = target.url.clone();
    let query = joined(&options.query, "&", context).await?;
    add_query(&mut url, &query)?;
    let mut body = Vec::new();
    let mut defaults = vec![("User-Agent", options.user_agent.clone().unwrap_or_else(|| USER_AGENT.to_owned()))];
    let mut method = if options.head { "HEAD" } else { "GET" };
    if let Some(path) = &options.upload {
        body = read(path, context).await?;
        if url.ends_with('/') && path != "-" {
            url.push_str(path.rsplit('/').next().unwrap_or_default());
        }
        method = "PUT";
    } else if !options.form.is_empty() {
        let (boundary, bytes) = form(&options.form, context).await?;
        defaults.push(("Content-Type", format!("multipart/form-data; boundary={boundary}")));
        body = bytes;
        method = "POST";
    } else if !options.data.is_empty() {
        let data = joined(&options.data, if options.json { "" } else { "&" }, context).await?;
        if options.get || options.head {
            add_query(&mut url, &data)?;
        } else {
            let kind = if options.json { "application/json" } else { "application/x-www-form-urlencoded" };
            defaults.push(("Content-Type", kind.to_owned()));
            body = data;
            method = "POST";
        }
    }
    defaults.push(("Accept", if options.json { "application/json" } else { "*/*" }.to_owned()));
    if let Some(user) = &options.user {
        defaults.push(("Authorization", basic(user)?));
    }
    for (name, value) in [("Referer", &options.referer), ("Cookie", &options.cookie)] {
        defaults.extend(value.clone().map(|value| (name, value)));
    }
    defaults.extend(options.bearer.as_ref().map(|token| ("Authorization", format!("Bearer {token}"))));
    defaults.extend(options.range.as_ref().map(|range| ("Range", format!("bytes={range}"))));
    if options.cookie.as_ref().is_some_and(|cookie| !cookie.contains('=')) {
        return Err(Fault::usage("option -b: cookies are not read from files: write `-b NAME=VALUE`"));
    }
    Ok(Request {
        method: options.method.clone().unwrap_or_else(|| method.to_owned()),
        url,
        headers: headers(&options.headers, defaults),
        body,
        timeout_ms: options.timeout_ms,
    })
}

/// The headers given, and of the usual ones those that were not given. `Name:` leaves one out, `Name;` sends it empty.
fn headers(given: &[String], defaults: Vec<(&str, String)>) -> Vec<(String, String)> {
    let parts: Vec<(&str, Option<&str>)> = given
        .iter()
        .filter_map(|header| match (header.split_once(':'), header.strip_suffix(';')) {
            (Some((name, value)), _) => Some((name.trim(), Some(value.trim()).filter(|value| !value.is_empty()))),
            (None, Some(name)) => Some((name.trim(), Some(""))),
            (None, None) => None,
        })
        .collect();
    let mentioned = |name: &str| parts.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
    let usual = defaults.into_iter().filter(|(name, value)| !mentioned(name) && !value.is_empty());
    let mut headers: Vec<_> = usual.map(|(name, value)| (name.to_owned(), value)).collect();
    headers.extend(parts.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value)?.to_owned()))));
    headers
}

fn basic(user: &str) -> Result<String, Fault> {
    if user.contains(CREDENTIAL) {
        return Err(Fault::usage(
            "option -u: a credential cannot be encoded here: store `USER:PASSWORD` in base64 and write `-H 'Authorization: \
             Basic <credential:NAME>'`",
        ));
    }
    let pair = if user.contains(':') { user.to_owned() } else { format!("{user}:") };
    Ok(format!("Basic {}", STANDARD.encode(pair)))
}

fn add_query(url: &mut String, query: &[u8]) -> Result<(), Fault> {
    if query.is_empty() {
        return Ok(());
    }
    let query = str::from_utf8(query).map_err(|_| Fault::usage("data for the URL is not text"))?;
    let fragment = url.find('#').map(|index| url.split_off(index));
    url.push(if url.contains('?') { '&' } else { '?' });
    url.push_str(query);
    url.push_str(fragment.as_deref().unwrap_or_default());
    Ok(())
}

/// The bytes of a file, or of standard input for `-`.
async fn read(path: &str, context: &BuiltinContext<'_>) -> Result<Vec<u8>, Fault> {
    if path == "-" {
        return Ok(context.stdin.map(|stdin| stdin.as_bytes().to_vec()).unwrap_or_default());
    }
    let cannot_read = |error| Fault::new(exit::READ, format!("cannot read `{path}`: {error}"));
    context.fs.read_file(&place(path, context)).await.map_err(cannot_read)
}

/// All pieces of data, with `between` between them.
async fn joined(pieces: &[Data], between: &str, context: &BuiltinContext<'_>) -> Result<Vec<u8>, Fault> {
    let mut bytes = Vec::new();
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            bytes.extend(between.bytes());
        }
        match piece {
            Data::Raw(text) => bytes.extend_from_slice(text.as_bytes()),
            Data::Binary(text) => match text.strip_prefix('@') {
                Some(path) => bytes.extend(read(path, context).await?),
                None => bytes.extend_from_slice(text.as_bytes()),
            },
            Data::Text(text) => match text.strip_prefix('@') {
                Some(path) => bytes.extend(read(path, context).await?.iter().filter(|byte| !b"\r\n\0".contains(byte))),
                None => bytes.extend_from_slice(text.as_bytes()),
            },
            Data::Encoded(text) => bytes.extend(encoded(text, context).await?),
        }
    }
    Ok(bytes)
}

/// `content`, `=content`, `name=content`, `@file`, `name@file`: the content percent-encoded.
async fn encoded(text: &str, context: &BuiltinContext<'_>) -> Result<Vec<u8>, Fault> {
    let (name, content) = match text.find(['=', '@']) {
        None => ("", text.as_bytes().to_vec()),
        Some(index) => {
            let (name, rest) = text.split_at(index);
            match rest.strip_prefix('@') {
                Some(path) => (name, read(path, context).await?),
                None => (name, rest.as_bytes().iter().skip(1).copied().collect()),
            }
        }
    };
    let mut bytes = name.as_bytes().to_vec();
    if !name.is_empty() {
        bytes.push(b'=');
    }
    for byte in content {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            bytes.push(byte);
        } else {
            bytes.extend(format!("%{byte:02X}").bytes());
        }
    }
    Ok(bytes)
}

/// One part of a form as it is sent.
struct Part {
    head: String,
    content: Vec<u8>,
}

/// A form as RFC 7578 writes it, and the boundary between its parts.
async fn form(fields: &[Field], context: &BuiltinContext<'_>) -> Result<(String, Vec<u8>), Fault> {
    let mut parts = Vec::new();
    for field in fields {
        parts.push(part(field, context).await?);
    }
    // One that does not occur: found by counting, so that a request is the same each time.
    let occurs = |boundary: &str| {
        parts.iter().any(|part| part.content.windows(boundary.len()).any(|window| window == boundary.as_bytes()))
    };
    let boundary = (0_u32..).map(|number| format!("------------------------{number:016x}"));
    let boundary = boundary.take(1_000).find(|boundary| !occurs(boundary));
    let boundary = boundary.ok_or_else(|| Fault::usage("option -F: no boundary fits between these parts"))?;
    let mut bytes = Vec::new();
    for part in parts {
        bytes.extend(format!("--{boundary}\r\n{}\r\n\r\n", part.head).bytes());
        bytes.extend(part.content);
        bytes.extend(b"\r\n");
    }
    bytes.extend(format!("--{boundary}--\r\n").bytes());
    Ok((boundary, bytes))
}

async fn part(field: &Field, context: &BuiltinContext<'_>) -> Result<Part, Fault> {
    let malformed = || Fault::usage("option -F: write `NAME=CONTENT`, `NAME=@FILE` or `NAME=<FILE`");
    let (name, value) = field.text.split_once('=').ok_or_else(malformed)?;
    let mut head = format!("Content-Disposition: form-data; name=\"{}\"", quoted(name));
    if field.literal {
        return Ok(Part { head, content: value.as_bytes().to_vec() });
    }
    let mut pieces = value.split(';');
    let main = pieces.next().unwrap_or_default();
    let (mut kind, mut file_name) = (None, None);
    let mut content_tail = String::new();
    for piece in pieces {
        match piece.trim().split_once('=') {
            Some(("type", value)) => kind = Some(value.to_owned()),
            Some(("filename", value)) => file_name = Some(value.trim_matches('"').to_owned()),
            // A `;` that belongs to the content.
            _ => {
                content_tail.push(';');
                content_tail.push_str(piece);
            }
        }
    }
    let content = if let Some(path) = main.strip_prefix('@') {
        let base = path.rsplit('/').next().unwrap_or(path);
        file_name.get_or_insert_with(|| base.to_owned());
        kind.get_or_insert_with(|| "application/octet-stream".to_owned());
        read(path, context).await?
    } else if let Some(path) = main.strip_prefix('<') {
        read(path, context).await?
    } else {
        format!("{main}{content_tail}").into_bytes()
    };
    if let Some(file_name) = file_name {
        head.push_str(&format!("; filename=\"{}\"", quoted(&file_name)));
    }
    if let Some(kind) = kind {
        head.push_str(&format!("\r\nContent-Type: {}", kind.replace(['\r', '\n'], " ")));
    }
    Ok(Part { head, content })
}

/// RFC 7578 section 4.2: a name can end neither its quotes nor its line.
fn quoted(text: &str) -> String {
    text.replace('"', "%22").replace('\r', "%0D").replace('\n', "%0A")
}
