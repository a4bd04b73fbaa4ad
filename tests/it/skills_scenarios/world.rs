//! A home with skills, sites that they talk to, and a model that plays a part for each command.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::binary::{Ended, Motor, Running};
use tests::model_server::ModelServer;
use tests::network::Site;
use tests::{block_on, cache};

/// The name and place of the skill that most tests are about.
pub const MAIL: &str = "agentmail";

/// A home whose index of skills is its own: the compiled code is shared, and nothing else.
pub struct World {
    pub motor: Motor,
    pub model: ModelServer,
}

impl World {
    /// A home with a model that plays these turns.
    pub fn new(turns: Vec<Value>) -> Self {
        Self::scripted(json!({ "turns": turns }))
    }

    /// A home with a model that plays this script.
    pub fn scripted(script: Value) -> Self {
        let model = block_on(ModelServer::scripted(script));
        let motor = Motor::bare().env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", "sk-test");
        let motor = motor.env("MOTOR_KEYRING", "off").endpoint(&model.base_url());
        make(motor.home());
        Self { motor, model }
    }

    /// The same home, in which these sites may be reached at all.
    pub fn beside(self, sites: &[&Site]) -> Self {
        let addresses: Vec<_> = sites.iter().map(|site| site.address().to_string()).collect();
        self.motor.configure(&format!("[network]\nprivate = {addresses:?}\n"));
        self
    }

    /// Sets the turns of the model for the next commands.
    pub fn plays(&mut self, turns: Vec<Value>) {
        self.plays_script(json!({ "turns": turns }));
    }

    /// The same with a whole script, its faults and later attempts included.
    pub fn plays_script(&mut self, script: Value) {
        self.model = block_on(ModelServer::scripted(script));
        let motor = std::mem::replace(&mut self.motor, Motor::bare());
        self.motor = motor.endpoint(&self.model.base_url());
    }

    /// The home's directory of skills.
    pub fn skills(&self) -> PathBuf {
        self.motor.home().join("skills")
    }

    /// Puts a skill into the skills directory.
    pub fn drop_in(&self, entry: &str, files: &[(&str, &str)]) -> PathBuf {
        let directory = self.skills().join(entry);
        write(&directory, files);
        directory
    }

    /// Approves a skill as the owner.
    #[track_caller]
    pub fn approve(&self, arguments: &[&str]) -> Ended {
        self.as_owner(&[&["skill", "approve"], arguments].concat()).succeeded()
    }

    /// Reviews a skill or tool, and approves it with the proposed powers.
    #[track_caller]
    pub fn approve_reviewed(&self, skill: &str) -> Ended {
        self.review(skill);
        self.approve(&[skill])
    }

    pub fn as_owner(&self, arguments: &[&str]) -> Ended {
        self.motor.run_as_owner(arguments, "")
    }

    /// Acts with a skill.
    pub fn act(&self, skill: &str, extra: &[&str]) -> Ended {
        self.motor.run(&[&["act", "send it", "--skill", skill], extra].concat())
    }

    /// The line of the list about an entry.
    #[track_caller]
    pub fn summary(&self, entry: &str) -> Value {
        of_entry(&self.motor.json(&["skill", "list"]), entry)
    }

    #[track_caller]
    pub fn status(&self, entry: &str) -> String {
        self.summary(entry)["status"].as_str().unwrap().to_owned()
    }

    /// The facts of a skill; asking for them completes its review.
    #[track_caller]
    pub fn review(&self, skill: &str) -> Value {
        self.motor.json(&["skill", "review", skill])["review"].clone()
    }

    #[track_caller]
    pub fn explain(&self, skill: &str) -> Value {
        self.motor.json(&["explain", "send it", "--skill", skill])
    }

    /// The trace of the newest run.
    #[track_caller]
    pub fn trace(&self) -> Value {
        self.motor.json(&["task", "status"])
    }

    /// Starts a host that stays.
    #[track_caller]
    pub fn serve(&self) -> Running {
        let serving = self.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        serving
    }

    /// Asks for the list each time until it holds of an entry; null when it is not listed.
    #[track_caller]
    pub fn until_listed(&self, entry: &str, holds: impl Fn(&Value) -> bool) -> Value {
        let find = |list: &Value| {
            let found = list.as_array().unwrap().iter().find(|skill| skill["place"]["entry"] == entry);
            found.cloned().unwrap_or_default()
        };
        find(&self.motor.wait_for(&["skill", "list"], |list| holds(&find(list))))
    }

    /// The texts of the prompt of a request to the model: the system's and the first message.
    pub fn prompt(&self, request: usize) -> String {
        let messages = self.model.requests()[request].body["messages"].clone();
        messages.as_array().unwrap().iter().take(2).map(|message| message["content"].as_str().unwrap()).collect()
    }

    /// The names of the tools that a request to the model offers, sorted.
    pub fn offered(&self, request: usize) -> Vec<String> {
        let tools = self.model.requests()[request].body["tools"].clone();
        let tools = tools.as_array().cloned().unwrap_or_default();
        let mut names: Vec<_> =
            tools.iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned()).collect();
        names.sort();
        names
    }
}

/// A home that shares nothing with others but compiled code.
pub fn make(home: &Path) {
    let shared = cache().join("compiled");
    fs::create_dir_all(&shared).unwrap();
    for directory in ["skills", "cache"] {
        fs::create_dir_all(home.join(directory)).unwrap();
        fs::set_permissions(home.join(directory), fs::Permissions::from_mode(0o700)).unwrap();
    }
    symlink(shared, home.join("cache/compiled")).unwrap();
}

#[track_caller]
pub fn of_entry(list: &Value, entry: &str) -> Value {
    let found = list.as_array().unwrap().iter().find(|skill| skill["place"]["entry"] == entry);
    found.unwrap_or_else(|| panic!("{entry} is not listed: {list:#}")).clone()
}

pub fn write(directory: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// Every file below, by path, except the `policy.json` that the host writes for people.
pub fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    fn walk(top: &Path, directory: &Path, found: &mut BTreeMap<String, Vec<u8>>) {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(top).unwrap().to_str().unwrap().to_owned();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                walk(top, &path, found);
            } else if name != "policy.json" {
                found.insert(name, fs::read(&path).unwrap_or_default());
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(directory, directory, &mut found);
    found
}

/// A `SKILL.md` with this body.
pub fn manifest(name: &str, body: &str) -> String {
    format!(
        "---\nname: {name}\ndescription: Sends and reads mail. Use it when somebody is to be written to.\n---\n\n{body}\n"
    )
}

/// A turn of the model that calls one tool.
pub fn call(name: &str, arguments: Value) -> Value {
    json!({ "tool_calls": [{ "name": name, "arguments": arguments }] })
}

pub fn get(url: &str) -> Value {
    call("fetch", json!({ "url": url }))
}

pub fn put(path: &str, content: &str) -> Value {
    call("write", json!({ "path": path, "content": content }))
}

pub fn read(path: &str) -> Value {
    call("read", json!({ "path": path }))
}

pub fn says(text: &str) -> Value {
    json!({ "text": text })
}

/// The same turn, which waits to be released.
pub fn gated(mut turn: Value) -> Value {
    turn["gate"] = json!(true);
    turn
}

/// Every call of a trace.
pub fn calls(trace: &Value) -> Vec<Value> {
    let steps = trace["steps"].as_array().unwrap().iter();
    steps.flat_map(|step| step["toolCalls"].as_array().unwrap().clone()).collect()
}

/// The outcome of every call of a trace: `true`, or the code of its error.
pub fn outcomes(trace: &Value) -> Vec<Value> {
    let result =
        |call: &Value| if call["result"]["ok"] == true { json!(true) } else { call["result"]["errorCode"].clone() };
    calls(trace).iter().map(result).collect()
}
