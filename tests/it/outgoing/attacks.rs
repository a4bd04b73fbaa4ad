//! Attacks of guests over the network, on the host's memory, tasks and patience.

use super::*;

#[test]
fn requests_are_counted_also_those_that_nobody_waits_for() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        let url = json!({"url": site.url("/")});
        let few = |limits: &mut Limits| limits.outgoing_requests = 20;
        let called = Call::of("request_flood", url.clone(), to(&site)).limits(few).make().await;
        assert_eq!(called.json(), json!({"200": 20, "ConnectionLimitReached": 9_980}));
        assert_eq!(site.requests().len(), 20);
        assert!(called.finished.requests.len() <= 21, "{}", called.finished.requests.len());
        let called = Call::of("request_flood", url.clone(), None).limits(few).make().await;
        assert_eq!(called.json(), json!({"HttpRequestDenied": 20, "ConnectionLimitReached": 9_980}));
        assert_eq!(called.finished.requests.len(), 20);
        Call::of("request_hoard", url.clone(), to(&site)).limits(few).make().await.exceeds(Limit::Handles);
        assert!(site.requests().len() <= 40, "{}", site.requests().len());
        assert_eq!(Call::of("request_drop", url, to(&site)).limits(few).make().await.text(), "dropped");
        site.wait_closed().await;
        assert_benign_works().await;
    });
}

#[test]
fn what_a_guest_makes_the_host_hold_is_limited() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        attack("header_bomb", &site, "/").await.exceeds(Limit::HttpHeaderBytes);
        attack("body_hoard", &site, "/").await.exceeds(Limit::Handles);
        assert_eq!(site.connections(), 0);
        assert_benign_works().await;
    });
}

#[test]
fn a_response_that_nobody_reads_ends_with_its_call() {
    test(async {
        let site = Site::start().await.with("/endless", Reply::Endless).with("/stalled", Reply::Stall);
        assert_eq!(attack("never_read", &site, "/endless").await.text(), "200 true");
        assert_eq!(attack("never_read", &site, "/stalled").await.text(), "200 true");
        site.wait_closed().await;
        for tool in ["keep_open", "stall"] {
            let call = Call::of(tool, json!({"url": site.url("/endless")}), to(&site));
            call.limits(|limits| limits.deadline_ms = 300).make().await.exceeds(Limit::DeadlineMs);
        }
        site.wait_closed().await;
        assert_benign_works().await;
    });
}

#[test]
fn responses_are_limited_and_say_so() {
    test(async {
        let site =
            Site::start().await.with("/endless", Reply::Endless).with("/short", Reply::Sized { said: 100, sent: 10 });
        let call = Call::of("read_all", json!({"url": site.url("/endless")}), to(&site));
        let told = call.limits(|limits| limits.response_bytes = 1 << 20).make().await.json();
        assert_eq!(told["error"], "HttpResponseBodySize", "{told}");
        assert!(told["read"].as_u64().unwrap() <= 1 << 20, "{told}");
        let told = attack("read_all", &site, "/short").await.json();
        assert_eq!(told["error"], "HttpProtocolError", "{told}");
        site.wait_closed().await;
        assert_benign_works().await;
    });
}

#[test]
fn uploads_are_limited_and_lengths_are_kept() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("taken"));
        let call = Call::of("endless_upload", json!({"url": site.url("/")}), to(&site));
        let called = call.limits(|limits| limits.request_bytes = 1 << 20).make().await;
        assert_eq!(called.text(), "HttpRequestBodySize");
        let called = attack("lie_about_length", &site, "/").await;
        assert!(!called.text().contains("REACHED"), "{}", called.text());
        assert_eq!(called.text().lines().count(), 6, "{}", called.text());
        site.wait_closed().await;
        assert_eq!(site.requests(), [], "no request came whole");
        assert_benign_works().await;
    });
}

#[test]
fn a_guest_decides_nothing_about_the_connection() {
    test(async {
        let site = Site::start().await.with("/", Reply::text("hello"));
        assert_eq!(attack("forbidden_headers", &site, "/").await.text(), "200");
        let received = site.last_request();
        assert_eq!(received.header("host"), Some(site.address().to_string()));
        assert!(received.headers.iter().all(|(name, value)| !format!("{name}{value}").contains("internal")));
        let called = attack("half_requests", &site, "/").await;
        assert!(!called.text().contains("REACHED"), "{}", called.text());
        assert_eq!((called.text().lines().count(), site.requests().len()), (11, 1), "{}", called.text());
    });
}
