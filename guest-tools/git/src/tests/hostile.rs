//! Hostile repositories: each attack ends with a message, in time and memory, and writes nothing outside; its benign twin
//! works.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

use bstr::ByteSlice as _;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use gix_hash::ObjectId;
use gix_object::Kind;

use super::support::{has_git, ours, script, text, workspace};
use crate::objects::hash;

/// Processor seconds that any of these may take, without optimisation. The machine may be busy with something else meanwhile.
const MOST_SECONDS: u64 = 60;

fn repository() -> (tempfile::TempDir, PathBuf) {
    let (kept, root) = workspace();
    std::fs::create_dir(root.join("w")).unwrap();
    let answer = ours(&root, &root.join("w"), &["init", "-q"]);
    assert_eq!(answer.code, 0, "{answer:?}");
    (kept, root)
}

/// Processor time of this thread (proc(5)).
fn processor_seconds() -> u64 {
    let times = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    times.split(' ').next().unwrap().parse::<u64>().unwrap() / 1_000_000_000
}

fn call(root: &Path, line: &str) -> (i32, String, String) {
    let begun = processor_seconds();
    let arguments: Vec<&str> = line.split(' ').collect();
    let answer = ours(root, &root.join("w"), &arguments);
    assert!(processor_seconds() - begun < MOST_SECONDS, "{line}");
    (answer.code, text(&answer.stdout), text(&answer.stderr))
}

#[track_caller]
fn refused(root: &Path, line: &str, reason: &str) {
    let (code, stdout, stderr) = call(root, line);
    assert!(code != 0 && stderr.contains(reason), "{line}: {code} {stdout:.500} {stderr:.500}");
}

#[track_caller]
fn works(root: &Path, line: &str) -> String {
    let (code, stdout, stderr) = call(root, line);
    assert_eq!(code, 0, "{line}: {stdout:.500} {stderr:.500}");
    stdout
}

fn deflate(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Stores an object without any check.
fn loose(root: &Path, kind: Kind, data: &[u8]) -> ObjectId {
    let id = hash(kind, data).unwrap();
    loose_as(root, &id, kind, data, data.len() as u64);
    id
}

fn loose_as(root: &Path, id: &ObjectId, kind: Kind, data: &[u8], says: u64) {
    let hex = id.to_string();
    let directory = root.join("w/.git/objects").join(&hex[..2]);
    std::fs::create_dir_all(&directory).unwrap();
    let mut bytes = gix_object::encode::loose_header(kind, says).to_vec();
    bytes.extend_from_slice(data);
    std::fs::write(directory.join(&hex[2..]), deflate(&bytes)).unwrap();
}

fn tree(root: &Path, entries: &[(&str, &[u8], ObjectId)]) -> ObjectId {
    let mut data = Vec::new();
    for (mode, name, id) in entries {
        data.extend_from_slice(mode.as_bytes());
        data.push(b' ');
        data.extend_from_slice(name);
        data.push(0);
        data.extend_from_slice(id.as_slice());
    }
    loose(root, Kind::Tree, &data)
}

fn commit(root: &Path, tree: ObjectId, parents: &[ObjectId]) -> ObjectId {
    let mut data = format!("tree {tree}\n");
    for parent in parents {
        data += &format!("parent {parent}\n");
    }
    data += "author A <a@example.com> 1700000000 +0000\ncommitter A <a@example.com> 1700000000 +0000\n\nmessage\n";
    loose(root, Kind::Commit, data.as_bytes())
}

fn branch(root: &Path, id: ObjectId) {
    std::fs::create_dir_all(root.join("w/.git/refs/heads")).unwrap();
    std::fs::write(root.join("w/.git/refs/heads/main"), format!("{id}\n")).unwrap();
}

/// One entry of a pack: its kind, its size as written, the bytes before the data, and the data.
struct Packed {
    id: ObjectId,
    kind: u8,
    says: u64,
    base: Vec<u8>,
    data: Vec<u8>,
}

/// Writes a pack and its index. Returns the places of the entries.
fn pack(root: &Path, entries: &[Packed]) -> Vec<u64> {
    let mut bytes = b"PACK\0\0\0\x02".to_vec();
    bytes.extend_from_slice(&(entries.len() as u32).to_be_bytes());
    let mut offsets = Vec::new();
    for entry in entries {
        offsets.push(bytes.len() as u64);
        let mut size = entry.says >> 4;
        let mut first = (entry.kind << 4) | (entry.says & 0x0f) as u8;
        while size > 0 {
            bytes.push(first | 0x80);
            first = (size & 0x7f) as u8;
            size >>= 7;
        }
        bytes.push(first);
        bytes.extend_from_slice(&entry.base);
        bytes.extend_from_slice(&deflate(&entry.data));
    }
    bytes.extend_from_slice(&[0; 20]);
    let mut sorted: Vec<(ObjectId, u64)> = entries.iter().zip(&offsets).map(|(entry, at)| (entry.id, *at)).collect();
    sorted.sort();
    let mut index = b"\xfftOc\0\0\0\x02".to_vec();
    for byte in 0..=255_u8 {
        let count = sorted.iter().filter(|(id, _)| id.as_slice()[0] <= byte).count() as u32;
        index.extend_from_slice(&count.to_be_bytes());
    }
    sorted.iter().for_each(|(id, _)| index.extend_from_slice(id.as_slice()));
    sorted.iter().for_each(|_| index.extend_from_slice(&[0; 4]));
    sorted.iter().for_each(|(_, at)| index.extend_from_slice(&(*at as u32).to_be_bytes()));
    index.extend_from_slice(&[0; 40]);
    let directory = root.join("w/.git/objects/pack");
    std::fs::write(directory.join("pack-x.pack"), bytes).unwrap();
    std::fs::write(directory.join("pack-x.idx"), index).unwrap();
    offsets
}

fn number(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A delta that copies the first `length` bytes of its base so many times.
fn copies(base: u64, length: u32, times: u64) -> Vec<u8> {
    let mut delta = [number(base), number(u64::from(length) * times)].concat();
    for _ in 0..times {
        let [a, b, c, _] = length.to_le_bytes();
        delta.extend_from_slice(&[0xf0, a, b, c]);
    }
    delta
}

fn named(digit: u8) -> ObjectId {
    ObjectId::Sha1([digit; 20])
}

#[test]
fn deltas_that_grow_are_refused() {
    let (_kept, root) = repository();
    // 64 KiB, then 256 times as much, twice: 4 GiB from a few bytes.
    let whole = vec![b'x'; 1 << 16];
    let plain = |id, data: Vec<u8>| Packed { id, kind: 3, says: data.len() as u64, base: Vec::new(), data };
    let delta = |id, base: ObjectId, data: Vec<u8>| Packed {
        id,
        kind: 7,
        says: data.len() as u64,
        base: base.as_slice().to_vec(),
        data,
    };
    pack(
        &root,
        &[
            plain(named(1), whole),
            delta(named(2), named(1), copies(1 << 16, 1 << 16, 4)),
            delta(named(3), named(1), copies(1 << 16, 1 << 16, 256 + 1)),
            delta(named(4), named(2), copies(1 << 18, 1 << 18, 1 << 12)),
            delta(named(5), named(5), copies(1, 1, 1)),
            delta(named(6), named(7), copies(1, 1, 1)),
            delta(named(7), named(6), copies(1, 1, 1)),
            delta(named(8), named(9), copies(1, 1, 1)),
        ],
    );
    assert_eq!(works(&root, &format!("cat-file -s {}", named(2))), "262144\n");
    assert_eq!(works(&root, &format!("cat-file -p {}", named(2))).len(), 262_144);
    refused(&root, &format!("cat-file -p {}", named(3)), "at most 16777216 are read");
    refused(&root, &format!("cat-file -p {}", named(4)), "at most 16777216 are read");
    refused(&root, &format!("cat-file -p {}", named(5)), "a chain of deltas");
    refused(&root, &format!("cat-file -s {}", named(6)), "a chain of deltas");
    refused(&root, &format!("cat-file -p {}", named(8)), "not in the pack");
}

#[test]
fn chains_of_deltas_have_an_end() {
    let (_kept, root) = repository();
    let id = |place: u32| {
        let mut bytes = [0; 20];
        bytes[..4].copy_from_slice(&place.to_be_bytes());
        ObjectId::Sha1(bytes)
    };
    let mut entries = vec![Packed { id: id(1), kind: 3, says: 2, base: Vec::new(), data: b"ab".to_vec() }];
    for place in 2..=5_000 {
        let data = copies(2, 2, 1);
        entries.push(Packed {
            id: id(place),
            kind: 7,
            says: data.len() as u64,
            base: id(place - 1).as_slice().to_vec(),
            data,
        });
    }
    pack(&root, &entries);
    assert_eq!(works(&root, &format!("cat-file -p {}", id(4_000))), "ab");
    refused(&root, &format!("cat-file -p {}", id(5_000)), "more than 4096");
}

#[test]
fn objects_are_of_the_size_that_they_say() {
    let (_kept, root) = repository();
    for (place, says, data, reason) in [
        (1, 1, &b"more than that"[..], "does not have the size"),
        (2, 100, b"less", "does not have the size"),
        (3, 1 << 40, b"x", "at most 16777216 are read"),
        (4, u64::MAX, b"x", "at most 16777216 are read"),
    ] {
        loose_as(&root, &named(place), Kind::Blob, data, says);
        refused(&root, &format!("cat-file -p {}", named(place)), reason);
    }
    loose_as(&root, &named(9), Kind::Blob, b"fine", 4);
    assert_eq!(works(&root, &format!("cat-file -p {}", named(9))), "fine");
    // A bomb: 64 MiB of zeros that says so, and one that says less.
    let zeros = vec![0; 64 << 20];
    loose_as(&root, &named(5), Kind::Blob, &zeros, 64 << 20);
    loose_as(&root, &named(6), Kind::Blob, &zeros, 10);
    refused(&root, &format!("cat-file -p {}", named(5)), "at most 16777216 are read");
    refused(&root, &format!("cat-file -p {}", named(6)), "does not have the size");
}

#[test]
fn tags_and_references_lead_somewhere() {
    let (_kept, root) = repository();
    let blob = loose(&root, Kind::Blob, b"target\n");
    let tag = |target: ObjectId, kind: &str| {
        let data =
            format!("object {target}\ntype {kind}\ntag t\ntagger A <a@example.com> 1700000000 +0000\n\nmessage\n");
        loose(&root, Kind::Tag, data.as_bytes())
    };
    let mut id = tag(blob, "blob");
    let near = id;
    for _ in 0..40 {
        id = tag(id, "tag");
    }
    works(&root, &format!("rev-parse {near}^{{}}"));
    refused(&root, &format!("rev-parse {id}^{{}}"), "more than 16 tags");
    refused(&root, &format!("show {id}"), "more than 16 tags");
    // A tag that leads to itself cannot be made with its true name, but under a false one.
    let own = named(7);
    let data = format!("object {own}\ntype tag\ntag t\ntagger A <a@example.com> 1700000000 +0000\n\nm\n");
    loose_as(&root, &own, Kind::Tag, data.as_bytes(), data.len() as u64);
    refused(&root, &format!("show {own}"), "more than 16 tags");
    let heads = root.join("w/.git/refs/heads");
    std::fs::write(heads.join("a"), "ref: refs/heads/b\n").unwrap();
    std::fs::write(heads.join("b"), "ref: refs/heads/a\n").unwrap();
    std::fs::write(root.join("w/.git/HEAD"), "ref: refs/heads/a\n").unwrap();
    refused(&root, "status", "more than 5 references");
    for content in ["ref: ../../../outside\n", "ref: refs/heads/../../../../outside\n", "garbage", "ref: config\n"] {
        std::fs::write(root.join("w/.git/HEAD"), content).unwrap();
        refused(&root, "status", "the reference `HEAD` is not valid");
    }
    std::fs::write(root.join("w/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
    branch(&root, commit(&root, ObjectId::empty_tree(gix_hash::Kind::Sha1), &[]));
    works(&root, "status");
}

#[test]
fn names_of_references_are_checked() {
    let (_kept, root) = repository();
    branch(&root, commit(&root, ObjectId::empty_tree(gix_hash::Kind::Sha1), &[]));
    for name in [
        "../../outside",
        "a/../../../x",
        "-x",
        "a..b",
        "a b",
        ".hidden",
        "x.lock",
        "a//b",
        "a~1",
        "HEAD",
        "@{x",
        "a\\b",
        "/abs",
    ] {
        for line in ["branch", "switch -c", "tag"] {
            let (code, _, _) = call_words(&root, &line.split(' ').chain([name]).collect::<Vec<_>>());
            assert!(code != 0 || (line == "tag" && name == "HEAD"), "{line} {name}");
        }
    }
    assert!(!root.join("outside").exists() && !root.join("x").exists() && !root.join("w/.git/outside").exists());
    works(&root, "branch fine/name-1");
    // Words that are files of `.git` are no revisions.
    for word in ["config", "index", "description", "../w/.git/HEAD", "objects", "hooks/x"] {
        let (code, _, _) = call(&root, &format!("rev-parse --verify -q {word}"));
        assert_eq!(code, 1, "{word}");
    }
}

fn call_words(root: &Path, words: &[&str]) -> (i32, String, String) {
    let answer = ours(root, &root.join("w"), words);
    (answer.code, text(&answer.stdout), text(&answer.stderr))
}

#[test]
fn paths_of_trees_stay_inside() {
    let (_kept, root) = repository();
    let blob = loose(&root, Kind::Blob, b"evil\n");
    let deep = |name: &[u8]| tree(&root, &[("100644", name, blob)]);
    for name in [
        &b".."[..],
        b".",
        b".git",
        b".GIT",
        b".git ",
        b"GIT~1",
        b"../outside",
        b"/abs",
        b".g\xe2\x80\x8cit",
        b"a/../../outside",
        b".git/config",
    ] {
        let evil = deep(name);
        for top in [evil, tree(&root, &[("40000", b"sub", evil)]), tree(&root, &[("40000", name, deep(b"x"))])] {
            let id = commit(&root, top, &[]);
            branch(&root, id);
            for line in ["reset --hard", "checkout HEAD -- .", "restore --source HEAD --staged --worktree ."] {
                let (code, stdout, stderr) = call(&root, line);
                assert!(code != 0, "{name:?}: {line}: {stdout} {stderr}");
            }
            // Looking at it is no danger.
            works(&root, "log -p --stat");
            works(&root, &format!("ls-tree -r {id}"));
        }
        assert!(!root.join("outside").exists());
        let config = std::fs::read_to_string(root.join("w/.git/config")).unwrap();
        assert!(!config.contains("evil"), "{name:?}");
    }
    branch(&root, commit(&root, tree(&root, &[("40000", b"sub", deep(b"fine"))]), &[]));
    works(&root, "reset --hard");
    assert_eq!(std::fs::read_to_string(root.join("w/sub/fine")).unwrap(), "evil\n");
}

#[test]
fn links_are_not_written_through() {
    let (_kept, root) = repository();
    std::fs::create_dir(root.join("outside")).unwrap();
    std::os::unix::fs::symlink(root.join("outside"), root.join("w/dir")).unwrap();
    std::os::unix::fs::symlink(root.join("outside/file"), root.join("w/file")).unwrap();
    let blob = loose(&root, Kind::Blob, b"content\n");
    let dir = tree(&root, &[("100644", b"inner", blob)]);
    branch(&root, commit(&root, tree(&root, &[("40000", b"dir", dir), ("100644", b"file", blob)]), &[]));
    refused(&root, "checkout HEAD -- dir", "beyond a symbolic link");
    works(&root, "checkout HEAD -- file");
    assert_eq!(std::fs::read_dir(root.join("outside")).unwrap().count(), 0);
    assert!(!root.join("w/file").is_symlink());
    // A link in a tree is not made, because no guest makes links.
    let link = loose(&root, Kind::Blob, b"../outside");
    branch(&root, commit(&root, tree(&root, &[("120000", b"link", link)]), &[]));
    refused(&root, "checkout HEAD -- link", "a symbolic link, which cannot be made here");
    std::fs::write(root.join("w/dir-file"), "x").unwrap();
    refused(&root, "add dir/x", "did not match");
    works(&root, "add dir");
}

#[test]
fn indexes_are_checked() {
    use gix_index::entry::{Flags, Mode};
    let (_kept, root) = repository();
    let blob = loose(&root, Kind::Blob, b"x\n");
    let write = |paths: &[&str]| {
        let mut state = gix_index::State::new(gix_hash::Kind::Sha1);
        for path in paths {
            state.dangerously_push_entry(
                Default::default(),
                blob,
                Flags::empty(),
                Mode::FILE,
                path.as_bytes().as_bstr(),
            );
        }
        let mut bytes = Vec::new();
        state.write_to(&mut bytes, Default::default()).unwrap();
        bytes.extend_from_slice(&[0; 20]);
        std::fs::write(root.join("w/.git/index"), &bytes).unwrap();
        bytes
    };
    for path in ["../outside", ".git/config", "a/../b", "/abs", "a//b", "a/.GIT/x", ""] {
        write(&[path]);
        for line in ["status", "checkout -- .", "restore .", "add .", "ls-files"] {
            refused(&root, line, "invalid path");
        }
    }
    write(&["b", "a"]);
    refused(&root, "status", "not sorted");
    write(&["a", "a"]);
    refused(&root, "status", "not sorted");
    let good = write(&["a", "b/c"]);
    works(&root, "checkout -- .");
    assert_eq!(std::fs::read_to_string(root.join("w/b/c")).unwrap(), "x\n");
    // Cut anywhere, or with any byte changed, it is read or refused, and nothing panics.
    for end in 0..good.len() {
        std::fs::write(root.join("w/.git/index"), &good[..end]).unwrap();
        call(&root, "status -s");
        let mut changed = good.clone();
        changed[end] ^= 0xff;
        std::fs::write(root.join("w/.git/index"), &changed).unwrap();
        call(&root, "status -s");
    }
    assert!(!root.join("outside").exists());
}

#[test]
fn trees_have_limits() {
    let (_kept, root) = repository();
    let blob = loose(&root, Kind::Blob, b"x\n");
    let mut id = tree(&root, &[("100644", b"f", blob)]);
    for depth in 0..400 {
        if depth == 100 {
            branch(&root, commit(&root, id, &[]));
            works(&root, "ls-tree -r HEAD");
        }
        id = tree(&root, &[("40000", b"d", id)]);
    }
    branch(&root, commit(&root, id, &[]));
    for line in ["ls-tree -r HEAD", "status", "log -p", "reset --hard"] {
        refused(&root, line, "levels of directories");
    }
    // Each level has the one below it twice, or ten times: files without end from a few objects.
    let mut id = tree(&root, &[("100644", b"f", blob)]);
    for _ in 0..30 {
        let names: Vec<String> = (0..10).map(|name| name.to_string()).collect();
        let entries: Vec<(&str, &[u8], ObjectId)> = names.iter().map(|name| ("40000", name.as_bytes(), id)).collect();
        id = tree(&root, &entries);
    }
    branch(&root, commit(&root, id, &[]));
    for line in ["status", "log -p"] {
        refused(&root, line, "too much for one call");
    }
}

#[test]
fn borrowed_objects_do_not_lead_out_or_around() {
    let (_kept, root) = repository();
    let blob = loose(&root, Kind::Blob, b"x\n");
    std::fs::create_dir_all(root.join("w/other/info")).unwrap();
    let list = root.join("w/.git/objects/info/alternates");
    std::fs::create_dir_all(list.parent().unwrap()).unwrap();
    for (content, expected) in [
        ("../objects\n", 0),
        ("/etc\n", 0),
        ("../../../../../../../etc\n", 0),
        ("../../other\n", 0),
        ("# a comment\n\n", 0),
    ] {
        std::fs::write(&list, content).unwrap();
        let (code, _, stderr) = call(&root, &format!("cat-file -p {blob}"));
        assert_eq!(code, expected, "{content}: {stderr}");
    }
    // In a circle.
    std::fs::write(&list, "../../other\n").unwrap();
    std::fs::write(root.join("w/other/info/alternates"), "../.git/objects\n../other\n").unwrap();
    works(&root, &format!("cat-file -p {blob}"));
    // A missing object says where it may be.
    std::fs::write(&list, "/somewhere/else\n").unwrap();
    refused(&root, &format!("show {}", named(1)), "outside the workspace");
    // Many of them.
    let many: String = (0..50).map(|place| format!("../../other{place}\n")).collect();
    std::fs::write(&list, many).unwrap();
    refused(&root, &format!("cat-file -p {blob}"), "more than 8 directories");
}

#[test]
fn damaged_packs_are_refused() {
    if !has_git() {
        return;
    }
    let (_kept, root) = workspace();
    script(&root, "init w; cd w; for i in 1 2 3 4 5 6; do seq $i 90 > f; ci c$i; done; git gc -q --aggressive");
    let directory = root.join("w/.git/objects/pack");
    let find = |ending: &str| {
        let files = std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path());
        files.into_iter().find(|path| path.to_string_lossy().ends_with(ending)).unwrap()
    };
    let expected = works(&root, "log -p");
    for file in [find(".pack"), find(".idx")] {
        script(&root, &format!("chmod u+w '{}'", file.display()));
        let good = std::fs::read(&file).unwrap();
        for place in (0..good.len()).step_by(good.len().div_ceil(150)) {
            let mut bad = good.clone();
            bad[place] ^= 0x55;
            std::fs::write(&file, &bad).unwrap();
            call(&root, "log -p");
            std::fs::write(&file, &good[..place]).unwrap();
            call(&root, "log -p");
        }
        std::fs::write(&file, &good).unwrap();
    }
    assert_eq!(works(&root, "log -p"), expected);
}

#[test]
fn the_callers_own_directory_is_no_part_of_it() {
    let (_kept, root) = workspace();
    let call = |line: &str| {
        let arguments: Vec<&str> = line.split(' ').collect();
        ours(&root, &root, &arguments)
    };
    assert_eq!(call("init -q").code, 0);
    std::fs::create_dir(root.join(".motor-output")).unwrap();
    std::fs::write(root.join(".motor-output/1.txt"), "host").unwrap();
    std::fs::write(root.join("mine"), "x").unwrap();
    assert_eq!(text(&call("status --porcelain").stdout), "?? mine\n");
    assert_eq!(call("add -A").code, 0);
    assert_eq!(text(&call("ls-files").stdout), "mine\n");
    assert!(call("add -f .motor-output/1.txt").code != 0);
    assert_eq!(text(&call("ls-files").stdout), "mine\n");
}

#[test]
fn a_call_ends_at_its_deadline() {
    let (_kept, root) = repository();
    let mut parent = Vec::new();
    for _ in 0..300 {
        parent = vec![commit(&root, ObjectId::empty_tree(gix_hash::Kind::Sha1), &parent)];
    }
    branch(&root, parent[0]);
    let invocation = crate::Invocation {
        root: root.clone(),
        shown: root.clone(),
        directory: root.join("w"),
        arguments: vec!["log".to_owned(), "--oneline".to_owned()],
        environment: Default::default(),
        input: Vec::new(),
        now: std::time::SystemTime::now(),
        deadline: Some(Instant::now()),
        modes: Default::default(),
        network: None,
        reserved: None,
    };
    let answer = crate::run(invocation);
    assert!(answer.code == 124 && text(&answer.stderr).contains("the time of this call is over"), "{answer:?}");
    assert_eq!(works(&root, "log --oneline").lines().count(), 300);
}
