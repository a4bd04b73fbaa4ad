//! `motor verify`: a home and every skill in it, byte by byte, without a request (SPEC SIM-1).
//!
//! It reads every byte of the skills and of the artifacts, which an examination only lists. It changes nothing but caches.

use std::sync::Arc;

use base::{Clock, Refusal, RefusalCode};
use motor::RunRecord;
use receipts::artifacts_are;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use store::{Scan, Store, Table, blocking};
use vault::Vault;

use super::state::{NoState, open};
use super::{Check, Finding, Severity, home_findings, restore, skills, state};
use crate::api::skills::SkillVerification;
use crate::receipt::{ReceiptKey, listed};
use crate::{Home, Host, HostOptions, skill};

const RECEIPT_KEY: Check = Check::new("receipt_key", "receipt key");
const ARTIFACTS: Check = Check::new("artifacts", "artifacts");
const SKILLS: Check = Check::new("skills", "skills");

/// The result of verifying a home.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HomeVerification {
    /// The worst severity of the findings.
    pub status: Severity,
    /// The findings about the home, its state and its skills.
    pub findings: Vec<Finding>,
    /// Every skill and tool of the home, sorted by place.
    pub skills: Vec<SkillVerification>,
}

impl HomeVerification {
    fn new(findings: Vec<Finding>, skills: Vec<SkillVerification>) -> Self {
        let status = findings.iter().map(|finding| finding.status).max().unwrap_or(Severity::Ok);
        Self { status, findings, skills }
    }

    /// With more findings at the end.
    #[must_use]
    pub fn with(self, more: Vec<Finding>) -> Self {
        Self::new(self.findings.into_iter().chain(more).collect(), self.skills)
    }
}

/// The parts of a home that files and records are verified with.
struct HomeParts {
    home: Home,
    store: Store,
    vault: Vault,
    clock: Arc<dyn Clock>,
}

impl HomeParts {
    /// May block for long: it reads every artifact.
    fn findings(&self) -> Vec<Finding> {
        let Self { home, store, vault, clock } = self;
        let mut findings = home_findings(home);
        findings.extend(state::examine(home, store, vault, clock.now()));
        findings.extend([receipt_key(home), artifacts(home, store)]);
        findings
    }
}

impl Host {
    /// Verifies the home that this host has open, and every skill in it.
    ///
    /// # Errors
    /// If a skills directory cannot be read, or the host is shutting down.
    pub async fn verify_home(&self) -> Result<HomeVerification, Refusal> {
        let environment = &self.runs.environment;
        let parts = HomeParts {
            home: environment.home.clone(),
            store: self.runs.store.clone(),
            vault: environment.access.vault.clone(),
            clock: environment.clock.clone(),
        };
        let mut findings = blocking(move || Ok(parts.findings())).await?;
        let verified = skill::verify(&environment.skills, None).await?;
        findings.extend(skills::verified(&verified));
        Ok(HomeVerification::new(findings, verified))
    }
}

/// As [`Host::verify_home`], for a home without a host.
///
/// # Errors
/// `home_in_use` if another process has the home, or a skills directory cannot be read.
pub async fn verify_without_host(options: &HostOptions) -> Result<HomeVerification, Refusal> {
    let opened = match open(options) {
        Ok(opened) => opened,
        Err(NoState::Refused(refusal)) if refusal.code == RefusalCode::HomeInUse => return Err(refusal),
        Err(none) => {
            let mut findings = home_findings(&options.home);
            findings.extend(none.findings(&options.home));
            findings.push(SKILLS.finding(Severity::Skipped, "not read: without a state none is trusted", None));
            return Ok(HomeVerification::new(findings, Vec::new()));
        }
    };
    let parts = HomeParts {
        home: options.home.clone(),
        store: opened.store.clone(),
        vault: opened.vault.clone(),
        clock: options.clock.clone(),
    };
    let mut findings = blocking(move || Ok(parts.findings())).await?;
    let library = skills::library(options, &opened.store)?;
    let verified = skill::verify(&library, None).await;
    library.close().await;
    let verified = verified?;
    findings.extend(skills::verified(&verified));
    Ok(HomeVerification::new(findings, verified))
}

/// The key that signs receipts: both halves, and that they belong together.
fn receipt_key(home: &Home) -> Finding {
    match ReceiptKey::new(home.config()).check() {
        Ok(Some(key)) => RECEIPT_KEY.ok(format!("receipts are signed with {key}")),
        Ok(None) => RECEIPT_KEY.ok("the first receipt makes it"),
        Err(refusal) => RECEIPT_KEY.refused(refusal, restore(home, "config")),
    }
}

/// The artifacts of every run that is over, compared with its receipt.
fn artifacts(home: &Home, store: &Store) -> Finding {
    let records = match store.scan_each::<RunRecord>(Table::Runs, &Scan::all()) {
        Ok(records) => records,
        Err(error) => return ARTIFACTS.refused(error.into(), restore(home, "")),
    };
    let (mut files, mut runs, mut broken) = (0, 0_usize, Vec::new());
    let over = records.into_iter().filter_map(|(_, record)| record.ok());
    for record in over.filter(|record| record.status.is_terminal() && !record.artifacts.is_empty()) {
        runs += 1;
        match artifacts_are(&listed(&record.artifacts), &home.artifacts(&record.id)) {
            Ok(report) => files += report.verified,
            Err(error) => broken.push((record.id, error)),
        }
    }
    match broken.first() {
        None => ARTIFACTS.ok(format!("all are as their receipts say (runs: {runs}, files: {files})")),
        Some((run, error)) => {
            let message =
                format!("those of {} of {runs} runs are not as their receipts say; `{run}`: {error}", broken.len());
            ARTIFACTS.problem(message, restore(home, &format!("runs/{run}/artifacts")))
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_key_of_receipts_is_looked_at_and_not_made() {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        assert_eq!(receipt_key(&home).status, Severity::Ok);
        assert_eq!(fs::read_dir(home.config()).unwrap().count(), 0);
        ReceiptKey::new(home.config()).open().unwrap();
        assert!(receipt_key(&home).message.contains("ed25519:"));
        fs::remove_file(home.config().join("receipt.key")).unwrap();
        let gone = receipt_key(&home);
        assert_eq!((gone.status, gone.fix.is_some()), (Severity::Problem, true), "{gone:?}");
    }

    #[test]
    fn the_worst_finding_is_the_result() {
        let of = |statuses: &[Severity]| {
            let findings = statuses.iter().map(|status| ARTIFACTS.finding(*status, "", None)).collect();
            HomeVerification::new(findings, Vec::new()).status
        };
        assert_eq!(of(&[]), Severity::Ok);
        assert_eq!(of(&[Severity::Ok, Severity::Warning, Severity::Skipped]), Severity::Warning);
        assert_eq!(of(&[Severity::Problem, Severity::Warning]), Severity::Problem);
    }
}
