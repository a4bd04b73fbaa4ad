//! The rules of a run: thresholds and capacities of the loop, fixed when the run starts (SPEC CONF-2).
//!
//! They are in the run's first event, so a history is folded by the rules that it was written under, whichever settings apply
//! later. Runs of earlier versions have none stored: the defaults are the constants of those versions, and never change.

use std::ops::RangeInclusive;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The section `[rules]`, which is stored with each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RunRules {
    /// Attempts that a run may take, the first included. 1 to 10. Default 3 (SPEC RUN-10).
    pub max_attempts: u32,
    /// Model calls of an attempt after the first, if the retry does not say. 1 to 50. Default 15 (SPEC RUN-10).
    pub retry_iterations: u32,
    /// Replies in a row in which one tool failed with one code and message that end the attempt. 1 to 50. Default 3
    /// (SPEC RUN-5).
    pub same_failures: u32,
    /// Replies in which one tool failed with one code and any message, without a success in between, that end the
    /// attempt: a model that debugs a program gets another message each time. 1 to 50. Default 6 (SPEC RUN-5).
    pub failures: u32,
    /// Replies that make the same calls with the same results and earn a nudge. 2 to 50; not below `repeats_stop`: no
    /// nudge. Default 3 (SPEC RUN-5).
    pub repeats_nudge: u32,
    /// Replies that make the same calls with the same results and end the attempt. 2 to 50. Default 5 (SPEC RUN-5).
    pub repeats_stop: u32,
    /// Replies with a refused action after which the model is told to answer with its findings. 1 to 50. Default 3
    /// (SPEC RUN-5).
    pub refusals_nudge: u32,
    /// Bytes of a tool output that stay in the conversation; a longer one goes to a file. 1,000 to 64,000. Default 50,000
    /// (SPEC RUN-9).
    pub output_bytes: u32,
    /// Lines of a tool output that stay in the conversation. 10 to 100,000. Default 2,000 (SPEC RUN-9).
    pub output_lines: u32,
    /// Bytes of the end of the log that `motor task log` shows. 1,024 to 1,048,576. Default 16,384 (SPEC RUN-7).
    pub log_bytes: u32,
    /// Replies after which earlier steps become one record. 2 to 50. Default 10 (SPEC RUN-11).
    pub compact_every: u32,
    /// Tool results that are sent in full. 1 to 20. Default 3 (SPEC RUN-11).
    pub full_results: u32,
    /// Bytes of the record of earlier steps. 1,024 to 262,144. Default 16,384 (SPEC RUN-11).
    pub record_bytes: u32,
    /// Seconds for which a signal of the run is worth acting upon. 1 to 604,800. Default 300 (SPEC SIG-1).
    pub signal_ttl_seconds: u32,
    /// The shortest timeout in milliseconds of a program of the `code` tool. 1 to 30,000. Default 100 (SPEC CODE-2).
    pub code_min_timeout_ms: u32,
    /// The longest timeout in milliseconds of a program of the `code` tool. 100 to 600,000. Default 30,000 (SPEC CODE-2).
    pub code_max_timeout_ms: u32,
}

impl Default for RunRules {
    fn default() -> Self {
        Self {
            max_attempts: 3,
            retry_iterations: 15,
            same_failures: 3,
            failures: 6,
            repeats_nudge: 3,
            repeats_stop: 5,
            refusals_nudge: 3,
            output_bytes: 50_000,
            output_lines: 2_000,
            log_bytes: 16 * 1024,
            compact_every: 10,
            full_results: 3,
            record_bytes: 16 * 1024,
            signal_ttl_seconds: 300,
            code_min_timeout_ms: 100,
            code_max_timeout_ms: 30_000,
        }
    }
}

impl RunRules {
    /// Checks that every number is within its range.
    ///
    /// # Errors
    /// With the first that is not, in words that name the key and its range.
    pub fn check(&self) -> Result<(), String> {
        let ranges: [(&str, u32, RangeInclusive<u32>); 16] = [
            ("max_attempts", self.max_attempts, 1..=10),
            ("retry_iterations", self.retry_iterations, 1..=crate::config::ITERATION_CEILING),
            ("same_failures", self.same_failures, 1..=50),
            ("failures", self.failures, 1..=50),
            ("repeats_nudge", self.repeats_nudge, 2..=50),
            ("repeats_stop", self.repeats_stop, 2..=50),
            ("refusals_nudge", self.refusals_nudge, 1..=50),
            ("output_bytes", self.output_bytes, 1_000..=64_000),
            ("output_lines", self.output_lines, 10..=100_000),
            ("log_bytes", self.log_bytes, 1_024..=1 << 20),
            ("compact_every", self.compact_every, 2..=50),
            ("full_results", self.full_results, 1..=20),
            ("record_bytes", self.record_bytes, 1_024..=1 << 18),
            ("signal_ttl_seconds", self.signal_ttl_seconds, 1..=604_800),
            ("code_min_timeout_ms", self.code_min_timeout_ms, 1..=30_000),
            ("code_max_timeout_ms", self.code_max_timeout_ms, 100..=600_000),
        ];
        let outside = ranges.into_iter().find(|(_, value, range)| !range.contains(value));
        outside.map_or(Ok(()), |(key, value, range)| {
            let (least, most) = range.into_inner();
            Err(format!("`rules.{key}` is {value}: use a whole number from {least} to {most}"))
        })
    }

    /// The time of a program that asked for `asked_ms`: clamped, never refused (SPEC CODE-2).
    #[must_use]
    pub fn code_timeout(&self, asked_ms: u64) -> Duration {
        let at_least = asked_ms.max(self.code_min_timeout_ms.into());
        Duration::from_millis(at_least).min(self.longest_code())
    }

    /// The longest time that a program may take.
    #[must_use]
    pub fn longest_code(&self) -> Duration {
        Duration::from_millis(self.code_max_timeout_ms.into())
    }

    pub(crate) fn signal_ttl(&self) -> Duration {
        Duration::from_secs(self.signal_ttl_seconds.into())
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn read(json: &str) -> Result<RunRules, String> {
        let rules: RunRules = serde_json::from_str(json).map_err(|error| error.to_string())?;
        rules.check().map(|()| rules)
    }

    #[test]
    fn every_rule_has_a_range() {
        assert_eq!(read("{}").unwrap(), RunRules::default());
        let fields = serde_json::to_value(RunRules::default()).unwrap();
        for key in fields.as_object().unwrap().keys() {
            for wrong in [0, u32::MAX] {
                let error = read(&format!(r#"{{"{key}":{wrong}}}"#)).unwrap_err();
                assert!(error.starts_with(&format!("`rules.{key}` is {wrong}: use a whole number from ")), "{error}");
            }
        }
        let error = read(r#"{"max_attempts":11}"#).unwrap_err();
        assert_eq!(error, "`rules.max_attempts` is 11: use a whole number from 1 to 10");
        assert!(read(r#"{"attempts":2}"#).unwrap_err().contains("unknown field"));
    }

    /// Runs of earlier versions are folded by these: a changed number would change their histories.
    #[test]
    fn the_rules_of_runs_without_stored_rules_never_change() {
        let text = serde_json::to_string(&RunRules::default()).unwrap();
        expect![[r#"{"max_attempts":3,"retry_iterations":15,"same_failures":3,"failures":6,"repeats_nudge":3,"repeats_stop":5,"refusals_nudge":3,"output_bytes":50000,"output_lines":2000,"log_bytes":16384,"compact_every":10,"full_results":3,"record_bytes":16384,"signal_ttl_seconds":300,"code_min_timeout_ms":100,"code_max_timeout_ms":30000}"#]]
            .assert_eq(&text);
    }

    #[test]
    fn timeouts_of_programs_are_clamped() {
        let rules = RunRules::default();
        for (asked, given) in [(1, 100), (250, 250), (60_000, 30_000)] {
            assert_eq!(rules.code_timeout(asked).as_millis(), given);
        }
        let crossed = RunRules { code_min_timeout_ms: 5_000, code_max_timeout_ms: 200, ..rules };
        assert_eq!(crossed.code_timeout(1).as_millis(), 200, "the longest time wins");
    }
}
