//! The loop guard: ends a run that fails the same way or goes in circles, before it has spent its budget (SPEC RUN-5).
//!
//! A pure fold over results, so that a resumed run is judged like one that was never interrupted.

use std::collections::HashMap;

use base::{ContentHash, ErrorCode};
use serde_json::Value;

use crate::config::{FAILURE_STREAK, REPEATS_NUDGE, REPEATS_STOP};
use crate::failure::{FailureCategory, RunError};
use crate::toolbox::ToolResult;

/// What the guard says after a result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Verdict {
    Continue,
    /// Tell the model this.
    Nudge(String),
    /// End the run.
    Stop(RunError),
}

/// One call and its result, as far as sameness is concerned.
#[derive(Debug, Clone, PartialEq)]
struct Turn {
    tool: String,
    fingerprint: ContentHash,
}

/// The calls of a run so far.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoopGuard {
    /// Failures with one code since the last success, by what failed.
    streaks: HashMap<String, (ErrorCode, u32)>,
    /// The latest turns, as many as the longest cycle needs.
    turns: Vec<Turn>,
}

impl LoopGuard {
    /// Takes in a result and judges the run.
    pub(crate) fn record(&mut self, tool: &str, arguments: &Value, result: &ToolResult) -> Verdict {
        let streak = self.streak(tool, result);
        self.turns.push(Turn { tool: tool.to_owned(), fingerprint: fingerprint(tool, arguments, result) });
        let longest = 2 * REPEATS_STOP;
        if self.turns.len() > longest {
            self.turns.drain(..self.turns.len() - longest);
        }
        if streak >= FAILURE_STREAK {
            let code = result.error_code.unwrap_or(ErrorCode::Unknown);
            return Verdict::Stop(RunError::new(
                FailureCategory::ToolFailure,
                format!("`{tool}` failed {streak} times in a row with `{code}`: {}", first_line(&result.output)),
            ));
        }
        self.repetition()
    }

    /// How often this has now failed the same way. A success of any tool is progress and clears the count; a failure of
    /// another tool is not. Being denied counts as one thing however it is tried.
    fn streak(&mut self, tool: &str, result: &ToolResult) -> u32 {
        if result.ok {
            self.streaks.clear();
            return 0;
        }
        let code = result.error_code.unwrap_or(ErrorCode::Unknown);
        let key = match code {
            ErrorCode::PermissionDenied | ErrorCode::NetworkBlocked => format!("denied:{code}"),
            _ => format!("tool:{tool}"),
        };
        let streak = self.streaks.entry(key).or_insert((code, 0));
        *streak = if streak.0 == code { (code, streak.1 + 1) } else { (code, 1) };
        streak.1
    }

    fn repetition(&self) -> Verdict {
        let newest_first: Vec<&Turn> = self.turns.iter().rev().collect();
        let Some(latest) = newest_first.first() else { return Verdict::Continue };
        let alone = newest_first.iter().take_while(|turn| *turn == latest).count();
        if alone > 1 {
            return verdict(alone, &format!("the same call of `{}`", latest.tool));
        }
        // Two calls taking turns: each turn equals the one two before it.
        let cycle = newest_first.iter().zip(newest_first.iter().skip(2)).take_while(|(a, b)| a == b).count() + 2;
        match newest_first.get(1) {
            Some(other) if cycle.is_multiple_of(2) => {
                let what = format!("the same calls of `{}` and `{}` in turn", other.tool, latest.tool);
                verdict(cycle / 2, &what)
            }
            _ => Verdict::Continue,
        }
    }
}

/// The nudge is given once, at the count that earns it; the count only grows while the circle goes on.
fn verdict(repeats: usize, what: &str) -> Verdict {
    if repeats >= REPEATS_STOP {
        return Verdict::Stop(RunError::new(
            FailureCategory::ModelFailure,
            format!("the model made {what} {repeats} times with the same result"),
        ));
    }
    if repeats == REPEATS_NUDGE {
        return Verdict::Nudge(format!(
            "you have made {what} {repeats} times and the result is the same each time; do something different, or give \
             your answer in plain text"
        ));
    }
    Verdict::Continue
}

fn fingerprint(tool: &str, arguments: &Value, result: &ToolResult) -> ContentHash {
    let code = result.error_code.map_or("ok", ErrorCode::as_str);
    // The lengths keep the parts apart: no text can be made to run over into the next part.
    let arguments = base::canonical::text(arguments);
    let text = format!("{}:{tool}{}:{arguments}{code}:{}", tool.len(), arguments.len(), result.output);
    ContentHash::of(text.as_bytes())
}

fn first_line(text: &str) -> String {
    crate::record::beginning(text.lines().next().unwrap_or_default(), 200)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn failing(code: ErrorCode) -> ToolResult {
        ToolResult::failure(code, "no such file")
    }

    /// Feeds the turns; one letter for each verdict: continue, nudge, stop.
    fn judge(turns: &[(&str, Value, ToolResult)]) -> String {
        let mut guard = LoopGuard::default();
        turns
            .iter()
            .map(|(tool, arguments, result)| match guard.record(tool, arguments, result) {
                Verdict::Continue => 'c',
                Verdict::Nudge(_) => 'n',
                Verdict::Stop(_) => 's',
            })
            .collect()
    }

    fn calls(names: &str, output: impl Fn(usize) -> String) -> Vec<(&'static str, Value, ToolResult)> {
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

    #[test]
    fn a_denied_thing_tried_by_other_means() {
        let denied = |tool: &'static str| (tool, json!({ "tool": tool }), failing(ErrorCode::NetworkBlocked));
        assert_eq!(judge(&[denied("fetch"), denied("bash"), denied("code")]), "ccs");
        let missing = |tool: &'static str| (tool, json!({ "tool": tool }), failing(ErrorCode::NotFound));
        assert_eq!(judge(&[missing("fetch"), missing("bash"), missing("code")]), "ccc");
    }

    #[test]
    fn the_reason_names_tool_and_code() {
        let mut guard = LoopGuard::default();
        let mut last = Verdict::Continue;
        for path in ["a", "b", "c"] {
            last = guard.record("read", &json!({ "path": path }), &failing(ErrorCode::NotFound));
        }
        let Verdict::Stop(error) = last else { panic!("{last:?}") };
        assert_eq!(error.category, FailureCategory::ToolFailure);
        assert_eq!(error.message, "`read` failed 3 times in a row with `not_found`: no such file");
    }
}
