//! Every kind of address that is not public, reached for in every way, with a listener at each that counts; and public
//! addresses, which are reached. In a network namespace, where all of them are this machine's.

use tests::block_on;
use tests::network::namespace::isolated;
use tests::network::{Answer, Authority, Dns, Forbidden, Reply, Site};

use super::{Request, Way, check, get};

/// Addresses that are public, of both kinds.
const PUBLIC: [&str; 4] = ["93.184.216.34", "1.1.1.1", "2606:2800:220:1::1", "2a00:1450:4001::64"];

/// Addresses that are not public (IANA special-purpose registries) and can be an interface's.
const NOT_PUBLIC: [&str; 41] = [
    "10.0.0.1",
    "10.255.255.254",
    "168.63.129.16",
    "100.64.0.1",
    "100.127.255.254",
    "100.100.100.200",
    "169.254.0.1",
    "169.254.169.254",
    "169.254.170.2",
    "172.16.0.1",
    "172.31.255.254",
    "192.0.0.1",
    "192.0.0.192",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.0.1",
    "192.168.255.254",
    "198.18.0.1",
    "198.19.255.254",
    "198.51.100.1",
    "203.0.113.1",
    "240.0.0.1",
    "255.255.255.254",
    "::7f00:1",
    "64:ff9b::7f00:1",
    "64:ff9b::a00:1",
    "64:ff9b:1::7f00:1",
    "100::1",
    "2001::1",
    "2001:2::1",
    "2001:10::1",
    "2001:db8::1",
    "2002:7f00:1::1",
    "2002:a00:1::1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fdff:ffff::1",
    "fec0::1",
    "fe80::1",
];

/// Addresses that no host can have, or every host has.
const NOBODYS: [&str; 14] = [
    "0.0.0.0",
    "127.0.0.1",
    "127.255.255.254",
    "0.1.2.3",
    "224.0.0.1",
    "239.255.255.250",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "::ffff:0:127.0.0.1",
    "ff02::1",
    "ff0e::1",
];

/// As it stands in a URL.
fn in_url(address: &str) -> String {
    if address.contains(':') { format!("[{address}]") } else { address.to_owned() }
}

fn listeners() -> Vec<Forbidden> {
    // Link-local addresses cannot be bound to without naming an interface, and cannot be connected to either.
    let bound = NOT_PUBLIC.iter().filter(|address| !address.starts_with("fe80")).chain(&["127.0.0.1", "::1"]);
    let sockets = bound.flat_map(|address| [80, 443, 8080].map(|port| format!("{}:{port}", in_url(address))));
    sockets.map(|socket| Forbidden::listen(&socket)).collect()
}

fn all() -> Vec<&'static str> {
    PUBLIC.iter().chain(&NOT_PUBLIC).copied().collect()
}

#[test]
fn nobody_gets_to_an_address_that_is_not_public() {
    isolated(&all(), || {
        block_on(async {
            let forbidden = listeners();
            let site = Site::at("93.184.216.34:80").await.with("/", Reply::text("public"));
            let dns = Dns::start().await;
            for address in NOT_PUBLIC.iter().chain(&NOBODYS) {
                let host = in_url(address);
                // The widest grant, and the exact one.
                let mut granted = vec!["*".to_owned(), "*:8080".to_owned(), "name.test".to_owned()];
                granted.extend(host.parse::<network::Pattern>().ok().map(String::from));
                let call = Way::to(&granted).resolver(&dns).open();
                for url in [format!("http://{host}/"), format!("https://{host}/"), format!("http://{host}:8080/")] {
                    check(&get(&call, &url).await, "blocked private_address", &url);
                }
                for answer in [
                    Answer::addresses(&[address]),
                    Answer::alias(&["cdn.public.example", "edge.public.example"], &[address]),
                ] {
                    dns.set("name.test", &[answer]);
                    for url in ["http://name.test/", "https://name.test/", "http://name.test:8080/"] {
                        check(&get(&call, url).await, "blocked private_address", &format!("{url} at {address}"));
                    }
                }
                // Beside a public one, where the whole answer is refused; and after it, to a second look-up.
                dns.set("name.test", &[Answer::addresses(&["93.184.216.34", address])]);
                check(&get(&call, "http://name.test/").await, "blocked private_address", address);
                dns.set("name.test", &[Answer::addresses(&["93.184.216.34"]), Answer::addresses(&[address])]);
                let before = site.requests().len();
                check(&get(&call, "http://name.test/").await, "200", address);
                assert_eq!((site.requests().len(), dns.look_ups("name.test")), (before + 1, 1), "{address}");
                check(&get(&call, "http://name.test/").await, "blocked private_address", address);
            }
            for forbidden in forbidden {
                forbidden.untouched();
            }
        });
    });
}

#[test]
fn a_public_address_is_reached_by_every_pattern_that_grants_it() {
    isolated(&all(), || {
        block_on(async {
            let dns = Dns::start().await;
            for address in PUBLIC {
                let host = in_url(address);
                let site = Site::at(&format!("{host}:80")).await.with("/", Reply::text("public"));
                let other = Site::at(&format!("{host}:8080")).await.with("/", Reply::text("other port"));
                for name in ["www.example.com", "a.b.example.com", "example.com"] {
                    dns.set(name, &[Answer::addresses(&[address])]);
                }
                for (pattern, url, expected) in [
                    ("*", "http://www.example.com/", "200"),
                    ("*", "http://www.example.com:8080/", "blocked port_not_allowed"),
                    ("*:8080", "http://www.example.com:8080/", "200"),
                    ("www.example.com", "http://www.example.com/", "200"),
                    ("www.example.com", "http://www.example.com:8080/", "blocked port_not_allowed"),
                    ("www.example.com:8080", "http://www.example.com:8080/", "200"),
                    ("*.example.com", "http://www.example.com/", "200"),
                    ("*.example.com", "http://a.b.example.com/", "200"),
                    ("*.example.com", "http://example.com/", "blocked domain_not_allowed"),
                    ("example.com", "http://example.com/", "200"),
                    ("example.com", "http://www.example.com/", "blocked domain_not_allowed"),
                    ("*", "literal", "200"),
                    ("literal", "literal", "200"),
                    ("www.example.com", "literal", "blocked domain_not_allowed"),
                ] {
                    let url = if url == "literal" { format!("http://{host}/") } else { url.to_owned() };
                    let pattern = if pattern == "literal" { host.as_str() } else { pattern };
                    let before = site.requests().len() + other.requests().len();
                    let asked = get(&Way::to(&[pattern]).resolver(&dns).open(), &url).await;
                    check(&asked, expected, &format!("{url} by {pattern} at {address}"));
                    let arrived = usize::from(expected == "200");
                    assert_eq!(site.requests().len() + other.requests().len(), before + arrived, "{url} by {pattern}");
                }
            }
        });
    });
}

#[test]
fn tls_is_for_the_name_and_the_address_is_checked_all_the_same() {
    isolated(&all(), || {
        block_on(async {
            let authority = Authority::new();
            let forbidden = Forbidden::listen("10.0.0.1:443");
            let site = Site::with_tls("1.1.1.1:443", authority.certificate(&["secure.example.com"])).await;
            site.route("/", Reply::text("secure"));
            let dns = Dns::start().await;
            let mut way = Way::to(&["secure.example.com", "other.example.com"]).resolver(&dns);
            way.config.authorities = vec![authority.file()];
            let call = way.open();
            dns.set("secure.example.com", &[Answer::addresses(&["1.1.1.1"]), Answer::addresses(&["10.0.0.1"])]);
            dns.set("other.example.com", &[Answer::addresses(&["1.1.1.1"])]);
            check(&get(&call, "https://secure.example.com/").await, "200", "public");
            check(&get(&call, "https://other.example.com/").await, "tls", "another name at the same address");
            check(&get(&call, "https://secure.example.com/").await, "blocked private_address", "rebound");
            forbidden.untouched();
        });
    });
}

#[test]
fn a_secret_goes_to_a_public_address_over_tls_only() {
    isolated(&all(), || {
        block_on(async {
            let authority = Authority::new();
            let plain = Site::at("1.1.1.1:80").await.with("/", Reply::text("plain"));
            let secure = Site::with_tls("1.1.1.1:443", authority.certificate(&["api.example.com"])).await;
            secure.route("/", Reply::text("secure"));
            let dns = Dns::start().await.with("api.example.com", &[Answer::addresses(&["1.1.1.1"])]);
            let mut way = Way::to(&["api.example.com"]).resolver(&dns);
            way = way.credential("key", "sk-canary-5f1c0ffee4b1d9a7", &["api.example.com"]);
            way.config.authorities = vec![authority.file()];
            let call = way.open();
            let headers = &[("authorization", "Bearer <credential:key>")];
            let request = |url| Request { url, headers, ..Request::default() };
            let asked = request("http://api.example.com/").ask(&call).await;
            check(&asked, "blocked credential_not_for_domain", "in clear text");
            assert_eq!(plain.connections(), 0);
            check(&request("https://api.example.com/").ask(&call).await, "200", "over TLS");
            let sent = secure.last_request().header("authorization");
            assert_eq!(sent.as_deref(), Some("Bearer sk-canary-5f1c0ffee4b1d9a7"));
            check(&get(&call, "http://api.example.com/").await, "200", "without a secret");
        });
    });
}

#[test]
fn the_namespace_is_one() {
    isolated(&["93.184.216.34"], || {
        block_on(async {
            // The basis of the other tests: a listener at a public address is reached from here and from nowhere else,
            // and an address without a listener is refused at once.
            let site = Forbidden::listen("93.184.216.34:80");
            assert!(tokio::net::TcpStream::connect("93.184.216.34:80").await.is_ok());
            assert_eq!(site.connections(), 1);
            assert!(tokio::net::TcpStream::connect("93.184.216.35:80").await.is_err());
        });
    });
}
