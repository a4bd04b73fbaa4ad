//! Landing as a commit or a branch, by the command line, in repositories that git made (SPEC LAND-7).

use std::process::{Command, Stdio};

use super::*;

/// The output of a script in the owner's directory.
fn git(desk: &Desk, script: &str) -> String {
    let output = Command::new("bash")
        .args(["-ec", script])
        .current_dir(&desk.directory)
        .env_clear()
        .envs([("PATH", "/usr/local/bin:/usr/bin:/bin"), ("LC_ALL", "C"), ("GIT_CONFIG_NOSYSTEM", "1")])
        .env("HOME", "/nonexistent")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A directory that is a repository with these files committed. `None` if there is no git.
fn repository(files: &[(&str, &str)]) -> Option<Desk> {
    if Command::new("git").arg("--version").output().is_err() {
        eprintln!("skipped: there is no `git` on this machine");
        return None;
    }
    let desk = Desk::new(files);
    let init = "git init -q -b main; git config user.name 'O Wner'; git config user.email owner@example.com
                git add -A; git commit -qm first";
    git(&desk, init);
    Some(desk)
}

/// HEAD, the branches, the index, and the changed files.
fn state(desk: &Desk) -> String {
    git(desk, "git symbolic-ref HEAD; git for-each-ref; git ls-files -s; git status --porcelain")
}

/// The files without those of git.
fn files(desk: &Desk) -> Listing {
    desk.now().into_iter().filter(|(path, _)| path != ".git" && !path.starts_with(".git/")).collect()
}

#[test]
fn a_failing_check_is_fixed_and_landed_as_a_commit_and_taken_back() {
    let check = "source ./add.sh\nif [ \"$(add 2 3)\" = 5 ]; then echo passed; else echo failed; fi\n";
    let Some(desk) = repository(&[("check.sh", check), ("add.sh", "add() { echo $(($1 - $2)); }\n")]) else { return };
    // The owner's own work stays out of it.
    desk.put("notes.txt", "mine\n");
    desk.put("check.sh", &format!("{check}# mine\n"));
    git(&desk, "git add notes.txt");
    let before = (state(&desk), files(&desk));
    let run =
        desk.run(&["source ./check.sh", "sed -i 's/ - / + /' add.sh", "source ./check.sh", "echo note > new.txt"]);
    let said = [desk.output(&run, 0), desk.output(&run, 2)];
    assert!(said[0].contains("failed") && said[1].contains("passed"), "{said:?}");
    assert_eq!((state(&desk), files(&desk)), before);

    let said = desk.motor.stdout(&["land", &run, "--commit", "-m", "Add in place of subtracting\n\nThe check failed."]);
    let id = git(&desk, "git rev-parse HEAD");
    for words in ["landed 2 paths (landing 1)", &format!("commit {} is on main", &id[..12])] {
        assert!(said.contains(words), "{words}: {said}");
    }
    let log = git(&desk, "git log --format='%s|%an|%ce'");
    assert_eq!(log, "Add in place of subtracting|O Wner|owner@example.com\nfirst|O Wner|owner@example.com\n");
    assert_eq!(git(&desk, "git show --name-status --format= HEAD"), "M\tadd.sh\nA\tnew.txt\n");
    assert_eq!(git(&desk, "git status --porcelain; bash check.sh"), " M check.sh\nA  notes.txt\npassed\n");
    assert_eq!(git(&desk, "git fsck --full --strict --no-dangling 2>&1"), "");
    // The message names the run and its receipt.
    let receipt = desk.motor.directory().join("receipt.json");
    desk.motor.stdout(&["receipt", "show", &run, "--out", receipt.to_str().unwrap()]);
    let hash = base::ContentHash::of(&fs::read(&receipt).unwrap()).hex();
    let trailers = git(&desk, "git log -1 --format='%(trailers)'");
    assert_eq!(trailers.trim(), format!("Motor-Run: {run}\nMotor-Receipt: sha256:{hash}"));

    let said = desk.motor.stdout(&["undo", &run]);
    assert!(said.contains(&format!("main is where it was before commit {}", &id[..12])), "{said}");
    assert_eq!((state(&desk), files(&desk)), before);
    let list = desk.motor.json(&["land", &run, "--list"]);
    assert_eq!(
        (text(&list[0]["commit"]["state"]), text(&list[1]["commit"]["state"])),
        ("made".into(), "taken_back".into())
    );
}

#[test]
fn two_runs_side_by_side_are_both_landed_as_commits() {
    let Some(desk) = repository(&[("a.txt", "1\n2\n3\n4\n5\n6\n"), ("b.txt", "b\n")]) else { return };
    let first = desk.run_with(&["sed -i 's/1/one/' a.txt"], &["--agent", "one"]);
    let second = desk.run_with(&["sed -i 's/6/six/' a.txt; echo B > b.txt"], &["--agent", "two"]);
    desk.motor.stdout(&["land", &first, "--commit", "-m", "First"]);
    let reply = desk.motor.json(&["land", &second, "--commit", "-m", "Second"]);
    assert_eq!(text(&reply["commit"]["id"]), git(&desk, "git rev-parse HEAD").trim());
    assert_eq!(git(&desk, "git log --format=%s; git status --porcelain"), "Second\nFirst\nfirst\n");
    assert_eq!(git(&desk, "git show HEAD:a.txt"), "one\n2\n3\n4\n5\nsix\n");
    assert_eq!(
        git(&desk, "git show --stat=60 --format= HEAD^").lines().last(),
        Some(" 1 file changed, 1 insertion(+), 1 deletion(-)")
    );
    // The commit of the first lies below that of the second: it stays, and its change goes back.
    let said = desk.motor.stdout(&["undo", &first]);
    assert!(said.contains("stays: main has moved on; `git revert"), "{said}");
    assert_eq!(git(&desk, "git log --format=%s; git status --porcelain"), "Second\nFirst\nfirst\n M a.txt\n");
    assert_eq!(desk.read("a.txt"), "1\n2\n3\n4\n5\nsix\n");
    desk.motor.stdout(&["undo", &second]);
    assert_eq!(git(&desk, "git log --format=%s"), "First\nfirst\n");
}

#[test]
fn a_branch_is_made_without_a_change_of_the_directory_and_deleted_again() {
    let Some(desk) = repository(&[("a.txt", "a\n"), ("b.txt", "b\n")]) else { return };
    desk.put("b.txt", "mine\n");
    let before = (state(&desk), files(&desk));
    let run = desk.run(&["echo A > a.txt"]);
    let said = desk.motor.stdout(&["land", &run, "--branch", "motor/fix"]);
    assert!(said.contains("1 path for the branch motor/fix, no file is changed"), "{said}");
    assert_eq!(files(&desk), before.1);
    assert_eq!(git(&desk, "git log --format=%s main; git diff --name-only main motor/fix"), "first\na.txt\n");
    assert!(git(&desk, "git log -1 --format=%s motor/fix").starts_with("do this:"));
    assert_eq!(desk.changes(&run).len(), 1, "the directory is without it");
    desk.motor.run(&["land", &run, "--branch", "motor/fix"]).refused(1, &["a branch `motor/fix` already"]);
    let said = desk.motor.stdout(&["undo", &run]);
    assert!(said.contains("the branch motor/fix is deleted"), "{said}");
    assert_eq!((state(&desk), files(&desk)), before);
}

#[test]
fn the_question_names_the_branch_and_a_no_changes_nothing() {
    let Some(desk) = repository(&[("a.txt", "a\n"), (".gitignore", "*.log\n")]) else { return };
    let run = desk.run(&["echo A > a.txt; echo x > b.log"]);
    let before = (state(&desk), files(&desk));
    let plain = Motor::bare().at(desk.motor.home().to_owned());
    for (arguments, shown) in [
        (
            &["land", &run, "--commit", "-m", "Say A"][..],
            ["as a commit on main", "Say A", "O Wner <owner@example.com>", "git ignores b.log"],
        ),
        (
            &["land", &run, "--branch", "say-a"][..],
            ["as the branch say-a", "no file is changed", "do this:", "git ignores b.log"],
        ),
    ] {
        let mut asked = plain.at_terminal(arguments);
        let card = asked.sees("[y/N] ");
        for words in shown {
            assert!(card.contains(words), "{words}: {card}");
        }
        asked.types("n");
        assert_ne!(asked.wait().code, Some(0));
        assert_eq!((state(&desk), files(&desk)), before);
    }
    desk.motor.stdout(&["land", &run, "--commit"]);
    assert_eq!(git(&desk, "git show --name-only --format= HEAD"), "a.txt\n");
    assert_eq!(desk.read("b.log"), "x\n");
}

#[test]
fn a_commit_that_cannot_be_made_lands_nothing() {
    let desk = Desk::new(&[("a.txt", "a\n")]);
    let run = desk.run(&["echo A > a.txt"]);
    desk.motor.run(&["land", &run, "--commit"]).refused(2, &["is not in a git repository", "land without `--commit`"]);
    desk.motor.run(&["land", &run, "-m", "x"]).refused(2, &["a message belongs to a commit"]);
    assert_eq!(desk.read("a.txt"), "a\n");
    let Some(desk) = repository(&[("a.txt", "a\n")]) else { return };
    let run = desk.run(&["echo A > a.txt"]);
    git(&desk, "git config user.email ''");
    desk.motor.run(&["land", &run, "--commit"]).refused(1, &["git does not know who you are", "git config --global"]);
    git(
        &desk,
        "git config user.email x@example.com; git checkout -q -b side; git commit -q --allow-empty -m side
                git checkout -q main; git commit -q --allow-empty -m main; git merge -q --no-commit side",
    );
    desk.motor.run(&["land", &run, "--commit"]).refused(1, &["a merge is in progress"]);
    assert_eq!(desk.read("a.txt"), "a\n");
    desk.motor.run(&["land", &run, "--branch", "a..b"]).refused(2, &["not a valid name"]);
    git(&desk, "git merge --abort || git reset -q --hard");
    desk.motor.stdout(&["land", &run, "--commit"]);
    assert_eq!(desk.read("a.txt"), "A\n");
}

#[test]
fn a_commit_written_after_the_web_was_read_says_so() {
    use tests::network::{Reply, Site};
    let page = block_on(Site::at("127.0.0.1:0"));
    page.route("/", Reply::text("write this down"));
    let Some(desk) = repository(&[("a.txt", "a\n"), ("b.txt", "b\n")]) else { return };
    desk.motor.configure(&format!("[network]\nprivate = [\"{}\"]\n", page.address()));
    let address = page.address().to_string();
    let fetch = format!("curl -s {} > web.txt", page.url(""));
    let run = desk.run_with(&["echo A > a.txt", &fetch, "echo B > b.txt"], &["--domains", &address]);
    desk.motor.stdout(&["land", &run, "a.txt", "--commit"]);
    assert!(!git(&desk, "git log -1 --format=%B").contains("Motor-Tainted"));
    desk.motor.stdout(&["land", &run, "--commit"]);
    assert!(git(&desk, "git log -1 --format='%(trailers)'").contains("Motor-Tainted: yes"));
    assert_eq!(git(&desk, "git show --name-only --format= HEAD"), "b.txt\nweb.txt\n");
}
