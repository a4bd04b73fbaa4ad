//! How long it takes. Not a test of anything: run it with
//! `cargo test --release -p skills --lib speed -- --ignored --nocapture --test-threads 1`.

use std::time::Instant;

use super::*;

const SKILLS: usize = 10_000;
const ROUNDS: usize = 7;

fn report(what: &str, mut took: Vec<Duration>) {
    took.sort();
    let median = took[took.len() / 2];
    println!("{what:<44} {:>8.1} ms (of {}, worst {:.1})", millis(median), took.len(), millis(took[took.len() - 1]));
}

fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

#[derive(Default)]
struct Starts {
    opened: Vec<Duration>,
    first: Vec<Duration>,
    again: Vec<Duration>,
}

impl Starts {
    async fn start(&mut self, parts: LibraryParts, skills: usize) -> Library {
        let began = Instant::now();
        let library = Library::open(parts).unwrap();
        self.opened.push(began.elapsed());
        let began = Instant::now();
        assert_eq!(library.list().await.unwrap().len(), skills);
        self.first.push(began.elapsed());
        let began = Instant::now();
        assert_eq!(library.list().await.unwrap().len(), skills);
        self.again.push(began.elapsed());
        library
    }
}

#[tokio::test]
#[ignore = "measures"]
async fn speed_of_ten_thousand_skills() {
    let home = Home::new();
    for at in 0..SKILLS {
        let (name, directory) = (format!("skill-{at}"), home.path(&format!("skills/skill-{at}")));
        fs::create_dir(&directory).unwrap();
        let text = format!("Does the thing number {at}. Use it whenever somebody asks for a thing of that number. ");
        fs::write(directory.join("SKILL.md"), manifest(&name, &text.repeat(2)) + &text.repeat(30)).unwrap();
        fs::write(directory.join("run.py"), text.repeat(10)).unwrap();
    }
    let mut without = Starts::default();
    for _ in 0..ROUNDS {
        fs::remove_dir_all(home.path("cache")).ok();
        without.start(home.parts(), SKILLS).await.close().await;
    }
    report("without index: open", without.opened);
    report("without index: first list", without.first);
    let mut with = Starts::default();
    for _ in 0..ROUNDS {
        with.start(home.parts(), SKILLS).await.close().await;
    }
    report("with index: open", with.opened);
    report("with index: first list", with.first);
    report("list again", with.again);
    println!("the index has {} KiB", fs::metadata(home.path("cache/skills.json")).unwrap().len() / 1024);

    // Every skill has a record of trust.
    let library = home.open();
    let consent = consent();
    let mut tasks = tokio::task::JoinSet::new();
    for skill in library.list().await.unwrap() {
        let (library, consent) = (library.clone(), consent.clone());
        tasks.spawn(async move {
            let taken = library.take_at(&skill.place).await.unwrap();
            let subject = Subject::of(taken.manifest.name, taken.place, &taken.snapshot);
            library.trust().approve(&subject, Policy::default(), consent).await.unwrap();
        });
    }
    tasks.join_all().await;
    let mut approved = Vec::new();
    for _ in 0..ROUNDS {
        let began = Instant::now();
        let list = library.list().await.unwrap();
        approved.push(began.elapsed());
        assert!(list.iter().all(|skill| skill.status == SkillStatus::Approved));
    }
    report("list again, all approved", approved);
    library.close().await;
    drop(library);
    let mut with = Starts::default();
    for _ in 0..ROUNDS {
        with.start(home.parts(), SKILLS).await.close().await;
    }
    report("with index, all approved: first list", with.first);

    let watched = Library::open(LibraryParts { watch: true, ..home.parts() }).unwrap();
    let began = Instant::now();
    watched.list().await.unwrap();
    watched.refresh().await.unwrap();
    println!("{:<44} {:>8.1} ms", "watched: until all is watched", millis(began.elapsed()));
    let (mut noticed, mut refreshed, mut taken) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..20 {
        let mut changed = watched.changed();
        changed.mark_unchanged();
        let began = Instant::now();
        fs::write(home.path("skills/skill-77/run.py"), format!("print({round})\n")).unwrap();
        changed.changed().await.unwrap();
        noticed.push(began.elapsed());
        let began = Instant::now();
        watched.refresh().await.unwrap();
        refreshed.push(began.elapsed());
        let began = Instant::now();
        watched.take("skill-77").await.unwrap();
        taken.push(began.elapsed());
    }
    report("a change noticed", noticed);
    report("a look at everything", refreshed);
    report("one skill taken", taken);
}

/// `SKILLS` names a directory of real skills.
#[tokio::test]
#[ignore = "measures; needs `SKILLS`"]
async fn speed_of_verifying_real_skills() {
    let Some(corpus) = std::env::var_os("SKILLS").map(PathBuf::from) else {
        println!("`SKILLS` is not set");
        return;
    };
    let home = Home::new();
    let parts = || LibraryParts { roots: vec![SkillsRoot::at(corpus.clone())], ..home.parts() };
    let library = Library::open(parts()).unwrap();
    let list = library.list().await.unwrap();
    println!("{} skills, {} usable", list.len(), list.iter().filter(|skill| skill.readable).count());
    for skill in list.iter().filter(|skill| !skill.readable) {
        println!("  {}: {}", skill.place.entry, skill.reason);
    }
    let (mut verified, mut first) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let began = Instant::now();
        assert_eq!(library.verify(None).await.unwrap().len(), list.len());
        verified.push(began.elapsed());
        fs::remove_dir_all(home.path("cache")).ok();
        let began = Instant::now();
        let fresh = Library::open(parts()).unwrap();
        assert_eq!(fresh.list().await.unwrap().len(), list.len());
        first.push(began.elapsed());
        fresh.close().await;
    }
    report("verify all", verified);
    report("first list without index", first);
}
