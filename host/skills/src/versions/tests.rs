//! A kept version comes back byte for byte, or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::SkillForm;

fn skill(files: &[(&str, &[u8], u32)]) -> Snapshot {
    let files: BTreeMap<String, (Vec<u8>, u32)> =
        files.iter().map(|(path, bytes, mode)| ((*path).to_owned(), (bytes.to_vec(), *mode))).collect();
    Snapshot::of(SkillForm::Directory, files, None)
}

fn pdf() -> Snapshot {
    skill(&[("SKILL.md", b"---\nname: pdf\n---\n", 0o644), ("scripts/run.sh", b"echo", 0o755), ("empty", b"", 0o600)])
}

fn opened() -> (tempfile::TempDir, Versions) {
    let home = tempfile::tempdir().unwrap();
    let versions = Versions::at(home.path().join("versions"));
    (home, versions)
}

fn object(versions: &Versions, bytes: &[u8]) -> PathBuf {
    let hex = ContentHash::of(bytes).hex();
    versions.directory.join("objects").join(&hex[..2]).join(&hex)
}

fn tree(versions: &Versions, hash: ContentHash) -> PathBuf {
    versions.directory.join("trees").join(hash.hex())
}

fn is_damaged(versions: &Versions, hash: ContentHash) -> bool {
    match versions.load(hash) {
        Err(SkillError::Unreadable { reason }) => {
            assert!(!reason.contains('/'), "{reason}");
            reason.ends_with("are damaged")
        }
        _ => false,
    }
}

#[test]
fn a_version_comes_back_as_it_was() {
    let (_home, versions) = opened();
    let pdf = pdf();
    assert!(!versions.has(pdf.hash));
    assert!(matches!(versions.load(pdf.hash), Err(SkillError::Unreadable { reason }) if reason.ends_with("not kept")));
    versions.keep(&pdf).unwrap();
    assert!(versions.has(pdf.hash));
    assert_eq!(versions.load(pdf.hash).unwrap(), pdf);
    // The proposal is not part of it.
    let proposing = Snapshot { proposal: Some(Arc::from(&b"{}"[..])), ..pdf.clone() };
    versions.keep(&proposing).unwrap();
    assert_eq!(versions.load(pdf.hash).unwrap(), pdf);
    // Archives and components keep their form.
    let component =
        Snapshot::of(SkillForm::Component, BTreeMap::from([("pdf.wasm".to_owned(), (vec![0], 0o644))]), None);
    versions.keep(&component).unwrap();
    assert_eq!(versions.load(component.hash).unwrap(), component);
    // The permission bits that were kept last count.
    let executable = skill(&[
        ("SKILL.md", b"---\nname: pdf\n---\n", 0o755),
        ("scripts/run.sh", b"echo", 0o755),
        ("empty", b"", 0o600),
    ]);
    assert_eq!(executable.hash, pdf.hash);
    versions.keep(&executable).unwrap();
    assert_eq!(versions.load(pdf.hash).unwrap().modes, executable.modes);
}

#[test]
fn what_is_there_is_not_written_again_and_is_the_owners_alone() {
    let (_home, versions) = opened();
    let pdf = pdf();
    versions.keep(&pdf).unwrap();
    let inode = |path: &Path| {
        let found = fs::metadata(path).unwrap();
        assert_eq!(found.permissions().mode() & 0o777, 0o600);
        std::os::unix::fs::MetadataExt::ino(&found)
    };
    let files = [object(&versions, b"echo"), object(&versions, b""), tree(&versions, pdf.hash)];
    let before: Vec<_> = files.iter().map(|path| inode(path)).collect();
    versions.keep(&pdf).unwrap();
    versions.keep(&skill(&[("SKILL.md", b"other", 0o644), ("run.sh", b"echo", 0o644)])).unwrap();
    assert_eq!(before, files.iter().map(|path| inode(path)).collect::<Vec<_>>());
    assert_eq!(fs::metadata(&versions.directory).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn a_damaged_object_is_told_and_mended() {
    type Damage = fn(&Path);
    let damages: [(&str, Damage); 8] = [
        ("other bytes", |path| fs::write(path, "evil").unwrap()),
        ("longer", |path| fs::write(path, "echo and more").unwrap()),
        ("shorter", |path| fs::write(path, "").unwrap()),
        ("gone", |path| fs::remove_file(path).unwrap()),
        ("a directory", |path| {
            fs::remove_file(path).unwrap();
            fs::create_dir(path).unwrap();
        }),
        ("a link to the same bytes", |path| {
            fs::rename(path, path.with_extension("real")).unwrap();
            symlink(path.with_extension("real"), path).unwrap();
        }),
        ("a pipe", |path| {
            fs::remove_file(path).unwrap();
            let pipe = rustix::fs::FileType::Fifo;
            rustix::fs::mknodat(rustix::fs::CWD, path, pipe, rustix::fs::Mode::RWXU, 0).unwrap();
        }),
        ("huge", |path| fs::File::create(path).unwrap().set_len(1 << 40).unwrap()),
    ];
    for (what, damage) in damages {
        let (_home, versions) = opened();
        let pdf = pdf();
        versions.keep(&pdf).unwrap();
        let path = object(&versions, b"echo");
        damage(&path);
        assert!(is_damaged(&versions, pdf.hash), "{what}");
        let mended = versions.keep(&pdf);
        if what == "a directory" {
            // A directory that no file can replace is an error, not a version.
            assert!(mended.is_err() && is_damaged(&versions, pdf.hash));
            continue;
        }
        mended.unwrap();
        assert_eq!(versions.load(pdf.hash).unwrap(), pdf, "{what}");
    }
}

#[test]
fn a_hostile_tree_is_refused() {
    let with = |path: &str, bytes: &[u8]| json!({ "path": path, "mode": 0o644, "bytes": bytes.len(), "hash": ContentHash::of(bytes) });
    let of = |files: Value| json!({ "version": 1, "form": "directory", "files": files });
    let text = b"---\nname: pdf\n---\n";
    let good = of(json!([with("SKILL.md", text), with("empty", b""), with("scripts/run.sh", b"echo")]));
    let many: Vec<Value> = (0..100_001).map(|number| with(&format!("f{number}"), b"")).collect();
    let hostile = [
        json!(null),
        json!([]),
        json!({ "version": 2, "form": "directory", "files": [] }),
        json!({ "version": 1, "form": "device", "files": good["files"] }),
        json!({ "version": 1, "form": "directory", "files": good["files"], "more": 1 }),
        of(json!([])),
        of(json!([with("SKILL.md", text)])),
        of(json!([with("SKILL.md", text), with("empty", b""), with("scripts/run.sh", b"echo"), with("evil", b"echo")])),
        of(json!([with("SKILL.md", text), with("empty", b""), with("scripts/run.sh", b"")])),
        of(json!([with("SKILL.md", text), with("empty", b""), with("scripts/../run.sh", b"echo")])),
        of(json!([with("SKILL.md", text), with("empty", b""), with("../run.sh", b"echo")])),
        of(json!([with("SKILL.md", text), with("empty", b""), with("/run.sh", b"echo")])),
        of(json!([with("SKILL.md", text), with("empty", b""), with("scripts\\run.sh", b"echo")])),
        of(json!([with("SKILL.md", text), with("SKILL.md", b"echo"), with("empty", b"")])),
        of(json!([
            with("SKILL.md", text),
            with("empty", b""),
            with("scripts/run.sh", b"echo"),
            with("policy.json", b"")
        ])),
        of(json!([with("SKILL.md", text), with("empty", b""), with("scripts/run.sh", b"never kept")])),
        of(json!([
            with("SKILL.md", text),
            with("empty", b""),
            { "path": "scripts/run.sh", "mode": 0o755, "bytes": 1_u64 << 50, "hash": ContentHash::of(b"echo") },
        ])),
        of(json!(many)),
    ];
    let (_home, versions) = opened();
    let pdf = pdf();
    versions.keep(&pdf).unwrap();
    fs::write(tree(&versions, pdf.hash), good.to_string()).unwrap();
    assert_eq!(versions.load(pdf.hash).unwrap().files.len(), 3, "the twin that has to work");
    for text in hostile {
        fs::write(tree(&versions, pdf.hash), text.to_string()).unwrap();
        assert!(is_damaged(&versions, pdf.hash), "{}", text.to_string().chars().take(300).collect::<String>());
    }
    fs::write(tree(&versions, pdf.hash), b"\xff{").unwrap();
    assert!(is_damaged(&versions, pdf.hash));
    fs::File::create(tree(&versions, pdf.hash)).unwrap().set_len(1 << 40).unwrap();
    assert!(is_damaged(&versions, pdf.hash));
    fs::remove_file(tree(&versions, pdf.hash)).unwrap();
    symlink("/etc/passwd", tree(&versions, pdf.hash)).unwrap();
    assert!(is_damaged(&versions, pdf.hash) && !versions.has(pdf.hash));
    versions.keep(&pdf).unwrap();
    assert_eq!(versions.load(pdf.hash).unwrap(), pdf);
}

#[test]
fn one_version_is_never_another() {
    let (_home, versions) = opened();
    let (old, new) = (pdf(), skill(&[("SKILL.md", b"new", 0o644)]));
    versions.keep(&old).unwrap();
    versions.keep(&new).unwrap();
    fs::copy(tree(&versions, new.hash), tree(&versions, old.hash)).unwrap();
    assert!(is_damaged(&versions, old.hash));
    assert_eq!(versions.load(new.hash).unwrap(), new);
}

#[test]
fn what_a_crash_leaves_does_no_harm() {
    let (_home, versions) = opened();
    let pdf = pdf();
    let path = object(&versions, b"echo");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let draft = format!(".{}.incomplete", path.file_name().unwrap().to_str().unwrap());
    fs::write(path.with_file_name(&draft), "ec").unwrap();
    // Every object and no tree: it is not there.
    versions.keep(&pdf).unwrap();
    assert!(!path.with_file_name(&draft).exists());
    fs::remove_file(tree(&versions, pdf.hash)).unwrap();
    assert!(!versions.has(pdf.hash) && versions.load(pdf.hash).is_err());
    versions.keep(&pdf).unwrap();
    assert_eq!(versions.load(pdf.hash).unwrap(), pdf);
}

#[test]
fn a_snapshot_that_lies_about_its_hashes_is_not_kept() {
    let (_home, versions) = opened();
    let mut lying = pdf();
    lying.files.get_mut("empty").unwrap().bytes = Arc::from(&b"not empty"[..]);
    assert!(versions.keep(&lying).is_err());
    assert!(!versions.has(lying.hash));
}

#[test]
fn many_keep_the_same_at_the_same_time() {
    let (_home, versions) = opened();
    let pdf = pdf();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| versions.clone().keep(&pdf).unwrap());
        }
    });
    assert_eq!(versions.load(pdf.hash).unwrap(), pdf);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]

    // Directories have longer names than files, so that no file has the name of a directory.
    #[test]
    fn any_version_comes_back(files in prop::collection::btree_map("([a-z]{7}/){0,2}[a-z]{1,6}", (prop::collection::vec(any::<u8>(), 0..40), 0_u32..0o1000), 0..6)) {
        let (_home, versions) = opened();
        let mut files = files;
        files.insert("SKILL.md".to_owned(), (b"x".to_vec(), 0o644));
        let snapshot = Snapshot::of(SkillForm::Archive, files, None);
        versions.keep(&snapshot).unwrap();
        prop_assert_eq!(versions.load(snapshot.hash).unwrap(), snapshot);
    }
}
