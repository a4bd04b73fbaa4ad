//! A page, an API, a model and a home, and the search for a secret in everything that they leave behind.

use serde_json::{Value, json};
use tests::binary::{Ended, Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::encoding::{files_with, forms_in};
use tests::network::{Answer, Dns, Encoding, Site};

/// Has signs that every encoding changes.
pub const SECRET: &str = "sk-canary/5f1c+0ffee&4b1d=9a7";
pub const PLACEHOLDER: &str = "<credential:api_key>";
pub const PAGE: &str = "news.test";
pub const API: &str = "api.test";

/// A page, an API, and a home that may reach both.
pub struct World {
    pub page: Site,
    pub api: Site,
    _dns: Dns,
    pub model: ModelServer,
    pub motor: Motor,
}

impl World {
    /// With the model's turns, which are told where page and API are, and more settings of `[network]`.
    pub fn new(turns: impl FnOnce(&str, &str) -> Vec<Value>, settings: impl FnOnce(&str) -> String) -> Self {
        block_on(async {
            let (page, api) = (Site::at("127.0.0.1:0").await, Site::at("127.0.0.2:0").await);
            let dns = Dns::start()
                .await
                .with(PAGE, &[Answer::addresses(&["127.0.0.1"])])
                .with(API, &[Answer::addresses(&["127.0.0.2"])]);
            let turns = turns(&page.url_as(PAGE, ""), &api.url_as(API, ""));
            let model = ModelServer::scripted(json!({ "turns": turns })).await;
            let motor = Motor::with_model(&model).env("MOTOR_LOG", "trace");
            motor.configure(&format!(
                "[network]\nprivate = [\"{}\", \"{}\"]\nresolver = \"{}\"\n{}\n",
                page.address(),
                api.address(),
                dns.address(),
                settings(&format!("{API}:{}", api.port())),
            ));
            Self { page, api, _dns: dns, model, motor }
        })
    }

    /// The API, as a pattern.
    pub fn api_domain(&self) -> String {
        format!("{API}:{}", self.api.port())
    }

    /// Keeps the secret for the API.
    pub fn keep_secret(&self) {
        let set = ["credential", "set", "api_key", "--domain", &self.api_domain()];
        let ended = self.motor.run_as_owner(&set, SECRET).succeeded();
        self.unseen_in(&ended);
    }

    pub fn act(&self, task: &str, extra: &[&str]) -> Ended {
        self.start(task, extra).wait()
    }

    pub fn start(&self, task: &str, extra: &[&str]) -> Running {
        // The names, and the addresses of this machine behind them.
        let (page, api) = (self.page.address(), self.api.address());
        let domains = format!("{PAGE}:{},{},{page},{api}", self.page.port(), self.api_domain());
        // Nothing is asked here: calls that need consent are refused, and the model goes on.
        let arguments =
            ["act", task, "--tools", "fetch,bash,code,filesystem", "--domains", &domains, "-vv", "--unattended"];
        self.motor.start(&[&arguments[..], extra].concat())
    }

    /// The results of tools that the model was told, in order.
    pub fn told(&self) -> Vec<String> {
        let requests = self.model.requests();
        let messages = requests.last().unwrap().body["messages"].as_array().unwrap().clone();
        let results = messages.into_iter().filter(|message| message["role"] == "tool");
        results.map(|message| message["content"].as_str().unwrap_or_default().to_owned()).collect()
    }

    #[track_caller]
    fn unseen_in(&self, ended: &Ended) {
        let shown = format!("{}{}", ended.stdout, ended.stderr);
        assert_eq!(forms_in(shown.as_bytes(), SECRET), [], "on the terminal: {shown}");
    }

    /// Checks that the secret is nowhere: in no file, no request to the model, nothing that any command shows.
    #[track_caller]
    pub fn unseen(&self, ended: &Ended) {
        self.unseen_in(ended);
        let none: [(String, Encoding); 0] = [];
        assert_eq!(files_with(self.motor.directory(), SECRET), none);
        let requests = serde_json::to_vec(&self.model.requests()).unwrap();
        assert_eq!(forms_in(&requests, SECRET), [], "sent to the model");
        for command in [
            &["task", "status", "--full"][..],
            &["task", "status", "--json"],
            &["task", "log"],
            &["signals", "--since", "0"],
            &["config", "show"],
            &["doctor", "--offline"],
            &["verify"],
            &["credential", "list"],
            &["network", "list"],
        ] {
            self.unseen_in(&self.motor.run(&[command, &["-vv"]].concat()));
        }
        // The search finds strings that are there: the placeholder is in the trace and in the model's requests.
        assert!(!forms_in(&requests, PLACEHOLDER).is_empty());
        let traces = files_with(&self.motor.home().join("logs"), PLACEHOLDER);
        assert!(!traces.is_empty(), "the run has left no trace");
    }
}

pub fn call(name: &str, arguments: &Value) -> Value {
    json!({ "tool_calls": [{ "name": name, "arguments": arguments }] })
}

/// Reads the page that `fetch` has saved, as a model does that was given a pointer (SPEC RUN-9).
pub fn read_saved() -> Value {
    call("bash", &json!({ "script": "cat .motor-output/*" }))
}
