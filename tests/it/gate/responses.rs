//! Servers that do not answer as they should: a guest's data is bounded and its fault named, and a response cut short
//! is never taken for whole.

use std::time::Duration;

use tests::block_on;
use tests::network::{Reply, Site};

use super::{Way, check, get, post};

/// The bytes that a call may receive here.
const MAX_RESPONSE_BYTES: u64 = 1 << 20;
/// The bytes that may be on the way beside that, in the sockets of both sides.
const ON_THE_WAY: u64 = 16 << 20;

#[test]
fn what_a_server_may_do_to_a_guest_is_bounded() {
    block_on(async {
        let site = Site::start().await.with("/fine", Reply::text("fine"));
        let two_lengths = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 5\r\n\r\nokmore";
        let chunked_with_length =
            "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
        let smuggled = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nevil";
        let raw = |text: &str| Reply::raw(text);
        for (what, reply, expected) in [
            ("a page", Reply::text("ok"), "200"),
            ("the most that is allowed", Reply::Sized { said: MAX_RESPONSE_BYTES, sent: MAX_RESPONSE_BYTES }, "200"),
            (
                "a byte more",
                Reply::Sized { said: MAX_RESPONSE_BYTES + 1, sent: MAX_RESPONSE_BYTES + 1 },
                "limit response_bytes",
            ),
            ("a gigabyte", Reply::Sized { said: 1 << 30, sent: 1 << 30 }, "limit response_bytes"),
            ("a body without an end", Reply::Endless, "limit response_bytes"),
            ("less than it says", Reply::Sized { said: 1_000, sent: 900 }, "protocol"),
            ("more than it says", Reply::Sized { said: 10, sent: 1_000 }, "200"),
            ("an answer to nothing", raw(smuggled), "200"),
            ("the end at once", Reply::Close, "protocol"),
            ("the end in the header", raw("HTTP/1.1 200 OK\r\ncontent-le"), "protocol"),
            ("the end in a chunk", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nff\r\nhalf"), "protocol"),
            ("no last chunk", raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n"), "protocol"),
            (
                "chunks of nonsense",
                raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nok\r\n"),
                "protocol",
            ),
            (
                "a chunk longer than there are bytes",
                raw("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff0\r\nok\r\n"),
                "protocol",
            ),
            ("two lengths", raw(two_lengths), "protocol"),
            ("chunks and a length", raw(chunked_with_length), "200"),
            ("a length below nothing", raw("HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\nok"), "protocol"),
            (
                "a length beyond numbers",
                raw(&format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\nok", "9".repeat(40))),
                "protocol",
            ),
            ("bytes that are no HTTP", Reply::Raw(vec![0x80; 1_000]), "protocol"),
            ("HTTP/0.9", raw("<html>no head at all</html>"), "protocol"),
            ("HTTP/2", raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "protocol"),
            ("a status that is none", raw("HTTP/1.1 9999 Hm\r\ncontent-length: 0\r\n\r\n"), "protocol"),
            (
                "another protocol",
                raw("HTTP/1.1 101 Switching Protocols\r\nupgrade: raw\r\nconnection: upgrade\r\n\r\nhello"),
                "protocol",
            ),
            ("many times `continue`", Reply::Informational(100_000), "200"),
            ("a long header", Reply::long_header(200 << 10), "limit response_header_bytes"),
            ("many headers", Reply::many_headers(20_000), "limit response_header_bytes"),
            ("a header without an end", Reply::EndlessHead, "limit response_header_bytes"),
            (
                "a zero byte in a header",
                Reply::raw(&b"HTTP/1.1 200 OK\r\nx-a: a\0b\r\ncontent-length: 2\r\n\r\nok"[..]),
                "protocol",
            ),
            (
                "a folded header",
                raw("HTTP/1.1 200 OK\r\nx-a: a\r\n  folded\r\ncontent-length: 2\r\n\r\nok"),
                "protocol",
            ),
        ] {
            let mut way = Way::to_site(&site);
            way.limits.response_bytes = MAX_RESPONSE_BYTES;
            let call = way.open();
            site.route("/hostile", reply);
            let before = site.written();
            let asked = get(&call, &site.url("/hostile")).await;
            check(&asked, expected, what);
            let taken = site.written() - before;
            assert!(taken <= MAX_RESPONSE_BYTES + ON_THE_WAY, "{what}: {taken} bytes were taken");
            if asked.verdict() == "200" {
                let length = asked.answer().body.len();
                assert!(length == 2 || length == 10 || length == MAX_RESPONSE_BYTES as usize, "{what}: {length} bytes");
            }
            // Nothing of it is left in the way of the next.
            if !expected.starts_with("limit response_bytes") && what != "the most that is allowed" {
                let fine = get(&call, &site.url("/fine")).await.answer();
                assert_eq!(fine.text(), "fine", "after {what}");
            }
        }
        site.wait_closed().await;
    });
}

#[test]
fn a_server_that_takes_its_time_is_left() {
    block_on(async {
        let site = Site::start().await;
        for (what, reply) in [
            ("says nothing", Reply::Silence),
            ("stops in the middle", Reply::Stall),
            ("a byte at a time", Reply::Drip(Duration::from_millis(10))),
        ] {
            let mut way = Way::to_site(&site);
            way.config.timeout_ms = 300;
            let call = way.open();
            site.route("/slow", reply);
            check(&get(&call, &site.url("/slow")).await, "timeout", what);
            // And the connection with it.
            site.wait_closed().await;
        }
    });
}

#[test]
fn the_limits_of_a_call_are_over_all_its_requests() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text(&"x".repeat(400)));
        let url = &site.url("/");
        let mut way = Way::to_site(&site);
        way.limits.requests = 2;
        let call = way.open();
        check(&get(&call, url).await, "200", "first");
        check(&get(&call, "http://refused.test/").await, "blocked domain_not_allowed", "refused ones count");
        check(&get(&call, url).await, "limit outgoing_requests", "third");
        assert_eq!(site.requests().len(), 1);

        let mut way = Way::to_site(&site);
        way.limits.response_bytes = 1_000;
        let call = way.open();
        check(&get(&call, url).await, "200", "400 bytes");
        check(&get(&call, url).await, "200", "800 bytes");
        check(&get(&call, url).await, "limit response_bytes", "1,200 bytes");

        let mut way = Way::to_site(&site);
        way.limits.request_bytes = 10_000;
        let call = way.open();
        check(&post(&call, url, &"x".repeat(6_000)).await, "200", "6,000 bytes");
        let before = site.requests().len();
        check(&post(&call, url, &"x".repeat(6_000)).await, "limit request_bytes", "12,000 bytes");
        assert_eq!(site.requests().len(), before, "a body that was cut arrived as if it were whole");
        // A long URL does not evade the limit.
        let long = format!("{url}?{}", "x".repeat(12_000));
        check(&get(&call, &long).await, "limit request_bytes", "a long URL");
    });
}

#[test]
fn a_write_carries_what_tells_its_doubles_apart() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let mut way = Way::to_site(&site);
        way.limits.idempotency_key = Some("run_1-3".to_owned());
        let call = way.open();
        let key = |site: &Site| site.last_request().header("idempotency-key");
        get(&call, &site.url("/")).await.answer();
        assert_eq!(key(&site), None);
        post(&call, &site.url("/"), "a").await.answer();
        let first = key(&site).unwrap();
        assert!(first.starts_with("run_1-3-"), "{first}");
        post(&call, &site.url("/"), "a").await.answer();
        assert_ne!(key(&site).unwrap(), first);
        let own =
            super::Request { method: "PUT", url: &site.url("/"), headers: &[("idempotency-key", "mine")], body: "a" };
        own.ask(&call).await.answer();
        assert_eq!(key(&site).as_deref(), Some("mine"));
    });
}
