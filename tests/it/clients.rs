//! Other people's clients of the MCP server (SPEC MCP-1): the official Python and TypeScript libraries, the inspector's
//! command line and two agents, each with the real program, over standard input and output and over HTTP.
//!
//! They come from the toolchain `clients` (`cargo xtask toolchains`); without it these tests are skipped.

mod agents;
mod owner;
mod stories;

use std::path::PathBuf;

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::model_server::ModelServer;
use tests::{block_on, target_directory};

/// The clients that the toolchain installed.
struct Clients {
    /// Node 22, for those that need it.
    node: PathBuf,
    python: PathBuf,
    /// The directory of the packages from npm.
    modules: PathBuf,
}

impl Clients {
    fn find() -> Option<Self> {
        let toolchains = target_directory().join("toolchains");
        let clients = Self {
            node: toolchains.join("conformance/node_modules/node/bin/node"),
            python: toolchains.join("clients/venv/bin/python"),
            modules: toolchains.join("clients/node_modules"),
        };
        let found = [&clients.node, &clients.python, &clients.modules].into_iter().all(|path| path.exists());
        if !found {
            println!("other people's clients: skipped: run `cargo xtask toolchains`");
        }
        found.then_some(clients)
    }

    /// The file of a program from npm.
    fn program(&self, name: &str) -> PathBuf {
        self.modules.join(".bin").join(name)
    }
}

/// A host with a page and a port, and a model for its runs.
struct World {
    motor: Motor,
    _model: ModelServer,
    _serving: Running,
    address: String,
    /// A token with the scope `agent`.
    token: String,
}

impl World {
    fn new(turns: Value) -> Self {
        let model = block_on(ModelServer::scripted(json!({ "turns": turns })));
        let motor = Motor::with_model(&model);
        let made = motor.run_as_owner(&["token", "create", "--name", "client", "--scope", "agent"], "");
        let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
        let address = line["address"].as_str().unwrap().to_owned();
        Self { motor, _model: model, _serving: serving, address, token: made.stdout.trim().to_owned() }
    }

    fn url(&self) -> String {
        format!("{}/mcp", self.address)
    }

    /// The command of a client that starts the server itself.
    fn server(&self) -> [String; 4] {
        let words = [
            tests::binary::program_file().as_os_str(),
            "mcp".as_ref(),
            "--home".as_ref(),
            self.motor.home().as_os_str(),
        ];
        words.map(|word| word.to_str().unwrap().to_owned())
    }
}

/// A run that writes a file, asks a question, asks for approval and answers.
fn painting() -> Value {
    let write = json!({ "path": "plan.txt", "content": "paint it" });
    let question = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
    let wanted =
        json!({ "action": "book the room", "reason": "it is painted there", "domains": ["rooms.example.com"] });
    json!([
        { "tool_calls": [{ "name": "write", "arguments": write }] },
        { "tool_calls": [{ "name": "ask_user", "arguments": question }] },
        { "tool_calls": [{ "name": "request_approval", "arguments": wanted }] },
        { "text": "It is painted." },
    ])
}
