//! The configuration, the missing parts, and the one command that mends each (SPEC CONF-3, SIM-1).
//!
//! Looking changes nothing but caches, and an older schema of the state; `motor doctor --fix` calls [`mend`]. Only
//! [`ask_without_host`] and [`Host::ask_model_once`](crate::Host::ask_model_once) make a request.

mod config;
mod home;
mod machine;
mod mend;
mod model;
mod owner;
mod skills;
mod state;
mod verify;

use base::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Env, Home};
pub use config::config_findings;
pub use home::home_findings;
pub use mend::mend;
pub use model::{ask_without_host, unasked};
pub use owner::variable_finding;
pub use state::examine_without_host;
pub use verify::{HomeVerification, verify_without_host};

/// Severity of a finding, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Works as it should.
    Ok,
    /// Was not looked at; the message says why.
    Skipped,
    /// Was mended just now.
    Fixed,
    /// Works, but deserves attention.
    Warning,
    /// Does not work; has to be mended.
    Problem,
}

/// One result of the examination.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// Stable identifier of the check, such as `owner_token`. A check may have several findings.
    pub id: String,
    /// Name of the examined part, for people.
    pub name: String,
    /// Severity of this finding.
    pub status: Severity,
    /// The result, in one sentence.
    pub message: String,
    /// The one command that mends it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// A part that is examined: the identifier of its check, and its name for people.
#[derive(Debug, Clone, Copy)]
struct Check {
    id: &'static str,
    name: &'static str,
}

impl Check {
    const fn new(id: &'static str, name: &'static str) -> Self {
        Self { id, name }
    }

    fn finding(self, status: Severity, message: impl Into<String>, fix: Option<String>) -> Finding {
        Finding { id: self.id.to_owned(), name: self.name.to_owned(), status, message: message.into(), fix }
    }

    fn ok(self, message: impl Into<String>) -> Finding {
        self.finding(Severity::Ok, message, None)
    }

    fn warning(self, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Severity::Warning, message, Some(fix.into()))
    }

    fn problem(self, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        self.finding(Severity::Problem, message, Some(fix.into()))
    }

    /// A refusal as a problem. Its remedy is part of the message, because it may be more than a command.
    fn refused(self, refusal: Refusal, fix: impl Into<String>) -> Finding {
        self.problem(reason(refusal), fix)
    }
}

/// The reason of a refusal, and its remedy.
pub(crate) fn reason(refusal: Refusal) -> String {
    match refusal.remedy {
        Some(remedy) => format!("{}: {remedy}", refusal.reason),
        None => refusal.reason,
    }
}

/// The command that puts a path of the home back from a backup of the home, or the whole home.
fn restore(home: &Home, path: &str) -> String {
    let to = home.path().join(path);
    // The contents of a directory go into the existing one.
    let contents = if path.is_empty() || to.is_dir() { "/." } else { "" };
    let from = std::path::Path::new("BACKUP").join(path);
    let shown = |path: &std::path::Path| quoted(path.display().to_string().trim_end_matches('/'));
    format!("cp -a {}{contents} {}", shown(&from), shown(&to))
}

/// A path as an argument in a shell.
pub(crate) fn quoted(path: &str) -> String {
    let is_plain =
        |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '/' | '.' | '_' | '-' | '+' | '@' | ',' | ':');
    if path.chars().all(is_plain) { path.to_owned() } else { format!("'{}'", path.replace('\'', r"'\''")) }
}

/// The models of all roles, and the sandbox: all that needs neither the state nor an external request.
fn machine_findings(config: &crate::config::ModelsConfig, env: &Env, keys: providers::StoredKeys) -> Vec<Finding> {
    let mut findings = model::findings(config, env, keys);
    findings.extend(machine::sandbox());
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_pasted_into_a_shell() {
        let home = Home::at("/home/a b/it's".into());
        assert_eq!(
            restore(&home, "config/owner.token"),
            r"cp -a BACKUP/config/owner.token '/home/a b/it'\''s/config/owner.token'"
        );
        assert_eq!(restore(&Home::at("/h".into()), ""), "cp -a BACKUP/. /h");
        assert_eq!(quoted("/a/run_1"), "/a/run_1");
    }

    #[test]
    fn the_worst_severity_is_the_greatest() {
        use Severity::{Fixed, Ok, Problem, Skipped, Warning};
        let mut all = [Problem, Ok, Warning, Fixed, Skipped];
        all.sort();
        assert_eq!(all, [Ok, Skipped, Fixed, Warning, Problem]);
    }
}
