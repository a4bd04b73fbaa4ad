//! Rules of the architecture that a machine can check: which crate may see which.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of the host.
const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host");

/// Every crate of the host with the crates of the host it may depend on. Lower crates never see higher ones; siblings
/// do not see each other.
const EDGES: [(&str, &[&str]); 18] = [
    ("base", &[]),
    ("store", &["base"]),
    ("llm", &["base"]),
    ("providers", &["base", "llm"]),
    ("energy", &["base", "store"]),
    ("signals", &["base", "store"]),
    ("vault", &["base", "store"]),
    ("consent", &["base", "store"]),
    ("network", &["base", "vault"]),
    ("receipts", &["base"]),
    ("skills", &["base", "receipts", "store"]),
    ("bindings", &[]),
    ("capabilities", &["bindings", "network", "vault"]),
    ("runtime", &["base", "bindings", "capabilities", "network"]),
    ("bundled", &[]),
    ("motor", &["base", "energy", "llm", "signals", "store"]),
    (
        "agent",
        &[
            "base",
            "bundled",
            "consent",
            "energy",
            "llm",
            "motor",
            "network",
            "providers",
            "receipts",
            "runtime",
            "signals",
            "skills",
            "store",
            "vault",
        ],
    ),
    (
        "interfaces",
        &["agent", "base", "consent", "llm", "motor", "network", "receipts", "runtime", "signals", "skills", "vault"],
    ),
];

/// Heavy or dangerous libraries, and the only crates that may see them.
const FENCES: [(&str, &[&str]); 12] = [
    ("wasmtime", &["bindings", "capabilities", "runtime"]),
    ("wasmtime-wasi", &["bindings", "capabilities", "runtime"]),
    ("wasmtime-wasi-http", &["capabilities"]),
    ("fjall", &["store"]),
    // The command line speaks HTTP to its own host, over a Unix socket.
    ("reqwest", &["providers"]),
    ("hyper", &["network", "interfaces"]),
    ("rustls", &["network"]),
    ("hickory-resolver", &["network"]),
    ("axum", &["interfaces"]),
    ("clap", &["interfaces"]),
    ("cap-std", &["agent"]),
    // Keys and signatures.
    ("aws-lc-rs", &["consent", "receipts", "vault"]),
];

/// Direct, non-development dependencies of each crate of the host.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version", "1", "--offline"])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    let of_host = packages.iter().filter(|package| package["manifest_path"].as_str().unwrap().contains("/host/"));
    of_host
        .map(|package| {
            let dependencies = package["dependencies"].as_array().unwrap().iter();
            let normal = dependencies.filter(|dependency| dependency["kind"].is_null());
            let names = normal.map(|dependency| dependency["name"].as_str().unwrap().to_owned()).collect();
            (package["name"].as_str().unwrap().to_owned(), names)
        })
        .collect()
}

#[test]
fn crates_depend_downwards_only() {
    let dependencies = dependencies();
    let named: BTreeSet<&str> = EDGES.iter().map(|(name, _)| *name).collect();
    let found: BTreeSet<&str> = dependencies.keys().map(String::as_str).collect();
    assert_eq!(named, found, "a crate is missing in this test, or gone");
    for (name, allowed) in EDGES {
        let ours = dependencies[name].iter().filter(|dependency| named.contains(dependency.as_str()));
        let forbidden: Vec<_> = ours.filter(|dependency| !allowed.contains(&dependency.as_str())).collect();
        assert!(forbidden.is_empty(), "`{name}` must not depend on {forbidden:?}");
    }
}

#[test]
fn heavy_libraries_stay_behind_their_fences() {
    for (library, allowed) in FENCES {
        for (name, dependencies) in dependencies() {
            let sees = dependencies.contains(library);
            assert!(!sees || allowed.contains(&name.as_str()), "`{name}` must not see `{library}`");
        }
    }
}

/// Every source file of the host.
fn sources() -> Vec<(PathBuf, String)> {
    let host = Path::new(HOST);
    let mut found = Vec::new();
    let mut directories: Vec<_> =
        std::fs::read_dir(host).unwrap().map(|entry| entry.unwrap().path().join("src")).collect();
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    assert!(found.len() > 100);
    found
}

/// A connection that some other code of the host made would pass no gate. (The command line reaches its own host by a Unix
/// socket, and models are reached through the HTTP client of `providers`.)
#[test]
fn only_the_gate_connects() {
    for (path, text) in sources() {
        let is_gate = path.starts_with(Path::new(HOST).join("network"));
        assert!(is_gate || !text.contains("TcpStream"), "{} connects by itself", path.display());
    }
}

/// Evidence of consent that some other code made would prove nothing about the owner.
#[test]
fn only_the_gate_gives_consent() {
    let mut made = 0;
    for (path, text) in sources() {
        let below = path.strip_prefix(HOST).unwrap();
        let is_test = below.components().any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs");
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let makes = !is_test && code.contains("Consent {");
        let is_type = path.ends_with("base/src/consent.rs");
        let is_gate = path.starts_with(Path::new(HOST).join("consent"));
        made += usize::from(makes && is_gate);
        assert!(is_gate || is_type || !makes, "{} consents by itself", path.display());
    }
    assert_eq!(made, 1, "the gate was not found");
}
