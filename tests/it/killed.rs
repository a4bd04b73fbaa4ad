//! `kill -9` of the real program from outside, a thousand times, at instants that chance chooses (SPEC DUR-1 to DUR-5): a run
//! with files, code, requests, questions, approvals and a failed attempt comes to its end all the same. What was acknowledged
//! is not asked for again, what was done is not done again, and what nobody can know is said to be unknown.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use base::Random;
use serde_json::{Value, json};
use tests::binary::{Motor, Running, Signal};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

/// Kills in all, unless `MOTOR_KILLS` says otherwise.
const KILLS: usize = 1_000;
/// Homes at a time.
const LANES: u64 = 4;
/// A host lives up to this long: some die before they listen, and a few bring a run from its beginning to its end.
const LONGEST_LIFE: Duration = Duration::from_millis(200);

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
            code("return [1, 2, 3].map((n) => n * n)"),
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

/// Why a host is not asked any more.
enum Left {
    /// The run is over.
    Over,
    /// It is gone.
    Gone(io::Error),
}

impl From<io::Error> for Left {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// One run in a home of its own, and all that was heard of it.
struct Story<'a> {
    motor: Motor,
    site: &'a Site,
    /// Of its messages.
    name: String,
    run: Option<String>,
    /// Durable events in the order of their ids.
    heard: Vec<Value>,
    /// What was asked, by id.
    asked: BTreeMap<String, Value>,
    acknowledged: BTreeSet<String>,
    kills: usize,
}

impl<'a> Story<'a> {
    fn new(server: &ModelServer, site: &'a Site, name: String) -> Self {
        let motor = Motor::with_model(server).env("MOTOR_KEYRING", "off");
        motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", site.address()));
        Self {
            motor,
            site,
            name,
            run: None,
            heard: Vec::new(),
            asked: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            kills: 0,
        }
    }

    /// Lets one host live, for so long if that is said. Whether the run is over.
    fn host(&mut self, life: Option<Duration>) -> bool {
        let host = self.motor.start(&["serve"]);
        let killed = AtomicBool::new(false);
        let left = std::thread::scope(|scope| {
            let (over, is_over) = mpsc::channel::<()>();
            scope.spawn(|| kill_after(life, &host, &killed, is_over));
            let left = self.accompany(&killed);
            drop(over);
            left
        });
        let is_killed = killed.load(Ordering::SeqCst);
        let ended = host.kill();
        assert!(!ended.stderr.contains("panicked"), "{}: {ended:?}", self.name);
        self.kills += usize::from(is_killed);
        match left {
            Left::Over => true,
            Left::Gone(error) => {
                assert!(is_killed, "{}: the host went away by itself: {error}: {ended:?}", self.name);
                false
            }
        }
    }

    /// Does what a user and an owner do, until the run is over or the host is gone.
    fn accompany(&mut self, killed: &AtomicBool) -> Left {
        match self.until_over(killed) {
            Ok(()) => Left::Over,
            Err(left) => left,
        }
    }

    fn until_over(&mut self, killed: &AtomicBool) -> Result<(), Left> {
        self.wait_for_the_socket(killed)?;
        let run = self.run()?;
        loop {
            let trace = self.get(&format!("/v1/tasks/{run}"))?;
            if trace["waiting"].is_object() {
                self.answer(&run, &trace["waiting"])?;
            } else if trace["status"] == "failed" && trace["attempts"].as_array().is_none_or(|all| all.len() < 2) {
                let retry = json!({ "guidance": "the other way", "key": "retry" });
                self.order(&format!("/v1/tasks/{run}/retry"), "the retry", &retry)?;
            } else if matches!(trace["status"].as_str(), Some("created" | "running")) {
                self.listen(&run)?;
            } else {
                return Ok(());
            }
        }
    }

    fn wait_for_the_socket(&self, killed: &AtomicBool) -> io::Result<()> {
        let began = Instant::now();
        loop {
            match self.motor.ask("/v1/status", None, &[]) {
                Ok(_) => return Ok(()),
                Err(error) if killed.load(Ordering::SeqCst) => return Err(error),
                Err(error) => assert!(began.elapsed() < Duration::from_secs(30), "{}: {error}", self.name),
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The run: accepted now, unless it was acknowledged before.
    fn run(&mut self) -> io::Result<String> {
        if let Some(run) = &self.run {
            return Ok(run.clone());
        }
        let request = json!({
            "task": "order all of it",
            "tools": ["filesystem", "code", "fetch"],
            "domains": [self.site.address().to_string()],
            "approvalRequired": true,
            "key": "the run",
        });
        let (status, reply) = self.motor.ask("/v1/act", Some(&request), &[])?;
        assert_eq!(status, 200, "{}: {reply}", self.name);
        let run = reply["runId"].as_str().unwrap().to_owned();
        self.run = Some(run.clone());
        Ok(run)
    }

    fn get(&self, path: &str) -> io::Result<Value> {
        let (status, value) = self.motor.ask(path, None, &[])?;
        assert_eq!(status, 200, "{}: {path}: {value}", self.name);
        Ok(value)
    }

    /// Gives an order. Its key makes it harmless to give it again when its host was gone before it said anything.
    fn order(&mut self, path: &str, what: &str, body: &Value) -> io::Result<()> {
        assert!(!self.acknowledged.contains(what), "{}: {what} was acknowledged, and is needed again", self.name);
        let (status, reply) = self.motor.ask_as_owner(path, body)?;
        assert_eq!(status, 200, "{}: {what}: {reply}", self.name);
        self.acknowledged.insert(what.to_owned());
        Ok(())
    }

    fn answer(&mut self, run: &str, waiting: &Value) -> io::Result<()> {
        let id = waiting["id"].as_str().unwrap().to_owned();
        let before = self.asked.entry(id.clone()).or_insert_with(|| waiting.clone());
        assert_eq!(before, waiting, "{}: it asks something else under the same id", self.name);
        if waiting["kind"] == "input" {
            let answer = json!({ "answer": waiting["choices"][1], "question": id, "key": id });
            return self.order(&format!("/v1/tasks/{run}/respond"), &id, &answer);
        }
        let actions: Vec<&Value> =
            waiting["items"].as_array().unwrap().iter().map(|item| &item["actionHash"]).collect();
        let decision = json!({ "approval": id, "actions": actions, "grant": true, "key": id });
        self.order(&format!("/v1/tasks/{run}/approve"), &id, &decision)
    }

    /// Follows the run until it asks something or ends.
    fn listen(&mut self, run: &str) -> io::Result<()> {
        for (id, event) in self.motor.events(&format!("/v1/tasks/{run}/events"), self.heard.len() as u64)? {
            assert_eq!(id, self.heard.len() as u64 + 1, "{}: an event is missing before {event}", self.name);
            self.heard.push(event);
            let kind = self.heard.last().and_then(|event| event["type"].as_str());
            if matches!(kind, Some("asked" | "approvalAsked" | "finished")) {
                break;
            }
        }
        Ok(())
    }
}

/// Kills the host when its life is over, unless its run is before.
fn kill_after(life: Option<Duration>, host: &Running, killed: &AtomicBool, is_over: mpsc::Receiver<()>) {
    let Some(life) = life else { return };
    if is_over.recv_timeout(life) == Err(mpsc::RecvTimeoutError::Timeout) {
        killed.store(true, Ordering::SeqCst);
        host.signal(Signal::KILL);
    }
}

/// How a run ended: its status, answer and answers, and what became of each call.
#[derive(Debug, Clone, PartialEq)]
struct End {
    status: String,
    summary: String,
    answers: Vec<Value>,
    granted: Vec<Value>,
    calls: Vec<(String, Value)>,
}

const UNKNOWN: &str = "outcome_unknown";

impl End {
    fn of(trace: &Value) -> Self {
        let texts = |list: &str, field: &str| {
            trace[list].as_array().into_iter().flatten().map(|asked| asked[field].clone()).collect()
        };
        let steps = trace["steps"].as_array().unwrap().iter();
        let calls = steps.flat_map(|step| step["toolCalls"].as_array().unwrap()).map(|call| {
            let result = &call["result"];
            assert!(result.is_object(), "a call has no result: {call}");
            let outcome = if result["ok"] == true { json!(true) } else { result["errorCode"].clone() };
            (call["tool"].as_str().unwrap().to_owned(), outcome)
        });
        Self {
            status: trace["status"].as_str().unwrap().to_owned(),
            summary: trace["summary"].as_str().unwrap_or_default().to_owned(),
            answers: texts("questions", "answer"),
            granted: texts("approvals", "granted"),
            calls: calls.collect(),
        }
    }
}

impl End {
    /// The same with what is expected in place of what is not known. A call that could have been made again is known.
    fn as_far_as_known(&self, expected: &Self) -> Self {
        let mut known = self.clone();
        for (call, expected) in known.calls.iter_mut().zip(&expected.calls) {
            if call.1 == UNKNOWN && ["append", "patch", "fetch", "code"].contains(&call.0.as_str()) {
                call.clone_from(expected);
            }
        }
        known
    }
}

impl Story<'_> {
    /// What must hold at the end. How many outcomes nobody knows.
    fn check(&mut self, expected: Option<&End>) -> (End, usize) {
        let serving = self.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let name = self.name.clone();
        let run = self.run.clone().unwrap();
        let trace = self.get(&format!("/v1/tasks/{run}")).unwrap();
        let end = End::of(&trace);
        let unknown = end.calls.iter().filter(|(_, outcome)| outcome == UNKNOWN).count();
        if let Some(expected) = expected {
            assert_eq!(&end.as_far_as_known(expected), expected, "{name}: {trace:#}");
        }
        self.check_effects(&run, &trace);
        self.check_told(&run, &end);
        (end, unknown)
    }

    /// Files and the sink outside have what is known to have been done once, and what is not known at most once.
    fn check_effects(&self, run: &str, trace: &Value) {
        let log = std::fs::read_to_string(self.motor.workspace(run).join("log.txt")).unwrap_or_default();
        let received = self.site.requests();
        let of_run: Vec<_> = received
            .iter()
            .filter_map(|request| Some((request.header("idempotency-key")?, request.text())))
            .filter(|(key, _)| key.starts_with(run))
            .collect();
        let keys: BTreeSet<&String> = of_run.iter().map(|(key, _)| key).collect();
        assert_eq!(keys.len(), of_run.len(), "{}: the sink saw a key twice: {of_run:?}", self.name);
        for call in trace["steps"].as_array().unwrap().iter().flat_map(|step| step["toolCalls"].as_array().unwrap()) {
            let arguments = &call["args"];
            let times = match call["tool"].as_str().unwrap() {
                "append" => log.lines().filter(|line| arguments["content"] == format!("{line}\n")).count(),
                "fetch" => of_run.iter().filter(|(_, body)| *body == arguments["body"].to_string()).count(),
                _ => continue,
            };
            let is_known = call["result"]["ok"] == true;
            assert!(times == 1 || (times == 0 && !is_known), "{}: {times} times: {call:#}", self.name);
        }
    }

    /// Each attempt has ended once, each question was put once, and what was heard of the run is still its history.
    fn check_told(&self, run: &str, end: &End) {
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for signal in self.get("/v1/signals?after=0&limit=1000").unwrap().as_array().unwrap() {
            assert_eq!(signal["runId"], run, "{}", self.name);
            *counts.entry(signal["status"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        let expected = [
            ("awaiting_approval", end.granted.len()),
            ("awaiting_input", end.answers.len()),
            ("completed", 1),
            ("failed", 1),
        ];
        assert_eq!(counts, expected.map(|(status, count)| (status.to_owned(), count)).into(), "{}", self.name);
        let history: Vec<Value> =
            self.motor.events(&format!("/v1/tasks/{run}/events"), 0).unwrap().map(|(_, event)| event).collect();
        assert!(history.starts_with(&self.heard), "{}: {:?} was heard of {history:?}", self.name, self.heard);
        assert_eq!(self.asked.len(), end.answers.len() + end.granted.len(), "{}", self.name);
    }
}

/// Stories one after another until there have been kills enough. How many there were, and how many calls nobody knows of.
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
            let before = story.kills;
            let is_over = story.host(wanted(0).then(|| LONGEST_LIFE.mul_f64(part)));
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
    assert_eq!((expected.answers.len(), expected.granted.len(), expected.calls.len()), (2, 6, 21), "{expected:?}");

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

    let path = format!("/v1/tasks/{run}/approve");
    let refused = |decision: Value, reason: &str| {
        let (status, reply) = motor.ask_as_owner(&path, &decision).unwrap();
        assert!(status != 200 && reply["error"]["code"] == "illegal_state", "{status}: {reply}");
        assert!(reply["error"]["reason"].as_str().unwrap().contains(reason), "{reply}");
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
    let (motor, run, waiting) = killed_while_it_waits(&server, &site, "[motor]\napproval_timeout_seconds = 2\n");
    // No host lives while the time passes: it is the record that says until when it waits.
    let expires = std::time::UNIX_EPOCH + Duration::from_millis(waiting["expiresAt"].as_u64().unwrap());
    std::thread::sleep(expires.duration_since(std::time::SystemTime::now()).unwrap_or_default());
    motor.run_as_owner(&["task", "approve", &run], "").refused(1, &["expired", "too late"]);
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    motor.wait_for_status(&run, "failed");
    assert_eq!(motor.json(&["task", "status", &run])["error"]["message"], "Owner approval timeout");
    assert!(site.requests().is_empty());
}
