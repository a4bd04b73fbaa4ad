//! The tool with a server that is a function.

use std::fs;
use std::io::{self, Read};

use motor_sdk::http::{Body, FailureKind};
use motor_sdk::{Failure, call};

use super::*;

fn response(status: u16, content_type: &str, body: impl Into<Vec<u8>>) -> Response {
    let body = body.into();
    let headers = vec![
        ("content-type".to_owned(), content_type.to_owned()),
        ("content-length".to_owned(), body.len().to_string()),
    ];
    let headers = headers.into_iter().filter(|(_, value)| !value.is_empty()).collect();
    Response { status, headers, body: Body::from(body), url: "https://example.com/final".to_owned() }
}

fn run(arguments: &str, answer: fn(Request) -> Result<Response, HttpError>) -> Result<String, ToolError> {
    let workspace = tempfile::tempdir().unwrap();
    run_in(workspace.path(), arguments, answer)
}

fn run_in(
    workspace: &Path,
    arguments: &str,
    answer: fn(Request) -> Result<Response, HttpError>,
) -> Result<String, ToolError> {
    let context = Context { run_id: String::new(), step: 0, deadline_ms: 30_000, idempotency_key: String::new() };
    call(&[tool(workspace, answer)], "fetch", arguments, &context)
}

/// `ToolError` as something to compare.
fn shown(error: &ToolError) -> String {
    format!("{error:?}")
}

const URL: &str = r#"{"url":"https://example.com"}"#;

#[test]
fn a_page_comes_back_as_markdown() {
    let answer = run(URL, |_| {
        Ok(response(200, "text/html; charset=latin1", b"<title>T</title><h1>gr\xfcn</h1><a href=x>y</a>"))
    });
    let expected = "status: 200 OK\nurl: https://example.com/final\ncontent-type: text/html; charset=latin1\ntitle: T\n\n\
                    # grün\n\n[y](https://example.com/x)";
    assert_eq!(answer.unwrap(), expected);
}

#[test]
fn formats() {
    let with = |format: &str, content_type, body: &'static str| {
        let answer: fn(Request) -> Result<Response, HttpError> = match (content_type, body) {
            ("html", _) => |_| Ok(response(200, "text/html", "<p>a <a href=x>b</a>")),
            ("json", _) => |_| Ok(response(200, "application/json", r#"{"a": "<p>"}"#)),
            _ => |_| Ok(response(200, "", "<!doctype html><p>a")),
        };
        let text = run(&format!(r#"{{"url":"https://example.com","format":"{format}"}}"#), answer).unwrap();
        text.split_once("\n\n").unwrap().1.to_owned()
    };
    assert_eq!(with("markdown", "html", ""), "a [b](https://example.com/x)");
    assert_eq!(with("text", "html", ""), "a b");
    assert_eq!(with("raw", "html", ""), "<p>a <a href=x>b</a>");
    for format in ["markdown", "text", "raw"] {
        assert_eq!(with(format, "json", ""), r#"{"a": "<p>"}"#);
    }
    assert_eq!(with("markdown", "", ""), "a");
}

#[test]
fn requests_are_what_was_asked() {
    let arguments = r#"{"url":"https://example.com","method":"POST","headers":{"accept":"x/y","X-Key":"<credential:k>"},"body":{"a":1}}"#;
    let answer = run(arguments, |request| {
        assert_eq!((request.method.as_str(), request.body.as_slice()), ("POST", br#"{"a":1}"#.as_slice()));
        assert_eq!((request.header("Accept"), request.header("x-key")), (Some("x/y"), Some("<credential:k>")));
        assert_eq!((request.header("Content-Type"), request.timeout_ms), (Some("application/json"), Some(29_000)));
        Ok(response(204, "", ""))
    });
    assert_eq!(answer.unwrap(), "status: 204 No Content\nurl: https://example.com/final\n\n");
    let refused = run(r#"{"url":"https://example.com","body":"x"}"#, |_| panic!("nothing is sent")).unwrap_err();
    assert_eq!(shown(&refused), shown(&ToolError::bad_input("`body` needs `method` to be `POST`")));
    let head = run(r#"{"url":"https://example.com","method":"head"}"#, |_| Ok(response(200, "image/png", "")));
    assert!(head.unwrap().contains("content-length: 0"));
}

#[test]
fn errors_keep_their_kind() {
    #[track_caller]
    fn check(answer: fn(Request) -> Result<Response, HttpError>, expected: ToolError) {
        assert_eq!(shown(&run(URL, answer).unwrap_err()), shown(&expected));
    }
    check(
        |_| Err(HttpError::Blocked { rule: "domain_not_allowed".into(), reason: "no".into(), remedy: "ask".into() }),
        ToolError::denied("network_blocked: no; ask"),
    );
    check(|_| Err(HttpError::bad_request("bad")), ToolError::bad_input("bad"));
    check(|_| Err(HttpError::failed(FailureKind::Limit, "more")), ToolError::limit("more"));
    check(|_| Err(HttpError::failed(FailureKind::Timeout, "late")), ToolError::failed_for_now("late"));
    check(|_| Err(HttpError::failed(FailureKind::Tls, "tls")), ToolError::failed("tls"));
    check(
        |_| Ok(response(404, "text/html", "<h1>Gone</h1><script>x</script>")),
        ToolError::failed("`https://example.com/final` answered 404 Not Found: Gone"),
    );
    check(
        |_| Ok(response(503, "application/octet-stream", [0; 10])),
        ToolError::failed_for_now("`https://example.com/final` answered 503 Service Unavailable"),
    );
}

#[test]
fn an_error_shows_only_the_beginning_of_its_body() {
    let refused = run(URL, |_| Ok(response(500, "text/plain", "x".repeat(1 << 20)))).unwrap_err();
    assert!(refused.sentence().len() < 3_000, "{}", refused.sentence().len());
}

#[test]
fn what_is_no_text_is_refused_with_the_way_out() {
    let png = |_: Request| Ok(response(200, "image/png", b"\x89PNG\0\0"));
    let refused = run(URL, png).unwrap_err();
    assert_eq!(
        refused.sentence(),
        "the body is `image/png` of 6 bytes, not text: give `save_to` to save it in the workspace"
    );
    let refused = run(URL, |_| Ok(response(200, "text/plain", b"a\0b"))).unwrap_err();
    assert!(refused.sentence().contains("not text"), "{refused:?}");

    let workspace = tempfile::tempdir().unwrap();
    let arguments = r#"{"url":"https://example.com","save_to":"/workspace/pictures/a.png"}"#;
    let saved = run_in(workspace.path(), arguments, png).unwrap();
    assert!(saved.ends_with("saved 6 bytes as `pictures/a.png`"), "{saved}");
    assert_eq!(fs::read(workspace.path().join("pictures/a.png")).unwrap(), b"\x89PNG\0\0");
}

/// So many bytes, then the error that ends it.
struct Stream(usize, Option<HttpError>);

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = buffer.len().min(self.0);
        buffer[..count].fill(b'x');
        self.0 -= count;
        match self.1.take() {
            Some(error) if count == 0 => Err(io::Error::other(error)),
            kept => {
                self.1 = kept;
                Ok(count)
            }
        }
    }
}

fn streaming(bytes: usize, end: Option<HttpError>) -> Result<Response, HttpError> {
    Ok(Response { body: Body::from_reader(Stream(bytes, end)), ..response(200, "text/plain", "") })
}

#[test]
fn bodies_are_bounded() {
    assert!(run(URL, |_| streaming(body::MAX_BYTES, None)).is_ok());
    let refused = run(URL, |_| streaming(usize::MAX, None)).unwrap_err();
    assert!(matches!(&refused, ToolError::Limit(text) if text.contains("8388608 bytes")), "{refused:?}");
}

#[test]
fn a_body_that_breaks_off_is_no_answer() {
    let broken = |_: Request| streaming(100, Some(HttpError::failed(FailureKind::Connect, "broke")));
    let expected = ToolError::Failed(Failure { message: "broke".to_owned(), retryable: true });
    assert_eq!(shown(&run(URL, broken).unwrap_err()), shown(&expected));

    let workspace = tempfile::tempdir().unwrap();
    fs::write(workspace.path().join("a"), "before").unwrap();
    let arguments = r#"{"url":"https://example.com","save_to":"a"}"#;
    assert_eq!(shown(&run_in(workspace.path(), arguments, broken).unwrap_err()), shown(&expected));
    assert_eq!(fs::read(workspace.path().join("a")).unwrap(), b"before");
    assert_eq!(fs::read_dir(workspace.path()).unwrap().count(), 1, "nothing is left of it");
}

#[test]
fn headers_cannot_pose_as_lines() {
    let answer = run(URL, |_| {
        let mut response = response(200, "text/plain", "body");
        response.headers[0].1 = "text/plain; x=\u{2028}status: 999\r\nurl: forged".to_owned();
        Ok(response)
    });
    let answer = answer.unwrap();
    assert_eq!(
        answer.lines().filter(|line| line.starts_with("status:") || line.starts_with("url:")).count(),
        2,
        "{answer}"
    );
}

#[test]
fn a_body_nobody_asked_to_compress_is_refused() {
    let refused = run(URL, |_| {
        let mut response = response(200, "text/html", "x");
        response.headers.push(("content-encoding".to_owned(), "gzip".to_owned()));
        Ok(response)
    });
    assert!(refused.unwrap_err().sentence().contains("compressed"));
}
