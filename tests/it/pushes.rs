//! `git push` of a run: a write to one host, which the owner consents to and git's own server takes (SPEC LAND-7, TAINT-1).
//! Each refusal has its twin that arrives.

use serde_json::{Value, json};
use tests::network::BareRepository;

use crate::asking::{World, call};

/// The path of the repository on its site.
const PATH: &str = "/team/bare.git";

/// The call that commits, and the call that pushes: one that waits for the owner is made again.
fn commits_and_pushes(options: &str) -> impl FnOnce(&str, &str) -> Vec<Value> {
    move |_, sink| {
        let commit = "git init -q && echo one > a && git add a && git commit -qm 'from the run'";
        let push = format!("git {options} push {sink}{PATH} main");
        let bash = |script: &str| call("bash", json!({ "script": script }));
        vec![bash(commit), bash(&push), json!({ "text": "done" })]
    }
}

/// The methods of the requests that arrived.
fn arrived(world: &World) -> Vec<String> {
    world.sink.requests().into_iter().map(|request| request.method).collect()
}

fn printed(trace: &Value) -> &str {
    trace["steps"][1]["toolCalls"][0]["result"]["output"].as_str().unwrap()
}

#[test]
fn a_push_leaves_once_the_owner_consents_to_it() {
    for is_allowed in [true, false] {
        let world = World::new(commits_and_pushes(""));
        let bare = BareRepository::empty();
        bare.serve(&world.sink, PATH);
        let acting = world.start(&[]);
        let asked = acting.asked();
        let url = world.sink.url(PATH);
        assert_eq!(asked["items"].as_array().unwrap().len(), 1, "{asked}");
        assert_eq!(asked["items"][0]["summary"], format!("POST {url}/git-receive-pack"));
        assert_eq!(arrived(&world), ["GET"], "the list of references was read, and nothing written");
        acting.approve(if is_allowed { &[] } else { &["--deny"] });
        let trace = acting.ends();
        assert_eq!(trace["approvals"].as_array().unwrap().len(), 1, "the owner was asked once");
        if is_allowed {
            assert!(printed(&trace).contains(" * [new branch]      main -> main"), "{}", printed(&trace));
            assert_eq!(arrived(&world), ["GET", "GET", "POST"]);
            assert_eq!(bare.output(&["log", "--format=%an %s", "main"]), "motor run from the run");
            assert_eq!(bare.output(&["show", "main:a"]), "one");
            assert_eq!(bare.output(&["fsck", "--full", "--strict"]), "");
        } else {
            assert!(!arrived(&world).contains(&"POST".to_owned()));
            assert_eq!(bare.output(&["for-each-ref"]), "");
            assert!(printed(&trace).contains("network_blocked"), "{}", printed(&trace));
        }
    }
}

#[test]
fn a_push_to_a_domain_that_was_not_granted_sends_nothing() {
    for is_granted in [false, true] {
        let world = World::new(commits_and_pushes(""));
        let bare = BareRepository::empty();
        bare.serve(&world.sink, PATH);
        let granted = if is_granted { &world.sink } else { &world.page }.address().to_string();
        let writes = format!("POST {}{PATH}/git-receive-pack", world.sink.address());
        let act = ["act", "the task", "--tools", "bash", "--domains", &granted, "--writes", &writes, "--unattended"];
        world.motor.run(&act).succeeded();
        let trace = world.motor.json(&["task", "status", &world.motor.only_run()]);
        if is_granted {
            assert_eq!(bare.output(&["log", "--format=%s", "main"]), "from the run", "{trace}");
        } else {
            assert_eq!(world.sink.connections(), 0);
            let refusal = format!("fatal: unable to access '{}/': network_blocked: ", world.sink.url(PATH));
            assert!(printed(&trace).contains(&refusal), "{}", printed(&trace));
            assert!(printed(&trace).contains("ask the user for access to"), "{}", printed(&trace));
        }
    }
}

#[test]
fn the_host_fills_a_credential_into_a_push() {
    let header = "-c http.extraHeader='Authorization: Bearer <credential:key>'";
    let world = World::new(commits_and_pushes(header));
    let bare = BareRepository::empty();
    bare.serve(&world.sink, PATH);
    let sink = world.sink.address().to_string();
    world.motor.run_as_owner(&["credential", "set", "key", "--domain", &sink], "swordfish42\n").succeeded();
    // Made again, the read is one after reading: with a credential it needs a consent of its own.
    let acting = world.start(&["--credentials", "key", "--writes", &format!("GET {sink} with key")]);
    let asked = acting.asked();
    assert_eq!(asked["items"][0]["summary"], format!("POST {}/git-receive-pack with key", world.sink.url(PATH)));
    acting.approve(&[]);
    let trace = acting.ends();
    assert_eq!(trace["approvals"].as_array().unwrap().len(), 1, "{trace}");
    assert_eq!(bare.output(&["log", "--format=%s", "main"]), "from the run");
    for request in world.sink.requests() {
        assert_eq!(request.header("authorization").as_deref(), Some("Bearer swordfish42"));
    }
    assert!(!trace.to_string().contains("swordfish42"));
}
