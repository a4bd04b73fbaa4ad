//! Authors' commands with the real program (SPEC HOST-9): a tool that is wrong gets an error that names the fix. By name
//! `docs/authoring.md` is executed as it stands.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};
use tests::binary::{Motor, program_file};
use tests::model_server::ModelServer;
use tests::{block_on, hostile_guest};

const PAGE: &str = include_str!("../../docs/authoring.md");
/// The longest a command of the page may take, in seconds: the first build compiles the SDK.
const MAX_SECONDS: &str = "580";

/// The commands of the page, in order.
fn commands() -> Vec<&'static str> {
    let blocks = PAGE.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Runs a line of the page in a shell, with the author's toolchain and this home.
fn shell(motor: &Motor, model: &ModelServer, line: &str) -> Output {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let home = variable("HOME");
    let path = format!("{}:{}", program_file().parent().unwrap().display(), variable("PATH"));
    let or = |name: &str, directory: &str| match variable(name) {
        empty if empty.is_empty() => format!("{home}/{directory}"),
        set => set,
    };
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", MAX_SECONDS, "sh", "-c", line]).current_dir(motor.directory()).env_clear();
    command.env("PATH", path).env("HOME", motor.directory()).env("MOTOR_HOME", motor.home());
    command.env("CARGO_HOME", or("CARGO_HOME", ".cargo")).env("RUSTUP_HOME", or("RUSTUP_HOME", ".rustup"));
    command.env("RUSTUP_TOOLCHAIN", variable("RUSTUP_TOOLCHAIN"));
    command.env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", "sk-test").env("MOTOR_KEYRING", "off");
    command.env("OPENAI_BASE_URL", model.base_url()).env("MOTOR_OWNER_TOKEN", motor.owner_token());
    command.output().unwrap()
}

/// Why a project in Rust cannot be built here, if it cannot.
fn unavailable(motor: &Motor, model: &ModelServer) -> Option<String> {
    shell(motor, model, "motor new tool probe").status.success().then_some(())?;
    let fetched = shell(motor, model, "cargo fetch -q --target wasm32-wasip2 --manifest-path probe/Cargo.toml");
    let target = shell(motor, model, "test -d \"$(rustc --print target-libdir --target wasm32-wasip2)\"");
    let reason = match (target.status.success(), fetched.status.success()) {
        (false, _) => Some("the target wasm32-wasip2 is not installed".to_owned()),
        (true, false) => Some(format!("the registry does not answer: {}", text(&fetched.stderr))),
        (true, true) => None,
    };
    fs::remove_dir_all(motor.directory().join("probe")).unwrap();
    reason
}

#[test]
#[ignore = "builds projects for minutes, with packages of a registry"]
fn the_page_leads_from_nothing_to_an_approved_tool() {
    let turns = json!([{ "tool_calls": [{ "name": "greet", "arguments": { "name": "Ada" } }] }, { "text": "greeted" }]);
    let model = block_on(ModelServer::scripted(json!({ "turns": turns })));
    let motor = Motor::new();
    if let Some(reason) = unavailable(&motor, &model) {
        println!("skipped: {reason}");
        return;
    }
    let lines = commands();
    assert!(lines.len() >= 10 && lines.iter().any(|line| line.starts_with("motor act")), "{lines:#?}");
    for line in &lines {
        let ended = shell(&motor, &model, line);
        let (stdout, stderr) = (text(&ended.stdout), text(&ended.stderr));
        assert!(ended.status.success(), "{line}: {stdout}\n{stderr}");
        for (command, said) in [
            ("motor new", "next: motor build greeter"),
            ("motor build", "greet("),
            ("motor test", "3 passed, 0 failed"),
            ("motor dev", "hello, Ada"),
            ("motor skill review", "greet"),
            ("motor act", "greeted"),
            ("motor pack", "SKILL.md"),
        ] {
            let all = format!("{stdout}{stderr}");
            assert!(!line.starts_with(command) || all.contains(said), "{line}: {said:?} is not said: {all}");
        }
    }
    let trace = motor.json(&["task", "status"]);
    assert_eq!(trace["steps"][0]["toolCalls"][0]["result"]["output"], "hello, Ada", "{trace:#}");

    // Built elsewhere from the same sources it is the same archive, and the host takes it.
    let archive = motor.directory().join("greeter/build/greeter.skill");
    let first = fs::read(&archive).unwrap();
    shell(&motor, &model, "motor pack greeter");
    assert_eq!(fs::read(&archive).unwrap(), first);
    motor.run(&["skill", "add", archive.to_str().unwrap()]).succeeded();

    wrong_sources(&motor, &model);
}

/// Mistakes in a project that was built: each is named, with file and line where the compiler knows them.
fn wrong_sources(motor: &Motor, model: &ModelServer) {
    let source = motor.directory().join("greeter/src/lib.rs");
    let right = fs::read_to_string(&source).unwrap();
    let check = |from: &str, to: &str, command: &str, words: &[&str]| {
        assert!(right.contains(from), "{from}");
        fs::write(&source, right.replace(from, to)).unwrap();
        let ended = shell(motor, model, command);
        let all = format!("{}{}", text(&ended.stdout), text(&ended.stderr));
        assert!(!ended.status.success(), "{to}: {all}");
        for word in words {
            assert!(all.contains(word), "{to}: {word:?} is not said: {all}");
        }
    };
    check("Ok(format!", "Ok(formt!", "motor build greeter", &["src/lib.rs:", "formt", "mend the errors above"]);
    let panics = "if name.is_empty() {\n        panic!(\"no name\");";
    check("if name.is_empty() {", panics, "motor test greeter", &["FAILED", "`trap`", "1 failed"]);
    check("\"greet\", \"Says", "\"Greet me\", \"Says", "motor build greeter", &["Greet me"]);
    // Its twin.
    fs::write(&source, &right).unwrap();
    let ended = shell(motor, model, "motor test greeter");
    assert!(ended.status.success(), "{}", text(&ended.stderr));
}

/// A component that imports an interface and exports one function.
fn importing(interface: &str) -> Vec<u8> {
    let text = format!(
        "(component (import \"{interface}\" (instance (export \"f\" (func)))) \
         (core module $m (func (export \"f\") (result i32) i32.const 1)) (core instance $i (instantiate $m)) \
         (func (export \"one\") (result u32) (canon lift (core func $i \"f\"))))"
    );
    wat::parse_str(text).unwrap()
}

#[test]
fn a_wrong_component_gets_an_error_that_names_the_fix() {
    let motor = Motor::new();
    let no_list = "(component (instance $tools) (export \"motor:host/tools@0.1.1\" (instance $tools)))";
    for (name, bytes, words) in [
        ("too-new", importing("motor:host/log@0.2.0"), &["0.2.0", "0.1"][..]),
        ("not-offered", importing("wasi:nn/graph@0.2.0"), &["wasi:nn/graph", "does not offer"]),
        ("sockets", importing("wasi:sockets/tcp@0.2.6"), &["wasi:sockets", "leave out", "std::net"]),
        ("wasi-3", importing("wasi:io/streams@0.3.0"), &["0.3.0", "0.2"]),
        ("no-export", wat::parse_str(no_list).unwrap(), &["does not have export `list`"]),
        ("core", wat::parse_str("(module)").unwrap(), &["core module", "wasm32-wasip2"]),
        ("nothing", wat::parse_str("(component)").unwrap(), &["offers no tools"]),
        ("twice", hostile_guest("bad-descriptions"), &["offers `twice` twice"]),
    ] {
        let file = motor.file(&format!("{name}.wasm"), bytes);
        let ended = motor.run(&["call", file.to_str().unwrap()]);
        assert_ne!(ended.code, Some(0), "{name}: {ended:?}");
        for word in words {
            assert!(ended.stderr.contains(word), "{name}: {word:?} is not said: {ended:?}");
        }
    }
    // The twin of all of them.
    let right = motor.file("right.wasm", wat::parse_str(ONE).unwrap());
    assert_eq!(motor.stdout(&["call", right.to_str().unwrap(), "one"]), "1\n");
}

#[test]
fn a_component_of_an_earlier_version_still_runs() {
    let motor = Motor::new();
    let fixture = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/components/tool-0.1.1.wasm");
    let report = motor.json(&["inspect", fixture]);
    assert!(report["exports"].to_string().contains("motor:host/tools@0.1.1"), "{report:#}");
    assert_eq!(motor.stdout(&["call", fixture, "greet", r#"{"name":"Ada"}"#]), "hello, Ada\n");
}

const ONE: &str = "(component (core module $m (func (export \"f\") (result i32) i32.const 1)) (core instance $i \
                   (instantiate $m)) (func (export \"one\") (result u32) (canon lift (core func $i \"f\"))))";

#[test]
fn a_missing_toolchain_is_named_with_the_command_that_installs_it() {
    let motor = Motor::new().env("PATH", "/nowhere");
    let report = |language: &str| {
        let directory = motor.directory().join(language);
        let directory = directory.to_str().unwrap();
        let made: Value = motor.json(&["new", "skill", "greeter", "--lang", language, "--dir", directory]);
        assert!(Path::new(made["directory"].as_str().unwrap()).is_dir(), "{made}");
        motor.run(&["build", directory])
    };
    report("rust").refused(1, &["the Rust compiler is not installed", "rustup"]);
    report("python").refused(1, &["componentize-py is not installed", "pip install componentize-py=="]);
    report("js").refused(1, &["jco is not installed", "npm install"]);
    motor.run(&["new", "tool", "greeter", "--lang", "cobol"]).refused(2, &["scaffolds for rust, python, js"]);
    motor.run(&["new", "tool", "Greeter"]).refused(2, &["lower case"]);
    motor.run(&["new", "tool", "greeter", "--dir", "rust"]).refused(2, &["another name"]);
    motor.run(&["build", "."]).refused(1, &["not a project", "motor new tool"]);
}
