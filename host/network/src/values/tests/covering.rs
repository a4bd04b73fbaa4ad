//! Requests that an earlier answer covers, and those that ask again.

use proptest::prelude::*;

use super::*;

const TASK: &str = "Pay 250 EUR to bob@corp.example and 30 to carol@corp.example, with a note";

#[test]
fn values_of_the_user_may_change_and_no_others() {
    let run = given(TASK, &[]);
    let shown = run.shown(&Request::json(r#"{"to":"bob@corp.example","amount":250,"note":"rent","tags":[]}"#).sent());
    for body in [
        r#"{"to":"bob@corp.example","amount":250,"note":"rent","tags":[]}"#,
        r#"{ "amount": 30.00, "to": "CAROL@corp.example", "tags": [ ], "note": "rent" }"#,
        r#"{"to":"bob@corp.example","amount":"30","note":"rent","tags":[]}"#,
    ] {
        assert!(run.covers(&shown, &Request::json(body).sent()), "{body}");
    }
    for body in [
        r#"{"to":"mallory@evil.example","amount":250,"note":"rent","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":251,"note":"rent","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":2500,"note":"rent","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":-250,"note":"rent","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":250,"note":"Rent","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":250,"note":"","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":250,"note":"rent"}"#,
        r#"{"to":"bob@corp.example","amount":250,"note":"rent","tags":[],"cc":"bob@corp.example"}"#,
        r#"{"to":"bob@corp.example","to":"bob@corp.example","amount":250,"note":"rent","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":250,"note":"rent","tags":{}}"#,
        r#"{"to":["bob@corp.example"],"amount":250,"note":"rent","tags":[]}"#,
        r#"{"to":"bob@corp.example","amount":250,"note":"rent","tags":[]"#,
        "",
    ] {
        assert!(!run.covers(&shown, &Request::json(body).sent()), "{body}");
    }
    let mut padded = r#"{"to":"bob@corp.example","amount":250,"note":"rent","tags":[]}"#.to_owned();
    padded.push_str(&" \t".repeat(100));
    assert!(!run.covers(&shown, &Request::json(&padded).sent()), "white space carries data");
}

#[test]
fn headers_writing_and_salt_are_bound() {
    let run = given(TASK, &[]);
    let body = r#"{"amount":7}"#;
    let shown = run.shown(&Request::json(body).header("x-note", "hello").sent());
    assert!(run.covers(&shown, &Request::json(body).header("x-note", "hello").sent()));
    assert!(!run.covers(&shown, &Request::json(body).sent()));
    assert!(!run.covers(&shown, &Request::json(body).header("x-note", "with a note").sent()));
    assert!(!run.covers(&shown, &Request::form("amount=7").header("x-note", "hello").sent()));
    // Another run, as after a restart, knows the shown values again; a map that was made up covers nothing.
    let again = given(TASK, &[]);
    assert!(again.covers(&shown, &Request::json(body).header("x-note", "hello").sent()));
    assert_ne!(again.shown(&Request::json(body).sent())["amount"], run.shown(&Request::json(body).sent())["amount"]);
    assert!(!run.covers(&BTreeMap::new(), &Request::json("").sent()));
}

#[test]
fn forms_parts_and_texts_are_covered_too() {
    let run = given(TASK, &[]);
    let multipart = |boundary: &str, note: &str| {
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\n{note}\r\n--{boundary}--\r\n"
        );
        Request::new("/", &format!("multipart/form-data; boundary={boundary}"), body)
    };
    let shown = run.shown(&multipart("aaa", "rent").sent());
    assert!(run.covers(&shown, &multipart("bbb", "rent").sent()), "each request has a boundary of its own");
    let long = multipart(&"b".repeat(49), "rent");
    assert!(!run.covers(&shown, &long.sent()), "a long one carries data");
    assert!(run.covers(&run.shown(&long.sent()), &long.sent()));
    assert!(!run.covers(&shown, &multipart("bbb", "sent").sent()));

    let shown = run.shown(&Request::form("to=bob%40corp.example&note=rent").sent());
    assert!(run.covers(&shown, &Request::form("to=carol%40corp.example&note=rent").sent()));
    for body in
        ["to=mallory%40evil.example&note=rent", "to=bob%40corp.example&note=ren%74", "to=bob%40corp.example&note=rent&"]
    {
        assert!(!run.covers(&shown, &Request::form(body).sent()), "{body}");
    }

    let shown = run.shown(&Request::new("/?page=7", "text/plain", "order 66").sent());
    assert!(run.covers(&shown, &Request::new("/?page=7", "text/plain", "order 66").sent()));
    assert!(run.covers(&shown, &Request::new("/?page=30", "text/plain", "with a note").sent()));
    assert!(!run.covers(&shown, &Request::new("/?page=8", "text/plain", "order 66").sent()));
    assert!(!run.covers(&shown, &Request::new("/?page=7", "text/plain", "order 67").sent()));
    assert!(!run.covers(&shown, &Request::new("/?page=7", "text/plain", &b"order 66\xff"[..]).sent()));
}

#[test]
fn every_field_beyond_the_listed_ones_is_bound() {
    let run = given(TASK, &[]);
    let body = |last: u32| {
        let fields: Vec<String> = (0..2_000).map(|index| format!(r#""f{index}":"v{index}""#)).collect();
        format!("{{{},\"last\":{last}}}", fields.join(","))
    };
    let shown = run.shown(&Request::json(&body(1)).sent());
    assert!(run.covers(&shown, &Request::json(&body(1)).sent()));
    assert!(!run.covers(&shown, &Request::json(&body(2)).sent()));
    assert!(!run.covers(&shown, &Request::json(&body(250)).sent()), "the user's words do not stand for many fields");
}

/// A value that does not stand in the task.
fn value() -> impl Strategy<Value = String> {
    "[a-z0-9 ]{0,6}zq[a-z0-9é ]{0,6}"
}

proptest! {
    #[test]
    fn a_request_covers_itself_and_no_changed_byte(
        values in proptest::collection::vec(value(), 1..8),
        which in 0..8_usize,
        at in 0..20_usize,
        writing in 0..3_usize,
    ) {
        let run = given(TASK, &[]);
        let request = |values: &[String]| match writing {
            0 => Request::json(&serde_json::json!({ "a": values, "amount": 250 }).to_string()),
            1 => {
                let mut form = form_urlencoded::Serializer::new(String::new());
                values.iter().for_each(|value| { form.append_pair("a", value); });
                Request::form(&form.finish())
            }
            _ => Request::new("/", "text/plain", values.join("\n")),
        };
        let first = request(&values);
        let shown = run.shown(&first.sent());
        prop_assert!(run.covers(&shown, &first.sent()));

        let mut changed = values.clone();
        let index = which % changed.len();
        let mut signs: Vec<char> = changed[index].chars().collect();
        let place = at % signs.len();
        signs[place] = if signs[place] == 'w' { 'v' } else { 'w' };
        changed[index] = signs.into_iter().collect();
        prop_assert!(!run.covers(&shown, &request(&changed).sent()), "{:?}", changed);
    }
}
