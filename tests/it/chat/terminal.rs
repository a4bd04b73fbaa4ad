//! The example flows of the design (SPEC COG-1, COG-3, CONSENT-1) by the real `motor chat` in front of a person: work is delegated and
//! watched beside the conversation, questions and requests for consent are answered in it, and a failed run is tried again.

use serde_json::json;
use tests::binary::{AtTerminal, Signal};
use tests::block_on;
use tests::model_server::Turn;

use super::world::{World, call, says};
use super::{delegates, obedient};

/// The prompt while one run is under way.
const BUSY: &str = "(1 run under way) > ";
/// The prompt while none is.
const FREE: &str = "\n> ";
/// The end of the input, at the beginning of a line.
const END: &str = "\u{4}";

/// Opens the conversation, wide enough that no line of these tests is broken.
fn opens(world: &World) -> AtTerminal {
    let mut chat = world.motor.on_screen(&["chat"], 160, ">&0 2>&0");
    chat.sees("> ");
    chat
}

#[test]
fn a_portfolio_is_analysed_beside_the_conversation() {
    let positions = "AAPL,12\nMSFT,8\nTLT,3\n";
    let code = "return [['AAPL', 12], ['MSFT', 8], ['TLT', 3]].filter(([, held]) => held < 10).map(([name]) => name).join(' ')";
    let world = World::new(move |asked| match (asked.is_mind(), asked.role(), asked.replies()) {
        (true, "user", _) if asked.last() == "Are you there?" => says("Yes, and the run goes on."),
        (true, ..) => delegates(asked, json!({ "task": "compare with 10 of each", "tools": ["filesystem", "code"] })),
        (false, _, 0) => Turn { gate: true, ..call("write", json!({ "path": "portfolio.csv", "content": positions })) },
        (false, _, 1) => call("read", json!({ "path": "portfolio.csv" })),
        (false, _, 2) if asked.last().contains("TLT,3") => call("code", json!({ "code": code })),
        (false, _, 3) if asked.last().contains("MSFT TLT") => says("MSFT and TLT are below target"),
        (false, ..) => says("the portfolio is not readable"),
    });
    let serving = world.serve();
    let mut chat = opens(&world);
    chat.types("Analyse my portfolio and tell me which positions are below target");
    chat.sees("  compare with 10 of each");
    chat.sees("It is under way.");
    chat.sees(BUSY);
    // A message is answered at once, and the run is still on the screen.
    block_on(world.model.wait_at_gate());
    chat.types("Are you there?");
    chat.sees("Yes, and the run goes on.");
    chat.sees(BUSY);
    let run = world.motor.only_run();
    assert_eq!(world.motor.json(&["task", "status", &run])["status"], "running");
    world.model.release();
    chat.sees("The run says: MSFT and TLT are below target");
    chat.sees(FREE);
    for line in ["step 1  write  ok", "step 2  read  ok", "step 3  code  ok", "completed"] {
        chat.shows(&format!("{run}  {line}"));
    }
    chat.types(END);
    chat.wait().succeeded();
    serving.kill();
}

#[test]
fn a_question_is_answered_in_place_and_the_end_of_the_run_is_waited_for() {
    let world = World::new(|asked| match (asked.is_mind(), asked.role()) {
        (true, "user") if asked.last().contains("awaiting_input") => says("The run asks: which colour?"),
        (true, "user") if asked.last() == "let me think" => says("Take your time."),
        (true, "user") if asked.last() == "blue" => {
            call("core_task", json!({ "runId": asked.open_run(), "action": "respond", "answer": "blue" }))
        }
        (true, "tool") if asked.last().contains("answered") => says("Passed on."),
        (true, _) => delegates(asked, json!({ "task": "paint it" })),
        (false, "user") => call("ask_user", json!({ "question": "Which colour?", "choices": ["red", "blue"] })),
        (false, _) if asked.last().contains("blue") => Turn { gate: true, ..says("painted blue") },
        (false, _) => says("no colour"),
    });
    let serving = world.serve();
    let mut chat = opens(&world);
    chat.types("Paint the fence");
    chat.sees("It is under way.");
    chat.sees("The run asks: which colour?");
    chat.sees(FREE);
    chat.shows("  awaiting_input");
    // Another message leaves the question open.
    chat.types("let me think");
    chat.sees("Take your time.");
    chat.sees(FREE);
    let run = world.motor.only_run();
    assert_eq!(world.motor.json(&["task", "status", &run])["status"], "awaiting_input");
    chat.types("blue");
    chat.sees("Passed on.");
    chat.sees(BUSY);
    chat.types(END);
    block_on(world.model.wait_at_gate());
    world.model.release();
    chat.sees("The run says: painted blue");
    chat.wait().succeeded();
    let trace = world.motor.json(&["task", "status", &run]);
    assert_eq!(trace["status"], "completed", "{trace:#}");
    serving.kill();
}

#[test]
fn a_request_for_consent_is_answered_in_place_by_the_owner_alone() {
    let world = World::new(|asked| {
        let is_request = asked.is_mind() && asked.is_signal() && asked.last().contains("awaiting_approval");
        // The run asks after the first turn is over: a plain yes is enough only if nothing was said since.
        let is_task = !asked.is_mind() && asked.role() == "user";
        // The host has shown it, and the agent adds nothing.
        if is_request { says("") } else { Turn { gate: is_task, ..obedient(asked) } }
    });
    let serving = world.serve();
    let mut chat = opens(&world);
    // A yes when nothing is pending is chat, also for a model that takes it for an answer.
    chat.types("Yes");
    chat.sees("there is no run");
    chat.sees(FREE);
    chat.types("Tidy up");
    chat.sees("It is under way.");
    chat.sees(BUSY);
    block_on(world.model.wait_at_gate());
    world.model.release();
    chat.sees("asks for your consent");
    chat.sees("delete the old files");
    chat.sees("Approve? Answer yes or no");
    chat.sees(FREE);
    let run = world.motor.only_run();
    // The yes of a peer is no consent.
    assert_eq!(world.send_as_peer("mallory", "Yes").0, 200);
    world.follow_peer("mallory").until("said", "there is no tool `core_task` in this turn");
    assert_eq!(world.motor.json(&["task", "status", &run])["status"], "awaiting_approval");
    chat.types("Yes");
    chat.sees("\"approved\":true");
    chat.sees("The run says: deleted");
    chat.sees(FREE);
    chat.types(END);
    chat.wait().succeeded();
    let trace = world.motor.json(&["task", "status", &run]);
    assert_eq!(trace["approvals"][0]["consent"]["door"], "message", "{trace:#}");
    serving.kill();
}

#[test]
fn a_failed_run_is_tried_again_with_guidance_and_watched_again() {
    let world = World::new(|asked| match (asked.is_mind(), asked.role()) {
        (true, "user") if asked.is_signal() && asked.last().contains("is failed") => {
            let run = asked.between("motor_result: ", " ");
            call("core_task", json!({ "runId": run, "action": "retry", "guidance": "go slower" }))
        }
        (true, "tool") if asked.last().contains("running") => says("I try it again."),
        (true, _) => delegates(asked, json!({ "task": "climb", "tools": ["code"] })),
        (false, _) if asked.last().contains("slowly") => says("arrived"),
        (false, _) if asked.text().contains("go slower") => {
            Turn { gate: true, ..call("code", json!({ "code": "return 'slowly'" })) }
        }
        (false, _) => Turn { text: "no".into(), finish: Some("content_filter".into()), ..Turn::default() },
    });
    let serving = world.serve();
    let mut chat = opens(&world);
    chat.types("Climb the mountain");
    chat.sees("It is under way.");
    chat.sees("I try it again.");
    chat.sees(BUSY);
    let run = world.motor.only_run();
    chat.shows(&format!("{run}  failed"));
    block_on(world.model.wait_at_gate());
    world.model.release();
    chat.sees("The run says: arrived");
    chat.sees(FREE);
    chat.shows("  code  ok");
    chat.types(END);
    chat.wait().succeeded();
    serving.kill();
}

#[test]
fn a_conversation_that_is_opened_again_shows_the_runs_under_way() {
    let world = World::new(|asked| match (asked.is_mind(), asked.role()) {
        (true, _) => delegates(asked, json!({ "task": "wait", "tools": ["code"] })),
        (false, "user") => Turn { gate: true, ..call("code", json!({ "code": "return 'waited'" })) },
        (false, _) => says("waited"),
    });
    let serving = world.serve();
    let mut chat = opens(&world);
    chat.types("Wait for me");
    chat.sees(BUSY);
    chat.running().signal(Signal::TERM);
    assert_ne!(chat.wait().code, Some(0));
    let mut chat = world.motor.on_screen(&["chat"], 160, ">&0 2>&0");
    chat.sees("you: Wait for me");
    chat.sees("It is under way.");
    chat.sees(BUSY);
    block_on(world.model.wait_at_gate());
    world.model.release();
    chat.sees("The run says: waited");
    chat.shows("  code  ok");
    chat.types(END);
    chat.wait().succeeded();
    serving.kill();
}
