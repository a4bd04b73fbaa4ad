//! Credentials: used, computed with, never seen (SPEC VAULT-3, VAULT-5).

use super::*;

#[test]
fn a_guest_uses_a_credential_that_it_never_sees() {
    test(async {
        let site = Site::start().await.with("/", Reply::echo("authorization", Encoding::Plain));
        let way = || Some(way_to(&site.address().to_string(), &[("token", SECRET, false)]));
        let arguments = json!({
            "method": "GET", "url": site.url("/"), "headers": [["authorization", "Bearer <credential:token>"]],
        });
        let called = Call::of("request", arguments, way()).make().await;
        assert_eq!(site.last_request().header("authorization"), Some(format!("Bearer {SECRET}")));
        assert_eq!(called.json()["answer"]["body"], "Bearer <credential:token>");

        let compute = |what: &'static str, name: &'static str| async move {
            Call::of("compute", json!({"what": what, "name": name, "data": "data"}), way()).make().await.json()
        };
        assert_eq!(compute("exists", "token").await, json!(true));
        assert_eq!(compute("exists", "other").await, json!(false));
        // printf data | openssl dgst -sha256 -hmac s3cr3t-canary-7f0e
        let expected = "4f693ead7692f59bbe2b92fa6593ec124bc6a1f8d47459fbd6c9dd70badd73d3";
        assert_eq!(compute("hmac", "token").await["hex"], expected);
        assert!(compute("hmac", "other").await["missing"].is_string());
        assert!(compute("rs256", "token").await["unusable"].is_string());
        assert!(compute("reveal", "token").await["denied"].is_string());
        assert!(compute("reveal", "other").await["missing"].is_string());
    });
}

#[test]
fn a_secret_that_a_guest_does_know_leaves_it_nowhere() {
    test(async {
        let site = Site::start().await;
        let way = || Some(way_to(&site.address().to_string(), &[("token", SECRET, true)]));
        for how in ["output", "error", "log", "progress", "stdout", "panic"] {
            let called = Call::of("blurt", json!({"text": "token", "how": how}), way()).make().await;
            let seen = format!("{:?} {:?}", called.finished, called.notes);
            assert!(!seen.contains(SECRET), "{how}: {seen}");
            assert!(seen.contains("<credential:token>"), "{how}: {seen}");
            // The twin: text that is not a secret passes as it is.
            let called = Call::of("say", json!({"text": "s3cr3t-c\u{e4}nary", "how": how}), way()).make().await;
            let seen = format!("{:?} {:?}", called.finished, called.notes);
            assert!(seen.contains("s3cr3t-c\u{e4}nary"), "{how}: {seen}");
        }
    });
}

#[test]
fn computing_with_keys_gives_way_to_the_deadline() {
    test(async {
        let site = Site::start().await;
        let way = || Some(way_to(&site.address().to_string(), &[("token", SECRET, false)]));
        let data = "x".repeat(100_000);
        let arguments = json!({"what": "hmac", "name": "token", "data": data, "times": 1_000_000});
        let started = Instant::now();
        let called = Call::of("compute", arguments, way()).limits(|limits| limits.deadline_ms = 100).make().await;
        called.exceeds(Limit::DeadlineMs);
        assert!(started.elapsed() < tests::AT_ONCE, "{:?}", started.elapsed());
    });
}
