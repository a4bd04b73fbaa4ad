//! A run that has read from the web, and the places where it may write after that (SPEC TAINT-1).

use network::{Taint, TaintedWrite, WebSource};
use tests::block_on;
use tests::network::{Reply, Site};

use super::{Request, Way, check, post};

/// A run that has read a page.
fn tainted(site: &Site, rule: TaintedWrite) -> Way {
    let mut way = Way::to_site(site).tainted_write(rule);
    way.taint = Taint::of(vec![WebSource { host: "evil.example".to_owned() }]);
    way
}

/// A run that has read nothing yet.
fn untainted(site: &Site) -> Way {
    Way::to_site(site).tainted_write(TaintedWrite::Deny)
}

#[test]
fn a_run_that_has_read_from_the_web_writes_only_where_the_owner_said() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let url = &site.url("/");
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let request = Request { method, url, body: "the file", ..Request::default() };
            for rule in [TaintedWrite::Ask, TaintedWrite::Deny] {
                let blocked = request.clone().ask(&tainted(&site, rule).open()).await.blocked();
                assert_eq!(blocked.rule, network::Rule::TaintedWrite, "{method}");
                // The cause and the remedy.
                assert!(blocked.reason.contains("evil.example"), "{blocked:?}");
                assert!(!blocked.remedy.is_empty(), "{blocked:?}");
            }
            assert_eq!(site.connections(), 0, "{method}");
        }
        for method in ["POST", "PUT", "PATCH", "DELETE"] {
            let request = Request { method, url, body: "the file", ..Request::default() };
            check(&request.clone().ask(&tainted(&site, TaintedWrite::Allow).open()).await, "200", "`allow`");
            check(&request.clone().ask(&untainted(&site).open()).await, "200", "nothing read");
            let mut way = tainted(&site, TaintedWrite::Deny);
            way.policy.writes = vec![site.address().to_string().parse().unwrap()];
            check(&request.clone().ask(&way.open()).await, "200", "approved before");
            let mut way = tainted(&site, TaintedWrite::Deny);
            way.policy.writes = vec!["other.example".parse().unwrap()];
            check(&request.ask(&way.open()).await, "blocked tainted_write", "another approved");
        }
        assert_eq!(site.requests().len(), 12);
        for method in ["GET", "HEAD", "OPTIONS"] {
            let request = Request { method, url, ..Request::default() };
            check(&request.ask(&tainted(&site, TaintedWrite::Deny).open()).await, "200", "reading goes on");
        }
    });
}

#[test]
fn a_request_with_a_credential_is_a_write_whatever_its_method() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let domains = [site.address().to_string()];
        let with_key = |way: Way| way.credential("key", "s3cret-0123456789", &domains).open();
        let headers = &[("authorization", "Bearer <credential:key>")];
        let request = Request { url: &site.url("/"), headers, ..Request::default() };
        for rule in [TaintedWrite::Ask, TaintedWrite::Deny] {
            let asked = request.clone().ask(&with_key(tainted(&site, rule))).await;
            check(&asked, "blocked tainted_write", "with a credential");
        }
        let in_url = site.url("/?key=%3Ccredential:key%3E");
        let asked =
            Request { url: &in_url, ..Request::default() }.ask(&with_key(tainted(&site, TaintedWrite::Deny))).await;
        check(&asked, "blocked tainted_write", "in the URL");
        assert_eq!(site.connections(), 0);
        check(&request.clone().ask(&with_key(tainted(&site, TaintedWrite::Allow))).await, "200", "`allow`");
        check(&request.ask(&with_key(untainted(&site))).await, "200", "nothing read");
    });
}

#[test]
fn a_write_is_checked_again_when_something_has_been_read_since() {
    block_on(async {
        let site = Site::start().await.with("/", Reply::text("ok"));
        let way = untainted(&site);
        let limits = way.limits.clone();
        let run = way.run();
        let call = run.call(limits);
        run.taint().add(WebSource { host: "evil.example".to_owned() });
        check(&post(&call, &site.url("/"), "a").await, "blocked tainted_write", "after");
        assert_eq!(call.last_refusal().unwrap().rule, network::Rule::TaintedWrite);
        assert_eq!(site.connections(), 0);

        // A server's answer counts as read, for requests of any kind.
        let way = untainted(&site);
        let limits = way.limits.clone();
        let run = way.run();
        check(&post(&run.call(limits.clone()), &site.url("/"), "a").await, "200", "before");
        assert_eq!(run.taint().sources(), [WebSource { host: "127.0.0.1".to_owned() }]);
        let blocked = post(&run.call(limits), &site.url("/"), "a").await.blocked();
        assert!(blocked.reason.contains("127.0.0.1"), "{blocked:?}");
        assert_eq!(site.requests().len(), 1);
    });
}
