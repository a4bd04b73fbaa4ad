//! The HTTP API on a TCP port with the real program (SPEC API-1): tokens, their scopes, and callers that must not get in.

use interfaces::http::{Route, RouteScope, route_table};
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;

use crate::consent::files_with;

/// A host on a port of its own, and the texts of tokens that its owner made.
pub(crate) struct World {
    pub(crate) motor: Motor,
    pub(crate) model: ModelServer,
    pub(crate) serving: Running,
    pub(crate) address: String,
    pub(crate) read: String,
    pub(crate) agent: String,
    /// For runs of the agent `other` alone.
    pub(crate) bound: String,
    pub(crate) owner: String,
}

fn serve(motor: &Motor) -> (Running, String) {
    let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
    (serving, line["address"].as_str().unwrap().to_owned())
}

impl World {
    pub(crate) fn new(script: Value) -> Self {
        let model = block_on(ModelServer::scripted(script));
        let motor = Motor::with_model(&model);
        let make = |name: &str, more: &[&str]| {
            let arguments = [&["token", "create", "--name", name, "--scope"], more].concat();
            let made = motor.run_as_owner(&arguments, "");
            assert_eq!(made.code, Some(0), "{made:?}");
            made.stdout.trim().to_owned()
        };
        let (read, agent) = (make("reader", &["read"]), make("actor", &["agent"]));
        let bound = make("bound", &["agent", "--agent", "other"]);
        let owner = motor.owner_token();
        let (serving, address) = serve(&motor);
        Self { motor, model, serving, address, read, agent, bound, owner }
    }

    pub(crate) fn request(&self, method: &str, path: &str, token: Option<&str>) -> RequestBuilder {
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let request = Client::new().request(method, format!("{}{path}", self.address));
        match token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// The status and body of an answer to a request with a JSON body.
    pub(crate) fn ask(&self, method: &str, path: &str, token: &str, body: &Value) -> (StatusCode, Value) {
        let request = self.request(method, path, Some(token)).json(body);
        block_on(async {
            let response = request.send().await.unwrap();
            (response.status(), response.json().await.unwrap())
        })
    }

    /// A finished run of an agent.
    fn finished_run(&self, agent: &str) -> String {
        let (status, reply) = self.ask("POST", "/v1/tasks", &self.agent, &json!({ "task": "say it", "agent": agent }));
        assert_eq!(status, StatusCode::OK, "{reply}");
        let run = reply["runId"].as_str().unwrap().to_owned();
        let (status, ended) = self.ask("GET", &format!("/v1/tasks/{run}/outcome"), &self.agent, &json!({}));
        assert_eq!((status, &ended["status"]), (StatusCode::OK, &json!("completed")), "{ended}");
        run
    }
}

fn answers(turns: usize) -> Value {
    json!({ "turns": vec![json!({ "text": "said" }); turns] })
}

#[test]
fn every_route_demands_its_scope_of_every_caller() {
    let world = World::new(answers(2));
    let run = world.finished_run("main");
    let unknown = format!("motor-api-{}", "0".repeat(64));
    let callers: [(&str, Option<&str>, Option<RouteScope>); 7] = [
        ("without a token", None, None),
        ("with an unknown token", Some(&unknown), None),
        ("with a wrong owner's token", Some("motor-owner-x"), None),
        ("with something else", Some("x"), None),
        ("with a token to read", Some(&world.read), Some(RouteScope::Read)),
        ("with a token to act", Some(&world.agent), Some(RouteScope::Agent)),
        ("with the owner's token", Some(&world.owner), Some(RouteScope::Owner)),
    ];
    let table = route_table();
    assert!(table.len() > 40 && table.iter().any(|route| route.scope == RouteScope::Owner));
    // The last request ends the host.
    let (last, others): (Vec<&Route>, Vec<&Route>) = table.iter().partition(|route| route.path == "/v1/host/shutdown");
    for route in others.into_iter().chain(last) {
        let path = route.path.replace("{id}", &run).replace("{name}", "key").replace("{*path}", "a.txt");
        for (caller, token, scope) in callers {
            let expected = match scope {
                _ if route.scope == RouteScope::Anyone => None,
                None => Some(StatusCode::UNAUTHORIZED),
                Some(scope) if scope < route.scope => Some(StatusCode::FORBIDDEN),
                // The memories of an agent are of its owner's conversations, and its neurons of its work: no token of a program reads it.
                Some(scope)
                    if (path.starts_with("/v1/memories") || path.starts_with("/v1/neuron"))
                        && scope < RouteScope::Owner =>
                {
                    Some(StatusCode::FORBIDDEN)
                }
                Some(_) => None,
            };
            let request = world.request(route.method, &path, token).json(&json!({}));
            // Of a stream the head is enough.
            let response = block_on(request.send()).unwrap();
            let status = response.status();
            match expected {
                Some(expected) => {
                    let problem: Value = block_on(response.json()).unwrap();
                    assert_eq!(status, expected, "{} {path} {caller}: {problem}", route.method);
                    assert_eq!(problem["status"], expected.as_u16(), "{problem}");
                    assert!(problem["code"].is_string() && problem["detail"].is_string(), "{problem}");
                }
                None => {
                    let refused = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN].contains(&status);
                    assert!(!refused && !status.is_server_error(), "{} {path} {caller}: {status}", route.method);
                }
            }
        }
    }
    let ended = world.serving.wait();
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

#[test]
fn a_bound_token_sees_and_starts_runs_of_its_agent_alone() {
    let world = World::new(answers(3));
    let (own, foreign) = (world.finished_run("other"), world.finished_run("main"));
    for (run, expected) in [(&own, StatusCode::OK), (&foreign, StatusCode::NOT_FOUND)] {
        for path in ["", "/log", "/receipt", "/outcome"] {
            let (status, body) = world.ask("GET", &format!("/v1/tasks/{run}{path}"), &world.bound, &json!({}));
            assert_eq!(status, expected, "{path}: {body}");
        }
    }
    let (_, listed) = world.ask("GET", "/v1/tasks", &world.bound, &json!({}));
    let runs: Vec<_> = listed.as_array().unwrap().iter().map(|task| task["runId"].as_str().unwrap()).collect();
    assert_eq!(runs, [own.as_str()]);
    let (_, signals) = world.ask("GET", "/v1/signals", &world.bound, &json!({}));
    assert!(!signals.as_array().unwrap().is_empty());
    assert!(signals.as_array().unwrap().iter().all(|signal| signal["agent"] == "other"), "{signals}");
    for (agent, expected) in [("main", StatusCode::FORBIDDEN), ("other", StatusCode::OK)] {
        let body = json!({ "task": "more", "agent": agent });
        assert_eq!(world.ask("POST", "/v1/tasks", &world.bound, &body).0, expected, "{agent}");
    }
    let resume = format!("/v1/tasks/{own}/events?resume=true");
    for (token, expected) in [(&world.read, StatusCode::FORBIDDEN), (&world.bound, StatusCode::OK)] {
        let response = block_on(world.request("GET", &resume, Some(token)).send()).unwrap();
        assert_eq!(response.status(), expected);
    }
    let (_, all) = world.ask("GET", "/v1/tasks", &world.read, &json!({}));
    assert_eq!(all.as_array().unwrap().len(), 3);
}

#[test]
fn a_token_names_no_files_of_the_machine() {
    let world = World::new(answers(1));
    let secret = world.motor.file("secret.txt", "for nobody");
    let replay = format!("replay/{}", secret.display());
    let fields = [
        json!({ "files": [{ "path": secret }] }),
        json!({ "record": world.motor.home().join("turns") }),
        json!({ "model": replay }),
    ];
    for field in fields {
        let mut body = json!({ "task": "read it", "tools": ["filesystem"] });
        body.as_object_mut().unwrap().extend(field.as_object().unwrap().clone());
        for path in ["/v1/tasks", "/v1/explanations"] {
            let (status, problem) = world.ask("POST", path, &world.agent, &body);
            assert_eq!((status, &problem["code"]), (StatusCode::FORBIDDEN, &json!("forbidden")), "{problem}");
        }
    }
    let body = json!({ "task": "read it", "tools": ["filesystem"], "files": [{ "path": secret }] });
    let (status, reply) = world.ask("POST", "/v1/tasks", &world.owner, &body);
    assert_eq!(status, StatusCode::OK, "{reply}");
}

#[test]
fn pages_of_other_origins_are_refused_before_their_token() {
    let world = World::new(answers(0));
    let status = |name: &str, value: &str| {
        let request = world.request("GET", "/v1/tasks", Some(&world.read)).header(name, value);
        block_on(request.send()).unwrap().status()
    };
    assert_eq!(status("origin", "https://evil.example"), StatusCode::FORBIDDEN);
    assert_eq!(status("host", "evil.example"), StatusCode::FORBIDDEN);
    assert_eq!(status("origin", &world.address), StatusCode::OK);
    assert_eq!(status("accept", "application/json"), StatusCode::OK);
}

#[test]
fn a_refusal_reaches_a_client_that_still_sends() {
    let world = World::new(answers(0));
    // Larger than the buffers of a connection; the last is larger than any body that a handler reads.
    for bytes in [1 << 20, 3 << 20, 16 << 20] {
        for (token, expected) in [("x", StatusCode::UNAUTHORIZED), (&world.read, StatusCode::FORBIDDEN)] {
            let body = json!({ "task": "a".repeat(bytes) });
            assert_eq!(world.ask("POST", "/v1/tasks", token, &body).0, expected, "{bytes}");
        }
    }
    let (status, problem) = world.ask("POST", "/v1/tasks", &world.agent, &json!({ "task": "a".repeat(16 << 20) }));
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE, "{problem}");
}

#[test]
fn tokens_outlive_a_killed_host_until_they_are_revoked_and_are_stored_as_hashes() {
    let World { motor, serving, address, read, agent, model: _model, .. } = World::new(answers(0));
    serving.kill();
    let (serving, moved) = serve(&motor);
    let status = |token: &str| {
        let request = Client::new().get(format!("{moved}/v1/tasks")).bearer_auth(token);
        block_on(request.send()).unwrap().status()
    };
    assert_eq!([status(&read), status(&agent)], [StatusCode::OK; 2], "{address}");
    let revoked = motor.run_as_owner(&["token", "revoke", "reader"], "");
    assert_eq!(revoked.code, Some(0), "{revoked:?}");
    assert_eq!([status(&read), status(&agent)], [StatusCode::UNAUTHORIZED, StatusCode::OK]);
    let listed = motor.stdout(&["token", "list", "--json"]);
    assert!(listed.contains("actor") && !listed.contains("reader") && !listed.contains("motor-api-"), "{listed}");
    drop(serving);
    for token in [&read, &agent] {
        let digits = token.strip_prefix("motor-api-").unwrap();
        assert!(files_with(motor.home(), digits).is_empty(), "the home holds a token's text");
    }
}

#[test]
fn a_port_for_other_machines_takes_the_owners_word_for_it() {
    let motor = Motor::new();
    let refused = motor.run(&["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!(refused.code, Some(2), "{refused:?}");
    assert!(refused.stderr.contains("--allow-remote"), "{refused:?}");
    let serving = motor.start(&["serve", "--listen", "0.0.0.0:0", "--allow-remote"]);
    serving.wait_for_words("listening");
}

#[test]
fn artifacts_are_read_as_they_were_produced_and_nothing_else_is() {
    let page = "<script>alert(1)</script>";
    let write = json!({ "name": "write", "arguments": { "path": "out/\u{e9} 1.html", "content": page } });
    let world = World::new(json!({ "turns": [{ "tool_calls": [write] }, { "text": "written" }] }));
    let (_, reply) = world.ask("POST", "/v1/tasks", &world.agent, &json!({ "task": "write it", "tools": ["write"] }));
    let run = reply["runId"].as_str().unwrap();
    world.ask("GET", &format!("/v1/tasks/{run}/outcome"), &world.agent, &json!({}));
    let base = format!("/v1/tasks/{run}/artifacts");
    let (status, listed) = world.ask("GET", &base, &world.read, &json!({}));
    assert_eq!((status, &listed[0]["path"]), (StatusCode::OK, &json!("out/\u{e9} 1.html")), "{listed}");
    let get = |path: &str, token: &str| block_on(world.request("GET", path, Some(token)).send()).unwrap();
    let file = format!("{base}/out/%C3%A9%201.html");
    let response = get(&file, &world.read);
    assert_eq!(response.status(), StatusCode::OK);
    for (name, value) in [
        ("content-type", "application/octet-stream"),
        ("content-disposition", "attachment"),
        ("x-content-type-options", "nosniff"),
        ("content-security-policy", "sandbox; default-src 'none'"),
    ] {
        assert_eq!(response.headers()[name], value);
    }
    assert_eq!(block_on(response.text()).unwrap(), page);
    assert_eq!(get(&file, &world.bound).status(), StatusCode::NOT_FOUND);
    for path in
        ["%2e%2e%2f%2e%2e%2fconfig%2fowner.token", "out/..%2fout/%C3%A9%201.html", "out", "out%00", "%2Fetc%2Fpasswd"]
    {
        let refused = get(&format!("{base}/{path}"), &world.read);
        assert_eq!(refused.status(), StatusCode::NOT_FOUND, "{path}");
    }
    let unreadable = get(&format!("{base}/%ff"), &world.read);
    assert_eq!(unreadable.status(), StatusCode::BAD_REQUEST);
    assert_eq!(unreadable.headers()["content-type"], "application/problem+json");
    // Another file in its place, or a link to a secret, is not the run's.
    let kept = world.motor.home().join("runs").join(run).join("artifacts/out/\u{e9} 1.html");
    let before = std::fs::read(&kept).unwrap();
    std::fs::write(&kept, "other").unwrap();
    assert_eq!(get(&file, &world.read).status(), StatusCode::NOT_FOUND);
    std::fs::write(&kept, before).unwrap();
    assert_eq!(get(&file, &world.read).status(), StatusCode::OK);
    std::fs::remove_file(&kept).unwrap();
    std::os::unix::fs::symlink(world.motor.home().join("config/owner.token"), &kept).unwrap();
    assert_eq!(get(&file, &world.read).status(), StatusCode::NOT_FOUND);
}
