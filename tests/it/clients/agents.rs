//! Two agents, headless and with scripted models, in a network namespace from which nothing leads out: they delegate a task,
//! wait and read its result. An agent that no person sits in front of dismisses a question, which then stays open.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use regex::Regex;
use serde_json::{Value, json};
use tests::Patience;
use tests::binary::Motor;
use tests::block_on;
use tests::model_server::{Call, ModelServer, Turn};
use tests::network::namespace::isolated;

use super::owner::Owner;
use super::{Clients, World};

/// The agents that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Agent {
    Claude,
    Codex,
}

impl Agent {
    const ALL: [Self; 2] = [Self::Claude, Self::Codex];

    fn name(self) -> &'static str {
        if self == Self::Claude { "claude" } else { "codex" }
    }

    /// The command that gives it one task. Its configuration is in `home`.
    fn command(self, clients: &Clients, model: &ModelServer, home: &Motor) -> Command {
        let mut command = Command::new(clients.program(self.name()));
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", home.directory()).current_dir(home.directory());
        match self {
            Self::Claude => {
                command.env("ANTHROPIC_BASE_URL", model.origin()).env("ANTHROPIC_API_KEY", "sk-scripted");
                // A scripted model knows its tools by heart.
                command.env("ENABLE_TOOL_SEARCH", "false").env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
                command.args(["--allowedTools", "mcp__motor__core_act,mcp__motor__core_task", "-p", "Delegate it."]);
            }
            Self::Codex => {
                let provider = format!(
                    "model_providers.scripted={{name='scripted',base_url='{}',wire_api='responses',env_key='KEY'}}",
                    model.base_url()
                );
                command.env("KEY", "sk-scripted").arg("exec").args(["--skip-git-repo-check", "--json"]);
                command.args(["-c", "model='scripted'", "-c", "model_provider='scripted'", "-c", &provider]);
                // Otherwise the first request may be sent before the server has listed its tools.
                command.args(["-c", "mcp_servers.motor.required=true", "-c", "features.plugins=false"]);
                command.args(["--dangerously-bypass-approvals-and-sandbox", "Delegate it."]);
            }
        }
        command
    }

    /// Runs it to its end, which has to be a success.
    fn run(self, clients: &Clients, model: &ModelServer, home: &Motor) -> Output {
        let mut command = self.command(clients, model, home);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut patience = Patience::default();
        while child.try_wait().unwrap().is_none() {
            if !patience.lasts() {
                child.kill().unwrap();
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{self:?}: {output:?}\n{:#?}", model.requests());
        output
    }
}

/// A model that delegates, waits as long as the run goes on, and repeats the result or the question.
fn delegating(task: &'static str) -> ModelServer {
    let run = Regex::new(r#"runId\W+(run_\w+)"#).unwrap();
    block_on(ModelServer::deciding(Box::new(move |body| {
        let conversation = body["messages"].to_string() + &body["input"].to_string();
        let call = |name: &str, arguments: Value| Turn {
            tool_calls: vec![Call { name: format!("mcp__motor__{name}"), arguments, ..Call::default() }],
            ..Turn::default()
        };
        let say = |text: String| Turn { text, ..Turn::default() };
        let has = |words: &str| conversation.contains(words);
        if let Some((_, after)) = conversation.split_once("THE RESULT IS ") {
            return say(format!("Motor found {}", after.chars().take(4).collect::<String>()));
        }
        if has("motor task respond") {
            return say("The owner has to answer.".to_owned());
        }
        match run.captures(&conversation) {
            Some(found) => call("core_task", json!({ "action": "wait", "runId": &found[1], "waitSeconds": 20 })),
            None => call("core_act", json!({ "task": task, "tools": ["code"] })),
        }
    })))
}

#[test]
fn agents_delegate_a_task_and_read_its_result() {
    let Some(clients) = Clients::find() else {
        return;
    };
    isolated(&[], || {
        for agent in Agent::ALL {
            let code = json!({ "name": "code", "arguments": { "code": "6 * 7 * 31" } });
            let world = World::new(json!([{ "tool_calls": [code] }, { "text": "THE RESULT IS 1302." }]));
            let model = delegating("compute");
            // Installed as the README says.
            let variables =
                [("HOME", world.motor.directory()), ("CODEX_HOME", &world.motor.directory().join(".codex"))];
            let mut install = world.motor.command(&["mcp", "install", "--client", agent.name()]);
            let installed = install.envs(variables).output().unwrap();
            assert!(installed.status.success(), "{installed:?}");
            let output = agent.run(&clients, &model, &world.motor);
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(said.contains("Motor found 1302"), "{agent:?}: {said}");
            let runs = world.motor.json(&["task", "list"]);
            assert_eq!((&runs[0]["task"], &runs[0]["status"]), (&json!("compute"), &json!("completed")), "{runs}");
            println!("measured {agent:?}: {}", said.lines().last().unwrap_or_default());
        }
    });
}

/// A server that keeps the messages of both sides in files.
fn recorded(world: &World) -> (PathBuf, PathBuf) {
    let messages = world.motor.directory().join("messages");
    let server = world.server().map(|word| format!("'{word}'")).join(" ");
    let script = world.motor.file("recorded", format!("#!/bin/sh\n{server} | tee '{}'\n", messages.display()));
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    (script, messages)
}

#[test]
fn a_question_that_an_agent_dismisses_stays_open() {
    let Some(clients) = Clients::find() else {
        return;
    };
    isolated(&[], || {
        for agent in Agent::ALL {
            let question = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
            let ask = json!({ "tool_calls": [{ "name": "ask_user", "arguments": question }] });
            let world = World::new(json!([ask, ask, { "text": "It is painted." }]));
            let model = delegating("paint");
            let (server, messages) = recorded(&world);
            match agent {
                Agent::Claude => {
                    let servers = json!({ "mcpServers": { "motor": { "command": server, "args": [] } } });
                    fs::write(world.motor.directory().join(".claude.json"), servers.to_string()).unwrap();
                }
                Agent::Codex => {
                    let directory = world.motor.directory().join(".codex");
                    fs::create_dir_all(&directory).unwrap();
                    let server = format!("[mcp_servers.motor]\ncommand = '{}'\n", server.display());
                    fs::write(directory.join("config.toml"), server).unwrap();
                }
            }
            let output = agent.run(&clients, &model, &world.motor);
            let said = String::from_utf8(output.stdout).unwrap();
            assert!(said.contains("The owner has to answer."), "{agent:?}: {said}");
            let messages = fs::read_to_string(messages).unwrap();
            assert!(messages.contains("\"elicitation/create\""), "{agent:?} was not asked: {messages}");
            // The command line still answers the question, and the page the next one.
            let run = world.motor.only_run();
            world.motor.wait_for_status(&run, "awaiting_input");
            let answered = world.motor.run_as_owner(&["task", "respond", &run, "red"], "");
            assert_eq!(answered.code, Some(0), "{answered:?}");
            world.motor.wait_for_status(&run, "awaiting_input");
            Owner::sign_in(&world).answer(&run, "blue");
            world.motor.wait_for_status(&run, "completed");
            println!("measured {agent:?}: the question stayed open");
        }
    });
}
