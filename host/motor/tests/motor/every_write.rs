//! A long run with everything in it, on a host that dies at every write in turn: before the write, or after it was synced
//! and before anybody was told (SPEC DUR-1 to DUR-5). The next host and an owner who answers what is asked bring it to the
//! same end, or to one that says which outcome is not known; nothing is done twice, and nobody is asked twice.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::{Clock as _, Consent, Door, ErrorCode, Refusal, RefusalCode, RunId, SystemClock};
use motor::{
    Answer, Approval, Decided, LiveEvent, RetryRequest, RunRecord, RunRequest, RunStatus, RunTrace, Scope, Waiting,
};
use serde_json::{Value, json};
use signals::SignalStatus;
use store::{Faults, NoFaults};

use crate::home::{Home, Turn, call, request, world};

/// Tools whose calls may be made again without asking.
const REPEATABLE: [&str; 4] = ["look", "flaky", "web", "set"];

const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// What becomes of the write at which the host dies.
#[derive(Debug, Clone, Copy)]
enum Death {
    NotWritten,
    NotSynced,
    /// On the disk, and nobody was told.
    NotTold,
}

/// The host dies at one write: from then on no write succeeds.
#[derive(Debug)]
struct DiesAt {
    left: AtomicU32,
    death: Death,
}

impl DiesAt {
    fn is_alive(&self) -> bool {
        self.left.load(Ordering::SeqCst) > 0
    }

    fn fails(&self, errno: i32) -> io::Result<()> {
        if self.is_alive() { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
    }
}

impl Faults for DiesAt {
    fn before_write(&self) -> io::Result<()> {
        if matches!(self.death, Death::NotWritten) { self.fails(ENOSPC) } else { Ok(()) }
    }

    fn before_sync(&self) -> io::Result<()> {
        if matches!(self.death, Death::NotSynced) { self.fails(EIO) } else { Ok(()) }
    }

    fn after_sync(&self) {
        assert!(self.is_alive() || !matches!(self.death, Death::NotTold), "the host dies here");
        self.left.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Model calls of the first attempt.
const FIRST: u32 = 13;

/// An attempt that fails in the end, and one that does not.
pub fn both_attempts() -> Vec<Turn> {
    let fail = |text: &'static str| call("fail", json!({"text": text}));
    let get = |host: &'static str, n: u32| ("get", json!({"text": host, "n": n}));
    let post = || call("post", json!({"text": "entry"}));
    vec![
        call("flaky", json!({})),
        call("append", json!({"text": "a"})),
        Turn::Call(vec![("set", json!({})), ("append", json!({"text": "b"})), ("nothing", json!({}))]),
        call("look", json!({})),
        call("web", json!({})),
        call("ask_user", json!({"question": "Which one?", "choices": ["red", "blue"]})),
        call("send", json!({"text": "order"})),
        Turn::Call(vec![get("a", 1), get("a", 2), get("b", 3)]),
        post(),
        call("send", json!({"text": "not wanted"})),
        fail("x"),
        fail("y"),
        fail("z"),
        call("look", json!({})),
        // Done before, so it is not done again.
        post(),
        call("append", json!({"text": "c"})),
        call("request_approval", json!({"action": "go on"})),
        call("send", json!({"text": "another order"})),
        call("set", json!({"text": "2"})),
        call("ask_user", json!({"question": "Is that all?"})),
        call("append", json!({"text": "d"})),
        Turn::Say("done"),
    ]
}

/// What is asked for.
pub fn asked() -> RunRequest {
    RunRequest {
        may_ask: true,
        approval_required: true,
        max_iterations: Some(FIRST),
        key: Some("start".into()),
        ..request()
    }
}

/// The owner: answers what is asked, retries what failed, and remembers what was acknowledged.
#[derive(Default)]
pub struct Owner {
    /// What was seen to wait, by id.
    asked: BTreeMap<String, Waiting>,
    /// What was acknowledged: nobody may ask for it again.
    acknowledged: BTreeSet<String>,
    /// The tool results that were shown by hosts that died.
    shown: Vec<String>,
    deaths: u32,
}

fn consent() -> Consent {
    Consent { given_by: "owner".into(), door: Door::Token, at: SystemClock::default().now() }
}

/// The run when it waits or is over; none when the host died.
pub async fn still(home: &Home, id: &RunId) -> Option<RunRecord> {
    let mut watch = home.motor.watch(id).unwrap();
    loop {
        let record = home.motor.record(id).unwrap();
        if record.status.is_terminal() || record.status.is_waiting() {
            return Some(record);
        }
        if matches!(watch.next().await, None | Some(LiveEvent::Suspended { .. })) {
            return None;
        }
    }
}

/// The tool results that a watcher is shown at once.
async fn seen(home: &Home, id: &RunId) -> Vec<String> {
    let mut watch = home.motor.watch(id).unwrap();
    let mut seen = Vec::new();
    loop {
        let event = tokio::select! {
            biased;
            event = watch.next() => event,
            () = std::future::ready(()) => None,
        };
        match event {
            Some(LiveEvent::ToolFinished { call_id, result, .. }) => seen.push(format!("{call_id} {}", result.output)),
            Some(_) => {}
            None => return seen,
        }
    }
}

/// Whether there is nothing more to be done about the run.
pub fn is_over(record: &RunRecord) -> bool {
    record.status == RunStatus::Completed || (record.status == RunStatus::Failed && record.attempt == 2)
}

impl Owner {
    /// The next host on the home of one that died.
    async fn goes_on(&mut self, home: Home, id: &RunId) -> Home {
        self.deaths += 1;
        self.shown = seen(&home, id).await;
        let home = home.reopen().await;
        home.motor.resume_all().await.unwrap();
        home
    }

    /// Says to a run that waits or has failed what it needs. An order that died with its host is given again as it was.
    pub async fn serves(&mut self, home: &Home, record: &RunRecord) -> Result<(), Refusal> {
        let id = &record.id;
        let Some(waiting) = &record.waiting else {
            let key = format!("retry {}", record.attempt);
            assert!(!self.acknowledged.contains(&key), "the retry is lost: {record:?}");
            let request = RetryRequest {
                guidance: Some("try the other way".into()),
                key: Some(key.clone()),
                ..RetryRequest::default()
            };
            assert_eq!(home.motor.retry(id, request).await?.attempt_index, record.attempt + 1);
            self.acknowledged.insert(key);
            return Ok(());
        };
        let asked = waiting.id().to_owned();
        assert!(!self.acknowledged.contains(&asked), "`{asked}` is asked again");
        let before = self.asked.entry(asked.clone()).or_insert_with(|| waiting.clone());
        assert_eq!(before, waiting, "it is another question now");
        match waiting {
            Waiting::Input(question) => {
                let answer = Answer {
                    text: question.choices.first().cloned().unwrap_or_else(|| "yes".into()),
                    question: Some(asked.clone()),
                    consent: consent(),
                    key: Some(asked.clone()),
                };
                home.motor.respond(id, answer).await?;
            }
            Waiting::Approval(approval) => {
                home.motor.approve(id, decision(approval)).await?;
            }
        }
        self.acknowledged.insert(asked);
        Ok(())
    }
}

fn decision(approval: &Approval) -> Decided {
    Decided {
        approval: Some(approval.id.clone()),
        actions: approval.items.iter().map(|item| item.action_hash).collect(),
        grant: approval.items.iter().all(|item| item.arguments["text"] != "not wanted"),
        scope: Scope::Once,
        reason: None,
        consent: consent(),
        key: Some(approval.id.clone()),
    }
}

/// What a call came to. Numbers in outputs count executions, and are not part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    tool: String,
    arguments: Value,
    ok: bool,
    code: Option<ErrorCode>,
    output: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub status: RunStatus,
    summary: Option<String>,
    iterations: u32,
    pub attempts: usize,
    answers: Vec<Option<String>>,
    /// What was decided about which calls.
    decisions: Vec<(Vec<Value>, Option<bool>)>,
    calls: Vec<Call>,
}

impl End {
    pub fn of(trace: &RunTrace) -> Self {
        let calls = trace.steps.iter().flat_map(|step| &step.tool_calls).map(|call| {
            let (tool, arguments) = (call.tool.clone(), call.args.clone());
            let Some(result) = &call.result else {
                // Its attempt ended without it.
                let code = Some(ErrorCode::OutcomeUnknown);
                return Call { tool, arguments, ok: false, code, output: String::new() };
            };
            let output = result.output.replace(|character: char| character.is_ascii_digit(), "");
            Call { tool, arguments, ok: result.ok, code: result.error_code, output }
        });
        let decided = trace.approvals.iter().map(|decided| {
            (decided.approval.items.iter().map(|item| item.arguments.clone()).collect(), decided.granted)
        });
        Self {
            status: trace.status,
            summary: trace.summary.clone(),
            iterations: trace.total_iterations,
            attempts: trace.attempts.len(),
            answers: trace.questions.iter().map(|asked| asked.answer.clone()).collect(),
            decisions: decided.collect(),
            calls: calls.collect(),
        }
    }

    /// The calls that say that nobody knows what they did.
    pub fn unknown(&self) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.code == Some(ErrorCode::OutcomeUnknown)).collect()
    }

    /// The same end but for what is not known, and for what the second attempt does about that.
    pub fn check(&self, expected: &Self, when: &str) {
        let unknown = self.unknown();
        if unknown.is_empty() {
            assert_eq!(self, expected, "{when}");
            return;
        }
        assert_eq!(unknown.len(), 1, "{when}: the host died once, and {unknown:?} are not known");
        let lost = unknown[0];
        assert!(!REPEATABLE.contains(&lost.tool.as_str()), "{when}: {lost:?} could have been made again");
        let of = |end: &Self| (end.status, end.summary.clone(), end.iterations, end.attempts, end.answers.clone());
        assert_eq!(of(self), of(expected), "{when}");
        assert_eq!(self.calls.len(), expected.calls.len(), "{when}");
        for (call, expected) in self.calls.iter().zip(&expected.calls) {
            let is_lost = (&call.tool, &call.arguments) == (&lost.tool, &lost.arguments);
            assert!(is_lost || call == expected, "{when}: {call:?} was {expected:?}");
        }
    }
}

/// The run to its end, on hosts of which the first dies with these faults.
async fn lives(faults: Arc<dyn Faults>, when: &str) -> (Home, RunId, Owner) {
    let mut home = Home::open(Arc::new(tempfile::tempdir().unwrap()), world(both_attempts()), faults);
    let mut owner = Owner::default();
    let asked = asked();
    let mut started = home.motor.start(home.motor.new_run_id(), asked.clone()).await;
    if let Err(refusal) = &started {
        assert_eq!(refusal.code, RefusalCode::StorageFailed, "{when}");
        owner.deaths += 1;
        home = home.reopen().await;
        home.motor.resume_all().await.unwrap();
        // Nobody knows whether it was accepted; the key makes asking again harmless.
        started = home.motor.start(home.motor.new_run_id(), asked).await;
    }
    let id = started.unwrap().id;
    loop {
        let served = match still(&home, &id).await {
            Some(record) if is_over(&record) => return (home, id, owner),
            Some(record) => owner.serves(&home, &record).await,
            None => Err(Refusal::new(RefusalCode::StorageFailed, "the host died")),
        };
        if let Err(refusal) = served {
            assert_eq!(refusal.code, RefusalCode::StorageFailed, "{when}: {refusal}");
            home = owner.goes_on(home, &id).await;
        }
    }
}

/// What must hold of every such run once it is over.
pub async fn check(home: &Home, id: &RunId, end: &End, when: &str) {
    assert_eq!((end.status, end.summary.as_deref()), (RunStatus::Completed, Some("done")), "{when}: {end:#?}");
    // The sink outside: a key is one effect, and only what is harmless comes with a key that was seen.
    let made = home.world.tools.made.lock().unwrap().clone();
    let mut seen: HashMap<(String, String), u32> = HashMap::new();
    for call in &made {
        *seen.entry(call.clone()).or_default() += 1;
    }
    for ((tool, key), times) in &seen {
        // An entry whose outcome is not known is made again by the second attempt, under the key of the first.
        let most = match tool.as_str() {
            "post" => 2,
            tool if REPEATABLE.contains(&tool) => u32::MAX,
            _ => 1,
        };
        assert!(*times <= most, "{when}: `{tool}` came {times} times as {key}");
    }
    let effects = |tool: &str| seen.keys().filter(|(made, _)| made == tool).count();
    assert_eq!((effects("set"), effects("post")), (2, 1), "{when}: {made:?}");
    for text in ["a", "b", "c", "d", "order", "another order", "not wanted"] {
        let times = home.world.tools.appended.lock().unwrap().iter().filter(|appended| *appended == text).count();
        let call = end.calls.iter().find(|call| call.arguments["text"] == text).unwrap();
        match (call.ok, call.code) {
            (true, _) => assert_eq!(times, 1, "{when}: {text}"),
            (false, Some(ErrorCode::OutcomeUnknown)) => assert!(times <= 1, "{when}: {text}"),
            _ => assert_eq!(times, 0, "{when}: {text}"),
        }
    }
    // Each attempt ends once, each question is put once.
    let signals = home.signals.since(0, 1_000).unwrap();
    let of = |status| signals.iter().filter(|signal| signal.run == *id && signal.body.status == status).count();
    assert_eq!((of(SignalStatus::Failed), of(SignalStatus::Completed)), (end.attempts - 1, 1), "{when}");
    let asked = (of(SignalStatus::AwaitingInput), of(SignalStatus::AwaitingApproval));
    assert_eq!(asked, (end.answers.len(), end.decisions.len()), "{when}");
    assert_eq!(home.motor.resume_all().await.unwrap(), [], "{when}");
    let next = home.motor.start(home.motor.new_run_id(), request()).await;
    assert!(next.is_ok(), "{when}: the place is not free: {next:?}");
}

/// What the run comes to when nothing happens to it.
pub async fn undisturbed() -> End {
    let (home, id, owner) = lives(Arc::new(NoFaults), "undisturbed").await;
    let end = End::of(&home.motor.status(&id).unwrap());
    check(&home, &id, &end, "undisturbed").await;
    assert_eq!((owner.deaths, end.iterations, end.attempts), (0, 22, 2));
    assert_eq!((end.answers.len(), end.decisions.len(), end.unknown().len()), (2, 7, 0), "{end:#?}");
    end
}

/// One death, and what came of it. None when the host lived to the end; else whether an outcome is not known.
async fn dies(n: u32, death: Death, expected: &End) -> Option<bool> {
    let when = format!("write {n}, {death:?}");
    let (home, id, owner) = lives(Arc::new(DiesAt { left: AtomicU32::new(n), death }), &when).await;
    if owner.deaths == 0 {
        return None;
    }
    let end = End::of(&home.motor.status(&id).unwrap());
    end.check(expected, &when);
    let seen = seen(&home, &id).await;
    assert!(seen.starts_with(&owner.shown), "{when}: {:?} was shown, and {seen:?} is stored", owner.shown);
    check(&home, &id, &end, &when).await;
    Some(!end.unknown().is_empty())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_host_dies_at_every_write_of_a_long_run() {
    let expected = Arc::new(undisturbed().await);
    let next = Arc::new(AtomicU32::new(0));
    let workers = (0..4).map(|_| {
        let (next, expected) = (next.clone(), expected.clone());
        tokio::spawn(async move {
            let (mut deaths, mut unknown) = (0, 0);
            loop {
                let n = next.fetch_add(1, Ordering::SeqCst);
                // Neither of the first two reaches the disk, so that they take turns.
                let unwritten = if n.is_multiple_of(2) { Death::NotWritten } else { Death::NotSynced };
                for death in [unwritten, Death::NotTold] {
                    let Some(is_unknown) = dies(n, death, &expected).await else { return (deaths, unknown) };
                    deaths += 1;
                    unknown += u32::from(is_unknown);
                }
            }
        })
    });
    let (mut deaths, mut unknown) = (0, 0);
    for worker in workers.collect::<Vec<_>>() {
        let (died, lost) = worker.await.unwrap();
        deaths += died;
        unknown += lost;
    }
    println!("{deaths} deaths, {unknown} of them with a call whose outcome is not known");
    // Two writes for each of 22 steps at least, two deaths at each; eleven calls may be in flight and not made again.
    assert!(deaths >= 88, "{deaths}");
    assert!(unknown >= 11, "{unknown}");
}
