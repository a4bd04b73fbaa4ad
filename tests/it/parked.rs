//! Many runs that wait, and hosts that come and go (SPEC DUR-3, SIG-2): each run is asked about once, by any host of
//! the home, and costs nothing while it waits. How much that is for ten thousand is measured: `cargo xtask bench
//! parked`.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::parked::Hosted;

const RUNS: usize = 200;

#[test]
fn runs_that_wait_are_the_same_after_a_hundred_restarts() {
    let home = tempfile::tempdir().unwrap();
    block_on(async {
        let hosted = Hosted::open(home.path());
        let runs = hosted.park(RUNS).await;
        let records: Vec<_> = runs.iter().map(|run| hosted.motor.record(run).unwrap()).collect();
        hosted.close().await;
        for restart in 0..100 {
            let hosted = Hosted::open(home.path());
            assert_eq!(hosted.motor.resume_all().await.unwrap(), [], "restart {restart}: nobody drives them");
            assert_eq!(hosted.signals.latest(), RUNS as u64, "restart {restart}: each is asked about once");
            for (run, record) in runs.iter().zip(&records) {
                assert_eq!(hosted.motor.record(run).unwrap(), *record, "restart {restart}");
            }
            hosted.close().await;
        }
    });
}

#[test]
fn a_host_starts_with_many_runs_that_wait_and_takes_their_answers() {
    let motor = Motor::new().env("MOTOR_KEYRING", "off");
    let runs = block_on(async {
        let hosted = Hosted::open(motor.home());
        let runs = hosted.park(RUNS).await;
        hosted.close().await;
        runs
    });
    let waiting = |motor: &Motor| motor.ask("/v1/signals/waiting?limit=1000", None, &[]).unwrap().1;
    let mut before: Option<Value> = None;
    for restart in 0..5 {
        let serving = motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let (_, status) = motor.ask("/v1/host", None, &[]).unwrap();
        assert_eq!(status["running"].as_array().unwrap().len(), RUNS, "restart {restart}");
        assert_eq!(status["latestSignal"], json!(RUNS), "restart {restart}: each is asked about once");
        let now = waiting(&motor);
        assert_eq!(now.as_array().unwrap().len(), RUNS);
        assert_eq!(*before.get_or_insert_with(|| now.clone()), now, "restart {restart}");
        serving.kill();
    }
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let run = runs[RUNS / 2].as_str();
    let (status, reply) = motor.ask_as_owner(&format!("/v1/tasks/{run}/answer"), &json!({ "answer": "that" })).unwrap();
    assert_eq!((status, &reply["newStatus"]), (200, &json!("running")), "{reply}");
    // It goes on, and has no key for a model here.
    motor.wait_for_status(run, "failed");
    assert_eq!(waiting(&motor).as_array().unwrap().len(), RUNS - 1);
}
