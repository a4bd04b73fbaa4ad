//! Artifacts of workspaces that guests have filled: links, special files, secrets, too much, and again after a crash.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use base::{CredentialName, Secret};

use super::*;
use crate::api::FileInput;
use crate::workspace::prepare;

const SECRET: &str = "s3cr3t-canary-7f0e";

/// A run in a home with the input files `given.csv` and `in/given.csv`.
struct Place {
    home: Home,
    run: RunId,
    limits: Limits,
    _directory: tempfile::TempDir,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let home = Home::at(directory.path().join("home"));
        home.create().unwrap();
        let run = RunId::parse("run_1").unwrap();
        let source = directory.path().join("given.csv");
        fs::write(&source, "1,2\n").unwrap();
        let files = [None, Some("in/given.csv".to_owned())].map(|name| FileInput { path: source.clone(), name });
        let limits = Limits { workspace_bytes: 10_000, workspace_files: 20, ..Limits::default() };
        prepare(&home.workspace(&run), None, &files, &limits).unwrap();
        Self { home, run, limits, _directory: directory }
    }

    fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.home.workspace(&self.run).join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    async fn collect(&self) -> Result<Vec<Artifact>, Refusal> {
        let known = vec![(CredentialName::parse("the-token-of-the-test").unwrap(), Secret::new(SECRET.to_owned()))];
        collect(&self.home, &self.run, Arc::new(Scrubber::new(known)), &self.limits, &[]).await
    }

    /// The files that exist, after a check that they match the list.
    async fn collected(&self) -> BTreeMap<String, String> {
        let listed = self.collect().await.unwrap();
        let directory = self.home.artifacts(&self.run);
        let there = if directory.exists() { files(&directory) } else { BTreeMap::new() };
        let described = there.iter().map(|(path, content)| Artifact {
            path: path.clone(),
            bytes: content.len() as u64,
            hash: ContentHash::of(content.as_bytes()),
        });
        assert_eq!(listed, described.collect::<Vec<_>>());
        assert!(!self.home.run(&self.run).join(STAGE).exists());
        there
    }
}

fn files(directory: &Path) -> BTreeMap<String, String> {
    let found = receipts::tree::sums(directory, BOUNDS, Odd::Refused, |_| false).unwrap();
    found.into_keys().map(|path| (path.clone(), fs::read_to_string(directory.join(path)).unwrap())).collect()
}

const BOUNDS: receipts::tree::TreeLimits = receipts::tree::TreeLimits { entries: 1_000, bytes: 1 << 20 };

fn expected(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(path, content)| ((*path).to_owned(), (*content).to_owned())).collect()
}

#[tokio::test]
async fn what_is_new_or_changed_was_produced_and_what_was_given_was_not() {
    let place = Place::new();
    assert_eq!(place.collected().await, expected(&[]));
    assert!(!place.home.artifacts(&place.run).exists());
    place.write("out/total.txt", "61.5\n");
    place.write("in/given.csv", "1,3\n");
    place.write(".motor-output/1.txt", "long");
    place.write("sub/.motor-output/kept", "mine");
    let produced = [("in/given.csv", "1,3\n"), ("out/total.txt", "61.5\n"), ("sub/.motor-output/kept", "mine")];
    assert_eq!(place.collected().await, expected(&produced));
    for (path, mode) in [("", 0o700), ("out", 0o700), ("out/total.txt", 0o600)] {
        let metadata = fs::metadata(place.home.artifacts(&place.run).join(path)).unwrap();
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{path}");
    }
}

#[tokio::test]
async fn collecting_again_gives_what_is_there_now() {
    let place = Place::new();
    place.write("a", "1");
    let first = place.collected().await;
    assert_eq!(place.collected().await, first);
    // Leftovers of a crash: a partial copy, and a file unknown to the run.
    fs::create_dir_all(place.home.run(&place.run).join(STAGE).join("x")).unwrap();
    fs::write(place.home.artifacts(&place.run).join("stale"), "").unwrap();
    place.write("a", "2");
    assert_eq!(place.collected().await, expected(&[("a", "2")]));
    fs::remove_file(place.home.workspace(&place.run).join("a")).unwrap();
    assert_eq!(place.collected().await, expected(&[]));
    assert!(!place.home.artifacts(&place.run).exists());
}

#[tokio::test]
async fn nothing_outside_and_nothing_but_files_is_taken() {
    let place = Place::new();
    let workspace = place.home.workspace(&place.run);
    symlink(place.home.path(), workspace.join("home")).unwrap();
    symlink("/etc/passwd", workspace.join("passwd")).unwrap();
    let pipe = rustix::fs::mknodat(
        rustix::fs::CWD,
        workspace.join("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    );
    pipe.unwrap();
    place.write("a", "1");
    assert_eq!(place.collected().await, expected(&[("a", "1")]));
    // An input file replaced by a link is not an input file, and is not copied.
    fs::remove_file(workspace.join("given.csv")).unwrap();
    symlink("/etc/passwd", workspace.join("given.csv")).unwrap();
    assert_eq!(place.collected().await, expected(&[("a", "1")]));
}

#[tokio::test]
async fn secrets_are_taken_out_wherever_they_stand() {
    let place = Place::new();
    place.write("a.txt", format!("key={SECRET}\n"));
    // Across the border of two pieces.
    let filler = "x".repeat((64 << 10) - 5);
    let place = Place { limits: Limits { workspace_bytes: 1 << 20, ..place.limits }, ..place };
    place.write("b.txt", format!("{filler}{SECRET}{filler}"));
    let produced = place.collected().await;
    assert_eq!(produced["a.txt"], "key=<credential:the-token-of-the-test>\n");
    assert_eq!(produced["b.txt"], format!("{filler}<credential:the-token-of-the-test>{filler}"));
    // In a file that is not text.
    place.write("c.bin", [&[0xff, 0, 0xfe][..], SECRET.as_bytes(), &[0xff]].concat());
    place.collect().await.unwrap();
    let kept = fs::read(place.home.artifacts(&place.run).join("c.bin")).unwrap();
    assert_eq!(kept, [&[0xff, 0, 0xfe][..], b"<credential:the-token-of-the-test>", &[0xff]].concat());
}

#[tokio::test]
async fn too_much_is_refused_and_leaves_no_half() {
    let place = Place::new();
    place.write("a", "x".repeat(10_000 - 8));
    assert_eq!(place.collected().await.len(), 1);
    place.write("b", "x");
    assert!(place.collect().await.unwrap_err().reason.contains("workspace_bytes"));
    assert!(!place.home.run(&place.run).join(STAGE).exists());
    fs::remove_file(place.home.workspace(&place.run).join("b")).unwrap();
    // A short secret has a long placeholder: a file can grow.
    place.write("a", SECRET.repeat(500));
    assert_eq!(place.collect().await.unwrap_err().code, RefusalCode::Failed);
    place.write("a", SECRET.repeat(10));
    assert_eq!(place.collected().await["a"], "<credential:the-token-of-the-test>".repeat(10));
    for number in 0..20 {
        place.write(&format!("many/{number}"), "");
    }
    assert!(place.collect().await.unwrap_err().reason.contains("more than 21 files"));
}

#[tokio::test]
async fn without_a_baseline_everything_was_produced() {
    let place = Place::new();
    for broken in [None, Some(""), Some("{"), Some("{\"files\": {\"given.csv\": \"sha256:1\"}}")] {
        let baseline = place.home.run(&place.run).join(BASELINE);
        fs::remove_file(&baseline).ok();
        if let Some(text) = broken {
            fs::write(&baseline, text).unwrap();
        }
        let given = [("given.csv", "1,2\n"), ("in/given.csv", "1,2\n")];
        assert_eq!(place.collected().await, expected(&given), "{broken:?}");
    }
}
