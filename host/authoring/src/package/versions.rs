//! The published versions of the WIT, each recorded without its comments: the WIT does not change without another version, and a
//! later version of the same minor only adds (`docs/wit.md`, "Versions").
//!
//! Compares texts and not types: a shape that is only written differently counts as another one.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::interfaces;

/// The items of each interface and world, by its name with its kind: `interface log`, `world tool`.
type Items = BTreeMap<String, BTreeSet<String>>;

fn items(text: &str) -> Items {
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    let text = lines.flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ");
    let (mut all, mut name, mut item, mut depth) = (Items::new(), String::new(), String::new(), 0);
    for sign in text.chars() {
        match sign {
            '{' if depth == 0 => name = std::mem::take(&mut item).trim().to_owned(),
            '}' if depth == 1 => item.clear(),
            // The statement that names the package.
            ';' if depth == 0 => item.clear(),
            _ => item.push(sign),
        }
        depth += match sign {
            '{' => 1,
            '}' => -1,
            _ => 0,
        };
        if depth == 1 && matches!(sign, ';' | '}') {
            let whole = std::mem::take(&mut item);
            let whole = whole.trim().trim_end_matches(';');
            if !whole.is_empty() {
                all.entry(name.clone()).or_default().insert(whole.to_owned());
            }
        }
    }
    all
}

/// The differences of a later version that break components of the earlier one.
fn breaks(earlier: &Items, later: &Items) -> Vec<String> {
    let is_exported = |interface: &str| {
        let export = interface.replacen("interface", "export", 1);
        earlier.iter().any(|(name, items)| name.starts_with("world") && items.contains(&export))
    };
    let mut broken = Vec::new();
    for (name, before) in earlier {
        let Some(after) = later.get(name) else {
            broken.push(format!("`{name}` is gone"));
            continue;
        };
        let (is_world, is_exported) = (name.starts_with("world"), is_exported(name));
        for gone in before.difference(after) {
            broken.push(format!("`{name}`: `{gone}` is gone, or has another shape"));
        }
        for new in after.difference(before) {
            if is_exported || (is_world && !new.starts_with("import")) {
                broken.push(format!("`{name}`: `{new}` is new, and a component has to have it"));
            }
        }
    }
    broken
}

fn version(text: &str) -> &str {
    let header = text.lines().next().unwrap();
    header.strip_prefix("package motor:host@").unwrap().trim_end_matches(';')
}

fn record(version: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/fixtures/wit")).join(format!("{version}.wit"))
}

#[test]
fn the_wit_does_not_change_without_another_version() {
    let text = interfaces();
    let version = version(&text);
    let how = format!(
        "raise the version in `wit/` and `HOST_VERSION` to one that is not published, then record it: `motor wit | grep -v '///' \
         >tests/fixtures/wit/{version}.wit` with the new version as its name"
    );
    let recorded = fs::read_to_string(record(version)).unwrap_or_else(|_| panic!("{version} is not recorded: {how}"));
    let (recorded, now) = (items(&recorded), items(&text));
    for name in recorded.keys().chain(now.keys()) {
        assert_eq!(now.get(name), recorded.get(name), "`{name}` is not as it was published in {version}: {how}");
    }
}

#[test]
fn a_later_version_only_adds() {
    let records = fs::read_dir(record("").parent().unwrap()).unwrap();
    let mut texts: Vec<String> = records.map(|entry| fs::read_to_string(entry.unwrap().path()).unwrap()).collect();
    let minor_and_patch = |text: &str| {
        let (minor, patch) = version(text).rsplit_once('.').unwrap();
        (minor.to_owned(), patch.parse::<u64>().unwrap())
    };
    texts.sort_by_key(|text| minor_and_patch(text));
    assert!(texts.len() >= 3, "{}", texts.len());
    for pair in texts.windows(2) {
        let [earlier, later] = pair else { continue };
        assert_ne!(items(earlier), items(later), "{} and {} are the same", version(earlier), version(later));
        if minor_and_patch(earlier).0 == minor_and_patch(later).0 {
            let broken = breaks(&items(earlier), &items(later));
            assert!(broken.is_empty(), "{} breaks components of {}: {broken:#?}", version(later), version(earlier));
        }
    }
}

/// The table of `docs/wit.md`, a row each: a change of one text, and the words of its break.
#[test]
fn additions_and_breaks_are_told_apart() {
    let text = "package motor:host@0.1.0;\ninterface types { record failure { message: string, retryable: bool, } }\n\
                interface log {\n  /// How much.\n  enum level { info, error }\n  write: func(level: level, message: string);\n}\n\
                interface tools { use types.{failure}; call: func(name: string) -> result<string, failure>; }\n\
                world tool { import log; export tools; }\n";
    for (from, to, broken) in [
        ("How much.", "Its {weight}; in words.", None),
        ("{ info, error }", "{\n    info,\n    error\n  }", None),
        ("interface tools", "interface clock { now: func() -> u64; }\ninterface tools", None),
        ("write:", "flush: func();\n  write:", None),
        ("{ import log;", "{ import clock; import log;", None),
        ("world tool", "world other { export clock; }\nworld tool", None),
        ("retryable: bool,", "retryable: bool, code: u8,", Some("another shape")),
        ("info, error", "info, warn, error", Some("another shape")),
        ("level: level,", "level: level, code: u8,", Some("another shape")),
        ("call: func(", "list: func();\n  call: func(", Some("`list: func()` is new, and")),
        ("export tools;", "export tools; export about;", Some("`export about` is new, and")),
        ("import log; ", "", Some("`import log` is gone")),
        ("write: func(level: level, message: string);", "", Some("is gone")),
    ] {
        assert_eq!(text.matches(from).count(), 1, "{from}");
        let found = breaks(&items(text), &items(&text.replace(from, to))).join("\n");
        assert_eq!(found.is_empty(), broken.is_none(), "{to}: {found}");
        assert!(found.contains(broken.unwrap_or_default()), "{to}: {found}");
    }
}
