//! Tests of trust, over a disk in memory.

mod changes;
mod crash;
mod hostile;
mod model;
mod speed;

use std::sync::{Arc, LazyLock};

use base::{ContentHash, Door, RunId, Secret, TestClock, Timestamp};
use consent::{Claim, Consent, ConsentGate, TokenFile};
use store::{SimulatedDisk, Store};

use super::{Advisory, Subject, TrustBook};
use crate::policy::{ExtractedFrom, Policy, SkillProvenance};
use crate::{SkillName, SkillPlace, SkillStatus};

fn book(store: &Store) -> TrustBook {
    TrustBook::new(store.clone(), Arc::new(TestClock::at(Timestamp::from_millis(1_000))))
}

fn opened() -> (Store, TrustBook) {
    let store = Store::simulated(SimulatedDisk::new(1)).unwrap();
    let book = book(&store);
    (store, book)
}

fn place(entry: &str) -> SkillPlace {
    SkillPlace { root: crate::place::HOME.to_owned(), entry: entry.to_owned() }
}

/// Bytes of that content in `pdf`, with its usual permission bits.
fn subject(content: &str) -> Subject {
    Subject {
        name: SkillName::parse("pdf").unwrap(),
        place: place("pdf"),
        hash: ContentHash::of(content.as_bytes()),
        modes: ContentHash::of(b"0644"),
    }
}

/// The owner's consent, from a gate of its own.
pub(crate) fn consent() -> Consent {
    static GIVEN: LazyLock<Consent> = LazyLock::new(|| std::thread::spawn(give).join().unwrap());
    GIVEN.clone()
}

#[tokio::main(flavor = "current_thread")]
async fn give() -> Consent {
    let config = tempfile::tempdir().unwrap();
    let clock = Arc::new(TestClock::at(Timestamp::from_millis(1_767_225_600_000)));
    let store = Store::simulated(SimulatedDisk::new(1)).unwrap();
    let gate = ConsentGate::open(store, clock, config.path().to_owned()).await.unwrap();
    let token = TokenFile::read(config.path()).unwrap().unwrap().open(|| unreachable!()).unwrap();
    gate.admit(Claim { door: Door::Terminal, token: Some(Secret::new(token.expose().to_owned())) }).await.unwrap()
}

fn policy() -> Policy {
    Policy { domains: vec!["docs.example.com".to_owned()], ..Policy::default() }
}

fn run() -> RunId {
    RunId::parse("run_0123456789abcdef").unwrap()
}

fn extracted() -> ExtractedFrom {
    ExtractedFrom {
        run_id: run(),
        at: Timestamp::from_millis(7),
        changed_files: vec!["SKILL.md".to_owned()],
        deleted_files: Vec::new(),
    }
}

fn advisory(passed: bool) -> Advisory {
    Advisory { run_id: run(), passed, text: "what it said".to_owned(), at: Timestamp::from_millis(8) }
}

fn provenance(source: &str) -> SkillProvenance {
    SkillProvenance {
        source: source.to_owned(),
        fetched_at: Timestamp::from_millis(9),
        content_hash: ContentHash::of(source.as_bytes()),
    }
}

/// The status; asserts that list and gate agree.
#[track_caller]
fn status(book: &TrustBook, subject: &Subject) -> SkillStatus {
    let Subject { name, place, hash, modes } = subject.clone();
    let standing = book.standing(&name, &place, hash, modes);
    assert_eq!(book.standings(&[(name, place, hash, modes)]), std::slice::from_ref(&standing));
    assert!(!standing.reason.is_empty() && !standing.reason.ends_with('.'), "{}", standing.reason);
    standing.status
}

fn reason(book: &TrustBook, subject: &Subject) -> String {
    book.standing(&subject.name, &subject.place, subject.hash, subject.modes).reason
}
