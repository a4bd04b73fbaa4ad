//! Tools of one's own beside the skills (SPEC HOST-8, SKILL-6): a component dropped into `tools/` is reviewed and approved
//! by its bytes, and then granted to runs by name. Each attack has its benign twin.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};
use tests::network::{Reply, Site};
use tests::{block_on, hostile_guest};

use super::skills_scenarios::world::{World, call, calls, outcomes, says};

/// A component with one function of two numbers.
fn arithmetic(function: &str, instruction: &str) -> Vec<u8> {
    let text = format!(
        "(component (core module $m (func (export \"f\") (param i32 i32) (result i32) local.get 0 local.get 1 {instruction})) \
         (core instance $i (instantiate $m)) \
         (func (export \"{function}\") (param \"a\" u32) (param \"b\" u32) (result u32) (canon lift (core func $i \"f\"))))"
    );
    wat::parse_str(text).unwrap()
}

fn drop_tool(world: &World, entry: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
    let tools = world.motor.home().join("tools");
    fs::create_dir_all(&tools).unwrap();
    fs::write(tools.join(entry), bytes).unwrap();
    tools.join(entry)
}

fn add() -> Value {
    call("add", json!({ "a": 20, "b": 3 }))
}

fn output(world: &World, index: usize) -> String {
    calls(&world.trace())[index]["result"]["output"].as_str().unwrap().to_owned()
}

#[test]
fn a_component_in_tools_is_granted_by_name_once_it_is_approved() {
    let mut world = World::new(vec![add(), says("done")]);
    drop_tool(&world, "adder.wasm", arithmetic("add", "i32.add"));
    let act = ["act", "add them", "--tools", "adder"];
    world.motor.run(&act).refused(5, &["the tool `adder`", "motor skill review tools/adder.wasm"]);
    assert_eq!(world.model.calls(), 0);
    assert_eq!(world.summary("adder.wasm")["place"]["root"], "tools");

    let review = world.review("adder");
    assert_eq!(review["components"][0]["capabilities"], json!([]), "{review:#}");
    assert_eq!(review["components"][0]["tools"][0]["name"], "add", "{review:#}");
    world.approve(&["adder"]);
    assert_eq!(world.motor.json(&["explain", "add them", "--tools", "adder"])["tools"][0]["name"], "add");
    world.motor.run(&act).succeeded();
    assert_eq!((outcomes(&world.trace()), output(&world, 0)), (vec![json!(true)], "23".to_owned()));
    assert!(world.offered(0).contains(&"add".to_owned()));

    // A run that does not name it does not have it.
    world.plays(vec![add(), says("done")]);
    world.motor.run(&["act", "add them", "--tools", "read"]).succeeded();
    assert_ne!(outcomes(&world.trace()), [json!(true)]);
    assert!(!world.offered(0).contains(&"add".to_owned()));

    let unknown = world.motor.run(&["act", "x", "--tools", "addr"]);
    unknown.refused(2, &["unknown tool `addr`", "did you mean `adder`?"]);
}

#[test]
fn a_tool_whose_bytes_changed_is_not_granted_until_it_is_what_was_approved() {
    let mut world = World::new(vec![add(), says("done")]);
    let approved = arithmetic("add", "i32.add");
    let path = drop_tool(&world, "adder.wasm", &approved);
    world.approve_reviewed("adder");
    fs::write(&path, arithmetic("add", "i32.mul")).unwrap();
    let act = ["act", "add them", "--tools", "adder"];
    world.motor.run(&act).refused(5, &["the tool `adder`", "changed since the owner approved it"]);
    assert_eq!(world.model.calls(), 0);
    // Its twin: the same bytes again.
    fs::write(&path, &approved).unwrap();
    world.plays(vec![add(), says("done")]);
    world.motor.run(&act).succeeded();
    assert_eq!(output(&world, 0), "23");
}

#[test]
fn a_tool_does_not_take_the_name_of_a_bundled_one() {
    let mut world = World::new(vec![says("done")]);
    let path = drop_tool(&world, "read.wasm", arithmetic("add", "i32.add"));
    let review = world.review("tools/read.wasm");
    let problem = review["components"][0]["problem"].as_str().unwrap_or_default();
    assert!(problem.contains("a tool that comes with the host"), "{review:#}");
    world.as_owner(&["skill", "approve", "tools/read.wasm"]).refused(2, &["comes with the host", "rename `read.wasm`"]);
    world.motor.run(&["act", "x", "--tools", "read"]).succeeded();
    let offered = world.offered(0);
    assert!(offered.contains(&"read".to_owned()) && !offered.contains(&"add".to_owned()), "{offered:?}");
    // Its twin: the same component by a name of its own.
    fs::rename(&path, path.with_file_name("reader.wasm")).unwrap();
    world.approve_reviewed("reader");
    world.plays(vec![add(), says("done")]);
    world.motor.run(&["act", "x", "--tools", "reader"]).succeeded();
    assert_eq!(output(&world, 0), "23");
}

#[test]
fn two_tools_that_offer_the_same_name_are_not_granted_together() {
    let mut world = World::new(vec![says("done")]);
    drop_tool(&world, "adder.wasm", arithmetic("add", "i32.add"));
    drop_tool(&world, "other.wasm", arithmetic("add", "i32.mul"));
    world.approve_reviewed("adder");
    world.approve_reviewed("other");
    let both = world.motor.run(&["act", "x", "--tools", "adder,other"]);
    assert!(both.code != Some(0) && both.stderr.contains("another of that name"), "{both:?}");
    assert_eq!(world.model.calls(), 0);
    for (tool, result) in [("adder", "23"), ("other", "60")] {
        world.plays(vec![add(), says("done")]);
        world.motor.run(&["act", "x", "--tools", tool]).succeeded();
        assert_eq!(output(&world, 0), result);
    }
}

#[test]
fn a_tool_reaches_the_domains_of_its_approved_policy_and_no_other() {
    let (granted, other) = block_on(async { (Site::start().await, Site::at("127.0.0.2:0").await) });
    granted.route("/", Reply::text("hello"));
    other.route("/", Reply::text("hello"));
    let mut world = World::new(Vec::new()).beside(&[&granted, &other]);
    drop_tool(&world, "mailer.wasm", hostile_guest("outgoing"));
    let policy = |domain: &Site| json!({ "domains": [domain.address().to_string()], "tools": ["bash"] }).to_string();
    drop_tool(&world, "mailer.json", policy(&granted));
    assert!(world.review("mailer")["components"][0]["capabilities"].to_string().contains("network"));
    world.approve(&["mailer", "--proposed"]);
    // The file is a proposal: after the approval it changes nothing.
    drop_tool(&world, "mailer.json", policy(&other));
    let ask = |site: &Site| call("request", json!({ "method": "GET", "url": site.url("/") }));
    let turns = vec![ask(&granted), ask(&other), says("done")];
    world.plays(turns.clone());
    world.motor.run(&["act", "send it", "--tools", "mailer"]).succeeded();
    let (reached, refused) = (output(&world, 0), output(&world, 1));
    assert!(reached.contains("200") && reached.contains("hello"), "{reached}");
    assert!(refused.contains("domain_not_allowed") && !refused.contains("hello"), "{refused}");
    assert_eq!((granted.requests().len(), other.connections()), (1, 0));
    // A tool brings no other tools, even if its author asks for them.
    assert!(!world.offered(0).contains(&"bash".to_owned()));
    // Without domains in its policy it reaches nothing.
    world.as_owner(&["skill", "update", "mailer", "--domains", ""]).succeeded();
    world.plays(turns);
    world.motor.run(&["act", "send it", "--tools", "mailer"]).succeeded();
    assert_eq!((granted.requests().len(), other.connections()), (1, 0));
}
