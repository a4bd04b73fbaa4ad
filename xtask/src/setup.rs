//! The programs the build needs beside the Rust toolchain: its WebAssembly targets, and a C compiler for the JavaScript
//! engine.
//!
//! Quick if nothing is missing. Programs that cannot be installed from here are named with the command that does it.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::process::command;

/// `wasm32-wasip2` is for tools, `wasm32-unknown-unknown` for the engine that imports nothing.
const TARGETS: [&str; 2] = ["wasm32-wasip2", "wasm32-unknown-unknown"];

/// A program, how it tells its version, and the Debian package it is in.
type Program = (&'static str, &'static str, &'static str);

/// The programs that build the engine's C sources.
const TO_BUILD: [Program; 2] = [("clang", "--version", "clang"), ("ar", "--version", "binutils")];

/// The programs that the shell is compared with, that give tests a network or a terminal of their own, that unpack old
/// homes, and that run the examples of the documentation.
const TO_TEST: [Program; 8] = [
    ("jq", "--version", "jq"),
    ("column", "--version", "bsdextrautils"),
    ("ip", "-Version", "iproute2"),
    ("unshare", "--version", "util-linux"),
    ("setsid", "--version", "util-linux"),
    ("tar", "--version", "tar"),
    ("gzip", "--version", "gzip"),
    ("python3", "--version", "python3"),
];

/// Installs missing parts, or names the command that does.
///
/// # Errors
/// If a part is missing that could not be installed.
pub fn ensure() -> Result<()> {
    ensure_targets()?;
    ensure_programs(&TO_BUILD)
}

/// The same for the programs that only tests use.
///
/// # Errors
/// If a program is missing that could not be installed.
pub fn ensure_for_tests() -> Result<()> {
    ensure_programs(&TO_TEST)
}

fn ensure_targets() -> Result<()> {
    let sysroot = command("rustc").args(["--print", "sysroot"]).output().context("cannot run `rustc`")?;
    let libraries = Path::new(&sysroot).join("lib/rustlib");
    let missing: Vec<&str> =
        TARGETS.into_iter().filter(|target| !libraries.join(target).join("lib").exists()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    println!("installing the targets {}", missing.join(" and "));
    command("rustup")
        .args(["target", "add"])
        .args(&missing)
        .run()
        .with_context(|| format!("install the targets by hand: `rustup target add {}`", missing.join(" ")))
}

fn ensure_programs(programs: &[Program]) -> Result<()> {
    let missing: Vec<&str> = programs
        .iter()
        .filter(|(program, version, _)| command(program).args([version]).output().is_none())
        .map(|(.., package)| *package)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let by_hand = format!("apt-get update && apt-get install --yes --no-install-recommends {}", missing.join(" "));
    if !may_install_packages() {
        bail!("{} is missing: install it (as root: `{by_hand}`)", missing.join(" and "));
    }
    println!("installing {}", missing.join(" and "));
    command("apt-get").args(["update", "--quiet"]).run()?;
    command("apt-get")
        .args(["install", "--yes", "--quiet", "--no-install-recommends"])
        .args(&missing)
        .env("DEBIAN_FRONTEND", "noninteractive")
        .run()
        .with_context(|| format!("install it by hand: `{by_hand}`"))
}

fn may_install_packages() -> bool {
    command("id").args(["-u"]).output().as_deref() == Some("0")
        && command("apt-get").args(["--version"]).output().is_some()
}
