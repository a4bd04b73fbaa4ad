//! Scaffolds of every language, from an empty directory to a call by a run (SPEC HOST-9): made, built with the language's own
//! toolchain (`cargo xtask toolchains`), tested, packed, dropped in, reviewed, approved, called. The review names exactly the
//! powers that the sources use: those of the scaffold, and then those of its worked example. A reflector is approved, and used by a cycle; a
//! neuron is proposed with its scenarios, approved, and tried.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::{Value, json};
use tests::binary::{Motor, program_file};
use tests::network::{Reply, Site};
use tests::{block_on, report, target_directory};

use crate::chat::world as chat;
use crate::cortex::{BY_COMMAND, Mind, trusting};
use crate::neurons;
use crate::skills_scenarios::world::{World, call, calls, says};

/// The longest a command may take, in seconds.
const MAX_SECONDS: &str = "580";
const SECRET: &str = "swordfish-of-the-scaffolds";

struct Row {
    language: &'static str,
    source: &'static str,
    /// The beginning of a line of comment.
    comment: &'static str,
    /// The powers of the scaffold, of `POWERS`. CPython itself imports files.
    scaffold: &'static [&'static str],
    /// Whether the worked example is there.
    has_example: bool,
}

const ROWS: [Row; 4] = [
    Row { language: "rust", source: "src/lib.rs", comment: "//", scaffold: &[], has_example: true },
    Row { language: "python", source: "src/app.py", comment: "#", scaffold: &["workspace"], has_example: true },
    Row { language: "js", source: "src/tool.js", comment: "//", scaffold: &[], has_example: false },
    Row { language: "c", source: "src/tools.c", comment: "//", scaffold: &[], has_example: true },
];
const POWERS: [&str; 3] = ["credentials", "network", "workspace"];

fn toolchain(name: &str) -> PathBuf {
    target_directory().join("toolchains").join(name)
}

/// Runs the program or another one, with the author's toolchains, in the directory beside the home.
fn run(motor: &Motor, program: &Path, arguments: &[&str]) -> Output {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let or = |name: &str, directory: &str| match variable(name) {
        empty if empty.is_empty() => format!("{}/{directory}", variable("HOME")),
        set => set,
    };
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", MAX_SECONDS]).arg(program).args(arguments).env_clear();
    command.current_dir(motor.directory());
    command.env("PATH", variable("PATH")).env("HOME", motor.directory()).env("MOTOR_HOME", motor.home());
    command.env("CARGO_HOME", or("CARGO_HOME", ".cargo")).env("RUSTUP_HOME", or("RUSTUP_HOME", ".rustup"));
    command.env("RUSTUP_TOOLCHAIN", variable("RUSTUP_TOOLCHAIN"));
    command.env("ZIG_GLOBAL_CACHE_DIR", toolchain("c").join("cache"));
    command.output().unwrap()
}

#[track_caller]
fn motor(motor: &Motor, arguments: &[&str]) -> String {
    let ended = run(motor, program_file(), arguments);
    let all = text(&ended);
    assert!(ended.status.success(), "{arguments:?}: {all}");
    all
}

fn text(ended: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr))
}

/// Gives a project the toolchain that `cargo xtask toolchains` installed. Returns why it cannot, if it cannot.
fn equip(motor: &Motor, language: &str, project: &Path) -> Result<(), String> {
    let there = |name: &str| match toolchain(name).join("built.stamp").exists() {
        true => Ok(toolchain(name)),
        false => Err(format!("{language}: `cargo xtask toolchains` did not install `{name}`")),
    };
    match language {
        "rust" => {
            let manifest = project.join("Cargo.toml");
            let manifest = manifest.to_str().unwrap();
            let targets = ["--target", "wasm32-wasip2", "--target", "wasm32-unknown-unknown"];
            let fetch = [&["fetch", "-q", "--manifest-path", manifest][..], &targets[..]].concat();
            let fetched = run(motor, Path::new("cargo"), &fetch);
            if !fetched.status.success() {
                return Err(format!("rust: no packages: {}", String::from_utf8_lossy(&fetched.stderr)));
            }
            // One target directory for every build: the SDK's dependencies are compiled once.
            let shared = target_directory().join("scaffolds");
            fs::create_dir_all(&shared).unwrap();
            fs::create_dir_all(project.join("build")).unwrap();
            symlink(shared, project.join("build/target")).unwrap();
        }
        "python" => symlink(there("python")?.join("venv"), project.join(".toolchain")).unwrap(),
        "js" => symlink(there("javascript")?.join("node_modules"), project.join("node_modules")).unwrap(),
        _ => {
            let (zig, tools) = (there("c")?, there("wasm-tools")?);
            let programs = project.join(".toolchain/bin");
            fs::create_dir_all(&programs).unwrap();
            for (name, venv) in [("python", zig), ("wasm-tools", tools)] {
                let path = programs.join(name);
                fs::write(&path, format!("#!/bin/sh\nexec '{}/venv/bin/{name}' \"$@\"\n", venv.display())).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
    }
    Ok(())
}

/// Removes the projects and the SDK from the shared target directory: their paths are new each time, and only the other
/// packages are used again. Done once, before the first build.
static PRUNED: LazyLock<()> = LazyLock::new(prune);

fn prune() {
    let shared = target_directory().join("scaffolds");
    let profiles = ["wasm32-wasip2/release", "wasm32-unknown-unknown/release", "release"];
    for directory in profiles.iter().flat_map(|profile| [format!("{profile}/deps"), format!("{profile}/.fingerprint")])
    {
        for entry in fs::read_dir(shared.join(directory)).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().replace('_', "-");
            let path = entry.path();
            let own = ["greeter", "careful", "prices", "motor-sdk"];
            if own.iter().any(|start| name.strip_prefix("lib").unwrap_or(&name).starts_with(start)) {
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }.ok();
            }
        }
    }
}

/// The source with its worked example: the block of comments after the first empty one, and the lines that name it.
fn with_example(source: &str, comment: &str) -> String {
    let (mut in_block, mut after, mut lines) = (false, false, Vec::new());
    for line in source.lines() {
        let indent = line.len() - line.trim_start().len();
        let rest = line.trim_start().strip_prefix(comment).map(|rest| rest.strip_prefix(' ').unwrap_or(rest));
        if !after && rest == Some("") {
            (in_block, after) = (true, true);
        }
        in_block &= rest.is_some();
        match rest {
            Some(rest) if in_block || (after && rest.to_lowercase().contains("save_page")) => {
                lines.push(format!("{}{rest}", &line[..indent]));
            }
            _ => lines.push(line.to_owned()),
        }
    }
    assert!(after, "there is no worked example");
    lines.join("\n") + "\n"
}

/// Copies the built tool into the home, and returns its powers by its review.
fn drop_in(world: &World, project: &Path) -> Vec<&'static str> {
    let tools = world.motor.home().join("tools");
    fs::create_dir_all(&tools).unwrap();
    for file in ["greeter.wasm", "greeter.json"] {
        fs::copy(project.join("build").join(file), tools.join(file)).unwrap();
    }
    let review = world.review("greeter");
    let component = &review["components"][0];
    assert_eq!(component["problem"], Value::Null, "{component:#}");
    let words = component["capabilities"].to_string();
    POWERS.into_iter().filter(|power| words.contains(power)).collect()
}

fn output(world: &World) -> String {
    calls(&world.trace())[0]["result"]["output"].as_str().unwrap_or_default().to_owned()
}

fn check(row: &Row) -> Result<(), String> {
    let Row { language, .. } = row;
    let site = block_on(Site::start());
    site.route("/page", Reply::text("a page"));
    let mut world = World::new(Vec::new()).beside(&[&site]);
    let project = world.motor.directory().join("greeter");
    motor(&world.motor, &["new", "tool", "greeter", "--lang", language]);
    equip(&world.motor, language, &project)?;
    motor(&world.motor, &["build", "greeter"]);
    assert!(motor(&world.motor, &["test", "greeter"]).contains("3 passed, 0 failed"), "{language}");
    motor(&world.motor, &["dev", "greeter", "greet", r#"{"name":"Bob"}"#, "--once"]);
    assert!(
        motor(&world.motor, &["dev", "greeter", "--once"]).contains("hello, Bob"),
        "{language}: the last call is repeated"
    );
    motor(&world.motor, &["pack", "greeter"]);
    assert_eq!(drop_in(&world, &project), row.scaffold, "{language}");
    world.approve(&["greeter"]);
    world.plays(vec![call("greet", json!({ "name": "Ada" })), says("done")]);
    world.motor.run(&["act", "Greet Ada.", "--tools", "greeter"]).succeeded();
    assert_eq!(output(&world), "hello, Ada", "{language}");
    if row.has_example {
        example(row, &mut world, &project, &site);
    }
    if *language == "js" {
        own_world(&world, &project);
    }
    Ok(())
}

/// A component of a world of its own, which describes nothing itself: the comments of its WIT are its descriptions.
fn own_world(world: &World, project: &Path) {
    let wit = "world project {\n    /// Counts the words of a text.\n    export count: func(text: string) -> u32;\n}\n";
    fs::write(project.join("wit/project.wit"), wit).unwrap();
    let source = "export function count(text) {\n  return text.split(/\\s+/).filter(Boolean).length;\n}\n";
    fs::write(project.join("src/tool.js"), source).unwrap();
    let built = motor(&world.motor, &["build", "greeter"]);
    assert!(built.contains("count(") && built.contains("Counts the words of a text."), "{built}");
}

/// The worked example: a file, a request and a credential.
fn example(row: &Row, world: &mut World, project: &Path, site: &Site) {
    let language = row.language;
    let source = project.join(row.source);
    fs::write(&source, with_example(&fs::read_to_string(&source).unwrap(), row.comment)).unwrap();
    if language == "python" {
        let path = project.join("wit/project.wit");
        let wit = fs::read_to_string(&path).unwrap();
        fs::write(&path, wit.replace("// import wasi", "import wasi").replace("// import outbound", "import outbound"))
            .unwrap();
    }
    let domain = site.address().to_string();
    let policy = json!({ "domains": [domain], "requiredCredentials": ["example_key"] });
    fs::write(project.join("policy.json"), policy.to_string()).unwrap();
    motor(&world.motor, &["build", "greeter"]);
    assert_eq!(drop_in(world, project), ["network", "workspace"], "{language}");
    let set = ["credential", "set", "example_key", "--domain", &domain];
    world.motor.run_as_owner(&set, SECRET).succeeded();
    world.approve(&["greeter", "--proposed"]);
    world.plays(vec![call("save_page", json!({ "url": site.url("/page") })), says("done")]);
    world.motor.run(&["act", "Save it.", "--tools", "greeter"]).succeeded();
    assert_eq!(output(world), "saved as `page.txt`", "{language}: {:#}", world.trace());
    let sent = site.requests().pop().and_then(|request| request.header("authorization"));
    assert_eq!(sent, Some(format!("Bearer {SECRET}")), "{language}");
}

#[test]
fn a_scaffold_of_each_language_is_built_approved_and_called() {
    LazyLock::force(&PRUNED);
    let skipped: Vec<String> = ROWS.iter().filter_map(|row| check(row).err()).collect();
    report(&format!(
        "scaffolds: {} of {} languages built, tested, packed, reviewed, approved and called, {} skipped",
        ROWS.len() - skipped.len(),
        ROWS.len(),
        skipped.len()
    ));
    skipped.iter().for_each(|reason| report(&format!("  skipped {reason}")));
}

const REFLECTORS: [&str; 3] = ["rust", "python", "js"];

fn check_reflector(language: &str) -> Result<(), String> {
    let mind = Mind::new();
    let (home, project) = (&mind.motor, mind.motor.directory().join("careful"));
    motor(home, &["new", "reflector", "careful", "--lang", language]);
    equip(home, language, &project)?;
    assert!(motor(home, &["build", "careful"]).contains("motor cortex reflector approve careful"), "{language}");
    assert!(motor(home, &["test", "careful"]).contains("3 passed, 0 failed"), "{language}");
    let composed = motor(home, &["dev", "careful", "compose", r#"{"facts":{"peers":[]}}"#, "--once"]);
    assert!(composed.contains("The facts of this cycle"), "{language}: {composed}");
    let packed = run(home, program_file(), &["pack", "careful"]);
    assert!(!packed.status.success() && text(&packed).contains("a reflector is not packed"), "{language}: {packed:?}");

    let reflectors = home.home().join("reflectors");
    fs::create_dir_all(&reflectors).unwrap();
    fs::copy(project.join("build/careful.wasm"), reflectors.join("careful.wasm")).unwrap();
    home.run_as_owner(&["cortex", "reflector", "approve", "careful"], "").succeeded();
    home.configure(&format!("[cortex]\nreflector = \"careful\"\n{BY_COMMAND}"));
    mind.hears("mai", "hello");
    mind.cycle(&["mai"], trusting("mai", 2));
    assert_eq!(
        (mind.trust("mai"), &mind.history()[0]["reflector"]["name"]),
        (json!(2), &json!("careful")),
        "{language}"
    );
    let system = mind.requests()[0]["messages"][0]["content"].to_string();
    assert!(system.contains("You look back at what an agent did"), "{language}: {system}");
    mind.replies_text("I trust everyone.");
    let (code, cycle) = mind.reflects_as_json(&["mai"]);
    assert_eq!(
        (code, &cycle["record"]["outcome"]["code"]),
        (Some(1), &json!("reply_unreadable")),
        "{language}: {cycle}"
    );
    Ok(())
}

#[test]
fn a_reflector_of_each_language_is_built_approved_and_used_by_a_cycle() {
    LazyLock::force(&PRUNED);
    let skipped: Vec<String> = REFLECTORS.into_iter().filter_map(|language| check_reflector(language).err()).collect();
    report(&format!(
        "reflectors: {} of {} languages built, tested, approved and used by a cycle, {} skipped",
        REFLECTORS.len() - skipped.len(),
        REFLECTORS.len(),
        skipped.len()
    ));
    skipped.iter().for_each(|reason| report(&format!("  skipped {reason}")));
}

const NEURONS: [&str; 2] = ["rust", "js"];

fn check_neuron(language: &str) -> Result<(), String> {
    let world = chat::World::new(|_| chat::says("Bitcoin is at $97,509"));
    let (home, project) = (&world.motor, world.motor.directory().join("prices"));
    motor(home, &["new", "neuron", "prices", "--lang", language]);
    equip(home, language, &project)?;
    let built = motor(home, &["build", "prices"]);
    for words in ["can use: nothing", "motor neuron propose prices", "--inputs run.completed --outputs price.high"] {
        assert!(built.contains(words), "{language}: {words}: {built}");
    }
    assert!(motor(home, &["test", "prices"]).contains("3 passed, 0 failed"), "{language}");
    let signal = r#"{"signal":{"kind":"run.completed","data":{"summary":"at $97,001"}}}"#;
    let ticked = motor(home, &["dev", "prices", "tick", signal, "--once"]);
    assert!(ticked.contains(r#""price":97001"#), "{language}: {ticked}");
    let packed = run(home, program_file(), &["pack", "prices"]);
    assert!(!packed.status.success() && text(&packed).contains("a neuron is not packed"), "{language}: {packed:?}");

    home.configure("[energy]\nenabled = false\n");
    let serving = world.serve();
    let path = |file: &str| project.join(file).display().to_string();
    let (component, scenarios) = (path("build/prices.wasm"), path("scenarios.json"));
    let words = ["neuron", "propose", "prices", &component, "--purpose", "notices a high price"];
    let kinds = ["--inputs", "run.completed", "--outputs", "price.high", "--scenarios", &scenarios];
    let proposed = home.run_as_owner(&[&words[..], &kinds].concat(), "").succeeded();
    assert!(proposed.stdout.contains("passed its quarantine of 3 scenarios"), "{language}: {proposed:?}");
    home.run_as_owner(&["neuron", "approve", "prices"], "").succeeded();
    assert_eq!(neurons::status(&world, "prices").0, "trial", "{language}");
    neurons::act(&world, "Tell the price.");
    let signals = neurons::wait_for_signals(&world, 1);
    let (kind, data) = (&signals[0]["kind"], &signals[0]["data"]);
    assert_eq!((kind, data), (&json!("price.high"), &json!({ "price": 97_509 })), "{language}");
    serving.kill();
    Ok(())
}

#[test]
fn a_neuron_of_each_language_is_built_approved_and_tried() {
    LazyLock::force(&PRUNED);
    let skipped: Vec<String> = NEURONS.into_iter().filter_map(|language| check_neuron(language).err()).collect();
    report(&format!(
        "neurons: {} of {} languages built, tested, approved and tried, {} skipped",
        NEURONS.len() - skipped.len(),
        NEURONS.len(),
        skipped.len()
    ));
    skipped.iter().for_each(|reason| report(&format!("  skipped {reason}")));
}

#[test]
fn the_worked_example_is_taken_out_of_its_comments() {
    let source =
        "int a;\n// Worked example.\n//\n// int b;\n//\n// int c;\n\n// a note\n    // {\"save_page\"},\nint d;\n";
    let expected = "int a;\n// Worked example.\n\nint b;\n\nint c;\n\n// a note\n    {\"save_page\"},\nint d;\n";
    assert_eq!(with_example(source, "//"), expected);
}
