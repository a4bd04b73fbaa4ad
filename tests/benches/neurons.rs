//! A tick of a neuron: its program in a fresh sandbox, with the limits of its energy, alone and on every core.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use runtime::{Limits, Program};
use tokio_util::sync::CancellationToken;

use crate::code::sandbox;
use crate::stats::{Aim, Times, line};

const TICKS: usize = 5_000;
const SOURCE: &str = r#"const signal = JSON.parse("{\"kind\":\"run.completed\",\"data\":{\"summary\":\"Bitcoin is at $97,500\"}}");
const found = /Bitcoin is at \$([0-9,]+)/.exec(signal.data.summary);
return found ? [{ kind: "bitcoin.price", data: { price: Number(found[1].replaceAll(",", "")) } }] : [];"#;

pub fn run() -> Result<()> {
    println!("neurons");
    let sandbox = sandbox()?;
    let program =
        Program { source: SOURCE.into(), timeout: Duration::from_secs(5), guard: false, seed: 1, now_ms: 1_000 };
    let limits = Limits { fuel: 1_000_000, memory_bytes: 16 << 20, hostcall_bytes: 1 << 20, ..Limits::default() };
    let tick = async || {
        let began = Instant::now();
        let report = sandbox.execute(&program, &limits, &CancellationToken::new()).await;
        (began.elapsed(), report.outcome.is_ok_and(|value| value.json.contains("97500")))
    };
    let executor = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut times = Times::default();
    for _ in 0..TICKS {
        let (took, is_right) = executor.block_on(tick());
        ensure!(is_right, "a tick gives another result");
        times.add(took);
    }
    line("one tick, p50", times.p50(), "ms", Some(Aim::AtMost(0.1)));
    line("one tick, p99", times.p99(), "ms", None);
    let threads = std::thread::available_parallelism()?.get();
    let began = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let executor = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("an executor");
                (0..TICKS).for_each(|_| assert!(executor.block_on(tick()).1, "a tick gives another result"));
            });
        }
    });
    let rate = (threads * TICKS) as f64 / began.elapsed().as_secs_f64();
    line("ticks a second on all cores", rate, "/s", Some(Aim::AtLeast(5_000.0)));
    Ok(())
}
