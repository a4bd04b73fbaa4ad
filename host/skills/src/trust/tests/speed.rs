//! How long a list of many takes. Run with `--ignored --nocapture speed`.

use std::time::Duration;

use super::*;

/// CPU time of this thread: other load on the machine is not counted.
fn on_the_processor() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    Duration::from_nanos(text.split(' ').next().unwrap().parse().unwrap())
}

#[tokio::test]
#[ignore = "measures"]
async fn ten_thousand_records() {
    let home = tempfile::tempdir().unwrap();
    let store = Store::open(&home.path().join("state")).unwrap();
    let book = super::book(&store);
    let of = |number: usize| Subject {
        name: SkillName::parse(&format!("skill-{number}")).unwrap(),
        place: place(&format!("skill-{number}")),
        ..subject(&number.to_string())
    };
    let approvals: Vec<_> = (0..10_000)
        .map(|number| {
            let book = book.clone();
            tokio::spawn(async move { book.approve(&of(number), policy(), consent()).await })
        })
        .collect();
    for approval in approvals {
        approval.await.unwrap().unwrap();
    }
    let asked: Vec<_> = (0..10_000).map(of).map(|one| (one.name, one.place, one.hash, one.modes)).collect();
    let start = on_the_processor();
    assert_eq!(super::book(&store).standings(&[]), []);
    println!("reading 10,000 records: {:?}", on_the_processor() - start);
    let mut taken = Vec::new();
    for _ in 0..20 {
        let start = on_the_processor();
        let standings = book.standings(&asked);
        taken.push(on_the_processor() - start);
        assert!(standings.iter().all(|standing| standing.status == SkillStatus::Approved));
    }
    taken.sort();
    println!("standings of 10,000: {:?} at best, {:?} in the middle", taken[0], taken[10]);
    let start = on_the_processor();
    for (name, place, hash, modes) in &asked {
        assert_eq!(book.standing(name, place, *hash, *modes).status, SkillStatus::Approved);
    }
    println!("standing, each: {:?}", (on_the_processor() - start) / 10_000);
}
