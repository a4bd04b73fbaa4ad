//! Tests of snapshot.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use base::ContentHash;
use proptest::prelude::*;

use super::*;

mod archives;
mod directories;
mod stamps;

const MANIFEST: &str = "---\nname: pdf\ndescription: Reads PDF.\n---\n# PDF\n";

/// A directory with a `SKILL.md` and these files.
pub(super) fn skill(files: &[(&str, &[u8])]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), [("SKILL.md", MANIFEST.as_bytes())]);
    write(directory.path(), files.iter().copied());
    directory
}

pub(super) fn write<'a>(root: &Path, files: impl IntoIterator<Item = (&'a str, &'a [u8])>) {
    for (path, content) in files {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

pub(super) fn small() -> SkillBounds {
    SkillBounds { file_bytes: 1_000, text_bytes: 3_000, component_bytes: 5_000, entries: 12, total_bytes: 9_000 }
}

#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(read: Result<T, SnapshotError>, reason: &str) {
    assert_eq!(read.map(|_| ()).unwrap_err().to_string(), reason);
}

#[test]
fn a_tree_keeps_the_rules_or_breaks_exactly_one() {
    let long = |bytes: usize| "a".repeat(bytes);
    let deep = |parts: usize| vec!["a"; parts].join("/");
    let rest = "a/b-1.2_c d/é/漢.md";
    for (path, reason) in [
        (rest, None),
        (".hidden", None),
        ("...", None),
        ("a..b", None),
        ("ab:c", None),
        ("a/SKILL.md", None),
        (&long(255), None),
        (&deep(64), None),
        ("", Some("`` is an empty path")),
        ("..", Some("`..` leads out of its place with `.` or `..`")),
        ("../a", Some("`../a` leads out of its place with `.` or `..`")),
        ("a/../b", Some("`a/../b` leads out of its place with `.` or `..`")),
        ("a/./b", Some("`a/./b` leads out of its place with `.` or `..`")),
        ("/etc/passwd", Some("`/etc/passwd` is an absolute path")),
        ("//a", Some("`//a` is an absolute path")),
        ("a//b", Some("`a//b` has an empty part")),
        ("a/", Some("`a/` has an empty part")),
        ("a\\b", Some("`a\\\\b` has a backslash in its name")),
        ("..\\a", Some("`..\\\\a` has a backslash in its name")),
        ("C:/a", Some("`C:/a` begins with the letter of a drive")),
        ("c:a", Some("`c:a` begins with the letter of a drive")),
        ("a\0b", Some("`a\\0b` has a control character in its name")),
        ("a\nb", Some("`a\\nb` has a control character in its name")),
        ("a\u{7f}", Some("`a\\u{7f}` has a control character in its name")),
        ("a\u{85}", Some("`a\\u{85}` has a control character in its name")),
        ("a\u{202e}dm.exe", Some("`a\\u{202e}dm.exe` has a control character in its name")),
        ("skill.md", Some("`SKILL.md` and `skill.md` are the same name on some systems")),
        ("SKILL.md", Some("`SKILL.md` is there twice")),
        ("SKILL.md/a", Some("`SKILL.md` is a file and a directory")),
    ] {
        let read = check_tree(SkillForm::Directory, [("SKILL.md", 1), (path, 1)], &SkillBounds::default());
        assert_eq!(read.map_err(|error| error.to_string()).err().as_deref(), reason, "{path:?}");
    }
    for (path, fault) in [
        (long(256), "has a name of more than 255 bytes"),
        (deep(65), "is nested more than 64 deep"),
        (vec![long(250); 5].join("/"), "is a path of more than 1,024 bytes"),
    ] {
        let read = check_tree(SkillForm::Directory, [("SKILL.md", 1), (path.as_str(), 1)], &SkillBounds::default());
        let shown: String = path.chars().take(200).collect();
        let mark = if path.len() > 200 { "…" } else { "" };
        refused(read, &format!("`{shown}{mark}` {fault}"));
    }
}

#[test]
fn names_that_are_one_somewhere_are_twins_and_others_are_not() {
    for (one, other) in [
        ("a", "A"),
        ("é", "e\u{301}"),
        ("É", "e\u{301}"),
        ("ﬁle", "FILE"),
        ("straße", "STRASSE"),
        ("ς", "Σ"),
        ("\u{212a}", "k"),
        ("ａ", "a"),
        ("①", "1"),
        ("ſ", "S"),
        ("가", "\u{1100}\u{1161}"),
        ("İ", "i\u{307}"),
        ("a\u{200b}b", "ab"),
        ("a\u{ad}b", "AB"),
        ("a\u{fe0f}", "a"),
        ("d/x", "D/y"),
        ("d/é/x", "d/e\u{301}/y"),
        ("d/x", "D"),
    ] {
        let tree = [("SKILL.md", 1), (one, 1), (other, 1)];
        let read = check_tree(SkillForm::Directory, tree, &SkillBounds::default());
        assert!(matches!(read, Err(SnapshotError::Twins { .. })), "{one} {other}: {read:?}");
    }
    for (one, other) in
        [("a", "b"), ("é", "e"), ("d/x", "d/y"), ("d/a", "e/A"), ("α", "a"), ("а", "a"), ("a-b", "a_b"), ("x", "x/..x")]
    {
        let tree = [("SKILL.md", 1), (one, 1), (other, 1)];
        let read = check_tree(SkillForm::Directory, tree, &SkillBounds::default());
        let is_both = other.starts_with(&format!("{one}/"));
        assert_eq!(read.is_ok(), !is_both, "{one} {other}");
    }
}

#[test]
fn sizes_and_numbers_are_bounded() {
    let bounds = small();
    let check = |files: &[(&str, u64)]| {
        let files = [("SKILL.md", 1)].into_iter().chain(files.iter().copied());
        check_tree(SkillForm::Directory, files, &bounds).map_err(|error| error.to_string())
    };
    let reason = |text: &str| Err(text.to_owned());
    assert_eq!(check(&[("a", 1_000), ("b", 1_000), ("c", 999), ("d.wasm", 5_000), ("e.WASM", 1_000)]), Ok(()));
    assert_eq!(check(&[("a", 1_001)]), reason("`a` is larger than 1000 bytes"));
    assert_eq!(check(&[("d.wasm", 5_001)]), reason("`d.wasm` is larger than 5000 bytes"));
    assert_eq!(check(&[("a.wasm.txt", 1_001)]), reason("`a.wasm.txt` is larger than 1000 bytes"));
    assert_eq!(
        check(&[("a", 1_000), ("b", 1_000), ("c", 1_000)]),
        reason("its files that are no components are more than 3000 bytes")
    );
    assert_eq!(check(&[("a.wasm", 5_000), ("b.wasm", 4_000)]), reason("its files are more than 9000 bytes"));
    assert_eq!(check(&[("a.wasm", u64::MAX)]), reason("`a.wasm` is larger than 5000 bytes"));
    // Directories count: one file at the bottom of ten makes eleven.
    assert_eq!(check(&[("a/a/a/a/a/a/a/a/a/a/a", 1)]), Ok(()));
    assert_eq!(check(&[("a/a/a/a/a/a/a/a/a/a/a/a", 1)]), reason("it has more than 12 files and directories"));
    let many: Vec<String> = (0..12).map(|n| n.to_string()).collect();
    let many: Vec<(&str, u64)> = many.iter().map(|name| (name.as_str(), 1)).collect();
    assert_eq!(check(&many[..11]), Ok(()));
    assert_eq!(check(&many), reason("it has more than 12 files and directories"));
}

#[test]
fn a_description_is_needed_but_by_a_bare_component() {
    let bounds = SkillBounds::default();
    for form in [SkillForm::Directory, SkillForm::Archive] {
        refused(check_tree(form, [("a/SKILL.md", 1)], &bounds), "it has no `SKILL.md`");
        refused(check_tree(form, [], &bounds), "it has no `SKILL.md`");
        assert!(check_tree(form, [("skill.md", 1)], &bounds).is_ok());
    }
    let read = read_component(*b"\0asm", "pdf.wasm", PLAIN_MODE, &bounds).unwrap();
    assert_eq!(read.files.keys().collect::<Vec<_>>(), ["pdf.wasm"]);
    assert_eq!(read.manifest("pdf.wasm").unwrap().name.as_str(), "pdf");
    refused(
        read_component(*b"", "../pdf.wasm", PLAIN_MODE, &bounds),
        "`../pdf.wasm` leads out of its place with `.` or `..`",
    );
    refused(read_component(vec![0; 5_001], "a.wasm", PLAIN_MODE, &small()), "`a.wasm` is larger than 5000 bytes");
}

#[test]
fn a_proposal_is_apart_and_modes_are_beside() {
    let files = |policy: &str, mode: u32| {
        let content = |text: &str| text.as_bytes().to_vec();
        BTreeMap::from([
            ("SKILL.md".to_owned(), (content(MANIFEST), mode)),
            ("policy.json".to_owned(), (content(policy), 0o600)),
            ("a/policy.json".to_owned(), (content("x"), 0o644)),
        ])
    };
    let one = Snapshot::of(SkillForm::Directory, files("{}", 0o644), None);
    assert_eq!(one.proposal.as_deref(), Some(&b"{}"[..]));
    assert_eq!(one.files.keys().collect::<Vec<_>>(), ["SKILL.md", "a/policy.json"]);
    let other = Snapshot::of(SkillForm::Directory, files("{\"status\":\"approved\"}", 0o644), None);
    assert_eq!((one.hash, one.modes), (other.hash, other.modes));
    let other = Snapshot::of(SkillForm::Directory, files("{}", 0o755), None);
    assert_eq!(one.hash, other.hash);
    assert_ne!(one.modes, other.modes);
    // Only permission bits count.
    let other = Snapshot::of(SkillForm::Directory, files("{}", 0o100_644), None);
    assert_eq!(one.modes, other.modes);
    assert_eq!(one.manifest("pdf").unwrap().body, "# PDF");
    assert_eq!(one.manifest("pdf").unwrap().strict, [] as [&str; 0]);
    let other = Snapshot::of(SkillForm::Archive, files("{}", 0o644), None);
    assert_eq!(other.manifest("pdf.skill").unwrap().strict, [] as [&str; 0]);
    assert_eq!(other.manifest("other.zip").unwrap().strict.len(), 1);
}

#[test]
fn a_plain_file_is_a_skill_by_its_name() {
    for (entry, form) in [
        ("a.zip", Some(SkillForm::Archive)),
        ("a.skill", Some(SkillForm::Archive)),
        ("a.ZIP", Some(SkillForm::Archive)),
        ("a.b.wasm", Some(SkillForm::Component)),
        ("a", None),
        (".zip", None),
        ("zip", None),
        ("a.zip.txt", None),
        ("index.json", None),
    ] {
        assert_eq!(SkillForm::of_file(entry), form, "{entry}");
    }
}

fn trees() -> impl Strategy<Value = BTreeMap<String, Vec<u8>>> {
    // No part of it is a file and a directory.
    prop::collection::btree_map(
        "(d[ab]/){0,3}[ab-]{1,3}|é漢|policy[.]json",
        prop::collection::vec(any::<u8>(), 0..300),
        0..8,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]

    /// The hash is also the one that receipts give a directory.
    #[test]
    fn a_tree_has_one_hash_however_it_lies(mut tree in trees(), around in any::<bool>()) {
        tree.insert("SKILL.md".to_owned(), MANIFEST.as_bytes().to_vec());
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), tree.iter().map(|(path, content)| (path.as_str(), content.as_slice())));
        let one = read(directory.path(), &SkillBounds::default()).unwrap();
        prop_assert_eq!(one.hash, receipts::directory_hash(directory.path()).unwrap());

        let prefix = if around { "pdf/" } else { "" };
        let packed = archives::packed(tree.iter().map(|(path, content)| (format!("{prefix}{path}"), content.as_slice())));
        let other = read_archive(&packed, &SkillBounds::default()).unwrap();
        prop_assert_eq!(one.hash, other.hash);
        prop_assert_eq!(&one.proposal, &other.proposal);
        let contents = |s: &Snapshot| s.files.iter().map(|(path, file)| (path.clone(), file.bytes.clone())).collect::<Vec<_>>();
        prop_assert_eq!(contents(&one), contents(&other));
        for file in one.files.values() {
            prop_assert_eq!(file.hash, ContentHash::of(&file.bytes));
        }
    }
}
