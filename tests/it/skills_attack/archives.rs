//! Archives made to be read in two ways, to lead out of their place or to fill a disk. Each is listed with its one reason, and
//! nothing is written anywhere.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use flate2::Crc;
use flate2::write::DeflateEncoder;
use serde_json::json;

use crate::skills_scenarios::world::{World, files, manifest, of_entry, says};

/// An archive written by hand, because libraries refuse to write hostile ones.
#[derive(Default)]
pub struct Zip {
    bytes: Vec<u8>,
    central: Vec<u8>,
    count: u16,
}

/// The fields of an entry's header beside its name.
#[derive(Clone, Copy)]
struct Says {
    /// Unix mode, file type included; 0 if there is none.
    mode: u32,
    flags: u16,
    method: u16,
    /// Added to the size that the list of entries says.
    longer: u32,
}

const PLAIN: Says = Says { mode: 0o100_644, flags: 1 << 11, method: 0, longer: 0 };

impl Zip {
    /// An archive as it should be.
    pub fn of(files: &[(&str, &str)]) -> Self {
        let mut zip = Self::default();
        for (path, content) in files {
            zip = zip.file(path, content.as_bytes());
        }
        zip
    }

    /// Adds a file, mode 644, uncompressed.
    pub fn file(self, path: &str, content: &[u8]) -> Self {
        self.entry(path.as_bytes(), content, content.len(), PLAIN)
    }

    fn moded(self, path: &str, content: &[u8], mode: u32) -> Self {
        self.entry(path.as_bytes(), content, content.len(), Says { mode, ..PLAIN })
    }

    /// Adds a compressed file of zeros.
    fn zeros(self, path: &str, size: usize) -> Self {
        let mut packed = DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        packed.write_all(&vec![0; size]).unwrap();
        self.entry(path.as_bytes(), &packed.finish().unwrap(), size, Says { method: 8, ..PLAIN })
    }

    fn entry(mut self, name: &[u8], stored: &[u8], size: usize, says: Says) -> Self {
        let mut crc = Crc::new();
        if says.method == 0 {
            crc.update(stored);
        } else {
            crc.update(&vec![0; size]);
        }
        let offset = u32::try_from(self.bytes.len()).unwrap();
        let (stored_size, size) = (u32::try_from(stored.len()).unwrap(), u32::try_from(size).unwrap());
        let name_size = u16::try_from(name.len()).unwrap();
        let common = |size: u32| {
            let mut fields = Vec::new();
            fields.extend([20_u16, says.flags, says.method, 0, 0x21].map(u16::to_le_bytes).concat());
            fields.extend([crc.sum(), stored_size, size].map(u32::to_le_bytes).concat());
            fields.extend([name_size, 0].map(u16::to_le_bytes).concat());
            fields
        };
        self.bytes.extend(b"PK\x03\x04");
        self.bytes.extend(common(size));
        self.bytes.extend([name, stored].concat());
        self.central.extend(b"PK\x01\x02\x14\x03");
        self.central.extend(common(size + says.longer));
        self.central.extend([0_u16, 0, 0].map(u16::to_le_bytes).concat());
        self.central.extend([says.mode << 16, offset].map(u32::to_le_bytes).concat());
        self.central.extend(name);
        self.count += 1;
        self
    }

    /// The bytes of the archive.
    pub fn finish(mut self) -> Vec<u8> {
        let (at, size) = (u32::try_from(self.bytes.len()).unwrap(), u32::try_from(self.central.len()).unwrap());
        self.bytes.extend(&self.central);
        self.bytes.extend(b"PK\x05\x06\0\0\0\0");
        self.bytes.extend([self.count; 2].map(u16::to_le_bytes).concat());
        self.bytes.extend([size, at].map(u32::to_le_bytes).concat());
        self.bytes.extend([0; 2]);
        self.bytes
    }
}

/// An archive that is a valid skill until the attack is added.
fn nearly(name: &str) -> Zip {
    Zip::of(&[("SKILL.md", &manifest(name, "Hello."))])
}

fn hostile() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let deep = format!("{}x", "d/".repeat(64));
    let mut many = nearly("many");
    for number in 0..10_000 {
        many = many.file(&format!("references/{number}"), b"");
    }
    let mut much = nearly("much");
    for number in 0..11 {
        much = much.zeros(&format!("references/{number}"), 1 << 20);
    }
    let mut twice = nearly("twice").file("a.txt", b"1");
    twice = twice.file("a.txt", b"2");
    let inner = nearly("inner").finish();
    let mut two_things = b"#!/bin/sh\necho owned\n".to_vec();
    two_things.extend(nearly("two-things").finish());
    let mut cut = nearly("cut").finish();
    cut.truncate(cut.len() - 30);
    vec![
        ("traversal", nearly("traversal").file("../evil/SKILL.md", b"x").finish(), "leads out of its place"),
        (
            "traversal-deep",
            nearly("traversal-deep").file("scripts/../../../evil", b"x").finish(),
            "leads out of its place",
        ),
        ("absolute", nearly("absolute").file("/tmp/motor-evil", b"x").finish(), "is an absolute path"),
        ("backslash", nearly("backslash").file("..\\evil", b"x").finish(), "has a backslash"),
        ("drive", nearly("drive").file("C:evil", b"x").finish(), "letter of a drive"),
        ("control", nearly("control").file("scripts/a\u{1b}[2J.sh", b"x").finish(), "control character"),
        ("deep", nearly("deep").file(&deep, b"x").finish(), "more than 64"),
        (
            "link",
            nearly("link").moded("scripts/out", b"../../../etc/passwd", 0o120_777).finish(),
            "`scripts/out` is a link",
        ),
        (
            "device",
            nearly("device").moded("scripts/null", b"", 0o020_666).finish(),
            "`scripts/null` is neither a file nor",
        ),
        ("pipe", nearly("pipe").moded("scripts/pipe", b"", 0o010_644).finish(), "`scripts/pipe` is neither a file nor"),
        (
            "bomb",
            nearly("bomb").zeros("references/zeros", 64 << 20).finish(),
            "`references/zeros` is larger than 1 MiB",
        ),
        ("component-bomb", nearly("component-bomb").zeros("a.wasm", 60 << 20).finish(), "200 times its own size"),
        ("much", much.finish(), "are more than 10 MiB"),
        ("many", many.finish(), "it has more than 2000 files and directories"),
        (
            "case",
            nearly("case").file("a.txt", b"1").file("A.TXT", b"2").finish(),
            "`a.txt` and `A.TXT` are the same name",
        ),
        (
            "normal",
            nearly("normal").file("caf\u{e9}.md", b"1").file("cafe\u{301}.md", b"2").finish(),
            "are the same name on some systems",
        ),
        ("twice", twice.finish(), "two entries of one name"),
        ("nested", Zip::default().file("inner.zip", &inner).finish(), "it has no `SKILL.md`"),
        (
            "encrypted",
            nearly("encrypted").entry(b"a", b"x", 1, Says { flags: 1, ..PLAIN }).finish(),
            "an encrypted file",
        ),
        ("lies", nearly("lies").entry(b"a", b"xyz", 3, Says { longer: 5, ..PLAIN }).finish(), "the archive has"),
        (
            "method",
            nearly("method").entry(b"a", b"x", 1, Says { method: 12, ..PLAIN }).finish(),
            "another way than deflate",
        ),
        ("not-utf8", nearly("not-utf8").entry(b"a\xff", b"x", 1, PLAIN).finish(), "not UTF-8"),
        ("two-things", two_things, "something else before it"),
        ("cut", cut, "is no zip, or damaged"),
        ("garbage", b"PK\x03\x04 and then nothing".to_vec(), "is no zip, or damaged"),
        ("empty", Vec::new(), "is no zip, or damaged"),
    ]
}

/// Everything in a home that a skill could have been unpacked to: path, size, inode.
fn everything(home: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(home).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if ["state", "cache", "logs", "host.sock", "host.lock"].contains(&name.as_str()) {
            continue;
        }
        let mut waiting = vec![entry.path()];
        while let Some(path) = waiting.pop() {
            let status = fs::symlink_metadata(&path).unwrap();
            let shown = path.strip_prefix(home).unwrap().to_str().unwrap().to_owned();
            if status.is_dir() {
                waiting.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
                found.insert(shown, (0, 0));
            } else {
                found.insert(shown, (status.len(), status.ino()));
            }
        }
    }
    found
}

#[test]
fn hostile_archives_are_listed_with_their_reason_and_never_unpacked() {
    let world = World::new(vec![says("done")]);
    let _token = world.motor.owner_token();
    fs::write(world.skills().join("good.skill"), nearly("good").file("scripts/a.sh", b"echo a\n").finish()).unwrap();
    let hostile = hostile();
    for (name, bytes, _) in &hostile {
        fs::write(world.skills().join(format!("{name}.zip")), bytes).unwrap();
    }
    assert_eq!(world.motor.json(&["skill", "list"]).as_array().unwrap().len(), hostile.len() + 1);
    let before = everything(world.motor.home());
    let around = || fs::read_dir(world.motor.directory()).unwrap().count();
    let beside = around();
    let list = world.motor.json(&["skill", "list"]);
    assert_eq!(list.as_array().unwrap().len(), hostile.len() + 1);
    let verified = world.motor.run(&["skill", "verify", "--json"]);
    let verified: serde_json::Value = serde_json::from_str(&verified.stdout).unwrap();
    for (name, _, reason) in &hostile {
        let entry = format!("{name}.zip");
        let listed = of_entry(&list, &entry);
        assert_eq!((&listed["status"], &listed["readable"]), (&json!("needs_reapproval"), &json!(false)), "{listed}");
        for said in [&listed, &of_entry(&verified, &entry)] {
            assert!(said["reason"].as_str().unwrap().contains(reason), "{name}: {reason:?} is not said: {said}");
        }
        let place = format!("home/{entry}");
        for command in [
            &["act", "use it", "--skill", &place][..],
            &["explain", "x", "--skill", &place],
            &["skill", "review", &place],
        ] {
            let ended = world.motor.run(command);
            assert!(ended.code.is_some_and(|code| code != 0) && ended.stdout.is_empty(), "{name}: {ended:?}");
            assert!(ended.stderr.contains(reason) && !ended.stderr.contains("panicked"), "{name}: {ended:?}");
        }
        let ended = world.as_owner(&["skill", "approve", &place]);
        assert!(ended.code != Some(0) && ended.stderr.contains(reason), "{name}: {ended:?}");
        let path = world.skills().join(&entry);
        let ended = world.as_owner(&["skill", "add", path.to_str().unwrap()]);
        assert!(ended.code != Some(0) && ended.stderr.contains(reason), "{name}: {ended:?}");
    }
    assert_eq!(everything(world.motor.home()), before, "something was written");
    assert_eq!(around(), beside, "something was written beside the home");
    assert!(!fs::exists("/tmp/motor-evil").unwrap());
    assert_eq!(world.model.calls(), 0);

    // The good one beside them is used, from its archive.
    world.approve(&["good", "--tools", "filesystem"]);
    world.act("good", &[]).succeeded();
    let run = world.motor.only_run();
    assert_eq!(files(&world.motor.workspace(&run))["scripts/a.sh"], b"echo a\n");
    assert!(!fs::exists(world.skills().join("good")).unwrap());
    // One byte of it, and it is another.
    fs::write(world.skills().join("good.skill"), nearly("good").file("scripts/a.sh", b"echo b\n").finish()).unwrap();
    let calls = world.model.calls();
    world.act("good", &[]).refused(5, &["needs_reapproval"]);
    assert_eq!(world.model.calls(), calls);
}
