//! Random operations on a layer and on a real directory: both have to give the same answers and the same tree.

use std::collections::VecDeque;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Op {
    Replace(String, String),
    Append(String, String),
    New(String),
    MakeDirectory(String),
    RemoveDirectory(String),
    Unlink(String),
    Rename(String, String),
    Reopen,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just("a"), 4 => Just("b"), 2 => Just("c"), 1 => Just("..")].prop_map(str::to_owned)
}

fn path() -> impl Strategy<Value = String> {
    prop::collection::vec(name(), 1..4).prop_map(|names| names.join("/"))
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        3 => (path(), "[xyz]{0,3}").prop_map(|(path, text)| Op::Replace(path, text)),
        3 => (path(), "[xyz]{1,3}").prop_map(|(path, text)| Op::Append(path, text)),
        1 => path().prop_map(Op::New),
        3 => path().prop_map(Op::MakeDirectory),
        3 => path().prop_map(Op::RemoveDirectory),
        4 => path().prop_map(Op::Unlink),
        6 => (path(), path()).prop_map(|(from, to)| Op::Rename(from, to)),
        1 => Just(Op::Reopen),
    ]
}

/// The tree that the run finds: files with their text, directories, links with their targets.
fn seed() -> impl Strategy<Value = Vec<(String, u8)>> {
    let names = prop_oneof![Just("a"), Just("b"), Just("c")];
    let path = prop::collection::vec(names, 1..4).prop_map(|names| names.join("/"));
    prop::collection::vec((path, 0_u8..8), 0..12)
}

fn plant(root: &Path, seed: &[(String, u8)]) {
    fs::create_dir_all(root).unwrap();
    for (index, (path, kind)) in seed.iter().enumerate() {
        let path = root.join(path);
        // Entries that do not fit the tree so far are left out, in both trees alike.
        if let Some(parent) = path.parent()
            && fs::create_dir_all(parent).is_ok()
            && fs::symlink_metadata(&path).is_err()
        {
            match kind {
                0..=4 => fs::write(&path, format!("file {index}")).unwrap(),
                5..=6 => fs::create_dir(&path).unwrap(),
                _ => symlink(["a", "b", "../a", "c/a"][index % 4], &path).unwrap(),
            }
        }
    }
}

/// Whether a path leads above the root: the layer refuses it, and on the real directory the test's own files are there.
fn leads_out(root: &Path, path: &str) -> bool {
    let mut left: VecDeque<String> = path.split('/').map(str::to_owned).collect();
    let (mut at, mut links) = (root.to_owned(), 0);
    while let Some(name) = left.pop_front() {
        if name == ".." {
            if at == root {
                return true;
            }
            at.pop();
            continue;
        }
        at.push(name);
        if let Ok(target) = fs::read_link(&at) {
            links += 1;
            at.pop();
            target.to_str().unwrap().split('/').rev().for_each(|part| left.push_front(part.to_owned()));
        }
        if links > 40 {
            return false;
        }
    }
    false
}

fn on_disk(root: &Path, op: &Op) -> io::Result<()> {
    let at = |path: &str| root.join(path);
    match op {
        Op::Replace(path, text) => fs::write(at(path), text),
        Op::Append(path, text) => fs::OpenOptions::new().append(true).open(at(path))?.write_all(text.as_bytes()),
        Op::New(path) => fs::File::create_new(at(path)).map(drop),
        Op::MakeDirectory(path) => fs::create_dir(at(path)),
        Op::RemoveDirectory(path) => fs::remove_dir(at(path)),
        Op::Unlink(path) => fs::remove_file(at(path)),
        Op::Rename(from, to) => fs::rename(at(from), at(to)),
        Op::Reopen => Ok(()),
    }
}

fn on_layer(layer: &Layer, op: &Op) -> Result<(), LayerError> {
    let call = call(layer);
    match op {
        Op::Replace(path, text) => write(layer, path, text),
        Op::Append(path, text) => {
            let mut file = layer.open_write(&call, path, EDIT, true)?;
            io::Seek::seek(&mut file, io::SeekFrom::End(0)).unwrap();
            file.write_all(text.as_bytes()).unwrap();
            Ok(())
        }
        Op::New(path) => {
            let mode = OpenMode { create: true, exclusive: true, ..OpenMode::default() };
            layer.open_write(&call, path, mode, true).map(drop)
        }
        Op::MakeDirectory(path) => layer.create_dir(&call, path),
        Op::RemoveDirectory(path) => layer.remove_dir(&call, path),
        Op::Unlink(path) => layer.unlink(&call, path),
        Op::Rename(from, to) => layer.rename(&call, from, to),
        Op::Reopen => Ok(()),
    }
}

/// The tree that a run sees.
fn seen(layer: &Layer) -> Vec<(String, String)> {
    fn walk(layer: &Layer, at: &str, found: &mut Vec<(String, String)>) {
        for entry in layer.list(at).unwrap() {
            let below = crate::path::join(at, &entry.name);
            match entry.kind {
                FileKind::File => found.push((below.clone(), read(layer, &below).unwrap())),
                FileKind::Symlink => found.push((below.clone(), format!("-> {}", layer.read_link(&below).unwrap()))),
                FileKind::Directory => {
                    found.push((below.clone(), "/".to_owned()));
                    walk(layer, &below, found);
                }
            }
        }
    }
    let mut found = Vec::new();
    walk(layer, "", &mut found);
    found.sort();
    found
}

/// Applies the changes of a layer to a directory, as a landing would.
fn apply(layer: &Layer, root: &Path) {
    let changes = layer.changes(&|_| false).unwrap().0;
    for change in changes.iter().rev() {
        let at = root.join(&change.path);
        match change.before {
            Before::Missing => {}
            Before::File { .. } | Before::Symlink => fs::remove_file(&at).unwrap(),
            Before::Directory if change.after != After::Directory => fs::remove_dir(&at).unwrap(),
            Before::Directory => {}
        }
    }
    for change in &changes {
        let at = root.join(&change.path);
        assert!(fs::symlink_metadata(&at).is_err(), "{change:?}");
        match &change.after {
            After::Missing => {}
            After::File { content } => fs::copy(content, &at).map(drop).unwrap(),
            After::Directory => fs::create_dir(&at).unwrap(),
        }
    }
}

/// The kinds of failure that programs tell apart.
fn code(error: &LayerError) -> String {
    match error {
        LayerError::NotFound => "not found".to_owned(),
        LayerError::Exists => "exists".to_owned(),
        LayerError::NotEmpty => "not empty".to_owned(),
        _ => "other".to_owned(),
    }
}

fn code_of(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "not found",
        io::ErrorKind::AlreadyExists => "exists",
        io::ErrorKind::DirectoryNotEmpty => "not empty",
        _ => "other",
    }
    .to_owned()
}

/// Paths of an operation.
fn named(op: &Op) -> Vec<&str> {
    match op {
        Op::Replace(path, _) | Op::Append(path, _) => vec![path],
        Op::New(path) | Op::MakeDirectory(path) | Op::RemoveDirectory(path) | Op::Unlink(path) => vec![path],
        Op::Rename(from, to) => vec![from, to],
        Op::Reopen => vec![],
    }
}

fn check(seed: &[(String, u8)], ops: &[Op]) -> Result<(), TestCaseError> {
    let desk = Desk::new(&[]);
    plant(&desk.owner(""), seed);
    let real = fs::canonicalize(desk.root.path()).unwrap().join("real");
    plant(&real, seed);
    let before = tree(&desk.owner(""));
    let mut layer = desk.layer();
    for op in ops {
        if let Op::Reopen = op {
            drop(layer);
            layer = Layer::open(&desk.run()).unwrap();
            continue;
        }
        // A path that leads out is refused by the layer; the real directory has something there.
        if named(op).iter().any(|path| path.ends_with("..") || leads_out(&real, path)) {
            continue;
        }
        let given = on_layer(&layer, op);
        if matches!(given, Err(LayerError::Unsupported | LayerError::CrossDevice)) {
            continue;
        }
        let expected = on_disk(&real, op);
        let (given_code, expected_code) = (given.as_ref().map_err(code), expected.as_ref().map_err(code_of));
        prop_assert_eq!(given_code.is_ok(), expected_code.is_ok(), "{:?}: {:?} {:?}", op, given, expected);
        // Linux checks the target of a rename in another order.
        if !matches!(op, Op::Rename(..)) {
            prop_assert_eq!(given_code, expected_code, "{:?}: {:?} {:?}", op, given, expected);
        }
    }
    prop_assert_eq!(seen(&layer), tree(&real));
    prop_assert_eq!(tree(&desk.owner("")), before);
    apply(&layer, &desk.owner(""));
    prop_assert_eq!(tree(&desk.owner("")), tree(&real));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_layer_behaves_as_a_copy_of_the_directory_would(seed in seed(), ops in prop::collection::vec(op(), 1..40)) {
        check(&seed, &ops)?;
    }
}
