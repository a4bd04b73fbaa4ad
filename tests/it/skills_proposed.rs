//! Proposals of a skill's author with the real program (SPEC SKILL-4, SKILL-9, CONSENT-1): none is granted unread, and
//! one that cannot be read grants nothing. And a version that was approved can be gone back to, though other versions were looked at
//! since (SPEC SKILL-12).

use serde_json::{Value, json};

use super::skills_cli::World;

const MAIL: &str = "---\nname: mail\ndescription: Sends mail.\n---\n# Mail\n";
const WIDE: &str = r#"{"schemaVersion": 1, "tools": ["bash", "fetch"], "domains": ["api.mail.dev"]}"#;

fn granted(world: &World) -> Value {
    world.motor.json(&["skill", "review", "mail"])["review"]["policy"].clone()
}

#[test]
fn without_a_person_a_proposal_is_granted_only_if_it_is_asked_for() {
    let world = World::new();
    world.drop_in("mail", &[("SKILL.md", MAIL), ("policy.json", WIDE)]);
    let approve = |more: &[&str]| world.motor.run_as_owner(&[&["skill", "approve", "mail"], more].concat(), "");
    approve(&[]).refused(5, &["its author asks for powers", "--proposed"]);
    approve(&["--tools", "code"]).refused(5, &["--proposed"]);
    assert_eq!(granted(&world), Value::Null);
    // Named powers are the owner's own.
    approve(&["--tools", "code", "--domains", ""]).succeeded();
    assert_eq!((&granted(&world)["tools"], &granted(&world)["domains"]), (&json!(["code"]), &json!([])));

    let world = World::new();
    world.drop_in("mail", &[("SKILL.md", MAIL), ("policy.json", WIDE)]);
    let ended = world.motor.run_as_owner(&["skill", "approve", "mail", "--proposed"], "").succeeded();
    assert!(ended.stderr.contains("granted to the skill `mail`") && ended.stderr.contains("fetch"), "{ended:?}");
    assert!(ended.stderr.contains("api.mail.dev"), "{ended:?}");
    assert_eq!(granted(&world)["domains"], json!(["api.mail.dev"]));
    // A policy that was approved is no proposal.
    world.motor.run_as_owner(&["skill", "approve", "mail"], "").succeeded();

    // A person at a terminal reads the powers.
    let world = World::new();
    world.drop_in("mail", &[("SKILL.md", MAIL), ("policy.json", WIDE)]);
    let mut asking = world.motor.at_terminal(&["skill", "approve", "mail"]);
    let card = asking.sees("[y/N] ");
    assert!(card.contains("api.mail.dev"), "{card}");
    asking.types("y");
    asking.wait().succeeded();
    assert_eq!(granted(&world)["domains"], json!(["api.mail.dev"]));
}

#[test]
fn an_unreadable_proposal_grants_nothing() {
    for unreadable in ["{", "[]"] {
        let world = World::new();
        world.drop_in("mail", &[("SKILL.md", MAIL), ("policy.json", unreadable)]);
        world.motor.run_as_owner(&["skill", "approve", "mail", "--proposed"], "").refused(2, &["--tools"]);
        let ended = world.motor.run_as_owner(&["skill", "approve", "mail"], "").succeeded();
        assert!(ended.stderr.contains("`policy.json`"), "{ended:?}");
        let policy = granted(&world);
        assert!(
            ["tools", "domains"].iter().all(|power| policy[power].as_array().is_none_or(Vec::is_empty)),
            "{policy}"
        );
        world.motor.run_as_owner(&["skill", "approve", "mail", "--tools", "code"], "").succeeded();
        assert_eq!(granted(&world)["tools"], json!(["code"]));
    }
    // Without one, a skill has the tools that see only its workspace.
    let world = World::new();
    world.drop_in("mail", &[("SKILL.md", MAIL)]);
    world.motor.run_as_owner(&["skill", "approve", "mail"], "").succeeded();
    assert!(granted(&world)["tools"].as_array().is_some_and(|tools| tools.len() > 2), "{}", granted(&world));
}

#[test]
fn looking_at_a_version_that_was_approved_does_not_take_that_from_it() {
    let world = World::new();
    let file = world.drop_in("mail", &[("SKILL.md", MAIL)]).join("SKILL.md");
    let (second, third) = (format!("{MAIL}\nSecond.\n"), format!("{MAIL}\nThird.\n"));
    world.approve(&["mail", "--tools", "code"]);
    std::fs::write(&file, &second).unwrap();
    world.approve(&["mail", "--tools", "code"]);
    // The first version comes back, is looked at, and goes.
    std::fs::write(&file, MAIL).unwrap();
    let review = world.motor.json(&["skill", "review", "mail"]);
    assert_eq!(review["review"]["status"], "reviewed");
    let first = review["review"]["hash"].as_str().unwrap().to_owned();
    std::fs::write(&file, &third).unwrap();
    // A version that was only looked at cannot be gone back to.
    let seen = world.motor.json(&["skill", "review", "mail"])["review"]["hash"].as_str().unwrap().to_owned();
    std::fs::write(&file, &second).unwrap();
    world.motor.refuses_owner(&["skill", "rollback", "mail", "--to", &seen], 1, "not_found");
    world.motor.run_as_owner(&["skill", "rollback", "mail", "--to", &first], "").succeeded();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), MAIL);
    assert_eq!(world.motor.json(&["skill", "review", "mail"])["review"]["status"], "approved");
    // The other one was approved before.
    world.motor.run_as_owner(&["skill", "rollback", "mail"], "").succeeded();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), second);
}
