//! A run that waits for people: questions, approvals and retries, also across a stop of the host.

use std::sync::Arc;
use std::time::Duration;

use base::{AgentName, ContentHash, Door, RefusalCode, RunId};
use motor::{
    Approval, ApprovalDecision, CommandReply, LiveEvent, QuestionAnswer, RetryRequest, RunRequest, RunStatus, Scope,
    Waiting,
};
use serde_json::json;
use signals::SignalStatus;

use crate::consent::consent;
use crate::home::{Home, Turn, call, request};

fn answer(text: &str) -> QuestionAnswer {
    QuestionAnswer { text: text.into(), question: None, consent: consent().into(), key: None }
}

fn decided(grant: bool, scope: Scope) -> ApprovalDecision {
    ApprovalDecision {
        approval: None,
        actions: vec![],
        grant,
        only: vec![],
        scope,
        reason: None,
        consent: consent(),
        key: None,
    }
}

fn asking() -> RunRequest {
    RunRequest { may_ask: true, ..request() }
}

fn careful() -> RunRequest {
    RunRequest { may_ask: true, approval_required: true, ..request() }
}

/// Waits until the run is parked.
async fn parked(home: &Home, id: &RunId) -> Waiting {
    let mut watch = home.motor.watch(id).unwrap();
    loop {
        let event = watch.next().await.expect("it ended instead of asking");
        if !matches!(event, LiveEvent::Asked { .. } | LiveEvent::ApprovalAsked { .. }) {
            continue;
        }
        // An earlier question of the same run is in the history too.
        if let Some(waiting) = home.motor.record(id).unwrap().waiting {
            return waiting;
        }
    }
}

async fn approval(home: &Home, id: &RunId) -> Approval {
    match parked(home, id).await {
        Waiting::Approval(approval) => approval,
        Waiting::Input(question) => panic!("{question:?}"),
    }
}

#[tokio::test]
async fn a_question_is_asked_once_and_answered_once() {
    let question = json!({"question": "Which file?", "choices": ["a.csv", "b.csv"]});
    let home = Home::new(vec![call("ask_user", question), Turn::Say("done")]);
    let id = home.start(asking()).await;
    let Waiting::Input(asked) = parked(&home, &id).await else { panic!() };
    assert_eq!((asked.question.as_str(), asked.choices.len(), asked.step), ("Which file?", 2, 1));
    assert_eq!(asked.expires_at.since(asked.asked_at), Duration::from_secs(1_800));
    let signal = home.signals.since(0, 10).unwrap().remove(0);
    assert_eq!(
        (signal.body.status, signal.body.question.as_deref()),
        (SignalStatus::AwaitingInput, Some("Which file?"))
    );
    assert_eq!(home.motor.record(&id).unwrap().signal, Some(signal.id));

    // The place is held, and an answer to something else is none.
    assert_eq!(home.motor.start(home.motor.new_run_id(), asking()).await.unwrap_err().code, RefusalCode::Busy);
    let other = QuestionAnswer { question: Some("ask_0".into()), ..answer("b.csv") };
    assert_eq!(home.motor.respond(&id, other).await.unwrap_err().code, RefusalCode::IllegalState);
    let refused = home.motor.approve(&id, decided(true, Scope::Once)).await.unwrap_err();
    assert!(refused.reason.contains("waits for an answer"), "{refused}");

    let about = asked.id.clone();
    let keyed = QuestionAnswer { question: Some(asked.id), key: Some("k".into()), ..answer("b.csv") };
    let moved = home.motor.respond(&id, keyed.clone()).await.unwrap();
    let expected = CommandReply {
        run_id: id.clone(),
        previous_status: RunStatus::AwaitingInput,
        new_status: RunStatus::Running,
        about,
    };
    assert_eq!(moved, expected);
    // The same command again is the same answer; another is one too many.
    assert_eq!(home.motor.respond(&id, keyed).await.unwrap(), expected);
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
    let late = home.motor.respond(&id, answer("a.csv")).await.unwrap_err();
    assert!(late.reason.contains("asks nothing"), "{late}");
    let trace = home.motor.status(&id).unwrap();
    assert_eq!(trace.steps[0].tool_calls[0].result.as_ref().unwrap().output, "b.csv");
    assert_eq!(trace.questions[0].consent.as_ref().unwrap().door, Door::Terminal);
    assert_eq!(home.signals_of(&id), 2);
}

#[tokio::test]
async fn what_waits_survives_the_host_and_keeps_its_time() {
    let home = Home::new(vec![call("ask_user", json!({"question": "?"})), Turn::Say("done")]);
    let id = home.start(asking()).await;
    let before = parked(&home, &id).await;
    let mut home = home;
    for _ in 0..3 {
        home = home.reopen().await;
        assert_eq!(home.motor.resume_all().await.unwrap(), [], "it is not driven");
        assert_eq!(home.motor.record(&id).unwrap().waiting.as_ref(), Some(&before));
        assert_eq!(home.signals_of(&id), 1, "asked once");
    }
    let waiting = home.motor.clone();
    let over = tokio::spawn({
        let id = id.clone();
        async move { waiting.wait(&id).await }
    });
    let mut watch = home.motor.watch(&id).unwrap();
    home.motor.respond(&id, answer("yes")).await.unwrap();
    assert_eq!(over.await.unwrap().unwrap().status, RunStatus::Completed);
    let mut seen = Vec::new();
    while let Some(event) = watch.next().await {
        if !event.is_hint() {
            seen.push(serde_json::to_value(&event).unwrap()["type"].as_str().unwrap().to_owned());
        }
    }
    assert_eq!(seen, ["runStarted", "modelReplied", "asked", "answered", "toolFinished", "modelReplied", "finished"]);
    assert_eq!(home.motor.record(&id).unwrap().resumes, 0);
}

#[tokio::test]
async fn a_run_that_waits_is_cancelled_at_once() {
    let home = Home::new(vec![call("ask_user", json!({"question": "?"})), Turn::Say("done")]);
    let id = home.start(asking()).await;
    parked(&home, &id).await;
    let cancelled = home.motor.cancel(&id).await.unwrap();
    assert_eq!((cancelled.previous_status, cancelled.new_status), (RunStatus::AwaitingInput, RunStatus::Cancelled));
    assert_eq!(home.motor.respond(&id, answer("x")).await.unwrap_err().code, RefusalCode::IllegalState);
    assert_eq!(home.run(request()).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn who_waits_for_people_hears_of_each_question_and_of_the_end() {
    let ask = || call("ask_user", json!({"question": "?"}));
    let home = Home::new(vec![call("look", json!({})), ask(), ask(), Turn::Say("done")]);
    let id = home.start(asking()).await;
    let first = home.motor.wait_for_people(&id).await.unwrap();
    assert_eq!(first.status, RunStatus::AwaitingInput);
    // It is answered while others wait: for the next question, and for the end.
    let (answered, end) = tokio::join!(
        async {
            home.motor.respond(&id, answer("x")).await.unwrap();
            let second = home.motor.wait_for_people(&id).await.unwrap();
            assert_eq!(second.status, RunStatus::AwaitingInput);
            assert_ne!(second.waiting.unwrap().id(), first.waiting.unwrap().id());
            home.motor.respond(&id, answer("y")).await.unwrap();
            home.motor.wait_for_people(&id).await.unwrap()
        },
        home.motor.wait(&id)
    );
    assert_eq!((answered.status, end.unwrap().status), (RunStatus::Completed, RunStatus::Completed));
    assert_eq!(home.motor.wait_for_people(&id).await.unwrap().status, RunStatus::Completed);
}

#[tokio::test]
async fn consent_is_for_one_action_and_one_time() {
    let send = || call("send", json!({"text": "order"}));
    let home = Home::new(vec![send(), send(), call("send", json!({"text": "order!"})), Turn::Say("done")]);
    let id = home.start(careful()).await;
    let first = approval(&home, &id).await;
    assert_eq!(first.choices, [Scope::Once]);
    assert_eq!(first.items[0].arguments, json!({"text": "order"}));
    assert!(home.world.tools.appended.lock().unwrap().is_empty(), "nothing was done yet");
    // About another action than the one that was shown.
    let other = ApprovalDecision { actions: vec![ContentHash::of(b"x")], ..decided(true, Scope::Once) };
    assert!(home.motor.approve(&id, other).await.unwrap_err().reason.contains("another action"));
    let wide = home.motor.approve(&id, decided(true, Scope::Always)).await.unwrap_err();
    assert_eq!(wide.code, RefusalCode::InvalidRequest);

    let home = home.reopen().await;
    home.motor.resume_all().await.unwrap();
    assert_eq!(approval(&home, &id).await, first, "the same request after a restart");
    let shown = ApprovalDecision {
        approval: Some(first.id.clone()),
        actions: vec![first.items[0].action_hash],
        ..decided(true, Scope::Once)
    };
    home.motor.approve(&id, shown.clone()).await.unwrap();
    // The same arguments a second time are asked a second time, and the first consent does not do for it.
    let second = approval(&home, &id).await;
    assert_ne!(second.id, first.id);
    assert_eq!(second.items[0].action_hash, first.items[0].action_hash);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["order"]);
    let again = home.motor.approve(&id, shown).await.unwrap_err();
    assert!(again.reason.contains("does not wait any more"), "{again}");
    home.motor.approve(&id, decided(false, Scope::Once)).await.unwrap();
    let third = approval(&home, &id).await;
    assert_ne!(third.items[0].action_hash, first.items[0].action_hash, "one changed byte is another action");
    home.motor.approve(&id, decided(true, Scope::Once)).await.unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["order", "order!"]);
    let outputs: Vec<bool> = home
        .motor
        .status(&id)
        .unwrap()
        .steps
        .iter()
        .flat_map(|step| &step.tool_calls)
        .map(|call| call.result.as_ref().unwrap().ok)
        .collect();
    assert_eq!(outputs, [true, false, true]);
}

#[tokio::test]
async fn harmless_calls_of_a_kind_are_one_question_and_a_new_kind_asks_again() {
    let get = |host: &'static str, n: u32| ("get", json!({"text": host, "n": n}));
    let home = Home::new(vec![
        Turn::Call(vec![get("a", 1), get("a", 2), get("b", 3)]),
        Turn::Call(vec![get("a", 4), get("b", 5)]),
        Turn::Say("done"),
    ]);
    let id = home.start(careful()).await;
    let first = approval(&home, &id).await;
    assert_eq!((first.items.len(), first.class.as_deref()), (2, Some("read from a")));
    home.motor.approve(&id, decided(true, Scope::Once)).await.unwrap();
    let second = approval(&home, &id).await;
    assert_eq!((second.items.len(), second.class.as_deref()), (1, Some("read from b")));
    home.motor.approve(&id, decided(true, Scope::Run)).await.unwrap();
    // Once was once; for the run is for the run.
    let third = approval(&home, &id).await;
    assert_eq!(third.class.as_deref(), Some("read from a"));
    home.motor
        .approve(&id, ApprovalDecision { reason: Some("enough".into()), ..decided(false, Scope::Once) })
        .await
        .unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
    let trace = home.motor.status(&id).unwrap();
    let ok: Vec<bool> =
        trace.steps.iter().flat_map(|step| &step.tool_calls).map(|call| call.result.as_ref().unwrap().ok).collect();
    assert_eq!(ok, [true, true, true, false, true]);
    let refused = trace.steps[1].tool_calls[0].result.as_ref().unwrap();
    assert!(refused.output.contains("enough"), "{refused:?}");
    assert_eq!(trace.approvals.len(), 3);
}

#[tokio::test]
async fn a_call_that_was_refused_a_request_is_made_again_after_the_consent() {
    let home = Home::new(vec![call("sneak", json!({"text": "x"})), Turn::Say("done")]);
    let id = home.start(asking()).await;
    let asked = approval(&home, &id).await;
    assert!(asked.repeat);
    assert_eq!(asked.choices, [Scope::Once, Scope::Run]);
    let home = home.reopen().await;
    home.motor.resume_all().await.unwrap();
    assert_eq!(approval(&home, &id).await, asked, "the same request after a restart");
    home.motor.approve(&id, decided(true, Scope::Once)).await.unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
    let trace = home.motor.status(&id).unwrap();
    assert!(trace.steps[0].tool_calls[0].result.as_ref().unwrap().ok, "the model sees one call and one result");
    assert_eq!((trace.steps.len(), trace.tool_calls, trace.errors), (2, 1, 0));
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["x"]);
    assert_eq!(trace.approvals.len(), 1);
    // It had sent a request before it was refused: the owner sees that, and so does a server that checks keys.
    assert_eq!(trace.approvals[0].approval.sent, ["POST u"]);
    let keys = home.world.tools.keys.lock().unwrap().clone();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
}

#[tokio::test]
async fn some_of_the_requests_of_a_call_can_be_allowed() {
    let home = Home::new(vec![call("sneak", json!({"text": "mine theirs"})), Turn::Say("done")]);
    let id = home.start(asking()).await;
    let asked = approval(&home, &id).await;
    assert_eq!(asked.items.iter().map(|item| item.summary.as_str()).collect::<Vec<_>>(), ["POST mine", "POST theirs"]);
    let other = ApprovalDecision { only: vec![ContentHash::of(b"z")], ..decided(true, Scope::Once) };
    assert!(home.motor.approve(&id, other).await.unwrap_err().reason.contains("does not ask about"));
    let mine = ApprovalDecision { only: vec![asked.items[0].action_hash], ..decided(true, Scope::Once) };
    home.motor.approve(&id, mine).await.unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["mine"]);
    let trace = home.motor.status(&id).unwrap();
    let result = trace.steps[0].tool_calls[0].result.clone().unwrap();
    assert!(result.output.contains("the owner refused POST theirs"), "{result:?}");
    assert_eq!(trace.approvals.len(), 1, "what was refused is not asked about again");
}

#[tokio::test]
async fn a_refusal_is_about_the_request_and_after_three_about_its_class() {
    let sneak = |word: &str| call("sneak", json!({ "text": word }));
    let words = ["a", "mine", "b", "a", "c", "d", "mine2"];
    let turns = words.iter().map(|word| sneak(word)).chain([Turn::Say("done")]);
    let home = Home::new(turns.collect());
    let id = home.start(asking()).await;
    for (word, allowed) in [("a", false), ("mine", true), ("b", false), ("c", false)] {
        let asked = approval(&home, &id).await;
        assert_eq!(asked.items[0].summary, format!("POST {word}"));
        home.motor.approve(&id, decided(allowed, Scope::Once)).await.unwrap();
    }
    // The second `a` was refused as such, `d` and `mine2` are of a class that was refused three times.
    let record = home.motor.wait(&id).await.unwrap();
    assert_eq!(record.status, RunStatus::Completed, "{record:?}");
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["mine"]);
    assert_eq!(home.motor.status(&id).unwrap().approvals.len(), 4);
}

#[tokio::test]
async fn a_consent_to_a_request_outlasts_other_calls_and_is_used_once() {
    let sneak = || call("sneak", json!({"text": "x"}));
    let home = Home::new(vec![sneak(), call("append", json!({"text": "y"})), sneak(), Turn::Say("done")]);
    let id = home.start(asking()).await;
    let first = approval(&home, &id).await;
    home.motor.approve(&id, decided(true, Scope::Once)).await.unwrap();
    let second = approval(&home, &id).await;
    assert_ne!(first.id, second.id, "once was once");
    home.motor
        .approve(&id, ApprovalDecision { reason: Some("not now".into()), ..decided(false, Scope::Once) })
        .await
        .unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["x", "y"]);
    let trace = home.motor.status(&id).unwrap();
    let refused = trace.steps[2].tool_calls[0].result.clone().unwrap();
    assert!(
        !refused.ok && !refused.output.contains("not now"),
        "the owner's words are no part of a result: {refused:?}"
    );
    let told: Vec<_> = trace.owner_messages.iter().map(|told| told.text.as_str()).collect();
    assert_eq!(told, ["No. not now"]);
}

#[tokio::test]
async fn a_run_whose_wishes_are_refused_answers_with_what_it_has() {
    let turns = (0..6).map(|n| call("sneak", json!({ "text": format!("w{n}") })));
    let home = Home::new(turns.collect());
    let id = home.start(RunRequest { max_iterations: Some(6), ..request() }).await;
    let record = home.motor.wait(&id).await.unwrap();
    assert_eq!(record.status, RunStatus::Completed, "{record:?}");
    let answer = record.summary.unwrap();
    assert!(answer.contains("Not done, because it was refused: POST w0; POST w1"), "{answer}");
    let trace = home.motor.status(&id).unwrap();
    let told: Vec<_> = trace.steps.iter().flat_map(|step| &step.host_messages).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].contains("say what was refused"));
}

#[tokio::test]
async fn a_key_stands_for_one_order() {
    let ask = || call("ask_user", json!({"question": "?"}));
    let home = Home::new(vec![ask(), ask(), Turn::Say("done")]);
    let id = home.start(asking()).await;
    let first = parked(&home, &id).await;
    let keyed = |text: &str| QuestionAnswer { key: Some("k".into()), ..answer(text) };
    home.motor.respond(&id, keyed("a")).await.unwrap();
    while parked(&home, &id).await == first {
        tokio::task::yield_now().await;
    }
    home.motor.respond(&id, keyed("a")).await.unwrap();
    assert!(home.motor.record(&id).unwrap().waiting.is_some(), "the same order again answers nothing");
    let other = home.motor.respond(&id, keyed("b")).await.unwrap_err();
    assert!(other.reason.contains("another order"), "{other}");
    home.motor.respond(&id, answer("b")).await.unwrap();
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Completed);
}

#[tokio::test]
async fn what_failed_after_it_was_sent_keeps_its_key_in_the_next_attempt() {
    let breaks = || call("post", json!({"text": "breaks"}));
    let fail = || call("fail", json!({"text": "x"}));
    let home = Home::new(vec![breaks(), fail(), breaks(), fail()]);
    let id = home.start(RunRequest { max_iterations: Some(2), ..request() }).await;
    home.motor.wait(&id).await.unwrap();
    home.motor.retry(&id, RetryRequest { max_iterations: Some(2), ..RetryRequest::default() }).await.unwrap();
    home.motor.wait(&id).await.unwrap();
    let keys = home.world.tools.keys.lock().unwrap().clone();
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]), "a sink that looks at keys sees that it is the same");
}

#[tokio::test]
async fn a_failed_run_is_tried_again_with_what_was_learnt() {
    let home = Home::new(vec![call("fail", json!({"text": "x"}))]);
    let id = home.start(RunRequest { max_iterations: Some(2), ..request() }).await;
    let failed = home.motor.wait(&id).await.unwrap();
    let failure = failed.failure.unwrap();
    assert!(failure.retryable, "{failure:?}");
    assert_eq!(failure.last_tool_results.len(), 2);
    // Another run holds the place: the failed one has to wait for it.
    let other = home.start(RunRequest { agent: AgentName::parse("other").unwrap(), ..request() }).await;
    home.motor.wait(&other).await.unwrap();

    let guided =
        RetryRequest { guidance: Some("use port 8080".into()), key: Some("r".into()), ..RetryRequest::default() };
    let retried = home.motor.retry(&id, guided.clone()).await.unwrap();
    assert_eq!((retried.attempt_index, retried.status), (1, RunStatus::Running));
    assert_eq!(home.motor.retry(&id, guided).await.unwrap(), retried, "the same command is the same attempt");
    let again = home.motor.wait(&id).await.unwrap();
    assert_eq!((again.status, again.attempt, again.earlier_iterations), (RunStatus::Failed, 1, 2));
    let request = home.last_request();
    assert!(request.system.contains("<recovery_context>") && request.system.contains("use port 8080"));
    assert!(request.messages.iter().all(|message| !format!("{message:?}").contains("use port 8080")));
    assert_eq!(again.iterations, 2 + 3, "the same failure three times ends an attempt");
    home.motor.retry(&id, RetryRequest::default()).await.unwrap();
    let last = home.motor.wait(&id).await.unwrap();
    assert!(!last.failure.unwrap().retryable);
    assert!(home.motor.retry(&id, RetryRequest::default()).await.unwrap_err().reason.contains("3 attempts"));
    assert_eq!(home.motor.status(&id).unwrap().attempts.len(), 3);
    assert_eq!(home.signals_of(&id), 3, "each attempt ends once");
    let more = RetryRequest {
        grant: Some(serde_json::from_value(json!({"domains": ["*"]})).unwrap()),
        ..RetryRequest::default()
    };
    assert!(home.motor.retry(&id, more).await.is_err());
}

#[tokio::test]
async fn an_action_that_an_earlier_attempt_did_is_not_done_again() {
    let (post, fail) = (call("post", json!({"text": "order"})), call("fail", json!({"text": "x"})));
    let home = Home::new(vec![post.clone(), fail.clone(), post, fail]);
    let id = home.start(RunRequest { max_iterations: Some(2), ..request() }).await;
    assert_eq!(home.motor.wait(&id).await.unwrap().status, RunStatus::Failed);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["order"]);
    home.motor.retry(&id, RetryRequest::default()).await.unwrap();
    home.motor.wait(&id).await.unwrap();
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["order"], "done once");
    let trace = home.motor.status(&id).unwrap();
    let skipped = trace.steps[2].tool_calls[0].result.as_ref().unwrap();
    assert!(skipped.ok && skipped.output.contains("attempt 1 of this run has done exactly this"), "{skipped:?}");
}

#[tokio::test]
async fn a_question_without_an_answer_fails_the_run() {
    let home = Home::new(vec![call("ask_user", json!({"question": "?"})), Turn::Say("done")]);
    let id = home.start(asking()).await;
    parked(&home, &id).await;
    // The next host starts after the question has expired.
    let home = home.reopen_at(Duration::from_secs(1_801)).await;
    let late = home.motor.respond(&id, answer("x")).await.unwrap_err();
    assert!(late.reason.contains("expired"), "{late}");
    home.motor.resume_all().await.unwrap();
    let record = home.motor.wait(&id).await.unwrap();
    assert_eq!(record.error.unwrap().message, "User response timeout");
    assert_eq!(home.signals_of(&id), 2);
    assert_eq!(home.run(request()).await.status, RunStatus::Completed, "the place is free");
}

#[tokio::test]
async fn a_run_that_may_not_ask_goes_on_without() {
    let home = Home::new(vec![
        call("ask_user", json!({"question": "?"})),
        call("send", json!({"text": "a"})),
        Turn::Say("done"),
    ]);
    let record = home.run(RunRequest { approval_required: true, ..request() }).await;
    assert_eq!(record.status, RunStatus::Completed);
    assert!(home.world.tools.appended.lock().unwrap().is_empty());
    let record = home.run(request()).await;
    assert_eq!(record.status, RunStatus::Completed);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["a"]);
    assert!(Arc::strong_count(&home.world) > 0);
}
