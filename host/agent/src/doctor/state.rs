//! The part of the examination that reads the state: by the host that has it open, or without one.

use base::{Refusal, RefusalCode, Timestamp};
use motor::RunRecord;
use providers::StoredKeys;
use rustix::fs::statvfs;
use serde::de::IgnoredAny;
use signals::Signal;
use store::{HomeLock, RESERVE_BYTES, Scan, Store, Table, blocking};
use vault::Vault;

use super::{Check, Finding, Severity, machine, machine_findings, owner, quoted, reason, restore, skills};
use crate::host::open_vault;
use crate::loss::{check_new_state, unrecorded_runs};
use crate::models::stored_keys;
use crate::{Home, HomeUsage, Host, HostOptions};

const DISK: Check = Check::new("disk", "disk");
const STATE: Check = Check::new("state", "state");
const USAGE: Check = Check::new("usage", "usage");
const RUNS: Check = Check::new("runs", "runs");
const CREDENTIALS: Check = Check::new("credentials", "credentials");

/// Less free space than this is worth a warning.
const LOW_ROOM_BYTES: u64 = 256 << 20;
/// Runs named in a finding.
const MAX_NAMED: usize = 5;

impl Host {
    /// Examines the state that this host has open, and its skills.
    ///
    /// # Errors
    /// If the host is shutting down.
    pub async fn examine(&self) -> Result<Vec<Finding>, Refusal> {
        let host = self.clone();
        let mut findings = blocking(move || {
            let environment = &host.runs.environment;
            let vault = &environment.access.vault;
            let keys = stored_keys(vault.clone());
            let mut findings = machine_findings(&environment.config().models, &environment.env, keys);
            findings.extend(examine(&environment.home, &host.runs.store, vault, environment.clock.now()));
            findings.push(usage(&environment.home));
            Ok(findings)
        })
        .await?;
        findings.extend(skills::listed(&self.runs.environment.skills).await);
        Ok(findings)
    }
}

/// The state of a home that has no host, for as long as it is examined.
pub(super) struct OpenState {
    pub store: Store,
    pub vault: Vault,
    _lock: HomeLock,
}

/// Why there is no state to examine.
pub(super) enum NoState {
    /// The home is new.
    New,
    Refused(Refusal),
}

impl NoState {
    /// Its findings, in place of those of the state.
    pub fn findings(self, home: &Home) -> Vec<Finding> {
        match self {
            Self::New => vec![STATE.ok("there is none yet: the first command that needs it creates it")],
            Self::Refused(refusal) => vec![room(home), refused(home, refusal)],
        }
    }
}

/// Opens the state of a home without a host. Nothing is created; an older schema is migrated, as by any command.
///
/// # Errors
/// If there is no state yet, it cannot be used, or another process has the home.
pub(super) fn open(options: &HostOptions) -> Result<OpenState, NoState> {
    let home = &options.home;
    let is_new = !store::exists(&home.state());
    if !home.path().exists() || (is_new && check_new_state(home).is_ok()) {
        return Err(NoState::New);
    }
    let open = || -> Result<OpenState, Refusal> {
        check_new_state(home)?;
        let lock = HomeLock::acquire(home.path())?;
        let store = Store::open(&home.state())?;
        Ok(OpenState { vault: open_vault(options, &store), store, _lock: lock })
    };
    open().map_err(NoState::Refused)
}

/// A state that cannot be opened.
fn refused(home: &Home, refusal: Refusal) -> Finding {
    let accepts_loss = refusal.remedy.as_ref().is_some_and(|remedy| remedy.contains("--accept-loss"));
    match refusal.code {
        RefusalCode::HomeInUse => STATE.warning(reason(refusal), "motor doctor"),
        RefusalCode::StateUnusable if accepts_loss => STATE.refused(refusal, "motor doctor --accept-loss"),
        _ => STATE.refused(refusal, restore(home, "")),
    }
}

/// Examines the state and the skills of a home that has no host.
pub async fn examine_without_host(options: &HostOptions) -> Vec<Finding> {
    let home = &options.home;
    let machine = |keys: StoredKeys| machine_findings(&options.config.config.models, &options.env, keys);
    let state = match open(options) {
        Ok(state) => state,
        Err(none) => {
            let clock = machine::clock(options.clock.now(), None);
            return machine(StoredKeys::default()).into_iter().chain(none.findings(home)).chain([clock]).collect();
        }
    };
    let mut findings = machine(stored_keys(state.vault.clone()));
    findings.extend(examine(home, &state.store, &state.vault, options.clock.now()));
    findings.push(usage(home));
    match skills::library(options, &state.store) {
        Ok(library) => {
            findings.extend(skills::listed(&library).await);
            library.close().await;
        }
        Err(refusal) => findings.push(STATE.refused(refusal, "motor skill list")),
    }
    findings
}

/// The state itself. It may block while the key of the credentials is fetched.
pub(super) fn examine(home: &Home, store: &Store, vault: &Vault, now: Timestamp) -> Vec<Finding> {
    let (records, newest) = records(home, store);
    let mut findings = vec![room(home), records];
    findings.extend(directories(home, store));
    findings.extend(credentials(home, vault));
    findings.push(owner::token(home, store));
    findings.push(machine::clock(now, newest));
    findings
}

/// The free space of the disk, compared with the store's reserve.
fn room(home: &Home) -> Finding {
    let disk = match statvfs(home.path()) {
        Ok(disk) => disk,
        Err(error) => {
            let message = format!("the free room cannot be determined: {error}");
            return DISK.warning(message, format!("df -h {}", quoted(&home.path().display().to_string())));
        }
    };
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let in_mib = |bytes: u64| bytes >> 20;
    let message = format!("{} MiB are free", in_mib(free));
    // Finished runs are the only data that this program can do without. The disk may be full of other data.
    let fix = "motor config set retention.bytes 100MiB";
    if free < RESERVE_BYTES {
        let message = format!("{message}: below the reserve of {} MiB nothing is stored", in_mib(RESERVE_BYTES));
        DISK.problem(message, fix)
    } else if free < LOW_ROOM_BYTES {
        DISK.warning(format!("{message} on the disk of the home"), fix)
    } else {
        DISK.ok(message)
    }
}

/// Every record of a run, read once, and the newest time that is stored.
fn records(home: &Home, store: &Store) -> (Finding, Option<Timestamp>) {
    let read = || -> Result<(Finding, Option<Timestamp>), store::StoreError> {
        let live = store.scan::<IgnoredAny>(Table::Live, &Scan::all())?;
        let records = store.scan_each::<RunRecord>(Table::Runs, &Scan::all())?;
        let newest = newest(store, records.iter().filter_map(|(_, record)| record.as_ref().ok()));
        let problem = |message: String| Ok((STATE.problem(message, restore(home, "")), newest));
        let unreadable: Vec<_> = records.iter().filter_map(|(_, record)| record.as_ref().err()).collect();
        if let Some(first) = unreadable.first() {
            let count = unreadable.len();
            return problem(format!("{count} of {} records of runs cannot be used; the first: {first}", records.len()));
        }
        let lost = live.iter().find(|(key, _)| records.binary_search_by(|(other, _)| other.cmp(key)).is_err());
        if let Some((key, _)) = lost {
            return problem(format!("the run `{}` is listed as unfinished and has no record", key.escape_ascii()));
        }
        let count = |count: usize| if count == 1 { "1 run".to_owned() } else { format!("{count} runs") };
        Ok((STATE.ok(format!("complete: {}, {} unfinished", count(records.len()), live.len())), newest))
    };
    read().unwrap_or_else(|error| (STATE.problem(error.to_string(), restore(home, "")), None))
}

/// The newest time of runs and signals. Unreadable ones are reported elsewhere.
fn newest<'a>(store: &Store, records: impl Iterator<Item = &'a RunRecord>) -> Option<Timestamp> {
    let times = |record: &RunRecord| [Some(record.created_at), record.started_at, record.completed_at];
    let latest = store.scan::<Signal>(Table::Signals, &Scan::all().newest_first().limit(1)).unwrap_or_default();
    let signalled = latest.first().map(|(_, signal)| signal.created_at);
    records.flat_map(times).flatten().chain(signalled).max()
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
    USAGE.ok(message)
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
            // An act that is being prepared has a directory and no record yet: a host can tell.
            findings.push(RUNS.warning(message, "motor serve"));
        }
        Err(refusal) => findings.push(RUNS.refused(refusal, restore(home, "runs"))),
    }
    let live = store.scan::<base::RunId>(Table::Live, &Scan::all()).unwrap_or_default();
    let without: Vec<_> = live.iter().filter(|(_, run)| !home.workspace(run).is_dir()).collect();
    if let Some((_, first)) = without.first() {
        let message = format!("{} unfinished runs have lost their workspace; the first: `{first}`", without.len());
        findings.push(RUNS.problem(message, format!("motor task cancel {first}")));
    }
    findings
}

/// The key of the vault, and each credential opened with it.
fn credentials(home: &Home, vault: &Vault) -> Vec<Finding> {
    let warnings = vault.warnings().into_iter();
    let mut findings: Vec<_> = warnings.map(|warning| CREDENTIALS.finding(Severity::Warning, warning, None)).collect();
    let finding = match vault.check().and_then(|()| vault.list()) {
        Err(refusal) => CREDENTIALS.refused(refusal, restore(home, "config")),
        Ok(credentials) => match credentials.iter().find(|credential| credential.unreadable) {
            Some(credential) => {
                let message = format!("credential `{}` cannot be read", credential.name);
                CREDENTIALS.problem(message, format!("motor credential set {}", credential.name))
            }
            None => CREDENTIALS.ok(format!("{} set, all of them readable", credentials.len())),
        },
    };
    findings.push(finding);
    findings
}
