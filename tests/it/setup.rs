//! The first minute of an owner (SPEC CONF-2, CONF-3): a model is set up, its key goes into the vault and nowhere else, and
//! settings are changed while the host runs.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};
use tests::binary::{AtTerminal, Motor};
use tests::block_on;
use tests::model_server::ModelServer;

pub const KEY: &str = "sk-canary-0123456789";
/// A stranger's first task is done within a minute; the program's own part is a second or two of it.
const FIRST_TASK: Duration = Duration::from_secs(60);

fn server() -> ModelServer {
    block_on(ModelServer::scripted(json!({ "key": KEY, "turns": [{ "text": "ready" }] })))
}

/// A home without a model, and without a server on this machine that would be found by itself.
fn home() -> Motor {
    Motor::new().env("MOTOR_KEYRING", "off").env("OLLAMA_HOST", "http://127.0.0.1:1")
}

fn host_of(server: &ModelServer) -> String {
    server.origin().replace("http://", "")
}

/// Answers the questions of the set-up with a server that takes a key.
pub fn sets_up(terminal: &mut AtTerminal, server: &ModelServer, key: &str) {
    let menu = terminal.sees("number, or provider/model: ");
    let number = Regex::new(r"(\d+)  another server").unwrap().captures(&menu).unwrap()[1].to_owned();
    terminal.types(&number);
    terminal.sees("address, such as");
    terminal.types(&server.base_url());
    terminal.sees(&format!("key for {}", host_of(server)));
    terminal.types(key);
}

fn files_with(directory: &Path, needle: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_with(&path, needle));
        } else if fs::read(&path).is_ok_and(|bytes| memchr::memmem::find(&bytes, needle.as_bytes()).is_some()) {
            found.push(path.display().to_string());
        }
    }
    found
}

#[test]
fn from_an_empty_home_to_a_finished_task_in_one_command() {
    let (server, motor) = (server(), home());
    let began = Instant::now();
    let mut acting = motor.at_terminal(&["act"]);
    acting.sees("what is to be done? ");
    acting.types("say that you are ready");
    acting.sees("no model is set up yet. Do it now? [y/N] ");
    acting.types("y");
    sets_up(&mut acting, &server, KEY);
    let listed = acting.sees("number, or name of the model: ");
    assert!(listed.contains("1  scripted-small") && listed.contains("2  scripted-large"), "{listed}");
    acting.types("2");
    acting.sees("keep the key?");
    acting.sees("[y/N] ");
    acting.types("y");
    let ended = acting.wait().succeeded();
    let took = began.elapsed();
    eprintln!("from an empty home to a finished task: {took:.1?}");
    assert!(took < FIRST_TASK, "{took:?}");
    assert!(ended.stdout.contains("ready") && ended.stderr.contains("it answered in"), "{ended:?}");

    // The key is in the vault, sealed, and bound to the server's host.
    assert_eq!(files_with(motor.home(), KEY), Vec::<String>::new());
    let listed = motor.json(&["credential", "list"]);
    assert_eq!((&listed[0]["name"], &listed[0]["domains"]), (&json!("OPENAI_API_KEY"), &json!([host_of(&server)])));
    let file = fs::read_to_string(motor.home().join("config/motor.toml")).unwrap();
    assert!(file.contains("default = \"compatible/scripted-large\"") && file.contains(&server.base_url()), "{file}");
    let findings = motor.json(&["doctor", "--offline"]);
    let model = findings.as_array().unwrap().iter().find(|finding| finding["name"] == "model: motor").unwrap();
    assert_eq!(model["status"], "ok", "{model}");
    // The next commands need neither a terminal nor a variable.
    motor.run(&["act", "again"]).succeeded();
    let requests = server.requests();
    assert_eq!(requests.len(), 3, "one test and two runs");
    assert!(requests.iter().all(|request| request.body["model"] == "scripted-large"));
    // A second set-up finds the key.
    let ended = motor.run(&["setup", "--model", "compatible/scripted-small", "--url", &server.base_url(), "--json"]);
    let report: Value = serde_json::from_str(&ended.succeeded().stdout).unwrap();
    assert_eq!(report["answer"]["text"], "ready");
    assert_eq!(motor.stdout(&["config", "get", "models.default"]).trim(), "compatible/scripted-small");
}

#[test]
fn a_chat_in_an_empty_home_offers_the_set_up_and_goes_on() {
    let (server, motor) = (server(), home());
    let mut chatting = motor.on_screen(&["chat"], 80, ">&0 2>&0");
    chatting.sees("no model is set up yet. Do it now? [y/N] ");
    chatting.types("y");
    sets_up(&mut chatting, &server, KEY);
    chatting.sees("number, or name of the model: ");
    chatting.types("1");
    chatting.sees("[y/N] ");
    chatting.types("y");
    chatting.sees("> ");
    chatting.types("are you there?");
    chatting.sees("ready");
    block_on(server.wait_for_calls(2));
}

#[test]
fn a_stored_key_goes_to_no_other_server() {
    let (server, other, motor) = (server(), server(), home());
    motor.run_as_owner(&["credential", "set", "OPENAI_API_KEY", "--domain", &host_of(&server)], KEY).succeeded();
    motor.configure(&format!("[models]\ndefault = 'openai/m'\nopenai_url = '{}'\n", server.base_url()));
    motor.run(&["act", "be ready"]).succeeded();
    motor.configure(&format!("[models]\ndefault = 'openai/m'\nopenai_url = '{}'\n", other.base_url()));
    motor.run(&["act", "be ready"]).refused(4, &["OPENAI_API_KEY"]);
    let sent = |server: &ModelServer| {
        let requests = server.requests();
        let keys = requests.iter().map(|request| request.headers.get("authorization").cloned());
        keys.collect::<Vec<_>>()
    };
    assert_eq!(sent(&server), [Some(format!("Bearer {KEY}"))]);
    assert_eq!(sent(&other), [None]);
    // A skill's own credential is not the host's.
    motor.run_as_owner(&["credential", "delete", "OPENAI_API_KEY"], "").succeeded();
    let own = ["credential", "set", "OPENAI_API_KEY", "--domain", &host_of(&server), "--skill", "mail"];
    motor.run_as_owner(&own, KEY).succeeded();
    motor.configure(&format!("[models]\ndefault = 'openai/m'\nopenai_url = '{}'\n", server.base_url()));
    motor.run(&["act", "be ready"]).refused(4, &["OPENAI_API_KEY"]);
}

#[test]
fn a_model_that_does_not_answer_is_not_kept() {
    let (server, motor) = (server(), home());
    let file = motor.home().join("config/motor.toml");
    // No terminal to ask for the key on.
    let named = ["setup", "--model", "compatible/m", "--url", &server.base_url()];
    motor.run(&named).refused(4, &["no terminal to ask for it", "motor credential set OPENAI_API_KEY"]);
    motor.run(&["setup"]).refused(2, &["--model provider/model"]);
    motor.run(&["setup", "--model", "compatible/m", "--url", "ftp://x"]).refused(2, &["--url"]);
    motor.run(&["setup", "--model", "ollama/m"]).refused(1, &["--no-try"]);
    assert!(!file.exists());
    // A wrong key at the terminal.
    let mut setting = motor.at_terminal(&["setup"]);
    sets_up(&mut setting, &server, "sk-wrong-0123456789");
    for _ in 0..2 {
        let said = setting.sees(&format!("key for {}", host_of(&server)));
        assert!(said.contains("OPENAI_API_KEY") && !said.contains("sk-wrong"), "{said}");
        setting.types("sk-wrong-0123456789");
    }
    setting.wait().refused(4, &["OPENAI_API_KEY"]);
    assert!(!file.exists());
    assert_eq!(motor.json(&["credential", "list"]), json!([]));
    // Unasked, any model is kept.
    motor.run(&["setup", "--model", "ollama/m", "--no-try"]).succeeded();
    assert_eq!(motor.stdout(&["config", "get", "models.default"]).trim(), "ollama/m");
}

#[test]
fn a_server_of_this_machine_is_found() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "ready" }] })));
    let motor = home().env("OLLAMA_HOST", &server.origin());
    let mut setting = motor.at_terminal(&["setup"]);
    let menu = setting.sees("number, or provider/model: ");
    let number = Regex::new(r"(\d+)  ollama/scripted-small").unwrap().captures(&menu).unwrap()[1].to_owned();
    setting.types(&number);
    setting.wait().succeeded();
    let file = fs::read_to_string(motor.home().join("config/motor.toml")).unwrap();
    assert_eq!(file, "[models]\ndefault = \"ollama/scripted-small\"\n");
}

#[test]
fn settings_are_changed_while_the_host_runs() {
    let motor = home();
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let iterations = || motor.json(&["explain", "task", "--model", "ollama/m"])["maxIterations"].clone();
    assert_eq!(iterations(), 20);
    let said = motor.stdout(&["config", "set", "motor.max_iterations", "3"]);
    assert!(said.contains("motor.max_iterations = 3") && said.contains("the next run"), "{said}");
    assert_eq!(iterations(), 3);
    let said = motor.stdout(&["config", "set", "energy.enabled", "false"]);
    assert!(said.contains("has to be started again"), "{said}");
    let said = motor.stdout(&["config", "unset", "motor.max_iterations"]);
    assert!(said.contains("motor.max_iterations = 20") && said.contains("energy.enabled"), "{said}");
    assert_eq!(iterations(), 20);
    // A value that does not fit changes neither the file nor the host.
    let path = motor.stdout(&["config", "path"]);
    let before = fs::read_to_string(path.trim()).unwrap();
    motor.run(&["config", "set", "motor.max_iteration", "3"]).refused(2, &["did you mean `motor.max_iterations`"]);
    motor.run(&["config", "set", "motor.max_iterations", "many"]).refused(2, &["motor.max_iterations"]);
    motor.run(&["config", "unset", "motor.max_iteration"]).refused(2, &["did you mean"]);
    motor.run(&["config", "get", "motor"]).refused(2, &["is a section"]);
    assert_eq!(fs::read_to_string(path.trim()).unwrap(), before);
    assert_eq!(iterations(), 20);
    // A variable has precedence, and that is said.
    let motor = motor.env("MOTOR_MOTOR_MAX_ITERATIONS", "7");
    let ended = motor.run(&["config", "set", "motor.max_iterations", "4"]).succeeded();
    assert!(ended.stderr.contains("MOTOR_MOTOR_MAX_ITERATIONS") && ended.stdout.contains("= 7"), "{ended:?}");
}

#[test]
fn the_file_is_checked_when_it_comes_back_from_the_editor() {
    let motor = home();
    motor.configure("# mine\n[limits]\nfuel = 7\n");
    let file = motor.home().join("config/motor.toml");
    let editor = |script: &str| format!("sh {} ", motor.file("editor.sh", script).display());
    let wrong = editor("echo 'feul = 9' >> \"$1\"");
    let with = |editor: &str| home().at(motor.home().to_owned()).env("EDITOR", editor).env("PATH", "/usr/bin:/bin");
    let person = with(&wrong);
    let mut editing = person.at_terminal(&["config", "edit"]);
    let said = editing.sees("edit it again? [Y/n] ");
    assert!(said.contains("did you mean `limits.fuel`"), "{said}");
    editing.types("n");
    assert_eq!(editing.wait().code, Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\n[limits]\nfuel = 7\n");
    let right = editor("echo 'handles = 9' >> \"$1\"");
    let person = with(&right);
    person.at_terminal(&["config", "edit"]).wait().succeeded();
    assert_eq!(fs::read_to_string(&file).unwrap(), "# mine\n[limits]\nfuel = 7\nhandles = 9\n");
}
