//! The ledger counts the messages of peers and the replies to them exactly, also while a peer is being forgotten (SPEC LED-1).

use super::*;

/// Messages of the peer and replies to it, as the conversation has them.
fn in_conversation(cognition: &Cognition) -> (u64, u64) {
    let events = cognition.history(&key(Some(mallory())), 1_000).unwrap();
    let count = |is_one: fn(&ChatEventBody) -> bool| {
        u64::try_from(events.iter().filter(|event| is_one(&event.body)).count()).unwrap()
    };
    let is_message = |body: &ChatEventBody| matches!(body, ChatEventBody::Message { .. });
    (count(is_message), count(|body| matches!(body, ChatEventBody::Said { .. })))
}

/// The same, as the ledger has them.
fn in_ledger(cognition: &Cognition) -> (u64, u64) {
    let peers = cognition.inner.parts.ledger.list(&AgentName::default(), None, 10).unwrap();
    peers.first().map_or((0, 0), |peer| (peer.incoming, peer.outgoing))
}

fn greets(_: &ChatRequest) -> ChatReply {
    says("hello")
}

async fn hears(cognition: &Cognition, text: &str) {
    let accepted = cognition.accept(message(Sender::Peer(mallory()), text, None)).await.unwrap();
    until_ended(cognition, Some(mallory()), accepted.event).await;
}

#[tokio::test]
async fn an_accepted_message_is_counted_before_anything_answers_it() {
    let home = Home::new().await;
    // No model answers.
    let cognition = home.open(vec![]).await;
    for number in 1..=5 {
        cognition.accept(message(Sender::Peer(mallory()), "hello", None)).await.unwrap();
        assert_eq!(in_ledger(&cognition), (number, 0));
    }
    // Received again, it is the same message, and the owner is no peer.
    for _ in 0..2 {
        cognition.accept(message(Sender::Peer(mallory()), "once", Some("1"))).await.unwrap();
    }
    cognition.accept(home.owners("hello", None).await).await.unwrap();
    assert_eq!((in_ledger(&cognition), in_conversation(&cognition)), ((6, 0), (6, 0)));
    assert_eq!(cognition.inner.parts.ledger.list(&AgentName::default(), None, 10).unwrap().len(), 1);
    cognition.shutdown().await;
}

#[tokio::test]
async fn a_message_while_a_peer_is_forgotten_is_in_both_places_or_in_none() {
    for _ in 0..20 {
        let home = Home::new().await;
        *home.script.decides.lock() = Some(greets);
        let cognition = home.open(vec![]).await;
        hears(&cognition, "first").await;
        let writing = tokio::spawn({
            let cognition = cognition.clone();
            async move {
                for _ in 0..10 {
                    cognition.accept(message(Sender::Peer(mallory()), "hello", None)).await.unwrap();
                }
            }
        });
        tokio::task::yield_now().await;
        let note = cognition.forget(&AgentName::default(), &mallory()).await.unwrap();
        assert!(note.interactions >= 2, "{note:?}");
        writing.await.unwrap();
        // A message that came after it is answered.
        hears(&cognition, "last").await;
        assert_eq!(in_ledger(&cognition), in_conversation(&cognition));
        cognition.shutdown().await;
    }
}

#[tokio::test]
async fn a_peer_with_a_conversation_is_known_to_forgetting() {
    let home = Home::new().await;
    let cognition = home.open(vec![says("hello")]).await;
    hears(&cognition, "hello").await;
    // As an earlier version left it, which lost the messages.
    let (agent, ledger) = (AgentName::default(), cognition.inner.parts.ledger.clone());
    ledger.forget(&agent, &mallory()).await.unwrap();
    let note = cognition.forget(&agent, &mallory()).await.unwrap();
    assert_eq!((note.interactions, note.assessments), (0, 0));
    assert_eq!((in_conversation(&cognition), ledger.forgotten(&agent, 10).unwrap().len()), ((0, 0), 2));
    // Twice is once too often.
    let unknown = cognition.forget(&agent, &mallory()).await.unwrap_err();
    assert_eq!(unknown.code, base::RefusalCode::NotFound);
    cognition.shutdown().await;
}
