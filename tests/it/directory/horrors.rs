//! Things that agents with a shell have done to people's files. Here they happen to the run's layer.

use std::os::unix::fs::symlink;

use super::*;

/// A script, and the changes that the review of its run has to show.
struct Horror {
    name: &'static str,
    script: &'static str,
    shows: &'static [(&'static str, &'static str)],
}

const HORRORS: [Horror; 11] = [
    Horror {
        name: "everything is deleted",
        script: "rm -rf /workspace/* /workspace/.git; ls -A",
        shows: &[("src/main.rs", "deleted"), ("README.md", "deleted"), ("src", "deleted")],
    },
    Horror {
        name: "find deletes",
        script: "find . -type f -delete; find . -type f | wc -l",
        shows: &[("src/main.rs", "deleted"), ("docs/guide.md", "deleted")],
    },
    Horror {
        name: "a file is moved onto another",
        script: "mv src/main.rs README.md; cat README.md",
        shows: &[("README.md", "changed"), ("src/main.rs", "deleted")],
    },
    Horror {
        name: "files are truncated",
        script: "for f in README.md src/main.rs docs/guide.md; do : > $f; done; wc -c README.md",
        shows: &[("README.md", "changed"), ("src/main.rs", "changed"), ("docs/guide.md", "changed")],
    },
    Horror {
        name: "links are made and written through",
        script: "ln -s /etc/passwd p; ln README.md hard; echo x >> outside/secret.txt; echo x > link; ls",
        shows: &[("README.md", "changed")],
    },
    Horror {
        name: "twins in case and in Unicode",
        script: "echo x > readme.md; echo x > README.MD; printf x > $'caf\\u0065\\u0301.txt'; ls",
        shows: &[("readme.md", "created"), ("README.MD", "created")],
    },
    Horror {
        name: "the repository is replaced",
        script: "mkdir evil; echo x > evil/config; rm -rf .git; mv evil .git; echo '#!/bin/sh' > .git/hooks; ls -A .git",
        shows: &[(".git/HEAD", "deleted"), (".git/config", "created")],
    },
    Horror {
        name: "the watched directory is flooded",
        script: "mkdir -p dist; for i in $(seq 1 300); do echo $i > dist/out.js; echo $i > dist/$i; done; ls dist | wc -l",
        shows: &[("dist/out.js", "created"), ("dist/300", "created")],
    },
    Horror {
        name: "a directory is renamed and another put in its place",
        script: "mv src old && mkdir src && echo evil > src/main.rs; cat old/main.rs",
        shows: &[("src/main.rs", "changed"), ("old/main.rs", "created")],
    },
    Horror {
        name: "a file becomes a directory, and a directory a file",
        script: "rm README.md && mkdir README.md && echo x > README.md/x; rm -r docs && echo x > docs",
        shows: &[("README.md", "changed"), ("README.md/x", "created"), ("docs", "changed")],
    },
    Horror {
        name: "paths lead up",
        script: "echo x > ../../evil; echo x > /evil; cp README.md ../README.md; echo y >> src/../README.md; ls",
        shows: &[("README.md", "changed")],
    },
];

#[test]
fn whatever_a_run_does_the_directory_stays_as_it_was() {
    let files = [
        ("README.md", "# Project\n"),
        ("src/main.rs", "fn main() {}\n"),
        ("docs/guide.md", "guide\n"),
        (".git/HEAD", "ref: refs/heads/main\n"),
        (".git/hooks/pre-commit.sample", "#!/bin/sh\n"),
    ];
    let desk = Desk::new(&files);
    let outside = desk.motor.directory().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), "secret").unwrap();
    symlink("../outside", desk.directory.join("outside")).unwrap();
    symlink("README.md", desk.directory.join("link")).unwrap();
    let before = (desk.now(), listing(&outside));
    for Horror { name, script, shows } in HORRORS {
        let run = desk.run(&[script]);
        let said = desk.output(&run, 0);
        assert!((desk.now(), listing(&outside)) == before, "{name}: {said}");
        let changes = desk.changes(&run);
        for (path, change) in shows {
            assert_eq!(changes.get(*path).map(String::as_str), Some(*change), "{name}: {path}: {changes:#?}\n{said}");
        }
        assert!(!changes.contains_key("p") && !changes.contains_key("hard"), "{name}: {changes:#?}");
    }
}

#[test]
fn a_landing_of_a_horror_asks_with_the_deletions_first_and_spares_what_was_not_seen() {
    let files =
        [("a.txt", "a"), ("dir/b.txt", "b"), (".env", "SECRET=1"), (".git/HEAD", "ref"), ("dir/.env", "SECRET=2")];
    let desk = Desk::new(&files);
    let run = desk.run(&["rm -rf /workspace/* /workspace/.[a-z]*; echo new > new.txt"]);
    let request = json!({ "paths": [], "skipConflicts": false });
    let plans = format!("/v1/tasks/{run}/landings/plans");
    let serving = desk.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let (status, plan) = desk.motor.ask(&plans, Some(&request), &[]).unwrap();
    assert_eq!(status, 200, "{plan}");
    let paths = plan["paths"].as_array().unwrap();
    let deletes = paths.iter().take_while(|path| path["change"] == "deleted").count();
    assert!(deletes >= 3 && paths[deletes..].iter().all(|path| path["change"] != "deleted"), "{plan:#}");
    let refused = paths.iter().find(|path| path["path"] == ".git/HEAD").unwrap();
    assert_eq!(refused["outcome"], "refused", "{plan:#}");
    desk.motor.stdout(&["land", &run]);
    let kept: Vec<_> = desk.now().into_keys().collect();
    assert_eq!(kept, [".env", ".git", ".git/HEAD", "dir", "dir/.env", "new.txt"]);
}

#[test]
fn secrets_in_the_tree_are_not_seen_unless_they_are_named() {
    let files = [
        ("a.txt", "a"),
        (".env", "TOKEN=hunter2"),
        ("keys/id_ed25519", "private"),
        ("notes.log", "l"),
        (".gitignore", "*.log\n"),
    ];
    let desk = Desk::new(&files);
    let look = "ls -A . keys; cat .env keys/id_ed25519; grep -r hunter2 . ; find . -type f";
    let run = desk.run(&[look]);
    let said = desk.output(&run, 0);
    assert!(!said.contains("hunter2") && !said.contains("private") && said.contains("a.txt"), "{said}");
    let page = desk.motor.stdout(&["diff", &run]);
    assert!(page.contains(".env") && page.contains("id_ed25519"), "{page}");
    let named = desk.directory.join(".env");
    let run = desk.run_with(&[look], &["--show", named.to_str().unwrap()]);
    let said = desk.output(&run, 0);
    assert!(said.contains("hunter2") && !said.contains("private"), "{said}");
}

#[test]
fn a_hundred_thousand_files_are_refused_by_the_quota_and_reach_nothing() {
    let desk = Desk::new(&[("a.txt", "a")]);
    let before = desk.now();
    let run = desk.run(&["i=0; while [ $i -lt 100000 ]; do : > f$i; i=$((i+1)); done", "ls | wc -l"]);
    assert_eq!(desk.now(), before);
    let first = desk.motor.json(&["task", "status", &run])["steps"][0]["toolCalls"][0]["result"].clone();
    assert_eq!(first["ok"], false, "{first}");
    assert!(desk.changes(&run).len() > 1000);
}
