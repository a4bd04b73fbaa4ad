//! More watchers than any host has had to serve so far, on both of its listeners (SPEC API-1, SIG-2): all of them hear of
//! a run, they cost little memory, and the owner's commands get in beside them.

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;
use tests::watching::{HostAddress, Watcher, raise_descriptors, resident_bytes};

/// Watchers on each listener.
const WATCHERS: usize = 1_000;
/// The memory that so many may take.
const MAX_BYTES: u64 = 100 << 20;

#[test]
fn a_thousand_watchers_on_each_listener_hear_of_a_run_and_leave_room_for_commands() {
    raise_descriptors(2 * WATCHERS as u64 + 500);
    let model = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    // The soft limit that most systems give to a process.
    let motor = Motor::with_model(&model).started_by(&["sh", "-c", "ulimit -Sn 1024; exec \"$0\" \"$@\""]).unattended();
    let token = motor.stdout(&["token", "create", "--name", "watcher", "--scope", "read"]).trim().to_owned();
    let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
    let address = line["address"].as_str().unwrap().trim_start_matches("http://").to_owned();
    let listeners = [HostAddress::Port { address, token }, HostAddress::Socket(motor.home().join("host.sock"))];
    // The first run loads things that stay.
    motor.stdout(&["act", "first"]);
    let mut watching = Vec::new();
    for listener in &listeners {
        let before = resident_bytes(serving.id());
        let opening = (0..WATCHERS).map(|_| Watcher::open(listener, "/v1/signals/events", Some(1)));
        watching.extend(block_on(try_join_all(opening)).unwrap());
        let grown = resident_bytes(serving.id()).saturating_sub(before);
        println!("{WATCHERS} watchers: {} KiB more", grown >> 10);
        assert!(grown <= MAX_BYTES, "{grown} bytes");
    }
    let before = resident_bytes(serving.id());
    let run = motor.json(&["act", "second"])["runId"].clone();
    let heard = watching.iter_mut().map(async |watcher| {
        let event = watcher.next().await.unwrap().expect("a signal");
        let signal: Value = serde_json::from_str(&event.data).unwrap();
        assert_eq!((event.id, &signal["runId"], &signal["status"]), (Some(2), &run, &json!("completed")));
    });
    block_on(futures_util::future::join_all(heard));
    let grown = resident_bytes(serving.id()).saturating_sub(before);
    assert!(grown <= MAX_BYTES, "{grown} bytes more for a signal");
    assert_eq!(motor.json(&["task", "list"]).as_array().unwrap().len(), 2);
    drop(watching);
    // Their slots are free again.
    let opening = (0..WATCHERS).map(|_| Watcher::open(&listeners[0], "/v1/signals/events", Some(2)));
    block_on(try_join_all(opening)).unwrap();
}
