//! Clients of the port that do not keep to HTTP, or send bodies made to break a parser: each gets an answer with a 4xx or is
//! cut off, and the next client is served (SPEC API-1).

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};

use serde_json::json;
use tests::binary::{Motor, Running};
use tests::model_server::ModelServer;
use tests::{MAX_WAIT, block_on};

/// A host on a port, and the text of a token with the scope `agent`.
struct World {
    serving: Running,
    address: String,
    token: String,
    motor: Motor,
    _model: ModelServer,
}

/// The end of a hostile request.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// An answer with this status.
    Status(u16),
    /// The connection was closed without an answer.
    Closed,
}

impl World {
    fn new() -> Self {
        let model = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
        let motor = Motor::with_model(&model);
        let made = motor.run_as_owner(&["token", "create", "--name", "raw", "--scope", "agent"], "").succeeded();
        let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let line: serde_json::Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
        let address = line["address"].as_str().unwrap().strip_prefix("http://").unwrap().to_owned();
        Self { serving, address, token: made.stdout.trim().to_owned(), motor, _model: model }
    }

    /// The head of a request with the token, the last one of its connection.
    fn head(&self, line: &str, more: &str) -> Vec<u8> {
        self.head_of_many(line, &format!("connection: close\r\n{more}"))
    }

    /// The head of a request with the token, which others follow.
    fn head_of_many(&self, line: &str, more: &str) -> Vec<u8> {
        let Self { address, token, .. } = self;
        format!("{line} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{more}\r\n").into_bytes()
    }

    /// A POST of these bytes as JSON.
    fn post(&self, path: &str, body: &[u8]) -> Vec<u8> {
        let more = format!("content-type: application/json\r\ncontent-length: {}\r\n", body.len());
        [&self.head(&format!("POST {path}"), &more), body].concat()
    }

    /// Sends the bytes, and reads everything that comes back until the host closes the connection.
    fn talk(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = self.send(bytes);
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        answer
    }

    fn send(&self, bytes: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(MAX_WAIT)).unwrap();
        // The host may answer and close before it has read everything.
        stream.write_all(bytes).ok();
        stream
    }

    fn end(&self, bytes: &[u8]) -> End {
        statuses(&self.talk(bytes)).first().map_or(End::Closed, |status| End::Status(*status))
    }

    /// Checks that the host is as before.
    fn is_well(&mut self, after: &str) {
        assert!(self.serving.is_alive(), "{after}");
        assert_eq!(self.end(&self.head("GET /v1/tasks", "")), End::Status(200), "{after}");
    }
}

/// The statuses of the answers in a text, in order.
fn statuses(text: &[u8]) -> Vec<u16> {
    let text = String::from_utf8_lossy(text);
    text.split("HTTP/1.1 ").skip(1).filter_map(|rest| rest.get(..3)?.parse().ok()).collect()
}

#[test]
fn requests_that_are_no_http_are_refused_or_cut_off() {
    let mut world = World::new();
    let get = |more: &str| world.head("GET /v1/tasks", more);
    let chunked = |body: &str| {
        let more = "content-type: application/json\r\ntransfer-encoding: chunked\r\n";
        [world.head("POST /v1/tasks", more), body.as_bytes().to_vec()].concat()
    };
    let post = |more: &str, body: &str| {
        let more = format!("content-type: application/json\r\n{more}");
        [world.head("POST /v1/tasks", &more), body.as_bytes().to_vec()].concat()
    };
    let cases = [
        ("a head of a megabyte", get(&format!("x: {}\r\n", "a".repeat(1 << 20)))),
        ("a thousand headers", get(&"x: a\r\n".repeat(1_000))),
        ("a target of a megabyte", world.head(&format!("GET /v1/tasks?limit={}", "1".repeat(1 << 20)), "")),
        ("HTTP/0.9", b"GET /v1/tasks\r\n\r\n".to_vec()),
        ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec()),
        ("another protocol", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        ("zeros", vec![0; 4096]),
        ("a NUL in the target", world.head("GET /v1/\0tasks", "")),
        ("a byte that is not ASCII in the target", [b"GET /\xff", &get("")[13..]].concat()),
        ("a space before the colon", get("x : a\r\n")),
        ("a continued line", get("x: a\r\n b\r\n")),
        ("a bare line feed in a value", get("x: a\nb: c\r\r\n")),
        ("two lengths", post("content-length: 2\r\ncontent-length: 3\r\n", "{}")),
        ("a list of lengths", post("content-length: 2, 3\r\n", "{}")),
        ("a negative length", post("content-length: -1\r\n", "{}")),
        ("a length beyond all numbers", post("content-length: 99999999999999999999999\r\n", "{}")),
        ("an unknown transfer encoding", post("transfer-encoding: gzip\r\n", "{}")),
        ("chunks inside another encoding", post("transfer-encoding: chunked, gzip\r\n", "2\r\n{}\r\n0\r\n\r\n")),
        ("a chunk without a size", chunked("x\r\n{}\r\n0\r\n\r\n")),
        ("a chunk beyond all numbers", chunked("FFFFFFFFFFFFFFFFF\r\n{}")),
        ("a chunk without an end", chunked("2\r\n{}0\r\n\r\n")),
        ("endless extensions of a chunk", chunked(&format!("2;{}\r\n{{}}\r\n0\r\n\r\n", "a".repeat(1 << 20)))),
        ("endless trailers", chunked(&format!("2\r\n{{}}\r\n0\r\n{}\r\n", "x: y\r\n".repeat(100_000)))),
        ("no host", b"GET /v1/tasks HTTP/1.1\r\nconnection: close\r\n\r\n".to_vec()),
        ("two hosts", get("host: localhost\r\n")),
        ("a proxy's connection", world.head("CONNECT localhost:22", "")),
        ("everything at once", world.head("OPTIONS *", "")),
    ];
    for (name, bytes) in cases {
        match world.end(&bytes) {
            End::Closed => {}
            End::Status(status) => assert!((400..500).contains(&status), "{name}: {status}"),
        }
        world.is_well(name);
    }
    let ended = world.serving.kill();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

#[test]
fn bodies_that_attack_the_parser_are_refused_with_a_code() {
    let mut world = World::new();
    let nested = |open: &str, close: &str| format!("{}{}", open.repeat(100_000), close.repeat(100_000));
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("lists in lists", nested("[", "]").into_bytes()),
        ("objects in objects", nested("{\"task\":", "}").into_bytes()),
        ("nested inputs", format!("{{\"task\":\"t\",\"inputs\":{}}}", nested("[", "]")).into_bytes()),
        ("the same field twice", br#"{"task":"add","task":"delete"}"#.to_vec()),
        ("invalid UTF-8", b"{\"task\":\"\xff\xfe\"}".to_vec()),
        ("half a surrogate", br#"{"task":"\ud800"}"#.to_vec()),
        ("UTF-16", [&b"\xff\xfe"[..], &"{}".encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<_>>()].concat()),
        ("two documents", br#"{"task":"t"}{"task":"t"}"#.to_vec()),
        ("no document", Vec::new()),
        ("NaN", br#"{"task":"t","maxIterations":NaN}"#.to_vec()),
        ("a number beyond all numbers", br#"{"task":"t","maxIterations":1e999}"#.to_vec()),
        ("too large a number", br#"{"task":"t","maxIterations":4294967296}"#.to_vec()),
        ("a negative number", br#"{"task":"t","timeoutMs":-1}"#.to_vec()),
        ("a list", b"[]".to_vec()),
        ("a text", b"\"task\"".to_vec()),
        ("nothing", b"null".to_vec()),
        ("an unknown field", br#"{"task":"t","sudo":true}"#.to_vec()),
        ("another type", br#"{"task":["t"]}"#.to_vec()),
    ];
    for (name, body) in cases {
        let answer = world.talk(&world.post("/v1/tasks", &body));
        assert_eq!(statuses(&answer), [400], "{name}: {}", String::from_utf8_lossy(&answer));
        let text = String::from_utf8_lossy(&answer);
        let problem: serde_json::Value = serde_json::from_str(text.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!(problem["code"], "invalid_request", "{name}: {problem}");
        assert!(answer.len() < 8_192, "{name}: {} bytes", answer.len());
        world.is_well(name);
    }
    assert!(world.motor.json(&["task", "list"]).as_array().unwrap().is_empty(), "nothing was started");
    // The benign twin, in chunks.
    let task = json!({ "task": "say it" }).to_string();
    let chunks = format!("1\r\n{}\r\n{:x}\r\n{}\r\n0\r\n\r\n", &task[..1], task.len() - 1, &task[1..]);
    let more = "content-type: application/json; charset=utf-8\r\ntransfer-encoding: chunked\r\n";
    let request = [world.head("POST /v1/tasks", more), chunks.into_bytes()].concat();
    assert_eq!(world.end(&request), End::Status(200));
    let ended = world.serving.kill();
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

/// A client that closes its sending side counts as gone: the host does not wait for the rest. A whole request may have been done.
#[test]
fn half_closed_connections_end() {
    let mut world = World::new();
    let json = "content-type: application/json\r\n";
    let post = |more: &str, body: &str| {
        [world.head("POST /v1/tasks", &format!("{json}{more}")), body.as_bytes().to_vec()].concat()
    };
    let cases = [
        ("nothing", Vec::new()),
        ("half a line", b"GET /v1/ta".to_vec()),
        ("half a head", b"GET /v1/tasks HTTP/1.1\r\nhost: localhost\r\n".to_vec()),
        ("half a body", post("content-length: 100\r\n", "{\"task\":")),
        ("half a chunk", post("transfer-encoding: chunked\r\n", "FFFFFFFFFFFFFFF\r\n{}")),
        ("no last chunk", post("transfer-encoding: chunked\r\n", "2\r\n{}\r\n")),
        ("a stream", world.head("GET /v1/signals/events", "")),
    ];
    for (name, bytes) in cases {
        let mut stream = world.send(&bytes);
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok();
        let refused = |status: &u16| (400..500).contains(status) || name == "a stream";
        assert!(statuses(&answer).iter().all(refused), "{name}: {}", String::from_utf8_lossy(&answer));
        world.is_well(name);
    }
    assert!(world.motor.json(&["task", "list"]).as_array().unwrap().is_empty(), "nothing was started");
}

#[test]
fn requests_that_follow_each_other_are_told_apart() {
    let mut world = World::new();
    let (get, last) = (world.head_of_many("GET /v1/tasks", ""), world.head("GET /v1/tasks", ""));
    assert_eq!(statuses(&world.talk(&[get.repeat(2), last].concat())), [200, 200, 200]);
    let then = |junk: &[u8]| statuses(&world.talk(&[get.as_slice(), junk].concat()));
    assert_eq!(then(b"junk\r\n\r\n"), [200, 400]);
    assert_eq!(then(b"\0\0\0\0"), [200, 400]);
    // A request whose length is stated twice must not hide another one in its body.
    let hidden = b"DELETE /v1/tasks/run_1 HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
    let more = format!("content-length: {}\r\ntransfer-encoding: chunked\r\n", hidden.len() + 5);
    let smuggled = [&world.head_of_many("GET /v1/tasks", &more)[..], b"0\r\n\r\n", hidden].concat();
    let answers = statuses(&world.talk(&smuggled));
    assert!(answers.len() <= 1 || answers[1..].iter().all(|status| *status == 401), "{answers:?}");
    // The rest of a refused body is not a request.
    let unread = [&world.head("POST /v1/owner/token", &format!("content-length: {}\r\n", hidden.len()))[..], hidden];
    assert_eq!(statuses(&world.talk(&unread.concat())), [403]);
    world.is_well("pipelines");
}
