//! Tests of snapshot archives.

use std::io::{Cursor, Write as _};

use zip::ZipWriter;
use zip::write::SimpleFileOptions;

use super::*;

fn read_all(bytes: &[u8]) -> Result<Snapshot, SnapshotError> {
    read_archive(bytes, &SkillBounds::default())
}

/// As an honest program packs it.
pub(super) fn packed<'a, N: Into<String>>(files: impl IntoIterator<Item = (N, &'a [u8])>) -> Vec<u8> {
    let mut writer = ZipWriter::new(Cursor::new(Vec::new()));
    for (path, content) in files {
        writer.start_file(path.into(), SimpleFileOptions::default()).unwrap();
        writer.write_all(content).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

/// An entry of which everything can be a lie.
#[derive(Clone)]
struct Entry {
    name: Vec<u8>,
    local_name: Vec<u8>,
    content: Vec<u8>,
    /// `UNIX << 8`, or another system.
    made_by: u16,
    mode: u32,
    flags: u16,
    method: u16,
    size: u32,
    crc: u32,
    is_listed: bool,
}

const UNIX: u16 = 3;

fn entry(name: impl AsRef<[u8]>, content: &[u8]) -> Entry {
    let name = name.as_ref().to_vec();
    Entry {
        local_name: name.clone(),
        name,
        content: content.to_vec(),
        made_by: UNIX << 8 | 20,
        mode: 0o100_644,
        flags: 0x800,
        method: 0,
        size: content.len() as u32,
        crc: crc32(content),
        is_listed: true,
    }
}

fn directory(name: &str) -> Entry {
    Entry { mode: 0o040_755, ..entry(name, b"") }
}

fn manifest() -> Entry {
    entry("SKILL.md", MANIFEST.as_bytes())
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// The common part of both headers of an entry, from its flags to its sizes.
fn common(entry: &Entry, name: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [entry.flags, entry.method, 0, 0x21] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend(entry.crc.to_le_bytes());
    bytes.extend((entry.content.len() as u32).to_le_bytes());
    bytes.extend(entry.size.to_le_bytes());
    bytes.extend((name.len() as u16).to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes
}

/// Packs entries; `at` says where the list says that an entry is, if not where it is.
fn forged_at(entries: &[Entry], at: impl Fn(usize, u32) -> u32) -> Vec<u8> {
    let (mut bytes, mut list, mut listed) = (Vec::new(), Vec::new(), 0_u16);
    for (index, entry) in entries.iter().enumerate() {
        let offset = at(index, bytes.len() as u32);
        bytes.extend(b"PK\x03\x04\x14\0");
        bytes.extend(common(entry, &entry.local_name));
        bytes.extend(&entry.local_name);
        bytes.extend(&entry.content);
        if entry.is_listed {
            listed += 1;
            list.extend(b"PK\x01\x02");
            list.extend(entry.made_by.to_le_bytes());
            list.extend(20_u16.to_le_bytes());
            list.extend(common(entry, &entry.name));
            list.extend([0; 6]);
            list.extend((entry.mode << 16).to_le_bytes());
            list.extend(offset.to_le_bytes());
            list.extend(&entry.name);
        }
    }
    let start = bytes.len() as u32;
    bytes.extend(&list);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend(listed.to_le_bytes());
    bytes.extend(listed.to_le_bytes());
    bytes.extend((list.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend(0_u16.to_le_bytes());
    bytes
}

fn forged(entries: &[Entry]) -> Vec<u8> {
    forged_at(entries, |_, offset| offset)
}

/// Beside a `SKILL.md` that is in order.
#[test]
fn each_hostile_entry_is_refused_and_its_twin_is_not() {
    let with = |change: fn(&mut Entry)| {
        let mut entry = entry("a.txt", b"content");
        change(&mut entry);
        entry
    };
    let named = |name: &[u8]| entry(name, b"x");
    for (other, reason) in [
        (with(|_| {}), None),
        (named("é.txt".as_bytes()), None),
        // Without saying that it is UTF-8, as macOS does it.
        (Entry { flags: 0, ..named("é.txt".as_bytes()) }, None),
        (with(|entry| entry.mode = 0), None),
        (with(|entry| entry.mode = 0o100_755), None),
        (with(|entry| entry.made_by = 20), None),
        (directory("d/"), None),
        (directory("d/e/"), None),
        (Entry { mode: 0, ..directory("d/") }, None),
        (named(b"../a"), Some("`../a` leads out of its place with `.` or `..`")),
        (named(b"a/../../b"), Some("`a/../../b` leads out of its place with `.` or `..`")),
        (directory("../"), Some("`..` leads out of its place with `.` or `..`")),
        (named(b"/etc/passwd"), Some("`/etc/passwd` is an absolute path")),
        (named(b"a\\b"), Some("`a\\\\b` has a backslash in its name")),
        (named(b"..\\b"), Some("`..\\\\b` has a backslash in its name")),
        (named(b"C:\\b"), Some("`C:\\\\b` has a backslash in its name")),
        (named(b"C:b"), Some("`C:b` begins with the letter of a drive")),
        (named(b"a\0.md"), Some("`a\\0.md` has a control character in its name")),
        (named(b"a\x1b[2J"), Some("`a\\u{1b}[2J` has a control character in its name")),
        (named(b"a\xff"), Some("`a\u{fffd}` has a name that is not UTF-8")),
        (named(b""), Some("`` is an empty path")),
        (named(b"a//b"), Some("`a//b` has an empty part")),
        (directory("a//"), Some("`a/` has an empty part")),
        (named(b"skill.md"), Some("`SKILL.md` and `skill.md` are the same name on some systems")),
        (named(b"SKILL.md"), Some("the archive has two entries of one name")),
        (directory("SKILL.md/"), Some("`SKILL.md` is a file and a directory")),
        (named(b"SKILL.md/a"), Some("`SKILL.md` is a file and a directory")),
        (with(|entry| entry.mode = 0o120_777), Some("`a.txt` is a link: put the file itself there")),
        // It claims a system without links; some programs make one all the same.
        (
            with(|entry| (entry.mode, entry.made_by) = (0o120_777, 20)),
            Some("`a.txt` is a link: put the file itself there"),
        ),
        (with(|entry| entry.mode = 0o020_666), Some("`a.txt` is neither a file nor a directory")),
        (with(|entry| entry.mode = 0o060_666), Some("`a.txt` is neither a file nor a directory")),
        (with(|entry| entry.mode = 0o010_666), Some("`a.txt` is neither a file nor a directory")),
        (with(|entry| entry.mode = 0o140_666), Some("`a.txt` is neither a file nor a directory")),
        (with(|entry| entry.mode = 0o170_666), Some("`a.txt` is neither a file nor a directory")),
        (with(|entry| entry.mode = 0o040_755), Some("`a.txt` is neither a file nor a directory")),
        (Entry { mode: 0o100_644, ..directory("d/") }, Some("`d` is neither a file nor a directory")),
        (Entry { mode: 0o040_755, ..entry("d/", b"x") }, Some("`d` is a file and a directory")),
        (with(|entry| entry.flags |= 1), Some("the archive has an encrypted file, `a.txt`")),
        (with(|entry| entry.method = 12), Some("the archive has `a.txt` compressed in another way than deflate")),
        (with(|entry| entry.method = 93), Some("the archive has `a.txt` compressed in another way than deflate")),
        (with(|entry| entry.method = 8), Some("the archive has in `a.txt` other bytes than it says")),
        (with(|entry| entry.size += 1), Some("the archive has in `a.txt` other bytes than it says")),
        (with(|entry| entry.size -= 1), Some("the archive has in `a.txt` other bytes than it says")),
        (with(|entry| entry.crc ^= 1), Some("the archive has in `a.txt` other bytes than it says")),
        (
            with(|entry| entry.local_name = b"b.txt".into()),
            Some("the archive has a list of entries that is not what its entries say"),
        ),
        (
            with(|entry| entry.is_listed = false),
            Some("the archive has a list of entries that is not what its entries say"),
        ),
    ] {
        for entries in [vec![manifest(), other.clone()], vec![other.clone(), manifest()]] {
            let read = read_all(&forged(&entries)).map_err(|error| error.to_string());
            let name = String::from_utf8_lossy(&other.name).into_owned();
            match (read, reason) {
                (Ok(_), None) => {}
                // Which of two twins comes first decides which is named first.
                (Err(found), Some(reason)) if reason.contains(" and `") => {
                    assert!(found.ends_with("are the same name on some systems"), "{name}: {found}");
                }
                (Err(found), Some(reason)) => assert_eq!(found, reason, "{name}"),
                (read, reason) => panic!("{name}: {read:?} and not {reason:?}"),
            }
        }
    }
}

#[test]
fn names_in_two_ways_of_writing_are_twins() {
    for (one, other) in [("é", "e\u{301}"), ("ﬁ", "fi"), ("a/x", "A/y"), ("ß", "SS")] {
        let read = read_all(&forged(&[manifest(), entry(one, b"1"), entry(other, b"2")]));
        assert!(matches!(read, Err(SnapshotError::Twins { .. })), "{one} {other}: {read:?}");
    }
    assert!(read_all(&forged(&[manifest(), entry("é", b"1"), entry("e", b"2")])).is_ok());
}

#[test]
fn one_directory_around_everything_is_taken_off() {
    let inner =
        |prefix: &str| [entry(format!("{prefix}SKILL.md"), MANIFEST.as_bytes()), entry(format!("{prefix}b/c"), b"x")];
    let hash = read_all(&forged(&inner(""))).unwrap().hash;
    let litter = [entry("__MACOSX/pdf/._SKILL.md", b"\0"), directory("__MACOSX/"), entry("pdf/.DS_Store", b"x")];
    for entries in [
        inner("pdf/").to_vec(),
        [&[directory("pdf/"), directory("pdf/b/")][..], &inner("pdf/")].concat(),
        [&inner("pdf/")[..], &litter].concat(),
        [&litter[..], &inner("pdf/")].concat(),
        [&inner("")[..], &[entry(".DS_Store", b"x"), entry("b/.DS_Store", b"y")]].concat(),
    ] {
        let read = read_all(&forged(&entries)).unwrap();
        assert_eq!(read.hash, hash);
        assert_eq!(read.files.keys().collect::<Vec<_>>(), ["SKILL.md", "b/c"]);
    }
    // Not when it is not around everything, or the description is elsewhere.
    let beside = read_all(&forged(&[&inner("pdf/")[..], &[manifest()]].concat())).unwrap();
    assert_eq!(beside.files.len(), 3);
    for entries in [
        [&inner("pdf/")[..], &[entry("x", b"")]].concat(),
        inner("a/pdf/").to_vec(),
        [entry("a/SKILL.md", b"x"), entry("b/SKILL.md", b"x")].to_vec(),
        Vec::new(),
        litter.to_vec(),
    ] {
        refused(read_all(&forged(&entries)), "it has no `SKILL.md`");
    }
    refused(
        read_all(&forged(&[&inner("pdf/")[..], &[entry("PDF/x", b"")]].concat())),
        "`pdf` and `PDF` are the same name on some systems",
    );
    let proposed = read_all(&forged(&[&inner("pdf/")[..], &[entry("pdf/policy.json", b"{}")]].concat())).unwrap();
    assert_eq!((proposed.hash, proposed.proposal.as_deref()), (hash, Some(&b"{}"[..])));
}

#[test]
fn bombs_end_where_the_bounds_are() {
    let zeros = |bytes: usize| vec![0; bytes];
    let of = |files: &[(&str, Vec<u8>)]| {
        let files =
            [("SKILL.md", MANIFEST.as_bytes())].into_iter().chain(files.iter().map(|(path, c)| (*path, c.as_slice())));
        read_all(&packed(files))
    };
    assert!(of(&[("a", zeros(1 << 20)), ("b.wasm", zeros(8 << 20))]).is_ok());
    refused(of(&[("a", zeros((1 << 20) + 1))]), "`a` is larger than 1 MiB");
    refused(of(&[("b.wasm", zeros((64 << 20) + 1))]), "the archive unpacks to more than 200 times its own size");
    refused(of(&[("b.wasm", zeros(32 << 20))]), "the archive unpacks to more than 200 times its own size");
    let many: Vec<(String, Vec<u8>)> = (0..11).map(|n| (n.to_string(), zeros(1 << 20))).collect();
    let many: Vec<(&str, Vec<u8>)> = many.iter().map(|(name, content)| (name.as_str(), content.clone())).collect();
    refused(of(&many), "its files that are no components are more than 10 MiB");
    refused(of(&[("policy.json", zeros((256 << 10) + 1))]), "`policy.json` is larger than 256 KiB");
    // Incompressible content may be large.
    let mut state = 1_u32;
    let noise = std::iter::repeat_with(|| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    });
    assert!(of(&[("b.wasm", noise.take(20 << 20).collect())]).is_ok());

    // Many entries that share their bytes.
    let file = entry("a", &[7; 1000]);
    let shared: Vec<Entry> = (0..9).map(|n| Entry { name: format!("f{n}").into(), ..file.clone() }).collect();
    let first = |_: usize, _: u32| 0;
    refused(read_all(&forged_at(&shared, first)), "the archive has entries that lie over each other");
    let many: Vec<Entry> = (0..10_000).map(|n| entry(format!("f{n}"), b"")).collect();
    refused(read_all(&forged(&[&[manifest()], &many[..]].concat())), "it has more than 2000 files and directories");
    refused(
        read_all(&forged(&[&[manifest()], &many[..2_000]].concat())),
        "it has more than 2000 files and directories",
    );
    assert!(read_all(&forged(&[&[manifest()], &many[..1_999]].concat())).is_ok());
}

#[test]
fn what_is_no_archive_or_more_than_one_is_refused() {
    let good = forged(&[manifest(), entry("a", b"content")]);
    assert!(read_all(&good).is_ok());
    for bytes in [&b""[..], b"PK", b"\0asm\x0d\0\x01\0", MANIFEST.as_bytes(), &good[..good.len() - 1], &good[1..]] {
        assert!(matches!(read_all(bytes), Err(SnapshotError::Archive { .. })), "{}", bytes.len());
    }
    refused(read_all(&good[..good.len() - 22]), "the archive is no zip, or damaged");
    let prefixed = [b"#!/bin/sh\nexit\n", good.as_slice()].concat();
    refused(read_all(&prefixed), "the archive has something else before it: a file that is two things is not read");
    let two = [forged(&[manifest(), entry("b", b"other")]), good.clone()].concat();
    refused(read_all(&two), "the archive has something else before it: a file that is two things is not read");
    // A zip64 locator where one could be.
    let mut zip64 = good.clone();
    zip64.splice(good.len() - 22..good.len() - 22, b"PK\x06\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0".to_vec());
    refused(read_all(&zip64), "the archive is a zip64 archive: pack it as a plain zip");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    /// An archive with any bytes changed or cut off: never a panic, and a tree that is read keeps the rules.
    #[test]
    fn a_damaged_archive_is_refused_or_keeps_the_rules(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = forged(&[manifest(), entry("d/a", b"content"), directory("e/"), entry("b.wasm", &[9; 100])]);
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Ok(read) = read_all(&bytes) {
            let files = read.files.iter().map(|(path, file)| (path.as_str(), file.bytes.len() as u64));
            prop_assert!(check_tree(SkillForm::Archive, files, &SkillBounds::default()).is_ok());
        }
    }

    #[test]
    fn any_bytes_are_no_archive(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        prop_assert!(read_all(&bytes).is_err());
    }
}
