//! A host is one host however it is written, and a URL that cannot be understood is refused.

use tests::block_on;
use tests::network::{Answer, Dns, Forbidden, Reply, Site};

use super::{Request, Way, check, get, post};

#[test]
fn a_granted_host_is_reached_however_it_is_written_and_no_other_with_it() {
    block_on(async {
        let site = Site::start().await.with("/page", Reply::text("here")).with("/", Reply::text("root"));
        let forbidden = Forbidden::listen("127.0.0.1:0");
        let dns = Dns::start().await;
        for name in ["example.test", "xn--bcher-kva.test"] {
            dns.set(name, &[Answer::addresses(&["127.0.0.1"])]);
        }
        let (port, bad) = (site.port(), forbidden.address().port());
        let granted = [format!("example.test:{port}"), format!("xn--bcher-kva.test:{port}")];
        let way = Way::to(&granted).opening(&site).resolver(&dns);
        let call = way.open();
        let reached = [
            format!("http://example.test:{port}/page"),
            format!("HTTP://example.test:{port}/page"),
            format!("http://EXAMPLE.Test:{port}/page"),
            format!("http://example.test.:{port}/page"),
            format!("http://example.test:0{port}/page?a=b&c=%00"),
            format!("http://xn--bcher-kva.test:{port}/page"),
            format!("http://XN--BCHER-KVA.test:{port}/page"),
            format!("http://example.test:{port}"),
            // Percent signs, full width, an ideographic stop: other ways to write the same letters.
            format!("http://ex%61mple%2Etest:{port}/page"),
            format!("http://\u{ff45}xample.test:{port}/page"),
            format!("http://example\u{3002}test:{port}/page"),
            format!("http://b\u{fc}cher.test:{port}/page"),
        ];
        for url in &reached {
            let before = site.requests().len();
            check(&get(&call, url).await, "200", url);
            assert_eq!(site.requests().len(), before + 1, "{url}");
            let host = site.last_request().header("host").unwrap();
            let expected = if url.to_lowercase().contains("cher") { "xn--bcher-kva.test" } else { "example.test" };
            assert_eq!(host, format!("{expected}:{port}"), "{url}");
        }
        let seen = site.requests().len();
        for (url, expected) in [
            // Who is before the `@` and who after it.
            (format!("http://example.test:{port}@127.0.0.1:{bad}/"), "blocked userinfo"),
            (format!("http://example.test@127.0.0.1:{bad}/"), "blocked userinfo"),
            (format!("http://user:secret@example.test:{port}/page"), "blocked userinfo"),
            (format!("http://@example.test:{port}/page"), "blocked userinfo"),
            (format!("http://127.0.0.1:{bad}\\@example.test:{port}/"), "blocked invalid_url"),
            (format!("http://127.0.0.1:{bad}#@example.test:{port}/"), "blocked port_not_allowed"),
            (format!("http://127.0.0.1:{bad}?@example.test:{port}/"), "blocked port_not_allowed"),
            (format!("http://127.0.0.1:{bad}/@example.test:{port}/"), "blocked port_not_allowed"),
            (format!("http://127.0.0.1:{bad};example.test:{port}/"), "blocked invalid_url"),
            (format!("http://example.test:{port}:{bad}/"), "blocked invalid_url"),
            (format!("http://example.test:{port} 127.0.0.1:{bad}/"), "blocked invalid_url"),
            (format!("http://example.test:{port}\t/"), "blocked invalid_url"),
            (format!("http://example.test:{port}\r\nHost: 127.0.0.1/"), "blocked invalid_url"),
            (format!("http://example.test:{port}/page\r\nX-Evil: 1"), "blocked invalid_url"),
            (format!("http://example.test:{port}/page x"), "blocked invalid_url"),
            // Look-alikes: Cyrillic, and the punycode of it.
            (format!("http://ex\u{430}mple.test:{port}/"), "blocked domain_not_allowed"),
            (format!("http://xn--exmple-4nf.test:{port}/"), "blocked domain_not_allowed"),
            (format!("http://xn--a.test:{port}/"), "blocked invalid_url"),
            (format!("http://xn--\u{0}.test:{port}/"), "blocked invalid_url"),
            (format!("http://example.test%00.evil.test:{port}/"), "blocked invalid_url"),
            (format!("http://example.test%2f:{port}/"), "blocked invalid_url"),
            // Neighbours of the name.
            (format!("http://evil-example.test:{port}/"), "blocked domain_not_allowed"),
            (format!("http://sub.example.test:{port}/"), "blocked domain_not_allowed"),
            (format!("http://example.test.evil.test:{port}/"), "blocked domain_not_allowed"),
            (format!("http://example.tes:{port}/"), "blocked domain_not_allowed"),
            (format!("http://test:{port}/"), "blocked domain_not_allowed"),
            (format!("http://example.test..:{port}/"), "blocked invalid_url"),
            (format!("http://.example.test:{port}/"), "blocked invalid_url"),
            (format!("http://example..test:{port}/"), "blocked invalid_url"),
            (format!("http://exam_ple.test:{port}/"), "blocked domain_not_allowed"),
            (format!("http://{}.test:{port}/", "a".repeat(64)), "blocked invalid_url"),
            (format!("http://{}test:{port}/", "a.".repeat(200)), "blocked invalid_url"),
            // Ports.
            ("http://example.test/page".to_owned(), "blocked port_not_allowed"),
            ("http://example.test:0/page".to_owned(), "blocked invalid_url"),
            (format!("http://example.test:{bad}/page"), "blocked port_not_allowed"),
            ("http://example.test:65536/page".to_owned(), "blocked invalid_url"),
            ("http://example.test:-1/page".to_owned(), "blocked invalid_url"),
            ("http://example.test:+80/page".to_owned(), "blocked invalid_url"),
            (format!("http://example.test:{port}junk/page"), "blocked invalid_url"),
            // Schemes.
            (format!("ftp://example.test:{port}/page"), "blocked scheme"),
            (format!("gopher://example.test:{port}/page"), "blocked scheme"),
            (format!("ws://example.test:{port}/page"), "blocked scheme"),
            (format!("httpx://example.test:{port}/page"), "blocked scheme"),
            ("file:///etc/passwd".to_owned(), "blocked scheme"),
            ("file://localhost/etc/passwd".to_owned(), "blocked scheme"),
            ("data:text/plain,hi".to_owned(), "blocked scheme"),
            ("unix:///run/docker.sock".to_owned(), "blocked scheme"),
            // Not absolute.
            ("/page".to_owned(), "blocked invalid_url"),
            (format!("example.test:{port}"), "blocked invalid_url"),
            (format!("//example.test:{port}/page"), "blocked invalid_url"),
            ("*".to_owned(), "blocked invalid_url"),
            ("http://".to_owned(), "blocked invalid_url"),
            ("http:///page".to_owned(), "blocked invalid_url"),
            (String::new(), "blocked invalid_url"),
        ] {
            check(&get(&call, &url).await, expected, &url);
        }
        assert_eq!(site.requests().len(), seen, "{:?}", site.last_request());
        forbidden.untouched();
        // A name that is not granted is not even looked up: a look-up would disclose the request.
        let mut names = dns.names();
        names.sort();
        names.dedup();
        assert_eq!(names, ["example.test", "xn--bcher-kva.test"]);
    });
}

#[test]
fn an_address_is_on_the_list_of_private_ones_or_is_not_reached_however_it_is_written() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("listed"));
        let unlisted = Site::start().await.with("/", Reply::text("not listed"));
        let forbidden = Forbidden::listen("127.0.0.1:0");
        let dns = Dns::start().await.with("localhost", &[Answer::addresses(&["127.0.0.1", "::1"])]);
        let bad = forbidden.address().port();
        let private = [
            "127.0.0.1",
            "127.1",
            "127.0.1",
            "127.000.000.001",
            "0177.0.0.1",
            "0x7f.0.0.1",
            "0x7f.1",
            "0x7f000001",
            "017700000001",
            "2130706433",
            "0",
            "0x.0.0.1",
            "0.0.0.0",
            "127.0.0.1.",
            "127.127.127.127",
            "%31%32%37.0.0.1",
            "127%2e0%2e0%2e1",
            "\u{2460}\u{2461}\u{2466}.0.0.1",
            "127\u{3002}0\u{3002}0\u{3002}1",
            "[::1]",
            "[::]",
            "[0:0:0:0:0:0:0:1]",
            "[::ffff:127.0.0.1]",
            "[::ffff:7f00:1]",
            "[0:0:0:0:0:ffff:127.0.0.1]",
            "[::127.0.0.1]",
            "[64:ff9b::127.0.0.1]",
            "[::ffff:0:127.0.0.1]",
            "localhost",
            "LOCALHOST",
            "localhost.",
        ];
        let no_host = [
            "[::1%lo]",
            "[::1%25lo]",
            "[fe80::1%25lo]",
            "[fe80::1%lo]",
            "127.0.0.1%00",
            "4294967297",
            "0x17f000001",
            "256.0.0.1",
            "127.0.0.0.1",
            "1.2.3.4.5",
            "09.0.0.1",
            "[127.0.0.1]",
            "[::1",
            "::1",
            "[]",
            "",
        ];
        // Any port of any public address: the widest that there is, and names beside it. None reaches a private address.
        let widest =
            [format!("*:{bad}"), format!("localhost:{bad}"), format!("127.0.0.1:{bad}"), format!("[::1]:{bad}")];
        let call = Way::to(&widest).private(&site).resolver(&dns).open();
        for (hosts, expected) in [(&private[..], "blocked private_address"), (&no_host, "blocked invalid_url")] {
            for host in hosts {
                let url = format!("http://{host}:{bad}/");
                check(&get(&call, &url).await, expected, &url);
            }
        }
        forbidden.untouched();
        // On the list, and granted exactly.
        let call = Way::to_site(&site).private(&unlisted).open();
        check(&get(&call, &site.url("/")).await, "200", "listed and granted");
        check(&get(&call, &unlisted.url("/")).await, "blocked port_not_allowed", "not granted");
        // On the list, and granted by a pattern that is wider: not granted.
        let call = Way::to(&[format!("*:{}", site.port())]).private(&site).open();
        check(&get(&call, &site.url("/")).await, "blocked private_address", "granted by `*`");
        // Granted, and not on the list: the list is of addresses with their ports.
        let call = Way::to(&[unlisted.address().to_string()]).private(&site).open();
        check(&get(&call, &unlisted.url("/")).await, "blocked private_address", "another port");
        assert_eq!((site.connections(), unlisted.connections()), (1, 0));
    });
}

#[test]
fn headers_cannot_be_used_to_say_two_things() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let call = Way::to_site(&site).open();
        let url = &site.url("/");
        for (name, value) in
            [("x-a", "1\r\nX-Evil: 2"), ("x-a", "1\nX-Evil: 2"), ("x-a", "a\0b"), ("x a", "1"), ("x-a:", "1")]
        {
            let asked = Request { url, headers: &[(name, value)], ..Request::default() }.ask(&call).await;
            check(&asked, "unwritable", name);
        }
        assert_eq!(site.connections(), 0);
        // The gate speaks for itself in these: the server gets one request to itself, of one length.
        for headers in [
            &[("host", "metadata.internal")][..],
            &[("content-length", "3")],
            &[("content-length", "5000")],
            &[("content-length", "4"), ("transfer-encoding", "chunked")],
            &[("transfer-encoding", "chunked")],
            &[("transfer-encoding", "identity, chunked")],
            &[("connection", "upgrade"), ("upgrade", "h2c"), ("http2-settings", "AAMAAABk")],
            &[("connection", "x-secret, keep-alive")],
            &[("te", "trailers")],
            &[("proxy-authorization", "Basic eA==")],
            &[("proxy-connection", "keep-alive")],
            &[("expect", "100-continue")],
            &[("trailer", "x-late")],
        ] {
            let before = site.requests().len();
            let asked = Request { method: "POST", url, headers, body: "body" }.ask(&call).await;
            let upgrades = headers.iter().any(|(name, _)| *name == "upgrade");
            check(&asked, if upgrades { "blocked header" } else { "200" }, &format!("{headers:?}"));
            let requests = site.requests();
            if upgrades {
                assert_eq!(requests.len(), before, "{headers:?}");
                continue;
            }
            assert_eq!(requests.len(), before + 1, "{headers:?}");
            let request = requests.last().unwrap();
            assert_eq!((request.text().as_str(), request.header("host")), ("body", Some(site.address().to_string())));
            for gone in ["proxy-authorization", "proxy-connection", "upgrade", "http2-settings", "expect"] {
                assert_eq!(request.header(gone), None, "{headers:?}");
            }
            let lengths = request
                .headers
                .iter()
                .filter(|(name, _)| ["content-length", "transfer-encoding"].contains(&name.as_str()));
            assert_eq!(lengths.count(), 1, "{request:?}");
        }
        // An ordinary one arrives as it was written.
        let headers = &[("x-note", "a b: c"), ("accept", "text/html"), ("user-agent", "me/1")];
        Request { url, headers, ..Request::default() }.ask(&call).await.answer();
        for (name, value) in headers {
            assert_eq!(site.last_request().header(name).as_deref(), Some(*value));
        }
    });
}

#[test]
fn only_methods_of_requests_are_sent() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let call = Way::to_site(&site).open();
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"] {
            check(&Request { method, url: &site.url("/"), ..Request::default() }.ask(&call).await, "200", method);
            assert_eq!(site.last_request().method, method);
        }
        post(&call, &site.url("/"), "body").await.answer();
        assert_eq!(site.last_request().text(), "body");
        let seen = site.requests().len();
        // A tunnel is a way round the gate.
        for method in ["CONNECT", "TRACE"] {
            let asked = Request { method, url: &site.url("/"), ..Request::default() }.ask(&call).await;
            assert!(asked.verdict().starts_with("blocked"), "{method}: {asked:?}");
        }
        assert_eq!(site.requests().len(), seen);
    });
}
