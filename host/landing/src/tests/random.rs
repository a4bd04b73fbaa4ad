//! Random changes by a run and by the owner: nothing that the owner wrote is ever lost.

use proptest::prelude::*;

use super::*;

fn entries() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop_oneof![Just("a"), Just("b"), Just("c")];
    let path = prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"));
    let entry = (path, 0_u8..8, "[xyz\n]{0,6}").prop_map(|(path, kind, text)| match kind {
        0..=5 => (path, text),
        6 => (format!("{path}/"), String::new()),
        _ => (format!("{path} -> a"), String::new()),
    });
    prop::collection::vec(entry, 0..10)
}

/// The entries that fit together: none is a directory for one and a file for another.
fn fitting(entries: &[(String, String)]) -> Vec<(&str, &str)> {
    let mut kept: Vec<(&str, &str)> = Vec::new();
    let bare = |path: &str| path.split(" -> ").next().unwrap().trim_end_matches('/').to_owned();
    for (path, text) in entries {
        let within = |one: &str, other: &str| one == other || one.starts_with(&format!("{other}/"));
        let clash = |known: &str| within(&bare(path), &bare(known)) || within(&bare(known), &bare(path));
        if !kept.iter().any(|(known, _)| clash(known)) {
            kept.push((path, text));
        }
    }
    kept
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_landing_is_all_or_nothing_and_loses_nothing(
        owner in entries(), wanted in entries(), later in entries(), between in entries()
    ) {
        let desk = Desk::new(&fitting(&owner), &fitting(&wanted));
        // The owner writes files before the plan, and others between the plan and the landing.
        let write = |files: &[(String, String)], mark: &str| {
            for (path, _) in files.iter().filter(|(path, _)| !path.contains(" -> ")) {
                let at = desk.path("owner").join(path.trim_end_matches('/'));
                if at.parent().is_some_and(Path::is_dir) && !at.is_dir() && !at.is_symlink() {
                    fs::write(at, format!("{mark} {path}")).unwrap();
                }
            }
        };
        write(&later[..later.len().min(2)], "later");
        let plan = desk.plan();
        let mut clean = desk.edits();
        let blocked: Vec<String> = plan.conflicts().map(|entry| entry.edit.path.clone()).collect();
        // Conflicts are left out, with every path that they lie in or that lies in them.
        let touches = |path: &str, other: &str| path == other || path.starts_with(&format!("{other}/")) || other.starts_with(&format!("{path}/"));
        clean.retain(|edit| !blocked.iter().any(|path| touches(path, &edit.path)));
        let plan = desk.plan_of(clean);
        prop_assume!(plan.conflicts().next().is_none());
        write(&between[..between.len().min(1)], "between");
        let before = desk.now();
        match desk.land(plan, "first", None, &Steps::default()) {
            Ok(_) => {
                for (path, text) in &before {
                    let mine = text.contains("between") || (text.contains("later") && !blocked.is_empty() && blocked.contains(path));
                    prop_assert!(!mine || desk.now().get(path) == Some(text), "{path} {text} {:?}", desk.now());
                }
                let (_, edits) = undo(&desk.path("first")).unwrap();
                let back = desk.plan_of(edits);
                prop_assert!(back.conflicts().next().is_none(), "{:?}", desk.verdicts(&back));
                desk.land(back, "second", Some("first"), &Steps::default()).unwrap();
                prop_assert_eq!(desk.now(), before);
            }
            Err(LandError::Changed(_)) => prop_assert_eq!(desk.now(), before),
            Err(other) => prop_assert!(false, "{other:?}"),
        }
    }
}
