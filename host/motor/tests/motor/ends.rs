//! Replies that the model did not end itself: cut off, paused, filtered, refused (SPEC RUN-4). None of them is the answer.

use llm::{Arguments, FinishReason, Message};
use motor::{FailureCategory, RunRecord, RunStatus};
use serde_json::json;

use crate::home::{Home, Turn, call, request};

use FinishReason::{ContextFull, Filtered, Length, Missing, Other, Paused, Refused, Stop, ToolCalls};

fn ends(finish: FinishReason, text: &'static str) -> Turn {
    Turn::Ends(finish, text, vec![])
}

/// A reply with calls of `append`: one that is whole, and one whose arguments were cut.
fn calls(finish: FinishReason) -> Turn {
    let cut = Arguments::Malformed("{\"text\": \"b".into());
    Turn::Ends(finish, "", vec![Arguments::Json(json!({"text": "a"})), cut])
}

/// The host's words to the model at the end of its last request.
fn told(home: &Home) -> String {
    match home.last_request().messages.last() {
        Some(Message::User { text }) => text.clone(),
        other => panic!("{other:?}"),
    }
}

fn failed(record: &RunRecord) -> (&str, &str) {
    let error = record.error.as_ref().unwrap();
    assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::ModelFailure), "{error:?}");
    assert!(record.failure.as_ref().unwrap().retryable);
    (&error.message, error.remedy.as_deref().unwrap())
}

#[tokio::test]
async fn a_text_that_was_cut_off_goes_on_in_the_next_reply() {
    let home = Home::new(vec![ends(Length, "It is fo"), Turn::Say("rty-two.\n")]);
    let record = home.run(request()).await;
    assert_eq!((record.status, record.summary.as_deref()), (RunStatus::Completed, Some("It is forty-two.")));
    assert_eq!(record.iterations, 2);
    let messages = home.last_request().messages;
    assert!(matches!(&messages[1], Message::Assistant { text, .. } if text == "It is fo"), "{messages:?}");
    assert!(told(&home).contains("cut off at the limit of output tokens: go on exactly where it stopped"));
}

#[tokio::test]
async fn a_text_is_continued_once() {
    let home = Home::new(vec![ends(Length, "It is"), ends(Length, " fo"), Turn::Say("never said")]);
    let record = home.run(request()).await;
    let (message, remedy) = failed(&record);
    assert!(message.contains("again after it was told to go on: in its own words"), "{message}");
    assert!(remedy.contains("output tokens"), "{remedy}");
    assert_eq!((record.iterations, record.summary.as_deref()), (2, Some("It is fo")));
    // A call in between is progress, and silence is no end of a sentence.
    let look = || call("look", json!({}));
    let twice = vec![ends(Length, "I lo"), look(), ends(Length, "It is "), Turn::Say("42.")];
    assert_eq!(Home::new(twice).run(request()).await.summary.as_deref(), Some("It is 42."));
    let silent = vec![ends(Length, "It is "), Turn::Say(" "), Turn::Say("It is 42.")];
    assert_eq!(Home::new(silent).run(request()).await.summary.as_deref(), Some("It is 42."));
    let silent = vec![ends(Length, ""), Turn::Say("It is 42.")];
    assert_eq!(Home::new(silent).run(request()).await.summary.as_deref(), Some("It is 42."));
}

#[tokio::test]
async fn a_call_that_was_cut_off_is_not_made() {
    let home = Home::new(vec![calls(Length), call("append", json!({"text": "whole"})), Turn::Say("done")]);
    let record = home.run(request()).await;
    assert_eq!((record.status, record.tool_calls), (RunStatus::Completed, 1));
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["whole"]);
    let request = home.world.model.requests.lock().unwrap()[1].clone();
    let said = request.messages.iter().filter(|message| matches!(message, Message::Tool { .. })).count();
    assert_eq!((request.messages.len(), said), (3, 0));
    let Some(Message::User { text }) = request.messages.last() else { panic!("{request:?}") };
    assert!(text.contains("within its tool calls (`append`, `append`): no call of it was executed"), "{text}");

    let twice = Home::new(vec![calls(Length), calls(Length), Turn::Say("never said")]);
    let record = twice.run(crate::home::request()).await;
    failed(&record);
    assert_eq!((record.iterations, twice.world.tools.appended.lock().unwrap().len()), (2, 0));
}

#[tokio::test]
async fn half_a_call_that_is_written_as_text_is_not_made() {
    let half = [
        "<tool_call>{\"name\": \"append\", \"arguments\": {\"text\": \"a\"}}",
        "<tool_call>{\"name\": \"append\", \"arguments\": {\"text\": \"a",
        "[TOOL_CALLS]append[ARGS]{\"text\": \"a",
        "```json\n{\"name\": \"append\", \"arguments\": {\"text\": \"a\"}}",
        "{\"name\": \"append\", \"arguments\": {\"text\": \"a\"}",
    ];
    for text in half {
        let home = Home::new(vec![ends(Length, text), Turn::Say("\"}}</tool_call>"), Turn::Say("I cannot.")]);
        let record = home.run(request()).await;
        assert_eq!(home.world.tools.appended.lock().unwrap().len(), 0, "{text}");
        assert_eq!(record.tool_calls, 0, "{text}");
        let requests = home.world.model.requests.lock().unwrap();
        assert!(format!("{:?}", requests[1].messages).contains("cut off at the limit of output tokens"), "{text}");
    }
}

#[tokio::test]
async fn a_pause_is_answered_with_the_same_conversation() {
    let home = Home::new(vec![ends(Paused, "It is "), ends(Paused, "forty-"), Turn::Say("two.")]);
    let record = home.run(request()).await;
    assert_eq!((record.status, record.summary.as_deref()), (RunStatus::Completed, Some("It is forty-two.")));
    let messages = home.last_request().messages;
    let said = messages[1..].iter().map(|message| match message {
        Message::Assistant { text, .. } => text.as_str(),
        other => panic!("{other:?}"),
    });
    assert_eq!(said.collect::<Vec<_>>(), ["It is ", "forty-"]);
    // Calls of a reply that was paused are whole, and a model that only ever pauses comes to the cap.
    let home = Home::new(vec![Turn::Ends(Paused, "", vec![Arguments::Json(json!({"text": "a"}))]), Turn::Say("done")]);
    assert_eq!((home.run(request()).await.tool_calls, home.world.tools.appended.lock().unwrap().len()), (1, 1));
    let record = Home::new(vec![ends(Paused, "hm ")]).run(request()).await;
    assert_eq!((record.iterations, record.error.unwrap().category), (20, FailureCategory::BudgetExhausted));
}

#[tokio::test]
async fn a_reply_that_was_filtered_or_refused_is_no_answer() {
    let rows = [
        (Filtered, "a filter of the provider", "another model"),
        (Refused, "the model refused", "another model"),
        (ContextFull, "fills the model's context window", "`context_bytes`"),
        (Other, "a reason unknown here", "retry"),
    ];
    for (finish, what, way_out) in rows {
        for turn in [ends(finish, "The first half of"), ends(finish, ""), calls(finish)] {
            let home = Home::new(vec![turn, Turn::Say("never said")]);
            let record = home.run(request()).await;
            let (message, remedy) = failed(&record);
            assert!(message.contains(what) && message.ends_with(": in its own words"), "{message}");
            assert!(remedy.contains(way_out), "{remedy}");
            assert_eq!((record.iterations, record.tool_calls, home.signals_of(&record.id)), (1, 0, 1), "{finish:?}");
            assert_eq!(home.world.tools.appended.lock().unwrap().len(), 0, "{finish:?}");
        }
    }
    // Benign twins: replies that the model ended itself, under each provider's name for it.
    for finish in [Stop, ToolCalls, Missing] {
        let record = Home::new(vec![ends(finish, "It is 42.")]).run(request()).await;
        assert_eq!((record.status, record.summary.as_deref()), (RunStatus::Completed, Some("It is 42.")), "{finish:?}");
    }
}

#[tokio::test]
async fn a_full_context_window_ends_also_a_run_that_was_compacted() {
    let look = call("look", json!({}));
    let home = Home::new([vec![look; 14], vec![ends(ContextFull, "It is"), Turn::Say("never said")]].concat());
    let record = home.run(request()).await;
    assert!(failed(&record).0.contains("context window"));
    assert_eq!(record.iterations, 15);
    let first = home.last_request().messages.into_iter().nth(1);
    assert!(matches!(&first, Some(Message::User { text }) if text.contains("To save room")), "{first:?}");
}

#[tokio::test]
async fn an_attempt_after_a_cut_off_begins_anew() {
    let turns = vec![ends(Length, "half "), ends(Filtered, "x"), ends(Length, "It is "), Turn::Say("42.")];
    let home = Home::new(turns);
    let record = home.run(request()).await;
    failed(&record);
    home.motor.retry(&record.id, motor::RetryRequest::default()).await.unwrap();
    let record = home.motor.wait(&record.id).await.unwrap();
    assert_eq!((record.status, record.summary.as_deref()), (RunStatus::Completed, Some("It is 42.")));
}

#[tokio::test]
async fn reasoning_in_the_text_is_neither_answer_nor_call() {
    let think = "<think>I write <tool_call>{\"name\": \"append\", \"arguments\": {}}</tool_call>? No.</think>\n\n42";
    let home = Home::new(vec![Turn::Say(think)]);
    let record = home.run(request()).await;
    assert_eq!((record.status, record.summary.as_deref()), (RunStatus::Completed, Some("42")));
    let trace = home.motor.status(&record.id).unwrap();
    assert_eq!(trace.steps[0].text, "42");
    assert!(trace.steps[0].reasoning.as_deref().unwrap().starts_with("I write <tool_call>"));
    // Reasoning alone is no answer.
    let home = Home::new(vec![Turn::Say("<think>hm"), Turn::Say("42")]);
    assert_eq!(home.run(request()).await.summary.as_deref(), Some("42"));
    assert!(told(&home).contains("your reply was empty"));
}

#[tokio::test]
async fn calls_of_one_text_are_made_in_their_order() {
    let text = "<tool_call>{\"name\": \"append\", \"arguments\": {\"text\": \"a\"}}</tool_call>\n\
                <tool_call>{\"name\": \"functions.append\", \"arguments\": {\"text\": \"b\"}}</tool_call>";
    let home = Home::new(vec![Turn::Say(text), Turn::Say("done")]);
    assert_eq!(home.run(request()).await.status, RunStatus::Completed);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["a", "b"]);
}
