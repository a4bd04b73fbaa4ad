//! Times of an agent's memories and the size of their index: `cargo test -p cognition -- --ignored --nocapture speed`.

use std::time::Instant;

use super::*;
use crate::memory::memory_key;

/// Calls of each part.
const CALLS: usize = 1_000;
/// Words that the texts are made of. Some are much more frequent than others.
const VOCABULARY: f64 = 20_000.0;

/// A word: the lower its number, the shorter.
fn word(mut number: u64) -> String {
    let mut word = String::new();
    loop {
        word.push(b"bcdfghklmnprstvz"[number as usize % 16] as char);
        word.push(b"aeiou"[number as usize / 16 % 5] as char);
        number /= 80;
        if number == 0 {
            return word;
        }
    }
}

/// A text of so many words.
fn text(random: &Random, words: usize) -> String {
    let word = |_| word((VOCABULARY * (random.next_u64() as f64 / u64::MAX as f64).powi(3)) as u64);
    (0..words).map(word).collect::<Vec<_>>().join(" ")
}

/// Memory of the process in MiB.
fn resident() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}

/// Prints the median and the 99th percentile in milliseconds, and checks the latter.
fn report(name: &str, most_ms: f64, mut times: Vec<f64>) {
    times.sort_by(f64::total_cmp);
    let (p50, p99) = (times[times.len() / 2], times[times.len() * 99 / 100]);
    println!("{name}: p50 {p50:.3} ms, p99 {p99:.3} ms (at most {most_ms} ms)");
    assert!(p99 <= most_ms, "{name}: {p99} ms");
}

fn since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1e3
}

#[tokio::test]
#[ignore = "a measurement"]
async fn speed() {
    // Memories of 16 words, and the longest there may be.
    for words in [16, 170] {
        let (home, random, agent) = (Home::new().await, Random::seeded(1), AgentName::default());
        let at = base::Timestamp::from_millis(0);
        let mut batch = Batch::new();
        let mut length = 0;
        for number in CALLS..MAX_MEMORIES {
            let (id, text) = (format!("mem_{number:016x}"), text(&random, words));
            length += text.chars().count();
            assert!(text.chars().count() <= MAX_MEMORY);
            let sources = vec![format!("{}.example", number % 100)];
            let memory = Memory { id, at, text, channel: ChannelName::chat(), sources };
            batch.put(Table::Conversations, memory_key(&agent, &memory.id), &memory).unwrap();
        }
        home.store.commit(batch).await.unwrap();
        println!("{MAX_MEMORIES} memories of {} characters", length / (MAX_MEMORIES - CALLS));
        let cognition = home.open(vec![says("hello")]).await;
        home.exchange(&cognition, "hello").await;
        let search = |words: usize| MemoryFilter { search: Some(text(&random, words)), source: None, limit: 5 };
        let (before, began) = (resident(), Instant::now());
        cognition.memories(&agent, search(3)).await.unwrap();
        println!("first search: {:.0} ms, memory {:.1} MiB", since(began), resident() - before);
        let memories = &cognition.inner.memories;
        let head = cognition.conversation(&home.id()).unwrap().unwrap().hold().await.head.clone();
        let mut times = Vec::new();
        for _ in 0..CALLS {
            let (text, mut batch) = (text(&random, words), Batch::new());
            let began = Instant::now();
            let (change, memory) = memories.stage(&mut batch, &head, &text, at).await.unwrap();
            home.store.commit(batch).await.unwrap();
            change.committed(|index| index.insert(&memory.id, memory.at, &memory.text, &memory.sources));
            times.push(since(began));
        }
        report("remembering, with its commit", 20.0, times);
        for (name, words, most_ms) in [("a search of 3 words", 3, 200.0), ("a search of 60 words", 60, 2_000.0)] {
            let mut times = Vec::new();
            for _ in 0..CALLS / words {
                let filter = search(words);
                let began = Instant::now();
                assert!(!cognition.memories(&agent, filter).await.unwrap().is_empty());
                times.push(since(began));
            }
            report(name, most_ms, times);
        }
        let mut times = Vec::new();
        for number in 0..CALLS {
            let source = Some(format!("{}.example", number % 100));
            let began = Instant::now();
            let found = cognition.memories(&agent, MemoryFilter { search: None, source, limit: 100 }).await.unwrap();
            times.push(since(began));
            assert_eq!(found.len(), 90);
        }
        report("the 90 memories of a source", 20.0, times);
        cognition.shutdown().await;
    }
}
