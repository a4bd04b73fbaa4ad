//! Tests of extract.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::*;

const SECRET: &[u8] = b"s3cr3t-value";

fn manifest(name: &str) -> String {
    format!("---\nname: {name}\ndescription: d\n---\nbody\n")
}

fn scrub(bytes: &[u8]) -> Vec<u8> {
    match bytes.windows(SECRET.len()).position(|window| window == SECRET) {
        Some(at) => [&bytes[..at], b"<credential:key>", &bytes[at + SECRET.len()..]].concat(),
        None => bytes.to_vec(),
    }
}

struct Workspace(tempfile::TempDir);

impl Workspace {
    fn of(files: &[(&str, &[u8])]) -> Self {
        let workspace = Self(tempfile::tempdir().unwrap());
        for (path, content) in files {
            workspace.write(path, content);
        }
        workspace
    }

    fn path(&self, path: &str) -> std::path::PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, content: &[u8]) {
        fs::create_dir_all(self.path(path).parent().unwrap()).unwrap();
        fs::write(self.path(path), content).unwrap();
    }

    fn extract(&self, baseline: Option<(&SkillName, &Snapshot)>) -> Vec<Result<ExtractedSkill, ExtractFailure>> {
        let baseline = baseline.map(|(name, snapshot)| Baseline { name, snapshot });
        extract(&Extraction { workspace: self.0.path(), baseline, scrub: &scrub, bounds: SkillBounds::default() })
    }

    /// Compares skills as `name: paths` and failures as `name at path: reason`.
    fn check(&self, expected: &[&str]) {
        let told: Vec<String> = self
            .extract(None)
            .into_iter()
            .map(|found| match found {
                Ok(skill) => {
                    assert!(skill.created && skill.deleted.is_empty());
                    assert_eq!(skill.changed, skill.snapshot.files.keys().cloned().collect::<Vec<_>>());
                    format!("{}: {}", skill.name, skill.changed.join(" "))
                }
                Err(failure) => format!("{} at `{}`: {}", failure.name, failure.path, failure.reason),
            })
            .collect();
        assert_eq!(told, expected);
    }
}

fn snapshot(files: &[(&str, &[u8], u32)]) -> Snapshot {
    let files = files.iter().map(|(path, bytes, mode)| ((*path).to_owned(), (bytes.to_vec(), *mode)));
    Snapshot::of(SkillForm::Directory, files.collect(), None)
}

#[test]
fn new_skills_at_the_top_and_beside() {
    Workspace::of(&[]).check(&[]);
    Workspace::of(&[("scripts/a.sh", b"x"), ("notes.md", b"x"), ("skills/x/README.md", b"x")]).check(&[]);
    Workspace::of(&[
        ("SKILL.md", manifest("mail").as_bytes()),
        ("references/a/b.md", b"x"),
        ("tools.wasm", b"\0asm"),
        ("policy.json", b"{\"status\":\"approved\"}"),
        ("notes.md", b"x"),
        ("scripts/node_modules/a/b.js", b"x"),
        ("scripts/run.log", b"x"),
        (".git/config", b"x"),
        ("skills/pdf/SKILL.md", manifest("pdf").as_bytes()),
        ("skills/pdf/policy.json", b"{}"),
        ("skills/pdf/scripts/a.py", b"x"),
        ("skills/.hidden/SKILL.md", manifest("hidden").as_bytes()),
        ("skills/index.json", b"[]"),
    ])
    .check(&["mail: SKILL.md references/a/b.md tools.wasm", "pdf: SKILL.md scripts/a.py"]);
}

#[test]
fn a_bad_skill_does_not_stop_the_others() {
    let workspace = Workspace::of(&[
        ("SKILL.md", b"no frontmatter"),
        ("skills/a/SKILL.md", b"---\ndescription: d\n---\n"),
        ("skills/b/SKILL.md", manifest("Bad Name").as_bytes()),
        ("skills/c/SKILL.md", manifest("good").as_bytes()),
        ("skills/d/SKILL.md", manifest("good").as_bytes()),
        ("skills/e/SKILL.md", manifest("../../etc").as_bytes()),
        ("skills/f/SKILL.md", b"\xff\xfe"),
        ("skills/g/SKILL.md", manifest("last").as_bytes()),
    ]);
    let found = workspace.extract(None);
    let names: Vec<Result<&str, &str>> = found
        .iter()
        .map(|found| found.as_ref().map(|skill| skill.name.as_str()).map_err(|failure| failure.path.as_str()))
        .collect();
    let expected = [
        Err(""),
        Err("skills/a"),
        Ok("bad-name"),
        Ok("good"),
        Err("skills/d"),
        Err("skills/e"),
        Err("skills/f"),
        Ok("last"),
    ];
    assert_eq!(names, expected);
    assert!(found.iter().filter_map(|found| found.as_ref().err()).all(|failure| !failure.reason.is_empty()));
    assert_eq!(found[4].as_ref().unwrap_err().reason, "the run left another skill that is called `good`");
}

#[test]
fn links_and_special_files_are_refused() {
    let text = manifest("aa");
    let check = |path: &str, make: &dyn Fn(&std::path::Path), why: &str| {
        let workspace = Workspace::of(&[("skills/b/SKILL.md", manifest("bb").as_bytes())]);
        if !path.ends_with("SKILL.md") {
            workspace.write("SKILL.md", text.as_bytes());
        }
        fs::create_dir_all(workspace.path(path).parent().unwrap()).unwrap();
        make(&workspace.path(path));
        let found = workspace.extract(None);
        assert!(found[0].as_ref().is_err_and(|failure| failure.reason.contains(why)), "{path}: {:?}", found[0]);
        // The benign twin beside it is taken.
        assert!(found[1].as_ref().is_ok_and(|skill| skill.name.as_str() == "bb"));
    };
    let link = |to: &'static str| move |path: &std::path::Path| symlink(to, path).unwrap();
    check("scripts/a.sh", &link("/etc/passwd"), "link");
    check("scripts", &link("/etc"), "link");
    check("SKILL.md", &link("/etc/passwd"), "link");
    check("references/deep/x", &link("../../../.."), "link");
    check("tools.wasm", &link("none"), "link");
    let pipe = |path: &std::path::Path| {
        rustix::fs::mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
    };
    check("scripts/pipe", &pipe, "neither a file nor a directory");
    check("SKILL.md", &pipe, "neither a file nor a directory");
    check(
        "scripts/hard",
        &|path| fs::hard_link(path.parent().unwrap().parent().unwrap().join("SKILL.md"), path).unwrap(),
        "hard link",
    );
    // Where a skill has no files, anything may be.
    let workspace = Workspace::of(&[("SKILL.md", text.as_bytes())]);
    symlink("/etc", workspace.path("elsewhere")).unwrap();
    fs::create_dir_all(workspace.path("scripts/node_modules")).unwrap();
    symlink("/etc", workspace.path("scripts/node_modules/bin")).unwrap();
    workspace.check(&["aa: SKILL.md"]);
}

#[test]
fn links_among_the_skills() {
    let outside = Workspace::of(&[("SKILL.md", manifest("outside").as_bytes())]);
    let workspace = Workspace::of(&[("skills/b/SKILL.md", manifest("bb").as_bytes())]);
    symlink(outside.0.path(), workspace.path("skills/a")).unwrap();
    workspace.check(&["a at `skills/a`: it is a link: put the directory itself there", "bb: SKILL.md"]);
    let workspace = Workspace::of(&[("SKILL.md", manifest("bb").as_bytes())]);
    symlink(outside.0.path(), workspace.path("skills")).unwrap();
    workspace.check(&["bb: SKILL.md", "skills at `skills`: it is a link: put the directory itself there"]);
    let workspace = Workspace::of(&[("SKILL.md", manifest("bb").as_bytes()), ("skills", b"a file")]);
    workspace.check(&["bb: SKILL.md"]);
}

#[test]
fn too_much_of_anything() {
    let large = vec![b'x'; (1 << 20) + 1];
    let workspace = Workspace::of(&[
        ("SKILL.md", manifest("aa").as_bytes()),
        ("output.bin", &large),
        ("skills/b/SKILL.md", manifest("bb").as_bytes()),
    ]);
    // The run's own files do not count.
    for number in 0..10_000 {
        fs::write(workspace.path(&format!("file-{number}")), "").unwrap();
    }
    workspace.check(&["aa: SKILL.md", "bb: SKILL.md"]);
    workspace.write("scripts/a.sh", &large);
    assert!(workspace.extract(None)[0].as_ref().unwrap_err().reason.contains("larger than"));
    fs::remove_file(workspace.path("scripts/a.sh")).unwrap();
    for number in 0..10_000 {
        fs::write(workspace.path(&format!("scripts/{number}")), "").unwrap();
    }
    let found = workspace.extract(None);
    assert!(found[0].as_ref().unwrap_err().reason.contains("more than 2000"), "{:?}", found[0]);
    assert!(found[1].is_ok());
}

#[test]
fn no_more_than_so_many_skills() {
    let workspace = Workspace::of(&[]);
    for number in 0..MAX_SKILLS + 10 {
        workspace.write(&format!("skills/s{number:02}/SKILL.md"), manifest(&format!("s{number:02}")).as_bytes());
    }
    let found = workspace.extract(None);
    assert_eq!(found.len(), MAX_SKILLS + 1);
    assert!(found[..MAX_SKILLS].iter().all(Result::is_ok));
    assert_eq!(found[MAX_SKILLS].as_ref().unwrap_err().name, "s16");
}

#[test]
fn names_that_are_one_on_some_systems() {
    let workspace =
        Workspace::of(&[("SKILL.md", manifest("aa").as_bytes()), ("scripts/A.sh", b"x"), ("scripts/a.sh", b"y")]);
    assert!(workspace.extract(None)[0].as_ref().unwrap_err().reason.contains("the same name"));
    let workspace = Workspace::of(&[("SKILL.md", manifest("aa").as_bytes()), ("skill.md", b"y")]);
    assert!(workspace.extract(None)[0].is_err());
    let workspace = Workspace::of(&[("SKILL.md", manifest("aa").as_bytes()), ("scripts/a\\..\\b", b"y")]);
    assert!(workspace.extract(None)[0].as_ref().unwrap_err().reason.contains("backslash"));
}

#[test]
fn secrets_do_not_come_along() {
    let text = [manifest("aa").as_bytes(), SECRET].concat();
    let workspace = Workspace::of(&[("SKILL.md", &text), ("assets/x.bin", b"\0plain")]);
    let found = workspace.extract(None);
    let skill = found[0].as_ref().unwrap();
    let kept = &skill.snapshot.files["SKILL.md"];
    assert!(kept.bytes.ends_with(b"<credential:key>"));
    // The hash is that of the kept bytes.
    assert_eq!(kept.hash, base::ContentHash::of(&kept.bytes));
    workspace.write("assets/x.bin", &[b"\0", SECRET].concat());
    let failure = workspace.extract(None)[0].clone().unwrap_err();
    assert_eq!(failure.reason, "`assets/x.bin` has the value of a credential in it and is no text");
}

#[test]
fn what_was_given_is_compared_three_ways() {
    let name = SkillName::parse("mail").unwrap();
    let text = manifest("mail");
    let given = snapshot(&[
        ("SKILL.md", text.as_bytes(), 0o644),
        ("scripts/a.sh", b"a", 0o755),
        ("scripts/b.sh", b"b", 0o755),
        ("references/r.md", b"r", 0o644),
        ("LICENSE.txt", b"license", 0o600),
        ("lib/x.py", b"x", 0o644),
        ("scripts/node_modules/y.js", b"y", 0o644),
    ]);
    let filled = || {
        let workspace = Workspace::of(&[]);
        for (path, file) in &given.files {
            workspace.write(path, &file.bytes);
        }
        workspace
    };
    // Unchanged, regardless of the run's own files and of those it has no say about.
    let workspace = filled();
    workspace.write("output.txt", b"x");
    workspace.write("lib/x.py", b"changed");
    workspace.write("policy.json", b"{}");
    fs::remove_file(workspace.path("LICENSE.txt")).unwrap();
    assert_eq!(workspace.extract(Some((&name, &given))), []);
    // A file more, one changed, one gone.
    workspace.write("scripts/a.sh", b"other");
    workspace.write("references/new.md", b"n");
    fs::remove_file(workspace.path("scripts/b.sh")).unwrap();
    let found = workspace.extract(Some((&name, &given)));
    let [Ok(skill)] = found.as_slice() else { panic!("{found:?}") };
    assert!(!skill.created);
    assert_eq!(skill.changed, ["references/new.md", "scripts/a.sh"]);
    assert_eq!(skill.deleted, ["scripts/b.sh"]);
    let expected = snapshot(&[
        ("SKILL.md", text.as_bytes(), 0o644),
        ("scripts/a.sh", b"other", 0o755),
        ("references/r.md", b"r", 0o644),
        ("references/new.md", b"n", 0o644),
        ("LICENSE.txt", b"license", 0o600),
        ("lib/x.py", b"x", 0o644),
        ("scripts/node_modules/y.js", b"y", 0o644),
    ]);
    assert_eq!(skill.snapshot, expected);
    // Only a file gone.
    let workspace = filled();
    fs::remove_file(workspace.path("references/r.md")).unwrap();
    let found = workspace.extract(Some((&name, &given)));
    assert!(
        matches!(found.as_slice(), [Ok(skill)] if skill.changed.is_empty() && skill.deleted == ["references/r.md"])
    );
    // All gone: nothing is removed for it.
    assert_eq!(Workspace::of(&[]).extract(Some((&name, &given))), []);
}

#[test]
fn another_name_is_another_skill() {
    let name = SkillName::parse("mail").unwrap();
    let given = snapshot(&[("SKILL.md", manifest("mail").as_bytes(), 0o644), ("lib/x.py", b"x", 0o644)]);
    let workspace = Workspace::of(&[("SKILL.md", manifest("post").as_bytes()), ("lib/x.py", b"x")]);
    let found = workspace.extract(Some((&name, &given)));
    assert!(
        matches!(found.as_slice(), [Ok(skill)] if skill.created && skill.name.as_str() == "post" && skill.changed == ["SKILL.md"])
    );
    // A new skill beside the given one, which is unchanged.
    let workspace =
        Workspace::of(&[("SKILL.md", manifest("mail").as_bytes()), ("skills/x/SKILL.md", manifest("new").as_bytes())]);
    let found = workspace.extract(Some((&name, &given)));
    assert!(matches!(found.as_slice(), [Ok(skill)] if skill.created && skill.name.as_str() == "new"));
}

#[test]
fn permission_bits_are_sensible() {
    let workspace = Workspace::of(&[("SKILL.md", manifest("aa").as_bytes()), ("scripts/a.sh", b"x")]);
    for (bits, expected) in [(0o4777, 0o755), (0o600, 0o644), (0o711, 0o755)] {
        fs::set_permissions(workspace.path("scripts/a.sh"), fs::Permissions::from_mode(bits)).unwrap();
        let found = workspace.extract(None);
        assert_eq!(found[0].as_ref().unwrap().snapshot.files["scripts/a.sh"].mode, expected);
    }
}

#[test]
fn a_workspace_that_is_not_there() {
    let workspace = Workspace::of(&[]);
    let extraction = |path: &std::path::Path| {
        extract(&Extraction { workspace: path, baseline: None, scrub: &scrub, bounds: SkillBounds::default() })
    };
    assert_eq!(extraction(&workspace.path("none")), []);
    workspace.write("file", b"");
    assert!(extraction(&workspace.path("file"))[0].is_err());
}
