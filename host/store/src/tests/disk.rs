//! A disk that is really full: a small file system in memory, mounted for a child process if the machine allows it.

use std::process::Stdio;
use std::sync::Arc;

use crate::handle::Options;
use crate::{Batch, NoFaults, Scan, Store, StoreError, Table};

use super::crash::{child, child_dir};

const FILLER_BYTES: usize = 6 << 20;

/// Commits until the disk refuses; returns how many succeeded, and the error.
async fn fill(store: &Store, from: usize) -> (usize, StoreError) {
    for n in from.. {
        let mut batch = Batch::new();
        batch.put(Table::Events, format!("{n:06}"), &"x".repeat(40_000)).unwrap();
        if let Err(error) = store.commit(batch).await {
            return (n, error);
        }
        assert!(n < 2_000, "the disk never fills");
    }
    unreachable!()
}

fn count(store: &Store) -> usize {
    store.scan::<String>(Table::Events, &Scan::all()).unwrap().len()
}

#[tokio::test]
#[ignore = "started by the test below, on a small disk"]
async fn filling_child() {
    let Some(dir) = child_dir() else { return };
    let filler = dir.join("filler");

    // With the reserve: refused before anything is half written, and commits succeed again once there is room.
    std::fs::write(&filler, vec![1; FILLER_BYTES]).unwrap();
    let store = Store::open(&dir.join("guarded")).unwrap();
    let (held, error) = fill(&store, 0).await;
    assert!(held > 0);
    assert!(matches!(error, StoreError::Full), "{error:?}");
    std::fs::remove_file(&filler).unwrap();
    let (held, error) = fill(&store, held).await;
    assert!(matches!(error, StoreError::Full), "{error:?}");
    assert_eq!(count(&store), held);
    drop(store);
    let store = Store::open(&dir.join("guarded")).unwrap();
    assert_eq!(count(&store), held);
    drop(store);
    std::fs::remove_dir_all(dir.join("guarded")).unwrap();

    // Without it, as when a quota ends: the write itself fails, and after reopening every acknowledged commit is there.
    std::fs::write(&filler, vec![1; FILLER_BYTES]).unwrap();
    let options = || Options { faults: Arc::new(NoFaults), reserve_bytes: 0 };
    let store = Store::open_as(&dir.join("bare"), options()).unwrap();
    let (held, error) = fill(&store, 0).await;
    assert!(held > 0);
    // `Io` from the write that ran out of room; the engine may also use the last of it between two commits.
    assert!(matches!(error, StoreError::Full | StoreError::Io { .. } | StoreError::Poisoned), "{error:?}");
    let (_, error) = fill(&store, held).await;
    assert!(matches!(error, StoreError::Full | StoreError::Poisoned), "{error:?}");
    drop(store);
    std::fs::remove_file(&filler).unwrap();
    let store = Store::open_as(&dir.join("bare"), options()).unwrap();
    assert!(count(&store) >= held);
    let (more, _) = fill(&store, held + 1).await;
    assert!(more > held + 1, "there is room again");
    println!("filled");
}

#[test]
fn a_full_disk_loses_nothing() {
    let home = tempfile::tempdir().unwrap();
    let child = child("tests::disk::filling_child", home.path());
    let script = r#"mount -t tmpfs -o size=40m tmpfs "$0" || { echo cannot mount; exit 0; }; exec "$@""#;
    let output = std::process::Command::new("unshare")
        .args(["-rm", "sh", "-c", script])
        .arg(home.path())
        .arg(child.get_program())
        .args(child.get_args())
        .envs(child.get_envs().filter_map(|(key, value)| Some((key, value?))))
        .stderr(Stdio::piped())
        .output();
    let output = match output {
        Ok(output) => output,
        Err(error) => return println!("not tried, no `unshare`: {error}"),
    };
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if text.contains("cannot mount") || text.contains("unshare failed") || text.contains("Operation not permitted") {
        return println!("not tried, this machine gives no private mounts: {text}");
    }
    assert!(output.status.success() && text.contains("filled"), "{text}");
}
