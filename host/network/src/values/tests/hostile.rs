//! Bodies and pages that are made to exhaust, to hide or to mislead.

use super::*;

#[test]
fn a_large_body_is_bounded_and_its_recipient_comes_first() {
    let run = given("", &[]);
    let mut items: Vec<String> = (0..100_000).map(|index| format!(r#"{{"n":{index}}}"#)).collect();
    items.push(r#"{"recipient":"mallory"}"#.to_owned());
    let request = Request::json(&format!("[{}]", items.join(",")));
    assert!(request.body.len() > 1 << 20);
    let fields = run.fields(&request.sent());
    assert_eq!(fields.len(), 65);
    assert_eq!((fields[0].name.as_str(), fields[0].value.as_str()), ("[100000].recipient", "mallory"));
    assert_eq!(fields[64].name, "…");
    assert!(fields[64].value.starts_with("99937 more fields, "), "{}", fields[64].value);
    // The fields that are not listed are bound too, kept apart or not.
    let shown = run.shown(&request.sent());
    assert!(shown.len() < 600);
    for changed in [100, 99_999] {
        let other = Request::json(&format!("[{}]", items.join(",").replace(&format!(":{changed}}}"), ":7}")));
        assert!(!run.covers(&shown, &other.sent()), "{changed}");
        assert_ne!(run.fields(&other.sent())[64].value, fields[64].value, "{changed}");
    }
}

#[test]
fn deep_nesting_is_a_text() {
    let deep = |depth: usize| format!("{}{}", r#"{"a":["#.repeat(depth / 2), "]}".repeat(depth / 2));
    let run = given("", &[(HOST, "/deep", "application/json", &deep(10_000))]);
    for (depth, name) in [(128, "a"), (130, "body"), (10_000, "body"), (200_000, "body")] {
        let request = Request::json(&deep(depth));
        let fields = run.fields(&request.sent());
        assert!(fields[0].name.starts_with(name) && fields.len() == 1, "{depth}: {}", fields[0].name);
        assert!(fields[0].name.chars().count() <= 120);
        assert!(run.covers(&run.shown(&request.sent()), &request.sent()));
    }
}

#[test]
fn long_names_are_a_text_as_every_leaf_repeats_them() {
    let leaves = vec!["0"; 100_000].join(",");
    let run = given("", &[]);
    for (length, count) in [(1_000, 65), (1_030, 1), (1 << 20, 1)] {
        let request = Request::json(&format!(r#"{{"{}":[{leaves}]}}"#, "a".repeat(length)));
        let fields = run.fields(&request.sent());
        assert_eq!(fields.len(), count, "{length}");
        assert_eq!(fields[0].name == "body", count == 1, "{length}");
        assert!(run.covers(&run.shown(&request.sent()), &request.sent()));
    }
}

#[test]
fn invisible_characters_are_replaced() {
    let run = given("", &[(HOST, "/a\u{202e}b", "application/json", "{\"x\u{7}y\":[\"secret77\"]}")]);
    let request = Request::json(r#"{"to\u0000":"a\u202eb\u0007c\u200bd\ne\ud83d","\u2066k":"secret77"}"#);
    for field in run.fields(&request.sent()) {
        let text = format!("{field:?}");
        assert!(!text.contains(|sign: char| sign.is_control() || ('\u{200b}'..='\u{206f}').contains(&sign)), "{text}");
    }
    let long = Request::json(&format!(r#"{{"a":"{}"}}"#, "ü".repeat(1_000)));
    let field = run.fields(&long.sent()).remove(0);
    assert_eq!(field.value.chars().count(), 200);
    assert!(field.value.ends_with("ü… (2000 bytes)"), "{}", field.value);
}

#[test]
fn a_full_memory_takes_nothing_new_and_keeps_the_oldest() {
    let run = given("", &[(HOST, "/first", "text/plain", "first-value-1")]);
    for page in 0..6 {
        let page: String = (0..60_000).map(|index| format!("{page}x{index} ")).collect();
        let mut collector = run.response(HOST, "/flood");
        collector.piece(Some("text/plain"), page.as_bytes());
    }
    let mut late = run.response(HOST, "/late");
    late.piece(None, b"late-value-2");
    late.end();
    assert!(matches!(origin(&run, "first-value-1"), Origin::Response { source } if source.ends_with("/first")));
    assert_eq!(origin(&run, "late-value-2"), Origin::Model);
    assert_eq!(run.carried(&Request::get("/first-value-1").sent()).request, 0);
    assert_eq!(run.carried(&Request::get("/late-value-2").sent()).request, 13);
    let memory = run.0.lock();
    assert!(memory.origins.len() <= MAX_VALUES && memory.by_host.len() <= MAX_VALUES);
}

#[test]
fn the_users_words_are_bounded() {
    let run = given(&format!("{}12345", "word ".repeat(MAX_USER_BYTES / 5)), &[]);
    run.user("later");
    assert!(is_users(&run, "word word"));
    for value in ["12345", "1234", "123", "12", "1", "later", "l", "la"] {
        assert!(!is_users(&run, value), "{value}");
    }
}

#[test]
fn a_cut_page_keeps_the_places_before_the_cut() {
    let messages: Vec<String> = (0..20_000).map(|index| format!(r#"{{"id":"m-{index}-é"}}"#)).collect();
    let page = format!(r#"{{"messages":[{}]}}"#, messages.join(","));
    for content_type in ["application/json", ""] {
        let run = given("", &[(HOST, "/inbox", content_type, &page)]);
        let source = |value| match origin(&run, value) {
            Origin::Response { source } => source,
            other => format!("{other:?}"),
        };
        assert_eq!(source("m-7-é"), "127.0.0.1:1234/inbox messages[7]");
        assert_eq!(source("m-9999-é"), "127.0.0.1:1234/inbox", "beyond the places of one response");
    }
}

proptest::proptest! {
    #[test]
    fn no_bytes_break_it(
        body in proptest::collection::vec(proptest::num::u8::ANY, 0..300),
        text in r#"[\[\]{}",:\\ a-c0-9.%&=?/@+é-]{0,200}"#,
        content_type in "(application/json|multipart/form-data; boundary=a|application/x-www-form-urlencoded)?",
    ) {
        for body in [body, text.clone().into_bytes()] {
            let run = given(&text, &[(HOST, "/p", &content_type, &text), (HOST, "/q", "", &String::from_utf8_lossy(&body))]);
            let request = Request::new(&format!("/{text}"), &content_type, body);
            let fields = run.fields(&request.sent());
            assert!(fields.len() <= 65);
            run.carried(&request.sent());
        }
    }
}
