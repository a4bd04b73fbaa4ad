//! The part of the examination that reads the state: by the host that has it open, or without one.

use base::{Refusal, RefusalCode};
use motor::RunRecord;
use providers::StoredKeys;
use rustix::fs::statvfs;
use serde::de::IgnoredAny;
use store::{HomeLock, RESERVE_BYTES, Scan, Store, Table};
use vault::Vault;

use super::{Finding, Severity, machine_findings};
use crate::host::open_vault;
use crate::loss::{check_new_state, unrecorded_runs};
use crate::models::stored_keys;
use crate::{Home, HomeUsage, Host, HostOptions};

/// Less free space than this is worth a warning.
const LOW_ROOM_BYTES: u64 = 256 << 20;
/// Runs named in a finding.
const MAX_NAMED: usize = 5;

impl Host {
    /// Examines the state that this host has open. It may block while the key of the credentials is fetched.
    #[must_use]
    pub fn examine(&self) -> Vec<Finding> {
        let environment = &self.runs.environment;
        let vault = &environment.access.vault;
        let mut findings = machine_findings(&environment.config().models, &environment.env, stored_keys(vault.clone()));
        findings.extend(examine(&environment.home, &self.runs.store, vault));
        findings
    }
}

/// Examines the state of a home that has no host. Nothing is created; an older schema is migrated, as by any command.
#[must_use]
pub fn examine_without_host(options: &HostOptions) -> Vec<Finding> {
    let home = &options.home;
    let machine = |keys: StoredKeys| machine_findings(&options.config.config.models, &options.env, keys);
    let is_new = !store::exists(&home.state());
    if !home.path().exists() || (is_new && check_new_state(home).is_ok()) {
        let message = "there is none yet: the first command that needs it creates it";
        let mut findings = machine(StoredKeys::default());
        findings.push(Finding::ok("state", message));
        return findings;
    }
    let open = || -> Result<(HomeLock, Store), Refusal> {
        let lock = HomeLock::acquire(home.path())?;
        Ok((lock, Store::open(&home.state())?))
    };
    match check_new_state(home).and_then(|()| open()) {
        Ok((_lock, store)) => {
            let vault = open_vault(options, &store);
            let mut findings = machine(stored_keys(vault.clone()));
            findings.extend(examine(home, &store, &vault));
            findings
        }
        Err(refusal) => {
            let level = if refusal.code == RefusalCode::HomeInUse { Severity::Warning } else { Severity::Problem };
            let finding = Finding { name: "state".to_owned(), level, message: refusal.reason, remedy: refusal.remedy };
            let mut findings = machine(StoredKeys::default());
            findings.extend([room(home), finding]);
            findings
        }
    }
}

fn examine(home: &Home, store: &Store, vault: &Vault) -> Vec<Finding> {
    let mut findings = vec![room(home)];
    findings.push(records(store));
    findings.push(usage(home));
    findings.extend(directories(home, store));
    findings.extend(credentials(vault));
    findings
}

/// The free space of the disk, compared with the store's reserve.
fn room(home: &Home) -> Finding {
    let disk = match statvfs(home.path()) {
        Ok(disk) => disk,
        Err(error) => return Finding::warning("disk", format!("the free room cannot be determined: {error}"), None),
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let in_mib = |bytes: u64| bytes >> 20;
    let message = format!("{} MiB are free", in_mib(free));
    let remedy = || Some(format!("free some space on the disk that holds {}", home.path().display()));
    if free < RESERVE_BYTES {
        let message = format!("{message}: below the reserve of {} MiB nothing is stored", in_mib(RESERVE_BYTES));
        Finding::problem("disk", message, remedy())
    } else if free < LOW_ROOM_BYTES {
        Finding::warning("disk", message, remedy())
    } else {
        Finding::ok("disk", message)
    }
}

/// Every record of a run, read once.
fn records(store: &Store) -> Finding {
    let read = || -> Result<Finding, store::StoreError> {
        let live = store.scan::<IgnoredAny>(Table::Live, &Scan::all())?;
        let records = store.scan_each::<RunRecord>(Table::Runs, &Scan::all())?;
        let unreadable: Vec<_> = records.iter().filter_map(|(_, record)| record.as_ref().err()).collect();
        if let Some(first) = unreadable.first() {
            let count = unreadable.len();
            let message = format!("{count} of {} records of runs cannot be used; the first: {first}", records.len());
            return Ok(Finding::problem("state", message, restore()));
        }
        let lost = live.iter().find(|(key, _)| records.binary_search_by(|(other, _)| other.cmp(key)).is_err());
        if let Some((key, _)) = lost {
            let message = format!("the run `{}` is listed as unfinished and has no record", key.escape_ascii());
            return Ok(Finding::problem("state", message, restore()));
        }
        let count = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        Ok(Finding::ok("state", format!("complete: {}, {} unfinished", count(records.len()), live.len())))
    };
    read().unwrap_or_else(|error| Finding::problem("state", error.to_string(), restore()))
}

/// The disk usage of the home.
fn usage(home: &Home) -> Finding {
    let usage = HomeUsage::measure(home);
    let in_mib = |bytes: u64| bytes.div_ceil(1 << 20);
    let message = format!(
        "the state has {} MiB, {} directories of runs have {} MiB, their traces {} MiB",
        in_mib(usage.state_bytes),
        usage.runs,
        in_mib(usage.runs_bytes),
        in_mib(usage.traces_bytes)
    );
    Finding::ok("usage", message)
}

fn restore() -> Option<String> {
    Some("restore the home from a backup".to_owned())
}

/// Directories of runs and records that do not match.
fn directories(home: &Home, store: &Store) -> Vec<Finding> {
    let mut findings = Vec::new();
    match unrecorded_runs(home, store) {
        Ok(runs) if runs.is_empty() => {}
        Ok(runs) => {
            let named: Vec<_> = runs.iter().take(MAX_NAMED).map(|run| format!("`{run}`")).collect();
            let more = if runs.len() > MAX_NAMED { " and more" } else { "" };
            let message = format!(
                "{} directories in `{}` belong to no run of the state: {}{more}",
                runs.len(),
                home.runs().display(),
                named.join(", ")
            );
            findings.push(Finding::warning(
                "runs",
                message,
                Some("wait for acts that are being prepared; a host removes the rest, or delete them".to_owned()),
            ));
        }
        Err(refusal) => findings.push(Finding::problem("runs", refusal.reason, refusal.remedy)),
    }
    let live = store.scan::<base::RunId>(Table::Live, &Scan::all()).unwrap_or_default();
    let without: Vec<_> = live.iter().filter(|(_, run)| !home.workspace(run).is_dir()).collect();
    if let Some((_, first)) = without.first() {
        let message = format!("{} unfinished runs have lost their workspace; the first: `{first}`", without.len());
        let remedy = format!("restore `{}` from a backup, or `motor task cancel {first}`", home.run(first).display());
        findings.push(Finding::problem("runs", message, Some(remedy)));
    }
    findings
}

/// The key of the vault, and each credential opened with it.
fn credentials(vault: &Vault) -> Vec<Finding> {
    const NAME: &str = "credentials";
    let mut findings: Vec<_> =
        vault.warnings().into_iter().map(|warning| Finding::warning(NAME, warning, None)).collect();
    let finding = match vault.check().and_then(|()| vault.list()) {
        Err(refusal) => Finding::problem(NAME, refusal.reason, refusal.remedy),
        Ok(credentials) => match credentials.iter().find(|credential| credential.unreadable) {
            Some(credential) => {
                let message = format!("credential `{}` cannot be read", credential.name);
                Finding::problem(NAME, message, Some(format!("motor credential set {}", credential.name)))
            }
            None => Finding::ok(NAME, format!("{} set, all of them readable", credentials.len())),
        },
    };
    findings.push(finding);
    findings
}
