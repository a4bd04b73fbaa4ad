//! One story with every client library: a run is delegated, asks a question, wants an approval, and its result and file are
//! read.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};
use tests::Patience;

use super::owner::Owner;
use super::{Clients, World, painting};

/// The time between two looks at a client that says nothing.
const PAUSE: Duration = Duration::from_millis(500);

/// The way of a client to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Stdio,
    Http,
}

/// The ways of all stories.
const WAYS: [Way; 2] = [Way::Stdio, Way::Http];

impl Way {
    /// The arguments by which a story script finds the server.
    fn arguments(self, world: &World) -> Vec<String> {
        match self {
            Self::Stdio => [vec!["stdio".to_owned()], world.server().to_vec()].concat(),
            Self::Http => vec!["http".to_owned(), world.url(), world.token.clone()],
        }
    }
}

/// Runs a client to its end, and returns the events that it told. The owner answers on the page as soon as the client says
/// that the run waits.
fn told(mut command: Command, world: &World, owner: &Owner<'_>) -> Vec<Value> {
    let streams = command.env_clear().env("HOME", world.motor.directory()).stdin(Stdio::null());
    let mut child = streams.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (send, lines) = channel();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            send.send(line).ok();
        }
    });
    let (mut events, mut patience) = (Vec::<Value>::new(), Patience::default());
    loop {
        match lines.recv_timeout(PAUSE) {
            Ok(line) => {
                let told: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no event: {line}"));
                let run = events.iter().find_map(|event| event["runId"].as_str());
                match (told["kind"].as_str(), run) {
                    (Some("approval"), Some(run)) => owner.approve(run),
                    (Some(_), Some(run)) => owner.answer(run, "blue"),
                    _ => {}
                }
                events.push(told);
            }
            Err(RecvTimeoutError::Timeout) if patience.lasts() => {}
            Err(RecvTimeoutError::Timeout) => child.kill().unwrap(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{events:#?}\n{}", String::from_utf8_lossy(&output.stderr));
    events
}

fn event<'a>(events: &'a [Value], name: &str) -> &'a Value {
    events.iter().find(|event| event["event"] == name).unwrap_or_else(|| panic!("no `{name}` in {events:#?}"))
}

/// Checks the events of a whole story, in which the person at the client answered the question.
fn check(title: &str, world: &World, events: &[Value]) {
    let tools = event(events, "connected")["tools"].as_array().unwrap();
    assert!(tools.contains(&json!("core_act")) && tools.contains(&json!("core_task")), "{title}: {tools:?}");
    let run = event(events, "started")["runId"].as_str().unwrap();
    let asked = event(events, "elicitation");
    assert!(asked["message"].as_str().unwrap().contains("Which colour?"), "{title}: {asked}");
    assert!(!events.iter().any(|event| event["kind"] == "answer"), "{title}: only the owner was asked: {events:#?}");
    let approval = events.iter().find(|event| event["kind"] == "approval");
    let approval = approval.unwrap_or_else(|| panic!("{title}: no approval in {events:#?}"));
    assert_eq!(approval["page"], format!("{}/runs/{run}", world.address), "{title}");
    let over = event(events, "over");
    assert_eq!((&over["status"], &over["answer"]), (&json!("completed"), &json!("It is painted.")), "{title}: {over}");
    assert_eq!(over["artifacts"][0]["path"], "plan.txt", "{title}: {over}");
    assert_eq!(event(events, "artifact")["text"], "paint it", "{title}");
    println!("{title}: run {run}");
}

fn script(name: &str) -> &'static Path {
    Path::new(match name {
        "python" => concat!(env!("CARGO_MANIFEST_DIR"), "/clients/story.py"),
        _ => concat!(env!("CARGO_MANIFEST_DIR"), "/clients/story.mjs"),
    })
}

#[test]
fn the_python_library_tells_the_story_in_both_eras() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let world = World::new(painting());
    let owner = Owner::sign_in(&world);
    for (mode, version) in [("legacy", "2025-11-25"), ("auto", "2026-07-28")] {
        for way in WAYS {
            let mut command = Command::new(&clients.python);
            command.arg(script("python")).arg(mode).args(way.arguments(&world));
            let events = told(command, &world, &owner);
            assert_eq!(event(&events, "connected")["version"], version, "{way:?}");
            check(&format!("python {version} {way:?}"), &world, &events);
        }
    }
}

#[test]
fn the_typescript_library_tells_the_story() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let world = World::new(painting());
    let owner = Owner::sign_in(&world);
    for way in WAYS {
        let mut command = Command::new(&clients.node);
        command.arg(script("typescript")).arg(&clients.modules).args(way.arguments(&world));
        check(&format!("typescript {way:?}"), &world, &told(command, &world, &owner));
    }
}

/// A client that starts anew for each call, and that no person sits in front of.
struct Inspector<'a> {
    clients: &'a Clients,
    world: &'a World,
    way: Way,
}

impl Inspector<'_> {
    /// The result of one method.
    fn ask(&self, arguments: &[&str]) -> Value {
        let mut command = Command::new(&self.clients.node);
        command.arg(self.clients.program("mcp-inspector")).arg("--cli");
        command.env_clear().env("HOME", self.world.motor.directory()).stdin(Stdio::null());
        match self.way {
            Way::Stdio => {
                command.args(self.world.server()).args(arguments);
            }
            Way::Http => {
                let header = format!("Authorization: Bearer {}", self.world.token);
                command.args(["--transport", "http", "--server-url", &self.world.url(), "--header", &header]);
                command.args(arguments);
            }
        }
        let output = command.output().unwrap();
        assert!(output.status.success(), "{:?} {arguments:?}: {output:?}", self.way);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{arguments:?}: {output:?}"))
    }

    /// The structured result of a tool.
    fn call(&self, tool: &str, arguments: &[&str]) -> Value {
        let pairs = arguments.iter().flat_map(|pair| ["--tool-arg", pair]);
        let result =
            self.ask(&["--method", "tools/call", "--tool-name", tool].into_iter().chain(pairs).collect::<Vec<_>>());
        assert_ne!(result["isError"], true, "{result}");
        result["structuredContent"].clone()
    }
}

#[test]
fn the_inspector_tells_the_story() {
    let Some(clients) = Clients::find() else {
        return;
    };
    let world = World::new(painting());
    let owner = Owner::sign_in(&world);
    for way in WAYS {
        let inspector = Inspector { clients: &clients, world: &world, way };
        // Strictly: the schemas are portable.
        let tools = inspector.ask(&["--method", "tools/list", "--strict"]);
        assert_eq!(tools["tools"][0]["name"], "core_act", "{tools}");
        let started = inspector.call("core_act", &["task=paint the room", "tools=[\"write\"]"]);
        let run = started["runId"].as_str().unwrap();
        let (of_run, mut kinds) = (format!("runId={run}"), Vec::new());
        let over = loop {
            let seen = inspector.call("core_task", &["action=wait", &of_run, "waitSeconds=20"])["run"].clone();
            if seen["isOver"] == true {
                break seen;
            }
            let waits = seen["waitsFor"]["kind"].as_str().unwrap_or_else(|| panic!("{seen}"));
            assert_eq!(seen["waitsFor"]["page"], format!("{}/runs/{run}", world.address), "{seen}");
            match waits {
                "answer" => owner.answer(run, "blue"),
                _ => owner.approve(run),
            }
            kinds.push(waits.to_owned());
        };
        assert_eq!(
            (kinds, &over["answer"]),
            (vec!["answer".to_owned(), "approval".to_owned()], &json!("It is painted."))
        );
        let read = inspector.call("core_task", &["action=artifact", &of_run, "path=plan.txt"]);
        assert_eq!(read["artifact"]["text"], "paint it", "{read}");
        println!("inspector {way:?}: run {run}");
    }
}
