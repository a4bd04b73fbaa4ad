//! Names and the possible answers of a DNS server: one look-up, and the address that was checked is the one connected
//! to.

use tests::block_on;
use tests::network::dns::parse;
use tests::network::{Answer, Dns, Forbidden, Reply, Site};

use super::{Way, check, get};

/// A name that leads to a site of this machine.
const NAME: &str = "name.test";

/// A site, and listeners at other addresses with the number of its port. Another test may have that number there: then
/// the site moves.
async fn site_beside<const N: usize>(addresses: [&str; N]) -> (Site, [Forbidden; N]) {
    loop {
        let site = Site::start().await;
        let listen = |address: &str| Forbidden::try_listen(&format!("{address}:{}", site.port())).ok();
        let listeners: Vec<Forbidden> = addresses.iter().map_while(|address| listen(address)).collect();
        if let Ok(listeners) = listeners.try_into() {
            return (site, listeners);
        }
    }
}

#[test]
fn an_answer_that_is_none_is_an_error_and_one_that_leads_inside_is_refused() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let forbidden = Forbidden::listen("127.0.0.2:0");
        let dns = Dns::start().await;
        let granted = [format!("{NAME}:{}", site.port()), format!("{NAME}:{}", forbidden.address().port())];
        let mut way = Way::to(&granted).opening(&site).resolver(&dns);
        way.config.connect_timeout_ms = 400;
        let call = way.open();
        let many: Vec<String> = (0..2_000).map(|number| format!("10.0.{}.{}", number / 250, number % 250)).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        let public_garbage = [&b"\0\x01\x81\x80\0\x01\xff\xff\0\0\0\0"[..], &[0xc0; 500]].concat();
        let url = site.url_as(NAME, "/");
        for (what, answer, expected) in [
            ("an address", Answer::addresses(&["127.0.0.1"]), "200"),
            ("an alias", Answer::alias(&["alias.test", "another.alias.test"], &["127.0.0.1"]), "200"),
            ("over TCP", Answer::Truncated(parse(&["127.0.0.1"])), "200"),
            ("no such name", Answer::NoSuchName, "unresolved"),
            ("a failure", Answer::Failure, "unresolved"),
            ("no addresses", Answer::addresses(&[]), "unresolved"),
            ("silence", Answer::Silence, "timeout"),
            ("nothing", Answer::Garbage(Vec::new()), "timeout"),
            ("garbage", Answer::Garbage(vec![0xff; 4_000]), "timeout"),
            ("garbage that begins well", Answer::Garbage(public_garbage), "timeout"),
            ("another name's", Answer::OfAnother(parse(&["127.0.0.1"])), "unresolved"),
            ("another query's", Answer::OtherId(parse(&["127.0.0.1"])), "timeout"),
            ("private", Answer::addresses(&["10.0.0.1"]), "blocked private_address"),
            ("not on the list", Answer::addresses(&["127.0.0.2"]), "blocked private_address"),
            ("an alias of a private one", Answer::alias(&["public.test"], &["192.168.1.1"]), "blocked private_address"),
            ("a loop", Answer::alias(&["a.test", "b.test", "a.test"], &[]), "unresolved"),
            ("itself", Answer::alias(&[NAME], &[]), "unresolved"),
            ("thousands", Answer::addresses(&many), "blocked private_address"),
        ] {
            dns.set(NAME, std::slice::from_ref(&answer));
            let before = site.requests().len();
            let asked = get(&call, &url).await;
            check(&asked, expected, what);
            let arrived = usize::from(asked.verdict() == "200");
            assert_eq!(site.requests().len(), before + arrived, "{what}");
            if !matches!(answer, Answer::Silence | Answer::Failure | Answer::Garbage(_) | Answer::OtherId(_)) {
                let most = match &answer {
                    // Too long for a datagram: asked for again over TCP.
                    Answer::Truncated(_) => 2,
                    Answer::Addresses(addresses) if addresses.len() > 100 => 2,
                    // A name that leads on is followed, and not for ever.
                    Answer::Alias(_, addresses) if addresses.is_empty() => 16,
                    _ => 1,
                };
                let times = dns.look_ups(NAME);
                assert!((1..=most).contains(&times), "{what}: {times} look-ups");
            }
        }
        forbidden.untouched();
    });
}

#[test]
fn a_name_opens_no_address_of_the_owners_list_by_itself() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("inside"));
        let dns = Dns::start().await.with(NAME, &[Answer::addresses(&["127.0.0.1"])]);
        let (port, url) = (site.port(), site.url_as(NAME, "/"));
        for granted in [
            &[format!("{NAME}:{port}")][..],
            &[format!("{NAME}:{port}"), format!("*:{port}")],
            &[format!("{NAME}:{port}"), format!("127.0.0.2:{port}")],
            &[format!("{NAME}:{port}"), "127.0.0.1".to_owned()],
        ] {
            let call = Way::to(granted).private(&site).resolver(&dns).open();
            let blocked = get(&call, &url).await.blocked();
            assert_eq!(blocked.rule, network::Rule::PrivateAddress, "{granted:?}");
            // The guest does not learn the inside address behind the name; the owner does.
            assert!(!format!("{blocked:?}").contains(&site.address().to_string()), "{granted:?}: {blocked:?}");
            let told = call.traces()[0].error.clone().unwrap();
            assert!(told.contains(&site.address().to_string()), "{granted:?}: {told}");
        }
        assert_eq!(site.connections(), 0);
        // By a pattern for the name the address stays closed, though it was granted itself.
        let call = Way::to(&[format!("*:{port}")]).opening(&site).resolver(&dns).open();
        check(&get(&call, &url).await, "blocked private_address", "by `*`");
        check(&get(&call, &site.url("/")).await, "200", "the address itself");
        let call = Way::to(&[format!("{NAME}:{port}")]).opening(&site).resolver(&dns).open();
        check(&get(&call, &url).await, "200", "both granted");
    });
}

#[test]
fn a_name_that_changes_between_look_ups_gets_nowhere_by_it() {
    block_on(async {
        let (site, [forbidden]) = site_beside(["127.0.0.2"]).await;
        let site = site.with("/", Reply::text("first"));
        let dns = Dns::start().await;
        let call = Way::to(&[format!("{NAME}:{}", site.port())]).opening(&site).resolver(&dns).open();
        let (good, bad) = (Answer::addresses(&["127.0.0.1"]), Answer::addresses(&["127.0.0.2"]));
        let url = site.url_as(NAME, "/");
        // A gate that looked up twice for one request would connect to the second.
        dns.set(NAME, &[good.clone(), bad.clone(), good.clone(), bad]);
        check(&get(&call, &url).await, "200", "before");
        assert_eq!(dns.look_ups(NAME), 1);
        for (number, expected) in ["blocked private_address", "200", "blocked private_address"].into_iter().enumerate()
        {
            check(&get(&call, &url).await, expected, "after");
            assert_eq!(dns.look_ups(NAME), number + 2);
        }
        assert_eq!(site.requests().len(), 2);
        forbidden.untouched();
    });
}

#[test]
fn one_bad_address_among_good_ones_spoils_the_answer() {
    block_on(async {
        let (site, forbidden) = site_beside(["127.0.0.2", "127.0.0.3"]).await;
        let site = site.with("/", Reply::text("ok"));
        let port = site.port();
        let dns = Dns::start().await;
        let call = Way::to(&[format!("{NAME}:{port}")]).opening(&site).resolver(&dns).open();
        for addresses in [
            &["127.0.0.1", "127.0.0.2"][..],
            &["127.0.0.2", "127.0.0.1"],
            &["127.0.0.2", "127.0.0.1", "127.0.0.3"],
            &["127.0.0.1", "::1"],
            &["::1", "127.0.0.1"],
            &["::ffff:127.0.0.2", "127.0.0.1"],
        ] {
            dns.set(NAME, &[Answer::addresses(addresses)]);
            let asked = get(&call, &site.url_as(NAME, "/")).await;
            check(&asked, "blocked private_address", &format!("{addresses:?}"));
        }
        for forbidden in forbidden {
            forbidden.untouched();
        }
    });
}

#[test]
fn a_resolver_that_was_set_is_the_only_one_asked() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let dns = Dns::start().await;
        let port = site.port();
        // A name that the machine itself knows, and one that is single: neither is looked up elsewhere or completed.
        let granted = [format!("localhost:{port}"), format!("single:{port}")];
        let mut way = Way::to(&granted).opening(&site).resolver(&dns);
        way.config.connect_timeout_ms = 1_000;
        let call = way.open();
        check(&get(&call, &site.url_as("single", "/")).await, "unresolved", "single");
        // `::1`, which the machine has for it too, is not on the list.
        check(&get(&call, &site.url_as("localhost", "/")).await, "blocked private_address", "localhost");
        assert!(dns.names().iter().all(|name| name == "single" || name == "localhost"), "{:?}", dns.names());
    });
}
