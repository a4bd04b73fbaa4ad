//! The machine: the kernel's features that sandboxes rest on, and the clock.

use std::path::Path;

use base::Timestamp;
use rustix::process::{Resource, getrlimit};

use super::{Check, Finding};

const SANDBOX: Check = Check::new("sandbox", "sandbox");
const CLOCK: Check = Check::new("clock", "clock");

/// Files that a host with its sandboxes, connections and tables holds open at busy times.
const MIN_OPEN_FILES: u64 = 1_024;
/// 2025-01-01: this program did not exist before.
const EARLIEST: Timestamp = Timestamp::from_millis(1_735_689_600_000);
/// 2100-01-01: a clock beyond it was never set.
const LATEST: Timestamp = Timestamp::from_millis(4_102_444_800_000);
/// Milliseconds that a clock may be behind a stored time: corrections by a time server are smaller.
const TOLERANCE_MS: u64 = 60_000;

/// The kernel's features that sandboxes rest on.
pub(super) fn sandbox() -> Vec<Finding> {
    let fast = if runtime::engine::pagemap_scan() {
        "the kernel finds touched pages (PAGEMAP_SCAN): sandboxes start at full speed"
    } else {
        "the kernel does not offer PAGEMAP_SCAN (Linux 6.7): a sandbox start costs some page faults more"
    };
    let overcommit = std::fs::read_to_string("/proc/sys/vm/overcommit_memory").ok();
    let limits = Limits {
        address_space: getrlimit(Resource::As).current,
        open_files: getrlimit(Resource::Nofile).current,
        overcommit: overcommit.and_then(|text| text.trim().parse().ok()),
        has_own_program: Path::new("/proc/self/exe").exists(),
    };
    let mut findings = vec![SANDBOX.ok(fast)];
    findings.extend(limits.findings());
    findings
}

/// The limits of this process. `None` is unlimited, or unknown.
struct Limits {
    /// Bytes of address space.
    address_space: Option<u64>,
    open_files: Option<u64>,
    /// The kernel's rule for memory that is reserved and not used: 2 counts it.
    overcommit: Option<u8>,
    /// Whether this program can start itself, as it does to compile untrusted components.
    has_own_program: bool,
}

impl Limits {
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        if let Some(bytes) = self.address_space {
            let message = format!(
                "this process may have {} MiB of address space: each sandbox reserves some GiB of it, and uses little",
                bytes >> 20
            );
            findings.push(SANDBOX.warning(message, "ulimit -v unlimited"));
        }
        if self.overcommit == Some(2) {
            let message =
                "the kernel counts memory that is only reserved (`vm.overcommit_memory` is 2): sandboxes may not start";
            findings.push(SANDBOX.warning(message, "sudo sysctl vm.overcommit_memory=0"));
        }
        if let Some(files) = self.open_files.filter(|files| *files < MIN_OPEN_FILES) {
            let message = format!("this process may hold {files} files open: a busy host needs {MIN_OPEN_FILES}");
            findings.push(SANDBOX.warning(message, format!("ulimit -n {MIN_OPEN_FILES}")));
        }
        if !self.has_own_program {
            let message =
                "/proc is not there: untrusted components are compiled only if this program's file stays in its place";
            findings.push(SANDBOX.warning(message, "sudo mount -t proc proc /proc"));
        }
        findings
    }
}

/// The clock, compared with the newest time that the home has stored.
pub(super) fn clock(now: Timestamp, newest: Option<Timestamp>) -> Finding {
    let fix = "sudo timedatectl set-ntp true";
    if !(EARLIEST..LATEST).contains(&now) {
        return CLOCK.problem(format!("it is {now} by the clock of this machine, which cannot be"), fix);
    }
    match newest {
        Some(newest) if now.as_millis().saturating_add(TOLERANCE_MS) < newest.as_millis() => {
            let message = format!("it is {now} by the clock of this machine, and this home has an event of {newest}");
            CLOCK.problem(message, fix)
        }
        _ => CLOCK.ok(format!("it is {now}, after all events of this home")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::Severity;
    use super::*;

    #[test]
    fn a_clock_that_cannot_be_right_is_a_problem() {
        let (day, now) = (86_400_000, 1_800_000_000_000);
        for (now, newest, expected) in [
            (now, None, Severity::Ok),
            (now, Some(now - day), Severity::Ok),
            (now, Some(now + 59_000), Severity::Ok),
            (now, Some(now + 61_000), Severity::Problem),
            (0, None, Severity::Problem),
            (EARLIEST.as_millis() - 1, None, Severity::Problem),
            (EARLIEST.as_millis(), None, Severity::Ok),
            (LATEST.as_millis(), Some(now), Severity::Problem),
        ] {
            let finding = clock(Timestamp::from_millis(now), newest.map(Timestamp::from_millis));
            assert_eq!(finding.status, expected, "{finding:?}");
            assert_eq!(finding.fix.is_some(), expected == Severity::Problem);
        }
    }

    #[test]
    fn each_limit_that_sandboxes_run_into_is_named() {
        let good =
            || Limits { address_space: None, open_files: Some(4_096), overcommit: Some(0), has_own_program: true };
        assert_eq!(good().findings(), []);
        for (limits, words) in [
            (Limits { address_space: Some(1 << 30), ..good() }, "1024 MiB of address space"),
            (Limits { overcommit: Some(2), ..good() }, "vm.overcommit_memory"),
            (Limits { open_files: Some(256), ..good() }, "256 files"),
            (Limits { has_own_program: false, ..good() }, "/proc"),
        ] {
            let findings = limits.findings();
            assert_eq!(findings.len(), 1, "{words}");
            assert!(findings[0].message.contains(words) && findings[0].fix.is_some(), "{findings:?}");
        }
    }
}
