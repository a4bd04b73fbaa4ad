//! The owner's page with the real program (SPEC WEB-1): signing in, forms of other pages, and a whole story in a browser.

use std::fs;
use std::process::Command;

use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::model_server::ModelServer;
use tests::network::Reply;
use tests::{block_on, target_directory};

use crate::asking;

/// A host with a page, and a browser without scripts.
struct World {
    motor: Motor,
    _model: ModelServer,
    _serving: Running,
    address: String,
    client: Client,
}

/// An answer without its body, and the body.
struct Answer {
    status: StatusCode,
    location: String,
    cookie: String,
    policy: String,
    body: String,
}

impl World {
    fn new(script: Value) -> Self {
        let model = block_on(ModelServer::scripted(script));
        let motor = Motor::with_model(&model);
        Self::on(motor, model)
    }

    /// The page of this home.
    fn on(motor: Motor, model: ModelServer) -> Self {
        let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--json"]);
        let line: Value = serde_json::from_str(&serving.wait_for_output("listening")).unwrap();
        let address = line["address"].as_str().unwrap().to_owned();
        let client = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { motor, _model: model, _serving: serving, address, client }
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}{path}", self.address)).header("accept", "text/html")
    }

    fn get(&self, path: &str, session: &str) -> Answer {
        answer(self.request(Method::GET, path).header("cookie", session))
    }

    /// Submits a form, as a page at `origin` would.
    fn post(&self, path: &str, session: &str, origin: Option<&str>, fields: &[(&str, &str)]) -> Answer {
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let mut request = self.request(Method::POST, path).header("cookie", session);
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        answer(request.header("content-type", "application/x-www-form-urlencoded").body(body))
    }

    /// The cookie of a browser in which the owner signed in.
    fn session(&self) -> String {
        let token = self.motor.owner_token();
        let fields = [("token", token.as_str()), ("next", "/skills")];
        let entered = self.post("/sign-in", "", Some(&self.address), &fields);
        assert_eq!((entered.status, entered.location.as_str()), (StatusCode::SEE_OTHER, "/skills"), "{}", entered.body);
        for attribute in ["HttpOnly", "SameSite=Strict", "Path=/"] {
            assert!(entered.cookie.contains(attribute), "{}", entered.cookie);
        }
        entered.cookie.split(';').next().unwrap().to_owned()
    }
}

fn answer(request: RequestBuilder) -> Answer {
    block_on(async {
        let response = request.send().await.unwrap();
        let header = |name: &str| {
            response.headers().get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default()
        };
        let (location, cookie, policy) = (header("location"), header("set-cookie"), header("content-security-policy"));
        Answer { status: response.status(), location, cookie, policy, body: response.text().await.unwrap() }
    })
}

#[test]
fn the_owner_signs_in_and_nobody_else() {
    let world = World::new(json!({ "turns": [] }));
    let sent = world.get("/runs/run_1?x=1", "");
    assert_eq!((sent.status, sent.location.as_str()), (StatusCode::SEE_OTHER, "/sign-in?next=%2Fruns%2Frun_1%3Fx%3D1"));
    let made = world.motor.run_as_owner(&["token", "create", "--name", "agent", "--scope", "agent"], "");
    let (agent, wrong) = (made.stdout.trim(), format!("motor-owner-{}", "0".repeat(64)));
    for token in [agent, &wrong, "", "x"] {
        let refused = world.post("/sign-in", "", Some(&world.address), &[("token", token)]);
        assert!(refused.status.is_client_error() && refused.cookie.is_empty(), "{token}: {}", refused.status);
        assert!(token.len() < 8 || !refused.body.contains(token), "a refused token is not quoted");
    }
    let session = world.session();
    let shown = world.get("/", &session);
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.body);
    for rule in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "form-action 'self'"] {
        assert!(shown.policy.contains(rule), "{}", shown.policy);
    }
    assert!(!shown.policy.contains("unsafe"), "{}", shown.policy);
    // The cookie means nothing to the API.
    let api = answer(world.request(Method::GET, "/v1/tasks").header("cookie", &session));
    assert_eq!(api.status, StatusCode::UNAUTHORIZED);
    let out = world.post("/sign-out", &session, Some(&world.address), &[]);
    assert_eq!((out.status, out.location.as_str()), (StatusCode::SEE_OTHER, "/sign-in"));
    assert_eq!(world.get("/", &session).location, "/sign-in?next=%2F");
    let elsewhere = [("token", world.motor.owner_token()), ("next", "//evil.example".to_owned())];
    let elsewhere = elsewhere.each_ref().map(|(name, value)| (*name, value.as_str()));
    assert_eq!(world.post("/sign-in", "", Some(&world.address), &elsewhere).location, "/");
}

#[test]
fn a_link_signs_one_browser_in() {
    let motor = Motor::new();
    let serving = motor.start(&["serve", "--listen", "127.0.0.1:0", "--open"]);
    let said = serving.wait_for_words("/sign-in?code=");
    let link = said.split_whitespace().find(|word| word.contains("/sign-in?code=")).unwrap();
    let client = Client::builder().redirect(Policy::none()).build().unwrap();
    let entered = answer(client.get(link));
    assert_eq!((entered.status, entered.location.as_str()), (StatusCode::SEE_OTHER, "/"), "{}", entered.body);
    let again = answer(client.get(link));
    assert!(again.status.is_client_error() && again.cookie.is_empty(), "{}", again.status);
    assert!(again.body.contains("the link was used before"), "{}", again.body);
    let (address, _) = link.split_once("/sign-in").unwrap();
    let shown = answer(client.get(address).header("cookie", entered.cookie.split(';').next().unwrap()));
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.body);
}

#[test]
fn forms_of_other_pages_change_nothing() {
    let world = World::new(json!({ "turns": [{ "text": "done" }] }));
    let session = world.session();
    let port = world.address.rsplit(':').next().unwrap();
    let decision = [("pattern", "evil.example"), ("verdict", "allow"), ("level", "always")];
    let foreign = ["https://evil.example", "null", "http://127.0.0.1:1", &format!("http://localhost:{port}")];
    for origin in foreign.into_iter().map(Some).chain([None]) {
        let refused = world.post("/network", &session, origin, &decision);
        assert_eq!(refused.status, StatusCode::FORBIDDEN, "{origin:?}: {}", refused.body);
    }
    assert_eq!(world.motor.json(&["network", "list"]), json!([]));
    let own = world.post("/network", &session, Some(&world.address), &decision);
    assert_eq!((own.status, own.location.as_str()), (StatusCode::SEE_OTHER, "/network"), "{}", own.body);
    let decisions = world.motor.json(&["network", "list"]);
    assert_eq!((&decisions[0]["pattern"], &decisions[0]["consent"]["door"]), (&json!("evil.example"), &json!("web")));
}

#[test]
fn credentials_are_set_by_form_and_their_values_are_shown_nowhere() {
    let world = World::new(json!({ "turns": [] }));
    let session = world.session();
    let secret = "hunter2-and-more";
    let fields = [("name", "api-key"), ("value", secret), ("domains", "api.example.com, b.example.com")];
    let set = world.post("/credentials", &session, Some(&world.address), &fields);
    assert_eq!((set.status, set.location.as_str()), (StatusCode::SEE_OTHER, "/credentials"), "{}", set.body);
    let shown = world.get("/credentials", &session).body;
    assert!(shown.contains("api-key") && shown.contains("b.example.com") && !shown.contains(secret), "{shown}");
    // Neither is a value that was refused.
    let refused = world.post("/credentials", &session, Some(&world.address), &[("name", "no name"), ("value", secret)]);
    assert_eq!(refused.status, StatusCode::BAD_REQUEST);
    assert!(!refused.body.contains(secret), "{}", refused.body);
    let deleted = world.post("/credentials/deletion", &session, Some(&world.address), &[("name", "api-key")]);
    assert_eq!(deleted.status, StatusCode::SEE_OTHER, "{}", deleted.body);
    assert_eq!(world.motor.json(&["credential", "list"]), json!([]));
}

#[test]
fn bad_forms_are_refused_with_a_page() {
    let world = World::new(json!({ "turns": [] }));
    let session = world.session();
    type Fields<'a> = &'a [(&'a str, &'a str)];
    let cases: [(&str, Fields<'_>, u16); 9] = [
        ("/runs/..%2Fx/answer", &[("answer", "x")], 400),
        ("/runs/run_0123/answer", &[("answer", "x")], 404),
        ("/runs/run_0123/approval", &[], 400),
        ("/runs/run_0123/approval", &[("grant", "yes"), ("approval", "apr_1"), ("action", "x")], 400),
        ("/runs/run_0123/approval", &[("grant", "yes"), ("approval", "apr_1")], 400),
        ("/network", &[("pattern", "a b"), ("verdict", "allow"), ("level", "always")], 400),
        ("/skills/approval", &[("skill", "none"), ("hash", "x")], 400),
        ("/skills/rejection", &[("skill", "none")], 404),
        ("/start", &[("do", "start"), ("task", "x"), ("tool", "<script>")], 200),
    ];
    for (path, fields, status) in cases {
        let refused = world.post(path, &session, Some(&world.address), fields);
        assert_eq!(refused.status.as_u16(), status, "{path}: {}", refused.body);
        assert!(refused.body.contains("role=\"alert\""), "{path}: {}", refused.body);
        assert!(!refused.body.contains("<script>"), "{path}: {}", refused.body);
    }
    for path in ["/runs/run_0123", "/runs/x/preview/y", "/skills/review?skill=none", "/live?run=x"] {
        let refused = world.get(path, &session);
        assert!(
            refused.status.is_client_error() && refused.body.contains("role=\"alert\""),
            "{path}: {}",
            refused.status
        );
    }
}

#[test]
fn of_several_requests_those_that_are_selected_are_sent() {
    for (selected, expected) in [(&[0][..], &["to=alice"][..]), (&[0, 1], &["to=alice", "to=mallory"])] {
        let asking::World { page, sink, model, motor } = asking::World::new(|page, sink| {
            let script = format!("curl -s -d to=alice {sink}/mine; curl -s -d to=mallory {sink}/theirs");
            let bash = asking::call("bash", json!({ "script": script }));
            vec![asking::get(format!("{page}/")), bash, json!({ "text": "done" })]
        });
        sink.route("/mine", Reply::text("ok"));
        sink.route("/theirs", Reply::text("ok"));
        let domains = format!("{},{}", page.address(), sink.address());
        let world = World::on(motor, model);
        let session = world.session();
        let act = ["act", "the task", "--detach", "--tools", "fetch,bash", "--domains", &domains];
        let run = world.motor.stdout(&act).trim().to_owned();
        world.motor.wait_for_status(&run, "awaiting_approval");
        let waiting = world.motor.json(&["task", "status", &run])["waiting"].clone();
        let actions = [0, 1].map(|index| waiting["items"][index]["actionHash"].as_str().unwrap());
        let shown = world.get(&format!("/runs/{run}"), &session).body;
        for action in actions {
            assert!(shown.contains(&format!("type=\"checkbox\" name=\"only\" value=\"{action}\" checked")), "{shown}");
        }
        let post = |only: &[&str], grant: &str| {
            let mut fields = vec![("approval", waiting["id"].as_str().unwrap()), ("scope", "once"), ("grant", grant)];
            fields.extend(actions.iter().map(|action| ("action", *action)));
            fields.extend(only.iter().map(|action| ("only", *action)));
            world.post(&format!("/runs/{run}/approval"), &session, Some(&world.address), &fields)
        };
        let none = post(&[], "yes");
        assert_eq!(none.status, StatusCode::BAD_REQUEST, "{}", none.body);
        assert!(none.body.contains("none of the actions is selected"), "{}", none.body);
        // One that was not shown.
        let foreign = post(&[actions[0], &"0".repeat(actions[0].len())], "yes");
        assert!(foreign.status.is_client_error(), "{}", foreign.body);
        assert!(sink.requests().is_empty());
        let only: Vec<_> = selected.iter().map(|index: &usize| actions[*index]).collect();
        let allowed = post(&only, "yes");
        assert_eq!(allowed.status, StatusCode::SEE_OTHER, "{}", allowed.body);
        world.motor.wait_for_status(&run, "completed");
        let arrived: Vec<_> = sink.requests().iter().map(tests::network::Received::text).collect();
        assert_eq!(arrived, expected);
    }
}

/// Asks a question, asks for approval, and answers; all of its texts are markup.
fn story() -> Value {
    let markup = "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">";
    let write = json!({ "path": "plan.html", "content": markup });
    let code = json!({ "code": format!("return {}", Value::from(markup)) });
    let question = json!({ "question": "Which colour?", "choices": ["red", "blue"] });
    let wanted = json!({ "action": "book the room", "reason": markup, "domains": ["rooms.example.com"] });
    let turns = [
        json!({ "tool_calls": [{ "name": "write", "arguments": write }, { "name": "code", "arguments": code }] }),
        json!({ "tool_calls": [{ "name": "ask_user", "arguments": question }] }),
        json!({ "tool_calls": [{ "name": "request_approval", "arguments": wanted }] }),
        json!({ "text": format!("It is painted. {markup}") }),
    ];
    json!({ "turns": turns.iter().chain(&turns).collect::<Vec<_>>() })
}

#[test]
fn a_story_in_a_browser_by_mouse_and_by_keyboard() {
    let directory = target_directory().join("toolchains/browser");
    let (python, axe) = (directory.join("venv/bin/python"), directory.join("axe.min.js"));
    if !axe.exists() || !python.exists() || !std::path::Path::new("/usr/bin/chromium").exists() {
        println!("the browser's story: 3 skipped: run `cargo xtask toolchains`, and install chromium");
        return;
    }
    let world = World::new(story());
    let shots = directory.join("screenshots");
    fs::create_dir_all(&shots).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/browser/story.py");
    let told = Command::new(python)
        .arg(script)
        .args([&world.address, &world.motor.owner_token()])
        .args([axe, shots.clone()])
        .output()
        .unwrap();
    let (said, failed) = (String::from_utf8_lossy(&told.stdout), String::from_utf8_lossy(&told.stderr));
    assert!(told.status.success(), "{said}{failed}; screenshots are in {}", shots.display());
    println!("{said}screenshots are in {}", shots.display());
}
