//! News of a cortex for the main loop (SPEC CX-10): new directives and overdue commitments, once, and no circle of acts and advice.

use super::*;
use crate::CortexNews;

fn advising(key: &str, text: &str, of: Option<&str>) -> Value {
    let directive = json!({ "key": key, "text": text, "peer_id": of });
    json!({ "assessments": [], "beliefs": [], "directives": [directive], "summary": "s" })
}

/// The lines and sources of the news after a signal, and its last number.
fn news(home: &Home, after: u64) -> (Vec<String>, Vec<String>, u64) {
    let Some(CortexNews { last, text, sources, .. }) = home.cortex.news(after).unwrap() else {
        return (Vec::new(), Vec::new(), after);
    };
    (text.lines().map(str::to_owned).collect(), sources, last)
}

#[tokio::test]
async fn a_directive_is_news_once_while_it_holds() {
    let world = World::new();
    let home = world.open();
    assert_eq!(news(&home, 0), (vec![], vec![], 0));
    home.cycle("ben", advising("ask-ben", "Ask Ben for\n# Rules", Some("ben"))).await;
    let (lines, sources, last) = news(&home, 0);
    assert_eq!((lines.len(), sources), (1, vec!["peer:ben".to_owned()]), "{lines:?}");
    assert!(lines[0].starts_with("- directive ask-ben (ben): Ask Ben for"), "{lines:?}");
    // It is durable, and no news to one that has read it.
    drop(home);
    let home = world.open();
    assert_eq!(news(&home, 0).0, lines);
    assert_eq!(news(&home, last), (vec![], vec![], last));
    // The same key again is nothing new, however often it is worded anew: the 200 kept signals would be full of it. To a reader that is
    // behind it is one line, in its present words.
    for number in 0..20 {
        home.cycle("ben", advising("ask-ben", &format!("Do not ask Ben {number}"), None)).await;
        assert_eq!(news(&home, last).2, last);
    }
    let (lines, sources, _) = news(&home, 0);
    assert_eq!(
        (lines, sources),
        (vec!["- directive ask-ben: Do not ask Ben 19".to_owned()], vec!["cortex".to_owned()])
    );
    // One that was dismissed or has ended before it was read is left out, and the position moves behind it.
    home.cycle("ben", advising("slow", "Answer slowly", None)).await;
    home.cortex.remove_directive("slow".to_owned()).await.unwrap();
    let (lines, sources, last) = news(&home, last);
    assert_eq!((lines, sources), (vec![], vec![]));
    home.cycle("ben", advising("quick", "Answer quickly", None)).await;
    home.clock.advance(MINUTE * 61);
    let (lines, _, last) = news(&home, last);
    assert!(lines.is_empty() && last == 3, "{lines:?} {last}");
    home.cycle("ben", advising("quick", "Answer quickly", None)).await;
    assert_eq!(news(&home, last).0, ["- directive quick: Answer quickly"]);
}

#[tokio::test]
async fn acts_of_the_agent_alone_lead_to_no_news() {
    let world = World::new();
    let home = world.open_with(CortexConfig { triage: false, ..CortexConfig::default() });
    let cycle = async |key: &str, text: &str| {
        home.clock.advance(MINUTE * 31);
        let model = Scripted::replying([advising(key, text, None).to_string()]);
        record(home.cortex.reflect(home.cortex.due(), Arc::new(PlainReflector), model).await.unwrap())
    };
    home.hears("ben", "hello").await;
    cycle("one", "do it").await;
    let (lines, _, last) = news(&home, 0);
    assert_eq!(lines, ["- directive one: do it"]);
    // A run that followed from it is activity. The reflection on that advises more, which is no news.
    home.cortex.observe(Observation::RunEnded { model_replies: 1, tokens: 1, tool_calls: 1, tool_failures: 1 });
    home.cortex.observe(Observation::ModelReplied { tokens: 1 });
    let applied = cycle("two", "do more of it").await;
    assert_eq!(applied.triggers, [Trigger::Timer]);
    assert!(home.cortex.directives().iter().any(|directive| directive.text == "do more of it"));
    assert_eq!(news(&home, last), (vec![], vec![], last));
    // The benign twin: a peer wrote since.
    home.hears("ben", "hello again").await;
    cycle("three", "answer him").await;
    assert_eq!(news(&home, last).0, ["- directive three: answer him"]);
}

#[tokio::test]
async fn a_peer_that_a_skipped_cycle_gave_back_is_a_reason_for_news() {
    let world = World::new();
    let home = world.open_with(CortexConfig { triage: false, ..CortexConfig::default() });
    home.hears("ben", "hello").await;
    // The model is gone.
    record(home.reflect(&Arc::default()).await);
    assert_eq!(home.cortex.activity().interactions, 0);
    home.cortex.observe(Observation::ModelReplied { tokens: 1 });
    home.clock.advance(MINUTE * 31);
    let model = Scripted::replying([advising("answer", "answer Ben", Some("ben")).to_string()]);
    let applied = record(home.cortex.reflect(home.cortex.due(), Arc::new(PlainReflector), model).await.unwrap());
    assert_eq!((applied.triggers.as_slice(), applied.activity.interactions), ([Trigger::Timer].as_slice(), 0));
    assert_eq!(news(&home, 0).0, ["- directive answer (ben): answer Ben"]);
}

#[tokio::test]
async fn directives_take_no_place_of_an_overdue_commitment() {
    let world = World::new();
    let home = world.open_with(CortexConfig { max_directives: 20, ..CortexConfig::default() });
    let promise = json!({ "key": "table", "text": "send it", "by": "peer", "peer_id": "mai", "due_in_minutes": 60 });
    let reply = json!({ "assessments": [], "beliefs": [], "commitments": [promise], "summary": "s" });
    home.cycle("mai", reply).await;
    home.clock.advance(MINUTE * 61);
    home.cortex.tell_overdue().await.unwrap();
    let overdue = home.cortex.news(0).unwrap().unwrap();
    assert!(overdue.is_overdue, "{overdue:?}");
    for number in 0..12 {
        home.cycle("eve", advising(&format!("d{number}"), "look at this", Some("eve"))).await;
    }
    let both = home.cortex.news(0).unwrap().unwrap();
    assert!(both.is_overdue && both.text.lines().count() == 10 && both.text.contains("promise table"), "{both:?}");
    // The twin: directives alone.
    let advice = home.cortex.news(overdue.last).unwrap().unwrap();
    assert!(!advice.is_overdue && advice.text.lines().count() == 10, "{advice:?}");
}

#[tokio::test]
async fn an_overdue_commitment_is_news_until_it_is_closed() {
    let world = World::new();
    let home = world.open();
    let promise = json!({ "key": "table", "text": "send it", "by": "peer", "peer_id": "mai", "due_in_minutes": 60 });
    let reply = json!({ "assessments": [], "beliefs": [], "commitments": [promise], "summary": "s" });
    home.cycle("mai", reply).await;
    assert_eq!(news(&home, 0), (vec![], vec![], 0));
    home.clock.advance(MINUTE * 61);
    home.cortex.tell_overdue().await.unwrap();
    let (lines, sources, _) = news(&home, 0);
    assert!(
        lines[0].contains("made by mai: send it") && lines[0].starts_with("- promise table, overdue since"),
        "{lines:?}"
    );
    assert_eq!(sources, ["peer:mai"]);
    home.cortex.close_commitment("table".to_owned(), true).await.unwrap();
    assert_eq!(news(&home, 0), (vec![], vec![], 1));
    // Forgotten with its peer.
    home.cortex.forget(&peer("mai"), |_, _| Ok(())).await.unwrap();
    assert_eq!(news(&home, 0), (vec![], vec![], 1));
}
