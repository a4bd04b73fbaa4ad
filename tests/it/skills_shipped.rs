//! The skills in `skills/`, as their users meet them: each is added, refuses to act, shows its powers, is approved with
//! its proposal, and then does with its own scripts and tools the work it promises, checked against another way of
//! working it out (SPEC SKILL-1, SKILL-2, SKILL-4, SKILL-8, SKILL-9, HOST-2).

mod analyst;
mod calendar;
mod researcher;
mod scripts;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tests::binary::{Ended, Motor};
use tests::model_server::ModelServer;
use tests::{block_on, cache};

/// A shipped skill's directory.
fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("skills").join(name)
}

/// A home with a model that plays these turns, which shares compiled code with others and nothing else.
struct World {
    motor: Motor,
    model: ModelServer,
}

impl World {
    fn new() -> Self {
        let model = block_on(ModelServer::scripted(json!({ "turns": [] })));
        let motor = Motor::bare().env("LLM_MOTOR_MODEL", "openai/test").env("OPENAI_API_KEY", "sk-test");
        let motor = motor.env("MOTOR_KEYRING", "off").endpoint(&model.base_url());
        let modules = cache().join("compiled");
        fs::create_dir_all(&modules).unwrap();
        fs::create_dir_all(motor.home().join("cache")).unwrap();
        symlink(modules, motor.home().join("cache/compiled")).unwrap();
        Self { motor, model }
    }

    /// Sets the turns of the model for the next commands.
    fn plays(&mut self, turns: Vec<Value>) {
        self.model = block_on(ModelServer::scripted(json!({ "turns": turns })));
        let motor = std::mem::replace(&mut self.motor, Motor::bare());
        self.motor = motor.endpoint(&self.model.base_url());
    }

    /// Adds a shipped skill, finds that it may not act, and looks at it.
    #[track_caller]
    fn add_and_review(&self, name: &str, act: &[&str]) -> Value {
        let added = self.motor.json(&["skill", "add", shipped(name).to_str().unwrap()]);
        assert_eq!((&added["name"], &added["status"]), (&json!(name), &json!("needs_reapproval")), "{added:#}");
        assert_eq!(added["conforms"], true, "{added:#}");
        self.may_not_act(name, act);
        let review = self.motor.json(&["skill", "review", name])["review"].clone();
        assert_eq!((&review["status"], &review["strict"]), (&json!("reviewed"), &Value::Null), "{review:#}");
        assert_eq!((&review["hidden"], &review["claims"]), (&json!([]), &Value::Null), "{review:#}");
        assert_eq!((&review["credentials"], &review["policy"]), (&json!([]), &Value::Null), "{review:#}");
        // Looked at is not approved.
        self.may_not_act(name, act);
        review
    }

    #[track_caller]
    fn may_not_act(&self, name: &str, act: &[&str]) {
        let ended = self.act(name, act);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(5), ""), "{ended:?}");
        assert!(ended.stderr.contains(&format!("motor skill approve {name}")), "{ended:?}");
        assert_eq!(self.model.calls(), 0, "a skill that nobody approved cost a token");
    }

    /// Approves a skill as the owner.
    #[track_caller]
    fn approve(&self, arguments: &[&str]) {
        self.motor.run_as_owner(&[&["skill", "approve"], arguments].concat(), "").succeeded();
    }

    fn act(&self, skill: &str, extra: &[&str]) -> Ended {
        self.motor.run(&[&["act", "go on", "--skill", skill], extra].concat())
    }

    /// Acts with inputs that do not fit, and is refused with words before it costs anything.
    #[track_caller]
    fn inputs_are_refused(&self, skill: &str, cases: &[(&[&str], &str)]) {
        let before = self.model.calls();
        for (arguments, words) in cases {
            let ended = self.act(skill, arguments);
            assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{arguments:?}: {ended:?}");
            assert!(ended.stderr.contains(words), "{arguments:?}: {words:?} is not said: {ended:?}");
        }
        assert_eq!(self.model.calls(), before, "a wrong input cost a token");
    }

    /// The results of the newest run's calls: the output of each, or its code.
    fn results(&self) -> Vec<Result<String, String>> {
        let trace = self.motor.json(&["task", "status"]);
        let steps = trace["steps"].as_array().unwrap().iter();
        let calls = steps.flat_map(|step| step["toolCalls"].as_array().unwrap().clone());
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        calls
            .map(|call| match &call["result"] {
                result if result["ok"] == true => Ok(text(&result["output"])),
                result => Err(text(&result["errorCode"])),
            })
            .collect()
    }

    /// The tools that the model was offered, but those of the loop itself.
    fn offered(&self) -> Vec<String> {
        let tools = self.model.requests()[0].body["tools"].clone();
        let names = tools.as_array().unwrap().iter().map(|tool| tool["function"]["name"].as_str().unwrap().to_owned());
        let mut names: Vec<_> = names.filter(|name| name != "ask_user" && name != "request_approval").collect();
        names.sort();
        names
    }

    /// The messages to the model before its first reply.
    fn prompt(&self) -> String {
        let messages = self.model.requests()[0].body["messages"].clone();
        messages.as_array().unwrap().iter().map(|message| message["content"].as_str().unwrap_or_default()).collect()
    }
}

/// A turn that calls one tool.
fn call(name: &str, arguments: &Value) -> Value {
    json!({ "tool_calls": [{ "name": name, "arguments": arguments }] })
}

fn says(text: &str) -> Value {
    json!({ "text": text })
}

/// Every shipped skill is in the table of the README, and no other is.
#[test]
fn the_list_of_shipped_skills_is_complete() {
    let directory = shipped("");
    let list = fs::read_to_string(directory.join("README.md")).unwrap();
    let mut there: Vec<String> = fs::read_dir(&directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
        .collect();
    there.sort();
    assert_eq!(there, ["calendar", "csv-analyst", "web-researcher"]);
    for name in there {
        assert!(list.contains(&format!("[`{name}`]({name})")), "`{name}` is not in skills/README.md");
    }
}
