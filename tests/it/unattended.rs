//! Exit codes of runs that would ask in the owner's absence (SPEC CLI-0, APPR-1): 5 if the run failed for want of consent,
//! and not for another reason.

use serde_json::{Value, json};

use crate::asking::{World, call, get};

fn post(url: String) -> Value {
    call("fetch", json!({ "url": url, "method": "POST", "body": { "all": "of it" } }))
}

/// A run reads a page, posts three times, and says so.
fn posting() -> World {
    World::new(|page, sink| {
        let post = || post(format!("{sink}/"));
        vec![get(format!("{page}/")), post(), post(), post(), json!({ "text": "sent" })]
    })
}

fn act<'a>(domains: &'a str, extra: &[&'a str]) -> Vec<&'a str> {
    [&["act", "the task", "--tools", "fetch", "--domains", domains][..], extra].concat()
}

fn both(world: &World) -> String {
    format!("{},{}", world.page.address(), world.sink.address())
}

#[test]
fn an_unattended_run_that_fails_for_want_of_consent_ends_with_five() {
    let world = posting();
    let domains = both(&world);
    let ended = world.motor.run(&act(&domains, &["--unattended", "--json", "--max-iterations", "3"]));
    let end: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!((ended.code, &end["status"]), (Some(5), &json!("failed")), "{ended:?}");
    assert!(world.sink.requests().is_empty());

    // Allowed beforehand, the same run is done.
    let world = posting();
    let domains = both(&world);
    let shape = format!("POST {}/", world.sink.address());
    let ended = world.motor.run(&act(&domains, &["--unattended", "--writes", &shape])).succeeded();
    assert_eq!((ended.stdout.as_str(), world.sink.requests().len()), ("sent\n", 3));
}

#[test]
fn an_unattended_run_that_goes_on_without_consent_ends_well() {
    let world = World::new(|page, sink| {
        vec![get(format!("{page}/")), post(format!("{sink}/")), json!({ "text": "I may not send it." })]
    });
    let domains = both(&world);
    let ended = world.motor.run(&act(&domains, &["--unattended"])).succeeded();
    assert_eq!(ended.stdout, "I may not send it.\n");
    assert!(world.sink.requests().is_empty());
}

#[test]
fn an_unattended_run_that_fails_otherwise_ends_with_one() {
    // The page is not granted: no consent to a request would help.
    let world = World::new(|page, _| {
        let get = || get(format!("{page}/"));
        vec![get(), get(), get(), json!({ "text": "done" })]
    });
    let sink = world.sink.address().to_string();
    let ended = world.motor.run(&act(&sink, &["--unattended", "--json"]));
    let end: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    assert_eq!((ended.code, &end["status"]), (Some(1), &json!("failed")), "{ended:?}");
}

#[test]
fn without_a_terminal_a_request_that_nobody_decides_ends_with_five() {
    let world = posting();
    let domains = both(&world);
    let ended = world.motor.run(&act(&domains, &["--set", "motor.approval_timeout_seconds=1"]));
    ended.failed(5, &["Owner approval timeout"]);
    assert!(ended.stderr.contains("waiting, for"), "{ended:?}");
    assert!(world.sink.requests().is_empty());
}
