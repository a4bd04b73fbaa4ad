//! Conversations are forgotten whole, over a crash at every write, and never while anything is under way in them.

use std::time::Duration;

use base::RefusalCode;
use store::{DiskFault, SimulatedDisk};

use super::channel::{Lines, stop};
use super::*;
use crate::memory::memory_key;

async fn memories(cognition: &Cognition) -> usize {
    let filter = MemoryFilter { limit: 10, ..MemoryFilter::default() };
    cognition.memories(&AgentName::default(), filter).await.unwrap().len()
}

fn remember(request: &ChatRequest) -> ChatReply {
    let is_tool = matches!(request.messages.last(), Some(llm::Message::Tool { .. }));
    let remembers = request.tools.iter().any(|tool| tool.name == "core_remember");
    if is_tool || !remembers { says("kept") } else { calls("core_remember", json!({ "text": "tea" })) }
}

/// A conversation of the owner with a memory, and one with a peer.
async fn talked(home: &Home, cognition: &Cognition) {
    *home.script.decides.lock() = Some(remember);
    home.exchange(cognition, "I like tea").await;
    let accepted = cognition.accept(message(Sender::Peer(mallory()), "hello", Some("1"))).await.unwrap();
    until_ended(cognition, Some(mallory()), accepted.event).await;
}

/// The keys of a conversation's records.
fn records_of(disk: &SimulatedDisk, id: &str) -> usize {
    let is_of = |key: &[u8]| key.windows(id.len()).any(|part| part == id.as_bytes());
    disk.records().iter().filter(|(table, key, _)| *table == Table::Conversations && is_of(key)).count()
}

fn id_of(cognition: &Cognition) -> String {
    cognition.find(&key(None)).unwrap().unwrap().id.clone()
}

#[tokio::test]
async fn at_every_write_a_conversation_is_whole_or_forgotten_whole() {
    let mut write = 0;
    loop {
        let mut has_crashed = false;
        for reached in [false, true] {
            let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
            let cognition = home.open_on(Store::simulated(disk.clone()).unwrap()).await.unwrap();
            talked(&home, &cognition).await;
            let (id, before) = (id_of(&cognition), cognition.history(&key(None), 100).unwrap());
            disk.fail_at(disk.writes() + write, DiskFault::Crash { reached });
            let result = cognition.forget_conversation(&key(None)).await;
            cognition.shutdown().await;
            drop(cognition);
            has_crashed |= disk.is_crashed();
            assert_eq!(result.is_err(), disk.is_crashed());
            disk.heal();
            let next = home.open_on(Store::simulated(disk.clone()).unwrap()).await.unwrap();
            next.finish_forgetting().await.unwrap();
            let (found, notes) =
                (next.history(&key(None), 100).unwrap(), next.forgotten(&AgentName::default(), 10).unwrap());
            let case = format!("write {write}, reached {reached}");
            if notes.is_empty() {
                assert!(write == 0 && !reached, "{case}");
                assert_eq!((found, memories(&next).await), (before, 1), "{case}");
            } else {
                assert_eq!((found, memories(&next).await, records_of(&disk, &id)), (Vec::new(), 0, 0), "{case}");
                assert_eq!((notes[0].memories, notes[0].by, notes[0].is_owner), (1, ForgottenBy::Owner, true));
            }
            // The peer's is as it was.
            assert_eq!(said_by(&next, Some(mallory())), ["kept"], "{case}");
            // Both go on under rising numbers.
            let last = notes.first().map_or(0, |note| note.last_event);
            let accepted = next.accept(home.owners("again", None).await).await.unwrap();
            assert!(accepted.event > last, "{case}");
            until_ended(&next, None, accepted.event).await;
            next.shutdown().await;
        }
        if !has_crashed {
            break;
        }
        write += 1;
    }
    assert!(write >= 3, "{write}");
}

fn said_by(cognition: &Cognition, peer: Option<PeerId>) -> Vec<String> {
    let events: Vec<ChatEventBody> =
        cognition.history(&key(peer), 100).unwrap().into_iter().map(|event| event.body).collect();
    said(&events).into_iter().map(str::to_owned).collect()
}

#[tokio::test]
async fn a_follower_of_the_owner_goes_on_with_the_next_conversation() {
    let home = Home::new().await;
    let cognition = home.open(vec![says("one"), says("two"), says("three")]).await;
    home.exchange(&cognition, "hello").await;
    let mut follower = cognition.follow(key(None), None).await.unwrap();
    let last = loop {
        let event = follower.next().await.unwrap().unwrap();
        if matches!(event.body, ChatEventBody::Ended { .. }) {
            break event.id;
        }
    };
    let listed = cognition.list(&AgentName::default(), &ConversationFilter::default(), 10).unwrap();
    assert_eq!((listed.len(), listed[0].last_text.as_deref(), listed[0].last_event), (1, Some("one"), last));
    assert!(listed[0].bytes > 0 && listed[0].last_at.is_some());
    let note = cognition.forget_conversation(&key(None)).await.unwrap();
    assert_eq!((note.last_event, note.bytes), (last, listed[0].bytes));
    let listed = cognition.list(&AgentName::default(), &ConversationFilter::default(), 10).unwrap();
    assert_eq!(listed, [], "nothing was said since");
    let unknown = cognition.forget_conversation(&key(Some(mallory()))).await.unwrap_err();
    assert_eq!(unknown.code, RefusalCode::NotFound);
    let accepted = cognition.accept(home.owners("and now?", None).await).await.unwrap();
    assert_eq!(accepted.event, last + 1);
    let event = follower.next().await.unwrap().unwrap();
    assert_eq!(event.id, accepted.event);
    until_ended(&cognition, None, accepted.event).await;
    assert!(!home.last_asked().contains("hello"), "{}", home.last_asked());
    cognition.shutdown().await;
}

#[tokio::test]
async fn a_conversation_under_way_is_refused_with_the_remedy() {
    let home = Home::new().await;
    let act = calls("core_act", json!({ "task": "compute" }));
    let cognition = home.open(vec![act, says("under way")]).await;
    home.exchange(&cognition, "compute").await;
    let refused = async || {
        let refusal = cognition.forget_conversation(&key(None)).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::IllegalState, "{refusal:?}");
        assert_eq!(cognition.idle().await.unwrap(), []);
        format!("{}; {}", refusal.reason, refusal.remedy.unwrap())
    };
    let (agent, status, report) = (AgentName::default(), "running".to_owned(), json!({}));
    let view = RunView { agent, status, is_over: false, waiting: None, report, sources: Vec::new() };
    *home.script.run.lock() = Some((home.script.acts.lock()[0].key.clone(), view.clone()));
    assert!(refused().await.contains("motor task cancel run_1"));
    *home.script.run.lock() = Some((String::new(), RunView { is_over: true, ..view }));
    assert!(refused().await.contains("is not told in it yet"));
    // A run that was deleted is no reason.
    *home.script.run.lock() = None;
    assert_eq!(cognition.idle().await.unwrap().len(), 1);
    // No model answers this one.
    cognition.accept(home.owners("and?", None).await).await.unwrap();
    assert!(refused().await.contains("wait for the answer"));
    home.script.replies.lock().push_back(says("late"));
    cognition.shutdown().await;
    let next = home.open(vec![]).await;
    next.begin().unwrap();
    while next.idle().await.unwrap().is_empty() {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    next.forget_conversation(&key(None)).await.unwrap();
    next.shutdown().await;
}

#[tokio::test]
async fn retention_takes_only_what_is_idle_and_keeps_memories() {
    let home = Home::new().await;
    let cognition = home.open(vec![]).await;
    talked(&home, &cognition).await;
    let idle = cognition.idle().await.unwrap();
    assert_eq!(idle.iter().map(|one| one.key.peer.clone()).collect::<Vec<_>>(), [None, Some(mallory())]);
    home.exchange(&cognition, "again").await;
    assert!(!cognition.forget_idle(&idle[0]).await.unwrap(), "it was used since");
    assert!(cognition.forget_idle(&idle[1]).await.unwrap());
    assert!(!cognition.forget_idle(&idle[1]).await.unwrap(), "it is gone");
    let idle = cognition.idle().await.unwrap();
    assert!(cognition.forget_idle(&idle[0]).await.unwrap());
    assert_eq!((memories(&cognition).await, cognition.idle().await.unwrap()), (1, vec![]));
    let notes = cognition.forgotten(&AgentName::default(), 10).unwrap();
    assert_eq!(notes.iter().map(|note| (note.by, note.memories)).collect::<Vec<_>>(), [(ForgottenBy::Retention, 0); 2]);
    cognition.shutdown().await;
}

#[tokio::test]
async fn notes_of_retention_are_bounded_and_those_of_the_owner_stay() {
    let home = Home::new().await;
    let names = ["a", "b", "c", "d"];
    let cognition = home.open(names.map(says).to_vec()).await;
    let peer = |name: &str| PeerId::parse(name).unwrap();
    for name in names {
        let accepted = cognition.accept(message(Sender::Peer(peer(name)), "hello", None)).await.unwrap();
        until_ended(&cognition, Some(peer(name)), accepted.event).await;
    }
    cognition.forget_conversation(&key(Some(peer("a")))).await.unwrap();
    for one in cognition.idle().await.unwrap() {
        assert!(cognition.forget_idle(&one).await.unwrap());
    }
    let notes = || cognition.forgotten(&AgentName::default(), 10).unwrap();
    let before = notes();
    assert_eq!((before.len(), cognition.prune_notes(3).await.unwrap()), (4, 0));
    assert_eq!(cognition.prune_notes(1).await.unwrap(), 2);
    let after = notes();
    let of_owner = after.iter().filter(|note| note.by == ForgottenBy::Owner).count();
    assert_eq!((after.len(), of_owner), (2, 1), "{after:?}");
    assert_eq!(after[0].at, before[0].at, "the newest stays");
    cognition.shutdown().await;
}

#[tokio::test]
async fn a_reply_that_waits_in_the_outbox_keeps_its_conversation() {
    let home = Home::new().await;
    let cognition = home.open(vec![says("one"), says("two")]).await;
    // Its first delivery never ends.
    let lines = Lines::new(true, 0);
    cognition.serve(lines.clone()).unwrap();
    lines.write("1", "hello");
    lines.until(|lines| lines.texts().len() == 1).await;
    lines.write("2", "are you there?");
    let filter = ConversationFilter::default();
    let waits = || cognition.list(&AgentName::default(), &filter, 10).unwrap()[0].waiting;
    while said_by(&cognition, Some(mallory())).len() < 2 || waits() > 0 {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let refusal = cognition.forget_conversation(&key(Some(mallory()))).await.unwrap_err();
    assert!(refusal.reason.contains("not delivered"), "{refusal:?}");
    assert_eq!(cognition.idle().await.unwrap(), []);
    stop(&cognition, true).await;
    // A channel that delivers.
    let next = home.open(vec![]).await;
    let lines = Lines::new(false, 0);
    next.serve(lines.clone()).unwrap();
    lines.until(|lines| lines.texts() == ["two"]).await;
    next.forget_conversation(&key(Some(mallory()))).await.unwrap();
    next.shutdown().await;
}

#[tokio::test]
async fn a_head_of_an_earlier_version_gets_its_extent_from_its_entries() {
    let home = Home::new().await;
    let first = home.open(vec![says("hello"), says("again")]).await;
    home.exchange(&first, "hi").await;
    let list = |cognition: &Cognition| {
        cognition.list(&AgentName::default(), &ConversationFilter::default(), 10).unwrap().remove(0)
    };
    let (before, id) = (list(&first), home.id());
    first.shutdown().await;
    let stored: Head = home.store.get(Table::Conversations, record::head_key(&id)).unwrap().unwrap();
    assert!(stored.extent.is_some());
    let mut batch = Batch::new();
    batch.put(Table::Conversations, record::head_key(&id), &Head { extent: None, ..stored }).unwrap();
    home.store.commit(batch).await.unwrap();
    let next = home.open(vec![]).await;
    assert_eq!(list(&next), before);
    assert_eq!(next.idle().await.unwrap().len(), 1);
    // The next entry stores it.
    home.exchange(&next, "and?").await;
    let stored: Head = home.store.get(Table::Conversations, record::head_key(&id)).unwrap().unwrap();
    assert_eq!((stored.extent.unwrap().bytes, list(&next).last_text.as_deref()), (list(&next).bytes, Some("again")));
    next.shutdown().await;
}

/// Stores a memory for each of these sources.
async fn store_memories(store: &Store, sources: &[&str]) {
    let (agent, mut batch) = (AgentName::default(), Batch::new());
    for source in sources {
        let (id, sources) = (format!("mem_{source}"), vec!["cortex".to_owned(), (*source).to_owned()]);
        let (at, text, channel) = (base::Timestamp::from_millis(0), "tea".to_owned(), ChannelName::chat());
        let memory = Memory { id, at, text, channel, sources };
        batch.put(Table::Conversations, memory_key(&agent, &memory.id), &memory).unwrap();
    }
    store.commit(batch).await.unwrap();
}

#[tokio::test]
async fn a_forgetting_of_a_peer_that_ended_at_any_write_is_whole_when_it_is_taken_up_again() {
    let (agent, channels) = (AgentName::default(), ["one", "two"].map(|name| ChannelName::parse(name).unwrap()));
    let mut write = 0;
    loop {
        let mut has_crashed = false;
        for reached in [false, true] {
            let (home, disk) = (Home::new().await, SimulatedDisk::new(1));
            *home.script.decides.lock() = Some(remember);
            let store = Store::simulated(disk.clone()).unwrap();
            store_memories(&store, &["peer:mallory", "peer:mallory-2", "evil.example"]).await;
            let cognition = home.open_on(store).await.unwrap();
            for channel in &channels {
                let message = message(Sender::Peer(mallory()), "hello", Some("1"));
                cognition.accept(NewMessage { channel: channel.clone(), ..message }).await.unwrap();
            }
            while cognition.idle().await.unwrap().len() < channels.len() {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            disk.fail_at(disk.writes() + write, DiskFault::Crash { reached });
            let result = cognition.forget(&agent, &mallory()).await;
            cognition.shutdown().await;
            drop(cognition);
            has_crashed |= disk.is_crashed();
            assert_eq!(result.is_err(), disk.is_crashed());
            disk.heal();
            let next = home.open_on(Store::simulated(disk.clone()).unwrap()).await.unwrap();
            let case = format!("write {write}, reached {reached}");
            let is_known = next.inner.parts.ledger.knows(&agent, &mallory()).unwrap();
            let listed = next.list(&agent, &ConversationFilter::default(), 10).unwrap().len();
            assert_eq!((listed, memories(&next).await), if is_known { (2, 3) } else { (0, 2) }, "{case}");
            if let Err(refusal) = next.forget(&agent, &mallory()).await {
                assert_eq!(refusal.code, RefusalCode::NotFound, "{case}");
            }
            next.finish_forgetting().await.unwrap();
            next.inner.parts.ledger.resume().await.unwrap();
            assert!(!next.inner.parts.ledger.knows(&agent, &mallory()).unwrap(), "{case}");
            let notes = next.inner.parts.ledger.forgotten(&agent, 10).unwrap();
            let counts: Vec<_> =
                notes.iter().map(|note| (note.interactions, note.conversations, note.memories)).collect();
            assert_eq!((counts, memories(&next).await), (vec![(4, 2, 1)], 2), "{case}");
            let is_left = |(table, key, _): &(Table, Vec<u8>, Vec<u8>)| match table {
                Table::Conversations => key.first().is_some_and(|kind| b"nhemwod".contains(kind)),
                Table::Interactions | Table::Assessments => true,
                _ => false,
            };
            assert_eq!(disk.records().iter().filter(|record| is_left(record)).count(), 0, "{case}");
            next.shutdown().await;
        }
        if !has_crashed {
            break;
        }
        write += 1;
    }
    assert!(write >= 7, "{write}");
}

#[tokio::test]
async fn forgetting_a_peer_and_serving_a_channel_read_no_other_conversation() {
    let home = Home::new().await;
    let cognition = home.open(vec![says("hello"), says("hello")]).await;
    let mai = PeerId::parse("mai").unwrap();
    for peer in [mai.clone(), mallory()] {
        let accepted = cognition.accept(message(Sender::Peer(peer.clone()), "hello", None)).await.unwrap();
        until_ended(&cognition, Some(peer), accepted.event).await;
    }
    let id = cognition.find(&key(Some(mai))).unwrap().unwrap().id.clone();
    cognition.shutdown().await;
    drop(cognition);
    // Reading this one would fail.
    let mut batch = Batch::new();
    batch.put(Table::Conversations, record::head_key(&id), &"damaged").unwrap();
    home.store.commit(batch).await.unwrap();
    let next = home.open(vec![]).await;
    let lines = Lines::new(false, 0);
    next.serve(lines.clone()).unwrap();
    lines.until(|lines| lines.texts() == ["hello"]).await;
    assert_eq!(next.forget(&AgentName::default(), &mallory()).await.unwrap().interactions, 2);
    stop(&next, false).await;
}
