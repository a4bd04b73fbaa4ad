//! Attacks over `wasi:http`: on the gate's rules, on the host's memory, tasks and patience.

use std::collections::BTreeMap;

use motor_sdk::serde_json::json;
use motor_sdk::{Context, Tool};
use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{Fields, OutgoingRequest, Scheme};

use crate::{Answer, wire};

motor_sdk::arguments! {
    struct At {
        /// The URL.
        url: String,
    }
}

/// Sends 10,000 requests one after another, with any answers.
fn request_flood(arguments: At, _: &Context) -> Answer {
    let mut ends = BTreeMap::<String, u32>::new();
    for _ in 0..10_000 {
        let end = match wire::begin(&arguments.url).and_then(|future| wire::finish(&future)) {
            Ok(response) => response.status().to_string(),
            Err(error) => error,
        };
        *ends.entry(end).or_default() += 1;
    }
    Ok(json!(ends).to_string())
}

/// Sends requests without waiting for any, and keeps them all.
fn request_hoard(arguments: At, _: &Context) -> Answer {
    let mut kept = Vec::new();
    loop {
        kept.push(wire::begin(&arguments.url));
    }
}

/// Sends requests without waiting for any, and drops them all; then ends.
fn request_drop(arguments: At, _: &Context) -> Answer {
    for _ in 0..50 {
        drop(wire::begin(&arguments.url));
        drop(wire::begin_upload(&arguments.url, Fields::new()));
    }
    Ok("dropped".to_owned())
}

/// Fills one set of header fields for ever.
fn header_bomb(_: At, _: &Context) -> Answer {
    let fields = Fields::new();
    let mut refused = 0_u32;
    for number in 0.. {
        // Going on after a refusal is part of the attack.
        refused += u32::from(fields.append(&format!("x-{number}"), &[b'a'; 1000]).is_err());
        if refused > 10_000 {
            break;
        }
    }
    Ok("REACHED a million header fields".to_owned())
}

/// Begins bodies that are never sent, and fills each as far as it goes.
fn body_hoard(_: At, _: &Context) -> Answer {
    let mut kept = Vec::new();
    loop {
        let request = OutgoingRequest::new(Fields::new());
        let Ok(body) = request.body() else { return Ok("no body".to_owned()) };
        let Ok(stream) = body.write() else { return Ok("no stream".to_owned()) };
        while let Ok(permit @ 1..) = stream.check_write() {
            let length = usize::try_from(permit).unwrap_or(0);
            if stream.write(&vec![0; length]).is_err() {
                break;
            }
        }
        kept.push((stream, body, request));
    }
}

/// Takes a response and never reads its body; then ends.
fn never_read(arguments: At, _: &Context) -> Answer {
    let response = wire::begin(&arguments.url).and_then(|future| wire::finish(&future));
    match response.as_ref().map(|response| (response.status(), response.consume())) {
        Ok((status, body)) => {
            let stream = body.as_ref().map(|body| body.stream());
            Ok(format!("{status} {}", stream.is_ok()))
        }
        Err(error) => Ok(error.to_owned()),
    }
}

/// Takes a response, keeps its body open without reading, and waits for ever.
fn keep_open(arguments: At, _: &Context) -> Answer {
    let response = wire::begin(&arguments.url).and_then(|future| wire::finish(&future));
    let body = response.as_ref().map(|response| response.consume());
    std::thread::sleep(std::time::Duration::from_secs(3600));
    Ok(format!("REACHED the end of an hour: {}", body.is_ok()))
}

/// Begins to send a body and never goes on, waiting for the response.
fn stall(arguments: At, _: &Context) -> Answer {
    let (future, body) = match wire::begin_upload(&arguments.url, Fields::new()) {
        Ok(begun) => begun,
        Err(error) => return Ok(error),
    };
    let stream = body.write();
    let end = wire::finish(&future).map(|response| response.status().to_string());
    drop((stream, body));
    Ok(end.unwrap_or_else(|error| error))
}

/// Reads the response to its end.
fn read_all(arguments: At, _: &Context) -> Answer {
    let read = wire::begin(&arguments.url)
        .and_then(|future| wire::finish(&future))
        .and_then(|response| wire::read(&response, 100));
    Ok(read.unwrap_or_else(|error| json!({"error": error})).to_string())
}

/// Sends a body for ever.
fn endless_upload(arguments: At, _: &Context) -> Answer {
    let (future, body) = match wire::begin_upload(&arguments.url, Fields::new()) {
        Ok(begun) => begun,
        Err(error) => return Ok(error),
    };
    let Ok(stream) = body.write() else { return Ok("no stream".to_owned()) };
    let piece = vec![b'x'; 4096];
    while wire::write_all(&stream, &piece).is_ok() {}
    drop(stream);
    let end = wire::finish(&future).map(|response| response.status().to_string());
    Ok(end.unwrap_or_else(|error| error))
}

/// Promises more than it sends, and less.
fn lie_about_length(arguments: At, _: &Context) -> Answer {
    let mut ends = Vec::new();
    for (promised, sent) in [("10", 3), ("3", 10), ("18446744073709551615", 1), ("-1", 0), ("+5", 5), ("5, 6", 5)] {
        let fields = Fields::new();
        let end = match fields.append("content-length", promised.as_bytes()) {
            Err(error) => format!("{error:?}"),
            Ok(()) => upload(&arguments.url, fields, sent).unwrap_or_else(|error| error),
        };
        ends.push(format!("{promised}/{sent} {end}"));
    }
    Ok(ends.join("\n"))
}

fn upload(url: &str, fields: Fields, bytes: usize) -> Result<String, String> {
    let (future, body) = wire::begin_upload(url, fields)?;
    let stream = body.write().map_err(|()| "no stream")?;
    let written = wire::write_all(&stream, &vec![b'x'; bytes]);
    drop(stream);
    let finished = wasip2::http::types::OutgoingBody::finish(body, None);
    let response = wire::finish(&future)?;
    Ok(format!("REACHED {} {} {}", response.status(), written.is_ok(), finished.is_ok()))
}

/// Tries to set the headers that decide where a request goes and where it ends.
fn forbidden_headers(arguments: At, _: &Context) -> Answer {
    let mut lines = Vec::new();
    for (name, value) in [
        ("host", "internal.example"),
        ("Host", "internal.example"),
        ("HOST", "internal.example"),
        ("connection", "upgrade"),
        ("keep-alive", "timeout=1"),
        ("proxy-authorization", "Basic eA=="),
        ("proxy-connection", "keep-alive"),
        ("transfer-encoding", "chunked"),
        ("upgrade", "h2c"),
        ("http2-settings", "AAMAAABk"),
        ("x-a", "b\r\nhost: internal.example"),
        ("x-a", "b\nhost: internal.example"),
        ("x-a", "b\0c"),
        ("x-a\r\nhost", "internal.example"),
        ("x a", "b"),
        ("", "b"),
    ] {
        let fields = Fields::new();
        let (appended, set, listed) = (
            fields.append(name, value.as_bytes()).is_ok(),
            fields.set(name, &[value.as_bytes().to_vec()]).is_ok(),
            Fields::from_list(&[(name.to_owned(), value.as_bytes().to_vec())]).is_ok(),
        );
        if appended || set || listed {
            lines.push(format!("REACHED {name:?}"));
        }
    }
    // With the remaining fields, the request must still be an ordinary one.
    let end = wire::begin(&arguments.url).and_then(|future| wire::finish(&future));
    lines.push(end.map(|response| response.status().to_string()).unwrap_or_else(|error| error));
    Ok(lines.join("\n"))
}

/// Asks without naming a server, and in ways that are not requests.
fn half_requests(_: At, _: &Context) -> Answer {
    let mut lines = Vec::new();
    for (scheme, authority, path) in [
        (None, None, None),
        (Some(Scheme::Http), None, Some("/")),
        (Some(Scheme::Http), Some(""), Some("/")),
        (Some(Scheme::Http), Some(":80"), Some("/")),
        (Some(Scheme::Http), Some("@"), Some("/")),
        (Some(Scheme::Http), Some("a b"), Some("/")),
        (Some(Scheme::Http), Some("a.example"), Some("http://internal.example/")),
        (Some(Scheme::Http), Some("a.example"), Some("*")),
        (Some(Scheme::Http), Some("a.example"), Some("/ HTTP/1.1\r\nhost: internal.example\r\n\r\n")),
        (Some(Scheme::Other("file".to_owned())), Some(""), Some("/etc/passwd")),
        (Some(Scheme::Other("gopher".to_owned())), Some("a.example"), Some("/")),
    ] {
        let request = OutgoingRequest::new(Fields::new());
        let taken = request.set_scheme(scheme.as_ref()).is_ok()
            && request.set_authority(authority).is_ok()
            && request.set_path_with_query(path).is_ok();
        let end = if taken {
            let sent = handle(request, None).map_err(|code| wire::name(&code));
            sent.and_then(|future| wire::finish(&future))
        } else {
            Err("not taken".to_owned())
        };
        lines.push(match end {
            Ok(response) => format!("REACHED {authority:?} {}", response.status()),
            Err(error) => error,
        });
    }
    Ok(lines.join("\n"))
}

type Attack = (&'static str, &'static str, fn(At, &Context) -> Answer);

pub(crate) fn tools() -> Vec<Tool> {
    let attacks: [Attack; 13] = [
        ("request_flood", "Sends 10,000 requests.", request_flood),
        ("request_hoard", "Sends requests for ever and waits for none.", request_hoard),
        ("request_drop", "Sends requests and drops them.", request_drop),
        ("header_bomb", "Fills header fields for ever.", header_bomb),
        ("body_hoard", "Fills bodies that are never sent.", body_hoard),
        ("never_read", "Never reads a response.", never_read),
        ("keep_open", "Keeps a response open for an hour.", keep_open),
        ("stall", "Begins a body and never goes on.", stall),
        ("read_all", "Reads whatever comes.", read_all),
        ("endless_upload", "Sends a body for ever.", endless_upload),
        ("lie_about_length", "Promises another length than it sends.", lie_about_length),
        ("forbidden_headers", "Sets the headers of the connection.", forbidden_headers),
        ("half_requests", "Sends what is no request.", half_requests),
    ];
    attacks.into_iter().map(|(name, description, run)| Tool::new(name, description, run)).collect()
}
