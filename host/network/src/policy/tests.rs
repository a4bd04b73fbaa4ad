//! Requests that the policy lets pass, and requests that need consent.

use crate::{Excess, GivenValues};

use super::*;

fn patterns(texts: &[&str]) -> Vec<Pattern> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

fn target(url: &str) -> Target {
    Target::parse(url).unwrap()
}

#[test]
fn the_first_rule_that_fits_decides() {
    let policy = Policy {
        domains: patterns(&["api.example.com", "*.example.com", "*.example.org:8443", "127.0.0.1:8080"]),
        refused: patterns(&["bad.example.com", "half.example.com:443"]),
        ..Policy::default()
    };
    for (url, grant) in [
        ("https://api.example.com/", Grant::Exact),
        ("http://a.example.com/", Grant::Wide),
        ("https://a.example.org:8443/", Grant::Wide),
        ("http://127.0.0.1:8080/", Grant::Exact),
        ("http://half.example.com/", Grant::Wide),
    ] {
        assert_eq!(policy.decide(&target(url)), Ok(grant), "{url}");
    }
    for (url, rule, asked, says) in [
        ("https://bad.example.com/", Rule::DomainRefused, "bad.example.com", "the owner refused"),
        ("https://bad.example.com:99/", Rule::DomainRefused, "bad.example.com:99", "the owner refused"),
        ("https://half.example.com/", Rule::DomainRefused, "half.example.com", "the owner refused"),
        ("https://api.example.com:22/", Rule::PortNotAllowed, "api.example.com:22", "`*.example.com`"),
        ("https://a.example.org/", Rule::PortNotAllowed, "a.example.org", "`*.example.org:8443`"),
        ("http://127.0.0.1/", Rule::PortNotAllowed, "127.0.0.1", "`127.0.0.1:8080`"),
        ("https://example.com/", Rule::DomainNotAllowed, "example.com", "granted: `api.example.com`"),
        ("https://a.example.com.evil.org/", Rule::DomainNotAllowed, "a.example.com.evil.org", "granted"),
    ] {
        let blocked = policy.decide(&target(url)).expect_err(url);
        assert_eq!((blocked.rule, blocked.asked.as_str()), (rule, asked), "{url}");
        assert!(blocked.reason.contains(says), "{url}: {}", blocked.reason);
        let names_next_step = blocked.remedy == format!("ask the user for access to `{asked}`");
        assert_eq!(names_next_step, rule != Rule::DomainRefused, "{url}: {}", blocked.remedy);
    }
    let nothing = Policy::default().decide(&target("https://example.com/")).unwrap_err();
    assert_eq!(nothing.reason, "`example.com` was not granted to this run; no domain was");
}

#[test]
fn what_would_be_granted_is_a_pattern() {
    for url in
        ["https://example.com/", "http://example.com:443/", "https://example.com:8443/", "http://[2001:db8::1]:81/"]
    {
        let blocked = Policy::default().decide(&target(url)).unwrap_err();
        let policy = Policy { domains: patterns(&[&blocked.asked]), ..Policy::default() };
        assert_eq!(policy.decide(&target(url)), Ok(Grant::Exact), "{url}");
    }
}

#[test]
fn a_message_names_some_patterns_and_counts_the_rest() {
    let texts: Vec<String> = (0..20).map(|number| format!("h{number}.example.com")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let policy = Policy { domains: patterns(&texts), ..Policy::default() };
    let reason = policy.decide(&target("https://a.example/")).unwrap_err().reason;
    assert!(reason.ends_with("`h7.example.com` and 12 more"), "{reason}");
}

fn shapes(texts: &[&str]) -> Vec<Shape> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

/// A request `METHOD URL`.
fn unit(request: &str, credentials: &[&str]) -> Unit {
    let (method, url) = request.split_once(' ').unwrap();
    let mut unit = Unit::new(method.parse().unwrap(), target(url), http::HeaderMap::new(), bytes::Bytes::new());
    unit.credentials = credentials.iter().map(|name| base::CredentialName::parse(name).unwrap()).collect();
    unit
}

const EXCESS: Excess = Excess { bytes: 57, most: 32, setting: "carried_bytes" };

/// The decision for a run that has read from these hosts.
fn decide(policy: &Policy, unit: &Unit, read: &[&str], excess: Option<Excess>) -> Result<(), Box<Needed>> {
    let sources: Vec<WebSource> = read.iter().map(|host| WebSource { host: (*host).to_owned() }).collect();
    let seen = Seen { sources: &sources, given: &GivenValues::default(), excess };
    policy.decide_unit(unit, &seen)
}

const POST: &str = "POST https://sink.example.com/transfers";
const KEYED: &str = "GET https://mail.example.com/inbox";
const READ: &str = "GET https://docs.example.com/search?q=secret";

#[test]
fn writes_after_reading_need_the_owner() {
    let post = unit(POST, &[]);
    for (setting, writes, read) in [
        (TaintedWrite::Ask, &[][..], &[][..]),
        (TaintedWrite::Deny, &[], &[]),
        (TaintedWrite::Allow, &[], &["evil.example"]),
        (TaintedWrite::Ask, &["sink.example.com"], &["evil.example"]),
        (TaintedWrite::Ask, &["POST sink.example.com/transfers"], &["evil.example"]),
        (TaintedWrite::Deny, &["POST *.example.com/*"], &["evil.example"]),
        (TaintedWrite::Deny, &["*.example.com"], &["evil.example"]),
    ] {
        let policy = Policy { writes: shapes(writes), tainted_write: setting, ..Policy::default() };
        assert_eq!(decide(&policy, &post, read, None), Ok(()), "{setting:?} {writes:?} {read:?}");
    }
    for (setting, writes, remedy) in [
        (
            TaintedWrite::Ask,
            &[][..],
            "the owner allows it with `motor network allow 'POST sink.example.com/transfers' --writes`",
        ),
        (TaintedWrite::Ask, &["other.example.com", "sink.example.com:8443"], "the owner allows it"),
        (TaintedWrite::Ask, &["PUT sink.example.com/transfers", "GET sink.example.com/transfers"], "the owner allows"),
        (TaintedWrite::Ask, &["POST sink.example.com/transfers/*"], "the owner allows it"),
        (TaintedWrite::Deny, &[], "give the result back"),
    ] {
        let policy = Policy { writes: shapes(writes), tainted_write: setting, ..Policy::default() };
        let Needed { blocked, class } = *decide(&policy, &post, &["evil.example", "b.example"], None).unwrap_err();
        assert_eq!((blocked.rule, blocked.asked.as_str()), (Rule::TaintedWrite, "sink.example.com"));
        assert!(blocked.reason.contains("`POST` to `sink.example.com`"), "{}", blocked.reason);
        assert!(blocked.reason.ends_with("from `evil.example`, `b.example`"), "{}", blocked.reason);
        assert!(blocked.remedy.starts_with(remedy), "{}", blocked.remedy);
        let asks = setting == TaintedWrite::Ask;
        assert!(asks || !blocked.remedy.contains("motor"));
        assert_eq!(class.is_some(), asks, "only what can be allowed is asked about");
    }
}

#[test]
fn a_remedy_is_one_word_of_a_shell_and_never_the_whole_host() {
    let ask = Policy::default();
    for (request, credentials, excess, command) in [
        (POST, &["key"][..], None, "'POST sink.example.com/transfers'"),
        ("POST https://a.example:8443/it's;$(id)", &[], None, r"'POST a.example:8443/it'\''s;$(id)'"),
        (KEYED, &["key", "other"], None, "'GET mail.example.com with key+other'"),
        (READ, &[], Some(EXCESS), "'GET docs.example.com/search'"),
        (KEYED, &["key"], Some(EXCESS), "'GET mail.example.com/inbox with key'"),
    ] {
        let blocked = decide(&ask, &unit(request, credentials), &["a.example"], excess).unwrap_err().blocked;
        let expected = format!("`motor network allow {command} --writes`");
        assert!(blocked.remedy.contains(&expected), "{request}: {}", blocked.remedy);
    }
    // A path that servers read in different ways cannot be allowed: the model is told to write another.
    let needed = decide(&ask, &unit("POST https://a.example/b/../c", &[]), &["a.example"], None).unwrap_err();
    assert!(needed.class.is_none() && needed.blocked.remedy.contains("without `//`"), "{needed:?}");
}

#[test]
fn a_keyed_read_is_no_write_and_a_write_no_keyed_read() {
    let (post, keyed) = (unit(POST, &["key"]), unit(KEYED, &["key"]));
    let ask = |writes: &[&str]| Policy { writes: shapes(writes), ..Policy::default() };
    for (writes, write_passes, read_passes) in [
        (&[][..], false, false),
        (&["GET mail.example.com with key"], false, true),
        (&["GET sink.example.com with key"], false, false),
        (&["GET mail.example.com"], false, false),
        (&["GET mail.example.com with other"], false, false),
        (&["POST sink.example.com/transfers"], true, false),
        (&["POST mail.example.com/inbox"], false, false),
        (&["mail.example.com"], false, true),
    ] {
        let passes = |unit: &Unit| decide(&ask(writes), unit, &["a.example"], None).is_ok();
        assert_eq!((passes(&post), passes(&keyed)), (write_passes, read_passes), "{writes:?}");
    }
    let refused = decide(&ask(&[]), &keyed, &["a.example"], None).unwrap_err();
    assert_eq!(refused.class, Some("GET mail.example.com with key".parse().unwrap()));
    assert!(refused.blocked.reason.contains("carries the credential `key`"), "{refused:?}");
    assert_eq!(refused.blocked.rule, Rule::TaintedWrite);
}

#[test]
fn without_an_owner_reads_with_a_credential_pass_and_nothing_is_asked() {
    for tainted_write in [TaintedWrite::Ask, TaintedWrite::Deny] {
        let alone = Policy { may_ask: false, tainted_write, ..Policy::default() };
        assert_eq!(decide(&alone, &unit(KEYED, &["key"]), &["a.example"], None), Ok(()));
        assert_eq!(decide(&alone, &unit(READ, &[]), &["a.example"], None), Ok(()));
        for (request, credentials, excess) in [(POST, &[][..], None), (KEYED, &["key"], Some(EXCESS))] {
            let needed = decide(&alone, &unit(request, credentials), &["a.example"], excess).unwrap_err();
            assert_eq!(needed.class, None, "{request}");
        }
        let granted = Policy { writes: shapes(&["POST sink.example.com/transfers"]), ..alone };
        assert_eq!(decide(&granted, &unit(POST, &[]), &["a.example"], None), Ok(()));
    }
}

#[test]
fn what_is_said_about_questions_is_what_the_policy_decides() {
    for (may_ask, asks_always) in [(true, true), (true, false), (false, true), (false, false)] {
        for tainted_write in [TaintedWrite::Ask, TaintedWrite::Deny, TaintedWrite::Allow] {
            let policy = Policy { may_ask, asks_always, tainted_write, ..Policy::default() };
            let asked = |read: &[&str]| {
                let needed = decide(&policy, &unit(POST, &[]), read, None).err();
                needed.is_some_and(|needed| needed.class.is_some())
            };
            let expected = match (asked(&[]), asked(&["a.example"])) {
                (true, _) => Some(Asks::EachRequest),
                (false, true) => Some(Asks::AfterReading),
                (false, false) => None,
            };
            assert_eq!(policy.asks(), expected, "{policy:?}");
        }
    }
}

#[test]
fn a_read_that_carries_too_much_is_asked_about_by_its_path() {
    let read = unit(READ, &[]);
    let with = |writes: &[&str], tainted_write| Policy { writes: shapes(writes), tainted_write, ..Policy::default() };
    let ask = |writes| with(writes, TaintedWrite::Ask);
    let Needed { blocked, class } = *decide(&ask(&[]), &read, &["a.example"], Some(EXCESS)).unwrap_err();
    assert_eq!((blocked.rule, class), (Rule::CarriedData, Some("GET docs.example.com/search".parse().unwrap())));
    assert!(blocked.reason.contains("carries 57 bytes") && blocked.reason.contains("32 are allowed"), "{blocked:?}");
    assert!(blocked.remedy.contains("raises `carried_bytes` in `[network]`"), "{}", blocked.remedy);
    for (writes, passes) in [
        (&["GET docs.example.com/search"][..], true),
        (&["GET docs.example.com/*"], true),
        (&["docs.example.com"], true),
        // Leave to read is no leave to carry data.
        (&["GET docs.example.com"], false),
        (&["GET docs.example.com with key"], false),
        (&["GET docs.example.com/other"], false),
        (&["POST docs.example.com/search"], false),
    ] {
        let decided = decide(&ask(writes), &read, &["a.example"], Some(EXCESS));
        assert_eq!(decided.is_ok(), passes, "{writes:?}");
        assert_eq!(decide(&ask(writes), &read, &["a.example"], None), Ok(()), "within the bounds");
    }
    assert_eq!(decide(&ask(&[]), &read, &[], Some(EXCESS)), Ok(()), "nothing was read yet");
    assert_eq!(decide(&with(&[], TaintedWrite::Allow), &read, &["a.example"], Some(EXCESS)), Ok(()));
    let denied = decide(&with(&[], TaintedWrite::Deny), &read, &["a.example"], Some(EXCESS)).unwrap_err();
    assert!(denied.class.is_none() && denied.blocked.remedy.starts_with("give the result back"), "{denied:?}");
    // With a credential both are asked about at once.
    let keyed = unit(KEYED, &["key"]);
    let reading = ask(&["GET mail.example.com with key"]);
    let carrying = ask(&["GET mail.example.com/inbox with key"]);
    assert!(decide(&reading, &keyed, &["a.example"], Some(EXCESS)).is_err());
    assert_eq!(decide(&carrying, &keyed, &["a.example"], Some(EXCESS)), Ok(()));
    assert_eq!(decide(&carrying, &keyed, &["a.example"], None), Ok(()));
}

#[test]
fn a_run_that_asks_always_asks_about_everything_once() {
    let asks = Policy { asks_always: true, tainted_write: TaintedWrite::Allow, ..Policy::default() };
    for (request, credentials, class) in [
        (POST, &[][..], "POST sink.example.com/transfers"),
        (KEYED, &["key"], "GET mail.example.com with key"),
        (READ, &[], "GET docs.example.com"),
    ] {
        let unit = unit(request, credentials);
        let Needed { blocked, class: asked } = *decide(&asks, &unit, &[], None).unwrap_err();
        assert_eq!((blocked.rule, asked.unwrap().to_string().as_str()), (Rule::ConsentNeeded, class), "{request}");
        for allowed in [class, class.split([' ', '/']).nth(1).unwrap()] {
            let run = vec![AllowedShape { shape: allowed.parse().unwrap(), values: None, encrypted: false }];
            let allowed = Policy { run, ..asks.clone() };
            assert_eq!(decide(&allowed, &unit, &[], None), Ok(()), "{request}");
        }
    }
    let reads = Policy { reads: patterns(&["docs.example.com", "sink.example.com", "mail.example.com"]), ..asks };
    assert_eq!(decide(&reads, &unit(READ, &[]), &[], None), Ok(()));
    assert!(decide(&reads, &unit("GET https://other.example.com/", &[]), &[], None).is_err());
    assert!(decide(&reads, &unit(POST, &[]), &[], None).is_err(), "leave to read is no leave to write");
    assert!(decide(&reads, &unit(KEYED, &["key"]), &[], None).is_err(), "nor to read with a credential");
}

#[test]
fn an_allowed_shape_is_for_the_values_that_were_shown() {
    let given = GivenValues::default();
    let with_body = |body: &'static str| Unit { body: body.into(), ..unit(POST, &[]) };
    let shown = with_body("amount=12&to=anna");
    let shape: Shape = shown.class().unwrap();
    let run = |values| Policy {
        run: vec![AllowedShape { shape: shape.clone(), values, encrypted: false }],
        ..Policy::default()
    };
    let policy = run(Some(shown.shown(&given)));
    assert_eq!(decide(&policy, &shown, &["a.example"], None), Ok(()));
    assert!(decide(&policy, &with_body("amount=12&to=mallory"), &["a.example"], None).is_err());
    assert_eq!(decide(&run(None), &with_body("amount=12&to=mallory"), &["a.example"], None), Ok(()));
}

#[test]
fn of_a_name_under_a_wildcard_the_end_is_fixed() {
    let policy = Policy { domains: patterns(&["*", "*.example.com", "*.a.example.com:8443"]), ..Policy::default() };
    for (url, end) in [
        ("https://b.a.example.com/", "example.com"),
        ("https://b.a.example.com:8443/", "a.example.com"),
        ("https://other.example/", ""),
        ("https://1.2.3.4/", ""),
    ] {
        assert_eq!(policy.fixed_end(&target(url)), end, "{url}");
    }
}

#[test]
fn a_planned_run_writes_what_its_plan_lists_before_and_after_it_has_read() {
    let policy = Policy {
        domains: patterns(&["api.example.com"]),
        writes: vec!["POST api.example.com/report".parse().unwrap()],
        may_ask: false,
        only_planned: true,
        ..Policy::default()
    };
    for read in [&[][..], &["news.example.com"]] {
        for passes in ["POST https://api.example.com/report", "GET https://api.example.com/other"] {
            assert_eq!(decide(&policy, &unit(passes, &["key"]), read, None), Ok(()), "{passes}");
        }
        for refused in ["POST https://api.example.com/other", "DELETE https://api.example.com/report"] {
            let needed = decide(&policy, &unit(refused, &[]), read, None).unwrap_err();
            assert_eq!((needed.blocked.rule, needed.class), (Rule::NotPlanned, None), "{refused}");
        }
    }
}
