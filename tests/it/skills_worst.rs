//! The reviews of real skills with the most to read first, for a person to look at.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::skills_cli::{World, is_fit};

/// Reviews that are printed.
const SHOWN: usize = 20;

/// Directories with a `SKILL.md`.
fn skills_below(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        let entries = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap());
        waiting.extend(entries.filter(|entry| entry.file_type().unwrap().is_dir()).map(|entry| entry.path()));
        if directory.join("SKILL.md").is_file() {
            found.push(directory);
        }
    }
    found.sort();
    found
}

/// `cargo it the_worst_reviews --ignored --nocapture`
#[test]
#[ignore = "prints the 20 worst reviews of real skills at 80 columns, for a person to read"]
fn the_worst_reviews_of_real_skills() {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let mut archives = above.map(|directory| directory.join("shared/corpora/skills.tar.gz"));
    let Some(archive) = archives.find(|path| path.is_file()) else {
        println!("passed over: there is no skills.tar.gz");
        return;
    };
    let world = World::new();
    let corpus = world.motor.directory().join("corpus");
    fs::create_dir(&corpus).unwrap();
    assert!(Command::new("tar").arg("-xzf").arg(&archive).arg("-C").arg(&corpus).status().unwrap().success());
    let directories = skills_below(&corpus);
    for (number, directory) in directories.iter().enumerate() {
        fs::rename(directory, world.skills().join(format!("{number:03}"))).unwrap();
    }
    let serving = world.motor.start(&["serve"]);
    serving.wait_for_words("listening");
    let mut reviewed: Vec<(usize, usize, String)> = Vec::new();
    for number in 0..directories.len() {
        let place = format!("home/{number:03}");
        let ended = world.motor.run(&["skill", "review", &place]);
        if ended.code != Some(0) {
            println!("not reviewed: {place}: {}", ended.stderr.trim());
            continue;
        }
        is_fit(&ended.stdout);
        let first = ended.stdout.split("\nwhat it is\n").next().unwrap_or_default();
        reviewed.push((first.matches(": it ").count(), ended.stdout.lines().count(), ended.stdout));
    }
    reviewed.sort_by_key(|(first, lines, _)| std::cmp::Reverse((*first, *lines)));
    for (first, _, page) in reviewed.iter().take(SHOWN) {
        println!("{}\n{first} lines to read first\n\n{page}", "=".repeat(80));
    }
    println!("{} of {} skills were reviewed", reviewed.len(), directories.len());
    assert!(reviewed.len() >= SHOWN);
}
