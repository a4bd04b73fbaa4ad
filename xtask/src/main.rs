//! The project's own commands: `cargo xtask setup|guests|toolchains|conformance|test|demo|ci|bench|fuzz|dependencies|
//! tidy|ratchet`.
//!
//! It depends on next to nothing, so that it runs within seconds of a fresh clone, before anything heavy is built. It
//! knows how the parts are built and checked, but not how they work.
#![allow(clippy::print_stdout, reason = "a command speaks to its user")]

use anyhow::{Result, bail};

mod dependencies;
mod fuzz;
mod guests;
mod place;
mod process;
mod ratchet;
mod requirements;
mod setup;
mod stamp;
mod tidy;
mod toolchains;

use place::Place;
use process::cargo;
use setup::Installing;

const USAGE: &str = "\
usage: `cargo xtask COMMAND [--no-install]`

  setup          install the prerequisites of build and tests, or name them
  guests         build the components that run in the sandbox, where their sources changed
  toolchains     build components with the toolchains of other languages, for the tests; unavailable ones are skipped
  conformance    the conformance suite of the Model Context Protocol, against the fixture server and the program
  test           setup, guests, and every test
  demo [ARGS]    setup, guests, and the demonstration: no key and no network needed
  bench [ARGS]   setup, guests, and the benchmarks, optimised
  fuzz [TARGET]  ten minutes of fuzzing the parsers of bytes from outside, or one of them
  dependencies   licences, sources, duplicates, advisories and unused ones of other people's crates
  tidy           check the house rules that no compiler checks
  ratchet        record figures about comments that have fallen, and print them by crate
  ci             formatting, tidy, lints and tests: everything that has to pass

As root on Debian, setup installs missing packages, after it has named each with its use; elsewhere, and with
`--no-install`, it only names them.";

/// The option that keeps the machine as it is.
const NO_INSTALL: &str = "--no-install";

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
        "toolchains" => setup::ensure(installing).and_then(|()| toolchains::build(&place)),
        "conformance" => conformance(&place),
        "test" => test(&place),
        "demo" => {
            prepare(&place)?;
            // With the features of the whole workspace, as the tests are built: else each would rebuild the other's.
            cargo(&place.root).args(["build", "--workspace", "--bin", "motor"]).run()?;
            process::command(place.target.join("debug/motor")).args(["demo"]).args(rest).run()
        }
        "bench" => {
            prepare(&place)?;
            // Some benchmarks start the product.
            cargo(&place.root).args(["build", "--release", "--workspace", "--bins"]).run()?;
            process::command(place.target.join("release/bench")).args(rest).run()
        }
        "fuzz" => fuzz::run(&place, rest),
        "dependencies" => dependencies::check(&place),
        "tidy" => tidy::check(&place.root),
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
    cargo(&place.root).args(["test", "--workspace"]).run()?;
    place.guest_cargo().args(["test", "--workspace"]).run()
}

fn ci(place: &Place) -> Result<()> {
    cargo(&place.root).args(["fmt", "--all", "--check"]).run()?;
    place.guest_cargo().args(["fmt", "--all", "--check"]).run()?;
    tidy::check(&place.root)?;
    prepare(place)?;
    cargo(&place.root).args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    place.guest_cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]).run()?;
    toolchains::build(place)?;
    dependencies::check_if_installed(place)?;
    test(place)
}
