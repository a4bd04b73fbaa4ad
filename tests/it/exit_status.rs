//! `motor call` of a command component ends as the component did (SPEC CLI-0, HOST-3), and only then.

use serde_json::{Value, json};
use tests::binary::Motor;

/// A command whose whole program is this.
fn command(program: &str) -> Vec<u8> {
    let text = format!(
        r#"(component
            (import "wasi:cli/exit@0.2.12" (instance $exit (export "exit-with-code" (func (param "status-code" u8)))))
            (core func $code (canon lower (func $exit "exit-with-code")))
            (core module $program
                (import "exit" "code" (func $exit (param i32)))
                (func (export "run") (result i32) {program}))
            (core instance $program (instantiate $program (with "exit" (instance (export "code" (func $code))))))
            (func $run (result (result)) (canon lift (core func $program "run")))
            (instance $exported (export "run" (func $run)))
            (export "wasi:cli/run@0.2.12" (instance $exported)))"#
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn a_command_component_gives_its_own_status() {
    let motor = Motor::new();
    for (name, program, status) in [
        ("three", "(call $exit (i32.const 3)) unreachable", 3),
        ("busy", "(call $exit (i32.const 75)) unreachable", 75),
        ("most", "(call $exit (i32.const 255)) unreachable", 255),
        ("zero", "(call $exit (i32.const 0)) unreachable", 0),
        ("failed", "(i32.const 1)", 1),
        ("done", "(i32.const 0)", 0),
    ] {
        let file = motor.file(&format!("{name}.wasm"), command(program));
        let file = file.to_str().unwrap();
        let ended = motor.run(&["call", file, "run"]);
        assert_eq!(ended.code, Some(status), "{name}: {ended:?}");
        let ended = motor.run(&["call", file, "run", "--json"]);
        let reply: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert_eq!((ended.code, &reply["exitStatus"]), (Some(status), &json!(status)), "{name}: {ended:?}");
        assert_eq!(reply["ok"], status == 0, "{name}: {reply}");
    }
}

#[test]
fn a_failure_that_is_not_the_components_own_has_the_hosts_code() {
    let motor = Motor::new();
    let file = |name: &str, program: &str| motor.file(name, command(program)).to_str().unwrap().to_owned();
    let three = file("three.wasm", "(call $exit (i32.const 3)) unreachable");
    for (arguments, error) in [
        ([file("trap.wasm", "unreachable").as_str(), "run", "{}"], "trap"),
        ([file("spin.wasm", "(loop $on (br $on)) unreachable").as_str(), "run", "{}"], "limit"),
        ([three.as_str(), "run", r#"{"argv":[]}"#], "bad_input"),
        ([three.as_str(), "walk", "{}"], "missing"),
    ] {
        let ended = motor.run(&[&["call"], &arguments[..], &["--json", "--set", "limits.deadline_ms=500"]].concat());
        let reply: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert_eq!((ended.code, &reply["error"]), (Some(1), &json!(error)), "{ended:?}");
        assert_eq!(reply.get("exitStatus"), None, "{reply}");
    }
    // The host refuses: no call was made.
    for (arguments, code) in [(["call", three.as_str(), "run", "{"], 2), (["call", "nowhere.wasm", "run", "{}"], 1)] {
        let ended = motor.run(&[&arguments[..], &["--json"]].concat());
        let reply: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert_eq!(ended.code, Some(code), "{ended:?}");
        assert!(reply["error"]["code"].is_string() && reply.get("exitStatus").is_none(), "{reply}");
    }
}
