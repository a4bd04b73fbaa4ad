//! Commands that only look: a row is a command line, in a repository of a scenario. Output and exit code have to be git's.

use super::support::{has_git, ours, script, text, theirs, words, workspace};

/// One repository with the command lines that are compared in it: a line that begins with `@` names the directory for
/// those that follow.
struct Scenario {
    name: &'static str,
    setup: &'static str,
    commands: &'static str,
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "empty", setup: "init", commands: include_str!("rows/empty.txt") },
    Scenario { name: "changes", setup: include_str!("rows/changes.sh"), commands: include_str!("rows/changes.txt") },
    Scenario { name: "history", setup: include_str!("rows/history.sh"), commands: include_str!("rows/history.txt") },
    Scenario { name: "packed", setup: include_str!("rows/packed.sh"), commands: include_str!("rows/packed.txt") },
    Scenario { name: "clone", setup: include_str!("rows/clone.sh"), commands: include_str!("rows/clone.txt") },
    Scenario { name: "conflict", setup: include_str!("rows/conflict.sh"), commands: include_str!("rows/conflict.txt") },
    Scenario { name: "names", setup: include_str!("rows/names.sh"), commands: include_str!("rows/names.txt") },
    Scenario { name: "ignored", setup: include_str!("rows/ignored.sh"), commands: include_str!("rows/ignored.txt") },
    Scenario { name: "hunks", setup: include_str!("rows/hunks.sh"), commands: include_str!("rows/hunks.txt") },
];

#[test]
fn outputs_are_those_of_git() {
    if !has_git() {
        return;
    }
    let only = std::env::var("GIT_SCENARIO").ok();
    let mut wrong = Vec::new();
    let mut rows = 0;
    for scenario in SCENARIOS.iter().filter(|scenario| only.as_ref().is_none_or(|only| only == scenario.name)) {
        let (_kept, root) = workspace();
        script(&root, scenario.setup);
        let mut directory = root.clone();
        for line in scenario.commands.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if let Some(below) = line.strip_prefix('@') {
                directory = root.join(below.trim());
                continue;
            }
            rows += 1;
            let words = words(line);
            let arguments: Vec<&str> = words.iter().map(String::as_str).collect();
            let (expected, answer) = (theirs(&directory, &arguments), ours(&root, &directory, &arguments));
            if (&expected.stdout, expected.code) != (&answer.stdout, answer.code) {
                wrong.push(format!(
                    "=== {}: git {line}\n--- git ({})\n{}{}--- here ({})\n{}{}",
                    scenario.name,
                    expected.code,
                    text(&expected.stdout),
                    text(&expected.stderr),
                    answer.code,
                    text(&answer.stdout),
                    text(&answer.stderr)
                ));
            }
        }
    }
    eprintln!("{rows} rows");
    assert!(wrong.is_empty(), "{} of {rows} rows differ:\n{}", wrong.len(), wrong.join("\n"));
}
