//! Runs from start to end: answers, failures and refusals, as their readers see them.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use base::{AgentName, ErrorCode, Refusal, RefusalCode, RunId};
use expect_test::expect;
use llm::{Message, ModelError, ModelErrorKind};
use motor::config::{HEARING, MAX_CALLS_PER_REPLY};
use motor::{FailureCategory, ListFilter, LiveEvent, RunRequest, RunStatus};
use serde_json::json;

use crate::home::{Home, Turn, call, request};

#[tokio::test]
async fn a_task_becomes_an_answer_and_a_signal() {
    let two = Turn::Call(vec![("look", json!({})), ("append", json!({"text": "b"}))]);
    let home = Home::new(vec![call("append", json!({"text": "a"})), two, Turn::Say("  done  ")]);
    let record = home.run(request()).await;
    assert_eq!(record.status, RunStatus::Completed);
    assert_eq!(record.summary.as_deref(), Some("done"));
    assert_eq!((record.iterations, record.model_calls, record.tool_calls, record.errors), (3, 3, 3, 0));
    assert_eq!((record.input_tokens, record.output_tokens), (30, 6));
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["a", "b"]);

    let signals = home.signals.since(0, 10).unwrap();
    assert_eq!(signals.len(), 1);
    let result = signals[0].body.result.as_ref().unwrap();
    assert_eq!((result.ok, result.summary.as_str(), result.stats.iterations), (true, "done", 3));
    assert!((result.stats.energy_cost - 0.10).abs() < 1e-9);

    let trace = home.motor.status(&record.id).unwrap();
    assert_eq!(trace.steps.len(), 3);
    assert_eq!(trace.steps[1].tool_calls[1].args, json!({"text": "b"}));
    assert_eq!(trace.steps[1].tool_calls[1].result.as_ref().unwrap().output, "appended");
    assert_eq!(trace.steps[0].tool_calls[0].notes.len(), 1);
    let statuses: Vec<_> = trace.transitions.iter().map(|transition| transition.status.as_str()).collect();
    assert_eq!(statuses, ["created", "running", "completed"]);
    assert_eq!(*home.world.finished.lock().unwrap(), [trace]);
    assert_eq!(home.motor.resume_all().await.unwrap(), []);
}

#[tokio::test]
async fn the_log_reads_like_a_story() {
    let home = Home::new(vec![call("append", json!({"text": "a"})), Turn::Say("done")]);
    let record = home.run(request()).await;
    let log = home.motor.log(&record.id).unwrap();
    let story: Vec<_> = log.lines().map(|line| line.split_once(' ').unwrap().1.to_owned()).collect();
    let story = story.join("\n");
    let timeless = story.split(' ').map(|word| if word.parse::<u64>().is_ok() { "N" } else { word });
    expect![[r#"
        created for agent main, tools [look, meet, append, set, flaky, flaky_write, fail, hang, polite, web, panic, short, short_polite, polite_look, ends_well, taken, save_credential, send, get, sneak, post]: do it
        started
        step N test/script replied in N ms, N tokens in, N out calls [append]: 
        step N append begins: {"text":"a"}
        step N append info: append begins
        step N append ok in N ms: appended
        step N test/script replied in N ms, N tokens in, N out: done
        completed: done"#]]
    .assert_eq(&timeless.collect::<Vec<_>>().join(" "));
}

#[tokio::test]
async fn watchers_see_every_durable_event_once_whenever_they_come() {
    let home = Home::new(vec![call("look", json!({})), call("append", json!({"text": "a"})), Turn::Say("done")]);
    let id = home.start(request()).await;
    let mut early = home.motor.watch(&id).unwrap();
    let mut seen = Vec::new();
    while let Some(event) = early.next().await {
        seen.push(event);
    }
    home.motor.wait(&id).await.unwrap();
    let mut late = home.motor.watch(&id).unwrap();
    let mut history = Vec::new();
    while let Some(event) = late.next().await {
        history.push(event);
    }
    let kind = |event: &LiveEvent| serde_json::to_value(event).unwrap()["type"].as_str().unwrap().to_owned();
    let durable: Vec<_> = seen
        .into_iter()
        .filter(|event| !["stepStarted", "textDelta", "toolNote"].contains(&kind(event).as_str()))
        .collect();
    assert_eq!(durable, history);
    let kinds: Vec<_> = history.iter().map(kind).collect();
    let step = ["modelReplied", "toolStarted", "toolFinished"];
    assert_eq!(kinds, [&["runStarted"], &step[..], &step[..], &["modelReplied", "finished"]].concat());
}

#[tokio::test]
async fn least_privilege_and_malformed_calls_are_data() {
    let home = Home::new(vec![
        call("append", json!({"text": "a"})),
        Turn::Malformed("look", "{\"text\": "),
        call("look", json!({"texte": "x"})),
        Turn::Say("done"),
    ]);
    let record = home.run(RunRequest { tools: vec!["look".into()], ..request() }).await;
    assert_eq!(record.status, RunStatus::Completed);
    assert!(home.world.tools.appended.lock().unwrap().is_empty());
    let trace = home.motor.status(&record.id).unwrap();
    let codes: Vec<_> = trace
        .steps
        .iter()
        .flat_map(|step| &step.tool_calls)
        .map(|call| call.result.as_ref().unwrap().error_code)
        .collect();
    assert_eq!(codes[..2], [Some(ErrorCode::ToolNotAvailable), Some(ErrorCode::InvalidArgs)]);
    let request = home.last_request();
    assert_eq!(request.tools.len(), 1);
    let Message::Tool { content, .. } = &request.messages[2] else { panic!("{:?}", request.messages) };
    assert_eq!(content, "error tool_not_available: there is no tool `append` here: granted are `look`");
}

#[tokio::test]
async fn a_transient_failure_is_tried_again_only_where_it_harms_nobody() {
    let home = Home::new(vec![call("flaky", json!({})), Turn::Say("done")]);
    let record = home.run(request()).await;
    let trace = home.motor.status(&record.id).unwrap();
    assert!(trace.steps[0].tool_calls[0].retried);
    assert!(trace.steps[0].tool_calls[0].result.as_ref().unwrap().ok);

    let home = Home::new(vec![call("flaky_write", json!({})), Turn::Say("done")]);
    let record = home.run(request()).await;
    let trace = home.motor.status(&record.id).unwrap();
    assert!(!trace.steps[0].tool_calls[0].retried);
    assert!(!trace.steps[0].tool_calls[0].result.as_ref().unwrap().ok);
}

#[tokio::test]
async fn content_from_outside_is_fenced() {
    let home = Home::new(vec![call("web", json!({})), Turn::Say("done")]);
    home.run(request()).await;
    let Message::Tool { content, .. } = &home.last_request().messages[2] else { panic!() };
    let (open, rest) = content.split_once(" source=\"web\">\nfrom outside\n").unwrap();
    assert_eq!(open.replace('<', "</") + ">", rest);
    assert!(open.len() > "<untrusted-".len() + 12, "a fence that can be guessed: {open}");
}

#[tokio::test]
async fn a_call_written_as_text_is_executed() {
    let text = "<tool_call>{\"name\": \"append\", \"arguments\": {\"text\": \"a\"}}</tool_call>";
    let home = Home::new(vec![Turn::Say(text), Turn::Say("done")]);
    let record = home.run(request()).await;
    assert_eq!(record.status, RunStatus::Completed);
    assert_eq!(*home.world.tools.appended.lock().unwrap(), ["a"]);
    assert!(home.motor.status(&record.id).unwrap().steps[0].recovered_call);
}

#[tokio::test]
async fn an_empty_reply_is_told_once_and_fails_the_second_time() {
    let home = Home::new(vec![Turn::Say(""), Turn::Say("done")]);
    assert_eq!(home.run(request()).await.status, RunStatus::Completed);

    let home = Home::new(vec![Turn::Say("")]);
    let record = home.run(request()).await;
    let error = record.error.unwrap();
    assert_eq!((record.status, error.category), (RunStatus::Failed, FailureCategory::ModelFailure));
    assert_eq!(record.iterations, 2);
}

#[tokio::test]
async fn iterations_and_time_run_out() {
    let home = Home::new(vec![call("look", json!({}))]);
    let record = home.run(RunRequest { max_iterations: Some(7), ..request() }).await;
    let error = record.error.unwrap();
    assert_eq!(error.category, FailureCategory::BudgetExhausted);
    assert_eq!(error.message, "the run reached the iteration cap of 7");
    assert_eq!(error.last_step.as_deref(), Some("step 7: look"));
    assert_eq!(record.iterations, 7);
    assert!((record.energy - 0.12).abs() < 1e-9, "{}", record.energy);
    assert!(home.last_request().note.unwrap().contains("This is your last iteration"));

    for turn in [Turn::Hang, call("hang", json!({}))] {
        let home = Home::new(vec![turn]);
        let record = home.run(RunRequest { timeout: Some(Duration::from_millis(80)), ..request() }).await;
        assert_eq!(record.error.unwrap().message, "the run reached its time limit of 80 ms");
    }
}

#[tokio::test]
async fn a_call_that_overstays_is_ended() {
    // The run was not cancelled, even if the call reports that it was stopped.
    let overstay = async |tool| {
        let home = Home::new(vec![call(tool, json!({})), Turn::Say("done")]);
        let record = home.run(request()).await;
        assert_eq!(record.status, RunStatus::Completed);
        let trace = home.motor.status(&record.id).unwrap();
        assert_eq!(trace.steps[0].tool_calls[0].result.as_ref().unwrap().error_code, Some(ErrorCode::Timeout));
    };
    tokio::join!(overstay("short"), overstay("short_polite"));
}

#[tokio::test]
async fn a_call_that_the_run_has_no_time_for_is_a_timeout() {
    for (tool, code) in [("hang", Some(ErrorCode::Timeout)), ("polite", Some(ErrorCode::Timeout)), ("ends_well", None)]
    {
        let home = Home::new(vec![call(tool, json!({})), Turn::Say("done")]);
        let record = home.run(RunRequest { timeout: Some(Duration::from_millis(300)), ..request() }).await;
        assert_eq!(record.error.unwrap().category, FailureCategory::BudgetExhausted);
        let trace = home.motor.status(&record.id).unwrap();
        assert_eq!(trace.steps[0].tool_calls[0].result.as_ref().unwrap().error_code, code, "{tool}");
    }
}

#[tokio::test]
async fn a_reply_with_too_many_calls_has_the_first_of_them_executed() {
    let asked = MAX_CALLS_PER_REPLY + 8;
    let home = Home::new(vec![Turn::Call(vec![("look", json!({})); asked]), Turn::Say("done")]);
    let record = home.run(request()).await;
    // Not a row of failures either: the model is told, and goes on.
    assert_eq!((record.status, record.tool_calls as usize, record.errors), (RunStatus::Completed, asked, 8));
    assert_eq!(home.world.tools.looked.load(Ordering::SeqCst) as usize, MAX_CALLS_PER_REPLY);
    let trace = home.motor.status(&record.id).unwrap();
    let codes: Vec<_> = trace.steps[0].tool_calls.iter().map(|call| call.result.as_ref().unwrap().error_code).collect();
    let (made, refused) = codes.split_at(MAX_CALLS_PER_REPLY);
    assert!(made.iter().all(Option::is_none), "{made:?}");
    assert_eq!(refused, [Some(ErrorCode::LimitExceeded); 8]);
}

#[tokio::test]
async fn a_slow_environment_does_not_hold_up_the_loop() {
    let home = Home::new(vec![call("look", json!({})), Turn::Say("done")]);
    home.world.is_slow.store(true, Ordering::SeqCst);
    let began = Instant::now();
    assert_eq!(home.run(request()).await.status, RunStatus::Completed);
    // One step and one end.
    let took = began.elapsed();
    assert!(took >= HEARING * 2 && took < HEARING * 5, "{took:?}");
    assert_eq!((home.world.stepped.load(Ordering::SeqCst), home.world.finished.lock().unwrap().len()), (1, 1));
    home.motor.shutdown().await;
}

#[tokio::test]
async fn an_end_at_the_cap_is_heard_of_once() {
    let home = Home::new(vec![call("look", json!({}))]);
    let record = home.run(RunRequest { max_iterations: Some(1), ..request() }).await;
    assert_eq!(record.error.unwrap().category, FailureCategory::BudgetExhausted);
    assert_eq!((home.world.stepped.load(Ordering::SeqCst), home.world.finished.lock().unwrap().len()), (0, 1));
}

#[tokio::test]
async fn a_command_can_be_asked_for_before_anything_is_prepared() {
    let home = Home::new(vec![Turn::Say("done")]);
    let (agent, other) = (AgentName::default(), AgentName::parse("other").unwrap());
    assert_eq!(home.motor.started_by(&agent, "k").unwrap(), None);
    let record = home.run(RunRequest { key: Some("k".into()), ..request() }).await;
    assert_eq!(home.motor.started_by(&agent, "k").unwrap(), Some(record.clone()));
    assert_eq!(home.motor.started_by(&agent, "l").unwrap(), None);
    assert_eq!(home.motor.started_by(&other, "k").unwrap(), None, "a key is its agent's");
    for key in [String::new(), "k".repeat(201)] {
        assert_eq!(home.motor.started_by(&agent, &key).unwrap_err().code, RefusalCode::InvalidRequest);
    }
    let home = home.reopen().await;
    assert_eq!(home.motor.started_by(&agent, "k").unwrap(), Some(record));
}

#[tokio::test]
async fn a_missing_key_says_which_and_how() {
    let error = ModelError {
        model: "openai/x".into(),
        kind: ModelErrorKind::Auth,
        message: "no key: set `OPENAI_API_KEY`".into(),
        retry_after_ms: None,
    };
    let home = Home::new(vec![Turn::Fail(error)]);
    let error = home.run(request()).await.error.unwrap();
    assert_eq!(error.code, Some(RefusalCode::CredentialsNeeded));
    assert!(error.message.contains("OPENAI_API_KEY"));

    let mut world = crate::home::world(vec![Turn::Say("done")]);
    let refusal =
        Refusal::new(RefusalCode::ModelUnavailable, "no model is configured").with_remedy("set `models.fast`");
    std::sync::Arc::get_mut(&mut world).unwrap().refusal = Some(refusal);
    let directory = std::sync::Arc::new(tempfile::tempdir().unwrap());
    let home = Home::open(directory, world, std::sync::Arc::new(store::NoFaults));
    let error = home.run(request()).await.error.unwrap();
    assert_eq!((error.code, error.remedy.as_deref()), (Some(RefusalCode::ModelUnavailable), Some("set `models.fast`")));
}

#[tokio::test]
async fn bad_requests_are_refused_and_leave_nothing() {
    let home = Home::new(vec![Turn::Say("done")]);
    let bad = [
        RunRequest { task: " ".into(), ..request() },
        RunRequest { task: "x".repeat(1 << 20), ..request() },
        RunRequest { max_iterations: Some(51), ..request() },
        RunRequest { max_iterations: Some(0), ..request() },
        RunRequest { timeout: Some(Duration::from_secs(3600)), ..request() },
        RunRequest { key: Some(String::new()), ..request() },
    ];
    for request in bad {
        let refusal = home.motor.start(home.motor.new_run_id(), request).await.unwrap_err();
        assert_eq!(refusal.code, RefusalCode::InvalidRequest, "{refusal}");
    }
    assert!(home.motor.list(ListFilter { limit: 10, ..ListFilter::default() }).unwrap().is_empty());
    let unknown = RunId::parse("run_0").unwrap();
    assert_eq!(home.motor.status(&unknown).unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(home.motor.log(&unknown).unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(home.motor.watch(&unknown).unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(home.motor.wait(&unknown).await.unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(home.motor.cancel(&unknown).await.unwrap_err().code, RefusalCode::NotFound);
    assert_eq!(home.run(request()).await.status, RunStatus::Completed);
}

#[tokio::test]
async fn the_same_command_twice_is_one_run() {
    let home = Home::new(vec![Turn::Say("done")]);
    let keyed = || RunRequest { key: Some("k".into()), ..request() };
    let first = home.run(keyed()).await;
    let again = home.motor.start(home.motor.new_run_id(), keyed()).await.unwrap();
    assert_eq!((again.id, again.status), (first.id, RunStatus::Completed));
    let other = home.run(RunRequest { key: Some("l".into()), ..request() }).await;
    assert_eq!(home.motor.list(ListFilter { limit: 10, ..ListFilter::default() }).unwrap().len(), 2);
    assert_ne!(other.id, again_id(&home).await);
}

async fn again_id(home: &Home) -> RunId {
    home.motor.start(home.motor.new_run_id(), RunRequest { key: Some("k".into()), ..request() }).await.unwrap().id
}
