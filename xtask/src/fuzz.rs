//! Fuzzing the parsers of `tests/fuzz`, on stable Rust: crates of the workspace are compiled with LLVM's counters
//! (`tests/fuzz/rustc.sh`), and one program runs libFuzzer for each target in turn.
//!
//! Inputs that reach new code are kept in `fuzz/corpus` of the target directory, for the next time. An input that breaks
//! a target is kept in `fuzz/findings` and named with the command that repeats it.

use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::place::Place;
use crate::process::{cargo, command};

/// Seconds for all targets together, if `MOTOR_FUZZ_SECONDS` does not say otherwise.
const SECONDS: u64 = 600;
/// The longest input, in bytes: parsers have no further rules beyond.
const MAX_BYTES: &str = "16384";
/// The longest run of one input, in seconds: beyond it is a finding.
const MAX_INPUT_SECONDS: &str = "10";

/// Runs one target, or each of them for an equal part of the time.
///
/// # Errors
/// If a target does not exist, or an input broke one.
pub fn run(place: &Place, names: &[String]) -> Result<()> {
    let seeds = place.root.join("tests/fuzz/corpus");
    let known = directories(&seeds)?;
    if let Some(unknown) = names.iter().find(|name| !known.contains(name)) {
        bail!("there is no fuzz target `{unknown}`: there are {}", known.join(", "));
    }
    cargo(&place.root)
        .env("RUSTC_WORKSPACE_WRAPPER", place.root.join("tests/fuzz/rustc.sh"))
        .args(["build", "--workspace", "--bin", "fuzz", "--features", "fuzz/engine"])
        .run()?;
    let seconds = match std::env::var("MOTOR_FUZZ_SECONDS") {
        Ok(text) => text.parse().context("`MOTOR_FUZZ_SECONDS` is a number of seconds")?,
        Err(_) => SECONDS,
    };
    let names = if names.is_empty() { &known } else { names };
    let each = seconds.div_ceil(u64::try_from(names.len().max(1))?);
    let broken: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| !passes(place, &seeds, name, each)).collect();
    if !broken.is_empty() {
        let findings = place.target.join("fuzz/findings");
        bail!(
            "inputs broke {}: they are in `{}`; repeat one with `MOTOR_FUZZ_TARGET={} {} FILE`, and keep it in \
             `tests/fuzz/corpus` once it is repaired",
            broken.join(", "),
            findings.display(),
            broken.first().copied().unwrap_or_default(),
            place.target.join("debug/fuzz").display(),
        );
    }
    println!("{} targets passed, {each} s each", names.len());
    Ok(())
}

/// Fuzzes one target, from its seeds and the inputs of earlier times.
fn passes(place: &Place, seeds: &Path, name: &str, seconds: u64) -> bool {
    println!("fuzzing `{name}` for {seconds} s");
    match fuzz(place, seeds, name, seconds) {
        Ok(()) => true,
        Err(error) => {
            println!("`{name}`: {error:#}");
            false
        }
    }
}

fn fuzz(place: &Place, seeds: &Path, name: &str, seconds: u64) -> Result<()> {
    let all = place.target.join("fuzz");
    let (corpus, findings) = (all.join("corpus").join(name), all.join("findings"));
    fs::create_dir_all(&corpus)?;
    fs::create_dir_all(&findings)?;
    command(place.target.join("debug/fuzz"))
        .env("MOTOR_FUZZ_TARGET", name)
        .args([
            format!("-max_total_time={seconds}"),
            format!("-max_len={MAX_BYTES}"),
            format!("-timeout={MAX_INPUT_SECONDS}"),
            format!("-artifact_prefix={}/{name}-", findings.display()),
            "-print_final_stats=1".to_owned(),
            "-verbosity=0".to_owned(),
        ])
        .args([&corpus, &seeds.join(name)])
        .run()?;
    println!(
        "`{name}`: {} seeds, {} further inputs kept",
        fs::read_dir(seeds.join(name))?.count(),
        fs::read_dir(corpus)?.count()
    );
    Ok(())
}

/// The names of the directories in a directory, sorted.
fn directories(parent: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(parent).with_context(|| format!("cannot read `{}`", parent.display()))? {
        let entry = entry?;
        if entry.path().is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
