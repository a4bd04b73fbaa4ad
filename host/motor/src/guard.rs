//! The loop guard: ends an attempt that fails the same way or goes in circles, before it has spent its budget (SPEC RUN-5).
//!
//! It counts replies, not calls: the model sees the results of parallel calls together, so it cannot have learnt from the
//! first before it made the last. A pure fold over results, so that a resumed run is judged like one that was never
//! interrupted.

use std::collections::HashMap;

use base::{ContentHash, ErrorCode};
use serde_json::Value;

use crate::event::TellReason;
use crate::failure::{FailureCategory, RunError};
use crate::rules::RunRules;
use crate::toolbox::ToolResult;

/// Calls of a circle that are named.
const NAMED: usize = 4;
/// Refused actions that are named.
const MAX_REFUSED: usize = 8;

/// The hint to the model after every few replies with refusals.
const ENOUGH_REFUSED: &str = "what you try is refused, and trying it by other means is refused too: finish what you can do \
    without it, answer with what you have in plain text, and say what was refused";

/// The guard's verdict after the calls of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum GuardVerdict {
    Continue,
    /// Tell the model this, for this reason.
    Nudge(TellReason, String),
    /// End the attempt with this error.
    Stop(RunError),
}

/// One call and its result, as far as sameness is concerned.
#[derive(Debug, Clone, PartialEq)]
struct GuardTurn {
    tool: String,
    fingerprint: ContentHash,
}

/// One call that failed.
#[derive(Debug, Clone)]
struct CallFailure {
    tool: String,
    /// The tool that failed, or the kind of denial, however the denied thing was tried.
    what: String,
    code: ErrorCode,
    /// Hash of the message; the same for all messages of a denial.
    message: ContentHash,
    /// The message, for people.
    line: String,
}

/// Failures of one thing with one code since the last success.
#[derive(Debug, Clone)]
struct Streak {
    what: String,
    code: ErrorCode,
    /// Replies in which it failed.
    replies: u32,
    /// Replies in a row in which it failed with this message.
    messages: HashMap<ContentHash, u32>,
}

/// The replies of an attempt so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoopGuard {
    rules: RunRules,
    streaks: Vec<Streak>,
    /// The calls of the latest replies, as many replies as the longest cycle needs.
    replies: Vec<Vec<GuardTurn>>,
    /// The calls of the reply that is being carried out.
    turns: Vec<GuardTurn>,
    failures: Vec<CallFailure>,
    has_success: bool,
    /// Replies of the attempt with a call that was refused by the owner, or for want of the owner's consent.
    refusals: u32,
    has_refusal: bool,
    /// The latest refused actions, each once.
    refused: Vec<String>,
}

impl LoopGuard {
    /// Judges an attempt by the rules of its run.
    pub(crate) fn new(rules: RunRules) -> Self {
        Self { rules, ..Self::default() }
    }

    /// Records the result of a call and which of its actions were `refused` by the owner or for lack of consent. A page
    /// can make a model repeat refused actions as often as it likes: that must not end a run, so it counts neither as a
    /// failure nor as going in circles.
    pub(crate) fn record(&mut self, tool: &str, arguments: &Value, result: &ToolResult, refused: &[String]) {
        if !refused.is_empty() {
            self.has_refusal = true;
            for summary in refused {
                if self.refused.len() < MAX_REFUSED && !self.refused.contains(summary) {
                    self.refused.push(summary.clone());
                }
            }
            return;
        }
        let turn = GuardTurn { tool: tool.to_owned(), fingerprint: fingerprint(tool, arguments, result) };
        // The same call twice in one reply is one.
        if !self.turns.contains(&turn) {
            self.turns.push(turn);
        }
        // A write that is held did all that it could.
        if result.ok || result.error_code == Some(ErrorCode::Staged) {
            self.has_success = true;
            return;
        }
        let code = result.error_code.unwrap_or(ErrorCode::Unknown);
        let (what, message) = match code {
            ErrorCode::PermissionDenied | ErrorCode::NetworkBlocked => (format!("denied:{code}"), ""),
            _ => (format!("tool:{tool}"), result.output.as_str()),
        };
        let message = ContentHash::of(message.as_bytes());
        let (tool, line) = (tool.to_owned(), first_line(&result.output));
        self.failures.push(CallFailure { tool, what, code, message, line });
    }

    /// The refused actions, in words, once the model was told to answer with the results so far.
    pub(crate) fn enough_refused(&self) -> Option<&[String]> {
        (self.refusals >= self.rules.refusals_nudge).then_some(&self.refused)
    }

    /// Judges the attempt, once every call of a reply has its result.
    pub(crate) fn judge(&mut self) -> GuardVerdict {
        let turns = std::mem::take(&mut self.turns);
        let has_refusal = std::mem::take(&mut self.has_refusal);
        self.refusals += u32::from(has_refusal);
        let mut verdict = GuardVerdict::Continue;
        // A reply of which everything was refused is none that makes the same calls again.
        if !(has_refusal && turns.is_empty()) {
            self.replies.push(turns);
            // Two replies that take turns need twice as many.
            let longest = 2 * self.rules.repeats_stop as usize;
            if self.replies.len() > longest {
                self.replies.drain(..self.replies.len() - longest);
            }
            verdict = self.streak().map_or_else(|| self.repetition(), GuardVerdict::Stop);
        }
        match verdict {
            GuardVerdict::Continue if has_refusal && self.refusals.is_multiple_of(self.rules.refusals_nudge) => {
                GuardVerdict::Nudge(TellReason::Refusals, ENOUGH_REFUSED.to_owned())
            }
            verdict => verdict,
        }
    }

    /// Counts the failures of the reply. A success of any tool is progress and clears the count; a failure of another tool
    /// is not.
    fn streak(&mut self) -> Option<RunError> {
        let failures = std::mem::take(&mut self.failures);
        if std::mem::take(&mut self.has_success) {
            self.streaks.clear();
            return None;
        }
        let failed = |streak: &Streak| failures.iter().any(|failure| failure.what == streak.what);
        let (earlier, others): (Vec<_>, Vec<_>) = std::mem::take(&mut self.streaks).into_iter().partition(failed);
        self.streaks = others;
        let first = self.streaks.len();
        let mut error = None;
        for CallFailure { tool, what, code, message, line } in &failures {
            let same = |streak: &&Streak| streak.what == *what && streak.code == *code;
            let before = earlier.iter().find(same);
            let at = match self.streaks.iter().skip(first).position(|streak| same(&streak)) {
                Some(at) => first + at,
                None => {
                    let replies = before.map_or(0, |before| before.replies) + 1;
                    let messages = HashMap::new();
                    self.streaks.push(Streak { what: what.clone(), code: *code, replies, messages });
                    self.streaks.len() - 1
                }
            };
            let Some(streak) = self.streaks.get_mut(at) else { continue };
            let times = before.and_then(|before| before.messages.get(message)).map_or(0, |times| *times) + 1;
            streak.messages.insert(*message, times);
            let failed = match (times >= self.rules.same_failures, streak.replies >= self.rules.failures) {
                (true, _) => format!("`{tool}` failed in {times} replies in a row with `{code}`: {line}"),
                (_, true) => {
                    format!(
                        "`{tool}` failed in {} replies in a row with `{code}`, the last time: {line}",
                        streak.replies
                    )
                }
                _ => continue,
            };
            error.get_or_insert_with(|| RunError::new(FailureCategory::ToolFailure, failed));
        }
        error
    }

    fn repetition(&self) -> GuardVerdict {
        let newest_first: Vec<_> = self.replies.iter().rev().collect();
        let Some(latest) = newest_first.first() else { return GuardVerdict::Continue };
        let alone = newest_first.iter().take_while(|reply| *reply == latest).count();
        if alone > 1 {
            return self.verdict(alone, &format!("the same {}", calls(latest)));
        }
        // Two replies taking turns: each equals the one two before it.
        let cycle = newest_first.iter().zip(newest_first.iter().skip(2)).take_while(|(a, b)| a == b).count() + 2;
        match newest_first.get(1) {
            Some(other) if cycle.is_multiple_of(2) => {
                let both: Vec<_> = other.iter().chain(latest.iter()).cloned().collect();
                self.verdict(cycle / 2, &format!("the same {} in turn", calls(&both)))
            }
            _ => GuardVerdict::Continue,
        }
    }

    /// The nudge is given once, at the count that earns it; the count only grows while the circle goes on.
    fn verdict(&self, repeats: usize, what: &str) -> GuardVerdict {
        if repeats >= self.rules.repeats_stop as usize {
            return GuardVerdict::Stop(RunError::new(
                FailureCategory::ModelFailure,
                format!("the model made {what} {repeats} times with the same result"),
            ));
        }
        if repeats == self.rules.repeats_nudge as usize {
            return GuardVerdict::Nudge(
                TellReason::Repetition,
                format!(
                    "you have made {what} {repeats} times and the result is the same each time; do something different, or \
                     give your answer in plain text"
                ),
            );
        }
        GuardVerdict::Continue
    }
}

/// The calls of a reply in words: `call of `a``, `calls of `a` and `b``.
fn calls(turns: &[GuardTurn]) -> String {
    let names: Vec<_> = turns.iter().take(NAMED).map(|turn| format!("`{}`", turn.tool)).collect();
    match names.split_last() {
        None => "reply".to_owned(),
        Some((one, [])) => format!("call of {one}"),
        Some((last, names)) => format!("calls of {} and {last}", names.join(", ")),
    }
}

fn fingerprint(tool: &str, arguments: &Value, result: &ToolResult) -> ContentHash {
    let code = result.error_code.map_or("ok", ErrorCode::as_str);
    // The lengths keep the parts apart: no text can be made to run over into the next part.
    let arguments = base::canonical::text(arguments);
    // Each write that is held has another number: making the same one again and again is going in circles all the same.
    let output = if result.error_code == Some(ErrorCode::Staged) { "" } else { result.output.as_str() };
    let text = format!("{}:{tool}{}:{arguments}{code}:{output}", tool.len(), arguments.len());
    ContentHash::of(text.as_bytes())
}

fn first_line(text: &str) -> String {
    base::text::cut(text.lines().next().unwrap_or_default(), 200)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failing(code: ErrorCode) -> ToolResult {
        ToolResult::failure(code, "no such file")
    }

    /// One letter for each verdict.
    fn letter(verdict: GuardVerdict) -> char {
        match verdict {
            GuardVerdict::Continue => 'c',
            GuardVerdict::Nudge(..) => 'n',
            GuardVerdict::Stop(_) => 's',
        }
    }

    type Call = (&'static str, Value, ToolResult);

    /// Feeds the guard replies with one call each.
    fn judge(turns: &[Call]) -> String {
        judge_replies(&turns.iter().map(std::slice::from_ref).collect::<Vec<_>>())
    }

    /// Feeds the guard replies with their parallel calls.
    fn judge_replies(replies: &[&[Call]]) -> String {
        let mut guard = LoopGuard::default();
        let judge = |reply: &&[Call]| {
            for (tool, arguments, result) in *reply {
                guard.record(tool, arguments, result, &[]);
            }
            letter(guard.judge())
        };
        replies.iter().map(judge).collect()
    }

    fn calls(names: &str, output: impl Fn(usize) -> String) -> Vec<Call> {
        names
            .chars()
            .enumerate()
            .map(|(n, name)| {
                let tool = if name.is_uppercase() { "write" } else { "read" };
                (tool, json!({ "path": name.to_string() }), ToolResult::success(output(n)))
            })
            .collect()
    }

    #[test]
    fn the_same_call_with_the_same_result() {
        assert_eq!(judge(&calls("aaaaa", |_| "x".into())), "ccncs");
        // Benign twins: the result changes, or something else comes between.
        assert_eq!(judge(&calls("aaaaaa", |n| n.to_string())), "cccccc");
        assert_eq!(judge(&calls("aabaac", |_| "x".into())), "cccccc");
    }

    #[test]
    fn writes_that_are_held_are_no_failures_but_may_go_in_circles() {
        let held = |path: &str, n: u32| {
            let result = ToolResult::failure(ErrorCode::Staged, format!("staged #{n}"));
            ("fetch", json!({ "path": path }), result)
        };
        let different: Vec<_> = (1..9).map(|n| held(&n.to_string(), n)).collect();
        assert_eq!(judge(&different), "cccccccc");
        let same: Vec<_> = (1..6).map(|n| held("a", n)).collect();
        assert_eq!(judge(&same), "ccncs");
    }

    #[test]
    fn two_calls_taking_turns() {
        assert_eq!(judge(&calls("ababababab", |_| "x".into())), "cccccncccs");
        assert_eq!(judge(&calls("aBaBaBaBaB", |_| "x".into())), "cccccncccs");
        assert_eq!(judge(&calls("abababcab", |_| "x".into())), "cccccnccc");
        assert_eq!(judge(&calls("abcabcabcabc", |_| "x".into())), "cccccccccccc");
    }

    #[test]
    fn the_order_of_keys_does_not_hide_a_repetition() {
        let turn = |text| ("grep", serde_json::from_str(text).unwrap(), ToolResult::success("x"));
        assert_eq!(judge(&[turn(r#"{"a":1,"b":2}"#), turn(r#"{"b":2,"a":1}"#), turn(r#"{"a":1,"b":2}"#)]), "ccn");
    }

    #[test]
    fn the_same_tool_failing_the_same_way() {
        let fail = |path: &str, code| ("read", json!({ "path": path }), failing(code));
        let ok = || ("list", json!({}), ToolResult::success("x"));
        use ErrorCode::{InvalidArgs, NotFound};
        assert_eq!(judge(&[fail("a", NotFound), fail("b", NotFound), fail("c", NotFound)]), "ccs");
        assert_eq!(judge(&[fail("a", NotFound), fail("b", InvalidArgs), fail("c", NotFound)]), "ccc");
        assert_eq!(judge(&[fail("a", NotFound), fail("b", NotFound), ok(), fail("c", NotFound)]), "cccc");
        // A failure of another tool in between is no progress.
        let other = ("write", json!({}), failing(InvalidArgs));
        assert_eq!(judge(&[fail("a", NotFound), fail("b", NotFound), other, fail("c", NotFound)]), "cccs");
    }

    /// A failure of `code` with a message.
    fn broken(message: &str) -> Call {
        ("code", json!({ "code": message }), ToolResult::failure(ErrorCode::ExecutionError, message))
    }

    #[test]
    fn a_model_that_debugs_gets_its_tries() {
        let judge =
            |messages: &str| judge(&messages.chars().map(|message| broken(&message.to_string())).collect::<Vec<_>>());
        assert_eq!(judge("abcdef"), "cccccs");
        assert_eq!(judge("aabbaa"), "cccccs");
        assert_eq!(judge("ababab"), "cccccs");
        assert_eq!(judge("abccc"), "ccccs");
        let ok = ("code", json!({}), ToolResult::success("61.5"));
        let tries: Vec<_> = "abcde".chars().map(|message| broken(&message.to_string())).collect();
        let solved = [tries.as_slice(), &[ok], tries.as_slice()].concat();
        assert_eq!(super::tests::judge(&solved), "ccccccccccc");
    }

    #[test]
    fn parallel_calls_of_one_reply_count_once() {
        let missing = |path: &str| ("read", json!({ "path": path }), failing(ErrorCode::NotFound));
        let three = [missing("a"), missing("b"), missing("c")];
        assert_eq!(judge_replies(&[&three]), "c");
        let others = [missing("d"), missing("e"), missing("f")];
        assert_eq!(judge_replies(&[&three, &others, &three]), "ccs");
        // One message of several comes again and again; and each time others.
        let told = |message: &str| [broken(message), broken("same")];
        assert_eq!(judge_replies(&[&told("a"), &told("b"), &told("c")]), "ccs");
        let told = |n: u32| [broken(&format!("{n}")), broken(&format!("{n}x"))];
        let replies: Vec<_> = (0..6).map(told).collect();
        assert_eq!(judge_replies(&replies.iter().map(<[Call; 2]>::as_slice).collect::<Vec<_>>()), "cccccs");
        // A success beside it is progress, whichever comes first.
        let ok = || ("list", json!({}), ToolResult::success("x"));
        assert_eq!(judge_replies(&[&three, &three, &[ok(), missing("a")], &three]), "cccc");
        assert_eq!(judge_replies(&[&three, &three, &[missing("a"), ok()], &three]), "cccc");
    }

    #[test]
    fn circles_are_circles_of_replies() {
        let look = |path: &str, output: &str| ("read", json!({ "path": path }), ToolResult::success(output));
        // The same call five times at once is not yet a circle.
        let at_once: [Call; 5] = std::array::from_fn(|_| look("a", "x"));
        assert_eq!(judge_replies(&[&at_once]), "c");
        assert_eq!(judge_replies(&[&at_once[..]; 5]), "ccncs");
        let pair = [look("a", "x"), look("b", "y")];
        assert_eq!(judge_replies(&[&pair[..]; 5]), "ccncs");
        let other = [look("c", "x")];
        let turns: [&[Call]; 10] = std::array::from_fn(|n| if n % 2 == 0 { &pair[..] } else { &other[..] });
        assert_eq!(judge_replies(&turns), "cccccncccs");
        // Benign twin: one of the calls brings something new.
        let news: Vec<_> = (0..6).map(|n| [look("a", "x"), look("log", &n.to_string())]).collect();
        assert_eq!(judge_replies(&news.iter().map(<[Call; 2]>::as_slice).collect::<Vec<_>>()), "cccccc");
    }

    #[test]
    fn a_denied_thing_tried_by_other_means() {
        let denied = |tool: &'static str| {
            let result = ToolResult::failure(ErrorCode::NetworkBlocked, format!("refused to `{tool}`"));
            (tool, json!({ "tool": tool }), result)
        };
        assert_eq!(judge(&[denied("fetch"), denied("bash"), denied("code")]), "ccs");
        assert_eq!(judge_replies(&[&[denied("fetch"), denied("bash"), denied("code")]]), "c");
        let missing = |tool: &'static str| (tool, json!({ "tool": tool }), failing(ErrorCode::NotFound));
        assert_eq!(judge(&[missing("fetch"), missing("bash"), missing("code")]), "ccc");
    }

    #[test]
    fn an_attempt_is_judged_by_the_rules_of_its_run() {
        let judge = |rules: RunRules, turns: &[Call]| -> String {
            let mut guard = LoopGuard::new(rules);
            let judge = |(tool, arguments, result): &Call| {
                guard.record(tool, arguments, result, &[]);
                letter(guard.judge())
            };
            turns.iter().map(judge).collect()
        };
        let rules = RunRules::default();
        let same = calls("aaaaaaa", |_| "x".into());
        assert_eq!(judge(rules, &same), "ccncsss");
        assert_eq!(judge(RunRules { repeats_nudge: 2, repeats_stop: 7, ..rules }, &same), "cnccccs");
        let missing: Vec<Call> = (0..4).map(|_| ("read", json!({}), failing(ErrorCode::NotFound))).collect();
        assert_eq!(judge(RunRules { same_failures: 1, ..rules }, &missing[..1]), "s");
        assert_eq!(judge(RunRules { same_failures: 50, failures: 4, repeats_stop: 50, ..rules }, &missing), "ccns");
    }

    #[test]
    fn refusals_end_no_attempt() {
        let mut guard = LoopGuard::default();
        let refused = ["POST https://a.example/".to_owned()];
        let result = ToolResult::failure(ErrorCode::NetworkBlocked, "refused");
        let mut told = 0;
        for reply in 1..=20 {
            guard.record("fetch", &json!({}), &result, &refused);
            match guard.judge() {
                GuardVerdict::Continue => {}
                GuardVerdict::Nudge(TellReason::Refusals, _) => told += 1,
                other => panic!("reply {reply}: {other:?}"),
            }
        }
        assert_eq!((told, guard.enough_refused()), (6, Some(&refused[..])));
        // A failure of something else beside it counts as ever.
        let mut verdicts = Vec::new();
        for _ in 0..3 {
            guard.record("fetch", &json!({}), &result, &refused);
            guard.record("read", &json!({}), &failing(ErrorCode::NotFound), &[]);
            verdicts.push(guard.judge());
        }
        assert!(matches!(verdicts.last(), Some(GuardVerdict::Stop(_))), "{verdicts:?}");
    }

    /// The error that ends a sequence of replies with one call each.
    fn end(turns: &[Call]) -> RunError {
        let mut guard = LoopGuard::default();
        let mut last = GuardVerdict::Continue;
        for (tool, arguments, result) in turns {
            guard.record(tool, arguments, result, &[]);
            last = guard.judge();
        }
        let GuardVerdict::Stop(error) = last else { panic!("{last:?}") };
        error
    }

    #[test]
    fn the_reason_names_tool_and_code() {
        let missing = |path: &str| ("read", json!({ "path": path }), failing(ErrorCode::NotFound));
        let error = end(&[missing("a"), missing("b"), missing("c")]);
        assert_eq!(error.category, FailureCategory::ToolFailure);
        assert_eq!(error.message, "`read` failed in 3 replies in a row with `not_found`: no such file");
        let error = end(&["a", "b", "c", "d", "e", "f"].map(broken));
        let expected = "`code` failed in 6 replies in a row with `execution_error`, the last time: f";
        assert_eq!(error.message, expected);
        let error = end(&calls("ababababab", |_| "x".into()));
        assert_eq!(error.category, FailureCategory::ModelFailure);
        assert_eq!(
            error.message,
            "the model made the same calls of `read` and `read` in turn 5 times with the same result"
        );
    }
}
