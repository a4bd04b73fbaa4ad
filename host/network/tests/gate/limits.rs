//! Limits of a call, shared by requests that run at the same time.

use bytes::Bytes;
use futures_util::StreamExt as _;
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use network::{CallLimits, GateError, Timeouts};

use crate::server::Server;
use crate::setup::{LIMITS, Setup, get, post, request};

fn limit(limit: &'static str, value: u64) -> GateError {
    GateError::Limit { limit, value }
}

#[tokio::test]
async fn requests_are_counted_refused_ones_too() {
    let server = Server::ok("hello").await;
    let call = Setup::default().reaching(server.address).run().call(CallLimits { requests: 3, ..LIMITS });
    assert!(get(&call, "http://other.example/").await.is_err());
    assert!(get(&call, &server.url("/")).await.is_ok());
    assert!(get(&call.clone(), &server.url("/")).await.is_ok());
    for _ in 0..5 {
        assert_eq!(get(&call, &server.url("/")).await.unwrap_err(), limit("outgoing_requests", 3));
    }
    assert_eq!(server.connections(), 2);
    assert_eq!(call.traces().len(), 4, "one too many is shown, not more");
}

#[tokio::test]
async fn request_bytes_are_counted_over_headers_and_bodies() {
    let server = Server::ok("hello").await;
    let call = Setup::default().reaching(server.address).run().call(CallLimits { request_bytes: 1000, ..LIMITS });
    assert!(post(&call, &server.url("/"), &"x".repeat(600)).await.is_ok());
    let error = post(&call, &server.url("/"), &"x".repeat(600)).await.unwrap_err();
    assert_eq!(error, limit("request_bytes", 1000));
    let long = [("x-long", "y".repeat(900))];
    let long: Vec<(&str, &str)> = long.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let outcome = call.send(request("GET", &server.url("/"), &long, ""), Timeouts::default()).await;
    assert_eq!(outcome.err(), Some(limit("request_bytes", 1000)));
    assert_eq!(server.connections(), 1);
}

#[tokio::test]
async fn a_body_without_end_is_not_gathered() {
    let server = Server::ok("hello").await;
    let call = Setup::default().reaching(server.address).call();
    let endless = futures_util::stream::repeat(()).map(|()| Ok(Frame::data(Bytes::from_static(&[b'x'; 1024]))));
    let (parts, _) = request("POST", &server.url("/"), &[], "").into_parts();
    let request = http::Request::from_parts(parts, StreamBody::new(endless).boxed_unsync());
    let outcome = call.send(request, Timeouts::default()).await;
    assert_eq!(outcome.err(), Some(limit("request_bytes", LIMITS.request_bytes)));
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn response_bytes_are_counted_over_requests_that_run_together() {
    let server = Server::ok(&"x".repeat(400)).await;
    let call = Setup::default().reaching(server.address).run().call(CallLimits { response_bytes: 1000, ..LIMITS });
    let url = server.url("/");
    let outcomes = tokio::join!(get(&call, &url), get(&call, &url), get(&call, &url));
    let outcomes = [outcomes.0, outcomes.1, outcomes.2];
    let failed: Vec<_> = outcomes.iter().filter_map(|outcome| outcome.as_ref().err()).collect();
    assert_eq!(failed, [&limit("response_bytes", 1000)]);
}
