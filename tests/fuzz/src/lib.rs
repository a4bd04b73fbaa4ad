//! The targets of the fuzzer: one function for each parser of bytes from outside. A function panics only if the parser does,
//! or breaks a rule that the function states.
//!
//! The seeds are in `corpus/<target>`, a file for each input. `tests/it/fuzzed.rs` runs all of them, and
//! `cargo xtask fuzz` starts from them.
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a broken rule is reported by a panic")]

mod components;
mod models;
mod network;
mod skills;

use std::path::PathBuf;

/// Runs a parser on an input.
pub type Target = fn(&[u8]);

/// The targets, by the names of their directories in the corpus.
pub const TARGETS: [(&str, Target); 15] = [
    ("archive", skills::archive),
    ("arguments", models::arguments),
    ("events", models::events),
    ("headers", network::headers),
    ("inspect", components::inspect),
    ("manifest", skills::manifest),
    ("pattern", network::pattern),
    ("policy", skills::policy),
    ("reasoning", models::reasoning),
    ("receipt", components::receipt),
    ("shape", network::shape),
    ("shown", models::shown),
    ("target", network::target),
    ("text-calls", models::text_calls),
    ("wit-values", components::wit_values),
];

/// The target with this name.
#[must_use]
pub fn find(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// The directory of the seeds.
#[must_use]
pub fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

/// The text of an input; `None` if it is not UTF-8, which the parsers of text never see.
fn text(bytes: &[u8]) -> Option<&str> {
    std::str::from_utf8(bytes).ok()
}

/// The two parts of an input, which are separated by its first NUL.
fn parts(bytes: &[u8]) -> Option<(&str, &str)> {
    text(bytes)?.split_once('\0')
}
