//! Builds of this crate with and without guests, by cargo itself: it has no dependencies, so that one takes a second.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::listing;

/// The outcome of `cargo check` of this crate.
struct Check {
    succeeded: bool,
    messages: String,
}

fn check(target: &Path, options: &[&str], required: bool) -> Check {
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .args(["check", "--offline", "--locked", "--manifest-path", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")])
        .args(options)
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_TERM_COLOR", "never")
        .env_remove("MOTOR_REQUIRE_GUESTS");
    if required {
        cargo.env("MOTOR_REQUIRE_GUESTS", "1");
    }
    let output = cargo.output().unwrap();
    Check { succeeded: output.status.success(), messages: String::from_utf8_lossy(&output.stderr).into_owned() }
}

#[test]
fn a_clone_without_guests_is_checked_with_a_warning_and_not_released() {
    let target = tempfile::tempdir().unwrap();
    let first = check(target.path(), &[], false);
    assert!(first.succeeded, "{}", first.messages);
    assert!(first.messages.contains("run `cargo xtask guests`"), "{}", first.messages);
    // Nothing changed, so that nothing is checked again.
    let second = check(target.path(), &[], false);
    assert!(second.succeeded && !second.messages.contains("Checking bundled"), "{}", second.messages);

    for (options, required) in [(&["--release"][..], false), (&[], true)] {
        let refused = check(target.path(), options, required);
        assert!(!refused.succeeded, "{options:?} {required}: {}", refused.messages);
        assert!(refused.messages.contains("the bundled guests are not built"), "{}", refused.messages);
    }

    let guests = target.path().join("guests/bundled");
    fs::create_dir_all(&guests).unwrap();
    fs::write(guests.join("files.packed"), [0; 40]).unwrap();
    for (options, required) in [(&["--release"][..], false), (&[], true), (&[], false)] {
        let built = check(target.path(), options, required);
        assert!(built.succeeded, "{options:?} {required}: {}", built.messages);
        assert!(!built.messages.contains("guests"), "{}", built.messages);
    }
}

#[test]
fn guests_are_found_next_to_the_profile_under_any_layout() {
    let root = tempfile::tempdir().unwrap();
    let triple = "x86_64-unknown-linux-gnu";
    let place = |path: &str| root.path().join(path).join("guests/bundled");
    let found = |out: &str| listing::directory(&root.path().join(out), triple);
    let layouts = [
        ("t/debug/build/bundled-1/out", "t"),
        ("t/release/build/bundled-1/out", "t"),
        ("t/x86_64-unknown-linux-gnu/debug/build/bundled-1/out", "t"),
        // An editor with a directory of its own in cargo's.
        ("t/rust-analyzer/debug/build/bundled-1/out", "t/rust-analyzer"),
    ];
    for (out, target) in layouts {
        assert_eq!(found(out), place(target), "{out}");
    }
    // The empty directory of an earlier build without guests does not hide those of the directory above.
    fs::create_dir_all(place("t/rust-analyzer")).unwrap();
    fs::create_dir_all(place("t")).unwrap();
    fs::write(place("t").join("files.packed"), b"").unwrap();
    for (out, _) in layouts {
        assert_eq!(found(out), place("t"), "{out}");
    }
}

#[test]
fn only_whole_components_are_listed() {
    let directory = tempfile::tempdir().unwrap();
    let unfinished = [".old.packed", "bash.new"];
    for name in ["files.wasm", "files.packed", "bash.packed", "files.code", "notes.txt"].into_iter().chain(unfinished) {
        fs::write(directory.path().join(name), b"").unwrap();
    }
    let names = listing::files(directory.path(), listing::COMPONENT).unwrap();
    assert_eq!(names, ["bash.packed", "files.packed"]);
    let table = listing::table(&PathBuf::from("/g"), &names, listing::COMPONENT);
    assert!(table.contains("COMPONENTS: [(&str, &[u8]); 2]"), "{table}");
    assert!(table.contains("(\"bash\", include_bytes!(\"/g/bash.packed\")),"), "{table}");
    let code = listing::files(directory.path(), listing::CODE).unwrap();
    let table = listing::table(Path::new("/g"), &code, listing::CODE);
    assert!(
        table.contains("CODE: [(&str, &[u8]); 1] = [\n    (\"files\", include_bytes!(\"/g/files.code\")),"),
        "{table}"
    );
    let empty = listing::table(Path::new("/g"), &[], listing::COMPONENT);
    assert!(empty.contains("COMPONENTS: [(&str, &[u8]); 0] = [\n];"), "{empty}");
}

#[test]
fn engines_beside_the_program_are_listed_with_their_hashes() {
    let root = tempfile::tempdir().unwrap();
    assert!(listing::pinned(root.path()).unwrap().contains("[PinnedEngine; 0]"));
    fs::write(root.path().join("code-x.wasm"), "component").unwrap();
    fs::write(root.path().join("code-x.pin"), "aa bb\n").unwrap();
    let table = listing::pinned(root.path()).unwrap();
    assert!(
        table.contains("[PinnedEngine; 1]") && table.contains(r#"name: "code-x", component: "aa", code: "bb""#),
        "{table}"
    );
    fs::write(root.path().join("code-x.pin"), "torn").unwrap();
    assert!(listing::pinned(root.path()).is_err());
    assert_eq!(listing::directory(root.path(), "").with_file_name(listing::ENGINES).file_name().unwrap(), "engines");
}
