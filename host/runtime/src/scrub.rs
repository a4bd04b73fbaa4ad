//! The one place where secrets are removed from the output of a call (SPEC VAULT-3).
//!
//! A guest should know no secret. One that was granted the value itself, or read it where the host did not look, may
//! still put it into its output, its errors, a log line or the path of a request; this module removes it there.

use std::collections::BTreeSet;
use std::sync::Arc;

use base::CredentialName;
use capabilities::{Note, NoteSink};
use network::{BlockReason, RequestTrace, RunNetwork};
use parking_lot::Mutex;

use crate::code::{CodeError, CodeReport, MARKER};
use crate::outcome::{CallReport, Outcome, ToolError};

/// Removes the secrets of a run; without a run it changes nothing.
#[derive(Clone)]
pub(crate) struct Scrub {
    network: Option<RunNetwork>,
    /// Credentials whose secrets were replaced so far.
    withheld: Arc<Mutex<BTreeSet<CredentialName>>>,
}

impl Scrub {
    pub fn new(network: Option<RunNetwork>) -> Self {
        let network = network.filter(|network| !network.secrets().scrubber().is_empty());
        Self { network, withheld: Arc::default() }
    }

    fn text(&self, text: String) -> String {
        let Some(network) = &self.network else { return text };
        if self.holds(network, &text) { network.secrets().scrubber().text(text) } else { text }
    }

    fn holds(&self, network: &RunNetwork, text: &str) -> bool {
        let secrets = network.secrets().scrubber().secrets_in(text.as_bytes());
        let names = secrets.iter().map(|secret| secret.name.clone());
        self.withheld.lock().extend(names);
        !secrets.is_empty()
    }

    /// A text that was cut, perhaps in the middle of a secret: a possible beginning of a secret at its end is removed.
    fn cut_text(&self, text: String) -> String {
        let Some(network) = &self.network else { return text };
        self.holds(network, &text);
        let mut stream = network.secrets().scrubber().stream();
        String::from_utf8_lossy(&stream.push(text.as_bytes())).into_owned()
    }

    /// A truncated result, including its marker.
    fn cut_result(&self, json: String) -> String {
        match json.rfind(MARKER).and_then(|at| json.split_at_checked(at)) {
            Some((front, mark)) => self.cut_text(front.to_owned()) + &self.text(mark.to_owned()),
            None => self.cut_text(json),
        }
    }

    /// The credentials whose secrets were replaced in a call's output.
    fn withheld(&self) -> Vec<CredentialName> {
        self.withheld.lock().iter().cloned().collect()
    }

    /// Wraps a sink so that it receives no secrets.
    pub fn notes(&self, sink: NoteSink) -> NoteSink {
        if self.network.is_none() {
            return sink;
        }
        let scrub = self.clone();
        Arc::new(move |note| {
            sink(match note {
                Note::Log { level, message } => Note::Log { level, message: scrub.text(message) },
                Note::Progress { message, fraction } => Note::Progress { message: scrub.text(message), fraction },
            });
        })
    }

    /// Scrubs a finished tool call.
    pub fn finished(&self, finished: CallReport<String, ToolError>) -> CallReport<String, ToolError> {
        if self.network.is_none() {
            return finished;
        }
        let finished = CallReport {
            outcome: match finished.outcome {
                Outcome::Returned(output) => Outcome::Returned(self.text(output)),
                Outcome::Refused(error) => Outcome::Refused(self.tool_error(error)),
                Outcome::Trapped(mut trap) => {
                    trap.message = self.text(trap.message);
                    Outcome::Trapped(trap)
                }
                Outcome::HostFault(message) => Outcome::HostFault(self.text(message)),
                ended @ (Outcome::Exceeded(_) | Outcome::Cancelled) => ended,
            },
            usage: finished.usage,
            exit_status: finished.exit_status,
            stdio: self.text(finished.stdio),
            requests: self.requests(finished.requests),
            last_refusal: finished.last_refusal.map(|blocked| self.blocked(blocked)),
            withheld: Vec::new(),
        };
        CallReport { withheld: self.withheld(), ..finished }
    }

    /// Scrubs the report of a program.
    pub fn report(&self, report: CodeReport) -> CodeReport {
        if self.network.is_none() {
            return report;
        }
        let report = CodeReport {
            outcome: match report.outcome {
                Ok(mut value) => {
                    value.json = if value.truncated { self.cut_result(value.json) } else { self.text(value.json) };
                    Ok(value)
                }
                Err(error) => Err(CodeError { message: self.text(error.message), ..error }),
            },
            console: if report.console_truncated { self.cut_text(report.console) } else { self.text(report.console) },
            requests: self.requests(report.requests),
            last_refusal: report.last_refusal.map(|blocked| self.blocked(blocked)),
            ..report
        };
        CodeReport { withheld: self.withheld(), ..report }
    }

    fn tool_error(&self, error: ToolError) -> ToolError {
        match error {
            ToolError::Denied(message) => ToolError::Denied(self.text(message)),
            ToolError::Missing(message) => ToolError::Missing(self.text(message)),
            ToolError::BadInput(message) => ToolError::BadInput(self.text(message)),
            ToolError::Limit(message) => ToolError::Limit(self.text(message)),
            ToolError::Failed { message, retryable } => ToolError::Failed { message: self.text(message), retryable },
        }
    }

    fn requests(&self, requests: Vec<RequestTrace>) -> Vec<RequestTrace> {
        requests.into_iter().map(|trace| trace.map_text(|text| self.text(text))).collect()
    }

    fn blocked(&self, blocked: BlockReason) -> BlockReason {
        BlockReason {
            rule: blocked.rule,
            asked: self.text(blocked.asked),
            reason: self.text(blocked.reason),
            remedy: self.text(blocked.remedy),
        }
    }
}

#[cfg(test)]
mod tests {
    use base::Secret;
    use network::{Gate, NetworkConfig, Policy, Rule, Taint};
    use vault::{RunSecrets, Scrubber};

    use super::*;
    use crate::outcome::{CallUsage, Trap};

    const SECRET: &str = "s3cr3t-canary-7f0e";

    fn scrub() -> Scrub {
        let known = vec![(CredentialName::parse("token").unwrap(), Secret::new(SECRET.to_owned()))];
        let secrets = RunSecrets::new(Vec::new(), Arc::new(Scrubber::new(known)));
        let gate = Gate::new(&NetworkConfig::default()).unwrap();
        Scrub::new(Some(gate.run(Policy::default(), Arc::new(secrets), Taint::default())))
    }

    fn words() -> String {
        format!("before {SECRET} after")
    }

    /// Replaces the secret everywhere in a call with this outcome and leaves the rest unchanged.
    fn check(outcome: Outcome<String, ToolError>) {
        let words_of = |finished: &CallReport<String, ToolError>| format!("{finished:?}");
        let blocked = BlockReason { rule: Rule::InvalidUrl, asked: words(), reason: words(), remedy: words() };
        let trace = RequestTrace {
            method: words(),
            scheme: words(),
            host: words(),
            path: words(),
            status: None,
            request_bytes: 1,
            response_bytes: 2,
            duration_ms: 3.0,
            credentials: Vec::new(),
            error: Some(words()),
            rule: None,
            hash: None,
            consented: false,
            staged: None,
        };
        let finished = CallReport {
            stdio: words(),
            requests: vec![trace],
            last_refusal: Some(blocked),
            ..CallReport::of(outcome, CallUsage::default())
        };
        let before = words_of(&finished);
        let scrubbed = scrub().finished(finished);
        assert_eq!(scrubbed.withheld.iter().map(CredentialName::as_str).collect::<Vec<_>>(), ["token"]);
        let after = words_of(&CallReport { withheld: Vec::new(), ..scrubbed });
        assert_eq!(after, before.replace(SECRET, "<credential:token>"));
    }

    #[test]
    fn nothing_of_a_call_shows_a_secret() {
        check(Outcome::Returned(words()));
        check(Outcome::Trapped(Trap { message: words(), is_panic: false }));
        check(Outcome::HostFault(words()));
        check(Outcome::Cancelled);
        for error in [
            ToolError::Denied(words()),
            ToolError::Missing(words()),
            ToolError::BadInput(words()),
            ToolError::Limit(words()),
            ToolError::Failed { message: words(), retryable: true },
        ] {
            check(Outcome::Refused(error));
        }
    }

    fn report(json: &str, console: &str, is_cut: bool) -> CodeReport {
        CodeReport {
            outcome: Ok(crate::CodeValue { json: json.to_owned(), truncated: is_cut }),
            console: console.to_owned(),
            console_truncated: is_cut,
            usage: CallUsage::default(),
            requests: Vec::new(),
            last_refusal: None,
            withheld: Vec::new(),
        }
    }

    #[test]
    fn the_border_of_what_was_cut_shows_no_part_of_a_secret() {
        for cut in 4..SECRET.len() {
            let part = SECRET.get(..cut).unwrap();
            let scrubbed = scrub().report(report(
                &format!("\"{SECRET} {part}…[truncated: 99999 bytes]"),
                &format!("{SECRET}\n{part}"),
                true,
            ));
            let json = scrubbed.outcome.unwrap().json;
            assert_eq!(json, "\"<credential:token> …[truncated: 99999 bytes]", "{cut}");
            assert_eq!(scrubbed.console.trim_end(), "<credential:token>", "{cut}");
            assert_eq!(scrubbed.withheld.iter().map(CredentialName::as_str).collect::<Vec<_>>(), ["token"]);
        }
        // A text that was not cut, or that holds no part of a secret, is unchanged.
        let whole = report("\"s3cr3t-\"", "s3cr3t-", false);
        assert_eq!(scrub().report(whole.clone()), whole);
        let other = scrub().report(report("\"other words…[truncated: 99999 bytes]", "other words.", true));
        let json = other.outcome.unwrap().json;
        assert!(json.starts_with("\"other wor") && json.ends_with("…[truncated: 99999 bytes]"), "{json}");
        assert!(other.console.starts_with("other wor") && other.withheld.is_empty(), "{}", other.console);
    }

    #[test]
    fn without_secrets_everything_passes() {
        let finished = CallReport::of(Outcome::Returned(words()), CallUsage::default());
        assert_eq!(Scrub::new(None).finished(finished).outcome, Outcome::Returned(words()));
    }
}
