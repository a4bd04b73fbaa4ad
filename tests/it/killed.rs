//! `kill -9` of the real program from outside, a thousand times, at instants that chance chooses (SPEC DUR-1 to DUR-5):
//! a run with files, code, requests, questions, approvals and a failed attempt comes to its end all the same.
//! Acknowledged input is not asked for again, completed calls are not repeated, and outcomes that cannot be known are
//! reported as unknown.

mod story;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::Random;
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

use story::{End, Life, Story};

/// Kills in all, unless `MOTOR_KILLS` says otherwise.
const KILLS: usize = 1_000;
/// Homes at the same time.
const LANES: u64 = 4;
/// Half of the hosts live up to this long: some die before they listen.
const LONGEST_LIFE: Duration = Duration::from_millis(200);
/// The others live until the run has gone on by up to so many events, and up to so long beyond: a step takes that long.
const MAX_PROGRESS: u64 = 8;
const BEYOND: Duration = Duration::from_millis(10);

/// Twenty-two steps: an attempt that fails, and one that does not.
fn script(site: &Site) -> Value {
    let call = |name: &str, arguments: Value| json!({ "tool_calls": [{ "name": name, "arguments": arguments }] });
    let append = |line: u32| call("append", json!({ "path": "log.txt", "content": format!("line {line}\n") }));
    let order = |n: u32| call("fetch", json!({ "url": site.url("/orders"), "method": "POST", "body": { "n": n } }));
    let code = |text: &str| call("code", json!({ "code": text }));
    let read = |path: &str| call("read", json!({ "path": path }));
    let ask = |question: &str| call("ask_user", json!({ "question": question, "choices": ["red", "blue"] }));
    json!({
        "turns": [
            call("write", json!({ "path": "plan.txt", "content": "all of it\n" })),
            append(0),
            code("return 6 * 7"),
            order(0),
            ask("Which one?"),
            append(1),
            call("list", json!({ "path": "." })),
            code(&format!("return (await fetch('{}', {{ method: 'POST', body: '7' }})).status", site.url("/orders"))),
            order(1),
            read("plan.txt"),
            read("a.txt"),
            read("b.txt"),
            read("c.txt"),
        ],
        "attempts": [[
            read("plan.txt"),
            append(2),
            ask("Once more?"),
            order(2),
            code("return 'x'.repeat(3)"),
            call("patch", json!({ "path": "plan.txt", "find": "all", "replace": "most" })),
            append(3),
            read("plan.txt"),
            { "text": "all done" },
        ]],
    })
}

/// Stories one after another until there have been kills enough. Returns the number of stories, and of unknown
/// outcomes.
fn lane(
    server: &ModelServer,
    site: &Site,
    expected: &End,
    seed: u64,
    wanted: impl Fn(usize) -> bool,
) -> (usize, usize) {
    let chance = Random::seeded(seed);
    let (mut stories, mut unknown) = (0, 0);
    while wanted(0) {
        let mut story = Story::new(server, site, format!("seed {seed}, story {stories}"));
        loop {
            let part = (chance.next_u64() % 10_000) as f64 / 10_000.0;
            let life = match chance.next_u64() % (2 * MAX_PROGRESS) {
                steps @ 1..=MAX_PROGRESS => Life::Progress(steps, BEYOND.mul_f64(part)),
                _ => Life::Time(LONGEST_LIFE.mul_f64(part)),
            };
            let before = story.kills;
            let is_over = story.host(wanted(0).then_some(life));
            wanted(story.kills - before);
            if is_over {
                break;
            }
        }
        unknown += story.check(Some(expected)).1;
        stories += 1;
    }
    (stories, unknown)
}

#[test]
fn a_thousand_kills_lose_nothing_and_repeat_nothing() {
    let goal = std::env::var("MOTOR_KILLS").map_or(KILLS, |kills| kills.parse().expect("a number of kills"));
    let seed = Random::from_system().next_u64() >> 16;
    println!("seed {seed}");
    let site = block_on(Site::start()).with("/orders", Reply::text("taken"));
    let server = block_on(ModelServer::scripted(script(&site)));
    let mut story = Story::new(&server, &site, "undisturbed".into());
    assert!(story.host(None));
    let (expected, unknown) = story.check(None);
    assert_eq!((expected.status.as_str(), expected.summary.as_str(), unknown), ("completed", "all done", 0));
    assert_eq!((expected.answers.len(), expected.granted.len(), expected.calls.len()), (2, 4, 21), "{expected:?}");

    let began = Instant::now();
    let kills = AtomicUsize::new(0);
    let wanted = |more| kills.fetch_add(more, Ordering::SeqCst) + more < goal;
    let lanes = std::thread::scope(|scope| {
        let lane = |number| {
            let (server, site, expected, wanted) = (&server, &site, &expected, &wanted);
            scope.spawn(move || lane(server, site, expected, seed + number, wanted))
        };
        let lanes: Vec<_> = (0..LANES).map(lane).collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).collect::<Vec<_>>()
    });
    let (stories, unknown) = lanes.iter().fold((0, 0), |all, lane| (all.0 + lane.0, all.1 + lane.1));
    let kills = kills.into_inner();
    println!("{kills} kills, {stories} runs, {unknown} calls of unknown outcome, {:?}", began.elapsed());
    assert!(kills >= goal, "{kills} kills");
}

/// A run that waits for consent to one request, killed there.
fn killed_while_it_waits(server: &ModelServer, site: &Site, settings: &str) -> (Motor, String, Value) {
    let motor = Motor::with_model(server).env("MOTOR_KEYRING", "off");
    motor.configure(&format!("[network]\nprivate = [\"{}\"]\n{settings}", site.address()));
    let domain = site.address().to_string();
    let request = ["act", "order it", "--tools", "fetch", "--domains", &domain, "--approval", "--detach"];
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let run = motor.stdout(&request).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_approval");
    serving.kill();
    let waiting = motor.json(&["task", "status", &run])["waiting"].clone();
    (motor, run, waiting)
}

fn order_once(site: &Site) -> Value {
    let arguments = json!({ "url": site.url("/orders"), "method": "POST", "body": { "n": 1 } });
    json!({ "turns": [{ "tool_calls": [{ "name": "fetch", "arguments": arguments }] }, { "text": "ordered" }] })
}

#[test]
fn consent_after_a_kill_is_to_the_same_action_and_given_once() {
    let site = block_on(Site::start()).with("/orders", Reply::text("taken"));
    let server = block_on(ModelServer::scripted(order_once(&site)));
    let (motor, run, waiting) = killed_while_it_waits(&server, &site, "");
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    assert_eq!(motor.json(&["task", "status", &run])["waiting"], waiting, "it is the same request");
    assert_eq!(motor.json_lines(&["signals", "--since", "0"]).len(), 1, "it was asked once");

    let path = format!("/v1/tasks/{run}/approval");
    let refused = |decision: Value, reason: &str| {
        let (status, reply) = motor.ask_as_owner(&path, &decision).unwrap();
        assert!(status != 200 && reply["code"] == "illegal_state", "{status}: {reply}");
        assert!(reply["detail"].as_str().unwrap().contains(reason), "{reply}");
    };
    let (id, action) = (&waiting["id"], &waiting["items"][0]["actionHash"]);
    let mut changed = action.as_str().unwrap().to_owned();
    let last = if changed.ends_with('0') { "1" } else { "0" };
    changed.replace_range(changed.len() - 1.., last);
    refused(json!({ "approval": id, "actions": [changed], "grant": true }), "about another action");
    refused(json!({ "approval": id, "actions": [action, action], "grant": true }), "about another action");
    refused(json!({ "approval": "apr_000000000000", "actions": [action], "grant": true }), "does not wait any more");
    assert!(site.requests().is_empty());

    let decision = json!({ "approval": id, "actions": [action], "grant": true });
    assert_eq!(motor.ask_as_owner(&path, &decision).unwrap().0, 200);
    motor.wait_for_status(&run, "completed");
    refused(decision, "asks nothing");
    let received = site.requests();
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].text(), json!({ "n": 1 }).to_string());
}

#[test]
fn consent_that_comes_too_late_is_refused() {
    let site = block_on(Site::start()).with("/orders", Reply::text("taken"));
    let server = block_on(ModelServer::scripted(order_once(&site)));
    let (motor, run, waiting) = killed_while_it_waits(&server, &site, "[motor]\ndetached_timeout_seconds = 2\n");
    // No host lives while the time passes: the record itself holds the deadline.
    let expires = std::time::UNIX_EPOCH + Duration::from_millis(waiting["expiresAt"].as_u64().unwrap());
    let left = expires.duration_since(std::time::SystemTime::now()).unwrap_or_default();
    assert!(left <= Duration::from_secs(2), "it waits for another time: {left:?}");
    std::thread::sleep(left);
    motor.run_as_owner(&["task", "approve", &run], "").refused(1, &["expired", "too late"]);
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    motor.wait_for_status(&run, "failed");
    assert_eq!(motor.json(&["task", "status", &run])["error"]["message"], "Owner approval timeout");
    assert!(site.requests().is_empty());
}
