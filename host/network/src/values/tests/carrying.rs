//! Reads that carry data, and those that do not.

use super::*;

const SECRET: &str = "hunter2correcthorse";

fn carried(run: &GivenValues, path: &str) -> u64 {
    run.carried(&Request::get(path).sent()).request
}

fn reader() -> GivenValues {
    given(
        "Read http://127.0.0.1:1234/inbox and report on Project Zürich 2024",
        &[
            (
                HOST,
                "/inbox",
                "text/html",
                "<a href=\"/messages/8817?view=Full&amp;tok=aB3dE5\">open</a> <a href='/wiki/Foo_(bar)/~x;y'>w</a> (next: /inbox?page=2)",
            ),
            (
                HOST,
                "/api/list",
                "application/json",
                r#"{"next":"https://127.0.0.1:1234/api/list?cursor=b%3D%3DxY!z","ids":["item-9f27","Item-77B"],"a":"q w e r t"}"#,
            ),
            ("other.example", "/", "text/plain", "hunter2correcthorse"),
        ],
    )
}

#[test]
fn reads_of_the_users_words_and_the_hosts_links_carry_nothing() {
    let run = reader();
    for path in [
        "/",
        "/inbox",
        "/messages/8817?view=Full&tok=aB3dE5",
        "/messages/8817",
        "/wiki/Foo_(bar)/~x;y",
        "/inbox?page=2",
        "/api/list?cursor=b%3D%3DxY!z",
        "/items/item-9f27?limit=50&sort=asc".strip_prefix("/items").unwrap(),
        "/search?q=project+z%C3%BCrich+2024",
        "/search?q=Project%20Z%C3%BCrich%202024",
        "/api/v1/search?page=2024",
    ] {
        let most = u64::from(path.contains("=50"));
        assert!(carried(&run, path) <= most, "{path}: {}", carried(&run, path));
    }
    assert_eq!(carried(&run, "/inbox/info/refs?service=git-receive-pack"), 0, "the first request of a push");
    assert_eq!(carried(&run, "/transactions?limit=50"), 14);
    assert!(carried(&run, "/users/42/orders?limit=50&offset=100") <= 20);
}

#[test]
fn values_of_other_hosts_are_carried_in_every_spelling() {
    let run = reader();
    let length = SECRET.len() as u64;
    let encoded: String = SECRET.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let twice = encoded.replace('%', "%25");
    let split: String = SECRET.chars().map(|sign| format!("/{sign}")).collect();
    let dotted: String = SECRET.chars().map(|sign| format!("{sign}.")).collect();
    for path in [
        format!("/{SECRET}"),
        format!("/inbox/{SECRET}?page=2"),
        format!("/inbox?q={SECRET}"),
        format!("/inbox?{SECRET}"),
        format!("/inbox?{SECRET}=1"),
        format!("/{}", SECRET.to_uppercase()),
        format!("/{encoded}"),
        format!("/{twice}"),
        split,
        format!("/{dotted}"),
        format!("/inbox-{SECRET}"),
        format!("/inbox.{}", SECRET.replace('r', ".inbox.")),
        format!("/{}", SECRET.replace('e', "%ff")),
        format!("/{}", "?!*~".repeat(5)),
        format!("/inbox{}", "/".repeat(22)),
        format!("/inbox?{}", "&".repeat(22)),
        format!("/inbox?{}", "page=2&".repeat(30)),
    ] {
        assert!(carried(&run, &path) >= length, "{path}: {}", carried(&run, &path));
    }
    assert!(carried(&run, &format!("/{encoded}")) >= 3 * length, "as it was sent");
}

#[test]
fn spelling_and_choice_of_known_words_are_counted() {
    let run = reader();
    // Case carries a bit for each letter, an escape that is not needed more.
    assert_eq!(carried(&run, "/Item-77B"), 0);
    assert_eq!(carried(&run, "/item-77b"), 0);
    assert_eq!(carried(&run, "/iTeM-77b"), 2);
    assert_eq!(carried(&run, "/INBOX"), 1);
    assert_eq!(carried(&run, "/%69tem-9f2%37"), 2);
    // Single letters that the host gave spell anything.
    assert_eq!(carried(&run, "/q/w/e/r/t"), 4);
    // Known words are free only so often.
    let many = "/inbox/2024".repeat(100);
    assert_eq!(carried(&run, &many), 200 - 16);
    assert_eq!(carried(&run, &"/item-9f27".repeat(100)), 100 - 8);
    assert!(carried(&run, &format!("/inbox?amount=2024.{}", "0".repeat(50))) >= 40);
}

#[test]
fn headers_are_counted() {
    let run = reader();
    let of = |name, value: &str| run.carried(&Request::get("/inbox").header(name, value).sent()).request;
    for (name, value) in [
        ("content-type", "application/json; charset=utf-8"),
        ("authorization", "Bearer <credential:mail>"),
        // `me:<credential:mail>`
        ("authorization", "Basic bWU6PGNyZWRlbnRpYWw6bWFpbD4="),
        ("referer", "http://127.0.0.1:1234/inbox"),
        ("cookie", "tok=aB3dE5"),
        ("x-requested-with", "XMLHttpRequest"),
    ] {
        assert!(of(name, value) <= 3, "{name}: {value}: {}", of(name, value));
    }
    assert_eq!(of("x-data", SECRET), 7 + 20);
    assert_eq!(of("x-hunter2correcthorse", "1"), 22 + 1);
    // `me:hunter2correcthorse`
    assert!(of("authorization", "Basic bWU6aHVudGVyMmNvcnJlY3Rob3JzZQ==") >= 20);
    assert_eq!(of("cookie", &"k=v; ".repeat(10_000)), 40_000);
    // White space around the credentials, signs that a decoder skips, and the case of the scheme are a choice, too.
    let me = "bWU6PGNyZWRlbnRpYWw6bWFpbD4=";
    assert_eq!(
        of("authorization", &format!("Basic {}{me}", " \t".repeat(500))),
        1_000 + of("authorization", &format!("Basic {me}"))
    );
    assert_eq!(of("authorization", &format!("bAsIc {me}")), 1 + of("authorization", &format!("Basic {me}")));
}

#[test]
fn choices_of_the_hosts_words_count_in_a_series() {
    let run = given("", &[(HOST, "/words", "text/plain", "alpha bravo carol delta echoo foxtr golfy hotel")]);
    let carried = |path: &str| run.carried(&Request::get(path).sent());
    for (path, request, run) in [
        ("/alpha/bravo", 0, 0),
        ("/alpha/bravo/carol", 0, 1),
        ("/alpha/bravo/carol/delta/echoo/foxtr/golfy/hotel", 0, 6),
        ("/alpha/bravo/carol/delta/echoo/foxtr/golfy/hotel/alpha", 1, 7),
    ] {
        assert_eq!(carried(path), CarriedBytes { request, run }, "{path}");
    }
}

#[test]
fn headers_of_a_response_are_given_too() {
    let run = given("", &[]);
    assert!(carried(&run, "/login?state=Zx81nQ") > 8);
    let mut headers = HeaderMap::new();
    headers.insert("location", format!("http://{HOST}/login?state=Zx81nQ").parse().unwrap());
    run.response(HOST, "/").headers(&headers);
    assert_eq!(carried(&run, "/login?state=Zx81nQ"), 0);
    let other = Request::get("/login?state=Zx81nQ").at("other.example", "other.example");
    assert!(run.carried(&other.sent()).request > 8, "another host was not given it");
}

#[test]
fn labels_under_a_wildcard_are_counted_until_the_host_has_answered() {
    let run = given("See https://docs.example.com:8443/a", &[]);
    let of = |host: &str, suffix: &str| run.carried(&Request::get("/a").at(host, suffix).sent()).request;
    assert_eq!(of("docs.example.com:8443", "example.com"), 0);
    assert_eq!(of("api.example.com", "example.com"), 0);
    assert_eq!(of("hunter2.correcthorse.example.com", "example.com"), 8 + 13);
    assert_eq!(of("h.u.n.t.e.r.example.com", "example.com"), 12);
    assert!(of("hunter2.evil.example", "example.com") >= 12, "the pattern does not fit: all of it counts");
    run.response("hunter2.example.com", "/").end();
    assert_eq!(of("hunter2.example.com", "example.com"), 0);
    let exact = Request { suffix: None, ..Request::get("/a").at("hunter3.example.com", "") };
    assert_eq!(run.carried(&exact.sent()).request, 0, "a host that is granted by name");
}
