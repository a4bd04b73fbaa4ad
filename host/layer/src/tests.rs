//! A layer over real directories.

#![expect(clippy::disallowed_methods, reason = "tests wait for the clock that stamps files")]

mod random;

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

use crate::{After, Before, Call, FileKind, KeptOut, Layer, LayerError, OpenMode, Origin, SourceRequest};

/// A directory of the owner and one of a run.
struct Desk {
    root: TempDir,
    began: SystemTime,
}

impl Desk {
    fn new(files: &[(&str, &str)]) -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("run/workspace")).unwrap();
        fs::create_dir(root.path().join("owner")).unwrap();
        for (path, text) in files {
            put(&root.path().join("owner").join(path), text);
        }
        // Everything until now lies well before the beginning.
        Self { root, began: SystemTime::now() + Duration::from_secs(3600) }
    }

    fn owner(&self, path: &str) -> PathBuf {
        self.root.path().join("owner").join(path)
    }

    fn run(&self) -> PathBuf {
        self.root.path().join("run")
    }

    fn request(&self) -> SourceRequest {
        SourceRequest { prefix: String::new(), directory: self.owner(""), writable: true, shown: Vec::new() }
    }

    fn layer(&self) -> Layer {
        Layer::create(&self.run(), vec![self.request()], self.began).unwrap()
    }
}

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn call(layer: &Layer) -> Call {
    layer.call("call", 1)
}

fn read(layer: &Layer, path: &str) -> Result<String, LayerError> {
    let mut text = String::new();
    layer.open_read(path, true)?.file.read_to_string(&mut text).unwrap();
    Ok(text)
}

const REPLACE: OpenMode = OpenMode { create: true, exclusive: false, truncate: true, read: false };
const EDIT: OpenMode = OpenMode { create: false, exclusive: false, truncate: false, read: true };

fn write(layer: &Layer, path: &str, text: &str) -> Result<(), LayerError> {
    layer.open_write(&call(layer), path, REPLACE, true)?.write_all(text.as_bytes()).unwrap();
    Ok(())
}

fn names(layer: &Layer, path: &str) -> Vec<String> {
    let mut names: Vec<_> = layer.list(path).unwrap().into_iter().map(|entry| entry.name).collect();
    names.sort();
    names
}

/// Every path below a directory with its entry: a file's text, a link's target, or nothing.
fn tree(root: &Path) -> Vec<(String, String)> {
    fn walk(root: &Path, at: &Path, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            let kind = fs::symlink_metadata(&path).unwrap().file_type();
            if kind.is_symlink() {
                found.push((name, format!("-> {}", fs::read_link(&path).unwrap().display())));
            } else if kind.is_dir() {
                found.push((name, "/".to_owned()));
                walk(root, &path, found);
            } else {
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

fn changes(layer: &Layer) -> Vec<(String, String)> {
    let shown = |change: crate::Change| {
        let before = match change.before {
            Before::Missing => "missing",
            Before::File { base: Some(_) } => "file",
            Before::File { base: None } => "file unread",
            Before::Directory => "directory",
            Before::Symlink => "link",
        };
        let after = match change.after {
            After::Missing => "missing".to_owned(),
            After::File { content } => fs::read_to_string(content).unwrap(),
            After::Directory => "directory".to_owned(),
        };
        let from = change.from.map(|from| format!(" (was {from})")).unwrap_or_default();
        (change.at, format!("{before} -> {after}{from}"))
    };
    layer.changes(&|_| false).unwrap().0.into_iter().map(shown).collect()
}

#[test]
fn what_a_run_does_is_in_its_layer_and_the_directory_stays_as_it_was() {
    let desk = Desk::new(&[("a.txt", "a"), ("src/b.txt", "b"), ("src/c.txt", "c"), ("old/d.txt", "d")]);
    let before = tree(&desk.owner(""));
    let layer = desk.layer();
    write(&layer, "a.txt", "A").unwrap();
    write(&layer, "new.txt", "n").unwrap();
    layer.unlink(&call(&layer), "src/b.txt").unwrap();
    layer.rename(&call(&layer), "old", "older").unwrap();
    layer.open_write(&call(&layer), "src/c.txt", EDIT, true).unwrap().write_all(b"C").unwrap();
    assert_eq!(names(&layer, ""), ["a.txt", "new.txt", "older", "src"]);
    assert_eq!(names(&layer, "src"), ["c.txt"]);
    assert_eq!(read(&layer, "older/d.txt").unwrap(), "d");
    assert_eq!(tree(&desk.owner("")), before);
    drop(layer);

    // A host that is started again sees the same.
    let layer = Layer::open(&desk.run()).unwrap();
    assert_eq!(read(&layer, "src/c.txt").unwrap(), "C");
    let expected = [
        ("a.txt", "file -> A"),
        ("new.txt", "missing -> n"),
        ("old", "directory -> missing"),
        ("old/d.txt", "file -> missing"),
        ("older", "missing -> directory (was old)"),
        ("older/d.txt", "missing -> d (was old/d.txt)"),
        ("src/b.txt", "file unread -> missing"),
        ("src/c.txt", "file -> C"),
    ];
    let expected = expected.map(|(path, change)| (path.to_owned(), change.to_owned()));
    assert_eq!(changes(&layer), expected);
}

#[test]
fn a_directory_that_the_owner_replaces_is_another_one_for_the_next_call() {
    let desk = Desk::new(&[("d/e/a.txt", "a")]);
    let layer = desk.layer();
    let _first = call(&layer);
    assert_eq!(read(&layer, "d/e/a.txt").unwrap(), "a");
    fs::rename(desk.owner("d"), desk.root.path().join("elsewhere")).unwrap();
    put(&desk.owner("d/e/a.txt"), "another");
    let _second = call(&layer);
    assert_eq!(read(&layer, "d/e/a.txt").unwrap(), "another");
    fs::remove_dir_all(desk.owner("d")).unwrap();
    symlink(desk.root.path().join("elsewhere"), desk.owner("d")).unwrap();
    let _third = call(&layer);
    assert!(matches!(read(&layer, "d/e/a.txt"), Err(LayerError::Escapes)));
}

#[test]
fn a_file_that_is_opened_and_not_changed_is_no_change() {
    let desk = Desk::new(&[("a.txt", "a")]);
    let layer = desk.layer();
    drop(layer.open_write(&call(&layer), "a.txt", EDIT, true).unwrap());
    write(&layer, "a.txt", "a").unwrap();
    assert_eq!(changes(&layer), []);
}

#[test]
fn a_file_that_changes_after_the_beginning_is_noticed_and_never_mixed() {
    let desk = Desk::new(&[("a.txt", "a"), ("b.txt", "b")]);
    let began = SystemTime::now() + Duration::from_millis(20);
    let layer = Layer::create(&desk.run(), vec![desk.request()], began).unwrap();
    let opened = layer.open_read("a.txt", true).unwrap();
    let Origin::Lower(guard) = opened.from else { panic!("it is the owner's") };
    guard.check(&opened.file).unwrap();
    while SystemTime::now() < began + Duration::from_millis(20) {
        std::thread::yield_now();
    }
    fs::write(desk.owner("a.txt"), "another").unwrap();
    assert!(guard.check(&opened.file).is_err(), "an open file is checked after each read");
    assert!(matches!(read(&layer, "a.txt"), Err(LayerError::Busy)));
    assert!(matches!(write(&layer, "a.txt", "mine"), Err(LayerError::Busy)));
    assert_eq!(layer.newly_noticed(), ["a.txt"]);
    assert_eq!(layer.newly_noticed(), [] as [&str; 0], "it is told once");
    assert_eq!(read(&layer, "b.txt").unwrap(), "b");
}

#[test]
fn links_are_followed_in_what_the_run_sees_and_never_out_of_it() {
    let desk = Desk::new(&[("real/a.txt", "a"), ("real/up.txt", "u")]);
    fs::write(desk.root.path().join("outside.txt"), "outside").unwrap();
    for (name, target) in [
        ("dir", "real"),
        ("real/up", "../real/up.txt"),
        ("out", "../outside.txt"),
        ("absolute", "/etc/hostname"),
        ("round", "round"),
        ("real/far", "../../outside.txt"),
    ] {
        symlink(target, desk.owner(name)).unwrap();
    }
    let layer = desk.layer();
    assert_eq!(read(&layer, "dir/a.txt").unwrap(), "a");
    assert_eq!(read(&layer, "dir/up").unwrap(), "u");
    assert_eq!(read(&layer, "dir/../real/a.txt").unwrap(), "a");
    for out in ["out", "absolute", "real/far", "../outside.txt", "dir/../../outside.txt"] {
        assert!(matches!(read(&layer, out), Err(LayerError::Escapes)), "{out}");
        assert!(write(&layer, out, "x").is_err(), "{out}");
    }
    assert!(matches!(read(&layer, "round"), Err(LayerError::Loop)));
    assert_eq!(layer.read_link("absolute").unwrap(), "/etc/hostname");
    // A write through a link changes its target, for the run.
    write(&layer, "dir/a.txt", "A").unwrap();
    assert_eq!(read(&layer, "real/a.txt").unwrap(), "A");
    // A link can be deleted, and a directory made in its place.
    layer.unlink(&call(&layer), "dir").unwrap();
    layer.create_dir(&call(&layer), "dir").unwrap();
    write(&layer, "dir/a.txt", "mine").unwrap();
    assert_eq!(read(&layer, "real/a.txt").unwrap(), "A");
    assert_eq!(fs::read_to_string(desk.root.path().join("outside.txt")).unwrap(), "outside");
}

#[test]
fn ignored_files_and_secrets_are_not_seen_unless_the_owner_names_them() {
    let files = [
        (".gitignore", "target/\n*.log\n!keep.log\n"),
        (".motorignore", "private/\n!.env.test\n"),
        (".env", "S=1"),
        (".env.test", "T=1"),
        ("keep.log", "k"),
        ("a.log", "l"),
        ("target/x", "x"),
        ("private/notes", "n"),
        ("sub/.gitignore", "*.tmp\n"),
        ("sub/a.tmp", "t"),
        ("sub/server.pem", "p"),
        ("sub/ok.rs", "o"),
        ("keys/id_ed25519", "i"),
        ("keys/id_ed25519.pub", "public"),
        (".git/config", "[remote \"o\"]\n\turl = https://u:t@h.test/x\n"),
        (".git/HEAD", "ref"),
    ];
    let desk = Desk::new(&files);
    let shown = SourceRequest { shown: vec!["private/notes".to_owned(), "./.env".to_owned()], ..desk.request() };
    let layer = desk.layer();
    assert_eq!(names(&layer, ""), [".env.test", ".git", ".gitignore", ".motorignore", "keep.log", "keys", "sub"]);
    assert_eq!(names(&layer, "sub"), [".gitignore", "ok.rs"]);
    assert_eq!(names(&layer, "keys"), ["id_ed25519.pub"]);
    assert_eq!(names(&layer, ".git"), ["HEAD"]);
    for hidden in [".env", "a.log", "target/x", "private/notes", "sub/a.tmp", "sub/server.pem", ".git/config"] {
        assert!(matches!(read(&layer, hidden), Err(LayerError::NotFound)), "{hidden}");
    }
    let (kept, whole) = layer.kept_out(1000).unwrap();
    assert!(whole);
    let secrets: Vec<_> =
        kept.iter().filter(|(_, why)| *why == KeptOut::Secret).map(|(path, _)| path.as_str()).collect();
    assert_eq!(secrets, [".env", "keys/id_ed25519", "sub/server.pem"]);
    drop(layer);

    let layer = Layer::create(&desk.run(), vec![shown], desk.began).unwrap();
    assert_eq!(read(&layer, ".env").unwrap(), "S=1");
    assert_eq!(names(&layer, "private"), ["notes"]);
    assert_eq!(read(&layer, "private/notes").unwrap(), "n");
}

#[test]
fn what_is_not_seen_is_not_deleted_with_its_directory() {
    let desk = Desk::new(&[("a/.env", "S=1"), ("a/b.txt", "b"), (".gitignore", "*.log\n"), ("a/x.log", "l")]);
    let layer = desk.layer();
    layer.unlink(&call(&layer), "a/b.txt").unwrap();
    layer.remove_dir(&call(&layer), "a").unwrap();
    let expected = [("a", "directory -> missing"), ("a/b.txt", "file unread -> missing")];
    assert_eq!(changes(&layer), expected.map(|(path, change)| (path.to_owned(), change.to_owned())));
    // A directory of the same name does not bring anything back.
    layer.create_dir(&call(&layer), "a").unwrap();
    assert_eq!(names(&layer, "a"), Vec::<String>::new());
}

#[test]
fn several_directories_lie_side_by_side_and_a_read_only_one_is_not_written() {
    let desk = Desk::new(&[("src/a.txt", "a"), ("data/b.txt", "b")]);
    symlink("../data/b.txt", desk.owner("src/b")).unwrap();
    let of = |prefix: &str, writable| SourceRequest {
        prefix: prefix.to_owned(),
        directory: desk.owner(prefix),
        writable,
        shown: Vec::new(),
    };
    let layer = Layer::create(&desk.run(), vec![of("src", true), of("data", false)], desk.began).unwrap();
    assert_eq!(names(&layer, ""), ["data", "src"]);
    assert_eq!(read(&layer, "src/../data/b.txt").unwrap(), "b");
    assert!(matches!(read(&layer, "src/b"), Err(LayerError::Escapes)), "a link does not cross directories");
    write(&layer, "src/a.txt", "A").unwrap();
    for denied in [
        write(&layer, "data/b.txt", "B"),
        write(&layer, "data/new", "n"),
        layer.unlink(&call(&layer), "data/b.txt"),
        layer.rename(&call(&layer), "data/b.txt", "src/b.txt"),
        layer.rename(&call(&layer), "src/a.txt", "data/a.txt"),
    ] {
        assert!(matches!(denied, Err(LayerError::ReadOnly)), "{denied:?}");
    }
    assert!(layer.remove_dir(&call(&layer), "src").is_err(), "the directory itself stays");
    assert!(layer.rename(&call(&layer), "src", "moved").is_err());
    assert_eq!(changes(&layer), [("src/a.txt".to_owned(), "file -> A".to_owned())]);
}

#[test]
fn another_directory_at_the_same_path_is_refused() {
    let desk = Desk::new(&[("a.txt", "a")]);
    drop(desk.layer());
    fs::rename(desk.owner(""), desk.root.path().join("moved")).unwrap();
    fs::create_dir(desk.owner("")).unwrap();
    assert!(matches!(Layer::open(&desk.run()), Err(LayerError::Replaced(_))));
    fs::remove_dir(desk.owner("")).unwrap();
    fs::rename(desk.root.path().join("moved"), desk.owner("")).unwrap();
    assert_eq!(read(&Layer::open(&desk.run()).unwrap(), "a.txt").unwrap(), "a");
}

#[test]
fn pipes_are_not_seen_and_names_without_meaning_reach_nothing() {
    let desk = Desk::new(&[("a.txt", "a")]);
    let pipe = desk.owner("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o600), 0)
        .unwrap();
    let layer = desk.layer();
    assert_eq!(names(&layer, ""), ["a.txt"]);
    assert!(read(&layer, "pipe").is_err());
    for path in ["", ".", "/", "a.txt/", "a.txt/b", "a\0b", &"x".repeat(5000)] {
        assert!(read(&layer, path).is_err(), "{path:?}");
        assert!(write(&layer, path, "x").is_err(), "{path:?}");
    }
    assert_eq!(layer.stat("", true).unwrap().kind, FileKind::Directory);
    assert_eq!(changes(&layer), []);
}

#[test]
fn the_directory_of_the_host_is_read_and_not_changed() {
    let desk = Desk::new(&[("a.txt", "a")]);
    let layer = desk.layer();
    let denied = |change: Result<(), LayerError>| assert!(matches!(change, Err(LayerError::ReadOnly)), "{change:?}");
    denied(layer.create_dir(&call(&layer), ".motor-output"));
    put(&desk.run().join("workspace/.motor-output/1.txt"), "long");
    assert_eq!(read(&layer, ".motor-output/1.txt").unwrap(), "long");
    denied(write(&layer, ".motor-output/1.txt", "x"));
    denied(write(&layer, ".motor-output/2.txt", "x"));
    denied(layer.create_dir(&call(&layer), ".Motor-Output"));
    denied(layer.unlink(&call(&layer), ".motor-output/1.txt"));
    denied(layer.rename(&call(&layer), ".motor-output", "moved"));
    denied(layer.rename(&call(&layer), "a.txt", ".motor-output/1.txt"));
    // Its twins.
    write(&layer, ".motor-outputs", "x").unwrap();
    layer.create_dir(&call(&layer), "b").unwrap();
    write(&layer, "b/.motor-output", "x").unwrap();
    assert_eq!(read(&layer, ".motor-output/1.txt").unwrap(), "long");
}
