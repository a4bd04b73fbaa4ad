//! Finds the WIT of WASI in the version that the host links: it is part of the crate `wasmtime-wasi-http`, so that no copy of it is
//! kept here. `sdk.rs` embeds the files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

/// The crate of the host that brings the WIT of all of WASI.
const BRINGS: &str = "wasmtime-wasi-http";

fn main() {
    let directory = wasi().unwrap_or_else(|error| panic!("cannot find the WIT of WASI: {error}"));
    let mut names: Vec<String> = match fs::read_dir(&directory) {
        Ok(entries) => entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect(),
        Err(error) => panic!("cannot read `{}`: {error}", directory.display()),
    };
    names.sort();
    let line = |name: &String| format!("    ({name:?}, include_str!({:?})),\n", directory.join(name));
    let table = format!("&[\n{}]\n", names.iter().map(line).collect::<String>());
    let written = fs::write(Path::new(&variable("OUT_DIR")).join("wasi.rs"), table);
    written.unwrap_or_else(|error| panic!("cannot write the list of files: {error}"));
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../../Cargo.lock");
}

/// The directory of the WIT of WASI.
fn wasi() -> Result<PathBuf, String> {
    let mut metadata = Command::new(variable("CARGO"));
    metadata.args(["metadata", "--locked", "--format-version", "1", "--filter-platform"]).arg(variable("TARGET"));
    let output = metadata.output().map_err(|error| error.to_string())?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout).map_err(|error| error.to_string())?;
    let mut packages = metadata.get("packages").and_then(Value::as_array).into_iter().flatten();
    let text = |package: &'_ Value, field: &str| package.get(field).and_then(Value::as_str).map(str::to_owned);
    let found = packages.find(|package| text(package, "name").as_deref() == Some(BRINGS));
    let manifest = found.and_then(|package| text(package, "manifest_path"));
    manifest
        .map(|path| Path::new(&path).with_file_name("wit").join("deps"))
        .ok_or(format!("no dependency is `{BRINGS}`"))
}

#[expect(clippy::disallowed_methods, reason = "cargo's variables")]
fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|error| panic!("cargo sets `{name}`: {error}"))
}
