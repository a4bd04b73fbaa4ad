//! A long run with everything in it, on a host that dies at every write in turn: before the write, or after it was synced
//! and before it was acknowledged (SPEC DUR-1 to DUR-5). The next host and an owner who answers every question bring it to
//! the same end, or to one that says which outcome is unknown; nothing is done twice or asked twice.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use base::{Refusal, RefusalCode, RunId};
use store::{Faults, NoFaults};

use crate::home::{Home, world};
use crate::long_run::{End, Owner, asked, both_attempts, check, is_over, seen, still};

/// The refusals of a dying host that could not store: it is unknown whether the write that failed is on the disk.
pub const FOR_STORAGE: [RefusalCode; 2] = [RefusalCode::StorageFailed, RefusalCode::OutcomeUnknown];
const ENOSPC: i32 = 28;
const EIO: i32 = 5;

/// The fate of the write at which the host dies.
#[derive(Debug, Clone, Copy)]
pub enum Death {
    Unwritten,
    Unsynced,
    /// On the disk, but not acknowledged.
    Untold,
}

/// The host dies at one write: from then on no write succeeds.
#[derive(Debug)]
pub struct DiesAt {
    left: AtomicU32,
    death: Death,
}

impl DiesAt {
    pub fn at(n: u32, death: Death) -> Self {
        Self { left: AtomicU32::new(n), death }
    }

    fn is_alive(&self) -> bool {
        self.left.load(Ordering::SeqCst) > 0
    }

    fn fails(&self, errno: i32) -> io::Result<()> {
        if self.is_alive() { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
    }
}

impl Faults for DiesAt {
    fn before_write(&self) -> io::Result<()> {
        if matches!(self.death, Death::Unwritten) { self.fails(ENOSPC) } else { Ok(()) }
    }

    fn before_sync(&self) -> io::Result<()> {
        if matches!(self.death, Death::Unsynced) { self.fails(EIO) } else { Ok(()) }
    }

    fn after_sync(&self) {
        assert!(self.is_alive() || !matches!(self.death, Death::Untold), "the host dies here");
        self.left.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The run to its end, on hosts of which the first dies with these faults.
async fn lives(faults: Arc<dyn Faults>, when: &str) -> (Home, RunId, Owner) {
    let mut home = Home::open(Arc::new(tempfile::tempdir().unwrap()), world(both_attempts()), faults);
    let mut owner = Owner::default();
    let asked = asked();
    let mut started = home.motor.start(home.motor.new_run_id(), asked.clone()).await;
    if let Err(refusal) = &started {
        assert!(FOR_STORAGE.contains(&refusal.code), "{when}: {refusal}");
        owner.deaths += 1;
        home = home.reopen().await;
        home.motor.resume_all().await.unwrap();
        // It is unknown whether it was accepted; the key makes asking again harmless.
        started = home.motor.start(home.motor.new_run_id(), asked).await;
    }
    let id = started.unwrap().id;
    loop {
        let served = match still(&home, &id).await {
            Some(record) if is_over(&record) => return (home, id, owner),
            Some(record) => owner.serves(&home, &record).await,
            None => Err(Refusal::new(RefusalCode::StorageFailed, "the host died")),
        };
        if let Err(refusal) = served {
            assert!(FOR_STORAGE.contains(&refusal.code), "{when}: {refusal}");
            home = owner.goes_on(home, &id).await;
        }
    }
}

/// The end of the run on a host that does not die.
pub async fn undisturbed() -> End {
    let (home, id, owner) = lives(Arc::new(NoFaults), "undisturbed").await;
    let end = End::of(&home.motor.status(&id).unwrap());
    check(&home, &id, &end, "undisturbed").await;
    assert_eq!((owner.deaths, end.iterations, end.attempts), (0, 25, 2));
    assert_eq!((end.answers.len(), end.decisions.len(), end.unknown().len()), (2, 7, 0), "{end:#?}");
    end
}

/// One death and its consequences. `None` if the host lived to the end; else whether an outcome is unknown.
async fn dies(n: u32, death: Death, expected: &End) -> Option<bool> {
    let when = format!("write {n}, {death:?}");
    let (home, id, owner) = lives(Arc::new(DiesAt::at(n, death)), &when).await;
    if owner.deaths == 0 {
        return None;
    }
    let end = End::of(&home.motor.status(&id).unwrap());
    end.check(expected, &when);
    let seen = seen(&home, &id).await;
    assert!(seen.starts_with(&owner.shown), "{when}: {:?} was shown, and {seen:?} is stored", owner.shown);
    check(&home, &id, &end, &when).await;
    Some(!end.unknown().is_empty())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_host_dies_at_every_write_of_a_long_run() {
    let expected = Arc::new(undisturbed().await);
    let next = Arc::new(AtomicU32::new(0));
    let workers = (0..4).map(|_| {
        let (next, expected) = (next.clone(), expected.clone());
        tokio::spawn(async move {
            let (mut deaths, mut unknown) = (0, 0);
            loop {
                let n = next.fetch_add(1, Ordering::SeqCst);
                // Neither of the first two reaches the disk, so that they take turns.
                let unwritten = if n.is_multiple_of(2) { Death::Unwritten } else { Death::Unsynced };
                for death in [unwritten, Death::Untold] {
                    let Some(is_unknown) = dies(n, death, &expected).await else { return (deaths, unknown) };
                    deaths += 1;
                    unknown += u32::from(is_unknown);
                }
            }
        })
    });
    let (mut deaths, mut unknown) = (0, 0);
    for worker in workers.collect::<Vec<_>>() {
        let (died, lost) = worker.await.unwrap();
        deaths += died;
        unknown += lost;
    }
    println!("{deaths} deaths, {unknown} of them with a call whose outcome is not known");
    // Two writes for each of 22 steps at least and one for each of three that were cut off or paused, two deaths at each;
    // eleven calls may be in flight and not made again.
    assert!(deaths >= 94, "{deaths}");
    assert!(unknown >= 11, "{unknown}");
}
