//! Support for the integration tests and the benchmarks: where built things are, and servers to test against.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stdout,
    reason = "support of tests"
)]

pub mod binary;
pub mod mcp_fixture;
pub mod model_server;
pub mod network;
pub mod obedient;
pub mod parked;
mod patience;
pub mod watching;

use std::future::Future;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use tokio::runtime::Runtime;

pub use patience::{AT_ONCE, MAX_WAIT, Patience};

/// The directory cargo builds into: above this program, under any name.
///
/// # Panics
/// If this program was not built by cargo.
#[must_use]
pub fn target_directory() -> PathBuf {
    let program = std::env::current_exe().expect("this program has a path");
    let built = program.ancestors().find(|directory| directory.join("guests").is_dir());
    built.expect("guests are built beside the profile: run `cargo xtask guests`").to_owned()
}

/// A guest of the tests, by name.
///
/// # Panics
/// If it was not built.
#[must_use]
pub fn hostile_guest(name: &str) -> Vec<u8> {
    let path = target_directory().join("guests/hostile").join(name).with_extension("wasm");
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}: run `cargo xtask guests`", path.display()))
}

/// The bytes of a bundled component, by name.
///
/// # Panics
/// If the program was built without it.
#[must_use]
pub fn bundled(name: &str) -> Vec<u8> {
    toolbox::unpack(bundled::component(name).expect("run `cargo xtask guests`")).expect("a packed component")
}

/// Where tests cache compiled components: kept between runs, because compiling is most of their time.
#[must_use]
pub fn cache() -> PathBuf {
    target_directory().join("test-cache")
}

/// Prints a line that is read even if the test passes: how much of it ran here, and why the rest was skipped. The harness hides
/// `println!` of passing tests.
pub fn report(line: &str) {
    writeln!(std::io::stderr(), "{line}").unwrap_or_default();
}

/// Runs a future on the one executor of the tests: an engine's sandboxes may outlive a test.
///
/// # Panics
/// If the executor does not start.
pub fn block_on<F: Future>(future: F) -> F::Output {
    static EXECUTOR: OnceLock<Runtime> = OnceLock::new();
    let executor = EXECUTOR.get_or_init(|| {
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("an executor")
    });
    executor.block_on(future)
}
