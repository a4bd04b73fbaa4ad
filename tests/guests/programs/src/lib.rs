//! An engine for programs, as small as one can be: each line is one command, tried on the engine's surroundings. It
//! shows the reach of a connected engine, in any language.
//!
//! `get URL`, `read PATH`, `write PATH`, `list`, `spin`; the result of each is a line of the console.

use wasip2::http::outgoing_handler::handle;
use wasip2::http::types::{ErrorCode, Fields, OutgoingRequest, Scheme};
use wasip2::io::streams::StreamError;

#[allow(missing_docs, unsafe_code, clippy::all, clippy::restriction)]
mod bindings {
    wit_bindgen::generate!({ world: "code", path: "../../../wit", pub_export_macro: true });
}

use bindings::exports::motor::host::interpreter::{Guest, Program, Report, Value};

struct Engine;

impl Guest for Engine {
    fn execute(program: Program) -> Report {
        let mut console = String::new();
        for line in program.source.lines() {
            let (command, argument) = line.split_once(' ').unwrap_or((line, ""));
            let end = match command {
                "get" => get(argument),
                "read" => std::fs::read_to_string(argument).map_err(|error| error.kind().to_string()),
                "write" => std::fs::write(argument, "written").map(|()| "written".to_owned()).map_err(kind),
                "list" => list(),
                "spin" => loop {
                    std::hint::black_box(());
                },
                _ => Err("no such command".to_owned()),
            };
            console.push_str(&end.unwrap_or_else(|error| format!("error: {error}")));
            console.push('\n');
        }
        let value = Value { json: "null".to_owned(), truncated: false };
        Report { outcome: Ok(value), console, console_truncated: false }
    }
}

fn kind(error: std::io::Error) -> String {
    error.kind().to_string()
}

fn list() -> Result<String, String> {
    let entries = std::fs::read_dir("/workspace").map_err(kind)?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.collect::<Vec<_>>().join(" "))
}

fn get(url: &str) -> Result<String, String> {
    let rest = url.strip_prefix("http://").ok_or("not http")?;
    let (authority, path) = rest.split_at(rest.find('/').ok_or("no path")?);
    let request = OutgoingRequest::new(Fields::new());
    request.set_scheme(Some(&Scheme::Http)).map_err(|()| "scheme")?;
    request.set_authority(Some(authority)).map_err(|()| "authority")?;
    request.set_path_with_query(Some(path)).map_err(|()| "path")?;
    let failed = |code: ErrorCode| format!("{code:?}");
    let future = handle(request, None).map_err(failed)?;
    future.subscribe().block();
    let response = future.get().ok_or("not there")?.map_err(|()| "taken")?.map_err(failed)?;
    let body = response.consume().map_err(|()| "no body")?;
    let stream = body.stream().map_err(|()| "no stream")?;
    let mut read = Vec::new();
    loop {
        match stream.blocking_read(4096) {
            Ok(bytes) => read.extend(bytes),
            Err(StreamError::Closed) => break,
            Err(error) => return Err(format!("{error:?}")),
        }
    }
    Ok(String::from_utf8_lossy(&read).into_owned())
}

// The exports have fixed foreign names, which the language counts as unsafe.
#[allow(unsafe_code)]
mod export {
    use super::{Engine, bindings};
    bindings::export!(Engine with_types_in bindings);
}
