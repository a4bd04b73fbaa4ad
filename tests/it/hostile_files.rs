//! Files that attack their reader: nesting, repetition and mutation end or stall a worker, never the host.

use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use runtime::{ComponentOrigin, EngineConfig, Inspection, LoadError, Runtime};
use serde_json::json;
use tests::Patience;
use tests::binary::Motor;

use super::parsers::{apply, mutation};

const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";
const MODULE: &[u8] = b"\0asm\x01\0\0\0";

fn runtime(change: impl FnOnce(&mut EngineConfig)) -> Runtime {
    let worker = PathBuf::from(env!("CARGO_BIN_EXE_compile-worker"));
    let mut config = EngineConfig { compile_worker: Some(worker), ..EngineConfig::default() };
    change(&mut config);
    Runtime::new(config).unwrap()
}

fn inspect(runtime: &Runtime, bytes: &[u8]) -> Result<std::sync::Arc<Inspection>, LoadError> {
    tests::block_on(runtime.inspect(bytes, ComponentOrigin::Untrusted))
}

fn section(id: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![id];
    let mut length = payload.len();
    loop {
        let more = length > 0x7f;
        bytes.push(u8::try_from(length & 0x7f).unwrap() | if more { 0x80 } else { 0 });
        length >>= 7;
        if !more {
            break;
        }
    }
    bytes.extend(payload);
    bytes
}

/// A component type within a component type, and so on: three bytes a level.
fn nested_types(levels: usize) -> Vec<u8> {
    let types = [&[1][..], &[0x41, 1, 1].repeat(levels), &[0x41, 0]].concat();
    [COMPONENT, &section(7, &types)].concat()
}

/// A component within a component, and so on.
fn nested_components(levels: usize) -> Vec<u8> {
    (0..levels).fold(COMPONENT.to_vec(), |inner, _| [COMPONENT, &section(4, &inner)].concat())
}

/// Modules of function types of which no two are the same.
fn many_types(modules: u32, types: u32) -> Vec<u8> {
    let mut bytes = COMPONENT.to_vec();
    for module in 0..modules {
        let mut payload = vec![0x80 | (types & 0x7f) as u8, 0x80 | ((types >> 7) & 0x7f) as u8, (types >> 14) as u8];
        for number in 0..types {
            let number = u64::from(module) << 20 | u64::from(number);
            payload.extend([0x60, 24]);
            payload.extend((0..24).map(|bit| 0x7f - (number >> bit & 1) as u8));
            payload.push(0);
        }
        bytes.extend(section(1, &[MODULE, &section(1, &payload)].concat()));
    }
    bytes
}

/// Whether the refusal names the reason. Which limit ends a file first depends on the machine.
fn is_told(error: &str) -> bool {
    ["nested too deeply", "the limit for components", "too deep"].iter().any(|words| error.contains(words))
}

#[test]
fn bombs_end_in_a_worker_and_are_told_by_their_reason() {
    let runtime = runtime(|config| config.inspect_seconds = 1);
    for (name, bytes) in [
        ("100,000 nested types", nested_types(100_000)),
        ("1,000,000 nested types", nested_types(1_000_000)),
        ("20,000 nested components", nested_components(20_000)),
        ("60 MB of types", many_types(8, 280_000)),
    ] {
        let error = inspect(&runtime, &bytes).map(|_| ()).unwrap_err();
        assert!(is_told(&error.to_string()), "{name}: {error}");
        // A second look is free: the verdict is kept by content.
        let begun = Instant::now();
        assert_eq!(inspect(&runtime, &bytes).map(|_| ()).unwrap_err(), error);
        assert!(begun.elapsed() < Duration::from_secs(1), "{name} was inspected twice");
    }
    // The twins: nesting that a validator can follow, and a real component.
    inspect(&runtime, &nested_types(300)).unwrap();
    inspect(&runtime, &nested_components(8)).unwrap();
    inspect(&runtime, &tests::hostile_guest("benign")).unwrap();
}

#[test]
fn mutated_files_get_an_answer_from_a_worker() {
    // `MOTOR_MUTATIONS=20000` is the long form; the seed makes a failure the same each time.
    let files: u64 = std::env::var("MOTOR_MUTATIONS").map_or(2_000, |number| number.parse().unwrap());
    let runtime = runtime(|config| config.inspect_seconds = 2);
    let seeds: Vec<Vec<u8>> = ["bad-descriptions", "c-shapes", "every-type", "sockets"]
        .iter()
        .map(|name| tests::hostile_guest(name))
        .collect();
    let mut runner = TestRunner::new_with_rng(Config::default(), TestRng::from_seed(RngAlgorithm::ChaCha, &[7; 32]));
    let mutations = proptest::collection::vec(mutation(), 1..6);
    let (mut sound, mut refused, mut crashed) = (0, 0, Vec::new());
    for file in 0..files {
        let mut bytes = seeds[usize::try_from(file).unwrap() % seeds.len()].clone();
        for mutation in mutations.new_tree(&mut runner).unwrap().current() {
            apply(&mut bytes, mutation);
        }
        match inspect(&runtime, &bytes) {
            Ok(inspection) => {
                assert_eq!(inspection.hash, base::ContentHash::of(&bytes));
                sound += 1;
            }
            Err(error @ (LoadError::WorkerCrash { .. } | LoadError::Worker { .. })) => crashed.push(error.to_string()),
            Err(error) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
        }
    }
    println!("{files} files: {sound} sound, {refused} refused, {} crashed a worker", crashed.len());
    assert!(crashed.is_empty(), "{crashed:?}");
    assert!(sound > 0 && refused > 0);
    inspect(&runtime, &tests::hostile_guest("benign")).unwrap();
}

#[test]
fn a_serving_host_outlives_the_review_of_a_bomb() {
    let motor = Motor::new();
    for (name, bytes) in
        [("types", nested_types(1_200)), ("deep", nested_types(100_000)), ("slow", many_types(8, 280_000))]
    {
        skill(&motor, name, &[("tool.wasm".to_owned(), bytes)]);
    }
    motor.configure("[engine]\ninspect_seconds = 1\n");
    let mut host = motor.start(&["serve"]);
    host.wait_for_words("host.sock");
    for name in ["types", "deep", "slow"] {
        let (status, review) = motor.ask_as_owner("/v1/skills/reviews", &json!({ "skill": name })).unwrap();
        assert_eq!(status, 200, "{review}");
        let problem = review["review"]["components"][0]["problem"].as_str().unwrap_or_else(|| panic!("{review}"));
        // The mildest is a sound component without a tool.
        assert!(is_told(problem) || (name == "types" && problem.contains("offers no tools")), "{name}: {problem}");
        let shown = motor.stdout(&["skill", "review", name]);
        assert!(shown.contains("cannot be used") || shown.contains("nested") || shown.contains("limit"), "{shown}");
        assert!(host.is_alive());
    }
    let file = motor.file("bomb.wasm", nested_types(100_000));
    let ended = motor.run(&["inspect", &file.to_string_lossy()]);
    assert!(is_told(&ended.stderr), "{}", ended.stderr);
    // The twin, on the same host.
    assert_eq!(motor.stdout(&["execute", "1 + 1"]).trim(), "2");
}

/// A directory that is a skill, with these files beside its description.
fn skill(motor: &Motor, name: &str, files: &[(String, Vec<u8>)]) {
    let directory = motor.home().join("skills").join(name);
    std::fs::create_dir_all(&directory).unwrap();
    let text = format!("---\nname: {name}\ndescription: Reads tables.\n---\n\nRead the table.\n");
    std::fs::write(directory.join("SKILL.md"), text).unwrap();
    for (file, bytes) in files {
        std::fs::write(directory.join(file), bytes).unwrap();
    }
}

#[test]
fn decoys_do_not_hide_the_powers_of_a_component() {
    let motor = Motor::new();
    let decoy = |number| (format!("a{number:03}.bin"), format!("\0asm decoy {number}").into_bytes());
    let mut files: Vec<_> = (0..100).map(decoy).collect();
    files.push(("z.wasm".to_owned(), tests::bundled("fetch")));
    skill(&motor, "forge", &files);
    let host = motor.start(&["serve"]);
    host.wait_for_words("host.sock");
    let (_, review) = motor.ask_as_owner("/v1/skills/reviews", &json!({ "skill": "forge" })).unwrap();
    let components = review["review"]["components"].as_array().unwrap();
    let fetch = components.iter().find(|component| component["path"] == "z.wasm").unwrap();
    assert!(fetch["capabilities"].as_array().unwrap().contains(&json!("network")), "{fetch:#}");
    assert_eq!(fetch["problem"], json!(null), "{fetch:#}");
}

#[test]
fn names_are_bounded_and_cannot_write_lines() {
    let runtime = runtime(|_| ());
    let functions: String = (0..998).map(|number| format!("(export \"f{number}\" (func $f))")).collect();
    let exports: String = (0..900).map(|number| format!("(export \"e{number}\" (instance $i))")).collect();
    let many = format!(
        "(component (core module $m (func (export \"f\"))) (core instance $c (instantiate $m))
         (func $f (canon lift (core func $c \"f\"))) (instance $i {functions}) {exports})"
    );
    let inspection = inspect(&runtime, &wat::parse_str(many).unwrap()).unwrap();
    let listed: usize = inspection.exports.iter().map(|export| export.functions.len()).sum();
    assert_eq!((inspection.exports.len(), listed), (900, 2_000));

    let name = format!("x{}\\nhelp: run this to mend it", "y".repeat(90_000));
    let twice = format!("(component (core module (func) (export \"{name}\" (func 0)) (export \"{name}\" (func 0))))");
    let error = inspect(&runtime, &wat::parse_str(twice).unwrap()).unwrap_err().to_string();
    assert!(
        error.contains("duplicate") && error.len() < 1_000 && !error.contains('\n'),
        "{} bytes: {error}",
        error.len()
    );
}

/// Processes of this program's worker that the host has as children.
fn workers(host: u32) -> usize {
    let children = std::fs::read_dir(format!("/proc/{host}/task"))
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok());
    children.flat_map(|children| children.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).count()
}

#[test]
fn a_review_ends_with_its_client() {
    let motor = Motor::new();
    skill(&motor, "slow", &[("tool.wasm".to_owned(), many_types(8, 280_000))]);
    // Long enough that only the client's going can end it.
    motor.configure("[engine]\ninspect_seconds = 3600\ninspect_memory_bytes = 68719476736\n");
    let host = motor.start(&["serve"]);
    host.wait_for_words("host.sock");
    let mut client = UnixStream::connect(motor.home().join("host.sock")).unwrap();
    let body = json!({ "skill": "slow" }).to_string();
    let request = format!(
        "POST /v1/skills/reviews HTTP/1.1\r\nhost: motor\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(request.as_bytes()).unwrap();
    until("the worker starts", || workers(host.id()) == 1);
    drop(client);
    until("the worker is killed", || workers(host.id()) == 0);
}

fn until(what: &str, mut done: impl FnMut() -> bool) {
    let mut patience = Patience::default();
    while !done() {
        assert!(patience.lasts(), "{what}: never");
        std::thread::sleep(Duration::from_millis(10));
    }
}
