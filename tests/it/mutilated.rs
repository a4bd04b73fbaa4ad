//! Homes that were mutilated (SPEC DUR-1, CONF-4, SKILL-6, CONSENT-1): each file of a good home is cut, flipped, zeroed,
//! deleted, swapped with another or replaced by another kind of file. A host then starts or refuses, and names every
//! loss that it finds; it neither panics nor hangs, and trusts nothing that was not trusted.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::{FileExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base::Random;
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};

/// Mutilations in all, unless `MOTOR_MUTILATIONS` says otherwise; `MOTOR_SEED` repeats a failure.
const MUTILATIONS: usize = 1_000;
const LANES: usize = 2;
/// A start that takes longer than this hangs: an undisturbed one takes some milliseconds.
const MAX_START: Duration = Duration::from_secs(15);

#[derive(Debug, Clone, Copy)]
enum Kind {
    Cut,
    Flip,
    Zero,
    Append,
    Empty,
    Delete,
    Swap,
    Directory,
    Link,
    Device,
    Pipe,
}

const KINDS: [Kind; 11] = [
    Kind::Cut,
    Kind::Flip,
    Kind::Zero,
    Kind::Append,
    Kind::Empty,
    Kind::Delete,
    Kind::Swap,
    Kind::Directory,
    Kind::Link,
    Kind::Device,
    Kind::Pipe,
];

/// A home with runs of each kind, a credential, a decision, signals, a receipt, and two skills of which one is approved.
fn good_home(first: &ModelServer, second: &ModelServer, site: &Site) -> Motor {
    let motor = Motor::with_model(first).env("MOTOR_KEYRING", "off");
    motor.configure(&format!(
        "[motor]\napproval_timeout_seconds = 86400\n[network]\nprivate = [\"{}\"]\n",
        site.address()
    ));
    for name in ["trusted", "stranger"] {
        let directory = motor.home().join("skills").join(name);
        fs::create_dir_all(&directory).unwrap();
        let text = format!("---\nname: {name}\ndescription: Counts lines. Use it for text.\n---\n\nRead the file.\n");
        fs::write(directory.join("SKILL.md"), text).unwrap();
    }
    motor.run_as_owner(&["skill", "approve", "trusted"], "").succeeded();
    motor.run_as_owner(&["credential", "set", "key", "--domain", "api.example.com"], "a-secret-of-mine\n").succeeded();
    motor.run_as_owner(&["network", "deny", "evil.example.com", "--always"], "").succeeded();
    motor.stdout(&["act", "first", "--tools", "write"]);
    motor.stdout(&["receipt", "show"]);
    let motor = motor.endpoint(&second.base_url());
    let domain = site.address().to_string();
    let request = ["act", "order it", "--tools", "fetch,write", "--domains", &domain, "--approval", "--agent", "other"];
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let run = motor.stdout(&[&request[..], &["--detach"]].concat()).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_approval");
    serving.kill();
    motor
}

/// The facts of a home, as its host reports them. `Err` has the words with which it reports a loss.
fn facts(motor: &Motor) -> Result<Value, String> {
    let mut serving = motor.start(&["serve"]);
    let began = Instant::now();
    while serving.is_alive() && motor.ask_within("/v1/host", MAX_START).is_err() {
        assert!(began.elapsed() < MAX_START, "it hangs");
        std::thread::sleep(Duration::from_millis(2));
    }
    let mut missing = String::new();
    let mut facts = json!({});
    if serving.is_alive() {
        for path in [
            "/v1/tasks?limit=100",
            "/v1/credentials",
            "/v1/network/decisions",
            "/v1/signals?after=0",
            "/v1/skills",
            "/v1/owner",
        ] {
            match motor.ask_within(path, MAX_START) {
                Ok((200, answer)) => facts[path] = answer,
                Ok((_, refusal)) => missing.push_str(&refusal.to_string()),
                Err(error) => panic!("{path}: {error}"),
            }
        }
        let runs = facts["/v1/tasks?limit=100"].as_array().cloned().unwrap_or_default();
        for run in runs {
            let path = format!("/v1/tasks/{}", run["runId"].as_str().unwrap());
            match motor.ask_within(&path, MAX_START) {
                Ok((200, answer)) => facts[path] = answer,
                Ok((_, refusal)) => missing.push_str(&refusal.to_string()),
                Err(error) => panic!("{path}: {error}"),
            }
        }
        let (status, doctor) = motor.ask_within("/v1/host/findings", MAX_START).expect("the doctor answers");
        assert_eq!(status, 200, "{doctor}");
        for finding in doctor.as_array().unwrap().iter().filter(|finding| finding["status"] != "ok") {
            // The file with the key of this home's credentials is always worth a warning.
            if !finding["message"].as_str().unwrap().contains("lies unprotected") {
                missing.push_str(&finding.to_string());
            }
        }
    }
    let ended = serving.kill();
    assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    assert!(began.elapsed() < 2 * MAX_START, "it hangs");
    for line in
        ended.stderr.lines().filter(|line| line.contains("WARN") || line.contains("ERROR") || line.contains("error:"))
    {
        if !line.contains("lies unprotected") {
            missing.push_str(line);
        }
    }
    assert!(facts.get("/v1/tasks?limit=100").is_some() || !missing.is_empty(), "it ended without a word: {ended:?}");
    if missing.is_empty() { Ok(facts) } else { Err(format!("{missing}\n{facts}")) }
}

/// The names and standings of skills, and the questions for the owner: nothing may gain trust.
fn check_trust(answer: &str, context: &str) {
    let skill = |name: &str| answer.split("\"entry\":\"").find(|part| part.starts_with(name)).map(str::to_owned);
    if let Some(stranger) = skill("stranger") {
        assert!(!stranger.contains("\"status\":\"approved\""), "{context}: {stranger}");
    }
    for status in answer.split("\"agent\":\"other\",\"status\":\"").skip(1) {
        let is_over = ["running", "completed", "created"].iter().any(|other| status.starts_with(other));
        assert!(!is_over, "{context}: the run that waits goes on: {status}");
    }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            files(&entry.path(), found);
        } else if kind.is_file() {
            found.push(entry.path());
        }
    }
}

/// Mutilates one file; `false` if that changes nothing.
fn mutilate(path: &Path, other: &Path, kind: Kind, chance: &Random) -> bool {
    let before = fs::read(path).unwrap();
    // A journal is longer than its content.
    let length = before.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let at = if length == 0 { 0 } else { (chance.next_u64() % length as u64) as usize };
    let replace_by = |make: &dyn Fn()| {
        fs::remove_file(path).unwrap();
        make();
    };
    match kind {
        Kind::Cut => OpenOptions::new().write(true).open(path).unwrap().set_len(at as u64).unwrap(),
        Kind::Flip | Kind::Zero if length == 0 => return false,
        Kind::Flip => {
            let flipped = before[at] ^ (1 << (chance.next_u64() % 8));
            OpenOptions::new().write(true).open(path).unwrap().write_all_at(&[flipped], at as u64).unwrap();
        }
        Kind::Zero => {
            let zeros = vec![0; 512.min(length - at)];
            OpenOptions::new().write(true).open(path).unwrap().write_all_at(&zeros, at as u64).unwrap();
        }
        Kind::Append => {
            OpenOptions::new().write(true).open(path).unwrap().write_all_at(b"\x07garbage", length as u64).unwrap()
        }
        Kind::Empty => fs::write(path, "").unwrap(),
        Kind::Delete => fs::remove_file(path).unwrap(),
        Kind::Swap => {
            let between = path.with_extension("between");
            fs::rename(path, &between).unwrap();
            fs::rename(other, path).unwrap();
            fs::rename(between, other).unwrap();
        }
        Kind::Directory => replace_by(&|| fs::create_dir(path).unwrap()),
        Kind::Link => replace_by(&|| symlink("nowhere", path).unwrap()),
        Kind::Device => replace_by(&|| symlink("/dev/zero", path).unwrap()),
        Kind::Pipe => replace_by(&|| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
    }
    true
}

/// Whether a file belongs to the state that a host promises to keep. Settings are the owner's own words, workspaces and
/// traces are for people to read, and changing files there is no loss of the state.
fn is_state(file: &Path) -> bool {
    !["runs/", "logs/", "config/motor.toml", "skills/", "host."]
        .iter()
        .any(|place| file.starts_with(place) || file.to_string_lossy().starts_with(place))
}

#[test]
fn a_mutilated_home_is_refused_or_says_what_it_misses() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let goal = number("MOTOR_MUTILATIONS").map_or(MUTILATIONS, |number| number as usize);
    let seed = number("MOTOR_SEED").unwrap_or(12);
    let site = block_on(Site::start()).with("/orders", Reply::text("taken"));
    let order = json!({ "url": site.url("/orders"), "method": "POST", "body": { "n": 1 } });
    let write = json!({ "path": "a.txt", "content": "text\n" });
    let call = |name: &str, arguments: &Value| json!({ "tool_calls": [{ "name": name, "arguments": arguments }] });
    let server = block_on(ModelServer::scripted(json!({ "turns": [call("write", &write), { "text": "written" }] })));
    let ordering = block_on(ModelServer::scripted(json!({ "turns": [call("write", &write), call("fetch", &order)] })));
    let good = good_home(&server, &ordering, &site);
    let expected = facts(&good).unwrap_or_else(|words| panic!("the good home misses something: {words:.2000}"));
    check_trust(&expected.to_string(), "the good home");
    let mut all = Vec::new();
    files(good.home(), &mut all);
    let all: Vec<PathBuf> = all.iter().map(|file| file.strip_prefix(good.home()).unwrap().to_owned()).collect();
    let all: Vec<_> = all.into_iter().filter(|file| !file.starts_with("cache")).collect();
    assert!(all.len() > 30, "{all:?}");
    let (next, said, same) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
    let failures = Mutex::new(Vec::new());
    let lane = |lane: usize| {
        let home = good.directory().join(format!("lane-{lane}"));
        let bad = Motor::with_model(&server).env("MOTOR_KEYRING", "off").at(home.clone());
        loop {
            let turn = next.fetch_add(1, Ordering::SeqCst);
            if turn >= goal {
                return;
            }
            let chance = Random::seeded(seed * 1_000_000 + turn as u64);
            let file = &all[turn % all.len()];
            // Each file meets each kind in turn.
            let kind = KINDS[(turn / all.len() + turn) % KINDS.len()];
            let other = loop {
                let other = &all[(chance.next_u64() % all.len() as u64) as usize];
                if other != file {
                    break other;
                }
            };
            let context = format!("seed {seed}, mutilation {turn}: {kind:?} of {}", file.display());
            fs::remove_dir_all(&home).ok();
            let copied =
                Command::new("cp").args(["-a", "--sparse=always"]).arg(good.home()).arg(&home).status().unwrap();
            assert!(copied.success());
            if !mutilate(&home.join(file), &home.join(other), kind, &chance) {
                continue;
            }
            let checked = std::panic::catch_unwind(|| match facts(&bad) {
                Err(words) => {
                    check_trust(&words, &context);
                    said.fetch_add(1, Ordering::SeqCst);
                }
                Ok(mut found) => {
                    check_trust(&found.to_string(), &context);
                    let mut expected = expected.clone();
                    if file.starts_with("skills") || other.starts_with("skills") {
                        // The standing of a skill with other files is another one.
                        for facts in [&mut found, &mut expected] {
                            facts["/v1/skills"].take();
                        }
                    }
                    let state = is_state(file) || (matches!(kind, Kind::Swap) && is_state(other));
                    assert!(!state || found == expected, "lost without a word: {found:#} was {expected:#}");
                    same.fetch_add(1, Ordering::SeqCst);
                }
            });
            if checked.is_err() {
                failures.lock().unwrap().push(context);
            }
        }
    };
    std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES).map(|number| scope.spawn(move || lane(number))).collect();
        lanes.into_iter().for_each(|lane| lane.join().unwrap());
    });
    let (said, same) = (said.into_inner(), same.into_inner());
    println!("{goal} mutilations of {} files: {said} named, {same} without effect on the state", all.len());
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{failures:#?}");
    assert!(said * 3 > goal, "{said} of {goal}");
}
