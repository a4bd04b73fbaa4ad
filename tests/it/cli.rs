//! The command line as scripts see it (SPEC CLI-0, CODE-3, HOST-7): stdout and stderr, exit codes, JSON.

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::model_server::ModelServer;
use tests::{block_on, hostile_guest, target_directory};

fn greeting(motor: &Motor) -> String {
    let bytes = std::fs::read(target_directory().join("guests/greeting.wasm")).expect("run `cargo xtask guests`");
    motor.file("greeting.wasm", bytes).to_str().unwrap().to_owned()
}

#[test]
fn execute_prints_the_value_and_nothing_else() {
    let motor = Motor::new();
    let program = "const p=10000, r=0.05, n=10; return p*Math.pow(1+r,n)";
    let ended = motor.run(&["execute", program]).succeeded();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("16288.94626777442\n", ""));
    let ended = motor.run(&["execute", "console.log('hm'); return {a: [1, 'b']}"]).succeeded();
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("{\"a\":[1,\"b\"]}\n", "hm\n"));
    let file = motor.file("a.js", "return await Promise.resolve(7)");
    assert_eq!(motor.stdout(&["execute", "--file", file.to_str().unwrap()]), "7\n");
    let seeded = ["execute", "return Math.random()", "--seed", "7"];
    assert_eq!(motor.stdout(&seeded), motor.stdout(&seeded));
}

#[test]
fn execute_says_what_went_wrong_and_fails() {
    let motor = Motor::new();
    for (arguments, said) in [
        (&["while(true){}", "--timeout", "100"][..], "EXECUTION_TIMEOUT: "),
        (&["require('fs')"], "EXECUTION_BLOCKED: "),
        (
            &["require('fs')", "--no-guard"],
            "EXECUTION_ERROR: ReferenceError: require is not defined (line 1, column 1)",
        ),
        (&["return 1 +"], "EXECUTION_ERROR: SyntaxError"),
        (&["let a = []; while (true) a.push(new Array(1e5).fill(7))"], "EXECUTION_LIMIT: "),
    ] {
        let ended = motor.run(&[&["execute"], arguments].concat());
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
        assert!(ended.stderr.starts_with(said), "{ended:?}");
        // The next one is as good as new.
        assert_eq!(motor.stdout(&["execute", "1 + 1"]), "2\n");
    }
    let ended = motor.run(&["execute", "throw new Error('no')", "--json"]);
    let reply: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!((ended.code, &reply["ok"], &reply["errorCode"]), (Some(1), &json!(false), &json!("EXECUTION_ERROR")));
}

#[test]
fn inspect_tells_what_a_component_offers_and_could_do() {
    let motor = Motor::new();
    let code = motor.stdout(&["inspect", "code-js"]);
    assert!(code.contains("nothing: it is granted nothing that has any power"), "{code}");
    assert!(code.contains("exports\n  motor:host/interpreter"), "{code}");
    let files = motor.json(&["inspect", "files"]);
    let names: Vec<_> = files["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["read", "write", "append", "patch", "list", "glob", "grep"]);
    let imports = files["imports"].to_string();
    assert!(imports.contains("wasi:filesystem") && !imports.contains("wasi:sockets") && !imports.contains("wasi:http"));
    let files = motor.stdout(&["inspect", "files"]);
    assert!(files.contains("motor:host/tools") && files.contains("wasi:filesystem"), "{files}");
    assert!(files.lines().all(|line| line.chars().count() <= 80), "{files}");
    let greeting = motor.json(&["inspect", &greeting(&motor)]);
    assert_eq!((&greeting["world"], &greeting["tools"][0]["name"]), (&json!("tool"), &json!("greet")));
}

#[test]
fn what_is_no_usable_component_is_named_for_what_it_is() {
    let motor = Motor::new();
    let greeting = greeting(&motor);
    let core = b"\0asm\x01\0\0\0";
    let mut cut = std::fs::read(&greeting).unwrap();
    cut.truncate(cut.len() / 2);
    for (name, bytes, said) in [
        ("core.wasm", &core[..], "core module"),
        ("notes.txt", b"just some notes\n", "text file, not a WebAssembly component"),
        ("empty.wasm", b"", "empty"),
        ("garbage.wasm", b"\0asm\x0d\0\x01\0\xff\xff\xff\xff\xff\xff", "component"),
        ("cut.wasm", &cut, "component"),
    ] {
        let path = motor.file(name, bytes);
        let path = path.to_str().unwrap();
        for command in [&["inspect", path][..], &["call", path, "greet", "{\"name\":\"x\"}"], &["call", path]] {
            motor.run(command).refused(1, &[name, said]);
        }
    }
    motor.refuses(&["inspect", "nothing.wasm"], 1, "not_found");
    motor.run(&["call", &greeting, "greet", "{\"name\":\"you\"}"]).succeeded();
}

#[test]
fn a_component_that_wants_sockets_is_described_and_refused() {
    let motor = Motor::new();
    let path = motor.file("sockets.wasm", hostile_guest("sockets"));
    let path = path.to_str().unwrap();
    let inspected = motor.run(&["inspect", path]);
    assert_ne!(inspected.code, Some(0), "{inspected:?}");
    assert!(format!("{}{}", inspected.stdout, inspected.stderr).contains("wasi:sockets"), "{inspected:?}");
    motor.run(&["call", path, "connect", "{}"]).refused(1, &["wasi:sockets"]);
}

#[test]
fn call_runs_one_tool_under_the_limits() {
    let motor = Motor::new();
    let greeting = greeting(&motor);
    let ended = motor.run(&["call", &greeting, "greet", "{\"name\": \"Ada\"}"]).succeeded();
    assert_eq!(ended.stdout, "hello, Ada\n");
    assert!(ended.stderr.contains("fuel ") && ended.stderr.contains("peak memory "), "{ended:?}");
    assert!(motor.stdout(&["call", &greeting]).contains("greet(name)"));
    let ended = motor.run(&["call", &greeting, "greet", "{\"nam\": \"Ada\"}"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("bad_input: ") && ended.stderr.contains("name"), "{ended:?}");
    let ended = motor.run(&["call", &greeting, "grete", "{}"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("missing: ") && ended.stderr.contains("greet"), "{ended:?}");
    motor.run(&["call", &greeting, "greet", "{name: 1}"]).refused(2, &["not JSON"]);
    let starved = motor.run(&["call", &greeting, "greet", "{\"name\":\"x\"}", "--set", "limits.fuel=10"]);
    assert_eq!(starved.code, Some(1), "{starved:?}");
    assert!(starved.stderr.contains("limit: ") && starved.stderr.contains("fuel"), "{starved:?}");
    assert!(!motor.home().join("state").exists(), "looking at a component opened a home");
}

#[test]
fn every_command_answers_in_json() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    let greeting = greeting(&motor);
    assert_eq!(motor.json(&["act", "nothing"])["result"], "done");
    for command in [
        &["execute", "1"][..],
        &["task", "list"],
        &["task", "status"],
        &["task", "log"],
        &["call", &greeting, "greet", "{\"name\":\"x\"}"],
        &["call", &greeting],
        &["inspect", &greeting],
        &["energy"],
        &["doctor"],
        &["config", "show"],
        &["config", "show", "limits.fuel"],
        &["signals"],
    ] {
        let answer = motor.json(command);
        assert!(answer.is_object() || answer.is_array(), "{command:?}: {answer}");
    }
    let demo = Motor::new();
    assert_eq!(demo.json(&["demo"])["checked"], true);
    // A refusal is an answer as well.
    for command in
        [&["task", "status", "run_00000000"][..], &["act", "x", "--tools", "nothing"], &["inspect", "nothing"]]
    {
        let ended = motor.run(&[command, &["--json"]].concat());
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert!(answer["error"]["code"].is_string() && answer["error"]["reason"].is_string(), "{answer}");
    }
    let serving = motor.start(&["serve", "--json"]);
    let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
    assert!(line["pid"].is_u64());
}

#[test]
fn completions_know_the_commands() {
    let motor = Motor::bare();
    for shell in ["bash", "zsh", "fish"] {
        let script = motor.stdout(&["completions", shell]);
        assert!(script.contains("motor") && script.contains("execute") && script.len() > 1_000, "{shell}: {script}");
    }
    assert_eq!(motor.run(&["completions", "dosshell"]).code, Some(2));
    assert!(!motor.home().exists());
}

#[test]
fn colours_are_for_terminals_and_who_asks() {
    let motor = Motor::new();
    let colourful = |motor: &Motor, arguments: &[&str]| {
        let ended = motor.run(arguments);
        (ended.stdout + &ended.stderr).contains('\u{1b}')
    };
    let failing = ["execute", "throw 1"];
    assert!(!colourful(&motor, &failing));
    assert!(!colourful(&motor, &["--help"]));
    assert!(colourful(&motor, &[&failing[..], &["--color", "always"]].concat()));
    let motor = motor.env("NO_COLOR", "1");
    assert!(!colourful(&motor, &failing));
}

#[test]
fn usage_errors_are_2_and_say_what_was_meant() {
    let motor = Motor::bare();
    for (arguments, said) in [
        (&["exceute", "1"][..], "execute"),
        (&["act"], "TASK"),
        (&["act", "x", "--tool", "code"], "--tools"),
        (&["task", "status", "../etc"], "run"),
        (&["energy", "--agent", "Not A Name"], "agent"),
        (&["energy", "--set", "limits.feul=1"], "`limits.fuel`"),
        (&["energy", "--set", "limits.fuel=much"], "`limits.fuel`"),
        (&["config", "show", "limits.feul"], "`limits.fuel`"),
    ] {
        let ended = motor.run(arguments);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.contains(said), "{said:?} is not said: {ended:?}");
    }
    assert_eq!(motor.stdout(&["config", "show", "limits.fuel", "--set", "limits.fuel=77"]), "77\n");
}

#[test]
fn usage_errors_are_refusals_in_json() {
    let motor = Motor::bare();
    for (arguments, remedy) in [
        (&["exceute", "1", "--json"][..], "did you mean `execute`?"),
        (&["--json", "act", "x", "--tool", "code"], "did you mean `--tools`?"),
        (&["task", "delete", "--json"], "usage: motor task delete"),
        (&["--json"], "motor help"),
    ] {
        let ended = motor.run(arguments);
        assert_eq!(ended.code, Some(2), "{ended:?}");
        let answer: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
        assert_eq!(answer["error"]["code"], "invalid_request", "{answer}");
        assert!(answer["error"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{answer}");
        assert!(answer["error"]["remedy"].as_str().unwrap().contains(remedy), "{answer}");
    }
    // Without `--json` nothing is on stdout, and help and version are answers with it too.
    assert_eq!(motor.run(&["exceute", "1"]).stdout, "");
    for arguments in [&["act", "--help", "--json"][..], &["--json", "--version"]] {
        let ended = motor.run(arguments);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{ended:?}");
        assert!(ended.stdout.contains("motor"), "{ended:?}");
    }
}

#[test]
fn names_that_were_mistyped_are_guessed() {
    let motor = Motor::new().env("MOTOR_KEYRING", "off").env("VAULT_API_KEY", "a-secret-of-mine");
    let motor = motor.env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", "sk-test");
    motor
        .run_as_owner(&["credential", "set", "shop_key", "--domain", "api.example.com"], "another-secret\n")
        .succeeded();
    motor.run_as_owner(&["network", "allow", "api.example.com", "--always"], "").succeeded();
    let act = |arguments: &[&str]| motor.run(&[&["act", "x"], arguments].concat());
    act(&["--credentials", "shop_kye"]).refused(4, &["`shop_kye` is not set", "did you mean `shop_key`?"]);
    act(&["--tools", "cod"]).refused(2, &["did you mean `code`?"]);
    motor.run(&["config", "set", "fule", "7"]).refused(2, &["did you mean `limits.fuel`?"]);
    motor.run(&["help", "enregy"]).refused(1, &["did you mean `energy`?"]);
    let forget = motor.run_as_owner(&["network", "forget", "api.exmaple.com", "--always"], "");
    forget.refused(1, &["no such decision", "did you mean `api.example.com`?"]);
    let delete = motor.run_as_owner(&["credential", "delete", "shop_kye"], "");
    delete.refused(1, &["there is no credential `shop_kye`", "did you mean `shop_key`?"]);
    // A name that is like no other is not guessed at.
    let ended = act(&["--credentials", "zzz"]);
    assert!(ended.code == Some(4) && !ended.stderr.contains("did you mean"), "{ended:?}");
}

#[test]
fn help_explains_commands_and_terms() {
    let motor = Motor::bare();
    for (words, expected) in [
        (&[][..], &["Usage: motor", "motor help terms"][..]),
        (&["task", "list"], &["Usage: motor task list"]),
        (&["energy"], &["energy: the budget of an agent that limits runs", "\n\n", "Usage: motor energy"]),
        (&["skill"], &["skill: a directory or component", "Usage: motor skill"]),
        (&["cap"], &["(`[budget] usd`, `usd_day`)"]),
        (&["fuel"], &["fuel: the unit of work of a guest"]),
        (&["Grants"], &["grant: the powers of a run"]),
        (&["information", "score"], &["information score: how much is known about a peer"]),
        (&["terms"], &["attempt ", "workspace "]),
        (&["json"], &["task list ", "signals ", "motor help json --json"]),
    ] {
        let shown = motor.stdout(&[&["help"], words].concat());
        for text in expected {
            assert!(shown.contains(text), "{words:?}: {shown}");
        }
        assert!(!shown.contains("]("), "{words:?}: a link is left");
    }
    for word in ["fuel", "energy", "skill"] {
        assert_eq!(motor.json(&["help", word])["term"], word);
    }
    assert!(!motor.stdout(&["help", "task", "list"]).contains("task:"), "a term is prefixed to every command");
    motor
        .run(&["help", "energi"])
        .refused(1, &["`energi` is no command and no term; did you mean `energy`?", "motor help terms"]);
    assert!(!motor.home().exists(), "help made a home");
}
