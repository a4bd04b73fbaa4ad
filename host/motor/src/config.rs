//! The owner's settings of the loop, and its fixed numbers. Each has a unit, a reason and a source.

use std::time::Duration;

use base::{Refusal, RefusalCode};
use serde::{Deserialize, Serialize};

use crate::budget::Prices;
use crate::places::PlacesConfig;
use crate::record::RunRecord;
use crate::rules::RunRules;

/// No run may take more model calls than this (SPEC RUN-4).
pub const ITERATION_CEILING: u32 = 50;
/// The model is told when this many iterations are left, so that it can end with an answer.
pub const WARN_ITERATIONS_LEFT: u32 = 3;
/// How often a call is held while the owner is asked about its requests, and made again.
pub const MAX_HOLDS: u32 = 3;
/// Calls of one model reply that may be executed; the others are refused, as data. Bounds the work of one iteration,
/// which the iteration cap counts as one however much the model asks for in it.
pub const MAX_CALLS_PER_REPLY: usize = 32;
/// Calls of one reply that are made side by side if they only read: each may take a sandbox's whole memory.
pub const MAX_SIDE_BY_SIDE: usize = 10;
/// Bytes of one tool output that may enter the conversation. The toolbox keeps outputs under 50 KB (SPEC RUN-9); this
/// holds against a toolbox that does not.
pub const MAX_OUTPUT_BYTES: usize = 64 * 1024;
/// Log lines kept of one call.
pub const MAX_NOTES: usize = 64;
/// Bytes kept of one such line.
pub const MAX_NOTE_BYTES: usize = 1024;
/// How long a stopped call may take to return a partial result. Cancel answers within 100 ms (SPEC RUN-7).
pub const STOP_GRACE: Duration = Duration::from_millis(50);
/// How much longer than its own timeout a call may take before the loop ends it: the toolbox should have, by then.
pub const OVERSTAY: Duration = Duration::from_secs(1);
/// How long a shutdown waits for calls in flight, whose outcome would otherwise be unknown.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);
/// How long the loop waits for its environment to hear of a step or of an end: a copy for people must not hold up a run,
/// a cancel or a shutdown.
pub const HEARING: Duration = Duration::from_secs(1);

/// Characters kept of a tool result in the summary of a failure.
pub const SUMMARY_OUTPUT: usize = 400;
/// Tool results kept for the summary of a failure.
pub const SUMMARY_RESULTS: usize = 3;
/// Bytes of a question, of an answer, of guidance, or of the action that needs an approval.
pub const MAX_WORDS_BYTES: usize = 16 * 1024;
/// Messages of the owner to one run.
pub const MAX_OWNER_MESSAGES: u32 = 32;
/// Answers that a question may offer.
pub const MAX_CHOICES: usize = 12;
/// How long the copying of a run's files may take before the run ends without them.
pub const ARTIFACTS: Duration = Duration::from_secs(30);
/// How long the model may analyse a failure.
pub const HINT: Duration = Duration::from_secs(20);
/// Bytes kept of its analysis.
pub const HINT_BYTES: usize = 1_000;
/// How long a question waits that has no limit: a hundred years.
pub const UNLIMITED: Duration = Duration::from_secs(100 * 365 * 86_400);
/// How long a run waits for room on the disk before it looks again.
pub const DISK_WAIT: Duration = Duration::from_secs(5);
/// The longest that a timer sleeps at once, by whichever clock it is kept.
pub const TIMER_SLEEP: Duration = Duration::from_secs(60);
/// Calls whose outcome is unknown that are kept by name.
pub const MAX_UNKNOWN: usize = 32;

/// Settings of the loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MotorConfig {
    /// Model calls of a run that does not say. 1 to 50. Default 20 (SPEC RUN-4).
    pub max_iterations: u32,
    /// Seconds of wall clock a run may take, counted from its start across restarts of the host, and the most that a
    /// run may ask for. Default 600 (SPEC RUN-4).
    pub timeout_seconds: u64,
    /// Seconds that a question to the user waits for its answer. Default 1,800 (SPEC ASK-1). Waiting does not count as
    /// time of the run.
    pub input_timeout_seconds: u64,
    /// Seconds that a request for consent waits for the owner. Default 900 (SPEC APPR-1).
    pub approval_timeout_seconds: u64,
    /// Seconds that a question or a request for consent of a detached run waits. 0: until it is answered or cancelled.
    /// Default 0.
    pub detached_timeout_seconds: u64,
    /// Whether the model is asked for the cause if an attempt fails: one more model call. Default no.
    pub failure_hint: bool,
    /// Bytes of conversation that a request may have; earlier messages are shortened to fit (SPEC RUN-11). Default
    /// 400,000, which is about 100,000 tokens of English text.
    pub context_bytes: usize,
    /// The budget of runs, and the prices (SPEC EN-2). A section of its own.
    #[serde(skip)]
    pub budget: Prices,
    /// The rules of runs that start from now on. A section of its own.
    #[serde(skip)]
    pub rules: RunRules,
    /// The places of an agent. The section `[agent]`.
    #[serde(skip)]
    pub places: PlacesConfig,
}

impl Default for MotorConfig {
    fn default() -> Self {
        Self {
            max_iterations: 20,
            timeout_seconds: 600,
            input_timeout_seconds: 1_800,
            approval_timeout_seconds: 900,
            detached_timeout_seconds: 0,
            failure_hint: false,
            context_bytes: 400_000,
            budget: Prices::default(),
            rules: RunRules::default(),
            places: PlacesConfig::default(),
        }
    }
}

impl MotorConfig {
    /// Checks that a run can be made with these settings.
    ///
    /// # Errors
    /// With the first number out of its range, in words that name the key and the range.
    pub fn check(&self) -> Result<(), String> {
        if !(1..=ITERATION_CEILING).contains(&self.max_iterations) {
            let calls = self.max_iterations;
            return Err(format!("`motor.max_iterations` is {calls}: use a whole number from 1 to {ITERATION_CEILING}"));
        }
        if self.timeout_seconds == 0 {
            return Err("`motor.timeout_seconds` is 0: use a whole number of seconds, at least 1".to_owned());
        }
        Ok(())
    }

    /// How long a question of the run waits.
    #[must_use]
    pub fn input_timeout(&self, run: &RunRecord) -> Duration {
        self.waits(run, self.input_timeout_seconds)
    }

    /// How long a request of the run for consent waits.
    #[must_use]
    pub fn approval_timeout(&self, run: &RunRecord) -> Duration {
        self.waits(run, self.approval_timeout_seconds)
    }

    fn waits(&self, run: &RunRecord, attached: u64) -> Duration {
        match (run.detached, self.detached_timeout_seconds) {
            (false, _) => Duration::from_secs(attached),
            (true, 0) => UNLIMITED,
            (true, seconds) => Duration::from_secs(seconds),
        }
    }

    /// The iteration cap of an attempt after the first of a run with these rules.
    ///
    /// # Errors
    /// When it is 0 or above the ceiling.
    pub fn retry_iterations(&self, requested: Option<u32>, rules: &RunRules) -> Result<u32, Refusal> {
        self.iterations(Some(requested.unwrap_or(rules.retry_iterations.min(self.max_iterations))))
    }

    /// The iteration cap of a run that asked for `requested`.
    ///
    /// # Errors
    /// When it is 0 or above the ceiling.
    pub fn iterations(&self, requested: Option<u32>) -> Result<u32, Refusal> {
        match requested.unwrap_or(self.max_iterations) {
            0 => {
                Err(Refusal::new(RefusalCode::InvalidRequest, "`maxIterations` is 0, so the model could not be called")
                    .with_remedy(format!("give a number from 1 to {ITERATION_CEILING}")))
            }
            asked if asked > ITERATION_CEILING => Err(Refusal::new(
                RefusalCode::InvalidRequest,
                format!("`maxIterations` is {asked}; a run may take at most {ITERATION_CEILING} iterations"),
            )
            .with_remedy("split the task into several runs")),
            asked => Ok(asked),
        }
    }

    /// The time limit of a run that asked for `requested`.
    ///
    /// # Errors
    /// When it is zero or longer than the owner allows.
    pub fn timeout(&self, requested: Option<Duration>) -> Result<Duration, Refusal> {
        let most = Duration::from_secs(self.timeout_seconds);
        match requested.unwrap_or(most) {
            Duration::ZERO => {
                Err(Refusal::new(RefusalCode::InvalidRequest, "the run's timeout is 0, so nothing could be done in it"))
            }
            asked if asked > most => Err(Refusal::new(
                RefusalCode::InvalidRequest,
                format!("the run asks for {}; this host allows a run at most {}", span(asked), span(most)),
            )
            .with_remedy("ask for less, or raise `timeout_seconds` under `[motor]`")),
            asked => Ok(asked),
        }
    }
}

/// A duration for people: `10 min`, `90 s`, `250 ms`.
pub(crate) fn span(duration: Duration) -> String {
    let millis = duration.as_millis();
    match millis {
        0..1_000 => format!("{millis} ms"),
        _ if millis.is_multiple_of(60_000) => format!("{} min", millis / 60_000),
        _ if millis.is_multiple_of(1_000) => format!("{} s", millis / 1_000),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_are_refused_not_clamped() {
        let config = MotorConfig::default();
        assert_eq!(config.iterations(None).unwrap(), 20);
        assert_eq!(config.iterations(Some(50)).unwrap(), 50);
        let refusal = config.iterations(Some(51)).unwrap_err();
        assert_eq!(refusal.reason, "`maxIterations` is 51; a run may take at most 50 iterations");
        assert!(config.iterations(Some(0)).is_err());

        assert_eq!(config.timeout(None).unwrap(), Duration::from_secs(600));
        let refusal = config.timeout(Some(Duration::from_secs(1200))).unwrap_err();
        assert_eq!(refusal.reason, "the run asks for 20 min; this host allows a run at most 10 min");
        assert!(config.timeout(Some(Duration::ZERO)).is_err());
    }

    #[test]
    fn spans() {
        for (millis, text) in [(250, "250 ms"), (90_000, "90 s"), (600_000, "10 min"), (1_500, "1.5 s")] {
            assert_eq!(span(Duration::from_millis(millis)), text);
        }
    }

    #[test]
    fn an_unknown_setting_is_an_error() {
        assert!(serde_json::from_str::<MotorConfig>(r#"{"max_iterations":5}"#).is_ok());
        assert!(serde_json::from_str::<MotorConfig>(r#"{"max_iteration":5}"#).is_err());
    }
}
