//! Attacks on time and the stack, and the ways to end badly.

use std::{hint::black_box, process, thread, time::Duration};

pub(crate) fn spin() -> String {
    let mut turns = 0_u64;
    loop {
        turns = black_box(turns.wrapping_add(1));
    }
}

/// `memory.fill` is one instruction at any length: where each instruction costs the same fuel, a host that looks
/// at its clock only when fuel is used up looks too seldom.
pub(crate) fn bulk_fill() -> String {
    let mut bytes = vec![0_u8; 32 * 1024 * 1024];
    let mut value = 0_u8;
    loop {
        value = value.wrapping_add(1);
        black_box(&mut bytes).fill(black_box(value));
    }
}

/// Sixteen times the same statement.
macro_rules! sixteen {
    ($statement:stmt) => {
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
        $statement;
    };
}

/// A host that counts branches sees one for thousands of divisions and roots here, each waiting for the one before.
pub(crate) fn straight_line() -> String {
    let mut number = black_box(1.5_f64);
    loop {
        sixteen!(sixteen!(sixteen!(number = 1.0 / (number + 1.5).sqrt())));
        sixteen!(sixteen!(sixteen!(number = 1.0 / (number + 2.5).sqrt())));
        number = black_box(number);
    }
}

pub(crate) fn recurse() -> String {
    descend(black_box(0)).to_string()
}

#[expect(unconditional_recursion, reason = "this is the attack")]
#[inline(never)]
fn descend(depth: u64) -> u64 {
    // The use of the result keeps the call from becoming a loop.
    black_box(descend(black_box(depth + 1))).wrapping_mul(3) + depth
}

pub(crate) fn trap() -> String {
    process::abort()
}

pub(crate) fn panic() -> String {
    std::panic::panic_any("a panic on purpose")
}

pub(crate) fn exit_zero() -> String {
    process::exit(0)
}

pub(crate) fn exit_three() -> String {
    process::exit(3)
}

pub(crate) fn sleeper() -> String {
    thread::sleep(Duration::from_secs(3_600));
    "slept for an hour".to_owned()
}
