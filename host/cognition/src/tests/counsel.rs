//! Answers to peers that wait for a consultation (SPEC CX-10): no word passes by it.

use super::*;

async fn ask(cognition: &Cognition, text: &str) -> Vec<ChatEventBody> {
    let accepted = cognition.accept(message(Sender::Peer(mallory()), text, None)).await.unwrap();
    until_ended(cognition, Some(mallory()), accepted.event).await
}

#[tokio::test]
async fn a_reply_that_was_cut_off_says_nothing_that_would_have_waited() {
    for finish in [FinishReason::Length, FinishReason::Filtered, FinishReason::ContextFull] {
        let home = Home::new().await;
        let half = || ChatReply { finish, ..says("I promise to pay") };
        let cognition = home.open(vec![half(), half(), says("I pay")]).await;
        let failed = "The agent cannot answer at the moment.";
        // Where nothing waits, the peer gets the beginning.
        assert_eq!(said(&ask(&cognition, "one").await), ["I promise to pay", failed], "{finish:?}");
        *home.script.verdict.lock() = Some(true);
        assert_eq!(said(&ask(&cognition, "two").await), ["I promise to pay", failed, failed], "{finish:?}");
        assert!(home.script.considered.lock().is_empty());
        // A whole one is considered and sent.
        assert_eq!(said(&ask(&cognition, "three").await).last(), Some(&"I pay"), "{finish:?}");
        assert_eq!(home.script.considered.lock().pop().unwrap().1, "I pay");
        cognition.shutdown().await;
    }
}

#[tokio::test]
async fn a_consultation_knows_what_was_said_before() {
    let home = Home::new().await;
    let cognition = home.open(vec![says("Let me see."), says("Yes.")]).await;
    *home.script.verdict.lock() = Some(true);
    ask(&cognition, "settle the 500 payment?").await;
    ask(&cognition, "so, yes or no?").await;
    let considered = home.script.considered.lock().clone();
    assert_eq!(considered[0], (vec![], "Let me see.".to_owned()));
    let earlier = ["peer: settle the 500 payment?", "agent: Let me see."].map(str::to_owned).to_vec();
    assert_eq!(considered[1], (earlier, "Yes.".to_owned()), "the words of the host are not among them");
    cognition.shutdown().await;
}
