//! The project's own commands: `cargo xtask setup|guests|toolchains|conformance|test|demo|ci|bench|fuzz|dependencies|
//! tidy|docs|ratchet`.
//!
//! It depends on next to nothing, so that it runs within seconds of a fresh clone, before anything heavy is built. It
//! knows how the parts are built and checked, but not how they work.
#![allow(clippy::print_stdout, reason = "a command speaks to its user")]

use std::ffi::OsString;
use std::num::NonZero;

use anyhow::{Result, bail};

mod dependencies;
mod fuzz;
mod guests;
mod place;
mod process;
mod python;
mod ratchet;
mod requirements;
mod setup;
mod stamp;
mod tidy;
mod toolchains;

use place::Place;
use process::{Command, cargo};
use setup::Installing;

const USAGE: &str = "\
usage: `cargo xtask COMMAND [--no-install]`

  setup          install the prerequisites of build and tests, or name them
  guests         build the components that run in the sandbox, where their sources changed
  python         build the engines for programs in Python, for the next build of the program
  toolchains     build components with the toolchains of other languages, for the tests; unavailable ones are skipped
  conformance    the conformance suite of the Model Context Protocol, against the fixture server and the program
  test           setup, guests, and every test
  demo [ARGS]    setup, guests, and the demonstration: no key and no network needed
  bench [ARGS]   setup, guests, and the benchmarks, optimised
  fuzz [TARGET]  ten minutes of fuzzing the parsers of bytes from outside, or one of them
  dependencies   licences, sources, duplicates, advisories and unused ones of other people's crates
  tidy           check the house rules that no compiler checks
  docs           write the reference in `docs/wit.md` from the comments of the WIT
  ratchet        record figures about comments that have fallen, and print them by crate
  ci             formatting, tidy, lints and tests: everything that has to pass

As root on Debian, setup installs missing packages, after it has named each with its use; elsewhere, and with
`--no-install`, it only names them.";

/// The option that keeps the machine as it is.
const NO_INSTALL: &str = "--no-install";

/// The feature with the benchmarks.
const BENCHMARKS: &str = "tests/bench";

/// The variable that tells test programs how many tests to run at once.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

fn main() -> Result<()> {
    let mut arguments: Vec<String> = std::env::args().skip(1).collect();
    let given = arguments.len();
    arguments.retain(|argument| argument != NO_INSTALL);
    let installing = if arguments.len() < given { Installing::Forbidden } else { Installing::Allowed };
    let Some((command, rest)) = arguments.split_first() else { bail!("{USAGE}") };
    let place = Place::find(installing)?;
    if !matches!(command.as_str(), "demo" | "bench" | "fuzz") && !rest.is_empty() {
        bail!("`{command}` takes no arguments\n{USAGE}");
    }
    match command.as_str() {
        "setup" => setup::ensure(installing).and_then(|()| setup::ensure_for_tests(installing)),
        "guests" => prepare(&place),
        "python" => setup::ensure(installing).and_then(|()| python::build(&place)),
        "toolchains" => setup::ensure(installing).and_then(|()| toolchains::build(&place)),
        "conformance" => conformance(&place),
        "test" => test(&place),
        "demo" => {
            setup::ensure(place.installing)?;
            guests::build_bundled(&place)?;
            // With the features of the whole workspace, as the tests are built: else each would rebuild the other's.
            cargo(&place.root).args(["build", "--workspace", "--bin", "motor"]).run()?;
            process::command(place.target.join("debug/motor")).args(["demo"]).args(rest).run()
        }
        "bench" => {
            prepare(&place)?;
            // Some benchmarks start the product.
            cargo(&place.root).args(["build", "--release", "--workspace", "--bins", "--features", BENCHMARKS]).run()?;
            process::command(place.target.join("release/bench")).args(rest).run()
        }
        "fuzz" => fuzz::run(&place, rest),
        "dependencies" => dependencies::check(&place),
        "tidy" => tidy::check(&place.root),
        "docs" => guests::write_reference(&place),
        "ratchet" => ratchet::lower(&place.root),
        "ci" => ci(&place),
        "help" | "--help" | "-h" => {
            println!("{USAGE}");
            Ok(())
        }
        _ => bail!("there is no command `{command}`\n{USAGE}"),
    }
}

fn prepare(place: &Place) -> Result<()> {
    setup::ensure(place.installing)?;
    guests::build(place)
}

fn conformance(place: &Place) -> Result<()> {
    prepare(place)?;
    toolchains::require(place, "conformance")?;
    cargo(&place.root).args(["build", "--workspace", "--bins", "--tests"]).run()?;
    cargo(&place.root).args(["test", "--workspace", "--test", "it", "conformance::", "--", "--nocapture"]).run()
}

fn test(place: &Place) -> Result<()> {
    prepare(place)?;
    setup::ensure_for_tests(place.installing)?;
    // The tests run the real programs, and cargo builds programs for the tests of their own package only. With the tests,
    // so that both have the features of the tests' dependencies: else everything above tokio is built twice.
    cargo(&place.root).args(["build", "--workspace", "--bins", "--tests"]).run()?;
    cargo(&place.root).env(TEST_THREADS, test_threads()).args(["test", "--workspace"]).run()?;
    place.guest_cargo().args(["test", "--workspace"]).run()
}

/// Two tests for each processor: most wait for programs that they started.
fn test_threads() -> OsString {
    let twice = || std::thread::available_parallelism().map_or(2, NonZero::get).saturating_mul(2).to_string().into();
    std::env::var_os(TEST_THREADS).unwrap_or_else(twice)
}

/// Lints a workspace. Clippy compares its flags with those of the last time, so naming the checkout keeps a verdict about
/// another one, in the same target directory, from being taken for this one's.
fn lint(place: &Place, cargo: Command, features: &[&str]) -> Result<()> {
    let checkout = format!("checkout={:?}", place.root.to_string_lossy());
    let cargo = cargo.args(["clippy", "--workspace", "--all-targets"]).args(features);
    cargo.args(["--", "-D", "warnings", "--cfg", &checkout]).run()
}

fn ci(place: &Place) -> Result<()> {
    cargo(&place.root).args(["fmt", "--all", "--check"]).run()?;
    place.guest_cargo().args(["fmt", "--all", "--check"]).run()?;
    tidy::check(&place.root)?;
    prepare(place)?;
    lint(place, cargo(&place.root), &["--features", BENCHMARKS])?;
    lint(place, place.guest_cargo(), &[])?;
    toolchains::build(place)?;
    python::build_if_installed(place)?;
    dependencies::check_if_installed(place)?;
    test(place)
}
