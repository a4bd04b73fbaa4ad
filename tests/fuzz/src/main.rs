//! The fuzzer: one program for all targets, so that the engine of components is linked once. `MOTOR_FUZZ_TARGET` names
//! the target; the arguments are those of libFuzzer.
#![no_main]
#![allow(clippy::disallowed_methods, clippy::expect_used, reason = "a program of the tests")]

use std::sync::OnceLock;

use fuzz::{Target, find};
use libfuzzer_sys::fuzz_target;

static TARGET: OnceLock<Target> = OnceLock::new();

fn target() -> Target {
    *TARGET.get_or_init(|| {
        let name = std::env::var("MOTOR_FUZZ_TARGET").unwrap_or_default();
        find(&name).expect("`MOTOR_FUZZ_TARGET` names a target: run `cargo xtask fuzz`")
    })
}

fuzz_target!(init: target(), |bytes: &[u8]| target()(bytes));
