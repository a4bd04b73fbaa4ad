//! Several runs of one agent, and runs that are left alone, with the real program (SPEC RUN-2, RUN-16).

use serde_json::json;
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

#[test]
fn runs_that_are_left_alone_wait_without_a_limit_and_give_up_their_place_where_they_may() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "ask_user", "arguments": { "question": "Which colour?" } }] },
        { "text": "painted" },
    ]})));
    let motor = Motor::with_model(&server);
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let act = |task: &str| motor.stdout(&["act", task, "--detach"]).trim().to_owned();
    let first = act("the door");
    motor.wait_for_status(&first, "awaiting_input");
    assert!(motor.stdout(&["task", "list", "--waiting"]).contains("no limit"));
    let answers = format!("`motor task respond {first}` answers it");
    motor.run(&["act", "the wall", "--detach"]).refused(75, &["waits for your answer", &answers]);
    // The running host takes the change.
    motor.run(&["config", "set", "agent.waiting_holds_place", "false"]).succeeded();
    let second = act("the wall");
    motor.wait_for_status(&second, "awaiting_input");
    for run in [&first, &second] {
        motor.run_as_owner(&["task", "respond", run, "blue"], "").succeeded();
        motor.wait_for_status(run, "completed");
    }
    motor.run(&["config", "set", "agent.max_runs", "51"]).refused(2, &["from 1 to 50"]);
    // Its twin, with a limit.
    motor.run(&["config", "set", "motor.detached_timeout_seconds", "86400"]).succeeded();
    let third = act("the roof");
    motor.wait_for_status(&third, "awaiting_input");
    assert!(!motor.stdout(&["task", "list", "--waiting"]).contains("no limit"));
    motor.run(&["task", "cancel", &third]).succeeded();
}
