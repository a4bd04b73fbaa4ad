//! Skills that people bring: a file they were given, and a URL they were told. Both are strangers.

use serde_json::json;
use tests::block_on;
use tests::network::{Reply, Site};

use super::world::{MAIL, World, files, manifest, says};
use crate::skills_attack::archives::Zip;

const BODY: &str = "Call https://api.agentmail.to/v1/send with `curl -H \"authorization: Bearer $AGENTMAIL_API_KEY\"`.\n\n\
                    ```sh\ncurl -H \"authorization: Bearer $AGENTMAIL_API_KEY\" https://api.agentmail.to/v1/send\n```";

fn names(references: &serde_json::Value) -> Vec<String> {
    references.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_skill_file_that_somebody_was_given_shows_what_it_wants_and_waits() {
    let mut world = World::new(vec![says("done")]);
    let file = world.motor.file("agentmail.md", manifest(MAIL, BODY));
    // Other files in its directory are left alone.
    let _beside = world.motor.file("diary.txt", "private");
    let added = world.motor.run(&["skill", "add", file.to_str().unwrap()]).succeeded();
    assert!(added.stdout.contains("motor skill review agentmail"), "{added:?}");
    assert_eq!(files(&world.skills().join(MAIL)).keys().collect::<Vec<_>>(), ["SKILL.md"]);
    assert_eq!(world.status(MAIL), "needs_reapproval");
    world.act(MAIL, &[]).refused(5, &["needs_reapproval", "motor skill review agentmail"]);
    let review = world.review(MAIL);
    assert!(names(&review["domains"]).contains(&"api.agentmail.to".to_owned()), "{review:#}");
    assert!(
        names(&review["credentials"]).iter().any(|name| name.eq_ignore_ascii_case("agentmail_api_key")),
        "{review:#}"
    );
    assert!(review["policy"].is_null(), "{review:#}");
    assert!(review["provenance"]["source"].as_str().unwrap().ends_with("agentmail.md"), "{review:#}");
    world.act(MAIL, &[]).refused(5, &["reviewed"]);
    assert_eq!(world.model.calls(), 0);
    world.approve(&[MAIL, "--tools", "bash", "--domains", "api.agentmail.to"]);
    world.act(MAIL, &[]).succeeded();
    assert!(world.prompt(0).contains("Bearer $AGENTMAIL_API_KEY"));

    // The same by its usual name, alone in a directory that it shares.
    let downloads = world.motor.directory().join("downloads");
    super::world::write(
        &downloads,
        &[("SKILL.md", &manifest("other", "Other.")), ("photo.jpg", "private"), ("a/b", "c")],
    );
    world.motor.run(&["skill", "add", downloads.join("SKILL.md").to_str().unwrap()]).succeeded();
    assert_eq!(files(&world.skills().join("other")).keys().collect::<Vec<_>>(), ["SKILL.md"]);
    // And dropped in by hand.
    world.drop_in("third", &[("SKILL.md", &manifest("third", BODY))]);
    assert_eq!(world.status("third"), "needs_reapproval");
    world.plays(vec![says("done")]);
    world.act("third", &[]).refused(5, &["needs_reapproval"]);
    world.approve(&["third"]);
    world.act("third", &[]).succeeded();
}

#[test]
fn a_skill_from_a_url_is_fetched_on_the_owners_word_and_says_where_it_is_from() {
    let (site, other) = block_on(async { (Site::start().await, Site::at("127.0.0.2:0").await) });
    let archive =
        Zip::of(&[("agentmail/SKILL.md", &manifest(MAIL, BODY)), ("agentmail/references/a.md", "a\n")]).finish();
    site.route("/agentmail.zip", Reply::Whole { status: 200, headers: Vec::new(), body: archive.clone() });
    site.route("/single/SKILL.md", Reply::text(&manifest("single", "One file.")));
    site.route("/moved.zip", Reply::redirect(&other.url("/agentmail.zip")));
    site.route("/page", Reply::html("<html>no skill</html>"));
    site.route("/here.zip", Reply::redirect(&site.url("/third.zip")));
    let third = Zip::of(&[("SKILL.md", &manifest("third", BODY))]).finish();
    site.route("/third.zip", Reply::Whole { status: 200, headers: Vec::new(), body: third });
    other.route("/agentmail.zip", Reply::Whole { status: 200, headers: Vec::new(), body: archive });

    let unreachable = World::new(Vec::new());
    let ended = unreachable.as_owner(&["skill", "add", &site.url("/agentmail.zip")]);
    assert!(ended.code != Some(0) && ended.stdout.is_empty(), "a private address was fetched: {ended:?}");
    assert_eq!(site.connections(), 0);

    let world = World::new(vec![says("done")]).beside(&[&site, &other]);
    let add = |path: &str| world.as_owner(&["skill", "add", &site.url(path)]);
    world.motor.refuses(&["skill", "add", &site.url("/agentmail.zip")], 5, "consent_needed");
    world.motor.run_with_input(&["skill", "add", &site.url("/agentmail.zip")], "y\n").refused(5, &["only the owner"]);
    assert_eq!(site.connections(), 0, "it was fetched on nobody's word");
    for (path, code) in [("/moved.zip", 2), ("/page", 1), ("/missing.zip", 1)] {
        let ended = add(path);
        assert!(ended.code.is_some_and(|found| found == code || found == 2), "{path}: {ended:?}");
        assert!(ended.stderr.contains("error:") && !ended.stderr.contains("panicked"), "{path}: {ended:?}");
    }
    assert_eq!(other.connections(), 0, "it followed to where nobody sent it");
    assert_eq!(world.motor.json(&["skill", "list"]), json!([]));

    add("/agentmail.zip").succeeded();
    add("/single/SKILL.md").succeeded();
    add("/here.zip").succeeded();
    assert_eq!(files(&world.skills().join(MAIL)).keys().collect::<Vec<_>>(), ["SKILL.md", "references/a.md"]);
    for (name, path) in [(MAIL, "/agentmail.zip"), ("single", "/single/SKILL.md"), ("third", "/here.zip")] {
        assert_eq!(world.status(name), "needs_reapproval");
        world.act(name, &[]).refused(5, &["needs_reapproval"]);
        let review = world.review(name);
        let provenance = &review["provenance"];
        assert_eq!(
            (&provenance["source"], &provenance["contentHash"]),
            (&json!(site.url(path)), &review["hash"]),
            "{review:#}"
        );
        assert!(!provenance["fetchedAt"].is_null(), "{review:#}");
        let page = world.motor.stdout(&["skill", "review", name]);
        assert!(page.replace(['\n', ' '], "").contains(&site.url(path)), "{page}");
    }
    assert_eq!(world.model.calls(), 0);
    world.approve(&[MAIL]);
    world.act(MAIL, &[]).succeeded();
    // Once more is another skill of the same name, which is not put over the first.
    let again = add("/agentmail.zip");
    assert!(again.code != Some(0) && again.stderr.contains("already"), "{again:?}");
    assert_eq!(world.status(MAIL), "approved");
}
