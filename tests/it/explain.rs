//! The report of `motor explain` about a run, beside the powers the run is then given (SPEC RUN-13).

use serde_json::{Value, json};
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::ModelServer;

const GRANTS: [&str; 10] = [
    "--tools",
    "fetch,bash,code,read",
    "--domains",
    "api.example.com,*.example.org:8443",
    "--writes",
    "api.example.com",
    "--commands",
    "curl,sort",
    "--max-iterations",
    "7",
];

fn with<'a>(command: &[&'a str]) -> Vec<&'a str> {
    [command, &GRANTS].concat()
}

#[test]
fn a_mistyped_command_of_the_shell_is_named() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }, { "text": "done" }] })));
    let motor = Motor::with_model(&server);
    let said = |command: &str, names: &str| {
        let ended = motor.run(&[command, "x", "--tools", "bash", "--commands", names]).succeeded();
        format!("{}{}", ended.stdout, ended.stderr).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    for command in ["explain", "act"] {
        let told = said(command, "gerp,cat");
        assert!(told.contains("`gerp` is not a command of the shell; did you mean `grep`?"), "{told}");
        let told = said(command, "grep,cat,cd");
        assert!(!told.contains("is not a command"), "{told}");
    }
}

#[test]
fn a_run_is_given_what_was_explained() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    motor
        .run_as_owner(&["credential", "set", "key", "--domain", "api.example.com"], "a secret of some length")
        .succeeded();
    let explained = motor.json(&with(&["explain", "post <credential:key>"]));
    assert_eq!(server.calls(), 0, "explaining asked the model");
    assert!(motor.json(&["task", "list"]).as_array().unwrap().is_empty(), "explaining started something");

    assert_eq!(explained["problems"], json!([]));
    assert_eq!(explained["network"]["domains"], json!(["api.example.com", "*.example.org:8443"]));
    assert_eq!(explained["network"]["writes"], json!(["api.example.com"]));
    assert_eq!(explained["network"]["taintedWrite"], "ask");
    assert_eq!(explained["commands"], json!(["curl", "sort"]));
    assert_eq!(explained["files"]["access"], "read_write");
    assert_eq!(explained["maxIterations"], 7);
    let credential =
        json!({ "name": "key", "source": "vault", "domains": ["api.example.com"], "asks": "after_web", "raw": false });
    assert_eq!(explained["credentials"], json!([credential]));

    // Unattended: the two tools that only ask are in no grant.
    motor.run(&with(&["act", "post <credential:key>", "--unattended"])).succeeded();
    let request = server.requests()[0].body.clone();
    let names = |tools: &Value, name: &str| {
        let tools = tools.as_array().unwrap().iter();
        tools.map(|tool| tool.pointer(name).unwrap().as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&request["tools"], "/function/name"), names(&explained["tools"], "/name"));
    let prompt = request["messages"][0]["content"].as_str().unwrap();
    for told in ["`api.example.com`", "`*.example.org:8443`", "<credential:key>", "curl, sort", "7 iterations"] {
        assert!(prompt.contains(told), "{told}: {prompt}");
    }
    assert!(!prompt.contains("a secret"), "{prompt}");
}

#[test]
fn what_is_missing_is_found_before_the_first_token() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    for command in ["explain", "act"] {
        let ended = motor.run(&with(&[command, "post <credential:key>"]));
        assert_eq!(ended.code, Some(4), "{ended:?}");
        assert!(
            ended.stderr.contains("`key` is not set") && ended.stderr.contains("motor credential set key"),
            "{ended:?}"
        );
    }
    assert_eq!(server.calls(), 0);
    // Its twin: set in the environment, under the customary name, it is there; bound to nothing it is sent nowhere.
    let motor = motor.env("VAULT_KEY", "a secret of some length");
    let ended = motor.run(&with(&["explain", "post <credential:key>"])).succeeded();
    assert!(ended.stdout.contains("key: from the environment, to nowhere"), "{ended:?}");
    assert!(ended.stderr.contains("credentials.domains"), "{ended:?}");
    motor.configure("[credentials]\ndomains = { key = [\"api.example.com\"] }\n");
    let ended = motor.run(&with(&["explain", "post <credential:key>"])).succeeded();
    assert!(ended.stdout.contains("key: from the environment, to api.example.com"), "{ended:?}");
    assert!(ended.stdout.lines().all(|line| line.chars().count() <= 100), "{ended:?}");
}

#[test]
fn nothing_granted_is_nothing() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    let explained = motor.json(&["explain"]);
    assert_eq!(explained["tools"], json!([]));
    assert_eq!(explained["network"]["domains"], json!([]));
    assert_eq!(explained["credentials"], json!([]));
    assert_eq!(explained["files"]["access"], "none");
}

#[test]
fn domains_that_would_be_asked_about_say_so() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    let asks = "api.example.com: asks you about each request";
    assert_eq!(motor.json(&with(&["explain", "post it", "--approval"]))["network"]["asks"], json!(true));
    assert!(motor.stdout(&with(&["explain", "post it", "--approval"])).contains(asks));
    // Its twin asks about nothing that was granted.
    assert_eq!(motor.json(&with(&["explain", "post it"]))["network"]["asks"], Value::Null);
    assert!(!motor.stdout(&with(&["explain", "post it"])).contains("asks you"));
}

/// When each granted part would be asked about: `fetch`, `bash`, `read`, `curl`, `sort`, and the credential.
fn asks(explained: &Value) -> [Value; 6] {
    let named = |list: &str, name: &str| {
        let parts = explained[list].as_array().cloned().unwrap_or_default();
        parts.iter().find(|part| part["name"] == name).map_or(Value::Null, |part| part["asks"].clone())
    };
    let (tools, commands) = ("tools", "askingCommands");
    let of_tools = ["fetch", "bash", "read"].map(|name| named(tools, name));
    let [fetch, bash, read] = of_tools;
    [fetch, bash, read, named(commands, "curl"), named(commands, "sort"), named("credentials", "key")]
}

#[test]
fn tools_commands_and_credentials_that_would_be_asked_about_say_when() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })));
    let motor = Motor::with_model(&server);
    let set = ["credential", "set", "key", "--domain", "api.example.com"];
    motor.run_as_owner(&set, "a secret of some length").succeeded();
    let expected = |when: &str| {
        let when = json!(when);
        [when.clone(), when.clone(), Value::Null, when.clone(), Value::Null, when]
    };
    let post = ["explain", "post <credential:key>"];
    let careful = [&post[..], &["--approval"]].concat();
    assert_eq!(asks(&motor.json(&with(&careful))), expected("each_request"));
    assert_eq!(asks(&motor.json(&with(&post))), expected("after_web"));
    for (arguments, when) in [(&careful[..], "about each request"), (&post, "once it has read from the web")] {
        let shown = motor.stdout(&with(arguments));
        for part in ["bash: ", "bash with curl: ", "the credential key: "] {
            assert!(shown.contains(&format!("{part}{when}")), "{part}{when}: {shown}");
        }
        assert!(!shown.contains("read: ") && !shown.contains("sort: "), "{shown}");
    }
    // Nothing is asked where writes after reading are refused or allowed for good, or nothing is reached.
    let nothing = [const { Value::Null }; 6];
    for setting in ["network.tainted_write=deny", "network.tainted_write=allow"] {
        assert_eq!(asks(&motor.json(&[&with(&post)[..], &["--set", setting]].concat())), nothing, "{setting}");
    }
    let alone = motor.json(&["explain", "post <credential:key>", "--tools", "fetch,bash,read", "--approval"]);
    assert_eq!(asks(&alone), nothing);

    // Over HTTP it is the same; a run that may not ask asks about nothing.
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    for (unattended, expected) in [(false, expected("each_request")), (true, nothing)] {
        let request = json!({
            "task": "post <credential:key>", "tools": ["fetch", "bash", "code", "read"], "domains": ["api.example.com"],
            "commands": ["curl", "sort"], "approvalRequired": true, "unattended": unattended,
        });
        let (status, explained) = motor.ask_as_owner("/v1/explanations", &request).unwrap();
        assert_eq!((status, asks(&explained)), (200, expected), "{explained:#}");
    }
    assert_eq!(server.calls(), 0);
}

const ALL: &str = "bash read write append patch list glob grep";
/// The tools of [`ALL`] that a small model is offered.
const FEWER: &str = "bash read write patch grep";

#[test]
fn a_small_model_is_offered_no_file_tool_that_the_shell_replaces() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [] })));
    let motor = Motor::with_model(&server);
    let directory = motor.directory().join("work");
    std::fs::create_dir(&directory).unwrap();
    let directory = directory.display().to_string();
    let offered = |constrained: bool, grants: &[&str]| {
        let setting = format!("models.constrained={constrained}");
        let explained = motor.json(&[&["explain", "x", "--set", setting.as_str()][..], grants].concat());
        let names = explained["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.collect::<Vec<_>>().join(" ")
    };
    for grants in [&["--tools", "bash,filesystem"][..], &["--on", directory.as_str()]] {
        assert_eq!(offered(true, grants), FEWER, "{grants:?}");
        assert_eq!(offered(false, grants), ALL, "{grants:?}");
    }
    // Tools that are named are offered, and all of them where the shell is narrowed or missing.
    assert_eq!(offered(true, &["--tools", "bash,read,list"]), "bash read list");
    assert_eq!(offered(true, &["--tools", "bash,filesystem", "--commands", "ls,cat"]), ALL);
    assert_eq!(offered(true, &["--tools", "filesystem"]), ALL.trim_start_matches("bash "));
}

/// The names of the tools in a request, which are in its prompt if the model is constrained.
fn offered_in(request: &Value) -> String {
    let native = request["tools"].as_array().into_iter().flatten().filter_map(|tool| tool["function"]["name"].as_str());
    let prompt = request["messages"][0]["content"].as_str().unwrap();
    let listed = prompt.split_once("The tools:\n").map_or("", |(_, listed)| listed);
    let listed = listed.lines().filter_map(|line| line.strip_prefix("- ")?.split(' ').next());
    native.chain(listed).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_run_keeps_the_tools_that_it_began_with() {
    let question = json!({ "question": "Which?" });
    for (constrained, tools) in [(true, FEWER), (false, ALL)] {
        let asks = match constrained {
            true => json!({ "text": json!({ "tool": "ask_user", "arguments": question }).to_string() }),
            false => json!({ "tool_calls": [{ "name": "ask_user", "arguments": question }] }),
        };
        let turns = json!({ "turns": [asks, { "text": r#"{"answer": "done"}"# }] });
        let server = block_on(ModelServer::scripted(turns));
        let motor = Motor::with_model(&server);
        let serve = |constrained: bool| {
            let setting = format!("models.constrained={constrained}");
            let serving = motor.start(&["serve", "--set", setting.as_str()]);
            serving.wait_for_words("listening");
            serving
        };
        let serving = serve(constrained);
        let run = motor.stdout(&["act", "x", "--tools", "bash,filesystem", "--detach"]).trim().to_owned();
        motor.wait_for_status(&run, "awaiting_input");
        serving.kill();
        // The next host has the other setting.
        let _serving = serve(!constrained);
        motor.run_as_owner(&["task", "respond", &run, "the first"], "").succeeded();
        motor.wait_for_status(&run, "completed");
        let kept: Vec<_> = tools.split(' ').collect();
        assert_eq!(motor.json(&["task", "status", &run])["tools"], json!(kept));
        let requests = server.requests();
        assert_eq!(requests.len(), 2);
        for request in &requests {
            assert_eq!(offered_in(&request.body), format!("{tools} ask_user request_approval"));
        }
    }
}
