//! Reviewing, landing and taking back, by the command line.

use tests::Patience;
use tests::network::{Reply, Site};

use super::*;

#[test]
fn a_run_is_reviewed_landed_and_taken_back() {
    let desk = Desk::new(&[("src/lib.rs", "fn one() -> u32 {\n    2\n}\n"), ("old.txt", "old\n")]);
    fs::set_permissions(desk.directory.join("src/lib.rs"), fs::Permissions::from_mode(0o640)).unwrap();
    let before = desk.now();
    let run = desk.run(&["sed -i 's/    2/    1/' src/lib.rs", "mv old.txt new.txt; echo '#!/bin/sh' > go"]);
    let page = desk.motor.stdout(&["diff", &run]);
    for shown in
        ["step 1", "M src/lib.rs", "-    2", "+    1", "R old.txt → new.txt", "A go", "1 renamed, 1 changed, 1 created"]
    {
        assert!(page.contains(shown), "{shown}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 80), "{page}");
    let stat = desk.motor.stdout(&["diff", "--stat", &run, "src"]);
    assert!(stat.contains("M src/lib.rs  +1 −1") && !stat.contains("new.txt"), "{stat}");
    assert_eq!(desk.now(), before);

    let said = desk.motor.stdout(&["land", &run]);
    assert!(said.contains("landed 4 paths (landing 1)"), "{said}");
    assert_eq!(desk.read("src/lib.rs"), "fn one() -> u32 {\n    1\n}\n");
    let now = desk.now();
    assert!(now["src/lib.rs"].starts_with("640 ") && now.contains_key("new.txt") && !now.contains_key("old.txt"));
    assert_eq!(desk.changes(&run), BTreeMap::new(), "what is landed is no longer a change");

    let said = desk.motor.stdout(&["undo", &run]);
    assert!(said.contains("took back landing 1"), "{said}");
    assert_eq!(desk.now(), before);
    assert_eq!(desk.changes(&run).len(), 3, "the run still has them");
    desk.motor.stdout(&["land", &run, "src"]);
    assert_eq!(desk.read("src/lib.rs"), "fn one() -> u32 {\n    1\n}\n");
    assert!(desk.now().contains_key("old.txt"), "only a part was landed");
    let list = desk.motor.json(&["land", &run, "--list"]);
    let states: Vec<_> = list.as_array().unwrap().iter().map(|landing| text(&landing["state"])).collect();
    assert_eq!(states, ["undone", "landed", "landed"]);
}

#[test]
fn the_question_is_put_at_the_terminal_and_a_no_changes_nothing() {
    let desk = Desk::new(&[("a.txt", "a\n"), ("b.txt", "b\n")]);
    let run = desk.run(&["rm a.txt; echo B > b.txt; echo all: > Makefile"]);
    let before = desk.now();
    let plain = Motor::bare().at(desk.motor.home().to_owned());
    let mut asked = plain.at_terminal(&["land", &run]);
    let card = asked.sees("[y/N] ");
    let at = |words: &str| card.find(words).unwrap_or_else(|| panic!("{words}: {card}"));
    assert!(at("a.txt") < at("b.txt"), "deletions come first: {card}");
    assert!(card.contains("Makefile: make runs it"), "{card}");
    asked.types("n");
    assert_ne!(asked.wait().code, Some(0));
    assert_eq!(desk.now(), before);
    let mut asked = plain.at_terminal(&["land", &run]);
    asked.sees("[y/N] ");
    asked.types("y");
    let (ended, screen) = asked.finish();
    assert_eq!(ended.code, Some(0), "{screen}");
    assert_eq!(desk.read("b.txt"), "B\n");
}

#[test]
fn an_edit_of_the_owner_in_the_meantime_is_merged_or_named() {
    let desk = Desk::new(&[("a.txt", "1\n2\n3\n4\n5\n"), ("b.txt", "b\n")]);
    let run = desk.run(&["sed -i 's/1/one/' a.txt; echo mine > b.txt"]);
    desk.put("a.txt", "1\n2\n3\n4\nfive\n");
    desk.put("b.txt", "owner\n");
    desk.motor.run(&["land", &run]).refused(1, &["1 conflict with your own changes", "b.txt", "--skip-conflicts"]);
    assert_eq!(desk.read("a.txt"), "1\n2\n3\n4\nfive\n");
    desk.motor.stdout(&["land", &run, "--skip-conflicts"]);
    assert_eq!(desk.read("a.txt"), "one\n2\n3\n4\nfive\n");
    assert_eq!(desk.read("b.txt"), "owner\n");
    desk.put("a.txt", "one\n2\n3\nfour\nfive\n");
    desk.motor.stdout(&["undo", &run]);
    assert_eq!(desk.read("a.txt"), "1\n2\n3\nfour\nfive\n", "the owner's edits before and after are kept");
}

#[test]
fn two_runs_side_by_side_are_both_landed() {
    let desk = Desk::new(&[("a.txt", "1\n2\n3\n4\n5\n6\n"), ("b.txt", "b\n")]);
    let first = desk.run_with(&["sed -i 's/1/one/' a.txt"], &["--agent", "one"]);
    let second = desk.run_with(&["sed -i 's/6/six/' a.txt; echo B > b.txt"], &["--agent", "two"]);
    desk.motor.stdout(&["land", &first]);
    desk.motor.stdout(&["land", &second]);
    assert_eq!(desk.read("a.txt"), "one\n2\n3\n4\n5\nsix\n");
    desk.motor.stdout(&["undo", &first]);
    assert_eq!((desk.read("a.txt"), desk.read("b.txt")), ("1\n2\n3\n4\n5\nsix\n".to_owned(), "B\n".to_owned()));
}

#[test]
fn a_trusted_run_lands_by_itself_and_a_token_lands_nothing() {
    let desk = Desk::new(&[("a.txt", "a\n")]);
    let run = desk.run_with(&["echo A > a.txt"], &["--land"]);
    assert_eq!(desk.read("a.txt"), "A\n");
    desk.motor.stdout(&["undo", &run]);
    let serving = desk.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let token = desk.motor.json(&["token", "create", "--name", "t", "--scope", "agent"])["token"].clone();
    let bearer = format!("Bearer {}", token.as_str().unwrap());
    let path = format!("/v1/tasks/{run}/landings");
    let (status, refused) = desk.motor.ask(&path, Some(&json!({})), &[("authorization", &bearer)]).unwrap();
    assert!(matches!(status, 401 | 403), "{status} {refused}");
    let (status, refused) = desk.motor.ask(&path, Some(&json!({})), &[]).unwrap();
    assert!(matches!(status, 401 | 403), "{status} {refused}");
    let on = json!({ "task": "x", "directories": [{ "path": desk.directory }] });
    let (status, refused) = desk.motor.ask("/v1/tasks", Some(&on), &[("authorization", &bearer)]).unwrap();
    assert_eq!(status, 403, "{refused}");
    assert_eq!(desk.read("a.txt"), "a\n");
}

#[test]
fn what_a_run_wrote_after_it_read_from_the_web_is_marked() {
    let page = block_on(Site::at("127.0.0.1:0"));
    page.route("/", Reply::text("write this down"));
    let desk = Desk::new(&[("a.txt", "a\n")]);
    desk.motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", page.address()));
    let address = page.address().to_string();
    let fetch = format!("curl -s {} > web.txt", page.url(""));
    let run = desk.run_with(&["echo A > a.txt", &fetch, "echo b > Makefile"], &["--domains", &address]);
    let files = desk.motor.json(&["diff", &run])["files"].clone();
    let marked: BTreeMap<_, _> = files
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (text(&file["path"]), file["afterWeb"].as_bool().unwrap()))
        .collect();
    let expected = [("Makefile", true), ("a.txt", false), ("web.txt", true)];
    assert_eq!(marked, expected.map(|(path, marked)| (path.to_owned(), marked)).into());
    let page = desk.motor.stdout(&["diff", &run, "--stat"]);
    assert!(page.contains("A Makefile †") && page.contains("† the run had read from the web"), "{page}");
}

#[test]
fn a_run_that_goes_on_knows_what_was_landed_and_taken_back() {
    let desk = Desk::new(&[("a.txt", "a\n")]);
    let on = desk.directory.to_str().unwrap();
    let task = format!("{NEXT}echo A > a.txt{NEXT}cat a.txt{NEXT}");
    let ended = desk.motor.run(&["act", "--on", on, "--max-iterations", "1", "--unattended", &task]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    let run = desk.motor.only_run();
    desk.motor.stdout(&["land", &run]);
    desk.motor.stdout(&["undo", &run]);
    assert_eq!(desk.read("a.txt"), "a\n");
    let before = desk.asked.lock().unwrap().len();
    desk.motor.stdout(&["task", "retry", &run]);
    let retried = desk.motor.run(&["act", "--resume", &run]);
    let told = desk.asked.lock().unwrap().get(before).unwrap_or_else(|| panic!("{retried:?}")).to_string();
    for words in ["applied your changes of 1 paths (landing 1) and took them back", "the user took back landing 1"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    // It works on its own earlier version.
    desk.motor.stdout(&["land", &run]);
    assert_eq!(desk.read("a.txt"), "A\n");
}

#[test]
fn the_flag_that_lands_is_a_question_first_and_no_consent() {
    let desk = Desk::new(&[("a.txt", "a\n")]);
    let plain = Motor::with_model(&desk.model).at(desk.motor.home().to_owned());
    let on = desk.directory.to_str().unwrap();
    let task = format!("{NEXT}echo A > a.txt{NEXT}");
    let act = ["act", "--on", on, "--land", &task];
    plain.run(&act).refused(5, &["no terminal to ask at"]);
    assert!(desk.asked.lock().unwrap().is_empty(), "a token was spent");
    let mut asked = plain.at_terminal(&act);
    let card = asked.sees("[y/N] ");
    assert!(card.contains("land all changes of this run") && card.contains(on), "{card}");
    asked.types("y");
    let (ended, screen) = asked.finish();
    assert_eq!(ended.code, Some(0), "{screen}");
    assert_eq!(desk.read("a.txt"), "A\n");
}

#[test]
fn a_host_that_is_killed_while_it_lands_is_ended_by_the_next() {
    let names: Vec<_> = (0..1500).map(|number| format!("d{}/f{number}.txt", number % 30)).collect();
    let files: Vec<_> = names.iter().map(|name| (name.as_str(), "before\n")).collect();
    let desk = Desk::new(&files);
    let run = desk.run(&["for f in $(find . -name '*.txt'); do echo after > $f; done"]);
    let before = desk.now();
    let after: Listing = before.keys().map(|path| (path.clone(), before[path].replace("before", "after"))).collect();
    let mut interrupted = 0;
    for _ in 0..6 {
        let serving = desk.motor.start(&["serve"]);
        serving.wait_for_words("listening");
        let landing = desk.motor.start(&["land", &run]);
        let mut patience = Patience::default();
        let staged = || {
            let entries = fs::read_dir(&desk.directory).unwrap();
            entries.flatten().any(|entry| entry.file_name().to_string_lossy().starts_with(".motor-landing"))
        };
        while !staged() && patience.lasts() {}
        serving.kill();
        interrupted += usize::from(staged());
        landing.kill();
        // Any command that becomes the host ends it.
        desk.motor.stdout(&["task", "list"]);
        let now = desk.now();
        assert!(now == before || now == after, "a mixture: {:?}", now.iter().take(40).collect::<Vec<_>>());
        if now == after {
            desk.motor.stdout(&["undo", &run]);
            assert_eq!(desk.now(), before);
        }
    }
    assert!(interrupted > 0, "no landing was interrupted");
}

#[test]
fn what_cannot_be_worked_on_is_refused_with_words() {
    let desk = Desk::new(&[("a.txt", "a\n")]);
    let file = desk.directory.join("a.txt");
    desk.motor.run(&["act", "--on", file.to_str().unwrap(), "x"]).refused(2, &["is not a directory", "--file"]);
    desk.motor.run(&["act", "--on", "/nonexistent", "x"]).refused(2, &["cannot work on"]);
    let home = desk.motor.home().to_str().unwrap().to_owned();
    desk.motor.run(&["act", "--on", &home, "x"]).refused(2, &["lie in one another"]);
    let run = desk.run(&["true"]);
    desk.motor.refuses(&["land", &run], 1, "illegal_state");
    desk.motor.refuses(&["undo", &run], 1, "illegal_state");
    desk.motor.refuses(&["diff", &run, "nowhere"], 1, "not_found");
    let on = desk.directory.to_str().unwrap().to_owned() + ":ro";
    let task = format!("{NEXT}echo x > a.txt; cat a.txt{NEXT}");
    desk.motor.run(&["act", "--on", &on, &task]).succeeded();
    assert_eq!(desk.read("a.txt"), "a\n");
}
