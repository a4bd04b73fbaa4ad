//! `curl` in scripts, over a network that repeats its requests.

use std::io::{self, Read};
use std::path::Path;

use motor_sdk::Context;
use motor_sdk::http::{Body, FailureKind, HttpError, Request, Response};
use motor_sdk::serde_json::json;

/// Answers by the path of the URL; by default with the request.
fn network(request: Request, redirects: Option<usize>) -> Result<Response, HttpError> {
    let path = request.url.splitn(4, '/').nth(3).unwrap_or_default().to_owned();
    let fail = |kind| Err(HttpError::failed(kind, "it failed"));
    let (status, body): (u16, Body) = match path.as_str() {
        "missing" => (404, Body::from(b"nothing here\n".to_vec())),
        "binary" => (200, Body::from(vec![0, 255, 10])),
        "moved" => (302, Body::from(format!("redirects {redirects:?}\n").into_bytes())),
        "endless" => (200, Body::from_reader(io::repeat(b'x'))),
        "broken" => (200, Body::from_reader(io::Cursor::new(b"half".to_vec()).chain(Broken))),
        "dns" => return fail(FailureKind::Dns),
        "connect" => return fail(FailureKind::Connect),
        "tls" => return fail(FailureKind::Tls),
        "timeout" => return fail(FailureKind::Timeout),
        "bad" => return Err(HttpError::bad_request("`bad` is not a URL")),
        "blocked" => {
            return Err(HttpError::Blocked {
                rule: "domain_not_allowed".to_owned(),
                reason: "`example.com` was not granted".to_owned(),
                remedy: "ask for it".to_owned(),
            });
        }
        _ => {
            let mut text = format!("{} {}\n", request.method, request.url);
            for (name, value) in request.headers.iter().filter(|(name, _)| name != "User-Agent" && name != "Accept") {
                text.push_str(&format!("{name}: {value}\n"));
            }
            text.push_str(&String::from_utf8_lossy(&request.body).replace('\r', ""));
            (200, Body::from(text.into_bytes()))
        }
    };
    let headers = vec![("content-type".to_owned(), "text/plain".to_owned())];
    Ok(Response { status, headers, body, url: request.url })
}

struct Broken;

impl Read for Broken {
    fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
        Err(io::Error::other(HttpError::failed(FailureKind::Protocol, "it broke off")))
    }
}

fn run(root: &Path, script: &str) -> String {
    let context = Context { run_id: String::new(), step: 0, deadline_ms: 60_000, idempotency_key: String::new() };
    let tools =
        crate::tools_over(root.to_str().unwrap(), None, crate::Host { send: network, python: Err(String::new()) });
    motor_sdk::call(&tools, "bash", &json!({ "script": script }).to_string(), &context).unwrap()
}

#[track_caller]
fn check(script: &str, expected: &str) {
    let root = tempfile::tempdir().unwrap();
    std::fs::write(root.path().join("data.txt"), "one\ntwo\n").unwrap();
    assert_eq!(run(root.path(), script), expected, "{script}");
}

#[test]
fn requests_are_what_curl_would_send() {
    const FORM: &str = "Content-Type: application/x-www-form-urlencoded\n";
    const JSON: &str = "Content-Type: application/json\n";
    for (arguments, expected) in [
        ("http://h/a", "GET http://h/a\n".to_owned()),
        ("h/a", "GET http://h/a\n".to_owned()),
        ("-X DELETE http://h/a", "DELETE http://h/a\n".to_owned()),
        ("-XPATCH http://h/a", "PATCH http://h/a\n".to_owned()),
        ("-H 'X-A: b' --header 'X-C:d' http://h/a", "GET http://h/a\nX-A: b\nX-C: d\n".to_owned()),
        ("-H 'Accept:' -H 'X-E;' http://h/a", "GET http://h/a\nX-E: \n".to_owned()),
        ("-d a=1 -d b=2 http://h/a", format!("POST http://h/a\n{FORM}a=1&b=2")),
        ("-d @data.txt http://h/a", format!("POST http://h/a\n{FORM}onetwo")),
        ("--data-binary @data.txt http://h/a", format!("POST http://h/a\n{FORM}one\ntwo\n")),
        ("--data-raw @data.txt http://h/a", format!("POST http://h/a\n{FORM}@data.txt")),
        ("--data-urlencode 'q=a b&c' http://h/a", format!("POST http://h/a\n{FORM}q=a%20b%26c")),
        ("--data-urlencode q@data.txt http://h/a", format!("POST http://h/a\n{FORM}q=one%0Atwo%0A")),
        ("-G -d a=1 --data-urlencode 'b=x y' 'http://h/a?z=0#f'", "GET http://h/a?z=0&a=1&b=x%20y#f\n".to_owned()),
        ("--json '{\"a\":1}' http://h/a", format!("POST http://h/a\n{JSON}{{\"a\":1}}")),
        ("-H 'content-type: text/x' -d y http://h/a", "POST http://h/a\ncontent-type: text/x\ny".to_owned()),
        ("-u me:pw http://h/a", "GET http://h/a\nAuthorization: Basic bWU6cHc=\n".to_owned()),
        (
            "-H 'Authorization: Bearer <credential:key>' http://h/a",
            "GET http://h/a\nAuthorization: Bearer <credential:key>\n".to_owned(),
        ),
        ("-e http://r/ -b a=b http://h/a", "GET http://h/a\nReferer: http://r/\nCookie: a=b\n".to_owned()),
        ("-r 0-9 http://h/a", "GET http://h/a\nRange: bytes=0-9\n".to_owned()),
        ("-T data.txt http://h/dir/", "PUT http://h/dir/data.txt\none\ntwo\n".to_owned()),
        (
            "-sSk4 http://h/a",
            "[stderr]\ncurl: option -k: is not available here: certificates are always checked\n[exit code: 2]"
                .to_owned(),
        ),
        ("http://h/a h/b", "GET http://h/a\nGET http://h/b\n".to_owned()),
        ("--url http://h/a -s -L --compressed --retry 3 --http1.1", "GET http://h/a\n".to_owned()),
        ("-s http://h/a -- -weird", "GET http://h/a\nGET http://-weird\n".to_owned()),
    ] {
        check(&format!("curl {arguments}"), &expected);
    }
    check("echo piped | curl -d @- http://h/a", &format!("POST http://h/a\n{FORM}piped"));
}

#[test]
fn forms_are_multipart() {
    check(
        "curl -F a=1 -F 'f=@data.txt;type=text/plain' -F 'g=<data.txt' --form-string 'h=@x;y' http://h/a",
        "POST http://h/a\nContent-Type: multipart/form-data; boundary=------------------------0000000000000000\n\
         --------------------------0000000000000000\nContent-Disposition: form-data; name=\"a\"\n\n1\n\
         --------------------------0000000000000000\nContent-Disposition: form-data; name=\"f\"; filename=\"data.txt\"\n\
         Content-Type: text/plain\n\none\ntwo\n\n\
         --------------------------0000000000000000\nContent-Disposition: form-data; name=\"g\"\n\none\ntwo\n\n\
         --------------------------0000000000000000\nContent-Disposition: form-data; name=\"h\"\n\n@x;y\n\
         --------------------------0000000000000000--\n",
    );
}

#[test]
fn responses_go_where_they_are_asked_to() {
    check("curl -s -o out http://h/a; cat out", "GET http://h/a\n");
    check("curl -s --create-dirs -o d/e/out http://h/a; cat d/e/out", "GET http://h/a\n");
    check("curl -sO http://h/x/file.txt?q=1; cat file.txt", "GET http://h/x/file.txt?q=1\n");
    check("curl -s http://h/a -o one http://h/b -o two; cat two one", "GET http://h/b\nGET http://h/a\n");
    check("curl -s http://h/binary | od -An -tx1", " 00 ff 0a\n");
    check("curl -si http://h/missing", "HTTP/1.1 404\r\ncontent-type: text/plain\r\n\r\nnothing here\n");
    check("curl -sI http://h/a", "HTTP/1.1 200\r\ncontent-type: text/plain\r\n\r\n");
    check("curl -s -D head -o /dev/null http://h/a; tr -d '\\r' < head", "HTTP/1.1 200\ncontent-type: text/plain\n\n");
    check(
        "curl -so /dev/null -w '%{http_code} %{size_download} %{content_type} %{nonsense}%%\\n' http://h/missing",
        "404 13 text/plain %\n",
    );
    check(
        "curl -s http://h/moved; curl -sL http://h/moved; curl -sL --max-redirs 3 http://h/moved",
        "redirects None\nredirects Some(20)\nredirects Some(3)\n",
    );
    check("curl -s http://h/a -o /etc/x", "[exit code: 23]");
}

#[test]
fn failures_have_the_exit_codes_of_curl() {
    for (path, code) in [("dns", 6), ("connect", 7), ("tls", 60), ("timeout", 28), ("bad", 3)] {
        check(&format!("curl -s http://h/{path}"), &format!("[exit code: {code}]"));
        let text = run(tempfile::tempdir().unwrap().path(), &format!("curl -sS http://h/{path}"));
        assert!(text.starts_with(&format!("[stderr]\ncurl: ({code}) ")), "{text}");
    }
    check("curl -sf http://h/missing", "[exit code: 22]");
    check("curl -s http://h/missing", "nothing here\n");
    check("curl -s --fail-with-body http://h/missing", "nothing here\n[exit code: 22]");
    check("curl -s http://h/broken", "half\n[exit code: 56]");
    check("curl -s http://h/endless | wc -c; echo ${PIPESTATUS[0]}", "8388608\n63\n");
    let refusal = "[stderr]\ncurl: network_blocked: `example.com` was not granted; ask for it\n[exit code: 7]";
    check("curl -s http://h/blocked", refusal);
    check("curl http://h/blocked", refusal);
}

#[test]
fn what_goes_around_the_gate_is_refused_by_name() {
    for option in [
        "-k",
        "--insecure",
        "-x http://p",
        "--proxy http://p",
        "--resolve a:1:2",
        "--unix-socket /s",
        "--connect-to a",
        "--interface eth0",
        "--cacert f",
        "--cert f",
        "--location-trusted",
        "--netrc",
        "--config f",
        "--cookie-jar f",
        "-b file",
        "-u 'me:<credential:key>'",
    ] {
        let text = run(tempfile::tempdir().unwrap().path(), &format!("curl {option} http://h/a"));
        assert!(text.starts_with("[stderr]\ncurl: option -") && text.ends_with("[exit code: 2]"), "{option}: {text}");
    }
    check("curl --nonsense http://h/a", "[stderr]\ncurl: option --nonsense: is unknown\n[exit code: 2]");
    check("curl -s", "[stderr]\ncurl: no URL specified\n[exit code: 2]");
    check("curl -H", "[stderr]\ncurl: option -H: requires parameter\n[exit code: 2]");
    check("curl -m x http://h/a", "[stderr]\ncurl: option -m: expected a proper numerical parameter\n[exit code: 2]");
}
