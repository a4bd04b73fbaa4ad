//! The owner's word with the real program (SPEC CONSENT-1, ASK-1, APPR-1, CLI-0): at a terminal, with the token, and every way
//! that is neither.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;

const PASSPHRASE: &str = "correct horse battery";

/// Asks the user a question, then ends.
fn asking() -> Value {
    let arguments = json!({ "question": "Which colour?\u{1b}[2J\u{202e}", "choices": ["red", "blue"] });
    json!({ "turns": [
        { "tool_calls": [{ "name": "ask_user", "arguments": arguments }] },
        { "text": "painted" },
    ]})
}

/// Asks to be allowed a domain.
fn wanting() -> Value {
    let arguments =
        json!({ "action": "book the room", "reason": "the task says so", "domains": ["rooms.example.com"] });
    json!({ "turns": [
        { "tool_calls": [{ "name": "request_approval", "arguments": arguments }] },
        { "text": "done with it" },
    ]})
}

/// The names of the files below that hold these words.
pub(crate) fn files_with(directory: &Path, words: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            found.extend(files_with(&path, words));
        } else if path.is_file() && memchr::memmem::find(&std::fs::read(&path).unwrap(), words.as_bytes()).is_some() {
            found.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    found
}

struct World {
    server: ModelServer,
    motor: Motor,
    _serving: Option<Running>,
}

impl World {
    fn new(script: Value) -> Self {
        let server = block_on(ModelServer::scripted(script));
        let motor = Motor::with_model(&server);
        Self { server, motor, _serving: None }
    }

    /// With a host that stays, and a run that waits.
    fn waiting(script: Value) -> (Self, String) {
        let world = Self::new(script);
        let serving = world.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let run = world.motor.stdout(&["act", "the task", "--detach"]).trim().to_owned();
        let world = Self { _serving: Some(serving), ..world };
        world.until(&run, |trace| trace["waiting"].is_object());
        (world, run)
    }

    /// Asks with a command each time until it holds.
    fn until(&self, run: &str, holds: impl Fn(&Value) -> bool) -> Value {
        self.motor.wait_for(&["task", "status", run], holds)
    }

    fn ended(&self, run: &str) -> Value {
        self.until(run, |trace| trace["status"] == "completed")
    }

    /// The last result of a tool in the model's messages.
    fn told(&self) -> String {
        let requests = self.server.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
        let results = messages.iter().rev().find(|message| message["role"] == "tool");
        results.unwrap()["content"].as_str().unwrap().to_owned()
    }

    fn still_waits(&self, run: &str) {
        assert!(self.motor.json(&["task", "status", run])["waiting"].is_object());
    }
}

/// A request to the host's socket, as any program of the same user can make it.
pub(super) fn post(motor: &Motor, path: &str, headers: &[(&str, &str)], body: &Value) -> (u16, Value) {
    let mut socket = UnixStream::connect(motor.home().join("host.sock")).unwrap();
    let body = body.to_string();
    // A path may have another method before it.
    let line = if path.starts_with('/') { format!("POST {path}") } else { path.to_owned() };
    let mut request = format!(
        "{line} HTTP/1.1\r\nhost: motor\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    socket.write_all(format!("{request}\r\n{body}").as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}")))
}

#[test]
fn a_question_is_answered_where_the_run_is_followed() {
    let world = World::new(asking());
    let mut acting = world.motor.at_terminal(&["act", "paint it"]);
    let shown = acting.sees("answer (1 to 2, or other words): ");
    for words in ["asks a question", "paint it", "Which colour?<U+001B>[2J<U+202E>", "1. red", "2. blue"] {
        assert!(shown.contains(words), "{words:?} is not on the screen: {shown}");
    }
    acting.types("2");
    let ended = acting.wait().succeeded();
    assert_eq!(ended.stdout, "painted\n");
    assert!(!ended.stderr.contains("\u{1b}[2J"), "{ended:?}");
    assert!(world.told().contains("blue"), "{}", world.told());
    let run = world.motor.only_run();
    let asked = &world.motor.json(&["task", "status", &run])["questions"][0];
    assert_eq!((&asked["answer"], &asked["consent"]["givenBy"]), (&json!("blue"), &json!("owner")));
    assert_eq!(asked["consent"]["door"], "terminal");
    assert!(world.motor.stdout(&["task", "status", &run]).contains("owner at the terminal"));
}

#[test]
fn what_runs_ask_is_listed_and_answered_from_anywhere() {
    let (world, run) = World::waiting(asking());
    let listed = world.motor.stdout(&["task", "list", "--waiting"]);
    assert!(listed.contains(&run) && listed.contains("Which colour?<U+001B>"), "{listed}");
    let status = world.motor.stdout(&["task", "status", &run]);
    assert!(status.contains(&format!("`motor task respond {run}` answers")) && !status.contains('\u{1b}'), "{status}");
    world.motor.run(&["task", "approve", &run]).refused(1, &["waits for an answer", "motor task respond"]);
    let mut asking = world.motor.at_terminal(&["task", "respond", &run]);
    asking.sees("other words): ");
    asking.types("a warm green");
    asking.wait().succeeded();
    world.ended(&run);
    assert!(world.told().contains("a warm green"));
    world.motor.refuses_owner(&["task", "respond", &run, "red"], 1, "illegal_state");
    assert!(world.motor.run(&["task", "list", "--waiting"]).succeeded().stderr.contains("no run waits"));
}

#[test]
fn consent_for_good_is_a_decision_that_says_whose_it_was() {
    let (world, run) = World::waiting(wanting());
    let mut asking = world.motor.at_terminal(&["task", "approve", &run]);
    let shown = asking.sees("what to do instead: ");
    for words in ["book the room", "the task says so", "rooms.example.com", "a = all runs of the agent, for good"] {
        assert!(shown.contains(words), "{words:?} is not on the screen: {shown}");
    }
    // Answers that were not offered are refused.
    for unclear in ["", "y"] {
        asking.types(unclear);
        asking.sees("what to do instead: ");
    }
    asking.types("a");
    asking.wait().succeeded();
    let trace = world.ended(&run);
    let decided = &trace["approvals"][0];
    assert_eq!((&decided["granted"], &decided["scope"]), (&json!(true), &json!("always")));
    assert_eq!((&decided["consent"]["givenBy"], &decided["consent"]["door"]), (&json!("owner"), &json!("terminal")));
    let decisions = world.motor.json(&["network", "list"]);
    let decision = &decisions[0];
    assert_eq!((&decision["pattern"], &decision["verdict"]), (&json!("rooms.example.com"), &json!("allow")));
    assert_eq!((&decision["level"], &decision["consent"]["door"]), (&json!("always"), &json!("terminal")));
}

#[test]
fn a_refusal_reaches_the_model_and_makes_no_decision() {
    let (world, run) = World::waiting(wanting());
    let mut asking = world.motor.at_terminal(&["task", "approve", &run, "--deny", "--reason", "not this week"]);
    asking.sees("refuse it? [y/N] ");
    asking.types("y");
    asking.wait().succeeded();
    let trace = world.ended(&run);
    assert_eq!(
        (&trace["approvals"][0]["granted"], &trace["approvals"][0]["why"]),
        (&json!(false), &json!("not this week"))
    );
    assert!(world.told().contains("not this week"));
    assert_eq!(world.motor.json(&["network", "list"]), json!([]));
}

#[test]
fn neither_a_flag_nor_standard_input_is_consent() {
    let (world, run) = World::waiting(wanting());
    let motor = &world.motor;
    let domain = "rooms.example.com";
    for (command, input) in [
        (&["task", "approve", &run][..], "y\n"),
        (&["task", "approve", &run, "--for", "always"], "a\ny\n"),
        (&["task", "approve", &run, "--deny"], "y\n"),
        (&["task", "retry", &run, "--domains", domain], "y\n"),
        (&["network", "allow", domain, "--always"], "y\n"),
        (&["network", "forget", domain, "--always"], "y\n"),
        (&["credential", "set", "key", "--domain", domain], "a secret of some length"),
        (&["owner", "rotate"], "y\n"),
        (&["owner", "seal"], "y\n"),
        (&["owner", "token"], "y\n"),
    ] {
        motor.run_with_input(command, input).refused(5, &["terminal"]);
    }
    world.still_waits(&run);
    assert_eq!((motor.json(&["network", "list"]), motor.json(&["credential", "list"])), (json!([]), json!([])));
    // Standard input is not an answer where there is a terminal, and neither is input typed before the question.
    let mut asking = motor.at_terminal_with(&["task", "approve", &run, "--for", "run"], "y\n", "y\ny\n");
    asking.sees("allow it for this run? [y/N] ");
    asking.types("");
    asking.wait().refused(5, &["the answer was not yes"]);
    world.still_waits(&run);
    // The twin: a yes at the terminal.
    let mut asking = motor.at_terminal_with(&["network", "allow", domain, "--always"], "", "n\n");
    assert!(asking.sees("[y/N] ").contains(domain));
    asking.types("yes");
    asking.wait().succeeded();
    assert_eq!(motor.json(&["network", "list"])[0]["consent"]["door"], "terminal");
    // Taking a permission away needs no consent.
    motor.run(&["network", "deny", domain, "--always"]).succeeded();
    assert_eq!(motor.json(&["network", "list"])[0]["consent"]["door"], "token");
}

#[test]
fn the_token_stands_for_the_owner_where_nobody_sits() {
    let (world, run) = World::waiting(wanting());
    let World { server, mut motor, _serving } = world;
    let token = motor.owner_token();
    let other = format!("motor-owner-{}", "ab".repeat(32));
    let approve = ["task", "approve", &run, "--for", "session"];
    for (wrong, words) in [(other.as_str(), "not the one"), ("nonsense", "MOTOR_OWNER_TOKEN")] {
        motor = motor.env("MOTOR_OWNER_TOKEN", wrong);
        motor.run(&approve).refused(5, &[words]);
        motor.run(&["network", "allow", "x.example.com", "--always"]).refused(5, &[words]);
    }
    let world = World { server, motor: motor.env("MOTOR_OWNER_TOKEN", &token), _serving };
    world.still_waits(&run);
    world.motor.refuses(&["task", "approve", &run, "--id", "apr_000000000000"], 1, "illegal_state");
    world.motor.run(&["task", "approve", &run, "--for", "once"]).refused(2, &["can be allowed for"]);
    assert_eq!(world.motor.json(&["network", "list"]), json!([]));
    let ended = world.motor.run(&[&approve[..], &["-vv"]].concat()).succeeded();
    assert!(!format!("{ended:?}").contains(&token[12..]));
    let decided = &world.ended(&run)["approvals"][0];
    assert_eq!((&decided["scope"], &decided["consent"]["door"]), (&json!("session"), &json!("token")));
    assert_eq!(world.motor.json(&["network", "list"])[0]["level"], "session");
    // It is in its file, and nowhere else in the home.
    assert_eq!(files_with(world.motor.home(), &token[12..]), ["owner.token"]);
}

#[test]
fn a_request_is_the_owners_by_its_token_and_by_nothing_else() {
    let (world, run) = World::waiting(asking());
    let motor = &world.motor;
    let token = motor.owner_token();
    let right = format!("Bearer {token}");
    let wrong = format!("Bearer motor-owner-{}", "0".repeat(64));
    let respond = format!("/v1/tasks/{run}/answer");
    let retry = format!("/v1/tasks/{run}/retries");
    let decision = json!({ "pattern": "x.example.com", "verdict": "allow", "level": "always" });
    let secret = json!({ "name": "key", "value": "a secret of some length", "domains": ["x.example.com"] });
    for (path, body) in [
        (respond.as_str(), json!({ "answer": "red" })),
        (&format!("/v1/tasks/{run}/approval"), json!({ "grant": true, "scope": "once" })),
        (&retry, json!({ "domains": ["x.example.com"] })),
        (&retry, json!({ "writes": ["x.example.com"] })),
        ("/v1/network/decisions", decision.clone()),
        ("/v1/network/withdrawals", decision.clone()),
        ("/v1/credentials", secret),
        ("DELETE /v1/credentials/key", json!({})),
        ("/v1/owner/token", json!({ "token": token, "file": token })),
    ] {
        for headers in [
            &[][..],
            &[("motor-door", "terminal")],
            &[("authorization", wrong.as_str())],
            &[("authorization", token.as_str())],
            &[("authorization", "Bearer ")],
            &[("authorization", right.as_str()), ("motor-door", "model")],
            &[("authorization", right.as_str()), ("motor-door", "elicitation")],
            &[("authorization", right.as_str()), ("authorization", right.as_str())],
        ] {
            let (status, answer) = post(motor, path, headers, &body);
            assert_eq!((status, &answer["code"]), (403, &json!("consent_needed")), "{path} {headers:?}");
            assert!(answer["remedy"].is_string() && !answer.to_string().contains(&token[12..]), "{answer}");
        }
    }
    world.still_waits(&run);
    // The consent that a body claims counts for nothing.
    let forged = json!({ "pattern": "x.example.com", "verdict": "allow", "level": "always",
                         "consent": { "givenBy": "god", "door": "web", "at": 1 } });
    let (status, made) = post(motor, "/v1/network/decisions", &[("authorization", &right)], &forged);
    assert_eq!(
        (status, &made["consent"]["givenBy"], &made["consent"]["door"]),
        (200, &json!("owner"), &json!("token"))
    );
    // After all that was tried the owner is let through at once.
    let terminal = [("authorization", right.as_str()), ("motor-door", "terminal")];
    let (status, moved) = post(motor, &respond, &terminal, &json!({ "answer": "red", "key": "k" }));
    assert_eq!(
        (status, &moved["previousStatus"], &moved["newStatus"]),
        (200, &json!("awaiting_input"), &json!("running"))
    );
    let (status, again) = post(motor, &respond, &terminal, &json!({ "answer": "red", "key": "k" }));
    assert_eq!((status, again), (200, moved));
    world.ended(&run);
    let (status, refused) = post(motor, &respond, &terminal, &json!({ "answer": "blue" }));
    assert_eq!((status, &refused["code"]), (409, &json!("illegal_state")));
}

#[test]
fn a_sealed_token_takes_its_passphrase() {
    let (world, run) = World::waiting(asking());
    let motor = &world.motor;
    let readable = motor.owner_token();
    let mut sealing = motor.at_terminal(&["owner", "seal"]);
    sealing.sees("do it? [y/N] ");
    sealing.types("y");
    sealing.sees("new passphrase (16 characters or more): ");
    sealing.types(PASSPHRASE);
    sealing.sees("the same again: ");
    assert!(!sealing.screen().contains(PASSPHRASE), "{}", sealing.screen());
    sealing.types(PASSPHRASE);
    let sealed = sealing.wait().succeeded();
    assert!(sealed.stdout.contains("sealed with a passphrase"), "{sealed:?}");
    let file = std::fs::read_to_string(motor.home().join("config/owner.token")).unwrap();
    assert!(!file.contains("motor-owner-") && file.contains("memoryKib"), "{file}");
    assert_eq!(motor.json(&["owner", "status"])["sealed"], true);
    // The token readable before is worthless now, and so is the content of the sealed file.
    let respond = format!("/v1/tasks/{run}/answer");
    let old = format!("Bearer {readable}");
    assert_eq!(post(motor, &respond, &[("authorization", &old)], &json!({ "answer": "red" })).0, 403);
    motor.run(&["network", "deny", "x.example.com", "--always"]).refused(5, &["terminal"]);
    let mut asking = motor.at_terminal(&["task", "respond", &run, "blue"]);
    asking.sees("send it? [y/N] ");
    asking.types("y");
    for _ in 0..3 {
        asking.sees("passphrase of the owner's token: ");
        asking.types("not the passphrase");
    }
    asking.wait().refused(5, &["does not open"]);
    world.still_waits(&run);
    let mut asking = motor.at_terminal(&["task", "respond", &run, "blue"]);
    asking.sees("send it? [y/N] ");
    asking.types("y");
    asking.sees("passphrase of the owner's token: ");
    asking.types(PASSPHRASE);
    asking.wait().succeeded();
    world.ended(&run);
    // For unattended use it is printed, to a person.
    let mut printing = motor.at_terminal(&["owner", "token"]);
    printing.sees("print it? [y/N] ");
    printing.types("y");
    printing.sees("passphrase of the owner's token: ");
    printing.types(PASSPHRASE);
    let token = printing.wait().succeeded().stdout;
    assert!(token.starts_with("motor-owner-"), "{token}");
    let mut unsealing = motor.at_terminal(&["owner", "unseal"]);
    unsealing.sees("do it? [y/N] ");
    unsealing.types("y");
    unsealing.sees("passphrase of the owner's token: ");
    unsealing.types(PASSPHRASE);
    unsealing.wait().succeeded();
    assert_ne!(motor.owner_token(), token.trim());
    let rotated = motor.run_as_owner(&["owner", "rotate"], "").succeeded();
    assert!(rotated.stdout.contains("in plain"), "{rotated:?}");
    motor.run_as_owner(&["network", "allow", "x.example.com", "--always"], "").succeeded();
}

#[test]
fn a_passphrase_that_can_be_guessed_or_is_mistyped_changes_nothing() {
    let motor = Motor::new();
    let before = motor.owner_token();
    for (first, second, words) in
        [("short", None, "less than 16"), (PASSPHRASE, Some("correct horse batterz"), "differ")]
    {
        let mut sealing = motor.at_terminal(&["owner", "seal"]);
        sealing.sees("do it? [y/N] ");
        sealing.types("y");
        sealing.sees("or more): ");
        sealing.types(first);
        if let Some(second) = second {
            sealing.sees("again: ");
            sealing.types(second);
        }
        sealing.wait().refused(2, &[words]);
    }
    assert_eq!(motor.owner_token(), before);
}

#[test]
fn a_run_that_fails_after_a_refusal_says_so_by_its_exit_code() {
    let mut script = wanting();
    script["faults"] = json!({ "2": { "status": { "code": 400, "body": "no such thing" } } });
    for (said, code) in [("n", 5), ("r", 1)] {
        let world = World::new(script.clone());
        let mut acting = world.motor.at_terminal(&["act", "the task"]);
        acting.sees("what to do instead: ");
        acting.types(said);
        let ended = acting.wait();
        ended.failed(code, &["400"]);
        // A question that was shown before the wait is shown once.
        assert_eq!(ended.stderr.matches("asks for consent").count(), 1, "{ended:?}");
    }
}

#[test]
fn an_answer_from_elsewhere_takes_the_question_back() {
    let world = World::new(asking());
    let serving = world.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let mut acting = world.motor.at_terminal(&["act", "paint it"]);
    acting.sees("other words): ");
    let run = world.motor.only_run();
    world.motor.run_as_owner(&["task", "respond", &run, "red"], "").succeeded();
    acting.running().wait_for_words("settled elsewhere");
    assert_eq!(acting.wait().succeeded().stdout, "painted\n");
    assert_eq!(world.motor.json(&["task", "status", &run])["questions"][0]["consent"]["door"], "token");
}

#[test]
fn who_follows_without_a_terminal_is_told_what_answers() {
    let world = World::new(asking());
    let serving = world.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let acting = world.motor.start(&["act", "paint it"]);
    let run = acting.run_id();
    let told = acting.wait_for_words("waiting, for ");
    assert!(told.contains(&format!("`motor task respond {run}` answers")), "{told}");
    world.motor.run_as_owner(&["task", "respond", &run, "red"], "").succeeded();
    assert_eq!(acting.wait().succeeded().stdout, "painted\n");
}

#[test]
fn a_failed_run_is_tried_again_and_gets_more_from_its_owner_only() {
    let failing =
        json!({ "turns": [{ "text": "at last" }], "faults": { "1": { "status": { "code": 401, "body": "no" } } } });
    let world = World::new(failing);
    let serving = world.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let run = world.motor.start(&["act", "the task"]);
    let id = run.run_id();
    assert_ne!(run.wait().code, Some(0));
    let trace = world.motor.json(&["task", "status", &id]);
    assert!(trace["failure"]["suggestedAction"].is_string(), "{trace:#}");
    let wider = ["task", "retry", &id, "--domains", "a.example.com", "--guidance", "ask nicely"];
    world.motor.refuses(&wider, 5, "consent_needed");
    let mut asking = world.motor.at_terminal(&wider);
    assert!(asking.sees("[y/N] ").contains("a.example.com"));
    asking.types("y");
    asking.wait().succeeded();
    let trace = world.ended(&id);
    assert_eq!(trace["attempts"].as_array().map(Vec::len), Some(2), "{trace:#}");
    let shown = world.motor.stdout(&["task", "status", &id]);
    assert!(shown.contains("attempt 2") && shown.contains("ask nicely"), "{shown}");
    // Following it shows how it ended, not how its first attempt did.
    assert_eq!(world.motor.run(&["act", "--resume", &id]).succeeded().stdout, "at last\n");
    world.motor.refuses(&["task", "retry", &id], 1, "illegal_state");
}
