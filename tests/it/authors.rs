//! Authors' commands with the real program (SPEC HOST-9): `docs/authoring.md` is executed as it stands, cases and recorded sites
//! hold, and a mistake in a source is named with its line. `wrong_tools.rs` has the mistakes that need no toolchain.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::LazyLock;
use std::time::Duration;

use runtime::HOST_VERSION;
use serde_json::{Value, json};
use tests::binary::{Motor, Signal, program_file};
use tests::model_server::ModelServer;
use tests::network::{Reply, Site};
use tests::{Patience, block_on, cache, report};

use crate::scaffolds::{PRUNED, fetch, with_example};
use crate::skills_scenarios::world::{World, call, calls, says};
use crate::wrong_tools::{ANSWER, Project, SCHEMA, tool, tool_importing};

const PAGE: &str = include_str!("../../docs/authoring.md");
/// The longest a shell may take, in seconds: the first build compiles the SDK.
const MAX_SECONDS: &str = "900";
/// Behind it is all that a line of the page prints.
const BEFORE_A_LINE: &str = "== next line ==";

/// The commands of the page, in order.
fn commands() -> Vec<&'static str> {
    let blocks = PAGE.split("```console\n").skip(1).filter_map(|rest| rest.split("```").next());
    blocks.flat_map(str::lines).filter_map(|line| line.strip_prefix("$ ")).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A home at its default place: the directory of the person who reads the page.
fn reader() -> Motor {
    let motor = Motor::bare();
    let home = motor.directory().join(".local/share/motor");
    fs::create_dir_all(&home).unwrap();
    fs::create_dir_all(cache()).unwrap();
    symlink(cache(), home.join("cache")).unwrap();
    motor.at(home)
}

/// Runs lines in a shell, with the author's toolchain and a model that is set up, but without `MOTOR_HOME`. There is no terminal, so
/// the owner's token stands for the person who approves at one.
fn shell(motor: &Motor, model: &ModelServer, lines: &str) -> Output {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    let home = variable("HOME");
    let path = format!("{}:{}", program_file().parent().unwrap().display(), variable("PATH"));
    let or = |name: &str, directory: &str| match variable(name) {
        empty if empty.is_empty() => format!("{home}/{directory}"),
        set => set,
    };
    let mut command = Command::new("timeout");
    command.args(["--kill-after=5", MAX_SECONDS, "sh", "-c", lines]).current_dir(motor.directory()).env_clear();
    command.env("PATH", path).env("HOME", motor.directory());
    command.env("CARGO_HOME", or("CARGO_HOME", ".cargo")).env("RUSTUP_HOME", or("RUSTUP_HOME", ".rustup"));
    command.env("RUSTUP_TOOLCHAIN", variable("RUSTUP_TOOLCHAIN"));
    command.env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", "sk-test").env("MOTOR_KEYRING", "off");
    command.env("OPENAI_BASE_URL", model.base_url()).env("MOTOR_OWNER_TOKEN", motor.owner_token());
    command.output().unwrap()
}

/// Runs the lines in one shell until one fails. Returns for each that began all that it printed, and whether all succeeded.
fn session<'a>(motor: &Motor, model: &ModelServer, lines: &[&'a str]) -> (Vec<(&'a str, String)>, bool) {
    let marked: Vec<String> = lines.iter().map(|line| format!("printf '{BEFORE_A_LINE}'\n{line}\n")).collect();
    let ended = shell(motor, model, &format!("set -e\nexec 2>&1\n{}", marked.concat()));
    let printed = text(&ended.stdout);
    let parts = printed.split(BEFORE_A_LINE).skip(1).map(str::to_owned);
    (lines.iter().copied().zip(parts).collect(), ended.status.success())
}

/// Why a project in Rust cannot be built here, if it cannot.
fn unavailable(motor: &Motor, model: &ModelServer) -> Option<String> {
    let target = shell(motor, model, "test -d \"$(rustc --print target-libdir --target wasm32-wasip2)\"");
    if !target.status.success() {
        return Some("the target wasm32-wasip2 is not installed".to_owned());
    }
    let probe = motor.directory().join("probe");
    motor.run(&["new", "tool", "probe"]).succeeded();
    let fetched = fetch(motor, &probe);
    fs::remove_dir_all(probe).unwrap();
    fetched.err()
}

#[test]
fn the_page_leads_from_nothing_to_an_approved_tool() {
    let turns = json!([{ "tool_calls": [{ "name": "greet", "arguments": { "name": "Ada" } }] }, { "text": "greeted" }]);
    let model = block_on(ModelServer::scripted(json!({ "turns": turns })));
    let motor = reader();
    if let Some(reason) = unavailable(&motor, &model) {
        report(&format!("docs/authoring.md: 0 of {} commands executed, skipped: {reason}", commands().len()));
        return;
    }
    let lines = commands();
    assert!(lines.len() >= 10 && lines.iter().any(|line| line.starts_with("motor act")), "{lines:#?}");
    let (session, succeeded) = session(&motor, &model, &lines);
    assert!(succeeded && session.len() == lines.len(), "{:#?}", session.last());
    let tools = motor.home().join("tools");
    let dropped_in = format!("greeter/build/greeter.json {}\n", tools.display());
    for (line, printed) in &session {
        for (command, said) in [
            ("motor new", "next: motor build greeter"),
            ("motor build", "greet("),
            ("motor build", dropped_in.as_str()),
            ("motor build", "next: motor skill review greeter"),
            ("motor test", "3 passed, 0 failed"),
            ("motor dev", "hello, Ada"),
            ("motor skill review", "greet"),
            ("motor act", "greeted"),
            ("motor pack", "SKILL.md"),
        ] {
            assert!(!line.starts_with(command) || printed.contains(said), "{line}: {said:?} is not said: {printed}");
        }
    }
    // The home that the page names is that of a reader who names none.
    let reviewed = shell(&motor, &model, "motor skill review greeter");
    assert!(tools.is_dir() && reviewed.status.success(), "{}", text(&reviewed.stderr));
    for again in ["", " --case greets"] {
        let ended = shell(&motor, &model, &format!("motor dev greeter --once{again}"));
        assert!(text(&ended.stdout).contains("hello, Ada"), "{again}: {}", text(&ended.stderr));
    }
    let trace = motor.json(&["task", "status"]);
    assert_eq!(trace["steps"][0]["toolCalls"][0]["result"]["output"], "hello, Ada", "{trace:#}");

    // Built elsewhere from the same sources it is the same archive.
    let project = motor.directory().join("greeter");
    let elsewhere = motor.directory().join("elsewhere/greeter");
    copy(&project, &elsewhere);
    fs::create_dir(elsewhere.join("build")).unwrap();
    // The dependencies are not compiled again.
    symlink(project.join("build/target"), elsewhere.join("build/target")).unwrap();
    let built = shell(&motor, &model, "motor build elsewhere/greeter && motor pack elsewhere/greeter");
    assert!(built.status.success(), "{}", text(&built.stderr));
    let archive = elsewhere.join("build/greeter.skill");
    assert_eq!(fs::read(&archive).unwrap(), fs::read(project.join("build/greeter.skill")).unwrap());
    // Others take the archive, review and approve it, and a run of theirs calls it.
    let theirs = World::new(vec![call("greet", json!({ "name": "Ada" })), says("done")]);
    theirs.motor.run(&["skill", "add", archive.to_str().unwrap()]).succeeded();
    let component = theirs.review("greeter")["components"][0].clone();
    assert_eq!(
        (&component["capabilities"], &component["problem"]),
        (&json!(["command_line", "random"]), &Value::Null),
        "{component:#}"
    );
    theirs.act("greeter", &[]).refused(5, &["motor skill"]);
    theirs.approve(&["greeter"]);
    theirs.act("greeter", &[]).succeeded();
    assert_eq!(calls(&theirs.trace())[0]["result"]["output"], "hello, Ada");

    wrong_sources(&motor, &model);
    report(&format!("docs/authoring.md: all {} commands executed", lines.len()));
}

/// The loop of an author: saved changes are built and called again, imports that come and go are named, and neither a source that
/// does not compile nor a tool that traps ends it.
#[test]
fn a_saved_source_is_built_and_called_again_until_its_author_ends_it() {
    let motor = Motor::new();
    let project = Project::with_given_components(&motor);
    let log = format!("motor:host/log@{HOST_VERSION}");
    let (gained, lost) = (format!("+ imports {log}"), format!("- no longer imports {log}"));
    let import = format!("(import \"{log}\" \"write\" (func (param i32 i32 i32)))");
    project.offers(&[
        ("plain", tool(SCHEMA, ANSWER)),
        ("logs", tool_importing(&import, SCHEMA, ANSWER)),
        ("traps", tool(SCHEMA, "unreachable")),
    ]);
    project.save("plain");
    let mut dev = motor.start(&["dev", "greeter", "t", "{}"]);
    for (round, (source, words)) in [
        ("plain", &["built and called in"][..]),
        ("logs", &[gained.as_str()]),
        ("broken", &["src/app.py:1: broken", "`componentize-py` failed", "mend the errors above"]),
        ("traps", &[lost.as_str(), "unreachable"]),
        ("plain", &["built and called in"]),
    ]
    .into_iter()
    .enumerate()
    {
        if round > 0 {
            project.save(source);
        }
        dev.wait_for_lines("waiting for a change", round + 1);
        words.iter().for_each(|words| drop(dev.wait_for_words(words)));
        assert!(dev.is_alive(), "{source}");
    }
    // Files that a build writes are no change: it waits.
    project.offers(&[("plain", tool(SCHEMA, "unreachable"))]);
    std::thread::sleep(Duration::from_secs(1));
    dev.signal(Signal::INT);
    let ended = dev.wait();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "t\nt\nt\n"), "{ended:?}");
    assert_eq!(ended.stderr.matches("waiting for a change").count(), 5, "{ended:?}");
}

/// The group of a toolchain is not that of the command, so no signal reaches both.
#[test]
fn a_toolchain_ends_with_the_command_that_started_it() {
    let motor = Motor::new();
    let project = Project::with_given_components(&motor);
    let beats = project.directory.join("build/beats");
    // Its work is another process's, as that of `cargo` is. It ends in any case, if this test fails.
    let script = "#!/bin/sh\n[ \"$1\" = --version ] && exit\n\
                  (n=0; while [ $n -lt 1200 ]; do n=$((n + 1)); echo >>build/beats; /bin/sleep 0.05; done) &\nwait\n";
    fs::write(project.directory.join(".toolchain/bin/componentize-py"), script).unwrap();
    for (arguments, signal) in [
        (&["build", "greeter"][..], Signal::TERM),
        (&["build", "greeter"], Signal::INT),
        (&["test", "greeter"], Signal::TERM),
        (&["dev", "greeter", "t", "{}"], Signal::TERM),
    ] {
        let running = motor.start(arguments);
        let (pause, mut patience) = (Duration::from_millis(50), Patience::default());
        while !beats.exists() {
            assert!(patience.lasts(), "{arguments:?} starts no toolchain");
            std::thread::sleep(pause);
        }
        running.signal(signal);
        let ended = running.wait();
        assert_eq!(ended.code, Some(130), "{arguments:?}: {ended:?}");
        let count = || fs::read(&beats).unwrap().len();
        std::thread::sleep(pause);
        let before = count();
        std::thread::sleep(10 * pause);
        assert_eq!(count(), before, "{arguments:?}: the toolchain goes on");
        fs::remove_file(&beats).unwrap();
    }
}

/// Mistakes in a project that was built: each is named, with file and line where the compiler knows them.
fn wrong_sources(motor: &Motor, model: &ModelServer) {
    let check_in = |file: &str, from: &str, to: &str, command: &str, words: &[&str]| {
        let source = motor.directory().join("greeter").join(file);
        let right = fs::read_to_string(&source).unwrap();
        assert!(right.contains(from), "{from}");
        fs::write(&source, right.replace(from, to)).unwrap();
        let ended = shell(motor, model, command);
        fs::write(&source, right).unwrap();
        let all = format!("{}{}", text(&ended.stdout), text(&ended.stderr));
        assert!(!ended.status.success(), "{to}: {all}");
        for word in words {
            assert!(all.contains(word), "{to}: {word:?} is not said: {all}");
        }
    };
    let check = |from: &str, to: &str, command: &str, words: &[&str]| check_in("src/lib.rs", from, to, command, words);
    check("Ok(format!", "Ok(formt!", "motor build greeter", &["src/lib.rs:", "formt", "mend the errors above"]);
    let panics = "if name.is_empty() {\n        panic!(\"no name\");";
    check("if name.is_empty() {", panics, "motor test greeter", &["FAILED", "`trap`", "1 failed"]);
    let named = "#[tool(effects = \"read\", name = \"Greet me\")]";
    check(
        "#[tool(effects = \"read\")]",
        named,
        "motor build greeter",
        &["`Greet me` is no name of a tool", "src/lib.rs:"],
    );
    check("    name: String,", "    name: &str,", "motor build greeter", &["take `String` for `&str`", "src/lib.rs:"]);
    // An earlier build left its component, which is not taken for one of this manifest.
    let left_none = ["the build left no `", "greeter.wasm", "has the project's name", "cdylib"];
    check_in("Cargo.toml", "name = \"greeter\"", "name = \"other\"", "motor build greeter", &left_none);
    check_in("Cargo.toml", "[\"cdylib\"]", "[\"rlib\"]", "motor build greeter", &left_none);
    // Their twin.
    let ended = shell(motor, model, "motor test greeter");
    assert!(ended.status.success(), "{}", text(&ended.stderr));
}

/// The examples at three levels of power, with their recorded sites: nothing is sent.
#[test]
fn the_cases_of_the_examples_hold() {
    let motor = Motor::new();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-tools/examples");
    for (name, has_network, cases) in [("units", false, 2), ("exchange-rate", true, 5), ("open-issues", true, 5)] {
        let component = tests::target_directory().join("guests").join(name).with_extension("wasm");
        let imports = motor.json(&["inspect", component.to_str().unwrap()])["imports"].to_string();
        assert_eq!(imports.contains("wasi:http/outgoing-handler"), has_network, "{name}: {imports}");
        let project = motor.directory().join(name);
        copy(&examples.join(name), &project);
        fs::create_dir(project.join("build")).unwrap();
        fs::copy(component, project.join("build").join(name).with_extension("wasm")).unwrap();
        let ended = motor.run(&["test", "--no-build", project.to_str().unwrap()]);
        assert!(ended.stdout.contains(&format!("{cases} passed, 0 failed")), "{name}: {ended:?}");
    }
}

/// A request that a recorded site lacks is refused with its name, and `--bless` records the result of the call.
#[test]
fn a_recorded_site_answers_only_what_was_recorded() {
    let motor = Motor::new();
    let name = "exchange-rate";
    let project = motor.directory().join(name);
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../guest-tools/examples").join(name), &project);
    let shown = project.to_str().unwrap();
    motor.run(&["test", "--no-build", shown]).refused(1, &["there is no built component", "motor build"]);
    fs::create_dir(project.join("build")).unwrap();
    let component = tests::target_directory().join("guests").join(name).with_extension("wasm");
    fs::copy(component, project.join("build").join(name).with_extension("wasm")).unwrap();
    let case = |text: &Value| fs::write(project.join("cases/new.json"), text.to_string()).unwrap();
    let test = |more: &[&str]| motor.run(&[&["test", "--no-build", "--only", "new", shown][..], more].concat());
    let arguments = |to: &str| json!({ "from": "EUR", "to": to });
    let of = |to: &str, site: &str| json!({ "tool": "exchange_rate", "arguments": arguments(to), "domains": ["api.frankfurter.dev"], "site": site });
    case(&of("JPY", "frankfurter"));
    let ended = test(&[]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    for word in ["the recorded site has no response to `GET`", "symbols=JPY", "add the request"] {
        assert!(ended.stdout.contains(word), "{word}: {ended:?}");
    }
    case(&of("USD", "frankfurter"));
    assert!(test(&[]).stdout.contains("it expects nothing yet"));
    test(&["--bless"]).succeeded();
    test(&[]).succeeded();
    let blessed: Value = serde_json::from_slice(&fs::read(project.join("cases/new.json")).unwrap()).unwrap();
    assert_eq!(blessed["expect"]["output"], "1 EUR = 1.25 USD (2026-11-26)", "{blessed:#}");
    assert_eq!(blessed["site"], "frankfurter");
    case(&of("USD", "absent"));
    test(&[]).refused(1, &["sites/absent.json"]);
    fs::write(project.join("sites/broken.json"), r#"[{"request": {"url": "a"}, "response": {}}]"#).unwrap();
    case(&of("USD", "broken"));
    test(&[]).refused(2, &["sites/broken.json", "exchange 1", "a site is"]);
}

/// A project around the bundled `fetch`, and a server on this machine: `motor test --record` asks it once, and later tests have
/// the recording. No credential is sent for one.
#[test]
fn what_a_recorded_site_lacks_is_asked_of_the_real_server_once() {
    let page = Reply::Whole {
        status: 200,
        headers: vec![
            ("content-type".to_owned(), "application/json".to_owned()),
            ("x-total".to_owned(), "2".to_owned()),
        ],
        body: br#"{"items":[1,2]}"#.to_vec(),
    };
    let picture = Reply::Whole { status: 200, headers: Vec::new(), body: vec![0xff, 0xd8] };
    let server = block_on(Site::start()).with("/items", page).with("/picture", picture);
    let motor = Motor::new();
    motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", server.address()));
    let project = motor.directory().join("reader");
    fs::create_dir_all(project.join("build")).unwrap();
    fs::create_dir(project.join("cases")).unwrap();
    let about = "kind = \"tool\"\nname = \"reader\"\nlanguage = \"rust\"\ndescription = \"Reads.\"\n";
    fs::write(project.join("motor-project.toml"), about).unwrap();
    let component = tests::target_directory().join("guests/bundled/fetch.wasm");
    fs::copy(component, project.join("build/reader.wasm")).unwrap();
    let shown = project.to_str().unwrap();
    let case = |arguments: Value, credentials: Value| {
        let domains = [server.address().to_string()];
        let case = json!({ "tool": "fetch", "arguments": arguments, "domains": domains, "site": "items", "credentials": credentials });
        fs::write(project.join("cases/items.json"), case.to_string()).unwrap();
    };
    let test = |more: &[&str]| motor.run(&[&["test", "--no-build", shown][..], more].concat());

    case(json!({ "url": server.url("/items") }), json!({}));
    test(&["--bless"]).refused(1, &["sites/items.json"]);
    let ended = test(&["--record", "--bless"]).succeeded();
    assert!(ended.stderr.contains("recorded 1 new in `sites/items.json`"), "{ended:?}");
    let site: Value = serde_json::from_slice(&fs::read(project.join("sites/items.json")).unwrap()).unwrap();
    assert_eq!(site[0]["request"], json!({ "url": server.url("/items") }));
    let response = &site[0]["response"];
    assert_eq!(response["body"], json!({ "items": [1, 2] }), "{site:#}");
    assert_eq!((&response["headers"]["x-total"], &response["status"]), (&json!("2"), &json!(200)), "{site:#}");
    for more in [&[][..], &["--record"]] {
        test(more).succeeded();
    }
    assert_eq!(server.requests().len(), 1, "what is recorded is not asked again");

    // Refused before a connection: the server does not speak TLS.
    let secure = server.url("/items?n=2").replace("http://", "https://");
    let with_key = json!({ "url": secure, "headers": { "authorization": "<credential:key>" } });
    case(with_key, json!({ "key": "a-value-for-the-test" }));
    let ended = test(&["--record"]);
    assert!(ended.stdout.contains("no credential is sent to record a response"), "{ended:?}");
    case(json!({ "url": server.url("/picture") }), json!({}));
    test(&["--record"]).refused(2, &["sites/items.json", "is not text, and cannot be recorded"]);
    assert_eq!(server.requests().len(), 2);
    let after: Value = serde_json::from_slice(&fs::read(project.join("sites/items.json")).unwrap()).unwrap();
    assert_eq!(after, site);
}

/// Copies a directory, without its built files.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let to = to.join(path.file_name().unwrap());
        match path.is_dir() {
            true if path.ends_with("build") => {}
            true => copy(&path, &to),
            false => drop(fs::copy(&path, to).unwrap()),
        }
    }
}

#[test]
fn a_component_of_an_earlier_version_still_runs() {
    let motor = Motor::new();
    for version in ["0.1.0", "0.1.1"] {
        let fixture = format!("{}/fixtures/components/tool-{version}.wasm", env!("CARGO_MANIFEST_DIR"));
        let report = motor.json(&["inspect", &fixture]);
        assert!(report["exports"].to_string().contains(&format!("motor:host/tools@{version}")), "{report:#}");
        assert_eq!(motor.stdout(&["call", &fixture, "greet", r#"{"name":"Ada"}"#]), "hello, Ada\n");
    }
}

/// `cargo test` of the scaffold, as it is and with its worked example: a file, a request and a credential without a component.
#[test]
fn the_worked_example_is_tested_without_a_component() {
    let model = block_on(ModelServer::scripted(json!({ "turns": [] })));
    let motor = reader();
    if let Some(reason) = unavailable(&motor, &model) {
        report(&format!("`cargo test` of the scaffold in Rust: skipped: {reason}"));
        return;
    }
    LazyLock::force(&PRUNED);
    let shared = tests::target_directory().join("scaffolds");
    assert!(shell(&motor, &model, "motor new tool greeter --lang rust").status.success());
    let source = motor.directory().join("greeter/src/lib.rs");
    let scaffold = fs::read_to_string(&source).unwrap();
    let example = with_example(&scaffold, "//");
    let other_file = example.replace("write(\"page.txt\"", "write(\"other.txt\"");
    let without_credential = example.replace("placeholder(\"example_key\")", "placeholder(\"other_key\")");
    for (text, passes, words) in [
        (&scaffold, true, "2 passed"),
        (&example, true, "3 passed"),
        (&other_file, false, "page_tests::a_page_is_saved"),
        (&without_credential, false, "the credential `other_key` is not set"),
    ] {
        fs::write(&source, text).unwrap();
        let cargo =
            "CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=false cargo test -q --manifest-path greeter/Cargo.toml";
        let line = format!("{cargo} --target-dir '{}'", shared.display());
        let ended = shell(&motor, &model, &line);
        let all = format!("{}{}", self::text(&ended.stdout), self::text(&ended.stderr));
        assert!(ended.status.success() == passes && all.contains(words), "{words}: {all}");
    }
}
