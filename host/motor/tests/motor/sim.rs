//! The whole loop in a world of chance: a virtual clock, a simulated disk, models, tools and people that do anything, and
//! ends of the host at any write and between (SPEC SIM-1). The same seed gives the same bytes.
//!
//! `MOTOR_SIM_SEEDS=5000` runs so many seeds, `MOTOR_SIM_SEED=17` that one alone and tells its story.

mod chance;
mod check;
pub mod clock;
mod life;
mod model;
mod orders;
mod outside;
mod owner;
mod tools;

use std::sync::atomic::{AtomicU64, Ordering};

use base::ContentHash;

use life::Simulation;

const SEEDS: u64 = 300;

fn simulate(seed: u64) -> Simulation {
    let mut simulation = Simulation::new(seed);
    simulation.run();
    simulation
}

/// Orders, those that were carried out, effects, signals, crashes.
fn counts(simulation: &Simulation) -> [u64; 5] {
    let known = simulation.outside.known();
    let done = known.orders.iter().filter(|order| order.is_done()).count() as u64;
    let (effects, signals) = (known.deliveries.len() as u64, known.signals.len() as u64);
    [known.orders.len() as u64, done, effects, signals, simulation.crashes]
}

fn check(seed: u64) -> [u64; 5] {
    // A defect may also be a panic; the seed has to be told all the same.
    let simulation = std::panic::catch_unwind(|| simulate(seed)).unwrap_or_else(|_| panic!("{}", command(seed)));
    let broken = simulation.outside.known().broken.join("\n");
    assert!(broken.is_empty(), "{broken}\n{}", command(seed));
    counts(&simulation)
}

fn command(seed: u64) -> String {
    format!(
        "seed {seed} failed: run it alone with `MOTOR_SIM_SEED={seed} cargo test -p motor --test motor -- --nocapture sim::`"
    )
}

fn number(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().unwrap())
}

#[test]
fn every_seed_keeps_every_promise() {
    if let Some(seed) = number("MOTOR_SIM_SEED") {
        let simulation = simulate(seed);
        let counts = counts(&simulation);
        let known = simulation.outside.known();
        println!("{}\n{counts:?}", known.diary.join("\n"));
        assert!(known.broken.is_empty(), "{}", known.broken.join("\n"));
        return;
    }
    let seeds = number("MOTOR_SIM_SEEDS").unwrap_or(SEEDS);
    let next = AtomicU64::new(0);
    let totals: [AtomicU64; 5] = Default::default();
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::SeqCst);
                    if seed >= seeds {
                        return;
                    }
                    for (total, count) in totals.iter().zip(check(seed)) {
                        total.fetch_add(count, Ordering::SeqCst);
                    }
                }
            });
        }
    });
    let [orders, done, effects, signals, crashes] = totals.map(AtomicU64::into_inner);
    println!(
        "{seeds} seeds in {:?}: {orders} orders of which {done} were carried out, {effects} effects, {signals} signals, \
         {crashes} crashes",
        began.elapsed()
    );
    // The world is as wild as it is meant to be.
    assert!(done * 4 > orders && effects > 5 * seeds && signals > 2 * seeds && crashes * 2 > seeds, "it is too quiet");
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let first = number("MOTOR_SIM_SEED").unwrap_or(0);
    let mut seen = std::collections::HashSet::new();
    for seed in first..first + number("MOTOR_SIM_SEEDS").unwrap_or(SEEDS) / 10 {
        let (one, two) = (simulate(seed).bytes(), simulate(seed).bytes());
        let lines = |bytes: &[u8]| String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect::<Vec<_>>();
        let differs = lines(&one).into_iter().zip(lines(&two)).find(|(one, two)| one != two);
        assert!(one == two, "seed {seed} does not do the same again: {differs:?}");
        assert!(seen.insert(ContentHash::of(&one)), "seed {seed} does what another does");
    }
}
