//! An approved skill in use: its powers, the files that its run leaves as they were, and the reach of a failure.

use serde_json::json;
use tests::block_on;
use tests::network::{Reply, Site};

use super::world::{MAIL, World, files, gated, get, manifest, outcomes, read, says};

fn unavailable() -> Reply {
    Reply::Whole { status: 503, headers: Vec::new(), body: b"try later".to_vec() }
}

/// A home with the skill, approved for its one service.
fn approved(api: &Site, extra: &[&str]) -> World {
    let world = World::new(Vec::new()).beside(&[api]);
    let body = format!("Fetch {}, with the address.", api.url("/v1/send"));
    let body = format!("{body} The signature is in `references/signature.md`.");
    world.drop_in(MAIL, &[("SKILL.md", &manifest(MAIL, &body)), ("references/signature.md", "Yours, A.\n")]);
    let domain = api.address().to_string();
    world.approve(&[&[MAIL, "--tools", "fetch,filesystem", "--domains", &domain], extra].concat());
    world
}

#[test]
fn a_skill_is_used_with_its_policy_and_is_as_it_was() {
    let api = block_on(Site::start()).with("/v1/send", Reply::text("sent"));
    let mut world = approved(&api, &[]);
    let schema = json!({
        "type": "object", "properties": { "to": { "type": "string", "minLength": 3 }, "copies": { "type": "integer" } },
        "required": ["to"], "additionalProperties": false,
    });
    let file = world.motor.file("inputs.json", schema.to_string());
    world.as_owner(&["skill", "update", MAIL, "--inputs", file.to_str().unwrap()]).succeeded();
    for wrong in
        [&[][..], &["--input", "to=x"], &["--input", "to=john", "--input", "copies=many"], &["--input", "too=john"]]
    {
        let ended = world.act(MAIL, wrong);
        assert_eq!((ended.code, ended.stdout.as_str()), (Some(2), ""), "{wrong:?}: {ended:?}");
    }
    assert_eq!(world.model.calls(), 0, "a wrong input cost a token");
    assert!(world.summary(MAIL)["lastUsed"].is_null());

    let before = (files(&world.skills().join(MAIL)), world.summary(MAIL)["hash"].clone());
    world.plays(vec![read("references/signature.md"), get(&api.url("/v1/send?to=john")), says("Email sent.")]);
    let ended = world.act(MAIL, &["--input", "to=john@example.com", "--input", "copies=2"]).succeeded();
    assert_eq!(ended.stdout, "Email sent.\n");
    let trace = world.trace();
    assert_eq!(outcomes(&trace), [json!(true), json!(true)], "{trace:#}");
    let prompt = world.prompt(0);
    for words in ["The signature is in", "john@example.com", "\"copies\":2", &api.address().to_string()] {
        assert!(prompt.contains(words), "{words:?}: {prompt}");
    }
    let offered = world.offered(0);
    assert!(offered.contains(&"fetch".to_owned()) && offered.contains(&"read".to_owned()), "{offered:?}");
    assert!(!offered.iter().any(|tool| ["bash", "code"].contains(&tool.as_str())), "{offered:?}");

    assert_eq!((files(&world.skills().join(MAIL)), world.summary(MAIL)["hash"].clone()), before);
    let listed = world.summary(MAIL);
    assert_eq!(listed["status"], "approved");
    assert!(listed["lastUsed"].is_u64() || listed["lastUsed"].is_string(), "{listed}");
    assert!(trace["installedSkills"].as_array().is_none_or(Vec::is_empty), "{trace:#}");

    // The receipt says which bytes it was made by, and anybody can check it.
    let receipt = world.motor.directory().join("receipt.json");
    let receipt = receipt.to_str().unwrap();
    world.motor.stdout(&["receipt", "show", "--out", receipt]);
    let said = world.motor.json(&["receipt", "show"])["receipt"].clone();
    assert_eq!(said["skill"], json!({ "name": MAIL, "hash": before.1 }));
    let directory = world.skills().join(MAIL);
    let verify = ["receipt", "verify", receipt, "--skill", directory.to_str().unwrap()];
    let report = world.motor.json(&verify);
    assert!(report["checked"].as_array().unwrap().iter().any(|checked| checked["what"] == "skill"), "{report:#}");
    std::fs::write(directory.join("references/signature.md"), "Yours, B.\n").unwrap();
    let ended = world.motor.run(&verify);
    assert!(ended.code == Some(1) && ended.stderr.contains("another version"), "{ended:?}");
}

#[test]
fn a_service_that_is_down_for_a_moment_is_tried_again_by_the_run() {
    let api = block_on(Site::start()).with("/v1/send", unavailable());
    let mut world = approved(&api, &[]);
    world.plays(vec![get(&api.url("/v1/send")), gated(get(&api.url("/v1/send"))), says("sent")]);
    let acting = world.motor.start(&["act", "send it", "--skill", MAIL]);
    block_on(world.model.wait_at_gate());
    let requests = world.model.requests();
    let seen = requests.last().unwrap().body["messages"].as_array().unwrap().last().unwrap().to_string();
    assert!(seen.contains("503"), "{seen}");
    api.route("/v1/send", Reply::text("sent"));
    world.model.release();
    assert_eq!(acting.wait().succeeded().stdout, "sent\n");
    assert!(api.requests().len() >= 2);
    assert_eq!(world.status(MAIL), "approved");
}

#[test]
fn a_service_that_stays_down_fails_the_run_and_not_the_skill() {
    let api = block_on(Site::start()).with("/v1/send", unavailable());
    let mut world = approved(&api, &[]);
    let before = (files(&world.skills().join(MAIL)), world.summary(MAIL)["hash"].clone());
    let asks = || get(&api.url("/v1/send"));
    world.plays_script(json!({ "turns": [asks(), asks()], "attempts": [[asks(), says("sent at last")]] }));
    let ended = world.act(MAIL, &["--max-iterations", "2", "--unattended"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(1), ""), "{ended:?}");
    let failed = world.trace();
    assert_eq!((&failed["status"], &failed["failure"]["retryable"]), (&json!("failed"), &json!(true)), "{failed:#}");
    let untouched = || {
        assert_eq!((files(&world.skills().join(MAIL)), world.summary(MAIL)["hash"].clone()), before);
        assert_eq!(world.status(MAIL), "approved");
        assert_eq!(world.motor.json(&["skill", "versions", MAIL]).as_array().unwrap().len(), 1);
    };
    untouched();

    api.route("/v1/send", Reply::text("sent"));
    let run = failed["runId"].as_str().unwrap();
    let serving = world.serve();
    world.motor.run(&["task", "retry", run, "--guidance", "it may be down: wait and try again"]).succeeded();
    world.motor.wait_for_status(run, "completed");
    drop(serving);
    let trace = world.trace();
    assert_eq!(trace["summary"], "sent at last", "{trace:#}");
    assert_eq!((&trace["runId"], &trace["attempts"].as_array().unwrap().len()), (&json!(run), &2));
    // The second attempt has the skill too.
    assert!(world.prompt(world.model.calls() - 1).contains("The signature is in"));
    untouched();
}

#[test]
fn an_owner_adds_a_domain_and_nothing_else_changes() {
    let api = block_on(Site::start()).with("/v1/send", Reply::text("sent"));
    let cdn = block_on(Site::at("127.0.0.2:0")).with("/logo", Reply::text("logo"));
    let mut world = approved(&api, &[]).beside(&[&api, &cdn]);
    let (before, domain) = (world.summary(MAIL), cdn.address().to_string());
    let update = ["skill", "update", MAIL, "--add-domain", &domain];
    world.motor.refuses(&update, 5, "consent_needed");
    world.motor.run_with_input(&update, "yes\n").refused(5, &["only the owner"]);
    world.plays(vec![get(&cdn.url("/logo")), says("seen")]);
    world.act(MAIL, &[]).succeeded();
    assert_eq!(outcomes(&world.trace()), [json!("network_blocked")]);

    world.as_owner(&update).succeeded();
    let after = world.summary(MAIL);
    assert_eq!((&after["status"], &after["hash"]), (&json!("approved"), &before["hash"]));
    assert_eq!(world.explain(MAIL)["network"]["domains"], json!([api.address().to_string(), domain]));
    let versions = world.motor.json(&["skill", "versions", MAIL]);
    assert_eq!(versions.as_array().unwrap().len(), 1, "{versions:#}");
    world.act(MAIL, &[]).succeeded();
    assert_eq!((outcomes(&world.trace()), cdn.requests().len()), (vec![json!(true)], 1));
}
