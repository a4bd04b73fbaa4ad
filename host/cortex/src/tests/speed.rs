//! Times of the parts that stand in the main loop's way: `cargo test -p cortex --release -- --ignored --nocapture speed`.

use std::time::Instant;

use super::*;

/// Calls of each part.
const CALLS: usize = 100_000;

/// Prints the median and the 99th percentile in microseconds, and checks the latter.
fn measure(name: &str, most_us: f64, mut call: impl FnMut(usize)) {
    let mut times: Vec<f64> = (0..CALLS)
        .map(|number| {
            let began = Instant::now();
            call(number);
            began.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (times[CALLS / 2], times[CALLS * 99 / 100]);
    println!("{name}: p50 {p50:.2} us, p99 {p99:.2} us (at most {most_us} us)");
    assert!(p99 <= most_us, "{name}: {p99} us");
}

#[tokio::test]
#[ignore = "a measurement"]
async fn speed() {
    let world = World::new();
    let home = world.open();
    let beliefs: Vec<Value> = (0..20)
        .map(|number| json!({ "key": format!("belief-{number}"), "value": "v".repeat(100), "rationale": "r", "peer_id": "mai" }))
        .collect();
    home.cycle("mai", json!({ "assessments": [], "beliefs": beliefs, "summary": "s" })).await;
    assert_eq!(home.cortex.beliefs().len(), 20);
    let peers: Vec<PeerId> = (0..500).map(|number| peer(&format!("npub-{number}"))).collect();
    measure("observing a message", 10.0, |number| {
        let peer = peers[number % peers.len()].clone();
        home.cortex.observe(Observation::Message { peer, direction: Direction::Incoming, is_new: false });
    });
    measure("judging the triggers", 50.0, |_| assert!(!home.cortex.due().is_empty()));
    measure("injecting 20 beliefs", 50.0, |_| assert!(home.cortex.inject(None, 20_000).text.len() > 2_000));
}
