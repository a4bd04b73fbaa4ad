//! Long conversations keep their beginning as a summary, cost as much as short ones, and keep their taint (SPEC COG-1, TAINT-1).

use super::*;
use crate::compact::MAX_SUMMARY;
use crate::window::MAX_WINDOW_CHARS;

fn long(number: usize) -> String {
    format!("story {number} {}", "long ".repeat(5_000))
}

/// Turns that are long enough to move the window several times.
async fn talks_at_length(home: &Home, cognition: &Cognition) {
    for number in 0..9 {
        home.script.replies.lock().push_back(says("I see"));
        home.exchange(cognition, &long(number)).await;
    }
}

fn summary(cognition: &Cognition) -> Option<RollingSummary> {
    cognition.list(&AgentName::default(), &ConversationFilter::default(), 1).unwrap().remove(0).summary
}

#[tokio::test]
async fn a_long_conversation_rolls_its_summary_on_and_costs_as_much_as_a_short_one() {
    for (sources, label) in [(vec!["evil.example"], "summary, may hold web content"), (vec![], "\"summary\\\"")] {
        let home = Home::new().await;
        home.script.summaries.lock().push_back(Some(says("The cat is called Tom.")));
        let cognition = home.open(vec![says("hello"), says("told")]).await;
        home.exchange(&cognition, "my cat is called Tom").await;
        home.signal(&cognition, vec![signal("completed", "buy canary now", &sources)], None).await;
        talks_at_length(&home, &cognition).await;
        let compactions = home.script.compactions.lock().clone();
        assert!(compactions.len() > 1, "{}", compactions.len());
        let asked = |index: usize| serde_json::to_string(&compactions[index].messages).unwrap();
        assert!(asked(0).contains("my cat is called Tom") && asked(0).contains("(none)"), "{}", asked(0));
        assert!(asked(1).contains("The cat is called Tom."), "it builds on the earlier one");
        assert!(compactions.iter().all(|request| request.tools.is_empty()), "a summary can do nothing");
        for request in home.script.asked.lock().iter() {
            let chars = serde_json::to_string(&request.messages).unwrap().len();
            assert!(chars < MAX_WINDOW_CHARS + 2 * MAX_SUMMARY, "{chars}");
        }
        let calls = home.script.asked.lock().len() + compactions.len();
        assert_eq!(*home.script.charged.lock(), calls, "each call of a model is paid for");
        cognition.shutdown().await;
        // Durable, and shown as data.
        let next = home.open(vec![says("yes")]).await;
        home.exchange(&next, "go on").await;
        assert!(home.last_asked().contains("They talked.") && home.last_asked().contains("<untrusted-"));
        assert!(home.last_asked().contains(label), "{}", home.last_asked().get(..400).unwrap_or_default());
        assert_eq!(summary(&next).unwrap().by, Speaker::Agent);
        assert_eq!(
            next.list(&AgentName::default(), &ConversationFilter::default(), 1).unwrap()[0].sources,
            sources,
            "the taint stays"
        );
        next.shutdown().await;
    }
}

#[tokio::test]
async fn without_a_usable_reply_the_host_keeps_excerpts() {
    let home = Home::new().await;
    let half = || ChatReply { finish: FinishReason::Length, ..says("The cat") };
    home.script.summaries.lock().extend((0..20).map(|_| Some(half())));
    let cognition = home.open(vec![says("hello")]).await;
    home.exchange(&cognition, "my cat is called Tom").await;
    talks_at_length(&home, &cognition).await;
    let summary = summary(&cognition).unwrap();
    assert_eq!(summary.by, Speaker::Host);
    assert!(summary.text.contains("my cat is called Tom") && summary.text.contains("story 1"), "{}", summary.text);
    assert!(summary.text.chars().count() <= MAX_SUMMARY);
    assert!(home.last_asked().contains("my cat is called Tom"));
    cognition.shutdown().await;
}

#[tokio::test]
async fn a_host_that_ends_while_it_compacts_leaves_the_conversation_as_it_was() {
    let home = Home::new().await;
    home.script.summaries.lock().extend([None, Some(says("The cat is called Tom."))]);
    let first = home.open(vec![says("I see"), says("I see")]).await;
    home.exchange(&first, &long(0)).await;
    home.exchange(&first, &long(1)).await;
    let last = first.accept(home.owners(&long(2), None).await).await.unwrap();
    while home.script.compactions.lock().is_empty() {
        tokio::task::yield_now().await;
    }
    first.shutdown().await;
    assert_eq!(summary(&first), None, "neither a summary nor half of one");
    drop(first);
    let next = home.open(vec![says("I see")]).await;
    next.begin().unwrap();
    let events = until_ended(&next, None, last.event).await;
    assert_eq!(said(&events), ["I see", "I see", "I see"], "answered once");
    assert_eq!(summary(&next).unwrap().text, "The cat is called Tom.");
    let asked: Vec<String> = {
        let compactions = home.script.compactions.lock();
        compactions.iter().map(|request| serde_json::to_string(&request.messages).unwrap()).collect()
    };
    assert_eq!(asked[0], asked[1], "it is the same request again");
    next.shutdown().await;
}
