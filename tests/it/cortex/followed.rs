//! The events of cortexes, followed over HTTP (SPEC CX-5, CX-8).

use reqwest::StatusCode;
use serde_json::{Value, json};
use tests::block_on;
use tests::watching::{HostAddress, Watcher};

use super::{BY_COMMAND, trusting};
use crate::port::World;

/// A client of the events, with a token.
fn follow(world: &World, token: &str) -> std::io::Result<Watcher> {
    let address = world.address.trim_start_matches("http://").to_owned();
    block_on(Watcher::open(&HostAddress::Port { address, token: token.to_owned() }, "/v1/cortex/events", None))
}

fn told(watcher: &mut Watcher) -> Value {
    let event = block_on(watcher.next()).unwrap().expect("an event");
    serde_json::from_str(&event.data).unwrap()
}

#[test]
fn assessments_and_applied_cycles_are_told_to_those_that_may_read_the_agent() {
    let reply = trusting("mai", 9).to_string();
    let broken = json!({ "2": { "status": { "code": 400 } } });
    let world = World::new(json!({ "turns": [{ "text": reply }], "faults": broken }));
    world.motor.configure(BY_COMMAND);
    assert!(follow(&world, "motor-api-unknown").is_err());
    // The second one stands for the agent `other` alone.
    let (mut all, mut bound) = (follow(&world, &world.read).unwrap(), follow(&world, &world.bound).unwrap());
    let reflect = |agent: &str| {
        world.motor.run(&["ledger", "note", "--agent", agent, "mai", "hello"]).succeeded();
        let request = json!({ "agent": agent, "peers": ["mai"] });
        let (status, cycle) = world.ask("POST", "/v1/cortex/reflections", &world.owner, &request);
        assert_eq!(status, StatusCode::OK, "{cycle}");
        cycle["record"]["outcome"]["status"].clone()
    };

    assert_eq!(reflect("main"), "applied");
    let assessed = told(&mut all);
    assert_eq!((&assessed["type"], &assessed["agent"]), (&json!("cortex.after_assess"), &json!("main")), "{assessed}");
    let payload = &assessed["payload"];
    // The clamp of a first assessment.
    assert_eq!((&payload["peerId"], &payload["trust"], &payload["cycle"]), (&json!("mai"), &json!(3), &json!(1)));
    let reflected = told(&mut all);
    assert_eq!((&reflected["type"], &reflected["agent"]), (&json!("cortex.after_reflect"), &json!("main")));
    let payload = &reflected["payload"];
    assert_eq!((&payload["trigger"], &payload["peersAssessed"]), (&json!("owner"), &json!(["mai"])), "{reflected}");

    // A skipped cycle tells nothing: the next event is of the other agent, and the only one that its token hears.
    assert_eq!(reflect("main"), "skipped");
    assert_eq!(reflect("other"), "applied");
    for watcher in [&mut all, &mut bound] {
        let assessed = told(watcher);
        assert_eq!((&assessed["agent"], &assessed["payload"]["trust"]), (&json!("other"), &json!(3)), "{assessed}");
    }
}

#[test]
fn a_client_that_goes_away_takes_no_event_with_it() {
    let reply = trusting("mai", 2).to_string();
    let world = World::new(json!({ "turns": [{ "text": reply, "gate": true }] }));
    world.motor.configure(BY_COMMAND);
    world.motor.run(&["ledger", "note", "mai", "hello"]).succeeded();
    let mut watcher = follow(&world, &world.read).unwrap();
    // Requests that the host answers at the moment, with the one that asks.
    let asking = async || {
        let text = world.request("GET", "/metrics", Some(&world.read)).send().await.unwrap().text().await.unwrap();
        let line = "motor_http_connections{listener=\"port\",kind=\"request\"} ";
        text.lines().find_map(|found| found.strip_prefix(line)).unwrap().parse::<f64>().unwrap()
    };
    block_on(async {
        let request = world.request("POST", "/v1/cortex/reflections", Some(&world.owner)).json(&json!({}));
        let client = tokio::spawn(request.send());
        world.model.wait_at_gate().await;
        assert!(asking().await >= 2.0);
        client.abort();
        while asking().await > 1.0 {
            tokio::task::yield_now().await;
        }
    });
    world.model.release();
    assert_eq!(told(&mut watcher)["type"], "cortex.after_assess");
    assert_eq!(told(&mut watcher)["payload"]["peersAssessed"], json!(["mai"]));
}
