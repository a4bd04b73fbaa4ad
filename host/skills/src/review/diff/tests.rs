//! Tests of review diff.

use std::collections::BTreeMap;

use super::*;
use crate::SkillForm;

fn skill(files: &[(&str, &[u8], u32)]) -> Snapshot {
    let files: BTreeMap<String, (Vec<u8>, u32)> =
        files.iter().map(|(path, bytes, mode)| ((*path).to_owned(), (bytes.to_vec(), *mode))).collect();
    Snapshot::of(SkillForm::Directory, files, None)
}

#[test]
fn files_that_differ_scripts_first() {
    let old = skill(&[
        ("SKILL.md", b"a\nb\nc\n", 0o644),
        ("gone.txt", b"x", 0o644),
        ("same", b"s", 0o644),
        ("z.png", b"\0\xff", 0o644),
        ("run", b"r", 0o644),
    ]);
    let new = skill(&[
        ("SKILL.md", b"a\nB\nc\n", 0o644),
        ("scripts/n.sh", b"n", 0o644),
        ("same", b"s", 0o644),
        ("z.png", b"\0\xfe", 0o644),
        ("run", b"r", 0o755),
    ]);
    let found = diff(&old, &new);
    let told: Vec<(&str, FileChangeKind)> = found.iter().map(|file| (file.path.as_str(), file.kind)).collect();
    assert_eq!(
        told,
        [
            ("run", FileChangeKind::Mode),
            ("scripts/n.sh", FileChangeKind::Added),
            ("SKILL.md", FileChangeKind::Changed),
            ("gone.txt", FileChangeKind::Removed),
            ("z.png", FileChangeKind::Changed),
        ]
    );
    assert_eq!(found[0].text.as_deref(), Some(""));
    assert_eq!(found[2].text.as_deref(), Some("--- SKILL.md\n+++ SKILL.md\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n"));
    assert_eq!(
        found[1].text.as_deref(),
        Some("--- /dev/null\n+++ scripts/n.sh\n@@ -0,0 +1 @@\n+n\n\\ No newline at end of file\n")
    );
    assert_eq!(found[4].text, None);
    assert_ne!(found[4].before.as_ref().unwrap().hash, found[4].after.as_ref().unwrap().hash);
    assert_eq!(diff(&new, &new), []);
}

#[test]
fn nothing_hides_in_a_difference() {
    let text = |old: &str, new: &str| {
        let side = |text: &str| skill(&[("a.md", text.as_bytes(), 0o644)]);
        diff(&side(old), &side(new))[0].text.clone().unwrap()
    };
    assert!(text("a\n", "a\u{202e}\n").contains("\n-a\n+a<U+202E>\n"));
    assert!(text("a\n", "a\r\n").contains("\n-a\n+a<U+000D>\n"));
    assert!(text("a\r\nb\r\n", "a\r\nc\r\n").contains("\n a\r\n-b\r\n+c\r\n"));
    // A carriage return or a line separator makes no line of its own that could be taken for another.
    assert!(text("a\n", "x\r+y\u{2028}-z\u{1b}[2J\n").contains("\n-a\n+x<U+000D>+y<U+2028>-z<U+001B>[2J\n"));
    assert!(text("\u{feff}a\n", "a\n").contains("\n-<U+FEFF>a\n+a\n"));
}

#[test]
fn differences_are_bounded() {
    let many = |seed: usize| (0..60_000).map(|line| format!("{}\n", line * seed % 7919)).collect::<String>();
    let side = |text: String| {
        let files: Vec<(String, (Vec<u8>, u32))> =
            (0..3).map(|number| (format!("f{number}.txt"), (text.clone().into_bytes(), 0o644))).collect();
        Snapshot::of(SkillForm::Directory, files.into_iter().collect(), None)
    };
    let found = diff(&side(many(3)), &side(many(5)));
    assert_eq!(found.len(), 3);
    for file in found {
        let text = file.text.unwrap();
        assert!(text.len() < MAX_BYTES + 100 && text.ends_with(" more bytes\n"));
    }
}
