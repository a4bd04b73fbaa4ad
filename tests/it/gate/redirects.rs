//! A redirect is a response like any other: following it is a new request, checked like the first.

use tests::block_on;
use tests::network::{Answer, Dns, Forbidden, Reply, Site};

use super::{Request, Way, check, get};

#[test]
fn a_redirect_leads_nowhere_that_was_not_granted() {
    block_on(async {
        let site = Site::start().await.with("/there", Reply::text("there"));
        let other = Site::start().await.with("/", Reply::text("other"));
        let forbidden = Forbidden::listen("127.0.0.1:0");
        let dns = Dns::start()
            .await
            .with("start.test", &[Answer::addresses(&["127.0.0.1"])])
            .with("inside.test", &[Answer::addresses(&["127.0.0.1"])])
            .with("metadata.test", &[Answer::addresses(&["169.254.169.254"])])
            .with("other.test", &[Answer::addresses(&["127.0.0.1"])]);
        let (port, bad) = (site.port(), forbidden.address().port());
        let granted = [format!("start.test:{port}"), format!("inside.test:{bad}"), format!("*:{bad}"), "*".to_owned()];
        let call = Way::to(&granted).opening(&site).private(&other).resolver(&dns).open();
        for (location, expected) in [
            ("/there".to_owned(), "200"),
            (format!("http://start.test:{port}/there"), "200"),
            (format!("HTTP://START.TEST.:{port}/there"), "200"),
            (format!("http://127.0.0.1:{bad}/"), "blocked private_address"),
            (format!("http://[::1]:{bad}/"), "blocked private_address"),
            (format!("http://[::ffff:127.0.0.1]:{bad}/"), "blocked private_address"),
            ("http://169.254.169.254/latest/meta-data/".to_owned(), "blocked private_address"),
            ("http://[fd00:ec2::254]/latest/meta-data/".to_owned(), "blocked private_address"),
            ("http://10.0.0.1/".to_owned(), "blocked private_address"),
            ("http://172.16.0.1/".to_owned(), "blocked private_address"),
            ("http://192.168.0.1/".to_owned(), "blocked private_address"),
            (format!("http://0.0.0.0:{bad}/"), "blocked private_address"),
            (format!("http://0:{bad}/"), "blocked private_address"),
            (format!("http://2130706433:{bad}/"), "blocked private_address"),
            (format!("http://0x7f000001:{bad}/"), "blocked private_address"),
            (format!("http://0177.0.0.1:{bad}/"), "blocked private_address"),
            (format!("http://inside.test:{bad}/"), "blocked private_address"),
            ("http://metadata.test/".to_owned(), "blocked private_address"),
            (format!("http://other.test:{}/", other.port()), "blocked port_not_allowed"),
            (format!("http://user@start.test:{port}/there"), "blocked userinfo"),
            ("file:///etc/passwd".to_owned(), "blocked scheme"),
            (format!("gopher://127.0.0.1:{bad}/_GET"), "blocked scheme"),
            ("ftp://start.test/".to_owned(), "blocked scheme"),
        ] {
            for status in [301, 302, 303, 307, 308] {
                site.route("/go", Reply::redirect_as(status, &location));
                let answer = get(&call, &site.url_as("start.test", "/go")).await.answer();
                assert_eq!((answer.status, answer.header("location")), (status, Some(location.clone())));
            }
            // A client that follows does the same.
            let next = if location.starts_with('/') { site.url_as("start.test", &location) } else { location.clone() };
            check(&get(&call, &next).await, expected, &location);
        }
        forbidden.untouched();
        assert_eq!(other.connections(), 0);
    });
}

#[test]
fn a_credential_does_not_follow_to_another_origin() {
    block_on(async {
        let site = Site::start().await;
        let other = Site::start().await.with("/take", Reply::text("taken"));
        site.route("/go", Reply::redirect(&other.url("/take")));
        let both = [site.address().to_string(), other.address().to_string()];
        let call =
            Way::to(&both).private(&site).private(&other).credential("key", "s3cret-0123456789", &both[..1]).open();
        let headers = &[("authorization", "Bearer <credential:key>")];
        let url = site.url("/go");
        let answer = Request { url: &url, headers, ..Request::default() }.ask(&call).await.answer();
        assert_eq!(site.last_request().header("authorization").as_deref(), Some("Bearer s3cret-0123456789"));
        let location = answer.header("location").unwrap();
        // A client that keeps its headers, as some do.
        let asked = Request { url: &location, headers, ..Request::default() }.ask(&call).await;
        check(&asked, "blocked credential_not_for_domain", &location);
        assert_eq!(other.connections(), 0);
        get(&call, &location).await.answer();
        assert_eq!(other.last_request().header("authorization"), None);
    });
}
