//! Tools that are wrong in each typical way (SPEC HOST-9): a row for each, with the words of the fault and of the fix. Each stands
//! beside a right twin.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use runtime::HOST_VERSION;
use serde_json::json;
use tests::binary::{Ended, Motor};
use tests::hostile_guest;
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};
use wit_parser::Resolve;

use crate::scaffolds::{commands, installs};
use crate::skills_scenarios::world::{World, call, calls, says as says_text};

pub const SCHEMA: &str = r#"{"type":"object"}"#;
const WRONG_TYPE: &str = r#"{"type":"object","properties":{"name":{"type":"strng"}}}"#;
/// The body of a call that answers `t`.
pub const ANSWER: &str = "i32.const 128";
const ONE: &str = "(component (core module $m (func (export \"f\") (result i32) i32.const 1)) (core instance $i \
                   (instantiate $m)) (func (export \"one\") (result u32) (canon lift (core func $i \"f\"))))";

/// A component that imports an interface and exports one function.
fn importing(interface: &str) -> Vec<u8> {
    let text = format!(
        "(component (import \"{interface}\" (instance (export \"f\" (func)))) \
         (core module $m (func (export \"f\") (result i32) i32.const 1)) (core instance $i (instantiate $m)) \
         (func (export \"one\") (result u32) (canon lift (core func $i \"f\"))))"
    );
    wat::parse_str(text).unwrap()
}

/// A component that imports an interface of this many functions under a long name.
fn importing_many(functions: usize) -> Vec<u8> {
    // One type for all of them: inline, the text form needs the square of their number.
    let functions: String = (0..functions).map(|number| format!("(export \"f{number}\" (func (type $t)))")).collect();
    let text = format!(
        "(component (type $i (instance (type $t (func)) {functions})) \
         (import \"wasi:clocks/{}@0.2.0\" (instance (type $i))))",
        "a".repeat(50_000)
    );
    wat::parse_str(text).unwrap()
}

/// A component of the world `tool` that offers `t` with this schema of its parameters. A call of it does `body`.
pub fn tool(schema: &str, body: &str) -> Vec<u8> {
    tool_importing("", schema, body)
}

/// The same with these imports, in text form.
pub fn tool_importing(imports: &str, schema: &str, body: &str) -> Vec<u8> {
    // The records of the canonical ABI, in little-endian words: a list of one description, its name, description and schema, and
    // no output schema and effects; then the result of a call, the text `t`.
    let words = |words: &[usize]| -> String {
        let bytes = words.iter().flat_map(|word| u32::try_from(*word).unwrap().to_le_bytes());
        bytes.map(|byte| format!("\\{byte:02x}")).collect()
    };
    let quoted = schema.replace('\\', "\\\\").replace('"', "\\22");
    let text = format!(
        "(module {imports} (memory (export \"memory\") 2) \
         (func (export \"cabi_realloc\") (param i32 i32 i32 i32) (result i32) i32.const 65536) \
         (data (i32.const 16) \"{list}\") (data (i32.const 64) \"{description}\") (data (i32.const 128) \"{result}\") \
         (data (i32.const 256) \"t\") (data (i32.const 512) \"{quoted}\") \
         (func (export \"motor:host/tools@{HOST_VERSION}#list\") (result i32) i32.const 16) \
         (func (export \"motor:host/tools@{HOST_VERSION}#call\") (param i32 i32 i32 i32 i32 i32 i32 i64 i32 i32) (result i32) {body}))",
        list = words(&[64, 1]),
        description = words(&[256, 1, 256, 1, 512, schema.len(), 0, 0, 0, 0, 0]),
        result = words(&[0, 256, 1, 0, 0]),
    );
    let mut module = wat::parse_str(text).unwrap();
    let mut resolve = Resolve::default();
    let (package, _) = resolve.push_path(Path::new(env!("CARGO_MANIFEST_DIR")).join("../wit")).unwrap();
    let world = resolve.select_world(&[package], Some("tool")).unwrap();
    embed_component_metadata(&mut module, &resolve, world, StringEncoding::UTF8).unwrap();
    ComponentEncoder::default().validate(true).module(&module).unwrap().encode().unwrap()
}

/// A schema with parts that refer to the next one twice.
fn doubling(levels: usize) -> String {
    let part = |number: usize| {
        let next = json!({ "$ref": format!("#/$defs/n{}", number + 1) });
        (format!("n{number}"), json!({ "allOf": [next, next] }))
    };
    let mut parts: serde_json::Map<String, serde_json::Value> = (0..levels).map(part).collect();
    parts.insert(format!("n{levels}"), json!({}));
    json!({ "type": "object", "$ref": "#/$defs/n0", "$defs": parts }).to_string()
}

#[track_caller]
fn says(name: &str, ended: &Ended, words: &[&str]) {
    assert_ne!(ended.code, Some(0), "{name}: {ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{name}: {word:?} is not said: {ended:?}");
    }
}

#[test]
fn a_wrong_component_gets_an_error_that_names_the_fix() {
    let motor = Motor::new();
    let no_list =
        format!("(component (instance $tools) (export \"motor:host/tools@{HOST_VERSION}\" (instance $tools)))");
    let newer = ["0.1.99", &format!("this host speaks {HOST_VERSION}"), "rebuild against its `wit/`, or use a host"];
    let guest = |path: &str| fs::read(tests::target_directory().join("guests").join(path)).unwrap();
    let panics = tool(SCHEMA, "unreachable");
    let rate = guest("exchange-rate.wasm");
    let currencies: &[&str] = &["exchange_rate", r#"{"from":"EUR","to":"USD"}"#];
    for (name, bytes, call, words) in [
        (
            "schema-not-json",
            tool("{", "unreachable"),
            &[][..],
            &["parameters schema of `t` is not JSON", "JSON Schema"][..],
        ),
        (
            "schema-no-object",
            tool("7", "unreachable"),
            &[],
            &["not a JSON object", r#"`{"type":"object","properties":{"name":{"type":"string"}}}`"#],
        ),
        (
            "schema-wrong-type",
            tool(WRONG_TYPE, "unreachable"),
            &[],
            &["invalid at `/properties/name/type`", r#""strng""#, r#"such as `{"type":"object""#],
        ),
        (
            "schema-of-list",
            tool(r#"{"type":"array"}"#, "unreachable"),
            &[],
            &["needs `\"type\":\"object\"`", "such as"],
        ),
        ("schema-multiplies", tool(&doubling(30), "unreachable"), &[], &["more than 4000 rules", "use fewer `$ref`"]),
        (
            "schema-elsewhere",
            tool(r#"{"type":"object","$ref":"http://127.0.0.1:1/a"}"#, "unreachable"),
            &[],
            &["refers to `http://127.0.0.1:1/a`", "write `#/$defs/NAME`"],
        ),
        ("panic", panics, &["t", "{}"], &["trap:", "unreachable", "return an error of the tool"]),
        (
            "wrong-world",
            guest("bundled/reflector.wasm"),
            &[],
            &["of the world `reflector`", "build it for the world `tool`"],
        ),
        ("wrong-world", guest("bundled/reflector.wasm"), &["t", "{}"], &["missing:", "`compose`, which takes `facts`"]),
        (
            "no-export",
            wat::parse_str(&no_list).unwrap(),
            &[],
            &["does not have export `list`", "export all of it", "wit/tools.wit"],
        ),
        ("too-new", importing("motor:host/log@0.2.0"), &[], &["0.2.0", "speaks 0.1", "rebuild against its `wit/`"]),
        // Compatible versions, but for an interface and a function that were added later. Their twins: `of_version` in `toolboxes.rs`.
        ("newer-interface", importing("motor:host/vault@0.1.99"), &[], &newer),
        ("newer-function", importing("motor:host/log@0.1.99"), &["one"], &newer),
        ("no-interface", importing("motor:host/vault@0.1.0"), &[], &["this host offers", "build against its `wit/`"]),
        ("undeclared", rate, currencies, &["denied:", "api.frankfurter.dev", "ask the user for access"]),
        ("not-offered", importing("wasi:nn/graph@0.2.0"), &[], &["wasi:nn/graph", "does not offer"]),
        (
            "too-many-imports",
            importing_many(100_000),
            &[],
            &["more than 10000 functions and types in its imports", "split it into several components"],
        ),
        ("sockets", importing("wasi:sockets/tcp@0.2.6"), &[], &["wasi:sockets", "leave out", "std::net"]),
        ("wasi-3", importing("wasi:io/streams@0.3.0"), &[], &["0.3.0", "build it for `wasm32-wasip2`"]),
        ("core", wat::parse_str("(module)").unwrap(), &[], &["core module", "wasm32-wasip2"]),
        ("nothing", wat::parse_str("(component)").unwrap(), &[], &["offers no tools", "build it for the world `tool`"]),
        ("twice", hostile_guest("bad-descriptions"), &[], &["offers `twice` twice"]),
    ] {
        let file = motor.file(&format!("{name}.wasm"), bytes);
        let ended = motor.run(&[&["call", file.to_str().unwrap()][..], call].concat());
        says(name, &ended, words);
        // A component that cannot say which tools it has is not one of another world.
        if name.starts_with("schema-") {
            motor.run(&["call", file.to_str().unwrap()]).refused(1, &["cannot be listed", "mend the component"]);
            motor.refuses(&["call", file.to_str().unwrap()], 1, "invalid_component");
        }
    }
    // The twins of all of them.
    let right = motor.file("right.wasm", wat::parse_str(ONE).unwrap());
    assert_eq!(motor.stdout(&["call", right.to_str().unwrap(), "one"]), "1\n");
    let right = motor.file("right-world.wasm", tool(SCHEMA, ANSWER));
    assert_eq!(motor.stdout(&["call", right.to_str().unwrap(), "t", "{}"]), "t\n");
    let right_schema = motor.file("right-schema.wasm", tool(&doubling(5), ANSWER));
    assert!(motor.stdout(&["call", right_schema.to_str().unwrap()]).contains('t'));
    assert!(motor.stdout(&["call", right.to_str().unwrap()]).contains('t'));
}

/// The same component is refused when it is built, shown as unusable in its review, and refused to runs even where its owner
/// approved it before schemas were checked.
#[test]
fn a_tool_with_an_invalid_schema_comes_to_no_run() {
    let mut world = World::new(vec![call("t", json!({})), says_text("done")]);
    let project = Project::with_given_components(&world.motor);
    project.offers(&[("wrong", tool(WRONG_TYPE, ANSWER)), ("right", tool(SCHEMA, ANSWER))]);
    project.save("wrong");
    let fault = ["parameters schema of `t` is invalid at `/properties/name/type`", "mend what `list` returns"];
    world.motor.run(&["build", "greeter"]).refused(1, &fault);

    let tools = world.motor.home().join("tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join("greeter.wasm"), tool(WRONG_TYPE, ANSWER)).unwrap();
    let review = world.review("greeter");
    assert!(review["components"][0]["problem"].to_string().contains("/properties/name/type"), "{review:#}");
    world.approve(&["greeter"]);
    let act = ["act", "x", "--tools", "greeter"];
    world.motor.run(&act).refused(1, &["is invalid at `/properties/name/type`", "mend the component", "an approval"]);
    world.motor.refuses(&act, 1, "invalid_component");
    assert_eq!(world.model.calls(), 0);

    // Its twin.
    project.save("right");
    world.motor.run(&["build", "greeter"]).succeeded();
    fs::copy(project.directory.join("build/greeter.wasm"), tools.join("greeter.wasm")).unwrap();
    world.motor.run(&act).refused(5, &["changed since the owner approved it"]);
    world.approve_reviewed("greeter");
    world.plays(vec![call("t", json!({})), says_text("done")]);
    world.motor.run(&act).succeeded();
    assert_eq!(calls(&world.trace())[0]["result"]["output"], "t");
}

/// A project in Python whose toolchain hands over given components: the first line of its source names one, or `broken` for a
/// source that does not compile.
pub struct Project {
    pub directory: PathBuf,
}

impl Project {
    pub fn with_given_components(motor: &Motor) -> Self {
        motor.run(&["new", "tool", "greeter", "--lang", "python"]).succeeded();
        let directory = motor.directory().join("greeter");
        let program = directory.join(".toolchain/bin/componentize-py");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        fs::create_dir(directory.join("build")).unwrap();
        let script = "#!/bin/sh\n[ \"$1\" = --version ] && exit\nfor last; do :; done\nread -r source < src/app.py\n\
                      [ \"$source\" = broken ] && { echo 'src/app.py:1: broken' >&2; exit 1; }\n\
                      exec /bin/cp \"build/$source.given\" \"$last\"\n";
        fs::write(&program, script).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        Self { directory }
    }

    /// Sets the components that sources can name.
    pub fn offers(&self, components: &[(&str, Vec<u8>)]) {
        for (name, bytes) in components {
            fs::write(self.directory.join("build").join(name).with_extension("given"), bytes).unwrap();
        }
    }

    /// Saves the source, as an editor does: it is never seen half written.
    pub fn save(&self, source: &str) {
        let draft = self.directory.with_extension("draft");
        fs::write(&draft, format!("{source}\n")).unwrap();
        fs::rename(draft, self.directory.join("src/app.py")).unwrap();
    }
}

#[test]
fn a_missing_toolchain_is_named_with_the_command_that_installs_it() {
    let motor = Motor::new().env("PATH", "/nowhere");
    let build = |language: &str| {
        let directory = motor.directory().join(language);
        let directory = directory.to_str().unwrap();
        motor.run(&["new", "skill", "greeter", "--lang", language, "--dir", directory]).succeeded();
        motor.run(&["build", directory])
    };
    let pages = [
        ("python", include_str!("../../docs/authoring-python.md")),
        ("js", include_str!("../../docs/authoring-javascript.md")),
        ("c", include_str!("../../docs/authoring-c.md")),
    ];
    for (language, words) in [
        ("rust", ["the Rust compiler is not installed", "rustup"]),
        ("python", ["componentize-py is not installed", "pip install componentize-py=="]),
        // Without Node there is no `npm`.
        ("js", ["install Node 20.19", "npm install"]),
        ("ts", ["install Node 20.19", "npm install"]),
        ("c", ["zig is not installed", "pip install ziglang=="]),
    ] {
        let ended = build(language);
        says(language, &ended, &words);
        // It is the command of the language's page.
        for (_, page) in pages.iter().filter(|(known, _)| *known == language) {
            let lines = commands(page, "motor new tool");
            let install = lines.iter().find(|line| installs(line)).unwrap();
            says(language, &ended, &[install]);
        }
    }
    // Its twins: with Node only the packages are missing, and with a compiler that knows no directory of the target, the target.
    let programs = tempfile::tempdir().unwrap();
    for program in ["node", "rustc"] {
        symlink("/bin/true", programs.path().join(program)).unwrap();
    }
    let motor = Motor::new().env("PATH", programs.path().to_str().unwrap());
    motor.run(&["new", "tool", "greeter", "--lang", "js"]).succeeded();
    says("js", &motor.run(&["build", "greeter"]), &["componentize-qjs is not installed", "`npm install` in `"]);
    for (kind, target) in [("tool", "wasm32-wasip2"), ("reflector", "wasm32-unknown-unknown")] {
        motor.run(&["new", kind, &format!("of-{kind}"), "--lang", "rust"]).succeeded();
        let add = format!("rustup target add {target}");
        says(kind, &motor.run(&["build", &format!("of-{kind}")]), &["is not installed", &add]);
    }
}

#[test]
fn a_wrong_project_gets_an_error_that_names_the_fix() {
    let motor = Motor::new();
    motor.run(&["new", "tool", "greeter"]).succeeded();
    motor.run(&["new", "reflector", "careful"]).succeeded();
    motor.run(&["new", "neuron", "prices"]).succeeded();
    for (arguments, code, words) in [
        (&["new", "tool", "other", "--lang", "cobol"][..], 2, &["scaffolds for rust, python, js, ts, c"][..]),
        (&["new", "tool", "Greeter"], 2, &["lower case"]),
        (&["new", "tool", "greeter"], 2, &["another name"]),
        (&["new", "tool", "motor-sdk"], 2, &["the name `motor-sdk` is taken", "choose another name"]),
        (&["build", "."], 1, &["not a project", "motor new tool"]),
        (&["pack", "greeter"], 1, &["no built component", "`motor build"]),
        (&["new", "neuron", "other", "--lang", "python"], 2, &["18 MiB", "`motor neuron propose NAME FILE.js`"]),
        (&["pack", "prices"], 2, &["a neuron is not packed", "`motor neuron propose prices "]),
        (&["pack", "careful"], 2, &["a reflector is not packed", "`motor cortex reflector approve careful`"]),
        (&["test", "greeter", "--no-build"], 1, &["no built component", "`motor build"]),
        (&["test", "greeter", "--only", "nothing"], 1, &["there are no cases", "motor test --bless"]),
    ] {
        motor.run(arguments).refused(code, words);
    }
}

/// Projects around the bundled reflector, which exports `guidance` too, and around components that cannot be one.
#[test]
fn a_reflector_is_tested_under_the_limits_of_a_cycle() {
    let motor = Motor::new();
    let guest = |path: &str| fs::read(tests::target_directory().join("guests").join(path)).unwrap();
    motor.run(&["new", "reflector", "careful"]).succeeded();
    let build = motor.directory().join("careful/build");
    fs::create_dir(&build).unwrap();
    let place = |bytes: Vec<u8>| fs::write(build.join("careful.wasm"), bytes).unwrap();
    place(guest("bundled/reflector.wasm"));
    let tested = motor.run(&["test", "careful", "--no-build", "--only", "re"]).succeeded();
    assert!(tested.stdout.contains("2 passed, 0 failed"), "{tested:?}");
    assert!(tested.stderr.contains("motor cortex reflector approve careful"), "{tested:?}");
    let component = build.join("careful.wasm");
    let call = |function: &str, arguments: &str| motor.run(&["call", component.to_str().unwrap(), function, arguments]);
    let composed = call("compose", r#"{"facts":{"peers":[]}}"#).succeeded();
    assert!(composed.stdout.contains(r#"as JSON data:\n{\"peers\":[]}"#), "{composed:?}");
    let reply = r#"{"reply":{"assessments":[],"beliefs":[],"summary":"s","drift":["rude"]}}"#;
    assert!(call("guide", reply).succeeded().stdout.contains(r#""drift":["rude"]"#));
    says("garbage", &call("interpret", r#"{"reply":"no idea"}"#), &["failed:", "not JSON of the expected form"]);
    says("arguments", &call("compose", r#"{"reply":"x"}"#), &["bad_input:", "the only argument is `facts`"]);
    // The pure twin of the hostile one has no `guidance`; the other imports WASI.
    place(hostile_guest("reflectors-pure"));
    says("no-guidance", &call("guide", reply), &["missing:", "`guiding-reflector`"]);
    place(hostile_guest("reflectors"));
    let ended = motor.run(&["test", "careful", "--no-build"]);
    says("impure", &ended, &["a reflector imports nothing but `motor:host/log`"]);
}

/// The project around the hostile neuron, which is honest for a signal that names no attack.
#[test]
fn a_neuron_is_tested_under_the_limits_of_a_tick() {
    let motor = Motor::new();
    motor.run(&["new", "neuron", "prices"]).succeeded();
    let project = motor.directory().join("prices");
    fs::create_dir(project.join("build")).unwrap();
    let component = project.join("build/prices.wasm");
    fs::write(&component, hostile_guest("neurons-pure")).unwrap();
    let signal = |summary: &str| format!(r#"{{"signal":{{"kind":"run.completed","data":{{"summary":"{summary}"}}}}}}"#);
    let expected = r#"[{\"kind\":\"price.seen\",\"data\":{\"price\":5}}]"#;
    let case = format!(r#"{{"tool":"tick","arguments":{},"expect":{{"output":"{expected}"}}}}"#, signal("price 5"));
    fs::write(project.join("cases/honest.json"), case).unwrap();
    let tested = motor.run(&["test", "prices", "--no-build", "--only", "honest"]).succeeded();
    assert!(tested.stdout.contains("1 passed, 0 failed"), "{tested:?}");
    assert!(tested.stderr.contains("motor neuron propose prices"), "{tested:?}");

    let call = |function: &str, arguments: &str| motor.run(&["call", component.to_str().unwrap(), function, arguments]);
    assert_eq!(call("tick", &signal("rain")).succeeded().stdout, "[]\n");
    for (attack, words) in [
        ("spin", ["limit:", "`fuel` is limited to 1000000"]),
        ("trap", ["trap:", "unreachable"]),
        ("nine", ["failed:", "signal_spam"]),
        ("not_json", ["failed:", "data is not JSON"]),
        ("large", ["failed:", "too large"]),
        ("reserved", ["failed:", "undeclared_signal"]),
    ] {
        says(attack, &call("tick", &signal(&format!("attack:{attack}"))), &words);
    }
    says("function", &call("tock", "{}"), &["missing:", "`tick`, which takes `signal`"]);
    says("argument", &call("tick", "{}"), &["bad_input:", "the only argument is `signal`"]);
    says("kind", &call("tick", r#"{"signal":{"kind":"run.waiting"}}"#), &["bad_input:", "`run.waiting`"]);
    // Its twin imports WASI.
    fs::write(&component, hostile_guest("neurons")).unwrap();
    says("impure", &call("tick", &signal("rain")), &["a neuron imports nothing"]);
}

/// A project with a toolchain that hands over a given component.
#[test]
fn a_built_component_that_a_home_would_not_take_as_a_neuron_is_refused() {
    let motor = Motor::new();
    motor.run(&["new", "neuron", "prices", "--lang", "js"]).succeeded();
    let project = motor.directory().join("prices");
    let program = project.join("node_modules/.bin/componentize-qjs");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    fs::write(&program, "#!/bin/sh\nfor last; do :; done\nexec /bin/cp given.wasm \"$last\"\n").unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let build = |bytes: Vec<u8>| {
        fs::write(project.join("given.wasm"), bytes).unwrap();
        motor.run(&["build", "prices"])
    };
    // A custom section `x` with 2 MiB, after its size in LEB128.
    let padding = [vec![0, 0x82, 0x80, 0x80, 1, 1, b'x'], vec![0; 2 << 20]].concat();
    for (name, bytes, words) in [
        ("imports", hostile_guest("neurons"), ["it is no neuron", "a neuron imports nothing", "without WASI"]),
        ("world", hostile_guest("reflectors-pure"), ["it is no neuron", "motor:host/reaction", "the world `neuron`"]),
        (
            "size",
            [hostile_guest("neurons-pure"), padding].concat(),
            ["it is no neuron", "at most 2097152 bytes", "2 MiB"],
        ),
    ] {
        says(name, &build(bytes), &words);
    }
    let built = build(hostile_guest("neurons-pure")).succeeded();
    assert!(built.stderr.contains("--inputs run.completed --outputs price.high --scenarios"), "{built:?}");
}

/// The interfaces as a package: another package resolves against its text, and its binary form is one that tools read.
#[test]
fn the_interfaces_are_a_package_that_others_depend_on() {
    let motor = Motor::new();
    let text = motor.stdout(&["wit"]);
    let mut resolve = Resolve::default();
    resolve.push_str("motor-host.wit", &text).unwrap();
    let user = format!("package a:b; world w {{ include motor:host/tool@{HOST_VERSION}; }}");
    let user = resolve.push_str("user.wit", &user).unwrap();
    assert!(resolve.select_world(&[user], None).is_ok());
    let file = motor.directory().join("motor-host.wasm");
    let wrote = motor.json(&["wit", "--binary", file.to_str().unwrap()]);
    assert_eq!(wrote["path"], file.to_str().unwrap());
    let decoded = wit_parser::decoding::decode(&fs::read(file).unwrap()).unwrap();
    let package = &decoded.resolve().packages[decoded.package()];
    assert_eq!(package.name.to_string(), format!("motor:host@{HOST_VERSION}"));
    motor.run(&["wit", "--binary", "/nowhere/a.wasm"]).refused(1, &["cannot write `/nowhere/a.wasm`"]);
}
