//! HTTPS: trusted for this name now, or nothing is sent.

use tests::block_on;
use tests::network::{Answer, Authority, Dns, Encoding, Reply, ServerTls, Site};

use super::{Request, Way, check, get};

const NAME: &str = "secure.name.test";

#[test]
fn a_certificate_is_for_the_name_in_time_and_from_an_authority_that_is_trusted() {
    block_on(async {
        let (authority, stranger) = (Authority::new(), Authority::new());
        let dns = Dns::start().await.with(NAME, &[Answer::addresses(&["127.0.0.1"])]);
        for (what, tls, trusted, expected) in [
            ("as it should be", authority.certificate(&[NAME]), true, "200"),
            ("for the names below", authority.certificate(&["*.name.test"]), true, "200"),
            ("by an authority that nobody trusts here", authority.certificate(&[NAME]), false, "tls"),
            ("by another authority", stranger.certificate(&[NAME]), true, "tls"),
            ("for another name", authority.certificate(&["other.test"]), true, "tls"),
            ("for a part of the name", authority.certificate(&["name.test", "secure", "*.test"]), true, "tls"),
            ("for the address", authority.certificate(&["127.0.0.1"]), true, "tls"),
            ("whose time is over", authority.expired(&[NAME]), true, "tls"),
            ("by itself", ServerTls::self_signed(&[NAME]), true, "tls"),
        ] {
            let site = Site::with_tls("127.0.0.1:0", tls).await.with("/", Reply::echo("x-key", Encoding::Plain));
            let domain = format!("{NAME}:{}", site.port());
            let mut way =
                Way::to(&[&domain]).opening(&site).resolver(&dns).credential("key", "s3cret-0123456789", &[&domain]);
            if trusted {
                way.config.authorities = vec![authority.file()];
            }
            let url = site.url_as(NAME, "/?k=<credential:key>").replace('<', "%3C").replace('>', "%3E");
            let headers = &[("x-key", "<credential:key>")];
            let asked = Request { url: &url, headers, ..Request::default() }.ask(&way.open()).await;
            check(&asked, expected, what);
            assert_eq!(site.requests().len(), usize::from(expected == "200"), "{what}");
        }
    });
}

#[test]
fn neither_side_falls_back_to_another_protocol() {
    block_on(async {
        let authority = Authority::new();
        let secure = Site::with_tls("127.0.0.1:0", authority.certificate(&["127.0.0.1"])).await;
        let plain = Site::start().await.with("/", Reply::text("plain"));
        secure.route("/", Reply::redirect(&plain.url("/")));
        let granted = [secure.address().to_string(), plain.address().to_string()];
        let mut way = Way::to(&granted).private(&secure).private(&plain);
        way.config.authorities = vec![authority.file()];
        way.config.timeout_ms = 2_000;
        let call = way.open();
        check(&get(&call, &secure.url("/")).await, "302", "TLS at an address");
        check(&get(&call, &plain.url("/")).await, "200", "plain");
        check(&get(&call, &plain.url("/").replace("http:", "https:")).await, "tls", "TLS where there is none");
        check(&get(&call, &secure.url("/").replace("https:", "http:")).await, "protocol", "none where there is TLS");
        assert_eq!((secure.requests().len(), plain.requests().len()), (1, 1));
    });
}

#[test]
fn authorities_that_cannot_be_read_stop_the_gate() {
    let authority = Authority::new();
    let junk = authority.directory().join("junk.pem");
    std::fs::write(&junk, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    let empty = authority.directory().join("empty.pem");
    std::fs::write(&empty, "").unwrap();
    for file in [junk, empty, authority.directory().join("missing.pem"), authority.directory().to_owned()] {
        let config = network::NetworkConfig { authorities: vec![file.clone()], ..network::NetworkConfig::default() };
        assert!(network::Gate::new(&config).is_err(), "{}", file.display());
    }
    let config = network::NetworkConfig { authorities: vec![authority.file()], ..network::NetworkConfig::default() };
    assert!(network::Gate::new(&config).is_ok());
}
