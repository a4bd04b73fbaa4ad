//! Servers that lie, stall, flood and break off. Each has its honest twin.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use network::{GateError, Timeouts};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::server::Server;
use crate::setup::{Setup, get, request, text};

async fn fetched(server: &Server) -> Result<String, GateError> {
    get(&Setup::default().reaching(server.address).call(), &server.url("/")).await
}

fn gzip(text: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(text).unwrap();
    encoder.finish().unwrap()
}

fn with_body(headers: &str, body: &[u8]) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n").as_bytes(), body].concat()
}

#[tokio::test]
async fn honest_answers_come_through_in_every_framing() {
    let large = "x".repeat(300_000);
    let packed = gzip(large.as_bytes());
    for (answer, expected) in [
        (with_body("content-length: 5", b"hello"), "hello"),
        (with_body("content-length: 5", b"hello and what does not belong to it"), "hello"),
        (with_body("transfer-encoding: chunked", b"2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), "hello"),
        (with_body("transfer-encoding: chunked", b"5\r\nhello\r\n0\r\nx-trailer: dropped\r\n\r\n"), "hello"),
        (with_body("connection: close", b"hello"), "hello"),
        (b"HTTP/1.0 200 OK\r\n\r\nhello".to_vec(), "hello"),
        (with_body("content-length: 0\r\ncontent-encoding: gzip", b""), ""),
        (with_body("content-encoding: gzip\r\nconnection: close", &gzip(b"hello")), "hello"),
        (with_body(&format!("content-length: {}\r\ncontent-encoding: gzip", packed.len()), &packed), &large),
        (with_body("content-length: 300000", large.as_bytes()), &large),
        (b"HTTP/1.1 204 No Content\r\ncontent-encoding: br\r\n\r\n".to_vec(), ""),
    ] {
        let server = Server::saying(answer).await;
        assert_eq!(fetched(&server).await.unwrap(), expected);
    }
}

#[tokio::test]
async fn lies_about_the_frame_are_told() {
    let packed = gzip(b"hello");
    for (answer, what) in [
        (with_body("content-length: 9", b"hello"), "cut short"),
        (with_body("transfer-encoding: chunked", b"5\r\nhello\r\n"), "cut short in chunks"),
        (with_body("transfer-encoding: chunked", b"zz\r\nhello\r\n"), "no chunk"),
        (with_body("transfer-encoding: gzip", &packed), "encoded in transfer, to the end"),
        (with_body("transfer-encoding: gzip, chunked", b"5\r\nhello\r\n0\r\n\r\n"), "encoded in transfer, in chunks"),
        (with_body("content-length: 5\r\ncontent-length: 6", b"hello!"), "two lengths"),
        (with_body("content-encoding: br\r\nconnection: close", b"hello"), "an encoding nobody asked for"),
        (with_body("content-encoding: gzip\r\nconnection: close", b"hello"), "no gzip"),
        (with_body("content-encoding: gzip\r\nconnection: close", &packed[..packed.len() - 6]), "half a gzip"),
        (b"HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n".to_vec(), "an upgrade"),
        (b"HTTP/1.1 abc\r\n\r\n".to_vec(), "no status"),
        (b"SSH-2.0-server\r\n\r\n".to_vec(), "no HTTP"),
        (b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n".to_vec(), "no header"),
        (b"HTTP/1.1 200 OK\r\nx: ".to_vec(), "half a head"),
        (Vec::new(), "nothing"),
    ] {
        let server = Server::saying(answer).await;
        let call = Setup::default().reaching(server.address).call();
        let error = get(&call, &server.url("/")).await.expect_err(what);
        assert!(matches!(error, GateError::Protocol { .. }), "{what}: {error:?}");
        assert_eq!(call.traces()[0].error, Some(error.to_string()), "{what}");
    }
}

#[tokio::test]
async fn floods_end_at_the_limit() {
    let endless = |head: &'static str, piece: Vec<u8>| {
        Server::talking(move |mut stream, _| {
            let piece = piece.clone();
            async move {
                stream.write_all(head.as_bytes()).await.unwrap();
                while stream.write_all(&piece).await.is_ok() {}
            }
        })
    };
    let kib = vec![b'x'; 1024];
    let chunk = [b"400\r\n".as_slice(), &kib, b"\r\n"].concat();
    let bomb = gzip(&vec![0; 256 << 20]);
    for (server, limit) in [
        (endless("HTTP/1.1 200 OK\r\n\r\n", kib.clone()).await, "response_bytes"),
        (endless("HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n", kib).await, "response_bytes"),
        (endless("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", chunk).await, "response_bytes"),
        (Server::saying(with_body("content-encoding: gzip\r\nconnection: close", &bomb)).await, "response_bytes"),
        (endless("HTTP/1.1 200 OK\r\n", b"x-a: b\r\n".to_vec()).await, "response_header_bytes"),
        (endless("HTTP/1.1 200 OK\r\nx-a: ", vec![b'x'; 1024]).await, "response_header_bytes"),
    ] {
        match fetched(&server).await.unwrap_err() {
            GateError::Limit { limit: found, .. } => assert_eq!(found, limit),
            other => panic!("{limit}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn servers_that_stall_end_in_time() {
    let stalling = |said: &'static str| {
        Server::talking(move |mut stream, _| async move {
            stream.write_all(said.as_bytes()).await.unwrap();
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).await.unwrap_or_default();
        })
    };
    let short = Some(std::time::Duration::from_millis(50));
    let first_byte = Timeouts { first_byte: short, ..Timeouts::default() };
    let between_bytes = Timeouts { between_bytes: short, ..Timeouts::default() };
    for (said, timeouts) in [
        ("", first_byte),
        ("HTTP/1.1 200 OK\r\nx: ", first_byte),
        ("HTTP/1.1 200 OK\r\n\r\nhello", between_bytes),
        ("HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nhello", between_bytes),
    ] {
        let server = stalling(said).await;
        let call = Setup::default().reaching(server.address).call();
        let outcome = call.send(request("GET", &server.url("/"), &[], ""), timeouts).await;
        let error = match outcome {
            Ok(response) => text(response).await.unwrap_err(),
            Err(error) => error,
        };
        assert_eq!(error, GateError::Timeout { host: server.address.to_string(), after_ms: 50 }, "{said}");
    }
    for said in ["", "HTTP/1.1 200 OK\r\n\r\nhello"] {
        let server = stalling(said).await;
        let mut setup = Setup::default().reaching(server.address);
        setup.config.timeout_ms = 300;
        let error = get(&setup.call(), &server.url("/")).await.unwrap_err();
        assert_eq!(error, GateError::Timeout { host: server.address.to_string(), after_ms: 300 }, "{said}");
    }
}

#[tokio::test]
async fn a_stream_that_never_pauses_ends_in_time() {
    let server = Server::talking(|mut stream, _| async move {
        stream.write_all(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").await.unwrap();
        while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let mut setup = Setup::default().reaching(server.address);
    setup.config.timeout_ms = 300;
    let call = setup.run().call(network::CallLimits { response_bytes: u64::MAX, ..crate::setup::LIMITS });
    let error = get(&call, &server.url("/")).await.unwrap_err();
    assert_eq!(error, GateError::Timeout { host: server.address.to_string(), after_ms: 300 });
}
