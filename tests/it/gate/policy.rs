//! Grants, from nothing to everything public, and their effect while they change (SPEC NET-1, NET-3).

use network::{Gate, NetworkConfig, Pattern, Policy};
use tests::block_on;
use tests::network::{Reply, Site};

use super::{Way, check, get, patterns};

#[test]
fn patterns_are_exact_and_too_wide_ones_are_none() {
    for good in [
        "example.com",
        "EXAMPLE.com",
        "example.com.",
        "*.example.com",
        "*",
        "example.com:8080",
        "*.example.com:8443",
        "*:8080",
        "127.0.0.1:8080",
        "93.184.216.34",
        "[::1]:8080",
        "[2606:2800:220:1::1]",
        "xn--bcher-kva.example",
        "*.blogger.example.com",
    ] {
        assert!(good.parse::<Pattern>().is_ok(), "{good}: {:?}", good.parse::<Pattern>());
    }
    for bad in [
        "",
        " ",
        ".",
        "*.",
        "*.*",
        "**",
        "*.com",
        "*.co.uk",
        "*.github.io",
        "*com",
        "*example.com",
        "ex*mple.com",
        "www.*.com",
        "example.*",
        "a.*",
        "http://example.com",
        "example.com/",
        "example.com/path",
        "user@example.com",
        "example.com:",
        "example.com:0",
        "example.com:65536",
        "example.com:*",
        "example.com:80:80",
        "exam ple.com",
        "example.com,other.com",
        "example..com",
        ".example.com",
        "*.*.example.com",
        "*.127.0.0.1",
        "*.[::1]",
        "127.0.0.1/8",
        "10.0.0.0/8",
        "[::1",
        "::1",
        "[fe80::1%lo]",
        "example.com\n",
        "exam\u{0}ple.com",
        "?",
    ] {
        assert!(bad.parse::<Pattern>().is_err(), "{bad:?} is taken as {:?}", bad.parse::<Pattern>());
    }
    // A pattern is shown as the grant that it makes.
    for (written, granted) in [
        ("127.1", "127.0.0.1"),
        ("0x7f.0.0.1:8080", "127.0.0.1:8080"),
        ("[::ffff:10.0.0.1]", "10.0.0.1"),
        ("ex%61mple.com", "example.com"),
        ("b\u{fc}cher.example", "xn--bcher-kva.example"),
        ("ex\u{430}mple.com", "xn--exmple-4nf.com"),
    ] {
        assert_eq!(written.parse::<Pattern>().map(String::from).as_deref(), Ok(granted));
    }
}

#[test]
fn settings_that_are_wrong_stop_the_gate() {
    for private in
        ["127.0.0.1", "127.0.0.1:0", "localhost:80", "127.0.0.1:99999", "10.0.0.0/8:80", "*:80", "127.1:80", ""]
    {
        let config = NetworkConfig { private: vec![private.to_owned()], ..NetworkConfig::default() };
        assert!(Gate::new(&config).is_err(), "private {private:?}");
    }
    for resolver in ["localhost:53", "127.0.0.1", "127.0.0.1:0", ""] {
        let config = NetworkConfig { resolver: Some(resolver.to_owned()), ..NetworkConfig::default() };
        assert!(Gate::new(&config).is_err(), "resolver {resolver:?}");
    }
    for pattern in ["*.com", "http://a.example", ""] {
        let config = NetworkConfig { writes: vec![pattern.to_owned()], ..NetworkConfig::default() };
        assert!(Gate::new(&config).is_err(), "writes {pattern:?}");
        let config = NetworkConfig { code_domains: vec![pattern.to_owned()], ..NetworkConfig::default() };
        assert!(Gate::new(&config).is_err(), "code_domains {pattern:?}");
    }
    let config = NetworkConfig {
        private: vec!["127.0.0.1:8080".to_owned(), "[::1]:8080".to_owned()],
        resolver: Some("127.0.0.1:53".to_owned()),
        writes: vec!["api.example.com".to_owned()],
        ..NetworkConfig::default()
    };
    assert!(Gate::new(&config).is_ok());
}

#[test]
fn nothing_is_granted_until_it_is_and_a_refusal_is_stronger() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let address = site.address().to_string();
        let nothing: [&str; 0] = [];
        let way = Way::to(&nothing).private(&site);
        let limits = way.limits.clone();
        let run = way.run();
        let call = run.call(limits);
        let blocked = get(&call, &site.url("/")).await.blocked();
        assert_eq!(blocked.rule, network::Rule::DomainNotAllowed);
        assert!(blocked.asked.contains("127.0.0.1"), "{blocked:?}");
        assert!(blocked.reason.contains("127.0.0.1"), "{blocked:?}");

        let granted = Policy { domains: patterns(&[&address]), ..Policy::default() };
        run.change(granted.clone());
        check(&get(&call, &site.url("/")).await, "200", "granted, for a call that has begun");
        run.change(Policy { refused: patterns(&[&address]), ..granted });
        let blocked = get(&call, &site.url("/")).await.blocked();
        assert_eq!(blocked.rule, network::Rule::DomainRefused);
        assert_eq!(call.last_refusal(), Some(blocked));
        run.change(Policy::default());
        check(&get(&call, &site.url("/")).await, "blocked domain_not_allowed", "taken back");
        assert_eq!(site.requests().len(), 1);

        let traces = call.traces();
        let rules: Vec<_> = traces.iter().map(|trace| (trace.status, trace.rule.map(network::Rule::as_str))).collect();
        assert_eq!(
            rules,
            [
                (None, Some("domain_not_allowed")),
                (Some(200), None),
                (None, Some("domain_refused")),
                (None, Some("domain_not_allowed"))
            ]
        );
    });
}

#[test]
fn a_request_is_under_one_policy_or_the_other_while_it_changes() {
    block_on(async {
        let (first, second) = (Site::start().await, Site::start().await);
        for site in [&first, &second] {
            site.route("/", Reply::text("ok"));
        }
        let nothing: [&str; 0] = [];
        let way = Way::to(&nothing).private(&first).private(&second);
        let limits = way.limits.clone();
        let run = way.run();
        let call = run.call(limits);
        let only = |site: &Site| Policy { domains: patterns(&[site.address().to_string()]), ..Policy::default() };
        let policies = [only(&first), only(&second), Policy::default()];
        let urls = [first.url("/"), second.url("/")];
        let mut verdicts = std::collections::BTreeMap::<String, usize>::new();
        for number in 0..60 {
            run.change(policies[number % 3].clone());
            let change = async {
                // Somewhere on the request's way: in this order the request is polled first, each time.
                for _ in 0..number % 7 {
                    tokio::task::yield_now().await;
                }
                run.change(policies[(number + 1) % 3].clone());
            };
            let (asked, ()) = tokio::join!(get(&call, &urls[number % 2]), change);
            check(&asked, "200 | blocked port_not_allowed | blocked domain_not_allowed", "in between");
            *verdicts.entry(asked.verdict()).or_default() += 1;
        }
        // When the last policy was in force at first, nothing else came in time.
        assert!(verdicts["blocked domain_not_allowed"] >= 20, "{verdicts:?}");
        let answered = verdicts.get("200").copied().unwrap_or_default();
        assert_eq!(first.requests().len() + second.requests().len(), answered);
        run.change(Policy::default());
        for url in &urls {
            check(&get(&call, url).await, "blocked domain_not_allowed", "in the end");
        }
    });
}

#[test]
fn a_trace_says_what_was_asked_and_no_value_of_a_query() {
    block_on(async {
        let site = Site::start().await.with("/find", Reply::text("12345"));
        let call = Way::to_site(&site).open();
        let url = site.url("/find?q=private-words&page=2");
        super::Request { method: "POST", url: &url, body: "1234567", ..Default::default() }.ask(&call).await.answer();
        assert_eq!(site.last_request().target, "/find?q=private-words&page=2");
        let [trace] = <[_; 1]>::try_from(call.traces()).unwrap();
        assert_eq!((trace.method.as_str(), trace.scheme.as_str(), trace.status), ("POST", "http", Some(200)));
        assert_eq!((trace.request_bytes, trace.response_bytes), (7, 5));
        assert_eq!(trace.host, site.address().to_string());
        assert!(trace.path.starts_with("/find") && trace.path.contains('q'), "{trace:?}");
        assert!(!format!("{trace:?}").contains("private-words"), "{trace:?}");
        assert!(trace.duration_ms > 0.0 && trace.error.is_none(), "{trace:?}");
    });
}
