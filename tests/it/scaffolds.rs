//! Scaffolds of every language, from an empty directory to a call by a run (SPEC HOST-9): made, built with the language's own
//! toolchain (`cargo xtask toolchains`), tested, packed, dropped in, reviewed, approved, called: a skill by its archive, and a tool
//! by the commands of the language's page. The review names exactly the powers that the sources use: those of the scaffold, and then
//! those of its worked example. A reflector is approved, and used by a cycle; a neuron is proposed with its scenarios, approved, and
//! tried, both by the commands of `docs/authoring.md`.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use serde_json::{Value, json};
use tests::binary::{Motor, program_file};
use tests::network::{Reply, Site};
use tests::{block_on, report, target_directory};

use crate::chat::world as chat;
use crate::cortex::{Mind, trusting};
use crate::neurons;
use crate::skills_scenarios::world::{World, call, calls, says};

mod javascript;
pub(crate) mod layers;

/// The longest a command may take, in seconds.
const MAX_SECONDS: &str = "580";
const SECRET: &str = "swordfish-of-the-scaffolds";

const AUTHORING: &str = include_str!("../../docs/authoring.md");
/// `authors.rs` executes the page of Rust.
const IN_RUST: &str =
    "```console\n$ motor new tool greeter --lang rust\n$ motor build greeter\n$ motor test greeter\n```\n";

struct Row {
    language: &'static str,
    page: &'static str,
    source: &'static str,
    /// The beginning of a line of comment.
    comment: &'static str,
    /// The powers of the scaffold, as its review names them. The libraries of Rust and CPython themselves print, and take
    /// random numbers for their hashes or a seed.
    scaffold: &'static [&'static str],
    /// Those of its worked example.
    example: &'static [&'static str],
}

impl Row {
    /// The commands of its page. That about JavaScript is also about TypeScript.
    fn commands(&self) -> Vec<String> {
        let of_page = commands(self.page, "motor new tool").into_iter();
        of_page.map(|line| line.replace("--lang js", &format!("--lang {}", self.language))).collect()
    }
}

const ROWS: [Row; 5] = [
    Row {
        language: "rust",
        page: IN_RUST,
        source: "src/lib.rs",
        comment: "//",
        scaffold: &["command_line", "random"],
        example: &["command_line", "random", "workspace", "network"],
    },
    Row {
        language: "python",
        page: include_str!("../../docs/authoring-python.md"),
        source: "src/app.py",
        comment: "#",
        scaffold: &["command_line", "random", "log"],
        example: &["command_line", "random", "workspace", "network", "log"],
    },
    Row {
        language: "js",
        page: include_str!("../../docs/authoring-javascript.md"),
        source: "src/tool.js",
        comment: "//",
        scaffold: &["log"],
        example: &["workspace", "network", "log"],
    },
    Row {
        language: "ts",
        page: include_str!("../../docs/authoring-javascript.md"),
        source: "src/tool.ts",
        comment: "//",
        scaffold: &["log"],
        example: &["workspace", "network", "log"],
    },
    Row {
        language: "c",
        page: include_str!("../../docs/authoring-c.md"),
        source: "src/tools.c",
        comment: "//",
        scaffold: &[],
        example: &["workspace", "network"],
    },
];

fn toolchain(name: &str) -> PathBuf {
    target_directory().join("toolchains").join(name)
}

/// Runs the program or another one, with the author's toolchains and as the owner, in the directory beside the home.
pub(crate) fn run(motor: &Motor, program: &Path, arguments: &[&str]) -> Output {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let or = |name: &str, directory: &str| match variable(name) {
        empty if empty.is_empty() => format!("{}/{directory}", variable("HOME")),
        set => set,
    };
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", MAX_SECONDS]).arg(program).args(arguments).env_clear();
    command.current_dir(motor.directory());
    let path = format!("{}:{}", program_file().parent().unwrap().display(), variable("PATH"));
    command.env("PATH", path).env("HOME", motor.directory()).env("MOTOR_HOME", motor.home());
    command.env("MOTOR_OWNER_TOKEN", motor.owner_token());
    command.env("CARGO_HOME", or("CARGO_HOME", ".cargo")).env("RUSTUP_HOME", or("RUSTUP_HOME", ".rustup"));
    command.env("RUSTUP_TOOLCHAIN", variable("RUSTUP_TOOLCHAIN"));
    command.env("ZIG_GLOBAL_CACHE_DIR", toolchain("c").join("cache"));
    command.output().unwrap()
}

#[track_caller]
pub(crate) fn motor(motor: &Motor, arguments: &[&str]) -> String {
    let ended = run(motor, program_file(), arguments);
    let all = text(&ended);
    assert!(ended.status.success(), "{arguments:?}: {all}");
    all
}

fn text(ended: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr))
}

/// Gives a project the toolchain that `cargo xtask toolchains` installed. Returns why it cannot, if it cannot.
pub(crate) fn equip(motor: &Motor, language: &str, project: &Path) -> Result<(), String> {
    let there = |name: &str| match toolchain(name).join("built.stamp").exists() {
        true => Ok(toolchain(name)),
        false => Err(format!("{language}: `cargo xtask toolchains` did not install `{name}`")),
    };
    match language {
        "rust" => {
            fetch(motor, project).map_err(|reason| format!("rust: {reason}"))?;
            // One target directory for every build: the SDK's dependencies are compiled once.
            let shared = target_directory().join("scaffolds");
            fs::create_dir_all(&shared).unwrap();
            fs::create_dir_all(project.join("build")).unwrap();
            symlink(shared, project.join("build/target")).unwrap();
        }
        "python" => symlink(there("python")?.join("venv"), project.join(".toolchain")).unwrap(),
        "js" | "ts" => symlink(there("javascript")?.join("node_modules"), project.join("node_modules")).unwrap(),
        _ => symlink(there("c")?.join("venv"), project.join(".toolchain")).unwrap(),
    }
    Ok(())
}

/// Fetches the packages of a project in Rust. Returns why it cannot, if the registry has no package for anyone.
///
/// # Panics
/// If only those of this project are not to be had: it is wrong, and not the network.
pub(crate) fn fetch(motor: &Motor, project: &Path) -> Result<(), String> {
    let fetched = |project: &Path| {
        let manifest = project.join("Cargo.toml");
        let targets = ["--target", "wasm32-wasip2", "--target", "wasm32-unknown-unknown"];
        let fetch = [&["fetch", "-q", "--manifest-path", manifest.to_str().unwrap()][..], &targets[..]].concat();
        let ended = run(motor, Path::new("cargo"), &fetch);
        if ended.status.success() { Ok(()) } else { Err(text(&ended)) }
    };
    let Err(reason) = fetched(project) else { return Ok(()) };
    // Without a lock file, so that the registry is asked even if the package was fetched before.
    let known = tempfile::tempdir().unwrap();
    let manifest = "[package]\nname = \"known\"\nedition = \"2024\"\n[lib]\npath = \"lib.rs\"\n[dependencies]\ncfg-if = \"1\"\n[workspace]\n";
    fs::write(known.path().join("Cargo.toml"), manifest).unwrap();
    fs::write(known.path().join("lib.rs"), "").unwrap();
    match fetched(known.path()) {
        Err(unreachable) => Err(format!("the registry does not answer: {unreachable}")),
        Ok(()) => panic!("the packages of `{}` cannot be fetched: {reason}", project.display()),
    }
}

/// The commands of the block of a page that begins with this one.
pub fn commands(page: &str, first: &str) -> Vec<String> {
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let lines = |(_, block): (&str, &str)| -> Vec<String> {
        let whole = block.replace("\\\n", " ");
        whole.lines().map(|line| line.strip_prefix("$ ").unwrap_or(line).to_owned()).collect()
    };
    let found = blocks.map(lines).find(|lines| lines.first().is_some_and(|line| line.starts_with(first)));
    found.unwrap_or_else(|| panic!("no block begins with `{first}`"))
}

/// Whether a command of a page installs a toolchain.
pub fn installs(command: &str) -> bool {
    command.split(' ').any(|word| word == "install")
}

/// Follows a page as its reader does, and returns all that its commands print. The project that the first one makes is given its
/// toolchain in place of the command that installs it.
fn follow(motor: &Motor, language: &str, project: &Path, commands: &[String]) -> Result<String, String> {
    let (mut directory, mut printed) = (motor.directory().to_owned(), String::new());
    for (index, line) in commands.iter().enumerate() {
        if let Some(name) = line.strip_prefix("cd ") {
            directory.push(name);
        } else if !installs(line) {
            let ended = run(motor, Path::new("sh"), &["-c", &format!("cd '{}' && {line}", directory.display())]);
            assert!(ended.status.success(), "{language}: {line}: {}", text(&ended));
            printed.push_str(&text(&ended));
        }
        if index == 0 {
            equip(motor, language, project)?;
        }
    }
    Ok(printed)
}

/// Removes the projects and the SDK from the shared target directory: their paths are new each time, and only the other
/// packages are used again. Done once, before the first build.
pub(crate) static PRUNED: LazyLock<()> = LazyLock::new(prune);

fn prune() {
    let shared = target_directory().join("scaffolds");
    let profiles = ["wasm32-wasip2/release", "wasm32-unknown-unknown/release", "release", "debug"];
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
pub(crate) fn with_example(source: &str, comment: &str) -> String {
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

/// Copies the built tool into the home, and returns its review.
fn drop_in(world: &World, project: &Path) -> Value {
    let tools = world.motor.home().join("tools");
    fs::create_dir_all(&tools).unwrap();
    for file in ["greeter.wasm", "greeter.json"] {
        fs::copy(project.join("build").join(file), tools.join(file)).unwrap();
    }
    world.review("greeter")
}

/// Checks that a review names exactly these powers, domains and credentials.
#[track_caller]
fn names(review: &Value, powers: &[&str], domains: &[&str], credentials: &[&str]) {
    let component = &review["components"][0];
    assert_eq!((&component["capabilities"], &component["problem"]), (&json!(powers), &Value::Null), "{review:#}");
    let proposal = &review["proposal"];
    assert_eq!(
        (&proposal["domains"], &proposal["requiredCredentials"], &proposal["writes"]),
        (&json!(domains), &json!(credentials), &json!([])),
        "{review:#}"
    );
}

fn output(world: &World) -> String {
    calls(&world.trace())[0]["result"]["output"].as_str().unwrap_or_default().to_owned()
}

/// A skill: its archive is all that comes to the home.
fn check_skill(row: &Row) -> Result<(), String> {
    let Row { language, .. } = row;
    let world = World::new(vec![call("greet", json!({ "name": "Ada" })), says("done")]);
    let project = world.motor.directory().join("greeter");
    motor(&world.motor, &["new", "skill", "greeter", "--lang", language]);
    equip(&world.motor, language, &project)?;
    assert!(motor(&world.motor, &["build", "greeter"]).contains("motor test greeter"), "{language}");
    assert!(motor(&world.motor, &["test", "greeter", "--no-build"]).contains("3 passed, 0 failed"), "{language}");
    let packed = || {
        motor(&world.motor, &["pack", "greeter"]);
        fs::read(project.join("build/greeter.skill")).unwrap()
    };
    assert!(packed() == packed(), "{language}: the same files gave other bytes");
    world.motor.run(&["skill", "add", project.join("build/greeter.skill").to_str().unwrap()]).succeeded();
    names(&world.review("greeter"), row.scaffold, &[], &[]);
    world.approve(&["greeter"]);
    world.act("greeter", &[]).succeeded();
    assert_eq!(output(&world), "hello, Ada", "{language}");
    Ok(())
}

/// A tool, by the commands of its page.
fn check(row: &Row) -> Result<(), String> {
    let Row { language, .. } = row;
    let site = block_on(Site::start());
    site.route("/page", Reply::text("a page"));
    let mut world = World::new(Vec::new()).beside(&[&site]);
    let project = world.motor.directory().join("greeter");
    let printed = follow(&world.motor, language, &project, &row.commands())?;
    assert!(printed.contains("3 passed, 0 failed"), "{language}: {printed}");
    motor(&world.motor, &["dev", "greeter", "greet", r#"{"name":"Bob"}"#, "--once"]);
    let again = motor(&world.motor, &["dev", "greeter", "--once"]);
    for words in ["hello, Bob", "next: motor test greeter"] {
        assert!(again.contains(words), "{language}: the last call is repeated: {words}: {again}");
    }
    motor(&world.motor, &["pack", "greeter"]);
    names(&drop_in(&world, &project), row.scaffold, &[], &[]);
    world.approve(&["greeter"]);
    world.plays(vec![call("greet", json!({ "name": "Ada" })), says("done")]);
    world.motor.run(&["act", "Greet Ada.", "--tools", "greeter"]).succeeded();
    assert_eq!(output(&world), "hello, Ada", "{language}");
    if ["js", "ts"].contains(language) {
        javascript::check(&world, &project, language);
    }
    if *language == "python" {
        layers::without_files(&world, &project);
    }
    example(row, row.example, &mut world, &project, &site);
    if *language == "ts" {
        javascript::check_types(&world.motor, &project);
    }
    if ["js", "python"].contains(language) {
        javascript::refusals(&world, &project, &site.url("/page"));
        layers::check(&world, &project, language, &site);
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
fn example(row: &Row, powers: &[&str], world: &mut World, project: &Path, site: &Site) {
    let language = row.language;
    let source = project.join(row.source);
    fs::write(&source, with_example(&fs::read_to_string(&source).unwrap(), row.comment)).unwrap();
    // The world of the others has all of them, and their components only those that they use.
    if ["python", "js", "ts"].contains(&language) {
        javascript::take(&project.join("wit/project.wit"), &["wasi:http", "wasi:filesystem", "outbound"]);
    }
    let domain = site.address().to_string();
    let policy = json!({ "domains": [domain], "requiredCredentials": ["example_key"] });
    fs::write(project.join("policy.json"), policy.to_string()).unwrap();
    motor(&world.motor, &["build", "greeter"]);
    names(&drop_in(world, project), powers, &[&domain], &["example_key"]);
    let set = ["credential", "set", "example_key", "--domain", &domain];
    world.motor.run_as_owner(&set, SECRET).succeeded();
    world.approve(&["greeter", "--proposed"]);
    let granted = &world.review("greeter")["policy"];
    assert_eq!(
        (&granted["domains"], &granted["requiredCredentials"], &granted["writes"]),
        (&json!([domain]), &json!(["example_key"]), &json!([])),
        "{language}: {granted:#}"
    );
    world.plays(vec![call("save_page", json!({ "url": site.url("/page") })), says("done")]);
    world.motor.run(&["act", "Save it.", "--tools", "greeter"]).succeeded();
    assert_eq!(output(world), "saved as `page.txt`", "{language}: {:#}", world.trace());
    let sent = site.requests().pop().and_then(|request| request.header("authorization"));
    assert_eq!(sent, Some(format!("Bearer {SECRET}")), "{language}");
}

#[test]
fn a_scaffold_of_each_language_is_built_approved_and_called() {
    LazyLock::force(&PRUNED);
    let skipped: Vec<String> = ROWS.iter().filter_map(|row| check_skill(row).and_then(|()| check(row)).err()).collect();
    report(&format!(
        "scaffolds: a skill and a tool in {} of {} languages built, tested, packed, reviewed, approved and called, {} skipped",
        ROWS.len() - skipped.len(),
        ROWS.len(),
        skipped.len()
    ));
    skipped.iter().for_each(|reason| report(&format!("  skipped {reason}")));
}

const REFLECTORS: [&str; 5] = ["rust", "python", "js", "ts", "c"];

/// The commands of a block of the page about all kinds, in this language.
fn page(first: &str, language: &str) -> Vec<String> {
    let in_language = |line: String| line.replace("--lang rust", &format!("--lang {language}"));
    commands(AUTHORING, first).into_iter().map(in_language).collect()
}

fn check_reflector(language: &str) -> Result<(), String> {
    let mind = Mind::new();
    let (home, project) = (&mind.motor, mind.motor.directory().join("careful"));
    let printed = follow(home, language, &project, &page("motor new reflector", language))?;
    for words in ["motor cortex reflector approve careful", "3 passed, 0 failed"] {
        assert!(printed.contains(words), "{language}: {words}: {printed}");
    }
    let composed = motor(home, &["dev", "careful", "compose", r#"{"facts":{"peers":[]}}"#, "--once"]);
    assert!(composed.contains("The facts of this cycle"), "{language}: {composed}");
    let packed = run(home, program_file(), &["pack", "careful"]);
    assert!(!packed.status.success() && text(&packed).contains("a reflector is not packed"), "{language}: {packed:?}");
    if language == "ts" {
        javascript::check_types(home, &project);
    }

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

const NEURONS: [&str; 4] = ["rust", "js", "ts", "c"];

fn check_neuron(language: &str) -> Result<(), String> {
    let world = chat::World::new(|_| chat::says("Bitcoin is at $97,509"));
    let (home, project) = (&world.motor, world.motor.directory().join("prices"));
    home.configure("[energy]\nenabled = false\n");
    let serving = world.serve();
    let printed = follow(home, language, &project, &page("motor new neuron", language))?;
    for words in [
        "can use: nothing",
        "motor neuron propose prices",
        "--inputs run.completed --outputs price.high",
        "3 passed, 0 failed",
        "passed its quarantine of 3 scenarios",
    ] {
        assert!(printed.contains(words), "{language}: {words}: {printed}");
    }
    let signal = r#"{"signal":{"kind":"run.completed","data":{"summary":"at $97,001"}}}"#;
    let ticked = motor(home, &["dev", "prices", "tick", signal, "--once"]);
    assert!(ticked.contains(r#""price":97001"#), "{language}: {ticked}");
    let packed = run(home, program_file(), &["pack", "prices"]);
    assert!(!packed.status.success() && text(&packed).contains("a neuron is not packed"), "{language}: {packed:?}");
    if language == "ts" {
        javascript::check_types(home, &project);
    }

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
fn the_commands_of_a_block_are_found() {
    let text = "a\n```json\n{}\n```\nb\n```console\n$ x y \\\n    z\n$ w\n```\n";
    assert_eq!(commands(text, "x"), ["x y      z", "w"]);
}

#[test]
fn the_worked_example_is_taken_out_of_its_comments() {
    let source =
        "int a;\n// Worked example.\n//\n// int b;\n//\n// int c;\n\n// a note\n    // {\"save_page\"},\nint d;\n";
    let expected = "int a;\n// Worked example.\n\nint b;\n\nint c;\n\n// a note\n    {\"save_page\"},\nint d;\n";
    assert_eq!(with_example(source, "//"), expected);
}
