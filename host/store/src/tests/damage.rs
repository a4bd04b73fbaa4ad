//! Damaged, foreign and unfinished state directories: refused or complete, never silently incomplete.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base::Random;

use crate::layout;
use crate::loss::Loss;
use crate::{Batch, Scan, Store, StoreError, Table};

/// A state with records in table files and in the journal. The last group is small.
fn state(dir: &Path) -> BTreeMap<Vec<u8>, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Store::open(dir).unwrap();
    let mut model = BTreeMap::new();
    runtime.block_on(async {
        for group in 0..30 {
            let mut batch = Batch::new();
            for n in 0..100 {
                let (key, value) = (format!("{group:03}/{n:03}").into_bytes(), format!("{group} {n} ").repeat(160));
                batch.put(Table::Runs, key.clone(), &value).unwrap();
                model.insert(key, value);
            }
            store.commit(batch).await.unwrap();
        }
    });
    // The third megabyte sends the first two to a table file, in the background. Files come and go during that.
    let is_flushed = |file: &PathBuf| fs::metadata(file).is_ok_and(|file| file.len() > 1 << 20);
    let began = Instant::now();
    while !files(&dir.join("keyspaces")).iter().any(is_flushed) {
        assert!(began.elapsed() < Duration::from_secs(300), "nothing is flushed to a table file");
        std::thread::sleep(Duration::from_millis(10));
    }
    for n in 0..20 {
        let (key, value) = (format!("late/{n:03}").into_bytes(), format!("late {n}"));
        let mut batch = Batch::new();
        batch.put(Table::Runs, key.clone(), &value).unwrap();
        model.insert(key, value);
        runtime.block_on(store.commit(batch)).unwrap();
    }
    drop(store);
    // After being opened and closed once more, a journal ends where its content ends.
    drop(Store::open(dir).unwrap());
    model
}

/// The files below a directory; empty if it is gone, because an open store removes directories, too.
fn files(dir: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = match fs::read_dir(dir) {
        Err(error) if error.kind() == ErrorKind::NotFound => return found,
        entries => entries.unwrap(),
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

fn copy(from: &Path, to: &Path) {
    if to.exists() {
        fs::remove_dir_all(to).unwrap();
    }
    for file in files(from) {
        let target = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(target.parent().unwrap()).unwrap();
        fs::copy(&file, target).unwrap();
    }
    fs::copy(mark(from), mark(to)).unwrap();
}

/// The mark of a state.
fn mark(dir: &Path) -> PathBuf {
    dir.with_extension("mark")
}

/// Opens and reads everything: `Ok` if every record is right, `Err` if a step was refused, panics if a record is
/// missing or wrong.
fn read(dir: &Path, model: &BTreeMap<Vec<u8>, String>, what: &str) -> Result<(), StoreError> {
    let store = Store::open(dir)?;
    let found: BTreeMap<_, _> = store.scan::<String>(Table::Runs, &Scan::all())?.into_iter().collect();
    assert_eq!(found.len(), model.len(), "{what}: records are missing");
    assert!(found == *model, "{what}: records are wrong");
    Ok(())
}

fn accept_loss(dir: &Path, aside: &Path) -> Result<Loss, StoreError> {
    crate::accept_loss(dir, aside, |_| Ok(()))
}

fn refused(result: Result<(), StoreError>, what: &str) {
    match result {
        Err(error) if error.is_loss() || matches!(error, StoreError::Io { .. }) => {}
        other => panic!("{what}: {other:?}"),
    }
}

#[test]
fn flipped_bits_are_noticed() {
    let home = tempfile::tempdir().unwrap();
    let (good, bad) = (home.path().join("good"), home.path().join("bad"));
    let model = state(&good);
    let random = Random::seeded(7);
    let mut noticed = 0;
    for file in files(&good) {
        let bytes = fs::read(&file).unwrap();
        let name = file.strip_prefix(&good).unwrap();
        let rounds = if bytes.is_empty() {
            0
        } else if bytes.len() < 100 {
            3
        } else {
            6
        };
        for _ in 0..rounds {
            let at = (random.next_u64() % bytes.len() as u64) as usize;
            let mut bytes = bytes.clone();
            bytes[at] ^= 1 << (random.next_u64() % 8);
            copy(&good, &bad);
            fs::write(bad.join(name), bytes).unwrap();
            let what = format!("{}, byte {at}", name.display());
            if let Err(error) = read(&bad, &model, &what) {
                noticed += 1;
                refused(Err(error), &what);
            }
        }
    }
    assert!(noticed > 20, "{noticed}");
    read(&good, &model, "undamaged").unwrap();
}

#[test]
fn missing_and_short_files_are_noticed() {
    let home = tempfile::tempdir().unwrap();
    let (good, bad) = (home.path().join("good"), home.path().join("bad"));
    let model = state(&good);
    for file in files(&good) {
        let name = file.strip_prefix(&good).unwrap();
        let length = fs::metadata(&file).unwrap().len();
        if length == 0 {
            continue;
        }
        copy(&good, &bad);
        fs::remove_file(bad.join(name)).unwrap();
        let what = format!("{} removed", name.display());
        if let Err(error) = read(&bad, &model, &what) {
            refused(Err(error), &what);
        }
        copy(&good, &bad);
        fs::File::options().write(true).open(bad.join(name)).unwrap().set_len(length / 2).unwrap();
        let what = format!("{} cut in half", name.display());
        if let Err(error) = read(&bad, &model, &what) {
            refused(Err(error), &what);
        }
    }
    for gone in ["version", "keyspaces", "keyspaces/0", "keyspaces/0/current", "keyspaces/2", "keyspaces/2/current"] {
        copy(&good, &bad);
        let path = bad.join(gone);
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap()
        } else {
            fs::remove_file(&path).unwrap()
        }
        let before = files(&bad);
        refused(Store::open(&bad).map(drop), gone);
        if !gone.ends_with('2') {
            assert_eq!(before, files(&bad), "{gone}: refused with everything left in place");
        }
    }
}

fn journal(dir: &Path) -> PathBuf {
    let journals = files(dir).into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "jnl"));
    journals.max().unwrap()
}

/// Creates records of a size such that the journal's last group spans several sectors.
fn small_state(dir: &Path) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let store = Store::open(dir).unwrap();
    for n in 0..4 {
        let mut batch = Batch::new();
        batch.put(Table::Runs, format!("{n}"), &"y".repeat(3_000)).unwrap();
        runtime.block_on(store.commit(batch)).unwrap();
    }
    drop(store);
    drop(Store::open(dir).unwrap());
    fs::metadata(journal(dir)).unwrap().len()
}

fn keys(dir: &Path) -> Result<usize, StoreError> {
    Ok(Store::open(dir)?.scan::<String>(Table::Runs, &Scan::all())?.len())
}

#[test]
fn a_torn_last_group_is_dropped_and_a_torn_middle_refused() {
    let home = tempfile::tempdir().unwrap();
    let (good, bad) = (home.path().join("good"), home.path().join("bad"));
    let length = small_state(&good);
    let bytes = fs::read(journal(&good)).unwrap();
    let check = |what: &str, bytes: Vec<u8>, expected: Option<usize>| {
        // The last commit was acknowledged to its callers, or it was torn before that.
        for told in [true, false] {
            copy(&good, &bad);
            fs::write(journal(&bad), &bytes).unwrap();
            if !told {
                crate::watermark::write(&bad, 3).unwrap();
            }
            for _ in 0..2 {
                match (keys(&bad), expected) {
                    (Err(StoreError::Behind { found: 3, marked: 4, .. }), Some(3)) if told => {}
                    (Ok(found), Some(expected)) if !told || expected == 4 => assert_eq!(found, expected, "{what}"),
                    (Err(StoreError::Corrupt { .. }), None) => {}
                    (found, expected) => panic!("{what}, told: {told}: {found:?}, expected {expected:?}"),
                }
            }
        }
    };
    let at = length as usize;
    check("whole", bytes.clone(), Some(4));
    check("with a hole behind it", [&bytes[..], &[0; 100_000]].concat(), Some(4));
    // `kill -9` and power failures cut at any byte, and may leave zeros after it.
    for cut in [1, 3, 4, 5, 12, 13, 14, 600, 2_900, 3_000, 3_030] {
        check("cut", bytes[..at - cut].to_vec(), Some(3));
        check("cut, and a hole", [&bytes[..at - cut], &[0; 100_000]].concat(), Some(3));
    }
    // Sectors of the last group that were not written, though later ones were.
    let unwritten = |from: usize, to: usize| {
        let mut bytes = bytes.clone();
        bytes[from..to].fill(0);
        bytes
    };
    check("unwritten within", unwritten(at - 1_600, at - 1_000), Some(3));
    check("unwritten from the head", unwritten(at - 3_050, at - 2_000), Some(3));
    // The same in an acknowledged group followed by another is damage.
    check("unwritten in the middle", unwritten(at - 4_600, at - 4_000), None);
    check("unwritten across groups", unwritten(at - 7_000, at - 5_000), None);
    // So is a changed byte, even in the last group.
    for from_end in [1, 4, 5, 13, 14, 1_000, 3_000, 3_015, 4_000, 6_100] {
        let mut bytes = bytes.clone();
        bytes[at - from_end] ^= 0x40;
        check(&format!("changed {from_end} from the end"), bytes, None);
    }
    check("garbage behind it", [&bytes[..], b"garbage"].concat(), None);
}

#[test]
fn a_state_that_is_behind_its_mark_is_refused_until_the_loss_is_accepted() {
    let home = tempfile::tempdir().unwrap();
    let (good, bad, aside) = (home.path().join("good"), home.path().join("bad"), home.path().join("aside"));
    let length = small_state(&good) as usize;
    let bytes = fs::read(journal(&good)).unwrap();
    let fresh = || {
        copy(&good, &bad);
        fs::remove_dir_all(&aside).ok();
        fs::create_dir(&aside).unwrap();
    };
    // Cut at any point, by hand or by a file system: the rest is kept.
    for cut in [5, 3_100, 6_200, 9_300] {
        fresh();
        fs::write(journal(&bad), &bytes[..length - cut]).unwrap();
        let left = match Store::open(&bad).map(drop) {
            Err(StoreError::Behind { found, marked: 4, .. }) => found,
            other => panic!("{cut}: {other:?}"),
        };
        let loss = accept_loss(&bad, &aside).unwrap();
        assert!(matches!(loss.reason, Some(StoreError::Behind { .. })) && !loss.is_new);
        assert_eq!(keys(&bad).unwrap() as u64, left);
        assert!(accept_loss(&bad, &aside).unwrap().reason.is_none());
    }
    // Removed completely, or emptied.
    for empty in [false, true] {
        fresh();
        fs::remove_dir_all(&bad).unwrap();
        if empty {
            fs::create_dir(&bad).unwrap();
        }
        assert!(matches!(Store::open(&bad).map(drop), Err(StoreError::Behind { found: 0, marked: 4, .. })));
        assert_eq!(bad.exists(), empty);
        accept_loss(&bad, &aside).unwrap();
        assert_eq!(keys(&bad).unwrap(), 0);
    }
    // An older state of the same home.
    let older = home.path().join("older");
    copy(&good, &older);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut batch = Batch::new();
    batch.put(Table::Runs, "5", &"y").unwrap();
    runtime.block_on(Store::open(&good).unwrap().commit(batch)).unwrap();
    fresh();
    fs::remove_dir_all(&bad).unwrap();
    fs::rename(&older, &bad).unwrap();
    assert!(matches!(Store::open(&bad).map(drop), Err(StoreError::Behind { found: 4, marked: 5, .. })));
    // A missing or damaged mark.
    for damage in [None, Some(&b"commits"[..])] {
        fresh();
        fs::remove_file(mark(&bad)).unwrap();
        if let Some(bytes) = damage {
            fs::write(mark(&bad), bytes).unwrap();
        }
        assert!(matches!(Store::open(&bad).map(drop), Err(StoreError::Unmarked { .. })), "{damage:?}");
        accept_loss(&bad, &aside).unwrap();
        assert_eq!(keys(&bad).unwrap(), 5);
    }
    // The journal is lost, and with it the records of the state itself.
    for left in [0, 40] {
        fresh();
        fs::write(journal(&bad), &fs::read(journal(&good)).unwrap()[..left]).unwrap();
        assert!(Store::open(&bad).is_err_and(|error| error.is_loss()));
        assert!(accept_loss(&bad, &aside).unwrap().is_new);
        assert_eq!(keys(&bad).unwrap(), 0);
    }
    // A crash before its end changes nothing: data without a record is found again.
    fresh();
    fs::write(journal(&bad), &bytes[..length - 5]).unwrap();
    let stopped = crate::accept_loss(&bad, &aside, |has| {
        assert!(has(Table::Runs, "0") && !has(Table::Runs, "3"));
        Err(StoreError::Closed)
    });
    assert!(matches!(stopped, Err(StoreError::Closed)));
    assert!(matches!(Store::open(&bad).map(drop), Err(StoreError::Behind { .. })));
    // Damage inside: everything is set aside and kept.
    fresh();
    fs::remove_file(bad.join("version")).unwrap();
    assert!(accept_loss(&bad, &aside).unwrap().is_new);
    assert_eq!(keys(&bad).unwrap(), 0);
    assert!(journal(&aside.join("bad")).exists());
    // Counter-check: a mark that a power failure left behind the state is no loss.
    fresh();
    crate::watermark::write(&bad, 2).unwrap();
    assert_eq!(keys(&bad).unwrap(), 5);
    assert_eq!(crate::watermark::read(&bad).unwrap(), Some(5));
}

#[test]
fn only_regular_files_are_opened() {
    let home = tempfile::tempdir().unwrap();
    let (good, bad) = (home.path().join("good"), home.path().join("bad"));
    small_state(&good);
    for file in files(&good) {
        for link in [true, false] {
            copy(&good, &bad);
            let path = bad.join(file.strip_prefix(&good).unwrap());
            fs::remove_file(&path).unwrap();
            if link {
                std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
            } else {
                let mode = rustix::fs::Mode::from_raw_mode(0o600);
                rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            }
            match Store::open(&bad).map(drop) {
                Err(StoreError::Corrupt { detail }) => assert!(detail.contains("not a regular file"), "{detail}"),
                other => panic!("{}: {other:?}", path.display()),
            }
        }
    }
}

#[test]
fn directories_that_are_no_state_are_refused_and_kept() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("foreign");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("thesis.txt"), "years of work").unwrap();
    refused(Store::open(&dir).map(drop), "a directory of other files");
    assert_eq!(fs::read_to_string(dir.join("thesis.txt")).unwrap(), "years of work");
    refused(Store::open(&dir.join("thesis.txt")).map(drop), "a file");

    fs::write(dir.join("version"), "garbage").unwrap();
    refused(Store::open(&dir).map(drop), "a directory with a file of the same name");

    let empty = home.path().join("empty");
    fs::create_dir(&empty).unwrap();
    Store::open(&empty).unwrap();
}

#[test]
fn an_interrupted_creation_is_begun_again() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("state");
    // The leftover of a crash during creation: the other name, half filled.
    let staging = home.path().join("state.incomplete");
    fs::create_dir_all(staging.join("keyspaces/3")).unwrap();
    fs::write(staging.join("0.jnl"), "half").unwrap();
    let store = Store::open(&dir).unwrap();
    assert_eq!(store.get::<u64>(Table::Runs, "a").unwrap(), None);
    assert!(!staging.exists());
}

#[test]
fn a_copied_directory_has_the_same_bytes_and_the_same_holes() {
    const LENGTH: u64 = 64 << 20;
    let home = tempfile::tempdir().unwrap();
    let (from, to) = (home.path().join("from"), home.path().join("to"));
    fs::create_dir_all(from.join("keyspaces/0")).unwrap();
    fs::create_dir(&to).unwrap();
    fs::write(from.join("keyspaces/0/current"), "7").unwrap();
    fs::write(from.join("version"), "").unwrap();
    let journal = fs::File::create(from.join("0.jnl")).unwrap();
    for (bytes, at) in [("begin", 0), ("middle", LENGTH / 2), ("end", LENGTH - 1_000)] {
        journal.write_all_at(bytes.as_bytes(), at).unwrap();
    }
    journal.set_len(LENGTH).unwrap();
    layout::copy_tree(&from, &to).unwrap();
    for name in ["keyspaces/0/current", "version", "0.jnl"] {
        assert!(fs::read(from.join(name)).unwrap() == fs::read(to.join(name)).unwrap(), "{name}");
    }
    let blocks = |dir: &Path| fs::metadata(dir.join("0.jnl")).unwrap().blocks();
    assert!(blocks(&to) <= blocks(&from), "{} {}", blocks(&to), blocks(&from));
}

#[test]
fn states_in_memory_of_killed_processes_are_removed_and_those_of_others_stay() {
    let make = || tempfile::Builder::new().prefix(layout::IN_MEMORY).tempdir_in(layout::MEMORY).ok();
    let (Some(killed), Some(living)) = (make(), make()) else { return println!("not tried, no `{}`", layout::MEMORY) };
    fs::write(killed.path().join("version"), "").unwrap();
    let now = fs::metadata(living.path()).unwrap().modified().unwrap();
    let made = |directory: &Path, age| {
        fs::File::open(directory).unwrap().set_times(fs::FileTimes::new().set_modified(now - age)).unwrap();
    };
    made(killed.path(), layout::MAX_AGE_IN_MEMORY + Duration::from_secs(60));
    made(living.path(), layout::MAX_AGE_IN_MEMORY - Duration::from_secs(60));
    layout::remove_leftovers(now);
    assert!(!killed.path().exists() && living.path().exists());
}
