//! Duration of opening and committing. Run it with `cargo test -p store --release -- --ignored --nocapture speed`.

use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::{Batch, Store, Table};

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

fn memory_kib(field: &str) -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    status.lines().find(|line| line.starts_with(field)).unwrap_or_default().to_owned()
}

#[tokio::test]
#[ignore = "a measurement, not a test"]
async fn speed_of_opening_and_committing() {
    // On the disk of the build, because `/tmp` may be in memory.
    let home =
        tempfile::tempdir_in(std::env::var("CARGO_TARGET_DIR").unwrap_or_else(|_| "/var/tmp".to_owned())).unwrap();
    let fresh = (0..9).map(|n| {
        let start = Instant::now();
        drop(Store::open(&home.path().join(format!("fresh{n}"))).unwrap());
        start.elapsed()
    });
    println!("make and open a fresh home: {:?} p50", median(fresh.collect()));
    let dir = home.path().join("fresh0");
    let open = || {
        (0..15).map(|_| {
            let start = Instant::now();
            let store = Store::open(&dir).unwrap();
            let time = start.elapsed();
            drop(store);
            time
        })
    };
    println!("open an empty home: {:?} p50", median(open().collect()));
    println!("{}", memory_kib("VmRSS"));

    for (records, what) in [(10_000, "10,000 records"), (120_000, "130,000 records, the journal near its rotation")] {
        let store = Store::open(&dir).unwrap();
        for group in 0..records / 100 {
            let mut batch = Batch::new();
            for n in 0..100 {
                batch.put(Table::Events, format!("{records}/{:06}", group * 100 + n), &"e".repeat(400)).unwrap();
            }
            store.commit(batch).await.unwrap();
        }
        println!("{what}: {}", memory_kib("VmRSS"));
        drop(store);
        println!("open a home of {what}: {:?} p50", median(open().collect()));
        let check = (0..15).map(|_| {
            let start = Instant::now();
            crate::layout::prepare(&dir).unwrap();
            start.elapsed()
        });
        println!("of which its own check of the files: {:?} p50", median(check.collect()));
        println!("{}", memory_kib("VmRSS"));
    }

    let store = Store::open(&dir).unwrap();
    let mut times = Vec::new();
    for n in 0..3_000_u64 {
        let mut batch = Batch::new();
        batch.put(Table::Events, format!("c/{n:06}"), &"e".repeat(400)).unwrap();
        let start = Instant::now();
        store.commit(batch).await.unwrap();
        times.push(start.elapsed());
    }
    times.sort();
    println!("one durable commit: {:?} p50, {:?} p99", times[times.len() / 2], times[times.len() * 99 / 100]);
    let file = std::fs::File::options().append(true).create(true).open(home.path().join("floor")).unwrap();
    let floor = (0..3_000).map(|_| {
        let start = Instant::now();
        (&file).write_all(&[b'e'; 460]).and_then(|()| file.sync_data()).unwrap();
        start.elapsed()
    });
    println!("the floor, an append and fdatasync: {:?} p50", median(floor.collect()));
    let start = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..5_000_u64 {
        let store = store.clone();
        tasks.spawn(async move {
            let mut batch = Batch::new();
            batch.put(Table::Events, format!("g/{n:06}"), &"e".repeat(400)).unwrap();
            store.commit(batch).await.unwrap();
        });
    }
    while tasks.join_next().await.is_some() {}
    println!("5,000 commits at a time: {:?} each", start.elapsed() / 5_000);
}
