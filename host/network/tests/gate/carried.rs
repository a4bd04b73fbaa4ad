//! Reads that carry data out, after a run has read from the web (SPEC TAINT-1).

use network::{NetworkConfig, Policy, Rule, RunNetwork, TaintedWrite, WebSource};

use crate::dns::Dns;
use crate::server::Server;
use crate::setup::{LIMITS, Setup, blocked, get};

/// So many bytes that neither a user nor a host gave.
fn data(bytes: usize) -> String {
    format!("q{}", "7f3a9c51e2".repeat(60).chars().take(bytes - 1).collect::<String>())
}

fn tainted(setup: Setup) -> RunNetwork {
    let run = setup.run();
    run.taint().add(WebSource { host: "evil.example".to_owned() });
    run
}

#[tokio::test]
async fn a_read_carries_a_bounded_number_of_bytes() {
    let server = Server::ok("hello").await;
    let run = tainted(Setup::default().reaching(server.address));
    let call = run.call(LIMITS);
    let url = |bytes: usize| server.url(&format!("/search?{}", data(bytes)));
    assert_eq!(get(&call, &server.url("/search")).await.unwrap(), "hello");
    assert_eq!(get(&call, &url(12)).await.unwrap(), "hello");
    let refused = blocked(get(&call, &url(200)).await);
    assert_eq!(refused.rule, Rule::CarriedData);
    let class = format!("GET {}/search", server.address);
    assert!(refused.remedy.contains(&class) && refused.remedy.contains("carried_bytes"), "{}", refused.remedy);
    let asked = &call.asked()[0];
    assert_eq!((asked.class.to_string(), asked.url.as_str()), (class, url(200).as_str()));
    assert_eq!(server.requests().len(), 2);

    // Asked once for the shape.
    run.change(Policy { run: vec![asked.allowed.clone()], ..Policy::clone(&run.policy()) });
    assert!(get(&call, &url(200)).await.is_ok() && get(&call, &url(300)).await.is_ok());
    assert_eq!(blocked(get(&call, &server.url(&format!("/other?{}", data(200)))).await).rule, Rule::CarriedData);
}

#[tokio::test]
async fn before_it_has_read_and_when_writes_pass_a_run_reads_as_it_likes() {
    let server = Server::ok("hello").await;
    let url = server.url(&format!("/?{}", data(400)));
    let run = Setup::default().reaching(server.address).run();
    assert!(get(&run.call(LIMITS), &url).await.is_ok());
    assert_eq!(blocked(get(&run.call(LIMITS), &url.replace("7f", "8f")).await).rule, Rule::CarriedData);
    run.change(Policy { tainted_write: TaintedWrite::Allow, ..Policy::clone(&run.policy()) });
    assert!(get(&run.call(LIMITS), &url).await.is_ok());
    // The bounds are the owner's.
    let config = NetworkConfig { carried_bytes: 1_000, carried_bytes_per_run: 1_000, ..NetworkConfig::default() };
    let run = tainted(Setup::with(config).reaching(server.address));
    assert!(get(&run.call(LIMITS), &url).await.is_ok());
}

#[tokio::test]
async fn the_reads_of_a_run_are_bounded_together_and_counted_when_they_leave() {
    let (server, other) = (Server::ok("hello").await, Server::ok("hello").await);
    let dead = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let config = NetworkConfig { carried_bytes_per_run: 100, ..NetworkConfig::default() };
    let setup = Setup::with(config).reaching(server.address).reaching(other.address).reaching(dead);
    let run = tainted(setup);
    let url = |number: usize| server.url(&format!("/{number}?{}", data(20)));
    // A request that does not leave is not counted.
    for number in 0..10 {
        assert!(get(&run.call(LIMITS), &format!("http://{dead}/{number}?{}", data(20))).await.is_err());
    }
    let mut passed = 0;
    while get(&run.call(LIMITS), &url(passed)).await.is_ok() {
        passed += 1;
        assert!(passed <= 5, "more than 100 bytes left");
    }
    assert!(passed > 0);
    let call = run.call(LIMITS);
    let refused = blocked(get(&call, &url(passed)).await);
    assert!(refused.remedy.contains("carried_bytes_per_run"), "{}", refused.remedy);
    assert_eq!(server.requests().len(), passed);
    assert!(get(&call, &server.url("/free")).await.is_ok(), "what carries nothing passes");
    // With consent it leaves, and uses up nothing of the bound.
    let asked = call.asked();
    let leases = vec![asked[0].hash];
    let consented = run.with_consents(network::CallConsents { leases, ..Default::default() }).call(LIMITS);
    assert!(get(&consented, &url(passed)).await.is_ok());
}

#[tokio::test]
async fn of_two_reads_at_once_that_fit_one_by_one_only_one_leaves() {
    let server = Server::ok("hello").await;
    let config = NetworkConfig { carried_bytes_per_run: 30, ..NetworkConfig::default() };
    let run = tainted(Setup::with(config).reaching(server.address));
    let call = run.call(LIMITS);
    let url = |number: usize| server.url(&format!("/{number}?{}", data(24)));
    let urls = [url(1), url(2)];
    let (one, other) = tokio::join!(get(&call, &urls[0]), get(&call, &urls[1]));
    assert_eq!((one.is_ok() as usize) + (other.is_ok() as usize), 1);
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_host_that_only_a_wildcard_grants_is_told_less() {
    let dns = Dns::answering(&[&["127.0.0.1"]]).await;
    for (patterns, rule) in [
        (&["*.site.example"][..], Rule::CarriedData),
        (&["*"], Rule::CarriedData),
        // Named, it may be told so much: it is refused for its address only, which is not public.
        (&["*", "a.site.example"], Rule::PrivateAddress),
    ] {
        let run = tainted(Setup::default().domains(patterns).dns(&dns));
        let refused = blocked(get(&run.call(LIMITS), &format!("http://a.site.example/?{}", data(20))).await);
        assert_eq!(refused.rule, rule, "{patterns:?} {}", refused.reason);
    }
}
