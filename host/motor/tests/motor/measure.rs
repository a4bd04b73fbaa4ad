//! The cost of one step to the host: `cargo test -p motor --test motor -- --ignored --nocapture measure`.

use std::sync::Arc;
use std::time::Duration;

use motor::{LiveEvent, RunRequest};
use serde_json::json;
use store::NoFaults;

use crate::home::{Home, Turn, call, request, world};

/// From one reply of the model to the next, with a model and a tool that answer at once: two commits and the loop.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement"]
async fn measure_one_step() {
    let directory = Arc::new(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap());
    let turns = (0..49).map(|_| call("look", json!({"text": "x"}))).chain([Turn::Say("done")]).collect();
    let home = Home::open(directory, world(turns), Arc::new(NoFaults));
    let mut steps = Vec::new();
    for _ in 0..20 {
        let id = home.start(RunRequest { max_iterations: Some(50), ..request() }).await;
        let mut watch = home.motor.watch(&id).unwrap();
        let mut last = None;
        while let Some(event) = watch.next().await {
            if let LiveEvent::ModelReplied { .. } = event {
                let now = std::time::Instant::now();
                steps.extend(last.replace(now).map(|before: std::time::Instant| now - before));
            }
        }
        home.motor.wait(&id).await.unwrap();
    }
    steps.sort();
    let at = |share: usize| steps[steps.len() * share / 100];
    println!("{} steps: p50 {:?}, p90 {:?}, p99 {:?}", steps.len(), at(50), at(90), at(99));
    assert!(at(50) < Duration::from_millis(1));
}
