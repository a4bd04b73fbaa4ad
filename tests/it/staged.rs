//! Staged writes (SPEC LAND-5): held at the real gate, shown in full, sent once each after the owner's consent, over the real
//! command line and API; and the access of a rehearsal (SPEC LAND-6). Each refusal has its twin that passes.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::network::encoding::files_with;
use tests::network::{Received, Reply};

use crate::asking::{World, call, get};
use crate::consent::post;

/// The value of the credential. Only the sink may see it.
const SECRET: &str = "swordfish-4711-marlin";

fn pay(sink: &str, to: &str) -> Value {
    let headers = json!({ "authorization": "Bearer <credential:bank>" });
    call("fetch", json!({ "url": format!("{sink}/pay"), "method": "POST", "headers": headers, "body": { "to": to } }))
}

/// Reads the page, pays twice with the credential, and ends.
fn two_payments() -> World {
    let world = World::new(|page, sink| {
        vec![get(format!("{page}/")), pay(sink, "anna"), pay(sink, "bert"), json!({ "text": "both are staged" })]
    });
    world.sink.route("/pay", Reply::text("paid"));
    let sink = world.sink.address().to_string();
    world.motor.run_as_owner(&["credential", "set", "bank", "--domain", &sink], SECRET).succeeded();
    world
}

impl World {
    /// The flags that grant a run the page and the sink.
    fn granted(&self) -> [String; 6] {
        let domains = format!("{},{}", self.page.address(), self.sink.address());
        ["--tools", "fetch", "--credentials", "bank", "--domains", &domains].map(str::to_owned)
    }

    fn act(&self, extra: &[&str]) -> String {
        let granted = self.granted();
        let granted: Vec<&str> = granted.iter().map(String::as_str).collect();
        self.motor.run(&[&["act", "pay anna and bert"], &granted[..], extra].concat()).succeeded();
        self.motor.only_run()
    }

    fn staged(&self, run: &str) -> Vec<Value> {
        self.motor.json(&["task", "staged", run])["writes"].as_array().unwrap().clone()
    }

    fn paid(&self) -> Vec<Received> {
        self.sink.requests()
    }
}

fn statuses(writes: &[Value]) -> Vec<&str> {
    writes.iter().map(|write| write["status"].as_str().unwrap()).collect()
}

fn send(motor: &Motor, run: &str, extra: &[&str]) -> Value {
    let sent = motor.run_as_owner(&[&["task", "send", run], extra, &["--json"]].concat(), "").succeeded();
    serde_json::from_str(&sent.stdout).unwrap()
}

#[test]
fn staged_writes_are_shown_in_full_and_sent_once_each() {
    let world = two_payments();
    let run = world.act(&["--stage"]);
    assert_eq!(world.paid().len(), 0, "a held write was sent");
    let writes = world.staged(&run);
    assert_eq!(statuses(&writes), ["held", "held"]);
    assert_eq!(
        (&writes[0]["body"], &writes[0]["credentials"], &writes[0]["sources"]),
        (&json!(r#"{"to":"anna"}"#), &json!(["bank"]), &json!([world.page.address().ip().to_string()])),
    );
    let shown = world.motor.on_screen(&["task", "staged", &run], 80, "1>&0 2>&0").finish().1;
    for part in
        ["POST http://", "authorization: Bearer <credential:bank>", r#"{"to":"anna"}"#, "tainted by", "#2 is held"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    // The model knows that nothing was sent, and the trace has the number.
    let trace = world.motor.json(&["task", "status", &run]);
    let result = &trace["steps"][1]["toolCalls"][0];
    assert_eq!(
        (&result["requests"][0]["staged"], &result["result"]["errorCode"]),
        (&json!(1), &json!("staged")),
        "{result}"
    );
    assert_eq!((&trace["staged"], &trace["errors"]), (&json!(2), &json!(0)), "{trace}");

    world.motor.refuses(&["task", "send", &run, "1"], 5, "consent_needed");
    world.motor.refuses_owner(&["task", "send", &run, "3"], 1, "not_found");
    assert_eq!(world.paid().len(), 0);
    let sent = send(&world.motor, &run, &["2"]);
    assert_eq!((&sent[0]["status"], &sent[0]["response"]["body"]), (&json!("sent"), &json!("paid")), "{sent}");
    let paid = world.paid();
    assert_eq!((paid.len(), paid[0].body.as_slice()), (1, br#"{"to":"bert"}"#.as_slice()));
    assert_eq!(paid[0].header("authorization").unwrap(), format!("Bearer {SECRET}"));
    assert_eq!(json!(paid[0].header("idempotency-key").unwrap()), writes[1]["idempotencyKey"]);
    assert_eq!(sent[0]["consent"]["givenBy"], "owner");
    // Once: neither by number, nor as one of those that are held.
    world.motor.refuses_owner(&["task", "send", &run, "2"], 1, "illegal_state");
    world.motor.refuses_owner(&["task", "send", &run, "2", "--again"], 1, "illegal_state");
    send(&world.motor, &run, &[]);
    assert_eq!(world.paid().len(), 2);
    assert_eq!(statuses(&world.staged(&run)), ["sent", "sent"]);
    world.motor.refuses_owner(&["task", "send", &run], 1, "illegal_state");
    assert_eq!(files_with(world.motor.directory(), SECRET), []);
}

#[test]
fn without_the_flag_the_same_writes_are_sent_at_once() {
    let world = two_payments();
    let shape = format!("POST {}/pay", world.sink.address());
    let run = world.act(&["--writes", &shape]);
    assert_eq!((world.paid().len(), world.staged(&run).len()), (2, 0));
}

#[test]
fn discarded_writes_are_never_sent() {
    let world = two_payments();
    let run = world.act(&["--stage"]);
    // It takes something away, so it asks nothing.
    world.motor.run(&["task", "discard", &run, "#1"]).succeeded();
    assert_eq!(statuses(&world.staged(&run)), ["discarded", "held"]);
    world.motor.refuses_owner(&["task", "send", &run, "1"], 1, "illegal_state");
    send(&world.motor, &run, &[]);
    let paid = world.paid();
    assert_eq!((paid.len(), paid[0].body.as_slice()), (1, br#"{"to":"bert"}"#.as_slice()));
}

#[test]
fn a_write_that_was_on_its_way_when_the_host_died_is_not_sent_again_by_itself() {
    let mut world = two_payments();
    world.motor = world.motor.unattended();
    let run = world.act(&["--stage"]);
    let serving = world.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    world.sink.route("/pay", Reply::Silence);
    let sending = world.motor.start(&["task", "send", &run, "1"]);
    tests::block_on(world.sink.wait_for_requests(1));
    serving.kill();
    assert_eq!(sending.wait().code, Some(75), "its outcome is unknown");
    let serving = world.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    assert_eq!(statuses(&world.staged(&run)), ["outcome_unknown", "held"]);
    world.sink.route("/pay", Reply::text("paid"));
    world.motor.run(&["task", "send", &run, "1"]).refused(1, &["--again"]);
    // The other one is certain, and goes.
    send(&world.motor, &run, &[]);
    assert_eq!(statuses(&world.staged(&run)), ["outcome_unknown", "sent"]);
    send(&world.motor, &run, &["1", "--again"]);
    let keys: Vec<_> = world.paid().iter().map(|request| request.header("idempotency-key").unwrap()).collect();
    assert_eq!(keys.len(), 3);
    assert!(keys[0] == keys[2] && keys[0] != keys[1], "{keys:?}");
}

#[test]
fn only_the_owner_sends_and_only_what_was_shown() {
    let world = two_payments();
    let run = world.act(&["--stage"]);
    let serving = world.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let writes = world.staged(&run);
    let owner = format!("Bearer {}", world.motor.owner_token());
    let agent =
        world.motor.run_as_owner(&["token", "create", "--name", "a", "--scope", "agent"], "").succeeded().stdout;
    let agent = format!("Bearer {}", agent.trim());
    let shown = |number: u32, of: usize| json!({ "writes": [{ "number": number, "hash": writes[of]["hash"] }] });
    let path = format!("/v1/tasks/{run}/staged/send");
    for (authorization, body, status, code) in [
        (&agent, shown(1, 0), 403, "consent_needed"),
        (&owner, shown(1, 1), 409, "illegal_state"),
        (&owner, shown(7, 0), 404, "not_found"),
        (&owner, json!({ "writes": [{ "number": 1 }] }), 400, "invalid_request"),
        (&owner, json!({ "writes": [] }), 400, "invalid_request"),
    ] {
        let (answered, said) = post(&world.motor, &path, &[("authorization", authorization)], &body);
        assert_eq!((answered, &said["code"]), (status, &json!(code)), "{body}: {said}");
    }
    let (answered, said) = post(&world.motor, &path, &[], &shown(1, 0));
    assert_eq!((answered, &said["code"]), (403, &json!("consent_needed")), "{said}");
    let discard = format!("/v1/tasks/{run}/staged/discard");
    let (answered, said) = post(&world.motor, &discard, &[("authorization", &agent)], &json!({}));
    assert_eq!((answered, &said["code"]), (403, &json!("consent_needed")), "{said}");
    assert_eq!((world.paid().len(), statuses(&world.staged(&run))), (0, vec!["held", "held"]));
    let (answered, said) = post(&world.motor, &path, &[("authorization", &owner)], &shown(1, 0));
    assert_eq!((answered, &said[0]["status"]), (200, &json!("sent")), "{said}");
    assert_eq!(world.paid().len(), 1);
}

#[test]
fn a_rehearsal_sends_no_write_and_its_plan_is_what_it_used() {
    // The second run takes the same turns.
    let world = World::new(|page, sink| {
        let turns = vec![get(format!("{page}/")), pay(sink, "anna"), json!({ "text": "paid anna" })];
        [turns.clone(), turns].concat()
    });
    world.sink.route("/pay", Reply::text("paid"));
    let (page, sink) = (world.page.address().to_string(), world.sink.address().to_string());
    world.motor.run_as_owner(&["credential", "set", "bank", "--domain", &sink], SECRET).succeeded();
    let domains = format!("{page},{sink},unused.example");
    let plan = [
        "plan",
        "pay anna",
        "--rehearse",
        "--print",
        "--tools",
        "fetch,bash",
        "--credentials",
        "bank",
        "--domains",
        &domains,
    ];
    let printed = world.motor.run_as_owner(&plan, "").succeeded().stdout;
    assert_eq!(world.paid().len(), 0, "the rehearsal sent a write");
    let run = world.motor.only_run();
    assert_eq!(statuses(&world.staged(&run)), ["discarded"]);
    for line in [
        r#"tools = ["fetch"]"#.to_owned(),
        format!(r#"domains = ["{page}", "{sink}"]"#),
        format!(r#"writes = ["POST {sink}/pay"]"#),
        r#"credentials = ["bank"]"#.to_owned(),
        format!("# note: measured by the rehearsal {run}"),
        format!("# note: `POST {sink}/pay` came after it had read from {}", world.page.address().ip()),
    ] {
        assert!(printed.contains(&line), "{line}: {printed}");
    }
    let file = world.motor.file("plan.toml", &printed);
    world.motor.run_as_owner(&["act", "--plan", file.to_str().unwrap()], "").succeeded();
    let paid = world.paid();
    assert_eq!((paid.len(), paid[0].header("authorization").unwrap()), (1, format!("Bearer {SECRET}")));
}

#[test]
fn a_rehearsal_that_used_no_tool_is_no_grant_of_a_directory() {
    let world = World::new(|_, _| vec![json!({ "text": "nothing to do" })]);
    let directory = world.motor.directory().join("project");
    std::fs::create_dir(&directory).unwrap();
    let plan = ["plan", "look", "--rehearse", "--on", directory.to_str().unwrap(), "--json"];
    let printed = world.motor.run_as_owner(&plan, "").succeeded().stdout;
    let plan: Value = serde_json::from_str(&printed).unwrap();
    assert_eq!((&plan["request"]["tools"], &plan["request"]["directories"]), (&json!([]), &Value::Null), "{plan}");
}

#[test]
fn a_rehearsal_that_does_not_end_well_measures_nothing() {
    let world = World::new(|_, sink| vec![pay(sink, "anna"); 3]);
    let domains = world.sink.address().to_string();
    let plan = [
        "plan",
        "pay anna",
        "--rehearse",
        "--print",
        "--tools",
        "fetch",
        "--domains",
        &domains,
        "--max-iterations",
        "2",
        "--unattended",
    ];
    world.motor.run_as_owner(&plan, "").refused(1, &["did not complete"]);
    assert_eq!(world.paid().len(), 0);
}
