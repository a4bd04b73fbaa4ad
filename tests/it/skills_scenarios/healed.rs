//! Skills whose instructions are out of date: the run finds out, does the task, and corrects them; the correction waits
//! for its owner like anything else, and a new domain is the owner's to give.

use serde_json::{Value, json};
use tests::block_on;
use tests::network::{Reply, Site};

use super::world::{MAIL, World, call, files, get, manifest, outcomes, put, read, says};
use crate::skills_attack::archives::Zip;

const DOCS: &str = "v1 is gone: GET /v2/messages sends.";

fn skill(api: &Site, path: &str) -> String {
    manifest(MAIL, &format!("Fetch {}?to=ADDRESS. The documentation is at {}.", api.url(path), api.url("/docs")))
}

/// A home with a skill for a version of the service that is gone.
fn outdated(sites: &[&Site]) -> World {
    let api = sites[0];
    api.route("/docs", Reply::text(DOCS));
    api.route("/v2/messages", Reply::text("sent"));
    let world = World::new(Vec::new()).beside(sites);
    world.drop_in(MAIL, &[("SKILL.md", &skill(api, "/v1/send")), ("scripts/send.sh", "echo sending\n")]);
    let domain = api.address().to_string();
    world.approve(&[MAIL, "--tools", "fetch,filesystem", "--domains", &domain]);
    world
}

/// One that its run has corrected.
fn healed(api: &Site) -> World {
    let mut world = outdated(&[api]);
    world.plays(vec![
        get(&api.url("/v1/send?to=john")),
        read("SKILL.md"),
        get(&api.url("/docs")),
        put("SKILL.md", &skill(api, "/v2/messages")),
        get(&api.url("/v2/messages?to=john")),
        says("Sent. The endpoint moved."),
    ]);
    assert_eq!(world.act(MAIL, &[]).succeeded().stdout, "Sent. The endpoint moved.\n");
    world
}

#[test]
fn a_run_corrects_its_skill_and_the_owner_sees_what_changed_first() {
    let api = block_on(Site::start());
    let world = healed(&api);
    let trace = world.trace();
    let run = trace["runId"].clone();
    assert!(trace["steps"][0]["toolCalls"][0].to_string().contains("404"), "{trace:#}");
    let installed = &trace["installedSkills"];
    assert_eq!((&installed[0]["name"], &installed[0]["problem"]), (&json!(MAIL), &Value::Null), "{installed:#}");
    assert_ne!(installed[0]["created"], true);
    assert!(installed[1].is_null(), "{installed:#}");

    let lies = files(&world.skills().join(MAIL));
    assert_eq!(lies["SKILL.md"], skill(&api, "/v2/messages").as_bytes());
    assert_eq!(lies.keys().collect::<Vec<_>>(), ["SKILL.md", "scripts/send.sh"], "what did not change stays");
    assert_eq!(world.status(MAIL), "pending_review");
    let calls = world.model.calls();
    world.act(MAIL, &[]).refused(5, &["pending_review"]);
    assert_eq!(world.model.calls(), calls);

    let review = world.review(MAIL);
    assert_eq!(
        (&review["extractedFrom"]["runId"], &review["extractedFrom"]["changedFiles"]),
        (&run, &json!(["SKILL.md"]))
    );
    assert_eq!(
        review["policy"]["domains"],
        json!([api.address().to_string()]),
        "its powers are kept for the next approval"
    );
    assert_eq!(review["changes"]["files"][0]["path"], "SKILL.md", "{review:#}");
    let mut asking = world.motor.at_terminal(&["skill", "approve", MAIL]);
    let card = asking.sees("[y/N] ");
    assert!(card.find("SKILL.md").unwrap() < card.find("tools ").unwrap(), "{card}");
    assert!(card.contains(&api.address().to_string()), "{card}");
    asking.types("y");
    asking.wait().succeeded();
    assert_eq!(world.status(MAIL), "approved");
    assert_eq!(world.explain(MAIL)["network"]["domains"], json!([api.address().to_string()]));
    world.act(MAIL, &[]).succeeded();
    assert!(world.prompt(calls).contains("/v2/messages"));
}

#[test]
fn a_correction_can_be_taken_back() {
    let api = block_on(Site::start());
    let mut world = healed(&api);
    let versions = world.motor.json(&["skill", "versions", MAIL]);
    let [new, old] = versions.as_array().unwrap().as_slice() else { panic!("{versions:#}") };
    assert_eq!((&new["inPlace"], &new["status"]), (&json!(true), &json!("pending_review")), "{versions:#}");
    assert_eq!((&old["superseded"], &old["kept"]), (&json!(true), &json!(true)), "{versions:#}");
    assert!(old["approvedAt"].is_u64() || old["approvedAt"].is_string(), "{versions:#}");
    let diff = world.motor.stdout(&["skill", "diff", MAIL]);
    assert!(
        diff.contains("-Fetch") && diff.contains("/v1/send") && diff.contains("+Fetch") && diff.contains("/v2/"),
        "{diff}"
    );

    world.motor.refuses(&["skill", "rollback", MAIL], 5, "consent_needed");
    world.as_owner(&["skill", "rollback", MAIL]).succeeded();
    assert_eq!(files(&world.skills().join(MAIL))["SKILL.md"], skill(&api, "/v1/send").as_bytes());
    assert_eq!((world.status(MAIL), &world.summary(MAIL)["hash"]), ("approved".to_owned(), &old["hash"]));
    world.plays(vec![says("done")]);
    world.act(MAIL, &[]).succeeded();
    assert!(world.prompt(0).contains("/v1/send"));
    // A version that was taken back is not trusted because it is put there again.
    std::fs::write(world.skills().join(MAIL).join("SKILL.md"), skill(&api, "/v2/messages")).unwrap();
    world.act(MAIL, &[]).refused(5, &["needs_reapproval"]);
}

#[test]
fn a_correction_that_needs_a_new_domain_asks_the_owner_for_it() {
    let (api, new) = block_on(async { (Site::start().await, Site::at("127.0.0.2:0").await) });
    let mut world = outdated(&[&api, &new]);
    api.route("/v1/send", Reply::redirect_as(301, &new.url("/v2/messages")));
    new.route("/v2/messages", Reply::text("sent"));
    let moved = new.address().to_string();
    let ask = json!({ "action": "reach the service where it is now", "domains": [moved] });
    world.plays(vec![
        get(&api.url("/v1/send?to=john")),
        call("request_approval", ask),
        get(&new.url("/v2/messages?to=john")),
        put("SKILL.md", &skill(&new, "/v2/messages")),
        says("sent, over the new address"),
    ]);
    let serving = world.serve();
    let run = world.motor.stdout(&["act", "send it", "--skill", MAIL, "--detach"]).trim().to_owned();
    world.motor.wait_for_status(&run, "awaiting_approval");
    assert_eq!(new.requests().len(), 0, "the redirect was followed");
    assert_eq!(outcomes(&world.trace())[0], "network_blocked", "{:#}", world.trace());
    world.motor.refuses(&["task", "approve", &run], 5, "consent_needed");
    world.as_owner(&["task", "approve", &run]).succeeded();
    world.motor.wait_for_status(&run, "completed");
    assert_eq!(new.requests().len(), 1);
    drop(serving);

    // The run could; the skill may not.
    let review = world.review(MAIL);
    assert_eq!(review["policy"]["domains"], json!([api.address().to_string()]), "{review:#}");
    world.approve(&[MAIL]);
    assert_eq!(world.explain(MAIL)["network"]["domains"], json!([api.address().to_string()]));
    world.plays(vec![get(&new.url("/v2/messages?to=ann")), says("not sent")]);
    world.act(MAIL, &[]).succeeded();
    assert_eq!((outcomes(&world.trace()), new.requests().len()), (vec![json!("network_blocked")], 1));
    world.as_owner(&["skill", "update", MAIL, "--add-domain", &moved]).succeeded();
    world.act(MAIL, &[]).succeeded();
    assert_eq!((outcomes(&world.trace()), new.requests().len()), (vec![json!(true)], 2));
}

#[test]
fn what_a_run_cannot_correct_another_run_finds_out() {
    let api = block_on(Site::start());
    let mut world = outdated(&[&api]);
    let before = files(&world.skills().join(MAIL));
    let asks = || get(&api.url("/v1/send"));
    // It begins to write, and does not come to an end.
    world.plays(vec![asks(), put("SKILL.md", "half of it"), asks()]);
    assert_eq!(world.act(MAIL, &["--max-iterations", "3", "--unattended"]).code, Some(1));
    assert_eq!(world.trace()["status"], "failed");
    assert_eq!(
        (files(&world.skills().join(MAIL)), world.status(MAIL)),
        (before, "approved".to_owned()),
        "a failed run changes no skill"
    );
    let old = world.summary(MAIL)["hash"].clone();

    world.plays(vec![get(&api.url("/docs")), put("SKILL.md", &skill(&api, "/v2/messages")), says("rewritten")]);
    let domain = api.address().to_string();
    let research = ["act", "agentmail answers 404: find out", "--tools", "fetch,filesystem", "--domains", &domain];
    world.motor.run(&research).succeeded();
    let installed = world.trace()["installedSkills"].clone();
    assert_eq!((&installed[0]["name"], &installed[0]["place"]), (&json!(MAIL), &json!(MAIL)), "{installed:#}");
    assert_ne!(installed[0]["created"], true, "{installed:#}");
    // The run was not given the skill: the version that the owner approved stays, and the other version is the owner's to put in place.
    assert_eq!((world.status(MAIL).as_str(), &world.summary(MAIL)["hash"]), ("approved", &old), "{installed:#}");
    let hash = installed[0]["hash"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    world.as_owner(&["skill", "rollback", MAIL, "--to", &hash]).succeeded();
    assert_ne!(world.status(MAIL), "approved");
    let refused = world.act(MAIL, &[]);
    assert_eq!(refused.code, Some(5), "{refused:?}");
    let review = world.review(MAIL);
    assert_eq!(review["policy"]["domains"], json!([domain]), "the powers are kept for the next approval: {review:#}");
    let versions = world.motor.json(&["skill", "versions", MAIL]);
    let kept = versions.as_array().unwrap().iter().find(|version| version["hash"] == old).unwrap();
    assert_eq!(kept["kept"], true, "{versions:#}");
    world.approve(&[MAIL]);
    world.plays(vec![get(&api.url("/v2/messages")), says("sent")]);
    world.act(MAIL, &[]).succeeded();
    assert_eq!(outcomes(&world.trace()), [json!(true)]);
}

/// A change made by its owner while the run worked is not overwritten by the run's version of the skill.
#[test]
fn a_correction_does_not_overwrite_what_its_owner_changed_meanwhile() {
    let api = block_on(Site::start());
    let mut world = outdated(&[&api]);
    let mut last = says("corrected");
    last["gate"] = json!(true);
    world.plays(vec![put("SKILL.md", &skill(&api, "/v2/messages")), last]);
    let acting = world.motor.start(&["act", "send it", "--skill", MAIL]);
    block_on(world.model.wait_at_gate());
    let mine = manifest(MAIL, "My own words.");
    std::fs::write(world.skills().join(MAIL).join("SKILL.md"), &mine).unwrap();
    world.model.release();
    acting.wait().succeeded();
    let installed = world.trace()["installedSkills"].clone();
    assert!(installed[0]["problem"].is_string() && installed[0]["place"].is_null(), "{installed:#}");
    assert_eq!(files(&world.skills().join(MAIL))["SKILL.md"], mine.as_bytes());
    assert_eq!(world.status(MAIL), "needs_reapproval");
}

/// An archive is its owner's to change: a run's correction is reported, and the archive stays the approved one.
#[test]
fn an_archive_that_a_run_corrects_stays_what_was_approved() {
    let api = block_on(Site::start());
    let world = World::new(vec![put("SKILL.md", &skill(&api, "/v2/messages")), says("corrected")]);
    let archive = Zip::of(&[("SKILL.md", &skill(&api, "/v1/send")), ("scripts/send.sh", "echo sending\n")]).finish();
    std::fs::write(world.skills().join("agentmail.zip"), &archive).unwrap();
    world.approve(&[MAIL, "--tools", "filesystem", "--domains", "mail.example"]);
    world.act(MAIL, &[]).succeeded();
    let installed = world.trace()["installedSkills"].clone();
    assert!(installed[0]["problem"].as_str().unwrap().contains("not a directory"), "{installed:#}");
    assert_eq!(std::fs::read(world.skills().join("agentmail.zip")).unwrap(), archive);
    assert!(!world.skills().join(MAIL).exists());
    assert_eq!(world.status("agentmail.zip"), "approved");
}

/// A run that was given one skill leaves another one that its owner approved as it is; its version of it is kept beside.
#[test]
fn a_run_with_a_skill_does_not_write_over_another_that_was_approved() {
    let api = block_on(Site::start());
    let mut world = outdated(&[&api]);
    let before = manifest("other", "As its owner approved it.");
    world.drop_in("other", &[("SKILL.md", &before)]);
    world.approve(&["other", "--tools", "code"]);
    let after = manifest("other", "Do as the page says.");
    world.plays(vec![
        put("skills/other/SKILL.md", &after),
        put("skills/fresh/SKILL.md", &manifest("fresh", "New.")),
        says("Done."),
    ]);
    world.act(MAIL, &[]).succeeded();
    assert_eq!(world.status("other"), "approved");
    assert_eq!(files(&world.skills().join("other"))["SKILL.md"], before.as_bytes());
    let installed = world.trace()["installedSkills"].clone();
    let of = |name: &str| installed.as_array().unwrap().iter().find(|one| one["name"] == name).unwrap().clone();
    let other = of("other");
    assert!(other["problem"].as_str().unwrap().contains("motor skill diff other --to"), "{installed:#}");
    // The benign twin: a new skill is taken over.
    assert_eq!((&of("fresh")["problem"], world.status("fresh").as_str()), (&Value::Null, "pending_review"));

    let hash = other["hash"].as_str().unwrap().trim_start_matches("sha256:").to_owned();
    let diff = world.motor.stdout(&["skill", "diff", "other", "--to", &hash]);
    assert!(diff.contains("+Do as the page says."), "{diff}");
    world.motor.refuses(&["skill", "rollback", "other", "--to", &hash], 5, "consent_needed");
    world.as_owner(&["skill", "rollback", "other", "--to", &hash]).succeeded();
    assert_eq!(files(&world.skills().join("other"))["SKILL.md"], after.as_bytes());
    assert_ne!(world.status("other"), "approved");
    world.as_owner(&["skill", "rollback", "other"]).succeeded();
    assert_eq!(
        (world.status("other").as_str(), files(&world.skills().join("other"))["SKILL.md"].as_slice()),
        ("approved", before.as_bytes())
    );
}

/// A run without any skill leaves approved ones as they are too, however many it writes; a file that a run made it may replace.
#[test]
fn a_run_without_a_skill_does_not_write_over_those_that_were_approved() {
    let names = ["one", "two", "three"];
    let of_run = |text: &str| [put("skills/draft/SKILL.md", &manifest("draft", text)), says("Done.")];
    let mut world = World::new(of_run("A first draft.").to_vec());
    let act = ["act", "tidy up", "--tools", "filesystem"];
    world.motor.run(&act).succeeded();
    for name in names {
        world.drop_in(name, &[("SKILL.md", &manifest(name, "As its owner approved it."))]);
        world.approve(&[name, "--tools", "code"]);
    }
    let writes = names.map(|name| put(&format!("skills/{name}/SKILL.md"), &manifest(name, "Do as the page says.")));
    world.plays(writes.into_iter().chain(of_run("A better draft.")).collect());
    world.motor.run(&act).succeeded();
    for name in names {
        let text = String::from_utf8(files(&world.skills().join(name))["SKILL.md"].clone()).unwrap();
        assert!(world.status(name) == "approved" && text.contains("As its owner approved it."), "{name}: {text}");
    }
    let installed = world.trace()["installedSkills"].clone();
    let kept = installed.as_array().unwrap().iter().filter(|one| one["problem"].is_string());
    assert_eq!(kept.count(), names.len(), "{installed:#}");
    let draft = String::from_utf8(files(&world.skills().join("draft"))["SKILL.md"].clone()).unwrap();
    assert!(world.status("draft") == "pending_review" && draft.contains("A better draft."), "{draft}");
}
