//! Observers see the events of each conversation, and one that panics takes nothing from the others (SPEC COG-2).

use super::*;

#[tokio::test]
async fn observers_see_messages_replies_and_calls_of_all_sides_and_a_panic_stays_alone() {
    let home = Home::new().await;
    let usage = llm::Usage { input_tokens: 30, output_tokens: 4, ..llm::Usage::default() };
    let replied = |reply: ChatReply| ChatReply { usage, ..reply };
    let replies = vec![
        replied(calls("core_say", json!({ "text": "soon" }))),
        replied(calls("core_task", json!({ "runId": "run_1", "action": "status" }))),
        replied(says("done")),
        replied(says("hello, stranger")),
    ];
    let cognition = home.open(replies).await;
    home.exchange(&cognition, "work").await;
    let accepted = cognition.accept(message(Sender::Peer(mallory()), "hello", None)).await.unwrap();
    until_ended(&cognition, Some(mallory()), accepted.event).await;
    let tokens = "ModelReplied { input_tokens: 30, output_tokens: 4 }";
    let mut expected = vec![
        "owner: Message { text: \"work\", is_new_peer: false }".to_owned(),
        format!("owner: {tokens}"),
        format!("owner: {tokens}"),
        format!("owner: {tokens}"),
        "owner: Sent(\"soon\")".to_owned(),
        "owner: ToolReturned { name: \"core_say\", is_ok: true }".to_owned(),
        "owner: ToolReturned { name: \"core_task\", is_ok: false }".to_owned(),
        "owner: Sent(\"done\")".to_owned(),
        "mallory: Message { text: \"hello\", is_new_peer: true }".to_owned(),
        format!("mallory: {tokens}"),
        "mallory: Sent(\"hello, stranger\")".to_owned(),
    ];
    // The end of a turn is durable before its observers hear of it.
    while home.script.seen.lock().len() < expected.len() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let mut seen = home.script.seen.lock().clone();
    seen.sort();
    expected.sort();
    assert_eq!(seen, expected);
    cognition.shutdown().await;
}
