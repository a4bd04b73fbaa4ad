//! Skills, YAML and texts from outside the project. The files are not part of it: without them these tests say so and
//! pass.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::manifest::{self, departures, tests::has_a_verdict};
use crate::snapshot::{self, SkillBounds};

mod counted;

/// Directories of the corpus that the standard's reference validator refuses.
const REFERENCE: &str = include_str!("../tests/fixtures/reference.tsv");
const SKILLS: usize = 614;

fn corpus(name: &str) -> Option<PathBuf> {
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let path = above.map(|directory| directory.join("shared/corpora").join(name)).find(|path| path.is_file());
    if path.is_none() {
        eprintln!("passed over: there is no {name}");
    }
    path
}

fn unpacked(name: &str) -> Option<TempDir> {
    let archive = corpus(name)?;
    let directory = tempfile::tempdir().unwrap();
    let status = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(directory.path()).status().unwrap();
    assert!(status.success());
    Some(directory)
}

/// Every file below, with its path relative to `root`.
fn files(root: &Path) -> Vec<PathBuf> {
    let (mut found, mut waiting) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = waiting.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => waiting.push(entry.path()),
                kind if kind.is_file() => found.push(entry.path()),
                _ => {}
            }
        }
    }
    found.sort();
    found
}

/// The directories of real skills, and where they are.
fn skills() -> Option<(TempDir, Vec<PathBuf>)> {
    let unpacked = unpacked("skills.tar.gz")?;
    let manifests = files(unpacked.path()).into_iter().filter(|path| path.ends_with("SKILL.md"));
    let directories = manifests.map(|path| path.parent().unwrap().to_owned()).collect();
    Some((unpacked, directories))
}

#[test]
fn real_skills_are_read_and_judged_like_by_the_reference() {
    let Some((root, directories)) = skills() else { return };
    assert_eq!(directories.len(), SKILLS);
    let invalid: Vec<&str> = REFERENCE.lines().filter(|line| !line.starts_with('#')).collect();
    let (mut usable, mut agreed) = (0, 0);
    for directory in &directories {
        let entry = directory.file_name().unwrap().to_str().unwrap();
        let path = directory.strip_prefix(root.path().join("skills")).unwrap().to_str().unwrap();
        let snapshot = snapshot::read(directory, &SkillBounds::default()).unwrap();
        match snapshot.manifest(entry) {
            Ok(_) => usable += 1,
            Err(reason) => eprintln!("not usable: {path}: {reason}"),
        }
        let strict = departures(&snapshot.files.get("SKILL.md").unwrap().bytes, entry);
        if strict.is_empty() == invalid.contains(&path) {
            eprintln!("the reference says otherwise: {path}: {strict:?}");
        } else {
            agreed += 1;
        }
    }
    eprintln!("{usable} of {SKILLS} usable, {agreed} of {SKILLS} strict verdicts are those of the reference");
    assert!(usable * 100 >= SKILLS * 96, "{usable}");
    assert!(agreed * 100 >= SKILLS * 99, "{agreed}");
}

#[test]
fn mutated_skills_and_other_peoples_yaml_have_a_verdict() {
    if let Some((_root, directories)) = skills() {
        // A fixed sequence makes failures repeatable.
        let mut state = 7_u64;
        let mut next = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below.max(1)
        };
        for directory in &directories {
            let original = fs::read(directory.join("SKILL.md")).unwrap();
            // The relevant part of the file.
            let head = original.len().min(2_000);
            for _ in 0..8 {
                let mut text = original[..head].to_vec();
                for _ in 0..=next(4) {
                    let at = next(text.len());
                    match next(5) {
                        0 => text[at] = next(256) as u8,
                        1 => drop(text.remove(at)),
                        2 => text.truncate(at.max(1)),
                        3 => text.insert(at, b":\"'\n\t[{&*!|>-#\r\0"[next(16)]),
                        _ => text.splice(at..at, original[..next(head)].to_vec()).for_each(drop),
                    }
                }
                has_a_verdict(&text);
            }
        }
    }
    if let Some(suite) = unpacked("yaml.tar.gz") {
        let inputs: Vec<_> = files(suite.path()).into_iter().filter(|path| path.ends_with("in.yaml")).collect();
        assert!(inputs.len() > 300, "{}", inputs.len());
        for input in inputs {
            let yaml = fs::read(input).unwrap();
            has_a_verdict(&yaml);
            has_a_verdict(&[b"---\n", yaml.as_slice(), b"\n---\n"].concat());
            has_a_verdict(&[b"---\nname: pdf\ndescription:\n", yaml.as_slice(), b"\n---\n"].concat());
        }
    }
}

#[test]
fn naughty_texts_are_names_and_descriptions() {
    let Some(path) = corpus("naughty-strings.json") else { return };
    let texts: Vec<String> = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    assert!(texts.len() > 400);
    for text in texts {
        for value in [text.clone(), serde_json::to_string(&text).unwrap()] {
            has_a_verdict(format!("---\nname: {value}\ndescription: a\n---\n").as_bytes());
            has_a_verdict(format!("---\nname: pdf\ndescription: {value}\n---\n").as_bytes());
        }
        // In quotes a text stays as is but for space and control characters; YAML forbids those JSON leaves unescaped.
        let quoted = serde_json::to_string(&text).unwrap();
        if quoted.chars().any(char::is_control) {
            continue;
        }
        let front = format!("---\nname: pdf\ndescription: {quoted}\n---\n");
        let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let words: Vec<&str> = plain.split_whitespace().collect();
        match manifest::read(front.as_bytes(), "pdf") {
            Ok(manifest) => assert_eq!(manifest.description, words.join(" ")),
            Err(reason) => assert!(words.is_empty(), "{text:?}: {reason}"),
        }
    }
}

/// Counted without the table of patterns: by words that stand in the same line.
fn is_independently_risky(text: &str) -> bool {
    let shells = ["bash", "sh", "zsh", "iex", "python", "python3", "node"];
    let lower = text.to_lowercase();
    lower.replace("\\\n", " ").lines().any(|line| {
        let word = |word: &&str| line.split(|c: char| !c.is_alphanumeric()).any(|other| other == *word);
        let fetches = ["curl", "wget", "irm", "iwr", "base64", "downloadstring"].iter().any(word);
        let address = || line.split("://").skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        let switch = ["--insecure", "-k ", "anyway", "dangerously", "history"].iter().any(|flag| line.contains(flag));
        let checks = ["ignore", "disregard", "disable", "bypass", "without asking", "do not tell", "override"];
        let target = ["instructions", "firewall", "antivirus", "safety", "security", "user"];
        let site = ["ngrok", "pastebin", "webhook", "transfer.sh", "file.io", "gofile", "beeceptor", "trycloudflare"];
        let orders =
            checks.iter().any(|check| line.contains(check)) && target.iter().any(|target| line.contains(target));
        let locked = line.contains("password") && (line.contains("zip") || line.contains(".7z"));
        (fetches && shells.iter().any(word))
            || address()
            || switch
            || orders
            || locked
            || site.iter().any(|site| line.contains(site))
            || (line.contains('|') && shells.iter().any(word) && line.contains("xargs"))
    })
}

#[test]
fn few_real_skills_have_a_line_to_read_first() {
    let Some((_root, directories)) = skills() else { return };
    let (mut reported, mut unexplained) = (0, 0);
    let begun = Instant::now();
    for directory in &directories {
        let snapshot = snapshot::read(directory, &SkillBounds::default()).unwrap();
        let found = crate::review::risks_of(&snapshot);
        if let Some(worst) = found.first() {
            reported += 1;
            let text = crate::review::text_of(&snapshot, "SKILL.md").unwrap_or_default();
            if !is_independently_risky(&text) {
                unexplained += 1;
                eprintln!("unexplained: {}: {worst:?}", directory.display());
            } else {
                eprintln!("reported: {}: {:?} {}", directory.display(), worst.kind, worst.shown);
            }
        }
    }
    eprintln!("{reported} of {} reported, {unexplained} unexplained, {:?}", directories.len(), begun.elapsed());
    assert!(unexplained * 100 <= directories.len() * 2, "{unexplained}");
}

/// `cargo test -p skills --release -- --ignored --nocapture what_reading_costs`
#[test]
#[ignore = "measures; says nothing on a busy machine"]
fn what_reading_costs() {
    let build = if cfg!(debug_assertions) { "dev" } else { "release" };
    let bounds = SkillBounds::default();
    if let Some((_root, directories)) = skills() {
        let manifests: Vec<PathBuf> = directories.iter().map(|directory| directory.join("SKILL.md")).collect();
        let bytes: u64 = manifests.iter().map(|path| fs::metadata(path).unwrap().len()).sum();
        let gate =
            median(|| directories.iter().for_each(|directory| drop(snapshot::read(directory, &bounds).unwrap())));
        let twice = median(|| {
            for path in manifests.iter().chain(&manifests) {
                drop(fs::read(path).unwrap());
            }
        });
        let listed = median(|| directories.iter().chain(&directories).for_each(|directory| listed_and_read(directory)));
        let with_manifest = median(|| {
            for directory in &directories {
                let entry = directory.file_name().unwrap().to_str().unwrap();
                drop(snapshot::read(directory, &bounds).unwrap().manifest(entry));
            }
        });
        eprintln!(
            "{build}: {} directories, {bytes} bytes: read and hashed {gate}, with manifest {with_manifest}; files opened and read \
             twice {twice}, directories listed and files read twice {listed}",
            directories.len()
        );
    }

    let root = tempfile::tempdir().unwrap();
    let component: Vec<u8> = (0..8_u32 << 20).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let skill = root.path().join("large");
    fs::create_dir(&skill).unwrap();
    fs::write(skill.join("SKILL.md"), "---\nname: large\ndescription: a\n---\n").unwrap();
    fs::write(skill.join("large.wasm"), component).unwrap();
    let gate = median(|| drop(snapshot::read(&skill, &bounds).unwrap()));
    let twice = median(|| (0..2).for_each(|_| listed_and_read(&skill)));
    eprintln!("{build}: a skill with a component of 8 MiB: read and hashed {gate}; listed and read twice {twice}");

    const PLACES: usize = 10_000;
    let places: Vec<PathBuf> = (0..PLACES).map(|n| root.path().join(format!("skill-{n}"))).collect();
    for place in &places {
        fs::create_dir(place).unwrap();
        fs::write(place.join("SKILL.md"), "x").unwrap();
        fs::write(place.join("a.py"), "x").unwrap();
    }
    let stamps = median(|| {
        for place in &places {
            snapshot::stamp(place).unwrap();
        }
    });
    let (one, other) = places.split_at(PLACES / 2);
    let by_two = median(|| {
        std::thread::scope(|scope| {
            for places in [one, other] {
                scope.spawn(|| places.iter().for_each(|place| assert!(snapshot::stamp(place).is_ok())));
            }
        });
    });
    eprintln!("{build}: {PLACES} places of two files: stamps {stamps}, by two threads {by_two}");
}

fn listed_and_read(directory: &Path) {
    for path in files(directory) {
        drop(fs::read(path).unwrap());
    }
}

/// Median of nine times: on the clock, and on this thread's processor, which is meaningful on a busy machine.
fn median(mut work: impl FnMut()) -> String {
    work();
    let mut times: Vec<(Duration, Duration)> = (0..9)
        .map(|_| {
            let (begun, before) = (Instant::now(), on_processor());
            work();
            (begun.elapsed(), on_processor() - before)
        })
        .collect();
    times.sort();
    let by_clock = times[times.len() / 2].0;
    times.sort_by_key(|(_, on_processor)| *on_processor);
    format!("{by_clock:.1?} ({:.1?} on the processor)", times[times.len() / 2].1)
}

fn on_processor() -> Duration {
    let text = fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}
