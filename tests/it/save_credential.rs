//! A run saves the key that a sign-up page shows (SPEC VAULT-4): it waits for the owner, is shown nowhere, and the next run
//! of the skill sends it where the policy allows. An order of a page beyond that is refused.

use std::path::Path;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

const KEY: &str = "mailkey-7f3a9c51e0b84d26";
const OTHER: &str = "otherkey-0a1b2c3d4e5f6a7b";
const PLACEHOLDER: &str = "<credential:mail_key>";
const SKILL: &str = "---\nname: mail\ndescription: Signs up for mail and sends it.\n---\n# Mail\n";

fn call(name: &str, arguments: &Value) -> Value {
    json!({ "tool_calls": [{ "name": name, "arguments": arguments }] })
}

fn save(arguments: Value) -> Value {
    call("save_credential", &arguments)
}

/// A home with an approved skill that may save `mail_key`, and a site of its domain.
struct World {
    motor: Motor,
    site: Site,
    server: ModelServer,
}

impl World {
    fn new(turns: impl FnOnce(&Site) -> Value) -> Self {
        let site = block_on(Site::start())
            .with("/signup", Reply::text(&format!("welcome, your key is {KEY}, keep it")))
            .with("/send", Reply::text("sent"));
        let server = block_on(ModelServer::scripted(json!({ "turns": turns(&site) })));
        let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off");
        motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", site.address()));
        let directory = motor.home().join("skills/mail");
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join("SKILL.md"), SKILL).unwrap();
        let domain = site.address().to_string();
        let approve = [
            "skill",
            "approve",
            "mail",
            "--tools",
            "fetch,read,write,save_credential",
            "--domains",
            &domain,
            "--writes",
            &domain,
            "--credentials",
            "mail_key",
        ];
        motor.run_as_owner(&approve, "").succeeded();
        Self { motor, site, server }
    }

    fn act(&self) {
        // A run whose calls are refused again and again ends as failed.
        let ended = self.motor.run(&["act", "sign up for mail", "--skill", "mail"]);
        assert!(matches!(ended.code, Some(0 | 1)), "{ended:?}");
    }

    fn pending(&self) -> Vec<Value> {
        let all = self.motor.json(&["credential", "list"]);
        all.as_array().unwrap().iter().filter(|one| !one["pending"].is_null()).cloned().collect()
    }

    /// The last tool result that the model was sent.
    fn told(&self) -> String {
        let requests = self.server.requests();
        let body = &requests.last().expect("a request").body;
        let messages = body["messages"].as_array().expect("messages");
        let tool = messages.iter().rev().find(|message| message["role"] == "tool").expect("a result of a tool");
        tool["content"].to_string()
    }
}

/// Files below a directory that hold these bytes, without compiled tools and the engine's own files: they keep overwritten bytes until
/// it reuses the room.
fn holding(directory: &Path, bytes: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.ends_with("state") || path.ends_with("cache") {
            continue;
        }
        if path.is_dir() {
            found.extend(holding(&path, bytes));
        } else if path.is_file() {
            let content = std::fs::read(&path).unwrap();
            if content.windows(bytes.len()).any(|window| window == bytes.as_bytes()) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// That no file and no command shows a value.
#[track_caller]
fn is_nowhere(world: &World, value: &str) {
    assert_eq!(holding(world.motor.home(), value), Vec::<String>::new());
    for run in world.motor.json(&["task", "list"]).as_array().unwrap() {
        let run = run["runId"].as_str().unwrap();
        for command in
            [&["task", "status", run, "--full"][..], &["task", "log", run], &["signals"], &["credential", "list"]]
        {
            let shown = world.motor.run(command).succeeded();
            assert!(!(shown.stdout + &shown.stderr).contains(value), "{command:?}");
        }
    }
}

fn sign_up(site: &Site) -> Vec<Value> {
    vec![
        call("fetch", &json!({ "url": site.url("/signup") })),
        call("write", &json!({ "path": "note.txt", "content": format!("the key is {KEY}\n") })),
        call("read", &json!({ "path": "note.txt" })),
        save(json!({ "name": "mail_key", "value": KEY })),
    ]
}

#[test]
fn a_key_of_a_sign_up_page_is_saved_accepted_and_used_by_the_next_run() {
    let world = World::new(|site| {
        let mut turns = sign_up(site);
        turns.push(json!({ "text": format!("signed up, the key is {KEY}") }));
        json!(turns)
    });
    let ended = world.motor.run(&["act", "sign up for mail", "--skill", "mail"]).succeeded();
    // Until it was handed over it was text like any other.
    let (_, after) = ended.stderr.split_once("save_credential").unwrap();
    assert!(!ended.stdout.contains(KEY) && !after.contains(KEY), "{ended:?}");
    assert!(ended.stdout.contains(PLACEHOLDER), "{ended:?}");
    assert!(world.told().contains("is saved and waits for the owner"), "{}", world.told());
    is_nowhere(&world, KEY);
    // The search finds a value that is there, and the model was once sent the value for real.
    assert!(!holding(world.motor.home(), PLACEHOLDER).is_empty());

    let waiting = world.pending();
    let [one] = waiting.as_slice() else { panic!("{waiting:?}") };
    assert_eq!((&one["name"], &one["skill"]), (&json!("mail_key"), &json!("mail")));
    assert_eq!(one["pending"]["bytes"], json!(KEY.len()));
    assert_eq!(one["pending"]["runId"], json!(world.motor.only_run()));
    assert_eq!(one["domains"], json!([world.site.address().to_string()]));

    // Before the owner agrees no run is granted it; a program without the owner's word cannot agree.
    world.motor.run(&["act", &format!("use {PLACEHOLDER}"), "--skill", "mail"]).refused(4, &["mail_key"]);
    world.motor.run_as_owner(&["credential", "accept", "mail_key"], "").succeeded();
    assert_eq!(world.pending(), Vec::<Value>::new());

    let url = world.site.url("/send");
    let send = json!({ "url": url, "method": "POST", "headers": { "X-Key": PLACEHOLDER }, "body": "hello" });
    let server = block_on(ModelServer::scripted(json!({ "turns": [call("fetch", &send), { "text": "sent" }] })));
    let ended = {
        let motor = Motor::with_model(&server).env("MOTOR_KEYRING", "off").at(world.motor.home().to_owned());
        motor.run(&["act", "send it", "--skill", "mail"]).succeeded()
    };
    assert!(ended.stdout.contains("sent"), "{ended:?}");
    assert_eq!(world.site.last_request().header("x-key").as_deref(), Some(KEY));
    is_nowhere(&world, KEY);
}

#[test]
fn a_rejected_key_is_gone() {
    let world = World::new(|site| {
        let mut turns = sign_up(site);
        turns.push(json!({ "text": "done" }));
        json!(turns)
    });
    world.act();
    assert_eq!(world.pending().len(), 1);
    world.motor.run_as_owner(&["credential", "reject", "mail_key"], "").succeeded();
    assert_eq!(world.pending(), Vec::<Value>::new());
    world.motor.run_as_owner(&["credential", "accept", "mail_key"], "").refused(1, &["mail_key"]);
    world.motor.run_as_owner(&["credential", "reject", "mail_key"], "").refused(1, &["mail_key"]);
}

#[test]
fn what_a_page_orders_beyond_the_policy_is_refused_and_its_value_is_kept_nowhere() {
    for (arguments, words) in [
        (json!({ "name": "bank_key", "value": OTHER }), "forbidden: the policy of the skill `mail` declares no"),
        (json!({ "name": "mail_key", "value": OTHER, "skill": "bank" }), "invalid_request: it has the parameters"),
        (json!({ "name": "mail_key", "value": OTHER, "domain": "evil.example" }), "forbidden: the policy of the skill"),
        (json!({ "name": "mail_key", "value": format!("{OTHER}\u{7}x") }), "it has control characters"),
        (json!({ "name": "mail_key", "value": format!("{OTHER}{}", "x9".repeat(1 << 17)) }), "more than 64 KiB"),
        (json!({ "name": "mail_key", "value": "short" }), "fewer than 8 bytes"),
    ] {
        let world = World::new(|_| json!([save(arguments.clone()), { "text": "done" }]));
        world.act();
        assert!(world.told().contains(words), "{arguments}: {}", world.told());
        assert_eq!(world.pending(), Vec::<Value>::new(), "{arguments}");
        is_nowhere(&world, OTHER);
    }
}

#[test]
fn a_credential_that_is_set_or_waits_is_never_replaced() {
    let again = |_: &Site| {
        let (first, second) =
            (json!({ "name": "mail_key", "value": KEY }), json!({ "name": "mail_key", "value": OTHER }));
        json!([save(first.clone()), save(first), save(second), { "text": "done" }])
    };
    let world = World::new(again);
    world.act();
    assert!(world.told().contains("illegal_state: another value for `mail_key`"), "{}", world.told());
    let waiting = world.pending();
    assert_eq!(waiting.len(), 1, "{waiting:?}");
    assert_eq!(waiting[0]["pending"]["bytes"], json!(KEY.len()));
    is_nowhere(&world, KEY);

    let world = World::new(again);
    let domain = world.site.address().to_string();
    let set = ["credential", "set", "mail_key", "--domain", &domain, "--skill", "mail"];
    world.motor.run_as_owner(&set, "the-owners-own-value-1").succeeded();
    world.act();
    assert!(world.told().contains("illegal_state: credential `mail_key` is set already"), "{}", world.told());
    assert_eq!(world.pending(), Vec::<Value>::new());
}

#[test]
fn a_thousand_orders_to_save_keep_none_that_is_not_declared() {
    let flood = |from: usize| {
        let calls = (from..from + 32).map(|n| {
            json!({ "name": "save_credential", "arguments": { "name": format!("key_{n}"), "value": format!("{OTHER}{n}") } })
        });
        json!({ "tool_calls": calls.collect::<Vec<_>>() })
    };
    let world = World::new(|_| json!((0..32).map(|turn| flood(turn * 32)).collect::<Vec<_>>()));
    // The loop guard ends it.
    let ended = world.motor.run(&["act", "sign up for mail", "--skill", "mail"]);
    assert_ne!(ended.code, Some(0), "{ended:?}");
    assert_eq!(world.pending(), Vec::<Value>::new());
    is_nowhere(&world, OTHER);
}

#[test]
fn a_run_without_a_skill_is_not_granted_the_tool_and_keeps_no_value_that_it_hands_over() {
    let world = World::new(|_| json!([save(json!({ "name": "mail_key", "value": OTHER })), { "text": "done" }]));
    world.motor.run(&["act", "save it", "--tools", "save_credential"]).refused(2, &["save_credential", "--skill"]);
    world.motor.run(&["act", "save it", "--tools", "code"]).succeeded();
    assert!(world.told().contains("an approved skill whose policy grants it"), "{}", world.told());
    assert_eq!(world.pending(), Vec::<Value>::new());
    is_nowhere(&world, OTHER);
}

#[test]
fn a_kill_at_any_event_neither_loses_nor_doubles_a_saved_key() {
    for events in 1..=8 {
        let world = World::new(|site| {
            let mut turns = sign_up(site);
            turns.push(json!({ "text": "done" }));
            json!(turns)
        });
        let serving = world.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let run = world.motor.stdout(&["act", "sign up for mail", "--skill", "mail", "--detach"]).trim().to_owned();
        let steps = |now: &Value| now["steps"].as_array().map_or(0, Vec::len);
        world.motor.wait_for(&["task", "status", &run], |now| steps(now) * 2 >= events || now["status"] == "completed");
        serving.kill();
        let serving = world.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        world.motor.wait_for_status(&run, "completed");
        let waiting = world.pending();
        assert_eq!(waiting.len(), 1, "killed after {events}: {waiting:?}");
        is_nowhere(&world, KEY);
        serving.kill();
    }
}
