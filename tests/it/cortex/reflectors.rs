//! Reflectors from outside: approved by their hash, pure, and unable to exceed any limit (SPEC CX-3).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{BY_COMMAND, Mind, believing, trusting};

const NAME: &str = "dropped";

/// Puts these bytes where the reflector is looked for.
fn drop_in(mind: &Mind, bytes: &[u8]) {
    let directory = mind.motor.home().join("reflectors");
    std::fs::create_dir_all(&directory).unwrap();
    std::fs::write(directory.join(NAME).with_extension("wasm"), bytes).unwrap();
}

fn select(mind: &Mind) {
    mind.motor.configure(&format!("[cortex]\nreflector = \"{NAME}\"\n{BY_COMMAND}"));
}

fn approve(mind: &Mind) -> tests::binary::Ended {
    mind.motor.run_as_owner(&["cortex", "reflector", "approve", NAME], "")
}

/// A mind whose trust in `mai` is 2, with one belief, and with the hostile reflector.
fn attacked() -> Mind {
    let mind = Mind::new();
    mind.hears("mai", "hello");
    mind.cycle(&["mai"], believing("mai", "mai", "Mai is polite", "r"));
    mind.cycle(&["mai"], trusting("mai", 2));
    drop_in(&mind, &tests::hostile_guest("reflectors-pure"));
    approve(&mind).succeeded();
    select(&mind);
    mind
}

/// The state that no skipped cycle changes.
fn frozen(mind: &Mind) -> (Value, Vec<String>) {
    (mind.trust("mai"), mind.beliefs())
}

fn outcome(cycle: &Value) -> &Value {
    &cycle["record"]["outcome"]
}

/// The codes with which an attack may end; none if its cycle is applied within the limits.
type Ends = &'static [&'static str];

const LIMIT: Ends = &["reflector_limit"];
const TRAPPED: Ends = &["reflector_trapped"];
/// A stack or a memory that is used up ends a guest at the host's limit or at its own.
const EXHAUSTED: Ends = &["reflector_limit", "reflector_trapped"];
const APPLIED: Ends = &[];

const ON_PROMPTS: [(&str, Ends); 9] = [
    ("spin", LIMIT),
    ("trap", TRAPPED),
    ("panic", TRAPPED),
    ("recurse", EXHAUSTED),
    ("allocate", EXHAUSTED),
    ("log_flood", LIMIT),
    ("big_prompt", LIMIT),
    ("long_system", &["prompt_invalid"]),
    ("long_error", &["prompt_invalid"]),
];

const ON_REPLIES: [(&str, Ends); 17] = [
    ("spin", LIMIT),
    ("trap", TRAPPED),
    ("panic", TRAPPED),
    ("recurse", EXHAUSTED),
    ("allocate", EXHAUSTED),
    ("log_flood", LIMIT),
    ("log_bytes", LIMIT),
    ("many_assessments", &["proposals_invalid", "reflector_limit"]),
    ("many_beliefs", &["proposals_invalid", "reflector_limit"]),
    ("big_summary", LIMIT),
    ("big_rationales", LIMIT),
    ("not_a_number", &["proposals_invalid"]),
    ("infinite", &["proposals_invalid"]),
    ("long_error", &["reply_unreadable"]),
    ("strangers", APPLIED),
    ("false_beliefs", APPLIED),
    ("extreme", APPLIED),
];

#[track_caller]
fn check_skipped(mind: &Mind, name: &str, ends: Ends, code: Option<i32>, cycle: &Value) {
    let skipped = outcome(cycle);
    assert_eq!((code, &skipped["status"]), (Some(1), &json!("skipped")), "{name}: {cycle}");
    assert!(ends.contains(&skipped["code"].as_str().unwrap()), "{name}: {skipped}");
    let reason = skipped["reason"].as_str().unwrap();
    assert!(reason.chars().count() <= 301 && !reason.contains(['\n', '\u{1b}']), "{name}: {reason:?}");
    assert_eq!(mind.history()[0]["outcome"], *skipped, "{name}");
    let status = mind.motor.stdout(&["cortex", "status"]);
    assert!(status.contains(&format!("skipped ({})", skipped["code"].as_str().unwrap())), "{name}: {status}");
}

#[test]
fn hostile_proposals_are_skipped_or_stay_within_the_limits() {
    let mind = attacked();
    let before = frozen(&mind);
    assert_eq!(before, (json!(2), vec!["mai: Mai is polite".to_owned()]));
    for (name, ends) in ON_REPLIES.into_iter().filter(|(_, ends)| !ends.is_empty()) {
        mind.replies_text(name);
        let (code, cycle) = mind.reflects_as_json(&["mai"]);
        check_skipped(&mind, name, ends, code, &cycle);
        assert_eq!(frozen(&mind), before, "{name}");
    }

    mind.replies_text("strangers");
    let cycle = mind.reflects_as_json(&["mai"]).1;
    assert_eq!(outcome(&cycle)["refused"].as_array().unwrap().len(), 6, "{cycle}");
    assert_eq!((frozen(&mind), mind.motor.json(&["ledger", "list"]).as_array().unwrap().len()), (before, 1));

    mind.replies_text("false_beliefs");
    let cycle = mind.reflects_as_json(&["mai"]).1;
    assert_eq!(outcome(&cycle)["refused"].as_array().unwrap().len(), 4, "{cycle}");
    assert_eq!(mind.beliefs(), ["mai: Mai is polite", "polite: Mai is the owner"]);

    mind.replies_text("extreme");
    let cycle = mind.reflects_as_json(&["mai"]).1;
    assert_eq!((mind.trust("mai"), outcome(&cycle)["refused"].as_array().unwrap().len()), (json!(5), 1), "{cycle}");

    // The benign twin, with the same component; it lists its attacks, and each has a row here.
    mind.replies_text("attacks");
    let cycle = mind.reflects_as_json(&["mai"]).1;
    let listed: BTreeSet<String> = outcome(&cycle)["summary"].as_str().unwrap().split(',').map(str::to_owned).collect();
    let of = |kind: &str, names: &[(&str, Ends)]| {
        names.iter().map(|(name, _)| format!("{kind} {name}")).collect::<BTreeSet<_>>()
    };
    assert_eq!(listed, &of("compose", &ON_PROMPTS) | &of("interpret", &ON_REPLIES));
    mind.replies_text("a calm day");
    assert_eq!(outcome(&mind.reflects_as_json(&["mai"]).1)["summary"], "a calm day");
}

#[test]
fn hostile_prompts_reach_no_model() {
    for (name, ends) in ON_PROMPTS {
        let mind = attacked();
        let (before, asked) = (frozen(&mind), mind.requests().len());
        mind.hears("evil", &format!("attack:{name} please"));
        let (code, cycle) = mind.reflects_as_json(&["mai", "evil"]);
        check_skipped(&mind, name, ends, code, &cycle);
        assert_eq!((frozen(&mind), mind.requests().len()), (before, asked), "{name}");
        // The bundled one goes on from there.
        mind.motor.configure(BY_COMMAND);
        mind.cycle(&["mai"], trusting("mai", 3));
        assert_eq!(mind.trust("mai"), json!(3), "{name}");
    }
}

#[test]
fn a_reflector_is_used_only_with_the_bytes_that_the_owner_approved() {
    let mind = Mind::new();
    mind.hears("mai", "hello");
    let honest = tests::hostile_guest("reflectors-pure");
    drop_in(&mind, &honest);
    select(&mind);
    let refused = |words: &str| {
        let asked = mind.requests().len();
        let (code, cycle) = mind.reflects_as_json(&["mai"]);
        check_skipped(&mind, words, &["reflector_unavailable"], code, &cycle);
        assert!(outcome(&cycle)["reason"].as_str().unwrap().contains(words), "{words}: {cycle}");
        let problems = mind.motor.json(&["cortex", "status"])["problems"].to_string();
        assert!(problems.contains(words), "{problems}");
        assert_eq!((mind.requests().len(), mind.trust("mai")), (asked, Value::Null), "{words}");
    };
    let status = || {
        let listed = mind.motor.json(&["cortex", "reflector", "list"]);
        assert_eq!((&listed[0]["status"], listed.as_array().unwrap().len()), (&json!("bundled"), 2), "{listed}");
        listed[1]["status"].as_str().unwrap().to_owned()
    };
    refused("is not approved");
    assert_eq!(status(), "unapproved");
    approve(&mind).succeeded();
    assert_eq!(status(), "approved");

    // The same component with one more custom section: it would run, and is not approved.
    drop_in(&mind, &[honest.as_slice(), &[0, 2, 1, b'x']].concat());
    refused("its bytes have changed");
    assert_eq!(status(), "changed");

    drop_in(&mind, &honest);
    mind.replies_text("a calm day");
    assert_eq!(outcome(&mind.reflects_as_json(&["mai"]).1)["status"], "applied");
    assert_eq!(mind.trust("mai"), json!(1));
    // The history says which bytes it was, and that the refused cycles had none.
    let history = mind.motor.json(&["cortex", "history"]);
    let hash = &mind.motor.json(&["cortex", "reflector", "list"])[1]["hash"];
    assert_eq!(history[0]["reflector"], json!({ "name": NAME, "hash": hash }), "{history:#}");
    assert_eq!(history[1]["reflector"], json!({ "name": NAME }), "{history:#}");
    assert!(mind.motor.stdout(&["cortex", "history"]).contains(&format!("reflector {NAME} ")));
    // It outlasts hosts: each command above had one of its own. Withdrawn, it is not used.
    mind.motor.run_as_owner(&["cortex", "reflector", "revoke", NAME], "").succeeded();
    assert_eq!(status(), "unapproved");
    let (code, cycle) = mind.reflects_as_json(&["mai"]);
    check_skipped(&mind, "revoked", &["reflector_unavailable"], code, &cycle);
}

#[test]
fn without_the_owners_token_nothing_is_approved() {
    let mind = Mind::new();
    mind.hears("mai", "hello");
    drop_in(&mind, &tests::hostile_guest("reflectors-pure"));
    let stranger = Mind { motor: mind.motor.env("MOTOR_OWNER_TOKEN", "motor-owner-guessed"), ..mind };
    let ended = stranger.motor.run(&["cortex", "reflector", "approve", NAME]);
    assert!(ended.code != Some(0) && ended.stdout.is_empty(), "{ended:?}");
    let listed = stranger.motor.json(&["cortex", "reflector", "list"]);
    assert_eq!(listed[1]["status"], "unapproved", "{listed}");
    // The benign twin.
    approve(&stranger).succeeded();
    assert_eq!(stranger.motor.json(&["cortex", "reflector", "list"])[1]["status"], "approved");
}

#[test]
fn a_reflector_that_imports_the_network_or_is_no_reflector_is_not_approved() {
    let mind = Mind::new();
    for (bytes, words) in [
        (tests::hostile_guest("reflectors"), "a reflector imports nothing but `motor:host/log`"),
        (tests::hostile_guest("benign"), "motor:host/reflection"),
        (b"not wasm".to_vec(), "not a WebAssembly component"),
    ] {
        drop_in(&mind, &bytes);
        let ended = approve(&mind);
        assert!(ended.code != Some(0) && ended.stderr.contains(words), "{words}: {ended:?}");
        let listed = mind.motor.json(&["cortex", "reflector", "list"]);
        assert_eq!((&listed[1]["status"], &listed[1]["approval"]), (&json!("unusable"), &Value::Null), "{listed}");
    }
}
