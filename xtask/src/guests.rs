//! Builds the guests into `guests/` of the target directory: the bundled ones there, those of the tests in `hostile/`.
//!
//! Skipped when the sources are those the existing components were made from. A component appears whole or not at all:
//! it is written beside its place and renamed.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

use crate::place::Place;
use crate::process::{cargo, command};
use crate::stamp::{self, Inputs};

/// Tools of the guest workspace: the crate, its directory, and the component's name.
const TOOLS: [(&str, &str, &str); 4] = [
    ("fetch", "fetch", "fetch"),
    ("bash", "bash", "bash"),
    ("files", "files", "files"),
    ("greeting", "examples/greeting", "greeting"),
];

/// What bundled guests are made of.
const BUNDLED_INPUTS: [&str; 4] = ["guest-tools", "wit", "xtask/preinit", "rust-toolchain.toml"];

/// What the guests of the tests are made of.
const HOSTILE_INPUTS: [&str; 4] = ["tests/guests", "guest-tools/sdk", "wit", "rust-toolchain.toml"];

/// Variables that change what is built.
const VARIABLES: [&str; 2] = ["CC_wasm32_unknown_unknown", "CFLAGS_wasm32_unknown_unknown"];

/// Builds what is not there or not fresh.
pub fn build(place: &Place) -> Result<()> {
    let guests = place.guests();
    fs::create_dir_all(guests.join("hostile")).with_context(|| format!("cannot create `{}`", guests.display()))?;
    // Two builds at once would take each other's files away.
    let lock = File::create(guests.join(".lock"))?;
    lock.lock().context("cannot lock the directory of the guests")?;
    let bundled = inputs(place, &BUNDLED_INPUTS)?;
    when_stale(&guests.join("bundled.stamp"), &bundled, || build_bundled(place))?;
    let hostile = inputs(place, &HOSTILE_INPUTS)?;
    when_stale(&guests.join("hostile/hostile.stamp"), &hostile, || build_hostile(place))
}

fn inputs(place: &Place, paths: &[&str]) -> Result<String> {
    let mut inputs = Inputs::default();
    for path in paths {
        inputs.path(&place.root, path)?;
    }
    for variable in VARIABLES {
        inputs.setting(variable, &std::env::var(variable).unwrap_or_default());
    }
    Ok(inputs.finish())
}

fn when_stale(stamp: &Path, inputs: &str, build: impl FnOnce() -> Result<Vec<String>>) -> Result<()> {
    if stamp::is_fresh(stamp, inputs) {
        return Ok(());
    }
    let outputs = build()?;
    for output in &outputs {
        println!("built {output}");
    }
    stamp::write(stamp, inputs, &outputs)
}

fn build_bundled(place: &Place) -> Result<Vec<String>> {
    let mut outputs = vec![build_code_js(place, "code-js", &[])?];
    outputs.push(build_code_js(place, "code-js-connected", &["--features", "connected"])?);
    for (package, directory, name) in TOOLS {
        if place.root.join("guest-tools").join(directory).join("Cargo.toml").exists() {
            place
                .guest_cargo()
                .args(["build", "--release", "--target", "wasm32-wasip2", "--package", package])
                .run()?;
            let built =
                place.guest_build().join("wasm32-wasip2/release").join(file_stem(package)).with_extension("wasm");
            outputs.push(install(&built, &place.guests(), name)?);
        }
    }
    Ok(outputs)
}

/// A build of the JavaScript engine, initialised here so that a call finds it ready. Without features it imports nothing.
/// Both builds leave their core module at the same place, so each is taken from there before the next.
fn build_code_js(place: &Place, name: &str, features: &[&str]) -> Result<String> {
    let target = "wasm32-unknown-unknown";
    place
        .guest_cargo()
        .args(["build", "--release", "--target", target, "--package", "code-js"])
        .args(features)
        .run()?;
    let core = place.guest_build().join(target).join("release/code_js.wasm");
    let component = place.guest_build().join(name).with_extension("component.wasm");
    // With the features of the whole workspace: else the engine in it would be built again for the host.
    cargo(&place.root).args(["build", "--workspace", "--bin", "preinit"]).run()?;
    command(place.target.join("debug/preinit"))
        .args([core.as_os_str(), component.as_os_str()])
        .args(["--init", "init"])
        .run()?;
    install(&component, &place.guests(), name)
}

fn build_hostile(place: &Place) -> Result<Vec<String>> {
    let workspace = place.root.join("tests/guests");
    if !workspace.join("Cargo.toml").exists() {
        return Ok(Vec::new());
    }
    let target = place.guest_build().join("hostile");
    let release = target.join("wasm32-wasip2/release");
    // Components of crates that are gone would be taken for built.
    for stale in components_in(&release)? {
        fs::remove_file(stale)?;
    }
    cargo(&workspace)
        .env("CARGO_TARGET_DIR", &target)
        .without_env("RUSTFLAGS")
        .args(["build", "--release", "--workspace", "--target", "wasm32-wasip2"])
        .run()?;
    let built = components_in(&release)?;
    if built.is_empty() {
        bail!("`tests/guests` built no component: its crates need `crate-type = [\"cdylib\"]`");
    }
    let hostile = place.guests().join("hostile");
    for stale in components_in(&hostile)? {
        fs::remove_file(stale)?;
    }
    built
        .iter()
        .map(|file| {
            let stem = file.file_stem().unwrap_or_default().to_string_lossy();
            install(file, &hostile, &stem.replace('_', "-"))
        })
        .collect()
}

/// Cargo names the file of a crate with underscores.
fn file_stem(package: &str) -> String {
    package.replace('-', "_")
}

/// Puts a component in its place. Returns its file name.
fn install(built: &Path, directory: &Path, name: &str) -> Result<String> {
    let file_name = format!("{name}.wasm");
    let beside = directory.join(format!(".{file_name}.new"));
    fs::copy(built, &beside).with_context(|| format!("the build left no `{}`", built.display()))?;
    fs::rename(&beside, directory.join(&file_name))?;
    Ok(file_name)
}

/// The components in a directory, sorted; none when there is no such directory.
fn components_in(directory: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "wasm") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}
