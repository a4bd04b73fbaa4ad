//! Commands that begin together in a home without `motor serve`: either may become the host of both, and either may die.
//! Every run that was accepted ends, and the command that follows it says so (SPEC CONF-4, DUR-3).

use std::time::{Duration, Instant};

use base::Random;
use serde_json::{Value, json};
use tests::binary::{Ended, Motor, Running, Signal};
use tests::block_on;
use tests::model_server::ModelServer;

/// Pairs of each kind, unless `MOTOR_PAIRS` says otherwise.
const PAIRS: u64 = 24;

fn pairs() -> u64 {
    std::env::var("MOTOR_PAIRS").ok().and_then(|pairs| pairs.parse().ok()).unwrap_or(PAIRS)
}

fn model() -> ModelServer {
    block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "write", "arguments": { "path": "a.txt", "content": "a" } }] },
        { "tool_calls": [{ "name": "read", "arguments": { "path": "a.txt" } }] },
        { "text": "written" },
    ]})))
}

fn act(motor: &Motor, agent: &str) -> Running {
    motor.start(&["act", "write a file", "--tools", "read,write", "--agent", agent])
}

/// How long a command takes alone.
fn alone(motor: &Motor) -> Duration {
    answered(act(motor, "warm").wait(), "the first of all");
    let began = Instant::now();
    answered(act(motor, "alone").wait(), "one alone");
    began.elapsed()
}

/// Between the beginning and a little after the end of a command, more often towards its end.
fn pause(random: &Random, alone: Duration) {
    let part = |random: &Random| f64::from(u16::try_from(random.next_u64() & 0xFFFF).unwrap()) / 65_536.0;
    std::thread::sleep(alone.mul_f64(1.1 * part(random).max(part(random))));
}

fn answered(ended: Ended, when: &str) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "written\n"), "{when}: {ended:?}");
}

/// Runs that were accepted and are not over.
fn open(motor: &Motor) -> Vec<Value> {
    let runs = motor.json(&["task", "list", "--all", "--limit", "1000"]);
    runs.as_array().unwrap().iter().filter(|run| run["status"] != "completed").cloned().collect()
}

#[test]
fn of_two_commands_without_a_host_each_sees_its_run_end() {
    let server = model();
    let motor = Motor::with_model(&server);
    let seed = Random::from_system().next_u64();
    println!("seed {seed}");
    let (random, alone) = (Random::seeded(seed), alone(&motor));
    for pair in 0..pairs() {
        let when = format!("pair {pair} of seed {seed}");
        let first = act(&motor, "first");
        pause(&random, alone);
        let second = act(&motor, "second");
        answered(first.wait(), &when);
        answered(second.wait(), &when);
    }
    assert_eq!(open(&motor), Vec::<Value>::new());
}

#[test]
fn a_command_goes_on_with_its_run_when_the_one_that_was_the_host_is_killed() {
    let server = model();
    let motor = Motor::with_model(&server);
    let seed = Random::from_system().next_u64();
    println!("seed {seed}");
    let (random, alone) = (Random::seeded(seed), alone(&motor));
    for pair in 0..pairs() {
        let when = format!("pair {pair} of seed {seed}");
        let (first, second) = (act(&motor, &format!("first-{pair}")), act(&motor, &format!("second-{pair}")));
        pause(&random, alone);
        first.kill();
        answered(second.wait(), &when);
    }
    // The second of a pair takes up the run of the first when it becomes the host. A run that it leaves is only interrupted.
    motor.run(&["act", "--resume"]).succeeded();
    assert_eq!(open(&motor), Vec::<Value>::new());
}

#[test]
fn a_command_that_only_looks_goes_on_being_the_host_of_a_run_that_is_followed() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done", "gate": true }] })));
    let motor = Motor::with_model(&server);
    let following = motor.start(&["signals", "--follow", "--since", "0"]);
    motor.stdout(&["task", "list"]);
    let acting = motor.start(&["act", "wait", "--tools", "read"]);
    let run = acting.run_id();
    block_on(server.wait_at_gate());
    // Whichever of the two is the host, the other is the next one.
    following.signal(Signal::KILL);
    assert_eq!(following.wait().code, None);
    block_on(server.wait_at_gate());
    motor.wait_for_status(&run, "running");
    server.release();
    server.release();
    assert_eq!(acting.wait().succeeded().stdout, "done\n");
}

#[test]
fn serve_waits_for_a_short_command_and_gives_up_at_once_beside_another_serve() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done", "gate": true }] })));
    let motor = Motor::with_model(&server);
    let acting = motor.start(&["act", "wait", "--tools", "read"]);
    acting.run_id();
    block_on(server.wait_at_gate());
    let serving = motor.start(&["serve"]);
    let waiting = serving.wait_for_words("waiting: another host owns this home (process");
    assert!(waiting.contains(&acting.id().to_string()), "{waiting}");
    server.release();
    assert_eq!(acting.wait().succeeded().stdout, "done\n");
    serving.wait_for_words("listening");
    motor.run(&["serve"]).refused(75, &["another host owns this home", &serving.id().to_string()]);
    serving.signal(Signal::TERM);
    assert_eq!(serving.wait().code, Some(0));
}
