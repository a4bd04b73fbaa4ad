//! Names that other readers of the standard accept, with the real program (SPEC SKILL-3): a slug, with the name as it is
//! written beside it, and never the name of another skill.

use serde_json::{Value, json};

use super::skills_cli::{World, is_fit};

fn skill(name: &str) -> String {
    format!("---\nname: {name}\ndescription: Runs commands.\n---\n\nUse the commands.\n")
}

fn listed(world: &World, entry: &str) -> Value {
    let list = world.motor.json(&["skill", "list"]);
    list.as_array().unwrap().iter().find(|skill| skill["place"]["entry"] == entry).unwrap().clone()
}

#[test]
fn a_name_that_others_accept_is_used_under_a_slug_and_shown_as_written() {
    let world = World::new();
    let motor = &world.motor;
    for (entry, written, slug) in [
        ("azure", "Azure CLI", "azure-cli"),
        ("feishu", "feishu_file_fetch", "feishu-file-fetch"),
        ("plain", "plain", "plain"),
    ] {
        world.drop_in(entry, &[("SKILL.md", &skill(written))]);
        let found = listed(&world, entry);
        assert_eq!((&found["name"], &found["readable"]), (&json!(slug), &json!(true)), "{found:#}");
        let note = if written == slug { Value::Null } else { json!(written) };
        assert_eq!(found["writtenName"], note, "{found:#}");
        assert_eq!(motor.json(&["skill", "review", slug])["review"]["writtenName"], note);
        world.approve(&[slug, "--tools", "code"]);
        motor.run(&["act", "run it", "--skill", slug]).succeeded();
    }
    let list = motor.stdout(&["skill", "list"]);
    let review = motor.stdout(&["skill", "review", "azure-cli"]);
    is_fit(&list);
    is_fit(&review);
    assert!(list.contains("its author calls it `Azure CLI`"), "{list}");
    assert!(review.contains("`Azure CLI` by its author"), "{review}");
    // Trust is of the bytes: another way to write the same slug is another skill.
    world.drop_in("azure", &[("SKILL.md", &skill("azure_cli"))]);
    motor.run(&["act", "run it", "--skill", "azure-cli"]).refused(5, &["motor skill review"]);
}

#[test]
fn the_second_skill_of_one_slug_is_refused_and_both_are_named() {
    let world = World::new();
    let motor = &world.motor;
    world.drop_in("azure", &[("SKILL.md", &skill("Azure CLI"))]);
    world.approve(&["azure-cli", "--tools", "code"]);
    world.drop_in("later", &[("SKILL.md", &skill("azure_cli"))]);
    let refused = listed(&world, "later");
    let reason = refused["reason"].as_str().unwrap();
    assert_eq!((&refused["readable"], &refused["name"]), (&json!(false), &Value::Null), "{refused:#}");
    assert!(reason.contains("`azure_cli`") && reason.contains("`Azure CLI` in `azure`"), "{reason}");
    for command in [&["skill", "review", "later"][..], &["skill", "approve", "later", "--tools", "code"]] {
        motor.run_as_owner(command, "").refused(5, &["Azure CLI", "azure_cli"]);
    }
    // The first stays as it is.
    assert_eq!(listed(&world, "azure")["status"], "approved");
    motor.run(&["act", "run it", "--skill", "azure-cli"]).succeeded();
    // A skill that has the name by itself comes before one whose slug it is.
    world.drop_in("zzz", &[("SKILL.md", &skill("azure-cli"))]);
    let refused = listed(&world, "azure");
    assert!(refused["reason"].as_str().unwrap().contains("`azure-cli` in `zzz`"), "{refused:#}");
    assert_eq!(
        (&listed(&world, "zzz")["name"], &listed(&world, "zzz")["readable"]),
        (&json!("azure-cli"), &json!(true))
    );
    motor.run(&["act", "run it", "--skill", "azure-cli"]).refused(5, &["motor skill review"]);
}

#[test]
fn hostile_names_stay_refused() {
    let world = World::new();
    let long = "Azure ".repeat(1_700);
    let names = [
        "../evil",
        "a/b",
        "\"a\\\\b\"",
        "\"..\"",
        "\"Azure\\u202eILC\"",
        "\"Azure\\u200bCLI\"",
        "\"Azure\\u0007CLI\"",
        &long,
    ];
    for (number, name) in names.into_iter().enumerate() {
        let entry = format!("hostile-{number}");
        world.drop_in(&entry, &[("SKILL.md", &skill(name))]);
        let found = listed(&world, &entry);
        assert_eq!(found["readable"], false, "{name:?}: {found:#}");
        assert!(found["reason"].as_str().unwrap().contains("name"), "{name:?}: {found:#}");
    }
    world.drop_in("honest", &[("SKILL.md", &skill("Azure CLI"))]);
    assert_eq!(listed(&world, "honest")["readable"], true);
    is_fit(&world.motor.stdout(&["skill", "list"]));
}
