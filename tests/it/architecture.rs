//! Rules of the architecture that a machine can check: which crate and which file may see which.

mod imports;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The crates of the host.
const HOST: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../host");

/// Every crate of the host with the crates of the host it may depend on. Lower crates never see higher ones; siblings
/// do not see each other.
const EDGES: [(&str, &[&str]); 30] = [
    ("base", &[]),
    ("seal", &[]),
    ("store", &["base"]),
    ("llm", &["base"]),
    ("providers", &["base", "llm"]),
    ("energy", &["base", "store"]),
    ("signals", &["base", "store"]),
    ("ledger", &["base", "store"]),
    ("cortex", &["base", "ledger", "store"]),
    ("cognition", &["base", "consent", "ledger", "llm", "signals", "store"]),
    ("neurons", &["base", "signals", "store"]),
    ("vault", &["base", "seal", "store"]),
    ("consent", &["base", "seal", "store"]),
    ("network", &["base", "vault"]),
    ("receipts", &["base"]),
    ("skills", &["base", "consent", "receipts", "store"]),
    ("layer", &["base"]),
    ("repository", &["base"]),
    ("landing", &["base", "layer", "receipts", "repository"]),
    ("authoring", &["base", "skills"]),
    ("bindings", &[]),
    ("capabilities", &["base", "bindings", "layer", "network", "vault"]),
    ("runtime", &["base", "bindings", "capabilities", "network"]),
    ("bundled", &[]),
    ("grants", &["base", "network", "skills"]),
    ("deliveries", &["base", "network", "signals", "store", "vault"]),
    ("motor", &["base", "consent", "energy", "grants", "llm", "signals", "store"]),
    ("toolbox", &["base", "bundled", "grants", "layer", "llm", "motor", "network", "runtime", "store"]),
    (
        "agent",
        &[
            "base",
            "bundled",
            "cognition",
            "consent",
            "cortex",
            "deliveries",
            "energy",
            "grants",
            "landing",
            "layer",
            "ledger",
            "llm",
            "motor",
            "network",
            "neurons",
            "providers",
            "receipts",
            "repository",
            "runtime",
            "signals",
            "skills",
            "store",
            "toolbox",
            "vault",
        ],
    ),
    (
        "interfaces",
        &[
            "agent",
            "authoring",
            "base",
            "cognition",
            "consent",
            "cortex",
            "grants",
            "ledger",
            "llm",
            "motor",
            "network",
            "neurons",
            "receipts",
            "runtime",
            "signals",
            "skills",
            "vault",
        ],
    ),
];

/// Heavy or dangerous libraries, and the only crates that may see them.
const FENCES: [(&str, &[&str]); 18] = [
    ("wasmtime", &["bindings", "capabilities", "runtime"]),
    ("wasmtime-wasi", &["bindings", "capabilities", "runtime"]),
    ("wasmtime-wasi-http", &["capabilities"]),
    ("fjall", &["store"]),
    ("gix", &["repository"]),
    // The command line speaks HTTP to its own host, over a Unix socket.
    ("reqwest", &["providers"]),
    ("hyper", &["network", "interfaces"]),
    ("rustls", &["network"]),
    ("hickory-resolver", &["network"]),
    ("axum", &["interfaces"]),
    ("clap", &["interfaces"]),
    ("rmcp", &["interfaces"]),
    ("maud", &["interfaces"]),
    ("cap-std", &["agent", "toolbox"]),
    // Keys and signatures.
    ("aws-lc-rs", &["consent", "receipts", "vault"]),
    // Encryption at rest.
    ("argon2", &["seal"]),
    ("chacha20poly1305", &["seal"]),
    ("rand", &["base", "seal"]),
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
    let mut directories: Vec<_> = EDGES.iter().map(|(name, _)| host.join(name).join("src")).collect();
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

/// Circles of more than two files, by crate and number of files, largest first. Files in one can only be read all at once: no crate
/// gets another or a larger one, and a smaller one is written here.
const CIRCLES: [(&str, &[usize]); 7] = [
    ("agent", &[5]),
    ("cognition", &[16]),
    ("interfaces", &[6, 3]),
    ("layer", &[3]),
    ("motor", &[27]),
    ("runtime", &[15]),
    ("skills", &[4, 3]),
];

#[test]
fn circles_of_files_that_use_one_another_do_not_grow() {
    let sources = sources();
    for (name, _) in EDGES {
        let source = Path::new(HOST).join(name).join("src");
        let files = sources.iter().filter_map(|(path, text)| {
            let within = path.strip_prefix(&source).ok()?;
            let is_code = !within.iter().any(|part| part == "tests" || part == "tests.rs");
            is_code.then_some((path.as_path(), text.as_str()))
        });
        let files: Vec<(&Path, &str)> = files.collect();
        assert!(!files.is_empty(), "`{name}` has no files below {}", source.display());
        let circles = imports::circles(&source, &files);
        let mut sizes: Vec<usize> = circles.iter().map(Vec::len).collect();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let known = CIRCLES.iter().find(|(known, _)| *known == name).map_or(&[][..], |(_, sizes)| sizes);
        assert_eq!(sizes, known, "`{name}`: {circles:?}");
    }
}

/// Calls that other systems lack, and the files to replace on a host for one of those.
const LINUX_CALLS: [&str; 6] = ["inotify::", "eventfd(", "openat2(", "statx(", "syncfs(", "OFlags::PATH"];
const LINUX_FILES: [&str; 7] = [
    "landing/src/stage.rs",
    "layer/src/layer.rs",
    "layer/src/tree.rs",
    "repository/src/write.rs",
    "skills/src/install.rs",
    "skills/src/library/inbox.rs",
    "skills/src/library/watch.rs",
];

#[test]
fn calls_that_only_linux_has_stay_in_a_few_files() {
    let calls = |text: &str| LINUX_CALLS.iter().any(|call| text.contains(call));
    let found: BTreeSet<_> = sources().into_iter().filter(|(_, text)| calls(text)).map(|(path, _)| path).collect();
    let named: BTreeSet<_> = LINUX_FILES.iter().map(|file| Path::new(HOST).join(file)).collect();
    assert_eq!(found, named);
}
