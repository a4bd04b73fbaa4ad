//! One run on hosts that are killed, as its user and its owner live through it: the events they hear, the answers they
//! give, and the checks at the end.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::Patience;
use tests::binary::{Motor, Running, Signal};
use tests::model_server::ModelServer;
use tests::network::Site;

/// Why the story leaves a host.
enum Left {
    /// The run has reached its end.
    Over,
    /// The host no longer answers.
    Gone(io::Error),
}

impl From<io::Error> for Left {
    fn from(error: io::Error) -> Self {
        Self::Gone(error)
    }
}

/// How long a host lives.
#[derive(Debug, Clone, Copy)]
pub enum Life {
    /// So long from its start: it may die before it listens.
    Time(Duration),
    /// Until the run has gone on by so many events and orders, and so long beyond.
    Progress(u64, Duration),
}

/// One run in a home of its own, and all that was heard of it.
pub struct Story<'a> {
    motor: Motor,
    site: &'a Site,
    /// The name in its messages.
    name: String,
    run: Option<String>,
    /// Durable events in the order of their ids.
    heard: Vec<Value>,
    /// The questions so far, by id.
    asked: BTreeMap<String, Value>,
    acknowledged: BTreeSet<String>,
    pub kills: usize,
    /// Tells the killer that the run has gone on.
    going_on: Option<mpsc::Sender<()>>,
}

impl<'a> Story<'a> {
    pub fn new(server: &ModelServer, site: &'a Site, name: String) -> Self {
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
            going_on: None,
        }
    }

    /// Lets one host live, for so long if a life is set. Returns whether the run is over.
    pub fn host(&mut self, life: Option<Life>) -> bool {
        let host = self.motor.start(&["serve"]);
        let killed = AtomicBool::new(false);
        let left = std::thread::scope(|scope| {
            let (going_on, progress) = mpsc::channel();
            scope.spawn(|| kill_after(life, &host, &killed, progress));
            self.going_on = Some(going_on);
            let left = self.accompany(&killed);
            self.going_on = None;
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

    /// Acts as a user and an owner, until the run is over or the host is gone.
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
                self.order(&format!("/v1/tasks/{run}/retries"), "the retry", &retry)?;
            } else if matches!(trace["status"].as_str(), Some("created" | "running")) {
                self.listen(&run)?;
            } else {
                return Ok(());
            }
        }
    }

    fn wait_for_the_socket(&self, killed: &AtomicBool) -> io::Result<()> {
        let mut patience = Patience::default();
        loop {
            match self.motor.ask("/v1/host", None, &[]) {
                Ok(_) => return Ok(()),
                Err(error) if killed.load(Ordering::SeqCst) => return Err(error),
                Err(error) => assert!(patience.lasts(), "{}: {error}", self.name),
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
        let (status, reply) = self.motor.ask("/v1/tasks", Some(&request), &[])?;
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

    /// Gives an order. Its key makes it harmless to repeat it if its host was gone before it answered.
    fn order(&mut self, path: &str, what: &str, body: &Value) -> io::Result<()> {
        assert!(!self.acknowledged.contains(what), "{}: {what} was acknowledged, and is needed again", self.name);
        let (status, reply) = self.motor.ask_as_owner(path, body)?;
        assert_eq!(status, 200, "{}: {what}: {reply}", self.name);
        self.acknowledged.insert(what.to_owned());
        self.goes_on();
        Ok(())
    }

    fn goes_on(&self) {
        // The receiver is gone once the host is killed.
        self.going_on.as_ref().map(|going_on| going_on.send(()).ok());
    }

    fn answer(&mut self, run: &str, waiting: &Value) -> io::Result<()> {
        let id = waiting["id"].as_str().unwrap().to_owned();
        let before = self.asked.entry(id.clone()).or_insert_with(|| waiting.clone());
        assert_eq!(before, waiting, "{}: it asks something else under the same id", self.name);
        if waiting["kind"] == "input" {
            let answer = json!({ "answer": waiting["choices"][1], "question": id, "key": id });
            return self.order(&format!("/v1/tasks/{run}/answer"), &id, &answer);
        }
        let actions: Vec<&Value> =
            waiting["items"].as_array().unwrap().iter().map(|item| &item["actionHash"]).collect();
        let decision = json!({ "approval": id, "actions": actions, "grant": true, "key": id });
        self.order(&format!("/v1/tasks/{run}/approval"), &id, &decision)
    }

    /// Follows the run until it asks something or ends.
    fn listen(&mut self, run: &str) -> io::Result<()> {
        for (id, event) in self.motor.events(&format!("/v1/tasks/{run}/events"), self.heard.len() as u64)? {
            assert_eq!(id, self.heard.len() as u64 + 1, "{}: an event is missing before {event}", self.name);
            self.heard.push(event);
            self.goes_on();
            let kind = self.heard.last().and_then(|event| event["type"].as_str());
            if matches!(kind, Some("asked" | "approvalAsked" | "finished")) {
                break;
            }
        }
        Ok(())
    }
}

/// Kills the host when its life is over, unless its run ends first.
fn kill_after(life: Option<Life>, host: &Running, killed: &AtomicBool, progress: mpsc::Receiver<()>) {
    let (steps, beyond) = match life {
        None => return,
        Some(Life::Time(time)) => (0, time),
        Some(Life::Progress(steps, beyond)) => (steps, beyond),
    };
    for _ in 0..steps {
        if progress.recv().is_err() {
            return;
        }
    }
    let end = Instant::now() + beyond;
    loop {
        match progress.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(()) => {}
            Err(mpsc::RecvTimeoutError::Disconnected) => return,
            Err(mpsc::RecvTimeoutError::Timeout) => break,
        }
    }
    killed.store(true, Ordering::SeqCst);
    host.signal(Signal::KILL);
}

/// The end of a run: its status, summary and answers, and the outcome of each call.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub status: String,
    pub summary: String,
    pub answers: Vec<Value>,
    pub granted: Vec<Value>,
    pub calls: Vec<(String, Value)>,
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
    /// The number of calls with an unknown outcome.
    fn unknown(&self) -> usize {
        self.calls.iter().filter(|(_, outcome)| outcome == UNKNOWN).count()
    }

    /// The same with the expected outcome in place of unknown ones. A call that could have been made again is known. A
    /// call whose host died before it was refused its request is not known, and was not asked about.
    fn as_far_as_known(&self, expected: &Self) -> Self {
        let mut known = self.clone();
        if (1..=self.unknown()).contains(&expected.granted.len().saturating_sub(self.granted.len())) {
            known.granted.clone_from(&expected.granted);
        }
        for (call, expected) in known.calls.iter_mut().zip(&expected.calls) {
            if call.1 == UNKNOWN && ["append", "patch", "fetch", "code"].contains(&call.0.as_str()) {
                call.clone_from(expected);
            }
        }
        known
    }
}

impl Story<'_> {
    /// Checks the end of the story. Returns the end, and the number of unknown outcomes.
    pub fn check(&mut self, expected: Option<&End>) -> (End, usize) {
        let serving = self.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let name = self.name.clone();
        let run = self.run.clone().unwrap();
        let trace = self.get(&format!("/v1/tasks/{run}")).unwrap();
        let end = End::of(&trace);
        let unknown = end.unknown();
        if let Some(expected) = expected {
            assert_eq!(&end.as_far_as_known(expected), expected, "{name}: {trace:#}");
        }
        self.check_effects(&run, &trace);
        self.check_told(&run, &end);
        (end, unknown)
    }

    /// Files and the sink outside have known effects once, and unknown ones at most once.
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
                "fetch" => {
                    let sent = arguments["body"].to_string();
                    of_run.iter().filter(|(_, body)| *body == sent).count()
                }
                "code" if arguments["code"].as_str().is_some_and(|code| code.contains("'POST'")) => {
                    of_run.iter().filter(|(_, body)| body == "7").count()
                }
                _ => continue,
            };
            let is_known = call["result"]["ok"] == true;
            assert!(times == 1 || (times == 0 && !is_known), "{}: {times} times: {call:#}", self.name);
        }
    }

    /// Each attempt has ended once, each question was put once, and the events heard of the run are still its history.
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
        // A call whose outcome is unknown is not made again, so nothing may have been asked about it.
        let expected = expected.into_iter().filter(|(_, count)| *count > 0);
        let expected: BTreeMap<String, usize> = expected.map(|(status, count)| (status.to_owned(), count)).collect();
        assert_eq!(counts, expected, "{}", self.name);
        let history: Vec<Value> =
            self.motor.events(&format!("/v1/tasks/{run}/events"), 0).unwrap().map(|(_, event)| event).collect();
        assert!(history.starts_with(&self.heard), "{}: {:?} was heard of {history:?}", self.name, self.heard);
        assert_eq!(self.asked.len(), end.answers.len() + end.granted.len(), "{}", self.name);
    }
}
