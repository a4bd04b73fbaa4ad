//! Every odd way to write a URL: normalised, or refused with its own reason.

use super::*;

#[test]
fn odd_ways_to_write_a_host_become_one() {
    for (url, normalised) in [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com:443/A?b=C#d", "https://example.com/A?b=C"),
        ("http://example.com.:80/", "http://example.com/"),
        ("http://example.com:443", "http://example.com:443/"),
        ("http://example.com?q", "http://example.com/?q"),
        ("http://ex%61mple.com/", "http://example.com/"),
        ("http://example%2ecom/", "http://example.com/"),
        ("http://b\u{fc}cher.example/", "http://xn--bcher-kva.example/"),
        ("http://\u{430}pple.com/", "http://xn--pple-43d.com/"),
        ("http://\u{ff45}xample\u{3002}com/", "http://example.com/"),
        ("http://a_b.example/", "http://a_b.example/"),
        ("http://127.0.0.1/", "http://127.0.0.1/"),
        ("http://127.1/", "http://127.0.0.1/"),
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0x7f000001/", "http://127.0.0.1/"),
        ("http://0177.0.0.1/", "http://127.0.0.1/"),
        ("http://0x7f.0.0.0x1./", "http://127.0.0.1/"),
        ("http://%31%32%37.0.0.1/", "http://127.0.0.1/"),
        ("http://[::1]:8080/", "http://[::1]:8080/"),
        ("http://[0:0:0:0:0:ffff:7f00:1]/", "http://127.0.0.1/"),
        ("http://[::ffff:169.254.169.254]/", "http://169.254.169.254/"),
        ("http://[2001:DB8:0::1]/", "http://[2001:db8::1]/"),
        ("http://e.example/a%20b/\u{fc}?x=<credential:k>", "http://e.example/a%20b/%C3%BC?x=%3Ccredential:k%3E"),
    ] {
        let target = Target::parse(url).unwrap_or_else(|blocked| panic!("{url}: {blocked}"));
        assert_eq!(target.to_string(), normalised, "{url}");
        let uri: http::Uri = normalised.parse().unwrap();
        assert_eq!(Target::from_uri(&uri).unwrap(), target, "{url}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_its_reason() {
    for (url, rule, reason) in [
        ("", Rule::InvalidUrl, "not absolute"),
        ("example.com/a", Rule::InvalidUrl, "not absolute"),
        ("//example.com/", Rule::InvalidUrl, "not absolute"),
        ("https:///path", Rule::InvalidUrl, "host is missing"),
        ("https://:443/", Rule::InvalidUrl, "host is missing"),
        ("ftp://example.com/", Rule::Scheme, "neither"),
        ("file:///etc/passwd", Rule::Scheme, "neither"),
        ("javascript:alert(1)", Rule::Scheme, "neither"),
        ("data:text/plain,hi", Rule::Scheme, "neither"),
        ("https://user@example.com/", Rule::Userinfo, "user"),
        ("https://good.example@evil.example/", Rule::Userinfo, "user"),
        ("https://u:p@example.com/", Rule::Userinfo, "user"),
        ("https://exam ple.com/", Rule::InvalidUrl, "white space"),
        ("https://exam\tple.com/", Rule::InvalidUrl, "control"),
        ("https://example.com/\r\nHost: evil", Rule::InvalidUrl, "control"),
        ("https://example.com\\@evil.example/", Rule::InvalidUrl, "backslash"),
        ("https:\\\\example.com/", Rule::InvalidUrl, "backslash"),
        ("https://example..com/", Rule::InvalidUrl, "empty label"),
        ("https://example.com../", Rule::InvalidUrl, "empty label"),
        ("https://.example.com/", Rule::InvalidUrl, "empty label"),
        ("https://./", Rule::InvalidUrl, "empty label"),
        ("https://example.com%2f.evil.example/", Rule::InvalidUrl, "no host"),
        ("https://example.com%00/", Rule::InvalidUrl, "no host"),
        ("https://%zz.example/", Rule::InvalidUrl, "no host"),
        ("https://*.example.com/", Rule::InvalidUrl, "character"),
        ("https://<credential:a>.example/", Rule::InvalidUrl, "no port"),
        ("https://%3Ccredential%3Aa%3E.example/", Rule::InvalidUrl, "no host"),
        ("https://$a.example/", Rule::InvalidUrl, "character"),
        ("https://256.1.1.1/", Rule::InvalidUrl, "no host"),
        ("https://1.2.3.4.5/", Rule::InvalidUrl, "no host"),
        ("https://1.2.3.4../", Rule::InvalidUrl, "empty label"),
        ("https://0x100000000/", Rule::InvalidUrl, "no host"),
        ("https://::1/", Rule::InvalidUrl, "brackets"),
        ("https://[::1/", Rule::InvalidUrl, "IPv6"),
        ("https://[::1]a/", Rule::InvalidUrl, "no host"),
        ("https://[fe80::1%25eth0]/", Rule::InvalidUrl, "zone"),
        ("https://[v1.x]/", Rule::InvalidUrl, "no host"),
        ("https://example.com:/", Rule::InvalidUrl, "no port"),
        ("https://example.com:0/", Rule::InvalidUrl, "no port"),
        ("https://example.com:65536/", Rule::InvalidUrl, "no port"),
        ("https://example.com:+80/", Rule::InvalidUrl, "no port"),
        ("https://example.com:80:80/", Rule::InvalidUrl, "brackets"),
        ("https://example.com:http/", Rule::InvalidUrl, "no port"),
    ] {
        let blocked = Target::parse(url).expect_err(url);
        assert_eq!(blocked.rule, rule, "{url}: {blocked}");
        assert!(blocked.reason.contains(reason), "{url}: {blocked}");
        assert_eq!(blocked.asked, "");
    }
    for (url, reason) in [
        (format!("https://{}.example/", "a".repeat(64)), "longer than a name"),
        (format!("https://{}example/", "a.".repeat(130)), "longer than a name"),
        (format!("https://example.com/{}", "a".repeat(MAX_BYTES)), "longer than 16384"),
    ] {
        assert!(Target::parse(&url).unwrap_err().reason.contains(reason), "{reason}");
    }
}

#[test]
fn what_a_library_lets_through_is_judged_alike() {
    for (uri, rule) in [
        ("/path", Rule::InvalidUrl),
        ("example.com:443", Rule::InvalidUrl),
        ("ftp://example.com/", Rule::Scheme),
        ("https://u@example.com/", Rule::Userinfo),
        ("https://example.com/a\\b", Rule::InvalidUrl),
        ("https://1.2.3.4.5/", Rule::InvalidUrl),
    ] {
        let blocked = Target::from_uri(&uri.parse().unwrap()).expect_err(uri);
        assert_eq!(blocked.rule, rule, "{uri}: {blocked}");
    }
    assert_eq!(Target::from_uri(&"http://0x7f.1:8080/a".parse().unwrap()).unwrap().authority(), "127.0.0.1:8080");
    let without_path = Target::from_uri(&"http://example.com?a=b".parse().unwrap()).unwrap();
    assert_eq!(without_path.path_and_query().as_str(), "/?a=b");
}

proptest::proptest! {
    #[test]
    fn a_target_reads_itself(host in "[a-zA-Z0-9.%_-]{1,30}", port in 0_u32..70_000, path in "/[ -~]{0,30}") {
        if let Ok(target) = Target::parse(&format!("http://{host}:{port}{path}")) {
            assert_eq!(Target::parse(&target.to_string()).unwrap(), target);
            let uri: http::Uri = target.to_string().parse().unwrap();
            assert_eq!(Target::from_uri(&uri).unwrap(), target);
        }
    }

    #[test]
    fn no_text_breaks_it(text in ".{0,80}") {
        if let Ok(target) = Target::parse(&text) {
            assert_eq!(Target::parse(&target.to_string()).unwrap(), target);
        }
    }
}
