//! The owner changes files while a landing is under way, at each of its steps: nothing that they wrote is lost.

use std::io::Write as _;

use super::*;

/// The text that the owner writes.
const OWN: &str = "the owner's own words";

type Act = fn(&Path);

const ACTS: [(&str, Act); 6] = [
    ("saves a changed file by rename", |owner| {
        fs::write(owner.join("draft"), OWN).unwrap();
        fs::rename(owner.join("draft"), owner.join("changed.txt")).unwrap();
    }),
    ("writes into a changed file", |owner| append(&owner.join("changed.txt"))),
    ("writes into a file that is deleted", |owner| append(&owner.join("deleted.txt"))),
    ("makes a file where a new one comes", |owner| append(&owner.join("new.txt"))),
    ("puts a file into a new directory", |owner| {
        if owner.join("made/deep").is_dir() {
            append(&owner.join("made/deep/own.txt"));
        }
    }),
    ("puts a file into a directory that goes", |owner| {
        if owner.join("old/deep").is_dir() {
            append(&owner.join("old/deep/own.txt"));
        }
    }),
];

fn append(path: &Path) {
    if let Ok(mut file) = fs::OpenOptions::new().append(true).create(true).open(path) {
        file.write_all(OWN.as_bytes()).unwrap();
    }
}

/// Whether the words are in a file below a directory.
fn holds(root: &Path) -> bool {
    fs::read_dir(root).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match fs::symlink_metadata(&path).unwrap() {
            found if found.is_dir() => holds(&path),
            found if found.is_file() => String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(OWN),
            _ => false,
        }
    })
}

#[test]
fn whenever_the_owner_writes_it_is_there_afterwards() {
    for (what, act) in ACTS {
        for step in 0.. {
            let desk = every_kind();
            let owner = desk.path("owner");
            let wrote = std::rc::Rc::new(Cell::new(false));
            let (seen, at) = (wrote.clone(), owner.clone());
            let acting = move || {
                act(&at);
                seen.set(holds(&at));
            };
            let steps = Steps { act: Some((Cell::new(step), Box::new(acting))), ..Steps::default() };
            let done = desk.land(desk.plan(), "first", None, &steps);
            let reached = steps.act.as_ref().unwrap().0.get() > usize::MAX / 2;
            if !reached {
                assert!(step > 20, "{what}: only {step} steps");
                break;
            }
            let kept = holds(&owner) || holds(&desk.path("first"));
            assert!(kept || !wrote.get(), "{what} at step {step}: {done:?} {:?}", desk.now());
            if let Err(error) = done {
                assert!(matches!(error, LandError::Changed(_)), "{what} at step {step}: {error:?}");
                assert_eq!(
                    crate::recover(&desk.path("first")).unwrap(),
                    Some(State::RolledBack),
                    "{what} at step {step}"
                );
            }
            assert!(!desk.now().keys().any(|path| path.contains(".motor-landing")), "{what} at step {step}");
        }
    }
}
