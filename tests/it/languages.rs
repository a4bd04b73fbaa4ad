//! Components of other toolchains (`cargo xtask toolchains`): dropped in as a skill, reviewed, approved and called by a run. And
//! kinds of components (`tests/fixtures/kinds`): each works, or is refused with its reason.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::target_directory;

use crate::skills_scenarios::world::{World, call, calls, says};

/// A component, a call of its tool, and a part of the result.
type Works = (&'static str, &'static str, Value, &'static str);

fn works() -> [Works; 10] {
    let counted =
        |file| (file, "count", json!({ "text": "to be, or not to BE" }), r#"[["be",2],["to",2],["not",1],["or",1]]"#);
    let command =
        |file| (file, "run", json!({ "args": ["you", "and me"], "stdin": "a b\nc\td e" }), "5 words for you and me");
    [
        counted("rust/words"),
        counted("c/words"),
        counted("javascript/quickjs"),
        counted("javascript/starlingmonkey"),
        counted("python/pure"),
        counted("python/words"),
        ("python/median", "median", json!({ "numbers": [9, 1, 4] }), "4"),
        ("composed/report", "summary", json!({ "text": "a rose is a rose is a ROSE" }), "`a` occurs 3 times"),
        command("rust/command"),
        command("go/command"),
    ]
}

/// A component that is refused, and the words of the reason.
const REFUSED: [(&str, &[&str]); 3] = [
    ("rust/report", &["toolchains:text/words@1.0.0"]),
    ("go/command.core", &["module"]),
    ("javascript/wasi-0.3", &["0.3.0"]),
];

/// The component, if its toolchain could be had.
fn built(file: &str) -> Option<Vec<u8>> {
    fs::read(target_directory().join("toolchains").join(format!("{file}.wasm"))).ok()
}

/// Prints how many of the components there were.
fn report(what: &str, missing: &[&str], all: usize) {
    tests::report(&format!(
        "{} components {what}, {} skipped{}{}",
        all - missing.len(),
        missing.len(),
        if missing.is_empty() { "" } else { ": run `cargo xtask toolchains`: " },
        missing.join(", ")
    ));
}

/// Drops a component in under the name that its file gives it.
fn drop_in(world: &World, file: &str, bytes: &[u8]) -> String {
    let name = file.replace(['/', '.'], "-");
    fs::write(world.skills().join(&name).with_extension("wasm"), bytes).unwrap();
    name
}

#[test]
fn components_of_other_toolchains_are_called_by_a_run() {
    let mut missing = Vec::new();
    for (file, tool, arguments, expected) in works() {
        let Some(bytes) = built(file) else {
            missing.push(file);
            continue;
        };
        let mut world = World::new(vec![says("done")]);
        let skill = drop_in(&world, file, &bytes);
        world.act(&skill, &[]).refused(5, &["needs_reapproval"]);
        let component = world.review(&skill)["components"][0].clone();
        assert_eq!(component["problem"], Value::Null, "{file}: {component:#}");
        world.approve(&[&skill, "--tools", ""]);
        world.plays(vec![call(tool, arguments), says("done")]);
        world.act(&skill, &[]).succeeded();
        let trace = world.trace();
        let result = &calls(&trace)[0]["result"];
        assert!(result["ok"] == true && result["output"].as_str().unwrap().contains(expected), "{file}: {result:#}");
        assert!(world.offered(0).iter().any(|name| name == tool), "{file}: {:?}", world.offered(0));
    }
    report("called", &missing, works().len());
}

#[test]
fn components_that_cannot_run_here_are_refused_with_the_reason() {
    let mut missing = Vec::new();
    for (file, words) in REFUSED {
        let Some(bytes) = built(file) else {
            missing.push(file);
            continue;
        };
        let world = World::new(vec![says("done")]);
        let skill = drop_in(&world, file, &bytes);
        let review = world.review(&skill);
        let problem = review["components"][0]["problem"].as_str().unwrap_or_else(|| panic!("{file}: {review:#}"));
        assert!(words.iter().all(|word| problem.contains(word)), "{file}: {problem}");
        world.approve(&[&skill, "--tools", ""]);
        let ended = world.act(&skill, &[]);
        assert!(ended.code == Some(1) && words.iter().all(|word| ended.stderr.contains(word)), "{file}: {ended:?}");
        assert_eq!(world.model.calls(), 0, "{file}");
    }
    report("refused", &missing, REFUSED.len());
}

/// Python's library imports sockets in every component; its tools run until one opens a socket.
#[test]
fn a_socket_in_python_ends_the_call_and_nothing_else() {
    let Some(bytes) = built("python/median") else {
        return report("called", &["python/median"], 1);
    };
    let mut world = World::new(Vec::new());
    let skill = drop_in(&world, "python/median", &bytes);
    world.approve(&[&skill, "--tools", ""]);
    let median = || call("median", json!({ "numbers": [2, 1] }));
    world.plays(vec![median(), call("connect", json!({})), median(), says("done")]);
    world.act(&skill, &[]).succeeded();
    let trace = world.trace();
    let results: Vec<_> = calls(&trace).iter().map(|call| call["result"]["ok"].clone()).collect();
    assert_eq!(results, [json!(true), json!(false), json!(true)], "{trace:#}");
    report("called", &[], 1);
}

/// Each fixture begins with `;; returns: RESULT` of its function `f`, or `;; refused: WORDS`.
#[test]
fn every_kind_of_component_works_or_is_refused_with_its_reason() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/kinds");
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let motor = Motor::new();
    let mut wrong = Vec::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        let bytes = wat::parse_str(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let component = motor.file("kind.wasm", bytes);
        let arguments = if text.contains("\"text\"") { r#"{"text":"abc"}"# } else { "{}" };
        let ended = motor.run(&["call", component.to_str().unwrap(), "f", arguments]);
        let expectation = text.lines().next().unwrap();
        let is_right = if let Some(result) = expectation.strip_prefix(";; returns: ") {
            ended.code == Some(0) && ended.stdout.trim() == result
        } else {
            let words = expectation.strip_prefix(";; refused: ").expect("an expectation");
            ended.code == Some(1) && ended.stdout.is_empty() && ended.stderr.contains(words)
        };
        if !is_right {
            wrong.push(format!("{}: {expectation}\n  {ended:?}", file.file_name().unwrap().display()));
        }
    }
    assert!(wrong.is_empty(), "{} of {} kinds:\n{}", wrong.len(), files.len(), wrong.join("\n"));
}
