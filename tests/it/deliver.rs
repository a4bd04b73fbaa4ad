//! Signals on their way out of the real program (SPEC SIG-2, DUR-3): to a webhook that fails, redirects, or is there
//! when the host is killed; to a program; to a client that follows.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use tests::binary::{Motor, Running};
use tests::block_on;
use tests::model_server::ModelServer;
use tests::network::{Received, Reply, Site};

const SECRET: &str = "a secret of the hook";

fn answering() -> ModelServer {
    block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done" }] })))
}

fn motor(server: &ModelServer, settings: &str) -> Motor {
    let motor = Motor::with_model(server).env("VAULT_HOOK_SECRET", SECRET);
    motor.configure(settings);
    motor
}

fn webhook(site: &Site) -> String {
    format!(
        "[signals.webhook]\nurl = \"{}\"\nsecret = \"hook_secret\"\nmax_backoff_seconds = 1\n",
        site.url("/signals?token=t")
    )
}

fn status(status: u16) -> Reply {
    Reply::Whole { status, headers: Vec::new(), body: b"noted".to_vec() }
}

fn serve(motor: &Motor) -> Running {
    let serving = motor.start(&["serve"]);
    serving.wait_for_words("listening");
    serving
}

/// Acts, and gives the run.
fn act(motor: &Motor) -> String {
    let acted = motor.json(&["act", "x"]);
    acted["runId"].as_str().unwrap().to_owned()
}

fn run_of(post: &Received) -> String {
    serde_json::from_slice::<Value>(&post.body).unwrap()["runId"].as_str().unwrap().to_owned()
}

/// The runs that posts report, in order, each once. Every attempt has to report the same under the same key, and none
/// may come after one of a later signal.
fn told(posts: &[Received]) -> Vec<String> {
    let mut runs = Vec::new();
    let mut known = BTreeMap::<u64, (String, Vec<u8>)>::new();
    for post in posts {
        assert_eq!((post.method.as_str(), post.target.as_str()), ("POST", "/signals?token=t"));
        let id: u64 = post.header("motor-signal-id").unwrap().parse().unwrap();
        let key = post.header("idempotency-key").unwrap();
        assert!(known.last_key_value().is_none_or(|(last, _)| *last <= id), "{id} came late");
        match known.get(&id) {
            Some((first, body)) => assert_eq!((first, body), (&key, &post.body)),
            None => {
                assert!(known.values().all(|(other, _)| *other != key), "{key} is not one signal's alone");
                known.insert(id, (key, post.body.clone()));
                runs.push(run_of(post));
            }
        }
    }
    runs
}

/// Waits until so many runs were told of.
fn wait_until_told(site: &Site, count: usize) -> Vec<String> {
    loop {
        let posts = site.requests();
        let runs = told(&posts);
        if runs.len() >= count {
            return runs;
        }
        block_on(site.wait_for_requests(posts.len() + 1));
    }
}

/// The output of the documentation's example for a post.
fn verified(headers: &Value, body: &[u8], now: f64) -> String {
    let documentation = include_str!("../../docs/signals.md");
    let (_, example) = documentation.split_once("```python\n").unwrap();
    let (example, _) = example.split_once("```").unwrap();
    let program = format!(
        "{example}\nimport json, sys\ncall = json.load(sys.stdin)\n\
         print(verify(call['secret'], call['headers'], bytes(call['body']), call['now']))"
    );
    let call = json!({ "secret": SECRET, "headers": headers, "body": body, "now": now });
    let mut python = Command::new("python3");
    let mut python =
        python.args(["-c", &program]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("python3");
    python.stdin.take().unwrap().write_all(call.to_string().as_bytes()).unwrap();
    let output = python.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

#[test]
fn posts_come_in_order_until_they_are_acknowledged() {
    let server = answering();
    let elsewhere = block_on(Site::start());
    let site = block_on(Site::start()).with("/signals", status(500));
    let motor = motor(&server, &webhook(&site));
    let _serving = serve(&motor);
    let mut runs = vec![act(&motor)];
    block_on(site.wait_for_requests(1));
    // Two more, behind the one that is not taken. They end all the same.
    runs.push(act(&motor));
    site.route("/signals", Reply::redirect_as(307, &elsewhere.url("/")));
    let came = site.requests().len();
    block_on(site.wait_for_requests(came + 2));
    site.route("/signals", status(410));
    runs.push(act(&motor));
    let came = site.requests().len();
    block_on(site.wait_for_requests(came + 2));
    assert_eq!(told(&site.requests()), runs[..1], "a failure let the next one pass");
    site.route("/signals", status(204));
    assert_eq!(wait_until_told(&site, 3), runs);
    assert_eq!(elsewhere.connections(), 0, "a redirect was followed");
    let ids: Vec<Value> = motor.json_lines(&["signals"]).iter().map(|signal| signal["id"].clone()).collect();
    assert_eq!(ids.len(), 3, "{ids:?}");
}

#[test]
fn a_post_is_signed_as_the_documentation_says() {
    let server = answering();
    let site = block_on(Site::start()).with("/signals", status(200));
    let motor = motor(&server, &webhook(&site));
    // Without a daemon: the command waits for the posts it has caused.
    act(&motor);
    let [post] = site.requests().try_into().unwrap();
    let stored = motor.json_lines(&["signals"]);
    assert_eq!(serde_json::from_slice::<Value>(&post.body).unwrap(), stored[0]);
    assert_eq!(post.header("content-type").as_deref(), Some("application/json"));
    let timestamp = post.header("motor-timestamp").unwrap();
    let now: f64 = timestamp.parse().unwrap();
    let headers =
        |timestamp: &str| json!({ "Motor-Timestamp": timestamp, "Motor-Signature": post.header("motor-signature") });
    assert_eq!(verified(&headers(&timestamp), &post.body, now + 10.0), "True");
    // Late, changed, or signed for another time.
    assert_eq!(verified(&headers(&timestamp), &post.body, now + 301.0), "False");
    let changed = String::from_utf8(post.body.clone()).unwrap().replace("completed", "cancelled");
    assert_eq!(verified(&headers(&timestamp), changed.as_bytes(), now), "False");
    assert_eq!(verified(&headers(&format!("{}", now + 1.0)), &post.body, now), "False");
    // A command of a moment tells nothing again.
    motor.stdout(&["task", "list"]);
    assert_eq!(site.requests().len(), 1);
}

#[test]
fn a_host_that_is_killed_before_the_acknowledgement_posts_again_and_loses_nothing() {
    let server = answering();
    let site = block_on(Site::start()).with("/signals", Reply::Silence);
    let motor = motor(&server, &webhook(&site));
    let serving = serve(&motor);
    let mut runs = vec![act(&motor)];
    block_on(site.wait_for_requests(1));
    runs.push(act(&motor));
    assert_eq!(serving.kill().code, None);
    site.route("/signals", status(503));
    let serving = serve(&motor);
    block_on(site.wait_for_requests(2));
    runs.push(act(&motor));
    assert_eq!(serving.kill().code, None);
    // A command that does not wait for the endpoint: it ends though that fails, and leaves the rest to the next host.
    runs.push(act(&motor));
    assert_eq!(told(&site.requests()), runs[..1]);
    let came = site.requests().len();
    site.route("/signals", status(200));
    let serving = serve(&motor);
    block_on(site.wait_for_requests(came + 4));
    runs.push(act(&motor));
    block_on(site.wait_for_requests(came + 5));
    serving.kill();
    let posts = site.requests();
    assert_eq!(told(&posts), runs);
    // The acknowledged signal was posted once.
    let last = posts.iter().filter(|post| run_of(post) == runs[1]).count();
    assert_eq!(last, 1);
}

#[test]
fn a_webhook_that_cannot_be_signed_posts_nothing_until_the_secret_is_set() {
    let server = answering();
    let site = block_on(Site::start()).with("/signals", status(200));
    let motor = motor(&server, &webhook(&site)).env("VAULT_HOOK_SECRET", "");
    let run = act(&motor);
    assert_eq!(site.connections(), 0);
    motor.run_as_owner(&["credential", "set", "hook_secret", "--no-domain"], SECRET).succeeded();
    let _serving = serve(&motor);
    assert_eq!(told(&block_on(site.wait_for_requests(1))), [run]);
}

#[test]
fn a_program_is_run_for_what_a_run_reports() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [{ "text": "done; $(touch trap)\u{1b}[31m" }] })));
    let motor = Motor::with_model(&server);
    let heard = motor.directory().join("heard");
    let script = format!(
        "cat >> {0}; echo \"|$MOTOR_STATUS|$MOTOR_RUN_ID|$MOTOR_TITLE|$OPENAI_API_KEY|\" >> {0}",
        heard.display()
    );
    motor.configure(&format!("[signals.hook]\ncommand = [\"/bin/sh\", \"-c\", '{script}']\n"));
    let run = act(&motor);
    let heard = std::fs::read_to_string(heard).unwrap();
    let (signal, variables) = heard.split_once('|').unwrap();
    assert_eq!(serde_json::from_str::<Value>(signal).unwrap(), motor.json_lines(&["signals"])[0]);
    assert_eq!(variables, format!("completed|{run}|done; $(touch trap) [31m||\n"));
}

#[test]
fn settings_that_cannot_be_are_refused_by_name() {
    let server = answering();
    for (settings, says) in [
        ("[signals.webhook]\nurl = \"ftp://example.com\"\nsecret = \"s\"", "signals.webhook.url"),
        ("[signals.webhook]\nurl = \"https://example.com\"", "secret"),
        ("[signals.hook]\ncommand = []", "signals.hook.command"),
    ] {
        let ended = motor(&server, settings).run(&["act", "x"]);
        ended.refused(2, &[says]);
    }
}

fn ids(lines: &str) -> Vec<u64> {
    lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].as_u64().unwrap()).collect()
}

#[test]
fn who_follows_goes_on_after_a_restart_without_a_gap_or_a_double() {
    let server = answering();
    let motor = Motor::with_model(&server);
    act(&motor);
    let serving = serve(&motor);
    let following = motor.start(&["signals", "--follow", "--since", "0", "--json"]);
    following.wait_for_output("\"id\":1");
    let run = act(&motor);
    following.wait_for_output(&run);
    serving.kill();
    let first = ids(&following.wait().stdout);
    // While no client follows.
    act(&motor);
    let serving = serve(&motor);
    act(&motor);
    let since = first.last().unwrap().to_string();
    let following = motor.start(&["signals", "--follow", "--since", &since, "--json"]);
    let run = act(&motor);
    following.wait_for_output(&run);
    serving.kill();
    let second = ids(&following.wait().stdout);
    assert_eq!([first, second].concat(), [1, 2, 3, 4, 5]);
}

#[test]
fn a_run_that_waits_is_told_of_first_under_its_own_id_until_it_is_over() {
    let server = block_on(ModelServer::scripted(json!({ "turns": [
        { "tool_calls": [{ "name": "ask_user", "arguments": { "question": "which one?", "choices": ["a", "b"] } }] },
        { "text": "done" },
    ]})));
    let site = block_on(Site::start()).with("/signals", status(200));
    let motor = Motor::with_model(&server).env("VAULT_HOOK_SECRET", SECRET);
    let serving = serve(&motor);
    let run = motor.stdout(&["act", "ask", "--detach"]).trim().to_owned();
    motor.wait_for_status(&run, "awaiting_input");
    let [asked] = motor.json_lines(&["signals", "--waiting"]).try_into().unwrap();
    assert_eq!((&asked["status"], &asked["question"]), (&json!("awaiting_input"), &json!("which one?")));
    assert_eq!((&asked["choices"], &asked["runId"]), (&json!(["a", "b"]), &json!(run)));
    serving.kill();

    // The same signal after a restart, for a reader without a place; and no second one.
    motor.configure(&webhook(&site));
    let serving = serve(&motor);
    assert_eq!(motor.json_lines(&["signals", "--waiting"]), std::slice::from_ref(&asked));
    assert_eq!(motor.json_lines(&["signals"]), std::slice::from_ref(&asked));
    let posts = block_on(site.wait_for_requests(1));
    assert_eq!(serde_json::from_slice::<Value>(&posts[0].body).unwrap(), asked);
    let following = motor.start(&["signals", "--follow", "--json"]);
    following.wait_for_output("which one?");
    motor.run(&["task", "cancel", &run]).succeeded();
    following.wait_for_output("cancelled");
    assert_eq!(motor.stdout(&["signals", "--waiting"]), "");
    assert_eq!(told(&block_on(site.wait_for_requests(2))), [run.clone(), run]);
    serving.kill();
    let [first, second] = ids(&following.wait().stdout).try_into().unwrap();
    assert_eq!(Some(first), asked["id"].as_u64());
    assert!(second > first);
}
