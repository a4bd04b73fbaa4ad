//! Neurons from files of the owner, as code and as components (SPEC NEU-1): proposed by the owner alone, and held to the same bounds as
//! those of the agent.

use base::ContentHash;
use serde_json::{Value, json};
use tests::binary::Ended;
use tests::hostile_guest;
use tests::model_server::Turn;

use super::{act, bracketed, scenario, status, wait_for_signals, wait_for_status};
use crate::chat::world::{Asked, World, says};

/// A neuron of the owner, in the words of the component in `tests/guests/neurons`.
const CODE: &str = "const found = /price ([0-9]+)/.exec(signal.data.summary ?? '');
return found ? [{ kind: 'price.seen', data: { price: Number(found[1]) } }] : [];";

/// Settings of a trial without hours, in which one failed tick disables.
const STRICT: &str = "[neurons]\ntrial_hours = 0\ntrial_events = 50\nmax_errors_per_hour = 0\nmax_overruns_per_hour = 0\n\
                      [energy]\nenabled = false\n";

/// Runs end with the text in the brackets of their task.
fn tells(asked: &Asked<'_>) -> Turn {
    let task = asked.last_of("user").split_once("say ").map_or("", |(_, rest)| rest);
    says(bracketed(task))
}

fn honest() -> Vec<Value> {
    vec![scenario("price 1", &["price.seen"]), scenario("price 20", &["price.seen"]), scenario("rain", &[])]
}

/// The command that proposes these bytes as the neuron `seen`; more energy than by default, so that a flood fits into it.
fn proposing(world: &World, file: &str, bytes: impl AsRef<[u8]>, scenarios: &[Value]) -> Vec<String> {
    let file = world.motor.file(file, bytes).display().to_string();
    let scenarios = world.motor.file("scenarios.json", json!(scenarios).to_string()).display().to_string();
    let words = ["neuron", "propose", "seen", &file, "--purpose", "notices prices", "--inputs", "run.completed"];
    let more = ["--outputs", "price.seen", "--energy", "20000", "--scenarios", &scenarios];
    words.into_iter().chain(more).map(str::to_owned).collect()
}

fn propose(world: &World, file: &str, bytes: impl AsRef<[u8]>, scenarios: &[Value]) -> Ended {
    world.motor.run_as_owner(&proposing(world, file, bytes, scenarios), "")
}

fn forget(world: &World) {
    world.motor.run_as_owner(&["neuron", "forget", "seen"], "").succeeded();
}

#[test]
fn a_component_of_the_owner_becomes_a_neuron_that_emits_signals() {
    let world = World::new(tells);
    world.motor.configure("[neurons]\ntrial_hours = 0\ntrial_events = 3\n[energy]\nenabled = false\n");
    let serving = world.serve();
    let (motor, component) = (&world.motor, hostile_guest("neurons-pure"));
    // Only the owner proposes.
    let refused = motor.run(&proposing(&world, "seen.wasm", &component, &honest()));
    assert_eq!(refused.code, Some(5), "{refused:?}");
    assert_eq!(motor.ask("/v1/neurons", Some(&json!({})), &[]).unwrap().0, 403);
    assert_eq!(motor.json(&["neuron", "list"])["neurons"], json!([]));

    let proposed = propose(&world, "seen.wasm", &component, &honest()).succeeded();
    for words in ["seen has passed its quarantine of 3 scenarios", "motor neuron approve seen"] {
        assert!(proposed.stdout.contains(words), "{words}: {proposed:?}");
    }
    let shown = motor.json(&["neuron", "show", "seen"])["neuron"].clone();
    let hash = ContentHash::of(&component).to_string();
    assert_eq!(shown["component"], json!({ "hash": hash, "sizeBytes": component.len() }), "{shown:#}");
    assert_eq!((&shown["source"], &shown["origin"]), (&Value::Null, &json!({ "successes": 0 })), "{shown:#}");
    let text = motor.stdout(&["neuron", "show", "seen"]);
    assert!(text.contains(&hash) && text.contains("imports nothing"), "{text}");

    act(&world, "say [price 5]");
    assert_eq!(motor.json(&["neuron", "signals"]), json!([]), "it is not approved");
    assert_eq!(motor.run(&["neuron", "approve", "seen"]).code, Some(5));
    motor.run_as_owner(&["neuron", "approve", "seen"], "").succeeded();
    act(&world, "say [price 97509]");
    let signals = wait_for_signals(&world, 1);
    assert_eq!((&signals[0]["source"], &signals[0]["kind"]), (&json!("neuron:seen"), &json!("price.seen")));
    assert_eq!((&signals[0]["data"], &signals[0]["version"]), (&json!({ "price": 97_509 }), &shown["hash"]));
    act(&world, "say [rain]");

    // Its bytes are the home's: it outlives a killed host, and the file is needed no more.
    std::fs::remove_file(motor.directory().join("seen.wasm")).unwrap();
    serving.kill();
    let serving = world.serve();
    act(&world, "say [price 3]");
    wait_for_signals(&world, 2);
    wait_for_status(&world, "seen", "active");
    serving.kill();
}

/// Attacks of the component, with the code of the fault in which each ends, in quarantine and in a trial.
const ATTACKS: [(&str, &str); 11] = [
    ("spin", "over_budget"),
    ("allocate", "over_budget"),
    ("trap", "threw"),
    ("panic", "threw"),
    ("error", "threw"),
    ("thousands", "invalid_output"),
    ("not_json", "invalid_output"),
    ("large", "invalid_output"),
    ("nine", "signal_spam"),
    ("undeclared", "undeclared_signal"),
    ("reserved", "undeclared_signal"),
];

#[test]
fn a_hostile_component_is_refused_in_quarantine_or_stopped_in_its_trial() {
    let world = World::new(tells);
    world.motor.configure(STRICT);
    let serving = world.serve();
    let component = hostile_guest("neurons-pure");
    for (attack, code) in ATTACKS {
        let attacked = scenario(&format!("attack:{attack}"), &["price.seen"]);
        let refused = propose(&world, "seen.wasm", &component, &[honest(), vec![attacked]].concat());
        assert_eq!(refused.code, Some(1), "{attack}: {refused:?}");
        assert!(refused.stdout.contains(&format!("seen is refused ({code}): scenario 4")), "{attack}: {refused:?}");
        assert!(!refused.stdout.contains('\u{1b}'), "{attack}: {refused:?}");
        assert_eq!(status(&world, "seen"), ("rejected".to_owned(), json!(code)), "{attack}");
        assert_ne!(world.motor.run_as_owner(&["neuron", "approve", "seen"], "").code, Some(0), "{attack}");

        // The same component behaves in these scenarios, and at the first signal of its trial.
        propose(&world, "seen.wasm", &component, &honest()).succeeded();
        world.motor.run_as_owner(&["neuron", "approve", "seen"], "").succeeded();
        act(&world, "say [price 5]");
        wait_for_signals(&world, 1);
        act(&world, &format!("say [attack:{attack}]"));
        wait_for_status(&world, "seen", "disabled");
        assert_eq!(status(&world, "seen").1, json!(code), "{attack}");
        act(&world, "say [price 6]");
        assert_eq!(wait_for_signals(&world, 1)[0]["data"], json!({ "price": 5 }), "{attack}");
        forget(&world);
    }
    serving.kill();
}

#[test]
fn a_component_that_imports_the_network_or_is_no_neuron_is_not_proposed() {
    let world = World::new(tells);
    let too_large = vec![0; (2 << 20) + 1];
    for (file, bytes, words) in [
        ("seen.wasm", hostile_guest("neurons"), "a neuron imports nothing"),
        ("seen.wasm", hostile_guest("benign"), "motor:host/reaction"),
        ("seen.wasm", hostile_guest("reflectors-pure"), "motor:host/reaction"),
        ("seen.wasm", b"return []".to_vec(), "not a WebAssembly component"),
        ("seen.wasm", too_large, "more than 2097152 bytes"),
        ("seen.txt", b"return []".to_vec(), "ends neither in `.js` nor in `.wasm`"),
        ("seen.js", b"\0asm".to_vec(), "refused"),
    ] {
        let ended = propose(&world, file, &bytes, &honest());
        assert!(ended.code != Some(0), "{words}: {ended:?}");
        assert!(format!("{}{}", ended.stdout, ended.stderr).contains(words), "{words}: {ended:?}");
        if file != "seen.js" {
            assert_eq!(world.motor.json(&["neuron", "list"])["neurons"], json!([]), "{words}");
        }
    }
    // The benign twin.
    propose(&world, "seen.wasm", hostile_guest("neurons-pure"), &honest()).succeeded();
    assert_eq!(status(&world, "seen").0, "quarantined");
    // It is no tool either.
    let file = world.motor.file("seen.wasm", hostile_guest("neurons-pure"));
    let called = world.motor.run(&["call", file.to_str().unwrap()]);
    assert!(called.code != Some(0) && called.stderr.contains("of the world `neuron`"), "{called:?}");
}

#[test]
fn code_of_the_owner_needs_no_runs_and_the_same_quarantine() {
    let world = World::new(tells);
    world.motor.configure(STRICT);
    let serving = world.serve();
    for (code, scenarios, fault) in [
        (CODE, vec![scenario("price 1", &["price.seen"]), scenario("rain", &[])], "too_few_scenarios"),
        ("while (true) {}", honest(), "over_budget"),
        ("return eval('[]')", honest(), "blocked"),
        ("return Array(9).fill({ kind: 'price.seen' })", honest(), "signal_spam"),
    ] {
        let refused = propose(&world, "seen.js", code, &scenarios);
        assert_eq!(refused.code, Some(1), "{fault}: {refused:?}");
        assert!(refused.stdout.contains(&format!("({fault})")), "{fault}: {refused:?}");
    }
    let body = json!({
        "name": "seen", "purpose": "notices prices", "program": { "source": CODE }, "inputs": ["run.completed"],
        "outputs": ["price.seen"], "scenarios": honest(),
    });
    let (answered, neuron) = world.motor.ask_as_owner("/v1/neurons", &body).unwrap();
    assert_eq!((answered, &neuron["status"]), (200, &json!("quarantined")), "{neuron:#}");
    assert_eq!((&neuron["source"], &neuron["energyMicros"]), (&json!(CODE), &json!(1_000)), "{neuron:#}");
    world.motor.run_as_owner(&["neuron", "approve", "seen"], "").succeeded();
    act(&world, "say [price 7]");
    assert_eq!(wait_for_signals(&world, 1)[0]["data"], json!({ "price": 7 }));

    // Text that is not base64, two programs and none are refused as requests.
    for program in [json!({ "component": "%" }), json!({ "source": CODE, "component": "AA==" }), json!({})] {
        let mut wrong = body.clone();
        wrong["program"] = program;
        let (answered, refusal) = world.motor.ask_as_owner("/v1/neurons", &wrong).unwrap();
        assert_eq!((answered / 100, &refusal["code"]), (4, &json!("invalid_request")), "{refusal:#}");
    }
    forget(&world);
    serving.kill();
}
