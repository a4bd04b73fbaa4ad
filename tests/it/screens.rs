//! The screens of people (SPEC CLI-0): the real program at a real terminal of 80 and of 120 columns, compared with
//! `tests/fixtures/screens`. `MOTOR_UPDATE_SCREENS=1` writes them: look at each before it is committed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use regex::Regex;
use serde_json::{Value, json};
use tests::binary::{AtTerminal, Motor};
use tests::block_on;
use tests::model_server::ModelServer;

mod owner;

const WIDTHS: [u16; 2] = [80, 120];
/// All three streams are the terminal.
const ALL: &str = ">&0 2>&0";

const ANSWER: &str = "The three sales add up to 240.75, and the largest of them is the tea with 120.50. Nothing in the file \
                      looks wrong.\n\n- tea: 120.50\n- cups: 80.00\n- spoons: 40.25, which is the smallest of the three \
                      and less than a fifth of the whole\n\nSee https://example.com/reports/2026/sales/total.txt for how \
                      it was added up.";

const SALES: &str = "item,amount\ntea,120.5\ncups,80\nspoons,40.25\n";

/// A home at a path whose length does not depend on the machine, with a model that plays these turns.
struct World {
    motor: Motor,
    model: ModelServer,
    _directory: tempfile::TempDir,
}

impl World {
    fn new(turns: Value) -> Self {
        let mut turns = turns;
        if let Some(first) = turns.as_array_mut().unwrap().first_mut() {
            first["gate"] = json!(true);
        }
        let model = block_on(ModelServer::scripted(json!({ "turns": turns })));
        let directory = tempfile::Builder::new().prefix("motor-screen-").rand_bytes(6).tempdir_in("/tmp").unwrap();
        let home = directory.path().join("home");
        std::fs::create_dir(&home).unwrap();
        std::fs::create_dir_all(tests::cache()).unwrap();
        std::os::unix::fs::symlink(tests::cache(), home.join("cache")).unwrap();
        let motor = Motor::with_model(&model).env("MOTOR_KEYRING", "off").at(home);
        Self { motor, model, _directory: directory }
    }

    /// Starts an act whose model waits at its first turn, and lets that begin when the run is followed: words that stream
    /// before are not seen.
    fn acts(&self, arguments: &[&str], columns: u16, streams: &str) -> AtTerminal {
        let mut acting = self.motor.on_screen(arguments, columns, streams);
        if streams.contains("2>") {
            acting.sees("⠙");
        } else {
            acting.running().run_id();
            block_on(self.model.wait_at_gate());
        }
        self.model.release();
        acting
    }

    /// The content of the screen when the command has ended.
    fn shows(&self, arguments: &[&str], columns: u16) -> String {
        let (_, screen) = self.motor.on_screen(arguments, columns, ALL).finish();
        format!("$ motor {}\n{screen}\n", arguments.join(" "))
    }
}

/// The same for every run on every machine: no ids, times, measurements and hashes.
fn normalised(screen: &str) -> String {
    let patterns = [
        (r"run_[0-9a-z]{16}", "run_0123456789abcdef"),
        (r"/tmp/motor-screen-\w{6}", "/tmp/motor-screen-abcdef"),
        (r"127\.0\.0\.(\d):\d{5}", "127.0.0.$1:12345"),
        (r"the output is saved as .*", "the output is saved as FILE"),
        (r"(ask|apr)_[0-9a-f]{12}", "${1}_0123456789ab"),
        (r"\b[0-9a-f]{64}\b", "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
        (r"\b[0-9a-f]{12}\b", "0123456789ab"),
        (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "2026-01-02 03:04:05"),
        (r"fuel \d+(\.\d+)?( [kMG])?", "fuel N"),
        (r"\b(in|for) (?:less than )?\d+(\.\d+)? (ms|s|min)\b", "$1 TIME"),
        (r"(  |after |✓ \w+ |✗ \w+ (\w+ )?)\d+(\.\d+)? (ms|s|min)\b", "${1}TIME"),
        (r"\b(now|\d+ (s|min)) ago\b|just now", "AGO"),
        (r"\d+(\.\d+)? (KiB|MiB)  ", "MEMORY  "),
    ];
    let screen = screen.lines().map(str::trim_end).collect::<Vec<_>>().join("\n");
    patterns.iter().fold(screen, |screen, (pattern, stands_for)| {
        Regex::new(pattern).unwrap().replace_all(&screen, *stands_for).into_owned()
    })
}

#[track_caller]
fn check(name: &str, columns: u16, screen: &str) {
    let screen = normalised(screen);
    for line in screen.lines().filter(|line| !line.starts_with("$ motor")) {
        assert!(line.chars().count() <= usize::from(columns), "{line}");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("fixtures/screens/{name}-{columns}.txt"));
    if std::env::var_os("MOTOR_UPDATE_SCREENS").is_some() {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, format!("{}\n", screen.trim_end())).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(screen.trim_end(), expected.trim_end(), "{} is out of date\n{screen}", path.display());
}

fn call(name: &str, arguments: Value) -> Value {
    json!({ "name": name, "arguments": arguments })
}

fn adding_up() -> Value {
    json!([
        { "text": "I'll look at the file first, and then add up what is in it in the sandbox rather than in my head, so that \
                   the total is right.",
          "tool_calls": [call("list", json!({})), call("read", json!({ "path": "sales.csv" }))] },
        { "tool_calls": [call("read", json!({ "path": "cups.csv" })),
                         call("write", json!({ "path": "total.txt", "content": "240.75\n" }))] },
        { "text": ANSWER },
    ])
}

#[test]
fn a_first_run() {
    for columns in WIDTHS {
        let world = World::new(adding_up());
        let file = world.motor.file("sales.csv", SALES);
        let arguments =
            ["act", "What do the sales add up to?", "--tools", "filesystem", "--file", file.to_str().unwrap()];
        let (ended, screen) = world.acts(&arguments, columns, ALL).finish();
        assert_eq!(ended.code, Some(0), "{screen}");
        assert_eq!(screen.matches("120.50").count(), 2, "the answer is there once: {screen}");
        check("act", columns, &screen);
        check("status", columns, &world.shows(&["task", "status"], columns));
    }
}

/// Whichever stream is a terminal: stdout has the whole answer, once, and nothing else; stderr has the progress.
#[test]
fn the_answer_is_given_once_wherever_it_goes() {
    let act = ["act", "What do the sales add up to?", "--tools", "filesystem"];
    for (streams, on_screen) in [("", 0), (">&0", 1), ("2>&0", 0), (ALL, 1)] {
        let world = World::new(adding_up());
        let (ended, screen) = world.acts(&act, 80, streams).finish();
        let on_stdout = if streams.starts_with('>') { String::new() } else { format!("{ANSWER}\n") };
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), on_stdout.as_str()), "{streams:?}");
        assert_eq!(screen.matches("- tea: 120.50").count(), on_screen, "{streams:?}: {screen}");
        let talk = format!("{}{screen}", ended.stderr);
        assert!(talk.contains("completed in") && talk.contains("✓ write"), "{streams:?}: {talk}");
        assert!(!ended.stderr.contains('\u{1b}') && !ended.stderr.contains("120.50"), "{streams:?}: {ended:?}");
    }
    // In JSON it is a part of the answer, and nothing streams beside it.
    let world = World::new(adding_up());
    let (_, screen) = world.acts(&[&act[..], &["--json"]].concat(), 80, ALL).finish();
    assert_eq!(screen.matches("- tea: 120.50").count(), 1, "{screen}");
}

/// Text streamed before a connection broke is void: the answer is the last reply, whole.
#[test]
fn an_answer_that_began_twice_is_shown_whole_once() {
    let script =
        json!({ "turns": [{ "text": ANSWER, "gate": true }], "faults": { "1": { "reset": { "after_chunks": 9 } } } });
    let mut world = World::new(json!([]));
    world.model = block_on(ModelServer::scripted(script));
    let motor = world.motor.endpoint(&world.model.base_url());
    let world = World { motor, ..world };
    let acting = world.acts(&["act", "add up"], 80, ALL);
    // The request that is made again waits as the first one did.
    world.model.release();
    let (ended, screen) = acting.finish();
    assert_eq!(ended.code, Some(0), "{screen}");
    assert_eq!((screen.matches("- spoons: 40.25").count(), screen.matches("again in").count()), (1, 1), "{screen}");
}

#[test]
fn what_a_run_may_touch() {
    for columns in WIDTHS {
        let world = World::new(json!([]));
        let grants = ["--tools", "fetch,bash,code,filesystem", "--domains", "api.example.com,*.example.org:8443"];
        let narrowed =
            ["--writes", "api.example.com", "--commands", "curl,sort,uniq,grep,head,tail,cut,jq,sed,awk,tr,wc"];
        let screen = world.shows(&[&["explain", "post <credential:key>"], &grants[..], &narrowed].concat(), columns);
        check("explain", columns, &screen);
    }
}

#[test]
fn what_is_missing() {
    for columns in WIDTHS {
        let World { motor, model, _directory } = World::new(json!([]));
        let world = World { motor: motor.env("LLM_MOTOR_MODEL", "anthropic/claude"), model, _directory };
        let screen = world.shows(&["doctor"], columns);
        // The last part is about the kernel.
        check("doctor", columns, screen.split("ok       sandbox").next().unwrap());
    }
}

#[test]
fn a_run_that_waits() {
    let question = json!({ "question": "Which region should the report be about? There are four of them in the file, and a \
                                        report about all four would be rather long.",
                           "choices": ["north", "south and west together"] });
    let turns = json!([
        { "text": "I need to know one thing first.", "tool_calls": [call("ask_user", question)] },
        { "text": "The north it is." },
    ]);
    for columns in WIDTHS {
        let world = World::new(turns.clone());
        // The first host goes away while the run waits.
        let mut acting = world.acts(&["act", "report"], columns, ALL);
        acting.sees("answer (1 to 2, or other words): ");
        acting.running().signal(tests::binary::Signal::TERM);
        let (ended, screen) = acting.finish();
        assert_eq!(ended.code, Some(130), "{screen}");
        let mut pages = format!("{screen}\n");
        for arguments in [&["act", "another"][..], &["task", "list", "--waiting"], &["task", "status"], &["signals"]] {
            pages.push_str(&world.shows(arguments, columns));
        }
        check("waits", columns, &pages);
        // The command that was named goes on with it.
        let run = world.motor.only_run();
        let mut answering = world.motor.on_screen(&["task", "respond", &run], columns, ALL);
        answering.sees("answer (1 to 2, or other words): ");
        answering.types("1");
        let (ended, screen) = answering.finish();
        assert_eq!(ended.code, Some(0), "{screen}");
        let resumed = world.motor.stdout(&["act", "--resume", &run]);
        assert_eq!(resumed, "The north it is.\n");
    }
}

#[test]
fn a_run_that_leaves_skills() {
    let skill =
        |name: &str, about: &str| format!("---\nname: {name}\ndescription: {about}\n---\n# {name}\n\nAdd up.\n");
    let put = |path: &str, content: String| call("write", json!({ "path": path, "content": content }));
    let turns = json!([
        { "tool_calls": [put("skills/adding-up/SKILL.md", skill("adding-up", "Adds up columns of tables.")),
                         put("skills/broken/SKILL.md", "no frontmatter\n".to_owned())] },
        { "text": "I wrote down how it is done." },
    ]);
    for columns in WIDTHS {
        let world = World::new(turns.clone());
        let act = ["act", "learn it", "--tools", "write"];
        let mut pages = format!("{}\n", world.acts(&act, columns, ALL).finish().1);
        for arguments in [&["task", "status"][..], &["signals"], &["act", "add up", "--skill", "adding-up"]] {
            pages.push_str(&world.shows(arguments, columns));
        }
        check("skills", columns, &pages);
    }
}

/// The code of the bundled components is part of the program: a new home waits for none of them.
#[test]
fn a_new_home_compiles_nothing() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::bare().env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", "sk-test");
    let motor = motor.env("MOTOR_KEYRING", "off").endpoint(&server.base_url());
    assert_eq!(motor.stdout(&["execute", "1 + 1"]).trim(), "2");
    motor.run(&["act", "look", "--tools", "read,fetch,bash,code"]).succeeded();
    assert!(!motor.home().join("cache/prepared").exists(), "something was compiled");
}

/// Without a home, compiled code is kept in the user's cache.
#[test]
fn an_author_without_a_home_waits_once() {
    let motor = Motor::bare();
    let cache = motor.directory().join("xdg");
    let motor = motor.env("XDG_CACHE_HOME", cache.to_str().unwrap());
    let files = tests::target_directory().join("guests/bundled/files.wasm");
    let list = ["call", files.to_str().unwrap(), "list"];
    let first = motor.run(&list).succeeded();
    assert!(first.stderr.contains("compiling `files.wasm`, once"), "{first:?}");
    let kept = code(&cache.join("motor"));
    assert!(!kept.is_empty(), "no code is kept");
    motor.run(&list).succeeded();
    assert_eq!(code(&cache.join("motor")), kept, "it was compiled again");
    assert!(!motor.home().exists(), "a home was made");
    std::fs::set_permissions(cache.join("motor"), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    motor.run(&list).refused(1, &["can be written by other users", "XDG_CACHE_HOME"]);
}

/// The files of compiled code below, and when each was written. Beside them are statistics of their use.
fn code(directory: &Path) -> BTreeMap<PathBuf, SystemTime> {
    let entries = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let is_code = |path: &PathBuf| path.extension().is_none_or(|extension| extension != "stats");
    let written = |path: PathBuf| (path.metadata().unwrap().modified().unwrap(), path);
    let files = |path: PathBuf| match path.is_dir() {
        true => code(&path),
        false => [written(path)].into_iter().map(|(at, path)| (path, at)).collect(),
    };
    entries.filter(is_code).flat_map(files).collect()
}

#[test]
fn the_directory_of_skills_can_be_named() {
    let motor = Motor::bare();
    let skill = "---\nname: adding-up\ndescription: Adds up columns.\n---\n# Adding up\n";
    for directory in ["flag", "environment", "file", "home/skills"] {
        let directory = motor.directory().join(directory).join(format!("from-{}", directory.replace('/', "-")));
        std::fs::create_dir_all(&directory).unwrap();
        let name = directory.file_name().unwrap().to_str().unwrap().to_owned();
        std::fs::write(directory.join("SKILL.md"), skill.replace("adding-up", &name)).unwrap();
    }
    let names = |motor: &Motor, more: &[&str]| {
        let listed = motor.json(&[&["skill", "list"], more].concat());
        listed.as_array().unwrap().iter().map(|skill| skill["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let origin = |motor: &Motor, more: &[&str]| {
        motor.json(&[&["config", "show", "skills.directory"], more].concat())[0]["origin"]["from"].clone()
    };
    assert_eq!(names(&motor, &[]), ["from-home-skills"]);
    assert_eq!(origin(&motor, &[]), "default");
    motor.configure(&format!("[skills]\ndirectory = {:?}\n", motor.directory().join("file")));
    assert_eq!((names(&motor, &[]), origin(&motor, &[])), (vec!["from-file".to_owned()], json!("file")));
    let path = motor.directory().join("environment");
    let motor = motor.env("MOTOR_SKILLS_DIRECTORY", path.to_str().unwrap());
    assert_eq!((names(&motor, &[]), origin(&motor, &[])), (vec!["from-environment".to_owned()], json!("env")));
    // Relative to where the command is run, as `--home` is.
    let flag = ["--skills-dir", "flag"];
    assert_eq!((names(&motor, &flag), origin(&motor, &flag)), (vec!["from-flag".to_owned()], json!("flag")));
    let shown = motor.stdout(&["config", "show", "skills.directory", "--skills-dir", "flag"]);
    assert_eq!(shown.trim(), motor.directory().join("flag").to_str().unwrap());
    // A host that is there has its directory.
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    motor.run(&["skill", "list", "--skills-dir", "flag"]).refused(2, &["--skills-dir", "already running"]);
}
