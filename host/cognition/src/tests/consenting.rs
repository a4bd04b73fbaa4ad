//! A yes of the owner grants a request only if it cannot be the answer to something else (SPEC CONSENT-1).

use super::noted::{news, noted};
use super::*;
use crate::perform::run_key_prefix;

fn asked() -> AskedBy {
    let (reason, summaries) = ("deletes files".to_owned(), vec!["delete the old files".to_owned()]);
    AskedBy::Approval { id: "apr_1".to_owned(), reason, summaries, actions: Vec::new() }
}

fn respond() -> ChatReply {
    calls("core_task", json!({ "runId": "run_1", "action": "respond", "answer": "yes" }))
}

/// A conversation in which the card of a run was shown, with an agent that then says this.
async fn shown(says_after: &str) -> (Home, Cognition) {
    let (home, cognition) = begun().await;
    show(&home, &cognition, says_after).await;
    (home, cognition)
}

async fn begun() -> (Home, Cognition) {
    let home = Home::new().await;
    let cognition = home.open(vec![says("hello")]).await;
    home.exchange(&cognition, "hello").await;
    (home, cognition)
}

async fn show(home: &Home, cognition: &Cognition, says_after: &str) {
    home.script.replies.lock().push_back(says(says_after));
    let (agent, status) = (AgentName::default(), "awaiting_approval".to_owned());
    let (waiting, report) = (Some(asked()), json!({}));
    let view = RunView { agent, status, is_over: false, waiting, report, sources: Vec::new() };
    *home.script.run.lock() = Some((format!("{}1-0", run_key_prefix(&home.id())), view));
    let card = EntryBody::Said { text: "run_1 asks for your consent".to_owned(), by: Speaker::Host };
    home.signal(cognition, vec![signal("awaiting_approval", "{}", &[]), card], Some(asked())).await;
}

/// News comes, about which the agent says nothing.
async fn tell(home: &Home, cognition: &Cognition) {
    home.script.replies.lock().push_back(says(""));
    cognition.note(news(1)).await.unwrap();
    noted(cognition, &ChannelName::chat(), 0).await;
}

fn grants(home: &Home) -> Vec<bool> {
    home.script.decisions.lock().iter().map(|decision| decision.grant).collect()
}

#[tokio::test]
async fn a_yes_right_after_the_card_grants_it() {
    for after_news in [false, true] {
        let (home, cognition) = begun().await;
        if after_news {
            tell(&home, &cognition).await;
        }
        show(&home, &cognition, "").await;
        home.script.replies.lock().extend([respond(), says("passed on")]);
        home.exchange(&cognition, "yes").await;
        assert_eq!(grants(&home), [true], "after news: {after_news}");
        cognition.shutdown().await;
    }
}

#[tokio::test]
async fn a_yes_to_the_agents_own_question_grants_no_card() {
    // The agent speaks in the turn of the signal, or in one of a message after it. The texts of news and of a task are a model's, too.
    for question_in in ["the signal", "a later turn", "news", "a task"] {
        let question = "Shall I remind you tomorrow?";
        let (home, cognition) = shown(if question_in == "the signal" { question } else { "" }).await;
        match question_in {
            "a later turn" => {
                home.script.replies.lock().push_back(says(question));
                home.exchange(&cognition, "anything else?").await;
            }
            "news" => tell(&home, &cognition).await,
            "a task" => {
                home.script.replies.lock().extend([calls("core_act", json!({ "task": question })), says("")]);
                home.signal(&cognition, vec![signal("completed", "{}", &[])], None).await;
            }
            _ => {}
        }
        home.script.replies.lock().extend([respond(), says("which one?")]);
        home.exchange(&cognition, "yes").await;
        assert_eq!(grants(&home), [false; 0], "{question_in}");
        assert!(home.last_asked().contains("has to write `yes run_1`"), "{}", home.last_asked());
        // The owner's words that name the run, and a no in any words.
        home.script.replies.lock().extend([respond(), says("passed on")]);
        home.exchange(&cognition, "yes, run_1").await;
        assert_eq!(grants(&home), [true]);
        cognition.shutdown().await;
    }
    let (home, cognition) = shown("Shall I remind you tomorrow?").await;
    home.script.replies.lock().extend([respond(), says("passed on")]);
    home.exchange(&cognition, "no").await;
    assert_eq!(grants(&home), [false]);
    cognition.shutdown().await;
}
