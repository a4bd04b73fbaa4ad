//! The end of a run and its invariants, inside and in a sink outside that counts idempotency keys.

use std::collections::HashMap;

use base::{ErrorCode, RunId};
use motor::{RunStatus, RunTrace, StepTrace};
use serde_json::Value;
use signals::SignalStatus;

use crate::home::{Home, request};

/// Tools whose calls may be made again without asking.
const REPEATABLE: [&str; 4] = ["look", "flaky", "web", "set"];

/// The outcome of a call. Numbers in outputs count executions, and are not part of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    tool: String,
    arguments: Value,
    ok: bool,
    code: Option<ErrorCode>,
    output: String,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub struct End {
    pub status: RunStatus,
    summary: Option<String>,
    /// The model's texts after the last call of the last attempt, joined.
    said: String,
    pub iterations: u32,
    pub attempts: usize,
    pub answers: Vec<Option<String>>,
    /// How often it asked whether it may go on.
    pub ceilings: usize,
    /// The decisions, each with the calls it was about.
    pub decisions: Vec<(Vec<Value>, Option<bool>)>,
    calls: Vec<Call>,
}

impl End {
    pub fn of(trace: &RunTrace) -> Self {
        let calls = trace.steps.iter().flat_map(|step| &step.tool_calls).map(|call| {
            let (tool, arguments) = (call.tool.clone(), call.args.clone());
            let Some(result) = &call.result else {
                // Its attempt ended without it.
                let code = Some(ErrorCode::OutcomeUnknown);
                return Call { tool, arguments, ok: false, code, output: String::new() };
            };
            let output = result.output.replace(|character: char| character.is_ascii_digit(), "");
            Call { tool, arguments, ok: result.ok, code: result.error_code, output }
        });
        let first = trace.attempts.last().map_or(1, |attempt| attempt.first_step);
        let is_last = |step: &&StepTrace| step.iteration >= first && step.tool_calls.is_empty();
        let said: Vec<_> = trace.steps.iter().rev().take_while(is_last).map(|step| step.text.as_str()).collect();
        let decided = trace.approvals.iter().map(|decided| {
            (decided.approval.items.iter().map(|item| item.arguments.clone()).collect(), decided.granted)
        });
        let is_its_own = |asked: &&motor::trace::QuestionTrace| asked.question.ceiling.is_none();
        Self {
            status: trace.status,
            summary: trace.summary.clone(),
            said: said.into_iter().rev().collect(),
            iterations: trace.total_iterations,
            attempts: trace.attempts.len(),
            answers: trace.questions.iter().filter(is_its_own).map(|asked| asked.answer.clone()).collect(),
            ceilings: trace.questions.iter().filter(|asked| !is_its_own(asked)).count(),
            decisions: decided.collect(),
            calls: calls.collect(),
        }
    }

    /// The calls with an unknown outcome.
    pub fn unknown(&self) -> Vec<&Call> {
        self.calls.iter().filter(|call| call.code == Some(ErrorCode::OutcomeUnknown)).collect()
    }

    /// Checks for the same end, except for unknown outcomes and the second attempt's reaction to them.
    pub fn check(&self, expected: &Self, when: &str) {
        let unknown = self.unknown();
        if unknown.is_empty() {
            assert_eq!(self, expected, "{when}");
            return;
        }
        assert_eq!(unknown.len(), 1, "{when}: the host died once, and {unknown:?} are not known");
        let lost = unknown[0];
        assert!(!REPEATABLE.contains(&lost.tool.as_str()), "{when}: {lost:?} could have been made again");
        let of = |end: &Self| (end.status, end.summary.clone(), end.iterations, end.attempts, end.answers.clone());
        assert_eq!(of(self), of(expected), "{when}");
        assert_eq!(self.calls.len(), expected.calls.len(), "{when}");
        for (call, expected) in self.calls.iter().zip(&expected.calls) {
            let is_lost = (&call.tool, &call.arguments) == (&lost.tool, &lost.arguments);
            assert!(is_lost || call == expected, "{when}: {call:?} was {expected:?}");
        }
    }
}

/// Checks the invariants of every such run once it is over.
pub async fn check(home: &Home, id: &RunId, end: &End, when: &str) {
    assert_eq!(
        (end.status, end.summary.as_deref()),
        (RunStatus::Completed, Some(end.said.as_str())),
        "{when}: {end:#?}"
    );
    // An attempt that failed in the middle of the answer is followed by one that says the rest.
    let is_whole = end.said == "done" || (end.attempts > 2 && ["one", "e"].contains(&end.said.as_str()));
    assert!(is_whole, "{when}: {end:#?}");
    // The sink outside: a key is one effect, and only harmless calls repeat a key.
    let made = home.world.tools.made.lock().unwrap().clone();
    let mut seen: HashMap<(String, String), u32> = HashMap::new();
    for call in &made {
        *seen.entry(call.clone()).or_default() += 1;
    }
    for ((tool, key), times) in &seen {
        // An entry whose outcome is not known is made again by the second attempt, under the key of the first.
        let most = match tool.as_str() {
            "post" => 2,
            tool if REPEATABLE.contains(&tool) => u32::MAX,
            _ => 1,
        };
        assert!(*times <= most, "{when}: `{tool}` came {times} times as {key}");
    }
    let effects = |tool: &str| seen.keys().filter(|(made, _)| made == tool).count();
    assert_eq!((effects("set"), effects("post")), (2, 1), "{when}: {made:?}");
    for text in ["a", "b", "c", "d", "order", "another order", "not wanted"] {
        let times = home.world.tools.appended.lock().unwrap().iter().filter(|appended| *appended == text).count();
        let call = end.calls.iter().find(|call| call.arguments["text"] == text).unwrap();
        match (call.ok, call.code) {
            (true, _) => assert_eq!(times, 1, "{when}: {text}"),
            (false, Some(ErrorCode::OutcomeUnknown)) => assert!(times <= 1, "{when}: {text}"),
            _ => assert_eq!(times, 0, "{when}: {text}"),
        }
    }
    // Each attempt ends once, each question is put once.
    let signals = home.signals.since(0, 1_000).unwrap();
    let of = |status| signals.iter().filter(|signal| signal.body.run_id == *id && signal.body.status == status).count();
    assert_eq!((of(SignalStatus::Failed), of(SignalStatus::Completed)), (end.attempts - 1, 1), "{when}");
    let asked = (of(SignalStatus::AwaitingInput), of(SignalStatus::AwaitingApproval));
    assert_eq!(asked, (end.answers.len() + end.ceilings, end.decisions.len()), "{when}");
    assert_eq!(home.motor.resume_all().await.unwrap(), [], "{when}");
    let next = home.motor.start(home.motor.new_run_id(), request()).await;
    assert!(next.is_ok(), "{when}: the place is not free: {next:?}");
}
