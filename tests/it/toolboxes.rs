//! Components that know nothing of us: in C with a WIT of their own, a command-line program, every type there and back,
//! and components that could be made to harm.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use runtime::{
    CallReport, Component, ComponentOrigin, EngineConfig, HOST_VERSION, Kind, Limit, Limits, Outcome, Runtime,
    ToolCall, ToolComponent, ToolError, inspect,
};
use serde_json::{Value, json};
use tests::binary::Motor;
use tokio_util::sync::CancellationToken;

const MAX_BYTES: u64 = 64 << 20;

fn runtime() -> &'static Runtime {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    RUNTIME.get_or_init(|| {
        let config = EngineConfig {
            cache: Some(tests::cache()),
            compile_worker: Some(PathBuf::from(env!("CARGO_BIN_EXE_compile-worker"))),
            ..EngineConfig::default()
        };
        Runtime::new(config).unwrap()
    })
}

fn load(bytes: &[u8]) -> ToolComponent {
    let component = tests::block_on(Component::load(runtime(), bytes, ComponentOrigin::Untrusted)).unwrap();
    ToolComponent::link(runtime(), &component).unwrap()
}

fn every_type() -> &'static ToolComponent {
    static EVERY: OnceLock<ToolComponent> = OnceLock::new();
    EVERY.get_or_init(|| load(&tests::hostile_guest("every-type")))
}

fn command() -> &'static ToolComponent {
    static COMMAND: OnceLock<ToolComponent> = OnceLock::new();
    COMMAND.get_or_init(|| load(&tests::hostile_guest("command")))
}

fn call_in(
    component: &ToolComponent,
    tool: &str,
    arguments: &Value,
    limits: Limits,
    workspace: Option<PathBuf>,
    cancel: CancellationToken,
) -> CallReport<String, ToolError> {
    tests::block_on(component.call(ToolCall {
        name: tool,
        arguments: &arguments.to_string(),
        run_id: "run_test",
        step: 1,
        idempotency_key: "key",
        workspace: workspace.map(Into::into),
        network: None,
        scripts: None,
        environment: Vec::new(),
        seeded: None,
        limits,
        notes: Arc::new(|_| ()),
        cancel,
    }))
}

fn call(component: &ToolComponent, tool: &str, arguments: &Value) -> Outcome<String, ToolError> {
    call_in(component, tool, arguments, Limits::default(), None, CancellationToken::new()).outcome
}

fn returned(component: &ToolComponent, tool: &str, arguments: &Value) -> Value {
    match call(component, tool, arguments) {
        Outcome::Returned(text) => serde_json::from_str(&text).unwrap(),
        other => panic!("{tool} {arguments}: {other:?}"),
    }
}

#[test]
fn what_is_said_without_compiling_is_what_is_offered() {
    for name in ["every-type", "command", "c-shapes"] {
        let bytes = tests::hostile_guest(name);
        let inspected: Vec<_> =
            inspect(&bytes, MAX_BYTES).unwrap().functions.into_iter().map(|function| function.tool).collect();
        let described = tests::block_on(load(&bytes).describe(Limits::default()));
        assert_eq!(described.outcome, Outcome::Returned(inspected), "{name}");
        assert_eq!(described.usage.fuel, 0, "{name}: nothing ran");
    }
}

#[test]
fn every_type_goes_through_a_guest_and_back() {
    let numbers = json!({ "a": -128, "b": 255, "c": -32768, "d": 65535, "e": -2_147_483_648_i64, "f": 4_294_967_295_u64,
        "g": "-9223372036854775808", "h": "18446744073709551615", "i": 0.1, "j": "-Infinity" });
    let check = |tool: &str, arguments: Value, expected: Value| {
        assert_eq!(returned(every_type(), tool, &arguments), expected, "{tool}");
    };
    check("every", json!({ "value": numbers }), numbers.clone());
    check(
        "text",
        json!({ "text": "a\u{0}é\u{1f980}", "letter": "\u{1f980}", "yes": true }),
        json!(["a\u{0}é\u{1f980}", "\u{1f980}", true]),
    );
    check("bytes", json!({ "data": [0, 255, 16] }), json!("AP8Q"));
    check("bytes", json!({ "data": "AP8Q" }), json!("AP8Q"));
    let trees = json!(["leaf", { "number": 7 }, { "names": ["a", ""] }, { "pair": ["x", false] }, { "both": numbers }]);
    check("trees", json!({ "trees": trees }), trees);
    check("choices", json!({ "mode": "safe", "rights": ["run", "read"] }), json!(["safe", ["read", "run"]]));
    check("maybe", json!({}), json!([null, null]));
    check("maybe", json!({ "one": "x", "two": { "some": null } }), json!(["x", { "some": null }]));
    check("maybe", json!({ "one": null, "two": { "some": 3 } }), json!([null, { "some": 3 }]));
    check("outcome", json!({ "inner": { "ok": 3 } }), json!([{ "ok": 3 }, { "error": null }]));
    check("outcome", json!({ "inner": { "error": "no" } }), json!([{ "error": "no" }, { "ok": null }]));
    check("back_nothing", json!({}), json!(null));
    check("nothing", json!({}), json!(true));
    check("top", json!({ "value": 5 }), json!(5));
    check("checked", json!({ "fail": false }), json!("fine"));
    let failed = ToolError::Failed { message: r#"{"number":-1}"#.into(), retryable: false };
    assert_eq!(call(every_type(), "checked", &json!({ "fail": true })), Outcome::Refused(failed));
}

#[test]
fn wrong_arguments_never_reach_the_guest() {
    for (tool, arguments, says) in [
        ("every", json!({ "value": { "a": 1 } }), "`value.b` is missing"),
        ("text", json!({ "text": "", "letter": "ab", "yes": true }), "`letter` should be one character"),
        ("trees", json!({ "trees": ["leaf", "bark"] }), "`trees[1]` has no case `bark`"),
        ("top", json!({ "valeu": 1 }), "`valeu` is unknown; there are `value`"),
        ("top", json!([1]), "should be an object"),
    ] {
        let finished = call_in(every_type(), tool, &arguments, Limits::default(), None, CancellationToken::new());
        let Outcome::Refused(ToolError::BadInput(message)) = finished.outcome else { panic!("{finished:?}") };
        assert!(message.contains(says), "{message}");
        assert_eq!(finished.usage.fuel, 0);
    }
    let missing = call(every_type(), "nowhere", &json!({}));
    assert!(
        matches!(&missing, Outcome::Refused(ToolError::Missing(message)) if message.contains("`every`")),
        "{missing:?}"
    );
}

#[test]
fn functions_run_under_the_limits_of_any_tool() {
    for _ in 0..2 {
        assert_eq!(returned(every_type(), "count", &json!({})), json!(1), "each call has an instance of its own");
    }
    let exceeded = |tool: &str, limits: Limits| {
        let finished = call_in(every_type(), tool, &json!({}), limits, None, CancellationToken::new());
        match finished.outcome {
            Outcome::Exceeded(exceeded) => exceeded.limit,
            other => panic!("{tool}: {other:?}"),
        }
    };
    assert_eq!(exceeded("spin", Limits { deadline_ms: 100, ..Limits::default() }), Limit::DeadlineMs);
    assert_eq!(exceeded("spin", Limits { fuel: 1_000_000, ..Limits::default() }), Limit::Fuel);
    assert_eq!(exceeded("flood", Limits::default()), Limit::HostcallBytes);
    let generous = Limits { hostcall_bytes: 64 << 20, ..Limits::default() };
    assert_eq!(exceeded("flood", generous), Limit::OutputBytes);
    assert!(matches!(call(every_type(), "trap", &json!({})), Outcome::Trapped(_)));
    let cancel = CancellationToken::new();
    cancel.cancel();
    let cancelled = call_in(every_type(), "spin", &json!({}), Limits::default(), None, cancel);
    assert_eq!(cancelled.outcome, Outcome::Cancelled);
    // The twin: the next call works.
    assert_eq!(returned(every_type(), "top", &json!({ "value": 1 })), json!(1));
}

#[test]
fn what_uses_a_resource_is_no_tool_and_says_so() {
    let inspection = inspect(&tests::hostile_guest("every-type"), MAX_BYTES).unwrap();
    assert_eq!(inspection.kind, Kind::Functions);
    let mut unmapped: Vec<_> =
        inspection.unmapped.iter().map(|function| (function.export.as_str(), function.why.as_str())).collect();
    unmapped.sort_unstable();
    assert_eq!(
        unmapped,
        [
            ("every:kind/back@1.0.0#[constructor]thing", "uses a resource"),
            ("every:kind/back@1.0.0#[method]thing.get", "uses a resource"),
            ("every:kind/back@1.0.0#give", "uses a resource"),
        ]
    );
}

#[test]
fn documentation_of_functions_and_fields_is_in_the_tools() {
    let inspection = inspect(&tests::hostile_guest("c-shapes"), MAX_BYTES).unwrap();
    let scale = inspection.functions.iter().find(|function| function.tool.name == "scale").unwrap();
    assert_eq!(scale.tool.description, "Moves points away from the origin, each coordinate times `by`.");
    let point = &scale.tool.parameters["properties"]["points"]["items"]["properties"];
    assert_eq!(point["x"]["description"], json!("How far to the right."));
    assert_eq!(inspection.docs.as_deref(), Some("Computes with shapes in a plane: scaling, areas, labels."));
    assert_eq!(scale.signature, "scale(points: list<record{x: f64, y: f64}>, by: f64) -> list<record{x: f64, y: f64}>");
}

/// Checks that a tool failed: no result, and its words.
fn assert_failed(ended: &tests::binary::Ended, says: &[&str]) {
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    assert!(says.iter().all(|words| ended.stderr.contains(words)), "{ended:?}");
}

#[test]
fn a_component_in_c_is_inspected_and_called() {
    let motor = Motor::new();
    let file = motor.file("shapes.wasm", tests::hostile_guest("c-shapes"));
    let file = file.to_str().unwrap();
    let report = motor.json(&["inspect", file]);
    assert_eq!(report["world"], json!("functions"));
    assert_eq!((&report["imports"], &report["capabilities"]), (&json!([]), &json!([])));
    let names: Vec<_> = report["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["scale", "area", "label"]);
    assert_eq!(report["tools"][0]["effects"]["readOnly"], json!(true));
    let page = motor.stdout(&["inspect", file]);
    for says in ["scale(points, by)  [read only]", "no network, no files, no credentials", "Moves points away"] {
        assert!(page.contains(says), "{says}: {page}");
    }

    let result = |tool: &str, arguments: Value| motor.stdout(&["call", file, tool, &arguments.to_string()]);
    let points = json!({ "points": [{ "x": 1, "y": 2 }, { "x": -3, "y": 0.5 }], "by": 2 });
    assert_eq!(result("scale", points).trim(), r#"[{"x":2.0,"y":4.0},{"x":-6.0,"y":1.0}]"#);
    let square = json!([{ "x": 0, "y": 0 }, { "x": 2, "y": 0 }, { "x": 2, "y": 2 }, { "x": 0, "y": 2 }]);
    assert_eq!(result("area", json!({ "shape": { "polygon": square } })).trim(), "4.0");
    assert_eq!(result("area", json!({ "shape": { "circle": 1 } })).trim(), "3.141592653589793");
    assert_eq!(result("area", json!({ "shape": "nothing" })).trim(), "0.0");
    let label = json!({ "name": "π", "at": { "x": -3, "y": 14 } });
    assert_eq!(result("label", label).trim(), "\"π (-3, 14)\"");

    let refused = motor.run(&["call", file, "area", &json!({ "shape": { "circle": -1 } }).to_string()]);
    assert_failed(&refused, &["failed:", "a circle has no negative radius"]);
    let refused = motor.run(&["call", file, "area", &json!({ "shape": { "square": 1 } }).to_string()]);
    assert_failed(&refused, &["bad_input:", "`shape` has no case `square`; there are `circle`, `polygon`, `nothing`"]);
}

#[test]
fn a_command_line_program_is_a_tool() {
    let motor = Motor::new();
    let file = motor.file("command.wasm", tests::hostile_guest("command"));
    let file = file.to_str().unwrap();
    let report = motor.json(&["inspect", file]);
    assert_eq!((&report["world"], &report["tools"][0]["name"]), (&json!("command"), &json!("run")));
    let properties = report["tools"][0]["parameters"]["properties"].as_object().unwrap();
    assert_eq!(properties.keys().collect::<Vec<_>>(), ["args", "stdin"]);
    let run = |arguments: Value| motor.run(&["call", file, "run", &arguments.to_string()]);
    assert_eq!(motor.stdout(&["call", file, "run", r#"{"args":["upper"],"stdin":"straße"}"#]).trim(), "STRASSE");
    assert_failed(&run(json!({ "args": ["cat", "/etc/passwd"] })), &["failed:", "status 1: /etc/passwd"]);
    assert_failed(&run(json!({ "argv": [] })), &["bad_input:", "`argv` is unknown; there are `args`, `stdin`"]);
}

#[test]
fn a_command_runs_under_the_limits_of_any_tool() {
    let workspace = tempfile::tempdir().unwrap();
    std::fs::write(workspace.path().join("a.txt"), "inside").unwrap();
    let run = |arguments: &[&str], limits: Limits| {
        let arguments = json!({ "args": arguments });
        call_in(command(), "run", &arguments, limits, Some(workspace.path().to_owned()), CancellationToken::new())
            .outcome
    };
    let outcome = run(&["arguments", "-x", "a b", ""], Limits::default());
    assert_eq!(outcome, Outcome::Returned("[\"-x\", \"a b\", \"\"]\n".into()));
    assert_eq!(run(&["exit-zero"], Limits::default()), Outcome::Returned("left early".into()));
    assert_eq!(run(&["cat", "/workspace/a.txt"], Limits::default()), Outcome::Returned("inside".into()));
    let unknown = run(&["nonsense"], Limits::default());
    let says = "the command exited with status 1: unknown command `nonsense`";
    assert_eq!(unknown, Outcome::Refused(ToolError::Failed { message: says.into(), retryable: false }));
    assert!(matches!(run(&["trap"], Limits::default()), Outcome::Trapped(_)));
    let exceeded = |arguments: &[&str], limits| match run(arguments, limits) {
        Outcome::Exceeded(exceeded) => exceeded.limit,
        other => panic!("{arguments:?}: {other:?}"),
    };
    assert_eq!(exceeded(&["flood"], Limits { output_bytes: 100_000, ..Limits::default() }), Limit::OutputBytes);
    assert_eq!(exceeded(&["spin"], Limits { deadline_ms: 100, ..Limits::default() }), Limit::DeadlineMs);
}

#[test]
fn a_skill_says_what_it_is_and_others_say_nothing() {
    let bytes = std::fs::read(tests::target_directory().join("guests/units.wasm")).expect("run `cargo xtask guests`");
    let units = load(&bytes);
    assert_eq!(units.component().inspection().kind, Kind::Skill);
    let Outcome::Returned(Some(about)) = tests::block_on(units.about(Limits::default())).outcome else {
        panic!("no description")
    };
    assert_eq!(about.name, "units");
    assert!(about.instructions.starts_with("# Converting units"), "{}", about.instructions);
    let miles = json!({ "value": 1, "from": "mi", "to": "km" });
    assert_eq!(returned(&units, "convert", &miles), json!({ "value": 1.609344 }));
    for other in [every_type(), command()] {
        assert_eq!(tests::block_on(other.about(Limits::default())).outcome, Outcome::Returned(None));
    }
    let motor = Motor::new();
    let file = motor.file("units.wasm", &bytes);
    let report = motor.json(&["inspect", file.to_str().unwrap()]);
    assert_eq!((&report["world"], &report["about"]["name"]), (&json!("skill"), &json!("units")));
}

/// A component as it would be if it had been built against another version of the WIT.
fn of_version(mut bytes: Vec<u8>, version: &str) -> Vec<u8> {
    let own = HOST_VERSION.as_bytes();
    let mut changed = 0;
    for start in 0..bytes.len() - own.len() {
        let is_ours = bytes[..start].ends_with(b"@")
            && bytes[start.saturating_sub(40)..start].windows(11).any(|w| w == b"motor:host/");
        if is_ours && bytes[start..].starts_with(own) {
            bytes[start..start + own.len()].copy_from_slice(version.as_bytes());
            changed += 1;
        }
    }
    assert!(changed > 0);
    bytes
}

#[test]
fn a_component_of_another_patch_version_works_and_of_another_minor_one_is_named() {
    for version in ["0.1.0", "0.1.1", "0.1.9"] {
        let component = load(&of_version(tests::hostile_guest("benign"), version));
        assert_eq!(call(&component, "primes", &json!({ "below": 1000 })), Outcome::Returned("168".into()));
    }
    let error = inspect(&of_version(tests::hostile_guest("benign"), "0.2.0"), MAX_BYTES).unwrap_err().to_string();
    assert!(error.contains("0.2.0") && error.contains(HOST_VERSION), "{error}");
}

/// The other kinds of components that a home approves: their bytes stay when the host becomes a later one.
#[test]
fn skills_reflectors_and_neurons_of_another_patch_version_work() {
    let motor = Motor::new();
    let built = |name: &str| std::fs::read(tests::target_directory().join("guests").join(name)).unwrap();
    let signal = r#"{"signal":{"kind":"run.completed","data":{"summary":"price 5"}}}"#;
    let reply = r#"{"reply":"{\"assessments\":[],\"beliefs\":[],\"summary\":\"s\",\"drift\":[\"rude\"]}"}"#;
    for version in ["0.1.1", "0.1.9"] {
        for (guest, function, arguments, says) in [
            ("units.wasm", "convert", r#"{"value":1,"from":"mi","to":"km"}"#, "1.609344"),
            ("hostile/reflectors-pure.wasm", "compose", r#"{"facts":{"peers":[]}}"#, "You reflect."),
            ("bundled/reflector.wasm", "guide", reply, "rude"),
            ("hostile/neurons-pure.wasm", "tick", signal, "price.seen"),
        ] {
            let name = format!("{}-{version}.wasm", guest.replace('/', "-"));
            let file = motor.file(&name, of_version(built(guest), version));
            let answer = motor.stdout(&["call", file.to_str().unwrap(), function, arguments]);
            assert!(answer.contains(says), "{guest} {version}: {answer}");
        }
    }
}

/// A component whose only function takes a resource, and one whose types explode.
const NO_TOOLS: [(&str, &str); 2] = [
    (
        r#"(component
            (core module $m (func (export "f") (param i32)))
            (core instance $i (instantiate $m))
            (type $r (resource (rep i32)))
            (export $thing "thing" (type $r))
            (func $take (param "it" (own $thing)) (canon lift (core func $i "f")))
            (export "take" (func $take)))"#,
        "uses a resource",
    ),
    (
        r#"(component
            (core module $m
                (memory (export "memory") 1)
                (func (export "realloc") (param i32 i32 i32 i32) (result i32) unreachable)
                (func (export "f") (param i32 i32)))
            (core instance $i (instantiate $m))
            (type $a (tuple u8 u8 u8 u8 u8 u8 u8 u8)) (type $b (tuple $a $a $a $a $a $a $a $a))
            (type $c (tuple $b $b $b $b $b $b $b $b)) (type $d (tuple $c $c $c $c $c $c $c $c))
            (type $e (tuple $d $d $d $d $d $d $d $d)) (type $f (tuple $e $e $e $e $e $e $e $e))
            (func $boom (param "all" (list $f))
                (canon lift (core func $i "f") (memory $i "memory") (realloc (func $i "realloc"))))
            (export "boom" (func $boom)))"#,
        "its types are too large",
    ),
];

#[test]
fn components_without_a_tool_are_shown_and_refused() {
    let motor = Motor::new();
    for (text, why) in NO_TOOLS {
        let file = motor.file("none.wasm", wat::parse_str(text).unwrap());
        let file = file.to_str().unwrap();
        let report = motor.json(&["inspect", file]);
        assert_eq!((&report["tools"], &report["unmapped"][0]["why"]), (&json!([]), &json!(why)));
        assert!(motor.stdout(&["inspect", file]).contains(why));
        motor.run(&["call", file]).refused(2, &["offers no tools", why]);
        motor.run(&["call", file, "take"]).refused(1, &["offers no tools", why]);
    }
}
