//! Speed and memory with 100,000 peers and 10,000,000 interactions:
//! `MOTOR_LEDGER_HOME=DIR cargo test -p ledger -- --ignored --nocapture measure`. With `MOTOR_LEDGER_PEERS=1000` in another
//! directory, 100 interactions each, it takes seconds.
//!
//! The first run fills the directory, in a process of its own, so that memory is that of a host which starts with it. Filling is
//! faster than the engine's one background thread, and leaves a journal of 1.6 GB: the start that follows reads it, and misses the
//! aims for start and memory. The journal is dropped soon after; later runs measure a home whose peers came over time.

use std::path::PathBuf;
use std::time::Instant;

use base::SystemClock;

use super::*;

/// The number of peers, unless `MOTOR_LEDGER_PEERS` gives another one for a quick look.
const PEERS: u64 = 100_000;
/// Interactions of each peer come in this many turns, so that those of all peers are mixed on the disk.
const TURNS: u64 = 10;
const INTERACTIONS_A_TURN: usize = 10;
const FILLERS: u64 = 64;
/// Calls of each kind.
const CALLS: u64 = 10_000;

fn peers() -> u64 {
    let asked = std::env::var("MOTOR_LEDGER_PEERS").ok();
    asked.map_or(PEERS, |peers| peers.parse().expect("`MOTOR_LEDGER_PEERS` is a number"))
}

fn directory() -> PathBuf {
    PathBuf::from(
        std::env::var_os("MOTOR_LEDGER_HOME").expect("set MOTOR_LEDGER_HOME to a directory with 5 GB of room"),
    )
}

fn open() -> Ledger {
    Ledger::open(LedgerParts {
        store: Store::open(&directory().join("state")).unwrap(),
        clock: Arc::new(SystemClock::default()),
        random: Arc::new(Random::seeded(7)),
    })
}

fn id(number: u64) -> PeerId {
    peer(&format!("npub1{number:058}"))
}

/// Prints quantiles in milliseconds; returns the 99th percentile.
fn told(name: &str, mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    println!("{name}: p50 {:.3} ms, p99 {:.3} ms, the longest {:.2} ms", at(0.5), at(0.99), at(1.0));
    at(0.99)
}

/// A value of `/proc/self/status`, in MiB.
fn status_mib(key: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(key)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "fills 2 GB"]
async fn fill() {
    let ledger = open();
    let began = Instant::now();
    for turn in 0..TURNS {
        let filling = (0..FILLERS).map(|filler| {
            let ledger = ledger.clone();
            tokio::spawn(async move {
                for number in (filler..peers()).step_by(FILLERS as usize) {
                    let summary = format!("turn {turn}: asks for the table of last month and thanks for it");
                    let some = (0..INTERACTIONS_A_TURN / 2).flat_map(|_| exchange(&summary)).collect();
                    ledger.record(&main(), &id(number), some).await.unwrap();
                }
            })
        });
        for task in filling.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        println!("turn {turn}: {:.0} s", began.elapsed().as_secs_f64());
    }
    ledger.store().close().await.unwrap();
}

#[tokio::test]
#[ignore = "a measurement"]
async fn measure() {
    if !directory().join("state").exists() {
        std::fs::create_dir_all(directory()).unwrap();
        let arguments = ["--ignored", "--exact", "--nocapture", "tests::speed::fill"];
        let filled = std::process::Command::new(std::env::current_exe().unwrap()).args(arguments).status().unwrap();
        assert!(filled.success());
    }
    let began = Instant::now();
    let ledger = open();
    ledger.resume().await.unwrap();
    let start = began.elapsed().as_secs_f64() * 1e3;
    println!("start: {start:.0} ms, memory {:.0} MiB", status_mib("VmRSS"));
    let random = Random::seeded(1);
    let any = || id(random.next_u64() % peers());
    let (mut enriching, mut assessing, mut recording, mut briefing) = (vec![], vec![], vec![], vec![]);
    for _ in 0..CALLS {
        let began = Instant::now();
        assert!(ledger.enrich(&main(), &any()).unwrap().contains("info_score"));
        enriching.push(began.elapsed().as_secs_f64() * 1e3);
        let assessment = NewAssessment { peer: any(), ..judgement("x", 3, "clear tasks, and thanks for each of them") };
        let began = Instant::now();
        ledger.record_assessment(&main(), assessment).await.unwrap();
        assessing.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        ledger.record(&main(), &any(), vec![said(Direction::Incoming, "one more")]).await.unwrap();
        recording.push(began.elapsed().as_secs_f64() * 1e3);
        let began = Instant::now();
        assert!(ledger.brief(&main(), &any(), 10).unwrap().is_some());
        briefing.push(began.elapsed().as_secs_f64() * 1e3);
    }
    let p99 = [told("enriching", enriching), told("assessing", assessing)];
    told("recording", recording);
    told("the last ten interactions", briefing);
    let began = Instant::now();
    assert_eq!(ledger.list(&main(), None, 1_000).unwrap().len(), 1_000);
    println!("a list of 1,000: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
    let peak = status_mib("VmHWM");
    println!("memory at its peak: {peak:.0} MiB");
    assert!(start < 1_000.0 && p99.iter().all(|p99| *p99 < 5.0) && peak < 190.0);
}
