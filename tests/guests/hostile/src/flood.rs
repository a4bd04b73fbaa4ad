//! Attacks by calling the host too often or with too much.

use std::{hint::black_box, io::Write as _, time::Instant};

use motor_sdk::{log, progress};

const MIB: usize = 1024 * 1024;

pub(crate) fn log_lines() -> String {
    loop {
        log::info("a line of no interest");
    }
}

pub(crate) fn log_bytes() -> String {
    log::info(&"x".repeat(60 * MIB));
    "logged 60 MiB".to_owned()
}

pub(crate) fn progress_reports() -> String {
    loop {
        progress::report("working", Some(0.5));
    }
}

pub(crate) fn progress_bytes() -> String {
    progress::report(&"x".repeat(60 * MIB), Some(f32::NAN));
    "reported 60 MiB".to_owned()
}

pub(crate) fn clock_calls() -> String {
    loop {
        black_box(Instant::now());
    }
}

pub(crate) fn stdout() -> String {
    let line = "y".repeat(1_000);
    let mut failures = 0_u64;
    loop {
        // Going on after a refusal is part of the attack.
        failures += u64::from(writeln!(std::io::stdout(), "{line}").is_err());
        black_box(failures);
    }
}

pub(crate) fn stderr() -> String {
    let line = "y".repeat(1_000);
    let mut failures = 0_u64;
    loop {
        failures += u64::from(writeln!(std::io::stderr(), "{line}").is_err());
        black_box(failures);
    }
}

pub(crate) fn random() -> String {
    loop {
        random_bytes(64 * 1024);
    }
}

pub(crate) fn random_huge() -> String {
    random_bytes(1 << 40);
    "REACHED a terabyte of random bytes".to_owned()
}

fn random_bytes(count: u64) {
    black_box(wasip2::random::random::get_random_bytes(count));
}
