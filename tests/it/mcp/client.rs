//! A client of the MCP server as clients write on the wire: on standard input and output, or over HTTP, in either era.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use reqwest::{Response, StatusCode};
use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::{Patience, block_on};

/// The protocol's eras: with a handshake, and with the client's facts in every request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    Handshake,
    Stateless,
}

pub const ERAS: [Era; 2] = [Era::Handshake, Era::Stateless];

impl Era {
    pub fn version(self) -> &'static str {
        if self == Self::Handshake { "2025-11-25" } else { "2026-07-28" }
    }
}

/// The capabilities of a client that shows forms and opens addresses.
pub fn elicitation() -> Value {
    json!({ "elicitation": { "form": {}, "url": {} } })
}

/// The result of an elicitation that was accepted.
pub fn accept(answer: &str) -> Value {
    json!({ "action": "accept", "content": { "answer": answer } })
}

/// The reaction of a client to a request of the server.
pub enum Reaction {
    Result(Value),
    Error,
    /// The person says nothing.
    Silence,
}

type React = Box<dyn FnMut(&Value) -> Reaction + Send>;

pub struct Client {
    wire: Wire,
    era: Era,
    capabilities: Value,
    next: u64,
    react: React,
    /// Notifications that came since the last request.
    pub notices: Vec<Value>,
    /// The parameters of all elicitations.
    pub asked: Vec<Value>,
    tools: Value,
}

enum Wire {
    Stdio { child: Child, stdin: Option<ChildStdin>, lines: Receiver<String> },
    Http(Http),
}

/// A client's side of `/mcp`.
pub struct Http {
    pub client: reqwest::Client,
    pub url: String,
    pub token: String,
    pub version: &'static str,
    pub session: Option<String>,
}

impl Http {
    pub fn new(url: &str, token: &str, era: Era) -> Self {
        let (client, url, token) = (reqwest::Client::new(), url.to_owned(), token.to_owned());
        Self { client, url, token, version: era.version(), session: None }
    }

    /// Sends a message and returns the head of the answer.
    pub async fn post(&self, message: &Value) -> Response {
        let mut request = self.client.post(&self.url).bearer_auth(&self.token);
        request = request.header("accept", "application/json, text/event-stream");
        request = request.header("mcp-protocol-version", self.version);
        if let Some(method) = message["method"].as_str() {
            request = request.header("mcp-method", method);
        }
        let uri = message["params"]["uri"].as_str().filter(|_| message["method"] == "resources/read");
        let name = message["params"]["name"].as_str().or(message["params"]["taskId"].as_str()).or(uri);
        if let Some(name) = name {
            request = request.header("mcp-name", name);
        }
        if let Some(session) = &self.session {
            request = request.header("mcp-session-id", session);
        }
        request.json(message).send().await.unwrap()
    }

    pub fn status(&self, message: &Value) -> StatusCode {
        block_on(self.post(message)).status()
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if let Self::Stdio { child, .. } = self {
            child.kill().ok();
            child.wait().ok();
        }
    }
}

/// A message that came in.
enum Incoming {
    /// The answer to the request in flight.
    Answer(Value),
    /// To be sent back.
    Reply(Value),
    Taken,
}

impl Client {
    /// A client of `motor mcp` that can do nothing special.
    pub fn start(motor: &Motor, era: Era) -> Self {
        Self::able(motor, era, json!({}))
    }

    /// A client of `motor mcp` with these capabilities.
    pub fn able(motor: &Motor, era: Era, capabilities: Value) -> Self {
        Self::of(motor.command(&["mcp"]), era, capabilities)
    }

    pub fn of(mut command: Command, era: Era, capabilities: Value) -> Self {
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = streams.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Self::on(Wire::Stdio { child, stdin, lines }, era, capabilities)
    }

    /// A client of `/mcp` with a token.
    pub fn http(url: &str, token: &str, era: Era, capabilities: Value) -> Self {
        Self::on(Wire::Http(Http::new(url, token, era)), era, capabilities)
    }

    fn on(wire: Wire, era: Era, capabilities: Value) -> Self {
        let react: React = Box::new(|_| panic!("the server asks a client that did not say it can be asked"));
        let (notices, asked) = (Vec::new(), Vec::new());
        let mut client = Self { wire, era, capabilities, next: 1, react, notices, asked, tools: Value::Null };
        if era == Era::Handshake {
            client.greet();
        }
        client
    }

    /// Opens a connection by the handshake.
    pub fn greet(&mut self) {
        if let Wire::Http(http) = &mut self.wire {
            http.session = None;
        }
        let info = json!({ "name": "test", "version": "1" });
        let version = self.era.version();
        let hello = json!({ "protocolVersion": version, "capabilities": self.capabilities, "clientInfo": info });
        let told = self.ask("initialize", hello);
        assert_eq!(told["protocolVersion"], version, "{told}");
        self.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    }

    /// The same with this behaviour when the server asks.
    pub fn reacting(mut self, react: impl FnMut(&Value) -> Reaction + Send + 'static) -> Self {
        self.react = Box::new(react);
        self
    }

    pub fn session(&self) -> Option<String> {
        match &self.wire {
            Wire::Http(http) => http.session.clone(),
            Wire::Stdio { .. } => None,
        }
    }

    pub fn message(&self, id: u64, method: &str, mut params: Value) -> Value {
        if self.era == Era::Stateless {
            params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!(self.era.version());
            params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
    }

    /// Sends a message that has no answer.
    fn send(&mut self, message: &Value) {
        match &mut self.wire {
            Wire::Stdio { stdin, .. } => writeln!(stdin.as_mut().unwrap(), "{message}").unwrap(),
            Wire::Http(http) => {
                let status = http.status(message);
                assert!(status.is_success(), "{message}: {status}");
            }
        }
    }

    fn line(&self) -> Value {
        let Wire::Stdio { lines, .. } = &self.wire else { panic!("not on standard output") };
        let mut patience = Patience::default();
        loop {
            match lines.recv_timeout(Duration::from_millis(200)) {
                // Each line on standard output is a message: logs go elsewhere.
                Ok(line) => return serde_json::from_str(&line).unwrap(),
                Err(RecvTimeoutError::Timeout) if patience.lasts() => {}
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    /// Sends a request on standard input, and returns its id: the answer comes later.
    pub fn begin(&mut self, method: &str, params: Value) -> u64 {
        let id = self.next;
        self.next += 1;
        let message = self.message(id, method, params);
        self.send(&message);
        id
    }

    /// The next notification of this kind on standard output.
    pub fn notice(&mut self, method: &str) -> Value {
        loop {
            if let Some(at) = self.notices.iter().position(|notice| notice["method"] == method) {
                return self.notices.remove(at);
            }
            let message = self.line();
            assert!(message["method"].is_string(), "{message}");
            self.notices.push(message);
        }
    }

    /// The answer to a request that was begun.
    pub fn finish(&mut self, id: u64) -> Value {
        loop {
            let message = self.line();
            if message["id"] == id {
                return message;
            }
            self.notices.push(message);
        }
    }

    /// The whole answer to a request; questions of the server in between are answered as the test wants it.
    pub fn answer(&mut self, method: &str, params: Value) -> Value {
        let id = self.next;
        self.next += 1;
        self.notices.clear();
        let message = self.message(id, method, params);
        if matches!(self.wire, Wire::Http(_)) {
            return block_on(self.answer_over_http(id, &message));
        }
        self.send(&message);
        loop {
            let incoming = self.line();
            match self.take(id, incoming) {
                Incoming::Answer(answer) => return answer,
                Incoming::Reply(reply) => self.send(&reply),
                Incoming::Taken => {}
            }
        }
    }

    async fn answer_over_http(&mut self, id: u64, message: &Value) -> Value {
        let Wire::Http(http) = &mut self.wire else { panic!("not over HTTP") };
        let mut response = http.post(message).await;
        if let Some(session) = response.headers().get("mcp-session-id") {
            http.session = Some(session.to_str().unwrap().to_owned());
        }
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        if kind.as_deref() != Some("text/event-stream") {
            let (status, text) = (response.status(), response.text().await.unwrap());
            return serde_json::from_str(&text).unwrap_or_else(|_| panic!("{status}: {text}"));
        }
        let mut text = String::new();
        while let Some(chunk) = response.chunk().await.unwrap() {
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            while let Some((event, rest)) =
                text.split_once("\n\n").map(|(event, rest)| (event.to_owned(), rest.to_owned()))
            {
                text = rest;
                let data = event.lines().find_map(|line| line.strip_prefix("data:")).map(str::trim);
                let Some(data) = data.filter(|data| !data.is_empty()) else { continue };
                match self.take(id, serde_json::from_str(data).unwrap()) {
                    Incoming::Answer(answer) => return answer,
                    Incoming::Reply(reply) => {
                        let Wire::Http(http) = &self.wire else { panic!("not over HTTP") };
                        assert_eq!(http.post(&reply).await.status(), StatusCode::ACCEPTED);
                    }
                    Incoming::Taken => {}
                }
            }
        }
        panic!("the stream ended without an answer to {message}");
    }

    fn take(&mut self, id: u64, message: Value) -> Incoming {
        let Some(method) = message["method"].as_str() else {
            return if message["id"] == id { Incoming::Answer(message) } else { Incoming::Taken };
        };
        let Some(asked) = message.get("id") else {
            self.notices.push(message);
            return Incoming::Taken;
        };
        assert_eq!((method, self.era), ("elicitation/create", Era::Handshake), "{message}");
        match self.react(&message["params"]) {
            Reaction::Result(result) => Incoming::Reply(json!({ "jsonrpc": "2.0", "id": asked, "result": result })),
            Reaction::Error => {
                let error = json!({ "code": -32603, "message": "no" });
                Incoming::Reply(json!({ "jsonrpc": "2.0", "id": asked, "error": error }))
            }
            Reaction::Silence => Incoming::Taken,
        }
    }

    pub fn react(&mut self, params: &Value) -> Reaction {
        self.asked.push(params.clone());
        (self.react)(params)
    }

    pub fn ask(&mut self, method: &str, params: Value) -> Value {
        let answer = self.answer(method, params);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// One call of a tool, without the answers that it may want first.
    pub fn tool_once(&mut self, mut params: Value) -> Value {
        params["_meta"]["progressToken"] = json!("p");
        self.ask("tools/call", params)
    }

    /// A call of a tool, repeated with answers for as long as it wants any.
    pub fn tool(&mut self, name: &str, arguments: &Value) -> Value {
        let mut params = json!({ "name": name, "arguments": arguments });
        loop {
            let result = self.tool_once(params.clone());
            if result["resultType"] != "input_required" {
                return result;
            }
            params["requestState"] = result["requestState"].clone();
            params["inputResponses"] = self.responses(&result["inputRequests"]);
        }
    }

    /// The responses to requests in a result.
    pub fn responses(&mut self, requests: &Value) -> Value {
        let mut responses = json!({});
        for (key, request) in requests.as_object().unwrap() {
            assert_eq!(request["method"], "elicitation/create", "{request}");
            responses[key] = match self.react(&request["params"]) {
                Reaction::Result(result) => result,
                Reaction::Error | Reaction::Silence => continue,
            };
        }
        responses
    }

    /// The structured content of a call that succeeds; the text holds the same.
    pub fn call(&mut self, name: &str, arguments: &Value) -> Value {
        if self.tools.is_null() {
            self.tools = self.ask("tools/list", json!({}))["tools"].clone();
        }
        let result = self.tool(name, arguments);
        assert_ne!(result["isError"], json!(true), "{result}");
        let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(text, result["structuredContent"]);
        // Real clients check this too.
        let tool = self.tools.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        let checked = jsonschema::validate(&tool["outputSchema"], &text);
        assert!(checked.is_ok(), "{name}: {checked:?} {text}");
        text
    }

    /// The failure of a call.
    pub fn fails(&mut self, name: &str, arguments: &Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], json!(true), "{result}");
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
    }

    /// Waits for a run as a client does that can only call tools.
    pub fn wait(&mut self, run: &Value) -> Value {
        loop {
            let reply = self.call("core_task", &json!({ "action": "wait", "runId": run, "waitSeconds": 5 }));
            let reply = &reply["run"];
            if reply["isOver"] == true || !reply["waitsFor"].is_null() {
                return reply.clone();
            }
            assert!(reply["next"].as_str().unwrap().contains("wait"), "{reply}");
        }
    }

    /// Ends a client of `motor mcp`, and waits for the server's end.
    pub fn end(mut self) {
        let Wire::Stdio { child, stdin, .. } = &mut self.wire else { panic!("not on standard input") };
        drop(stdin.take());
        let mut patience = Patience::default();
        while child.try_wait().unwrap().is_none() {
            assert!(patience.lasts(), "the server outlives its client");
            std::thread::sleep(Duration::from_millis(20));
        }
        assert!(child.wait().unwrap().success());
    }
}

/// A host with a port.
pub struct Port {
    pub serving: Running,
    /// The address of the port, such as `http://127.0.0.1:7777`.
    pub address: String,
    pub url: String,
}

impl Port {
    pub fn open(motor: &Motor) -> Self {
        Self::open_at(motor, "127.0.0.1:0")
    }

    pub fn open_at(motor: &Motor, listen: &str) -> Self {
        let serving = motor.start(&["serve", "--listen", listen, "--json"]);
        let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
        let address = line["address"].as_str().unwrap().to_owned();
        Self { serving, url: format!("{address}/mcp"), address }
    }
}

/// A token that the owner makes.
pub fn token(motor: &Motor, name: &str, scope: &[&str]) -> String {
    let made = motor.run_as_owner(&[&["token", "create", "--name", name, "--scope"], scope].concat(), "");
    assert_eq!(made.code, Some(0), "{made:?}");
    made.stdout.trim().to_owned()
}
