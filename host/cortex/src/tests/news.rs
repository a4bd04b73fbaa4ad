//! News of a cortex for the main loop (SPEC CX-10): new directives and overdue commitments, once, and no circle of acts and advice.

use super::*;
use crate::CortexNews;

fn advising(key: &str, text: &str, of: Option<&str>) -> Value {
    let directive = json!({ "key": key, "text": text, "peer_id": of });
    json!({ "assessments": [], "beliefs": [], "directives": [directive], "summary": "s" })
}

/// The lines and sources of the news after a signal, and its last number.
fn news(home: &Home, after: u64) -> (Vec<String>, Vec<String>, u64) {
    let Some(CortexNews { last, text, sources }) = home.cortex.news(after).unwrap() else {
        return (Vec::new(), Vec::new(), after);
    };
    (text.lines().map(str::to_owned).collect(), sources, last)
}

#[tokio::test]
async fn a_directive_is_news_while_it_says_something_new_and_holds() {
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
    // The same again is nothing new; another text is, and so is the same after its end.
    home.cycle("ben", advising("ask-ben", "Ask Ben for\n# Rules", Some("ben"))).await;
    assert_eq!(news(&home, last).2, last);
    home.cycle("ben", advising("ask-ben", "Do not ask Ben", None)).await;
    let (lines, sources, last) = news(&home, last);
    assert_eq!((lines.len(), sources), (1, vec!["cortex".to_owned()]), "{lines:?}");
    // One that was dismissed or has ended before it was read is left out, and the position moves behind it.
    home.cycle("ben", advising("slow", "Answer slowly", None)).await;
    home.cortex.remove_directive("slow".to_owned()).await.unwrap();
    let (lines, sources, last) = news(&home, last);
    assert_eq!((lines, sources), (vec![], vec![]));
    home.cycle("ben", advising("quick", "Answer quickly", None)).await;
    home.clock.advance(MINUTE * 61);
    let (lines, _, last) = news(&home, last);
    assert!(lines.is_empty() && last == 4, "{lines:?} {last}");
    home.cycle("ben", advising("quick", "Answer quickly", None)).await;
    assert_eq!(news(&home, last).0, ["- directive quick: Answer quickly"]);
}

#[tokio::test]
async fn acts_of_the_agent_alone_lead_to_no_news() {
    let world = World::new();
    let home = world.open_with(CortexConfig { triage: false, ..CortexConfig::default() });
    let cycle = async |text: &str| {
        home.clock.advance(MINUTE * 31);
        let model = Scripted::replying([advising("more", text, None).to_string()]);
        record(home.cortex.reflect(home.cortex.due(), Arc::new(PlainReflector), model).await.unwrap())
    };
    home.hears("ben", "hello").await;
    cycle("do it").await;
    let (lines, _, last) = news(&home, 0);
    assert_eq!(lines, ["- directive more: do it"]);
    // A run that followed from it is activity. The reflection on that advises more, which is no news.
    home.cortex.observe(Observation::RunEnded { model_replies: 1, tokens: 1, tool_calls: 1, tool_failures: 1 });
    home.cortex.observe(Observation::ModelReplied { tokens: 1 });
    let applied = cycle("do more of it").await;
    assert_eq!(applied.triggers, [Trigger::Timer]);
    assert_eq!(home.cortex.directives()[0].text, "do more of it");
    assert_eq!(news(&home, last), (vec![], vec![], last));
    // The benign twin: a peer wrote since.
    home.hears("ben", "hello again").await;
    cycle("answer him").await;
    assert_eq!(news(&home, last).0, ["- directive more: answer him"]);
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
    home.cortex.forget(&peer("mai")).await.unwrap();
    assert_eq!(news(&home, 0), (vec![], vec![], 1));
}
